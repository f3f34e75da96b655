"""Predicate counts: a condition over more columns than a mask can have; the source counts the rows it holds for.

A condition is made of sets of cells of single columns. `Quorum` is the one way to put them together: all of n parts is
AND, one of them is OR. There is no NOT, since it can always be moved inwards: a set has its complement, and where not
k of n parts hold, n - k + 1 of their opposites do.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from bursar.arrays import Flags, Integers
from bursar.core.domain import Domain
from bursar.core.extensions.hull import Hull
from bursar.core.queries.linear_map import Counts, Header, LinearMap, Norm
from bursar.core.queries.mask import Mask, Steps
from bursar.core.source.raw import FAILED, attempt
from bursar.errors import QueryError

if TYPE_CHECKING:
    from bursar.core.source.duckdb import DuckDBSource

MOST_PIECES = 4096
"""Most parts and ranges of cells of one condition, all together."""

DEEPEST = 64
"""How deep parts can lie inside parts."""

LARGEST_HULL = 2**26
"""Most joint cells of the columns that a hull is about."""


@dataclass(frozen=True)
class Within:
    """A column has one of the cells of some ranges, each from its first cell to one before its second."""

    column: str
    ranges: tuple[tuple[int, int], ...]

    def cells(self, size: int) -> Flags:
        """Which cells of the column these are."""
        inside = np.zeros(size, np.bool_)
        for low, high in self.ranges:
            inside[low:high] = True
        return inside


@dataclass(frozen=True)
class Quorum:
    """A condition of which at least `least` parts hold."""

    least: int
    parts: tuple[Within | Quorum, ...]


@dataclass(frozen=True, eq=False)
class Predicate:
    """The number of rows for which a condition on the cells of `attrs` holds.

    Guarantees: the coefficient of a cell is 1 where the condition holds and 0 elsewhere; it holds nowhere outside of
    the hull, and the norms are those of the hull.
    Edge cases: refused are conditions about other columns and cells than those named, ranges that do not rise or that
    touch, and parts of which none or too many are asked for.
    """

    attrs: tuple[str, ...]
    sizes: tuple[int, ...]
    condition: Within | Quorum

    def __post_init__(self) -> None:
        named = all(isinstance(name, str) for name in self.attrs) and len(set(self.attrs)) == len(self.attrs)
        whole = all(type(size) is int and size > 0 for size in self.sizes)
        if not (named and whole) or len(self.attrs) != len(self.sizes):
            raise QueryError("a condition does not fit the columns it is for")
        pieces = _checked(self.condition, dict(zip(self.attrs, self.sizes, strict=True)), DEEPEST)
        if pieces > MOST_PIECES:
            raise QueryError(f"a condition is made of {pieces} pieces; {MOST_PIECES} are possible")

    @property
    def rows(self) -> int:
        return 1

    @cached_property
    def digest(self) -> str:
        from bursar.core.queries.map_codec import encode  # the codec knows every kind of map

        return hashlib.blake2b(encode(self), digest_size=16).hexdigest()

    def packed(self) -> tuple[Header, list[Integers]]:
        """What its bytes say: a header, and no arrays."""
        header = {"attrs": self.attrs, "sizes": self.sizes, "condition": _written(self.condition)}
        return {"kind": "predicate", **header}, []

    @staticmethod
    def unpacked(header: Header, numbers: Integers) -> Predicate:
        return Predicate(tuple(header["attrs"]), tuple(header["sizes"]), _read(header["condition"]))

    def apply(self, counts: Counts) -> Integers:
        """The exact count from a table of all joint cells: where there are too many of them, the source is asked."""
        table = counts(self.attrs)

        def along(leaf: Within) -> Flags:
            axis = self.attrs.index(leaf.column)
            return leaf.cells(self.sizes[axis]).reshape([-1 if i == axis else 1 for i in range(len(self.attrs))])

        inside = np.broadcast_to(_holds(self.condition, along), self.sizes)
        return np.array([table[inside].sum()], np.int64)

    def holds(self, cells: Sequence[Integers]) -> Flags:
        """Whether the condition holds for each row, given its cells, column by column."""
        of = {name: (size, cell) for name, size, cell in zip(self.attrs, self.sizes, cells, strict=True)}

        def row_by_row(leaf: Within) -> Flags:
            size, cell = of[leaf.column]
            return leaf.cells(size)[cell]

        return _holds(self.condition, row_by_row)

    @cached_property
    def hull(self) -> tuple[Mask, ...]:
        """A mask for each column of which some cells are impossible; columns that would make it too large are left out.

        A condition cannot get false when any of its sets grows: with those of all other columns grown to everything,
        it holds at a cell of this column wherever it may hold at all.
        """
        masks: list[Mask] = []
        for name, size in zip(self.attrs, self.sizes, strict=True):

            def alone(leaf: Within, name: str = name, size: int = size) -> Flags:
                return leaf.cells(size) if leaf.column == name else np.ones(size, np.bool_)

            inside = _holds(self.condition, alone)
            room = LARGEST_HULL // math.prod(max(mask.steps.size, 2) for mask in masks)
            if size <= room and not inside.all():
                masks.append(Mask((name,), (size,), Steps.dense(inside[None, :].astype(np.int64))))
        return tuple(masks)

    def norms(self, power: int) -> tuple[Norm, ...]:
        return (Hull(self.hull, power),)

    def largest(self) -> int:
        return 1

    def take(self, rows: Sequence[int]) -> LinearMap:
        if list(rows) != [0]:
            raise QueryError("a row is taken that is not there")
        return self


def _holds(part: Within | Quorum, of: Callable[[Within], Flags]) -> Flags:
    """Where a condition holds, given where each of its sets does."""
    if isinstance(part, Within):
        return of(part)
    number = np.zeros((), np.int64)
    for each in part.parts:
        number = number + _holds(each, of)
    flags: Flags = number >= part.least
    return flags


def _checked(part: Within | Quorum, sizes: dict[str, int], deepest: int) -> int:
    """How many pieces a condition is made of; refused where it does not fit the columns."""
    if isinstance(part, Within):
        ends = [end for low, high in part.ranges for end in (low, high)]
        rising = all(type(end) is int for end in ends) and all(a < b for a, b in pairwise(ends))
        if part.column not in sizes or not rising or (ends and not 0 <= ends[0] < ends[-1] <= sizes[part.column]):
            raise QueryError("a set of cells does not fit the column it is for")
        return 1 + len(part.ranges)
    if not isinstance(part, Quorum) or type(part.least) is not int or not 1 <= part.least <= len(part.parts):
        raise QueryError("a condition asks for some of its parts, or for all of them")
    if deepest == 0:
        raise QueryError(f"a condition lies more than {DEEPEST} deep")
    return 1 + sum(_checked(each, sizes, deepest - 1) for each in part.parts)


def _written(part: Within | Quorum) -> list[object]:
    """A set as its column and ranges, anything else as its number and parts."""
    if isinstance(part, Within):
        return [part.column, part.ranges]
    return [part.least, [_written(each) for each in part.parts]]


def _read(written: list[Any]) -> Within | Quorum:
    what, inner = written
    if isinstance(what, str):
        return Within(what, tuple((low, high) for low, high in inner))
    return Quorum(what, tuple(_read(each) for each in inner))


def check_columns(domain: Domain, predicate: Predicate) -> None:
    """Raise the QueryError that `Source.count` promises."""
    named = all(name in domain for name in predicate.attrs)
    if not named or domain.sizes(predicate.attrs) != predicate.sizes:
        raise QueryError("a condition does not fit the columns of the data")


def condition_sql(part: Within | Quorum, domain: Domain) -> str:
    """A condition as SQL, made of cell numbers and of the names that a source gives columns, and of nothing else."""
    if isinstance(part, Within):
        column = f"c{domain.place(part.column)}"
        ranges = [f"{column} BETWEEN {low} AND {high - 1}" for low, high in part.ranges]
        return f"({' OR '.join(ranges or ['FALSE'])})"
    pieces = [condition_sql(each, domain) for each in part.parts]
    word = {len(pieces): " AND ", 1: " OR "}.get(part.least)
    if word is not None:
        return f"({word.join(pieces)})"
    return f"(list_sum([{', '.join(f'CAST({each} AS INTEGER)' for each in pieces)}]) >= {part.least})"


def count_where(source: DuckDBSource, predicate: Predicate) -> int:
    """`Source.count` of a source in DuckDB."""
    check_columns(source._domain, predicate)
    condition = condition_sql(predicate.condition, source._domain)
    sql = f"SELECT CAST(coalesce(sum(rows), 0) AS BIGINT) AS rows FROM {source._cells} WHERE {condition}"
    return attempt(lambda: int(source._fetch(sql)["rows"][0]), FAILED)
