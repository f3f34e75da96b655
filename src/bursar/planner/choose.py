"""Choosing among offers: the least bid that meets the goal, then the preset's order."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bursar.compile.lazy_rows import Labels
from bursar.core.accounting import to_units
from bursar.core.queries import Stack, Thresholds
from bursar.estimation.estimate import error_bars, meets
from bursar.estimation.simultaneous import Family
from bursar.goal import Contract, Goal, GoalKind
from bursar.planner.offer import Offer, Proposer, Views
from bursar.planner.request import PlanningRequest

SPARE = 1.05
"""Errors of several outputs are rounded one by one, and the multiples they are planned in with them."""


MOST_PLANNED = 100_000
"""Lines that are not written out, up to which other ways are looked for than to measure the question itself."""


@dataclass(frozen=True)
class Preset:
    """Which proposers take part, in the order that breaks ties."""

    name: str
    proposers: tuple[Proposer, ...]
    sequential: bool = False  # charged by the sum of each purchase's largest loss, as published systems are
    family: Family | None = None  # the questions that the simultaneous contract covers, where that is in force

    @property
    def contract(self) -> Contract:
        return Contract.PER_QUERY if self.family is None else Contract.SIMULTANEOUS


def offers(preset: Preset, request: PlanningRequest, views: Views) -> Iterator[Offer]:
    """All offers that the kernel can run, proposer by proposer, computed as they are asked for."""
    as_it_is = _as_it_is(request)
    for proposer in preset.proposers:
        if request.synthetic and not proposer.by_name:
            continue
        if as_it_is and not proposer.any_map:
            continue
        yield from map(views.completed, filter(views.possible, proposer.offers(request, views)))


def _as_it_is(request: PlanningRequest) -> bool:
    """Whether a question is only for those who take every map: it asks for thresholds, or for very many numbers."""
    wanted = request.workload.map
    parts = wanted.parts if isinstance(wanted, Stack) else (wanted,)
    many = isinstance(request.workload.labels, Labels) and wanted.rows > MOST_PLANNED
    return many or any(isinstance(part, Thresholds) for part in parts)


def choose(preset: Preset, request: PlanningRequest, views: Views) -> Offer | None:
    """The best offer, or None where nothing meets the goal. A free offer that meets it ends the search.

    What is left cannot pay for comes last: an offer that bids below its price must not keep out one that fits.
    """
    found: list[Offer] = []
    for offer in offers(preset, request, views):
        if taken(offer, request):
            if offer.free and request.goal.kind is not GoalKind.SPEND:
                return offer
            found.append(offer)
    payable = [offer for offer in found if views.payable(offer)]
    if payable:
        return best(payable, request.goal)
    return min(found, key=lambda offer: offer.price.at_most, default=None)


def taken(offer: Offer, request: PlanningRequest) -> bool:
    """Whether an offer can be chosen. One that goes by name is, where the asker names it, and nothing else then."""
    if request.synthetic:
        return offer.by_name
    return not offer.by_name and acceptable(offer, request.goal)


def acceptable(offer: Offer, goal: Goal) -> bool:
    """Whether the offer keeps the goal's accuracy and its cap on the price."""
    return within_cap(offer, goal) and meets(offer.law, goal)


def within_cap(offer: Offer, goal: Goal) -> bool:
    """Whether the offer costs no more than the analyst wants to pay."""
    cap = spending_cap(goal)
    return cap is None or offer.price.at_most <= cap


def spending_cap(goal: Goal) -> int | None:
    """The most that the analyst wants to pay for this one question, in units of 2^-50."""
    caps = [goal.most, goal.amount if goal.kind is GoalKind.SPEND else None]
    named = [to_units(cap) for cap in caps if cap is not None]
    return min(named, default=None)


def best(found: Sequence[Offer], goal: Goal) -> Offer | None:
    """Least bid first; where the goal is a price, least error first. Python's min keeps the preset's order in ties.

    Where an account pays, bids are about the account, and of equal bids the one that costs the data set less wins.
    """
    if goal.kind is GoalKind.SPEND:
        return min(found, key=lambda offer: (widest(offer, goal), *_bids(offer)), default=None)
    return min(found, key=_bids, default=None)


def _bids(offer: Offer) -> tuple[int, int]:
    return offer.bid, 0 if offer.price.total is None else offer.price.total


def widest(offer: Offer, goal: Goal) -> float:
    """The largest half-width of the offer's error bars at the goal's confidence."""
    return float(error_bars(offer.law, goal).max(initial=0.0))


def fits(preset: Preset, request: PlanningRequest, views: Views, cap: int) -> Goal | None:
    """The tightest goal of the same kind, found by bisection to 1 %, that some offer meets for at most `cap` units."""
    if request.goal.kind is GoalKind.SPEND:
        return None
    capped = replace(views, left=min(cap, views.left))

    def affordable(amount: float) -> bool:
        found = choose(preset, replace(request, goal=_with_amount(request.goal, amount)), capped)
        return found is not None and capped.payable(found)

    low, high = request.goal.amount, request.goal.amount
    while not affordable(high):
        low, high = high, 4 * high
        if high > 2.0**50:
            return None
    while high > 1.01 * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if affordable(middle) else (middle, high)
    return _stated(request, high / request.goal.amount)


def _with_amount(goal: Goal, amount: float) -> Goal:
    return Goal(kind=goal.kind, amount=amount, confidence=goal.confidence)


def _stated(request: PlanningRequest, factor: float) -> Goal:
    """The goal of a request, in the words it was stated in, with its amounts multiplied and rounded up."""
    goal = request.goal_in_counts
    parts = tuple(replace(part, amount=_round_up(SPARE * factor * part.amount)) for part in goal.parts)
    return replace(_with_amount(goal, _round_up(factor * goal.amount)), parts=parts)


def _round_up(amount: float) -> float:
    """To three significant digits, upwards, so that the suggestion can be typed."""
    step = 10.0 ** (math.floor(math.log10(amount)) - 2)
    return math.ceil(amount / step) * step
