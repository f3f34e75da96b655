"""What is free does not wait while somebody else plans, and is what would have been chosen."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bursar.core.accounting import Book
from bursar.core.budget import Budget
from bursar.session import Bursar
from harness.cases import few
from harness.small import Silence, config, engine

JOINT = "SELECT age, sex, COUNT(*) FROM people GROUP BY age, sex"
LONGEST = 120.0
"""Seconds after which a test that has hung gives up."""


def quiet(budget: Budget) -> Bursar:
    return engine(randomness=Silence(), settings=config(budget=budget))


@contextmanager
def somebody_planning(db: Bursar) -> Iterator[threading.Event]:
    """The planner is busy until the event is set, or the block is left."""
    begun, done = threading.Event(), threading.Event()

    def plan(_: object) -> None:
        begun.set()
        done.wait(LONGEST)

    thread = threading.Thread(target=db.engine.planner.look, args=(db.engine.analyst, plan))
    thread.start()
    assert begun.wait(LONGEST)
    try:
        yield done
    finally:
        done.set()
        thread.join()


def test_free_answers_come_while_a_purchase_is_planned() -> None:
    db, after = quiet(Budget.of(epsilon=100.0)), quiet(Budget.of(epsilon=100.0))
    free = (JOINT, "SELECT COUNT(*) FROM people WHERE age < 3 AND sex = 'F'")
    for each in (db, after):
        each.query(JOINT, within=20)
    with somebody_planning(db) as done:
        answers = [db.query(sql, within=100) for sql in free]
        assert not done.is_set()
    assert answers == [after.query(sql, within=100) for sql in free]
    assert [answer.source for answer in answers] == ["exact", "reconstruct"]
    assert db.engine.planner.comparison(None) == after.engine.planner.comparison(None)


def test_what_is_not_free_waits_for_its_turn() -> None:
    db = quiet(Budget.of(epsilon=100.0))
    db.query(JOINT, within=20)
    answers = []
    with somebody_planning(db):
        asking = threading.Thread(target=lambda: answers.append(db.query("SELECT COUNT(*) FROM people", within=1)))
        asking.start()
        asking.join(0.5)
        assert asking.is_alive()
    asking.join()
    assert not answers[0].free


@pytest.mark.parametrize("budget", few([Budget.of(epsilon=200.0), Budget.of(rho=100.0)]))
def test_whoever_plans_what_is_chosen_is_the_same(budget: Budget, monkeypatch: pytest.MonkeyPatch) -> None:
    """One session in which every question first looks beside the lock, and one in which none does."""
    beside, serial = quiet(budget), quiet(budget)
    free = []
    meanwhile = beside.engine.planner._free_meanwhile

    class AlwaysBusy:
        def __init__(self) -> None:
            self.lock = threading.Lock()

        def locked(self) -> bool:
            return True

        def __enter__(self) -> None:
            self.lock.acquire()

        def __exit__(self, *_: object) -> None:
            self.lock.release()

    def counted(request: object) -> object:
        free.append(meanwhile(request))  # type: ignore[arg-type]
        return free[-1]

    monkeypatch.setattr(beside.engine.planner, "_lock", AlwaysBusy())
    monkeypatch.setattr(beside.engine.planner, "_free_meanwhile", counted)
    rng = random.Random(7)
    for _ in range(40):
        low = rng.randrange(10)
        age = f"age BETWEEN {low} AND {rng.randrange(low, 10)}"
        sql = rng.choice(
            [
                f"SELECT COUNT(*) FROM people WHERE {age}",
                f"SELECT sex, COUNT(*) FROM people WHERE {age} GROUP BY sex",
                "SELECT region, COUNT(*) FROM people GROUP BY region",
                JOINT,
            ]
        )
        within = rng.choice([20, 60, 150])
        assert beside.query(sql, within=within) == serial.query(sql, within=within)
    assert 5 <= sum(offer is not None for offer in free) < len(free)
    noted, expected = (db.engine.planner.comparison(None) for db in (beside, serial))
    assert (noted.questions, noted.spent) == (expected.questions, expected.spent)


def test_a_free_answer_to_a_new_wording_is_noted_and_nothing_is_priced(monkeypatch: pytest.MonkeyPatch) -> None:
    db, before = quiet(Budget.of(epsilon=100.0)), quiet(Budget.of(epsilon=100.0))
    wordings = [f"SELECT COUNT(*) FROM people WHERE age < {age} AND sex = 'F'" for age in range(2, 9)]
    for each in (db, before):
        each.query(JOINT, within=20)
        each.query(wordings[0], within=100)  # once for each state of the log it is asked whether the total is free

    def priced(*_: object) -> int:
        raise AssertionError("priced")

    with monkeypatch.context() as patch:
        patch.setattr(Book, "price", priced)
        patch.setattr(db.kernel, "charge", priced)
        assert all(db.query(sql, within=100).free for sql in wordings)
    for sql in wordings:
        before.query(sql, within=100)
        before.engine.planner.comparison(None)  # whoever looks has everything added up
    assert db.engine.planner.comparison(None) == before.engine.planner.comparison(None)
    assert db.engine.planner.comparison(None).questions == 1 + len(wordings)
