"""Measure the question itself, with just as much noise as the goal allows.

Counts that tie too many columns together for a mask, and what is asked beside them, are measured part by part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from weakref import WeakKeyDictionary

import numpy as np

from bursar.errors import BudgetError, GoalError
from bursar.goal import Goal, GoalKind
from bursar.inference.estimate import Estimate, IndependentRows, each_of
from bursar.inference.tails import scale_for
from bursar.kernel.accounting import Measured, Mode, Noise, NoiseKind
from bursar.kernel.accounting.noise import LARGEST_SCALE, SMALLEST_SCALE
from bursar.kernel.verbs import Verbs
from bursar.planner.choose import spending_cap
from bursar.planner.offer import Offer, Price, Views
from bursar.planner.request import Request
from bursar.queries import LinearMap
from bursar.workload.apart import Apart

ROUNDED = 1 - 1e-12
"""A hair below the goal's failure probability, so that rounding cannot lift the whole above it."""


_MADE: WeakKeyDictionary[Request, tuple[Views, list[Offer]]] = WeakKeyDictionary()
"""The offers of requests that are being planned."""


class Direct:
    """Laplace noise in pure mode; Laplace or Gaussian, whichever is cheaper, in concentrated mode."""

    name = "direct"
    any_map = True

    def offers(self, request: Request, views: Views) -> list[Offer]:
        """What others compare themselves with, and so made once for each request, as long as the views are the same."""
        seen, made = _MADE.get(request, (None, []))
        if seen is not views:
            made = self._offers(request, views)
            _MADE[request] = views, made
        return made

    def _offers(self, request: Request, views: Views) -> list[Offer]:
        wanted = request.workload.map
        if wanted.rows == 0:
            return []
        kinds = [NoiseKind.LAPLACE] if views.mode is Mode.PURE else [NoiseKind.LAPLACE, NoiseKind.GAUSSIAN]
        made = [self._offer(kind, wanted, request.goal, views) for kind in kinds]
        return [offer for offer in made if offer is not None]

    def _offer(self, kind: NoiseKind, wanted: LinearMap, goal: Goal, views: Views) -> Offer | None:
        scale = scale_of(kind, wanted, goal, views)
        if scale is None:
            return None
        noise = Noise(kind=kind, scale=scale)
        price = price_of(parts_of(wanted), noise, views)
        if price is None:
            return None
        law = IndependentRows(noise=noise, rows=wanted.rows)
        return Offer(
            proposer=self.name,
            price=price,
            law=law,
            run=partial(_measure, wanted, noise, law),
            buys=wanted.rows,
            note=f"{kind.value} noise of scale {scale:.4g}",
        )


def _measure(wanted: LinearMap, noise: Noise, law: IndependentRows, verbs: Verbs) -> Estimate:
    values = [verbs.measure(part, noise).values for part in parts_of(wanted)]
    return Estimate(values=np.concatenate(values).astype(float), law=law)


def parts_of(wanted: LinearMap) -> tuple[LinearMap, ...]:
    """What one verb can measure at a time."""
    return wanted.parts if isinstance(wanted, Apart) else (wanted,)


def price_of(parts: Sequence[LinearMap], noise: Noise, views: Views) -> Price | None:
    """What the measurements would add; None where that is beyond any budget."""
    events = tuple(Measured(strategy=part, noise=noise, version=views.version) for part in parts)
    try:
        return Price(events=events, at_most=views.price(events))
    except BudgetError:
        return None


def scale_of(kind: NoiseKind, wanted: LinearMap, goal: Goal, views: Views) -> float | None:
    """The largest scale that meets the goal, or the least that the price allows; None where there is none."""
    if goal.kind is GoalKind.ERROR:
        try:
            return scale_for(kind, goal.amount, each_of(ROUNDED * goal.beta, wanted.rows))
        except GoalError:
            return None
    if goal.kind is GoalKind.RMSE:
        return _edge(lambda scale: Noise(kind=kind, scale=scale).variance() <= goal.amount**2, good_below=True)
    cap = spending_cap(goal)
    assert cap is not None

    def within_cap(scale: float) -> bool:
        price = price_of(parts_of(wanted), Noise(kind=kind, scale=scale), views)
        return price is not None and price.at_most <= cap

    return _edge(within_cap, good_below=False)


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
