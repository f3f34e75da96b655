"""Kronecker products of masks on disjoint columns: the ordinary GROUP BY with a WHERE."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bursar.errors import QueryError
from bursar.queries.linear_map import Counts, Integers, LinearMap
from bursar.queries.mask import Mask
from bursar.queries.norm import Norm


@dataclass(frozen=True, eq=False)
class Product:
    """Row (i, j, ...) asks for mask 0's row i times mask 1's row j times ...; the last mask runs fastest."""

    masks: tuple[Mask, ...]

    def __post_init__(self) -> None:
        names = [name for mask in self.masks for name in mask.attrs]
        if len(set(names)) != len(names):
            raise QueryError("two masks of a product share a column")

    @cached_property
    def attrs(self) -> tuple[str, ...]:
        return tuple(name for mask in self.masks for name in mask.attrs)

    @property
    def rows(self) -> int:
        return math.prod(mask.rows for mask in self.masks)

    @cached_property
    def digest(self) -> str:
        from bursar.queries.codec import encode  # the codec knows every kind of map

        return hashlib.blake2b(encode(self), digest_size=16).hexdigest()

    def apply(self, counts: Counts) -> Integers:
        table = counts(self.attrs).reshape([mask.steps.size for mask in self.masks])
        for mask in self.masks:
            # One axis is consumed from the front and its answers are put at the back: after all masks the
            # axes stand in their first order again.
            table = np.moveaxis(mask.steps.apply(table), 0, -1)
        return np.ascontiguousarray(table).reshape(self.rows)

    def norms(self, power: int) -> tuple[Norm, ...]:
        return (Norm(self.masks, power),)

    def largest(self) -> int:
        return math.prod(mask.steps.largest() for mask in self.masks)

    def take(self, rows: Sequence[int]) -> LinearMap:
        from bursar.queries.stack import Stack

        if list(rows) == list(range(self.rows)):
            return self
        picks = np.stack(np.unravel_index(np.asarray(rows, np.int64), [m.rows for m in self.masks]), axis=1)
        single = [Product(tuple(m.take([i]) for m, i in zip(self.masks, pick, strict=True))) for pick in picks]
        return single[0] if len(single) == 1 else Stack(tuple(single))
