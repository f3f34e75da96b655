"""Terms over the cells of columns: the groups, conditions and numbers that are made of values, cell by cell.

A cell may stand for several values: a month for its days, `other` for values that nobody knows. A term has a value in a
cell where all that the cell stands for agree on it; else the question is refused. Unlisted text reads 'other', as the
public view has it. A bin stands for too many numbers: it has a value only where it is added up, which is its middle.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date
from fractions import Fraction
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Integers
from bursar.compile.column_terms import CellGrid, CellValues, Known, grid_axes, kind_of
from bursar.compile.scalar import Exact, Unknown, evaluate, exact
from bursar.compile.values import LARGEST_NUMBER, Decimals, known_by_bin, values_of
from bursar.core.domain import Attribute, Bins, Categories, Dates, Domain, Period, Stray
from bursar.core.queries import LARGEST_JOINT
from bursar.errors import QueryError
from bursar.lazy_dataclass import dataclass
from bursar.sql.terms import Call, Given, Ref, Term, refs_of, walk_terms

MOST_EVALUATED = 2**16
"""Most joint values that a term is evaluated for, one by one."""

FINEST_GRID = 2**20
"""Most units of a grid that numbers without a common denominator are rounded to; more would leave no room for noise."""

OTHER_TEXT = "other"

Whole = TypeVar("Whole", np.int64, np.object_)
"""Whole numbers that fit into 64 bits, or of any size."""

Stands = tuple[Exact, ...] | None
"""The values that a cell stands for; None where nobody knows them."""


def cell_values(attribute: Attribute) -> tuple[Stands, ...]:
    """What each declared cell stands for, then `other` and NULL where the column has them."""
    return _cell_values(attribute, listed_type(attribute))


def listed_type(attribute: Attribute) -> type | None:
    """The type of listed values, beside the column wherever it is looked up: TRUE and FALSE would equal 1 and 0."""
    return attribute.of if isinstance(attribute, Categories) else None


@functools.lru_cache(maxsize=256)
def _cell_values(attribute: Attribute, kind: type | None) -> tuple[Stands, ...]:
    match attribute:
        case Categories():
            declared: list[Stands] = [(value,) for value in attribute.values]
        case Decimals():
            declared = [(Fraction(attribute.number(cell)),) for cell in range(attribute.declared)]
        case Bins():
            declared = [None] * attribute.declared
        case Dates():
            declared = [_days(attribute, cell) for cell in range(attribute.declared)]
        case _:
            declared = [(int(str(attribute.label(cell))),) for cell in range(attribute.declared)]
    return (*declared, *(stray_value(attribute, cell) for cell in range(attribute.declared, attribute.size)))


def stray_value(attribute: Attribute, cell: int) -> Stands:
    """What `other` stands for, or NULL."""
    if attribute.has_null and cell == attribute.null_cell:
        return (None,)
    if attribute.ordered and attribute.outside is not Stray.OTHER:
        return (None,)  # nothing but NULL is sent there
    text = isinstance(attribute, Categories) and attribute.of is str
    mixed = attribute.null is Stray.OTHER
    return (OTHER_TEXT,) if text and not mixed else None


def _days(attribute: Dates, cell: int) -> Stands:
    first = attribute.start(cell)
    if attribute.by is Period.DAY:
        return (first,)
    behind = attribute.start(cell + 1)
    return tuple(first.fromordinal(day) for day in range(first.toordinal(), behind.toordinal()))


_OF_MONTHS = {
    "year", "quarter", "month", "monthname", "last_day", "trunc month", "trunc quarter", "trunc year",
    "datediff month", "datediff quarter", "datediff year",
}  # fmt: skip
"""Functions of days that are the same for all days of a month."""


@functools.lru_cache(maxsize=256)
def _by_month(term: Term) -> frozenset[str]:
    """The columns in a term of which it matters no more than the month."""
    refs = [part.name.text for part in walk_terms(term) if isinstance(part, Ref)]
    calls = [part for part in walk_terms(term) if isinstance(part, Call) and part.function in _OF_MONTHS]
    inside = [part.name.text for call in calls for part in call.parts if isinstance(part, Ref)]
    return frozenset(name for name in refs if refs.count(name) == inside.count(name))


def _first_days(stands: Stands) -> Stands:
    """Of days, one of each month."""
    if stands is None or len(stands) < 2:
        return stands
    return tuple({(day.year, day.month): day for day in reversed(stands) if isinstance(day, date)}.values())


def values_on(
    term: Term, names: Sequence[str], stands: Sequence[Sequence[Stands]], domain: Domain, *, left_out: bool
) -> CellValues:
    """What a term is on the grid of what columns stand for, last column fastest.

    Where it depends on numbers that are not declared it is refused, or unknown if rows can be `left_out`.
    """
    if math.prod(map(len, stands)) > MOST_EVALUATED:
        raise QueryError(
            f"{' and '.join(names)} have too many joint values for this; {MOST_EVALUATED} are possible",
            position=term.position,
        )
    values = _agreed(term, names, stands, domain)
    if left_out and not any(known_by_bin(domain[name]) for name in names):
        return values
    shape = [len(column) for column in stands]
    for place in np.flatnonzero(values.places == values.results.index(None)) if None in values.results else ():
        cells = map(int, np.unravel_index(place, shape))
        unknown = [domain[name] for name, cell, each in zip(names, cells, stands, strict=True) if each[cell] is None]
        if not left_out or any(map(known_by_bin, unknown)):
            raise QueryError(_not_known(unknown[0]), position=term.position)
    return values


def _agreed(term: Term, names: Sequence[str], stands: Sequence[Sequence[Stands]], domain: Domain) -> CellValues:
    """What a term is on the grid of columns; unknown where it depends on values that nobody knows."""
    spread = _spread_out(tuple(names), tuple(map(_Itself, stands)), _by_month(term))
    if math.prod(spread.grid.shape) <= LARGEST_JOINT:
        with suppress(QueryError):  # perhaps of a part that is not looked at: cell by cell that shows
            if (values := spread.agreed(grid_axes(term, spread.grid))) is not None:
                return values
    return CellValues.of(
        _agreeing(term, {name: each for name, each in zip(names, combination, strict=True) if each is not None}, domain)
        for combination in itertools.product(*spread.columns)
    )


class _Itself:
    """What the cells of a column stand for, which equals itself alone: it is long, and made once per column."""

    def __init__(self, stands: Sequence[Stands]) -> None:
        self.stands = stands

    def __hash__(self) -> int:
        return id(self.stands)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and other.stands is self.stands


@dataclass(frozen=True, eq=False)
class _SpreadOut:
    """The grid of all values that the cells of columns stand for, each by itself."""

    columns: tuple[tuple[Stands, ...], ...]
    grid: CellGrid
    starts: tuple[Integers, ...]  # the first value of each cell

    def agreed(self, values: CellValues) -> CellValues | None:
        """What a term is in each cell; None where values that a cell stands for do not agree."""
        low = high = values.places
        for axis, (starts, single) in enumerate(zip(self.starts, self.grid.columns, strict=True)):
            if len(starts) < len(single) == low.shape[axis]:
                low, high = np.minimum.reduceat(low, starts, axis=axis), np.maximum.reduceat(high, starts, axis=axis)
        if not np.array_equal(low, high):
            return None
        return CellValues(values.numbers, values.others, low).on([len(starts) for starts in self.starts])


@functools.lru_cache(maxsize=64)
def _spread_out(names: tuple[str, ...], stands: tuple[_Itself, ...], monthly: frozenset[str]) -> _SpreadOut:
    columns = tuple(
        tuple(map(_first_days, column.stands)) if name in monthly else tuple(column.stands)
        for name, column in zip(names, stands, strict=True)
    )
    each = [[[None] if cell is None else [(value,) for value in cell] for cell in column] for column in columns]
    starts = (np.cumsum([0, *map(len, column[:-1])], dtype=np.int64) for column in each)
    return _SpreadOut(
        columns, CellGrid.of(names, (list(itertools.chain.from_iterable(column)) for column in each)), tuple(starts)
    )


def _agreeing(term: Term, possible: Mapping[str, tuple[Exact, ...]], domain: Domain) -> Known:
    """What a term is for all values that cells stand for; refused where it is not the same for all of them."""
    results: set[tuple[type, Exact]] = set()
    for values in itertools.product(*possible.values()):
        try:
            value = evaluate(term, dict(zip(possible, values, strict=True)))
        except Unknown:
            return None
        results.add((type(value), value))
    if len(results) > 1:
        wide = next(domain[name] for name, values in possible.items() if len(values) > 1)
        period = wide.by.value if isinstance(wide, Dates) else "value"
        raise QueryError(
            f"{wide.name} is known by {period} only, which is not enough to tell this", position=term.position
        )
    return (next(iter(results))[1],)


def _not_known(attribute: Attribute) -> str:
    if known_by_bin(attribute):
        return f"{attribute.name} is known by bin only; it can be compared with the edges of its bins, and added up"
    unknown = " and NULL" if attribute.null is Stray.OTHER else ""
    return (
        f"values of {attribute.name} that are not declared{unknown} are kept together as {OTHER_TEXT}, and what this "
        "makes of them is not known"
    )


@dataclass(frozen=True, eq=False)
class JointValues:
    """What a term of columns counts as in their joint cells, in whole numbers of `step`."""

    attributes: tuple[Attribute, ...]  # in the order of the domain
    numbers: Integers  # one axis per column, 0 where there is none
    step: Fraction
    null: NDArray[np.bool_]  # cells that are left out
    off: Fraction | None  # how far a row's own value can be from what it counts as; None: not known

    @property
    def attrs(self) -> tuple[str, ...]:
        return tuple(attribute.name for attribute in self.attributes)

    def times(self, factor: int) -> JointValues:
        """The same in finer steps."""
        numbers = self.numbers * factor
        return JointValues(self.attributes, numbers, self.step / factor, self.null, self.off)


def joint_values(term: Call, domain: Domain) -> JointValues:
    """The numbers of a term, cell by cell; refused where it is none."""
    names = domain.ordered(name.text for name in refs_of(term))
    attributes = tuple(domain[name] for name in names)
    sizes = domain.sizes(names)
    _check_cells(names, sizes, LARGEST_JOINT, term.position)
    term = _without_zero_tests(term)
    _check_tests(term, domain)
    monthly = _by_month(term)
    columns = [
        [_first_days(stands) for stands in values] if attribute.name in monthly else values
        for attribute, values in ((each, counted_values(each, term.position)) for each in attributes)
    ]
    polynomial = _polynomial(term, names, columns)
    many = polynomial is None and math.prod(sizes) > MOST_EVALUATED
    if many and (quotient := _quotient(term, names, columns)) is not None:
        return _rounded_quotient(quotient, attributes, _off(term, names, attributes, columns))
    numbers: NDArray[np.int64 | np.object_]
    if polynomial is not None:
        null = np.broadcast_to(polynomial.null, sizes)
        numbers = np.where(null, 0, np.broadcast_to(polynomial.numbers, sizes))
        common = math.gcd(polynomial.parts, int(np.gcd.reduce(numbers, axis=None)))
        numbers, parts = numbers // common, polynomial.parts // common
        largest = max(1, -(-int(np.abs(numbers).max()) // parts))
    else:
        _check_cells(names, sizes, MOST_EVALUATED, term.position)
        behind = math.prod(sum(1 if stands is None else len(stands) for stands in column) for column in columns)
        if behind > MOST_EVALUATED:  # a month stands for each of its days
            raise QueryError(
                f"{' and '.join(names)} have too many joint values for this; {MOST_EVALUATED} are possible",
                position=term.position,
            )
        values = _agreed(term, names, columns, domain)
        results = [None if result is None else result[0] for result in values.results]
        null = np.array([value is None for value in results], np.bool_)[values.places]
        fractions = [_fraction(value, term.position) for value in results]
        parts = math.lcm(*{number.denominator for number in fractions})
        numbers = np.array([int(number * parts) for number in fractions], object)[values.places]
        largest = max(1, math.ceil(max(map(abs, fractions), default=0)))
    rounding, step = Fraction(0), Fraction(1, parts)
    room = FINEST_GRID if parts > 1000 else LARGEST_NUMBER
    if parts * largest > room:
        common = int(np.gcd.reduce(numbers, axis=None))
        if parts * largest <= room * common:
            numbers, step = numbers // common, Fraction(common, parts)
        else:
            step = _finest_step(largest)
            rounding = step / 2
            numbers = _rounded(numbers.astype(object) * step.denominator, parts * step.numerator)
    off = _off(term, names, attributes, columns)
    joined = None if off is None else off + rounding
    whole = numbers.astype(np.int64).reshape(sizes)
    return JointValues(attributes, whole, step, null.reshape(sizes), joined)


def _finest_step(largest: int) -> Fraction:
    """The step of the finest grid that numbers up to a largest one are rounded to."""
    if largest <= FINEST_GRID:
        return Fraction(1, FINEST_GRID // largest)
    return Fraction(-(-largest // FINEST_GRID))


def _rounded_quotient(
    quotient: tuple[_Polynomial, _Polynomial], attributes: tuple[Attribute, ...], off: Fraction | None
) -> JointValues:
    """A quotient on the finest grid, for all cells at once; NULL where it divides by 0."""
    sizes = [attribute.size for attribute in attributes]
    above, below = quotient
    null = np.broadcast_to(above.null | below.null | (below.numbers == 0), sizes)
    numerators = np.where(null, 0, above.numbers * np.sign(below.numbers)) * below.parts
    denominators = np.where(null, 1, np.abs(below.numbers)) * above.parts
    largest = max(1, int((-(-np.abs(numerators) // denominators)).max()))
    step = _finest_step(largest)
    exactly = object if max(above.largest * below.parts * step.denominator, denominators.max()) > _ROOM else np.int64
    numbers = _rounded(numerators.astype(exactly) * step.denominator, denominators.astype(exactly) * step.numerator)
    return JointValues(attributes, numbers.astype(np.int64), step, null, None if off is None else off + step / 2)


def _check_cells(names: Sequence[str], sizes: Sequence[int], most: int, position: int) -> None:
    if (cells := math.prod(sizes)) > most:
        raise QueryError(
            f"{' and '.join(names)} have {cells} joint cells, and {most} are possible here", position=position
        )


def _rounded(numbers: NDArray[Whole], parts: int | NDArray[Whole]) -> NDArray[Whole]:
    """Whole numbers of any size over `parts`, as the nearest whole numbers; halves to the even one."""
    below, remainder = numbers // parts, 2 * (numbers % parts)
    up: NDArray[Whole] = below + ((remainder > parts) | ((remainder == parts) & (below % 2 == 1)))
    return up


@dataclass(frozen=True, eq=False)
class _Polynomial:
    """Whole numbers of 1/`parts` on the grid of columns, with axes of length 1 where they do not depend."""

    numbers: Integers
    parts: int
    largest: int  # in whole numbers
    null: NDArray[np.bool_]

    def times(self, factor: int) -> _Polynomial:
        return _Polynomial(self.numbers * factor, self.parts * factor, self.largest * factor, self.null)


_ROOM = 2**61
"""Most that a number may be while sums and products of columns are computed for all cells at once."""


def _polynomial(term: Term, names: Sequence[str], columns: Sequence[Sequence[Stands]]) -> _Polynomial | None:
    """A term of sums and products of columns of numbers, for all cells at once; None for any other."""
    shape = [1] * len(names)
    match term:
        case Given():
            constant = exact(term.value)
            if isinstance(constant, bool) or not isinstance(constant, int | Fraction):
                return None
            return _constant(Fraction(constant), len(names))
        case Ref():
            axis = names.index(term.name.text)
            shape[axis] = -1
            column = _numbers_of(tuple(columns[axis]), kind_of(columns[axis]))
            return (
                None
                if column is None
                else replace(column, numbers=column.numbers.reshape(shape), null=column.null.reshape(shape))
            )
        case Call(function="+" | "-" | "*"):
            sides = [_polynomial(part, names, columns) for part in term.parts]
            return None if sides[0] is None or sides[1] is None else _combined(term.function, sides[0], sides[1])
        case Call(function="/", parts=(part, Given() as divisor)) if _divides(divisor):
            inner, number = _polynomial(part, names, columns), exact(divisor.value)
            assert isinstance(number, int | Fraction)
            inverse = _constant(1 / Fraction(number), len(names))
            return None if inner is None or inverse is None else _combined("*", inner, inverse)
        case Call(function="real"):
            return _polynomial(term.parts[0], names, columns)
        case Call(function="int" | "int even"):
            inner = _polynomial(term.parts[0], names, columns)
            return inner if inner is not None and inner.parts == 1 else None
        case Call(function="neg"):
            inner = _polynomial(term.parts[0], names, columns)
            if inner is None:
                return None
            return _Polynomial(-inner.numbers, inner.parts, inner.largest, inner.null)
    return None


def _quotient(
    term: Term, names: Sequence[str], columns: Sequence[Sequence[Stands]]
) -> tuple[_Polynomial, _Polynomial] | None:
    """A term of one division of sums and products of columns, perhaps times a constant; None for any other."""
    match term:
        case Call(function="real", parts=(part,)):
            return _quotient(part, names, columns)
        case Call(function="*", parts=(Given() as factor, part) | (part, Given() as factor)):
            inner, times = _quotient(part, names, columns), _polynomial(factor, names, columns)
            above = None if inner is None or times is None else _combined("*", inner[0], times)
            return None if inner is None or above is None else (above, inner[1])
        case Call(function="/", parts=(part, divisor)):
            above, below = _polynomial(part, names, columns), _polynomial(divisor, names, columns)
            if above is None or below is None:
                return None
            room = max(above.largest * below.parts, below.largest * above.parts)
            return (above, below) if room <= _ROOM else None
    return None


def _without_zero_tests(term: Call) -> Call:
    """x / NULLIF(y, 0) is x / y: a division by 0 is NULL here."""
    parts = tuple(_without_zero_tests(part) if isinstance(part, Call) else part for part in term.parts)
    divisor = parts[1] if term.function == "/" else None
    if isinstance(divisor, Call) and divisor.function == "nullif":
        of, test = divisor.parts
        if isinstance(test, Given) and type(test.value) is not bool and exact(test.value) == 0:
            parts = parts[0], of
    return replace(term, parts=parts)


def _constant(number: Fraction, columns: int) -> _Polynomial | None:
    shape, largest = [1] * columns, abs(number.numerator)
    if largest >= _ROOM:
        return None
    numbers = np.full(shape, number.numerator, np.int64)
    return _Polynomial(numbers, number.denominator, largest, np.zeros(shape, np.bool_))


@functools.lru_cache(maxsize=64)
def _numbers_of(column: tuple[Stands, ...], kind: type) -> _Polynomial | None:
    """A column by itself; None where it has other values than numbers."""
    constants = [None if values is None else values[0] for values in column]
    fractions = [Fraction(v) for v in constants if isinstance(v, int | Fraction) and not isinstance(v, bool)]
    if len(fractions) < len([value for value in constants if value is not None]):
        return None
    parts = math.lcm(*(value.denominator for value in fractions))
    largest = int(max(map(abs, fractions), default=Fraction(0)) * parts)
    if largest > _ROOM:
        return None
    given = np.array([value is not None for value in constants], np.bool_)
    numbers = np.zeros(len(constants), np.int64)
    numbers[given] = [int(value * parts) for value in fractions]
    return _Polynomial(numbers, parts, largest, ~given)


def _combined(function: str, left: _Polynomial, right: _Polynomial) -> _Polynomial | None:
    null = left.null | right.null
    if function == "*":
        largest = left.largest * right.largest
        if largest > _ROOM:
            return None
        return _Polynomial(left.numbers * right.numbers, left.parts * right.parts, largest, null)
    parts = math.lcm(left.parts, right.parts)
    left, right = left.times(parts // left.parts), right.times(parts // right.parts)
    largest = left.largest + right.largest
    if largest > _ROOM:
        return None
    numbers = left.numbers + right.numbers if function == "+" else left.numbers - right.numbers
    return _Polynomial(numbers, parts, largest, null)


_TESTS = {"=", "<>", "<", "<=", ">", ">=", "in", "same", "like", "ilike", "nullif"}


def _check_tests(term: Term, domain: Domain) -> None:
    """Refuse a comparison of a bin's middle, which says nothing about the values in the bin."""
    for part in walk_terms(term):
        if isinstance(part, Call) and part.function in _TESTS:
            for name in refs_of(part):
                if known_by_bin(domain[name.text]):
                    raise QueryError(_not_known(domain[name.text]), position=part.position)


