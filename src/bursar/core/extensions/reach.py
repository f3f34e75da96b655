"""The reach of candidates: by how much a row in each cell can change the one of them that it changes most."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
from numpy.typing import NDArray

from bursar.core.queries import Ceiling, Hull, LinearMap, Mask, Product, Stack, Steps

Tops = dict[tuple[tuple[str, ...], tuple[int, ...]], NDArray[np.int64]]
"""By the columns of a mask and their sizes: in each cell the most that any of its rows is."""


@dataclass(frozen=True, eq=False)
class Reach:
    """D(v) >= max_i |q_i(v)| over the rows of some candidates; equal to it for a product of rows of 0 and 1.

    D is a product over the masks that all parts of a stack have, times a number for all the others; among these are
    the masks without columns, of which a product may have several.
    """

    candidates: LinearMap

    @cached_property
    def norms(self) -> dict[int, Hull]:
        """D(v)^power by power; v in place of w changes a candidate of one sign by at most max(D(v), D(w))."""
        kind = Ceiling if self._looks_nowhere_else else Hull
        return {power: kind(self._masks, power) for power in (1, 2)}

    @cached_property
    def one_sign(self) -> bool:
        """Whether no candidate takes values of both signs."""
        return all(norm.one_sign for norm in self.candidates.norms(1))

    @cached_property
    def _parts(self) -> tuple[LinearMap, ...]:
        return self.candidates.parts if isinstance(self.candidates, Stack) else (self.candidates,)

    @cached_property
    def _tops(self) -> list[Tops]:
        return [_tops(part) for part in self._parts]

    @cached_property
    def _shared(self) -> list[tuple[tuple[str, ...], tuple[int, ...]]]:
        return [key for key in self._tops[0] if all(key in tops for tops in self._tops)]

    @property
    def _looks_nowhere_else(self) -> bool:
        return all(isinstance(part, Product) for part in self._parts) and all(
            len(tops) == len(self._shared) for tops in self._tops
        )

    @cached_property
    def _masks(self) -> tuple[Mask, ...]:
        masks = [
            Mask(*key, Steps.dense([reduce(np.maximum, [tops[key] for tops in self._tops])])) for key in self._shared
        ]
        others = [
            part.bare_largest() * math.prod(int(top.max()) for key, top in tops.items() if key not in self._shared)
            if isinstance(part, Product)
            else part.largest()
            for part, tops in zip(self._parts, self._tops, strict=True)
        ]
        return (*masks, Mask((), (), Steps.dense([[max(others)]])))


def _tops(part: LinearMap) -> Tops:
    """No row of a mask is larger in a cell than all of them together, nor than its largest entry anywhere.

    Masks of a product share no column, so those that have columns have keys of their own.
    """
    masks = part.with_columns if isinstance(part, Product) else ()
    return {(mask.attrs, mask.sizes): np.minimum(mask.steps.norms(1), mask.steps.largest()) for mask in masks}
