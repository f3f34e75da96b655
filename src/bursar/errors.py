"""Every error that a person can meet, in one tree.

BursarError
├── ConfigError        the TOML file is wrong              (file, line)
├── QueryError         the question is wrong               (position in the text, a rewrite that works)
├── GoalError          the accuracy asked for makes no sense
├── BudgetError        the question is right and too dear  (asked, left, the cheapest goal that fits)
├── AnalystError       who asks has no share, or shares cannot be given out as asked
├── Waiting            it is somebody else's turn          (a ticket that keeps the place)
├── KeyConflict        the same key was used for another question
├── SourceError        the data cannot be read; one text for every cause, whatever the data hold
├── LedgerError        the ledger is missing, locked, foreign or damaged
│   ├── Stale          a plan was overtaken; plan again (never reaches a person)
│   └── Busy           somebody else has the same key or sparse vector right now; wait (never reaches a person)
├── Unsupported        a door that exists and is not open yet
└── ServerError        a server cannot be reached, or does not answer as one should

No message ever depends on the data: texts are made from the question, the config and public sizes only.
"""

from __future__ import annotations

from dataclasses import dataclass


class BursarError(Exception):
    """Anything Bursar refuses. `exit_code` is what the command line returns for it."""

    exit_code = 2


@dataclass
class ConfigError(BursarError):
    """A wrong config: which file, which line (0 where none applies), why."""

    reason: str
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}: " if self.line else f"{self.file}: " if self.file else ""
        return place + self.reason


@dataclass
class QueryError(BursarError):
    """A question that is refused: where in the text, why, and a rewrite that would be accepted."""

    reason: str
    text: str = ""
    position: int = -1  # offset of the first offending character, -1 where none applies
    rewrite: str = ""
    differs: str = ""  # in what the rewrite is another question; empty where it means the same

    def __str__(self) -> str:
        lines = [self.reason]
        if self.position >= 0 and self.text:
            before = self.text[: self.position]
            row = before.count("\n") + 1
            column = self.position - (before.rfind("\n") + 1) + 1
            shown = (self.text.splitlines() or [""])[row - 1] if row <= len(self.text.splitlines()) else ""
            lines = [f"line {row}, column {column}: {self.reason}", f"  {shown}", f"  {' ' * (column - 1)}^"]
        if self.rewrite:
            lines.append(f"try: {self.rewrite}")
        if self.rewrite and self.differs:
            lines.append(f"  which is another question: it {self.differs}")
        return "\n".join(lines)


class GoalError(BursarError):
    """An error, confidence or cost that makes no sense."""


@dataclass
class BudgetError(BursarError):
    """The question would cost more than is left; nothing was spent on it."""

    asked: float
    left: float
    unit: str  # "epsilon" or "rho"
    fits: str = ""  # the tightest goal that would fit, in the words of the SQL clause
    limit: str = "is left"  # whose limit it is
    meaning: str = ""  # what the goal means, where it is not in units of what was asked for
    spent: str = "nothing was spent"

    exit_code = 3

    def __str__(self) -> str:
        digits = next((d for d in (6, 9, 12) if f"{self.asked:.{d}g}" != f"{self.left:.{d}g}"), 17)
        requested, left = f"{self.asked:.{digits}g}", f"{self.left:.{digits}g}"
        text = f"this needs {self.unit} {requested}, and {left} {self.limit}; {self.spent}"
        text += f"\n{self.meaning}" if self.meaning else ""
        return f"{text}\ntry: {self.fits}" if self.fits else text


class AnalystError(BursarError):
    """Somebody without a share asks, or shares cannot be given out like this; nothing was spent or changed."""


@dataclass
class Waiting(BursarError):
    """It is not this analyst's turn, and the caller would not wait; nothing was spent."""

    ticket: int
    situation: str  # what the queue waits for

    exit_code = 5

    def __str__(self) -> str:
        return (
            f"your turn has not come: ticket {self.ticket} keeps your place; {self.situation}\n"
            f"try: the same again with --ticket {self.ticket}, which waits for the turn unless you add --no-wait"
        )


class KeyConflict(BursarError):
    """The key was used before, for a different question."""


class SourceError(BursarError):
    """The data cannot be read, or are not what was declared."""

    exit_code = 4


class LedgerError(BursarError):
    """The ledger is missing, locked, foreign or damaged."""

    exit_code = 4


class Stale(LedgerError):
    """The plan was overtaken by another commit; the caller plans again."""


class Busy(LedgerError):
    """Another process holds the key or the sparse vector; it will be done soon, or its claim or hold will expire."""


class Unsupported(BursarError):
    """A door that exists and is not open yet."""


class ServerError(BursarError):
    """A server cannot be reached, or does not answer as one should; see `bursar.connect`."""

    exit_code = 4
