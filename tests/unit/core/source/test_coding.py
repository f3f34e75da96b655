"""The row -> cell rule in SQL, value by value and storage type by storage type."""

from __future__ import annotations

from bisect import bisect_right
from datetime import date
from functools import cache
from typing import Any

import duckdb
import pytest

from bursar.core.domain import Attribute, Bins, Categories, Dates, IntegerRange, Period, Stray
from bursar.core.source import coding as coding_module
from bursar.core.source.coding import PLAIN_TYPES, coding
from bursar.core.source.duckdb import SETTINGS
from bursar.errors import ConfigError

AGE = IntegerRange(name="x", lower=10, upper=19)
WEIGHT = Bins(name="x", edges=(0.0, 1.0, 2.5, 10.0))
MONTH = Dates(name="x", first=date(2021, 1, 15), last=date(2021, 3, 2), by=Period.MONTH)
TOWN = Categories(name="x", values=("a", "b", "it's", ""))


def cells(attribute: Attribute, *values: str) -> list[int | None]:
    """The cells of values that are given as SQL, each stored in the type that it has there."""
    return [cell(attribute, value) for value in values]


@cache
def database() -> Any:
    """One for all values: to begin another takes longer than all that is asked of it."""
    connection = duckdb.connect(":memory:", config=SETTINGS)
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def cell(attribute: Attribute, value: str) -> int | None:
    with database().cursor() as connection:
        connection.execute(f"CREATE TEMP TABLE raw AS SELECT {value} AS x")
        storage = connection.execute("DESCRIBE raw").fetchall()[0][1]
        code = coding(attribute, place=7, raw="x", storage=storage)
        if code.keys:
            connection.execute(
                f"CREATE TEMP TABLE keys7 AS SELECT unnest(CAST(? AS {code.key_type}[])) AS key, "
                f"unnest(range({len(code.keys)})) AS cell",
                [list(code.keys)],
            )
        rows = f"(SELECT {code.reading} AS r7, x IS NULL AS n7 FROM raw) AS rows"
        found = connection.execute(f"SELECT CAST({code.cell} AS {code.type}) FROM {rows} {code.join}").fetchall()
    assert len(found) == 1
    return found[0][0]


def test_text_is_compared_character_by_character() -> None:
    assert cells(TOWN, "'a'", "'b'", "'it''s'", "''", "'A'", "'a '", "NULL::VARCHAR") == [0, 1, 2, 3, 4, 4, 5]


def test_text_of_other_types() -> None:
    attribute = Categories(name="x", values=("1", "1.5", "true", "2021-01-02", "[1, 2]"))
    assert cells(attribute, "1", "1.5::DOUBLE", "true", "DATE '2021-01-02'", "[1, 2]", "2") == [0, 1, 2, 3, 4, 5]


def test_a_stored_collation_does_not_make_texts_equal() -> None:
    attribute = Categories(name="x", values=("A", "a"))
    assert cells(attribute, "'a' COLLATE NOCASE", "'A' COLLATE NOCASE", "'á' COLLATE NOACCENT") == [1, 0, 2]


def test_integer_values_are_exact_and_take_no_fraction() -> None:
    attribute = Categories(name="x", values=(3, -1, 2**53 + 1, 2**100))
    assert cells(attribute, "3", "'3'", "' 3 '", "'3.0'", "3.0::DOUBLE", "'3e0'", "3::UTINYINT", "3.00") == [0] * 8
    assert cells(attribute, "-1", "9007199254740993", "'9007199254740993'", f"'{2**100}'") == [1, 2, 2, 3]
    assert (
        cells(attribute, "3.5", "'3.5'", "9007199254740992", "'0x3'", "'three'", "'nan'", "'inf'", "1e300") == [4] * 8
    )
    assert cell(attribute, "NULL::INTEGER") == 5


def test_boolean_values() -> None:
    attribute = Categories(name="x", values=(False, True))
    assert cells(attribute, "true", "'TRUE'", "'t'", "1", "'1'", "1.0::DOUBLE", "'1.00'") == [1] * 7
    assert cells(attribute, "false", "'False'", "'F'", "0", "'0'", "-0.0::DOUBLE") == [0] * 6
    assert cells(attribute, "'yes'", "2", "''", "'nan'", "NULL::BOOLEAN") == [2, 2, 2, 2, 3]


def test_ranges_round_down_and_clip() -> None:
    assert cells(AGE, "10", "19", "'12'", "12.9::DOUBLE", "'12.9'", "12.9", "19.99") == [0, 9, 2, 2, 2, 2, 9]
    assert (
        cells(
            AGE, "9", "9.99", "-1e300::DOUBLE", "'-inf'", f"'-{2**200}'", "(-170141183460469231731687303715884105728)"
        )
        == [0] * 6
    )
    assert (
        cells(AGE, "20", "'1e400'", "'inf'", "18446744073709551615::UBIGINT", "true::INTEGER + 2000000000") == [9] * 5
    )


