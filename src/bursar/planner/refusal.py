"""Refusals that help: what was asked, what is left, and what would fit."""

from __future__ import annotations

from dataclasses import replace

from bursar.core.accounting import from_units, left_of
from bursar.errors import BudgetError, BursarError, GoalError, QueryError
from bursar.goal import Goal, GoalKind
from bursar.planner.choose import Preset, choose, fits, spending_cap
from bursar.planner.offer import Offer, Views
from bursar.planner.request import PlanningRequest

NO_TABLE = (
    "there is no synthetic table of these data that could answer this\n"
    "try: bursar synth --out people.csv, or the question without the synthetic table"
)


def refusal(preset: Preset, request: PlanningRequest, views: Views, offer: Offer | None) -> BursarError:
    """Why a request cannot be answered now, with the tightest goal that could be; nothing was spent."""
    if request.synthetic:
        return QueryError(NO_TABLE)
    cap = spending_cap(request.goal)
    affordable = views.left if cap is None else min(cap, views.left)
    if offer is None:
        offer = _without_cap(preset, request, views)
    goal = fits(preset, request, views, affordable)
    if offer is None:
        hint = "" if goal is None else f"\ntry: {goal.describe()}"
        wish = "cheap" if request.goal.kind is GoalKind.SPEND else "exact"
        return GoalError(f"no answer can be that {wish}: {request.goal_in_counts.describe()}{hint}")
    asked, left, limit = _binding(offer, views, cap)
    return BudgetError(
        asked=from_units(asked),
        left=left_of(left),
        unit=views.mode.unit,
        fits="" if goal is None else goal.describe(),
        limit=limit,
    )


def _binding(offer: Offer, views: Views, cap: int | None) -> tuple[int, int, str]:
    """What is asked for, how much there is, and whose limit that is."""
    asked, total = offer.price.at_most, offer.price.total
    if cap is not None and cap <= views.left:
        return asked, cap, "is the most you would pay"
    if total is not None and asked <= views.left:
        return total, views.total_left, "is left of the data set's budget"
    return asked, views.left, "is left" if views.analyst is None else f"is left of the share of {views.analyst}"


def _without_cap(preset: Preset, request: PlanningRequest, views: Views) -> Offer | None:
    """What would be taken if the analyst had set no limit to the price."""
    if request.goal.most is None:
        return None
    goal: Goal = replace(request.goal, most=None)
    return choose(preset, replace(request, goal=goal), views)
