"""A ledger that is moved between a file and PostgreSQL: all of it arrives, and it is spent from in one place only."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from bursar.core.extensions.move import LedgerSite, file_site, move, schema_site
from bursar.core.ledger import Hold, Ledger, PostgresLedger, PostgresPlace, SqliteLedger
from bursar.core.ledger.database import Database
from bursar.errors import LedgerError
from harness.ledgers import answer, everything, measure, note
from harness.postgres_ledgers import KEY
from harness.servers import administer, shared_postgresql

CHARTER = {"id": "people", "budget": {"epsilon": 1.0}}
FILE, SCHEMA = "file", "schema"


class Places:
    """A file and a schema, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "ledger.sqlite"
        schema = f"moved {folder.name}"[:63]
        self.schema = PostgresPlace(
            url=shared_postgresql().url(), schema=schema, anchor=folder / "ledger-anchor", key=KEY
        )

    def site(self, kind: str) -> LedgerSite:
        return file_site(self.file) if kind == FILE else schema_site(self.schema)

    def create(self, kind: str) -> Ledger:
        if kind == FILE:
            return SqliteLedger.create(self.file, CHARTER)
        return PostgresLedger.create(self.schema, CHARTER)

    def open(self, kind: str) -> Ledger:
        return SqliteLedger.open(self.file, CHARTER) if kind == FILE else PostgresLedger(self.schema, CHARTER)

    def remove(self) -> None:
        administer(self.schema.url, f'DROP SCHEMA IF EXISTS "{self.schema.schema}" CASCADE')


@pytest.fixture
def places(tmp_path: Path):  # type: ignore[no-untyped-def]
    made = Places(tmp_path)
    yield made
    made.remove()


def filled(places: Places, kind: str) -> Ledger:
    ledger = places.create(kind)
    for number in range(5):
        ledger.commit(lambda t, n=number: (measure(t), note(t, f"question {n}")))
    ledger.commit(everything)
    ledger.commit(lambda t: answer(t, "other", b"\x00"))
    ledger.commit(lambda t: t.put_in_queue("ticket 1", b"ann"))
    return ledger


def contents(ledger: Ledger) -> tuple[object, ...]:
    records = [(r.position, r.at, r.analyst, r.question, r.run, r.values.tolist()) for r in ledger.records()]
    kept = ledger.answered(analyst="ann", key="k", question="q"), ledger.queue(), ledger.texts()
    inside = ledger.commit(lambda t: (t.secret("s"), [h.fence for h in t.holds(0.0)]))
    return records, kept, inside, ledger.verify().head


BOTH = pytest.mark.parametrize(("old", "new"), [(FILE, SCHEMA), (SCHEMA, FILE)])


@pytest.mark.thinned(2)
@BOTH
def test_everything_arrives(places: Places, old: str, new: str) -> None:
    ledger = filled(places, old)
    before, fence = contents(ledger), ledger.commit(lambda t: t.next_fence())
    health = move(places.site(old), places.site(new))
    assert health.head == before[-1]
    with closing(places.open(new)) as moved:
        assert contents(moved) == before
        assert moved.commit(lambda t: t.next_fence()) == fence + 1
        assert moved.commit(note) == len(before[0]) + 1  # type: ignore[arg-type]
        moved.verify()
    for use in (lambda: ledger.commit(note), ledger.records, lambda: places.open(old)):
        with pytest.raises(LedgerError, match="was moved"):
            use()
    ledger.close()
    with pytest.raises(LedgerError, match="what is there is not the copy of this ledger"):
        move(places.site(old), places.site(new))
    places.remove() if new == SCHEMA else places.file.unlink()
    with pytest.raises(LedgerError, match="was moved elsewhere before"):
        move(places.site(old), places.site(new))


@BOTH
def test_what_is_at_the_target_is_never_replaced(places: Places, old: str, new: str) -> None:
    filled(places, old).close()
    places.create(new).close()
    with pytest.raises(LedgerError, match="perhaps of an earlier move; nothing was moved"):
        move(places.site(old), places.site(new))
    with closing(places.open(old)) as ledger:
        assert ledger.commit(note) > 0


