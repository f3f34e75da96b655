"""PostgreSQL's types, as far as questions and the catalog need them: OIDs, and values as text and as bytes."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal, InvalidOperation

from bursar.core.domain import Attribute, Bins, Categories, Dates, IntegerRange
from bursar.service.wire.protocol import BINARY

Scalar = str | int | float | bool | Decimal | date | datetime | bytes | None
PgValue = Scalar | Sequence["PgValue"]

EPOCH = datetime(2000, 1, 1)
LARGEST_ARRAY = 10_000
LONGEST_NUMBER = 1_000
"""Most digits of a number that a client sends."""


class BadValue(Exception):
    """A value that its type cannot have."""


@dataclass(frozen=True)
class PgType:
    """One type: its OIDs, its names, its size in bytes (-1 where it varies), and what kind of value it holds."""

    oid: int
    name: str  # as pg_type has it
    size: int
    array: int  # the OID of its array type
    sql_name: str  # as format_type and information_schema call it
    category: str  # of pg_type


BOOL = PgType(16, "bool", 1, 1000, "boolean", "B")
BYTEA = PgType(17, "bytea", -1, 1001, "bytea", "U")
CHAR = PgType(18, "char", 1, 1002, '"char"', "Z")
NAME = PgType(19, "name", 64, 1003, "name", "S")
INT8 = PgType(20, "int8", 8, 1016, "bigint", "N")
INT2 = PgType(21, "int2", 2, 1005, "smallint", "N")
INT4 = PgType(23, "int4", 4, 1007, "integer", "N")
TEXT = PgType(25, "text", -1, 1009, "text", "S")
OID = PgType(26, "oid", 4, 1028, "oid", "N")
JSON = PgType(114, "json", -1, 199, "json", "U")
FLOAT4 = PgType(700, "float4", 4, 1021, "real", "N")
FLOAT8 = PgType(701, "float8", 8, 1022, "double precision", "N")
UNKNOWN = PgType(705, "unknown", -2, 0, "unknown", "X")
BPCHAR = PgType(1042, "bpchar", -1, 1014, "character", "S")
VARCHAR = PgType(1043, "varchar", -1, 1015, "character varying", "S")
DATE = PgType(1082, "date", 4, 1182, "date", "D")
TIMESTAMP = PgType(1114, "timestamp", 8, 1115, "timestamp without time zone", "D")
TIMESTAMPTZ = PgType(1184, "timestamptz", 8, 1185, "timestamp with time zone", "D")
NUMERIC = PgType(1700, "numeric", -1, 1231, "numeric", "N")
REGCLASS = PgType(2205, "regclass", 4, 2210, "regclass", "N")
REGTYPE = PgType(2206, "regtype", 4, 2211, "regtype", "N")

TYPES = (
    *(BOOL, BYTEA, CHAR, NAME, INT8, INT2, INT4, TEXT, OID, JSON, FLOAT4, FLOAT8, UNKNOWN, BPCHAR, VARCHAR, DATE),
    *(TIMESTAMP, TIMESTAMPTZ, NUMERIC, REGCLASS, REGTYPE),
)
BY_OID = {pg.oid: pg for pg in TYPES}
ELEMENT = {pg.array: pg for pg in TYPES if pg.array}
"""The type of the elements of an array type."""

BY_NAME = {name: pg for pg in TYPES for name in (pg.name, pg.sql_name)} | {
    "int": INT4,
    "double": FLOAT8,
    "decimal": NUMERIC,
    "string": TEXT,
    "float": FLOAT8,
}


def type_of(attribute: Attribute) -> PgType:
    """The type that a column is declared with: what it can be compared with."""
    match attribute:
        case IntegerRange():
            return INT4 if attribute.lower >= -(2**31) and attribute.upper < 2**31 else INT8
        case Bins():
            return NUMERIC
        case Dates():
            return DATE
        case Categories(values=(bool(), *_)):
            return BOOL
        case Categories(values=(int(), *_)):
            return INT8
    return TEXT


def size_of(oid: int) -> int:
    """The size of a type in bytes, -1 where it varies."""
    return BY_OID[oid].size if oid in BY_OID else -1


# -- values to bytes -------------------------------------------------------------------------------------------------


def encode(value: PgValue, oid: int, format: int) -> bytes | None:
    """A value of a result in the format that the client asked for; None for NULL."""
    if value is None:
        return None
    return _binary(value, oid) if format == BINARY else _text(value, oid).encode("utf-8", "replace")


def _text(value: PgValue, oid: int) -> str:
    match value:
        case bool():
            return "t" if value else "f"
        case float():
            return _float_text(value)
        case datetime():
            return value.isoformat(" ") + ("+00" if oid == TIMESTAMPTZ.oid and value.tzinfo is None else "")
        case date():
            return f"{value.isoformat()} 00:00:00" if oid in (TIMESTAMP.oid, TIMESTAMPTZ.oid) else value.isoformat()
        case bytes():
            return "\\x" + value.hex()
        case list() | tuple():
            return _array_text(value, ELEMENT[oid].oid if oid in ELEMENT else TEXT.oid)
    return str(value)


def _float_text(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def _array_text(values: Sequence[PgValue], element: int) -> str:
    parts = []
    for value in values:
        text = "NULL" if value is None else _text(value, element)
        plain = value is None or (re.fullmatch(r"[^\s{}\",\\]+", text) and text.upper() != "NULL")
        parts.append(text if plain else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"')
    return "{" + ",".join(parts) + "}"


_INTEGERS = {INT2.oid: "!h", INT4.oid: "!i", INT8.oid: "!q", OID.oid: "!I", REGCLASS.oid: "!I", REGTYPE.oid: "!I"}


def _binary(value: PgValue, oid: int) -> bytes:
    try:
        if oid in _INTEGERS and isinstance(value, int | float | Decimal):
            return struct.pack(_INTEGERS[oid], int(value))
        if oid in (FLOAT8.oid, FLOAT4.oid) and isinstance(value, int | float | Decimal):
            return struct.pack("!d" if oid == FLOAT8.oid else "!f", float(value))
    except (struct.error, OverflowError):
        raise BadValue("a number of the result does not fit its type") from None
    if oid == BOOL.oid:
        return b"\1" if value else b"\0"
    if oid == NUMERIC.oid and isinstance(value, int | float | Decimal):
        return _numeric(Decimal(str(value)))
    if oid in ELEMENT and isinstance(value, list | tuple):
        return _array(value, ELEMENT[oid])
    if isinstance(value, date) and oid == DATE.oid:
        return struct.pack("!i", (value - EPOCH.date()).days)
    if isinstance(value, date) and oid in (TIMESTAMP.oid, TIMESTAMPTZ.oid):
        moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
        return struct.pack("!q", (moment.replace(tzinfo=None) - EPOCH) // timedelta(microseconds=1))
    if oid == CHAR.oid:
        return str(value).encode()[:1] or b"\0"
    if isinstance(value, bytes):
        return value
    return _text(value, oid).encode("utf-8", "replace")


def _array(values: Sequence[PgValue], element: PgType) -> bytes:
    has_null = any(value is None for value in values)
    if not values:
        return struct.pack("!iii", 0, 0, element.oid)
    parts = [struct.pack("!iiiii", 1, has_null, element.oid, len(values), 1)]
    for value in values:
        body = None if value is None else _binary(value, element.oid)
        parts.append(struct.pack("!i", -1) if body is None else struct.pack("!i", len(body)) + body)
    return b"".join(parts)


def _numeric(value: Decimal) -> bytes:
    """Groups of four decimal digits, the first one for ten thousand to the power of `weight`."""
    if value.is_nan():
        return struct.pack("!hhHh", 0, 0, 0xC000, 0)
    if value.is_infinite():
        return struct.pack("!hhHh", 0, 0, 0xD000 if value > 0 else 0xF000, 0)
    sign, _, exponent = value.as_tuple()
    scale = max(0, -int(exponent))
    whole, _, behind = f"{value.copy_abs():f}".partition(".")
    whole = whole.rjust(-(-len(whole) // 4) * 4, "0")
    behind = behind.ljust(-(-len(behind) // 4) * 4, "0")
    digits = [int(text[i : i + 4]) for text in (whole, behind) for i in range(0, len(text), 4)]
    weight = len(whole) // 4 - 1
    while digits and digits[0] == 0:
        digits, weight = digits[1:], weight - 1
    while digits and digits[-1] == 0:
        digits = digits[:-1]
    head = struct.pack("!hhHh", len(digits), weight if digits else 0, 0x4000 if sign else 0, scale)
    return head + struct.pack(f"!{len(digits)}h", *digits)


# -- bytes to values -------------------------------------------------------------------------------------------------


def decode(body: bytes | None, oid: int, format: int) -> PgValue:
    """A parameter's value. What a type of no known OID holds is taken for text."""
    if body is None:
        return None
    try:
        return _from_binary(body, oid) if format == BINARY else _from_text(body.decode(), oid)
    except (UnicodeDecodeError, struct.error, ValueError, OverflowError, InvalidOperation, IndexError):
        name = BY_OID[oid].sql_name if oid in BY_OID else "array" if oid in ELEMENT else "text"
        raise BadValue(f"invalid input for type {name}") from None


