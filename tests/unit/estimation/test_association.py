"""Covariance, correlation and the line of least squares: their intervals hold whenever the bars of the sums do."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.estimation.association import Associated, Association
from bursar.estimation.derived import Box

CENTRES = (5.0, 10.0)


def _form(kind: Associated) -> Association:
    return Association(
        kind=kind,
        columns=tuple(range(6)),
        units=(1.0,) * 6,
        steps=(1.0,) * 6,
        centres=CENTRES,
        widths=(10.0, 20.0),
    )


def _sums(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    a, b = x - CENTRES[0], y - CENTRES[1]
    return np.array([len(x), a.sum(), b.sum(), (a * b).sum(), (a * a).sum(), (b * b).sum()], np.float64)


def _truth(kind: Associated, x: np.ndarray, y: np.ndarray) -> float:
    covariance = float(np.mean(x * y) - np.mean(x) * np.mean(y))
    match kind:
        case Associated.COVAR_POP:
            return covariance
        case Associated.COVAR_SAMP:
            return covariance * len(x) / (len(x) - 1)
        case Associated.CORR:
            return covariance / float(np.std(x) * np.std(y))
        case Associated.REGR_SLOPE:
            return covariance / float(np.var(x))
        case Associated.REGR_INTERCEPT:
            return float(np.mean(y)) - covariance / float(np.var(x)) * float(np.mean(x))
    return (covariance / float(np.std(x) * np.std(y))) ** 2


def _missed(kind: Associated, narrower: float) -> int:
    """How often the truth is outside, of sums that are off by less than their bars."""
    generator, missed = np.random.default_rng(11), 0
    for _ in range(200):
        x = generator.integers(0, 11, 60).astype(np.float64)
        y = np.clip(x + generator.integers(0, 11, 60), 0, 20).astype(np.float64)
        exact = _sums(x, y)
        widths = generator.uniform(0.5, 1.0, 6) * np.array([2.0, 6.0, 6.0, 40.0, 40.0, 40.0])
        value = exact + generator.choice([-0.999, 0.999], 6) * widths
        box = Box(value[None], (value - narrower * widths)[None], (value + narrower * widths)[None])
        derived = _form(kind).of(box)
        truth = _truth(kind, x, y)
        missed += not derived.low[0] - 1e-9 <= truth <= derived.high[0] + 1e-9
    return missed


@pytest.mark.thinned(3)
@pytest.mark.parametrize("kind", Associated)
def test_the_truth_is_within_the_interval(kind: Associated) -> None:
    assert _missed(kind, 1.0) == 0


@pytest.mark.thinned(3)
@pytest.mark.parametrize("kind", Associated)
def test_bars_that_are_too_narrow_miss_it(kind: Associated) -> None:
    """The twin: bars of a tenth."""
    assert _missed(kind, 0.1) > 0


@pytest.mark.parametrize("kind", Associated)
def test_without_noise_it_is_the_truth(kind: Associated) -> None:
    x, y = np.array([1.0, 2.0, 4.0, 9.0]), np.array([3.0, 2.0, 9.0, 12.0])
    sums = _sums(x, y)[None]
    assert _form(kind).of(Box(sums, sums, sums)).value[0] == pytest.approx(_truth(kind, x, y))


def test_nobody_has_no_correlation() -> None:
    nothing = np.zeros((1, 6))
    derived = _form(Associated.CORR).of(Box(nothing, nothing, nothing))
    assert np.isnan(derived.value[0])
    assert (derived.low[0], derived.high[0]) == (-1.0, 1.0)
