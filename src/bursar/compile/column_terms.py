"""Terms of columns, evaluated once for each combination of values that they are made of, and not once per cell.

190 comparisons with the month of a day look at the months, and the first of them at the days; those of the month times
a number at the products. Whole numbers, and days with days, are compared and computed with at once.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from datetime import date
from functools import cached_property

import numpy as np

from bursar.arrays import Integers
from bursar.compile.scalar import Exact, Unknown, evaluate, exact, truth
from bursar.lazy_dataclass import dataclass
from bursar.sql.names import Name
from bursar.sql.terms import Call, Given, Ref, Term, refs_of

Known = tuple[Exact, ...] | None
"""One value; None where nobody knows it."""

Kind = type[int] | type[date]

NO_NUMBER = 2**31
"""More than any whole number that is compared and computed with at once: a product of two has room."""

MISSING = -1

MOST_COUNTED = 2**22
"""Up to which number those that occur are counted; beyond it they are sorted."""

_COMPARISONS = {
    "=": np.equal, "<>": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
}  # fmt: skip
_AT_ONCE = {**_COMPARISONS, "+": np.add, "-": np.subtract, "*": np.multiply, "%": np.fmod}


@dataclass(frozen=True, eq=False)
class CellValues:
    """What a term is in each cell: its different results, all of which occur, and which of them a cell has."""

    results: tuple[Known, ...]
    places: Integers  # while a term is worked out, with an axis per column, of length 1 where it does not depend on it

    @staticmethod
    def of(results: Iterable[Known], places: Integers | None = None) -> CellValues:
        """Equal results put together; unlike in Python, 1 is not TRUE."""
        distinct: dict[tuple[type, Known], int] = {}
        codes = [distinct.setdefault((type(result and result[0]), result), len(distinct)) for result in results]
        table = np.array(codes, np.int64)
        return CellValues(tuple(result for _, result in distinct), table if places is None else table[places])

    def each(self) -> list[Exact]:
        """The result of every cell; None where nobody knows it."""
        results = [None if result is None else result[0] for result in self.results]
        return [results[place] for place in self.places.tolist()]

    def ordinals(self, kind: Kind) -> Integers:
        """The results that are whole numbers, or the days as such, and `NO_NUMBER` for the others."""
        return self._whole_numbers if kind is int else self._days

    @cached_property
    def _whole_numbers(self) -> Integers:
        return _ordinals(self.results, int)

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


@dataclass(frozen=True)
class CellGrid:
    """Columns, and what each of their cells stands for.

    The types of their values are told apart: in Python a column of TRUE and FALSE equals one of 1 and 0.
    """

    names: tuple[str, ...]
    columns: tuple[tuple[Known, ...], ...]
    kinds: tuple[type, ...]

    @staticmethod
    def of(names: Sequence[str], columns: Iterable[Sequence[Known]]) -> CellGrid:
        cells = tuple(map(tuple, columns))
        return CellGrid(tuple(names), cells, tuple(map(kind_of, cells)))

    @property
    def shape(self) -> list[int]:
        """The number of values of each column."""
        return [len(column) for column in self.columns]

    def column(self, name: str) -> CellValues:
        """A column by itself."""
        axis = self.names.index(name)
        values = CellValues.of(self.columns[axis])
        return CellValues(
            values.results, values.places.reshape([-1 if i == axis else 1 for i in range(len(self.names))])
        )


def grid_values(term: Term, grid: CellGrid) -> CellValues:
    """What a term is in each cell of a grid, the last column fastest.

    Edge cases: refused where a part has no value, also if it is not looked at there: one of CASE, or of COALESCE.
    """
    values = _values(term, grid)
    return CellValues(values.results, np.broadcast_to(values.places, grid.shape).reshape(-1))


def _values(term: Term, grid: CellGrid) -> CellValues:
    if isinstance(term, Ref):
        return grid.column(term.name.text)
    if not isinstance(term, Call) or not refs_of(term):
        return CellValues((_evaluated(term, {}),), np.zeros([1] * len(grid.names), np.int64))
    if term.function in ("case", "coalesce"):
        return _first_taken(term, grid)
    values = [_shared(_Spelled.of(part), grid) for part in term.parts if refs_of(part)]
    joint, places = _combined(values)
    results, codes = _at_once(term, values, joint)
    around = _around(term)
    for place in np.flatnonzero(codes == MISSING).tolist():
        parts = [each.results[which[place]] for each, which in zip(values, joint, strict=True)]
        constants = {str(number): part[0] for number, part in enumerate(parts) if part is not None}
        codes[place] = len(results)
        results.append(_evaluated(around, constants))
    return CellValues.of(results, codes[places])


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


def _at_once(term: Call, values: Sequence[CellValues], joint: Sequence[Integers]) -> tuple[list[Known], Integers]:
    """The results of two whole numbers or days compared or computed with, and which of them is whose.

    `MISSING` where there are no such numbers, or this is another function.
    """
    codes = np.full(len(joint[0]), MISSING)
    first = values[0].results[0]
    kind = date if first is not None and isinstance(first[0], date) else int
    if term.function not in (_COMPARISONS if kind is date else _AT_ONCE):
        return [], codes
    if not all(isinstance(part, Given) or refs_of(part) for part in term.parts):
        return [], codes
    inner = (each.ordinals(kind)[which] for each, which in zip(values, joint, strict=True))
    left, right = (
        _ordinals([(exact(part.value),)], kind) if isinstance(part, Given) else next(inner) for part in term.parts
    )
    present = (left != NO_NUMBER) & (right != NO_NUMBER) & ((right != 0) | (term.function != "%"))
    left, right = (np.broadcast_to(side, present.shape)[present] for side in (left, right))
    results, codes[present] = np.unique(_AT_ONCE[term.function](left, right), return_inverse=True)
    return [(result,) for result in results.tolist()], codes


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
    return _values(spelled.term, grid)


def kind_of(column: Iterable[Known]) -> type:
    """The type of a column's values. In Python a column of TRUE and FALSE equals one of 1 and 0; its terms do not."""
    return next((type(each[0]) for each in column if each is not None and each[0] is not None), type(None))


def _evaluated(term: Term, values: Mapping[str, Exact]) -> Known:
    try:
        return (evaluate(term, values),)
    except Unknown:
        return None
