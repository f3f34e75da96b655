"""EXPLAIN: every offer with its price and error, for nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import ClassVar

from bursar.core.accounting import from_units, left_of
from bursar.core.noise.law import UNIT_BITS
from bursar.estimation.estimate import meets
from bursar.goal import Goal
from bursar.lazy_dataclass import dataclass
from bursar.planner.choose import Preset, best, ends_search, offers, with_deserved_credit, within_cap
from bursar.planner.offer import Offer, PricedPlan, Views
from bursar.planner.request import PlanningRequest

AS_IF_FOUND = "as if 100 more texts were told apart, beside the price of looking for them"


@dataclass(frozen=True, kw_only=True)
class OfferLine:
    """One offer as a person sees it."""

    proposer: str
    price: float
    meets: bool
    error: float  # the widest bar that the answer would show
    reuses: int
    buys: int
    note: str
    bid: float = 0.0  # what it competes with: below the price where later questions are expected to gain
    total: float | None = None  # what the data set would be charged, where an account pays

    @staticmethod
    def of(offer: PricedPlan[object], goal: Goal, *, meets: bool, step: float = 1.0) -> OfferLine:
        """`step` is what an error of 1, as it was asked for, is in the offer."""
        return OfferLine(
            proposer=offer.label,
            price=from_units(offer.price.at_most),
            total=None if offer.price.total is None else from_units(offer.price.total),
            meets=meets,
            error=offer.widest(goal) / step,
            reuses=offer.reuses,
            buys=offer.buys,
            note=offer.note,
            bid=offer.bid / 2**UNIT_BITS,
        )


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """What would happen if the question were asked now; nothing was spent."""

    question: str
    goal: str
    contract: str
    unit: str
    offers: tuple[OfferLine, ...]
    chosen: int | None  # place in `offers`
    left: float  # of the payer
    analyst: str | None = None  # whose account pays; None where the data set's budget does
    total_left: float | None = None  # of the data set
    why: str = ""  # where something dearer than the cheapest way is taken
    sharing: str = ""  # what analysts can rely on, in one line, where there are shares
    in_people: tuple[str, ...] = ()  # what the goal means for averages and the like, one line each
    search_price: float = 0.0  # of looking for texts of open columns first, where the question says so
    searches: tuple[str, ...] = ()  # what is looked for, and how rare it may be, one line each

    charged: ClassVar[str] = "exactly what would be charged now"

    @property
    def price(self) -> float:
        """What the question would cost now, with what is looked for first; infinite where nothing meets the goal."""
        return math.inf if self.chosen is None else self.offers[self.chosen].price + self.search_price

    def to_dict(self) -> dict[str, object]:
        """Everything as plain values; an error without a bound is None."""
        offers = [
            {
                **{key: value for key, value in asdict(line).items() if key != "meets"},
                "error": line.error if math.isfinite(line.error) else None,
                "meets_goal": line.meets,
                "taken": place == self.chosen,
            }
            for place, line in enumerate(self.offers)
        ]
        return {**asdict(self), "offers": offers}

    to_json = to_dict  # the name that everything has that a command prints as JSON

    def _repr_html_(self) -> str:
        from bursar.report.exports import page

        whole = () if self.analyst is None else ("of all",)
        head = ("answer from", self.unit, *whole, "error ±", "goal met", "reuses", "buys", "")
        lines = [
            (
                line.proposer,
                _amount(line.price),
                *(() if line.total is None else (_amount(line.total),)),
                *(_error(line.error), "yes" if line.meets else "no", str(line.reuses), str(line.buys), line.note),
            )
            for line in self.offers
        ]
        return page(head, lines, [f"{self.goal} ({self.contract})", *self._foot()], marked=self.chosen)

    def __str__(self) -> str:
        whole = "" if self.analyst is None else f"{'of all':>12}"
        head = f"{'':2}{'answer from':<14}{self.unit:>12}{whole}{'error ±':>12}{'goal met':>10}{'reuses':>9}{'buys':>8}"
        lines = [f"{self.goal} ({self.contract})", head]
        for place, line in enumerate(self.offers):
            mark = "->" if place == self.chosen else "  "
            price = f"{_amount(line.price):>12}" + ("" if line.total is None else f"{_amount(line.total):>12}")
            met = "yes" if line.meets else "no"
            lines.append(
                f"{mark}{line.proposer:<14}{price}{_error(line.error):>12}{met:>10}{line.reuses:>9}{line.buys:>8}"
                + (f"  {line.note}" if line.note else "")
            )
        return "\n".join([*lines, *self._foot()])

    def _foot(self) -> list[str]:
        left = f"{self.unit} {self.left:.6g}"
        if self.analyst is not None:
            left += f" of the share of {self.analyst}, {self.total_left:.6g} of the data set's budget"
        return [
            *(["nothing meets the goal for what may be spent"] if self.chosen is None else []),
            *([self.why] if self.why else []),
            *self.in_people,
            *self.searches,
            f"left: {left}; the price shown is {self.charged if not self.searches else AS_IF_FOUND}",
            *([self.sharing] if self.sharing else []),
        ]


def explain(preset: Preset, request: PlanningRequest, views: Views) -> Explanation:
    """All offers of the preset, and which one would be taken."""
    every = list(offers(preset, request, views))
    named = [offer.by_name == request.synthetic for offer in every]
    met = [name and meets(offer.law, request.goal) for offer, name in zip(every, named, strict=True)]
    payable = [views.payable(offer) and within_cap(offer, request.goal) for offer in every]
    good = [all(facts) for facts in zip(payable, named, [fit or request.synthetic for fit in met], strict=True)]
    deserved = iter(with_deserved_credit([offer for offer, fit in zip(every, good, strict=True) if fit]))
    every = [next(deserved) if fit else offer for offer, fit in zip(every, good, strict=True)]
    possible = [offer for offer, fit in zip(every, good, strict=True) if fit]
    free = next((offer for offer in possible if ends_search(offer, request.goal)), None)
    winner = best(possible, request.goal) if free is None else free
    return Explanation(
        question=request.text,
        goal=request.goal_in_counts.describe(),
        contract=preset.contract.value,
        unit=views.mode.unit,
        offers=tuple(
            OfferLine.of(offer, request.goal, meets=fit, step=request.step)
            for offer, fit in zip(every, met, strict=True)
        ),
        chosen=None if winner is None else every.index(winner),
        why="" if winner is None else _why(winner, possible, request, views),
        left=left_of(views.left),
        analyst=views.analyst,
        total_left=left_of(views.left if views.analyst is None else views.total_left),
    )


def _why(winner: Offer, offers: Sequence[Offer], request: PlanningRequest, views: Views) -> str:
    """Why more is paid than the cheapest way asks for: what it buys beyond the question, and when that pays off."""
    cheapest = min(offers, key=lambda offer: offer.price.at_most)
    more = winner.price.at_most - cheapest.price.at_most
    if more <= 0 or winner.credit <= 0:
        return ""
    columns = ", ".join(views.domain.ordered(request.workload.map.attrs))
    told = f"{winner.proposer} costs {from_units(more):.3g} more than {cheapest.proposer}: what it buys serves other"
    told += f" questions about {columns} as well"
    if cheapest.price.at_most > 0:
        told += f", and costs as much as {winner.price.at_most / cheapest.price.at_most:.2g} questions like this one"
    if views.investing is None:
        return f"{told}; many are expected"
    room = views.investing.room
    spent, plain = from_units(room.spent + winner.price.at_most), from_units(room.plain)
    return f"{told}; spent would be {spent:.3g}, at most {room.cap:g} times the {plain:.3g} of plain noise"


def _error(error: float) -> str:
    return f"{error:.6g}" if math.isfinite(error) else "no bound"


def _amount(price: float) -> str:
    return f"{price:.6f}" if price else "free"
