"""From what an analyst wrote to one goal in counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from bursar.core.accounting import Mode
from bursar.errors import GoalError
from bursar.goal import DEFAULT_CONFIDENCE, LARGEST_AMOUNT, Goal, GoalKind
from bursar.lazy_dataclass import dataclass


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
    try:
        return float(str(value))
    except ValueError:
        raise GoalError(f"{name} must be a number, not {value!r}") from None


def share(given: float | str, name: str = "confidence") -> float:
    """A confidence such as .95, "0.95" or "95%"; or another share."""
    text = str(given).strip()
    return number(text.rstrip("% "), name) / (100 if text.endswith("%") else 1)