def test_unreadable_values_follow_null_where_values_are_clipped() -> None:
    unreadable = [
        "'nan'::DOUBLE",
        "'ten'",
        "''",
        "'0x10'",
        "DATE '2021-01-01'",
        "[12]",
        "{'a': 12}",
        "'12'::BLOB || 'x'::BLOB",
    ]
    assert cells(AGE, "NULL::INTEGER", *unreadable) == [10] * 9
    to_other = IntegerRange(name="x", lower=10, upper=19, null=Stray.OTHER)
    assert cells(to_other, "NULL::INTEGER", *unreadable) == [10] * 9
    to_cell = IntegerRange(name="x", lower=10, upper=19, null=4)
    assert cells(to_cell, "NULL::INTEGER", *unreadable, "99") == [4] * 9 + [9]


def test_unreadable_values_are_outside_where_there_is_a_cell_for_it() -> None:
    other = IntegerRange(name="x", lower=10, upper=19, outside=Stray.OTHER)
    assert cells(other, "9", "20", "'ten'", "'nan'::DOUBLE", "NULL::INTEGER", "15") == [10, 10, 10, 10, 11, 5]
    fixed = IntegerRange(name="x", lower=10, upper=19, outside=3, null=4)
    assert cells(fixed, "9", "20", "'ten'", "'nan'::DOUBLE", "NULL::INTEGER", "15") == [3, 3, 3, 3, 4, 5]


def test_bins_are_half_open_and_the_last_is_closed() -> None:
    assert cells(WEIGHT, "0", "0.99", "1", "'2.4999'", "2.5::DOUBLE", "9.99", "10", "1e-300::DOUBLE") == [
        0,
        0,
        1,
        1,
        2,
        2,
        2,
        0,
    ]
    assert cells(WEIGHT, "-0.0::DOUBLE", "-0.001", "'-inf'", "10.001", "'inf'", "'heavy'", "'nan'::FLOAT") == [
        0,
        0,
        0,
        2,
        2,
        3,
        3,
    ]
    other = Bins(name="x", edges=(0.1, 0.2, 0.3), outside=Stray.OTHER)
    assert cells(other, "0.1::DOUBLE", "0.2::DOUBLE", "0.3::DOUBLE", "0.30000000000000004::DOUBLE", "0.09") == [
        0,
        1,
        1,
        2,
        2,
    ]


@pytest.mark.parametrize("most", [0, 2, 128])
def test_bins_are_the_same_by_comparisons_and_by_a_sort(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coding_module, "MOST_HALVED", most)
    attribute = Bins(name="x", edges=(-1.5, -0.5, 0.0, 0.1, 2.0, 7.0, 1e300), outside=Stray.OTHER)
    values = [-2.0, -1.5, -0.6, -0.5, -0.0, 0.0, 0.1, 0.30000000000000004, 1.9999, 2.0, 7.0, 1e300, 1.1e300]
    inside = [bisect_right(attribute.edges[:-1], value) - 1 for value in values[1:-1]]
    assert cells(attribute, *(f"{value!r}::DOUBLE" for value in values)) == [6, *inside, 6]
    assert cells(attribute, "'NaN'::DOUBLE", "'inf'::DOUBLE", "'-inf'::DOUBLE", "'x'", "NULL::DOUBLE") == [
        6,
        6,
        6,
        6,
        7,
    ]


def test_dates_by_month() -> None:
    inside = [
        "DATE '2021-01-01'",
        "DATE '2021-02-28'",
        "'2021-03-31'",
        "TIMESTAMP '2021-03-31 23:59:59'",
        "'2021-01-31T10:00:00'",
    ]
    assert cells(MONTH, *inside) == [0, 1, 2, 2, 0]
    assert cells(MONTH, "DATE '2020-12-31'", "'-infinity'::DATE", "'0044-03-15 (BC)'", "DATE '0001-01-01'") == [0] * 4
    assert cells(MONTH, "DATE '2021-04-01'", "'infinity'::DATE", "'5000000-01-01'", "'infinity'::TIMESTAMP") == [2] * 4
    assert cells(MONTH, "'2021-02-30'", "'soon'", "20210115", "3.5::DOUBLE", "TIME '12:00:00'", "NULL::DATE") == [3] * 6


def test_dates_by_week_begin_on_monday() -> None:
    week = Dates(name="x", first=date(2021, 1, 6), last=date(2021, 1, 20), by=Period.WEEK, outside=Stray.OTHER)
    days = ["2021-01-03", "2021-01-04", "2021-01-10", "2021-01-11", "2021-01-24", "2021-01-25"]
    assert cells(week, *(f"DATE '{day}'" for day in days)) == [3, 0, 0, 1, 2, 3]


