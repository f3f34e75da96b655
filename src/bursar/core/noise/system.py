"""Randomness: the only door for noise and secrets. The argument is in `system.proof.md`."""

from __future__ import annotations

import os
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bursar.core.extensions.refine import noise_down
from bursar.core.extensions.select import select
from bursar.core.noise import exact_sampler
from bursar.core.noise.law import Noise, NoiseKind


class Randomness(Protocol):
    """Where noise comes from: the operating system in every real run, a tape in tests of the kernel."""

    def draw(self, noise: Noise, size: int) -> NDArray[np.int64]:
        """`size` independent draws of the law of `noise`."""

    def refine(self, current: NDArray[np.int64], before: Noise, after: Noise) -> NDArray[np.int64]:
        """Draws of `after` under draws of `before`: independent, each given the present one in its place."""

    def select(self, scores: NDArray[np.int64], *, count: int, scale: float) -> NDArray[np.int64]:
        """`count` places of the scores, one after the other without replacement, each with a probability proportional
        to exp(score / scale); places of negative scores are never picked."""

    def secret(self, size: int) -> bytes:
        """`size` bytes that nobody can guess, for keys."""


class SystemRandomness:
    """The operating system's randomness.

    Guarantees: every draw has exactly the law that `noise` is priced by; nothing is kept between calls but
    immutable tables, so threads and forks never share a random state.
    Edge cases: size 0 gives an empty array; a negative one is an error.
    """

    def draw(self, noise: Noise, size: int) -> NDArray[np.int64]:
        """`size` independent draws of the law of `noise`."""
        if size < 0:
            raise ValueError("the number of draws is negative")
        if noise.kind is NoiseKind.LAPLACE:
            return exact_sampler.laplace(noise.scale, size)
        return exact_sampler.gaussian(noise.scale, size)

    def refine(self, current: NDArray[np.int64], before: Noise, after: Noise) -> NDArray[np.int64]:
        """Draws of `after` under draws of `before`; both are Laplace, as every `Refined` says."""
        return noise_down(current, before=before.scale, after=after.scale)

    def select(self, scores: NDArray[np.int64], *, count: int, scale: float) -> NDArray[np.int64]:
        """`count` places of the scores, as `selection` picks them."""
        return select(scores, count=count, scale=scale)

    def secret(self, size: int) -> bytes:
        """`size` bytes that nobody can guess, for keys."""
        return os.urandom(size)
