"""Finer noise as drawn against its laws: by itself and together with the coarser noise, with wrong twins rejected.

Pearson's chi-square at level 10^-6 over cells of known mass; 400,000 draws reject each twin with probability > .999.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from bursar.core.extensions.refine import noise_down
from bursar.core.noise import exact_sampler
from bursar.core.noise.law import Noise, NoiseKind
from bursar.core.noise.system import SystemRandomness
from harness.cases import few
from harness.masses import finer, mass_of

ALPHA = 1e-6
LEAST_EXPECTED = 50
SIZE = 400_000

Draws = NDArray[np.int64]
Refine = Callable[[Draws, float, float], Draws]


def noise(scale: float) -> Noise:
    return Noise(kind=NoiseKind.LAPLACE, scale=scale)


def right(current: Draws, before: float, after: float) -> Draws:
    """Through the door that the kernel uses."""
    return SystemRandomness().refine(current, noise(before), noise(after))


def fresh(current: Draws, before: float, after: float) -> Draws:
    """Noise of the right law that does not look at the old one."""
    return exact_sampler.laplace(after, current.size)


def too_coarse(current: Draws, before: float, after: float) -> Draws:
    return noise_down(current, before=before, after=min(1.09 * after, before * 0.99))


def moved(current: Draws, before: float, after: float) -> Draws:
    """As if the old noise had been larger by one."""
    return noise_down(current + 1, before=before, after=after)


def continuous(current: Draws, before: float, after: float) -> Draws:
    """The continuous law given the old noise, rounded: kept with probability (b2/b1) exp(-x (1/b2 - 1/b1))."""
    generator = np.random.default_rng()
    size, kept = np.abs(current), generator.random(current.size)
    proposal = generator.laplace(0, after, current.size)
    keep = kept < after / before * np.exp(-size * (1 / after - 1 / before))
    return np.where(keep, current, np.rint(np.where(current < 0, -proposal, proposal))).astype(np.int64)


def joint_fit(refine: Refine, before: float, after: float, reach: int) -> float:
    """The p-value of coarse and fine noise together, in single cells and one for all the rest."""
    coarse = exact_sampler.laplace(before, SIZE)
    fine = refine(coarse, before, after)
    wide = mass_of(noise(before))
    expected, counted = [], []
    for x in range(-reach, reach + 1):
        law = finer(noise(before), noise(after), x)
        own = np.bincount(np.clip(fine[coarse == x] + reach, -1, 2 * reach + 1) + 1, minlength=2 * reach + 3)
        for y in range(-reach, reach + 1):
            mass = SIZE * float(wide(x) * law(y))
            if mass >= LEAST_EXPECTED:
                expected.append(mass)
                counted.append(own[y + reach + 1])
    expected.append(SIZE - sum(expected))
    counted.append(SIZE - sum(counted))
    return float(stats.chisquare(counted, expected).pvalue)


SCALES = [(2.0, 1.0), (5.0, 4.0), (20.0, 1.5)]


@pytest.mark.parametrize(("before", "after"), SCALES)
def test_coarse_and_fine_noise_follow_their_joint_law(before: float, after: float) -> None:
    assert joint_fit(right, before, after, 12) > ALPHA


@pytest.mark.parametrize(("before", "after"), SCALES)
@pytest.mark.parametrize("twin", few([fresh, too_coarse, moved, continuous], 2))
def test_a_wrong_joint_law_is_rejected(twin: Refine, before: float, after: float) -> None:
    assert joint_fit(twin, before, after, 12) < ALPHA


def tail_fit(draws: Draws, scale: float) -> float:
    """The p-value of the draws under discrete Laplace noise, in cells a third of a scale wide."""
    step = max(1, round(scale / 3))
    edges = step * np.arange(-20, 21)
    a = np.exp(-1 / scale)
    below = np.where(edges >= 0, 1 - np.exp(-(edges + 1) / scale) / (1 + a), np.exp(edges / scale) / (1 + a))
    masses = np.diff(below, prepend=0, append=1)
    return float(stats.chisquare(np.bincount(np.searchsorted(edges, draws), minlength=42), draws.size * masses).pvalue)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("scales", [(1000.0, 600.0), (2.0**30, 2.0**20 + 0.5), (1e12, 9e11, 5e10, 4.0e10)])
def test_every_noise_of_a_chain_has_the_law_that_it_is_priced_by(scales: tuple[float, ...]) -> None:
    current = exact_sampler.laplace(scales[0], SIZE)
    for before, after in pairwise(scales):
        current = noise_down(current, before=before, after=after)
        assert tail_fit(current, after) > ALPHA
        assert tail_fit(current, 1.09 * after) < ALPHA
        assert tail_fit(too_coarse(exact_sampler.laplace(before, SIZE), before, after), after) < ALPHA
