"""Charts: all of an answer is in the picture, and nothing is drawn outside of it."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import date

import pytest

from bursar.answer import Answer
from bursar.core.domain import Value
from bursar.service.pages.charts import MOST_BARS, BarChart, LineChart, charts_of, curve, steps


def answer(keys: tuple[str, ...], labels: list[tuple[Value, ...]], values: list[float | None], bar: float) -> Answer:
    return Answer(
        question="",
        keys=keys,
        outputs=("n",),
        labels=tuple(labels),
        values=tuple((value,) for value in values),
        low=tuple(((value or 0.0) - bar,) for value in values),
        high=tuple(((value or 0.0) + bar,) for value in values),
        goal="",
        confidence=0.95,
        contract="per-query",
        source="direct",
        note="",
        reused=0,
        bought=0,
        unit="epsilon",
        charge=0.0,
        left=1.0,
        total=1.0,
    )


def inside(chart: BarChart | LineChart) -> bool:
    if isinstance(chart, BarChart):
        ends = [end for bar in chart.bars for end in (bar.begin, bar.begin + bar.width)]
        ends += [end for bar in chart.bars for end in (bar.low, bar.high) if end is not None]
        ends += [tick.at for tick in chart.ticks]
    else:
        ends = [end for line in chart.lines for point in line.points for end in (point.x, point.y)]
        ends += [tick.at for tick in (*chart.x, *chart.y)]
        ends += [float(n) / 10 for line in chart.lines for n in line.band.strip("MZ").replace("L", " ").split()]
    return all(-1e-6 <= end <= 100 + 1e-6 for end in ends)


@pytest.mark.parametrize("bar", [0.0, 5.0, 1e6, math.inf])
def test_listed_values_are_bars_with_whiskers(bar: float) -> None:
    [chart] = charts_of(answer(("sex",), [("F",), ("M",), (None,)], [30.0, -10.0, None], bar))
    assert isinstance(chart, BarChart)
    assert [each.label for each in chart.bars] == ["F", "M", "NULL"]
    assert inside(chart)
    first, nothing = chart.bars[0], chart.bars[2]
    assert (nothing.low, nothing.high) == (None, None), "of what is unknown no whisker is drawn"
    assert first.low is not None
    assert first.high is not None
    if math.isfinite(bar):
        middle = (first.low + first.high) / 2
        assert middle == pytest.approx(first.begin + first.width, abs=0.01)  # the whisker is around the end of the bar


def test_where_nothing_is_known_nothing_is_drawn() -> None:
    assert charts_of(answer(("sex",), [("F",), ("M",)], [None, None], 5.0)) == []


def test_many_ordered_groups_are_a_line_with_a_band() -> None:
    months = [(date(2020 + n // 12, n % 12 + 1, 1),) for n in range(24)]
    [chart] = charts_of(answer(("joined",), months, [float(n) for n in range(24)], 3.0))
    assert isinstance(chart, LineChart)
    [line] = chart.lines
    assert len(line.points) == 24
    assert line.points[0].x == 0
    assert line.points[-1].x == 100
    assert line.points[0].y > line.points[-1].y  # larger is higher
    assert inside(chart)


def test_two_groupings_have_a_colour_for_each_value_of_the_second() -> None:
    labels: list[tuple[Value, ...]] = [(age, sex) for age in range(20) for sex in ("F", "M")]
    [chart] = charts_of(answer(("age", "sex"), labels, [1.0] * 40, 0.5))
    assert isinstance(chart, LineChart)
    assert [line.name for line in chart.lines] == ["F", "M"]
    [bars] = charts_of(answer(("sex", "age"), [(sex, age) for age, sex in labels], [1.0] * 40, 0.5))
    assert isinstance(bars, BarChart)  # a line along F and M would mean nothing


def test_long_lists_are_cut_and_say_so() -> None:
    [chart] = charts_of(answer(("name",), [(f"n{n}",) for n in range(100)], [1.0] * 100, 0.5))
    assert isinstance(chart, BarChart)
    assert (len(chart.bars), chart.hidden) == (MOST_BARS, 100 - MOST_BARS)


def test_prices_fall_along_the_curve_and_free_ones_lie_on_the_ground() -> None:
    chart = curve("", "", [(25.0, 0.2), (50.0, 0.1), (100.0, 0.0)], mark=(0.5, "left"))
    heights = [point.y for point in chart.lines[0].points]
    assert heights == sorted(heights)
    assert heights[-1] == 100
    assert chart.marks[0].at < heights[0]
    assert inside(chart)


def test_what_is_spent_grows_in_steps_up_to_now() -> None:
    chart = steps("", [100.0, 200.0], [0.25, 0.5], cap=1.0, end=300.0)
    assert [point.y for point in chart.lines[0].points] == [75, 50]
    assert inside(chart)
    assert inside(steps("", [], [], cap=1.0, end=300.0))


def test_what_may_be_about_nobody_is_not_drawn() -> None:
    years: list[tuple[Value, ...]] = [(year,) for year in range(2000, 2020)]
    known = answer(("year",), years, [50.0] * 20, 1.0)
    [chart] = charts_of(replace(known, unsure=((0, 0), (5, 0))))
    assert isinstance(chart, LineChart)
    assert [point.text[:4] for point in chart.lines[0].points] == [str(y) for y in range(2001, 2020) if y != 2005]
    [few] = charts_of(replace(known, unsure=tuple((line, 0) for line in range(19))))  # too few points for a line
    assert isinstance(few, BarChart)
    assert sum(bar.width > 0 for bar in few.bars) == 1
