"""Weights that least squares has rounded differently are one weight: the same bound, found sooner, still a bound."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.core.noise.law import Noise, NoiseKind
from bursar.tails import half_widths, tail
from bursar.tails.inversion import Inversion, NearLattice
from bursar.tails.sums import _alike

LAPLACE = [Noise(kind=NoiseKind.LAPLACE, scale=2.5)] * 24
GAUSSIAN = [Noise(kind=NoiseKind.GAUSSIAN, scale=3.5)] * 24
THRESHOLDS = (8.0, 15.0, 30.0)


def weights(spread: float, seed: int = 0) -> np.ndarray:
    """Sixteen times .873, eight times .127, all of them a little off."""
    rng = np.random.default_rng(seed)
    return np.repeat([0.873, 0.127], [16, 8]) * (1.0 + spread * rng.uniform(-1.0, 1.0, 24))


@pytest.mark.parametrize("noises", [LAPLACE, GAUSSIAN], ids=["laplace", "gaussian"])
def test_bounds_are_those_of_equal_weights(noises: list[Noise]) -> None:
    nearly, equal = weights(1e-14), weights(0.0)
    assert _alike(nearly) is not None
    for alpha in THRESHOLDS:
        assert tail(nearly, noises, alpha) == pytest.approx(tail(equal, noises, alpha), rel=1e-7)
    assert half_widths([nearly], noises, 0.01) == pytest.approx(half_widths([equal], noises, 0.01), rel=1e-7)


@pytest.mark.parametrize("noises", [LAPLACE, GAUSSIAN], ids=["laplace", "gaussian"])
def test_bounds_are_not_below_those_of_the_weights_as_they_are(
    noises: list[Noise], monkeypatch: pytest.MonkeyPatch
) -> None:
    nearly = weights(2.0**-37)
    found = [tail(nearly, noises, alpha) for alpha in THRESHOLDS], half_widths([nearly], noises, 0.01)
    monkeypatch.setattr("bursar.tails.sums._alike", lambda weights: None)
    apart = [tail(nearly, noises, alpha) for alpha in THRESHOLDS], half_widths([nearly], noises, 0.01)
    for short, plain in zip(found, apart, strict=True):
        assert np.all(np.array(short) >= np.array(plain) * (1 - 1e-12))
        assert np.array(short) == pytest.approx(np.array(plain), rel=1e-7)


def test_weights_shortened_too_far_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = tail(weights(1e-2), LAPLACE, 15.0)
    monkeypatch.setattr("bursar.tails.sums.SHORT_WEIGHT_BITS", 4)
    assert tail(weights(1e-2), LAPLACE, 15.0) != pytest.approx(expected, rel=1e-3)


def test_different_weights_stay_apart() -> None:
    assert _alike(weights(1e-9)) is None
    whole = np.arange(1.0, 9.0)
    assert _alike(whole) is None


def test_short_weights_are_close_and_whole_ones_exact() -> None:
    some = np.concatenate([weights(1e-14), [3.0, 0.75, 0.0]])
    short = _alike(some)
    assert short is not None
    assert np.all(np.abs(short - some) <= 2.0**-36 * some)
    assert short[-3:].tolist() == [3.0, 0.75, 0.0]


def test_a_sum_has_as_many_terms_as_different_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    terms: list[int] = []
    of = Inversion.of
    monkeypatch.setattr(
        Inversion, "of", staticmethod(lambda row, *more: (terms.append(row.distinct()), of(row, *more))[1])
    )
    tail(weights(3e-15, seed=1), LAPLACE, 21.0)
    assert terms == [2]


def test_a_threshold_that_is_not_lowered_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights a hair above 1 carry a sum of 40 beyond 40; those of exactly 1 do not."""
    monkeypatch.setattr(NearLattice, "of", lambda *given: None)
    above = 1.0 + 2.0**-38 * np.linspace(0.5, 1.0, 24)
    truth = tail(np.ones(24), LAPLACE, 39.5)
    assert _alike(above) is not None
    assert tail(above, LAPLACE, 40.0) == pytest.approx(truth, rel=1e-3)
    monkeypatch.setattr("bursar.tails.sums.ALIKE_SHIFT", 2.0**-60)
    assert tail(above, LAPLACE, 40.0) < 0.99 * truth
