"""Weights on rows that meet noisy marginals beyond their noise."""

from __future__ import annotations

import numpy as np

from bursar.core.domain import Categories, Domain
from bursar.synthetic.table.fit import FitProgress, Target, cell_numbers, fit_weights, resample

DOMAIN = Domain(
    tuple(
        Categories(name=name, values=tuple(f"{name}{i}" for i in range(size)), outside=0, null=0)
        for name, size in (("a", 3), ("b", 2))
    )
)
CODES = np.array([(i, j) for i in range(3) for j in range(2)] * 5, np.int32)
EQUAL = np.full(30, 20.0)


def target(counts: list[float], least: float) -> Target:
    return Target(columns=("a", "b"), counts=np.array(counts, np.float32), least=least)


def held(weights: np.ndarray) -> np.ndarray:
    return np.bincount(cell_numbers(DOMAIN, CODES, ("a", "b")), weights, minlength=6)


def test_counts_beyond_the_noise_are_met() -> None:
    found = fit_weights(DOMAIN, CODES, EQUAL, [target([300, 60, 60, 60, 60, 60], 5.0)])
    np.testing.assert_allclose(held(found), [300, 60, 60, 60, 60, 60], atol=6)
    np.testing.assert_allclose(found.sum(), EQUAL.sum())


def test_noise_moves_nothing() -> None:
    found = fit_weights(DOMAIN, CODES, EQUAL, [target([110, 90, 120, 80, 95, 105], 21.0)])
    np.testing.assert_allclose(found, EQUAL)


def test_without_a_threshold_noise_moves_weights() -> None:
    """The wrong twin of the last test."""
    found = fit_weights(DOMAIN, CODES, EQUAL, [target([110, 90, 120, 80, 95, 105], 0.0)])
    np.testing.assert_allclose(held(found), [110, 90, 120, 80, 95, 105], atol=1e-3)


def test_progress_and_stop() -> None:
    seen: list[FitProgress] = []
    wanted = [target([300, 60, 60, 60, 60, 60], 5.0)]
    fit_weights(DOMAIN, CODES, EQUAL, wanted, on_step=seen.append)
    assert [step.sweep for step in seen] == list(range(1, len(seen) + 1))
    assert seen[0].excess > seen[-1].excess
    np.testing.assert_array_equal(fit_weights(DOMAIN, CODES, EQUAL, wanted, stop=lambda: True), EQUAL)


def test_an_empty_cell_stays_empty() -> None:
    codes = CODES[CODES[:, 0] != 1]
    found = fit_weights(DOMAIN, codes, np.full(len(codes), 20.0), [target([50, 50, 300, 0, 50, 50], 1.0)])
    assert np.all(np.isfinite(found))


def test_resampled_rows_are_as_many_as_their_weights_say() -> None:
    weights = np.array([1.0, 2.0, 0.0, 3.0, 0.5, 1.5])
    rows = resample(CODES[:6], weights, rows=800, rng=np.random.default_rng(2))
    found = np.bincount(cell_numbers(DOMAIN, rows, ("a", "b")), minlength=6)
    np.testing.assert_allclose(found, 100 * weights, atol=1)
    assert len(resample(CODES[:6], weights, rows=1, rng=np.random.default_rng(2))) == 1
