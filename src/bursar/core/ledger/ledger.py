"""The ledger's protocol: an append-only log, holds, keyed answers, secrets, a queue, changed by serial commits only."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from bursar.core.accounting.events import Event
from bursar.core.extensions.checkpoint import Checkpointed
from bursar.core.ledger import chain

T = TypeVar("T")
Charter = Mapping[str, object]
"""What a ledger is bound to for life: data-set id, domain, unit, budget. Plain JSON values."""


UNKNOWN = "unknown (before 0.2)"
"""The proposer of records that were written before the log named it; the run of these is 0."""


@dataclass(frozen=True)
class Purpose:
    """What a record is bought for. It is given before anything is drawn, and read by no price."""

    text: str  # the question, which can be erased: the log has its digest
    proposer: str
    run: int | None = None  # the fence of the plan; None: a new one, by which the ledger names the run

    @property
    def question(self) -> str:
        return chain.question(self.text)


@dataclass(frozen=True, kw_only=True, eq=False)
class Record:
    """One line of the log. `values` are the noisy answers of a measurement or a refinement, the digest of an opened
    sparse vector's threshold, else empty."""

    position: int  # 1, 2, 3, ...
    at: float  # seconds since 1970, for people; nothing is decided by it
    analyst: str
    question: str  # digest of the text of the question that paid for it
    proposer: str  # whose offer it was
    run: int  # the same for all records of one plan, and for no others
    event: Event
    values: NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Hold:
    """Budget set aside for a plan of several verbs: the worst case of what is still to come."""

    fence: int  # unique for the life of the ledger; a commit under a number that is gone fails
    analyst: str
    expires: float  # seconds since 1970; from then on any process may drop it
    events: tuple[Event, ...]


@dataclass(frozen=True, kw_only=True)
class Claim:
    """The right to answer one keyed question: a key is unique per analyst and bound to one question."""

    analyst: str
    key: str
    question: str  # digest of the question and its goal
    fence: int
    expires: float


@dataclass(frozen=True, kw_only=True)
class Health:
    """What `verify` and `recover` found, in numbers and in sentences for the data owner."""

    records: int
    answers: int
    holds: int
    head: str  # hash of the last record: write it down elsewhere to detect an older file being put back
    notes: tuple[str, ...] = ()


class Transaction(Protocol):
    """What can be done inside one commit. Work is serial: nobody else writes meanwhile.

    Guarantees: expiry is judged by the `now` that the caller passes (`Ledger.now`), never by `Record.at`. A clock that
    jumps can end a lease too early or too late, which costs money or time; a plan whose hold or claim was taken away
    meets Stale at its next commit, so it never costs privacy.
    """

    def committed(self, after: int) -> Sequence[Record]:
        """Durable records after a position: safe to remember even if this commit fails."""

    def pending(self) -> Sequence[Record]:
        """Records appended by earlier members of the same group commit and by this one; not durable yet."""

    def append(self, *, analyst: str, purpose: Purpose, event: Event, values: NDArray[np.int64]) -> Record:
        """Add one line to the log, with one value for each row that was measured or refined; its text beside it."""

    def next_fence(self) -> int:
        """A number never given out by a commit before, in this or any other process; a work that raises burns it."""

    def holds(self, now: float) -> Sequence[Hold]:
        """All live holds in the order of their fences; expired ones are dropped first."""

    def put_hold(self, hold: Hold, *, replace: bool) -> None:
        """Insert a new hold, or replace the one of the same fence; replacing one that is gone raises Stale."""

    def drop_hold(self, fence: int) -> None:
        """Forget a hold; one that is gone already is no error."""

    def claim(self, claim: Claim, now: float) -> bytes | None:
        """Take or renew a key. Returns the stored answer if there is one.

        Edge cases: KeyConflict if the key is bound to another question, answered or not; Busy if a claim of another
        fence is alive; an expired claim, or one of the same fence, is taken over.
        """

    def answer(self, claim: Claim, body: bytes) -> bytes:
        """Store the answer of a key if there is none yet; returns what is stored.

        Edge cases: Stale if there is none yet and another fence has taken the key over; KeyConflict as in `claim`.
        """

    def secret(self, name: str) -> bytes | None:
        """A kernel secret, or None."""

    def put_secret(self, name: str, value: bytes) -> None:
        """Store or replace a kernel secret."""

    def drop_secret(self, name: str) -> None:
        """Forget a kernel secret; one that is gone already is no error."""

    def queue(self) -> Mapping[str, bytes]:
        """The rows of the queue by name. Who asks when is decided by them, and nothing about what may be spent."""

    def put_in_queue(self, name: str, body: bytes) -> None:
        """Store or replace a row of the queue; a name is plain ASCII."""

    def drop_from_queue(self, name: str) -> None:
        """Forget a row of the queue; one that is gone already is no error."""


