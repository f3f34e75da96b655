"""Trees of ranges: the queries that a cache of noisy answers is made of (CacheDP, sections 3.1, 5.1, 5.3 and 7).

A box is one range [low, high) per column; a node of a tree is a box, and its children split it. Every node that a
question needs is found by walking down from the root, so no tree is ever laid out: a walk costs as many nodes as it
meets, whatever the size of the domain.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Protocol

from bursar.views.nodes import Box, Range


class RangeTree(Protocol):
    """Guarantees: the children of a node are disjoint boxes, two or more, that make it up; or there are none."""

    @property
    def root(self) -> Box:
        """The box of all values."""

    def children(self, node: Box) -> tuple[Box, ...]:
        """The boxes that a node is divided into; none for a leaf."""


def split(node: Range, parts: int) -> tuple[Range, ...]:
    """A range in `parts` ranges of nearly equal length, in one for each value where it has fewer; none for one value.

    With two parts every inner node has two children, so n values make 2n - 1 nodes: Table 3's 81 for 41 countries and
    147 for 74 ages.
    """
    low, high = node
    parts = min(parts, high - low)
    if parts < 2:
        return ()
    cuts = [low + (high - low) * i // parts for i in range(parts + 1)]
    return tuple(pairwise(cuts))


@dataclass(frozen=True)
class JointTree:
    """A tree per column, each hanging from every leaf of the one before (section 7); with one column, a k-ary tree.

    `order` says in which order the columns are split. All but the last go down only to `leaves`, the ranges of that
    column which the workload does not cut; the last goes down to single values.
    """

    sizes: tuple[int, ...]
    branching: int
    order: tuple[int, ...]
    leaves: tuple[frozenset[Range], ...]  # for the columns of `order` but the last

    @staticmethod
    def over(sizes: Sequence[int], workload: Iterable[Box], branching: int) -> JointTree:
        """The tree for a workload of boxes: columns in ascending order of granularity, so that the column with the
        most ranges, whose inner nodes can be used, comes last."""
        boxes = list(workload)
        granular = [_uncut((0, size), [box[i] for box in boxes], branching) for i, size in enumerate(sizes)]
        order = sorted(range(len(sizes)), key=lambda column: len(granular[column]))
        leaves = tuple(frozenset(granular[column]) for column in order[:-1])
        return JointTree(tuple(sizes), branching, tuple(order), leaves)

    @property
    def root(self) -> Box:
        return tuple((0, size) for size in self.sizes)

    def children(self, node: Box) -> tuple[Box, ...]:
        for depth, column in enumerate(self.order):
            range_ = node[column]
            if depth == len(self.leaves) or range_ not in self.leaves[depth]:
                return tuple((*node[:column], part, *node[column + 1 :]) for part in split(range_, self.branching))
        return ()


@dataclass(frozen=True)
class QuadTree:
    """Rectangles over two columns that belong together, such as latitude and longitude: each level quarters them."""

    sizes: tuple[int, int]

    @property
    def root(self) -> Box:
        return tuple((0, size) for size in self.sizes)

    def children(self, node: Box) -> tuple[Box, ...]:
        tall, wide = (split(side, 2) or (side,) for side in node)
        quarters = tuple((vertical, horizontal) for vertical in tall for horizontal in wide)
        return quarters if len(quarters) > 1 else ()


def _uncut(node: Range, ranges: Sequence[Range], branching: int) -> list[Range]:
    """The largest nodes that no wanted range cuts: the granularity that a workload needs of one column."""
    low, high = node
    cut = [(a, b) for a, b in ranges if a < high and low < b and (low < a or b < high)]
    if not cut:
        return [node]
    return [leaf for child in split(node, branching) for leaf in _uncut(child, cut, branching)]


def overlap(first: Box, second: Box) -> Box | None:
    """What two boxes have in common; None where that is nothing."""
    common = tuple((max(a, c), min(b, d)) for (a, b), (c, d) in zip(first, second, strict=True))
    return common if all(low < high for low, high in common) else None


def inside(inner: Box, outer: Box) -> bool:
    """Whether the other box contains the first."""
    return all(c <= a and b <= d for (a, b), (c, d) in zip(inner, outer, strict=True))


def decompose(tree: RangeTree, box: Box) -> list[Box]:
    """The fewest nodes of the tree that make up a box (Algorithm 3), from left to right.

    Edge cases: what lies in a leaf that the box cuts is left out; the tree that was made for a box has no such leaf.
    """
    nodes_found: list[Box] = []
    todo = [(box, tree.root)]
    while todo:
        part, node = todo.pop()
        if part == node:
            nodes_found.append(node)
            continue
        for child in reversed(tree.children(node)):
            if (common := overlap(part, child)) is not None:
                todo.append((common, child))
    return nodes_found


def nodes(tree: RangeTree) -> Iterator[Box]:
    """Every node, upper levels first."""
    level = deque([tree.root])
    while level:
        yield (node := level.popleft())
        level.extend(tree.children(node))


@dataclass(frozen=True, eq=False)
class Marked:
    """Nodes of a tree that are to be bought together, P, and their subtree norms (Definition 5.1)."""

    tree: RangeTree
    paid: frozenset[Box]

    @cached_property
    def norms(self) -> dict[Box, int]:
        """S_P(v), the most nodes of P on a path from v down to a leaf, for all v with a node of P in their subtree."""
        above: dict[Box, Box | None] = {self.tree.root: None}  # parents come before children
        for box in self.paid:
            node = self.tree.root
            while node != box:
                child = next(child for child in self.tree.children(node) if inside(box, child))
                above.setdefault(child, node)
                node = child
        norms = dict.fromkeys(above, 0)
        for node, parent in reversed(above.items()):
            norms[node] += node in self.paid
            if parent is not None:
                norms[parent] = max(norms[parent], norms[node])
        return norms

    @property
    def norm(self) -> int:
        """|P|_1, which is the subtree norm of the root (Lemma 5.1)."""
        return self.norms[self.tree.root]

    def proactive(self, cached: Collection[Box], most: int) -> list[Box]:
        """More nodes that cost nothing beside P, upper ones first (Algorithm 6): dP with |P + dP|_1 = |P|_1.

        Guarantees: no path has more than |P|_1 nodes of P + dP. With fewer than `most` nodes dP is maximal: any other
        node that is not cached would raise the norm.
        Edge cases: it stops at `most` nodes, having visited no more than P, the cached and the new nodes and their
        children.
        """
        bought_along: list[Box] = []
        todo = deque([(self.tree.root, self.norm)])
        while todo and len(bought_along) < most:
            node, remaining = todo.popleft()
            if node in self.paid:
                remaining -= 1
            elif node not in cached and self.norms.get(node, 0) < remaining:
                bought_along.append(node)
                remaining -= 1
            if remaining > 0:
                todo.extend((child, remaining) for child in self.tree.children(node))
        return bought_along
