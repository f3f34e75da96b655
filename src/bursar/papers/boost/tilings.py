"""Other ways to cut a window of partitions into nodes (Boost, section 4.3 and Theorem A.8)."""

from __future__ import annotations

from dataclasses import dataclass

from bursar.errors import QueryError
from bursar.views.learner_tree import Node, checked_window, split


@dataclass(frozen=True)
class Flat:
    """One histogram per partition."""

    def nodes(self, window: Node) -> list[Node] | None:
        return flat(window)


@dataclass(frozen=True, kw_only=True)
class Overlapping:
    """Trees of bounded depth for an unbounded stream, where no window is longer than `longest`, a power of two.

    Differs: a node that two trees have in common is one node here, so what one of them learns the other knows.
    """

    longest: int

    def nodes(self, window: Node) -> list[Node] | None:
        if window[1] - window[0] + 1 > self.longest:
            return None
        return [node for _, node in split_overlapping(window, self.longest)]


def flat(window: Node) -> list[Node]:
    """The variant without a tree: one node per partition."""
    low, high = checked_window(window)
    return [(place, place) for place in range(low, high + 1)]


def tree_of(window: Node, longest: int) -> int:
    """The number k of the tree that a window belongs to, where no window is longer than `longest` = T = 2^m.

    Trees overlap: tree k covers the partitions kT .. (k + 2)T - 1, so each window lies in one, and the rightmost is
    taken (Theorem A.8).
    """
    low, high = checked_window(window)
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
