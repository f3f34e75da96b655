"""From what an analyst wrote to one goal in counts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bursar.errors import GoalError
from bursar.goal import Goal, GoalKind
from bursar.kernel.accounting import Mode


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The goal as keyword arguments or options give it; any of them may be missing."""

    within: float | str | None = None
    confidence: float | str | None = None
    rmse: float | None = None
    epsilon: float | None = None
    rho: float | None = None
    max_cost: float | None = None

    def goal(self) -> Goal | None:
        """The goal that the arguments name by themselves, if they name one."""
        named = {k: v for k in ("within", "rmse", "epsilon", "rho") if (v := getattr(self, k)) is not None}
        if len(named) > 1:
            raise GoalError(f"give one of {' and '.join(named)}, not several")
        sure = {} if self.confidence is None else {"confidence": share(self.confidence)}
        for name, amount in named.items():
            if name in ("epsilon", "rho"):
                return Goal(kind=GoalKind.SPEND, amount=number(amount, name), unit=name, **sure)
            kind = GoalKind.ERROR if name == "within" else GoalKind.RMSE
            percent = isinstance(amount, str) and amount.strip().endswith("%")
            return Goal(kind=kind, amount=number(str(amount).rstrip("% "), name), percent=percent, **sure)
        return None


def resolve(wanted: Wanted, clause: Goal | None, default: Goal | None, *, size: int | None, mode: Mode) -> Goal:
    """One goal: the clause in the SQL, or the arguments, or the config's default; percentages become counts."""
    own = wanted.goal()
    if own is not None and clause is not None:
        raise GoalError("the accuracy is given twice, in the SQL and beside it; leave one of them out")
    goal = own or clause or default
    if goal is None:
        raise GoalError("say how exact the answer must be, for example: WITH ERROR 50 CONFIDENCE 95%")
    if own is None and wanted.confidence is not None:
        goal = replace(goal, confidence=share(wanted.confidence))
    if goal.kind is GoalKind.SPEND and goal.unit and goal.unit != mode.value:
        raise GoalError(f"this data set counts its budget in {mode.value}; write WITH {mode.value.upper()} ...")
    if wanted.max_cost is not None:
        goal = replace(goal, most=number(wanted.max_cost, "max_cost"))
    return in_counts(goal, size) if goal.percent else goal


def in_counts(goal: Goal, size: int | None) -> Goal:
    """A percentage of the public size as a number of rows."""
    if size is None:
        raise GoalError(
            "a percentage needs the number of rows to be public: the data owner declares public_size in the config; "
            "until then give the error in rows, for example: WITH ERROR 50"
        )
    return replace(goal, amount=goal.amount * size / 100, percent=False)


def number(value: object, name: str) -> float:
    try:
        return float(str(value))
    except ValueError:
        raise GoalError(f"{name} must be a number, not {value!r}") from None


def share(confidence: float | str) -> float:
    """A confidence such as .95, "0.95" or "95%"."""
    text = str(confidence).strip()
    return number(text.rstrip("% "), "confidence") / (100 if text.endswith("%") else 1)