class Interrupted(Exception):
    """The process ends here."""


def interrupting(monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    """End at the nth time that a state is written."""
    real, seen = Database.put_state, [0]

    def put(self: Database, *arguments: object, **named: object) -> None:
        seen[0] += 1
        if seen[0] == at:
            raise Interrupted
        real(self, *arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Database, "put_state", put)


@pytest.mark.thinned(2)
@BOTH
@pytest.mark.parametrize("at", [1, 2, 3])
def test_whoever_is_interrupted_does_it_again(
    places: Places, old: str, new: str, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Written are: the copy's state, the mark of the original, and the copy's state without the mark."""
    ledger = filled(places, old)
    before = contents(ledger)
    ledger.close()
    with monkeypatch.context() as patch:
        interrupting(patch, at)
        with pytest.raises(Interrupted):
            move(places.site(old), places.site(new))
    usable = [kind for kind in (old, new) if can_be_used(lambda kind=kind: places.open(kind))]
    assert usable == ([old] if at < 3 else [])
    if at == 2:  # a copy that was never opened is in the way
        with pytest.raises(LedgerError, match="perhaps of an earlier move"):
            move(places.site(old), places.site(new))
        places.remove() if new == SCHEMA else places.file.unlink()
    assert move(places.site(old), places.site(new)).head == before[-1]
    with closing(places.open(new)) as moved:
        assert contents(moved) == before


def can_be_used(opening: Callable[[], Ledger]) -> bool:
    try:
        opening().close()
    except LedgerError:
        return False
    return True


def test_a_copy_that_differs_is_not_opened(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(places, FILE).close()
    real = Database.write

    def forgetful(self: Database, table: str, name: str, body: bytes) -> None:
        if table != "holds":
            real(self, table, name, body)

    monkeypatch.setattr(Database, "write", forgetful)
    with pytest.raises(LedgerError, match="the copy differs from the ledger; nothing was moved"):
        move(places.site(FILE), places.site(SCHEMA))
    monkeypatch.undo()
    places.open(FILE).close()
    with pytest.raises(LedgerError, match="was moved"):
        places.open(SCHEMA)


def test_an_older_copy_is_not_moved(places: Places) -> None:
    ledger = filled(places, FILE)
    ledger.close()
    older = places.file.read_bytes()
    with closing(places.open(FILE)) as again:
        again.commit(note)
    places.file.write_bytes(older)
    with pytest.raises(LedgerError, match="an older copy was put back"):
        move(places.site(FILE), places.site(SCHEMA))


def test_the_secrets_are_encrypted_on_arrival(places: Places) -> None:
    filled(places, FILE).close()
    move(places.site(FILE), places.site(SCHEMA))
    with pytest.raises(LedgerError, match="the key is not the one"):
        PostgresLedger(replace(places.schema, key=bytes(32)))
    bodies = administer(places.schema.url, f'SELECT body FROM "{places.schema.schema}".secrets')
    assert len(bodies) == 2
    assert all(body != b"1" for (body,) in bodies)


def test_a_hold_keeps_its_time(places: Places) -> None:
    ledger = places.create(FILE)
    hold = Hold(fence=7, analyst="ann", expires=1e12 + 0.1, events=())
    ledger.commit(lambda t: t.put_hold(hold, replace=False))
    ledger.close()
    move(places.site(FILE), places.site(SCHEMA))
    with closing(places.open(SCHEMA)) as moved:
        (kept,) = moved.commit(lambda t: t.holds(0.0))
        assert (kept.fence, kept.expires) == (7, 1e12 + 0.1)


@BOTH
def test_a_ledger_whose_anchor_is_lost_can_be_moved(
    places: Places, old: str, new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what is kept by name arrives in several pages."""
    monkeypatch.setattr("bursar.core.ledger.database.PAGE", 1)
    ledger = filled(places, old)
    before = contents(ledger)
    ledger.close()
    places.site(old).anchor.unlink()
    assert move(places.site(old), places.site(new)).head == before[-1]
    with closing(places.open(new)) as moved:
        assert contents(moved) == before