class Ledger(Protocol):
    """Guarantees: `commit` runs the work alone, and returns its result only when everything in it is durable; if
    the work raises, nothing of it is kept; several threads' works may share one disk write."""

    @property
    def charter(self) -> Charter: ...

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the data owner has accepted although charges can be lost by it."""

    def now(self) -> float:
        """Seconds since 1970 by the clock that leases go by: the same for all who share the ledger."""

    def records(self, after: int = 0) -> Sequence[Record]:
        """Durable records after a position, checked against the hash chain as they are read."""

    def record(self, position: int) -> Record:
        """The durable record at a position, checked by its own link alone: H of the hash before it and its bytes."""

    def resume(self, event: Checkpointed) -> bool:
        """Whether the event stands in the log, behind the position that it names, on links that lead from that position
        to the head. If so, later reads begin there; a record before it is checked when it is read."""

    def save(self, name: str, body: bytes) -> None:
        """Put bytes beside the log, in place of what was saved under the name; where that is impossible, nothing.

        Nothing may rely on them: they can be lost, be older, or be somebody else's."""

    def save_at(self, name: str, place: int, body: bytes) -> None:
        """Put bytes into what was saved under a name, at a place: for what only grows, and is the same for all."""

    def saved(self, name: str) -> bytes | None:
        """What was saved under a name, as far as anybody knows; None where nothing is there."""

    def commit(self, work: Callable[[Transaction], T]) -> T:
        """Run the work and make it durable, or raise and keep nothing of it.

        The work may run on the thread of another caller: it must not wait for other threads, nor commit itself
        (LedgerError), nor keep the transaction. A refusal it raises is delivered when the commit of its group is
        durable too, since it may have been caused by another member's pending records.
        """

    def while_waiting(self, work: Callable[[], object]) -> None:
        """Call this, any number of times, where a commit has to wait for other processes: whatever it does, the work of
        the commit must not need it."""

    def answered(self, *, analyst: str, key: str, question: str) -> bytes | None:
        """The stored answer of a key, without taking the write lock; KeyConflict for another question."""

    def queue(self) -> Mapping[str, bytes]:
        """The durable rows of the queue, without taking the write lock."""

    def texts(self, questions: Collection[str] | None = None) -> Mapping[str, str]:
        """The durable texts of questions by their digests, all or some, without taking the write lock; erased ones are
        missing."""

    def erase_texts(self) -> int:
        """For the data owner: forget the texts of all questions, and say how many; no record changes.

        Edge cases: records of a ledger before format 3 have the text within the chain, where it stays.
        """

    def verify(self) -> Health:
        """Read everything and check it; raises LedgerError at the first fault."""

    def recover(self, now: float | None = None) -> Health:
        """Put right what a dead process left behind: holds and unanswered claims that expired before `now` (`now()`
        where none is given); then verify."""

    def close(self) -> None:
        """Wait for the commit that is running, then let go of everything; any later use raises LedgerError."""
