"""The protocol of query maps, and the column norms that price them: how far a unit in a cell can move answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from bursar.arrays import Integers
from bursar.core.extensions.pairs import at, largest_pair, pairs, slices
from bursar.core.queries.mask import Mask
from bursar.errors import QueryError

Header = dict[str, Any]
"""What the bytes of a map begin with: plain JSON values, which constructors check."""

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


LARGEST_NORM = 2**60
"""A pair can lose four times as much as a cell, which still fits in 64 bits."""


@dataclass(frozen=True, eq=False)
class Norm:
    """sum_j |q_j(v)|^power over the rows of a product of masks, for each cell v of its columns.

    It is an outer product of one vector per mask and never expanded here: the profile decides how fine it can
    afford to be.
    """

    masks: tuple[Mask, ...]
    power: int

    def __post_init__(self) -> None:
        if self.largest() > LARGEST_NORM:
            raise QueryError("the coefficients of this workload are too large")

    @property
    def cells(self) -> int:
        """How many joint cells its masks have."""
        return math.prod(mask.steps.size for mask in self.masks)

    @cached_property
    def attrs(self) -> tuple[tuple[str, ...], ...]:
        return tuple(mask.attrs for mask in self.masks)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for mask in self.masks for name in mask.attrs)

    @cached_property
    def sizes(self) -> tuple[tuple[int, ...], ...]:
        return tuple(mask.sizes for mask in self.masks)

    @cached_property
    def vectors(self) -> tuple[Integers, ...]:
        return tuple(mask.steps.norms(self.power) for mask in self.masks)

    def largest(self) -> int:
        return self._largest

    @cached_property
    def _largest(self) -> int:
        return math.prod(int(v.max(initial=0)) for v in self.vectors)

    @cached_property
    def one_sign(self) -> bool:
        """Whether no row takes values of both signs."""
        return all(bool(np.all(m.steps.levels >= 0)) or bool(np.all(m.steps.levels <= 0)) for m in self.masks)

    @property
    def pair_factor(self) -> int:
        """Upper bound on the loss of a pair of cells, as a multiple of the largest norm of a cell."""
        return 2 if self.power == 1 or self.one_sign else 4

    largest_pair, at, slices, pairs = largest_pair, at, slices, pairs
    """What replace-one asks of a norm."""
