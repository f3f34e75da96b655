"""Answer from a histogram that learns, where a sparse vector finds its estimate good enough; else buy, and learn.

PMW-Bypass (Boost, Algorithm 1): a heuristic says whether the histogram is ready for a question. If it is, the estimate
is tested; a test that passes costs nothing, one that fails closes the sparse vector and the answer is bought. If it is
not, the answer is bought without a test. Either way the histogram learns from what is bought: it is a view of the log.

A test passes where |q(D) - e| + Y < cut + X, with X the noise of the threshold and Y that of the test. An estimate e
that is off by more than alpha is off by k = floor(alpha) + 1 at least, as both numbers are whole, and passes with
probability at most p_test = Pr[X - Y > k - cut]; if it does not pass, the answer q(D) + Z is off by more than alpha
with probability p_answer. So the whole fails with at most

    p_test + (1 - p_test) p_answer                                                       (Lemma A.2, for whole numbers)

and with p_answer alone where the estimate was right. Of several queries asked together it is enough that one bad
estimate is caught, since then all of them are bought: p_test is that of one query, p_answer that of all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Protocol

import numpy as np

from bursar.arrays import Reals
from bursar.compile.partwise import PartwiseMap
from bursar.core.accounting import Failed, Measured, Mode, Noise, NoiseKind, Opened
from bursar.core.domain import Domain
from bursar.core.noise.law import LARGEST_SCALE, SMALLEST_SCALE
from bursar.core.queries import LinearMap, Mask, Predicate, Product, Steps
from bursar.errors import BudgetError, GoalError
from bursar.estimation.estimate import ErrorLaw, Estimate, IndependentRows, any_of, each_of
from bursar.goal import GoalKind
from bursar.planner.grant import Verbs
from bursar.planner.offer import GAUSSIAN_MODES, Offer, Price, Proposer, Scope, Views
from bursar.planner.request import PlanningRequest
from bursar.tails import pair_tail, scale_for, single_tail, steps, tail
from bursar.views.histograms import Names
from bursar.views.learner import Adaptive, Decaying, Learner, Learning, learnable, rows_of
from bursar.views.measurements import ALL_ROWS, noise_of, products_of

TEST_SHARE = 6 / 7
"""The part of beta that the test gets: a test costs about six times an answer, so this is the cheapest split."""

TEST_OVER_THRESHOLD = 1.2
"""The scale of the test's noise over that of the threshold's: for beta from .05 to 1e-6 within 1 % of the cheapest."""

BETA_LESS_ROUNDING = 1 - 1e-12
"""A hair below beta, so that rounding cannot lift the whole above it."""

SCALE_TOLERANCE, SCALE_STEP = 1e-4, 1.03
"""How closely the largest allowed scale of a test is found, as a part of it; and where it is first looked for, around
that of continuous noise."""

SHRUNK_SCALE = 0.998
"""By which scales are made smaller until a goal is kept."""


@dataclass(frozen=True, kw_only=True)
class Calibrated:
    """Noises for one error alpha and failure probability beta."""

    alpha: float
    rows: int
    cut: int
    threshold: Noise
    test: Noise
    answer: Noise  # after a failed test
    bypass: Noise  # without a test
    parts: int = 1  # answers that are added up, with independent noise
    claimed: float | None = None  # the failure probability that a publication says it has; None where it is as proved

    @cached_property
    def honest(self) -> float:
        """At least the probability that a tested answer is off by more than alpha."""
        passes = passing(self.threshold, self.test, steps(self.alpha) - self.cut)
        answer = any_of(sum_tail(self.answer, self.parts, self.alpha), self.rows)
        return min(1.0, passes + (1 - passes) * answer)


class Calibration(Protocol):
    """How much noise a goal allows in tests and answers; None where it cannot be kept with noise that can be drawn.

    A value: two with equal settings are equal.
    """

    def of(self, alpha: float, beta: float, rows: int, kind: NoiseKind, parts: int = 1) -> Calibrated | None: ...

    def __hash__(self) -> int: ...


@dataclass(frozen=True, kw_only=True)
class Tight:
    """Exact tails of discrete noise; beta is split between test and answer, and all of it is the bypass's."""

    test_share: float = TEST_SHARE

    def of(self, alpha: float, beta: float, rows: int, kind: NoiseKind, parts: int = 1) -> Calibrated | None:
        return _tight(alpha, beta, rows, kind, parts, self.test_share)


