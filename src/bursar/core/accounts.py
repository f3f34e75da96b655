"""Accounts: beside the data set's book, one for each analyst who has a share, of the events this analyst caused."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

from bursar.core.accounting import Allotted, Book, Event, Footprint, Versioned, from_units, left_of
from bursar.core.budget import Budget
from bursar.core.ledger import Record
from bursar.errors import AnalystError, BudgetError

Owned = tuple[str, Footprint]
"""A loss, and who would cause it."""

REST = ""
"""The account of all who have no share: what was spent before there were shares."""


class Charge(NamedTuple):
    """By how much something raises what is spent, in units of 2^-50."""

    total: int  # of the data set
    account: int  # of whoever pays: the analyst's account; the data set where there are no shares

    def plus(self, more: Charge) -> Charge:
        return Charge(total=self.total + more.total, account=self.account + more.account)


FREE = Charge(total=0, account=0)


@dataclass(frozen=True, kw_only=True)
class Account:
    """What somebody may spend and has spent, in units of 2^-50."""

    cap: int
    spent: int

    @property
    def left(self) -> int:
        return max(self.cap - self.spent, 0)


@dataclass
class Accounts:
    """The data set's book, and under shares the book of each analyst, advanced record by record.

    Guarantees: what is spent is the loss of the whole log or more. Where shares are declared, the accounts of all
    analysts and of the rest add up to no more than the budget, so nobody who keeps within a share meets the limit of
    the data set.
    """

    budget: Budget
    new_book: Callable[[], Book]
    total: Book
    shares: dict[str, Fraction] = field(default_factory=dict)  # as the log declared them last
    past: list[tuple[int, str, Event]] = field(default_factory=list)  # positions, analysts and events of the log
    books: dict[str, Book] = field(default_factory=dict)  # by analyst, and of the rest; made when they are needed

    def add(self, record: Record) -> None:
        entry = (record.position, record.analyst, record.event)
        self.total.add(record.event, record.position)
        self.past.append(entry)
        if isinstance(record.event, Allotted):
            self.shares, self.books = dict(record.event.shares), {}
        elif self.books:
            self._enter(*entry)

    def copy(self) -> Accounts:
        books = {name: book.copy() for name, book in self.books.items()}
        parts = (self.total.copy(), dict(self.shares), list(self.past), books)
        return Accounts(self.budget, self.new_book, *parts)

    def spent(self, plus: Sequence[Owned] = ()) -> int:
        """Units of 2^-50 after everything so far and `plus`: a bound of everybody's loss.

        The sum over the accounts is such a bound too, and counts where the data set's own is too loose for the budget.
        """
        bound = self.total.spent(footprint for _, footprint in plus)
        if bound <= self.budget.units or not self.shares:
            return bound
        more: dict[str, list[Footprint]] = defaultdict(list)
        for analyst, footprint in plus:
            more[self._account(analyst)].append(footprint)
        return min(bound, sum(book.spent(more[name]) for name, book in self._books().items()))

    def book_of(self, analyst: str) -> Book:
        """The book of whoever pays for what the analyst asks; AnalystError for somebody without a share."""
        if self.shares and analyst not in self.shares:
            raise AnalystError(
                f"{analyst!r} has no share of this budget, and only analysts who have one can ask\n"
                "try: the name you were given, on the command line as --as NAME; the data owner gives out shares under "
                "[analysts]"
            )
        return self._book(analyst)

    def cap_of(self, analyst: str) -> int:
        """What whoever pays may spend, in units of 2^-50, rounded down."""
        return share_of(self.budget, self.shares[analyst]) if self.shares else self.budget.units

    def admit(self, analyst: str, others: Sequence[Owned], more: Sequence[Footprint]) -> Charge:
        """What `more` by the analyst costs beside what `others` have set aside; refused where it does not fit.

        Edge cases: the charge is 0 where a bound falls, as it can when more columns come into use.
        """
        book, account = self.book_of(analyst), None
        if self.shares:
            own = [footprint for who, footprint in others if who == analyst]
            limit = f"is left of the share of {analyst}"
            account = self._raised(book.spent(own), book.spent([*own, *more]), self.cap_of(analyst), limit)
        planned = [*others, *((analyst, footprint) for footprint in more)]
        total = self._raised(self.spent(others), self.spent(planned), self.budget.units, "is left")
        return Charge(total=total, account=total if account is None else account)

    def price(self, analyst: str, more: Sequence[Footprint]) -> Charge:
        """What `more` by the analyst would cost, whatever is left."""
        book = self._book(analyst)
        account = max(book.spent(more) - book.spent(), 0)
        if not self.shares:
            return Charge(total=account, account=account)
        return Charge(total=max(self.spent([(analyst, one) for one in more]) - self.spent(), 0), account=account)

    def play(self, record: Record) -> Charge:
        """Add a record, and say by how much it raised what is spent."""
        book = self._book(record.analyst) if self.shares else None
        before, had = self.spent(), 0 if book is None else book.spent()
        self.add(record)
        total = max(self.spent() - before, 0)
        return Charge(total=total, account=total if book is None else max(book.spent() - had, 0))

    def allotment(self, shares: Mapping[str, Fraction], holds: Sequence[Owned]) -> Allotted:
        """The event that declares new shares; refused where they would promise what was spent, or take away from it.

        Guarantees: with the new shares, each analyst's account with the holds is within the share, and all shares and
        the account of the rest are within the budget together.
        """
        event = Allotted(shares=tuple(sorted(shares.items())))
        new, unit = self.copy(), self.budget.mode.unit
        new.shares, new.books = dict(event.shares), {}

        def spent(accounts: Accounts, name: str) -> int:
            return accounts._books()[name].spent(f for who, f in holds if accounts._account(who) == name)

        for name in self.shares:
            if name not in new.shares and (gone := spent(self, name)) > 0:
                raise AnalystError(f"{name} has spent {unit} {from_units(gone):.6g} and cannot be left out")
        for name in new.shares:
            if (gone := spent(new, name)) > (cap := new.cap_of(name)):
                amount = f"{name} has spent {unit} {from_units(gone):.6g}"
                raise AnalystError(f"{amount}, and a share cannot be smaller than that: this one is {left_of(cap):.6g}")
        promised, free = sum(map(new.cap_of, new.shares)), self.budget.units
        free -= spent(new, REST) if new.shares else 0
        if promised > free:
            raise AnalystError(
                f"the shares are {unit} {left_of(promised):.6g} together, and {left_of(max(free, 0)):.6g} can be given "
                "out: the rest of the budget was spent by analysts who have no share"
            )
        return event

    def _raised(self, before: int, after: int, cap: int, limit: str) -> int:
        if after > cap:
            asked, left = from_units(after - before), left_of(max(cap - before, 0))
            raise BudgetError(asked=asked, left=left, unit=self.budget.mode.unit, limit=limit)
        return max(after - before, 0)

    def _book(self, analyst: str) -> Book:
        return self._books()[self._account(analyst)] if self.shares else self.total

    def _account(self, analyst: str) -> str:
        return analyst if analyst in self.shares else REST

    def _books(self) -> dict[str, Book]:
        if not self.books:
            self.books = {name: self.new_book() for name in (*self.shares, REST)}
            for entry in self.past:
                self._enter(*entry)
        return self.books

    def _enter(self, position: int, analyst: str, event: Event) -> None:
        books: Iterable[Book] = (
            self.books.values() if isinstance(event, Versioned) else (self.books[self._account(analyst)],)
        )
        for book in books:
            book.add(event, position)


def share_of(budget: Budget, fraction: Fraction) -> int:
    """A fraction of a budget in units of 2^-50, rounded down."""
    return budget.units * fraction.numerator // fraction.denominator
