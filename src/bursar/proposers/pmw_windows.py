"""PMW-Bypass over windows of partitions (Boost, Algorithm 2): histograms on the nodes of a tree, tested by window.

The window of a question is cut into nodes. Of each node an answer that was bought before comes first, then its
histogram where that is ready, and else the answer is bought. What histograms say is tested together; if the test fails
every node that was estimated is bought, and learns. Counts of partitions add up; as fractions they would be averaged
with public numbers of rows as weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

import numpy as np

from bursar.arrays import Integers
from bursar.compile.partwise import PartwiseMap
from bursar.core.accounting import Event, Failed, Measured, Mode, Noise, NoiseKind, Opened
from bursar.core.queries import LinearMap, Product
from bursar.errors import BudgetError
from bursar.estimation.estimate import Estimate
from bursar.goal import GoalKind
from bursar.planner.offer import Offer, Price, Proposer, Views
from bursar.planner.request import PlanningRequest
from bursar.proposers.pmw import MOST_ROWS, SAME, TIGHT, PmwSettings, calibrated
from bursar.proposers.pmw_calibration import Calibrated, Checked
from bursar.proposers.pmw_plan import WindowPlan, WindowQuestion, bought_law, window_mask
from bursar.proposers.pmw_scope import Heights, covers, heights_of, learnt, scope_of
from bursar.views.learner import learnable, rows_of
from bursar.views.learner_tree import Binary, LearnerTree, Node, WindowTiling, largest_run, shares, windowed
from bursar.views.measurements import products_of
from bursar.views.multiplicative_weights import Names


class PmwWindows(Proposer):
    """Guarantees: of a question that does not depend on the noise of sparse vectors, Pr[some error >= alpha] <= beta;
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
        self._cut: WindowTiling = Binary() if cut is None else cut

    def grouped(self, groups: tuple[Names, ...]) -> PmwWindows:
        return PmwWindows(self.settings.grouped(groups), cut=self._cut, warm=self._warm, whole=self._whole)

    def offers(self, request: PlanningRequest, views: Views) -> list[Offer]:
        settings, wanted = self.settings, request.workload.map
        if views.domain.partition is None or request.goal.kind is not GoalKind.ERROR or wanted.rows == 0:
            return []
        if settings.answers is NoiseKind.GAUSSIAN and views.mode is Mode.PURE:
            return []
        if isinstance(wanted, PartwiseMap):
            return []
        if settings.least_cells and not learnt(wanted, settings.learning, views.domain):
            return []  # as in `Pmw`
        tree = self.tree(views)
        asked = self._asked(request, tree, views)
        if views.domain.cells(_columns(wanted, asked, tree, views)) <= settings.least_cells:
            return []
        try:
            if asked is None:
                return self._outright(request, views)
            plan = self._plan(asked, tree, views)
            if plan is None:
                return []
            return [_tested(plan, asked, tree, views) if plan.guessed else _untested(plan, asked, tree, views)]
        except BudgetError:
            return []

    def tree(self, views: Views) -> LearnerTree:
        """What was learnt so far."""
        learning = self.settings.learning
        make = partial(LearnerTree, views.domain, learning, self._cut, self._warm)
        return views.histograms.of((learning, self._cut, self._warm), make)

    def _asked(self, request: PlanningRequest, tree: LearnerTree, views: Views) -> WindowQuestion | None:
        wanted = request.workload.map
        parts = [part for part in (windowed(one, views.domain) for one in products_of(wanted)) if part is not None]
        windows = {window for window, _ in parts}
        if sum(rest.rows for _, rest in parts) < wanted.rows or len(windows) != 1:
            return None
        nodes = self._cut.nodes(windows.pop()) or []
        sizes = {node: size for node in nodes if (size := tree.size(node)) is not None}
        if not nodes or len(sizes) < len(nodes):
            return None
        queries = [query for _, rest in parts for query in rows_of(rest)] if wanted.rows <= MOST_ROWS else []
        return WindowQuestion(
            nodes=[node for node in nodes if sizes[node] > 0],
            sizes=sizes,
            rest=[rest for _, rest in parts],
            queries=queries,
            rows=wanted.rows,
            amount=request.goal.amount,
            beta=request.goal.beta,
            column=views.domain.partition or "",
            partitions=views.domain.partitions,
        )

    def _outright(self, request: PlanningRequest, views: Views) -> list[Offer]:
        wanted, goal = request.workload.map, request.goal
        made = calibrated(self.settings.calibration, goal.amount, goal.beta, wanted.rows, self.settings.answers)
        if made is None:
            return []
        event, law = Measured(strategy=wanted, noise=made.bypass, version=views.version), bought_law(made)
        return [
            Offer(
                proposer=self.name,
                price=Price(events=(event,), at_most=views.price((event,))),
                law=law,
                run=lambda verbs: Estimate(values=verbs.measure(wanted, made.bypass).values.astype(float), law=law),
                buys=wanted.rows,
                note=f"{_described(made.bypass)}, for more than one window",
            )
        ]

    # -- plans -----------------------------------------------------------------------------------------------------

    def _plan(self, asked: WindowQuestion, tree: LearnerTree, views: Views) -> WindowPlan | None:
        every = self._made(asked, 1.0, 1.0, max(len(asked.nodes), 1))
        if every is None:
            return None
        untested = WindowPlan(made=every, law=bought_law(every))
        if all(self._cached(node, every.bypass, asked, tree) is not None for node in asked.nodes):
            return self._filled(untested, asked.nodes, every.bypass, asked, tree, views)
        guessed = [node for node in asked.nodes if self._guessed(node, every.answer, asked, tree)]
        if not self._whole:
            guessed = largest_run(asked.nodes, guessed, asked.sizes)
        others = [node for node in asked.nodes if node not in guessed]
        if not guessed:
            return self._filled(untested, others, every.bypass, asked, tree, views)
        if self._whole or not others:
            law = Checked(calibrated=every, chance=every.honest if every.claimed is None else every.claimed)
            plan = WindowPlan(made=every, law=law, guessed=guessed, tested=asked.nodes)
            return self._filled(plan, others, every.answer, asked, tree, views)
        weights = dict(zip(asked.nodes, shares(asked.nodes, asked.sizes), strict=True))
        tested = self._made(asked, math.fsum(weights[node] for node in guessed), 0.5, len(guessed))
        rest = self._made(asked, math.fsum(weights[node] for node in others), 0.5, len(others))
        if tested is None or rest is None:
            return None
        law = Checked(
            calibrated=replace(tested, alpha=asked.amount),
            chance=asked.beta if tested.claimed is not None else tested.honest + asked.beta / 2,
            beside=rest.parts * rest.bypass.variance(),
        )
        plan = WindowPlan(made=tested, law=law, guessed=guessed, tested=guessed)
        return self._filled(plan, others, rest.bypass, asked, tree, views)

    def _made(self, asked: WindowQuestion, alpha: float, beta: float, parts: int) -> Calibrated | None:
        """Noises for these shares of the goal."""
        settings = self.settings
        return calibrated(
            settings.calibration, alpha * asked.amount, beta * asked.beta, asked.rows, settings.answers, parts
        )

    def _guessed(self, node: Node, noise: Noise, asked: WindowQuestion, tree: LearnerTree) -> bool:
        learner = tree.nodes.get(node)
        if learner is None or not asked.queries or self._cached(node, noise, asked, tree) is not None:
            return False
        return all(learnable(q) and learner.histogram.holds(q.attrs) and learner.ready(q) for q in asked.queries)

    def _filled(
        self,
        plan: WindowPlan,
        others: Sequence[Node],
        noise: Noise,
        asked: WindowQuestion,
        tree: LearnerTree,
        views: Views,
    ) -> WindowPlan:
        """With answers for the nodes that are not estimated: those bought before with no more noise, else new ones."""
        answers = {node: self._cached(node, noise, asked, tree) for node in others}
        bought = [node for node in others if answers[node] is None]
        return replace(
            plan,
            known={node: values for node, values in answers.items() if values is not None},
            bought=bought,
            buying=asked.purchase(bought, noise, views.version),
            if_failed=asked.purchase(plan.guessed, plan.made.answer, views.version),
        )

    def _cached(self, node: Node, noise: Noise, asked: WindowQuestion, tree: LearnerTree) -> Integers | None:
        """The exact cache of a node: what was bought of it with no more noise than this."""
        found = [tree.answers.get((node, query.digest)) for query in asked.queries] if self.settings.cache else []
        values = [one[0] for one in found if one is not None and _no_more(one[1], noise)]
        return np.array(values) if len(values) == asked.rows else None


