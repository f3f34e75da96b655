"""GROUP BY keys: which cells of a column, or of several, make a group, and the label of each group.

A value outside of the declared range has no number that FLOOR or DATE_TRUNC could be taken of: such rows stay in a
group of their own, called other, and NULL in one without a name.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from bursar.compile.cell_terms import cell_values, values_on
from bursar.compile.conditions import holds_on, too_many
from bursar.compile.values import Decimals, known_by_bin
from bursar.core.domain import Attribute, Bins, Dates, Domain, IntegerRange, Period, Value
from bursar.core.queries import LARGEST_JOINT
from bursar.errors import QueryError
from bursar.lazy_dataclass import dataclass
from bursar.sql import And, CaseGroups, Key, Stepped, Trimmed
from bursar.sql.query import Made

Cells = NDArray[np.int64]

SortKey = tuple[int, float, str]


def sort_key(label: Value) -> SortKey:
    """Labels in ascending order: numbers first, then days, then words; NULL last."""
    match label:
        case None:
            return 3, 0.0, ""
        case str():
            return 2, 0.0, label
        case date():
            return 1, float(label.toordinal()), ""
    return 0, label, ""


@dataclass(frozen=True, eq=False)
class CodedKey:
    """The group of each cell of the columns of a key, and the labels of the groups in their order."""

    codes: Cells  # one axis per column, in the order of the domain
    labels: tuple[Value, ...]


@dataclass(frozen=True, eq=False)
class GroupAxis:
    """Columns that keys tie together, mostly one, and the group of each of their joint cells."""

    attrs: tuple[str, ...]  # in the order of the domain
    sizes: tuple[int, ...]
    codes: Cells | None = None  # one axis per column; None where the groups are the cells of the one column
    position: int = -1

    def of(self, cells: Sequence[Cells]) -> Cells:
        """The groups of some joint cells, which are given column by column."""
        return cells[0] if self.codes is None else self.codes[tuple(cells)]

    @property
    def size(self) -> int:
        """How many groups there are."""
        return self.sizes[0] if self.codes is None else int(self.codes.max()) + 1


@dataclass(frozen=True, eq=False)
class Groups:
    """What tells the groups of rows apart: axes that share no column, in the order of the domain."""

    axes: tuple[GroupAxis, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Every column that rows are grouped by."""
        return tuple(name for axis in self.axes for name in axis.attrs)


@dataclass(frozen=True, eq=False)
class KeyReader:
    """How a key is read off the groups of its axis; without `coded`, the groups are the cells of the column."""

    axis: int
    attribute: Attribute
    of_key: Cells | None = None  # for each group of the axis, that of the key
    coded: CodedKey | None = None

    def codes(self, lines: Cells) -> Cells:
        """The group of each line, numbered as the values are declared; lines have a column for each axis."""
        groups = lines[:, self.axis]
        return groups if self.of_key is None else self.of_key[groups]

    def read(self, lines: Cells) -> tuple[list[Value], Cells]:
        """The label of each line, and a number by which labels can be sorted."""
        shown, place = np.unique(self.codes(lines), return_inverse=True)
        label = self.attribute.label if self.coded is None else self.coded.labels.__getitem__
        labels = [label(code) for code in shown.tolist()]
        ranks = label_ranks(labels, by_code=self.coded is None and known_by_bin(self.attribute))
        return [labels[i] for i in place.reshape(-1).tolist()], ranks[place.reshape(-1)]


def groups_of(keys: Sequence[Key], domain: Domain) -> tuple[Groups, tuple[KeyReader, ...]]:
    """The groups that keys make, and how each key is read off them."""
    axes: list[GroupAxis] = []
    readers: dict[int, KeyReader] = {}
    for number, (attrs, places) in enumerate(_tied(keys, domain)):
        position = min(keys[place].position for place in places)
        if too_many(attrs, domain):
            raise QueryError(
                f"groups that tie {' and '.join(attrs)} together span {domain.cells(attrs)} cells; {LARGEST_JOINT} are "
                "possible",
                position=position,
            )
        attribute, sizes = domain[attrs[0]], domain.sizes(attrs)
        if all(keys[place].by is None for place in places):
            axes.append(GroupAxis(attrs, sizes))
            readers |= dict.fromkeys(places, KeyReader(number, attribute))
            continue
        codings = [coded(keys[place], domain) for place in places]
        codes, key_codes = _joint(
            [_spread(coding.codes, keys[p], attrs, domain) for p, coding in zip(places, codings, strict=True)]
        )
        axes.append(GroupAxis(attrs, sizes, codes.reshape(sizes), position))
        readers |= {p: KeyReader(number, attribute, key_codes[i], codings[i]) for i, p in enumerate(places)}
    return Groups(tuple(axes)), tuple(readers[place] for place in range(len(keys)))


