"""Answer every part of a question by itself, each with an even share of the chance to fail.

Parts that are very different, such as the number of all rows and a table of a thousand groups, or quantiles of two
columns, have no use for each other, and one noise for all of them is too fine for the easy ones. A part is an
aggregate, or, in a batch, a question.

Guarantees: up to 16 questions of a batch never cost more together than one after the other, each as it is cheapest by
itself with such a share: for nothing from the log, measured directly, by its own strategy or by new nodes. With Laplace
noise nor do up to 16 parts, whose rows are in such multiples that one error fits all of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, pairwise

import numpy as np

from bursar.arrays import Reals
from bursar.core.accounting import Event, Mode, Noise, Refined
from bursar.core.queries import LinearMap, Stack
from bursar.errors import BudgetError
from bursar.estimation.batch_goals import LawOfQuestions
from bursar.estimation.estimate import BoundedBars, ErrorLaw, Estimate, JointLaw, meets
from bursar.goal import GoalKind
from bursar.planner.grant import Verbs
from bursar.planner.offer import Offer, Price, Proposer, Scope, Views
from bursar.planner.request import MOST_APART, PlanningRequest
from bursar.proposers.direct import Direct
from bursar.proposers.reuse import Exact, Reconstruct
from bursar.proposers.strategy import Strategy
from bursar.proposers.tree import Tree


@dataclass(frozen=True, kw_only=True, eq=False)
class LawOfParts:
    """Rows of several parts, whose errors may depend on each other: chances add up."""

    laws: tuple[ErrorLaw, ...]
    sizes: tuple[int, ...]  # how many rows each part has

    @property
    def rows(self) -> int:
        return sum(self.sizes)

    def tail(self, alpha: float, enough: float) -> float:
        """Edge cases: 1 where a part exceeds its even share of `enough`, beyond which its own bound need not be one."""
        share = enough / len(self.laws)
        each = [law.tail(alpha, share) for law in self.laws]
        return 1.0 if max(each) > share else sum(each)

    def exceeds(self, amount: float, beta: float) -> bool:
        """Whether some bar of `half_widths` is above an amount: as a rule found without all of them."""
        share = beta / len(self.laws)
        return any(
            law.exceeds(amount, share)
            if isinstance(law, BoundedBars)
            else bool(law.half_widths(share).max(initial=0.0) > amount)
            for law in self.laws
        )

    def half_widths(self, beta: float) -> Reals:
        return np.concatenate([law.half_widths(beta / len(self.laws)) for law in self.laws])

    def mean_square(self) -> float:
        return float(np.average([law.mean_square() for law in self.laws], weights=self.sizes))


@dataclass(frozen=True, kw_only=True, eq=False)
class LawOfFreshParts(LawOfParts):
    """Parts that have draws of their own, so that their errors are independent."""

    def as_draws(self, combinations: Reals) -> tuple[Reals, Sequence[Noise]]:
        weights: list[Reals] = []
        noises: list[Noise] = []
        for law, part in zip(self.laws, np.split(combinations, np.cumsum(self.sizes)[:-1], axis=1), strict=True):
            assert isinstance(law, JointLaw)
            drawn, each = law.as_draws(part)
            weights.append(drawn)
            noises.extend(each)
        return np.concatenate(weights, axis=1), noises


class Apart(Proposer):
    """Each part as it is cheapest by itself, where that is cheaper than measuring all of them directly.

    Strategies for Gaussian noise weigh all rows against each other anyway, where it is rows that have to be exact.
    """

    name = "apart"
    scope = Scope(goals=(GoalKind.ERROR,), several=True)

    def __init__(self, strategy: Strategy) -> None:
        self._direct = Direct()
        nodes = Tree(theta=dict.fromkeys(Mode, 1.0), rival=strategy)
        self._proposers: tuple[Proposer, ...] = (Exact(), Reconstruct(), strategy, nodes, self._direct)

    def offers(self, request: PlanningRequest, views: Views) -> list[Offer]:
        workload, offers = request.workload.map, [self._questions(request, views)]
        if views.mode is Mode.PURE and isinstance(workload, Stack):
            splits = {(1,) * len(workload.parts), request.questions}
            offers += [self._parts(_split(workload, split), request, views) for split in sorted(splits)]
        directly = min((offer.price.at_most for offer in self._direct.offers(request, views)), default=math.inf)
        cheaper = [offer for offer in offers if offer is not None and offer.price.at_most < directly]
        return sorted(cheaper, key=lambda offer: offer.price.at_most)[:1]

    def _parts(self, parts: Sequence[LinearMap], request: PlanningRequest, views: Views) -> Offer | None:
        """Counts and sums part by part, for one error of all rows."""
        goal = request.goal.shared(len(parts)) if 2 <= len(parts) <= MOST_APART else None
        if goal is None:
            return None
        goal = replace(goal, most=None, derived=None)
        offers = self._each(
            [replace(request, workload=replace(request.workload, map=part), goal=goal) for part in parts], views
        )
        if offers is None:
            return None
        fresh = all(isinstance(offer.law, JointLaw) and not offer.reuses for offer in offers)
        kind = LawOfFreshParts if fresh else LawOfParts
        law = kind(laws=tuple(offer.law for offer in offers), sizes=tuple(part.rows for part in parts))
        return self._offer(offers, law, f"{len(parts)} parts by themselves", views)

    def _questions(self, request: PlanningRequest, views: Views) -> Offer | None:
        """The questions of a batch, each with all rows that it needs and its own goal."""
        if not 2 <= len(request.alone) <= MOST_APART:
            return None
        goals = [alone.goal.shared(len(request.alone)) for alone in request.alone]
        shared = tuple(replace(goal, most=None) for goal in goals if goal is not None)
        if len(shared) < len(goals):
            return None
        requests = [replace(alone, goal=goal) for alone, goal in zip(request.alone, shared, strict=True)]
        offers = self._each(requests, views)
        if offers is None:
            return None
        law = LawOfQuestions(
            laws=tuple(offer.law for offer in offers),
            goals=shared,
            sizes=tuple(alone.workload.map.rows for alone in request.alone),
            amount=request.goal.amount,
        )
        return self._offer(offers, law, f"{len(offers)} questions one by one", views)

    def _each(self, requests: Sequence[PlanningRequest], views: Views) -> list[Offer] | None:
        """For each request the offer that adds least to the price of those before it; None where one has none."""
        offers: list[Offer] = []
        for request in requests:
            offer = self._cheapest(request, _after(offers, views))
            if offer is None:
                return None
            offers.append(offer)
        return offers

    def _offer(self, offers: Sequence[Offer], law: ErrorLaw, note: str, views: Views) -> Offer | None:
        events = _events(offers)
        try:
            price = Price(events=events, at_most=views.price(events)) if events else Price()
        except BudgetError:
            return None
        return Offer(
            proposer=self.name,
            price=price,
            law=law,
            run=partial(_run, offers, law),
            reuses=sum(offer.reuses for offer in offers),
            buys=sum(offer.buys for offer in offers),
            note=f"{note}: {', '.join(dict.fromkeys(offer.proposer for offer in offers))}",
        )

    def _cheapest(self, request: PlanningRequest, views: Views) -> Offer | None:
        """The first offer that is free, or else the one that costs least.

        Nothing is refined: two parts might refine the same rows.
        """
        offers: list[Offer] = []
        for proposer in self._proposers:
            for offer in proposer.offers(request, views):
                refines = any(isinstance(event, Refined) for event in offer.price.events)
                if not refines and meets(offer.law, request.goal):
                    if offer.free:
                        return offer
                    offers.append(offer)
        return min(offers, key=lambda offer: offer.price.at_most, default=None)


def _after(offers: Sequence[Offer], views: Views) -> Views:
    """The views with prices of what is bought beside these offers: where they leave slack, it costs nothing."""
    events = _events(offers)
    if not events:
        return views
    before = views.price(events)
    return replace(views, price=lambda more: views.price((*events, *more)) - before, remembered={})


def _events(offers: Sequence[Offer]) -> tuple[Event, ...]:
    return tuple(event for offer in offers for event in offer.price.events)


def _split(workload: Stack, sizes: Sequence[int]) -> list[LinearMap]:
    """The parts of a stack in consecutive groups of these sizes; a group of one is that part itself."""
    parts = [workload.parts[start:end] for start, end in pairwise(accumulate(sizes, initial=0))]
    return [group[0] if len(group) == 1 else Stack(group) for group in parts]


def _run(offers: Sequence[Offer], law: ErrorLaw, verbs: Verbs) -> Estimate:
    return Estimate(values=np.concatenate([offer.run(verbs).values for offer in offers]), law=law)
