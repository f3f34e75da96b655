"""The log as purchases: the records that one question paid for, and what the question was."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

from bursar.domain import Domain
from bursar.errors import BursarError
from bursar.goal import Goal, GoalKind
from bursar.kernel.accounting import Paid, Sealed, Versioned
from bursar.kernel.accounts import Charge
from bursar.kernel.ledger import Record
from bursar.kernel.seals import Seals
from bursar.planner.batch import together
from bursar.planner.request import Request
from bursar.sql import parse
from bursar.sql.script import questions_of
from bursar.workload import Level
from bursar.workload import compile as compile_query

Read = Callable[[str, int], Request | None]
"""From the text in the log, and how many partitions were sealed then, to the question, if it is one."""

ANY = Goal(kind=GoalKind.RMSE, amount=1.0)
"""The log does not tell the goals that stood beside the SQL, so this one stands for them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Purchase:
    """Measurements, refinements and sparse vectors that one question paid for."""

    analyst: str
    purpose: str
    records: tuple[Record, ...]
    charge: Charge
    sealed: int  # how many partitions could be asked about
    read: Read

    @cached_property
    def request(self) -> Request | None:
        """The question, but for its goal, which the log may not tell; None where the purpose is no question."""
        return self.read(self.purpose, self.sealed)


def purchases_of(history: Sequence[tuple[Record, Charge]], read: Read) -> list[Purchase]:
    """What was bought, in its order; records of one question that follow each other are one purchase."""
    bought = [entry for entry in history if isinstance(entry[0].event, Paid)]
    seals = [record for record, _ in history if isinstance(record.event, Versioned | Sealed)]
    made: list[Purchase] = []
    for (analyst, purpose), entries in groupby(bought, key=lambda entry: (entry[0].analyst, entry[0].purpose)):
        records, charges = zip(*entries, strict=True)
        total = Charge(total=sum(c.total for c in charges), account=sum(c.account for c in charges))
        sealed = Seals.after(record for record in seals if record.position < records[0].position).sealed
        facts: Any = {"analyst": analyst, "purpose": purpose, "records": records, "sealed": sealed}
        made.append(Purchase(**facts, charge=total, read=read))
    return made


def reader(domain: Domain, table: str, levels: tuple[Level, ...] = ()) -> Read:
    """Reads one question, or several that were asked as one."""

    def read(text: str, sealed: int) -> Request | None:
        try:
            asked = [question(sql, sealed) for sql in questions_of(text)]
            return asked[0] if len(asked) == 1 else together(asked, None)
        except BursarError:
            return None

    def question(sql: str, sealed: int) -> Request:
        query = parse(sql)
        goal = ANY if query.goal is None else query.goal
        workload = compile_query(query, domain, table, None if domain.partition is None else sealed, levels)
        return Request.of(text=sql, workload=workload, asked=goal, goal=goal, analyst="")

    return read
