"""Values as text and as bytes: what is written is read again, and numbers are PostgreSQL's own."""

from __future__ import annotations

import math
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bursar.service.wire import types
from bursar.service.wire.protocol import BINARY, TEXT
from bursar.service.wire.types import BadValue, PgType, PgValue, decode, encode

DAYS = st.dates(date(1, 1, 1), date(9999, 12, 31))
VALUES: dict[PgType, st.SearchStrategy[PgValue]] = {
    types.BOOL: st.booleans(),
    types.INT2: st.integers(-(2**15), 2**15 - 1),
    types.INT4: st.integers(-(2**31), 2**31 - 1),
    types.INT8: st.integers(-(2**63), 2**63 - 1),
    types.FLOAT8: st.floats(allow_nan=False),
    types.NUMERIC: st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**30), max_value=10**30, places=6),
    types.DATE: DAYS,
    types.TIMESTAMP: st.datetimes(datetime(1, 1, 1), datetime(9999, 1, 1)),
    types.TEXT: st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
}


@pytest.mark.parametrize("kind", VALUES, ids=lambda kind: kind.name)
@given(data=st.data())
def test_a_value_is_read_as_it_was_written(kind: PgType, data: st.DataObject) -> None:
    value = data.draw(VALUES[kind])
    values = data.draw(st.lists(st.one_of(st.none(), VALUES[kind]), max_size=4))
    for form in (TEXT, BINARY):
        assert decode(encode(value, kind.oid, form), kind.oid, form) == value
        assert decode(encode(values, kind.array, form), kind.array, form) == values


@pytest.mark.parametrize(
    ("value", "kind", "body"),
    [
        (Decimal("12345.678"), types.NUMERIC, "000300010000000300010929" + "1a7c"),
        (Decimal("-0.0001"), types.NUMERIC, "0001ffff400000040001"),
        (Decimal(0), types.NUMERIC, "0000000000000000"),
        (date(2000, 1, 2), types.DATE, "00000001"),
        (True, types.BOOL, "01"),
        (1.5, types.FLOAT8, "3ff8000000000000"),
        (-1, types.INT4, "ffffffff"),
        ("", types.CHAR, "00"),
    ],
)
def test_bytes_are_those_of_postgresql(value: PgValue, kind: PgType, body: str) -> None:
    encoded = encode(value, kind.oid, BINARY)
    assert encoded is not None
    assert encoded.hex() == body


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("2020-02-01 +00", types.DATE, date(2020, 2, 1)),
        ("2020-02-01 00:00:00+00", types.DATE, date(2020, 2, 1)),
        ("2020-02-01T10:30:00Z", types.TIMESTAMPTZ, datetime(2020, 2, 1, 10, 30)),
        ("2020-02-01 10:30:00+02:00", types.TIMESTAMPTZ, datetime(2020, 2, 1, 8, 30)),
        ("TRUE", types.BOOL, True),
        ("0", types.BOOL, False),
        ("people", types.REGCLASS, "people"),
    ],
)
def test_what_drivers_send_as_text(text: str, kind: PgType, value: PgValue) -> None:
    assert decode(text.encode(), kind.oid, TEXT) == value


@given(
    body=st.binary(max_size=60),
    kind=st.sampled_from(types.TYPES),
    form=st.sampled_from([TEXT, BINARY]),
    array=st.booleans(),
)
def test_any_bytes_are_a_value_or_refused(body: bytes, kind: PgType, form: int, array: bool) -> None:
    with suppress(BadValue):
        decode(body, kind.array if array and kind.array else kind.oid, form)


def test_numbers_that_are_none() -> None:
    for value, text in ((math.nan, b"NaN"), (math.inf, b"Infinity"), (-math.inf, b"-Infinity")):
        assert encode(value, types.FLOAT8.oid, TEXT) == text
    assert encode(5.0, types.FLOAT8.oid, TEXT) == b"5"
    with pytest.raises(BadValue):
        encode(2**40, types.INT4.oid, BINARY)
