"""Plans of `pmw-windows`: where the answer of each node of a window comes from, and what that promises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from bursar.arrays import Integers, Reals
from bursar.core.accounting import Measured, Noise, Opened
from bursar.core.grant import Verbs
from bursar.core.queries import Mask, Product, Stack, Steps
from bursar.estimation.estimate import ErrorLaw, Estimate, any_of, each_of
from bursar.proposers.pmw_calibration import Calibrated, Checked, sum_tail
from bursar.tails.tails import half_widths
from bursar.views.learner_tree import LearnerTree, Node


@dataclass(frozen=True, kw_only=True, eq=False)
class WindowQuestion:
    """A question about one window, cut into nodes, from left to right; those without rows are left out."""

    nodes: Sequence[Node]
    sizes: Mapping[Node, int]
    rest: Sequence[Product]  # without the partitions
    queries: Sequence[Product]  # its rows one by one; none where they are many
    rows: int
    amount: float
    beta: float
    column: str
    partitions: int

    def purchase(self, nodes: Sequence[Node], noise: Noise, version: int) -> Measured | None:
        """The question about each of the nodes, in one purchase; None where there are none."""
        masks = [window_mask(self.column, self.partitions, node) for node in nodes]
        parts = tuple(Product((mask, *part.masks)) for mask in masks for part in self.rest)
        if not parts:
            return None
        return Measured(strategy=parts[0] if len(parts) == 1 else Stack(parts), noise=noise, version=version)


@dataclass(frozen=True, kw_only=True, eq=False)
class WindowPlan:
    """Nodes whose answers are known, those to be bought, and those estimated: bought too, should the test fail.

    The test is about the `tested` nodes together, which are those estimated and perhaps others. Purchases are one for
    all nodes of a kind, each node with noise of its own.
    """

    made: Calibrated  # the test
    law: ErrorLaw
    guessed: Sequence[Node] = ()
    tested: Sequence[Node] = ()
    known: Mapping[Node, Integers] = field(default_factory=dict)
    bought: Sequence[Node] = ()
    buying: Measured | None = None
    if_failed: Measured | None = None

    @property
    def window(self) -> Node:
        return self.tested[0][0], self.tested[-1][1]

    @property
    def purchases(self) -> tuple[Measured, ...]:
        return tuple(event for event in (self.buying, self.if_failed) if event is not None)

    def run(self, asked: WindowQuestion, tree: LearnerTree, instance: Opened | int | None, verbs: Verbs) -> Estimate:
        """Buy, estimate, test, and buy what was estimated where a test is above."""
        values = {node: np.asarray(answer, float) for node, answer in self.known.items()}
        values |= _buy(self.bought, self.buying, verbs)
        estimates = {node: np.array([tree.nodes[node].count(q) for q in asked.queries], float) for node in self.guessed}
        if instance is not None and self._above(values | estimates, asked, instance, verbs):
            estimates = _buy(self.guessed, self.if_failed, verbs)
        return Estimate(values=sum((values | estimates).values(), np.zeros(asked.rows)), law=self.law)

    def _above(self, values: Mapping[Node, Reals], asked: WindowQuestion, instance: Opened | int, verbs: Verbs) -> bool:
        added = sum((values[node] for node in self.tested), np.zeros(asked.rows))
        mask = window_mask(asked.column, asked.partitions, self.window)
        for query, count in zip(asked.queries, added.tolist(), strict=True):
            outcome = verbs.above(instance, Product((mask, *query.masks)), round(count))
            if outcome.above:
                return True
            instance = outcome.instance
        return False


@dataclass(frozen=True, kw_only=True, eq=False)
class Added:
    """The law of rows that each add up answers of equal noise; those with less noise are no worse.

    Less noise is more peaked around 0, and so are sums with it, as all noise is symmetric with one mode.
    """

    noise: Noise
    parts: int
    rows: int

    def tail(self, alpha: float, enough: float) -> float:
        return any_of(sum_tail(self.noise, self.parts, alpha), self.rows)

    def half_widths(self, beta: float) -> Reals:
        own = half_widths([[1.0] * self.parts], [self.noise] * self.parts, each_of(beta, self.rows))
        return np.full(self.rows, own[0])

    def mean_square(self) -> float:
        return self.parts * self.noise.variance()


def bought_law(made: Calibrated) -> ErrorLaw:
    """Of answers that were bought without a test."""
    if made.claimed is None:
        return Added(noise=made.bypass, parts=made.parts, rows=made.rows)
    return Checked(calibrated=made, chance=made.claimed)


@lru_cache(maxsize=8192)
def window_mask(column: str, partitions: int, window: Node) -> Mask:
    row = np.zeros((1, partitions), np.int64)
    row[0, window[0] : window[1] + 1] = 1
    return Mask((column,), (partitions,), Steps.dense(row))


def _buy(nodes: Sequence[Node], event: Measured | None, verbs: Verbs) -> dict[Node, Reals]:
    if event is None:
        return {}
    values = verbs.measure(event.strategy, event.noise).values.astype(float)
    return dict(zip(nodes, values.reshape(len(nodes), -1), strict=True))
