"""What the verbs of a transaction mean over named rows and a log; and group commit: threads share a disk write.

The first thread to come leads: it takes the works that are queued (its own is the first of them), runs each in a
savepoint of its own, commits once, and only then lets every thread have its result. Whoever is first in the queue
by then leads next, so nobody leads twice in a row while others wait and nobody is left behind.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from bursar.core.accounting.events import KINDS, Event
from bursar.core.ledger import record_codec as codec
from bursar.core.ledger.keyed_answers import store_answer, take_key
from bursar.core.ledger.ledger import Claim, Hold, Purpose, Record, Transaction
from bursar.core.queries import LinearMap
from bursar.errors import LedgerError, Stale

TABLES = ("holds", "claims", "answers", "secrets", "queue", "texts")


class TransactionRows(Protocol):
    """Named rows in the tables, and strategies by digest, as one open transaction sees them."""

    def read(self, table: str, name: str) -> bytes | None: ...
    def write(self, table: str, name: str, body: bytes) -> None: ...
    def erase(self, table: str, name: str) -> None: ...
    def scan(self, table: str) -> Sequence[tuple[str, bytes]]: ...
    def store(self, strategy: LinearMap) -> None: ...
    def strategy(self, digest: str) -> LinearMap: ...


class Medium(Protocol):
    """What keeps a ledger's bytes: rows and a log, changed in one transaction at a time, with one savepoint.

    `begin` opens the transaction; `mark` sets the savepoint, and `restore` goes back to it or `keep` moves on;
    `commit` returns when everything kept is durable; `abort` forgets everything since `begin` and never raises.
    """

    @property
    def rows(self) -> TransactionRows: ...

    def begin(self) -> None: ...
    def mark(self) -> None: ...
    def restore(self) -> None: ...
    def keep(self) -> None: ...
    def commit(self) -> None: ...
    def abort(self) -> None: ...

    def last(self) -> int:
        """The position of the last record, pending ones included."""

    def append(self, record: Record, body: bytes) -> None: ...
    def committed(self, after: int) -> Sequence[Record]: ...
    def pending(self) -> Sequence[Record]: ...
    def next_fence(self) -> int: ...


class RowTransaction:
    """`Transaction` over a medium; refuses to be used after its work has ended."""

    def __init__(self, medium: Medium) -> None:
        self._medium: Medium | None = medium

    def close(self) -> None:
        self._medium = None

    @property
    def medium(self) -> Medium:
        if self._medium is None:
            raise LedgerError("a transaction was used after its commit")
        return self._medium

    def committed(self, after: int) -> Sequence[Record]:
        return self.medium.committed(after)

    def pending(self) -> Sequence[Record]:
        return self.medium.pending()

    def append(self, *, analyst: str, purpose: Purpose, event: Event, values: NDArray[np.int64]) -> Record:
        self._store((event,))
        if values.dtype != np.int64 or values.shape != (event.answers,):
            raise LedgerError("a record needs one whole number for each row that it answers")
        copied = values.copy()
        copied.setflags(write=False)
        position = self.medium.last() + 1
        at = time.time()
        question, run = purpose.question, self.next_fence() if purpose.run is None else purpose.run
        said = {"analyst": analyst, "question": question, "proposer": purpose.proposer}
        record = Record(position=position, at=at, run=run, event=event, values=copied, **said)
        if self.medium.rows.read("texts", question) is None:
            self.medium.rows.write("texts", question, codec.to_json(purpose.text))
        self.medium.append(record, codec.encode_record(record))
        return record

    def next_fence(self) -> int:
        return self.medium.next_fence()

    def holds(self, now: float) -> Sequence[Hold]:
        stored = [codec.decode_hold(body, self.medium.rows.strategy) for _, body in self.medium.rows.scan("holds")]
        for hold in stored:
            if hold.expires <= now:
                self.drop_hold(hold.fence)
        return sorted((hold for hold in stored if hold.expires > now), key=lambda hold: hold.fence)

    def put_hold(self, hold: Hold, *, replace: bool) -> None:
        there = self.medium.rows.read("holds", str(hold.fence)) is not None
        if replace and not there:
            raise Stale("the hold of this plan has expired")
        if there and not replace:
            raise LedgerError("two holds under one fence")
        self._store(hold.events)
        self.medium.rows.write("holds", str(hold.fence), codec.encode_hold(hold))

    def drop_hold(self, fence: int) -> None:
        self.medium.rows.erase("holds", str(fence))

    def claim(self, claim: Claim, now: float) -> bytes | None:
        return take_key(self.medium.rows, claim, now)

    def answer(self, claim: Claim, body: bytes) -> bytes:
        return store_answer(self.medium.rows, claim, body)

    def secret(self, name: str) -> bytes | None:
        return self.medium.rows.read("secrets", codec.row_name(name))

    def put_secret(self, name: str, value: bytes) -> None:
        self.medium.rows.write("secrets", codec.row_name(name), value)

    def drop_secret(self, name: str) -> None:
        self.medium.rows.erase("secrets", codec.row_name(name))

    def queue(self) -> Mapping[str, bytes]:
        return dict(self.medium.rows.scan("queue"))

    def put_in_queue(self, name: str, body: bytes) -> None:
        self.medium.rows.write("queue", name, body)

    def drop_from_queue(self, name: str) -> None:
        self.medium.rows.erase("queue", name)

    def _store(self, events: Iterable[Event]) -> None:
        for event in events:
            if type(event) not in KINDS.values():
                raise LedgerError(f"an event of kind {type(event).__name__} cannot be stored")
            if event.stored is not None:
                self.medium.rows.store(event.stored)


T = TypeVar("T")

LARGEST_GROUP = 16
"""Most works of one disk write, which bounds how long the first of them waits. With more, threads that answer and ask
again wait for one another, and the disk idles meanwhile; with fewer, the disk is asked more often."""

_INTERRUPTED = "the commit was interrupted; nothing was released"


class _Turn:
    """One caller's work, its outcome, and the gate where the caller waits to lead or to be served."""

    def __init__(self, work: Callable[[Transaction], object]) -> None:
        self.work = work
        self.gate = threading.Lock()
        self.gate.acquire()
        self.leads = False
        self.served = False
        self.value: object = None
        self.error: Exception | None = LedgerError(_INTERRUPTED)


