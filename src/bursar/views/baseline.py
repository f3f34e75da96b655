"""The baseline: what an exact cache in front of plain noise would have spent on the questions that were asked.

It is a function of the questions and their goals, never of the data or of noise. Questions that were answered for
nothing leave no record in the ledger, so they are noted beside it.
"""

from __future__ import annotations

import base64
import json
import math
import sqlite3
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from bursar.core.accounting import Book, Event, Measured, Noise, NoiseKind, Paid, Versioned
from bursar.core.ledger import Record
from bursar.core.ledger.record_codec import decode_strategy, encode_strategy
from bursar.core.queries import Product, Stack
from bursar.errors import BudgetError, BursarError
from bursar.views.measurements import products_of

Columns = tuple[str, ...]
VersionedColumns = tuple[int, frozenset[str]]

UNKNOWN_COLUMNS: VersionedColumns = (-1, frozenset())
"""Stands for what an event looks at that is no measurement of cells."""


@dataclass(frozen=True, kw_only=True)
class AskedQuestion:
    """A question of an analyst, as the measurements that plain noise needs for it."""

    analyst: str
    columns: Columns  # that it is about, in the order of the domain
    plain: tuple[Measured, ...]
    position: int  # of the last record of the log when it was asked

    @property
    def digest(self) -> str:
        """What it asks for, whatever the words: what plain noise would measure."""
        return self.plain[0].strategy.digest if self.plain else ""


class QuestionNotes(Protocol):
    """Questions in the order in which they were asked. Advice for the planner: no promise rests on them."""

    def after(self, number: int) -> Sequence[AskedQuestion]:
        """All but the first so many."""

    def add(self, question: AskedQuestion) -> None:
        """Note one more."""

    def asked_at(self, analyst: str, digest: str) -> Sequence[int]:
        """The positions of the log at which an analyst asked what has this digest."""

    def erase(self) -> None:
        """Forget all of them."""

    def close(self) -> None:
        """Nothing will be noted any more."""


class MemoryNotes:
    """Notes that go with the process."""

    def __init__(self) -> None:
        self._questions: list[AskedQuestion] = []
        self._asked_at: defaultdict[tuple[str, str], list[int]] = defaultdict(list)

    def after(self, number: int) -> Sequence[AskedQuestion]:
        return self._questions[number:]

    def add(self, question: AskedQuestion) -> None:
        self._questions.append(question)
        self._asked_at[question.analyst, question.digest].append(question.position)

    def asked_at(self, analyst: str, digest: str) -> Sequence[int]:
        return self._asked_at.get((analyst, digest), ())

    def erase(self) -> None:
        self._questions.clear()
        self._asked_at.clear()

    def close(self) -> None:
        """They are gone with the process."""


class SqliteNotes:
    """Notes in a file beside the ledger, shared by all processes; where it cannot be used, questions go unnoted.

    A question that is not noted makes the planner more careful, never less: so a note need not survive a power failure,
    and no answer waits for the disk.
    """

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        try:
            self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=5.0)
        except sqlite3.Error:  # a folder that cannot be written to: what is asked in this process counts
            self._database = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        with suppress(OSError):
            path.chmod(0o600)
        with suppress(sqlite3.Error):
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = OFF")
            self._database.execute("PRAGMA secure_delete = ON")
            self._database.execute("CREATE TABLE IF NOT EXISTS questions (number INTEGER PRIMARY KEY, body BLOB)")
            self._database.execute("CREATE TABLE IF NOT EXISTS asked_at (analyst BLOB, digest TEXT, position INTEGER)")
            self._database.execute("CREATE INDEX IF NOT EXISTS by_question ON asked_at (digest, analyst)")

    def after(self, number: int) -> Sequence[AskedQuestion]:
        with self._lock, suppress(sqlite3.Error):
            # Numbers count from 1 without gaps: nothing is ever deleted but everything.
            rows = self._database.execute("SELECT body FROM questions WHERE number > ? ORDER BY number", (number,))
            return [_decoded(body) for (body,) in rows.fetchall()]
        return []

    def add(self, question: AskedQuestion) -> None:
        with self._lock, suppress(sqlite3.Error):
            self._database.execute("INSERT INTO questions (body) VALUES (?)", (_encoded(question),))
            where = (_bytes_of(question.analyst), question.digest, question.position)
            self._database.execute("INSERT INTO asked_at VALUES (?, ?, ?)", where)

    def asked_at(self, analyst: str, digest: str) -> Sequence[int]:
        with self._lock, suppress(sqlite3.Error):
            text = "SELECT position FROM asked_at WHERE digest = ? AND analyst = ? ORDER BY position"
            return [position for (position,) in self._database.execute(text, (digest, _bytes_of(analyst))).fetchall()]
        return []

    def erase(self) -> None:
        with self._lock, suppress(sqlite3.Error):
            self._database.execute("DELETE FROM questions")
            self._database.execute("DELETE FROM asked_at")
            self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        with self._lock, suppress(sqlite3.Error):
            self._database.close()


