"""The kernel: the only code that reads exact counts and draws noise.

A verb is one function: check public sizes, read exact counts, then in one commit admit, draw and record; the value
is returned after the commit and not before. See kernel.proof.md for why this keeps the budget.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import zip_longest

import numpy as np

from bursar.domain import Domain, Neighbours, Unit
from bursar.errors import BudgetError, QueryError, SourceError, Stale
from bursar.kernel.accounting import (
    Accountant,
    AddRemove,
    Book,
    Event,
    Footprint,
    Measured,
    Noise,
    Profile,
    Refined,
    ReplaceOne,
    Sequential,
    Versioned,
    from_units,
    left_of,
    same_purchase,
)
from bursar.kernel.blocks import Blocks
from bursar.kernel.budget import Budget
from bursar.kernel.ledger import Claim, Hold, Ledger, Record, Transaction
from bursar.kernel.randomness import Randomness
from bursar.kernel.sources.source import MOST_CELLS, Source
from bursar.kernel.tables import Tables
from bursar.queries import LinearMap, Transform

LARGEST_ANSWER = 2**61
"""Exact answers and noise (scales end at 2^40) stay far below 64 bits."""

MOST_ROWS = 2**22
"""Most rows of one measurement."""


class Kernel:
    """Guarantees: after every commit, the bound of the profile over the log is at most the budget."""

    def __init__(
        self,
        *,
        domain: Domain,
        unit: Unit,
        budget: Budget,
        max_rows: int,
        ledger: Ledger,
        open_source: Callable[[bytes], Source],
        randomness: Randomness,
        sequential: bool = False,
    ) -> None:
        """`sequential` charges every measurement its largest loss, as the published systems do."""
        self.domain, self.budget, self.max_rows, self.ledger = domain, budget, max_rows, ledger
        self._open_source, self._randomness = open_source, randomness
        self._accountant, self._sequential = Accountant(mode=budget.mode, unit=unit), sequential
        self._book = Book(self._accountant, self._new_profile)
        self._blocks = Blocks()
        self._position = 0
        self._group: tuple[int, Sequence[Record], Book] = (0, (), self._book)  # see `_book_with`
        self._lock = threading.RLock()  # guards book and blocks; works take it, so whoever holds it must not commit
        self._opening = threading.RLock()  # guards the data; no work takes it
        self._version = 0  # the last one declared in the log
        self._data: tuple[int, Source, Tables] | None = None  # opened at the first purchase: free answers need none

    # -- what everybody may know ---------------------------------------------------------------------------------

    def price(self, events: Iterable[Event]) -> int:
        """What the events would add to what is spent, in units of 2^-50; looks at the log only."""
        with self._lock:
            self._advance(self.ledger.records(self._position))
            return self._book.price(events)

    def spent(self) -> int:
        """The bound of the profile over everything in the log, in units of 2^-50."""
        with self._lock:
            self._advance(self.ledger.records(self._position))
            return self._book.spent()

    def left(self) -> int:
        """What the profile may still grow by, in units of 2^-50; holds are not counted, admission does that."""
        return max(self.budget.units - self.spent(), 0)

    def held(self) -> int:
        """What plans that are running have set aside, in units of 2^-50."""
        holds = self.ledger.commit(lambda transaction: transaction.holds(time.time()))
        return self.price([event for hold in holds for event in hold.events])

    def history(self) -> list[tuple[Record, int]]:
        """Every record with what it was charged, in units of 2^-50: the log played again from the start."""
        book = self.empty_book()
        result: list[tuple[Record, int]] = []
        for record in self.ledger.records():
            before = book.spent()
            book.add(record.event)
            result.append((record, max(book.spent() - before, 0)))
        return result

    def empty_book(self) -> Book:
        """A book as it was when nothing had been spent, to add up what some events cost by themselves."""
        return Book(self._accountant, self._new_profile)

    def version(self) -> int:
        """The version of the data that verbs run on: the last one declared."""
        with self._lock:
            self._advance(self.ledger.records(self._position))
            return self._version

    def check(self, strategy: LinearMap) -> None:
        """Refuse, from public sizes alone, what could overflow or not fit in memory."""
        parts = [self.domain.cells(norm.columns) for norm in strategy.norms(1)]
        if max(parts, default=1) > MOST_CELLS:
            raise QueryError(f"this looks at {max(parts)} joint cells at once; {MOST_CELLS} are possible")
        if strategy.rows > MOST_ROWS:
            raise QueryError(f"this asks for {strategy.rows} numbers at once; {MOST_ROWS} are possible")
        if strategy.largest() * self.max_rows > LARGEST_ANSWER:
            raise QueryError("the coefficients of this workload are too large for max_rows")
        if isinstance(strategy, Transform) and strategy.max_rows < self.max_rows:
            raise QueryError("a transform was made for fewer rows than max_rows")

    # -- verbs ---------------------------------------------------------------------------------------------------

    def measure(
        self,
        strategy: LinearMap,
        noise: Noise,
        *,
        analyst: str,
        purpose: str,
        at_most: int,
        claim: Claim | None = None,
        fence: int | None = None,
    ) -> tuple[Record, int]:
        """Noisy answers to all rows of a strategy, one commit; with what it was charged, in units of 2^-50.

        Stale is raised, and nothing charged, where the price has risen above `at_most` or the data version changed.
        """
        self.check(strategy)
        version, tables = self._opened()
        event = Measured(strategy=strategy, noise=noise, version=version)
        exact = strategy.apply(tables.counts)

        def work(transaction: Transaction) -> tuple[Record, int]:
            charge = self._admit(transaction, event, at_most=at_most, claim=claim, fence=fence)
            values = exact + self._randomness.draw(noise, strategy.rows)
            return transaction.append(analyst=analyst, purpose=purpose, event=event, values=values), charge

        return self.ledger.commit(work)

    def refine(
        self,
        block: int,
        rows: Sequence[int],
        noise: Noise,
        *,
        before: Noise,
        analyst: str,
        purpose: str,
        at_most: int,
        claim: Claim | None = None,
        fence: int | None = None,
    ) -> tuple[Record, int]:
        """Finer noise for rows of the measurement at a position of the log, one commit; with what it was charged.

        `before` is the noise that all of the rows have now, and the new noise is drawn under it. Stale is raised, and
        nothing charged, where a row has another noise by then, and where `measure` raises it.
        """
        version = self.version()
        with self._lock:
            measured = self._blocks.find(block).strategy
        places = np.array(rows)
        event = Refined(block=block, measured=measured, rows=places, before=before, after=noise, version=version)
        self._accountant.footprints(event)  # refuses what has no price before the data are touched
        opened, tables = self._opened()
        if opened != version:
            raise Stale("the data version changed meanwhile")
        exact = measured.apply(tables.counts)[event.rows]

        def work(transaction: Transaction) -> tuple[Record, int]:
            with self._lock:
                self._advance(transaction.committed(self._position))
                shown = self._blocks.values(event, transaction.pending())
            charge = self._admit(transaction, event, at_most=at_most, claim=claim, fence=fence)
            values = exact + self._randomness.refine(shown - exact, before, noise)
            return transaction.append(analyst=analyst, purpose=purpose, event=event, values=values), charge

        return self.ledger.commit(work)

    def hold(self, events: Sequence[Event], *, analyst: str, seconds: float) -> Hold:
        """Set the budget for a plan of several verbs aside; refused, like a verb, if it does not fit."""

        def work(transaction: Transaction) -> Hold:
            planned = self._accountant.all_footprints(events)
            self._require_budget(self._book_with(transaction), self._held(transaction), planned)
            expires = time.time() + seconds
            hold = Hold(fence=transaction.next_fence(), analyst=analyst, expires=expires, events=tuple(events))
            transaction.put_hold(hold, replace=False)
            return hold

        return self.ledger.commit(work)

    # -- inside a commit -----------------------------------------------------------------------------------------

    def _admit(
        self,
        transaction: Transaction,
        event: Measured | Refined,
        *,
        at_most: int,
        claim: Claim | None,
        fence: int | None,
    ) -> int:
        if claim is not None and transaction.claim(claim, time.time()) is not None:
            raise Stale("this key has been answered meanwhile")
        book = self._book_with(transaction)
        declared = [record for record in transaction.pending() if isinstance(record.event, Versioned)]
        if declared or event.version != self._version:
            raise Stale("the data version changed meanwhile")
        others = self._held(transaction, besides=fence)
        if fence is not None:
            others += self._accountant.all_footprints(self._take_from_hold(transaction, event, fence))
        more = self._accountant.footprints(event)
        charge = self._require_budget(book, others, more)
        if others:
            # As the log will tell it: beside what is only held, each part of a plan could look free.
            charge = self._require_budget(book, [], more)
        if charge > at_most:
            raise Stale("the price has risen meanwhile")
        return charge

    def _book_with(self, transaction: Transaction) -> Book:
        """The book with everything durable, and with this group's earlier members although they are not durable yet.

        The members are added to a copy, which is carried on from work to work of the same group. A group that failed
        leaves nothing behind: its records never come again, and the copy of the next group begins with the book.
        """
        with self._lock:
            self._advance(transaction.committed(self._position))
            pending = transaction.pending()
            if not pending:
                return self._book
            position, known, book = self._group
            if position != self._position or any(a is not b for a, b in zip_longest(known, pending[: len(known)])):
                known, book = (), self._book.copy()
            for record in pending[len(known) :]:
                book.add(record.event)
            self._group = (self._position, pending, book)
            return book

    def _held(self, transaction: Transaction, besides: int | None = None) -> list[Footprint]:
        """What the holds of other plans keep aside."""
        holds = [hold for hold in transaction.holds(time.time()) if hold.fence != besides]
        return self._accountant.all_footprints(event for hold in holds for event in hold.events)

    def _require_budget(self, book: Book, others: list[Footprint], more: Iterable[Footprint]) -> int:
        with self._lock:
            before, after = book.spent(others), book.spent([*others, *more])
        if after > self.budget.units:
            left = left_of(max(self.budget.units - before, 0))
            raise BudgetError(asked=from_units(after - before), left=left, unit=self.budget.mode.value)
        return max(after - before, 0)  # a bound can fall when more columns come into use

    def _take_from_hold(self, transaction: Transaction, event: Measured | Refined, fence: int) -> list[Event]:
        """Replace the hold by what remains of its plan; an event that was not planned does not fit."""
        hold = next((h for h in transaction.holds(time.time()) if h.fence == fence), None)
        if hold is None:
            raise Stale("the hold has expired")
        for place, planned in enumerate(hold.events):
            if same_purchase(planned, event):
                rest = (*hold.events[:place], *hold.events[place + 1 :])
                remaining = Hold(fence=fence, analyst=hold.analyst, expires=hold.expires, events=rest)
                transaction.put_hold(remaining, replace=True)
                return list(rest)
        raise Stale("this is not part of the plan that was held")

    # -- data and log --------------------------------------------------------------------------------------------

    def _opened(self) -> tuple[int, Tables]:
        """The current version and its counts; data that are not what the log says they are stop the data set."""
        with self._opening:
            if self._data is None or self._data[0] != self._version:
                version = self.version()
                self.close()
                source = self._open_source(self._secret("data key"))
                if source.content().encode() != self._secret(f"content {version}"):
                    source.close()
                    raise SourceError(CHANGED)
                self._data = version, source, Tables(source)
            return self._data[0], self._data[2]

    def _secret(self, name: str) -> bytes:
        value = self.ledger.commit(lambda transaction: transaction.secret(name))
        if value is None:
            raise SourceError("no version of the data has been declared; the data owner runs: bursar version")
        return value

    def close(self) -> None:
        """Forget the exact counts and close the source."""
        with self._opening:
            if self._data is not None:
                self._data[1].close()
            self._data = None

    def _new_profile(self) -> Profile:
        return Sequential(self._own_profile) if self._sequential else self._own_profile()

    def _own_profile(self) -> Profile:
        around = AddRemove(self.domain)
        replaced = self._accountant.unit.neighbours is Neighbours.REPLACE_ONE
        return ReplaceOne(self.domain, around) if replaced else around

    def _advance(self, records: Sequence[Record]) -> None:
        for record in records:
            self._blocks.add(record)
            self._book.add(record.event)
            if isinstance(record.event, Versioned):
                self._version = record.event.version
            self._position = record.position


CHANGED = (
    "the data are not the ones that were declared; the data owner looks at what happened and, if the change is "
    "meant, declares it: bursar version"
)