def counted_values(attribute: Attribute, position: int) -> Sequence[Stands]:
    """What each cell counts as: of a bin, its middle or the number that was declared for it."""
    if not known_by_bin(attribute):
        return cell_values(attribute)
    values = values_of(attribute, position)
    declared: list[Stands] = [(int(number) * values.step,) for number in values.numbers[: attribute.declared]]
    return [*declared, *(stray_value(attribute, cell) for cell in range(attribute.declared, attribute.size))]


_WITHOUT_VALUE: dict[str, tuple[int, str, Callable[[int | Fraction | float], bool]]] = {
    "sqrt": (0, "the root of a number below 0", lambda number: number < 0),
    **dict.fromkeys(("ln", "log"), (0, "the logarithm of 0 or less", lambda number: number <= 0)),
    **dict.fromkeys(("/", "//", "%"), (1, "a division by 0", lambda number: number == 0)),
}
"""Functions of numbers that have no value for some: which part it depends on, what it is called, and for which."""


def valueless_remarks(term: Term, domain: Domain) -> list[str]:
    """What is said of a term that has no value for some of the values that are declared."""
    remarks = []
    for call in walk_terms(term):
        if not isinstance(call, Call) or call.function not in _WITHOUT_VALUE:
            continue
        place, what, valueless = _WITHOUT_VALUE[call.function]
        names = domain.ordered(name.text for name in refs_of(call.parts[place]))
        if not names or domain.cells(names) > MOST_EVALUATED:
            continue
        stands = [counted_values(domain[name], call.position) for name in names]
        values = _agreed(call.parts[place], names, stands, domain).each()
        if any(isinstance(value, int | Fraction | float) and valueless(value) for value in values):
            columns = " and ".join(names)
            remarks.append(f"rows whose {columns} would make this {what} are left out, as those with NULL are")
    return remarks


