"""What a batch asks of its questions: each keeps its goal with an even share of the chance to fail.

Chances add up, whatever the questions have in common, so all error bars of a batch hold together. A question about
averages, quantiles and the like is exact enough where the joint law of its own rows says so (`derived_goals`), one
about counts and sums where the bars of its rows do.
"""

from __future__ import annotations

from dataclasses import field, replace
from weakref import WeakKeyDictionary

import numpy as np

from bursar.arrays import Integers, Reals
from bursar.estimation.derived_goals import DerivedGoal, near_any
from bursar.estimation.estimate import (
    ErrorLaw,
    IndependentRows,
    JointLaw,
    RepeatedRows,
    WeightedRows,
    meets,
)
from bursar.goal import Goal, GoalKind
from bursar.lazy_dataclass import dataclass

MOST_ROWS_APART = 4096
"""Rows of a batch up to which those of a question are looked at by themselves, where that takes a matrix of them."""


Own = tuple[Reals, ErrorLaw, Goal]
"""Values of the rows of one question, the law of their errors, and the goal that they keep."""


@dataclass(frozen=True, eq=False)
class BatchGoal:
    """What the rows of a batch are measured for, question by question."""

    rows: int
    places: tuple[Integers, ...]  # of each question's rows among those of the batch
    derived: tuple[DerivedGoal | None, ...]  # None for counts and sums
    _kept: WeakKeyDictionary[ErrorLaw, dict[tuple[float, float], bool]] = field(
        default_factory=WeakKeyDictionary, repr=False
    )

    apart = False  # where all rows are exact enough together, so is every output by its bars

    def kept_by(self, law: ErrorLaw, amount: float, beta: float, *, searching: bool = False) -> bool:
        """Whether an error law keeps all goals with rows that may err by an amount. Not cheap: it is remembered."""
        if not any(self.derived):
            return False  # counts and sums that share rows are exact enough where all rows are
        answers = self._kept.setdefault(law, {})
        if (amount, beta) not in answers:
            shared = self._shared(law, amount, beta)
            answers[amount, beta] = shared is not None and all(meets(part, goal) for part, goal in shared)
        return answers[amount, beta]

    def reach(self, law: ErrorLaw, beta: float) -> float:
        """About the least amount at which they are kept, for plans to begin with."""
        shared = self._shared(law, 1.0, beta) if any(self.derived) else None
        if shared is None:
            return np.inf
        return max(
            _reach_of_rows(part, goal.beta) if goal.derived is None else goal.derived.reach(part, goal.beta)
            for part, goal in shared
        )

    def widths(self, law: ErrorLaw, amount: float, beta: float) -> None:
        """Bars of all rows are those of the law; questions have bars of their own (`by_question`)."""

    def by_question(self, values: Reals, law: ErrorLaw, amount: float, beta: float) -> list[Own] | None:
        """What each question is answered from; None where the law keeps the goal for all rows together alone."""
        shared = self._shared(law, amount, beta) if self.kept_by(law, amount, beta) else None
        if shared is None:
            return None
        return [(values[rows], part, goal) for rows, (part, goal) in zip(self.places, shared, strict=True)]

    def _shared(self, law: ErrorLaw, amount: float, beta: float) -> list[tuple[ErrorLaw, Goal]] | None:
        """For each question the law of its rows, and its goal with an even share of beta; None where either is none."""
        goal = Goal(kind=GoalKind.ERROR, amount=amount, confidence=1 - beta).shared(len(self.places))
        laws = [_law_of(law, rows, self.rows) for rows in self.places]
        if goal is None or None in laws:
            return None
        parts = [part for part in laws if part is not None]
        return [(part, replace(goal, derived=derived)) for part, derived in zip(parts, self.derived, strict=True)]

    def _facts(self) -> tuple[object, ...]:
        return self.rows, tuple(rows.tobytes() for rows in self.places), self.derived

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BatchGoal) and self._facts() == other._facts()

    def __hash__(self) -> int:
        return hash(self._facts())


def _law_of(law: ErrorLaw, rows: Integers, of: int) -> ErrorLaw | None:
    """The law of some rows; None where it is not known how they belong together, or rows are too many."""
    match law:
        case IndependentRows():
            return replace(law, rows=len(rows))
        case RepeatedRows():
            return law.of_rows(rows)
        case WeightedRows():
            return WeightedRows(weights=law.weights[rows], noises=law.noises, chance=law.chance)
        case JointLaw() if of <= MOST_ROWS_APART:
            weights, noises = law.as_draws(np.eye(of)[rows])
            return WeightedRows(weights=weights, noises=noises)
    return None


def _reach_of_rows(law: ErrorLaw, beta: float) -> float:
    """About the least amount that all rows are within."""
    if isinstance(law, WeightedRows) and law.variances.any():
        return near_any(law.weights, law.noises, beta)
    return float(law.half_widths(beta).max(initial=0.0))
