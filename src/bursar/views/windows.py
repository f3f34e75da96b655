"""Windows of partitions as nodes of a binary tree (Boost, Algorithm 2 and section 4.3).

A node (a, b) stands for the partitions a .. b, both included, with b - a + 1 = 2^k and 2^k dividing a.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bursar.errors import QueryError

Node = tuple[int, int]


def split(window: Node) -> list[Node]:
    """SPLITQUERY: the fewest nodes that make up a window, from left to right.

    Guarantees: at most 2 log2(b - a + 1) nodes for a window of two partitions or more.
    """
    low, high = _checked(window)
    found: list[Node] = []
    while low <= high:
        size = (high - low + 1) if low == 0 else min(low & -low, high - low + 1)
        size = 1 << (size.bit_length() - 1)
        found.append((low, low + size - 1))
        low += size
    return found


def flat(window: Node) -> list[Node]:
    """The variant without a tree: one node per partition."""
    low, high = _checked(window)
    return [(place, place) for place in range(low, high + 1)]


def children(node: Node) -> tuple[Node, Node] | None:
    """The two halves of a node; None for a single partition."""
    low, high = _checked(node)
    if low == high:
        return None
    middle = low + (high - low + 1) // 2
    return (low, middle - 1), (middle, high)


def largest_run(nodes: Sequence[Node], ready: Iterable[Node], sizes: Mapping[Node, int]) -> list[Node]:
    """LARGESTCONTIGUOUSSUBSET: of the ready ones among `nodes`, the run without gaps that holds most rows.

    Nodes stand from left to right. Of equally large runs the first is taken; there may be none.
    """
    chosen = set(ready)
    runs: list[list[Node]] = []
    for node in nodes:
        if node not in chosen:
            continue
        if runs and runs[-1][-1][1] + 1 == node[0]:
            runs[-1].append(node)
        else:
            runs.append([node])
    return max(runs, key=lambda run: sum(sizes[node] for node in run), default=[])


def shares(nodes: Sequence[Node], sizes: Mapping[Node, int]) -> list[float]:
    """AGGREGATE: the weight n_i / sum_j n_j of each node's fraction; equal weights where all nodes are empty."""
    rows = sum(sizes[node] for node in nodes)
    return [sizes[node] / rows if rows else 1 / len(nodes) for node in nodes]


def tree_of(window: Node, longest: int) -> int:
    """The number k of the tree that a window belongs to, where no window is longer than `longest` = T = 2^m.

    Trees overlap: tree k covers the partitions kT .. (k + 2)T - 1, so each window lies in one, and the rightmost is
    taken (Theorem A.8).
    """
    low, high = _checked(window)
    if longest < 1 or longest & (longest - 1) or high - low + 1 > longest:
        raise QueryError("a window is at most as long as its trees allow, which is a power of two")
    return low // longest


def split_overlapping(window: Node, longest: int) -> list[tuple[int, Node]]:
    """SPLITQUERY over the overlapping trees of an unbounded stream: nodes with the number of their tree.

    The nodes of tree k are those of a binary tree of depth m + 1 whose leftmost leaf is kT.
    """
    tree = tree_of(window, longest)
    start = tree * longest
    inner = split((window[0] - start, window[1] - start))
    return [(tree, (low + start, high + start)) for low, high in inner]


def _checked(window: Node) -> Node:
    if not 0 <= window[0] <= window[1]:
        raise QueryError("a window of partitions begins at or after the first one and ends at or after its beginning")
    return window
