"""Strategies for Laplace noise."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.errors import QueryError
from bursar.papers.eigen_design import workloads
from bursar.strategies.hierarchical import identity
from bursar.strategies.measure import pure_error, sensitivity, svd_bound
from bursar.strategies.optimal import _start, _trace, for_laplace, p_identity


def test_the_gradient_is_that_of_the_trace() -> None:
    V, T, step = workloads.all_ranges(6), _start(2, 6), 1e-6
    value, gradient = _trace(T, V, 2)
    A = np.concatenate([np.eye(6), T.reshape(2, 6)]) / (1 + T.reshape(2, 6).sum(axis=0))
    assert value == pytest.approx(np.trace(V @ np.linalg.inv(A.T @ A)))
    steps = [(_trace(T + step * e, V, 2)[0] - _trace(T - step * e, V, 2)[0]) / (2 * step) for e in np.eye(12)]
    assert gradient == pytest.approx(steps, rel=1e-5, abs=1e-5)


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


def test_edge_cases() -> None:
    assert p_identity(np.zeros((32, 32))).tolist() == np.eye(32).tolist()
    assert p_identity(workloads.all_ranges(32), extra=0).tolist() == np.eye(32).tolist()
    assert for_laplace(np.array([[2.0]])).tolist() == [[1.0]]
    with pytest.raises(QueryError):
        p_identity(workloads.all_ranges(32), extra=-1)
