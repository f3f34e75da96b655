"""Goals: from what an analyst wrote to one in counts, and what that means for averages and the like.

For averages, ratios, deviations and quantiles a goal counts people, not units of the output. How much that is in units
depends on how many people a number is about: among n of them, E more or less move an average of values from a to b by
about E (b - a) / n at most.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

from bursar.answer import Answer
from bursar.core.accounting import Mode
from bursar.errors import GoalError
from bursar.estimation.association import Association
from bursar.estimation.derived import Combination, Extreme, Form, Ratio
from bursar.goal import DEFAULT_CONFIDENCE, LARGEST_AMOUNT, Goal, GoalKind
from bursar.lazy_dataclass import dataclass
from bursar.planner.request import PlanningRequest
from bursar.sql.terms import Ref


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The goal as keyword arguments or options give it; any of them may be missing."""

    within: float | str | None = None
    confidence: float | str | None = None
    rmse: float | None = None
    epsilon: float | None = None
    rho: float | None = None
    max_cost: float | None = None
    relative: float | str | None = None  # of each true count, 0.05 or "5%"
    floor: float | None = None  # beside it: what counts below this are taken for
    horizon: str | int | None = None  # how many more such questions are expected; None: as the config says
    strategy: str | None = None  # the strategy to measure, by its name; None: whatever is best
    synthetic: bool = False  # the answer of the synthetic table, whatever is known about its error

    @property
    def measures(self) -> bool:
        """Whether an accuracy is asked for this question, so that MIN and MAX are measured."""
        return any(amount is not None for amount in (self.within, self.rmse, self.epsilon, self.rho))

    def goal(self) -> Goal | None:
        """The goal that the arguments name by themselves, if they name one."""
        kinds = ("within", "relative", "rmse", "epsilon", "rho")
        named = {k: v for k in kinds if (v := getattr(self, k)) is not None}
        if len(named) > 1:
            raise GoalError(f"give one of {' and '.join(named)}, not several")
        sure = DEFAULT_CONFIDENCE if self.confidence is None else share(self.confidence)
        if self.floor is not None and self.relative is None:
            raise GoalError('floor goes with relative, for example relative="5%", floor=200')
        for name, amount in named.items():
            if name == "relative":
                floor = None if self.floor is None else number(self.floor, "floor")
                percent = 100 * share(amount, "relative")
                return Goal(
                    kind=GoalKind.ERROR, amount=percent, percent=True, relative=True, floor=floor, confidence=sure
                )
            if name in ("epsilon", "rho"):
                return Goal(kind=GoalKind.SPEND, amount=number(amount, name), unit=name, confidence=sure)
            kind = GoalKind.ERROR if name == "within" else GoalKind.RMSE
            percent = isinstance(amount, str) and amount.strip().endswith("%")
            return Goal(kind=kind, amount=number(str(amount).rstrip("% "), name), percent=percent, confidence=sure)
        return None


@dataclass(frozen=True, kw_only=True)
class SessionGoal(Wanted):
    """The goal that is set for all questions of a session, and was not thought of for one of them."""

    @property
    def measures(self) -> bool:
        return False


def goal_of(kind: str, amount: str, *, confidence: str | None = None) -> Wanted:
    """A goal in typed words: within | rmse | epsilon | rho, and an amount."""
    if kind == "within":
        return Wanted(within=amount, confidence=confidence)
    value = number(amount, kind)
    match kind:
        case "rmse":
            return Wanted(rmse=value, confidence=confidence)
        case "epsilon":
            return Wanted(epsilon=value, confidence=confidence)
    return Wanted(rho=value, confidence=confidence)


_FREE = Goal(kind=GoalKind.SPEND, amount=1 / LARGEST_AMOUNT)
"""Asks for no accuracy, and next to no money: for the synthetic table, which needs neither."""


_ANY = Goal(kind=GoalKind.ERROR, amount=1.0)
"""For what is declared, or 0 whatever the data hold: it has no error."""


