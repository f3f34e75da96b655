"""The groups of a CASE over several columns, side by side: every number is that of its group.

The table is small, so that the question itself can be asked as well; what is tried when it is too large is asked for by
saying that every condition ties too many columns together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bursar.compile import compile
from bursar.compile.conditions import holds_on
from bursar.core.domain import Domain, IntegerRange
from bursar.errors import QueryError
from bursar.rewrite import pivot
from bursar.rewrite.pivot import MOST_PARTS, disjoint
from bursar.sql import And, Condition, IsTrue, Not, Or, Query, parse, render
from bursar.sql.query import leaves
from harness import public
from harness.asking import compiled

LABELS = ("x", "y", None)
CASE = "CASE WHEN age < 2 OR sex = 'F' THEN 'x' WHEN code = 1 AND NOT town = 'Bonn' THEN 'y' WHEN age = 4 THEN 'x' END"


def lines(query: Query) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """The names of all columns, and every line of the answer from exact counts."""
    workload = compile(query, public.DOMAIN, "people")
    rows = workload.map.apply(public.counts).astype(float)
    values = np.stack([one.value for one in workload.derive(rows, rows, rows)], axis=1)
    names = (*workload.keys, *workload.outputs)
    return names, [(*labels, *line) for labels, line in zip(workload.labels, values.tolist(), strict=True)]


def beside(text: str) -> list[Query]:
    """The questions that are offered, each read back from its text."""
    return [parse(render(one)) for one in pivot.pivots(parse(text), public.DOMAIN)]


@pytest.fixture(params=[False, True], ids=["filtered", "in parts"])
def tied(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether all conditions are said to tie too many columns together."""
    monkeypatch.setattr(pivot, "ties_too_many", lambda condition, domain: request.param)
    return bool(request.param)


@pytest.mark.thinned(4)
@pytest.mark.parametrize("of", ["COUNT(*)", "COUNT(age)", "SUM(age)", "AVG(age)", "SUM(income) / COUNT(*)"])
def test_every_number_is_that_of_its_group(of: str, tied: bool) -> None:
    _, groups = lines(parse(f"SELECT town, {CASE} AS c, {of} AS n FROM people GROUP BY town, c"))
    expected = {(town, label): number for town, label, number in groups}
    offers = beside(f"SELECT town, {CASE} AS c, {of} AS n FROM people GROUP BY town, c")
    assert len(offers) == 2
    for offer in offers:
        names, found = lines(offer)
        assert names == ("town", "x", "y", pivot.NO_GROUP)
        for town, *numbers in found:
            wanted = [expected[town, label] for label in LABELS if (town, label) in expected]
            assert [number for number, label in zip(numbers, LABELS, strict=True) if (town, label) in expected] == (
                pytest.approx(wanted, nan_ok=True)
            )


def test_totals_of_other_keys_stay_and_those_of_the_groups_are_a_column() -> None:
    text = f"SELECT sex, {CASE} AS c, GROUPING(sex) AS g, COUNT(*) AS n FROM people GROUP BY ROLLUP (sex, c) ORDER BY g"
    expected = {tuple(line[:-1]): line[-1] for line in lines(parse(text))[1]}
    names, found = lines(beside(text)[0])
    assert names == ("sex", "g", "x", "y", pivot.NO_GROUP, "n")
    assert [line[1] for line in found] == [0, 0, 0, 0, 1]
    for sex, flag, *numbers, whole in found:
        assert whole == expected[sex, "(all)", flag] == sum(numbers)
    for sex, _, *numbers, _ in found[:4]:
        assert numbers == [expected.get((sex, label, 0), 0) for label in LABELS]


def test_a_case_alone_in_its_rollup_leaves_no_sets() -> None:
    (first, *_) = beside(f"SELECT {CASE} AS c, COUNT(*) AS n FROM people GROUP BY ROLLUP (c)")
    assert (first.keys, first.sets, first.names) == ((), (), ("x", "y", "no_group", "n"))


def test_two_cases_one_by_one_and_both() -> None:
    other = "CASE WHEN town = 'Bonn' OR code = 7 THEN 1 ELSE 2 END"
    text = f"SELECT {CASE} AS c, {other} AS d, COUNT(*) AS n FROM people GROUP BY c, d"
    expected = {(c, d): n for c, d, n in lines(parse(text))[1]}
    both = beside(text)[-1]
    names, (numbers,) = lines(both)
    assert names == ("x_1", "x_2", "y_1", "y_2", "no_group_1", "no_group_2")
    assert list(numbers) == [expected.get((c, d), 0) for c in LABELS for d in (1, 2)]


