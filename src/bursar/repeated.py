"""Free answers of a process: what is asked again is looked up, not planned again."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace

from bursar.answer import Answer, Payment
from bursar.core.accounting import Measured, Refined
from bursar.core.ledger import Record
from bursar.lazy_dataclass import dataclass
from bursar.planner.goals import Wanted
from bursar.sql.parameters import ResolvedQuestion

MOST_LINES = 2**20
"""Of all answers that are kept."""

FROM_A_FILE = "synthetic"
"""The proposer whose answers come from a table that can be made anew without a word in the log."""

QuestionKey = tuple[ResolvedQuestion, Wanted | None, str]


@dataclass(frozen=True)
class KeptAnswer:
    """An answer with the position of the log that its payment is as of, and the digest of the rows it was read off."""

    answer: Answer
    position: int
    rows: str | None  # None where it was made of more of the log than one record


class LatestRead:
    """Reads something that grows, for many threads: one read does for all who wait for one.

    Guarantees: what a thread is given was read after it had asked, by itself or by somebody else, so whatever was
    written before it asked is in it, by whichever process.
    """

    def __init__(self, read: Callable[[], int]) -> None:
        self._read, self._lock = read, threading.Lock()
        self._begun = 0  # reads, the one that is under way included
        self._found = (0, 0)

    def __call__(self) -> tuple[int, int]:
        """The number of the read, which says which of two is the later one, and what was found."""
        begun_before = self._begun
        with self._lock:
            if self._found[0] <= begun_before:
                self._begun += 1
                self._found = self._begun, self._read()
            return self._found


class FreeAnswers:
    """What was answered for nothing, by the question as it was asked and by whom.

    Guarantees: an answer is given again only where it would be computed again. Everything it is made of is in the key,
    or fixed for the process: the question with its day filled in, its goal, the analyst, and with it the account and
    what the policy shows; the config; and the log. To that nothing was added since; or the answer was read off one
    record, which no planning would pass by, and all that was added are measurements and refinements of other rows: then
    what is left is brought up to date. Where questions wait for turns, or have a key by which they can be asked for
    again, the engine does not look here.
    """

    def __init__(
        self,
        position: Callable[[], int],
        records: Callable[[int], Sequence[Record]],
        payment: Callable[[str], Payment],
    ) -> None:
        """`position` is that of the last record of the log; `payment` what an analyst reads beside a free answer."""
        self._end, self._records, self._payment = LatestRead(position), records, payment
        self._lock = threading.Lock()
        self._position, self._read = 0, 0
        self._forget()

    def repeats(self, question: ResolvedQuestion, options: Wanted | None, analyst: str) -> Repeat:
        """What is known of a question now."""
        read, end = self._end()
        with self._lock:
            if read > self._read:  # else somebody who read later was here sooner
                self._read = read
                if end != self._position:
                    self._read_on(end)
            key = (question, options, analyst)
            stored = self._answers.get(key)
            if stored is not None and stored.position != self._position:
                answer = replace(stored.answer, **self._payment(analyst))
                stored = self._answers[key] = replace(stored, answer=answer, position=self._position)
            return Repeat(self, key, self._position, None if stored is None else stored.answer)

    def keep(self, key: QuestionKey, position: int, answer: Answer, rows: str | None) -> None:
        """Keep an answer that was free, and begun when the log had this length; `rows` as in `KeptAnswer`."""
        paid = not answer.free or answer.whole_charge
        lines = len(answer.labels)
        if paid or answer.source == FROM_A_FILE or lines > MOST_LINES:
            return
        with self._lock:
            if self._lines + lines > MOST_LINES:
                self._forget()
            if position == self._position:  # else it may be older than what is known by now
                self._answers[key] = KeptAnswer(answer, position, rows)
                self._by_rows[rows].add(key)
                self._lines += lines

    def _read_on(self, end: int) -> None:
        """Forget what news of the log may change; also where the log is not longer, but another one."""
        # Where nothing is kept, nothing is read: a new process does not start by reading the whole log.
        news = self._records(self._position) if self._answers and end > self._position else ()
        changed: set[str | None] = {None}
        for event in (record.event for record in news):
            if isinstance(event, Measured | Refined):
                changed.add((event.strategy if isinstance(event, Measured) else event.measured).digest)
            else:
                news = ()
        if not news:
            self._forget()
        for key in (key for rows in changed for key in self._by_rows.pop(rows, ())):
            self._lines -= len(self._answers.pop(key).answer.labels)
        self._position = end

    def _forget(self) -> None:
        self._lines = 0
        self._answers: dict[QuestionKey, KeptAnswer] = {}
        self._by_rows: defaultdict[str | None, set[QuestionKey]] = defaultdict(set)


@dataclass(frozen=True)
class Repeat:
    """A question that may have been asked before, and the answer to it if it was."""

    answers: FreeAnswers
    key: QuestionKey
    position: int
    answer: Answer | None

    def keep(self, answer: Answer, rows: str | None) -> None:
        """Remember what was found instead, and which rows alone it was read off, if so."""
        self.answers.keep(self.key, self.position, answer, rows)
