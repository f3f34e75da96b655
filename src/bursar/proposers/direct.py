"""Measure the question itself, with just as much noise as the goal allows.

Counts that tie too many columns together for a mask, and what is asked beside them, are measured part by part; parts
that were measured before answer again (`one-by-one`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import pairwise
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from bursar.compile.partwise import PartwiseMap
from bursar.core.accounting import Event, Measured, Mode, Noise, NoiseKind
from bursar.core.ledger import Record
from bursar.core.noise.law import LARGEST_SCALE, SMALLEST_SCALE
from bursar.core.queries import LinearMap
from bursar.errors import BudgetError, GoalError
from bursar.estimation.estimate import ErrorLaw, Estimate, IndependentRows, each_of
from bursar.goal import BETA_LESS_ROUNDING, Goal, GoalKind
from bursar.lazy_dataclass import dataclass
from bursar.planner.choose import spending_cap
from bursar.planner.grant import Verbs
from bursar.planner.offer import Offer, Price, Proposer, Views
from bursar.planner.request import PlanningRequest
from bursar.tails import half_width, scale_for, single_tail
from bursar.views.measurements import noise_of

TRIAL_SCALE, NEAR, SCALE_WITHIN = 1000.0, (1.01, 0.985, 0.9, 0.5), 1e-3
"""A scale at which noise is as good as continuous; between which parts of what that tells the right one is looked for;
and to which part it is found."""

_MADE: WeakKeyDictionary[PlanningRequest, tuple[int, Callable[[tuple[Event, ...]], int], list[Offer]]] = (
    WeakKeyDictionary()
)
"""The offers of requests that are being planned, with the position and the prices they were made for.

