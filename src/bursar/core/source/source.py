"""The source's protocol: a database that can count rows by cells, and nothing else; what is refused by public sizes."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bursar.core.domain import Domain
from bursar.core.queries import Distinct, LinearMap, PerPerson, Predicate, Transform
from bursar.errors import QueryError

MOST_CELLS = 2**26

LARGEST_ANSWER = 2**61
"""Exact answers and noise (scales end at 2^40) stay far below 64 bits; so do distances from estimates."""

MOST_ROWS = 2**22
"""Most rows of one measurement."""

CHANGED = (
    "the data are not the ones that were declared; the data owner looks at what happened and, if the change is "
    "meant, declares it: bursar version"
)
UNDECLARED = "no version of the data has been declared; the data owner runs: bursar version"


class Source(Protocol):
    """Rows behind the row -> cell rule of the domain, bounded to the unit's contributions.

    Guarantees: rows never leave it, only counts do, and those go to the kernel alone. What it counts was fixed when
    it was opened: later changes of the stored data need a new source. Any failure after the opening raises SourceError
    with one and the same text.
    """

    def content(self, first: int | None = None) -> tuple[str, ...]:
        """A keyed hash of the multiset of (bounded) cells of each partition, in the order of the partition column's
        cells, or a single one of all cells: equal for equal data, whatever their order in storage.

        With `first`, only so many partitions are asked for, here and in all that follows: rows of later ones may stay
        unread, and what is said of these means nothing.

        Guarantees: rows of later partitions do not enter into the hash of an earlier one.
        """

    def table(self, attrs: tuple[str, ...]) -> NDArray[np.int64]:
        """How many rows fall into each joint cell of the columns, one axis per column in the given order.

        Edge cases: no columns give the total as an array without axes; an unknown or repeated column, or more than
        MOST_CELLS joint cells, is a QueryError made from public sizes before any row is looked at.
        """

    def count(self, predicate: Predicate) -> int:
        """How many rows a predicate holds for: the sum of `table` over its joint cells, however many these are.

        Edge cases: columns that are not as the domain has them are a QueryError, before any row is looked at.
        """

    def distinct(self, distinct: Distinct) -> NDArray[np.int64]:
        """How many units, or values of a column, occur in each group of a distinct count, of the bounded rows.

        Edge cases: columns that are not as the domain has them, and people where rows have no unit, are a QueryError,
        before any row is looked at.
        """

    def per_person(self, people: PerPerson) -> NDArray[np.int64]:
        """People by the numbers that their own rows add up to, of the bounded rows unless it is the number of rows.

        Edge cases: as of `distinct`.
        """

    def close(self) -> None: ...


def table_shape(domain: Domain, attrs: tuple[str, ...]) -> tuple[int, ...]:
    """The shape of `Source.table`, or the QueryError that it promises."""
    for name in attrs:
        if name not in domain:
            raise QueryError(f"there is no column {name}")
    if len(set(attrs)) != len(attrs):
        raise QueryError("a table of counts has each column once")
    if domain.cells(attrs) > MOST_CELLS:
        names = ", ".join(attrs)
        raise QueryError(f"{names} have {domain.cells(attrs)} cells together; at most {MOST_CELLS} can be counted")
    return domain.sizes(attrs)


def check_strategy(strategy: LinearMap, domain: Domain, max_rows: int, most_rows: int = MOST_ROWS) -> None:
    """Refuse, before the data are touched, what could overflow or not fit in memory."""
    parts = [domain.cells(norm.columns) for norm in strategy.norms(1)]
    if max(parts, default=1) > MOST_CELLS:
        raise QueryError(f"this looks at {max(parts)} joint cells at once; {MOST_CELLS} are possible")
    if strategy.rows > most_rows:
        raise QueryError(f"this asks for {strategy.rows} numbers at once; {most_rows} are possible")
    if strategy.largest() * max_rows > LARGEST_ANSWER:
        raise QueryError("the coefficients of this workload are too large for max_rows")
    if isinstance(strategy, Transform) and strategy.max_rows < max_rows:
        raise QueryError("a transform was made for fewer rows than max_rows")
