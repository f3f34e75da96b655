"""Weights on rows that follow noisy marginals as far as these stand out from their noise."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.core.domain import Categories, Domain
from bursar.synthetic.table.fit import FitProgress, Target, cell_numbers, fit_weights, penalised_target, resample

DOMAIN = Domain(
    tuple(
        Categories(name=name, values=tuple(f"{name}{i}" for i in range(size)), outside=0, null=0)
        for name, size in (("a", 3), ("b", 2))
    )
)
CODES = np.array([(i, j) for i in range(3) for j in range(2)] * 5, np.int32)
EQUAL = np.full(30, 20.0)


COUNTS = [300.0, 60.0, 60.0, 60.0, 60.0, 60.0]
NOISE_ALONE = [110.0, 90.0, 120.0, 80.0, 95.0, 105.0]


def target(counts: list[float], penalty: float | np.ndarray) -> Target:
    return Target(columns=("a", "b"), counts=np.array(counts, np.float32), penalty=penalty)


def held(weights: np.ndarray) -> np.ndarray:
    return np.bincount(cell_numbers(DOMAIN, CODES, ("a", "b")), weights, minlength=6)


@pytest.mark.parametrize("penalty", [0.0, 1e-6])
def test_counts_without_a_penalty_are_met(penalty: float) -> None:
    found = fit_weights(DOMAIN, CODES, EQUAL, [target(COUNTS, penalty)])
    np.testing.assert_allclose(held(found), COUNTS, rtol=1e-3)
    np.testing.assert_allclose(found.sum(), EQUAL.sum())


@pytest.mark.parametrize("penalty", [30.0, 300.0])
def test_the_fit_is_where_the_gradient_vanishes(penalty: float) -> None:
    """log(w / w_0) = (y - M w) / c for one marginal, up to the constant that keeps the sum; not so for another c."""
    wanted = target(COUNTS, penalty)
    everybody = Target(columns=(), counts=np.array([600], np.float32), penalty=0.0)
    found = held(fit_weights(DOMAIN, CODES, EQUAL, [wanted, everybody]))
    left = wanted.counts - found
    assert np.ptp(np.log(found / 100) - left / penalty) < 0.02
    assert np.ptp(np.log(found / 100) - left / (2 * penalty)) > 0.1


def test_two_marginals_are_fitted_together() -> None:
    """At the optimum theta is the sum of both marginals' terms, whichever comes first."""
    rows = Target(columns=("a",), counts=np.array([150, 250, 200], np.float32), penalty=40.0)
    ways = [
        fit_weights(DOMAIN, CODES, EQUAL, both) for both in ([rows, target(COUNTS, 60.0)], [target(COUNTS, 60.0), rows])
    ]
    np.testing.assert_allclose(held(ways[0]), held(ways[1]), rtol=2e-3)


def test_noise_alone_has_no_target_and_what_stands_out_has_one() -> None:
    """The wrong twin takes the noise for a tenth of what it is, and believes it."""
    assert penalised_target(("a", "b"), np.array(NOISE_ALONE), held(EQUAL), 15.0**2) is None
    assert penalised_target(("a", "b"), np.array(NOISE_ALONE), held(EQUAL), 1.5**2) is not None
    seen = penalised_target(("a", "b"), np.array(COUNTS), held(EQUAL), 15.0**2)
    assert seen is not None
    assert held(fit_weights(DOMAIN, CODES, EQUAL, [seen]))[0] > 270


def test_counts_that_are_not_known_move_nothing() -> None:
    penalty = np.array([1.0, *[np.inf] * 5])
    found = held(fit_weights(DOMAIN, CODES, EQUAL, [target([300, 0, 0, 0, 0, 0], penalty)]))
    np.testing.assert_allclose(found[1:], found[1])
    assert found[0] > 2 * found[1]


def test_a_negative_count_empties_its_cell() -> None:
    found = held(fit_weights(DOMAIN, CODES, EQUAL, [target([-50.0, 130, 130, 130, 130, 130], 1.0)]))
    assert 0 <= found[0] < 1e-3


def test_progress_and_stop() -> None:
    seen: list[FitProgress] = []
    wanted = [target(COUNTS, 5.0)]
    fit_weights(DOMAIN, CODES, EQUAL, wanted, on_step=seen.append)
    assert [step.sweep for step in seen] == list(range(1, len(seen) + 1))
    assert seen[0].moved > seen[-1].moved
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


def test_rounding_keeps_marginals() -> None:
    """20,000 weights below one: the errors of two marginals together, against those of plain sampling, the twin."""
    rng = np.random.default_rng(6)
    codes = np.stack([rng.integers(0, 40, 20_000), rng.integers(0, 30, 20_000)], axis=1).astype(np.int32)
    weights = rng.gamma(0.5, 0.4, 20_000)
    marginals = [codes[:, 1].astype(np.int64), (7 * codes[:, 0] + codes[:, 1] % 7).astype(np.int64)]
    rows = 4_000

    def squares(table: np.ndarray) -> float:
        held = [table[:, 1], 7 * table[:, 0] + table[:, 1] % 7]
        return sum(
            float(np.square(np.bincount(made) - np.bincount(cells, weights) * (rows / weights.sum())).sum())
            for made, cells in zip(held, marginals, strict=True)
        )

    kept = resample(codes, weights, rows=rows, rng=np.random.default_rng(7), marginals=marginals)
    plain = resample(codes, weights, rows=rows, rng=np.random.default_rng(7))
    assert len(kept) == len(plain) == rows
    assert squares(kept) < squares(plain) / 3
