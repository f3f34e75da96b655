"""The protocol that every kind of query map follows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from bursar.arrays import Integers

if TYPE_CHECKING:
    from bursar.core.queries.norm import Norm

Counts = Callable[[tuple[str, ...]], Integers]
"""Gives the table of exact counts over the named columns, one axis each, in the order of the names."""


class LinearMap(Protocol):
    """Integer linear queries over cells; row order is part of the identity of a map."""

    @property
    def attrs(self) -> tuple[str, ...]:
        """The columns that the queries look at."""

    @property
    def rows(self) -> int:
        """How many queries there are."""

    @property
    def digest(self) -> str:
        """Equal exactly for maps with equal rows in equal form."""

    def apply(self, counts: Counts) -> Integers:
        """The exact answers, one per row."""

    def norms(self, power: int) -> tuple[Norm, ...]:
        """The sum over rows of |q_j(v)|^power as a function of the cell v; the norms of the tuple add up."""

    def largest(self) -> int:
        """The largest |q_j(v)|, for overflow checks from public sizes."""

    def take(self, rows: Sequence[int]) -> LinearMap:
        """The given rows, in the given order, as a map of their own."""
