"""SELECTs over lines of answers: without noise they mean what DuckDB says, and with noise their error bars hold."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bursar.compile import Workload, compile
from bursar.compile.lines import LabelColumn, LineTable, TruthColumn
from bursar.compile.stages import run_stages, shown_labels
from bursar.estimation.derived import Derived
from bursar.sql import parse
from bursar.sql.tokens import questions_of
from harness.cases import every
from harness.exactly import PEOPLE, Rows, exact_numbers

FIXTURES = Path(__file__).parents[1] / "fixtures"
ROUNDING = 1e-9


@cache
def rows() -> Rows:
    """So many that no group of the listed columns is empty: what DuckDB leaves out, a question here has as a line."""
    return Rows(2, number=300)


@cache
def stages() -> list[str]:
    return questions_of((FIXTURES / "stages.sql").read_text(encoding="utf-8"))


def differs(text: str, data: Rows, answered: str | None = None) -> str:
    """How our lines differ from DuckDB's; nothing where they are the same."""
    names, ours = data.ours(answered or text)
    order = [data.columns(text).index(name) for name in names]
    theirs = [tuple(line[place] for place in order) for line in data.theirs(text)]
    if Counter(ours) == Counter(theirs):
        return ""
    return f"{text}\n  ours {ours[:5]}\n  theirs {theirs[:5]}"


@every("text", stages, nth=3)
def test_every_stage_means_what_it_says(text: str) -> None:
    assert not differs(text, rows())


def test_another_stage_is_found() -> None:
    """The twin: ranks downwards are not those upwards."""
    text = next(text for text in stages() if "DENSE_RANK" in text)
    assert differs(text, rows(), text.replace("n DESC", "n"))


def _noisy(numbers: list[Derived], seed: int, narrower: float = 1.0) -> list[Derived]:
    """Estimates that are off by less than their bars, which are of very different widths."""
    generator = random.Random(seed)
    noisy = []
    for number in numbers:
        scale = generator.choice((0.3, 3.0, 12.0))
        widths = np.array([scale * generator.uniform(0.2, 1.0) for _ in number.value])
        off = np.array([generator.uniform(-1, 1) for _ in number.value]) * widths
        value = number.value + off
        low, high = value - narrower * widths, value + narrower * widths
        noisy.append(replace(number, value=value, low=low, high=high))
    return noisy


def _lines(table: LineTable, flags: Any) -> dict[tuple[Any, ...], list[tuple[float, float, float]]]:
    """The lines that are flagged, by their labels: numbers with their ends."""
    lines = np.flatnonzero(flags)
    labels = [shown_labels(c, lines) for c in table.columns.values() if isinstance(c, LabelColumn)]
    numbers = [column for column in table.columns.values() if isinstance(column, Derived)]
    keys = list(zip(*labels, strict=True)) if labels else [()] * len(lines)
    ends = [[(n.value[line], n.low[line], n.high[line]) for n in numbers] for line in lines]
    return dict(zip(keys, ends, strict=True))


def missed(text: str, seed: int, narrower: float = 1.0) -> list[str]:
    """Where the truth lies outside of what the noisy lines say."""
    workload: Workload = compile(parse(text), PEOPLE, "people")
    numbers = exact_numbers(workload, rows())
    noisy = run_stages(workload, _noisy(numbers, seed, narrower))
    truth = run_stages(workload, numbers)
    if any(isinstance(column, TruthColumn) for column in truth.columns.values()):
        return []
    there, perhaps = _lines(truth, truth.shown), _lines(noisy, np.ones(len(noisy), np.bool_))
    certain = _lines(noisy, noisy.certain)
    faults = [f"{key} is missing" for key in there if key not in perhaps]
    faults += [f"{key} is not there" for key in certain if key not in there]
    for key, line in there.items():
        for (value, _, _), (_, low, high) in zip(line, perhaps.get(key, []), strict=False):
            slack = ROUNDING * max(1.0, abs(value))
            if not np.isnan(value) and not low - slack <= value <= high + slack:
                faults.append(f"{key}: {value} is not in {low} to {high}")
    return faults


@pytest.mark.sampled(6)
@pytest.mark.parametrize("seed", range(6))
def test_the_truth_is_within_the_bars_whenever_it_is_within_those_of_the_numbers(seed: int) -> None:
    wrong = {text: faults for text in stages() if (faults := missed(text, seed))}
    assert not wrong, wrong


def test_bars_that_are_too_narrow_miss_it() -> None:
    """The twin: half of the bars of the numbers is not enough."""
    assert sum(bool(missed(text, 0, narrower=0.5)) for text in stages()) > len(stages()) / 3


