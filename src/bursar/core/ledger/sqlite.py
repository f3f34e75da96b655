"""The default ledger: one SQLite file, safe for threads, processes, forks, crashes and full disks."""

from __future__ import annotations

import os
import sqlite3
import stat
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Self, TypeVar

from bursar.core.ledger import record_codec as codec
from bursar.core.ledger.database import Database, LedgerState, Log, SqliteMedium
from bursar.core.ledger.integrity import Anchor, advance_anchor, anchor_path, check_everything, read_anchor
from bursar.core.ledger.ledger import Charter, Health, Record, Transaction
from bursar.core.ledger.transaction import GroupCommit, drop_expired, erase_texts, stored_answer
from bursar.core.queries import LinearMap
from bursar.errors import LedgerError

T = TypeVar("T")

BUSY_TIMEOUT = 60.0
"""Seconds to wait for other processes' writes before giving up."""


@dataclass(frozen=True, kw_only=True)
class _Process:
    """What belongs to one process alone: a fork must neither use nor close its parent's connections."""

    pid: int
    medium: SqliteMedium
    group: GroupCommit
    readers: list[Database] = field(default_factory=list)


_left_behind: list[_Process] = []
"""Connections inherited through a fork, kept from the garbage collector, which would close them."""


class SqliteLedger:
    """`Ledger` in one file (write-ahead log, synchronous=FULL), with its anchor beside it; all of mode 0600.

    Guarantees: a commit is on disk before its result is released. Any fault of disk, file or lock raises LedgerError
    and releases nothing; the file then holds all of the commit or none of it. What is read was verified.
    Edge cases: a missing file is never created by `open`; `create` never replaces one.
    """

    factory: type[sqlite3.Connection] = sqlite3.Connection
    """The class of the connections; a fault injector takes its place in tests."""

    @classmethod
    def create(cls, path: str | Path, charter: Charter, *, busy_timeout: float = BUSY_TIMEOUT) -> Self:
        """A new ledger, and with it a new budget. It appears whole or not at all."""
        place = Path(path).resolve()
        text = codec.to_json(dict(charter))
        for trace in (place, anchor_path(place)):
            if os.path.lexists(trace):
                raise LedgerError(f"{trace} exists: a ledger was created here before, and its budget is not renewed")
        try:
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=f".{place.name}-", dir=place.parent) as drafts:
                draft = Path(drafts) / place.name
                draft.touch(mode=0o600)
                with closing(Database(draft, timeout=busy_timeout, factory=cls.factory, decoded={})) as database:
                    database.found(text)
                os.link(draft, place)
        except OSError as fault:
            raise LedgerError(f"the ledger {place} cannot be created: {fault.strerror}") from fault
        ledger = cls(place, busy_timeout=busy_timeout)
        _sync(place.parent)
        return ledger

    @classmethod
    def open(
        cls,
        path: str | Path,
        charter: Charter | None = None,
        *,
        expect: tuple[int, str] | None = None,
        busy_timeout: float = BUSY_TIMEOUT,
    ) -> Self:
        """An existing ledger, which must have this charter if one is given.

        `expect` is a position and the hash of its record (`Health.records`, `Health.head`) that the owner wrote down
        elsewhere. It also vouches for a ledger whose anchor is lost or damaged, which is then written anew: after a
        backup had to be put back, delete the anchor and say what the backup's head is.
        """
        return cls(Path(path).resolve(), charter=charter, expect=expect, busy_timeout=busy_timeout)

    def __init__(
        self,
        path: Path,
        *,
        charter: Charter | None = None,
        expect: tuple[int, str] | None = None,
        busy_timeout: float = BUSY_TIMEOUT,
    ) -> None:
        if not path.is_file():
            raise LedgerError(
                f"there is no ledger at {path}; a new ledger means a new budget and must be created explicitly"
            )
        self._path = path
        self._timeout = busy_timeout
        self._closed = False
        self._decoded: dict[str, LinearMap] = {}
        self._notes: tuple[str, ...] = ()
        with closing(Database(path, timeout=busy_timeout, factory=self.factory, decoded=self._decoded)) as database:
            database.upgrade()
            self._charter: Charter = MappingProxyType(dict(database.recognise()))
        self._charter_hash = database.charter_hash
        if charter is not None:
            _compare(self._charter, charter)
        self._log = Log(self._charter_hash)
        self._process = self._new_process()
        try:
            self._check_history(expect)
        except LedgerError:
            self._disconnect()
            raise

    @property
    def charter(self) -> Charter:
        return self._charter

    def records(self, after: int = 0) -> Sequence[Record]:
        known = self._log.verified
        with self._reading() as database:
            return self._log.records(database, after=max(after, 0), end=database.state(), known=known)

    def commit(self, work: Callable[[Transaction], T]) -> T:
        return self._here().group.commit(work)

    def answered(self, *, analyst: str, key: str, question: str) -> bytes | None:
        with self._reading() as database:
            return stored_answer(database.read, analyst=analyst, key=key, question=question)

    def queue(self) -> Mapping[str, bytes]:
        with self._reading() as database:
            return dict(database.scan("queue"))

    def texts(self) -> Mapping[str, str]:
        with self._reading() as database:
            return {question: codec.from_json(body) for question, body in database.scan("texts")}

    def erase_texts(self) -> int:
        medium = self._here().medium
        return self.commit(lambda _: erase_texts(medium))

    def verify(self) -> Health:
        self._check_history(None)
        with self._reading() as database:
            health = check_everything(database, database.state())
        return replace(health, notes=(*self._notes, *self._too_open()))

    def recover(self, now: float | None = None) -> Health:
        moment = time.time() if now is None else now
        medium = self._here().medium
        notes = self.commit(lambda _: drop_expired(medium, moment))
        with closing(self._connect()) as database:
            ((busy, _, _),) = database.run("PRAGMA wal_checkpoint(TRUNCATE)")
        if busy:
            notes += ("other processes were at work, so the write-ahead log was kept",)
        health = self.verify()
        return replace(health, notes=(*notes, *health.notes))

    def close(self) -> None:
        if self._closed:
            return
        with self._here().group.running:
            with suppress(LedgerError), self._reading() as database:
                self._write_anchor(database.state(), durable=True)
            self._disconnect()

    # -- connections ----------------------------------------------------------------------------------------

    def _here(self) -> _Process:
        self._check_open()
        if self._process.pid != os.getpid():
            _left_behind.append(self._process)
            self._process = self._new_process()
        return self._process

    def _check_open(self) -> None:
        if self._closed:
            raise LedgerError("the ledger is closed")

    def _new_process(self) -> _Process:
        medium = SqliteMedium(self._connect, self._log, self._write_anchor)
        return _Process(pid=os.getpid(), medium=medium, group=GroupCommit(medium))

    def _connect(self) -> Database:
        self._check_open()
        database = Database(self._path, timeout=self._timeout, factory=self.factory, decoded=self._decoded)
        try:
            database.recognise()
            if database.charter_hash != self._charter_hash:
                raise LedgerError("the ledger was replaced by another one while it was open")
        except LedgerError:
            database.close()
            raise
        return database

    def _disconnect(self) -> None:
        self._closed = True
        self._process.medium.abort()
        while self._process.readers:
            self._process.readers.pop().close()

    @contextmanager
    def _reading(self) -> Iterator[Database]:
        """A connection with a snapshot of its own: it never waits for writers, and they never wait for it."""
        process = self._here()
        try:
            database = process.readers.pop()
        except IndexError:
            database = self._connect()
        try:
            database.run("BEGIN")
            yield database
        finally:
            if database.fault is None and not self._closed:
                database.run("ROLLBACK")
                process.readers.append(database)
            else:
                database.close()

    # -- the anchor -----------------------------------------------------------------------------------------

    def _check_history(self, expect: tuple[int, str] | None) -> None:
        """Compare with the anchor and with what the owner expects, then bring the anchor up to date."""
        try:
            # Before the snapshot: what the anchor saw was durable by then, so the snapshot has it too.
            anchor = read_anchor(anchor_path(self._path), self._charter_hash)
        except LedgerError:
            if expect is None:
                raise
            anchor = None
        with self._reading() as database:
            state = database.state()
            if anchor is None and expect is None and state.commits > 0:
                raise LedgerError(
                    f"the anchor {anchor_path(self._path)} is missing, so the ledger may be an older copy; "
                    "to vouch for it, give the position and hash you expect"
                )
            behind = anchor is not None and state.commits < anchor.commits
            landmarks = [] if expect is None else [(expect[0], expect[1].lower())]
            landmarks += [] if anchor is None else [(anchor.position, anchor.chain.hex())]
            for position, hash_ in landmarks:
                if behind or not 0 <= position <= state.position or database.chain_at(position).hex() != hash_:
                    raise LedgerError(
                        "this is not the ledger that was here before: an older copy was put back, or another one"
                    )
        if anchor is None or anchor.commits < state.commits:
            self._write_anchor(state, durable=anchor is None)

    def _write_anchor(self, state: LedgerState, durable: bool = False) -> None:
        anchor = Anchor(commits=state.commits, position=state.position, chain=state.chain)
        try:
            advance_anchor(anchor_path(self._path), anchor, self._charter_hash, durable=durable)
            self._notes = ()
        except OSError:
            # The commit is durable and must be released; the next opening merely finds an anchor that lags.
            self._notes = ("the anchor could not be written",)

    def _too_open(self) -> tuple[str, ...]:
        files = [self._path.with_name(self._path.name + suffix) for suffix in ("", "-wal", "-shm", "-anchor")]
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in files if file.exists()}
        return tuple(f"{name} can be used by others (mode {mode:o})" for name, mode in modes.items() if mode & 0o077)


def _sync(directory: Path) -> None:
    """Make the names of new files durable."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _compare(stored: Charter, given: Charter) -> None:
    expected: Charter = codec.from_json(codec.to_json(dict(given)))
    either = sorted(stored.keys() | expected.keys())
    differ = [key for key in either if codec.to_json([stored.get(key)]) != codec.to_json([expected.get(key)])]
    if differ:
        raise LedgerError(f"the ledger belongs to another charter; what differs: {', '.join(differ)}")
