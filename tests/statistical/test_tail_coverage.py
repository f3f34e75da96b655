"""Simulated errors against the tail bounds, with calibrations 15 % off that each test must reject.

Every test counts failures in independent trials and uses the exact binomial law at level 10^-6. Sizes are such that
noise 15 % larger or smaller than believed is rejected with probability above .999.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from bursar.core.noise.law import Noise, NoiseKind
from bursar.tails import half_width, half_widths, scale_for, single_tail, tail

ALPHA = 1e-6
SLACK = 1.02  # what a bound may be above the truth
KINDS = list(NoiseKind)


def draws(noise: Noise, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.int64]:
    """Discrete Laplace as the difference of two geometrics; discrete Gaussian by its table of masses."""
    if noise.kind is NoiseKind.LAPLACE:
        chance = -np.expm1(-1 / noise.scale)
        return rng.geometric(chance, size=shape) - rng.geometric(chance, size=shape)
    x = np.arange(-int(12 * noise.scale) - 2, int(12 * noise.scale) + 3)
    mass = np.exp(-((x / noise.scale) ** 2) / 2)
    return rng.choice(x, size=shape, p=mass / mass.sum())


def too_many(failures: int, trials: int, bound: float) -> bool:
    """Whether so many failures refute that their chance is at most `bound`."""
    return bool(stats.binom.sf(failures - 1, trials, bound) < ALPHA)


def too_few(failures: int, trials: int, bound: float) -> bool:
    """Whether so few failures refute that `bound` is tight."""
    return bool(stats.binom.cdf(failures, trials, bound / SLACK) < ALPHA)


def scaled(noise: Noise, factor: float) -> Noise:
    return Noise(kind=noise.kind, scale=noise.scale * factor)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [0.8, 6.0, 90.0])
def test_single_draws(kind: NoiseKind, scale: float) -> None:
    trials, rng = 60_000, np.random.default_rng(11)
    noise = Noise(kind=kind, scale=scale)
    alpha = half_width(noise, 0.05)
    bound = single_tail(noise, alpha)

    def failures(drawn: Noise) -> int:
        return int(np.sum(np.abs(draws(drawn, (trials,), rng)) > alpha))

    assert not too_many(failures(noise), trials, bound)
    assert not too_few(failures(noise), trials, bound)
    assert too_many(failures(scaled(noise, 1.15)), trials, bound)
    assert too_few(failures(scaled(noise, 1 / 1.15)), trials, bound)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weights", ["whole", "real"])
@pytest.mark.parametrize(("times", "trials"), [(2.0, 40_000), (3.2, 200_000)])
def test_sums(kind: NoiseKind, weights: str, times: float, trials: int) -> None:
    rng = np.random.default_rng(12)
    noises = [Noise(kind=kind, scale=scale) for scale in (2.0, 2.0, 5.0, 5.0, 5.0, 11.0)]
    w = rng.integers(1, 4, size=6).astype(float) if weights == "whole" else rng.normal(size=6)
    alpha = times * float(np.sqrt(sum(w**2 * [noise.variance() for noise in noises])))
    bound = tail(w, noises, alpha)

    def failures(factor: float) -> int:
        drawn = np.stack([draws(scaled(noise, factor), (trials,), rng) for noise in noises], axis=1)
        return int(np.sum(np.abs(drawn @ w) > alpha))

    assert not too_many(failures(1.0), trials, bound)
    assert not too_few(failures(1.0), trials, bound)
    assert too_many(failures(1.15), trials, bound)
    assert too_few(failures(1 / 1.15), trials, bound)


@pytest.mark.parametrize("kind", KINDS)
def test_intervals_cover_together(kind: NoiseKind) -> None:
    """Five independent sums, so the union bound is nearly an equality and 15 % more noise is seen."""
    trials, beta, rng = 40_000, 0.05, np.random.default_rng(13)
    noise = Noise(kind=kind, scale=7.0)
    matrix = np.kron(np.eye(5), rng.normal(size=(1, 4)))
    widths = half_widths(matrix, [noise] * 20, beta)

    def failures(factor: float) -> int:
        errors = draws(scaled(noise, factor), (trials, 20), rng) @ matrix.T
        return int(np.sum(np.any(np.abs(errors) > widths, axis=1)))

    assert not too_many(failures(1.0), trials, beta)
    assert too_many(failures(1.15), trials, beta)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("goal", [1, 3, 50])
def test_an_error_of_exactly_the_goal_is_within_it(goal: int, kind: NoiseKind) -> None:
    """Larger errors use up the allowance; the wrong twin, which counts those of exactly the goal too, finds more."""
    trials, beta, rng = 1_000_000, 0.05, np.random.default_rng(14)
    errors = np.abs(draws(Noise(kind=kind, scale=scale_for(kind, goal, beta)), (trials,), rng))
    assert not too_many(int(np.sum(errors > goal)), trials, beta)
    assert not too_few(int(np.sum(errors > goal)), trials, beta)
    assert too_many(int(np.sum(errors >= goal)), trials, beta)


@pytest.mark.parametrize("kind", KINDS)
def test_a_sum_of_exactly_the_goal_is_within_it(kind: NoiseKind) -> None:
    trials, rng = 200_000, np.random.default_rng(15)
    noise, weights, goal = Noise(kind=kind, scale=2.0), np.array([1.0, 0.5, 0.5]), 6.0
    bound = tail(weights, [noise] * 3, goal)
    errors = np.abs(draws(noise, (trials, 3), rng) @ weights)
    assert not too_many(int(np.sum(errors > goal)), trials, bound)
    assert not too_few(int(np.sum(errors > goal)), trials, bound)
    assert too_many(int(np.sum(errors >= goal)), trials, bound)
