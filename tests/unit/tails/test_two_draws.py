"""The tail of two Laplace draws in closed form, against adding up all pairs."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.core.noise.law import SMALLEST_SCALE, Noise, NoiseKind
from bursar.tails import pair_tail, tail

REACH = 6000


def laplace(scale: float) -> Noise:
    return Noise(kind=NoiseKind.LAPLACE, scale=scale)


def masses(scale: float) -> np.ndarray:
    mass = np.exp(-np.abs(np.arange(-REACH, REACH + 1)) / scale)
    return mass / mass.sum()


@pytest.mark.parametrize(
    ("first", "second", "k"),
    [(1.0, 1.2, 1), (1.2, 1.0, 7), (0.3, 0.36, 2), (10.0, 10.2, 50), (50.0, 60.0, 300), (3.0, 100.0, 500)],
)
def test_it_is_the_sum_over_all_pairs(first: float, second: float, k: int) -> None:
    pairs = np.convolve(masses(first), masses(second))
    truth = float(pairs[2 * REACH + k :].sum())
    found = pair_tail(laplace(first), laplace(second), k)
    assert found == pytest.approx(truth, rel=1e-8)
    assert found >= (1 - 1e-11) * truth
    one_step_off = float(pairs[2 * REACH + k + 1 :].sum())
    assert found != pytest.approx(one_step_off, rel=1e-3)


@pytest.mark.parametrize("scale", [SMALLEST_SCALE, 1e5, 2.0**39])
def test_it_agrees_with_the_bound_by_inversion_at_extreme_scales(scale: float) -> None:
    noises = [laplace(scale), laplace(1.2 * scale)]
    k = max(1, int(5 * scale))
    found = pair_tail(noises[0], noises[1], k)
    assert found is not None
    assert found <= tail([1.0, 1.0], noises, k - 1) / 2 <= 1.03 * found


def test_there_is_no_closed_form_for_nearly_equal_scales_and_for_gaussian_noise() -> None:
    assert pair_tail(laplace(3.0), laplace(3.0), 5) is None
    assert pair_tail(laplace(3.0), laplace(3.02), 5) is None
    assert pair_tail(laplace(3.0), Noise(kind=NoiseKind.GAUSSIAN, scale=9.0), 5) is None


def test_it_is_never_zero() -> None:
    found = pair_tail(laplace(1.0), laplace(2.0), 10**6)
    assert found is not None
    assert 0 < found < 1e-300
