"""What remembering has saved: the log as purchases, each compared with a direct measurement of the same accuracy."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol

from bursar.compile import Level
from bursar.compile import compile as compile_query
from bursar.core.accounting import Allotted, Book, Event, Measured, Paid, Sealed, Versioned, from_units
from bursar.core.accounts import Account, Charge
from bursar.core.domain import Domain
from bursar.core.extensions.partitions import Seals
from bursar.core.ledger import Record
from bursar.errors import BursarError
from bursar.goal import Goal, GoalKind
from bursar.planner.balance import planning_request
from bursar.planner.batch import together
from bursar.planner.choose import Preset
from bursar.planner.offer import Views
from bursar.planner.planner import Planner
from bursar.planner.request import PlanningRequest, Request
from bursar.proposers.direct import Direct, Partwise
from bursar.proposers.reuse import Exact, Reconstruct
from bursar.report.status import OWNER, Money
from bursar.sql import parse
from bursar.sql.tokens import questions_of
from bursar.views.measurements import Measurements, Reconstructions

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
    purchases = []
    for entries in sorted(runs.values(), key=lambda entries: entries[-1][0].position):
        records, charges = zip(*entries, strict=True)
        purchases.append(
            QuestionPurchase(
                records=records,
                charge=Charge(total=sum(c.total for c in charges), account=sum(c.account for c in charges)),
                text=texts.get(records[0].question),
                sealed=Seals.after(seal for seal in seals if seal.position < records[0].position).sealed,
            )
        )
    return purchases


def reader(domain: Domain, table: str, levels: tuple[Level, ...] = ()) -> Read:
    """Reads one question, or several that were asked as one."""

    def read(text: str, sealed: int) -> PlanningRequest | None:
        try:
            requests = [question(sql, sealed) for sql in questions_of(text)]
            return requests[0] if len(requests) == 1 else together(requests, None)
        except BursarError:
            return None

    def question(sql: str, sealed: int) -> PlanningRequest:
        query = parse(sql)
        goal = ANY if query.goal is None else query.goal
        workload = compile_query(query, domain, table, None if domain.partition is None else sealed, levels)
        return planning_request(Request(text=sql, workload=workload, goal=goal, analyst=""))

    return read


Progress = Callable[[int, int], None]

MOST_PURCHASES = 500
"""In longer logs only the last so many purchases are compared."""


@dataclass(frozen=True, kw_only=True)
class Saved:
    """What some questions of the log cost, and what they would have cost one by one, directly, as exactly.

    "As exactly" is by the root mean square of the error when the answer was bought, by the rows that were bought for it
    if they are enough. Free answers leave no trace in the log, so what they saved is not in here.
    """

    questions: int
    paid: float
    direct: float
    left_out: int  # purchases that were not compared: too long ago, erased, or too large to work out


@dataclass(frozen=True)
class ByItself:
    """Prices of a data set on which nothing was ever spent, and nobody has a share."""

    empty_book: Callable[[], Book]

    def price(self, events: Iterable[Event]) -> int:
        """What events would cost on an empty book."""
        return self.empty_book().price(events)

    def left(self) -> int:
        """Nothing is compared with what is left."""
        return 0

    def sealed(self) -> int | None:
        """Nothing is known about seals: requests say what they need."""
        return None

    def shares(self) -> Mapping[str, Fraction]:
        """Nobody has a share."""
        return {}

    def account(self, analyst: str) -> Account:
        """An account that is not looked at."""
        return Account(cap=0, spent=0)

    def charge(self, events: Iterable[Event], analyst: str) -> Charge:
        """The price, charged to nobody in particular."""
        price = self.price(events)
        return Charge(total=price, account=price)


def saved_of(
    books: Books,
    analyst: str,
    read: Read,
    *,
    domain: Domain,
    own_rows: bool = False,
    progress: Progress = lambda done, of: None,
) -> Saved:
    """Play the log again, and put a direct measurement of the same accuracy in the place of each purchase.

    `own_rows` says that answers are made from own measurements alone.
    Guarantees: for an analyst it depends on others' records in one way only: they made own answers more exact, as the
    answers themselves have shown.
    """
    whole, pays = books.history(), paid_by(analyst)
    entries = own_entries(whole, analyst)
    purchases = purchases_of(entries, books.ledger.texts())
    compared = purchases[-MOST_PURCHASES:]
    records = [record for record, _ in (entries if own_rows else whole)]
    log, alone = _Log(records), ByItself(books.empty_book)
    planner = Planner(domain, books.budget.mode, Preset("replay", (Exact(), Reconstruct())), alone, log.after)
    events: list[Event] = [record.event for record in records if isinstance(record.event, Versioned)]
    paid = done = 0
    for number, purchase in enumerate(compared):
        log.until = purchase.records[-1].position
        request = None if purchase.text is None else read(purchase.text, purchase.sealed)
        bought = () if request is None else _direct(request, purchase.records, planner.views())
        if bought:
            events += bought
            paid, done = paid + pays(purchase.charge), done + 1
        progress(number + 1, len(compared))
    return Saved(
        questions=done,
        paid=from_units(paid),
        direct=from_units(_together(events, books.empty_book())),
        left_out=len(purchases) - done,
    )


class _Log:
    """Records up to a position that moves on."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._records, self._positions = records, [record.position for record in records]
        self.until = 0

    def after(self, position: int) -> Sequence[Record]:
        return self._records[bisect_right(self._positions, position) : bisect_right(self._positions, self.until)]


def _direct(request: PlanningRequest, bought: Sequence[Record], views: Views) -> tuple[Event, ...]:
    """The question measured by itself, with the mean squared error that the answer had; nothing where that is unknown.

    What is measured part by part takes several measurements.
    """
    square = _mean_square(request, bought, views)
    if square is None or square <= 0:
        return ()
    goal = Goal(kind=GoalKind.RMSE, amount=math.sqrt(square))
    offers = Direct().offers(replace(request, goal=goal), views)
    best = min(offers, key=lambda offer: offer.price.at_most, default=None)
    return () if best is None else best.price.events


def _mean_square(request: PlanningRequest, bought: Sequence[Record], views: Views) -> float | None:
    """How exact the answer was, rather too little than too much.

    In this order: the very rows that were asked for, the rows that were bought alone, everything that was known.
    """
    measurements = Measurements(views.domain, version=views.version)
    measurements.advance(record for record in bought if isinstance(record.event, Measured))
    alone = replace(views, measurements=measurements, reconstructions=Reconstructions(views.domain, measurements))
    for proposer, seen in ((Exact(), views), (Partwise(), views), (Reconstruct(), alone), (Reconstruct(), views)):
        for offer in proposer.offers(request, seen):
            return offer.law.mean_square()
    return None


def _together(events: Iterable[Event], book: Book) -> int:
    """What the measurements would have cost, counted by person as always: remembering is all that is left out."""
    for event in events:
        book.add(event)
    return book.spent()