def test_names_that_are_taken_get_a_number() -> None:
    text = (
        "SELECT sex, CASE WHEN age < 2 OR code = 1 THEN 'Sex' ELSE 'sex_2' END AS c, COUNT(*) FROM people GROUP BY 1, 2"
    )
    assert beside(text)[0].names == ("Sex_2", "sex_2_2")


def test_an_error_of_its_own_goes_to_all_that_an_output_becomes() -> None:
    text = f"SELECT {CASE} AS c, COUNT(*) AS n, SUM(age) AS s FROM people GROUP BY c WITH ERROR 9 ON s, 5"
    goal = beside(text)[0].goal
    assert goal is not None
    assert [(part.output, part.amount) for part in goal.parts] == [
        ("x_s", 9.0),
        ("y_s", 9.0),
        ("no_group_s", 9.0),
        (None, 5.0),
    ]


def test_what_is_no_sum_is_offered_under_plain_conditions_only(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "SELECT CASE WHEN age < 2 OR sex = 'F' THEN 'x' ELSE 'y' END AS c, MEDIAN(age) AS m FROM people GROUP BY c"
    assert beside(text)
    monkeypatch.setattr(pivot, "ties_too_many", lambda condition, domain: True)
    assert beside(text) == []


CONDITIONS = [
    "age < 2 OR sex = 'F' OR town = 'Bonn'",
    "NOT (age < 2 AND sex = 'F' AND code = 1)",
    "(age < 2 OR sex = 'F') AND (town = 'Bonn' OR code = 1)",
    "NOT ((age = 1 OR town LIKE 'Aa%') IS TRUE) OR NOT (sex = 'F' OR age > 3)",
    "(age < 2 OR TRUE) AND sex = 'F' OR FALSE",
    "age = 1 OR age = 2 OR sex = 'M' OR age IS NULL",
    "AT_LEAST(2, age < 2, sex = 'F', code = 1) OR town = 'Bonn'",
]


def where(text: str) -> Condition:
    return parse(f"SELECT COUNT(*) FROM people WHERE {text}").where


@pytest.mark.parametrize("text", CONDITIONS)
def test_exactly_one_part_holds_where_the_condition_does(text: str) -> None:
    condition, names = where(text), ("age", "sex", "code", "town")
    parts = disjoint(condition)
    assert parts is not None
    held = sum(holds_on(part, names, public.DOMAIN).astype(int) for part in parts)
    assert np.array_equal(held, holds_on(condition, names, public.DOMAIN).astype(int))


@pytest.mark.parametrize("text", CONDITIONS[:-1])
def test_a_part_ties_nothing_together(text: str) -> None:
    for part in disjoint(where(text)) or ():
        for one in part.parts if isinstance(part, And) else (part,):
            assert len({leaf.column.text for leaf in leaves(one)}) <= 1


def test_parts_that_are_not_kept_apart_would_count_rows_twice() -> None:
    """The twin: the parts of an OR as they are written."""
    condition, names = where(CONDITIONS[0]), ("age", "sex", "town")
    assert isinstance(condition, Or)
    held = sum(holds_on(part, names, public.DOMAIN).astype(int) for part in condition.parts)
    assert held.max() > 1


def test_too_many_parts_are_none_and_take_no_time() -> None:
    columns = ("age", "sex", "code", "town", "income")
    pairs = " OR ".join(
        f"({one} IS NULL AND {other} IS NOT NULL)" for one in columns for other in columns if one != other
    )
    assert disjoint(where(pairs)) is None
    assert disjoint(Not(part=IsTrue(part=where(" AND ".join(f"({pairs})" for _ in range(5)))))) is None
    assert MOST_PARTS >= 4


def test_more_groups_than_a_text_has_room_for_are_not_pivoted() -> None:
    """Each excludes all before it; where all but the last are one group, hardly anything is excluded."""
    branches = [f"WHEN age = {n % 5} OR sex = 'F' THEN " for n in range(160)]
    text = "SELECT CASE {} ELSE 'else' END AS c, COUNT(*) AS n FROM people GROUP BY c"
    apart, alike = (" ".join(f"{b}'{label(n)}'" for n, b in enumerate(branches)) for label in (str, lambda n: "one"))
    assert list(pivot.pivots(parse(text.format(apart)), public.DOMAIN)) == []
    assert list(pivot.pivots(parse(text.format(alike)), public.DOMAIN))


def test_a_refusal_offers_them() -> None:
    wide = Domain((*public.DOMAIN.attributes, IntegerRange(name="zip", lower=0, upper=999_999)))
    text = "SELECT CASE WHEN zip < 5 OR sex = 'F' THEN 'x' ELSE 'y' END AS c, SUM(code) AS s FROM people GROUP BY c"
    with pytest.raises(QueryError) as refused:
        compiled(text, wide)
    assert compile(parse(refused.value.rewrite), wide, "people").outputs == ("x", "y")
