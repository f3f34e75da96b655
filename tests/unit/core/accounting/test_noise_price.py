"""Noise: which scales there are, what they cost, how much they vary."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bursar.core.accounting import Noise, NoiseKind
from bursar.core.noise.law import LARGEST_SCALE, SMALLEST_SCALE, UNIT_BITS
from bursar.errors import GoalError

scales = st.floats(min_value=SMALLEST_SCALE, max_value=LARGEST_SCALE)
UNIT = 2**UNIT_BITS


@given(scales, st.sampled_from(NoiseKind))
def test_prices_are_rounded_up_by_less_than_one_unit(scale: float, kind: NoiseKind) -> None:
    noise = Noise(kind=kind, scale=scale)
    pure, concentrated = 1 / Fraction(scale), 1 / (2 * Fraction(scale) ** 2)
    assert pure <= Fraction(noise.pure_units(), UNIT) < pure + Fraction(1, UNIT)
    assert concentrated <= Fraction(noise.concentrated_units(), UNIT) < concentrated + Fraction(1, UNIT)
    for finer in (10, 60):
        unit = UNIT << finer
        for k in (1, 7, 10**6):
            k_pure, k_concentrated = k * pure, k**2 * concentrated
            assert k_pure <= Fraction(noise.pure_units(change=k, finer=finer), unit) < k_pure + Fraction(1, unit)
            found = Fraction(noise.concentrated_units(change=k, finer=finer), unit)
            assert k_concentrated <= found < k_concentrated + Fraction(1, unit)


def test_prices_by_hand() -> None:
    assert Noise(kind=NoiseKind.LAPLACE, scale=1.0).pure_units() == UNIT
    assert Noise(kind=NoiseKind.LAPLACE, scale=4.0).pure_units() == UNIT // 4
    assert Noise(kind=NoiseKind.GAUSSIAN, scale=2.0).concentrated_units() == UNIT // 8
    assert Noise(kind=NoiseKind.LAPLACE, scale=3.0).pure_units() == UNIT // 3 + 1
    assert Noise(kind=NoiseKind.GAUSSIAN, scale=LARGEST_SCALE).concentrated_units() == 1  # never free


@pytest.mark.parametrize("kind", NoiseKind)
@pytest.mark.parametrize("scale", [0.3, 1.0, 2.5, 20.0])
def test_the_price_is_the_worst_ratio_of_two_shifted_laws(kind: NoiseKind, scale: float) -> None:
    """The masses themselves: log ratio at most s/b for Laplace, Renyi divergence at most order s^2/(2 sigma^2)."""
    noise = Noise(kind=kind, scale=scale)
    x = np.arange(-3000, 3001)
    for shift in (1, 2, 5):
        if kind is NoiseKind.LAPLACE:
            ratio = np.abs(np.abs(x - shift) - np.abs(x)).max() / scale
            assert ratio <= shift * noise.pure_units() / UNIT
            assert ratio > 0.999 * shift * noise.pure_units() / UNIT
        log_p = -np.abs(x) / scale if kind is NoiseKind.LAPLACE else -(x**2) / (2 * scale**2)
        log_q = np.roll(log_p, shift)
        log_q[:shift] = -np.inf
        keep = np.isfinite(log_q)
        weight = log_p - np.logaddexp.reduce(log_p)
        other = log_q - np.logaddexp.reduce(log_q[keep])
        for order in (1.5, 2.0, 8.0):
            terms = order * weight[keep] + (1 - order) * other[keep]
            divergence = np.logaddexp.reduce(terms) / (order - 1)
            assert divergence <= order * shift**2 * noise.concentrated_units() / UNIT * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize("scale", [0.1, 0.5, 1.0, 3.0, 25.0])
def test_the_variance_of_laplace_is_exact_and_of_the_gaussian_never_too_low(scale: float) -> None:
    x = np.arange(-4000, 4001, dtype=float)
    for kind, weight in ((NoiseKind.LAPLACE, np.abs(x) / scale), (NoiseKind.GAUSSIAN, x**2 / (2 * scale**2))):
        mass = np.exp(-weight) / np.exp(-weight).sum()
        real = float((x**2 * mass).sum())
        claimed = Noise(kind=kind, scale=scale).variance()
        if kind is NoiseKind.LAPLACE:
            assert claimed == pytest.approx(real, rel=1e-9)
        else:
            assert real <= claimed * (1 + 1e-12)
            assert scale < 1 or claimed == pytest.approx(real, rel=1e-6)


def test_the_variance_of_very_wide_laplace_does_not_cancel() -> None:
    wide = Noise(kind=NoiseKind.LAPLACE, scale=LARGEST_SCALE).variance()
    assert wide == pytest.approx(2 * LARGEST_SCALE**2, rel=1e-9)


@pytest.mark.parametrize(
    "scale",
    [0.0, -1.0, math.nan, math.inf, -math.inf, 2.0**-7, 2.0**41, math.nextafter(LARGEST_SCALE, math.inf), 1, "1"],
)
def test_scales_that_are_none_are_refused(scale: object) -> None:
    with pytest.raises(GoalError, match="scale"):
        Noise(kind=NoiseKind.LAPLACE, scale=scale)


def test_the_ends_of_the_range_are_in_it() -> None:
    assert Noise(kind=NoiseKind.GAUSSIAN, scale=SMALLEST_SCALE).concentrated_units() == UNIT * 2**11
    assert Noise(kind=NoiseKind.LAPLACE, scale=np.float64(2.0)).pure_units() == UNIT // 2
