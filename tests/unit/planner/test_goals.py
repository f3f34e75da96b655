"""From what an analyst wrote to one goal in counts."""

from __future__ import annotations

import pytest

from bursar.core.accounting import Mode
from bursar.errors import GoalError
from bursar.goal import Goal, GoalKind
from bursar.planner.goals import Wanted, in_counts, resolve

DEFAULT = Goal(kind=GoalKind.ERROR, amount=10)


def unknown(beta: float) -> None:
    return None


@pytest.mark.parametrize(
    ("wanted", "kind", "amount", "confidence"),
    [
        (Wanted(within=50), GoalKind.ERROR, 50, 0.95),
        (Wanted(within="50", confidence="99%"), GoalKind.ERROR, 50, 0.99),
        (Wanted(within="2.5 %", confidence=0.9), GoalKind.ERROR, 2.5, 0.9),
        (Wanted(rmse=7), GoalKind.RMSE, 7, 0.95),
        (Wanted(epsilon=0.1), GoalKind.SPEND, 0.1, 0.95),
        (Wanted(), GoalKind.ERROR, 10, 0.95),
        (Wanted(confidence=0.5), GoalKind.ERROR, 10, 0.5),
    ],
)
def test_one_goal(wanted: Wanted, kind: GoalKind, amount: float, confidence: float) -> None:
    goal = resolve(wanted, None, DEFAULT, mode=Mode.PURE)
    assert (goal.kind, goal.amount, goal.confidence) == (kind, amount, pytest.approx(confidence))


@pytest.mark.parametrize(
    "wanted",
    [
        Wanted(within="many"),
        Wanted(within=0),
        Wanted(within=float("nan")),
        Wanted(within=float("inf")),
        Wanted(within=5, confidence=95),
        Wanted(within=5, confidence="0%"),
        Wanted(within=5, epsilon=1),
        Wanted(rho=1),
        Wanted(within=5, max_cost=-1),
    ],
)
def test_goals_that_make_no_sense(wanted: Wanted) -> None:
    with pytest.raises(GoalError):
        resolve(wanted, None, DEFAULT, mode=Mode.PURE)


def test_twice_is_refused_and_never_is_explained() -> None:
    with pytest.raises(GoalError, match="twice"):
        resolve(Wanted(within=5), DEFAULT, None, mode=Mode.PURE)
    with pytest.raises(GoalError, match="WITH ERROR 50"):
        resolve(Wanted(), None, None, mode=Mode.PURE)


def test_percent_of_a_public_size() -> None:
    goal = Goal(kind=GoalKind.ERROR, amount=2, percent=True)
    assert in_counts(goal, 5000, unknown).amount == 100


def test_percent_of_a_measured_size_pays_for_not_knowing_it() -> None:
    goal = Goal(kind=GoalKind.ERROR, amount=2, percent=True)
    counted = in_counts(goal, None, lambda beta: 4900.0 if beta == pytest.approx(0.005) else None)
    assert counted.amount == 98
    assert counted.beta == pytest.approx(0.045)
    with pytest.raises(GoalError, match="ask for it once"):
        in_counts(goal, None, unknown)


def test_words_can_be_typed_again() -> None:
    assert Goal(kind=GoalKind.SPEND, amount=0.1, unit="rho").describe() == "WITH RHO 0.1 CONFIDENCE 95%"
    assert Goal(kind=GoalKind.RMSE, amount=3, confidence=0.9).describe() == "WITH RMSE 3 CONFIDENCE 90%"
