"""The first rows of a synthetic table: a tree of pairs that stand out from the noise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bursar.core.domain import Categories, Domain
from bursar.synthetic.marginals.estimates import Consistent
from bursar.synthetic.marginals.evidence import LogEvidence, MarginalSource, Names
from bursar.synthetic.table.fit import column_shares, dispersion, pair_shares, sample_tree, threshold

SIZES = {"a": 3, "b": 3, "c": 2, "d": 1}
DOMAIN = Domain(
    tuple(
        Categories(name=name, values=tuple(f"{name}{i}" for i in range(size)), outside=0, null=0)
        for name, size in SIZES.items()
    )
)
PAIRS = [("a", "b"), ("a", "c"), ("b", "c")]


def known(tables: dict[Names, np.ndarray], variance: float = 1.0) -> Consistent:
    made = [
        LogEvidence(
            source=MarginalSource(columns=columns, variance=variance, heavy=False), table=np.asarray(table, np.int64)
        )
        for columns, table in tables.items()
    ]
    return Consistent(DOMAIN, made, size=900)


DEPENDENT = known(
    {
        ("a", "b"): np.diag([300, 300, 300]),
        ("a", "c"): np.array([[200, 100], [150, 150], [100, 200]]),
        ("b", "c"): np.full((3, 2), 150),
    }
)


def test_noise_seldom_reaches_the_threshold() -> None:
    """Of N Gaussian draws about one in 2 sqrt(pi log N) runs; a lower threshold lets noise through every time."""
    draws = np.random.default_rng(4).normal(0, 3, (100, 10_000))
    reached = np.abs(draws).max(axis=1)
    assert np.mean(reached > threshold(9.0, 10_000, heavy=False)) < 0.4
    assert np.mean(reached > 0.7 * threshold(9.0, 10_000, heavy=False)) == 1.0
    assert threshold(2.0, 10_000, heavy=True) == pytest.approx(math.log(10_000))


@pytest.mark.parametrize("spread", [0.0, 0.5, 20.0])
def test_the_likeliest_dispersion_is_near_the_true_one(spread: float) -> None:
    """Over 100,000 cells within a tenth; the wrong twin forgets the noise and is far above it where that is all.

    The likelihood's curvature at t = .5 and 20 gives standard deviations of 1.7 and .6 per cent, and at 0 one of .003,
    beside steps of 21 per cent of which the nearer one is taken.
    """
    rng = np.random.default_rng(5)
    expected = rng.gamma(0.5, 40.0, 100_000) + 0.01
    difference = rng.normal(0, np.sqrt(25 + spread * expected))
    found = dispersion(difference, expected, 25.0)
    assert found == pytest.approx(spread, rel=0.25, abs=0.03)
    assert dispersion(difference, expected, 1.0) > spread + 0.3


def test_without_noise_everything_is_believed() -> None:
    assert math.isinf(dispersion(np.array([1.0, -1.0]), np.array([5.0, 5.0]), 0.0))
    assert dispersion(np.array([1.0, -1.0]), np.zeros(2), 1.0) == 0.0


def test_shares_of_columns() -> None:
    shares = column_shares(DEPENDENT)
    np.testing.assert_allclose(shares["a"], np.full(3, 1 / 3))
    np.testing.assert_allclose(shares["d"], [1.0])
    nothing = column_shares(Consistent(DOMAIN, [], size=None))
    np.testing.assert_allclose(nothing["c"], [0.5, 0.5])


def test_pairs_count_only_where_they_stand_out() -> None:
    pairs = pair_shares(DEPENDENT, PAIRS, column_shares(DEPENDENT))
    assert [pair.columns for pair in pairs] == [("a", "b"), ("a", "c")]
    np.testing.assert_allclose(pairs[0].shares.sum(axis=1), np.full(3, 1 / 3), atol=1e-9)
    drowned = known({("a", "b"): np.diag([300, 300, 300])}, variance=300.0**2)
    assert pair_shares(drowned, PAIRS, column_shares(drowned)) == []


def test_rows_follow_the_tree() -> None:
    shares = column_shares(DEPENDENT)
    rng = np.random.default_rng(1)
    rows = sample_tree(DOMAIN, shares, pair_shares(DEPENDENT, PAIRS, shares), rows=9_000, rng=rng)
    assert rows.shape == (9_000, 4)
    assert np.mean(rows[:, 0] == rows[:, 1]) > 0.99
    np.testing.assert_allclose(np.bincount(rows[rows[:, 0] == 0, 2]), [2_000, 1_000], atol=30)
    alone = sample_tree(DOMAIN, shares, (), rows=9_000, rng=rng)
    assert np.mean(alone[:, 0] == alone[:, 1]) == pytest.approx(1 / 3, abs=0.05)  # 10 standard deviations
