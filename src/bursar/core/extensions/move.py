"""Moving a ledger from one database to another, so that at no time two of them can be spent from.

A ledger whose state is marked as moved is refused by everybody at every commit and every look at its log. The copy is
made with the mark, then the original is marked, and only then is the copy's mark taken away. Whoever is interrupted in
between does it again.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bursar.core.ledger import record_codec as codec
from bursar.core.ledger.chain import link
from bursar.core.ledger.database import KEY, Cipher, Database, LedgerConnection, LedgerState
from bursar.core.ledger.database_ledger import BUSY_TIMEOUT
from bursar.core.ledger.integrity import Anchor, advance_anchor, anchor_path, check_everything, read_anchor, require
from bursar.core.ledger.ledger import Health
from bursar.core.ledger.postgresql.cipher import AesGcm
from bursar.core.ledger.postgresql.postgres import PostgresPlace
from bursar.core.ledger.postgresql.postgres_connection import DatabaseClock
from bursar.core.ledger.sqlite import SqliteConnection, SqliteLedger
from bursar.core.ledger.transaction import TABLES
from bursar.errors import LedgerError


@dataclass(frozen=True, kw_only=True)
class LedgerSite:
    """A place for a ledger: how to find out whether one is there, to make one, whole or not at all, and to reach it."""

    name: str
    anchor: Path
    exists: Callable[[], bool]
    make: Callable[[Callable[[LedgerConnection], None]], None]
    connect: Callable[[], LedgerConnection]
    cipher: Cipher | None = None

    def database(self, connection: LedgerConnection) -> Database:
        return Database(connection, decoded={}, cipher=self.cipher)


def file_site(path: Path) -> LedgerSite:
    """The place of a ledger in a file."""
    place = path.resolve()
    return LedgerSite(
        name=str(place),
        anchor=anchor_path(place),
        exists=partial(os.path.lexists, place),
        make=partial(SqliteLedger.make, place),
        connect=partial(SqliteConnection, place, timeout=BUSY_TIMEOUT, factory=SqliteLedger.factory),
    )


def schema_site(place: PostgresPlace) -> LedgerSite:
    """The place of a ledger in a schema of PostgreSQL."""
    connect = partial(place.connect, DatabaseClock())

    def exists() -> bool:
        with closing(connect()) as connection:
            return connection.made()

    def make(fill: Callable[[LedgerConnection], None]) -> None:
        with closing(connect()) as connection:
            fill(connection)

    return LedgerSite(
        name=f"the schema {place.schema}",
        anchor=place.anchor,
        exists=exists,
        make=make,
        connect=connect,
        cipher=AesGcm(place.key),
    )


def move(source: LedgerSite, target: LedgerSite) -> Health:
    """Copy everything, check the copy against the original, and let the copy take its place.

    Edge cases: LedgerError where something else is at the target; where an earlier move ended between marking the
    original and opening the copy, only the rest of it is done.
    """
    with closing(source.connect()) as connection:
        old = source.database(connection)
        old.recognise()
        connection.begin()  # nobody writes from here on
        state, moved = old.look()
        anchor = read_anchor(source.anchor, old.charter_hash)
        if anchor is not None:
            require(old, state, commits=anchor.commits, position=anchor.position, head=anchor.chain.hex())
        if target.exists() and not moved:
            away = "try: if a move left it, put the file away, not its anchor, or drop the schema; or name another"
            raise LedgerError(f"something is at {target.name}, perhaps of an earlier move; nothing was moved\n{away}")
        if moved and not target.exists():
            raise LedgerError("the ledger was moved elsewhere before")
        if not moved:
            check_everything(old, state)
            target.make(lambda new: _copy(old, state, target.database(new)))
        with closing(target.connect()) as opened:
            health = _check(old, state, target.database(opened))
        if not moved:
            old.put_state(state, moved=True)
            connection.commit()
        _open(target, state)
    return health


def _copy(old: Database, state: LedgerState, new: Database) -> None:
    new.begin_ledger(old.must_read("meta", "charter"))
    for digest, body in old.strategies():
        new.store(codec.decode_strategy(digest, body))
    hash_ = old.charter_hash
    for position, body in old.walk(0, hash_, state):
        hash_ = link(hash_, body)
        new.append(position, body, hash_)
    for table in TABLES:
        for name, body in old.scan_slowly(table):
            if name != KEY:
                new.write(table, name, body)
    new.put_state(state, moved=True)
    new.connection.commit()


def _check(old: Database, state: LedgerState, new: Database) -> Health:
    """That the copy is sound, and has every row of the original and no other."""
    new.recognise()
    new.connection.snapshot()
    if new.look() != (state, True) or new.charter_hash != old.charter_hash:
        raise LedgerError("what is there is not the copy of this ledger; nothing was moved")
    for table in TABLES:
        rows = ([row for row in each.scan_slowly(table) if row[0] != KEY] for each in (old, new))
        if next(rows) != next(rows):
            raise LedgerError("the copy differs from the ledger; nothing was moved")
    return check_everything(new, state)


def _open(target: LedgerSite, state: LedgerState) -> None:
    with closing(target.connect()) as connection:
        new = target.database(connection)
        new.recognise()
        connection.begin()
        new.put_state(state)
        connection.commit()
        anchor = Anchor(commits=state.commits, position=state.position, chain=state.chain)
        advance_anchor(target.anchor, anchor, new.charter_hash, durable=True)
