"""Sparse levels: nested, complete, and few."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bursar.proposers.tree import FEW_CELLS, HALVINGS, decompose, is_node, levels


@pytest.mark.parametrize("size", [1, 2, 16, 17, 41, 74, 128, 1000, 4097])
def test_levels_are_nested_and_end_in_single_cells(size: int) -> None:
    cuts = levels(size)
    assert cuts[-1].tolist() == list(range(size + 1))
    for coarse, fine in itertools.pairwise(cuts):
        assert set(coarse.tolist()) < set(fine.tolist())


@pytest.mark.parametrize("size", [17, 74, 1000, 4097])
def test_a_node_has_about_eight_children_and_the_root_is_no_node(size: int) -> None:
    cuts = levels(size)
    for coarse, fine in itertools.pairwise(cuts):
        children = np.diff(np.searchsorted(fine, coarse))
        assert children.max() <= 2**HALVINGS
    assert 2 <= len(cuts[0]) - 1 <= 2**HALVINGS
    assert not is_node(0, size, cuts)


def test_short_columns_have_their_cells_only() -> None:
    assert len(levels(FEW_CELLS)) == 1
    assert len(levels(FEW_CELLS + 1)) == 2


@given(st.integers(1, 3000), st.data())
def test_a_range_is_made_of_nodes_one_after_the_other(size: int, data: st.DataObject) -> None:
    low = data.draw(st.integers(0, size - 1))
    high = data.draw(st.integers(low + 1, size))
    cuts = levels(size)
    nodes = decompose(low, high, cuts)
    assert nodes[0][0] == low
    assert nodes[-1][1] == high
    assert all(left[1] == right[0] for left, right in itertools.pairwise(nodes))
    assert all(is_node(*node, cuts) for node in nodes)
    assert len(nodes) <= max(FEW_CELLS, 2 * (2**HALVINGS - 1) * len(cuts))


def test_an_empty_range_needs_no_node() -> None:
    assert decompose(3, 3, levels(50)) == []


def test_no_fewer_nodes_would_do() -> None:
    """By dynamic programming over all nodes of a small column."""
    size = 40
    cuts = levels(size)
    nodes = [pair for own in cuts for pair in zip(own[:-1].tolist(), own[1:].tolist(), strict=True)]
    for low in range(size):
        fewest = {low: 0}
        for end in range(low + 1, size + 1):
            reached = [fewest[a] + 1 for a, b in nodes if b == end and a in fewest]
            fewest[end] = min(reached)
            assert len(decompose(low, end, cuts)) == fewest[end]
