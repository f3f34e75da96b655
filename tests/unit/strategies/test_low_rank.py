"""Few queries over many cells with Laplace noise are mixed into rows that weigh less."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.arrays import Reals
from bursar.strategies import low_rank
from bursar.strategies.low_rank import _smoothed, applies, integer_low_rank
from bursar.strategies.measure import pure_error, svd_bound
from bursar.strategies.optimal import for_laplace

VALUES = np.arange(-36.0, 38.0)
ONES = np.ones(len(VALUES))
RANDOM = np.random.default_rng(3)
A_NULL = np.eye(1, 75, 74)[0]

QUERIES: dict[str, Reals] = {
    "average": np.array([37 * ONES, VALUES]),
    "count and average": np.array([np.ones(75), 1 - A_NULL, np.append(VALUES, 0.0)]) * [[37], [37], [1]],
    "deviation": np.array([37**2 * ONES, 37 * VALUES, VALUES**2]),
    "sums": np.rint(100 * RANDOM.random((5, 60))),
    "sets": np.unique(RANDOM.integers(0, 2, (5, 80)), axis=1).astype(float),
}


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", QUERIES)
def test_mixtures_answer_the_queries_and_beat_what_is_made_for_many(name: str) -> None:
    W = QUERIES[name]
    assert applies(W)
    found = integer_low_rank(W, gap=1e-3)
    rows = found.rows.astype(float)
    V = W.T @ W
    assert np.allclose(W @ np.linalg.pinv(rows) @ rows, W, atol=1e-9 * np.abs(W).max())
    assert svd_bound(V) == pytest.approx(found.bound, rel=1e-6)
    assert found.bound <= pure_error(V, rows) <= pure_error(V, for_laplace(V)) * (1 + 1e-9)
    itself = np.abs(W).sum(axis=0).max() * np.sqrt(len(W))
    assert pure_error(V, rows) <= 0.8 * itself


def test_an_average_is_measured_by_what_its_ends_lack() -> None:
    """Every value is a mixture of the least and the greatest: nobody counts more than anybody else."""
    rows = integer_low_rank(QUERIES["average"], gap=1e-3).rows
    assert sorted(rows.tolist()) == sorted([(VALUES + 36).tolist(), (37 - VALUES).tolist()])


def test_few_cells_may_be_measured_themselves() -> None:
    W = np.array([[1, 0, 0, 1, 1, 0, 1], [0, 1, 0, 1, 0, 1, 1], [0, 0, 1, 0, 1, 1, 1]], float)
    V = W.T @ W
    assert pure_error(V, integer_low_rank(W, gap=1e-3).rows) <= pure_error(V, np.eye(7)) * (1 + 1e-9)


def test_the_gradient_is_that_of_the_error() -> None:
    W, M, squares, step = RANDOM.random((3, 9)), RANDOM.random(9), np.array([1.0, 0.5, 0.2]), 1e-6
    _, gradient = _smoothed(M, W, squares, 20.0, 1e-2)
    moved = [[_smoothed(M + sign * step * e, W, squares, 20.0, 1e-2)[0] for sign in (1, -1)] for e in np.eye(9)]
    assert gradient == pytest.approx([(up - down) / (2 * step) for up, down in moved], rel=1e-4, abs=1e-6)


def test_edge_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not applies(np.eye(4))  # as many cells as queries
    assert not applies(np.array([[1.0, 1, 1], [2, 2, 2]]))  # one follows from the other
    assert not applies(np.ones((17, 40)))
    huge = np.array([10**8 * ONES, 10**4 * VALUES + 1, 3 * VALUES**2 + 7 * VALUES])
    assert len(integer_low_rank(huge, gap=1e-3).rows) == 3
    assert np.abs(integer_low_rank(huge, gap=1e-3, bits=28).rows).sum(axis=0).max() <= 2**28
    monkeypatch.setattr(low_rank, "FINEST_BITS", 8)
    assert len(integer_low_rank(huge, gap=2e-3).rows) > 3  # the grid is too coarse for a mixture
