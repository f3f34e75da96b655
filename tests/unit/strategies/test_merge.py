"""Merging cells loses nothing, and comes back to all cells."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.strategies.cells import UNUSED, merge_gram, merge_workload
from bursar.strategies.measure import rms_error
from bursar.strategies.optimal import optimum

W = np.array([[1, 1, 0, 2, 0, 1], [0, 0, 1, -1, 0, 0]])


def test_equal_columns_become_one_cell_and_unused_ones_none() -> None:
    for merging in (merge_workload(W), merge_gram(W.T @ W)):
        assert merging.group.tolist() == [0, 0, 1, 2, UNUSED, 0]
        assert merging.first.tolist() == [0, 2, 3]
        assert merging.cells == 3


def test_columns_that_differ_in_sign_stay_apart() -> None:
    assert merge_workload(np.array([[1, -1]])).cells == 2
    assert merge_gram(np.array([[1, -1], [-1, 1]])).cells == 2


def test_minus_zero_is_zero() -> None:
    assert merge_workload(np.array([[1.0, 1.0], [0.0, -0.0]])).cells == 1


def test_a_strategy_spreads_with_its_norms_and_its_error() -> None:
    merging = merge_gram(W.T @ W)
    merged = merging.gram(W.T @ W)
    assert merged == pytest.approx(merging.queries(W).T @ merging.queries(W))
    strategy = np.array([[1, 2, 0], [0, 1, 1], [3, 0, 1]])
    spread = merging.spread(strategy)
    assert spread.tolist() == [[1, 1, 2, 0, 0, 1], [0, 0, 1, 1, 0, 0], [3, 3, 0, 1, 0, 3]]
    assert spread.dtype == strategy.dtype
    assert rms_error(W.T @ W, spread) == pytest.approx(rms_error(merged, strategy))


def test_the_optimum_is_the_same_with_and_without_merging() -> None:
    rng = np.random.default_rng(0)
    few = rng.integers(0, 2, (9, 6)).astype(float)
    many = few[:, rng.integers(0, 6, 30)]
    nudged = many + 1e-9 * rng.random(many.shape)  # cells that are told apart, if only just
    merged, apart = optimum(many.T @ many, gap=1e-5), optimum(nudged.T @ nudged, gap=1e-5)
    assert len(merged.strategy) <= 12 < len(apart.strategy)
    assert merged.error == pytest.approx(apart.error, rel=1e-4)


def test_nothing_asked_leaves_no_cells() -> None:
    assert merge_gram(np.zeros((4, 4))).cells == 0
    assert merge_workload(np.zeros((0, 4))).group.tolist() == [UNUSED] * 4
