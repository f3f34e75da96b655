"""Free answers that are asked again: the same as if they were planned again, and for the same analyst alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import bursar
from bursar import Bursar
from bursar.curate.demo import generate
from bursar.errors import LedgerError
from bursar.planner.request import ONCE
from bursar.session import share

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