@dataclass(frozen=True, kw_only=True, eq=False)
class CheckedLaw:
    """The law of answers that are tested estimates, or bought where the test fails: only alpha itself is promised.

    mean_square: an estimate off by d passes with probability at most (1/2 + x/4) e^-x for d = cut + x b, b the larger
    scale; so E[d^2; passed] <= (cut + 3b)^2, as d^2 grows less than that falls beyond x = 3. Bought ones add theirs.
    """

    calibrated: Calibrated
    chance: float  # at least Pr[some error > alpha], or what is claimed for it
    beside: float = 0.0  # the mean square of what is added to them, which is independent of them and has mean 0

    def tail(self, alpha: float, enough: float) -> float:
        return self.chance if alpha >= self.calibrated.alpha else 1.0

    def half_widths(self, beta: float) -> Reals:
        return np.full(self.calibrated.rows, self.calibrated.alpha if beta >= self.chance else math.inf)

    def mean_square(self) -> float:
        calibration = self.calibrated
        farthest = calibration.cut + 3 * max(calibration.threshold.scale, calibration.test.scale, 1.0)
        return farthest**2 + calibration.parts * calibration.answer.variance() + self.beside


def passing(threshold: Noise, test: Noise, short: int) -> float:
    """At least Pr[X - Y > short] for the noises of a threshold and of a test: half of a symmetric tail."""
    if short < 0:
        return 1.0
    closed = pair_tail(threshold, test, short + 1)
    return tail([1.0, 1.0], [threshold, test], short) / 2 if closed is None else closed


def sum_tail(noise: Noise, parts: int, alpha: float) -> float:
    """At least Pr[|S| > alpha] for the sum S of `parts` draws."""
    return single_tail(noise, alpha) if parts == 1 else tail([1.0] * parts, [noise] * parts, alpha)


@lru_cache(maxsize=1024)
def reach(kind: NoiseKind, parts: int, beta: float) -> float:
    """How far the sum of `parts` continuous draws of scale 1 reaches with probability beta, to one part in 10^4.

    One Laplace draw has a closed form, ln(1/beta); otherwise noise of a large scale stands for continuous noise.
    """
    if parts == 1 and kind is NoiseKind.LAPLACE:
        return math.log(1 / beta)
    noise = Noise(kind=kind, scale=2.0**20)
    low, high = 1.0, 2.0
    while sum_tail(noise, parts, high * noise.scale) > beta:
        low, high = high, 2 * high
    while high > (1 + SCALE_TOLERANCE) * low:
        middle = (low + high) / 2
        low, high = (middle, high) if sum_tail(noise, parts, middle * noise.scale) > beta else (low, middle)
    return high


def part_scale(kind: NoiseKind, alpha: float, beta: float, parts: int) -> float:
    """A scale, nearly the largest, at which the sum of `parts` draws has Pr[|S| > alpha] <= beta.

    Edge cases: as for `scale_for`, which it is for one draw.
    """
    if parts == 1:
        return scale_for(kind, alpha, beta)
    scale = min((steps(alpha) - 0.5) / reach(kind, parts, beta), LARGEST_SCALE)
    while scale >= SMALLEST_SCALE:
        if sum_tail(Noise(kind=kind, scale=scale), parts, alpha) <= beta:
            return scale
        scale *= SHRUNK_SCALE
    raise GoalError(f"not even the least noise stays within an error of {alpha:g} all but {beta:g} of the time")


def _tight(alpha: float, beta: float, rows: int, kind: NoiseKind, parts: int, share: float) -> Calibrated | None:
    beta *= BETA_LESS_ROUNDING
    whole = steps(alpha)
    cut = whole // 2
    if cut < 1:
        return None
    noises = _test_noises(whole - cut, share * beta)
    if noises is None:
        return None
    try:
        answer = part_scale(kind, alpha, each_of((1 - share) * beta, rows), parts)
        bypass = part_scale(kind, alpha, each_of(beta, rows), parts)
    except GoalError:
        return None
    return Calibrated(
        alpha=alpha,
        rows=rows,
        cut=cut,
        threshold=noises[0],
        test=noises[1],
        answer=Noise(kind=kind, scale=answer),
        bypass=Noise(kind=kind, scale=bypass),
        parts=parts,
    )


