"""The error of a strategy, the bound under all of them, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bursar.errors import QueryError
from bursar.strategies import measure
from bursar.strategies.integers import spans, to_integers
from bursar.strategies.measure import (
    LARGEST_DENSE,
    FewRows,
    checked_gram,
    pure_error,
    ratio,
    rms_error,
    sensitivity,
    svd_bound,
    weights_on,
)


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


CELLS = 300


def single_cells(few: np.ndarray, alone: np.ndarray) -> np.ndarray:
    """Rows over many cells, then rows about single cells, without those that are zero."""
    return np.concatenate([few, np.diag(alone)[alone != 0]])


def strategies_of_few_rows() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    few, alone = rng.integers(-9, 10, (4, CELLS)).astype(float), rng.integers(1, 9, CELLS).astype(float)
    missing = np.where(np.arange(CELLS) < 3, 0.0, alone)  # as many as the few rows tell apart
    tiny = np.where(np.arange(CELLS) < 50, 1e-2 * alone, alone)
    singular = np.where(np.arange(CELLS) < 7, 0.0, alone)  # more than they do
    return {
        "full rank": single_cells(few, alone),
        "some cells without a row": single_cells(few, missing),
        "some with next to none": single_cells(few, tiny),
        "singular": single_cells(few, singular),
        "rows mixed": rng.permutation(single_cells(few, missing)),
        "single cells only": np.diag(alone),
        "two rows for a cell": np.concatenate([single_cells(few, alone), np.diag(alone)]),
    }


@pytest.mark.parametrize("name", strategies_of_few_rows())
def test_few_rows_beside_single_cells_come_to_what_all_cells_do(name: str) -> None:
    A = strategies_of_few_rows()[name]
    W = np.random.default_rng(6).integers(-3, 4, (5, len(A))) @ A  # in the row space, whatever the rank
    V, X = W.T @ W, A.T @ A
    assert FewRows.of(A) is not None
    assert pure_error(V, A) == pytest.approx(sensitivity(A, 1) * math.sqrt(measure.trace_error(V, X)), rel=1e-9)
    assert spans(A, V)
    np.testing.assert_allclose(weights_on(A, W), W @ np.linalg.pinv(A), atol=1e-7)


def test_few_rows_say_what_they_do_not_answer() -> None:
    A, outside = strategies_of_few_rows()["singular"], np.eye(1, CELLS)
    assert FewRows.of(A) is not None
    assert rms_error(outside.T @ outside, A) == math.inf == measure.trace_error(outside.T @ outside, A.T @ A)
    assert not spans(A, outside.T @ outside)


def test_only_few_rows_over_many_cells_are_looked_at_by_themselves() -> None:
    assert FewRows.of(np.eye(255)) is None
    assert FewRows.of(np.ones((76, CELLS)) + np.eye(76, CELLS)) is None
    assert FewRows.of(np.ones((4, CELLS))) is None


def test_rounding_few_rows_decomposes_no_matrix_over_all_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """That takes the cube of their number, at every grid that is tried."""
    sizes: list[int] = []

    def counted(name: str) -> None:
        original = getattr(measure.scipy.linalg, name)
        monkeypatch.setattr(
            measure.scipy.linalg,
            name,
            lambda matrix, **options: (sizes.append(len(matrix)), original(matrix, **options))[1],
        )

    for name in ("eigh", "eigvalsh", "cholesky"):
        counted(name)
    A = strategies_of_few_rows()["some cells without a row"] * math.pi
    W = np.random.default_rng(7).integers(-3, 4, (4, 4)) @ A[:4]
    to_integers(A, W.T @ W)
    assert 0 < max(sizes) < 10
    sizes.clear()
    to_integers(np.concatenate([A, np.ones((80, CELLS))]), W.T @ W)  # too many rows for that
    assert max(sizes) == CELLS