def _fraction(value: Exact, position: int) -> Fraction:
    if value is None:
        return Fraction(0)
    if isinstance(value, bool):
        return Fraction(int(value))  # SUM of truth values counts those that hold
    if not isinstance(value, int | Fraction | float):
        raise QueryError("only numbers can be added up", position=position)
    return Fraction(value)


_MULTILINEAR = {"+", "-", "*", "neg", "real"}


def multilinear(term: Term) -> bool:
    """Whether a term is made of sums and products alone; it is linear in a column that occurs in it once."""
    return all(
        part.function in _MULTILINEAR or (part.function == "/" and _divides(part.parts[1]))
        for part in walk_terms(term)
        if isinstance(part, Call)
    )


def divisor_of(term: Term) -> Term | None:
    """What a term of one division divides by, which is all that makes it NULL but its columns; None for any other."""
    match _without_zero_tests(term) if isinstance(term, Call) else term:
        case Call(function="real", parts=(part,)):
            return divisor_of(part)
        case Call(function="*", parts=(Given(), part) | (part, Given())):
            return divisor_of(part)
        case Call(function="/", parts=(part, divisor)) if multilinear(part) and multilinear(divisor):
            return divisor
    return None


def _divides(divisor: Term) -> bool:
    """Whether dividing by this is multiplying by a number."""
    if not isinstance(divisor, Given):
        return False
    number = exact(divisor.value)
    return isinstance(number, int | Fraction) and not isinstance(number, bool) and number != 0


