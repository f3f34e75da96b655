"""Values that databases disagree about, and the row -> cell rule for servers (coding 2) written out in Python."""

from __future__ import annotations

import hashlib
import math
import string
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

from bursar.core.domain import Attribute, Bins, Categories, Dates, IntegerRange, Period, Stray


class EndlessDay(str):
    """An infinite day of a DATE column, as databases spell it; the same letters in a column of texts are no day."""


# --- the rule --------------------------------------------------------------------------------------------------


def _digits(text: str, most: int) -> bool:
    return len(text) <= most and all(letter in string.digits for letter in text)


def number_in(text: str) -> float | None:
    """A decimal number of at most 50 digits before and behind its point, times a power of ten below 250."""
    text = text.strip(" ")
    word = text.lower().removeprefix("+")
    if word in ("inf", "infinity", "-inf", "-infinity") and text.isascii():
        return -math.inf if word[0] == "-" else math.inf
    mantissa, mark, exponent = text.replace("E", "e").partition("e")
    whole, _point, fraction = mantissa.removeprefix("-" if mantissa.startswith("-") else "+").partition(".")
    if not _digits(whole, 50) or not _digits(fraction, 50) or not whole + fraction:
        return None
    power = exponent.removeprefix("-" if exponent.startswith("-") else "+")
    if mark and (not power or not _digits(power, 12) or int(power) >= 250):
        return None
    return float(text)


def number(value: object) -> float | None:
    if isinstance(value, str):
        return None if isinstance(value, EndlessDay) else number_in(value)
    if isinstance(value, Decimal) and value and not value.is_nan():
        nearest = min(max(abs(value), Decimal("1e-300")), Decimal("1e300"))
        return math.copysign(nearest, value)
    if not isinstance(value, int | float | Decimal):
        return None
    return None if math.isnan(value) else float(value)


def whole_number(value: object) -> int | None:
    if isinstance(value, str):
        whole, _, fraction = value.strip(" ").partition(".")
        sign = whole[:1] if whole[:1] in ("+", "-") else ""
        plain = bool(whole[len(sign) :]) and _digits(whole[len(sign) :], 37)
        return int(whole) if plain and len(fraction) <= 20 and set(fraction) <= {"0"} else None
    if isinstance(value, Decimal):
        return int(value) if value.is_finite() and abs(value) < 10**37 and value == int(value) else None
    if isinstance(value, float):
        return int(value) if abs(value) < 2**53 and value == int(value) else None
    return int(value) if isinstance(value, int) else None


def truth(value: object) -> bool | None:
    word = value.strip(" ") if isinstance(value, str) else ""
    if word.isascii() and word.lower() in ("true", "t", "false", "f"):
        return word[0] in "tT"
    return {1.0: True, 0.0: False}.get(number(value))  # type: ignore[arg-type]


def day(value: object) -> date | None:
    if isinstance(value, datetime):
        return (value.astimezone(UTC) if value.tzinfo else value).date()
    if isinstance(value, date):
        return value
    if not isinstance(value, str) or len(value) < 10:
        return None
    front, time = value[:10], value[10:]
    if not (_digits(front[:4] + front[5:7] + front[8:], 8) and front[4] == front[7] == "-"):
        return None
    if time and not (time[0] in " T" and _is_time(time[1:])):
        return None
    try:
        return date(int(front[:4]), int(front[5:7]), int(front[8:]))
    except ValueError:
        return None


def _is_time(text: str) -> bool:
    clock, point, fraction = text.partition(".")
    parts = clock.split(":")
    if len(parts) not in (2, 3) or any(len(part) != 2 or not _digits(part, 2) for part in parts):
        return False
    if point and (len(parts) != 3 or not fraction or not _digits(fraction, 9)):
        return False
    return int(parts[0]) < 24 and all(int(part) < 60 for part in parts[1:])


def place(attribute: Attribute, value: object) -> float | None:
    """Where a value lies among the declared ones; None for an unreadable one."""
    if isinstance(attribute, Categories):
        read = {str: lambda v: v, int: whole_number, bool: truth}[type(attribute.values[0])](value)
        return None if read is None or read not in attribute.values else attribute.values.index(read)
    if isinstance(attribute, Dates):
        if isinstance(value, EndlessDay):
            return -math.inf if value.startswith("-") else math.inf
        found = day(value)
        return None if found is None else attribute.ordinal(found) - attribute.ordinal(attribute.first)
    read = number(value)
    return None if read is None else position(attribute, read)


