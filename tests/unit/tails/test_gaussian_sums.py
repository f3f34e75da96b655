"""Bounds on very many Gaussian sums together: never below the truth, and close to it where it matters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bursar.core.accounting import Noise, NoiseKind
from bursar.tails import GaussianSums, half_widths, tail

SCALE, DRAWS = 20_000.0, 160
NOISE = Noise(kind=NoiseKind.GAUSSIAN, scale=SCALE)
MATRIX = np.random.default_rng(6).normal(size=(9, DRAWS)) * np.linspace(0.2, 1, 9)[:, None]
SUMS = GaussianSums.of(MATRIX)


@pytest.mark.parametrize("beta", [0.05, 1e-4])
def test_all_sums_together_are_bounded_closely(beta: float) -> None:
    """The inversion is a bound too, at most 2 % above the truth."""
    alpha = float(half_widths(MATRIX, [NOISE] * DRAWS, beta).max())
    each = [tail(row, [NOISE] * DRAWS, alpha) / 1.02 for row in MATRIX]
    assert sum(each) <= SUMS.tail(SCALE, alpha) <= 1.06 * sum(each)
    assert max(each) <= SUMS.largest_tail(SCALE, alpha) <= 1.06 * max(each)
    too_short = replace(SUMS, lengths=0.98 * SUMS.lengths)
    assert too_short.tail(SCALE, alpha) < sum(each)


def test_half_widths_are_those_of_each_sum() -> None:
    widths = SUMS.half_widths(SCALE, 0.05 / 9)
    assert widths == pytest.approx(half_widths(MATRIX, [NOISE] * DRAWS, 0.05), rel=0.01)


def test_the_scale_is_the_largest_that_keeps_the_bound() -> None:
    scale = SUMS.scale_for(50_000.0, 0.05)
    assert SUMS.tail(scale, 50_000.0) <= 0.05 < SUMS.tail(1.001 * scale, 50_000.0)


def test_bounds_are_not_close_for_coarse_noise_or_few_draws() -> None:
    assert SUMS.close_at(SCALE)
    assert not SUMS.close_at(100.0)
    assert not GaussianSums.of(MATRIX[:, :20]).close_at(SCALE)


def test_no_weight_is_no_error() -> None:
    nothing = GaussianSums.of(np.zeros((2, 3)))
    assert nothing.tail(SCALE, 1.0) == nothing.largest_tail(SCALE, 1.0) == 0
    assert np.isinf(nothing.scale_for(1.0, 0.05))
    assert replace(SUMS, off=1.0).scale_for(1e-9, 0.05) == 0