def _test_noises(short: int, beta: float) -> tuple[Noise, Noise] | None:
    """The most noise of a threshold and of a test with Pr[X - Y > short] <= beta; None where there is none."""

    def noises(scale: float) -> tuple[Noise, Noise]:
        return Noise(kind=NoiseKind.LAPLACE, scale=scale), Noise(
            kind=NoiseKind.LAPLACE, scale=TEST_OVER_THRESHOLD * scale
        )

    def keeps(scale: float) -> bool:
        return passing(*noises(scale), short) <= beta

    least, most = SMALLEST_SCALE, LARGEST_SCALE / TEST_OVER_THRESHOLD
    low = high = min(max((short + 0.5) / _continuous(beta), least), most)
    while low > least and not keeps(low):
        low = max(low / SCALE_STEP, least)
    if not keeps(low):
        return None
    while high < most and keeps(high):
        low, high = high, min(high * SCALE_STEP, most)
    if keeps(high):
        return noises(high)
    while high > (1 + SCALE_TOLERANCE) * low:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return noises(low)


def _continuous(beta: float) -> float:
    """The x with Pr[X - Y > x] = beta for Laplace noise of scales 1 and r: (r^2 e^(-x/r) - e^-x) / (2 (r^2 - 1))."""
    r = TEST_OVER_THRESHOLD
    return least_argument(lambda x: (r**2 * math.exp(-x / r) - math.exp(-x)) / (2 * (r**2 - 1)), beta)


def least_argument(bound: Callable[[float], float], beta: float) -> float:
    """The least x at which a falling bound is beta or less, to a few parts in 10^15."""
    low, high = 0.0, 1.0
    while bound(high) > beta:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if bound(middle) > beta else (low, middle)
    return high


Heights = Mapping[str, int]
"""Per column, the largest value that its conditions take."""


def learnt(workload: LinearMap, learning: Learning, domain: Domain) -> bool:
    """Whether histograms learn from the rows of a question; not from one that spans groups declared to be apart."""
    if isinstance(workload, Predicate):
        return False
    columns = ([name for name in part.attrs if name != domain.partition] for part in products_of(workload))
    return all(map(learning.together, columns))


def heights_of(queries: Sequence[Product]) -> Heights:
    """How large a query's values get, per column; the first column of a condition over several stands for all."""
    heights: dict[str, int] = {}
    for mask in (mask for query in queries for mask in query.masks):
        for place, name in enumerate(mask.attrs):
            heights[name] = max(heights.get(name, 1), mask.steps.largest() if place == 0 else 1)
    return dict(sorted(heights.items()))


def scope_of(columns: Sequence[str], heights: Heights, domain: Domain) -> Product:
    """Ones over the histogram's columns, or what the values get up to."""
    masks = []
    for name in columns:
        size = domain[name].size
        whole = Steps(size, np.array([0, 1]), np.array([0]), np.array([heights.get(name, 1)]))
        masks.append(Mask((name,), (size,), whole))
    return Product(tuple(masks))


def covers(opened: Opened, scope: Product, heights: Heights, calibration: Calibrated) -> bool:
    """Whether a sparse vector has this cut and these noises, and a scope that the queries keep to.

    `scope` is the sparse vector's own, or the part of it that is not about partitions.
    """
    if (opened.cut, opened.threshold, opened.test) != (calibration.cut, calibration.threshold, calibration.test):
        return False
    scope_heights = _scope_heights(scope)
    return scope_heights is not None and all(height <= scope_heights.get(name, 0) for name, height in heights.items())


@lru_cache(maxsize=4096)
def _scope_heights(scope: Product) -> Heights | None:
    """The heights of a scope as it is made here; None for any other."""
    heights: dict[str, int] = {}
    for mask in scope.masks:
        if len(mask.attrs) > 1 or mask.steps.at.tolist() != [0]:
            return None
        heights[mask.attrs[0]] = int(mask.steps.levels[0])
    return heights


MOST_TESTED_ROWS = 256
"""Most queries of a question that are tested one by one."""

SIZE_NOISE = 4.0
"""Where the number of rows must be bought, it has this many times the noise of an answer."""

EQUAL_SCALES_WITHIN = 1 + 1e-9
"""Scales that differ by less are the same."""


Tests = Sequence[tuple[Product, int]]
"""Queries with the counts that are estimated for them."""


