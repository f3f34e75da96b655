"""Bounds on very many sums together: never below the truth, and close to it where it matters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bursar.core.accounting import Noise, NoiseKind
from bursar.tails import LaplaceSums, half_widths, single_tail, tail

SCALE = 3000.0
NOISE = Noise(kind=NoiseKind.LAPLACE, scale=SCALE)
RNG = np.random.default_rng(5)
MATRIX = np.where(RNG.random((12, 90)) < 0.4, RNG.random((12, 90)) ** 3, 0.0) * RNG.choice([-1, 1], (12, 90))


def alone(weights: list[float], beta: float = 0.01) -> LaplaceSums:
    return LaplaceSums.of(np.array([weights]), beta)


@pytest.mark.parametrize("chance", [0.1, 0.01, 1e-4, 1e-7])
def test_one_draw_and_two_are_bounded_closely(chance: float) -> None:
    alpha = SCALE * np.log(1 / chance)
    one, two = alone([1.0], chance).tail(SCALE, alpha), alone([1.0, 1.0], chance).tail(SCALE, 1.3 * alpha)
    for bound, exact in ((one, single_tail(NOISE, alpha)), (two, tail([1.0, 1.0], [NOISE, NOISE], 1.3 * alpha))):
        assert exact <= bound <= 1.12 * exact


def test_a_twin_with_weights_that_are_too_small_would_be_found() -> None:
    alpha = 10 * SCALE
    sums = alone([1.0], 1e-4)
    lowered = replace(sums, levels=0.98 * sums.levels)
    assert lowered.tail(SCALE, alpha) < single_tail(NOISE, alpha)


@pytest.mark.parametrize("share", [0.05, 1e-4])
def test_every_sum_is_bounded_and_the_widest_closely(share: float) -> None:
    sums = LaplaceSums.of(MATRIX, share)
    alpha = float(half_widths(MATRIX, [NOISE] * 90, share).max())
    exact = [tail(row, [NOISE] * 90, alpha) / 1.03 for row in MATRIX]
    assert sum(exact) <= sums.tail(SCALE, alpha) <= 1.25 * 1.03 * sum(exact)
    assert sums.largest_tail(SCALE, alpha) >= max(exact)


def test_half_widths_are_those_of_each_sum() -> None:
    widths = LaplaceSums.of(MATRIX, 0.05).half_widths(SCALE, 0.05 / 12)
    exact = half_widths(MATRIX, [NOISE] * 90, 0.05)
    assert np.all(widths >= exact / 1.01)
    assert np.all(widths <= 1.03 * exact)


def test_the_scale_is_the_largest_that_keeps_the_bound() -> None:
    sums = LaplaceSums.of(MATRIX, 0.05)
    scale = sums.scale_for(50_000.0, 0.05)
    assert sums.tail(scale, 50_000.0) <= 0.05 < sums.tail(1.001 * scale, 50_000.0)


def test_a_coarse_lattice_moves_the_threshold_and_is_told() -> None:
    """Noise of scale 2 on whole numbers: bounds hold, by a shift of as much as one step of every draw."""
    coarse = Noise(kind=NoiseKind.LAPLACE, scale=2.0)
    sums = alone([1.0, 1.0, 1.0])
    assert sums.tail(2.0, 12.0) >= tail([1.0, 1.0, 1.0], [coarse] * 3, 12.0)
    assert not sums.close_at(2.0)
    assert sums.close_at(1200.0)


def test_no_weight_is_no_error() -> None:
    sums = LaplaceSums.of(np.zeros((2, 3)), 0.05)
    assert sums.tail(SCALE, 1.0) == 0
    assert sums.largest_tail(SCALE, 1.0) == 0
    assert np.isinf(sums.scale_for(1.0, 0.05))
    mixed = LaplaceSums.of(np.array([[1.0, 0.5], [0.0, 0.0]]), 0.05).half_widths(SCALE, 0.05)
    assert mixed[1] == pytest.approx(0)
    assert mixed[0] > SCALE


def test_nothing_is_within_an_error_of_nothing() -> None:
    assert alone([1.0]).tail(SCALE, 0.5) == 1
