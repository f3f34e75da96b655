"""Measure the question itself, with just as much noise as the goal allows.

Counts that tie too many columns together for a mask, and what is asked beside them, are measured part by part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from bursar.compile.partwise import PartwiseMap
from bursar.core.accounting import Measured, Mode, Noise, NoiseKind
from bursar.core.grant import Verbs
from bursar.core.noise.law import LARGEST_SCALE, SMALLEST_SCALE
from bursar.core.queries import LinearMap
from bursar.errors import BudgetError, GoalError
from bursar.estimation.estimate import ErrorLaw, Estimate, IndependentRows, each_of
from bursar.goal import Goal, GoalKind
from bursar.planner.choose import spending_cap
from bursar.planner.offer import Offer, Price, Proposer, Views
from bursar.planner.request import PlanningRequest
from bursar.tails.tails import half_width, scale_for, single_tail

ROUNDED = 1 - 1e-12
"""A hair below the goal's failure probability, so that rounding cannot lift the whole above it."""


_MADE: WeakKeyDictionary[PlanningRequest, tuple[Views, list[Offer]]] = WeakKeyDictionary()
"""The offers of requests that are being planned."""


class Direct(Proposer):
    """Laplace noise in pure mode; Laplace or Gaussian, whichever is cheaper, in concentrated mode."""

    name = "direct"
    any_map = True

    def offers(self, request: PlanningRequest, views: Views) -> list[Offer]:
        """What others compare themselves with, and so made once for each request, as long as the views are the same."""
        seen, made = _MADE.get(request, (None, []))
        if seen is not views:
            made = self._offers(request, views)
            _MADE[request] = views, made
        return made

    def _offers(self, request: PlanningRequest, views: Views) -> list[Offer]:
        wanted = request.workload.map
        if wanted.rows == 0:
            return []
        kinds = [NoiseKind.LAPLACE] if views.mode is Mode.PURE else [NoiseKind.LAPLACE, NoiseKind.GAUSSIAN]
        made = [self._offer(kind, wanted, request.goal, views) for kind in kinds]
        return [offer for offer in made if offer is not None]

    def _offer(self, kind: NoiseKind, wanted: LinearMap, goal: Goal, views: Views) -> Offer | None:
        noises = noises_of(kind, wanted, goal, views)
        if noises is None:
            return None
        parts = measured(wanted)
        price = price_of([part for part, _ in parts], noises, views)
        if price is None:
            return None
        law = law_of(parts, noises)
        return Offer(
            proposer=self.name,
            price=price,
            law=law,
            run=partial(_measure, parts, noises, law),
            buys=wanted.rows,
            note=note_of(noises),
        )


Part = tuple[LinearMap, int]
"""What one verb measures, and what its rows are taken times."""


def _measure(parts: Sequence[Part], noises: Sequence[Noise], law: ErrorLaw, verbs: Verbs) -> Estimate:
    drawn = zip(parts, noises, strict=True)
    values = [times * verbs.measure(part, noise).values for (part, times), noise in drawn]
    return Estimate(values=np.concatenate(values).astype(float), law=law)


def measured(wanted: LinearMap) -> list[Part]:
    """What one verb can measure at a time."""
    return wanted.measured if isinstance(wanted, PartwiseMap) else [(wanted, 1)]


def parts_of(wanted: LinearMap) -> tuple[LinearMap, ...]:
    """What the verbs measure."""
    return tuple(part for part, _ in measured(wanted))


def law_of(parts: Sequence[Part], noises: Sequence[Noise]) -> IndependentRows | SeveralNoises:
    """The errors of all rows."""
    drawn = [((noise, times), part.rows) for (part, times), noise in zip(parts, noises, strict=True)]
    if len({row for row, _ in drawn}) == 1 and drawn[0][0][1] == 1:
        return IndependentRows(noise=noises[0], rows=sum(rows for _, rows in drawn))
    return SeveralNoises(rows=tuple(row for row, rows in drawn for _ in range(rows)))


def note_of(noises: Sequence[Noise]) -> str:
    scales = sorted({noise.scale for noise in noises})
    shown = f"{scales[0]:.4g}" if len(scales) == 1 else f"{scales[0]:.4g} to {scales[-1]:.4g}"
    return f"{noises[0].kind.value} noise of scale {shown}"


def price_of(parts: Sequence[LinearMap], noises: Sequence[Noise], views: Views) -> Price | None:
    """What the measurements would add; None where that is beyond any budget."""
    drawn = zip(parts, noises, strict=True)
    events = tuple(Measured(strategy=part, noise=noise, version=views.version) for part, noise in drawn)
    try:
        return Price(events=events, at_most=views.price(events))
    except BudgetError:
        return None


def noises_of(kind: NoiseKind, wanted: LinearMap, goal: Goal, views: Views) -> tuple[Noise, ...] | None:
    """For each part, the most noise that meets the goal, or the least that the price allows; None where there is none.

    A part whose rows are taken m times may err by an m-th of what the goal says. Where the goal is a price, it has an
    m-th of the noise that others have.
    """
    times = [times for _, times in measured(wanted)]
    if goal.kind is GoalKind.SPEND:
        cap = spending_cap(goal)
        assert cap is not None

        def within_cap(scale: float) -> bool:
            price = price_of(parts_of(wanted), [_noise(kind, scale / one) for one in times], views)
            return price is not None and price.at_most <= cap

        scale = _edge(within_cap, good_below=False)
        return None if scale is None else tuple(_noise(kind, scale / one) for one in times)
    scales = {one: scale_of(kind, wanted.rows, goal, one) for one in set(times)}
    found = [_noise(kind, scale) for one in times if (scale := scales[one]) is not None]
    return tuple(found) if len(found) == len(times) else None


def scale_of(kind: NoiseKind, rows: int, goal: Goal, times: int) -> float | None:
    """The largest scale that meets the goal on rows that are so many times what is measured; None if none does."""
    if goal.kind is GoalKind.ERROR:
        try:
            return scale_for(kind, goal.amount / times, each_of(ROUNDED * goal.beta, rows))
        except GoalError:
            return None
    most = (goal.amount / times) ** 2
    return _edge(lambda scale: _noise(kind, scale).variance() <= most, good_below=True)


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
    """Every row has its own draw of a noise of its own: Pr[some |error_i| >= alpha] = 1 - prod_i (1 - p_i)."""

    rows: tuple[Drawn, ...]

    def tail(self, alpha: float, enough: float) -> float:
        each = {(noise, times): single_tail(noise, alpha / times) for noise, times in set(self.rows)}
        if max(each.values(), default=0.0) >= 1:
            return 1.0
        return -math.expm1(sum(math.log1p(-each[row]) for row in self.rows))

    def half_widths(self, beta: float) -> NDArray[np.float64]:
        share = each_of(beta, len(self.rows))
        each = {(noise, times): times * half_width(noise, share) for noise, times in set(self.rows)}
        return np.array([each[row] for row in self.rows])

    def mean_square(self) -> float:
        return float(np.mean([times**2 * noise.variance() for noise, times in self.rows]))
