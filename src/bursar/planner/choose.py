"""Choosing among offers: the least bid that meets the goal, then the preset's order; or a refusal that helps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import overload

from bursar.compile.partwise import pieces_of
from bursar.core.accounting import Mode, from_units, left_of, to_units
from bursar.core.queries import Distinct, PerPerson, Thresholds
from bursar.errors import BudgetError, BursarError, GoalError, QueryError
from bursar.estimation.estimate import meets
from bursar.estimation.simultaneous import Family
from bursar.goal import Contract, Goal, GoalKind
from bursar.lazy_dataclass import dataclass
from bursar.planner.goals import goals_in_people
from bursar.planner.numbers_alone import numbers_alone
from bursar.planner.offer import AnyOffer, Offer, PlainNoise, PricedPlan, Proposer, Views
from bursar.planner.request import PlanningRequest

SPARE = 1.05
"""Errors of several outputs are rounded one by one, and the multiples they are planned in with them."""


GUESS_BEYOND, GUESS_BEFORE = 1.002, 1.009
"""A goal that fits is looked for a little beyond where the price says that it is, and its end a little before it."""

LEAST_STEP = 1.05
"""Prices of small counts have steps: where one guess was not enough, the next goes further by at least this factor."""

MOST_PLANNED = 100_000
"""Numbers of a question up to which other ways are looked for than to measure the question itself."""

NO_TABLE = (
    "there is no synthetic table of these data that could answer this\n"
    "try: bursar synth --out people.csv, or the question without the synthetic table"
)


class ProposersInOrder(Sequence[Proposer]):
    """Proposers of which all but the first are made when they are asked for: who answers for nothing comes first.

    `names` are those of the others, for whoever reads in the log who answered and buys nothing.
    """

    def __init__(
        self, first: tuple[Proposer, ...], others: Callable[[], tuple[Proposer, ...]], names: tuple[str, ...]
    ) -> None:
        self._first, self._others = first, others
        self.names = frozenset((*(proposer.name for proposer in first), *names))

    @cached_property
    def _every(self) -> tuple[Proposer, ...]:
        every = (*self._first, *self._others())
        assert self.names == {proposer.name for proposer in every}, "or what they bought would be nobody's"
        return every

    def __iter__(self) -> Iterator[Proposer]:
        yield from self._first
        yield from self._every[len(self._first) :]

    def __len__(self) -> int:
        return len(self._every)

    @overload
    def __getitem__(self, place: int) -> Proposer: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Proposer, ...]: ...

    def __getitem__(self, place: int | slice) -> Proposer | tuple[Proposer, ...]:
        return self._every[place]


@dataclass(frozen=True)
class Preset:
    """Which proposers take part, in the order that breaks ties."""

    name: str
    proposers: Sequence[Proposer]
    sequential: bool = False  # charged by the sum of each purchase's largest loss, as published systems are
    plain: PlainNoise | None = None  # plain noise, which rows for later questions are held against; None: no limit
    family: Family | None = None  # the questions that the simultaneous contract covers, where that is in force

    @property
    def charging(self) -> str:
        """How purchases add up, where that is not by the profile; said in every answer and beside the budget."""
        if not self.sequential:
            return ""
        return f"sequential composition, as published ({self.name}): costs add up, also of questions about other people"

    @property
    def names(self) -> frozenset[str]:
        """What the log calls those who answer questions."""
        proposers = self.proposers
        return proposers.names if isinstance(proposers, ProposersInOrder) else frozenset(p.name for p in proposers)

    @property
    def contract(self) -> Contract:
        return Contract.PER_QUERY if self.family is None else Contract.SIMULTANEOUS


def check_strategy(preset: Preset, name: str | None, mode: Mode) -> None:
    """Refuse the name of a strategy that there is not, or not with this kind of budget."""
    if name is None:
        return
    designs = sorted({proposer.design for proposer in preset.proposers if proposer.design is not None})
    if name not in designs:
        raise QueryError(f"there is no strategy {name!r} here; there is {', '.join(designs) or 'none to be named'}")
    if mode is Mode.PURE:
        raise QueryError(f"the strategy {name!r} is for Gaussian noise: it needs a budget in rho, or with a delta")


def offers(preset: Preset, request: PlanningRequest, views: Views) -> Iterator[Offer]:
    """All offers that the kernel can run, proposer by proposer, computed as they are asked for."""
    as_it_is = _as_it_is(request)
    for proposer in preset.proposers:
        if (request.synthetic and not proposer.by_name) or proposer.design != request.strategy:
            continue
        if (as_it_is and not proposer.any_map) or not proposer.scope.covers(request, views):
            continue
        proposed = proposer.offers(request, views)
        yield from (views.completed(offer) for offer in proposed if views.possible(offer, request.workload.map))


def _as_it_is(request: PlanningRequest) -> bool:
    """Whether a question is only for those who take every map: thresholds, a distinct count, or very many numbers."""
    queries = request.workload.map
    alone = any(isinstance(part, Thresholds | Distinct | PerPerson) for part in pieces_of(queries))
    return alone or queries.rows > MOST_PLANNED


def choose(preset: Preset, request: PlanningRequest, views: Views) -> Offer | None:
    """The best offer, or None where nothing meets the goal. A free offer that meets it ends the search.

    What is left cannot pay for comes last: an offer that bids below its price must not keep out one that fits.
    """
    acceptable_offers: list[Offer] = []
    for offer in offers(preset, request, replace(views, rivals=acceptable_offers)):
        if taken(offer, request):
            if ends_search(offer, request.goal):
                return offer
            acceptable_offers.append(offer)
    return best_payable(with_deserved_credit(acceptable_offers), request.goal, views)


def ends_search(offer: Offer, goal: Goal) -> bool:
    """Whether an offer that can be chosen is chosen, whatever others bid: it is free. A goal on the price is no reason
    to stop at what costs nothing."""
    return offer.free and goal.kind is not GoalKind.SPEND


def with_deserved_credit(offers: Sequence[Offer]) -> list[Offer]:
    """The offers, without credit for rows where another one has as many rows, which serve later as well, for less."""
    return [
        replace(offer, credit=0)
        if offer.rows_for_later
        and any(
            other.reuses + other.buys >= offer.rows_for_later and other.price.at_most < offer.price.at_most
            for other in offers
        )
        else offer
        for offer in offers
    ]


def best_payable(offers: Sequence[AnyOffer], goal: Goal, views: Views) -> AnyOffer | None:
    """The best of the offers that what is left can pay for; the cheapest of all where it can pay for none."""
    payable = [offer for offer in offers if views.payable(offer)]
    if payable:
        return best(payable, goal)
    return min(offers, key=lambda offer: offer.price.at_most, default=None)


def taken(offer: Offer, request: PlanningRequest) -> bool:
    """Whether an offer can be chosen. One that goes by name is, where the asker names it, and nothing else then."""
    if request.synthetic:
        return offer.by_name
    return not offer.by_name and acceptable(offer, request.goal)


def acceptable(offer: Offer, goal: Goal) -> bool:
    """Whether the offer keeps the goal's accuracy and its cap on the price."""
    return within_cap(offer, goal) and meets(offer.law, goal)