Not with the views, which refer to the request: it would be kept for ever.
"""


class Direct(Proposer):
    """Laplace noise in pure mode; Laplace or Gaussian, whichever is cheaper, in concentrated mode."""

    name = "direct"
    any_map = True

    def offers(self, request: PlanningRequest, views: Views) -> list[Offer]:
        """What others compare themselves with, and so made once for each request while log and prices are the same.

        The same request is looked at with what may be bought for later questions, and without.
        """
        remembered = _MADE.get(request)
        if remembered is None or remembered[:2] != (views.position, views.price):
            remembered = _MADE[request] = (views.position, views.price, self._offers(request, views))
        return remembered[2]

    def _offers(self, request: PlanningRequest, views: Views) -> list[Offer]:
        workload = request.workload.map
        if workload.rows == 0:
            return []
        offers = [self._offer(kind, workload, request.goal, views) for kind in kinds_of(views)]
        return [offer for offer in offers if offer is not None]

    def measurements(self, request: PlanningRequest, views: Views) -> list[tuple[Measured, ...]]:
        """What the offers would measure. Edge cases: one that is dearer than any budget may be among them."""
        workload = request.workload.map
        if workload.rows == 0:
            return []
        noises = (noises_of(kind, workload, request.goal, views) for kind in kinds_of(views))
        return [events_of(parts_of(workload), each, views) for each in noises if each is not None]

    def _offer(self, kind: NoiseKind, workload: LinearMap, goal: Goal, views: Views) -> Offer | None:
        noises = noises_of(kind, workload, goal, views)
        if noises is None:
            return None
        parts = measured(workload)
        price = price_of([part for part, _ in parts], noises, views)
        if price is None:
            return None
        law = law_of(parts, noises)
        return Offer(
            proposer=self.name,
            price=price,
            law=law,
            run=partial(_measure, parts, noises, law),
            buys=workload.rows,
            note=note_of(noises),
        )


def kinds_of(views: Views) -> tuple[NoiseKind, ...]:
    """The kinds of noise that the budget can pay for."""
    return (NoiseKind.LAPLACE,) if views.mode is Mode.PURE else (NoiseKind.LAPLACE, NoiseKind.GAUSSIAN)


Part = tuple[LinearMap, int]
"""What one verb measures, and what its rows are taken times."""


def _measure(parts: Sequence[Part], noises: Sequence[Noise], law: ErrorLaw, verbs: Verbs) -> Estimate:
    drawn = zip(parts, noises, strict=True)
    values = [times * verbs.measure(part, noise).values for (part, times), noise in drawn]
    return Estimate(values=np.concatenate(values).astype(float), law=law)


def measured(workload: LinearMap) -> list[Part]:
    """What one verb can measure at a time."""
    return workload.measured if isinstance(workload, PartwiseMap) else [(workload, 1)]


def parts_of(workload: LinearMap) -> tuple[LinearMap, ...]:
    """What the verbs measure."""
    return tuple(part for part, _ in measured(workload))


def law_of(parts: Sequence[Part], noises: Sequence[Noise]) -> IndependentRows | SeveralNoises:
    """The errors of all rows."""
    drawn = [((noise, times), part.rows) for (part, times), noise in zip(parts, noises, strict=True)]
    if len({row for row, _ in drawn}) == 1 and drawn[0][0][1] == 1:
        return IndependentRows(noise=noises[0], rows=sum(rows for _, rows in drawn))
    return SeveralNoises(rows=tuple(row for row, rows in drawn for _ in range(rows)))


def note_of(noises: Sequence[Noise]) -> str:
    """The kind and the scales of noises, for EXPLAIN."""
    scales = sorted({noise.scale for noise in noises})
    shown = f"{scales[0]:.4g}" if len(scales) == 1 else f"{scales[0]:.4g} to {scales[-1]:.4g}"
    return f"{noises[0].kind.value} noise of scale {shown}"


def price_of(parts: Sequence[LinearMap], noises: Sequence[Noise], views: Views) -> Price | None:
    """What the measurements would add; None where that is beyond any budget."""
    events = events_of(parts, noises, views)
    try:
        return Price(events=events, at_most=views.price(events))
    except BudgetError:
        return None


def events_of(parts: Sequence[LinearMap], noises: Sequence[Noise], views: Views) -> tuple[Measured, ...]:
    """The measurements of the parts, each with its noise."""
    drawn = zip(parts, noises, strict=True)
    return tuple(Measured(strategy=part, noise=noise, version=views.version) for part, noise in drawn)


def noises_of(kind: NoiseKind, workload: LinearMap, goal: Goal, views: Views) -> tuple[Noise, ...] | None:
    """For each part, the most noise that meets the goal, or the least that the price allows; None where there is none.

    A part whose rows are taken m times may err by an m-th of what the goal says. Where the goal is a price, it has an
    m-th of the noise that others have.
    """
    times = [times for _, times in measured(workload)]
    if goal.kind is GoalKind.SPEND:
        cap = spending_cap(goal)
        assert cap is not None

        def within_cap(scale: float) -> bool:
            price = price_of(parts_of(workload), [_noise(kind, scale / factor) for factor in times], views)
            return price is not None and price.at_most <= cap

        scale = _edge(within_cap, good_below=False)
        return None if scale is None else tuple(_noise(kind, scale / factor) for factor in times)
    scales = {factor: scale_of(kind, workload.rows, goal, factor) for factor in set(times)}
    if goal.derived is not None and goal.derived.apart:
        scales = _scales_for_sums(kind, workload, goal, scales)
    elif goal.derived is not None and set(times) == {1}:
        scales[1] = max(scales[1] or 0.0, _scale_for_derived(kind, workload.rows, goal)) or None
    noises = [_noise(kind, scale) for factor in times if (scale := scales[factor]) is not None]
    return tuple(noises) if len(noises) == len(times) else None


def scale_of(kind: NoiseKind, rows: int, goal: Goal, times: int) -> float | None:
    """The largest scale that meets the goal on rows that are `times` what is measured; None if none does."""
    if goal.kind is GoalKind.ERROR:
        return _scale_for(kind, goal.amount // times, each_of(BETA_LESS_ROUNDING * goal.beta, rows))
    most = (goal.amount / times) ** 2
    return _edge(lambda scale: _noise(kind, scale).variance() <= most, good_below=True)


@lru_cache(maxsize=4096)
def _scale_for(kind: NoiseKind, alpha: float, beta: float) -> float | None:
    """Remembered: most questions of a session have one error, and few numbers of rows."""
    try:
        return scale_for(kind, alpha, beta)
    except GoalError:
        return None


@lru_cache(maxsize=512)
def _scale_for_derived(kind: NoiseKind, rows: int, goal: Goal) -> float:
    """About the largest scale at which averages and quantiles are exact enough; 0 if none is."""

    def law_at(scale: float) -> ErrorLaw | None:
        possible = SMALLEST_SCALE <= scale <= LARGEST_SCALE
        return IndependentRows(noise=_noise(kind, scale), rows=rows) if possible else None

    return _largest_kept(goal, law_at, TRIAL_SCALE)


def _scales_for_sums(
    kind: NoiseKind, workload: LinearMap, goal: Goal, scales: Mapping[int, float | None]
) -> dict[int, float | None]:
    """The same scales, changed by one factor, at which numbers are exact enough that many rows are added up for."""
    parts = measured(workload)

    def law_at(factor: float) -> ErrorLaw | None:
        drawn = [scale * factor for _, times in parts if (scale := scales[times]) is not None]
        possible = len(drawn) == len(parts) and SMALLEST_SCALE <= min(drawn) <= max(drawn) <= LARGEST_SCALE
        return law_of(parts, [_noise(kind, scale) for scale in drawn]) if possible else None

    factor = _largest_kept(goal, law_at, 1.0, (1.25, 1.08, *NEAR))  # noise of a small scale adds up to less
    return {times: None if scale is None or not factor else scale * factor for times, scale in scales.items()}


def _largest_kept(
    goal: Goal, law_at: Callable[[float], ErrorLaw | None], trial: float, near: Sequence[float] = NEAR
) -> float:
    """About the largest multiple of noise at which averages and quantiles are exact enough; 0 if none is."""
    derived, law = goal.derived, law_at(trial)
    assert derived is not None
    reach = 0.0 if law is None else derived.reach(law, goal.beta)
    about = trial * goal.amount / reach if reach else 0.0

    def kept(scale: float) -> bool:
        law = law_at(scale)
        return law is not None and derived.kept_by(law, goal.amount, goal.beta)

    tried = [share * about for share in near]
    high, low = next(((high, low) for high, low in pairwise(tried) if kept(low)), (0.0, 0.0))
    while high > (1 + SCALE_WITHIN) * low:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if kept(middle) else (low, middle)
    return low


def _noise(kind: NoiseKind, scale: float) -> Noise:
    return Noise(kind=kind, scale=min(max(scale, SMALLEST_SCALE), LARGEST_SCALE))


def _edge(good: Callable[[float], bool], *, good_below: bool) -> float | None:
    """The last good scale of a monotone condition, by bisection on the logarithm to a relative 1e-7."""
    inside, outside = (SMALLEST_SCALE, LARGEST_SCALE) if good_below else (LARGEST_SCALE, SMALLEST_SCALE)
    if not good(inside):
        return None
    if good(outside):
        return outside
    while abs(math.log(outside / inside)) > 1e-7:
        middle = math.sqrt(inside * outside)
        inside, outside = (middle, outside) if good(middle) else (inside, middle)
    return inside


Drawn = tuple[Noise, int]
"""A noise, and how many times it is in a row: a row that is m times a measured one errs m times as much."""


@dataclass(frozen=True, kw_only=True)
class SeveralNoises:
    """Every row has its own draw of a noise of its own: Pr[some |error_i| > alpha] = 1 - prod_i (1 - p_i)."""

    rows: tuple[Drawn, ...]

    def tail(self, alpha: float, enough: float) -> float:
        each = {(noise, times): single_tail(noise, alpha // times) for noise, times in set(self.rows)}
        if max(each.values(), default=0.0) >= 1:
            return 1.0
        return -math.expm1(sum(math.log1p(-each[row]) for row in self.rows))

    def half_widths(self, beta: float) -> NDArray[np.float64]:
        share = each_of(beta, len(self.rows))
        each = {(noise, times): times * half_width(noise, share) for noise, times in set(self.rows)}
        return np.array([each[row] for row in self.rows])

    def mean_square(self) -> float:
        return float(np.mean([times**2 * noise.variance() for noise, times in self.rows]))

    def as_draws(self, combinations: NDArray[np.float64]) -> tuple[NDArray[np.float64], Sequence[Noise]]:
        return combinations * [times for _, times in self.rows], [noise for noise, _ in self.rows]


@dataclass(frozen=True, eq=False)
class PartwisePlan:
    """For each part of the question the record that answers it, or None where it is measured, and its noise."""

    parts: tuple[Part, ...]
    records: tuple[Record | None, ...]
    noises: tuple[Noise, ...]

    @property
    def bought(self) -> tuple[tuple[LinearMap, Noise], ...]:
        every = zip(self.parts, self.records, self.noises, strict=True)
        return tuple((part, noise) for (part, _), record, noise in every if record is None)

    def run(self, law: ErrorLaw, verbs: Verbs) -> Estimate:
        values: list[NDArray[np.int64]] = []
        for (part, times), record, noise in zip(self.parts, self.records, self.noises, strict=True):
            measurement = verbs.measure(part, noise) if record is None else record
            values.append(times * measurement.values)
        return Estimate(values=np.concatenate(values).astype(float), law=law)


class Partwise(Proposer):
    """Parts that were measured before, well enough for their even share of the goal, answer again; others are bought.

    Where no part was, that is asking directly.
    """

    name = "one-by-one"
    any_map = reads_rows = True

    def offers(self, request: PlanningRequest, views: Views) -> list[Offer]:
        workload, goal = request.workload.map, request.goal
        if not isinstance(workload, PartwiseMap):
            return []
        parts = tuple(workload.measured)
        known = views.measurements
        finest = tuple(known.finest.get(part.digest) or known.partly_finer.get(part.digest) for part, _ in parts)
        records = tuple(
            record if record is not None and _good(record, goal, workload.rows, times) else None
            for record, (_, times) in zip(finest, parts, strict=True)
        )
        plans = [] if None in finest else [PartwisePlan(parts, finest, _noises(finest))]
        for kind in kinds_of(views) if None in records and any(record is not None for record in records) else ():
            fresh = noises_of(kind, workload, goal, views)
            if fresh is not None:
                plans.append(PartwisePlan(parts, records, _noises(records, fresh)))
        offers = [_offer(plan, views) for plan in plans]
        return [offer for offer in offers if offer is not None]


def _noises(records: Sequence[Record | None], fresh: Sequence[Noise] = ()) -> tuple[Noise, ...]:
    """The noise of each part: that of its record, or a fresh one."""
    return tuple(fresh[place] if record is None else noise_of(record) for place, record in enumerate(records))


def _good(record: Record, goal: Goal, rows: int, times: int) -> bool:
    """Whether a record, multiplied by `times`, keeps the share of the goal that each of the rows has."""
    if goal.kind is GoalKind.ERROR:
        return single_tail(noise_of(record), goal.amount // times) <= each_of(BETA_LESS_ROUNDING * goal.beta, rows)
    return goal.kind is GoalKind.RMSE and times**2 * noise_of(record).variance() <= goal.amount**2


def _offer(plan: PartwisePlan, views: Views) -> Offer | None:
    bought, noises = [part for part, _ in plan.bought], [noise for _, noise in plan.bought]
    price = price_of(bought, noises, views) if bought else Price()
    if price is None:
        return None
    law = law_of(plan.parts, plan.noises)
    rows, new = sum(part.rows for part, _ in plan.parts), sum(part.rows for part in bought)
    noise = f", {note_of(noises)}" if noises else ""
    return Offer(
        proposer=Partwise.name,
        price=price,
        law=law,
        run=partial(plan.run, law),
        reuses=rows - new,
        buys=new,
        note=f"{len(bought)} of {len(plan.parts)} parts measured, each by itself{noise}",
    )
