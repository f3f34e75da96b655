"""Which records of a long log count for planners, and that nothing rests on the choice."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.analysts.shares import AnalystSettings
from bursar.core.accounting import Measured, Noise, NoiseKind, Refined, Sealed, Versioned
from bursar.core.accounting.events import Event
from bursar.core.extensions.checkpoint import Checkpointed
from bursar.core.extensions.saved_state import encode_tree, int_bytes
from bursar.core.ledger import MemoryLedger, Purpose, Record
from bursar.core.queries import LinearMap, Mask, Product, Steps
from bursar.session import Bursar
from bursar.views import kept_records
from bursar.views.kept_records import SAVED, KeptRecords, bring_up_to_date
from bursar.views.measurements import Measurements
from harness.small import DOMAIN, Silence, config, engine

BY_SEX = Product((Mask(("sex",), (2,), Steps.identity(2)),))
QUESTION = "SELECT age, COUNT(*) FROM people GROUP BY age"


def ages(low: int, high: int) -> Product:
    return Product((Mask(("age",), (10,), Steps.ranges([low], [high], 10)),))


def laplace(scale: float) -> Noise:
    return Noise(kind=NoiseKind.LAPLACE, scale=scale)


def measured(strategy: LinearMap, scale: float, version: int = 1) -> Measured:
    return Measured(strategy=strategy, noise=laplace(scale), version=version)


def refined(block: int, strategy: LinearMap, before: float, after: float) -> Refined:
    rows = np.arange(strategy.rows)
    noises = {"before": laplace(before), "after": laplace(after)}
    return Refined(block=block, measured=strategy, rows=rows, version=1, **noises)


def log_of(*events: Event) -> MemoryLedger:
    ledger = MemoryLedger({"id": "people"})
    extend(ledger, Versioned(version=1), *events)
    return ledger


def extend(ledger: MemoryLedger, *events: Event) -> None:
    for event in events:
        facts = {"analyst": "ann", "purpose": Purpose("why", "test"), "values": np.zeros(event.answers, np.int64)}
        ledger.commit(lambda transaction, event=event, facts=facts: transaction.append(event=event, **facts))


def kept(ledger: MemoryLedger) -> list[int]:
    bring_up_to_date(ledger)
    return KeptRecords.saved_in(ledger).positions


def test_of_a_short_log_everything_is_kept_but_what_tells_planners_nothing() -> None:
    ledger = log_of(measured(ages(0, 5), 8.0), Checkpointed(position=2, digest="0"), measured(BY_SEX, 8.0))
    assert kept(ledger) == [1, 2, 4]
    extend(ledger, measured(ages(0, 5), 8.0))
    assert [record.position for record in KeptRecords.saved_in(ledger).read(ledger)] == [1, 2, 4]
    assert kept(ledger) == [1, 2, 4, 5]


def test_what_says_most_of_some_columns_is_kept_and_the_same_rows_come_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_records, "MOST_RECORDS", 2)
    precise, coarse, again = measured(ages(0, 5), 2.0), measured(ages(3, 9), 64.0), measured(ages(0, 5), 4.0)
    wide = measured(Product((Mask(("age",), (10,), Steps.identity(10)),)), 8.0)  # ten rows say more than one
    assert kept(log_of(coarse, again, precise, measured(BY_SEX, 64.0))) == [1, 2, 4, 5]
    assert kept(log_of(coarse, precise, wide)) == [1, 3, 4]
    ledger = log_of(coarse, precise)
    assert kept(ledger) == [1, 2, 3]
    extend(ledger, wide)
    assert kept(ledger) == [1, 3, 4]  # chosen again among those that were chosen before


def test_rows_are_limited_too_and_the_first_measurement_always_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_records, "MOST_ROWS", 3)
    wide = Product((Mask(("age",), (10,), Steps.identity(10)),))
    assert kept(log_of(measured(wide, 2.0), measured(ages(0, 5), 2.0), measured(BY_SEX, 2.0))) == [1, 2, 4]


def test_every_set_of_columns_gets_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_records, "MOST_IN_ALL", 2)
    some = [measured(ages(0, n), 2.0 + n) for n in range(1, 6)]
    assert kept(log_of(*some, measured(BY_SEX, 999.0))) == [1, 2, 7]


def test_what_was_refined_stays_with_what_was_measured_or_goes_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_records, "MOST_RECORDS", 2)
    rough, rival = ages(0, 5), measured(ages(3, 9), 4.0)
    ledger = log_of(measured(rough, 64.0), rival, refined(2, rough, 64.0, 2.0))
    assert kept(ledger) == [1, 2, 4]
    ledger = log_of(measured(rough, 64.0), rival, measured(ages(1, 2), 8.0))
    assert kept(ledger) == [1, 3, 4]
    extend(ledger, refined(2, rough, 64.0, 2.0))
    assert kept(ledger) == [1, 3, 4]
    views = Measurements(DOMAIN)
    views.advance([*KeptRecords.saved_in(ledger).read(ledger), *ledger.records(4)])  # a refinement of what is not there
    assert len(views.blocks["age",]) == 3


def test_another_version_begins_anew() -> None:
    ledger = log_of(measured(ages(0, 5), 8.0), measured(BY_SEX, 8.0))
    assert kept(ledger) == [1, 2, 3]
    extend(ledger, Versioned(version=2), measured(BY_SEX, 8.0, version=2), measured(BY_SEX, 8.0, version=1))
    assert kept(ledger) == [4, 5]
    extend(ledger, measured(BY_SEX, 4.0, version=2))
    assert kept(ledger) == [4, 5, 7]


def test_of_other_records_the_last_are_kept_and_the_declaration_of_the_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bursar.views.kept_records.MOST_OTHERS", 3)
    ledger = log_of(measured(BY_SEX, 8.0), *(Sealed(through=n, version=1) for n in range(5)))
    assert kept(ledger) == [1, 2, 6, 7]
    extend(ledger, Sealed(through=5, version=1))
    assert kept(ledger) == [1, 2, 7, 8]
    undeclared = KeptRecords().after(ledger.records(1))
    assert undeclared.others.tolist() == [6, 7, 8]  # nothing stays that would need what followed it


TWICE = encode_tree([9, 1, [], int_bytes(np.array([1, 1])), b""])
BEYOND = encode_tree([9, 1, [], int_bytes(np.array([1, 10])), b""])


@pytest.mark.parametrize("body", [b"", b"x", b"[]\n", b"[1,2,3,4,5]\n", bytes(48), TWICE, BEYOND])
def test_a_damaged_index_is_an_empty_one(body: bytes) -> None:
    ledger = log_of(measured(BY_SEX, 8.0))
    ledger.save(SAVED, body)
    assert (KeptRecords.saved_in(ledger).position, KeptRecords.saved_in(ledger).positions) == (0, [])


def reopened(db: Bursar) -> Bursar:
    """A second process on the same ledger."""
    return engine(ledger=db.ledger, settings=db.config, randomness=Silence(), analyst=db.analyst)


def read_by(db: Bursar) -> list[Record]:
    return list(db.engine.kept(0))


def test_a_new_process_plans_from_what_is_kept_and_from_the_tail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_records, "MOST_RECORDS", 2)
    db = engine(randomness=Silence())
    for low in range(6):
        db.query(f"SELECT COUNT(*) FROM people WHERE age BETWEEN {low} AND 8", within=60 - low)
    assert read_by(db) == db.ledger.records()  # it has no need to leave anything out
    bought = len(db.ledger.records())
    db.engine.checkpoint()
    db.query("SELECT sex, COUNT(*) FROM people GROUP BY sex", within=60)
    again = reopened(db)
    positions = [record.position for record in read_by(again)]
    assert positions[-1] == bought + 2  # after the record of the checkpoint
    assert len(positions) < bought
    for low in range(6):
        assert again.query(f"SELECT COUNT(*) FROM people WHERE age BETWEEN {low} AND 8", within=60 - low).free
    assert again.query(QUESTION, within=60).values == engine(randomness=Silence()).query(QUESTION, within=60).values


def test_what_was_left_out_is_not_read_by_the_second_question_either(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where nothing came after the checkpoint, so that the last record that was read is one of the first."""
    monkeypatch.setattr(kept_records, "MOST_RECORDS", 1)
    db = engine(randomness=Silence())
    db.query("SELECT COUNT(*) FROM people WHERE age < 8", within=10)
    for low in range(1, 6):
        db.query(f"SELECT COUNT(*) FROM people WHERE age BETWEEN {low} AND 8", within=60 - low)
    db.engine.checkpoint()
    end = db.ledger.records()[-1].position
    again = reopened(db)
    last = read_by(again)[-1].position
    assert last < end - 3
    assert list(again.engine.kept(last)) == []
    again.query("SELECT sex, COUNT(*) FROM people GROUP BY sex", within=60)
    assert [record.position for record in again.engine.kept(last)] == [end + 1]


def test_an_index_that_does_not_fit_is_not_used() -> None:
    db = engine(randomness=Silence())
    db.query(QUESTION, within=60)
    db.engine.checkpoint()
    index = KeptRecords.saved_in(db.ledger)
    for position in (1, 99):  # before the checkpoint, and behind the end of the log
        KeptRecords(position=position, version=1, others=index.others).save_in(db.ledger)
        assert read_by(reopened(db)) == db.ledger.records()


def test_whoever_shares_nothing_reads_the_own_records_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_records, "MOST_RECORDS", 0)
    db = engine(settings=config(analysts=AnalystSettings(policy="independent")), randomness=Silence())
    db.query(QUESTION, within=60)
    db.query(QUESTION, within=50)
    db.engine.checkpoint()
    assert reopened(db).query(QUESTION, within=60).free