_TRUE, _FALSE = {"t", "true", "y", "yes", "on", "1"}, {"f", "false", "n", "no", "off", "0"}


def _from_text(text: str, oid: int) -> PgValue:
    if oid == BOOL.oid:
        word = text.strip().lower()
        if word not in _TRUE | _FALSE:
            raise ValueError
        return word in _TRUE
    if oid in (REGCLASS.oid, REGTYPE.oid):
        return text  # a name
    if oid in _INTEGERS:
        if len(text) > LONGEST_NUMBER:
            raise ValueError
        return int(text)
    if oid in (FLOAT8.oid, FLOAT4.oid):
        return float(text)
    if oid == NUMERIC.oid:
        if len(text) > LONGEST_NUMBER:
            raise ValueError
        return Decimal(text.strip())
    if oid == DATE.oid:
        return day_of(text)
    if oid in (TIMESTAMP.oid, TIMESTAMPTZ.oid):
        return moment_of(text)
    if oid in ELEMENT:
        return [None if item is None else _from_text(item, ELEMENT[oid].oid) for item in array_items(text)]
    return text


_DAY = re.compile(r"\s*(\d{4})-(\d\d)-(\d\d)(?:[ T]00:00(?::00(?:\.0+)?)?)?\s*(?:Z|[+-]\d\d(?::?\d\d)?)?\s*", re.ASCII)
_MOMENT = re.compile(
    r"\s*(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?))?\s*(Z|[+-]\d\d(?::?\d\d)?)?\s*", re.ASCII
)


