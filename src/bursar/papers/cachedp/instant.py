"""The instant strategy (CacheDP, section 5.1): the nodes that make up a workload, and what the log knows of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product as combinations
from typing import Literal

import numpy as np

from bursar.arrays import Reals
from bursar.core.accounting import Mode
from bursar.core.domain import Domain
from bursar.core.queries import LinearMap, Mask, Product, Stack, Steps
from bursar.goal import Goal
from bursar.papers.cachedp.accuracy import AccuracyCheck, Bound, loose, search
from bursar.papers.cachedp.full_rank import Nested, containment, meeting
from bursar.papers.cachedp.range_tree import JointTree, QuadTree, RangeTree, decompose
from bursar.planner.offer import Views
from bursar.planner.request import PlanningRequest
from bursar.views.measurements import Columns, products_of
from bursar.views.nodes import Box, Node, Range, sums_of

MOST_WEIGHTS = 2**24
"""Most weights, queries times rows, of one workload."""

MOST_EXPANDED = 256
"""Most cached rows that weighted least squares takes in."""


@dataclass(frozen=True, eq=False)
class Instant:
    """A workload as sums of boxes: W = D A, with the boxes of A and D in `answers`; and the cache over its columns."""

    columns: Columns
    tree: RangeTree
    boxes: tuple[Box, ...]
    answers: Reals
    cache: dict[Box, Node]
    extra: int = 0  # the last boxes, which were cached and are not needed

    @cached_property
    def nested(self) -> Nested:
        """Which of the boxes lie inside of others."""
        return Nested(self.boxes)

    @cached_property
    def nodes(self) -> tuple[Node | None, ...]:
        """What is cached of each box."""
        return tuple(self.cache.get(box) for box in self.boxes)

    @cached_property
    def cached(self) -> Reals:
        """The scale of each box in the cache, infinite where it is not there."""
        return np.array([math.inf if node is None else node.noise.scale for node in self.nodes])

    def expanded(self, scale: float, most: int, *, relatives: bool = False) -> Instant:
        """A_e (Algorithm 5): with up to `most` cached boxes that meet one of A, of noise `scale` or less, finest first.

        Differs: boxes of another joint tree may cross those of this one; they are left out. With `relatives`, boxes
        count too that meet a cached box that meets one of A: a parent is worth little without its other children.
        """
        near = [(node.noise.scale, box) for box, node in self.cache.items() if node.noise.scale <= scale]
        in_strategy = set(self.boxes)
        near = [(noise, box) for noise, box in near if box not in in_strategy]
        boxes = [box for _, box in near]
        touching = meeting(boxes, self.boxes).any(axis=1)
        if relatives:
            touching = meeting(boxes, [boxes[place] for place in np.flatnonzero(touching)]).any(axis=1)
        candidates = [near[place] for place in np.flatnonzero(touching)]
        taken: list[Box] = []
        for _, box in sorted(candidates, key=lambda pair: pair[0]):
            if len(taken) == most:
                break
            if not _crosses(box, [*self.boxes, *taken]):
                taken.append(box)
        answers = np.pad(self.answers, ((0, 0), (0, len(taken))))
        return replace(self, boxes=(*self.boxes, *taken), answers=answers, extra=len(taken))


@dataclass(frozen=True, kw_only=True, eq=False)
class Estimated:
    """A strategy with the noise that keeps the goal."""

    instant: Instant
    bound: Bound

    @property
    def paid(self) -> list[int]:
        """The rows of P: those that are not cached, or with more noise than b_P."""
        return np.flatnonzero(np.isfinite(self.bound.scales) & (self.bound.scales < self.instant.cached)).tolist()


Quads = Iterable[Sequence[str]] | Literal["every"]
"""Pairs of columns that are quartered together, or all of them."""


class InstantEstimator:
    """What the modules share: how trees are shaped and how goals are checked. The last estimate is remembered, since
    all modules begin with it."""

    def __init__(self, *, branching: int, quads: Quads, accuracy: AccuracyCheck, gls: bool) -> None:
        self.branching, self.accuracy, self.gls = branching, accuracy, gls
        self._quads = None if quads == "every" else {frozenset(pair) for pair in quads}
        self._last: tuple[PlanningRequest, Views, Estimated | None] | None = None

    def basic(self, request: PlanningRequest, views: Views) -> Estimated | None:
        """The instant strategy with the cache; None for what is not made of boxes, or cannot be kept."""
        last = self._last
        if last is not None and last[0] is request and last[1] is views:
            return last[2]
        instant = self.instant(request.workload.map, views)
        estimated = None if instant is None else self.estimate(instant, instant.cached, request.goal)
        self._last = (request, views, estimated)
        return estimated

    def fresh(self, instant: Instant, goal: Goal) -> Bound | None:
        """The noise that the strategy would need if nothing were cached."""
        estimated = self.estimate(instant, np.full(len(instant.boxes), math.inf), goal)
        return None if estimated is None else estimated.bound

    def expanded(self, basic: Estimated, goal: Goal, most: int) -> Estimated | None:
        """The estimate with more cached rows; None where there are none, or they do not help to keep the goal."""
        near, most = (math.inf, MOST_EXPANDED) if self.gls else (basic.bound.paid, most)
        instant = basic.instant.expanded(near, most, relatives=self.gls)
        return self.estimate(instant, instant.cached, goal) if instant.extra else None

    def estimate(self, instant: Instant, cached: Reals, goal: Goal) -> Estimated | None:
        """EstimatePrivacyBudget; as printed an extra row that is coarser than b_P is paid for like any other."""
        plain = instant.nested.weights(instant.answers)

        def fixed(scales: Reals) -> Reals | None:
            return plain if np.isfinite(scales).all() else None

        def weighted(scales: Reals) -> Reals | None:
            return instant.nested.least_squares(instant.answers, scales)

        payable = np.arange(len(cached)) < len(cached) - (instant.extra if self.gls else 0)
        weights, start = weighted if self.gls else fixed, loose(plain, goal)
        bound = search(weights, cached, payable, start, goal, self.accuracy)
        return None if bound is None else Estimated(instant=instant, bound=bound)

    def instant(self, workload: LinearMap, views: Views) -> Instant | None:
        """GenerateStrategy: a tree for the columns of the workload, and its nodes that make up the queries.

        Edge cases: None for queries that are not sums of disjoint boxes, and where there would be too many weights.
        """
        products = products_of(workload)
        if views.mode is not Mode.PURE or not workload.rows or sum(part.rows for part in products) != workload.rows:
            return None
        columns = views.domain.ordered(workload.attrs)
        boxes_of_rows: list[list[Box]] = []
        for product in products:
            sums = sums_of(product, columns, views.domain) if workload.rows**2 <= MOST_WEIGHTS else None
            if sums is None or not all(sums):
                return None
            boxes_of_rows += sums
        tree = self._tree(columns, [box for boxes in boxes_of_rows for box in boxes], views.domain)
        parts = [[node for box in boxes for node in decompose(tree, box)] for boxes in boxes_of_rows]
        places = {box: place for place, box in enumerate(dict.fromkeys(box for part in parts for box in part))}
        if len(boxes_of_rows) * len(places) > MOST_WEIGHTS:
            return None
        answers = np.zeros((len(boxes_of_rows), len(places)))
        for query, part in enumerate(parts):
            answers[query, [places[box] for box in part]] = 1.0
        return Instant(columns, tree, tuple(places), answers, views.nodes.over(columns))

    def _tree(self, columns: Columns, boxes: Sequence[Box], domain: Domain) -> RangeTree:
        sizes = domain.sizes(columns)
        if len(sizes) == 2 and (self._quads is None or frozenset(columns) in self._quads):
            return QuadTree((sizes[0], sizes[1]))
        return JointTree.over(sizes, boxes, self.branching)


def strategy_of(boxes: Iterable[Box], columns: Columns, domain: Domain) -> tuple[LinearMap, list[Box]]:
    """The boxes as rows, in as few products as grouping them column by column gives; and the box of each row."""
    crosses: list[tuple[tuple[Range, ...], ...]] = [tuple((ranges,) for ranges in box) for box in boxes]
    for axis in reversed(range(len(columns))):
        merged: dict[tuple[tuple[Range, ...], ...], list[Range]] = {}
        for cross in crosses:
            merged.setdefault((*cross[:axis], *cross[axis + 1 :]), []).extend(cross[axis])
        crosses = [(*others[:axis], tuple(ranges), *others[axis:]) for others, ranges in merged.items()]
    products = tuple(
        Product(tuple(_mask(name, ranges, domain) for name, ranges in zip(columns, cross, strict=True)))
        for cross in crosses
    )
    rows = [tuple(box) for cross in crosses for box in combinations(*cross)]
    return (products[0] if len(products) == 1 else Stack(products)), rows


def _mask(name: str, ranges: Sequence[Range], domain: Domain) -> Mask:
    lows, highs = zip(*ranges, strict=True)
    size = domain[name].size
    return Mask((name,), (size,), Steps.ranges(lows, highs, size))


def _crosses(box: Box, others: Sequence[Box]) -> bool:
    """Whether the box meets one of the others and neither contains the other."""
    return bool((meeting([box], others) & ~containment([box], others) & ~containment(others, [box]).T).any())
