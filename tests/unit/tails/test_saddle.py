"""The saddlepoint is where the exact tails say that the threshold is, to four per cent."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.core.accounting import Noise, NoiseKind
from bursar.tails import near_tails, near_threshold, tail

SHAPES = {
    "one draw": np.ones((1, 1)),
    "equal": np.ones((4, 9)),
    "one large": np.array([[1.0, 0.1, 0.1, 0.1], [0.2, 0.2, 0.0, 0.0]]),
    "uneven": np.random.default_rng(0).exponential(size=(6, 12)),
}


@pytest.mark.thinned(3)
@pytest.mark.parametrize("kind", NoiseKind)
@pytest.mark.parametrize("beta", [0.2, 0.05, 1e-5])
@pytest.mark.parametrize("weights", SHAPES.values(), ids=SHAPES)
def test_the_threshold_is_right_to_four_per_cent(weights: np.ndarray, kind: NoiseKind, beta: float) -> None:
    scale = 1000.0
    found = near_threshold(weights * scale, kind, beta)
    noises = [Noise(kind=kind, scale=scale)] * weights.shape[1]
    above, below = (sum(tail(row, noises, share * found) for row in weights) for share in (1.04, 0.96))
    assert above < beta < below


def test_nothing_uncertain_has_the_threshold_zero() -> None:
    assert near_threshold(np.zeros((3, 2)), NoiseKind.GAUSSIAN, 0.05) == 0.0
    with_zeros = np.concatenate([np.zeros((1, 4)), np.ones((1, 4))])
    assert near_threshold(with_zeros, NoiseKind.LAPLACE, 0.05) == near_threshold(
        np.ones((1, 4)), NoiseKind.LAPLACE, 0.05
    )


@pytest.mark.parametrize("kind", NoiseKind)
@pytest.mark.parametrize("weights", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("height", [1.5, 3.0, 6.0])
def test_tails_are_right_to_five_per_cent(weights: np.ndarray, kind: NoiseKind, height: float) -> None:
    scale = 1000.0
    noise = Noise(kind=kind, scale=scale)
    spreads = np.sqrt(np.square(weights).sum(axis=1) * noise.variance())
    found = near_tails(weights * scale, kind, height * spreads)
    exact = [tail(row, [noise] * len(row), height * spread) for row, spread in zip(weights, spreads, strict=True)]
    assert found == pytest.approx(exact, rel=0.05)


@pytest.mark.parametrize("kind", NoiseKind)
@pytest.mark.parametrize("beta", [0.9999999, 0.999, 0.7])
def test_hardly_any_confidence_divides_nothing_by_zero(kind: NoiseKind, beta: float) -> None:
    with np.errstate(divide="raise", invalid="raise", over="raise"):
        for weights in SHAPES.values():
            assert 0 < near_threshold(weights, kind, beta) < 30
        assert near_tails(np.ones((2, 3)), kind, np.array([1e-12, 1e-3])) == pytest.approx([1.0, 1.0], rel=1e-2)


@pytest.mark.parametrize("kind", NoiseKind)
@pytest.mark.parametrize("scale", [1.0, 4.6e-18])
def test_what_is_too_far_out_has_next_to_no_tail(kind: NoiseKind, scale: float) -> None:
    for draws in (1, 4, 300):
        assert near_tails(np.full((1, draws), scale), kind, np.array([1e17 * scale]))[0] < 1e-200


def test_a_row_without_noise_has_no_tail() -> None:
    assert near_tails(np.array([[0.0], [1.0]]), NoiseKind.LAPLACE, np.array([1.0, 1.0]))[0] == 0