def day_of(text: str) -> date:
    """The day of a text; an hour, or a time zone behind it, only where it is midnight. JDBC sends `2020-02-01 +00`."""
    match = _DAY.fullmatch(text)
    if match is None:
        raise ValueError
    return date(*map(int, match.groups()))


def moment_of(text: str) -> datetime:
    """A day and time, in UTC where the text names a time zone."""
    match = _MOMENT.fullmatch(text)
    if match is None:
        raise ValueError
    day, hour, zone = match.groups()
    moment = datetime.fromisoformat(f"{day}T{hour or '00:00:00'}")
    if zone in (None, "Z"):
        return moment
    sign, digits = (-1 if zone[0] == "-" else 1), zone[1:].replace(":", "").ljust(4, "0")
    away = timezone(sign * timedelta(hours=int(digits[:2]), minutes=int(digits[2:])))
    return moment.replace(tzinfo=away).astimezone(UTC).replace(tzinfo=None)


def array_items(text: str) -> list[str | None]:
    """The items of an array literal of one dimension, such as {1,2} or {"a b",NULL}."""
    text = text.strip()
    if not (text.startswith("{") and text.endswith("}")):
        raise ValueError
    items: list[str | None] = []
    at, end = 1, len(text) - 1
    while at < end:
        while at < end and text[at].isspace():
            at += 1
        if len(items) >= LARGEST_ARRAY:
            raise ValueError
        if text[at] == '"':
            item, at = "", at + 1
            while text[at] != '"' or at >= end:
                at += text[at] == "\\"
                item, at = item + text[at], at + 1
                if at > end:
                    raise ValueError
            items.append(item)
            at += 1
        else:
            stop = next((i for i in range(at, end) if text[i] in ',{}"'), end)
            word = text[at:stop].strip()
            if not word:
                raise ValueError
            items.append(None if word.upper() == "NULL" else word)
            at = stop
        while at < end and text[at].isspace():
            at += 1
        if at < end and text[at] != ",":
            raise ValueError
        at += 1
        if at == end and text[at - 1] == ",":
            raise ValueError
    return items


