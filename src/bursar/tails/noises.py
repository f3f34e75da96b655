"""The noises of many measured rows: rows are many and their laws few, so laws are looked at once and counted on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Integers, Reals
from bursar.core.noise.law import Noise, NoiseKind


@dataclass(frozen=True, eq=False)
class Kinds:
    """Different noises, each once, with the numbers that are needed of them."""

    noises: tuple[Noise, ...]

    @cached_property
    def scales(self) -> Reals:
        return np.array([noise.scale for noise in self.noises], np.float64)

    @cached_property
    def variances(self) -> Reals:
        return np.array([noise.variance() for noise in self.noises], np.float64)

    @cached_property
    def laplace(self) -> NDArray[np.bool_]:
        return np.array([noise.kind is NoiseKind.LAPLACE for noise in self.noises], np.bool_)


@dataclass(frozen=True, eq=False)
class Noises(Sequence[Noise]):
    """A noise for each row, in the order of the rows; `which` numbers them among the kinds.

    Edge cases: a kind may have no row left.
    """

    kinds: Kinds
    which: Integers

    @staticmethod
    def of(noises: Sequence[Noise]) -> Noises:
        """The same noises; at no cost where they are counted already."""
        if isinstance(noises, Noises):
            return noises
        numbers: dict[Noise, int] = {}
        which = [numbers.setdefault(noise, len(numbers)) for noise in noises]
        return Noises(Kinds(tuple(numbers)), np.array(which, np.int64))

    def __len__(self) -> int:
        return len(self.which)

    @overload
    def __getitem__(self, place: int) -> Noise: ...

    @overload
    def __getitem__(self, place: slice) -> Noises: ...

    def __getitem__(self, place: int | slice) -> Noise | Noises:
        if isinstance(place, slice):
            return Noises(self.kinds, self.which[place])
        return self.kinds.noises[int(self.which[place])]

    def __iter__(self) -> Iterator[Noise]:
        return map(self.kinds.noises.__getitem__, self.which.tolist())

    def take(self, rows: Integers | NDArray[np.bool_]) -> Noises:
        """Of some rows."""
        return Noises(self.kinds, self.which[rows])

    def plus(self, noise: Noise, rows: int) -> Noises:
        """With more rows of one noise at the end."""
        kinds, number = self._with(noise)
        return Noises(kinds, np.concatenate([self.which, np.full(rows, number)]))

    def changed(self, rows: Integers, noise: Noise) -> Noises:
        """With another noise for some rows."""
        kinds, number = self._with(noise)
        which = self.which.copy()
        which[rows] = number
        return Noises(kinds, which)

    @property
    def scales(self) -> Reals:
        return self.kinds.scales[self.which]

    @property
    def variances(self) -> Reals:
        return self.kinds.variances[self.which]

    @property
    def laplace(self) -> NDArray[np.bool_]:
        return self.kinds.laplace[self.which]

    def _with(self, noise: Noise) -> tuple[Kinds, int]:
        known = self.kinds.noises
        if noise in known:
            return self.kinds, known.index(noise)
        return Kinds((*known, noise)), len(known)
