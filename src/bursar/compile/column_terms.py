"""Terms of columns, evaluated once for each combination of values that they are made of, and not once per cell.

190 comparisons with the month of a day look at the months, and the first of them at the days; those of the month times
a number at the products. Whole numbers, and days with days, are compared and computed with at once; other values of one
type are compared as they are, without a call for each.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from datetime import date
from fractions import Fraction
from functools import cached_property

import numpy as np

from bursar.arrays import Integers
from bursar.compile.scalar import Exact, Unknown, apply, evaluate, exact, truth
from bursar.lazy_dataclass import dataclass
from bursar.sql.names import Name
from bursar.sql.terms import Call, Given, Ref, Term, refs_of

Known = tuple[Exact, ...] | None
"""One value; None where nobody knows it."""

Kind = type[int] | type[date]

NO_NUMBER = 2**31
"""More than any whole number that is compared and computed with at once: a product of two has room."""

MISSING = -1

NONE = np.zeros(0, np.int64)

MOST_COUNTED = 2**22
"""Up to which number those that occur are counted; beyond it they are sorted."""

_COMPARISONS: dict[str, Callable[..., Integers]] = {
    "=": np.equal, "<>": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
}  # fmt: skip
_AT_ONCE: dict[str, Callable[..., Integers]] = {
    **_COMPARISONS,
    "+": np.add, "-": np.subtract, "*": np.multiply, "%": np.fmod,
    "abs": np.absolute, "neg": np.negative, "sign": np.sign,
    "greatest": lambda *sides: functools.reduce(np.maximum, sides),
    "least": lambda *sides: functools.reduce(np.minimum, sides),
}  # fmt: skip
"""Functions of whole numbers, none of which is NULL."""

_ALIKE: dict[str, Callable[..., bool]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
"""Functions of values of one type, none of which is NULL."""

_TYPES = ({int, Fraction, float}, {str}, {date})


@dataclass(frozen=True, eq=False)
class CellValues:
    """What a term is in each cell: its different results, all of which occur, and which of them a cell has."""

    numbers: Integers  # the first results, which are whole numbers
    others: tuple[Known, ...]
    places: Integers  # while a term is worked out, with an axis per column, of length 1 where it does not depend on it

    @cached_property
    def results(self) -> tuple[Known, ...]:
        """Whole numbers that were computed at once, and others."""
        return (*((number,) for number in self.numbers.tolist()), *self.others)

    def result(self, place: int) -> Known:
        """One of the results, where not all of them are asked for."""
        numbers = len(self.numbers)
        return (int(self.numbers[place]),) if place < numbers else self.others[place - numbers]

    @property
    def kind(self) -> Kind:
        """Days, if the first result is one; else, whole numbers at best."""
        first = None if len(self.numbers) else self.others[0]
        return date if first is not None and isinstance(first[0], date) else int

    @staticmethod
    def of(results: Iterable[Known], places: Integers | None = None) -> CellValues:
        """Equal results put together; unlike in Python, 1 is not TRUE."""
        distinct: dict[tuple[type, Known], int] = {}
        codes = [distinct.setdefault((type(result and result[0]), result), len(distinct)) for result in results]
        table = np.array(codes, np.int64)
        return CellValues(NONE, tuple(result for _, result in distinct), table if places is None else table[places])

    def on(self, shape: Sequence[int]) -> CellValues:
        """The same for all cells of a grid, the last column fastest."""
        return CellValues(self.numbers, self.others, np.broadcast_to(self.places, shape).reshape(-1))

    def each(self) -> list[Exact]:
        """The result of every cell; None where nobody knows it."""
        results = [None if result is None else result[0] for result in self.results]
        return [results[place] for place in self.places.tolist()]

    def ordinals(self, kind: Kind) -> Integers:
        """The results that are whole numbers, or the days as such, and `NO_NUMBER` for the others."""
        return self._whole_numbers if kind is int else self._days

    @cached_property
    def _whole_numbers(self) -> Integers:
        numbers = np.where(np.abs(self.numbers) < NO_NUMBER, self.numbers, NO_NUMBER)
        return np.concatenate([numbers, _ordinals(self.others, int)])

    @cached_property
    def _days(self) -> Integers:
        return _ordinals(self.results, date)


def _ordinals(results: Iterable[Known], kind: Kind) -> Integers:
    numbers = []
    for result in results:
        value = None if result is None or type(result[0]) is not kind else result[0]
        number = value.toordinal() if isinstance(value, date) else value
        numbers.append(number if isinstance(number, int) and abs(number) < NO_NUMBER else NO_NUMBER)
    return np.array(numbers, np.int64)


@dataclass(frozen=True)
class _Spelled:
    """A term that equals those which mean the same, wherever they stand."""

    spelling: tuple[object, ...]
    term: Term = field(compare=False)

    @staticmethod
    def of(term: Term) -> _Spelled:
        return _Spelled(_spelling(term), term)


def _spelling(term: Term) -> tuple[object, ...]:
    match term:
        case Given():
            return (type(term.value), term.value)
        case Call():
            return (term.function, *map(_spelling, term.parts))
    return (term,)


@dataclass(frozen=True, eq=False)
class CellGrid:
    """Columns, and what each of their cells stands for: a grid equals itself alone, as comparing thousands of cells
    would take longer than working out a term."""

    names: tuple[str, ...]
    columns: tuple[tuple[Known, ...], ...]

    @staticmethod
    def of(names: Sequence[str], columns: Iterable[Sequence[Known]]) -> CellGrid:
        return CellGrid(tuple(names), tuple(map(tuple, columns)))

    @property
    def shape(self) -> list[int]:
        """The number of values of each column."""
        return [len(column) for column in self.columns]

    def column(self, name: str) -> CellValues:
        """A column by itself."""
        axis = self.names.index(name)
        values = CellValues.of(self.columns[axis])
        places = values.places.reshape([-1 if i == axis else 1 for i in range(len(self.names))])
        return CellValues(values.numbers, values.others, places)


def grid_axes(term: Term, grid: CellGrid) -> CellValues:
    """What a term is in each cell of a grid, with an axis per column, of length 1 where it does not depend on it.

    Edge cases: refused where a part has no value, also if it is not looked at there: one of CASE, or of COALESCE.
    """
    if isinstance(term, Ref):
        return grid.column(term.name.text)
    if not isinstance(term, Call) or not refs_of(term):
        return CellValues(NONE, (_evaluated(term, {}),), np.zeros([1] * len(grid.names), np.int64))
    if term.function in ("case", "coalesce"):
        return _first_taken(term, grid)
    values = [_shared(_Spelled.of(part), grid) for part in term.parts if refs_of(part)]
    joint, places = _combined(values)
    numbers, codes = _at_once(term, values, joint)
    missing = np.flatnonzero(codes == MISSING)
    columns = [
        [each.result(place) for place in which[missing].tolist()] for each, which in zip(values, joint, strict=True)
    ]
    others = _one_by_one(term, columns)
    if numbers.dtype != np.bool_ and all(other is None or other[0] is None for other in others):  # so none is a number
        distinct = list(dict.fromkeys(others))
        codes[missing] = [len(numbers) + distinct.index(other) for other in others]
        return CellValues(numbers, tuple(distinct), codes[places])
    codes[missing] = np.arange(len(numbers), len(numbers) + len(missing))
    return CellValues.of([*((number,) for number in numbers.tolist()), *others], codes[places])


def _one_by_one(term: Call, columns: Sequence[Sequence[Known]]) -> list[Known]:
    """The results of a function of columns, of which some parts may be constants."""
    if term.function in ("and", "or"):
        around, names = _around(term), [str(number) for number in range(len(columns))]
        cells = (zip(names, parts, strict=True) for parts in zip(*columns, strict=True))
        return [_evaluated(around, {name: part[0] for name, part in cell if part is not None}) for cell in cells]
    varying = iter(columns)
    sides = [next(varying) if refs_of(part) else [(evaluate(part, {}),)] * len(columns[0]) for part in term.parts]
    types = {type(part and part[0]) for side in sides for part in side}
    if any(types <= alike for alike in _TYPES):
        if term.function in _ALIKE:
            return [(result,) for result in map(_ALIKE[term.function], *sides)]
        if term.function == "nullif":
            return [(None,) if part == other else part for part, other in zip(*sides, strict=True)]
        if term.function == "in" and len(columns) == 1 and refs_of(term.parts[0]):
            members = {side[0] for side in sides[1:] if side}
            return [(part in members,) for part in sides[0]]
    return [
        None if None in parts else (apply(term.function, [part[0] for part in parts if part], term.position),)
        for parts in zip(*sides, strict=True)
    ]


def _first_taken(term: Call, grid: CellGrid) -> CellValues:
    """CASE and COALESCE: from the last part to the first, each takes the cells that it decides.

    A cell is unknown where a part is that would have to be looked at.
    """
    results: list[Known] = [None, (None,)]
    unknown, null = 0, 1

    def placed(part: Term) -> tuple[CellValues, Integers]:
        """What a part is, and where its results stand among all."""
        values = _shared(_Spelled.of(part), grid)
        results.extend(values.results)
        return values, values.places + (len(results) - len(values.results))

    taken = np.full([1] * len(grid.names), null)
    if term.function == "case":
        *pairs, otherwise = term.parts
        _, taken = placed(otherwise)
        for test, then in reversed(list(zip(pairs[::2], pairs[1::2], strict=True))):
            tests, (_, then_places) = _shared(_Spelled.of(test), grid), placed(then)
            holds = [None if result is None else truth(result[0], test.position) is True for result in tests.results]
            decided = np.array([MISSING if result is None else int(result) for result in holds])[tests.places]
            taken = np.where(decided == 1, then_places, np.where(decided == 0, taken, unknown))
    else:
        for part in reversed(term.parts):
            values, places = placed(part)
            kinds = [unknown if result is None else null if result[0] is None else MISSING for result in values.results]
            kind = np.array(kinds)[values.places]
            taken = np.where(kind == null, taken, np.where(kind == unknown, unknown, places))
    used, codes = _occurring(taken, len(results))
    return CellValues.of([results[number] for number in used.tolist()], codes)


def _combined(values: Sequence[CellValues]) -> tuple[Sequence[Integers], Integers]:
    """The results that occur together in a cell, side by side, and which of these a cell has."""
    joint, places = [np.arange(len(values[0].results))], values[0].places
    for each in values[1:]:
        size = len(each.results)
        used, places = _occurring(places * size + each.places, len(joint[0]) * size)
        joint = [*(which[used // size] for which in joint), used % size]
    return joint, places


def _occurring(codes: Integers, size: int) -> tuple[Integers, Integers]:
    """Which of the numbers below `size` occur, and which of those stands where."""
    if size > MOST_COUNTED:
        used, places = np.unique(codes, return_inverse=True)
        return used, places.reshape(codes.shape)
    used = np.flatnonzero(np.bincount(codes.reshape(-1), minlength=size))
    places = np.zeros(size, np.int64)
    places[used] = np.arange(len(used))
    return used, places[codes]


def _at_once(term: Call, values: Sequence[CellValues], joint: Sequence[Integers]) -> tuple[Integers, Integers]:
    """The results where all parts are whole numbers, or two days are compared, and which of them is whose.

    `MISSING` where there are no such numbers, or this is another function.
    """
    codes = np.full(len(joint[0]), MISSING)
    kind = values[0].kind
    if term.function not in (_COMPARISONS if kind is date else _AT_ONCE):
        return np.zeros(0, np.int64), codes
    if not all(isinstance(part, Given) or refs_of(part) for part in term.parts):
        return np.zeros(0, np.int64), codes
    inner = (each.ordinals(kind)[which] for each, which in zip(values, joint, strict=True))
    sides = [_ordinals([(exact(part.value),)], kind) if isinstance(part, Given) else next(inner) for part in term.parts]
    present = functools.reduce(np.logical_and, (side != NO_NUMBER for side in sides))
    if term.function == "%":
        present = present & (sides[1] != 0)
    operands = (np.broadcast_to(side, present.shape)[present] for side in sides)
    numbers, codes[present] = np.unique(_AT_ONCE[term.function](*operands), return_inverse=True)
    return numbers, codes


def _around(term: Call) -> Call:
    """The function by itself: of columns `0`, `1`, ... in place of the parts that depend on the column."""
    number = itertools.count()
    parts = (
        Ref(name=Name(text=str(next(number))), position=part.position) if refs_of(part) else part for part in term.parts
    )
    return replace(term, parts=tuple(parts))


@functools.lru_cache(maxsize=64)
def _shared(spelled: _Spelled, grid: CellGrid) -> CellValues:
    """Remembered: many conditions of a question are about the same terms."""
    return grid_axes(spelled.term, grid)


def kind_of(column: Iterable[Known]) -> type:
    """The type of a column's values. In Python a column of TRUE and FALSE equals one of 1 and 0; its terms do not."""
    return next((type(each[0]) for each in column if each is not None and each[0] is not None), type(None))


def _evaluated(term: Term, values: Mapping[str, Exact]) -> Known:
    try:
        return (evaluate(term, values),)
    except Unknown:
        return None
