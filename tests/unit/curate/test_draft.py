"""A draft is a config that can be read, and says what it was made from."""

from __future__ import annotations

import tomllib
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.compile.values import Decimals
from bursar.config.load import parse_draft
from bursar.core.domain import Bins, Categories, IntegerRange, Stray
from bursar.curate.draft import MOST_CELLS, Draft, DraftColumn, DraftUnit, LeftOut, listed, numeric, toml

AGE = DraftColumn(name="age", keys={"lower": 0, "upper": 99}, why="From the data.")


def draft(*columns: DraftColumn, **changes: Any) -> Draft:
    facts: dict[str, Any] = {
        "origin": "people.csv",
        "dataset": "people",
        "path": "people.csv",
        "table": "people",
        "max_rows": 1000,
        "rows_why": "A guess.",
    }
    return Draft(**{**facts, **changes}, columns=columns or (AGE,))


def read(made: Draft) -> Any:
    return parse_draft(made.text(), Path("bursar.toml"))


def test_everything_but_the_owners_word_is_open() -> None:
    assert read(draft()).unconfirmed == (("source",), ("privacy",), ("budget",), ("columns", "age"))
    told = draft(unit=DraftUnit(given=True), epsilon=0.5)
    assert read(told).unconfirmed == (("source",), ("columns", "age"))
    assert read(told).budget.amount == 0.5


def test_a_unit_with_several_rows() -> None:
    unit = read(draft(unit=DraftUnit(column="person id", max_contributions=5))).unit
    assert (unit.column, unit.max_contributions) == ("person id", 5)


def test_what_is_left_out_stands_there_as_a_comment() -> None:
    text = draft(left_out=(LeftOut(name="note\n[budget]", reason="free text"),)).text()
    assert "#     note?[budget]: free text\n" in text
    assert list(tomllib.loads(text)["columns"]) == ["age"]


names = st.text(min_size=1, max_size=20).filter(lambda name: name.isprintable() and name == name.strip())
texts = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), min_size=1, max_size=20, unique=True)


@settings(max_examples=40)
@given(name=names, values=texts, table=names)
def test_any_name_and_any_text_is_written_as_it_is(name: str, values: list[str], table: str) -> None:
    config = read(draft(DraftColumn(name=name, keys=listed(values), why="From the data."), table=table, origin=name))
    attribute = config.domain[name]
    assert isinstance(attribute, Categories)
    assert attribute.values == tuple(values)
    assert config.table == table


def test_a_value_called_other_takes_all_others() -> None:
    attribute = read(draft(DraftColumn(name="a", keys=listed(["x", "other"]), why="."))).domain["a"]
    assert attribute.outside == 1
    assert read(draft(DraftColumn(name="a", keys=listed(["x"]), why="."))).domain["a"].outside is Stray.OTHER


@given(low=st.integers(-(10**15), 10**15), width=st.integers(1, 10**15), scale=st.integers(0, 6), whole=st.booleans())
def test_numbers(low: int, width: int, scale: int, whole: bool) -> None:
    bottom, top = (Fraction(low), Fraction(low + width))
    if not whole:
        bottom, top = bottom / 10**scale, top / 10**scale
    keys = numeric(bottom, top, whole=whole)
    attribute = read(draft(DraftColumn(name="a", keys=keys, why="."))).domain["a"]
    if isinstance(attribute, IntegerRange):
        assert (attribute.lower, attribute.upper) == (bottom, top)
        assert whole
        assert width <= MOST_CELLS
    else:
        assert isinstance(attribute, Bins)
        assert Fraction(str(attribute.edges[0])) <= bottom
        assert Fraction(str(attribute.edges[-1])) >= top
        assert 1 <= attribute.declared <= 201


def bins(low: Fraction, high: Fraction, **how: Any) -> Bins:
    attribute = read(draft(DraftColumn(name="a", keys=numeric(low, high, **how), why="."))).domain["a"]
    assert isinstance(attribute, Bins)
    return attribute


@pytest.mark.parametrize(
    ("high", "places", "whole"), [(Fraction(4, 5), 2, False), (Fraction(20), 1, False), (Fraction(4000), -1, True)]
)
def test_few_decimals_are_told_apart(high: Fraction, places: int, whole: bool) -> None:
    found, grid = bins(Fraction(0), high, whole=whole, places=places), Fraction(10) ** -places
    assert isinstance(found, Decimals)
    assert [Fraction(found.number(cell)) for cell in range(found.declared)] == [
        place * grid for place in range(int(high / grid) + 1)
    ]
    middles = [(low + up) / 2 for low, up in zip(found.edges, found.edges[1:], strict=False)]
    assert middles == pytest.approx([float(found.number(cell)) for cell in range(found.declared)])


@pytest.mark.parametrize(("low", "high", "step"), [(0, 2500, 20), (0, 1500, 10), (-50, 1500, 10), (980, 1050, 0.5)])
def test_a_step_leaves_the_ends_where_it_can(low: int, high: int, step: float) -> None:
    found = bins(Fraction(low), Fraction(high), whole=False)
    assert found.edges[1] - found.edges[0] == step
    assert (found.edges[0], found.edges[-1]) == (low // step * step, -(-high // step) * step)


def test_a_heap_is_the_middle_of_a_bin() -> None:
    found = bins(Fraction(0), Fraction(10), whole=False, places=4, heaped=True)
    assert (found.edges[0], found.edges[1], found.edges[-1]) == (-0.025, 0.025, 10.025)
    assert bins(Fraction(0), Fraction(10), whole=False, places=4).edges[:2] == (0, 0.05)


@pytest.mark.parametrize(
    "value",
    [True, False, 0, -7, 1.5, 1e-7, 1e300, 'a"b\\c\n\x7f\x00é', date(1, 2, 3), {"a b": [1, "x"]}, ["y" * 200] * 3],
)
def test_values(value: Any) -> None:
    assert tomllib.loads(f"a = {toml(value)}") == {"a": value}
