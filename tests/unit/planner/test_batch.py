"""Many questions as one: the same rows once, one charge, each question's own table."""

from __future__ import annotations

import pytest

from bursar.core.budget import Budget
from bursar.errors import BudgetError, GoalError, QueryError
from harness.small import Silence, config, counts, engine

QUESTIONS = [
    "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex",
    "SELECT COUNT(*) AS n FROM people WHERE age < 3",
    "SELECT sex, COUNT(*) AS again FROM people GROUP BY sex",
    "SELECT COUNT(*) FROM people WHERE age < 3 AND age > 5",
]


def test_every_question_gets_its_own_table() -> None:
    db = engine(randomness=Silence())
    batch = db.batch(QUESTIONS, within=60)
    truth = counts()
    assert [line["n"] for line in batch.answers[0].rows] == pytest.approx(truth.sum(axis=(0, 2)).tolist())
    assert batch.answers[1].value == pytest.approx(truth[:3].sum())
    assert batch.answers[2].values == batch.answers[0].values
    assert (batch.answers[3].value, batch.answers[3].error) == (0, 0)
    assert batch.charge == pytest.approx(db.budget().spent)
    assert "for all" in str(batch)


def test_overlapping_questions_are_cheaper_together() -> None:
    db = engine(settings=config(budget=Budget.of(rho=1.0)))
    running = [f"SELECT COUNT(*) FROM people WHERE age <= {i}" for i in range(10)]
    batch = db.batch(running, within=60)
    assert batch.charge < 0.55 * batch.one_by_one
    assert batch.answers[0].source == "strategy"
    assert all(answer.error <= 60 for answer in batch.answers)


def test_a_batch_joins_the_log() -> None:
    db = engine()
    db.batch(QUESTIONS, within=60)
    assert db.query(QUESTIONS[1], within=60).free
    assert db.batch(QUESTIONS, within=60).charge == 0


def test_a_key_covers_the_whole_batch() -> None:
    db = engine()
    first = db.batch(QUESTIONS, within=60, key="monday")
    assert db.batch(QUESTIONS, within=60, key="monday").answers == first.answers


def test_what_cannot_be_asked_together_costs_nothing() -> None:
    db = engine()
    with pytest.raises(GoalError, match="one goal"):
        db.batch([f"{QUESTIONS[0]} WITH ERROR 60", f"{QUESTIONS[1]} WITH ERROR 70"])
    with pytest.raises(QueryError):
        db.batch([], within=60)
    with pytest.raises(QueryError):
        db.batch([QUESTIONS[0], "SELECT age FROM people"], within=60)
    with pytest.raises(BudgetError):
        db.batch(QUESTIONS, within=2)
    assert db.budget().spent == 0