CHOICES = [
    "SELECT ARG_MAX(code, n) AS r, ARG_MIN(code, n) AS l FROM (SELECT code, COUNT(*) AS n FROM people GROUP BY 1) t",
    "SELECT sex, MAX_BY(region, n) AS r FROM (SELECT sex, region, COUNT(*) AS n FROM people GROUP BY 1, 2) GROUP BY 1",
    "SELECT ARG_MAX(region, n) FILTER (WHERE region <> 'it''s') AS r FROM "
    "(SELECT region, SUM(hours) AS n FROM people GROUP BY region) t",
    "SELECT MODE(region) AS m FROM people",
    "SELECT sex, MODE(code) AS m, COUNT(*) AS n, AVG(age) AS a, SUM(hours) / 2 AS s FROM people WHERE age < 41 "
    "GROUP BY 1 ORDER BY n DESC LIMIT 3",
    "SELECT p.sex AS s, MODE() WITHIN GROUP (ORDER BY p.age) AS m FROM people p GROUP BY p.sex HAVING COUNT(*) > 30",
    "SELECT MODE(region) FILTER (WHERE sex = 'F') AS f, MODE(region) FILTER (WHERE sex = 'M') AS m FROM people",
    "SELECT MODE(region) AS m FROM people WHERE age < 0",
]
"""None has two largest numbers that are equal: DuckDB takes either then, now this one and now that."""


@pytest.mark.parametrize("text", CHOICES)
def test_the_line_with_the_largest_number_is_the_one_that_duckdb_takes(text: str) -> None:
    assert not differs(text, rows())


def test_the_line_with_the_smallest_number_is_another_one() -> None:
    """The twin."""
    assert differs(CHOICES[1], rows(), CHOICES[1].replace("MAX_BY", "MIN_BY"))


def _choices(table: LineTable) -> list[Any]:
    return [shown_labels(c, np.flatnonzero(table.shown)) for c in table.columns.values() if isinstance(c, LabelColumn)]


def silent(seed: int, narrower: float = 1.0) -> bool:
    """Whether another line is taken than there is in truth, and the answer says that it is the right one."""
    workload = compile(parse(CHOICES[1]), PEOPLE, "people")
    numbers = exact_numbers(workload, rows())
    noisy = run_stages(workload, _noisy(numbers, seed, narrower))
    certain = any("it is the right one" in remark for remark in noisy.remarks)
    return certain and _choices(noisy) != _choices(run_stages(workload, numbers))


def test_a_choice_that_may_be_wrong_says_so() -> None:
    assert not any(silent(seed) for seed in range(60))


def test_bars_that_are_too_narrow_take_a_wrong_line_for_the_right_one() -> None:
    """The twin."""
    assert any(silent(seed, narrower=0.0) for seed in range(60))


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            "SELECT sex, HISTOGRAM(region) AS n FROM people WHERE age > 20 GROUP BY 1",
            "SELECT sex, region, COUNT(*) AS n FROM people WHERE age > 20 AND region IS NOT NULL GROUP BY 1, 2",
        ),
        (
            "SELECT HISTOGRAM(YEAR(joined)) FROM people",
            "SELECT YEAR(joined) AS value, COUNT(*) AS histogram FROM people WHERE joined IS NOT NULL GROUP BY 1",
        ),
    ],
)
def test_a_histogram_is_a_line_for_each_value(text: str, lines: str) -> None:
    assert not differs(lines, rows(), text)
    assert any("HISTOGRAM is shown as lines" in remark for remark in compile(parse(text), PEOPLE, "people").remarks)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT MIN(age) AS a, MAX(hours) AS b, MAX(income) AS c FROM people",
        "SELECT sex, MIN(age) AS a, MAX(age) AS b FROM people WHERE hours > 1 GROUP BY sex",
        "SELECT MIN(age) AS a FROM people WHERE age < 0",
    ],
)
def test_the_least_and_greatest_values_are_found_where_an_accuracy_is_asked_for(text: str) -> None:
    assert not differs(text, rows(), f"{text} WITH ERROR 5")


def test_without_an_accuracy_they_are_the_declared_bounds() -> None:
    names, lines = rows().ours("SELECT MIN(age) AS a, MAX(joined) AS b, MIN(region) AS c, COUNT(*) AS n FROM people")
    assert dict(zip(names, lines[0], strict=True)) == {
        "a": 16,
        "b": date(2023, 2, 10),
        "c": "Lakeside",
        "n": 300,
    }
