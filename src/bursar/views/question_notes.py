"""Notes of questions: what was asked, in its order, kept beside the ledger. Advice for planners.

Questions that were answered for nothing leave no record in the ledger.
"""

from __future__ import annotations

import base64
import json
import math
import sqlite3
import threading
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from bursar.core.accounting import Measured, Noise, NoiseKind
from bursar.core.ledger.record_codec import decode_strategy, encode_strategy
from bursar.core.queries import LinearMap
from bursar.errors import BursarError
from bursar.lazy_dataclass import dataclass

Columns = tuple[str, ...]

Variance = tuple[str, int, int, float]
"""The digest of what plain noise would measure, the version of the data, the number of the question, the variance."""


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
        """All but the first `number`."""

    def add(self, *questions: AskedQuestion) -> None:
        """Note some more: all of them, or none."""

    def asked_at(self, analyst: str, digest: str) -> Sequence[int]:
        """The positions of the log at which an analyst asked what has this digest."""

    def save_sum(self, payer: str | None, body: bytes, variances: Iterable[Variance]) -> None:
        """Keep what the questions that somebody pays for add up to, in place of what was kept before, and variances
        beside those that are kept."""

    def sum(self, payer: str | None) -> bytes | None:
        """What was kept last; None where nothing was."""

    def variance(self, payer: str | None, digest: str, version: int, *, until: int) -> float:
        """The variance that was kept of something with the last question up to a number; infinite where there is
        none."""

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

    def add(self, *questions: AskedQuestion) -> None:
        for question in questions:
            self._questions.append(question)
            self._asked_at[question.analyst, question.digest].append(question.position)

    def asked_at(self, analyst: str, digest: str) -> Sequence[int]:
        return self._asked_at.get((analyst, digest), ())

    def save_sum(self, payer: str | None, body: bytes, variances: Iterable[Variance]) -> None:
        """Nobody will read it: it is gone with the process."""

    def sum(self, payer: str | None) -> bytes | None:
        return None

    def variance(self, payer: str | None, digest: str, version: int, *, until: int) -> float:
        return math.inf

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
            self._database.execute("CREATE TABLE IF NOT EXISTS sums (payer BLOB PRIMARY KEY, body BLOB)")
            self._database.execute(_VARIANCES)

    def after(self, number: int) -> Sequence[AskedQuestion]:
        with self._lock, suppress(sqlite3.Error):
            # Numbers count from 1 without gaps: nothing is ever deleted but everything.
            rows = self._database.execute("SELECT body FROM questions WHERE number > ? ORDER BY number", (number,))
            return [_decoded(body) for (body,) in rows.fetchall()]
        return []

    def add(self, *questions: AskedQuestion) -> None:
        where = [(_bytes_of(question.analyst), question.digest, question.position) for question in questions]
        with self._lock, suppress(sqlite3.Error), self._database:
            self._database.execute("BEGIN IMMEDIATE")
            bodies = ((_encoded(question),) for question in questions)
            self._database.executemany("INSERT INTO questions (body) VALUES (?)", bodies)
            self._database.executemany("INSERT INTO asked_at VALUES (?, ?, ?)", where)

    def asked_at(self, analyst: str, digest: str) -> Sequence[int]:
        with self._lock, suppress(sqlite3.Error):
            text = "SELECT position FROM asked_at WHERE digest = ? AND analyst = ? ORDER BY position"
            return [position for (position,) in self._database.execute(text, (digest, _bytes_of(analyst))).fetchall()]
        return []

    def save_sum(self, payer: str | None, body: bytes, variances: Iterable[Variance]) -> None:
        who = _payer(payer)
        with self._lock, suppress(sqlite3.Error), self._database:
            self._database.execute("BEGIN IMMEDIATE")
            rows = [(who, *each) for each in variances]
            self._database.executemany("INSERT OR IGNORE INTO variances VALUES (?, ?, ?, ?, ?)", rows)
            self._database.execute("INSERT OR REPLACE INTO sums VALUES (?, ?)", (who, body))

    def sum(self, payer: str | None) -> bytes | None:
        with self._lock, suppress(sqlite3.Error):
            rows = self._database.execute("SELECT body FROM sums WHERE payer = ?", (_payer(payer),)).fetchall()
            return rows[0][0] if rows else None
        return None

    def variance(self, payer: str | None, digest: str, version: int, *, until: int) -> float:
        with self._lock, suppress(sqlite3.Error):
            these = "payer = ? AND digest = ? AND version = ? AND number <= ?"
            text = f"SELECT variance FROM variances WHERE {these} ORDER BY number DESC LIMIT 1"
            rows = self._database.execute(text, (_payer(payer), digest, version, until)).fetchall()
            return float(rows[0][0]) if rows else math.inf
        return math.inf

    def erase(self) -> None:
        with self._lock, suppress(sqlite3.Error):
            for table in ("questions", "asked_at", "sums", "variances"):
                self._database.execute(f"DELETE FROM {table}")
            self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        with self._lock, suppress(sqlite3.Error):
            self._database.close()


_VARIANCES = """CREATE TABLE IF NOT EXISTS variances (
    payer BLOB, digest TEXT, version INTEGER, number INTEGER, variance REAL,
    PRIMARY KEY (payer, digest, version, number)) WITHOUT ROWID"""


def _payer(name: str | None) -> bytes:
    """Who pays, as bytes: an analyst, or all together."""
    return b"" if name is None else b"=" + _bytes_of(name)


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
                strategy=_strategy(digest, strategy),
                noise=Noise(kind=NoiseKind(kind), scale=float.fromhex(scale)),
                version=version,
            )
            for digest, strategy, kind, scale, version in plain
        )
        return AskedQuestion(analyst=analyst, columns=tuple(columns), plain=events, position=position)
    except (ValueError, TypeError, BursarError):
        return AskedQuestion(analyst="", columns=(), plain=(), position=0)


@lru_cache(maxsize=2**12)
def _strategy(digest: str, text: str) -> LinearMap:
    """Many questions are about the same."""
    return decode_strategy(digest, base64.b64decode(text))
