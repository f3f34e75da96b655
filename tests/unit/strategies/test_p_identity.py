"""Strategies for Laplace noise."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.errors import QueryError
from bursar.papers.eigen_design import workloads
from bursar.strategies.hierarchical import identity, tree
from bursar.strategies.measure import pure_error, sensitivity, svd_bound
from bursar.strategies.optimal import for_laplace
from bursar.strategies.p_identity import BlockGram, overlapping_nodes, p_identity, with_identity
from harness.cases import few


@pytest.mark.parametrize("width", [1, 3])
def test_the_gradient_is_that_of_the_trace(width: int) -> None:
    V, step = workloads.all_ranges(7), 1e-6
    blocks = BlockGram.of(V, width)
    T = np.random.default_rng(1).random((2, len(blocks.sizes)))
    value, gradient = blocks.trace(T)
    A = with_identity(T, width, 7)
    assert value == pytest.approx(np.trace(V @ np.linalg.inv(A.T @ A)))
    moves = step * np.eye(T.size).reshape(-1, *T.shape)
    steps = [(blocks.trace(T + move)[0] - blocks.trace(T - move)[0]) / (2 * step) for move in moves]
    assert gradient.ravel() == pytest.approx(steps, rel=1e-5, abs=1e-5)


@pytest.mark.heavy
def test_overlapping_nodes_are_nearly_as_good_as_a_free_search_and_better_than_trees() -> None:
    V = workloads.all_ranges(512)
    errors = {}
    for width in (1, 4):
        T = overlapping_nodes(BlockGram.of(V, width))
        errors[width] = pure_error(V, with_identity(T, width, 512)) / svd_bound(V)
    best_tree_error = min(pure_error(V, tree(V, branching=k, power=1)) for k in (8, 16)) / svd_bound(V)
    assert errors[1] <= 2.14
    assert errors[1] <= errors[4] <= 1.02 * errors[1]
    assert errors[4] < 0.9 * best_tree_error


@pytest.mark.parametrize(("size", "most"), [(64, 1.75), (256, 2.0)])
def test_ranges_over_the_gaussian_bound(size: int, most: float) -> None:
    V = workloads.all_ranges(size)
    A = p_identity(V)
    assert sensitivity(A, 1) == pytest.approx(1)
    assert np.abs(A).sum(axis=0) == pytest.approx(np.ones(size))
    assert pure_error(V, A) / svd_bound(V) <= most
    assert pure_error(V, A) < pure_error(V, identity(size))


def test_the_best_of_the_family_is_taken() -> None:
    for V in (workloads.identity(40), workloads.all_ranges(40), workloads.prefix(20), workloads.all_ranges(6)):
        A = for_laplace(V)
        assert pure_error(V, A) <= pure_error(V, identity(len(V))) * (1 + 1e-9)
    assert for_laplace(workloads.all_ranges(40)).shape != (40, 40)


@pytest.mark.heavy
@pytest.mark.parametrize("cells", few([600, 1100]))
def test_many_cells_that_are_hardly_added_up_are_counted_one_by_one(cells: int) -> None:
    """Extra queries would take from the cells; a few ranges beside them are no reason to."""
    few = np.zeros((2, cells))
    few[0, :20], few[1, 5:60] = 1, 1
    V = np.eye(cells) + 1e-3 * few.T @ few
    assert pure_error(V, for_laplace(V)) <= pure_error(V, identity(cells)) * (1 + 1e-9)
    ranges = workloads.all_ranges(cells)
    assert pure_error(ranges, for_laplace(ranges)) < 0.5 * pure_error(ranges, identity(cells))


def test_edge_cases() -> None:
    assert p_identity(np.zeros((32, 32))).tolist() == np.eye(32).tolist()
    assert p_identity(workloads.all_ranges(32), extra=0).tolist() == np.eye(32).tolist()
    assert for_laplace(np.array([[2.0]])).tolist() == [[1.0]]
    with pytest.raises(QueryError):
        p_identity(workloads.all_ranges(32), extra=-1)
