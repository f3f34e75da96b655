"""Questions that are collected, priced together, and only then paid."""

from __future__ import annotations

import pytest

from bursar.errors import BudgetError, QueryError
from harness.small import Silence, counts, engine

BY_AGE = "SELECT age, COUNT(*) AS n FROM people GROUP BY age"
WOMEN = "SELECT COUNT(*) AS n FROM people WHERE sex = 'F'"


def records(db: object) -> int:
    return len(db.ledger.records())  # type: ignore[attr-defined]


def test_a_block_is_priced_first_and_paid_once() -> None:
    db = engine(randomness=Silence())
    with db.batch(within=50) as batch:
        by_age, women = batch.query(BY_AGE), batch.query(WOMEN)
        price = batch.price
        assert records(db) == 1  # the version alone: nothing is bought yet
        assert price > 0
    assert batch.result is not None
    assert batch.result.charge == price == pytest.approx(db.budget().spent)
    assert batch.one_by_one > 0
    assert women.value == counts()[:, 0].sum()
    assert [row["n"] for row in by_age.rows] == counts().sum(axis=(1, 2)).tolist()
    assert by_age.answer.question == BY_AGE


def test_it_is_the_batch_that_a_list_gives() -> None:
    listed = engine().batch([BY_AGE, WOMEN], within=50)
    with engine().batch(within=50) as batch:
        batch.query(BY_AGE)
        batch.query(WOMEN)
    assert batch.result is not None
    assert (batch.result.charge, batch.result.one_by_one) == (listed.charge, listed.one_by_one)


def test_an_error_in_the_block_costs_nothing() -> None:
    db = engine()
    with pytest.raises(ZeroDivisionError), db.batch(within=50) as batch:  # noqa: PT012
        batch.query(BY_AGE)
        raise ZeroDivisionError
    assert records(db) == 1
    assert db.budget().spent == 0


def test_a_wrong_question_is_refused_where_it_stands_and_the_rest_goes_on() -> None:
    db = engine()
    with db.batch(within=50) as batch:
        kept = batch.query(WOMEN)
        with pytest.raises(QueryError) as refusal:
            batch.query("SELECT COUNT(*) FROM people WHERE salary = 3")
        assert refusal.value.position > 0
    assert kept.value == batch.result.answers[0].value
    assert len(batch.result.answers) == 1


def test_nothing_is_asked_that_was_cancelled() -> None:
    db = engine()
    with db.batch(within=50) as batch:
        asked = batch.query(BY_AGE)
        batch.cancel()
    assert batch.result is None
    assert records(db) == 1
    with pytest.raises(QueryError, match="not paid"):
        _ = asked.answer
    with pytest.raises(AttributeError, match="not paid"):
        _ = asked.value
    assert "not paid yet" in str(asked)
    with pytest.raises(QueryError, match="closed"):
        batch.query(WOMEN)


def test_no_more_is_paid_than_was_shown() -> None:
    db = engine()
    db.batch([BY_AGE], within=50)
    with pytest.raises(BudgetError, match="nothing was spent"), db.batch(within=50) as batch:  # noqa: PT012
        batch.query(BY_AGE)
        assert batch.price == 0
        db.owner.declare_version()  # what was known is about other data now
        before = db.budget().spent
    assert db.budget().spent == before
    with db.batch(within=50) as unseen:  # the twin: nobody has looked at a price
        unseen.query(BY_AGE)
    assert unseen.result is not None
    assert unseen.result.charge > 0


def test_a_question_added_after_the_price_is_paid_too() -> None:
    db = engine()
    with db.batch(within=50) as batch:
        batch.query(WOMEN)
        first = batch.price
        batch.query(BY_AGE)
    assert batch.result is not None
    assert batch.result.charge > first


def test_explain_is_not_paid_for_in_passing() -> None:
    db = engine()
    with pytest.raises(QueryError) as refusal:
        db.batch([WOMEN, f"EXPLAIN {BY_AGE}"], within=50)
    assert records(db) == 1
    assert db.batch([WOMEN, refusal.value.rewrite], within=50).charge > 0


def test_a_key_that_was_answered_is_free() -> None:
    db = engine()
    first = db.batch([WOMEN, BY_AGE], within=50, key="monday")
    with db.batch(within=50, key="monday") as batch:
        women = batch.query(WOMEN)
        batch.query(BY_AGE)
        assert batch.price == 0
    assert women.answer == first.answers[0]


def test_an_empty_block_is_refused() -> None:
    with pytest.raises(QueryError, match="at least one question"), engine().batch(within=50):
        pass


def test_progress_is_told() -> None:
    heard: list[tuple[int, int]] = []
    engine().batch([WOMEN, BY_AGE], within=50, progress=lambda done, of: heard.append((done, of)))
    assert heard == [(1, 2), (2, 2)]


def test_what_nothing_can_pay_has_no_price() -> None:
    db = engine()
    with pytest.raises(BudgetError), db.batch(within=1) as batch:  # noqa: PT012
        batch.query(BY_AGE)
        assert batch.price == float("inf")
    assert db.budget().spent == 0
