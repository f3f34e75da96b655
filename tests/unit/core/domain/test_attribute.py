"""Columns: which cells there are, what they are called, and which declarations are refused."""

from __future__ import annotations

import json
import math
from datetime import date, timedelta

import pytest

from bursar.core.domain import LARGEST_COLUMN, Attribute, Bins, Categories, Dates, IntegerRange, Period, Stray
from bursar.errors import ConfigError

SEX = Categories(name="sex", values=("F", "M"))
AGE = IntegerRange(name="age", lower=18, upper=20)
PAY = Bins(name="pay", edges=(0.0, 10.0, 25.5))
DAY = Dates(name="day", first=date(2024, 2, 28), last=date(2024, 3, 2), by=Period.DAY)


@pytest.mark.parametrize(
    ("column", "labels"),
    [
        (SEX, ["F", "M", "other", None]),
        (AGE, [18, 19, 20, None]),
        (PAY, ["[0, 10)", "[10, 25.5]", None]),
        (DAY, [date(2024, 2, 28), date(2024, 2, 29), date(2024, 3, 1), date(2024, 3, 2), None]),
        (IntegerRange(name="age", lower=18, upper=19, outside=Stray.OTHER), [18, 19, "other", None]),
        (IntegerRange(name="age", lower=18, upper=19, outside=Stray.OTHER, null=Stray.OTHER), [18, 19, "other"]),
        (IntegerRange(name="age", lower=18, upper=19, null=Stray.OTHER), [18, 19, "other"]),
        (IntegerRange(name="age", lower=7, upper=7, outside=0, null=0), [7]),
        (Categories(name="x", values=(True, False), outside=1, null=0), [True, False]),
    ],
)
def test_declared_cells_come_first_then_other_then_null(column: Attribute, labels: list[object]) -> None:
    assert [column.label(cell) for cell in range(column.size)] == labels
    assert column.size == len(labels)
    assert column.has_null == (None in labels)
    assert (column.other is not None) == ("other" in labels)
    assert 0 <= column.null_cell < column.size
    if column.has_null:
        assert labels[column.null_cell] is None
    elif column.null is Stray.OTHER:
        assert column.null_cell == column.other
    else:
        assert column.null_cell == column.null


def test_only_listed_values_have_no_order() -> None:
    assert [column.ordered for column in (SEX, AGE, PAY, DAY)] == [False, True, True, True]


def test_weeks_begin_on_monday_and_months_on_the_first() -> None:
    weeks = Dates(name="w", first=date(2024, 1, 3), last=date(2024, 1, 15), by=Period.WEEK)
    assert [weeks.start(cell) for cell in range(weeks.declared)] == [date(2024, 1, d) for d in (1, 8, 15)]
    months = Dates(name="m", first=date(2023, 11, 30), last=date(2024, 2, 1), by=Period.MONTH)
    expected = [date(2023, 11, 1), date(2023, 12, 1), date(2024, 1, 1), date(2024, 2, 1)]
    assert [months.start(cell) for cell in range(months.declared)] == expected


@pytest.mark.parametrize("by", Period)
def test_every_day_lies_in_the_period_that_its_number_says(by: Period) -> None:
    column = Dates(name="d", first=date(2023, 12, 20), last=date(2025, 1, 10), by=by)
    for offset in range(380):
        day = date(2023, 12, 20) + timedelta(days=offset)
        cell = column.ordinal(day) - column.ordinal(column.first)
        assert column.start(cell) <= day < column.start(cell + 1)
        if by is Period.WEEK:
            assert column.start(cell).weekday() == 0


def test_the_ends_of_the_calendar_are_dates_like_others() -> None:
    for by in Period:
        column = Dates(name="d", first=date(9990, 1, 1), last=date.max, by=by)
        assert column.start(column.declared - 1) <= date.max
        first = Dates(name="d", first=date.min, last=date(2, 1, 1), by=by)
        assert first.start(0) == date.min
        json.dumps(column.to_json())


def test_the_same_periods_are_the_same_column_for_a_ledger() -> None:
    early = Dates(name="w", first=date(2024, 1, 1), last=date(2024, 1, 20), by=Period.WEEK)
    late = Dates(name="w", first=date(2024, 1, 7), last=date(2024, 1, 15), by=Period.WEEK)
    assert early.to_json() == late.to_json()


def test_edges_are_numbers_however_they_are_written() -> None:
    texts = [json.dumps(Bins(name="x", edges=edges).to_json()) for edges in ((0, 1), (0.0, 1.0), (-0.0, 1.0))]
    assert len(set(texts)) == 1


@pytest.mark.parametrize("column", [SEX, AGE, PAY, DAY], ids=lambda column: column.name)
def test_json_tells_everything_apart(column: Attribute) -> None:
    twins = [
        column,
        type(column)(**{**vars(column), "name": "twin"}),
        type(column)(**{**vars(column), "null": Stray.OTHER}),
        type(column)(**{**vars(column), "null": 0}),
        type(column)(**{**vars(column), "outside": 0}),
    ]
    assert len({json.dumps(twin.to_json(), sort_keys=True) for twin in twins}) == len(twins)


@pytest.mark.parametrize(
    "declare",
    [
        lambda: Categories(name="x", values=()),
        lambda: Categories(name="x", values=("a", "a")),
        lambda: Categories(name="x", values=(1, True)),
        lambda: Categories(name="x", values=("a", 1)),
        lambda: Categories(name="x", values=("a",), outside=Stray.CLIP),
        lambda: Categories(name="x", values=("a",), outside=Stray.CELL),
        lambda: Categories(name="x", values=("a",), outside=1),
        lambda: Categories(name="x", values=("a",), null=-1),
        lambda: IntegerRange(name="x", lower=1, upper=0),
        lambda: IntegerRange(name="x", lower=0, upper=1, null=Stray.CLIP),
        lambda: IntegerRange(name="x", lower=0, upper=1, null=2),
        lambda: IntegerRange(name="x", lower=0, upper=LARGEST_COLUMN),
        lambda: IntegerRange(name="x", lower=0, upper=LARGEST_COLUMN - 1),  # NULL is one cell more
        lambda: Bins(name="x", edges=()),
        lambda: Bins(name="x", edges=(1.0,)),
        lambda: Bins(name="x", edges=(1.0, 1.0)),
        lambda: Bins(name="x", edges=(1.0, 0.0)),
        lambda: Bins(name="x", edges=(0.0, math.nan)),
        lambda: Bins(name="x", edges=(0.0, math.inf)),
        lambda: Bins(name="x", edges=(math.nan,)),
        lambda: Dates(name="x", first=date(2024, 1, 2), last=date(2024, 1, 1), by=Period.DAY),
    ],
)
def test_declarations_that_make_no_sense_are_refused(declare: object) -> None:
    with pytest.raises(ConfigError, match="x"):
        declare()


def test_the_largest_column_is_still_a_column() -> None:
    assert IntegerRange(name="x", lower=0, upper=LARGEST_COLUMN - 2).size == LARGEST_COLUMN
