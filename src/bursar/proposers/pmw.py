"""Answer from a histogram that learns, where a sparse vector finds its estimate good enough; else buy, and learn.

PMW-Bypass (Boost, Algorithm 1): a heuristic says whether the histogram is ready for a question. If it is, the estimate
is tested; a test that passes costs nothing, one that fails closes the sparse vector and the answer is bought. If it is
not, the answer is bought without a test. Either way the histogram learns from what is bought: it is a view of the log.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np

from bursar.compile.partwise import PartwiseMap
from bursar.core.accounting import Failed, Measured, Mode, Noise, NoiseKind, Opened
from bursar.core.grant import Verbs
from bursar.core.noise.law import LARGEST_SCALE, SMALLEST_SCALE
from bursar.core.queries import LinearMap, Product
from bursar.errors import BudgetError
from bursar.estimation.estimate import ErrorLaw, Estimate, IndependentRows
from bursar.goal import GoalKind
from bursar.planner.offer import Offer, Price, Proposer, Views
from bursar.planner.request import PlanningRequest
from bursar.proposers.pmw_calibration import Calibrated, Calibration, Checked, Lemma, Printed, Published, Tight
from bursar.proposers.pmw_scope import Heights, covers, heights_of, learnt, scope_of
from bursar.views.learner import Learner, Learning, learnable, rows_of
from bursar.views.learning import Adaptive, Always, ConstantRate, Decaying, Penalty
from bursar.views.measurements import ALL_ROWS, noise_of
from bursar.views.multiplicative_weights import Names

MOST_ROWS = 256
"""Most queries of a question that are tested one by one."""

SIZE_NOISE = 4.0
"""Where the number of rows must be bought, it has this many times the noise of an answer."""

SAME = 1 + 1e-9
"""Scales that differ by less are the same."""

ALPHA = 0.05
"""The error, as a part of the rows, that the rate of vanilla PMW is set for: alpha/8."""

Tests = Sequence[tuple[Product, int]]
"""Queries with the counts that are estimated for them."""


@dataclass(frozen=True, kw_only=True)
class PmwSettings:
    """`least_cells`: no offers are made about columns that have no more joint cells than this. To buy a strategy for
    all questions about them is far cheaper (`invest`), so the default preset sets the most cells that can be bought."""

    learning: Learning
    calibration: Calibration
    answers: NoiseKind = NoiseKind.LAPLACE  # Gaussian answers exist under a budget in rho only
    least_cells: int = 0
    cache: bool = True  # what was bought is given again to who asks the same with a goal no tighter

    def grouped(self, groups: tuple[Names, ...]) -> PmwSettings:
        """The same with histograms over these groups of columns, whatever is asked about together."""
        return replace(self, learning=replace(self.learning, groups=groups))


TIGHT = PmwSettings(learning=Learning(schedule=Decaying(), heuristic=Adaptive()), calibration=Tight())
"""Algorithm 1 with noise as exact tails allow it, and beta split between test and answer."""

PUBLISHED = PmwSettings(learning=Learning(schedule=Decaying(), heuristic=Adaptive()), calibration=Published())
"""The constants behind the published figures (Covid); failures are up to 2 beta."""

PRINTED = PmwSettings(
    learning=Learning(
        schedule=Decaying(), heuristic=Adaptive(penalty=Penalty.PRINTED), spread=4.0, margin_after_failure=False
    ),
    calibration=Printed(),
)
"""Algorithm 1 as it is printed."""

VANILLA = PmwSettings(
    learning=Learning(schedule=ConstantRate(value=ALPHA / 8), heuristic=Always(), margin_after_failure=False),
    calibration=Lemma(),
    cache=False,
)
"""PMW without a bypass: every question is tested, at the rate alpha/8 that minimises the worst case."""


class Pmw(Proposer):
    """Guarantees: an offer holds its worst case, an opened sparse vector and a bought answer, and bids what questions
    like this one cost in the long run, `missed` (opening + answer), with the share of estimates that would have failed
    among the last answers that were bought: a function of the log alone.

    The contract is per-query, and the sparse vector is one of the rows used: a question must not depend on its noise,
    nor therefore on which questions passed before. Of a question like that, Pr[some error >= alpha] <= beta.

    Edge cases: only goals of the kind ERROR. Questions with negative values or about too many joint cells are never
    tested; they are bought.
    Differs: estimates are compared in counts, so n only makes them good and takes no part in the guarantee; where the
    size is not in the log yet it is bought with the first answer, which is free where all neighbours have one size.
    """

    name = "pmw"

    def __init__(self, settings: PmwSettings = TIGHT) -> None:
        self.settings = settings

    def grouped(self, groups: tuple[Names, ...]) -> Pmw:
        return Pmw(self.settings.grouped(groups))

    def offers(self, request: PlanningRequest, views: Views) -> list[Offer]:
        settings, goal, wanted = self.settings, request.goal, request.workload.map
        if goal.kind is not GoalKind.ERROR or wanted.rows == 0:
            return []
        if settings.answers is NoiseKind.GAUSSIAN and views.mode is Mode.PURE:
            return []
        if settings.least_cells and views.domain.cells(wanted.attrs) <= settings.least_cells:
            return []
        if isinstance(wanted, PartwiseMap):
            return []
        if settings.least_cells and not learnt(wanted, settings.learning, views.domain):
            return []  # nothing is learnt from it; where everything is bought by this proposer, it is bought untested
        made = calibrated(settings.calibration, goal.amount, goal.beta, wanted.rows, settings.answers)
        if made is None:
            return []
        cached = _cached(made, wanted, views) if settings.cache else None
        if cached is not None:
            return [cached]
        learner = views.histograms.of(settings.learning, partial(Learner, views.domain, settings.learning))
        tests = _tests(learner, wanted)
        try:
            if tests is None:
                return [_bypass(made, wanted, learner, views)]
            return [_tested(made, tests, wanted, learner, views)]
        except BudgetError:
            return []


@lru_cache(maxsize=4096)
def calibrated(
    calibration: Calibration, alpha: float, beta: float, rows: int, kind: NoiseKind, parts: int = 1
) -> Calibrated | None:
    """Worked out once per goal: tails of sums are not cheap."""
    return calibration.of(alpha, beta, rows, kind, parts)


def _cached(made: Calibrated, wanted: LinearMap, views: Views) -> Offer | None:
    """The exact cache in front: an answer that was bought with no more noise than this goal would buy."""
    record = views.measurements.finest.get(wanted.digest)
    if record is None or noise_of(record).kind is not made.bypass.kind:
        return None
    if noise_of(record).scale > made.bypass.scale * SAME:
        return None
    law = _bought_law(made, noise_of(record))
    estimate = Estimate(values=record.values.astype(float), law=law)
    note = f"measured before, record {record.position}"
    return Offer(proposer=Pmw.name, price=Price(), law=law, run=lambda verbs: estimate, reuses=wanted.rows, note=note)


def _bypass(made: Calibrated, wanted: LinearMap, learner: Learner, views: Views) -> Offer:
    """Bought without a test (Algorithm 1, lines 29 to 34); and, once, the number of rows, which bids nothing."""
    bought = Measured(strategy=wanted, noise=made.bypass, version=views.version)
    alone = views.price((bought,))
    events: tuple[Measured, ...] = (bought,)
    at_most = alone
    if learner.size is None and wanted.digest != ALL_ROWS.digest:
        events = (_size(made, views), bought)
        at_most = views.price(events)
    law = _bought_law(made, made.bypass)
    return Offer(
        proposer=Pmw.name,
        price=Price(events=events, at_most=at_most),
        law=law,
        run=partial(_buy, events, law),
        buys=sum(event.strategy.rows for event in events),
        note=f"{made.bypass.kind.value} noise of scale {made.bypass.scale:.4g}, for a histogram to learn from",
        credit=at_most - alone,
    )


def _tested(made: Calibrated, tests: Tests, wanted: LinearMap, learner: Learner, views: Views) -> Offer:
    """Tested, and bought where a test is above (Algorithm 1, lines 17 to 27)."""
    heights = heights_of([query for query, _ in tests])
    live = next((place for place, one in learner.live.items() if covers(one, one.scope, heights, made)), None)
    bought = Measured(strategy=wanted, noise=made.answer, version=views.version)
    answer = views.price((bought,))
    opened, opening = _opening(made, heights, learner, views)
    if live is None:
        price = Price(events=(opened, bought), at_most=views.price((opened, bought)))
    else:
        failed = (Failed(instance=live, query=q, estimate=count, version=views.version) for q, count in tests)
        price = Price(events=(*failed, bought), at_most=answer)
    missed = learner.missed(made.cut)
    law = Checked(calibrated=made, chance=made.honest if made.claimed is None else made.claimed)
    note = f"an estimate that is tested, and bought if it is off; about {missed:.0%} of the last ones were"
    return Offer(
        proposer=Pmw.name,
        price=price,
        law=law,
        run=partial(_test, opened if live is None else live, tests, bought, law),
        buys=wanted.rows,
        note=note if made.claimed is None else f"{note}; fails with up to {made.honest:.2g}",
        credit=max(price.at_most - math.ceil(missed * (opening + answer)), 0),
    )


def _test(instance: Opened | int, tests: Tests, bought: Measured, law: ErrorLaw, verbs: Verbs) -> Estimate:
    """The estimates, if all of them pass; else what is bought."""
    for query, count in tests:
        tested = verbs.above(instance, query, count)
        if tested.above:
            return _buy((bought,), law, verbs)
        instance = tested.instance
    return Estimate(values=np.array([count for _, count in tests], float), law=law)


def _buy(events: Sequence[Measured], law: ErrorLaw, verbs: Verbs) -> Estimate:
    values = [verbs.measure(event.strategy, event.noise).values for event in events]
    return Estimate(values=values[-1].astype(float), law=law)


def _tests(learner: Learner, wanted: LinearMap) -> Tests | None:
    """The queries with their estimates, if all of them can be tested and the heuristic says so."""
    if learner.size is None or wanted.rows > MOST_ROWS or not learner.histogram.holds(wanted.attrs):
        return None
    queries = rows_of(wanted)
    if len(queries) < wanted.rows or not all(learnable(query) and learner.ready(query) for query in queries):
        return None
    return [(query, learner.count(query)) for query in queries]


def _bought_law(made: Calibrated, noise: Noise) -> ErrorLaw:
    if made.claimed is None:
        return IndependentRows(noise=noise, rows=made.rows)
    return Checked(calibrated=made, chance=made.claimed)


def _size(made: Calibrated, views: Views) -> Measured:
    """The number of rows: as exact as can be where it costs nothing, as under replace-one."""
    exact = Measured(
        strategy=ALL_ROWS, noise=Noise(kind=NoiseKind.LAPLACE, scale=SMALLEST_SCALE), version=views.version
    )
    try:
        if views.price((exact,)) == 0:
            return exact
    except BudgetError:
        pass  # dearer than any budget, so by no means free
    scale = min(SIZE_NOISE * made.bypass.scale, LARGEST_SCALE)
    return Measured(strategy=ALL_ROWS, noise=Noise(kind=made.bypass.kind, scale=scale), version=views.version)


def _opening(made: Calibrated, heights: Heights, learner: Learner, views: Views) -> tuple[Opened, int]:
    """The sparse vector for such questions, and its price: the same ones as long as the log does not grow."""
    key = (made, tuple(heights.items()), views.analyst)
    known = learner.notes.get(key)
    if known is None:
        columns = learner.histogram.group(heights)
        opened = Opened(
            scope=scope_of(columns, heights, views.domain),
            cut=made.cut,
            threshold=made.threshold,
            test=made.test,
            version=views.version,
        )
        known = learner.notes[key] = (opened, views.price((opened,)))
    return known