def resolve(options: Wanted, clause: Goal | None, default: Goal | None, *, mode: Mode, public: bool = False) -> Goal:
    """One goal: the clause in the SQL, or the arguments, or the config's default; any, where nothing is measured."""
    named = options.goal()
    if named is not None and clause is not None:
        raise GoalError("the accuracy is given twice, in the SQL and beside it; leave one of them out")
    goal = named or clause or default or (_FREE if options.synthetic else _ANY if public else None)
    if goal is None:
        raise GoalError("say how exact the answer must be, for example: WITH ERROR 50 CONFIDENCE 95%")
    if named is None and options.confidence is not None:
        goal = replace(goal, confidence=share(options.confidence))
    if goal.kind is GoalKind.SPEND and goal.unit and goal.unit != mode.unit:
        raise GoalError(f"this data set counts its budget in {mode.unit}; write WITH {mode.unit.upper()} ...")
    if options.max_cost is not None:
        goal = replace(goal, most=number(options.max_cost, "max_cost"))
    return goal


SIZE_SHARE = 0.1
"""The share of a goal's failure probability that goes to not knowing the number of rows exactly."""


def in_counts(goal: Goal, public_size: int | None, measured_size: Callable[[float], float | None]) -> Goal:
    """Percentages as numbers of rows: of the public size, else of the size that the log has measured.

    `measured_size(beta)` is a number that the true size falls short of with probability at most beta. Its failure is
    taken off the goal's own, so the promise as a whole is the one that was asked for.
    """
    if not (goal.percent or any(part.percent for part in goal.parts)) or goal.floor is not None:
        return goal
    if public_size is not None:
        return _of_size(goal, public_size)
    size = measured_size(SIZE_SHARE * goal.beta)
    if size is None or size <= 0:
        raise GoalError(
            "a percentage needs the number of rows, which is not public here: ask for it once "
            "(SELECT COUNT(*) FROM ... WITH ERROR 100), or give the error in rows, for example: WITH ERROR 50; "
            "a relative error then needs a floor: WITH RELATIVE ERROR 5% FLOOR 200"
        )
    left_over = 1 - (1 - SIZE_SHARE) * goal.beta
    return replace(_of_size(goal, size), confidence=left_over)


def _of_size(goal: Goal, size: float) -> Goal:
    if goal.relative:
        return replace(goal, rows=size)
    parts = tuple(
        replace(part, amount=part.amount * size / 100, percent=False) if part.percent else part for part in goal.parts
    )
    amount = goal.amount * size / 100 if goal.percent else goal.amount
    return replace(goal, amount=amount, percent=False, parts=parts)


def number(value: object, name: str) -> float:
    """A typed number; GoalError, with the name of the argument, where it is none."""
    try:
        return float(str(value))
    except ValueError:
        raise GoalError(f"{name} must be a number, not {value!r}") from None


def share(given: float | str, name: str = "confidence") -> float:
    """A confidence such as .95, "0.95" or "95%"; or another share."""
    text = str(given).strip()
    return number(text.rstrip("% "), name) / (100 if text.endswith("%") else 1)


EXAMPLES = (1_000, 100_000)
"""Numbers of people, where nothing tells how many there are."""

FAR_BELOW = 0.5
"""An error below this share of the goal's number is worth a word: less would have done, had units been meant."""

SMALLEST_PART = 1e-4
"""No error below this part of the one that was asked for is proposed."""

SHARE_OF_RANGE = 0.1
"""A number below this share of what an average can be may have been meant in units of the average."""


def goals_in_people(request: PlanningRequest, size: Callable[[], float | None]) -> tuple[str, ...]:
    """A line for each output whose error is asked for in people; `size` is what is known of their number.

    Edge cases: none where a price is asked for, since no error is stated then.
    """
    lines = len(request.asked.workload.labels)
    return tuple(_meaning(name, amount, form, size(), lines) for name, amount, form in _in_people(request))


def _in_people(request: PlanningRequest) -> Iterator[tuple[str, float, Form]]:
    workload, goal = request.asked.workload, request.goal_in_counts
    if goal.kind is GoalKind.SPEND:
        return
    for name, form in zip(workload.outputs, workload.forms, strict=True):
        known = isinstance(form, Ratio) and form.lowest == form.highest  # whatever the rows are, or that there are none
        if not known and not isinstance(form, Combination):
            yield name, goal.of(name).amount, form


