"""Answer every part of a question by itself, each with an even share of the chance to fail.

Parts that are very different, such as the number of all rows and a table of a thousand groups, or quantiles of two
columns, have no use for each other, and one noise for all of them is too fine for the easy ones. A part is some of the
rows, a number of a SELECT, or a question of a batch.

Guarantees: up to 16 questions of a batch, or numbers of a SELECT, never cost more together than one after the other,
each as it is cheapest by itself with such a share: for nothing from the log, measured directly, by its own strategy or
by new nodes; nor more than in their order, where one reuses what those before it have bought. With Laplace noise nor do
up to 16 parts, whose rows are in such multiples that one error fits all of them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate, pairwise
from typing import cast

import numpy as np

from bursar.arrays import Reals
from bursar.compile.partwise import pieces_of
from bursar.core.accounting import Event, Measured, Mode, Noise, Refined
from bursar.core.ledger import Record
from bursar.core.queries import LinearMap, Stack
from bursar.errors import BudgetError
from bursar.estimation.estimate import BoundedBars, ErrorLaw, Estimate, JointLaw, meets
from bursar.goal import GoalKind
from bursar.planner.grant import Verbs
from bursar.planner.offer import Offer, Price, Proposer, Scope, Views
from bursar.planner.request import MOST_APART, PlanningRequest
from bursar.proposers.direct import Direct
from bursar.proposers.incremental import Incremental
from bursar.proposers.reuse import Exact, Known, Reconstruct, Refine, answered_by, named, one_by_one
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


@dataclass(frozen=True, kw_only=True, eq=False)
class PartPlan:
    """How one part is answered: by an offer as it is, or from the log once it has what was bought up to this part."""

    request: PlanningRequest
    offer: Offer
    place: int | None = None  # among what the log tells then (`_told`); None for an offer as it is


class Apart(Proposer):
    """Each part as it is cheapest by itself, where that is cheaper than measuring all of them directly.

    What is bought for one part serves those after it: they are planned over the log as it will be then, with rows whose
    values nobody knows yet. No plan depends on values, so everything but these is known beforehand. Strategies for
    Gaussian noise weigh all rows against each other anyway, where it is rows that have to be exact.
    """

    name = "apart"
    scope = Scope(goals=(GoalKind.ERROR,), several=True)

    def __init__(self, strategy: Strategy) -> None:
        self._direct = Direct()
        nodes = Tree(theta=dict.fromkeys(Mode, 1.0), rival=strategy)
        self._known, self._exact, self._reconstruct, self._strategy = Known(), Exact(), Reconstruct(), strategy
        self._completing: tuple[Proposer, ...] = (Incremental(), nodes, Refine())
        self._fresh: tuple[Proposer, ...] = (strategy, self._direct)

    def offers(self, request: PlanningRequest, views: Views) -> list[Offer]:
        workload = request.workload.map
        rivals = (*self._direct.offers(request, views), *views.rivals)
        least = min((offer.price.at_most for offer in rivals), default=math.inf)
        questions = self._questions(request, views, least)
        if questions is not None and not questions.buys and self._known.offers(request, views):
            questions = None  # nor is it listed twice
        offers = [questions]
        if views.mode is Mode.PURE and isinstance(workload, Stack):
            splits = {(1,) * len(workload.parts), request.questions}
            offers += [self._parts(_split(workload, split), request, views, least) for split in sorted(splits)]
        cheaper = [offer for offer in offers if offer is not None and offer.price.at_most < least]
        return sorted(cheaper, key=lambda offer: offer.price.at_most)[:1]

    def _parts(self, parts: Sequence[LinearMap], request: PlanningRequest, views: Views, least: float) -> Offer | None:
        """Counts and sums part by part, for one error of all rows."""
        goal = request.goal.shared(len(parts)) if 2 <= len(parts) <= MOST_APART else None
        if goal is None:
            return None
        goal = replace(goal, most=None, derived=None)
        plans = self._each(
            [replace(request, workload=replace(request.workload, map=part), goal=goal) for part in parts], views, least
        )
        if plans is None:
            return None
        fresh = all(isinstance(plan.offer.law, JointLaw) and not plan.offer.reuses for plan in plans)
        kind = LawOfFreshParts if fresh else LawOfParts
        law = kind(laws=tuple(plan.offer.law for plan in plans), sizes=tuple(part.rows for part in parts))
        return self._offer(plans, law, f"{len(parts)} parts by themselves", views)

    def _questions(self, request: PlanningRequest, views: Views, least: float) -> Offer | None:
        """The questions of a batch, or the numbers of a SELECT, each with all rows that it needs and its own goal."""
        every, batch = one_by_one(request), bool(request.alone)
        if not every:
            return None
        shared = () if batch else _shared_columns(request.workload.map)
        plans = self._each(every, views, least, shared, of_numbers=batch)
        if plans is None:
            return None
        law = answered_by(request, every, [plan.offer.law for plan in plans])
        return self._offer(plans, law, f"{len(plans)} {named(request)} one by one", views)

    def _each(
        self,
        requests: Sequence[PlanningRequest],
        views: Views,
        least: float,
        shared: Collection[str] = (),
        *,
        of_numbers: bool = False,
    ) -> list[PartPlan] | None:
        """For each request the plan that adds least to the price of those before it.

        None where one has none, and where some of them cost as much already as others ask for all. `shared` are columns
        that all of them are about, and that alone are no reason to look at what is bought for others; requests
        `of_numbers` may be of several, which are then planned one by one as well.
        """
        plans: list[PartPlan] = []
        to_come = LogToCome(views)
        for request in requests:
            reusable = _reusable(to_come.events, request, shared)
            plan = self._cheapest(request, to_come, views, reusable=reusable, of_numbers=of_numbers)
            if plan is None:
                return None
            plans.append(plan)
            to_come.buy(plan.offer.price.events)
            if plan.offer.price.events and sum(each.offer.price.at_most for each in plans) >= least:
                return None
        return plans

    def _offer(self, plans: Sequence[PartPlan], law: ErrorLaw, note: str, views: Views) -> Offer | None:
        events = _events(plans)
        try:
            price = Price(events=events, at_most=views.price(events)) if events else Price()
        except BudgetError:
            return None
        log = _knowing((), views) if any(plan.place is not None for plan in plans) else views
        return Offer(
            proposer=self.name,
            price=price,
            law=law,
            run=partial(self._run, plans, log, law),
            reuses=sum(plan.offer.reuses for plan in plans),
            buys=sum(plan.offer.buys for plan in plans),
            note=f"{note}: {', '.join(dict.fromkeys(plan.offer.proposer for plan in plans))}",
        )

    def _cheapest(
        self, request: PlanningRequest, to_come: LogToCome, views: Views, *, reusable: bool, of_numbers: bool
    ) -> PartPlan | None:
        """The first plan that is free, or else the one that costs least, beside what is bought before."""
        before = to_come.events
        after = _after(before, views)
        if (free := self._known.known(request, after)) is not None:
            return PartPlan(request=request, offer=free)
        rehearsed = replace(to_come.log, price=after.price, remembered={}) if reusable else after
        for place, offer in enumerate(self._told(request, rehearsed) if reusable else ()):
            if meets(offer.law, request.goal):
                return PartPlan(request=request, offer=offer, place=place)
        offers = [offer for proposer in self._fresh for offer in proposer.offers(request, after)]
        numbers = self._questions(request, after, math.inf) if of_numbers and request.several else None
        offers += [] if numbers is None else [numbers]
        plans = [PartPlan(request=request, offer=offer) for offer in offers if meets(offer.law, request.goal)]
        best = min(plans, key=_price, default=None)
        for proposer in self._completing:
            for offer in proposer.offers(request, rehearsed) if proposer.scope.covers(request, rehearsed) else ():
                if best is not None and offer.price.at_most >= _price(best):
                    continue
                if not _refined(offer.price.events) & _refined(before):
                    best = self._completed(request, offer, len(before) if reusable else 0, rehearsed) or best
        return best

    def _completed(self, request: PlanningRequest, offer: Offer, bought: int, rehearsed: Views) -> PartPlan | None:
        """How what the log lacks for a part is bought; None where that does not keep the goal.

        An offer that counts on rows without values, of so many events that are `bought` before, is not run as it is:
        the part is answered from the log that has them, and what the offer buys. That is as exact, but for tails, which
        are looked at again.
        """
        if not bought:
            return PartPlan(request=request, offer=offer) if meets(offer.law, request.goal) else None
        if not rehearsed.possible(offer, request.workload.map):
            return None
        log = _knowing(_rehearsed(offer.price.events, rehearsed, bought), rehearsed)
        for place, estimate in enumerate(self._told(request, log)):
            if meets(estimate.law, request.goal):
                return PartPlan(request=request, offer=replace(offer, law=estimate.law), place=place)
        return None

    def _told(self, request: PlanningRequest, views: Views) -> list[Offer]:
        """What the log says about a question, whether that is exact enough or not."""
        kept = (offer for offer in self._strategy.offers(request, views) if not offer.price.events)
        return [*self._exact.offers(request, views), *self._reconstruct.now(request, views), *kept]

    def _run(self, plans: Sequence[PartPlan], log: Views, law: ErrorLaw, verbs: Verbs) -> Estimate:
        recording, values = Recording(verbs), []
        for plan in plans:
            if plan.place is None:
                estimate = plan.offer.run(cast(Verbs, recording))  # no part of a batch tests or picks
            else:
                for event in plan.offer.price.events:
                    recording.buy(event)
                told = self._told(plan.request, _knowing(recording.records, log))
                estimate = told[plan.place].run(verbs)
            values.append(estimate.values)
        return Estimate(values=np.concatenate(values), law=law)


def _price(plan: PartPlan) -> int:
    return plan.offer.price.at_most


def _after(events: tuple[Event, ...], views: Views) -> Views:
    """The views with prices of what is bought beside these events: where they leave slack, it costs nothing."""
    if not events:
        return views
    before = views.price(events)
    return replace(views, price=lambda more: views.price((*events, *more)) - before, remembered={})


def _knowing(records: Sequence[Record], views: Views) -> Views:
    """The views of a log with more records, which do not change with the log."""
    measurements = views.measurements.with_records(records)
    reconstructions = views.reconstructions.over_log(measurements)
    return replace(views, measurements=measurements, reconstructions=reconstructions, remembered={})


@dataclass(eq=False)
class LogToCome:
    """The log as it will be after what parts buy, one after the other: what was taken in for one part stays for the
    next."""

    views: Views
    events: tuple[Event, ...] = ()
    unheard: tuple[Event, ...] = ()  # those that `log` does not have yet

    def buy(self, events: tuple[Event, ...]) -> None:
        """What the next part buys."""
        self.events, self.unheard = (*self.events, *events), (*self.unheard, *events)

    @property
    def log(self) -> Views:
        """The views of that log."""
        if self.unheard:
            heard = len(self.events) - len(self.unheard)
            self.views = _knowing(_rehearsed(self.unheard, self.views, heard), self.views)
            self.unheard = ()
        return self.views


def _rehearsed(events: tuple[Event, ...], views: Views, earlier: int = 0) -> list[Record]:
    """Records of what would be bought, without values, behind those of so many events that were heard of before."""
    return [
        Record(
            position=views.position + earlier + place,
            at=0.0,
            analyst="",
            question="",
            proposer=Apart.name,
            run=0,
            event=event,
            values=np.zeros(len(event.rows) if isinstance(event, Refined) else event.strategy.rows, np.int64),
        )
        for place, event in enumerate(events, 1)
        if isinstance(event, Measured | Refined)
    ]


def _reusable(events: tuple[Event, ...], request: PlanningRequest, shared: Collection[str]) -> bool:
    """Whether what is bought may tell anything about a question, beside what columns that all are about tell."""
    columns = set(request.workload.map.attrs)
    measured = [event.strategy for event in events if isinstance(event, Measured | Refined)]
    if columns.issubset(shared):
        return bool(measured)
    return any(not columns.isdisjoint(set(strategy.attrs).difference(shared)) for strategy in measured)


def _shared_columns(queries: LinearMap) -> set[str]:
    """The columns that all rows are about: those of conditions and groups, which do not tell numbers apart."""
    first, *others = (set(piece.attrs) for piece in pieces_of(queries))
    return first.intersection(*others)


def _refined(events: tuple[Event, ...]) -> set[tuple[int, int]]:
    """The rows that are refined: two parts cannot refine the same ones."""
    return {(event.block, row) for event in events if isinstance(event, Refined) for row in event.rows.tolist()}


def _events(plans: Sequence[PartPlan]) -> tuple[Event, ...]:
    return tuple(event for plan in plans for event in plan.offer.price.events)


def _split(workload: Stack, sizes: Sequence[int]) -> list[LinearMap]:
    """The parts of a stack in consecutive groups of these sizes; a group of one is that part itself."""
    parts = [workload.parts[start:end] for start, end in pairwise(accumulate(sizes, initial=0))]
    return [group[0] if len(group) == 1 else Stack(group) for group in parts]


@dataclass
class Recording:
    """Verbs that keep what they have bought."""

    verbs: Verbs
    records: list[Record] = field(default_factory=list)

    def measure(self, strategy: LinearMap, noise: Noise) -> Record:
        self.records.append(self.verbs.measure(strategy, noise))
        return self.records[-1]

    def refine(self, block: int, rows: Sequence[int], noise: Noise) -> Record:
        self.records.append(self.verbs.refine(block, rows, noise))
        return self.records[-1]

    def buy(self, event: Event) -> None:
        if isinstance(event, Refined):
            self.refine(event.block, event.rows.tolist(), event.after)
        elif isinstance(event, Measured):
            self.measure(event.strategy, event.noise)
