"""Buying one row: certified, never dearer than the question itself, and the best there is where that can be checked."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from bursar.errors import QueryError
from bursar.proposers.incremental import RowPurchase, best_row

quick = settings(max_examples=60, deadline=None)
seeds = st.integers(0, 2**32 - 1)


def case(seed: int, size: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Information from some random rows, and a query that is a set of cells."""
    rng = np.random.default_rng(seed)
    bought = rng.integers(-1, 2, (rows, size)) * rng.uniform(0.2, 2.0, (rows, 1))
    query = rng.integers(0, 2, size).astype(float)
    query[rng.integers(size)] = 1.0
    return bought.T @ bought, query


def variance_before(information: np.ndarray, query: np.ndarray) -> float:
    inverse = np.linalg.pinv(information, rcond=1e-10, hermitian=True)
    determined = np.allclose(information @ inverse @ query, query, atol=1e-7)
    return float(query @ inverse @ query) if determined else np.inf


def variance_after(information: np.ndarray, found: RowPurchase, query: np.ndarray) -> float:
    """By the estimator that the row is for: the query is the blend plus M k."""
    after = information + np.outer(found.row, found.row)
    return float(query @ np.linalg.pinv(after, rcond=1e-10, hermitian=True) @ query)


@quick
@given(seeds, st.integers(1, 7), st.integers(0, 8), st.sampled_from((0.05, 0.5, 3.0)), st.booleans())
def test_the_target_is_kept_and_the_cap_is_certified(
    seed: int, size: int, rows: int, variance: float, use: bool
) -> None:
    information, query = case(seed, size, rows)
    losses, before = information.diagonal(), variance_before(information, query)
    variance = min(variance, 0.7 * before)
    found = best_row(information, query, variance, before=before if use else np.inf)
    assert found.bound <= found.cap
    assert found.cap <= np.max(losses + query**2 / variance) * (1 + 1e-12)
    assert np.max(losses + found.row**2) <= found.cap * (1 + 1e-9)
    assert variance_after(information, found, query) <= variance * (1 + 1e-4)
    assert np.allclose(found.row * np.abs(found.blend).max(), found.blend * np.abs(found.row).max(), atol=1e-9)


def least_cap(information: np.ndarray, query: np.ndarray, variance: float, rng: np.random.Generator) -> float:
    """By brute force over directions: a row along u has the cap of the least length that keeps the target."""
    S = np.linalg.inv(information)
    losses, excess = information.diagonal(), float(query @ S @ query) - variance

    def cap(u: np.ndarray) -> float:
        spare = float(query @ S @ u) ** 2 - excess * float(u @ S @ u)
        return float(np.max(losses + u**2 * excess / spare)) if spare > 1e-12 else 1e6

    starts = [query, *rng.normal(size=(12, len(query)))]
    return min(minimize(cap, u, method="Nelder-Mead", options={"maxiter": 4000, "xatol": 1e-9}).fun for u in starts)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(12))
def test_it_is_the_best_that_brute_force_finds(seed: int) -> None:
    information, query = case(seed, 3, 5)
    information += 0.05 * np.eye(3)
    before = variance_before(information, query)
    variance = 0.4 * before
    found = best_row(information, query, variance, before=before)
    present, best = information.diagonal().max(), least_cap(information, query, variance, np.random.default_rng(seed))
    assert found.bound <= best * (1 + 1e-6)
    assert found.cap <= max(best, present) + 0.03 * max(best - present, 0.01 * present)


@quick
@given(seeds)
def test_a_free_row_leaves_cells_without_slack_alone(seed: int) -> None:
    rng = np.random.default_rng(seed)
    bought = np.diag([2.0, 2.0, 0.5, 0.5, 0.5])
    query = np.array([*rng.integers(0, 2, 2), 1, *rng.integers(0, 2, 2)], float)
    known = float(query @ np.diag(1 / bought.diagonal() ** 2) @ query)
    found = best_row(bought.T @ bought, query, 0.9 * known, before=known)
    assert found.free
    assert found.cap == 4.0
    assert found.row[:2].tolist() == [0.0, 0.0]
    assert np.any(found.row[2:])


def test_what_slack_cannot_pay_is_not_free() -> None:
    found = best_row(np.diag([4.0, 4.0]), np.array([1.0, 1.0]), 0.1)
    assert not found.free
    assert found.cap > 4.0
    assert found.cap - 4.0 <= 1.03 * (found.bound - 4.0)


def test_where_nothing_is_known_the_question_is_bought() -> None:
    query = np.array([1.0, 0.0, 2.0])
    found = best_row(np.zeros((3, 3)), query, 4.0)
    assert found.row == pytest.approx(query / 2)
    assert found.cap == pytest.approx(1.0)


def test_losses_may_differ_from_the_information() -> None:
    """Rows with Laplace noise cost more than they tell: here the first cell is full and the others are not."""
    information, query = np.eye(3), np.ones(3)
    free = best_row(information, query, 2.5, losses=[9.0, 1.0, 1.0])
    assert free.free
    assert free.row[0] == 0.0
    assert not best_row(information, query, 2.5).free


@pytest.mark.parametrize("query", [[0.0, 0.0], [1.0], [np.inf, 1.0]])
def test_what_is_not_a_query_is_refused(query: list[float]) -> None:
    with pytest.raises(QueryError):
        best_row(np.eye(2), query, 1.0)


@pytest.mark.parametrize("variance", [0.0, -1.0, np.nan, np.inf, 1.0])
def test_what_is_not_a_target_is_refused(variance: float) -> None:
    with pytest.raises(QueryError):
        best_row(np.eye(2), [1.0, 0.0], variance, before=1.0)
