"""The log as purchases: the records that one plan paid for, and the question behind them, compiled again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from bursar.compile import Level
from bursar.compile import compile as compile_query
from bursar.core.accounting import Allotted, Book, Paid, Sealed, Versioned
from bursar.core.accounts import Charge
from bursar.core.domain import Domain
from bursar.core.ledger import Record
from bursar.core.seals import Seals
from bursar.errors import BursarError
from bursar.goal import Goal, GoalKind
from bursar.planner.balance import planning_request
from bursar.planner.batch import together
from bursar.planner.request import PlanningRequest, Request
from bursar.report.status import OWNER, Money
from bursar.sql import parse
from bursar.sql.tokens import questions_of

Read = Callable[[str, int], PlanningRequest | None]
"""From the text of a question, and how many partitions were sealed then, to the question, if it is one."""

ANY = Goal(kind=GoalKind.RMSE, amount=1.0)
"""The text does not tell the goals that stood beside the SQL, so this one stands for them."""


Entries = Sequence[tuple[Record, Charge]]


class Books(Money, Protocol):
    """What is asked of the kernel."""

    def empty_book(self) -> Book: ...


@dataclass(frozen=True, kw_only=True, eq=False)
class QuestionPurchase:
    """Everything that one plan paid for."""

    records: tuple[Record, ...]
    charge: Charge
    text: str | None  # of the question; None where it was erased
    sealed: int  # how many partitions could be asked about


def own_entries(history: Entries, analyst: str) -> Entries:
    """The part of the log that somebody may look back at: the own records, and declarations, which everybody knows."""
    declared = Versioned | Allotted | Sealed
    return [entry for entry in history if analyst in (OWNER, entry[0].analyst) or isinstance(entry[0].event, declared)]


def paid_by(analyst: str) -> Callable[[Charge], int]:
    """Whose money counts: the data set's for the data owner, the own account's for others."""
    return lambda charge: charge.total if analyst == OWNER else charge.account


def purchases_of(history: Entries, texts: Mapping[str, str]) -> list[QuestionPurchase]:
    """What was bought, by the run that paid, in the order in which the runs ended.

    Edge cases: where the log does not tell the run, records of one question that follow each other are one purchase.
    """
    runs: dict[tuple[object, ...], list[tuple[Record, Charge]]] = defaultdict(list)
    place, before = 0, ("", "")
    for record, charge in history:
        if isinstance(record.event, Paid):
            whose = (record.analyst, record.question)
            place += whose != before
            before = whose
            runs[(record.run,) if record.run else (0, place)].append((record, charge))
    seals = [record for record, _ in history if isinstance(record.event, Versioned | Sealed)]
    made = []
    for entries in sorted(runs.values(), key=lambda entries: entries[-1][0].position):
        records, charges = zip(*entries, strict=True)
        made.append(
            QuestionPurchase(
                records=records,
                charge=Charge(total=sum(c.total for c in charges), account=sum(c.account for c in charges)),
                text=texts.get(records[0].question),
                sealed=Seals.after(seal for seal in seals if seal.position < records[0].position).sealed,
            )
        )
    return made


def reader(domain: Domain, table: str, levels: tuple[Level, ...] = ()) -> Read:
    """Reads one question, or several that were asked as one."""

    def read(text: str, sealed: int) -> PlanningRequest | None:
        try:
            asked = [question(sql, sealed) for sql in questions_of(text)]
            return asked[0] if len(asked) == 1 else together(asked, None)
        except BursarError:
            return None

    def question(sql: str, sealed: int) -> PlanningRequest:
        query = parse(sql)
        goal = ANY if query.goal is None else query.goal
        workload = compile_query(query, domain, table, None if domain.partition is None else sealed, levels)
        return planning_request(Request(text=sql, workload=workload, goal=goal, analyst=""))

    return read
