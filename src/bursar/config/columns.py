"""The [columns.*] sections: each declares one column with a finite public domain."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

from bursar.compile import Level
from bursar.compile.values import Decimals, Represented, known_by_bin
from bursar.config.section import HOMES, KEYS, KINDS, LARGEST_INTEGER, Section, check_name, nearest, shown
from bursar.core.domain import LARGEST_COLUMN, Attribute, Bins, Categories, Dates, Domain, IntegerRange, Period, Stray
from bursar.core.extensions.open_keys import OpenText

LARGEST_CAPACITY = 10_000  # texts that an open column can have cells for
LARGEST_BOUND = 2**53 - 1  # whole numbers that a 64-bit float holds exactly
LAST_YEAR = 9998  # the period after the last one must still be a date

EXAMPLES = {
    "values": 'values = ["F", "M"]',
    "lower": "lower = 0\nupper = 99",
    "upper": "lower = 0\nupper = 99",
    "step": "lower = 0.0\nupper = 9.9\nstep = 0.1",
    "edges": "edges = [0, 10000, 20000], or edges = { from = 0, to = 20000, step = 10000 }",
    "first": 'first = 2020-01-01\nlast = 2023-12-31\nby = "month"',
    "last": 'first = 2020-01-01\nlast = 2023-12-31\nby = "month"',
    "by": 'by = "month"',
    "domain": 'domain = "open"\ncapacity = 200',
    "capacity": 'domain = "open"\ncapacity = 200',
}


def column(section: Section) -> Attribute:
    """The column that one section declares: listed values, whole numbers, decimals, numbers in bins, or dates."""
    name = str(section.place[-1])
    with section.located():
        check_name(name, "the name of a column")
    section.only(KEYS["columns.*"], HOMES)
    kinds = [kind for kind in KINDS if any(key in section for key in kind)]
    if not kinds:
        hint = "values = [...], or lower and upper, or edges = [...], or first, last and by, or domain and capacity"
        section.refuse(reason=f"{section.label()} does not say which values there can be", hint=hint)
    if len(kinds) > 1:
        first, second = (next(key for key in kind if key in section) for kind in kinds[:2])
        reason = f"{section.label()} has {first} and {second}, which belong to different kinds of column"
        section.refuse(second, reason=reason, hint=f"keep one of the two; for {first}: {EXAMPLES[first]}")
    read: Callable[[Section, str], Attribute] = {
        "values": _categories,
        "lower": _decimals if "step" in section else _integers,
        "edges": _bins,
        "first": _dates,
        "domain": _open,
    }[kinds[0][0]]
    with section.located():
        attribute = read(section, name)
        if "representatives" in section:
            attribute = _represented(section, attribute)
    return _with_strays(section, attribute)


def _categories(section: Section, name: str) -> Categories:
    values = section.items("values", EXAMPLES["values"])
    if not values:
        section.refuse("values", reason=f"{section.label('values')} is empty", hint=EXAMPLES["values"])
    declared: dict[str | int, None] = {}
    for place, value in enumerate(values):
        if isinstance(value, float | date):
            hint = f"a column of dates: {EXAMPLES['first']}" if isinstance(value, date) else EXAMPLES["edges"]
            section.refuse(
                "values", place, reason=f"{section.label('values', place)} cannot be {shown(value)}", hint=hint
            )
        if not isinstance(value, str | int) or type(value) is not type(values[0]):
            reason = f"{section.label('values', place)} is {shown(value)}; values are all text, or all whole numbers, "
            section.refuse("values", place, reason=reason + "or all true and false", hint=EXAMPLES["values"])
        if isinstance(value, int) and abs(value) > LARGEST_INTEGER:
            section.refuse("values", place, reason=f"{section.label('values', place)} is {shown(value)}")
        if value in declared:
            section.refuse("values", place, reason=f"{section.label('values', place)} repeats {shown(value)}")
        declared[value] = None
    return Categories(name=name, values=tuple(declared))


def _integers(section: Section, name: str) -> IntegerRange:
    lower, upper = (
        section.integer(key, EXAMPLES[key], least=-LARGEST_BOUND, most=LARGEST_BOUND) for key in ("lower", "upper")
    )
    if lower > upper:
        section.refuse("upper", reason=f"{section.label('upper')} must be at least lower, which is {lower}")
    return IntegerRange(name=name, lower=lower, upper=upper)


def _decimals(section: Section, name: str) -> Decimals:
    """Numbers that are rounded to the nearest step: each is the middle of a bin."""
    lower, upper, step = _fractions(section, ("lower", "upper", "step"), EXAMPLES["step"])
    if step <= 0:
        section.refuse("step", reason=f"{section.label('step')} must lie above 0", hint=EXAMPLES["step"])
    if lower > upper:
        section.refuse("upper", reason=f"{section.label('upper')} must be at least lower, which is {float(lower):g}")
    edges = _evenly(section, lower - step / 2, upper + step / 2, step, EXAMPLES["step"])
    return Decimals(name=name, edges=edges, lower=_decimal(lower), step=_decimal(step))


def _decimal(number: Fraction) -> Decimal:
    """A number of the file, which has finitely many decimals."""
    return Decimal(number.numerator) / Decimal(number.denominator)


def _bins(section: Section, name: str) -> Bins:
    hint = EXAMPLES["edges"]
    if isinstance(section.required("edges", hint), dict):
        return Bins(name=name, edges=_steps(section.section("edges")))
    items = section.items("edges", hint)
    edges = tuple(section.number("edges", place, value=item, hint=hint) for place, item in enumerate(items))
    if len(edges) < 2:
        section.refuse("edges", reason=f"{section.label('edges')} needs at least two numbers", hint=hint)
    for place in range(1, len(edges)):
        if not edges[place - 1] < edges[place]:
            reason = f"{section.label('edges', place)} must be larger than the edge before it"
            section.refuse("edges", place, reason=reason, hint=hint)
    return Bins(name=name, edges=edges)


def _open(section: Section, name: str) -> OpenText:
    hint = EXAMPLES["domain"]
    section.required("domain", hint)
    section.word("domain", ("open",), hint)
    return OpenText(name=name, capacity=section.integer("capacity", hint, least=1, most=LARGEST_CAPACITY))


def _represented(section: Section, attribute: Attribute) -> Represented:
    """The bins with the number that the values of each count as in sums and averages."""
    key, hint = "representatives", "edges = [0, 10, 100]\nrepresentatives = [4, 35]"
    if not known_by_bin(attribute):
        reason = f"{section.label(key)} is for numbers in bins; other values count as themselves"
        section.refuse(key, reason=reason, hint="leave it out")
    numbers = [section.number(key, i, value=item, hint=hint) for i, item in enumerate(section.items(key, hint))]
    if len(numbers) != attribute.declared:
        reason = f"{section.label(key)} needs one number for each of the {attribute.declared} bins, not {len(numbers)}"
        section.refuse(key, reason=reason, hint=hint)
    for place, (number, low, high) in enumerate(zip(numbers, attribute.edges, attribute.edges[1:], strict=False)):
        if not low <= number <= high:
            reason = (
                f"{section.label(key, place)} must lie in its bin, {attribute.label(place)}, and is {shown(number)}"
            )
            section.refuse(key, place, reason=reason, hint=hint)
    return Represented(name=attribute.name, edges=attribute.edges, representatives=tuple(numbers))


def _steps(section: Section) -> tuple[float, ...]:
    """from, from + step, ..., to."""
    hint = "edges = { from = 0, to = 100000, step = 10000 }"
    section.only(("from", "to", "step"))
    low, high, step = _fractions(section, ("from", "to", "step"), hint)
    if step <= 0 or low >= high:
        reason = f"{section.label()} must go upwards from from to to"
        section.refuse("step" if step <= 0 else "to", reason=reason, hint=hint)
    return _evenly(section, low, high, step, hint)


def _fractions(section: Section, keys: Iterable[str], hint: str) -> Iterator[Fraction]:
    for key in keys:
        # str() of a double is its shortest decimal, which is what the file says
        yield Fraction(str(section.number(key, value=section.required(key, hint), hint=hint)))


def _evenly(section: Section, low: Fraction, high: Fraction, step: Fraction, hint: str) -> tuple[float, ...]:
    """Edges a step apart: each is the double nearest to the exact decimal, so 0.3 is 0.3."""
    count = (high - low) / step
    if count.denominator != 1:
        reason = f"{section.label('step')} does not divide the way from {float(low):g} to {float(high):g}"
        section.refuse("step", reason=reason, hint=hint)
    if count > LARGEST_COLUMN:
        section.refuse("step", reason=f"{section.label()} has more than {LARGEST_COLUMN} bins", hint="a larger step")
    # whole numbers over one denominator: their quotient is correctly rounded, and quick
    scale = math.lcm(low.denominator, step.denominator)
    start, stride = int(low * scale), int(step * scale)
    edges = tuple((start + k * stride) / scale for k in range(int(count) + 1))
    if any(not before < after for before, after in pairwise(edges)):
        section.refuse("step", reason=f"{section.label('step')} is too small to tell its edges apart", hint=hint)
    return edges


def _dates(section: Section, name: str) -> Dates:
    first, last = (_day(section, key, section.required(key, EXAMPLES[key])) for key in ("first", "last"))
    if first > last:
        section.refuse("last", reason=f"{section.label('last')} must not be before first, which is {first}")
    section.required("by", EXAMPLES["by"])
    by = Period(section.word("by", (period.value for period in Period), ""))
    return Dates(name=name, first=first, last=last, by=by)


def _day(section: Section, key: str, value: object) -> date:
    """A TOML date, or text of the form 2020-01-31."""
    day = value
    if isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", value, re.ASCII):
        try:
            day = date.fromisoformat(value)
        except ValueError:
            section.refuse(key, reason=f"{section.label(key)}: there is no day {shown(value)}")
    if not isinstance(day, date) or isinstance(day, datetime):
        reason = f"{section.label(key)} must be a day, not {shown(value)}"
        section.refuse(key, reason=reason, hint=f"{key} = 2020-01-31")
    if day.year > LAST_YEAR:
        section.refuse(key, reason=f"{section.label(key)} must not be after the year {LAST_YEAR}")
    return day


def _with_strays(section: Section, attribute: Attribute) -> Attribute:
    """Where values outside the domain and NULL go."""
    outside = _stray(section, attribute, "outside", attribute.outside, [Stray.CLIP, Stray.OTHER])
    null = _stray(section, attribute, "null", attribute.null, [Stray.CELL, Stray.OTHER])
    nullable = section.entries.get("nullable", True)
    if not isinstance(nullable, bool):
        reason = f"{section.label('nullable')} must be true or false, not {shown(nullable)}"
        section.refuse("nullable", reason=reason, hint="nullable = false where no value is ever missing")
    if not nullable and "null" in section:
        reason = f"{section.label('null')} says where NULL goes, and nullable = false that there is none"
        section.refuse("null", reason=reason, hint="keep one of the two")
    with section.located():
        attribute = replace(attribute, outside=outside, null=null, nullable=nullable)
    if attribute.other is not None and isinstance(attribute, Categories) and "other" in attribute.values:
        reason = f'{section.label()} declares the value "other", which is also the name of the cell for other values'
        section.refuse(
            "values", reason=reason, hint='outside = { as = "other" } puts other values into the declared one'
        )
    return attribute


def _stray(section: Section, attribute: Attribute, key: str, default: Stray | int, words: list[Stray]) -> Stray | int:
    if key not in section:
        return default
    value = section.entries[key]
    if isinstance(value, dict):
        inner = section.section(key)
        inner.only(("as",))
        return _cell(inner, attribute, inner.required("as", f"{key} = {{ as = {_first(attribute)} }}"))
    if not attribute.ordered and value == Stray.CLIP.value:
        reason = f"{section.label(key)}: listed values have no order to clip along"
        section.refuse(key, reason=reason, hint=f'{key} = "other", or {key} = {{ as = {_first(attribute)} }}')
    return Stray(section.word(key, (word.value for word in words if attribute.ordered or word is not Stray.CLIP), ""))


def _cell(section: Section, attribute: Attribute, value: object) -> int:
    """The declared cell that holds the value of `as`."""
    cell = _find(section, attribute, value)
    if cell is None or not 0 <= cell < attribute.declared:
        reason = f"{section.label('as')} must be one of the declared values, not {shown(value)}"
        section.refuse("as", reason=reason, hint=f"as = {_first(attribute)}")
    return cell


def _find(section: Section, attribute: Attribute, value: object) -> int | None:
    if isinstance(attribute, Categories):
        same_type = type(value) is type(attribute.values[0])  # 1 == true in Python, not in TOML
        return attribute.values.index(value) if same_type and value in attribute.values else None
    if isinstance(attribute, IntegerRange):
        return value - attribute.lower if type(value) is int else None
    if isinstance(attribute, Bins):
        number = section.number("as", value=value, hint=f"as = {_first(attribute)}")
        top = attribute.edges[-1]
        return attribute.declared - 1 if number == top else bisect_right(attribute.edges, number) - 1
    if isinstance(attribute, Dates):
        return attribute.ordinal(_day(section, "as", value)) - attribute.ordinal(attribute.first)
    return None


def _first(attribute: Attribute) -> str:
    """A declared value, as the file would have it."""
    return shown(attribute.edges[0] if known_by_bin(attribute) else attribute.declared_label(0))


EXAMPLE = 'country = { "Europe" = ["FR", "DE"], "Asia" = ["JP"] }'


def levels(top: Section, domain: Domain) -> tuple[Level, ...]:
    """All declared levels, in the order of the file."""
    columns = top.section("columns")
    taken = {name.casefold(): columns.label(name) for name in domain.names}
    declared: list[Level] = []
    for attribute in domain.attributes:
        section = columns.section(attribute.name)
        if "levels" not in section:
            continue
        inner = section.section("levels", f"[{section.label('levels')}]\n{EXAMPLE}")
        if not isinstance(attribute, Categories):
            reason = f"{inner.label()}: only listed values have levels"
            inner.refuse(reason=reason, hint="GROUP BY takes FLOOR(x / 10), DATE_TRUNC and CASE of other columns")
        for name in inner.entries:
            with inner.located(name):
                check_name(name, "the name of a level")
            if (twin := taken.setdefault(name.casefold(), inner.label(name))) != inner.label(name):
                reason = f"{inner.label(name)} has the name of {twin}: a level is asked for like a column"
                inner.refuse(name, reason=reason, hint="give it a name of its own")
            declared.append(_level(inner.section(name, EXAMPLE), attribute))
    return tuple(declared)


def _level(section: Section, column: Categories) -> Level:
    """The groups of one level, which must hold every declared value once."""
    if not section.entries:
        section.refuse(reason=f"{section.label()} has no group", hint=EXAMPLE)
    values_with_types = {(type(value), value) for value in column.values}  # 1 == true in Python, not in TOML
    homes: dict[str | int, str] = {}
    groups: dict[str, list[str | int]] = {group: [] for group in section.entries}
    for group in section.entries:
        with section.located(group):
            check_name(group, "the name of a group")
        if group == "other" and column.other is not None:
            reason = f'{section.label(group)}: "other" is what values of {column.name} are called that are not listed'
            section.refuse(group, reason=reason, hint="give the group another name")
        values = section.items(group, EXAMPLE)
        if not values:
            section.refuse(group, reason=f"{section.label(group)} is empty", hint="list its values, or leave it out")
        for place, value in enumerate(values):
            label = section.label(group, place)
            if not isinstance(value, str | int) or (type(value), value) not in values_with_types:
                near = nearest(str(value), map(str, column.values))
                hint = f'did you mean "{near}"?' if near else f"a group lists declared values of {column.name}"
                reason = f"{label} is {shown(value)}, which is not among the values of {column.name}"
                section.refuse(group, place, reason=reason, hint=hint)
            if value in homes:
                reason = f"{label} repeats {shown(value)}, which is in {shown(homes[value])}"
                section.refuse(group, place, reason=reason, hint="every value belongs to exactly one group")
            homes[value] = group
            groups[group].append(value)
    missing = [value for value in column.values if value not in homes]
    if missing:
        more = f", and {len(missing) - 1} more" if len(missing) > 1 else ""
        reason = f"{section.label()} has no group for {shown(missing[0])}{more}"
        section.refuse(reason=reason, hint="put every value of the column into one group")
    listed = tuple((group, tuple(values)) for group, values in groups.items())
    return Level(name=str(section.place[-1]), column=column, groups=listed)