def _tied(keys: Sequence[Key], domain: Domain) -> list[tuple[tuple[str, ...], list[int]]]:
    """Columns in sets such that no key is about two of them, and the places of the keys about each."""
    sets: list[tuple[set[str], list[int]]] = []
    for place, key in enumerate(keys):
        shared = [group for group in sets if group[0].intersection(key.columns)]
        sets = [group for group in sets if not group[0].intersection(key.columns)]
        places = sorted([place, *(member for _, more in shared for member in more)])
        sets.append((set(key.columns).union(*(names for names, _ in shared)), places))
    tied = [(domain.ordered(names), places) for names, places in sets]
    return sorted(tied, key=lambda group: domain.place(group[0][0]))


def _spread(codes: Cells, key: Key, attrs: tuple[str, ...], domain: Domain) -> Cells:
    """The codes of a key on the joint cells of columns among which its own are."""
    shape = [domain[name].size if name in key.columns else 1 for name in attrs]
    return np.broadcast_to(codes.reshape(shape), domain.sizes(attrs)).reshape(-1)


def _joint(columns: Sequence[Cells]) -> tuple[Cells, list[Cells]]:
    """A number for each combination of codes that occurs, in their order, and for each number its codes."""
    if len(columns) == 1:
        return columns[0], [np.arange(int(columns[0].max()) + 1)]  # every code of a key occurs
    joint_codes, joint = np.unique(columns[0], return_inverse=True)
    key_codes = [joint_codes]
    for codes in columns[1:]:
        size = int(codes.max()) + 1
        joint_codes, joint = np.unique(joint.reshape(-1) * size + codes, return_inverse=True)
        key_codes = [*(codes_of_key[joint_codes // size] for codes_of_key in key_codes), joint_codes % size]
    return joint.reshape(-1).astype(np.int64), key_codes


def coded(key: Key, domain: Domain) -> CodedKey:
    """The group of each cell of the key's columns."""
    attribute = domain[key.column.text]
    match key.by:
        case None:
            return CodedKey(np.arange(attribute.size), tuple(attribute.label(cell) for cell in range(attribute.size)))
        case CaseGroups():
            return _cut(key.by, key, domain)
        case Stepped() if isinstance(attribute, IntegerRange) and _exact(attribute, key.by):
            return _steps(attribute, key.by)
        case Stepped():
            labels = [_step(attribute, key.by, cell, key.position) for cell in range(attribute.declared)]
            return _numbered(labels, attribute)
        case Made():
            return _made(key.by, key, domain)
        case Trimmed():
            days = [_trimmed(attribute, key.by, cell, key.position) for cell in range(attribute.declared)]
            return _numbered(days, attribute)


def _numbered(cell_labels: Sequence[Value], attribute: Attribute) -> CodedKey:
    """Groups in ascending order, then other and NULL."""
    labels = sorted(set(cell_labels), key=sort_key)
    place = {label: code for code, label in enumerate(labels)}
    strays = range(attribute.declared, attribute.size)
    codes = [*(place[label] for label in cell_labels), *(len(labels) + i for i in range(len(strays)))]
    return CodedKey(np.array(codes, np.int64), (*labels, *(attribute.label(cell) for cell in strays)))


def _cut(by: CaseGroups, key: Key, domain: Domain) -> CodedKey:
    """Labels in the order in which they are written, and NULL for what none of them takes."""
    attrs = domain.ordered(key.columns)
    codes = np.full(domain.sizes(attrs), -1, np.int64)
    labels: list[Value] = []
    pieces = by.pieces
    if by.buckets is not None and ends_at(by.buckets[1], domain[key.column.text]):
        last = pieces[-2].condition
        assert isinstance(last, And)
        pieces = (*pieces[:-2], replace(pieces[-2], condition=last.parts[0]))  # from its lower end on
    for piece in pieces:
        taken = holds_on(piece.condition, attrs, domain) & (codes < 0)
        label = float(piece.label) if isinstance(piece.label, Decimal) else piece.label
        if not taken.any():
            continue
        if label not in labels:
            labels.append(label)
        codes[taken] = labels.index(label)
    if np.any(codes < 0):
        if None not in labels:
            labels.append(None)
        codes[codes < 0] = labels.index(None)
    return CodedKey(codes, tuple(labels))


def ends_at(edge: Decimal, attribute: Attribute) -> bool:
    """Whether this is the upper end of the last bin of a column, which holds it."""
    return known_by_bin(attribute) and Fraction(edge) == Fraction(attribute.edges[-1])


def end_remark(key: Key, domain: Domain) -> str:
    """That groups of equal width have the upper end of the last bin in the one before it; empty where they do not."""
    attribute = domain[key.column.text]
    if not known_by_bin(attribute):
        return ""
    end = attribute.edges[-1]
    match key.by:
        case Stepped(width=width):
            shared = Fraction(end) % Fraction(width) == 0
        case CaseGroups(buckets=(_, high, _)):
            shared = ends_at(high, attribute)
        case _:
            return ""
    return f"{key.column.text} of {end:g} counts in the group before, as it does in its bin" if shared else ""


def _made(by: Made, key: Key, domain: Domain) -> CodedKey:
    """What a term makes of the cells of its columns; what it makes of values that nobody knows is called other."""
    names = domain.ordered(key.columns)
    stands = [cell_values(domain[name]) for name in names]
    made_values = [
        value if value is None or isinstance(value, str | bool | int | date) else float(value)
        for value in values_on(by.term, names, stands, domain, left_out=False).each()
    ]
    labels = sorted(set(made_values) - {None}, key=sort_key)
    if len({bool if isinstance(label, bool) else sort_key(label)[0] for label in labels}) > 1:
        raise QueryError("what rows are grouped by is of one type", position=key.position)
    place: dict[Value, int] = {label: code for code, label in enumerate(labels)} | {None: len(labels)}
    codes = np.array([place[value] for value in made_values], np.int64).reshape(domain.sizes(names))
    return CodedKey(codes, (*labels, None) if None in made_values else tuple(labels))


def _exact(attribute: IntegerRange, by: Stepped) -> bool:
    """Whether all quotients can be computed in whole numbers."""
    width = Fraction(by.width)
    largest = max(abs(attribute.lower), abs(attribute.upper)) * width.denominator
    return max(largest, width.numerator) < 2**62 and (not by.towards_zero or width.denominator == 1)


def _steps(attribute: IntegerRange, by: Stepped) -> CodedKey:
    """The groups of a column of whole numbers, all at once: there may be millions of them."""
    width = Fraction(by.width)
    values = np.arange(attribute.lower, attribute.upper + 1, dtype=np.int64) * width.denominator
    steps = values // width.numerator
    if by.towards_zero:
        steps = np.sign(values) * (np.abs(values) // width.numerator)
    first = np.concatenate([[True], np.diff(steps) != 0])  # quotients ascend with the values
    codes = np.cumsum(first) - 1
    quotients: list[int] = steps[first].tolist()
    strays = np.arange(len(quotients), len(quotients) + attribute.size - attribute.declared)
    labels = quotients if by.times == 1 else [_label(quotient, by) for quotient in quotients]
    outside = [attribute.label(cell) for cell in range(attribute.declared, attribute.size)]
    return CodedKey(np.concatenate([codes, strays]).astype(np.int64), (*labels, *outside))


def _label(step: int, by: Stepped) -> int | float:
    if by.times == int(by.times):
        return step * int(by.times)
    label = step * Fraction(by.times)
    return int(label) if label.denominator == 1 else float(label)


def _step(attribute: Attribute, by: Stepped, cell: int, place: int) -> int | float:
    """The group of one cell."""
    width = Fraction(by.width)
    if isinstance(attribute, Decimals) and not by.towards_zero:
        return _label(math.floor(Fraction(attribute.number(cell)) / width), by)
    if isinstance(attribute, Bins) and not by.towards_zero:
        low, high = (Fraction(edge) for edge in attribute.edges[cell : cell + 2])
        step = math.floor(low / width)
        if high > (step + 1) * width:
            raise QueryError(
                f"{attribute.name} is known by bin only, and groups of {by.width} cut through {attribute.label(cell)}",
                position=place,
            )
    else:
        what = "// is for whole numbers; write FLOOR(x / 10)" if by.towards_zero else "it holds no numbers to divide"
        raise QueryError(f"{attribute.name} cannot be grouped like this: {what}", position=place)
    return _label(step, by)


def _trimmed(attribute: Attribute, by: Trimmed, cell: int, place: int) -> Value:
    if not isinstance(attribute, Dates):
        raise QueryError(f"{attribute.name} holds no days; group by the column itself", position=place)
    first = attribute.start(cell)
    last = first if attribute.by is Period.DAY else date.fromordinal(attribute.start(cell + 1).toordinal() - 1)
    labels = [_of_day(day, by) for day in (first, last)]
    if labels[0] != labels[1] or (by.period in ("day", "dayofweek") and first != last):
        raise QueryError(
            f"{attribute.name} is known by {attribute.by.value} only, which is not enough to tell the {by.period}",
            position=place,
        )
    return labels[0]


def _of_day(day: date, by: Trimmed) -> Value:
    quarter = (day.month - 1) // 3
    if by.number:
        numbers = {"year": day.year, "quarter": quarter + 1, "month": day.month, "day": day.day}
        return numbers.get(by.period, day.isoweekday() % 7)
    match by.period:
        case "day":
            return day
        case "week":
            return date.fromordinal(max(1, day.toordinal() - day.weekday()))
        case "month":
            return day.replace(day=1)
        case "quarter":
            return date(day.year, 3 * quarter + 1, 1)
    return date(day.year, 1, 1)


def label_ranks(labels: Sequence[Value], *, by_code: bool) -> Cells:
    """The place of each label in ascending order: bins as they lie, other behind numbers and days, NULL last."""
    words = all(isinstance(label, str) for label in labels if label is not None)

    def key(place: int) -> tuple[bool, bool, SortKey]:
        label = labels[place]
        return label is None, isinstance(label, str) and not words, sort_key(place if by_code else label)

    numbers = not by_code and all(type(label) is int for label in labels)
    ranks = np.zeros(len(labels), np.int64)
    order = np.argsort(np.array(labels), kind="stable") if numbers else sorted(range(len(labels)), key=key)
    ranks[order] = np.arange(len(labels))
    return ranks
