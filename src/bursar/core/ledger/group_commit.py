"""Group commit: the works of threads that wait at the same time share one disk write.

The first thread to come leads: it takes the works that are queued (its own is the first of them), runs each in a
savepoint of its own, commits once, and only then lets every thread have its result. Whoever is first in the queue
by then leads next, so nobody leads twice in a row while others wait and nobody is left behind.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from bursar.core.ledger.ledger import Transaction
from bursar.core.ledger.transaction import Medium, RowTransaction
from bursar.errors import LedgerError

T = TypeVar("T")

LARGEST_GROUP = 16
"""Most works of one disk write, which bounds how long the first of them waits. With more, threads that answer and ask
again wait for one another, and the disk idles meanwhile; with fewer, the disk is asked more often."""

_INTERRUPTED = "the commit was interrupted; nothing was released"


class _Turn:
    """One caller's work, its outcome, and the gate where the caller waits to lead or to be served."""

    def __init__(self, work: Callable[[Transaction], Any]) -> None:
        self.work = work
        self.gate = threading.Lock()
        self.gate.acquire()
        self.leads = False
        self.served = False
        self.value: Any = None
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
        return turn.value  # type: ignore[no-any-return]

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
