"""Sums of Gaussian noise of a large scale: bounds in closed form, from both sides, decide without an inversion."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bursar.core.noise.law import Noise, NoiseKind
from bursar.tails import single_tail, sums, tail
from bursar.tails.sums import SMOOTH_SCALE


def gaussian(scale: float) -> Noise:
    return Noise(kind=NoiseKind.GAUSSIAN, scale=scale)


def two_draws(weights: tuple[int, int], scale: float, alpha: float) -> float:
    """Pr[|a X + b Y| > alpha], one mass of X after the other."""
    reach = math.ceil(9.5 * scale)
    x = np.arange(-reach, reach + 1)
    mass = np.exp(-(x**2) / (2 * scale**2))
    mass /= mass.sum()
    above = np.append(np.cumsum(mass[::-1])[::-1], 0.0)  # Pr[Y >= y]
    a, b = weights
    first = np.floor((alpha - a * x) / b).astype(int) + 1
    return 2 * float(mass @ above[np.clip(first + reach, 0, len(x))])


@pytest.mark.parametrize("scale", [SMOOTH_SCALE, 2500.0])
@pytest.mark.parametrize("times", [0.5, 2.0, 3.3])
def test_one_draw_lies_between(scale: float, times: float) -> None:
    noise = gaussian(scale)
    alpha = round(times * scale) - 0.001
    truth = single_tail(noise, alpha)
    least, most = sums._of_smooth_draws(np.array([[1.0]]), [noise], alpha)
    assert least < truth < most
    assert most - least < 0.05 * truth
    assert math.erfc(alpha / (math.sqrt(2) * math.hypot(scale, 1.0))) < truth  # the normal law alone is no bound


@pytest.mark.parametrize("weights", [(1, 1), (3, 2), (5, 1)])
def test_two_draws_lie_between(weights: tuple[int, int]) -> None:
    alpha = 2.5 * SMOOTH_SCALE * math.hypot(*weights)
    truth = two_draws(weights, SMOOTH_SCALE, alpha)
    least, most = sums._of_smooth_draws(np.array([weights], float), [gaussian(SMOOTH_SCALE)] * 2, alpha)
    assert least < truth < most
    assert most - least < 0.05 * truth


def test_rows_are_added_up_and_no_other_noise_is_looked_at() -> None:
    matrix, noises = np.array([[1.0, 0.0], [0.5, -2.0]]), [gaussian(1e5), gaussian(2e5)]
    apart = [sums._of_smooth_draws(row[None], noises, 4e5) for row in matrix]
    assert sums._of_smooth_draws(matrix, noises, 4e5) == pytest.approx(np.sum(apart, axis=0))
    for other in (gaussian(SMOOTH_SCALE / 2), Noise(kind=NoiseKind.LAPLACE, scale=1e5)):
        assert sums._of_smooth_draws(matrix, [noises[0], other], 4e5) == (0.0, 1.0)


def test_nothing_is_inverted_and_the_verdict_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    weights, noises = np.random.default_rng(1).normal(size=(6, 9)) / 1e4, [gaussian(9e4)] * 9
    inverted = sum(tail([row], noises, 90.0) for row in weights)
    monkeypatch.setattr(sums._Rows, "tail", lambda *given: pytest.fail("inverted"))
    assert tail(weights, noises, 90.0, 0.95 * inverted) > 0.95 * inverted
    assert tail(weights, noises, 90.0, inverted) <= inverted
