"""What each record was charged and what it was bought for, by position: what reports are made of. No price reads it.

One row per record, of a fixed size, so row n stands at one place of a file beside the log, whoever wrote it. The state
of a checkpoint has a digest of all rows in whole blocks, and the rows after them: bytes with another digest are not
rows. See `checkpoint.proof.md`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Integers, Reals
from bursar.core.accounting.kind import PaidEvent
from bursar.core.extensions.checkpoint import nothing_read
from bursar.core.extensions.discovery import Found
from bursar.core.extensions.saved_state import ints_of

if TYPE_CHECKING:
    from bursar.core.accounting.accountant import Book
    from bursar.core.accounting.events import Event
    from bursar.core.accounts import Charge
    from bursar.core.extensions.saved_state import Tree
    from bursar.core.ledger import Ledger, Record
    from bursar.core.public import Public

SAVED_ROWS = "charges"
"""The name under which a ledger keeps the rows."""

BLOCK = 256
"""Rows that are hashed at once."""

LARGEST = 2**62
"""Of a charge, in units of 2^-50: above every budget."""

ROW = np.dtype(
    [
        ("total", "<i8"),
        ("account", "<i8"),
        ("at", "<f8"),
        ("question", "<i8", 2),  # digest of the digest that the record has
        ("analyst", "<i4"),  # the number of the name; of the others likewise
        ("proposer", "<i4"),
        ("subject", "<i4"),
    ]
)

Subject = tuple[str, int, tuple[str, ...]]
"""The kind of an event, the version that it looks at, and the columns; 0 and none where it looks at no rows."""


def question_key(question: str) -> tuple[int, int]:
    """What rows have of a question: a function of what the record has of it."""
    digest = blake2b(question.encode("utf-8", "surrogatepass"), digest_size=16, person=b"bursar charged").digest()
    first, second = ints_of(digest).tolist()
    return first, second


def subject_of(event: Event) -> Subject:
    """What an event looks at: of a refinement, the rows that got finer."""
    if isinstance(event, Found):
        return event.kind, event.version, (event.column,)
    if isinstance(event, PaidEvent):
        return event.kind, event.version, tuple(sorted(getattr(event, "strategy", event.looks_at).attrs))
    return event.kind, 0, ()


@dataclass(frozen=True, kw_only=True, eq=False)
class ChargedLog:
    """A row for every record of the log, and what the numbers in them stand for."""

    parts: Sequence[NDArray[np.void]]  # the rows, in their order
    analysts: Sequence[str]
    proposers: Sequence[str]
    subjects: Sequence[Subject]

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def column(self, name: str) -> Integers:
        """One field of whole numbers, of all rows."""
        return np.concatenate([part[name] for part in self.parts])

    def times(self) -> Reals:
        """When the records were written."""
        return np.concatenate([part["at"] for part in self.parts])


@dataclass
class Charges:
    """The rows of a log, advanced record by record; whole blocks that were saved are not kept here."""

    saved: int = 0  # whole blocks that are kept beside the log
    blocks: list[bytes] = field(default_factory=list)  # whole ones after these
    digest: bytes = b""  # of all whole blocks
    last: list[tuple[object, ...]] = field(default_factory=list)  # rows after the whole blocks
    analysts: dict[str, int] = field(default_factory=dict)
    proposers: dict[str, int] = field(default_factory=dict)
    subjects: dict[Subject, int] = field(default_factory=dict)

    def add(self, record: Record, charge: Charge) -> None:
        numbers = (
            self.analysts.setdefault(record.analyst, len(self.analysts)),
            self.proposers.setdefault(record.proposer, len(self.proposers)),
            self.subjects.setdefault(subject_of(record.event), len(self.subjects)),
        )
        amounts = (min(charge.total, LARGEST), min(charge.account, LARGEST))
        self.last.append((*amounts, record.at, question_key(record.question), *numbers))
        if len(self.last) == BLOCK:
            self.blocks.append(np.array(self.last, ROW).tobytes())
            self.digest, self.last = _linked(self.digest, self.blocks[-1]), []

    def state(self) -> Tree:
        """All rows, the whole blocks by their digest, as plain values."""
        names = [list(self.analysts), list(self.proposers), [[*each[:2], list(each[2])] for each in self.subjects]]
        return [self.saved + len(self.blocks), self.digest, np.array(self.last, ROW).tobytes(), *names]

    def restore(self, state: Tree) -> None:
        """Take over the rows whose state it is; the whole blocks are read where they are needed."""
        self.saved, self.digest, last, analysts, proposers, subjects = state
        self.last = np.frombuffer(last, ROW).tolist()
        self.analysts = {name: number for number, name in enumerate(analysts)}
        self.proposers = {name: number for number, name in enumerate(proposers)}
        self.subjects = {(kind, at, tuple(names)): number for number, (kind, at, names) in enumerate(subjects)}

    def save_in(self, ledger: Ledger) -> None:
        """Put the whole blocks beside the log. Others who write there write the same bytes."""
        ledger.save_at(SAVED_ROWS, self.saved * BLOCK * ROW.itemsize, b"".join(self.blocks))
        self.saved, self.blocks = self.saved + len(self.blocks), []

    def read(self, ledger: Ledger) -> ChargedLog | None:
        """All rows; None where those beside the log are not there, or not the ones that the digest is of."""
        size, digest = BLOCK * ROW.itemsize, b""
        whole = (ledger.saved(SAVED_ROWS) or b"")[: self.saved * size] if self.saved else b""
        for part in (whole, *self.blocks):
            for start in range(0, len(part), size):
                digest = _linked(digest, part[start : start + size])
        if len(whole) != self.saved * size or digest != self.digest:
            return None
        return ChargedLog(
            parts=[*(np.frombuffer(part, ROW) for part in (whole, *self.blocks)), np.array(self.last, ROW)],
            analysts=tuple(self.analysts),
            proposers=tuple(self.proposers),
            subjects=tuple(self.subjects),
        )


def _linked(digest: bytes, block: bytes) -> bytes:
    return blake2b(digest + block, digest_size=32, person=b"bursar charges").digest()


def charged(public: Public) -> ChargedLog:
    """What every record was charged, as rows, with what it was bought for; no price reads it.

    Edge cases: where the rows beside the log are lost, the log is played from the start, and the next checkpoint saves
    them anew.
    """
    with public._lock:
        public._advanced()
        rows = public._charges.read(public.ledger)
        if rows is None:
            twin = nothing_read(public)
            twin._advance([record for record in public.ledger.records() if record.position <= public._position])
            public._charges = twin._charges
            rows = public._charges.read(public.ledger)
        assert rows is not None  # all of them are in memory
        return rows


def book_of(public: Public, analyst: str | None) -> Book | None:
    """A copy of the data set's book, or of the account of an analyst who has a share; None for one who has none."""
    with public._lock:
        accounts = public._advanced()
        if analyst is None:
            return accounts.total.copy()
        return accounts.book_of(analyst).copy() if analyst in accounts.shares else None
