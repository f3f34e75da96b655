"""Free answers that are asked again: the same as if they were planned again, and for the same analyst alone."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

import bursar
from bursar import Bursar
from bursar.curate.demo import generate
from bursar.errors import LedgerError
from bursar.planner.goals import Wanted
from bursar.planner.request import ONCE
from bursar.repeated import LatestRead
from bursar.session import share
from bursar.sql.parameters import resolve_day
from harness.small import Silence, engine

pytestmark = pytest.mark.thinned(2)

BY_SEX = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
BY_REGION = "SELECT region, COUNT(*) AS n FROM people GROUP BY region"
SHARES = '\n[analysts]\npolicy = "independent"\nshares = {ana = 0.5, bob = 0.5}\n'


@pytest.fixture
def toml(tmp_path: Path) -> Path:
    path = generate(tmp_path / "people.csv", rows=2_000)
    bursar.create(path).close()
    return path


def plannings(db: Bursar, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Hears of every question that is planned."""
    heard, choose = [], db.engine.planner.choose
    monkeypatch.setattr(
        db.engine.planner, "choose", lambda request: heard.append(request.asked.text) or choose(request)
    )
    return heard


def test_a_free_answer_is_planned_once_until_the_log_grows(toml: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with bursar.open(toml) as db:
        heard = plannings(db, monkeypatch)
        paid = db.query(BY_SEX, within=50)
        first, again = db.query(BY_SEX, within=50), db.query(BY_SEX, within=50)
        assert (paid.free, first.free) == (False, True)
        assert again == first
        assert len(heard) == 2
        db.query(BY_SEX, within=60)  # another goal is another question
        assert len(heard) == 3
        with bursar.open(toml) as elsewhere:  # another process
            elsewhere.query(BY_REGION, within=50)
            later = db.query(BY_SEX, within=50)
            assert len(heard) == 3  # of other rows
            assert later.left < first.left
            assert later == replace(first, left=later.left) == elsewhere.query(BY_SEX, within=50)
            finer = elsewhere.query(BY_SEX, within=20)
            last = db.query(BY_SEX, within=50)
            assert len(heard) == 4
            assert last.values == finer.values != later.values


def test_what_was_made_of_several_records_is_planned_again(toml: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So is everything after a record that is no measurement."""
    part = "SELECT COUNT(*) FROM people WHERE sex = 'F'"
    with bursar.open(toml) as db:
        heard = plannings(db, monkeypatch)
        db.query(BY_SEX, within=50)
        for _ in range(2):
            assert db.query(part, within=80).source == "reconstruct"
            assert db.query(BY_SEX, within=50).source == "exact"
        assert heard == [BY_SEX, part, BY_SEX]
        db.query(BY_REGION, within=50)
        for text in (part, BY_SEX):
            db.query(text, within=80 if text is part else 50)
        assert heard[3:] == [BY_REGION, part]
        db.owner.checkpoint()
        db.query(BY_SEX, within=50)
        assert heard[5:] == [BY_SEX]


def test_what_is_looked_up_is_what_would_be_planned(toml: Path) -> None:
    with bursar.open(toml) as db, bursar.open(toml) as fresh:
        for text in (BY_SEX, BY_REGION, "SELECT COUNT(*) FROM people WHERE age < 40"):
            db.query(text, within=80)
            first, again = db.query(text, within=80), db.query(text, within=80)
            assert first == again == fresh.query(text, within=80)


def test_nobody_is_given_the_answer_of_another(toml: Path) -> None:
    toml.write_text(toml.read_text() + SHARES)
    share(toml).close()
    with bursar.open(toml) as db:
        ana, bob = db.as_analyst("ana"), db.as_analyst("bob")
        ana.query(BY_SEX, within=50)
        assert ana.query(BY_SEX, within=50).payer == "ana"
        assert bob.query(BY_SEX, within=50).charge > 0
        assert bob.query(BY_SEX, within=50).payer == "bob"


def test_a_key_goes_to_the_ledger_first(toml: Path) -> None:
    with bursar.open(toml) as db:
        kept = db.query(BY_SEX, within=50, key="monday")
        for _ in range(2):
            assert db.query(BY_SEX, within=50).free
        assert db.query(BY_SEX, within=50, key="monday") == kept


def test_a_closed_data_set_answers_nothing(toml: Path) -> None:
    db = bursar.open(toml)
    for _ in range(3):
        db.query(BY_SEX, within=50)
    db.close()
    with pytest.raises(LedgerError):
        db.query(BY_SEX, within=50)


def test_long_answers_make_room(toml: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bursar.repeated.MOST_LINES", 9)
    with bursar.open(toml) as db:
        heard = plannings(db, monkeypatch)
        for text in (BY_SEX, BY_REGION):
            db.query(text, within=80)
        for text in (BY_SEX, BY_REGION, BY_REGION, BY_SEX):
            assert db.query(text, within=80).free
        assert len(heard) == 2 + 3


def test_a_key_for_one_request_is_charged_once_and_stores_nothing_that_was_free(toml: Path) -> None:
    with bursar.open(toml) as db:
        paid = db.query(BY_SEX, epsilon=0.1, key=f"{ONCE}1")
        assert db.query(BY_SEX, epsilon=0.1, key=f"{ONCE}1") == paid  # sent again: the same, charge and all
        assert paid.charge > 0
        assert db.owner.verify().answers == 1
        free = [db.query(BY_SEX, within=500, key=f"{ONCE}{number}") for number in (2, 3)]
        assert all(answer.free for answer in free)
        assert (db.owner.verify().answers, db.budget().spent) == (1, paid.charge)
        assert db.query(BY_SEX, within=500, key="for good").free
        assert db.owner.verify().answers == 2


class Door:
    """A lock that says when somebody stands before it."""

    def __init__(self) -> None:
        self.lock, self.came = threading.Lock(), threading.Semaphore(0)

    def __enter__(self) -> None:
        self.came.release()
        self.lock.acquire()

    def __exit__(self, *_: object) -> None:
        self.lock.release()


def test_one_read_does_for_all_who_wait_for_one() -> None:
    """Ten come while a read is under way that began before they did: one of them reads, and the others need not."""
    found: list[tuple[int, int]] = []
    reads: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(latest())) for _ in range(10)]

    def read() -> int:
        reads.append(len(reads))
        if len(reads) == 1:
            for thread in threads:
                thread.start()
            assert all(door.came.acquire(timeout=120) for _ in range(1 + len(threads)))
        return 100 + len(reads)

    latest, door = LatestRead(read), Door()
    latest._lock = door  # type: ignore[assignment]
    assert latest() == (1, 101)
    for thread in threads:
        thread.join()
    assert found == [(2, 102)] * 10
    assert len(reads) == 2
    assert latest() == (3, 103)  # whoever comes later gets no earlier read


def test_a_read_that_fails_is_nobody_elses() -> None:
    outcomes = iter([LedgerError("gone"), 7])

    def read() -> int:
        outcome = next(outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    latest = LatestRead(read)
    with pytest.raises(LedgerError):
        latest()
    assert latest()[1] == 7


def test_an_older_read_that_comes_late_forgets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    db = engine(randomness=Silence())
    sql = "SELECT sex, COUNT(*) FROM people GROUP BY sex"
    free = db.engine._free
    db.query(sql, within=50)
    kept = db.query(sql, within=50)
    older, position = free._end(), free._position
    db.query("SELECT region, COUNT(*) FROM people GROUP BY region", within=50)
    assert db.query(sql, within=50).free
    assert free._position > position
    monkeypatch.setattr(free, "_end", lambda: older)  # a thread that was slow between its read and its turn
    again = free.repeats(resolve_day(sql, db.engine.clock), Wanted(within=50), db.engine.analyst)
    assert free._position > position
    assert again.answer is not None
    assert again.answer.rows == kept.rows
