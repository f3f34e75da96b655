"""The saddlepoint is where the exact tails say that the threshold is, to four per cent."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.inference.saddle import near_threshold
from bursar.inference.tails import tail
from bursar.kernel.accounting import Noise, NoiseKind

SHAPES = {
    "one draw": np.ones((1, 1)),
    "equal": np.ones((4, 9)),
    "one large": np.array([[1.0, 0.1, 0.1, 0.1], [0.2, 0.2, 0.0, 0.0]]),
    "uneven": np.random.default_rng(0).exponential(size=(6, 12)),
}


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