def within_cap(offer: PricedPlan[object], goal: Goal) -> bool:
    """Whether the offer costs no more than the analyst wants to pay."""
    cap = spending_cap(goal)
    return cap is None or offer.price.at_most <= cap


def spending_cap(goal: Goal) -> int | None:
    """The most that the analyst wants to pay for this one question, in units of 2^-50."""
    caps = [goal.most, goal.amount if goal.kind is GoalKind.SPEND else None]
    named = [to_units(cap) for cap in caps if cap is not None]
    return min(named, default=None)


def best(offers: Sequence[AnyOffer], goal: Goal) -> AnyOffer | None:
    """Least bid first; where the goal is a price, least error first. Python's min keeps the preset's order in ties.

    Where an account pays, bids are about the account, and of equal bids the one that costs the data set less wins.
    """
    if goal.kind is GoalKind.SPEND:
        return min(offers, key=lambda offer: (offer.widest(goal), *_bids(offer)), default=None)
    return min(offers, key=_bids, default=None)


def _bids(offer: PricedPlan[object]) -> tuple[int, int]:
    return offer.bid, 0 if offer.price.total is None else offer.price.total


def fits(preset: Preset, request: PlanningRequest, views: Views, cap: int, dearer: Offer | None) -> Goal | None:
    """The tightest goal of the same kind, to 1 %, that some offer meets for at most `cap` units.

    `dearer` is the cheapest offer that keeps the goal of the request, which exceeds the cap; None where nothing does.

    Prices fall about as 1/error, or as its square with Gaussian noise, so a price tells where to look next; every
    second look is in the middle, where they do not. Each plans the question, which takes long if it has many numbers;
    nothing is planned for later questions, which are of no use in finding out what can be paid.
    """
    if request.goal.kind is GoalKind.SPEND:
        return None
    investing = None if views.investing is None else replace(views.investing, one_off=True)
    capped = replace(views, left=min(cap, views.left), investing=investing)
    power = 1.0 if views.mode is Mode.PURE else 2.0

    def told(offer: Offer | None) -> tuple[bool, float]:
        """Whether an offer is payable, and how many times its error would just be payable, about."""
        if offer is None:
            return False, 4.0
        times = capped.price_share(offer) ** (1 / power)
        return capped.payable(offer), times if math.isfinite(times) else 4.0

    def look(amount: float) -> tuple[bool, float]:
        return told(choose(preset, _relaxed(request, amount), capped))

    low = high = request.goal.amount
    payable, times = told(dearer)
    step = 1.0
    while not payable:
        low, high = high, high * max(GUESS_BEYOND * times, step)
        if high > 2.0**50:
            return None
        payable, times = look(high)
        step = max(LEAST_STEP, step**2)
    by_price = True
    while high > 1.01 * low:
        guess = min(GUESS_BEYOND * times, 1 / GUESS_BEFORE) * high
        middle = guess if by_price and low < guess else math.sqrt(low * high)
        payable, factor = look(middle)
        by_price = not by_price
        if payable:
            high, times = middle, factor
        else:
            low = middle
    return _stated(request, high / request.goal.amount)