class GroupCommit:
    """Serial commits on one medium, for any number of threads.

    Guarantees: no result, and no refusal, is delivered before `Medium.commit` returned; if it fails, every member of
    the group gets LedgerError. A work that raises is undone alone, and only its own caller sees the exception.
    """

    def __init__(self, medium: Medium) -> None:
        self._medium = medium
        self._mutex = threading.Lock()  # guards the queue and who leads; never held while a work runs
        self.running = threading.RLock()  # held while the medium is in use; whoever closes it takes this first
        self._waiting: deque[_Turn] = deque()
        self._led = False
        self._leader: int | None = None

    def commit(self, work: Callable[[Transaction], T]) -> T:
        if self._leader == threading.get_ident():
            raise LedgerError("a commit was started inside another commit's work")
        turn = _Turn(work)
        try:
            with self._mutex:
                self._waiting.append(turn)
                first = not self._led
                if first:
                    self._led = turn.leads = True
            if not first:  # and not `turn.leads`: who is made leader by now has an open gate to go through
                turn.gate.acquire()
            if not turn.served:
                self._lead()
        except BaseException:
            self._withdraw(turn)
            raise
        if turn.error is not None:
            raise turn.error
        return turn.value  # type: ignore[return-value]

    def _lead(self) -> None:
        group: list[_Turn] = []
        try:
            with self.running:
                with self._mutex:
                    group += [self._waiting.popleft() for _ in range(min(len(self._waiting), LARGEST_GROUP))]
                self._leader = threading.get_ident()
                self._run(group)
        finally:
            self._leader = None
            for turn in group:
                turn.served = True
                turn.gate.release()
            with self._mutex:
                self._appoint()

    def _appoint(self) -> None:
        self._led = bool(self._waiting)
        if self._led:
            self._waiting[0].leads = True
            self._waiting[0].gate.release()

    def _withdraw(self, turn: _Turn) -> None:
        """The caller was interrupted while it waited: take its work back, and leave the lead to somebody else."""
        with self._mutex:
            if turn in self._waiting:
                self._waiting.remove(turn)
                if turn.leads:
                    self._appoint()

    def _run(self, group: Sequence[_Turn]) -> None:
        try:
            self._medium.begin()
            for turn in group:
                self._run_one(turn)
            self._medium.commit()
        except BaseException as fault:
            self._medium.abort()
            for turn in group:
                turn.error = LedgerError(str(fault) if isinstance(fault, LedgerError) else _INTERRUPTED)
                turn.error.__cause__ = fault
            if not isinstance(fault, Exception):
                raise

    def _run_one(self, turn: _Turn) -> None:
        transaction = RowTransaction(self._medium)
        self._medium.mark()
        try:
            turn.value = turn.work(transaction)
        except Exception as error:
            turn.error = error
            self._medium.restore()
        else:
            turn.error = None
            self._medium.keep()
        finally:
            transaction.close()
