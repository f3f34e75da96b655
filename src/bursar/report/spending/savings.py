"""What remembering has saved: the questions of the log, had each been measured by itself."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from bursar.core.accounting import Book, Event, Measured, Versioned, from_units
from bursar.core.accounts import Account, Charge
from bursar.core.domain import Domain
from bursar.core.ledger import Record
from bursar.goal import Goal, GoalKind
from bursar.planner.choose import Preset
from bursar.planner.offer import Views
from bursar.planner.planner import Planner
from bursar.planner.request import PlanningRequest
from bursar.proposers.direct import Direct
from bursar.proposers.exact import Exact
from bursar.proposers.partwise import Partwise
from bursar.proposers.reconstruct import Reconstruct
from bursar.report.spending.purchases import Books, Read, own_entries, paid_by, purchases_of
from bursar.views.measurements import Measurements, Reconstructions

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
        return self.empty_book().price(events)

    def left(self) -> int:
        return 0

    def sealed(self) -> int | None:
        return None

    def shares(self) -> Mapping[str, Fraction]:
        return {}

    def account(self, analyst: str) -> Account:
        return Account(cap=0, spent=0)

    def charge(self, events: Iterable[Event], analyst: str) -> Charge:
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
    own = own_entries(whole, analyst)
    purchases = purchases_of(own, books.ledger.texts())
    compared = purchases[-MOST_PURCHASES:]
    records = [record for record, _ in (own if own_rows else whole)]
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
    own = Measurements(views.domain, version=views.version)
    own.advance(record for record in bought if isinstance(record.event, Measured))
    alone = replace(views, measurements=own, reconstructions=Reconstructions(views.domain, own))
    for proposer, seen in ((Exact(), views), (Partwise(), views), (Reconstruct(), alone), (Reconstruct(), views)):
        for offer in proposer.offers(request, seen):
            return offer.law.mean_square()
    return None


def _together(events: Iterable[Event], book: Book) -> int:
    """What the measurements would have cost, counted by person as always: remembering is all that is left out."""
    for event in events:
        book.add(event)
    return book.spent()
