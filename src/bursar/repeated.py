"""Free answers of a process, kept until the log grows: what is asked again is looked up, not planned again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bursar.answer import Answer
from bursar.core.ledger import Record
from bursar.planner.goals import Wanted

MOST_LINES = 2**20
"""Of all answers that are kept."""

FROM_A_FILE = "synthetic"
"""The proposer whose answers come from a table that can be made anew without a word in the log."""

Asked = tuple[str, Wanted | None, str]


class FreeAnswers:
    """What was answered for nothing, by the question as it was asked and by whom.

    Guarantees: an answer is given again only where it would be computed again. Everything it is made of is in the key,
    or fixed for the process: text and goal as they were asked; the analyst, and with it the account and what the policy
    shows; the config; and the log, of which nothing was added since. What is left is read from the log too. Where
    questions wait for turns, or have a key by which they can be asked for again, the engine does not look here.
    """

    def __init__(self, records: Callable[[int], Sequence[Record]]) -> None:
        self._records = records
        self._lock = threading.Lock()
        self._position, self._lines = 0, 0
        self._answers: dict[Asked, Answer] = {}

    def repeats(self, question: str, wanted: Wanted | None, analyst: str) -> Repeat:
        """What is known of a question now."""
        with self._lock:
            if records := self._records(self._position):
                self._position, self._lines = records[-1].position, 0
                self._answers.clear()
            asked = (question, wanted, analyst)
            return Repeat(self, asked, self._position, self._answers.get(asked))

    def keep(self, asked: Asked, position: int, answer: Answer) -> None:
        """Keep an answer that was free, and begun when the log had this length."""
        paid = not answer.free or answer.whole_charge
        lines = len(answer.labels)
        if paid or answer.source == FROM_A_FILE or lines > MOST_LINES:
            return
        with self._lock:
            if self._lines + lines > MOST_LINES:
                self._answers.clear()
                self._lines = 0
            if position == self._position:  # else it may be older than what is known by now
                self._answers[asked] = answer
                self._lines += lines


@dataclass(frozen=True)
class Repeat:
    """A question that may have been asked before, and the answer to it if it was."""

    known: FreeAnswers
    asked: Asked
    position: int
    answer: Answer | None

    def keep(self, answer: Answer) -> None:
        """Remember what was found instead."""
        self.known.keep(self.asked, self.position, answer)
