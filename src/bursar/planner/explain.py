"""EXPLAIN: every offer with its price and error, for nothing."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any

from bursar.goal import Goal
from bursar.inference.estimate import meets
from bursar.inference.simultaneous import EveryQuestion
from bursar.kernel.accounting import from_units, left_of
from bursar.planner.choose import Preset, best, offers, widest, within_cap
from bursar.planner.offer import Offer, Views
from bursar.planner.request import Request


@dataclass(frozen=True, kw_only=True)
class Line:
    """One offer as a person sees it."""

    proposer: str
    price: float
    meets: bool
    error: float
    exact: bool  # whether the error is the bar that the answer would show, or the size it would be about
    reuses: int
    buys: int
    note: str


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """What would happen if the question were asked now; nothing was spent."""

    question: str
    goal: str
    contract: str
    unit: str
    offers: tuple[Line, ...]
    chosen: int | None  # place in `offers`
    left: float

    @property
    def price(self) -> float:
        """What the question would cost now; infinite where nothing meets the goal."""
        return math.inf if self.chosen is None else self.offers[self.chosen].price

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        head = f"{'':2}{'answer from':<14}{self.unit:>12}{'error ±':>12}{'goal met':>10}{'reuses':>9}{'buys':>8}"
        lines = [f"{self.goal} ({self.contract})", head]
        for place, line in enumerate(self.offers):
            mark = "->" if place == self.chosen else "  "
            price = f"{line.price:.6f}" if line.price else "free"
            met = "yes" if line.meets else "no"
            error = f"{line.error:.6g}" if line.exact else f"~{line.error:.3g}"
            lines.append(
                f"{mark}{line.proposer:<14}{price:>12}{error:>12}{met:>10}{line.reuses:>9}{line.buys:>8}"
                + (f"  {line.note}" if line.note else "")
            )
        if self.chosen is None:
            lines.append("nothing meets the goal for what may be spent")
        lines.append(f"left: {self.unit} {self.left:.6g}; the price shown is exactly what would be charged now")
        return "\n".join(lines)


def explain(preset: Preset, request: Request, views: Views) -> Explanation:
    """All offers of the preset, and which one would be taken."""
    found = list(offers(preset, request, views))
    met = [meets(offer.law, request.goal) for offer in found]
    payable = [offer.price.at_most <= views.left and within_cap(offer, request.goal) for offer in found]
    winner = best([offer for offer, *good in zip(found, met, payable, strict=True) if all(good)], request.goal)
    lines = tuple(
        Line(
            proposer=offer.proposer,
            price=from_units(offer.price.at_most),
            meets=kept,
            error=widest(offer, request.goal) if offer is winner else about(offer, request.goal),
            exact=offer is winner,
            reuses=offer.reuses,
            buys=offer.buys,
            note=offer.note,
        )
        for offer, kept in zip(found, met, strict=True)
    )
    return Explanation(
        question=request.text,
        goal=request.goal.describe(),
        contract=preset.contract.value,
        unit=views.mode.value,
        offers=lines,
        chosen=None if winner is None else found.index(winner),
        left=left_of(views.left),
    )


def about(offer: Offer, goal: Goal) -> float:
    """Roughly the error bar, as if errors were normal: exact bars are worth their time for the winner only."""
    times = offer.law.times if isinstance(offer.law, EveryQuestion) else 1.0
    return -NormalDist().inv_cdf(goal.beta / times / 2) * math.sqrt(offer.law.mean_square())