def _from_binary(body: bytes, oid: int) -> PgValue:
    if oid in _INTEGERS:
        number: int = struct.unpack(_INTEGERS[oid], body)[0]
        return number
    if oid in (FLOAT8.oid, FLOAT4.oid):
        real: float = struct.unpack("!d" if oid == FLOAT8.oid else "!f", body)[0]
        return real
    if oid == BOOL.oid:
        return body != b"\0"
    if oid == NUMERIC.oid:
        return _from_numeric(body)
    if oid == DATE.oid:
        days: int = struct.unpack("!i", body)[0]
        return EPOCH.date() + timedelta(days=days)
    if oid in (TIMESTAMP.oid, TIMESTAMPTZ.oid):
        microseconds: int = struct.unpack("!q", body)[0]
        return EPOCH + timedelta(microseconds=microseconds)
    if oid in ELEMENT:
        return _from_array(body)
    if oid == BYTEA.oid:
        return body
    return body.decode()


def _from_numeric(body: bytes) -> Decimal:
    count, weight, sign, scale = struct.unpack("!hhHh", body[:8])
    digits = struct.unpack(f"!{max(count, 0)}h", body[8:])
    if sign == 0xC000:
        return Decimal("NaN")
    if sign in (0xD000, 0xF000):
        return Decimal("Infinity" if sign == 0xD000 else "-Infinity")
    if sign not in (0, 0x4000) or not all(0 <= digit < 10_000 for digit in digits) or not 0 <= scale <= LONGEST_NUMBER:
        raise ValueError
    if abs(weight) > LONGEST_NUMBER // 4 or count > LONGEST_NUMBER // 4:
        raise ValueError
    written = "".join(f"{digit:04}" for digit in digits).lstrip("0")
    exponent = 4 * (weight - count + 1) if written else 0
    return Decimal((int(sign == 0x4000), tuple(map(int, written)), exponent))


def _from_array(body: bytes) -> PgValue:
    dimensions, _, element = struct.unpack("!iii", body[:12])
    if dimensions == 0:
        return []
    length, _ = struct.unpack("!ii", body[12:20])
    if dimensions != 1 or not 0 <= length <= LARGEST_ARRAY:
        raise ValueError
    items: list[PgValue] = []
    at = 20
    for _ in range(length):
        size: int = struct.unpack("!i", body[at : at + 4])[0]
        at += 4
        if size < -1 or at + max(size, 0) > len(body):
            raise ValueError
        items.append(None if size == -1 else _from_binary(body[at : at + size], element))
        at += max(size, 0)
    if at != len(body):
        raise ValueError
    return items