@dataclass(frozen=True, kw_only=True)
class PmwSettings:
    """How histograms learn, how much noise tests and answers have, and which questions are left to others.

    `least_cells`: no offers are made about columns that have no more joint cells than this. To buy a strategy for all
    questions about them is far cheaper (`invest`), so the default preset sets the most cells that can be bought.
    """

    learning: Learning
    calibration: Calibration
    answers: NoiseKind = NoiseKind.LAPLACE  # Gaussian answers exist under a budget in rho only
    least_cells: int = 0
    cache: bool = True  # what was bought is given again to who asks the same with a goal no tighter

    @property
    def scope(self) -> Scope:
        """What can be tested and bought with these settings."""
        modes = GAUSSIAN_MODES if self.answers is NoiseKind.GAUSSIAN else tuple(Mode)
        return Scope(goals=(GoalKind.ERROR,), modes=modes, above_cells=self.least_cells)

    def grouped(self, groups: tuple[Names, ...]) -> PmwSettings:
        """The same with histograms over these groups of columns, whatever is asked about together."""
        return replace(self, learning=replace(self.learning, groups=groups))


TIGHT = PmwSettings(learning=Learning(schedule=Decaying(), heuristic=Adaptive()), calibration=Tight())
"""Algorithm 1 with noise as exact tails allow it, and beta split between test and answer."""


class Pmw(Proposer):
    """PMW-Bypass (Boost, Algorithm 1): a tested estimate of a learnt histogram, or a bought answer.

    Guarantees: an offer holds its worst case, an opened sparse vector and a bought answer, and bids what questions
    like this one cost in the long run, `missed` (opening + answer), with the share of estimates that would have failed
    among the last answers that were bought: a function of the log alone.

    The contract is per-query, and the sparse vector is one of the rows used: a question must not depend on its noise,
    nor therefore on which questions passed before. Of a question like that, Pr[some error > alpha] <= beta.

    Edge cases: only goals of the kind ERROR. Questions with negative values or about too many joint cells are never
    tested; they are bought.
    Differs: estimates are compared in counts, so n only makes them good and takes no part in the guarantee; where the
    size is not in the log yet it is bought with the first answer, which is free where all neighbours have one size.
    """

    name = "pmw"

    def __init__(self, settings: PmwSettings = TIGHT) -> None:
        self.settings, self.scope = settings, settings.scope

    def grouped(self, groups: tuple[Names, ...]) -> Pmw:
        return Pmw(self.settings.grouped(groups))

    def offers(self, request: PlanningRequest, views: Views) -> list[Offer]:
        settings, goal, workload = self.settings, request.goal, request.workload.map
        if workload.rows == 0 or isinstance(workload, PartwiseMap):
            return []
        if settings.least_cells and not learnt(workload, settings.learning, views.domain):
            return []  # nothing is learnt from it; where everything is bought by this proposer, it is bought untested
        calibration = calibrated(settings.calibration, goal.amount, goal.beta, workload.rows, settings.answers)
        if calibration is None:
            return []
        cached = _cached(calibration, workload, views) if settings.cache else None
        if cached is not None:
            return [cached]
        try:
            return [self._offer(calibration, workload, views)]
        except BudgetError:
            return []

    def _offer(self, calibration: Calibrated, workload: LinearMap, views: Views) -> Offer:
        """Tested where the histogram is ready; what the log has of it need not be learnt to see that it is too little.

        Edge cases: nothing is learnt before the number of rows is known.
        """
        learning = self.settings.learning
        sized, fewest = ALL_ROWS.digest in views.measurements.finest, learning.heuristic.fewest
        if not sized or views.histograms.most_updates(fewest) < fewest:
            return _bypass(calibration, workload, views, sized=sized)
        learner = views.histograms.of(learning, partial(Learner, views.domain, learning))
        tests = _tests(learner, workload)
        if tests is None:
            return _bypass(calibration, workload, views, sized=sized)
        return _tested(calibration, tests, workload, learner, views)


@lru_cache(maxsize=4096)
def calibrated(
    calibration: Calibration, alpha: float, beta: float, rows: int, kind: NoiseKind, parts: int = 1
) -> Calibrated | None:
    """Worked out once per goal: tails of sums are not cheap."""
    return calibration.of(alpha, beta, rows, kind, parts)


def _cached(calibration: Calibrated, workload: LinearMap, views: Views) -> Offer | None:
    """The exact cache in front: an answer that was bought with no more noise than this goal would buy."""
    record = views.measurements.finest.get(workload.digest)
    if record is None or noise_of(record).kind is not calibration.bypass.kind:
        return None
    if noise_of(record).scale > calibration.bypass.scale * EQUAL_SCALES_WITHIN:
        return None
    law = _bought_law(calibration, noise_of(record))
    estimate = Estimate(values=record.values.astype(float), law=law)
    note = f"measured before, record {record.position}"
    return Offer(proposer=Pmw.name, price=Price(), law=law, run=lambda verbs: estimate, reuses=workload.rows, note=note)


