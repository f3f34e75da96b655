"""Randomness: the only door for noise and secrets. The argument is in `randomness.proof.md`."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from itertools import count
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bursar.kernel import bulk
from bursar.kernel.accounting.noise import Noise, NoiseKind
from bursar.kernel.joint_selection import select_jointly
from bursar.kernel.noise_down import noise_down
from bursar.kernel.selection import select

BULK_FROM = 64
"""Draws of this size and more use `bulk`; below, OpenDP is done sooner than the tables of a new scale are. A law that
was drawn from so many times has earned its tables."""


class Randomness(Protocol):
    """Where noise comes from: the operating system in every real run, a tape in tests of the kernel."""

    def draw(self, noise: Noise, size: int) -> NDArray[np.int64]:
        """`size` independent draws of the law of `noise`."""

    def refine(self, current: NDArray[np.int64], before: Noise, after: Noise) -> NDArray[np.int64]:
        """Draws of `after` under draws of `before`: independent, each given the present one in its place."""

    def select(self, scores: NDArray[np.int64], *, count: int, scale: float) -> NDArray[np.int64]:
        """`count` places of the scores, one after the other without replacement, each with a probability proportional
        to exp(score / scale); places of negative scores are never picked."""

    def select_jointly(self, scores: NDArray[np.int64], *, count: int, scale: float) -> NDArray[np.int64]:
        """`count` different places of the scores in one draw, with a probability proportional to exp(-t / scale), t the
        most by which the j-th has a lower score than the j-th best; places of negative scores are never picked."""

    def secret(self, size: int) -> bytes:
        """`size` bytes that nobody can guess, for keys."""


class SystemRandomness:
    """The operating system's randomness.

    Guarantees: every draw has exactly the law that `noise` is priced by; nothing is kept between calls but
    immutable tables, so threads and forks never share a random state.
    Edge cases: size 0 gives an empty array.
    """

    def draw(self, noise: Noise, size: int) -> NDArray[np.int64]:
        """`size` independent draws of the law of `noise`."""
        if size < BULK_FROM and next(_times(noise)) < BULK_FROM:
            return _opendp(noise, size)
        if noise.kind is NoiseKind.LAPLACE:
            return bulk.laplace(noise.scale, size)
        return bulk.gaussian(noise.scale, size)

    def refine(self, current: NDArray[np.int64], before: Noise, after: Noise) -> NDArray[np.int64]:
        """Draws of `after` under draws of `before`; both are Laplace, as every `Refined` says."""
        return noise_down(current, before=before.scale, after=after.scale)

    def select(self, scores: NDArray[np.int64], *, count: int, scale: float) -> NDArray[np.int64]:
        """`count` places of the scores, as `selection` picks them."""
        return select(scores, count=count, scale=scale)

    def select_jointly(self, scores: NDArray[np.int64], *, count: int, scale: float) -> NDArray[np.int64]:
        """`count` different places of the scores, as `joint_selection` picks them."""
        return select_jointly(scores, count=count, scale=scale)

    def secret(self, size: int) -> bytes:
        """`size` bytes that nobody can guess, for keys."""
        return os.urandom(size)


@lru_cache(maxsize=256)
def _times(noise: Noise) -> count[int]:
    """Counts the small draws of a law."""
    return count()


def _opendp(noise: Noise, size: int) -> NDArray[np.int64]:
    """The same laws by OpenDP, as its noise on zeros."""
    return np.array(_mechanism(noise)(np.zeros(size, dtype=np.int64).tolist()), dtype=np.int64)


@lru_cache(maxsize=256)
def _mechanism(noise: Noise) -> Callable[[list[int]], list[int]]:
    """OpenDP's mechanism, on "i64", since its plain int saturates at 32 bits. It holds no random state, and takes twice
    as long to make as to use."""
    # Imported here because it takes a tenth of a second, which a command that draws nothing should not pay.
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian, make_laplace
    from opendp.metrics import l1_distance, l2_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    domain = vector_domain(atom_domain(T="i64"))
    if noise.kind is NoiseKind.LAPLACE:
        return make_laplace(domain, l1_distance(T="i64"), scale=noise.scale)  # type: ignore[no-any-return]
    return make_gaussian(domain, l2_distance(T="f64"), scale=noise.scale)  # type: ignore[no-any-return]
