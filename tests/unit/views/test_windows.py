"""Windows of partitions: every window of up to 64 against the definitions, and Boost's own examples."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest

from bursar.errors import QueryError
from bursar.papers.boost.tilings import flat, split_overlapping, tree_of
from bursar.views.learner_tree import Node, children, largest_run, shares, split

WINDOWS = [(low, high) for low in range(64) for high in range(low, 64)]


def is_node(node: Node) -> bool:
    size = node[1] - node[0] + 1
    return size & (size - 1) == 0 and node[0] % size == 0


def fewest(window: Node) -> int:
    """How many nodes are needed, by trying every one that could come first."""
    best = {window[1] + 1: 0}
    for low in range(window[1], window[0] - 1, -1):
        ends = [low + 2**k for k in range(7) if low % 2**k == 0 and low + 2**k - 1 <= window[1]]
        best[low] = 1 + min(best[end] for end in ends)
    return best[window[0]]


def test_every_window_is_split_into_the_fewest_nodes() -> None:
    for window in WINDOWS:
        nodes = split(window)
        assert all(map(is_node, nodes))
        assert (nodes[0][0], nodes[-1][1]) == window
        assert all(left[1] + 1 == right[0] for left, right in pairwise(nodes))
        assert len(nodes) == fewest(window)


def test_never_more_nodes_than_the_theorems_count() -> None:
    """|I| <= 2m for windows of 2^m partitions (Theorem A.7); [1, 2^m - 2] needs 2m - 2 of them."""
    for m in range(2, 7):
        assert max(len(split((a, b))) for a, b in WINDOWS if b < 2**m) == 2 * m - 2
        assert len(split((1, 2**m - 2))) == 2 * m - 2


def test_flat_and_children() -> None:
    for window in WINDOWS:
        assert flat(window) == [(place, place) for place in range(window[0], window[1] + 1)]
    assert children((4, 7)) == ((4, 5), (6, 7))
    assert children((5, 5)) is None
    for low, high in (node for window in WINDOWS for node in split(window) if node[0] < node[1]):
        halves = children((low, high))
        assert halves is not None
        assert all(map(is_node, halves))
        assert (halves[0][0], halves[0][1] + 1, halves[1][1]) == (low, halves[1][0], high)


def test_the_largest_run_of_ready_nodes() -> None:
    nodes = split((1, 14))  # 1, 2-3, 4-7, 8-11, 12-13, 14
    sizes = {node: 10 * (node[1] - node[0] + 1) for node in nodes}
    assert largest_run(nodes, nodes, sizes) == nodes
    assert largest_run(nodes, [], sizes) == []
    ready = [(1, 1), (2, 3), (8, 11)]
    assert largest_run(nodes, ready, sizes) == [(8, 11)]
    assert largest_run(nodes, ready, {**sizes, (1, 1): 99}) == [(1, 1), (2, 3)]
    assert largest_run(nodes, [(1, 1), (14, 14)], sizes) == [(1, 1)]  # the first of equals


def test_the_largest_run_against_all_subsets() -> None:
    for window in WINDOWS[::37]:
        nodes = split(window)
        sizes = {node: (7 * node[0] + 3) % 11 + 1 for node in nodes}
        ready = [node for place, node in enumerate(nodes) if (place * place + window[0]) % 3]
        runs = [
            run
            for length in range(1, len(ready) + 1)
            for run in combinations(ready, length)
            if all(left[1] + 1 == right[0] for left, right in pairwise(run))
        ]
        most = max((sum(sizes[node] for node in run) for run in runs), default=0)
        found = largest_run(nodes, ready, sizes)
        assert sum(sizes[node] for node in found) == most
        assert not found or tuple(found) in runs


def test_answers_are_aggregated_by_size() -> None:
    sizes = {(0, 3): 300, (4, 5): 100, (6, 6): 0}
    assert shares(list(sizes), sizes) == [0.75, 0.25, 0.0]
    assert shares([(6, 6)], sizes) == [1.0]
    assert shares([], sizes) == []


def test_overlapping_trees_of_an_unbounded_stream() -> None:
    """Theorem A.8: tree k covers kT .. (k + 2)T - 1, and a window is in the rightmost tree that covers it."""
    for longest in (1, 2, 8, 16):
        for window in ((low, high) for low, high in WINDOWS if high - low < longest):
            tree = tree_of(window, longest)
            covering = [k for k in range(70) if k * longest <= window[0] and window[1] <= (k + 2) * longest - 1]
            assert tree == max(covering)
            found = split_overlapping(window, longest)
            assert {k for k, _ in found} == {tree}
            start = tree * longest
            inner = [(low - start, high - start) for _, (low, high) in found]
            assert inner == split((window[0] - start, window[1] - start))
            assert all(is_node(node) and node[1] < 2 * longest for node in inner)


@pytest.mark.parametrize("window", [(-1, 2), (3, 2)])
def test_windows_that_are_none(window: Node) -> None:
    for function in (split, flat, children):
        with pytest.raises(QueryError, match="window"):
            function(window)


@pytest.mark.parametrize(("window", "longest"), [((0, 8), 8), ((0, 2), 3), ((0, 0), 0)])
def test_windows_that_are_too_long(window: Node, longest: int) -> None:
    with pytest.raises(QueryError, match="power of two"):
        tree_of(window, longest)