def _bypass(calibration: Calibrated, workload: LinearMap, views: Views, *, sized: bool) -> Offer:
    """Bought without a test (Algorithm 1, lines 29 to 34); and, unless it is known, the number of rows, for no bid."""
    bought = Measured(strategy=workload, noise=calibration.bypass, version=views.version)
    alone = views.price((bought,))
    events: tuple[Measured, ...] = (bought,)
    at_most = alone
    if not sized and workload.digest != ALL_ROWS.digest:
        events = (_size(calibration, views), bought)
        at_most = views.price(events)
    law = _bought_law(calibration, calibration.bypass)
    return Offer(
        proposer=Pmw.name,
        price=Price(events=events, at_most=at_most),
        law=law,
        run=partial(_buy, events, law),
        buys=sum(event.strategy.rows for event in events),
        note=f"{described(calibration.bypass)}, for a histogram to learn from",
        credit=views.credit(at_most, at_most - alone),
    )


def _tested(calibration: Calibrated, tests: Tests, workload: LinearMap, learner: Learner, views: Views) -> Offer:
    """Tested, and bought where a test is above (Algorithm 1, lines 17 to 27)."""
    heights = heights_of([query for query, _ in tests])
    live = next(
        (place for place, vector in learner.live.items() if covers(vector, vector.scope, heights, calibration)), None
    )
    bought = Measured(strategy=workload, noise=calibration.answer, version=views.version)
    answer = views.price((bought,))
    opened, opening = _opening(calibration, heights, learner, views)
    if live is None:
        price = Price(events=(opened, bought), at_most=views.price((opened, bought)))
    else:
        failed = (Failed(instance=live, query=q, estimate=count, version=views.version) for q, count in tests)
        price = Price(events=(*failed, bought), at_most=answer)
    missed = learner.missed(calibration.cut)
    law = CheckedLaw(
        calibrated=calibration, chance=calibration.honest if calibration.claimed is None else calibration.claimed
    )
    note = f"an estimate that is tested, and bought if it is off; about {missed:.0%} of the last ones were"
    return Offer(
        proposer=Pmw.name,
        price=price,
        law=law,
        run=partial(_test, opened if live is None else live, tests, bought, law),
        buys=workload.rows,
        note=note if calibration.claimed is None else f"{note}; fails with up to {calibration.honest:.2g}",
        credit=views.credit(price.at_most, max(price.at_most - math.ceil(missed * (opening + answer)), 0)),
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


def _tests(learner: Learner, workload: LinearMap) -> Tests | None:
    """The queries with their estimates, if all of them can be tested and the heuristic says so."""
    if workload.rows > MOST_TESTED_ROWS or not learner.histogram.holds(workload.attrs):
        return None
    queries = rows_of(workload)
    if len(queries) < workload.rows or not all(learnable(query) and learner.ready(query) for query in queries):
        return None
    return [(query, learner.count(query)) for query in queries]


def _bought_law(calibration: Calibrated, noise: Noise) -> ErrorLaw:
    if calibration.claimed is None:
        return IndependentRows(noise=noise, rows=calibration.rows)
    return CheckedLaw(calibrated=calibration, chance=calibration.claimed)


def _size(calibration: Calibrated, views: Views) -> Measured:
    """The number of rows: as exact as can be where it costs nothing, as under replace-one."""
    exact = views.free_total()
    if exact is not None:
        return exact
    scale = min(SIZE_NOISE * calibration.bypass.scale, LARGEST_SCALE)
    return Measured(strategy=ALL_ROWS, noise=Noise(kind=calibration.bypass.kind, scale=scale), version=views.version)


def _opening(calibration: Calibrated, heights: Heights, learner: Learner, views: Views) -> tuple[Opened, int]:
    """The sparse vector for such questions, and its price: the same ones as long as the log does not grow."""
    key = (calibration, tuple(heights.items()), views.analyst)
    opening = learner.openings.get(key)
    if opening is None:
        columns = learner.histogram.group(heights)
        opened = Opened(
            scope=scope_of(columns, heights, views.domain),
            cut=calibration.cut,
            threshold=calibration.threshold,
            test=calibration.test,
            version=views.version,
        )
        opening = learner.openings[key] = (opened, views.price((opened,)))
    return opening


def described(noise: Noise) -> str:
    """The kind and the scale of a noise, for EXPLAIN."""
    return f"{noise.kind.value} noise of scale {noise.scale:.4g}"
