"""Questions of a batch share the chance to fail, and averages among them follow from the joint law of their rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bursar.answer import Answer
from bursar.core.accounting import Noise, NoiseKind
from bursar.core.budget import Budget
from bursar.estimation.batch_goals import BatchGoal
from bursar.estimation.estimate import IndependentRows, LawOfQuestions, RepeatedRows, WeightedRows, meets
from bursar.goal import Goal, GoalKind
from bursar.planner.batch import BatchWorkload, together
from bursar.planner.goals import Wanted
from bursar.planner.request import PlanningRequest
from bursar.session import Bursar
from bursar.tails import LaplaceSums
from harness.small import Silence, TableSource, config, counts, engine

AGES = [f"SELECT AVG(age) AS a FROM people WHERE age BETWEEN {low} AND {low + 1}" for low in range(0, 8, 2)]
MIXED = [
    "SELECT AVG(age) AS a FROM people",
    "SELECT region, AVG(age) AS a, COUNT(*) AS n FROM people GROUP BY region",
    "SELECT AVG(age) AS again FROM people",
    "SELECT sex, MEDIAN(age) AS m FROM people GROUP BY sex HAVING m > 1 ORDER BY m",
    "SELECT COUNT(*) FROM people WHERE age < 3 AND age > 5",
]
RUNS, BETA = 60, 0.4


def requested(db: Bursar, *texts: str, within: float = 60, confidence: float = 0.95) -> PlanningRequest:
    goal = Wanted(within=within, confidence=confidence)
    return together([db.engine.prepare(sql, goal, None) for sql in texts], None)


def misses(goal: BatchGoal, request: PlanningRequest) -> float:
    """How often some average of a batch is not within its ends, with as much noise as a goal allows.

    The questions are about different people, so that they fail independently of each other.
    """
    workload, amount = request.workload, request.goal.amount
    assert isinstance(workload, BatchWorkload)
    workload = replace(workload, goal=goal)
    exact = workload.map.apply(TableSource(counts()).table).astype(float)
    trial = IndependentRows(noise=Noise(kind=NoiseKind.LAPLACE, scale=1000.0), rows=len(exact))
    about = 1000.0 * amount / goal.reach(trial, BETA)
    laws = (replace(trial, noise=replace(trial.noise, scale=share * about)) for share in (0.98, 0.95, 0.9))
    law = next(law for law in laws if goal.kept_by(law, amount, BETA))
    widths, random = law.half_widths(BETA), np.random.default_rng(7)
    (truth,) = workload.derive(exact, exact, exact, WeightedRows(weights=np.zeros((len(exact), 0)), noises=()), BETA)
    failed = 0
    for _ in range(RUNS):
        first, second = random.geometric(1 - np.exp(-1 / law.noise.scale), (2, len(exact)))
        noisy = exact + first - second
        (numbers,) = workload.derive(noisy, noisy - widths, noisy + widths, law, BETA)
        failed += bool(np.any((truth.value < numbers.low) | (truth.value > numbers.high)))
    return failed / RUNS


def test_all_averages_hold_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin gives every question the whole chance to fail."""
    request = requested(engine(), *AGES, confidence=1 - BETA)
    goal = request.goal.derived
    assert isinstance(goal, BatchGoal)
    spread = 3 * np.sqrt(BETA * (1 - BETA) / RUNS)
    ours = misses(goal, request)
    assert 0.3 * BETA < ours < BETA + spread
    monkeypatch.setattr(Goal, "shared", lambda goal, among: goal)
    assert misses(BatchGoal(goal.rows, goal.places, goal.derived), request) > BETA + spread


@pytest.mark.parametrize("budget", [Budget.of(epsilon=900.0), Budget.of(rho=900.0)], ids=["epsilon", "rho"])
def test_every_question_gets_its_own_numbers(budget: Budget) -> None:
    db, table = engine(randomness=Silence(), settings=config(budget=budget)), counts()
    batch = db.batch(MIXED, within=60, key="monday")
    ages = np.arange(10)
    average = (table.sum(axis=(1, 2)) @ ages) / table.sum()
    assert batch.answers[0].value == batch.answers[2].value == pytest.approx(average)
    assert batch.answers[2].outputs == ("again",)
    by_region = table.sum(axis=1)
    assert [line["n"] for line in batch.answers[1].rows] == pytest.approx(by_region.sum(axis=0).tolist())
    assert [line["a"] for line in batch.answers[1].rows] == pytest.approx(
        (ages @ by_region / by_region.sum(axis=0)).tolist()
    )
    assert batch.answers[1].error <= 60
    assert [label for (label,) in batch.answers[3].labels] in (["F", "M"], ["M", "F"])
    assert (batch.answers[4].value, batch.answers[4].error) == (0, 0)
    assert batch.charge == pytest.approx(db.budget().spent)
    assert db.batch(MIXED, within=60, key="monday").answers == batch.answers
    assert db.batch(MIXED, within=60).charge == 0


def test_one_by_one_is_a_plan_and_says_so() -> None:
    db = engine()
    texts = ["SELECT STDDEV(age) FROM people", "SELECT region, COUNT(*) AS n FROM people GROUP BY region", AGES[0]]
    batch = db.batch(within=60)
    for sql in texts:
        batch.query(sql)
    explained = batch.explain()
    (apart,) = [line for line in explained.offers if line.proposer == "apart"]
    assert apart.meets
    assert apart.error <= 60
    assert "3 questions one by one" in apart.note
    paid = batch.pay()
    assert paid.charge == explained.price
    assert all(isinstance(answer, Answer) for answer in paid.answers)


def test_rows_of_questions_one_by_one_say_nothing_of_all_rows() -> None:
    law = IndependentRows(noise=Noise(kind=NoiseKind.LAPLACE, scale=10.0), rows=2)
    goals = tuple(Goal(kind=GoalKind.ERROR, amount=amount, confidence=0.975) for amount in (60.0, 120.0))
    own = LawOfQuestions(laws=(law, law), goals=goals, sizes=(2, 2), questions=(), amount=60.0)
    both = BatchGoal(4, (np.array([0, 1]), np.array([2, 3])), (None, None))
    asked = Goal(kind=GoalKind.ERROR, amount=60.0, derived=both)
    assert own.tail(1e9, 0.5) == 1
    assert meets(own, asked)
    width = law.half_widths(asked.beta / 2)[0]
    assert own.half_widths(0.05) == pytest.approx([width, width, width / 2, width / 2], rel=0.02)
    assert own.mean_square() == pytest.approx(0.625 * law.mean_square())
    assert not meets(own, replace(asked, confidence=0.96))


def test_some_rows_of_groups_have_their_own_weights_and_groups() -> None:
    weights, noise = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 2.0]]), Noise(kind=NoiseKind.LAPLACE, scale=9.0)
    every = RepeatedRows(
        weights=weights, sums=LaplaceSums.of(weights, 0.01), noise=noise, copies=4, order=np.arange(12)
    )
    some = every.of_rows(np.array([4, 1, 10]))  # the second query in the groups 1, 0 and 3
    assert (some.copies, some.weights.tolist()) == (3, [[1.0, 1.0]])
    assert some.order.tolist() == [1, 0, 2]
    assert some.tail(50.0, 1.0) < every.tail(50.0, 1.0)
    one = weights[[1]]
    made = RepeatedRows(weights=one, sums=LaplaceSums.of(one, 0.01), noise=noise, copies=3, order=np.arange(3))
    assert some.tail(50.0, 1.0) == made.tail(50.0, 1.0)
