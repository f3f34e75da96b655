"""The statement: what a data set promises and what was spent of it, on a page for a data protection officer."""

from __future__ import annotations

import textwrap
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from bursar import __version__
from bursar.core.accounting import Allotted, Sealed, Versioned
from bursar.core.ledger import Health
from bursar.curate.check import not_promised, promise
from bursar.report.spending import Portion
from bursar.report.status import OWNER, BudgetStatus, LogLine, log_of
from bursar.service.people import People
from bursar.session import Bursar

WIDTH = 100


@dataclass(frozen=True, kw_only=True)
class Month:
    """What was bought in a month."""

    month: str
    charge: float
    purchases: int
    people: int  # who bought something


@dataclass(frozen=True, kw_only=True)
class Declared:
    """Something that the data owner has declared, and when."""

    at: float
    what: str


@dataclass(frozen=True, kw_only=True)
class PersonLine:
    """Somebody who may ask, and what they have spent."""

    name: str
    role: str
    tokens: int  # that are good now
    charge: float


@dataclass(frozen=True, kw_only=True)
class Statement:
    """The promise in plain words, and the books. For an analyst: without other people, and the own part alone."""

    dataset: str
    version: str  # of Bursar
    at: float
    whose: str | None  # whose spending it is; None: everybody's
    promise: dict[str, str]
    not_promised: tuple[str, ...]
    budget: BudgetStatus
    people: tuple[PersonLine, ...]
    months: tuple[Month, ...]
    by_columns: tuple[Portion, ...]
    by_way: tuple[Portion, ...]
    declared: tuple[Declared, ...]
    told: tuple[LogLine, ...] | None  # every purchase, where that was asked for
    health: Health

    def __str__(self) -> str:
        unit, health = self.budget.unit, self.health
        lines = [f"Statement about {self.dataset}, {_day(self.at)} (Bursar {self.version})", "", "What is promised", ""]
        lines += [_wrapped(f"{topic:<12}{text}", 12) for topic, text in self.promise.items()]
        lines += ["", "What is not promised", "", *(_wrapped(f"- {text}", 2) for text in self.not_promised)]
        lines += ["", "What is spent", ""]
        lines += [f"{name:<8}{told}" for name, told in self.budget.lines()]
        lines += [f"{each.month}: {unit} {each.charge:.6g}, {each.purchases} purchases" for each in self.months]
        lines += [f"on {each.name}: {unit} {each.charge:.6g}" for each in self.by_columns]
        if self.people:
            lines += ["", "Who may ask", ""]
            lines += [f"{each.name}, {each.role}: {unit} {each.charge:.6g} spent" for each in self.people]
        if self.told is not None:
            lines += ["", "What was told to whom", ""]
            lines += [f"{_day(line.at)}, {line.analyst}, {unit} {line.charge:.6g}: {line.asked}" for line in self.told]
        lines += ["", "What was declared", "", *(f"{_day(each.at)}: {each.what}" for each in self.declared)]
        lines += ["", f"The log has {health.records} records, and is sound. Its head, to check it by:"]
        return "\n".join([*lines, f"{health.records}:{health.head}"])


def statement_of(session: Bursar, people: People | None = None, *, questions: bool = False) -> Statement:
    """The statement as the analyst of a session may see it; `people` are named where they are given, and what was told
    to whom with `questions`."""
    log, spending = session.log(), session.spending()
    charges = {portion.name: portion.charge for portion in spending.by_analyst}
    everything = session if session.analyst == OWNER else session.as_analyst(OWNER)
    return Statement(
        dataset=session.config.dataset,
        version=__version__,
        at=time.time(),
        whose=None if session.analyst == OWNER else session.analyst,
        promise=promise(session.config),
        not_promised=not_promised(session.config),
        budget=session.budget(),
        people=() if people is None else _people(people, charges),
        months=_months(log, whole=session.analyst == OWNER),
        by_columns=spending.by_columns,
        by_way=spending.by_proposer,
        declared=tuple(
            Declared(at=line.at, what=line.kind)
            for line in log_of(session.kernel, OWNER, kinds={Versioned.kind, Sealed.kind, Allotted.kind})
        ),
        told=tuple(line for line in log if line.noise) if questions else None,
        health=everything.owner.verify(),
    )


def _people(people: People, charges: dict[str, float]) -> tuple[PersonLine, ...]:
    good = [token.name for token in people.tokens() if token.expires > time.time()]
    named = [
        PersonLine(
            name=person.name,
            role=person.role.value,
            tokens=good.count(person.name),
            charge=charges.get(person.name, 0.0),
        )
        for person in people.everybody()
    ]
    gone = charges.keys() - {person.name for person in named}
    return (
        *named,
        *(PersonLine(name=name, role="without a token", tokens=0, charge=charges[name]) for name in sorted(gone)),
    )


def _months(log: Sequence[LogLine], *, whole: bool) -> tuple[Month, ...]:
    lines: dict[str, list[LogLine]] = defaultdict(list)
    for line in log:
        if line.noise:  # what was bought, and not what was declared
            lines[datetime.fromtimestamp(line.at, UTC).strftime("%Y-%m")].append(line)
    return tuple(
        Month(
            month=month,
            charge=sum(line.charge if whole else line.paid for line in some),
            purchases=len(some),
            people=len({line.analyst for line in some}),
        )
        for month, some in sorted(lines.items())
    )


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")


def _wrapped(text: str, indent: int) -> str:
    return textwrap.fill(text, WIDTH, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False)
