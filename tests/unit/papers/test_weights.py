"""Weights of design queries: certified, better than none, refused where they cannot help; completion is free."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.errors import QueryError
from bursar.papers.eigen_design import workloads
from bursar.papers.eigen_design.fourier import fourier_basis, wavelet
from bursar.papers.eigen_design.weights import query_weights, weigh_basis
from bursar.strategies.hierarchical import hierarchical, identity
from bursar.strategies.measure import pure_error, rms_error, sensitivity
from bursar.strategies.optimal import complete

RNG = np.random.default_rng(3)


@pytest.mark.parametrize("power", [1, 2])
def test_the_weights_meet_their_bound_and_the_constraint(power: int) -> None:
    loads = RNG.random((12, 9))
    costs = RNG.random(12)
    found = query_weights(costs, loads, power=power, gap=1e-5)
    assert (found.factors**power @ loads).max() == pytest.approx(1)
    assert found.value == pytest.approx((costs / found.factors**2).sum())
    assert 0 <= found.gap <= 1e-5


@pytest.mark.parametrize("power", [1, 2])
def test_no_random_weights_beat_the_bound(power: int) -> None:
    loads, costs = RNG.random((6, 5)), RNG.random(6)
    bound = query_weights(costs, loads, power=power).bound
    for _ in range(200):
        factors = RNG.random(6)
        factors /= (factors**power @ loads).max() ** (1 / power)
        assert (costs / factors**2).sum() >= bound


def test_one_query_per_cell_has_known_weights() -> None:
    found = query_weights(np.array([4.0, 9.0, 0.0]), np.eye(3), gap=1e-9)
    assert found.factors.tolist() == pytest.approx([1, 1, 0])
    shared = query_weights(np.array([4.0, 9.0]), np.ones((2, 1)), gap=1e-9)  # sqrt(c) : the loads add up
    assert np.square(shared.factors).tolist() == pytest.approx([2 / 5, 3 / 5])
    laplace = query_weights(np.array([8.0, 27.0]), np.ones((2, 1)), power=1, gap=1e-9)  # the third root of c
    assert laplace.factors.tolist() == pytest.approx([2 / 5, 3 / 5])


def test_weighting_a_basis_never_hurts() -> None:
    for V in (workloads.all_ranges(32), workloads.prefix(32), workloads.gram_of(RNG.integers(0, 2, (20, 32)))):
        for basis in (identity(32), wavelet(32), fourier_basis(32)):
            assert rms_error(V, weigh_basis(V, basis)) <= rms_error(V, basis) * (1 + 1e-4)
            assert pure_error(V, weigh_basis(V, basis, power=1)) <= pure_error(V, basis) * (1 + 1e-4)


def test_a_basis_that_is_too_small_is_refused() -> None:
    with pytest.raises(QueryError, match="span"):
        weigh_basis(workloads.prefix(4), np.ones((1, 4)))


def test_a_basis_with_more_rows_than_cells_works() -> None:
    V = workloads.all_ranges(16)
    assert rms_error(V, weigh_basis(V, hierarchical(16))) < 2 * rms_error(V, hierarchical(16))


def test_unneeded_design_queries_are_left_out() -> None:
    assert weigh_basis(np.ones((8, 8)), fourier_basis(8)).shape == (1, 8)
    assert weigh_basis(np.zeros((8, 8)), fourier_basis(8)).shape == (0, 8)


def test_completion_never_hurts() -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        W, A = rng.integers(0, 2, (9, 7)).astype(float), rng.normal(size=(8, 7))
        completed = complete(A)
        assert sensitivity(completed) == pytest.approx(sensitivity(A))
        assert rms_error(W.T @ W, completed) < rms_error(W.T @ W, A)


def test_what_is_complete_stays_itself() -> None:
    even = wavelet(8)
    assert complete(even) is even
    assert complete(np.zeros((0, 3))).shape == (0, 3)


def test_an_unknown_sensitivity_is_refused() -> None:
    with pytest.raises(QueryError):
        query_weights(np.ones(2), np.eye(2), power=3)
