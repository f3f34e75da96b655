"""Kronecker products of masks on disjoint columns, the ordinary GROUP BY with a WHERE; and stacks of them."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np

from bursar.arrays import Integers
from bursar.core.extensions.thresholds import Thresholds
from bursar.core.queries.linear_map import Counts, LinearMap, Norm
from bursar.core.queries.mask import Mask
from bursar.errors import QueryError

MOST_COLUMNS = 32
"""Most columns of one product: tables have one axis each."""


@dataclass(frozen=True, eq=False)
class Product:
    """Row (i, j, ...) asks for mask 0's row i times mask 1's row j times ...; the last mask runs fastest."""

    masks: tuple[Mask, ...]

    def __post_init__(self) -> None:
        names = [name for mask in self.masks for name in mask.attrs]
        if len(set(names)) != len(names):
            raise QueryError("two masks of a product share a column")
        if len(names) > MOST_COLUMNS:
            raise QueryError(f"this looks at {len(names)} columns together; {MOST_COLUMNS} are possible")

    @cached_property
    def attrs(self) -> tuple[str, ...]:
        return tuple(name for mask in self.masks for name in mask.attrs)

    @cached_property
    def rows(self) -> int:
        return math.prod(mask.rows for mask in self.masks)

    @cached_property
    def digest(self) -> str:
        from bursar.core.queries.map_codec import encode  # the codec knows every kind of map

        return hashlib.blake2b(encode(self), digest_size=16).hexdigest()

    def apply(self, counts: Counts) -> Integers:
        table = counts(self.attrs).reshape([mask.steps.size for mask in self.masks])
        # Any order gives the same integers; with the masks that shrink the table most in front, it is never larger
        # than the greater of what was read and what is answered.
        for axis in sorted(range(len(self.masks)), key=lambda i: self.masks[i].rows / self.masks[i].steps.size):
            table = np.moveaxis(self.masks[axis].steps.apply(np.moveaxis(table, axis, 0)), 0, axis)
        return np.ascontiguousarray(table).reshape(self.rows)

    def norms(self, power: int) -> tuple[Norm, ...]:
        return (self._norms.get(power) or self._norms.setdefault(power, Norm(self.masks, power)),)

    @cached_property
    def _norms(self) -> dict[int, Norm]:
        """By power, once they were computed: they are priced over and over while a plan is made."""
        return {}

    def largest(self) -> int:
        return math.prod(mask.steps.largest() for mask in self.masks)

    def take(self, rows: Sequence[int]) -> LinearMap:
        if list(rows) == list(range(self.rows)):
            return self
        single = tuple(self.row(row) for row in rows)
        return single[0] if len(single) == 1 else Stack(single)

    def row(self, row: int) -> Product:
        """One row as a product of its own."""
        if not 0 <= row < self.rows:
            raise QueryError("a row is taken that is not there")
        picks: list[int] = []
        for mask in reversed(self.masks):
            row, pick = divmod(row, mask.rows)
            picks.insert(0, pick)
        return Product(tuple(mask.take([pick]) for mask, pick in zip(self.masks, picks, strict=True)))


@dataclass(frozen=True, eq=False)
class Stack:
    """The rows of all parts in order."""

    parts: tuple[Product | Thresholds, ...]

    @cached_property
    def attrs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for part in self.parts for name in part.attrs))

    @cached_property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts)

    @cached_property
    def digest(self) -> str:
        from bursar.core.queries.map_codec import encode  # the codec knows every kind of map

        return hashlib.blake2b(encode(self), digest_size=16).hexdigest()

    def apply(self, counts: Counts) -> Integers:
        return np.concatenate([part.apply(counts) for part in self.parts] or [np.zeros(0, np.int64)])

    def norms(self, power: int) -> tuple[Norm, ...]:
        return tuple(norm for part in self.parts for norm in part.norms(power))

    def largest(self) -> int:
        return max((part.largest() for part in self.parts), default=0)

    def take(self, rows: Sequence[int]) -> LinearMap:
        numbers = np.asarray(rows, np.int64)
        if np.any(numbers < 0) or np.any(numbers >= self.rows):
            raise QueryError("a row is taken that is not there")
        ends = np.cumsum([part.rows for part in self.parts])
        places = np.searchsorted(ends, numbers, side="right").tolist()
        picked: list[Product | Thresholds] = []
        for place, run in groupby(zip(places, numbers.tolist(), strict=True), key=lambda pair: pair[0]):
            part = self.parts[place]
            part_rows = [row - int(ends[place]) + part.rows for _, row in run]
            picked += [part.take(part_rows)] if isinstance(part, Thresholds) else map(part.row, part_rows)
        return picked[0] if len(picked) == 1 else Stack(tuple(picked))
