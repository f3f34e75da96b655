"""Histograms over windows of partitions, one per node of a tree, and the sparse vectors that are open per window.

A view of the log for the proposer `pmw-windows` (Boost, Algorithm 2 and sections 4.3 and 4.4).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from bursar.core.accounting import Closed, Failed, Measured, Noise, Opened, Sealed, Versioned
from bursar.core.domain import Domain
from bursar.core.extensions.partitions import Seals
from bursar.core.ledger import Record
from bursar.core.queries import LinearMap, Product
from bursar.errors import QueryError
from bursar.views.factors import Factored, Grids
from bursar.views.learner import MOST_ROWS, Learner, Learning, rows_of
from bursar.views.measurements import products_of


class WindowTiling(Protocol):
    """Which nodes a window is made of. A value: two with equal settings are equal."""

    def nodes(self, window: Node) -> list[Node] | None:
        """From left to right; None for a window that no tree covers. A node is made of itself."""

    def __hash__(self) -> int: ...


@dataclass(frozen=True)
class Binary:
    """One binary tree, which grows as partitions are sealed."""

    def nodes(self, window: Node) -> list[Node] | None:
        return split(window)


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


@dataclass(frozen=True, eq=False)
class Live:
    """A sparse vector that is open as far as the log tells; `scope` is the part that is not about partitions."""

    opened: Opened
    scope: Product
    analyst: str


@dataclass(eq=False)
class LearnerTree:
    """Guarantees: depends on `Versioned`, `Sealed`, `Measured` and `Failed` records only, never on a test that passed,
    so it is the same after a restart. A measurement is learnt from by the node whose window it has.

    With `warm` a new node starts from what is known: a partition from the nearest earlier one, an inner node from the
    average of its halves where both have learnt; otherwise from the uniform distribution (section 4.4).
    Edge cases: numbers of rows must be public; where they are not, nothing is learnt. A failed test penalises those
    nodes of its window that were ready and had no answer of their own to the query.
    """

    domain: Domain
    learning: Learning
    cut: WindowTiling
    warm: bool = True
    nodes: dict[Node, Learner] = field(default_factory=dict)
    live: defaultdict[Node, dict[int, Live]] = field(default_factory=lambda: defaultdict(dict))  # by exact window
    answers: dict[tuple[Node, str], tuple[int, Noise]] = field(default_factory=dict)  # exact caches: the finest ones
    notes: dict[Hashable, Any] = field(default_factory=dict)  # of a planner, forgotten when the log grows
    _seals: Seals = field(default_factory=Seals)
    _windows: dict[int, Node] = field(default_factory=dict)  # of the live ones
    _grids: Grids = field(default_factory=dict)

    def advance(self, records: Iterable[Record]) -> None:
        self.notes.clear()
        for record in records:
            match record.event:
                case Versioned() as event:
                    self._seals.add(event)
                    for kept in (self.nodes, self.live, self.answers, self._windows):
                        kept.clear()  # what was learnt of other data is of no use
                case Sealed() as event:
                    self._seals.add(event)
                case Opened() as opened:
                    self._open(opened, record)
                case Failed(instance=instance, query=query):
                    self._close(instance)
                    self._fail(query)
                case Closed(instance=instance):
                    self._close(instance)
                case Measured() as measured:
                    self._take(measured, record)

    def size(self, node: Node) -> int | None:
        """How many rows a window has, if that is public and all of it is sealed."""
        sizes = self._seals.sizes[node[0] : node[1] + 1]
        return sum(sizes) if len(sizes) == node[1] - node[0] + 1 else None

    def ready(self, node: Node, query: Product) -> bool:
        """Whether a node that has begun to learn is trusted with a query."""
        return node in self.nodes and self.nodes[node].ready(query)

    def _open(self, opened: Opened, record: Record) -> None:
        found = windowed(opened.scope, self.domain)
        if found is not None:
            window, scope = found
            self.live[window][record.position] = Live(opened, scope, record.analyst)
            self._windows[record.position] = window

    def _close(self, instance: int) -> None:
        if instance in self._windows:
            del self.live[self._windows.pop(instance)][instance]

    def _fail(self, query: LinearMap) -> None:
        found = windowed(query, self.domain) if isinstance(query, Product) else None
        if found is None:
            return
        window, rest = found
        for node in self.cut.nodes(window) or ():
            if self.ready(node, rest) and (node, rest.digest) not in self.answers:
                self.nodes[node].failed(rest)

    def _take(self, event: Measured, record: Record) -> None:
        rows: defaultdict[Node, list[tuple[Product, int]]] = defaultdict(list)
        start = 0
        for part in products_of(event.strategy):
            values = record.values[start : start + part.rows].tolist()
            start += part.rows
            for query, value in zip(rows_of(part), values, strict=True) if part.rows <= MOST_ROWS else ():
                found = windowed(query, self.domain)
                if found is not None and self.cut.nodes(found[0]) == [found[0]]:
                    rows[found[0]].append((found[1], value))
        for node, own in rows.items():
            learner = self.nodes.get(node)
            learner = self._begin(node) if learner is None else learner
            if learner is not None:
                self.nodes[node] = learner
                learner.learn(own, event.noise)
                self._keep(node, own, event.noise)

    def _keep(self, node: Node, rows: Iterable[tuple[Product, int]], noise: Noise) -> None:
        for query, value in rows:
            known = self.answers.get((node, query.digest))
            if known is None or noise.variance() < known[1].variance():
                self.answers[node, query.digest] = value, noise

    def _begin(self, node: Node) -> Learner | None:
        size = self.size(node)
        if size is None:
            return None
        learner = Learner(self.domain, self.learning, size=float(size), grids=self._grids)
        warm = self._known(node) if self.warm else None
        if warm is not None:
            learner.histogram = warm
        return learner

    def _known(self, node: Node) -> Factored | None:
        halves = children(node)
        if halves is None:
            earlier = next((place for place in range(node[0] - 1, -1, -1) if (place, place) in self.nodes), None)
            return None if earlier is None else self.nodes[earlier, earlier].histogram.copy()
        if not all(half in self.nodes for half in halves):
            return None
        return Factored.average([self.nodes[half].histogram for half in halves])


def windowed(query: Product, domain: Domain) -> tuple[Node, Product] | None:
    """A product as one window of partitions and the rest; None where its partitions are no window, each counted once.

    Edge cases: a product without the partition column is about all partitions.
    """
    own = [mask for mask in query.masks if domain.partition in mask.attrs]
    if not own:
        return (0, domain.partitions - 1), query
    (mask,) = own
    at, levels = mask.steps.at.tolist(), mask.steps.levels.tolist()
    if mask.attrs != (domain.partition,) or mask.rows != 1 or levels not in ([1], [1, 0]):
        return None
    end = at[1] if len(at) == 2 else mask.steps.size
    return (at[0], end - 1), Product(tuple(other for other in query.masks if other is not mask))


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
