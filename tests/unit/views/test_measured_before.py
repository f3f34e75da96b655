"""The index of measured strategies: what it finds, and that nothing rests on it."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.analysts.shares import AnalystSettings
from bursar.core.accounting import Measured, Noise, NoiseKind, Refined, Versioned
from bursar.core.ledger import MemoryLedger, Purpose
from bursar.core.queries import LinearMap, Mask, Product, Steps
from bursar.session import Bursar
from bursar.views.kept_records import bring_up_to_date
from bursar.views.measured_before import SAVED, MeasuredBefore
from harness.small import Silence, config, engine

BY_AGE = Product((Mask(("age",), (10,), Steps.identity(10)),))
BY_SEX = Product((Mask(("sex",), (2,), Steps.identity(2)),))
QUESTION = "SELECT age, COUNT(*) FROM people GROUP BY age"


def append(ledger: MemoryLedger, strategy: LinearMap, scale: float, version: int = 1) -> int:
    noise = Noise(kind=NoiseKind.LAPLACE, scale=scale)
    event = Measured(strategy=strategy, noise=noise, version=version)
    facts = {"analyst": "ann", "purpose": Purpose("why", "test"), "values": np.zeros(strategy.rows, np.int64)}
    return ledger.commit(lambda transaction: transaction.append(event=event, **facts)).position


def declare(ledger: MemoryLedger, version: int) -> None:
    facts = {"analyst": "owner", "purpose": Purpose("", "owner"), "values": np.zeros(0, np.int64)}
    ledger.commit(lambda transaction: transaction.append(event=Versioned(version=version), **facts))


@pytest.fixture
def ledger() -> MemoryLedger:
    made = MemoryLedger({"id": "people"})
    declare(made, 1)
    for scale in (8.0, 2.0, 4.0):
        append(made, BY_AGE, scale)
    return made


def found(ledger: MemoryLedger, strategy: LinearMap = BY_AGE, version: int = 1, end: int = 99) -> int | None:
    record = MeasuredBefore.saved_in(ledger).find(strategy, ledger, version=version, end=end)
    return None if record is None else record.position


def test_the_most_accurate_record_is_found_and_later_ones_are_added(ledger: MemoryLedger) -> None:
    assert found(ledger) is None
    bring_up_to_date(ledger)
    assert (found(ledger), found(ledger, BY_SEX)) == (3, None)
    append(ledger, BY_SEX, 1.0)
    append(ledger, BY_AGE, 1.0)
    assert (found(ledger), found(ledger, BY_SEX)) == (3, None)
    bring_up_to_date(ledger)
    assert (found(ledger), found(ledger, BY_SEX)) == (6, 5)
    assert MeasuredBefore.saved_in(ledger).position == 6


def test_it_grows_with_strategies_and_not_with_the_log(ledger: MemoryLedger) -> None:
    for scale in (9.0, 1.5, 3.0):  # a checkpoint after each
        append(ledger, BY_AGE, scale)
        bring_up_to_date(ledger)
    assert len(MeasuredBefore.saved_in(ledger).entries) == 1
    assert found(ledger) == 6


def test_another_version_begins_anew(ledger: MemoryLedger) -> None:
    declare(ledger, 2)
    bring_up_to_date(ledger)
    assert found(ledger) is found(ledger, version=2) is None
    append(ledger, BY_AGE, 8.0, version=2)
    bring_up_to_date(ledger)
    assert (found(ledger, version=2), found(ledger, version=1)) == (6, None)


@pytest.mark.parametrize("position", [0, -1, 1, 5, 99])
def test_an_entry_that_points_elsewhere_finds_nothing(ledger: MemoryLedger, position: int) -> None:
    append(ledger, BY_SEX, 8.0)
    bring_up_to_date(ledger)
    entries = MeasuredBefore.saved_in(ledger).entries.copy()
    entries["position"] = position
    MeasuredBefore(position=5, version=1, entries=entries).save_in(ledger)
    assert found(ledger, BY_AGE, end=5) is None


@pytest.mark.parametrize("body", [b"", b"x", bytes(16), bytes(17), bytes(48), b"\xff" * 80])
def test_a_damaged_index_finds_nothing(ledger: MemoryLedger, body: bytes) -> None:
    ledger.save(SAVED, body)
    assert found(ledger, end=4) is None


def another(db: Bursar) -> tuple[Bursar, list[int]]:
    """A second process on the same ledger, and the positions after which it reads the log."""
    asked: list[int] = []
    ledger = db.ledger
    records = type(ledger).records

    def watched(after: int = 0) -> object:
        asked.append(after)
        return records(ledger, after)

    ledger.records = watched  # type: ignore[method-assign]
    return engine(ledger=ledger, settings=db.config, randomness=Silence(), analyst=db.analyst), asked


def test_rows_refined_since_the_checkpoint_are_read_with_what_is_kept_of_the_log() -> None:
    db = engine(randomness=Silence())
    db.query(QUESTION, within=60)
    db.engine.checkpoint()
    finer = db.query(QUESTION, within=59)
    assert any(isinstance(record.event, Refined) for record in db.ledger.records())
    opened, asked = another(db)
    again = opened.query(QUESTION, within=60)
    assert (again.values, again.free) == (finer.values, True)
    assert min(asked) > 0


def test_a_new_process_answers_again_without_reading_the_log() -> None:
    db = engine(randomness=Silence())
    first = db.query(QUESTION, within=60)
    db.engine.checkpoint()
    db.query("SELECT sex, COUNT(*) FROM people GROUP BY sex", within=60)
    opened, asked = another(db)
    again = opened.query(QUESTION, within=60)
    assert (again.values, again.free, again.source) == (first.values, True, "exact")
    assert opened.query("SELECT sex, COUNT(*) FROM people GROUP BY sex", within=60).free  # of the tail
    assert min(asked) >= 2
    tight = opened.query(QUESTION, within=40)  # that was not bought, so the log is read
    assert not tight.free
    assert min(asked) == 0
    assert opened.query(QUESTION, within=40).values == tight.values


def test_percentages_of_a_measured_size_need_the_count_alone() -> None:
    db = engine(randomness=Silence())
    db.query("SELECT COUNT(*) FROM people", within=30)
    db.query(QUESTION, within="1%")
    db.engine.checkpoint()
    opened, asked = another(db)
    assert opened.query(QUESTION, within="1%").free
    assert min(asked) > 0


def test_whoever_shares_nothing_reads_the_own_log(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = config(analysts=AnalystSettings(policy="independent"))
    db = engine(settings=settings, randomness=Silence())
    db.query(QUESTION, within=60)
    db.engine.checkpoint()
    opened, asked = another(db)
    other = opened.as_analyst("bob")
    assert not other.query(QUESTION, within=60).free
    assert min(asked) == 0
