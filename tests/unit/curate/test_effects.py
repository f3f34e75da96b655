"""What declarations do to stored values is counted by the rule that answers use."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bursar.core.domain import Attribute, Bins, Categories, Dates, IntegerRange, Period
from bursar.curate.changes import Effect, effects
from bursar.errors import SourceError

AGE = IntegerRange(name="x", lower=0, upper=9)
SIZE = Bins(name="x", edges=(0.0, 1.0, 4.0))
STATE = Categories(name="x", values=("ill", "well"))
DAY = Dates(name="x", first=date(2020, 1, 1), last=date(2020, 12, 31), by=Period.MONTH)


def effect(attribute: Attribute, values: Sequence[object]) -> Effect:
    (found,) = effects(pd.DataFrame({attribute.name: values}), None, None, [attribute])
    return found


@pytest.mark.parametrize(
    ("attribute", "values", "counts", "total", "cells"),
    [
        (AGE, [1.5, 2.0, 12.0, -3.25, None], (4, 0, 2, 1), 12.25, {0: 1, 1: 1, 2: 1, 9: 1}),
        (AGE, ["1", "NA", "inf", "nan"], (4, 2, 1, 0), 1.0, {1: 1}),
        (SIZE, [0.5, 4.0, 4.5, -1.0], (4, 0, 2, 0), 8.0, {0: 2, 1: 2}),
        (STATE, ["ill", "NA", None], (2, 0, 1, 0), None, {}),
        (DAY, ["2020-02-01", "2019-12-31", "soon"], (3, 1, 1, 0), None, {}),
        (AGE, [], (0, 0, 0, 0), 0.0, {}),
    ],
)
def test_effects(
    attribute: Attribute,
    values: list[object],
    counts: tuple[int, int, int, int],
    total: float | None,
    cells: dict[int, int],
) -> None:
    found = effect(attribute, values)
    assert (found.filled, found.unread, found.outside, found.rounded) == counts
    assert found.total == total
    assert found.cells == cells


@given(values=st.lists(st.integers(-40, 140).map(lambda n: n / 4), min_size=1, max_size=30))
def test_numbers_by_the_definition(values: list[float]) -> None:
    found = effect(AGE, values)
    assert found.outside == sum(not 0 <= value < 10 for value in values)
    assert found.rounded == sum(0 <= value < 10 and value % 1 != 0 for value in values)
    assert found.total == pytest.approx(sum(values))
    assert sum(found.cells.values()) == len(values)


def test_columns_that_are_not_there_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("y\n1\n")
    with pytest.raises(SourceError, match="has no column x"):
        effects(tmp_path / "a.csv", None, None, [AGE])
    assert effects(tmp_path / "a.csv", None, None, []) == []


def test_a_file_that_cannot_be_read_says_nothing_of_its_rows(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n2,Zaphod\n")
    with pytest.raises(SourceError, match="cannot be read as CSV") as refused:
        effects(tmp_path / "a.csv", None, None, [AGE])
    assert "Zaphod" not in str(refused.value)
