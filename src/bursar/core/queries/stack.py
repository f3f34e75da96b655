"""Several maps one below the other; each reads only the table of its own columns."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np

from bursar.arrays import Integers
from bursar.core.extensions.thresholds import Thresholds
from bursar.core.queries.linear_map import Counts, LinearMap
from bursar.core.queries.norm import Norm
from bursar.core.queries.product import Product
from bursar.errors import QueryError


@dataclass(frozen=True, eq=False)
class Stack:
    """The rows of all parts in order."""

    parts: tuple[Product | Thresholds, ...]

    @cached_property
    def attrs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for part in self.parts for name in part.attrs))

    @property
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
        wanted = np.asarray(rows, np.int64)
        if np.any(wanted < 0) or np.any(wanted >= self.rows):
            raise QueryError("a row is taken that is not there")
        ends = np.cumsum([part.rows for part in self.parts])
        places = np.searchsorted(ends, wanted, side="right").tolist()
        picked: list[Product | Thresholds] = []
        for place, run in groupby(zip(places, wanted.tolist(), strict=True), key=lambda pair: pair[0]):
            part = self.parts[place]
            own = [row - int(ends[place]) + part.rows for _, row in run]
            picked += [part.take(own)] if isinstance(part, Thresholds) else map(part.row, own)
        return picked[0] if len(picked) == 1 else Stack(tuple(picked))