def _bytes_of(analyst: str) -> bytes:
    """A name as it came in, also one that is no Unicode, which SQLite would not take as text."""
    return analyst.encode("utf-8", "surrogatepass")


def _encoded(question: AskedQuestion) -> bytes:
    plain = [
        [
            event.strategy.digest,
            base64.b64encode(encode_strategy(event.strategy)).decode(),
            event.noise.kind.value,
            event.noise.scale.hex(),
            event.version,
        ]
        for event in question.plain
    ]
    return json.dumps([question.analyst, question.position, question.columns, plain]).encode()


def _decoded(body: bytes) -> AskedQuestion:
    """A note that cannot be read stands for a question that plain noise answers for nothing."""
    try:
        analyst, position, columns, plain = json.loads(body)
        events = tuple(
            Measured(
                strategy=decode_strategy(digest, base64.b64decode(strategy)),
                noise=Noise(kind=NoiseKind(kind), scale=float.fromhex(scale)),
                version=version,
            )
            for digest, strategy, kind, scale, version in plain
        )
        return AskedQuestion(analyst=analyst, columns=tuple(columns), plain=events, position=position)
    except (ValueError, TypeError, BursarError):
        return AskedQuestion(analyst="", columns=(), plain=(), position=0)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What is spent, and what it would be without reuse."""

    questions: int  # different ones; those that were free are counted
    spent: float
    plain: float  # plain noise for each of them, prices added up
    cached: float  # the same with loss counted by person: the baseline


MOST_UNBOOKED = 1024
"""So many questions may wait until somebody needs the book; beyond that each new one books the oldest."""

SURELY_PRICED = 16.0
"""A measurement that loses at most this by a bound that takes no time is far below what is dearer than any budget."""


def _cheap(event: Measured, contributions: int) -> bool:
    """Whether the price of a measurement is certainly below any limit.

    If r bounds what a unit changes of each of n rows, over the scale of its noise, and n r <= 16, then the unit loses
    at most n r <= 16 in pure mode, and n r^2 / 2 <= 128 in the others; the limit is 1024.
    """
    strategy = event.strategy
    if not isinstance(strategy, Product | Stack):
        return False
    return strategy.rows * strategy.largest() * contributions <= SURELY_PRICED * event.noise.scale


@dataclass
class Baseline:
    """A book in which every question was measured directly, unless the same was measured as exactly before.

    What was bought for something else than a question, such as a synthetic table, or before questions were noted, is in
    it as it was bought.
    """

    empty_book: Callable[[], Book]
    proposers: Set[str]  # who answers questions: what others bought is no question's
    analyst: str | None = None  # whose questions count; None: everybody's
    questions: int = 0
    noted: int = 0  # how many notes were read
    first: float = math.inf  # the position of the log when the first one was made
    position: int = 0  # of the last record that was read
    asked: Counter[Columns] = field(default_factory=Counter)  # questions about exactly these columns
    variances: dict[tuple[str, int], float] = field(default_factory=dict)  # of strategies measured, by digest, version
    _book: Book | None = None
    _columns: set[VersionedColumns] = field(default_factory=set)  # sets of them that are in the book
    _unbooked: deque[Event] = field(default_factory=deque)  # belongs into the book, in this order
    _apart: int = 0
    _unpriced: list[tuple[Measured, ...]] = field(default_factory=list)  # of questions that are not in `_apart` yet

    def catch_up(self, notes: QuestionNotes, records: Callable[[int], Sequence[Record]]) -> None:
        """Add the questions that were noted since, and what the log has beside questions."""
        questions = notes.after(self.noted)
        if questions and not self.noted:
            self.first = questions[0].position
        for record in records(self.position):
            event, self.position = record.event, record.position
            unnoted = record.proposer not in self.proposers or record.position <= self.first
            bought = isinstance(event, Paid) and unnoted and self.analyst in (None, record.analyst)
            if bought or isinstance(event, Versioned):
                self._unbooked.append(event)
        for question in questions:
            self.noted += 1
            if self.analyst in (None, question.analyst):
                self._add(question)

    def _add(self, question: AskedQuestion) -> None:
        self.questions += 1
        self._unpriced.append(question.plain)
        self.asked[question.columns] += 1
        for event in self.missing(question.plain):
            self._unbooked.append(event)
            if len(self._unbooked) > MOST_UNBOOKED:
                self._book_oldest()
            self.variances[event.strategy.digest, event.version] = event.noise.variance()

    def missing(self, plain: Sequence[Measured]) -> list[Measured]:
        """Which of a question's measurements are not in the exact cache."""
        known = self.variances
        return [
            event
            for event in plain
            if known.get((event.strategy.digest, event.version), math.inf) > event.noise.variance() * (1 + 1e-9)
        ]

    def cheapest(self, ways: Sequence[tuple[Measured, ...]]) -> tuple[Measured, ...]:
        """Of several ways to measure a question the one that adds least; nothing where all are dearer than any budget.

        A single one need not be priced, so that what is answered for nothing is noted in no time.
        """
        priced = [way for way in ways if self._has_price(way)]
        return priced[0] if len(priced) == 1 else min(priced, key=self.price, default=())

    def _has_price(self, plain: Sequence[Measured]) -> bool:
        """Whether a question is no dearer than any budget, whatever is in the book."""
        book = self.empty_book()
        if not book.further and all(_cheap(event, book.accountant.unit.max_contributions) for event in plain):
            return True
        try:
            return bool(book.all_footprints(plain))
        except BudgetError:
            return False

    def price(self, plain: Sequence[Measured]) -> int:
        """What a question would add."""
        return self.book.price(self.missing(plain))

    @property
    def apart(self) -> int:
        """What the questions would cost one by one, added up, in units of 2^-50."""
        while self._unpriced:
            self._apart += self.empty_book().price(self._unpriced.pop())
        return self._apart

    def spent(self, plain: Sequence[Measured] = ()) -> int:
        """What is spent after a question more, in units of 2^-50."""
        events: Sequence[Event] = self.missing(plain)
        return self.book.spent(self.book.accountant.all_footprints(events))

    @property
    def book(self) -> Book:
        """Everything so far, added up when somebody asks."""
        while self._unbooked:
            self._book_oldest()
        return self._booked

    @property
    def _booked(self) -> Book:
        """What was added up already. Made when it is needed."""
        if self._book is None:
            self._book = self.empty_book()
        return self._book

    def _book_oldest(self) -> None:
        event = self._unbooked.popleft()
        self._booked.add(event)
        self._columns |= _columns_of(event) - {UNKNOWN_COLUMNS}

    def certainly(self, plain: Sequence[Measured]) -> int:
        """A lower bound of what is spent after a question more, without adding anything up.

        Losses only grow; but a bound of them can fall where columns come in that were not in the book together before,
        so then nothing is certain.
        """
        known = all(_columns_of(event) <= self._columns for event in (*self._unbooked, *plain))
        return self._booked.spent() if known else 0


def _columns_of(event: Event) -> set[VersionedColumns]:
    """The sets of columns, of a version of the data, whose cells an event tells apart."""
    if not isinstance(event, Measured) or not (products := products_of(event.strategy)):
        return {UNKNOWN_COLUMNS}
    return {(event.version, frozenset(product.attrs)) for product in products}