def _untested(plan: WindowPlan, asked: WindowQuestion, tree: LearnerTree, views: Views) -> Offer:
    events = plan.purchases
    noise = plan.made.bypass
    return Offer(
        proposer=PmwWindows.name,
        price=Price(events=events, at_most=views.price(events) if events else 0),
        law=plan.law,
        run=partial(plan.run, asked, tree, None),
        reuses=asked.rows * len(plan.known),
        buys=asked.rows * len(plan.bought),
        note=f"{_described(noise)} for {len(plan.bought)} of {len(asked.nodes)} nodes, to learn from",
    )


def _tested(plan: WindowPlan, asked: WindowQuestion, tree: LearnerTree, views: Views) -> Offer:
    made, heights = plan.made, heights_of(asked.queries)
    live = _live(plan, heights, tree, views)
    opened, opening = _opening(plan, heights, tree, views)
    answers = views.price(plan.purchases)
    events: tuple[Event, ...]
    if live is None:
        events = (opened, *plan.purchases)
        at_most = views.price(events)
    else:
        mask = window_mask(asked.column, asked.partitions, plan.window)
        tests = (Product((mask, *query.masks)) for query in asked.queries)
        failed = (Failed(instance=live, query=test, estimate=0, version=views.version) for test in tests)
        events, at_most = (*failed, *plan.purchases), answers
    surely = 0 if plan.buying is None else views.price((plan.buying,))
    missed = max(tree.nodes[node].missed(max(made.cut // len(plan.tested), 1)) for node in plan.guessed)
    note = f"{len(plan.guessed)} of {len(asked.nodes)} nodes estimated and tested; about {missed:.0%} of such are off"
    return Offer(
        proposer=PmwWindows.name,
        price=Price(events=events, at_most=at_most),
        law=plan.law,
        run=partial(plan.run, asked, tree, opened if live is None else live),
        reuses=asked.rows * len(plan.known),
        buys=asked.rows * (len(plan.bought) + len(plan.guessed)),
        note=note if made.claimed is None else f"{note}; fails with up to {made.honest:.2g}",
        credit=max(at_most - surely - math.ceil(missed * (opening + answers - surely)), 0),
    )


def _live(plan: WindowPlan, heights: Heights, tree: LearnerTree, views: Views) -> int | None:
    """The open sparse vector of this very window; under shares, the own one."""
    for place, one in tree.live[plan.window].items():
        own = views.analyst is None or views.analyst == one.analyst
        if own and covers(one.opened, one.scope, heights, plan.made):
            return place
    return None


def _opening(plan: WindowPlan, heights: Heights, tree: LearnerTree, views: Views) -> tuple[Opened, int]:
    """The sparse vector for such questions about the window, and its price: the same as long as the log stays."""
    key = (plan.made, plan.window, tuple(heights.items()), views.analyst)
    known: tuple[Opened, int] | None = tree.notes.get(key)
    if known is None:
        groups = (tree.nodes[node].histogram.group(heights) for node in plan.guessed)
        columns = views.domain.ordered(chain.from_iterable(groups))
        mask = window_mask(str(views.domain.partition), views.domain.partitions, plan.window)
        opened = Opened(
            scope=Product((mask, *scope_of(columns, heights, views.domain).masks)),
            cut=plan.made.cut,
            threshold=plan.made.threshold,
            test=plan.made.test,
            version=views.version,
        )
        known = tree.notes[key] = (opened, views.price((opened,)))
    return known


def _columns(wanted: LinearMap, asked: WindowQuestion | None, tree: LearnerTree, views: Views) -> tuple[str, ...]:
    """What a question is about, and all that was asked about with it, but for the partitions."""
    own = [name for name in wanted.attrs if name != views.domain.partition]
    learners = [] if asked is None else [tree.nodes[node] for node in asked.nodes if node in tree.nodes]
    groups = chain.from_iterable(learner.histogram.group(own) for learner in learners if own)
    return views.domain.ordered([*own, *groups])


def _no_more(noise: Noise, than: Noise) -> bool:
    return noise.kind is than.kind and noise.scale <= than.scale * SAME


def _described(noise: Noise) -> str:
    return f"{noise.kind.value} noise of scale {noise.scale:.4g}"
