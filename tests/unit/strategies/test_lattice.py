"""Rounded rows stay in the span of others."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.strategies.integers import span_of, towards_zero

quick = settings(max_examples=100, deadline=None)


def ranges(rng: np.random.Generator, count: int, size: int) -> np.ndarray:
    edges = np.sort(np.array([rng.choice(size + 1, 2, replace=False) for _ in range(count)]), axis=1)
    cells = np.arange(size)
    return ((edges[:, :1] <= cells) & (cells < edges[:, 1:])).astype(float)


@quick
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(2, 9))
def test_rounding_stays_beside_the_query(seed: int, count: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    rows, query = ranges(rng, count, size), ranges(rng, 1, size)[0]
    blend = query - rng.normal(size=count) @ rows
    rank = int(np.linalg.matrix_rank(rows))
    span = span_of(rows, rank, rng.permutation(size))
    assert len(span.pivots) == rank
    assert np.array_equal(span.basis[:, span.pivots], np.eye(rank))
    whole = span.whole(blend, query, 4096)
    assert whole is not None
    moved = np.concatenate([rows, [whole - 4096 * query]])
    assert np.linalg.matrix_rank(moved) == rank
    assert np.all(np.abs(whole[span.pivots]) <= np.abs(4096 * blend[span.pivots]) + 1e-5)
    assert np.abs(whole - 4096 * blend).max() <= size + 1


def test_fractions_in_the_basis_are_multiplied_away() -> None:
    span = span_of(np.array([[2.0, 3.0, 0.0]]), 1, np.array([0, 1, 2]))
    whole = span.whole(np.array([0.3, 0.45, 1.0]), np.array([0.0, 0.0, 1.0]), 100)
    assert whole is not None
    assert whole.tolist() == [30, 45, 100]


def test_a_basis_that_is_not_rational_is_given_up() -> None:
    span = span_of(np.array([[1.0, np.sqrt(2)]]), 1, np.array([0, 1]))
    assert span.whole(np.array([1.0, np.sqrt(2)]), np.zeros(2), 10) is None


def test_cells_that_come_first_become_pivots() -> None:
    assert span_of(np.ones((1, 3)), 1, np.array([2, 0, 1])).pivots.tolist() == [2]


@pytest.mark.parametrize(("number", "rounded"), [(2.7, 2), (-2.7, -2), (2.9999999, 3), (-3.0000001, -3), (0.0, 0)])
def test_no_number_grows(number: float, rounded: int) -> None:
    assert towards_zero(np.array([number])).tolist() == [rounded]