def position(attribute: Attribute, read: float) -> float:
    """Where a number lies in a range or among bins: below 0 or from `declared` on where it is outside."""
    if isinstance(attribute, IntegerRange):
        return read if math.isinf(read) else math.floor(read) - attribute.lower
    assert isinstance(attribute, Bins)
    if read < attribute.edges[0]:
        return -1
    if read > attribute.edges[-1]:
        return attribute.declared
    return min(sum(edge <= read for edge in attribute.edges) - 1, attribute.declared - 1)


def cell(attribute: Attribute, value: object) -> int:
    if value is None:
        return attribute.null_cell
    found = place(attribute, value)
    if found is not None and 0 <= found < attribute.declared:
        return int(found)
    if attribute.outside is Stray.CLIP:
        return attribute.null_cell if found is None else 0 if found < 0 else attribute.declared - 1
    outside = attribute.other if attribute.outside is Stray.OTHER else attribute.outside
    assert isinstance(outside, int)
    return outside


def bounded(
    key: bytes,
    rows: Sequence[tuple[int, ...]],
    units: Sequence[str | None],
    k: int,
    sizes: Sequence[int],
    first: int | None,
) -> Counter[tuple[int, ...]]:
    """The rows that are kept: per unit the first k by partition, then by a keyed hash of its mixed-radix number."""
    secret = hashlib.blake2b(b"choice", key=key, digest_size=32).hexdigest()
    order = sorted(range(len(sizes)), key=lambda column: column != first)
    kept: Counter[tuple[int, ...]] = Counter()
    for unit in {unit for unit in units if unit is not None}:
        ranked = []
        for row, times in Counter(row for row, u in zip(rows, units, strict=True) if u == unit).items():
            number = 0
            for column in order:
                number = number * sizes[column] + row[column]
            for copy in range(1, times + 1):
                message = f"{secret}/{len(unit)}/{unit}/{number}/{copy}"
                ranked.append((0 if first is None else row[first], hashlib.sha256(message.encode()).hexdigest(), row))
        kept.update(row for _, _, row in sorted(ranked)[:k])
    return kept


# --- the values ------------------------------------------------------------------------------------------------

ENDLESS = [EndlessDay("infinity"), EndlessDay("-infinity")]

TEXTS = [
    *("", " ", "a", "A", "a ", " a", "ä", "a\u0308", "ß", "ss", "🦆", "🦆🦆", "é", "İ", "i", "ſ", "K", "\u202e"),
    *(
        "%",
        "_",
        "\\",
        "\\z",
        "'",
        '"',
        "''",
        "$$",
        "{}",
        "null",
        "NULL",
        "a\nb",
        "\n",
        "\r\n",
        "--",
        "/*",
        "; DROP TABLE t",
    ),
    *(
        "0",
        "1",
        "-1",
        "+1",
        "5",
        "00012",
        "12",
        "12.0",
        "12.",
        "12.5",
        "1.0",
        "1.00",
        "0.0",
        "-0",
        "-0.0",
        " 7 ",
        "\t7",
        "7\n",
    ),
    *(
        "5d",
        "5abc",
        "5\n",
        "5\r",
        "٥",
        "५",
        "９",
        "1_000",
        "1,000",
        "0x10",
        "0b1",
        "1e3",
        "1E+2",
        "1e-2",
        "3.7",
        "-0.5",
    ),
    *(".5", "5.", "-.5", ".", "+", "-", "+-3", "--3", "1e", "e5", "1e+", "1.5.2", "1 2", "12.0000000000000000000000"),
    *("9" * 36, "9" * 37, "9" * 38, "9" * 50, "9" * 51, "-" + "9" * 50, "0." + "1" * 50, "0." + "1" * 51),
    *("1e249", "1e250", "-1e249", "1e-249", "1e-250", "1e300", "1e400", "-1e400", "1e-400", "0e999", "1e0000000001"),
    *(
        "nan",
        "NaN",
        "inf",
        "+inf",
        "-inf",
        "Infinity",
        "-Infinity",
        "infinit",
        "İnf",
        "9007199254740993",
        "-9007199254740993",
    ),
    *("true", "TRUE", "tRuE", "t", "T", "f", "F", "false", "False", " t ", "yes", "on", "truе"),
    *(
        "2024-02-29",
        "2023-02-29",
        "2024-02-30",
        "1900-02-29",
        "2000-02-29",
        "2024-04-31",
        "2024-13-01",
        "2024-00-10",
        "2024-01-00",
    ),
    *(
        "0000-01-01",
        "0001-01-01",
        "9999-12-31",
        "10000-01-01",
        "24-03-10",
        "2024-3-10",
        "2024/03/10",
        "20240301",
        "2024",
        "0004-02-29",
    ),
    *("today", "now", "epoch", "infinity", "yesterday", " 2024-03-10", "2024-03-10 ", "2024-03-10 x", "2024-03-10T"),
    *(
        "2024-03-10 23:59:59",
        "2024-03-10T23:30:00-08:00",
        "2024-03-10 25:00:00",
        "2024-03-10 23:59:60",
        "2024-03-10T00:00",
    ),
    *(
        "2024-03-10 23:59:59.999999999",
        "2024-03-10 23:59:59.9999999999",
        "2024-03-10T23:30:00Z",
        "2024-03-10\n",
        "2024-03-10 23",
    ),
    *("0001-01-01 (BC)", "2024-03-04", "2024-03-03", "2024-01-01", "2023-12-31", "2024-12-31", "2025-01-01"),
]
INTEGERS = [0, 1, -1, 2, 5, 7, 12, 99, 100, 2**31, -(2**31), 2**53 + 1, 2**63 - 1, -(2**63)]
DECIMALS = [
    *(
        Decimal(text)
        for text in ("0", "1", "12", "12.5", "-0.5", "0.9999999999", "4.9999999999", "-12", "99.0000000001")
    ),
    *(
        Decimal(text)
        for text in ("9999999999999999999999999999.9999999999", "-9999999999999999999999999999", "9007199254740993")
    ),
]
FLOATS = [0.0, -0.0, 1.0, 12.0, 12.5, -0.5, 4.999999999999999, 0.1, 1e22, 1e23, 1e308, -1e308, 5e-324, -5e-324]
FLOATS += [2.0**53, 2.0**53 + 2, 2.0**53 - 1, 99.99999999999999, 100.0]
UNUSUAL_FLOATS = [math.nan, math.inf, -math.inf]
BOOLEANS = [True, False]
DAYS = [date(1000, 1, 1), date(1969, 12, 31), date(2024, 1, 1), date(2024, 2, 29), date(2024, 3, 3), date(2024, 3, 4)]
DAYS += [date(2023, 12, 31), date(2024, 12, 31), date(2025, 1, 1), date(9999, 12, 31)]
LATE = timedelta(hours=23, minutes=59, seconds=59, microseconds=999999)
TIMES = [datetime(day.year, day.month, day.day) + late for day in DAYS for late in (timedelta(0), LATE)]
PACIFIC = timezone(timedelta(hours=-8))
ZONED = [
    datetime(2024, 3, 3, 23, 30, tzinfo=PACIFIC),
    datetime(2024, 1, 1, 1, tzinfo=timezone(timedelta(hours=5, minutes=30))),
]
ZONED += [datetime(2024, 12, 31, 15, 59, 59, tzinfo=PACIFIC), datetime(2024, 12, 31, 16, tzinfo=PACIFIC)]