def _relaxed(request: PlanningRequest, amount: float) -> PlanningRequest:
    """The request with another amount, and so many times the amounts of what it can be answered one by one by."""
    alone = request.alone or numbers_alone(request)
    goals = (_with_amount(each.goal, each.goal.amount * amount / request.goal.amount) for each in alone)
    return replace(
        request,
        goal=_with_amount(request.goal, amount),
        alone=tuple(replace(each, goal=goal) for each, goal in zip(alone, goals, strict=True)),
    )


def _with_amount(goal: Goal, amount: float) -> Goal:
    return Goal(
        kind=goal.kind,
        amount=amount,
        confidence=goal.confidence,
        relative=goal.relative,
        percent=goal.relative,
        floor=goal.floor,
        rows=goal.rows,
        derived=goal.derived,
    )


def _stated(request: PlanningRequest, factor: float) -> Goal:
    """The goal of a request, in the words it was stated in, with its amounts multiplied and rounded up."""
    goal = request.goal_in_counts
    parts = tuple(replace(part, amount=_round_up(SPARE * factor * part.amount)) for part in goal.parts)
    return replace(_with_amount(goal, _round_up(factor * goal.amount)), parts=parts)


def _round_up(amount: float) -> float:
    """To three significant digits, upwards, so that the suggestion can be typed."""
    step = 10.0 ** (math.floor(math.log10(amount)) - 2)
    return math.ceil(amount / step) * step


def refusal(preset: Preset, request: PlanningRequest, views: Views, offer: Offer | None) -> BursarError:
    """Why a request cannot be answered now, with the tightest goal that could be; nothing was spent."""
    if request.synthetic:
        return QueryError(NO_TABLE)
    cap = spending_cap(request.goal)
    affordable = views.left if cap is None else min(cap, views.left)
    if offer is None:
        offer = _without_cap(preset, request, views)
    goal = fits(preset, request, views, affordable, offer)
    if offer is None:
        if preset.sequential and goal is None:
            stated = request.goal_in_counts.describe()
            return GoalError(f'the preset "{preset.name}" has no way to answer this question {stated}')
        hint = "" if goal is None else f"\ntry: {goal.describe()}"
        wish = "cheap" if request.goal.kind is GoalKind.SPEND else "exact"
        return GoalError(f"no answer can be that {wish}: {request.goal_in_counts.describe()}{hint}")
    needed, left, limit = binding(offer, views, cap)
    return BudgetError(
        asked=from_units(needed),
        left=left_of(left),
        unit=views.mode.unit,
        fits="" if goal is None else goal.describe(),
        limit=limit,
        meaning="\n".join(goals_in_people(request, lambda: None)),
    )


def binding(offer: PricedPlan[object], views: Views, cap: int | None = None) -> tuple[int, int, str]:
    """What is asked for, how much there is, and whose limit that is."""
    at_most, total = offer.price.at_most, offer.price.total
    if cap is not None and cap <= views.left:
        return at_most, cap, "is the most you would pay"
    if total is not None and at_most <= views.left:
        return total, views.total_left, "is left of the data set's budget"
    return at_most, views.left, "is left" if views.analyst is None else f"is left of the share of {views.analyst}"


def _without_cap(preset: Preset, request: PlanningRequest, views: Views) -> Offer | None:
    """What would be taken if the analyst had set no limit to the price."""
    if request.goal.most is None:
        return None
    goal: Goal = replace(request.goal, most=None)
    return choose(preset, replace(request, goal=goal), views)