def test_dates_by_day_and_zones_in_utc() -> None:
    day = Dates(name="x", first=date(2021, 1, 1), last=date(2021, 1, 31), by=Period.DAY, outside=Stray.OTHER)
    assert cells(day, "DATE '2021-01-01'", "DATE '2021-01-31'", "DATE '2021-02-01'", "DATE '2020-12-31'") == [
        0,
        30,
        31,
        31,
    ]
    assert cells(day, "TIMESTAMPTZ '2021-01-01 22:00:00-05'", "'2021-01-01 22:00:00-05'") == [1, 0]


def test_dates_at_both_ends_of_the_calendar() -> None:
    ages = Dates(name="x", first=date(1, 1, 1), last=date(9999, 12, 31), by=Period.MONTH, outside=Stray.OTHER)
    assert cells(ages, "'0001-01-31'", "'9999-12-31'", "'10000-01-01'", "'0001-12-31 (BC)'") == [
        0,
        119987,
        119988,
        119988,
    ]
    weeks = Dates(name="x", first=date(1, 1, 1), last=date(9999, 12, 31), by=Period.WEEK)
    assert cells(weeks, "'0001-01-07'", "'0001-01-08'", "'9999-12-31'") == [0, 1, weeks.declared - 1]


# BIT, BIGNUM and the like are read through their text, since DuckDB's own casts of them misread or fail.
ODD = [
    "'101'::BIT",
    "'12'::BIGNUM",
    "uuid()",
    "INTERVAL 1 DAY",
    "TIME '12:00:00'",
    "[1]",
    "[1.5]",
    "{'a': 1}",
    "MAP {'a': 1}",
]
ODD += [
    "union_value(k := 1)",
    "[1, 2]::INTEGER[2]",
    "'{\"a\": 1}'::JSON",
    "'a'::ENUM('a')",
    "'ab'::BLOB",
    "NULL",
    "12::VARIANT",
]
ODD += [
    "340282366920938463463374607431768211455::UHUGEINT",
    "TIMESTAMP_NS '2021-01-01 00:00:00.1'",
    "'POINT (1 1)'::GEOMETRY",
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "attribute", [TOWN, AGE, WEIGHT, MONTH, Categories(name="x", values=(1, 2)), Categories(name="x", values=(True,))]
)
@pytest.mark.parametrize("value", ODD)
def test_every_storage_type_gives_a_cell(attribute: Attribute, value: str) -> None:
    found = cell(attribute, value)
    assert found is not None
    assert 0 <= found < attribute.size


def test_odd_types_are_read_through_their_text() -> None:
    assert cells(AGE, "'12'::BIGNUM", "'12'::ENUM('12')", "340282366920938463463374607431768211455::UHUGEINT") == [
        2,
        2,
        9,
    ]


@pytest.mark.parametrize(
    ("size", "type"), [(255, "UTINYINT"), (256, "USMALLINT"), (2**16 - 1, "USMALLINT"), (2**16, "UINTEGER")]
)
def test_cells_use_the_smallest_type(size: int, type: str) -> None:
    attribute = IntegerRange(name="x", lower=1, upper=size)  # and one cell for NULL
    assert coding(attribute, place=0, raw="x", storage="BIGINT").type == type
    assert cell(attribute, "NULL::INTEGER") == size


def test_bounds_that_floats_cannot_tell_apart_are_refused() -> None:
    with pytest.raises(ConfigError, match="2\\^53"):
        coding(IntegerRange(name="x", lower=2**53, upper=2**53 + 1), place=0, raw="x", storage="BIGINT")
    nearly = IntegerRange(name="x", lower=2**53 - 3, upper=2**53 - 1, outside=Stray.OTHER)
    assert cells(nearly, str(2**53 - 1), str(2**53), str(2**53 + 1), str(2**53 - 4)) == [2, 3, 3, 3]


def test_a_kind_of_column_without_a_rule_is_refused() -> None:
    class Strange(IntegerRange):
        pass

    class Stranger(Attribute):
        declared = 1  # type: ignore[assignment]

        def declared_label(self, cell: int) -> Any: ...

        def facts(self) -> dict[str, Any]: ...  # type: ignore[empty-body]

    assert coding(Strange(name="x", lower=0, upper=1), place=0, raw="x", storage="BIGINT").type == "UTINYINT"
    with pytest.raises(ConfigError, match="no rule"):
        coding(Stranger(name="x", outside=Stray.OTHER), place=0, raw="x", storage="BIGINT")


def test_plain_types_are_types() -> None:
    with duckdb.connect() as connection:
        for name in PLAIN_TYPES:
            assert connection.execute(f"SELECT typeof(CAST(NULL AS {name}))").fetchone()[0].split("(")[0] == name
