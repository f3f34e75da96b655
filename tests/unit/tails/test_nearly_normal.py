"""The law of answers from a transform: never below the exact tail, and close to it."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest

from bursar.core.accounting import Noise, NoiseKind
from bursar.estimation.estimate import NearlyNormal
from bursar.tails import tail

DRAWS = 600
WEIGHTS = np.random.default_rng(0).normal(size=(3, DRAWS)) * np.array([[1.0], [0.5], [1.1]])


def law(scale: float, off: float = 0.0, weights: np.ndarray = WEIGHTS, draws: int = DRAWS) -> NearlyNormal:
    noise = Noise(kind=NoiseKind.GAUSSIAN, scale=scale)
    return NearlyNormal(noise=noise, draws=draws, lengths=np.sqrt(np.square(weights).sum(axis=1)), off=off)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("beta", [0.1, 1e-3, 1e-6])
@pytest.mark.parametrize("scale", [0.4, 1.0, 5.0, 300.0, 2.0**20])
def test_it_bounds_the_exact_tail(scale: float, beta: float) -> None:
    """The inversion is at most 2 % above the truth, at a threshold that is at most 1 % lower."""
    stated = law(scale)
    alpha = float(stated.half_widths(beta).max())
    exact = sum(tail(row, [stated.noise] * DRAWS, 1.01 * alpha) for row in WEIGHTS) / 1.02
    assert stated.tail(alpha, beta) >= exact
    too_short = NearlyNormal(noise=stated.noise, draws=DRAWS, lengths=stated.lengths / 1.4, off=0.0)
    assert too_short.tail(alpha, beta) < exact or scale < 1


def test_for_large_scales_it_is_the_normal_law() -> None:
    stated = law(2.0**20)
    alpha = 4 * 2.0**20 * stated.lengths.max()
    normal = sum(2 * NormalDist().cdf(-alpha / (length * 2.0**20)) for length in stated.lengths)
    assert normal <= stated.tail(alpha, 0.1) <= 1.01 * normal


@pytest.mark.parametrize("scale", [1.0, 2.0**20])
@pytest.mark.parametrize("off", [0.0, 0.3])
def test_bars_and_tails_agree(scale: float, off: float) -> None:
    stated = law(scale, off * scale, WEIGHTS[:1])
    (width,) = stated.half_widths(0.05)
    assert stated.tail(float(width), 0.05) == pytest.approx(0.05, rel=1e-3)


def test_what_rounding_adds_is_counted_in_full() -> None:
    plain, rounded = law(2.0**20), law(2.0**20, off=2.0**18)
    added = rounded.half_widths(0.05) - plain.half_widths(0.05)
    assert added == pytest.approx(plain.lengths * 2.0**18)
    one, other = law(2.0**20, weights=WEIGHTS[:1]), law(2.0**20, 2.0**18, WEIGHTS[:1])
    alpha = 3 * 2.0**20 * one.lengths[0]
    assert other.tail(alpha + 2.0**18 * one.lengths[0], 0.1) == pytest.approx(one.tail(alpha, 0.1))
    assert rounded.mean_square() == pytest.approx(plain.mean_square() * (1 + 2.0**-4))


def test_edges() -> None:
    stated = law(2.0**20, off=2.0**20)
    assert stated.tail(0.0, 0.1) == 1.0
    assert stated.tail(2.0**20 * float(stated.lengths.max()) * 0.9, 0.1) == 1.0  # within the rounding
    nothing = law(2.0**20, weights=np.zeros((2, DRAWS)))
    assert nothing.tail(1e-9, 0.1) == 0.0
    assert list(nothing.half_widths(0.1)) == [0.0, 0.0]
    assert law(2.0**20, weights=np.zeros((0, DRAWS))).mean_square() == 0.0
    assert math.isfinite(float(stated.half_widths(1e-300).max()))
    assert math.isfinite(float(law(0.1, draws=10**6).half_widths(0.05).max()))