COLUMNS: dict[str, list[object]] = {
    "words": [*TEXTS],
    "whole": [*INTEGERS],
    "exact": [*DECIMALS],
    "real": [*FLOATS],
    "flag": [*BOOLEANS],
    "day": [*DAYS],
    "time": [*TIMES],
    "zoned": [*ZONED],
}
"""Columns by what they are called; an engine may hold more values than these."""

KINDS: list[Attribute] = [
    Categories(name="texts", values=tuple(text for text in TEXTS if text != "a\u0308")[::2]),
    Categories(
        name="integers", values=(12, 0, -1, 9007199254740993, -9007199254740993, 10**36, 7, 2**53 - 1), outside=2
    ),
    Categories(name="booleans", values=(True, False), null=1),
    Categories(name="truths", values=(True,), null=Stray.OTHER),
    IntegerRange(name="clipped", lower=-1, upper=99),
    IntegerRange(name="other", lower=1, upper=12, outside=Stray.OTHER),
    IntegerRange(name="far", lower=2**53 - 400, upper=2**53 - 1, outside=Stray.OTHER, null=Stray.OTHER),
    Bins(name="bins", edges=(-1e40, -0.5, 0.0, 0.1, 4.999999999999999, 5.0, 12.5, 1e22, 1e23, 1e290)),
    Bins(name="few", edges=(0.0, 1e-290, 1.0), outside=Stray.OTHER),
    Dates(name="days", first=date(2024, 1, 1), last=date(2024, 12, 31), by=Period.DAY),
    Dates(name="weeks", first=date(2024, 1, 3), last=date(2024, 12, 31), by=Period.WEEK, outside=Stray.OTHER),
    Dates(name="months", first=date(2023, 12, 1), last=date(2024, 12, 31), by=Period.MONTH, outside=0),
    Dates(name="early", first=date(1, 1, 1), last=date(1, 2, 1), by=Period.DAY, outside=Stray.OTHER),
]


def fits(column: str, attribute: Attribute) -> bool:
    """Whether a source allows it: listed texts need a column of texts."""
    texts = isinstance(attribute, Categories) and isinstance(attribute.values[0], str)
    return not texts or column == "words"