def _off(
    term: Call, names: Sequence[str], attributes: Sequence[Attribute], columns: Sequence[Sequence[Stands]]
) -> Fraction | None:
    """How far a row's own value can be from what it counts as: a multilinear function is extreme at corners of bins."""
    binned = [place for place, attribute in enumerate(attributes) if known_by_bin(attribute)]
    if not binned:
        return Fraction(0)
    twice = len([part for part in walk_terms(term) if isinstance(part, Ref)]) > len(names)
    counted = _polynomial(term, names, columns)
    if twice or counted is None or not multilinear(term):
        return None
    worst = Fraction(0)
    for ends in itertools.product(("lower", "upper"), repeat=len(binned)):
        moved = list(columns)
        for place, end in zip(binned, ends, strict=True):
            attribute = attributes[place]
            assert isinstance(attribute, Bins)
            edges = attribute.edges[:-1] if end == "lower" else attribute.edges[1:]
            beyond: list[Stands] = [None] * (attribute.size - len(edges))
            moved[place] = [*((Fraction(str(edge)),) for edge in edges), *beyond]
        corner = _polynomial(term, names, moved)
        apart = None if corner is None else _combined("-", corner, counted)
        if apart is None:
            return None
        numbers = np.where(apart.null, 0, apart.numbers)
        worst = max(worst, Fraction(int(np.abs(numbers).max(initial=0)), apart.parts))
    return worst
