"""Several maps one below the other; each reads only the table of its own columns."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bursar.errors import QueryError
from bursar.queries.linear_map import Counts, Integers, LinearMap
from bursar.queries.norm import Norm
from bursar.queries.product import Product


@dataclass(frozen=True, eq=False)
class Stack:
    """The rows of all parts in order."""

    parts: tuple[Product, ...]

    @cached_property
    def attrs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for part in self.parts for name in part.attrs))

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts)

    @cached_property
    def digest(self) -> str:
        from bursar.queries.codec import encode  # the codec knows every kind of map

        return hashlib.blake2b(encode(self), digest_size=16).hexdigest()

    def apply(self, counts: Counts) -> Integers:
        return np.concatenate([part.apply(counts) for part in self.parts] or [np.zeros(0, np.int64)])

    def norms(self, power: int) -> tuple[Norm, ...]:
        return tuple(norm for part in self.parts for norm in part.norms(power))

    def largest(self) -> int:
        return max((part.largest() for part in self.parts), default=0)

    def take(self, rows: Sequence[int]) -> LinearMap:
        offsets = np.cumsum([0, *(part.rows for part in self.parts)])
        picked: list[Product] = []
        for row in rows:
            if not 0 <= row < self.rows:
                raise QueryError("a row is taken that is not there")
            place = int(np.searchsorted(offsets, row, side="right")) - 1
            picked.append(self.parts[place].row(int(row - offsets[place])))
        return picked[0] if len(picked) == 1 else Stack(tuple(picked))
