"""Group commit: who shares a disk write, what happens when it fails, and who is told when."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bursar.core.accounting import Versioned
from bursar.core.ledger import Purpose, SqliteLedger, Transaction
from bursar.core.ledger import transaction as module
from bursar.core.ledger.transaction import LARGEST_GROUP, GroupCommit
from bursar.errors import LedgerError
from harness.patience import PATIENCE, until

Work = Callable[[Transaction], Any]


class Watched(sqlite3.Connection):
    """Lets a test see every COMMIT, hold it up, or make it fail."""

    commits = 0
    before_commit: Callable[[], None] = staticmethod(lambda: None)

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        if sql == "COMMIT":
            Watched.before_commit()
            cursor = super().execute(sql, *parameters)
            Watched.commits += 1
            return cursor
        return super().execute(sql, *parameters)


class WatchedLedger(SqliteLedger):
    factory = Watched


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[SqliteLedger]:
    made = WatchedLedger.create(tmp_path / "ledger.sqlite", {"id": "x"})
    Watched.commits = 0
    yield made
    made.close()


def note(transaction: Transaction) -> int:
    values = np.zeros(0, np.int64)
    return transaction.append(
        analyst="ann", purpose=Purpose("p", "test"), event=Versioned(version=1), values=values
    ).position


class Crowd:
    """Threads that commit one work each; all of them are queued, in their order, while a first work is held up."""

    def __init__(self, ledger: SqliteLedger, works: list[Work]) -> None:
        self.outcomes: list[Any] = [None] * len(works)
        self.finished = [threading.Event() for _ in works]
        self._ledger = ledger
        self._gate, self._leading = threading.Event(), threading.Event()
        self._first = threading.Thread(target=self._hold_up)
        self._first.start()
        self._leading.wait()  # else the next one could lead
        self._threads = [threading.Thread(target=self._run, args=(n, work)) for n, work in enumerate(works)]
        for number, thread in enumerate(self._threads):
            thread.start()
            while len(ledger._process.group._waiting) <= number:
                pass

    def _hold_up(self) -> None:
        def held(_: Transaction) -> None:
            self._leading.set()
            self._gate.wait()

        with suppress(LedgerError):
            self._ledger.commit(held)

    def _run(self, number: int, work: Work) -> None:
        try:
            self.outcomes[number] = self._ledger.commit(work)
        except BaseException as error:
            self.outcomes[number] = error
        self.finished[number].set()

    def release(self) -> None:
        self._gate.set()
        self._first.join()

    def join(self) -> list[Any]:
        self.release()
        for thread in self._threads:
            thread.join()
        return self.outcomes


def test_those_who_wait_together_share_one_commit_in_their_order(ledger: SqliteLedger) -> None:
    assert Crowd(ledger, [note] * LARGEST_GROUP).join() == list(range(1, LARGEST_GROUP + 1))
    assert Watched.commits == 2  # the one that held everybody up, and one for all


def test_a_group_is_bounded(ledger: SqliteLedger) -> None:
    assert Crowd(ledger, [note] * (LARGEST_GROUP + 1)).join() == list(range(1, LARGEST_GROUP + 2))
    assert Watched.commits == 3


def test_no_result_is_released_before_the_commit_returned(ledger: SqliteLedger) -> None:
    crowd = Crowd(ledger, [note] * LARGEST_GROUP)
    reached, proceed = threading.Event(), threading.Event()

    def hold_up() -> None:
        if ledger.records() == [] and len(ledger._process.group._waiting) == 0:
            reached.set()
            proceed.wait()

    Watched.before_commit = hold_up  # type: ignore[method-assign]
    try:
        crowd.release()
        assert reached.wait(PATIENCE)
        assert not any(event.wait(0.001) for event in crowd.finished)
        assert list(ledger.records()) == []
        proceed.set()
        assert crowd.join() == list(range(1, LARGEST_GROUP + 1))
    finally:
        proceed.set()
        Watched.before_commit = lambda: None  # type: ignore[method-assign]


class Nope(Exception):
    pass


def refuse(transaction: Transaction) -> None:
    note(transaction)
    raise Nope


def test_a_failing_member_hurts_nobody_else(ledger: SqliteLedger) -> None:
    seen: list[list[int]] = []

    def look(transaction: Transaction) -> int:
        seen.append([record.position for record in transaction.pending()])
        return note(transaction)

    outcomes = Crowd(ledger, [note, refuse, look, refuse, look]).join()
    assert [o for o in outcomes if isinstance(o, int)] == [1, 2, 3]
    assert [type(outcomes[place]) for place in (1, 3)] == [Nope, Nope]
    assert seen == [[1], [1, 2]]  # nothing of the refused ones, all of the others
    assert [record.position for record in ledger.records()] == [1, 2, 3]
    ledger.verify()


def test_a_failing_commit_is_told_to_everybody(ledger: SqliteLedger) -> None:
    crowd = Crowd(ledger, [note, refuse, *[note] * 30])

    def fail() -> None:
        raise sqlite3.OperationalError("disk I/O error")

    Watched.before_commit = fail  # type: ignore[method-assign]
    try:
        outcomes = crowd.join()
    finally:
        Watched.before_commit = lambda: None  # type: ignore[method-assign]
    assert {type(outcome) for outcome in outcomes} == {LedgerError}
    assert len({id(outcome) for outcome in outcomes}) == len(outcomes)
    assert list(ledger.records()) == []
    assert ledger.commit(note) == 1
    ledger.verify()


def test_an_interrupt_goes_to_whoever_leads_and_the_others_hear_of_a_fault(ledger: SqliteLedger) -> None:
    def interrupted(_: Transaction) -> None:
        raise KeyboardInterrupt

    outcomes = Crowd(ledger, [note, interrupted, note]).join()
    assert [type(outcome) for outcome in outcomes] == [KeyboardInterrupt, LedgerError, LedgerError]
    assert "interrupted" in str(outcomes[1])
    assert list(ledger.records()) == []
    assert ledger.commit(note) == 1


class Interrupted:
    """A gate whose owner is interrupted while waiting, once what it waits for has been arranged."""

    def __init__(self, gate: Any, arrange: Callable[[], None]) -> None:
        self._gate = gate
        self._arrange = arrange
        self.release = gate.release

    def acquire(self) -> bool:
        self._arrange()
        raise KeyboardInterrupt


@pytest.mark.parametrize("appointed", [False, True])
def test_a_caller_interrupted_while_waiting_takes_its_work_back(
    ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch, appointed: bool
) -> None:
    """Also when it had just been chosen to lead: the lead then passes to the next in the queue."""
    group = ledger._process.group
    gate, leading = threading.Event(), threading.Event()

    def block(_: Transaction) -> None:
        leading.set()
        gate.wait()

    first = threading.Thread(target=ledger.commit, args=(block,))
    first.start()
    leading.wait()
    followers: list[threading.Thread] = []
    results: list[int] = []

    def arrange() -> None:
        monkeypatch.undo()
        followers.append(threading.Thread(target=lambda: results.append(ledger.commit(note))))
        followers[0].start()
        while len(group._waiting) < 2:
            pass
        if appointed:
            gate.set()
            first.join()
            assert group._waiting[0].leads

    def turn(work: Work) -> Any:
        made = real(work)
        made.gate = Interrupted(made.gate, arrange)  # type: ignore[assignment]
        return made

    real = module._Turn
    monkeypatch.setattr(module, "_Turn", turn)
    with pytest.raises(KeyboardInterrupt):
        ledger.commit(note)
    gate.set()
    first.join()
    followers[0].join()
    assert results == [1]
    assert len(ledger.records()) == 1


def test_a_thread_that_keeps_coming_back_does_not_starve_another(ledger: SqliteLedger) -> None:
    """It was there first, and wants to commit again at once: whoever waits by then is before it."""
    gate, leading = threading.Event(), threading.Event()

    def held(_: Transaction) -> None:
        leading.set()
        gate.wait()

    def hog() -> None:
        for work in (held, *[note] * 20):
            ledger.commit(work)

    first = threading.Thread(target=hog)
    first.start()
    leading.wait()
    places: list[int] = []
    other = threading.Thread(target=lambda: places.append(ledger.commit(note)))
    other.start()
    until(lambda: ledger._process.group._waiting)
    gate.set()
    for thread in (first, other):
        thread.join()
    assert places == [1]
    assert ledger.verify().records == 21


def test_closing_waits_for_the_commit_that_runs(ledger: SqliteLedger) -> None:
    crowd = Crowd(ledger, [note])
    closer = threading.Thread(target=ledger.close)
    closer.start()
    closer.join(0.05)
    assert closer.is_alive()
    outcome = crowd.join()[0]
    closer.join(PATIENCE)
    assert not closer.is_alive()
    assert outcome == 1 or isinstance(outcome, LedgerError)


def test_a_fault_of_the_medium_itself_is_a_ledger_error() -> None:
    class Broken:
        aborted = 0

        def begin(self) -> None:
            raise ZeroDivisionError

        def abort(self) -> None:
            self.aborted += 1

    medium = Broken()
    with pytest.raises(LedgerError, match="nothing was released"):
        GroupCommit(medium).commit(note)  # type: ignore[arg-type]
    assert medium.aborted == 1


class Late:
    """A mutex whose first user in the named thread does something as soon as it has left it."""

    def __init__(self, mutex: threading.Lock, thread: str, then: Callable[[], None]) -> None:
        self._mutex, self._thread, self._then = mutex, thread, then

    def __enter__(self) -> None:
        self._mutex.acquire()

    def __exit__(self, *fault: object) -> None:
        self._mutex.release()
        if threading.current_thread().name == self._thread:
            self._thread = ""
            self._then()


def test_who_is_made_leader_before_it_even_waits_leads_and_hands_on(ledger: SqliteLedger) -> None:
    """It has queued up, and by the time it would wait at its gate the gate has been opened."""
    group = ledger._process.group
    gate, leading = threading.Event(), threading.Event()

    def block(_: Transaction) -> None:
        leading.set()
        gate.wait(PATIENCE)

    first = threading.Thread(target=ledger.commit, args=(block,))
    first.start()
    leading.wait(PATIENCE)

    def until_it_leads() -> None:
        gate.set()
        first.join(PATIENCE)

    group._mutex = Late(group._mutex, "late", until_it_leads)  # type: ignore[assignment]
    results: list[int] = []
    late = threading.Thread(target=lambda: results.append(ledger.commit(note)), name="late", daemon=True)
    late.start()
    late.join(PATIENCE)
    after = threading.Thread(target=lambda: results.append(ledger.commit(note)), daemon=True)
    after.start()
    after.join(PATIENCE)
    assert results == [1, 2]
