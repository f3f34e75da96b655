"""Sums of noise that is nearly always zero: bounds from both sides decide without an inversion."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from bursar.core.noise.law import Noise, NoiseKind
from bursar.tails import sums
from bursar.tails.sums import tail

REACH = 4


def mass(noise: Noise) -> np.ndarray:
    x = np.arange(-60, 61)
    weights = np.exp(-np.abs(x) / noise.scale if noise.kind is NoiseKind.LAPLACE else -(x**2) / (2 * noise.scale**2))
    return weights / weights.sum()


def truth(weights: Sequence[float], noises: Sequence[Noise], alpha: float) -> tuple[float, float]:
    """Pr[|S| > alpha] between two bounds: every draw up to `REACH` is looked at, and what is left out."""
    near = [mass(noise)[60 - REACH : 61 + REACH] for noise in noises]
    found = 0.0
    for draws in itertools.product(range(-REACH, REACH + 1), repeat=len(noises)):
        if abs(sum(weight * x for weight, x in zip(weights, draws, strict=True))) > alpha:
            found += float(np.prod([each[x + REACH] for each, x in zip(near, draws, strict=True)]))
    return found, found + sum(1 - float(each.sum()) for each in near)


@pytest.mark.parametrize("kind", list(NoiseKind))
@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0, 2.0, 3.5])
def test_the_bounds_hold(kind: NoiseKind, alpha: float) -> None:
    rare, also = Noise(kind=kind, scale=0.3), Noise(kind=kind, scale=0.25)
    for weights in ([1.0, -1.0, 2.0], [5.0, 3.0, 4.0], [0.3, 2.5, 0.0], [1.0, 0.5, 0.25]):
        noises = [rare, rare, also]
        least, most = sums._of_rare_draws(np.array([weights]), noises, alpha)
        low, high = truth(weights, noises, alpha)
        assert least <= high * (1 + 1e-12)
        assert low <= most


@pytest.mark.parametrize("weights", [[1.0, 0.1], [3.0, 0.1], [1.0, 0.02]])
def test_they_hold_beside_draws_that_are_not_rare(weights: list[float]) -> None:
    rare, common = Noise(kind=NoiseKind.LAPLACE, scale=0.2), Noise(kind=NoiseKind.LAPLACE, scale=0.45)
    for alpha in (0.35, 0.45, 0.95):
        least, most = sums._of_rare_draws(np.array([weights]), [rare, common], alpha)
        low, high = truth(weights, [rare, common], alpha)
        assert least <= high * (1 + 1e-12)
        assert low <= most
    ahead = 2 * float(mass(rare)[61:].sum())
    assert truth([1.0, 0.1], [rare, common], 0.95)[0] < 0.95 * ahead  # a weight above alpha is not enough beside others


def test_they_are_near_to_each_other_where_noise_is_small() -> None:
    noises = [Noise(kind=NoiseKind.LAPLACE, scale=1 / 6)] * 3
    least, most = sums._of_rare_draws(np.array([[3.0, 4.0, 5.0]]), noises, 0.1)
    assert 0.98 * most < least <= most < 0.02


def test_they_say_nothing_where_noise_is_not_small() -> None:
    assert sums._of_rare_draws(np.array([[1.0]]), [Noise(kind=NoiseKind.LAPLACE, scale=5.0)], 3.0) == (0.0, 1.0)


@pytest.mark.parametrize("beside", [False, True])
def test_nothing_is_inverted_and_the_verdict_is_the_same(beside: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside it a row of much noise and next to no weight, as least squares makes of a coarse total."""
    weights = np.array([[3.0, 4.0, 5.0, 1e-7 * beside], [5.0, 3.0, 1.0, 1e-7 * beside]])
    noises = [*[Noise(kind=NoiseKind.LAPLACE, scale=1 / 6)] * 3, Noise(kind=NoiseKind.LAPLACE, scale=500.0)]
    inverted = sum(tail([row], noises, 0.01) for row in weights)
    monkeypatch.setattr(sums._Rows, "tail", lambda *given: pytest.fail("inverted"))
    assert tail(weights, noises, 0.01, 0.97 * inverted) > 0.97 * inverted
    assert tail(weights, noises, 0.01, 1.03 * inverted) <= 1.03 * inverted
