"""PMW-Bypass over windows of partitions (Boost, Algorithm 2): histograms on the nodes of a tree, tested by window.

The window of a question is cut into nodes. Of each node an answer that was bought before comes first, then its
histogram where that is ready, and else the answer is bought. What histograms say is tested together; if the test fails
every node that was estimated is bought, and learns. Counts of partitions add up; as fractions they would be averaged
with public numbers of rows as weights.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import chain

import numpy as np

from bursar.arrays import Integers, Reals
from bursar.compile.partwise import PartwiseMap
from bursar.core.accounting import Event, Failed, Measured, Noise, Opened
from bursar.core.queries import LinearMap, Mask, Product, Stack, Steps
from bursar.errors import BudgetError
from bursar.estimation.estimate import ErrorLaw, Estimate, any_of, each_of
from bursar.planner.grant import Verbs
from bursar.planner.offer import Offer, Price, Proposer, Views
from bursar.planner.request import PlanningRequest
from bursar.proposers.pmw import (
    EQUAL_SCALES_WITHIN,
    MOST_TESTED_ROWS,
    TIGHT,
    Calibrated,
    CheckedLaw,
    Heights,
    PmwSettings,
    calibrated,
    covers,
    described,
    heights_of,
    learnt,
    scope_of,
    sum_tail,
)
from bursar.tails import half_widths
from bursar.views.histograms import Names
from bursar.views.learner import learnable, rows_of
from bursar.views.learner_tree import Binary, LearnerTree, Node, WindowTiling, largest_run, shares, windowed
from bursar.views.measurements import products_of

UNKNOWN_SIZES = "not to learn from: numbers of rows of partitions are not public where people are added or removed"
"""Why a question about one window is bought as it is."""


@dataclass(frozen=True, kw_only=True, eq=False)
class WindowQuestion:
    """A question about one window, cut into nodes, from left to right; those without rows are left out."""

    nodes: Sequence[Node]
    sizes: Mapping[Node, int]
    conditions: Sequence[Product]  # without the partitions
    queries: Sequence[Product]  # its rows one by one; none where they are many
    rows: int
    amount: float
    beta: float
    column: str
    partitions: int

    def purchase(self, nodes: Sequence[Node], noise: Noise, version: int) -> Measured | None:
        """The question about each of the nodes, in one purchase; None where there are none."""
        masks = [window_mask(self.column, self.partitions, node) for node in nodes]
        parts = tuple(Product((mask, *part.masks)) for mask in masks for part in self.conditions)
        if not parts:
            return None
        return Measured(strategy=parts[0] if len(parts) == 1 else Stack(parts), noise=noise, version=version)


@dataclass(frozen=True, kw_only=True, eq=False)
class WindowPlan:
    """Nodes whose answers are known, those to be bought, and those estimated: bought too, should the test fail.

    The test is about the `tested` nodes together, which are those estimated and perhaps others. Purchases are one for
    all nodes of a kind, each node with noise of its own.
    """

    calibration: Calibrated  # of the test
    law: ErrorLaw
    estimated: Sequence[Node] = ()
    tested: Sequence[Node] = ()
    cached: Mapping[Node, Integers] = field(default_factory=dict)
    bought: Sequence[Node] = ()
    buying: Measured | None = None
    if_failed: Measured | None = None

    @property
    def window(self) -> Node:
        """The first and the last partition that are tested together."""
        return self.tested[0][0], self.tested[-1][1]

    @property
    def purchases(self) -> tuple[Measured, ...]:
        """What is bought at once, and what is bought where the test fails."""
        return tuple(event for event in (self.buying, self.if_failed) if event is not None)

    def run(self, question: WindowQuestion, tree: LearnerTree, instance: Opened | int | None, verbs: Verbs) -> Estimate:
        """Buy, estimate, test, and buy what was estimated where a test is above."""
        values = {node: np.asarray(answer, float) for node, answer in self.cached.items()}
        values |= _buy(self.bought, self.buying, verbs)
        estimates = {
            node: np.array([tree.nodes[node].count(q) for q in question.queries], float) for node in self.estimated
        }
        if instance is not None and self._above(values | estimates, question, instance, verbs):
            estimates = _buy(self.estimated, self.if_failed, verbs)
        return Estimate(values=sum((values | estimates).values(), np.zeros(question.rows)), law=self.law)

    def _above(
        self, values: Mapping[Node, Reals], question: WindowQuestion, instance: Opened | int, verbs: Verbs
    ) -> bool:
        added = sum((values[node] for node in self.tested), np.zeros(question.rows))
        mask = window_mask(question.column, question.partitions, self.window)
        for query, count in zip(question.queries, added.tolist(), strict=True):
            outcome = verbs.above(instance, Product((mask, *query.masks)), round(count))
            if outcome.above:
                return True
            instance = outcome.instance
        return False


@dataclass(frozen=True, kw_only=True, eq=False)
class SummedLaw:
    """The law of rows that each add up answers of equal noise; those with less noise are no worse.

    Less noise is more peaked around 0, and so are sums with it, as all noise is symmetric with one mode.
    """

    noise: Noise
    parts: int
    rows: int

    def tail(self, alpha: float, enough: float) -> float:
        return any_of(sum_tail(self.noise, self.parts, alpha), self.rows)

    def half_widths(self, beta: float) -> Reals:
        widths = half_widths([[1.0] * self.parts], [self.noise] * self.parts, each_of(beta, self.rows))
        return np.full(self.rows, widths[0])

    def mean_square(self) -> float:
        return self.parts * self.noise.variance()


def bought_law(calibration: Calibrated) -> ErrorLaw:
    """Of answers that were bought without a test."""
    if calibration.claimed is None:
        return SummedLaw(noise=calibration.bypass, parts=calibration.parts, rows=calibration.rows)
    return CheckedLaw(calibrated=calibration, chance=calibration.claimed)


@lru_cache(maxsize=8192)
def window_mask(column: str, partitions: int, window: Node) -> Mask:
    """The partitions of a window, as one row of zeros and ones."""
    row = np.zeros((1, partitions), np.int64)
    row[0, window[0] : window[1] + 1] = 1
    return Mask((column,), (partitions,), Steps.dense(row))


def _buy(nodes: Sequence[Node], event: Measured | None, verbs: Verbs) -> dict[Node, Reals]:
    if event is None:
        return {}
    values = verbs.measure(event.strategy, event.noise).values.astype(float)
    return dict(zip(nodes, values.reshape(len(nodes), -1), strict=True))


class PmwWindows(Proposer):
    """PMW-Bypass over windows of partitions (Boost, Algorithm 2).

    Guarantees: of a question that does not depend on the noise of sparse vectors, Pr[some error > alpha] <= beta;
    an offer holds its worst case, and bids what questions like it cost in the long run.

    The largest run of ready nodes without a gap is tested for its share of alpha, by rows, with beta/2, and the others
    are bought for theirs with beta/2 (Algorithm 2, lines 9, 10 and 28). With `whole` all ready nodes are estimated, and
    one test is about the answer to the whole window, as behind the published figures: whatever was bought for the
    others is in it, and if it fails there is a sum of bought answers, with all of alpha.

    Edge cases: only goals of the kind ERROR. Questions that are no single window, about windows that no tree covers or
    whose numbers of rows are not public are bought as they are.
    Differs: after a failed test each node is bought by itself, as in the published run, where line 23 buys one answer
    for all; so each learns from its own answer, and its exact cache has it.
    """

    name = "pmw-windows"

    def __init__(
        self, settings: PmwSettings = TIGHT, *, cut: WindowTiling | None = None, warm: bool = True, whole: bool = False
    ) -> None:
        self.settings, self._warm, self._whole = settings, warm, whole
        self.scope = replace(settings.scope, partitions=True, above_cells=0)  # cells are those of a node, see `offers`
        self._cut: WindowTiling = Binary() if cut is None else cut

    def grouped(self, groups: tuple[Names, ...]) -> PmwWindows:
        return PmwWindows(self.settings.grouped(groups), cut=self._cut, warm=self._warm, whole=self._whole)

    def offers(self, request: PlanningRequest, views: Views) -> list[Offer]:
        settings, workload = self.settings, request.workload.map
        if workload.rows == 0 or isinstance(workload, PartwiseMap):
            return []
        if settings.least_cells and not learnt(workload, settings.learning, views.domain):
            return []  # as in `Pmw`
        tree = self.tree(views)
        question = self._question(request, tree, views)
        if views.domain.cells(_columns(workload, question, tree, views)) <= settings.least_cells:
            return []
        try:
            if question is None:
                reason = self._why_outright(request, views)
                if settings.least_cells and reason == UNKNOWN_SIZES:
                    return []  # nothing would ever be learnt, so it is for others to buy
                return self._outright(request, views, reason)
            plan = self._plan(question, tree, views)
            if plan is None:
                return []
            return [_tested(plan, question, tree, views) if plan.estimated else _untested(plan, question, tree, views)]
        except BudgetError:
            return []

    def tree(self, views: Views) -> LearnerTree:
        """What was learnt so far."""
        learning = self.settings.learning
        make = partial(LearnerTree, views.domain, learning, self._cut, self._warm)
        return views.histograms.of((learning, self._cut, self._warm), make)

    def _question(self, request: PlanningRequest, tree: LearnerTree, views: Views) -> WindowQuestion | None:
        workload = request.workload.map
        parts = [
            part for part in (windowed(product, views.domain) for product in products_of(workload)) if part is not None
        ]
        windows = {window for window, _ in parts}
        if sum(condition.rows for _, condition in parts) < workload.rows or len(windows) != 1:
            return None
        nodes = self._cut.nodes(windows.pop()) or []
        sizes = {node: size for node in nodes if (size := tree.size(node)) is not None}
        if not nodes or len(sizes) < len(nodes):
            return None
        queries = (
            [query for _, condition in parts for query in rows_of(condition)]
            if workload.rows <= MOST_TESTED_ROWS
            else []
        )
        return WindowQuestion(
            nodes=[node for node in nodes if sizes[node] > 0],
            sizes=sizes,
            conditions=[condition for _, condition in parts],
            queries=queries,
            rows=workload.rows,
            amount=request.goal.amount,
            beta=request.goal.beta,
            column=views.domain.partition or "",
            partitions=views.domain.partitions,
        )

    def _why_outright(self, request: PlanningRequest, views: Views) -> str:
        """What keeps a question from being cut into nodes with histograms."""
        workload = request.workload.map
        parts = [windowed(product, views.domain) for product in products_of(workload)]
        windows = {part[0] for part in parts if part is not None}
        if None in parts or sum(part[1].rows for part in parts if part is not None) < workload.rows or len(windows) > 1:
            return "for more than one window"
        return UNKNOWN_SIZES if all(map(self._cut.nodes, windows)) else "for a window that no tree covers"

    def _outright(self, request: PlanningRequest, views: Views, reason: str) -> list[Offer]:
        workload, goal = request.workload.map, request.goal
        calibration = calibrated(
            self.settings.calibration, goal.amount, goal.beta, workload.rows, self.settings.answers
        )
        if calibration is None:
            return []
        event, law = (
            Measured(strategy=workload, noise=calibration.bypass, version=views.version),
            bought_law(calibration),
        )
        return [
            Offer(
                proposer=self.name,
                price=Price(events=(event,), at_most=views.price((event,))),
                law=law,
                run=lambda verbs: Estimate(
                    values=verbs.measure(workload, calibration.bypass).values.astype(float), law=law
                ),
                buys=workload.rows,
                note=f"{described(calibration.bypass)}, {reason}",
            )
        ]

    # -- plans -----------------------------------------------------------------------------------------------------

    def _plan(self, question: WindowQuestion, tree: LearnerTree, views: Views) -> WindowPlan | None:
        every = self._calibrated(question, 1.0, 1.0, max(len(question.nodes), 1))
        if every is None:
            return None
        untested = WindowPlan(calibration=every, law=bought_law(every))
        if all(self._cached(node, every.bypass, question, tree) is not None for node in question.nodes):
            return self._filled(untested, question.nodes, every.bypass, question, tree, views)
        estimated = [node for node in question.nodes if self._estimated(node, every.answer, question, tree)]
        if not self._whole:
            estimated = largest_run(question.nodes, estimated, question.sizes)
        others = [node for node in question.nodes if node not in estimated]
        if not estimated:
            return self._filled(untested, others, every.bypass, question, tree, views)
        if self._whole or not others:
            law = CheckedLaw(calibrated=every, chance=every.honest if every.claimed is None else every.claimed)
            plan = WindowPlan(calibration=every, law=law, estimated=estimated, tested=question.nodes)
            return self._filled(plan, others, every.answer, question, tree, views)
        weights = dict(zip(question.nodes, shares(question.nodes, question.sizes), strict=True))
        tested = self._calibrated(question, math.fsum(weights[node] for node in estimated), 0.5, len(estimated))
        bought = self._calibrated(question, math.fsum(weights[node] for node in others), 0.5, len(others))
        if tested is None or bought is None:
            return None
        law = CheckedLaw(
            calibrated=replace(tested, alpha=question.amount),
            chance=question.beta if tested.claimed is not None else tested.honest + question.beta / 2,
            beside=bought.parts * bought.bypass.variance(),
        )
        plan = WindowPlan(calibration=tested, law=law, estimated=estimated, tested=estimated)
        return self._filled(plan, others, bought.bypass, question, tree, views)

    def _calibrated(self, question: WindowQuestion, alpha: float, beta: float, parts: int) -> Calibrated | None:
        """Noises for these shares of the goal."""
        settings = self.settings
        return calibrated(
            settings.calibration, alpha * question.amount, beta * question.beta, question.rows, settings.answers, parts
        )

    def _estimated(self, node: Node, noise: Noise, question: WindowQuestion, tree: LearnerTree) -> bool:
        learner = tree.nodes.get(node)
        if learner is None or not question.queries or self._cached(node, noise, question, tree) is not None:
            return False
        return all(learnable(q) and learner.histogram.holds(q.attrs) and learner.ready(q) for q in question.queries)

    def _filled(
        self,
        plan: WindowPlan,
        others: Sequence[Node],
        noise: Noise,
        question: WindowQuestion,
        tree: LearnerTree,
        views: Views,
    ) -> WindowPlan:
        """With answers for the nodes that are not estimated: those bought before with no more noise, else new ones."""
        answers = {node: self._cached(node, noise, question, tree) for node in others}
        bought = [node for node in others if answers[node] is None]
        return replace(
            plan,
            cached={node: values for node, values in answers.items() if values is not None},
            bought=bought,
            buying=question.purchase(bought, noise, views.version),
            if_failed=question.purchase(plan.estimated, plan.calibration.answer, views.version),
        )

    def _cached(self, node: Node, noise: Noise, question: WindowQuestion, tree: LearnerTree) -> Integers | None:
        """The exact cache of a node: what was bought of it with no more noise than this."""
        answers = [tree.answers.get((node, query.digest)) for query in question.queries] if self.settings.cache else []
        values = [answer[0] for answer in answers if answer is not None and _no_more(answer[1], noise)]
        return np.array(values) if len(values) == question.rows else None


def _untested(plan: WindowPlan, question: WindowQuestion, tree: LearnerTree, views: Views) -> Offer:
    events = plan.purchases
    noise = plan.calibration.bypass
    return Offer(
        proposer=PmwWindows.name,
        price=Price(events=events, at_most=views.price(events) if events else 0),
        law=plan.law,
        run=partial(plan.run, question, tree, None),
        reuses=question.rows * len(plan.cached),
        buys=question.rows * len(plan.bought),
        note=f"{described(noise)} for {len(plan.bought)} of {len(question.nodes)} nodes, to learn from",
    )


def _tested(plan: WindowPlan, question: WindowQuestion, tree: LearnerTree, views: Views) -> Offer:
    calibration, heights = plan.calibration, heights_of(question.queries)
    live = _live(plan, heights, tree, views)
    opened, opening = _opening(plan, heights, tree, views)
    answers = views.price(plan.purchases)
    events: tuple[Event, ...]
    if live is None:
        events = (opened, *plan.purchases)
        at_most = views.price(events)
    else:
        mask = window_mask(question.column, question.partitions, plan.window)
        tests = (Product((mask, *query.masks)) for query in question.queries)
        failed = (Failed(instance=live, query=test, estimate=0, version=views.version) for test in tests)
        events, at_most = (*failed, *plan.purchases), answers
    surely = 0 if plan.buying is None else views.price((plan.buying,))
    missed = max(tree.nodes[node].missed(max(calibration.cut // len(plan.tested), 1)) for node in plan.estimated)
    note = (
        f"{len(plan.estimated)} of {len(question.nodes)} nodes estimated and tested; about {missed:.0%} of such are off"
    )
    return Offer(
        proposer=PmwWindows.name,
        price=Price(events=events, at_most=at_most),
        law=plan.law,
        run=partial(plan.run, question, tree, opened if live is None else live),
        reuses=question.rows * len(plan.cached),
        buys=question.rows * (len(plan.bought) + len(plan.estimated)),
        note=note if calibration.claimed is None else f"{note}; fails with up to {calibration.honest:.2g}",
        credit=views.credit(at_most, max(at_most - surely - math.ceil(missed * (opening + answers - surely)), 0)),
    )


def _live(plan: WindowPlan, heights: Heights, tree: LearnerTree, views: Views) -> int | None:
    """The open sparse vector of this very window; under shares, the own one."""
    for place, live in tree.live[plan.window].items():
        usable = views.analyst is None or views.analyst == live.analyst
        if usable and covers(live.opened, live.scope, heights, plan.calibration):
            return place
    return None


def _opening(plan: WindowPlan, heights: Heights, tree: LearnerTree, views: Views) -> tuple[Opened, int]:
    """The sparse vector for such questions about the window, and its price: the same as long as the log stays."""
    key = (plan.calibration, plan.window, tuple(heights.items()), views.analyst)
    opening = tree.openings.get(key)
    if opening is None:
        groups = (tree.nodes[node].histogram.group(heights) for node in plan.estimated)
        columns = views.domain.ordered(chain.from_iterable(groups))
        mask = window_mask(str(views.domain.partition), views.domain.partitions, plan.window)
        opened = Opened(
            scope=Product((mask, *scope_of(columns, heights, views.domain).masks)),
            cut=plan.calibration.cut,
            threshold=plan.calibration.threshold,
            test=plan.calibration.test,
            version=views.version,
        )
        opening = tree.openings[key] = (opened, views.price((opened,)))
    return opening


def _columns(workload: LinearMap, question: WindowQuestion | None, tree: LearnerTree, views: Views) -> tuple[str, ...]:
    """What a question is about, and all that was asked about with it, but for the partitions."""
    names = [name for name in workload.attrs if name != views.domain.partition]
    learners = [] if question is None else [tree.nodes[node] for node in question.nodes if node in tree.nodes]
    groups = chain.from_iterable(learner.histogram.group(names) for learner in learners if names)
    return views.domain.ordered([*names, *groups])


def _no_more(noise: Noise, than: Noise) -> bool:
    return noise.kind is than.kind and noise.scale <= than.scale * EQUAL_SCALES_WITHIN
