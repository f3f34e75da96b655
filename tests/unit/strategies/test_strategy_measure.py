"""The error of a strategy, the bound under all of them, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bursar.errors import QueryError
from bursar.strategies.measure import LARGEST_DENSE, checked_gram, pure_error, ratio, rms_error, sensitivity, svd_bound


def workload(seed: int, rows: int, cells: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-2, 3, (rows, cells)).astype(float)


def test_the_error_is_that_of_least_squares() -> None:
    W, A = workload(1, 7, 5), workload(2, 9, 5)
    by_hand = np.linalg.norm(A, axis=0).max() * np.linalg.norm(W @ np.linalg.pinv(A))
    assert rms_error(W.T @ W, A) == pytest.approx(by_hand, rel=1e-12)
    assert pure_error(W.T @ W, A) == pytest.approx(by_hand * sensitivity(A, 1) / sensitivity(A), rel=1e-12)


def test_a_strategy_of_low_rank_answers_its_row_space_and_nothing_else() -> None:
    A = np.array([[1.0, 1, 0], [0, 1, 1]])
    inside, outside = np.array([[1.0, 2, 1]]), np.array([[1.0, 0, 0]])
    assert rms_error(inside.T @ inside, A) == pytest.approx(math.sqrt(2 * 2))
    assert rms_error(outside.T @ outside, A) == math.inf
    assert rms_error(outside.T @ outside, np.zeros((0, 3))) == math.inf


def test_nothing_asked_is_answered_without_error() -> None:
    assert rms_error(np.zeros((3, 3)), np.eye(3)) == 0
    assert rms_error(np.zeros((3, 3)), np.zeros((0, 3))) == 0
    assert svd_bound(np.zeros((3, 3))) == 0
    assert ratio(np.zeros((3, 3)), np.eye(3)) == 1


def test_the_bound_is_met_by_the_identity_for_the_identity() -> None:
    assert ratio(np.eye(6), np.eye(6)) == pytest.approx(1)


def test_zero_eigenvalues_add_nothing_to_the_bound() -> None:
    rank_one = np.ones((300, 300))
    assert svd_bound(rank_one) == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_the_bound_holds_for_random_strategies(seed: int) -> None:
    W, A = workload(seed, 6, 8), workload(100 + seed, 12, 8)
    assert rms_error(W.T @ W, A) >= svd_bound(W.T @ W)


@pytest.mark.parametrize(
    "gram",
    [
        np.ones((2, 3)),
        np.array([[1.0, 2], [0, 1]]),
        np.array([[np.nan]]),
        -np.eye(2),
        np.zeros((0, 0)),
        np.broadcast_to(0.0, (LARGEST_DENSE + 1, LARGEST_DENSE + 1)),
    ],
    ids=["not square", "not symmetric", "not a number", "negative", "no cells", "too large"],
)
def test_what_is_no_gram_matrix_is_refused(gram: np.ndarray) -> None:
    with pytest.raises(QueryError):
        checked_gram(gram)


def test_a_workload_that_is_too_large_says_how_large_it_may_be() -> None:
    with pytest.raises(QueryError, match=r"5000 merged cells; .* 4096"):
        svd_bound(np.broadcast_to(0.0, (5000, 5000)))
