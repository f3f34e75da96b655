"""What a goal means for averages, ratios, deviations and quantiles: there it counts people, not units of the output.

How much that is in units of the output depends on how many people a number is about: among n of them, E more or less
move an average of values from a to b by about E (b - a) / n at most.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from bursar.answer import Answer
from bursar.estimation.derived import Combination, Extreme, Form, Ratio
from bursar.goal import GoalKind
from bursar.planner.request import PlanningRequest
from bursar.sql.terms import Ref

EXAMPLES = (1_000, 100_000)
"""Numbers of people, where nothing tells how many there are."""

FAR_BELOW = 0.5
"""An error below this share of the goal's number is worth a word: less would have done, had units been meant."""

SHARE_OF_RANGE = 0.1
"""A number below this share of what an average can be may have been meant in units of the average."""


def goals_in_people(request: PlanningRequest, size: Callable[[], float | None]) -> tuple[str, ...]:
    """A line for each output whose error is asked for in people; `size` is what is known of their number.

    Edge cases: none where a price is asked for, since no error is stated then.
    """
    return tuple(_meaning(name, amount, form, size()) for name, amount, form in _in_people(request))


def _in_people(request: PlanningRequest) -> Iterator[tuple[str, float, Form]]:
    workload, goal = request.asked.workload, request.goal_in_counts
    if goal.kind is GoalKind.SPEND:
        return
    for name, form in zip(workload.outputs, workload.forms, strict=True):
        if not isinstance(form, Combination):
            yield name, goal.of(name).amount, form


def _meaning(name: str, amount: float, form: Form, size: float | None) -> str:
    if isinstance(form, Extreme):
        return f"{name}: {_beyond(amount, form)}"
    counts = f"{name}: an error of {amount:g} counts people, as for COUNT(*), not units of {name}"
    width = form.highest - form.lowest if isinstance(form, Ratio) else math.inf
    if not math.isfinite(width):
        return f"{counts}: as exact as if up to {amount:g} people more or less were in the data"
    if size is None or size < 1:
        return f"{counts}: about ±{' or ±'.join(_among(width * amount, number) for number in EXAMPLES)}, or less"
    told = f"{counts}: about ±{_among(width * amount, size)}, or less, and more in smaller groups"
    enough = amount * size / width
    return f"{told}; for ±{amount:g} among all ask for {_round(enough)}" if amount < width and enough > amount else told


def _beyond(amount: float, form: Extreme) -> str:
    """What an error means for the least or the greatest value."""
    whose = "people" if form.apart else "rows"
    return f"at most {math.ceil(amount):,} {whose} lie {'above' if form.most else 'below'} it"


def _among(moved: float, number: float) -> str:
    return f"{moved / number:.2g} among {number:,.0f}"


def _round(amount: float) -> str:
    """To two digits."""
    grain = 10.0 ** (math.floor(math.log10(amount)) - 1)
    return f"{round(amount / grain) * grain:.15g}"


def _handed_on(name: str, request: PlanningRequest) -> bool:
    """Whether an output is shown as it was measured: SELECTs around it select it by its name, or there are none."""
    terms = [dict(stage.columns).get(name) for stage in request.asked.workload.stages]
    return all(isinstance(term, Ref) and term.name.names(name) for term in terms)


def beside_goal(request: PlanningRequest, answer: Answer) -> tuple[str, ...]:
    """What to say beside averages whose errors are far from the number that was asked for, since that counts people;
    and beside the least and greatest values, how many rows may lie beyond them.

    Edge cases: nothing about averages where a count or a sum stands beside, whose error the number is for; where
    nothing was paid; where the number would be no sensible error in units, as for a share of 0 to 1; and where
    something is computed from the averages, which has an error of its own.
    """
    if request.goal_in_counts.kind is not GoalKind.ERROR:
        return ()
    outputs, computed = list(_in_people(request)), bool(request.asked.workload.stages)
    sure = f"with {100 * request.asked.goal.confidence:g}% confidence"
    told = [
        f"{name}: {sure}, {_beyond(amount, form)}"
        for name, amount, form in outputs
        if isinstance(form, Extreme) and _handed_on(name, request)
    ]
    if computed or answer.free or len(outputs) < len(answer.outputs):
        return tuple(told)
    for (name, amount, form), error in zip(outputs, answer.sure_errors, strict=True):
        width = form.highest - form.lowest if isinstance(form, Ratio) else math.inf
        if error == 0 or not math.isfinite(width) or amount >= SHARE_OF_RANGE * width:
            continue
        counts = f"the {amount:g} asked for {name} counts people, not units of {name}"
        if error < FAR_BELOW * amount:
            told.append(f"{counts}: {_round(amount * amount / error)} would have come to about ±{amount:g}, for less")
        elif error > amount:
            told.append(f"{counts}: among few people that is more")
    return tuple(told)