def _meaning(name: str, amount: float, form: Form, size: float | None, lines: int) -> str:
    if isinstance(form, Extreme):
        return f"{name}: {_beyond(amount, form)}"
    counts = f"{name}: an error of {amount:g} counts rows, as for COUNT(*), not units of {name}"
    if isinstance(form, Association):
        return f"{counts}; {_of_pairs(amount, form, size)}"
    width = form.highest - form.lowest if isinstance(form, Ratio) else math.inf
    if not math.isfinite(width):
        return f"{counts}: as exact as if up to {amount:g} rows more or less were in the data"
    if size is None or size < 1:
        return f"{counts}: about ±{' or ±'.join(_among(width * amount, number) for number in EXAMPLES)}, or less"
    told = f"{counts}: about ±{_among(width * amount, size)}, or less, and more in smaller groups"
    if size <= 2 * amount * lines:  # among 2 E rows, E of them move an average over all of its range
        share = f"an even share of them for each of {lines:,} groups is {size / lines:,.0f}"
        return f"{told}; {share}, too few to be told anything about within {amount:g}"
    enough = amount * size / width
    return f"{told}; for ±{amount:g} among all ask for {_round(enough)}" if amount < width and enough > amount else told


def _of_pairs(amount: float, form: Association, size: float | None) -> str:
    """What an error comes to for a correlation or a line, and a warning where that may be nothing at all."""
    numbers = EXAMPLES if size is None or size < 1 else (size,)
    ends = [form.rehearsed(number, amount) for number in numbers]
    among = [f"{_ends(low, high)} among {number:,.0f}" for (low, high), number in zip(ends, numbers, strict=True)]
    told = (
        f"of values that deviate by an eighth of their range and correlate by a half it would be {' or '.join(among)}"
    )
    if not _is_all(form, ends[-1]):
        return told
    enough = amount
    while enough > amount * SMALLEST_PART and _is_all(form, form.rehearsed(numbers[-1], enough)):
        enough /= 2
    less = f", and may say something from an error of {_round(enough)} on"
    return f"{told}: likely to say nothing{less if enough > amount * SMALLEST_PART else ''}"


def _ends(low: float, high: float) -> str:
    """Both ends of an interval, with digits enough to tell them apart."""
    texts = [(f"{low:.{digits}g}", f"{high:.{digits}g}") for digits in range(2, 18)]
    return " to ".join(next((pair for pair in texts if pair[0] != pair[1]), texts[0]))


def _says_nothing(form: Association, answer: Answer, name: str) -> bool:
    """Whether an output is unknown on every line."""
    place = answer.outputs.index(name)
    ends = [(low[place], high[place]) for low, high in zip(answer.low, answer.high, strict=True)]
    return bool(ends) and all(_is_all(form, each) for each in ends)


def _is_all(form: Association, ends: tuple[float, float]) -> bool:
    return ends[0] <= form.reach[0] and ends[1] >= form.reach[1]


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
    for name, amount, form in outputs:
        if isinstance(form, Association) and not computed and _says_nothing(form, answer, name):
            told.append(f"{name} may be anything that is possible: an error of {amount:g} rows is too large to tell")
    if computed or answer.free or len(outputs) < len(answer.outputs):
        return tuple(told)
    for (name, amount, form), error in zip(outputs, answer.sure_errors, strict=True):
        width = form.highest - form.lowest if isinstance(form, Ratio) else math.inf
        if error == 0 or not math.isfinite(width) or amount >= SHARE_OF_RANGE * width:
            continue
        counts = f"the {amount:g} asked for {name} counts rows, not units of {name}"
        if error < FAR_BELOW * amount:
            told.append(f"{counts}: {_round(amount * amount / error)} would have come to about ±{amount:g}, for less")
        elif error > amount:
            told.append(f"{counts}: among few rows that is more")
    return tuple(told)
