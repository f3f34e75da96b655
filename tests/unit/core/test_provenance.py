"""What the log says about why something was bought; ledgers that were written before it said so."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from bursar.core.accounting import Measured, Noise, NoiseKind, Refined
from bursar.core.budget import Budget
from bursar.core.ledger import UNKNOWN, SqliteLedger, chain
from bursar.core.ledger.sqlite import APPLICATION
from bursar.core.noise.system import SystemRandomness
from bursar.core.queries import Product
from bursar.errors import AnalystError, LedgerError
from bursar.planner.grant import Grant
from bursar.session import Bursar
from harness.small import TableSource, charter, config, counts, engine

OLD = Path(__file__).resolve().parents[2] / "fixtures" / "ledger_format_2.sql"
HEAD = "2211b80c3bf24fc4fa6aa0f617504ac9995fbe7b52f80a40e04e560b075bdc6f"
SPENT = 0.16416463983808427
SETTINGS = config(budget=Budget.of(epsilon=4.0))
THREE = "SELECT COUNT(*) AS n FROM people WHERE age = 3"
BY_SEX = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
BY_REGION = "SELECT region, COUNT(*) AS n FROM people GROUP BY region"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A ledger as release 0.1 left it."""
    found = tmp_path / "ledger.sqlite"
    found.touch(mode=0o600)
    with closing(sqlite3.connect(found)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.executescript(OLD.read_text())
        connection.execute("PRAGMA user_version = 2")
    return found


def opened(place: Path, expect: tuple[int, str] | None = None, analyst: str = "owner") -> Bursar:
    ledger = SqliteLedger.open(place, charter(SETTINGS), expect=expect)
    source = TableSource(counts(), SETTINGS.domain)
    facts = {"open_source": lambda key: source, "randomness": SystemRandomness(), "analyst": analyst}
    return Bursar(SETTINGS, ledger, **facts)


@pytest.fixture
def old(place: Path) -> Iterator[Bursar]:
    with opened(place, (5, HEAD)) as db:
        yield db


def test_a_ledger_of_an_earlier_release_is_read_as_it_was(old: Bursar) -> None:
    assert old.owner.verify().head == HEAD
    assert old.budget().spent == SPENT
    records = old.ledger.records()
    assert {(record.proposer, record.run) for record in records} == {(UNKNOWN, 0)}
    assert [line.purpose for line in old.log()] == ["declared the data", THREE, THREE, THREE, BY_SEX]
    (portion,) = old.spending().by_proposer
    assert (portion.name, portion.charge) == ("unknown (before 0.2)", pytest.approx(SPENT))
    assert {portion.name for portion in old.spending().by_question} == {THREE, BY_SEX}
    saved = old.spending(saved=True).saved
    assert saved is not None
    assert (saved.questions, saved.cached) == (0, pytest.approx(SPENT))  # they were not noted: as they were bought


def test_a_ledger_of_an_earlier_release_goes_on(place: Path, old: Bursar) -> None:
    free, paid = old.query(THREE, within=60), old.query(BY_REGION, within=60)
    assert free.charge == 0
    old.close()
    with opened(place) as again:
        assert again.owner.verify().head != HEAD
        *before, last = again.ledger.records()
        assert len(before) == 5
        assert (last.question, last.proposer) == (chain.question(BY_REGION), paid.source)
        assert last.run > 0
        assert again.budget().spent == pytest.approx(SPENT + paid.charge)
        named = {portion.name: portion.charge for portion in again.spending().by_proposer}
        assert named == {UNKNOWN: pytest.approx(SPENT), paid.source: pytest.approx(paid.charge)}
    with opened(place, (5, HEAD)):
        pass  # what the owner wrote down before still fits


def test_a_damaged_ledger_of_an_earlier_release_stays_what_it_is(place: Path) -> None:
    with closing(sqlite3.connect(place)) as connection:
        connection.execute("UPDATE log SET body = (SELECT body FROM log WHERE position = 4) WHERE position = 2")
        connection.commit()
    with pytest.raises(LedgerError, match="record 2 does not fit"):
        opened(place, (5, HEAD))
    with closing(sqlite3.connect(place)) as connection:
        assert connection.execute("PRAGMA user_version").fetchall() == [(2,)]
        assert connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'texts'").fetchall() == []


def test_erased_texts_leave_the_file(tmp_path: Path) -> None:
    place = tmp_path / "new.sqlite"
    secret = "SELECT COUNT(*) AS of_mister_miller FROM people"
    with closing(SqliteLedger.create(place, charter(SETTINGS))) as ledger:
        db = engine(settings=SETTINGS, ledger=ledger, analyst="owner")
        db.owner.declare_version()
        db.query(secret, within=60)
        head, charges = db.owner.verify().head, [line.charge for line in db.log()]
        files = [place, place.with_name("new.sqlite-wal")]
        assert any(b"of_mister_miller" in file.read_bytes() for file in files)
        with pytest.raises(AnalystError, match="only the data owner"):
            engine(settings=SETTINGS, ledger=ledger, analyst="ana").owner.erase_texts()
        assert db.owner.erase_texts() == 2
        assert all(b"of_mister_miller" not in file.read_bytes() for file in files)
        assert db.owner.verify().head == head
        assert [(line.purpose, line.asked) for line in db.log()] == [("", "(erased)")] * 2
        assert [line.charge for line in db.log()] == charges
        assert [portion.name for portion in db.spending().by_question] == ["(erased)"]
        saved = db.spending(saved=True).saved
        assert saved is not None
        assert saved.questions == 0


def test_all_records_of_a_plan_have_one_run() -> None:
    db = engine(settings=SETTINGS)
    db.query(THREE, within=60)
    db.query(THREE, within=30)  # refines, and measures what is free beside it
    first, *rest = db.ledger.records()[1:]
    assert [type(record.event) for record in rest] == [Refined, Measured]
    assert len({record.run for record in rest}) == 1
    assert first.run not in {record.run for record in rest}


def test_a_plan_without_a_hold_is_one_run_too() -> None:
    db = engine(settings=SETTINGS)
    strategy, noise = Product(()), Noise(kind=NoiseKind.LAPLACE, scale=64.0)
    with Grant(db.kernel, "ana", "table", (), 2**60, proposer="synthetic table") as grant:
        records = [grant.measure(strategy, noise) for _ in range(3)]
    assert len({record.run for record in records}) == 1
    assert {record.proposer for record in records} == {"synthetic table"}
