"""Pictures and notebook tables of answers."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import date, timedelta
from itertools import product

import matplotlib as mpl
import pytest
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure

from bursar.answer import Answer
from bursar.errors import QueryError
from bursar.report.exports import MOST_LINES
from bursar.report.plots import picture_of
from unit.test_answer import ANSWER

pytestmark = pytest.mark.thinned(3)

mpl.use("Agg")


def answer(keys: tuple[str, ...], labels: list[tuple[object, ...]], outputs: tuple[str, ...] = ("n",)) -> Answer:
    """Numbers 10, 20, ... with low 3 below and high 5 above."""
    values = tuple(tuple(10.0 * (line + 1) + place for place, _ in enumerate(outputs)) for line in range(len(labels)))

    def moved(by: float) -> tuple[tuple[float, ...], ...]:
        return tuple(tuple(number + by for number in line) for line in values)

    return replace(
        ANSWER, keys=keys, outputs=outputs, labels=tuple(labels), values=values, low=moved(-3), high=moved(5)
    )


def drawn(of: Answer, **options: str) -> object:
    figure = picture_of(of, **options)
    figure.draw_without_rendering()
    return figure.axes[0]


def bar_ends(axes: object) -> list[list[float]]:
    """The ends of the error bars of each series: low and high, number by number."""
    bars = [container for container in axes.containers if isinstance(container, ErrorbarContainer)]
    return [[end for segment in each.lines[2][0].get_segments() for end in segment[:, 1].tolist()] for each in bars]


def test_bars_have_their_own_low_and_high() -> None:
    axes = drawn(answer(("sex",), [("F",), ("M",), (None,)]))
    assert [patch.get_height() for patch in axes.patches] == [10, 20, 30]
    assert bar_ends(axes) == [[7, 15, 17, 25, 27, 35]]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["F", "M", "NULL"]
    assert axes.get_ylabel() == "n"
    assert "95%" in axes.get_xlabel()
    assert axes.get_legend() is None


def test_dates_stand_below_and_groups_beside() -> None:
    labels = list(product(["F", "M"], [date(2024, month, 1) for month in range(1, 13)]))
    axes = drawn(answer(("sex", "month"), labels))
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["F", "M"]
    assert len(bar_ends(axes)) == 2
    assert axes.get_xticklabels()[0].get_text() == "2024-01"


def test_many_places_are_points() -> None:
    axes = drawn(answer(("age",), [(age,) for age in range(100)]))
    assert len(axes.patches) == 0
    (ends,) = bar_ends(axes)
    assert ends[:2] == [7, 15]
    assert len(axes.get_xticklabels()) <= 21


def lines_of(axes: object) -> list[tuple[str, int]]:
    """How the points of each errorbar are joined, and how many there are."""
    bars = [container for container in axes.containers if isinstance(container, ErrorbarContainer)]
    return [(each.lines[0].get_linestyle(), len(each.lines[0].get_xdata())) for each in bars]


def test_no_line_leads_from_the_last_day_to_null() -> None:
    days = [(date(2024, 1, 1) + timedelta(days=day),) for day in range(60)]
    axes = drawn(answer(("day",), [*days, ("other",), (None,)]))
    assert lines_of(axes) == [("-", 60), ("None", 2)]
    assert [ends[-2:] for ends in bar_ends(axes)] == [[597, 605], [617, 625]]
    assert axes.get_legend() is None
    both = drawn(answer(("sex", "day"), [(sex, *day) for sex in "FM" for day in [*days, (None,)]]))
    assert [text.get_text() for text in both.get_legend().get_texts()] == ["F", "M"]
    assert lines_of(both) == [("-", 60), ("None", 1)] * 2
    assert lines_of(drawn(answer(("day",), days))) == [("-", 60)]


def test_no_line_joins_towns_in_the_order_of_the_alphabet() -> None:
    assert lines_of(drawn(answer(("town",), [(f"town {n:02}",) for n in range(60)]))) == [("None", 60)]
    bins = [(f"[{n}, {n + 1})",) for n in range(60)]
    assert lines_of(drawn(answer(("height",), bins))) == [("-", 60)]


def test_months_are_labelled_as_months_and_days_as_days() -> None:
    def first(*labels: object) -> str:
        return drawn(answer(("t",), [(label,) for label in labels])).get_xticklabels()[0].get_text()

    assert first(date(2024, 1, 1), date(2024, 2, 1), "other", None) == "2024-01"
    assert first(date(2024, 1, 1), date(2025, 1, 1)) == "2024"
    assert first(date(2024, 1, 1), date(2024, 1, 8)) == "2024-01-01"
    assert first(date(2024, 1, 1)) == "2024-01-01"


def test_slanted_labels_end_at_their_places() -> None:
    days = [(date(2024, 1, 1) + timedelta(days=day),) for day in range(59)]
    axes = drawn(answer(("day",), [*days, (None,)]))
    labels = axes.get_xticklabels()
    assert {(label.get_ha(), label.get_rotation_mode(), label.get_rotation()) for label in labels} == {
        ("right", "anchor", 60.0)
    }
    assert labels[-1].get_text() == "NULL"  # what stands apart is always named


def test_groups_beside_the_point_do_not_flatten_the_rest() -> None:
    labels = [("a",), ("b",), ("other",), (None,)]
    plain = answer(("k",), labels)
    wide = replace(plain, low=((7.0,), (17.0,), (-900.0,), (37.0,)), high=((15.0,), (25.0,), (900.0,), (45.0,)))
    axes = drawn(wide)
    low, high = axes.get_ylim()
    assert -10 < low < 0
    assert 25 < high < 30
    marks = [line for line in axes.lines if line.get_marker() in ("v", "^")]
    assert [(line.get_marker(), line.get_xdata().tolist()) for line in marks] == [("v", [2.0]), ("^", [2.0, 3.0])]
    assert "goes on beyond the picture" in axes.get_xlabel()
    unsure = replace(answer(("k",), [("a",), ("b",)]), high=((15.0,), (900.0,)), unsure=((1, 0),))
    assert drawn(unsure).get_ylim()[1] < 20
    sure = replace(unsure, unsure=())
    assert drawn(sure).get_ylim()[1] > 900
    assert "beyond" not in drawn(sure).get_xlabel()


def test_the_legend_covers_nothing() -> None:
    figure = picture_of(answer(("a", "b"), list(product("xy", "pqr"))))
    figure.canvas.draw()
    (axes,) = figure.axes
    assert axes.get_legend().get_window_extent().x0 >= axes.get_window_extent().x1


def test_too_many_series_are_places() -> None:
    labels = [(a, b) for a in "abcdef" for b in "ghijklmnopq"]
    axes = drawn(answer(("one", "two"), labels))
    assert len(bar_ends(axes)) == 1
    assert axes.get_xticklabels()[0].get_text() == "a, g"


def test_aggregates_share_the_axes_unless_one_is_named() -> None:
    both = answer(("sex",), [("F",), ("M",)], outputs=("n", "m"))
    assert [text.get_text() for text in drawn(both).get_legend().get_texts()] == ["n", "m"]
    only = drawn(both, output="m")
    assert [patch.get_height() for patch in only.patches] == [11, 21]
    with pytest.raises(QueryError, match="it has n, m"):
        picture_of(both, output="k")


def test_a_single_number_and_nothing_at_all() -> None:
    assert len(drawn(answer((), [()])).patches) == 1
    assert len(drawn(answer(("sex",), [])).patches) == 0


def test_text_is_not_mathematics_and_ends_may_be_missing() -> None:
    odd = replace(answer(("pay$$",), [("$1$",), ("$\\frac",)]), question="SELECT $ $")
    endless = replace(odd, high=((math.inf,), (math.inf,)))
    assert drawn(endless).get_xticklabels()[0].get_text() == r"\$1\$"


def test_on_axes_of_your_own() -> None:
    own = Figure().subplots()
    assert answer(("sex",), [("F",)]).plot(own) is own
    made = answer(("sex",), [("F",)]).plot()
    assert len(made.patches) == 1
    import matplotlib.pyplot as plt

    plt.close(made.figure)


def test_a_notebook_table_is_escaped_and_cut() -> None:
    page = replace(ANSWER, outputs=("<n>",))._repr_html_()
    assert "a&lt;b" in page
    assert "&lt;n&gt;" in page
    assert "<n>" not in page
    assert page.count("<tr>") == 3
    assert "<svg" in page
    long = answer(("age",), [(age,) for age in range(MOST_LINES + 7)])
    assert long._repr_html_().count("<tr>") == MOST_LINES + 1
    assert "7 more lines" in long._repr_html_()


def test_the_bars_of_a_notebook_are_in_proportion() -> None:
    page = answer(("sex",), [("F",), ("M",)])._repr_html_()
    widths = [float(part.split('"')[0]) for part in page.split('<rect width="')[1:]]
    assert widths == pytest.approx([120 * 10 / 25, 120 * 20 / 25], abs=0.1)
    negative = replace(ANSWER, values=((-1.0,),) * 2, low=((-2.0,),) * 2, high=((-0.5,),) * 2)
    assert "<svg" not in negative._repr_html_()
    assert '"nan"' not in replace(ANSWER, low=((math.nan,),) * 2)._repr_html_()
