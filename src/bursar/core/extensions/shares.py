"""Shares: the budget divided among analysts, each with an account of what this one caused; see `shares.proof.md`."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING

import numpy as np

from bursar.core.accounting.kind import Fields, FreeEvent, Versioned
from bursar.core.accounts import Account, Accounts, Charge
from bursar.core.extensions.relations import Added
from bursar.core.noise.law import from_units, left_of
from bursar.errors import AnalystError, ConfigError, LedgerError

if TYPE_CHECKING:
    from bursar.core.accounting.accountant import Book
    from bursar.core.accounting.events import Event
    from bursar.core.accounting.profile import Footprint
    from bursar.core.accounts import Owned
    from bursar.core.budget import Budget
    from bursar.core.extensions.saved_state import Tree
    from bursar.core.kernel import Kernel
    from bursar.core.ledger import Record, Transaction
    from bursar.core.public import Public

    Entry = tuple[int, str, Event]
    """The position, the analyst and the event of a record."""

MOST_PARTS = 10**60
"""Largest denominator of a share."""

REST = ""
"""The account of all who have no share: what was spent before there were shares."""


@dataclass(frozen=True, kw_only=True)
class Allotted(FreeEvent):
    """The data owner gave out shares of the budget; those of the last such event are in force. No shares: one budget.

    Guarantees: everybody has one share, above 0; together they are at most 1.
    Edge cases: refused are fractions of more than 60 digits, which the ledger would not read back.
    """

    kind = "allotted"
    shares: tuple[tuple[str, Fraction], ...]

    def __post_init__(self) -> None:
        names, fractions = [name for name, _ in self.shares], [fraction for _, fraction in self.shares]
        if not all(names) or len(set(names)) < len(names):
            raise ConfigError("every analyst has a name of their own")
        if any(fraction <= 0 for fraction in fractions) or sum(fractions) > 1:
            raise ConfigError("shares lie above 0 and are at most 1 together")
        if any(fraction.denominator > MOST_PARTS for fraction in fractions):
            raise ConfigError("a share has too many digits")

    def fields(self) -> dict[str, object]:
        return {"kind": self.kind, "shares": {name: str(fraction) for name, fraction in self.shares}}

    @staticmethod
    def read(fields: Fields) -> Allotted:
        shares = fields.take("shares", dict)
        return Allotted(shares=tuple(sorted((name, _fraction(text)) for name, text in shares.items())))


def _fraction(text: str) -> Fraction:
    """A fraction in lowest terms; no other text stands for it, and none that would fill the memory."""
    if re.fullmatch(r"[1-9][0-9]{0,99}(/[1-9][0-9]{0,99})?", text) is None or str(Fraction(text)) != text:
        raise LedgerError("a fraction cannot be read")
    return Fraction(text)


@dataclass
class SharedAccounts(Accounts):
    """The data set's book, and under shares the book of each analyst, advanced record by record.

    Guarantees: what is spent is the loss of the whole log or more. Where shares are declared, the accounts of all
    analysts and of the rest add up to no more than the budget, so nobody who keeps within a share meets the limit of
    the data set.
    """

    shares: dict[str, Fraction] = field(default_factory=dict)  # as the log declared them last
    past: list[Entry] = field(default_factory=list)  # of the log, after the earlier ones
    books: dict[str, Book] = field(default_factory=dict)  # by analyst, and of the rest; made when they are needed
    earlier: Callable[[], Iterable[Entry]] = tuple  # entries before `past`, read again where they are needed

    def add(self, record: Record) -> None:
        entry = (record.position, record.analyst, record.event)
        super().add(record)
        self.past.append(entry)
        if type(record.event) is Allotted:
            shares = dict(record.event.shares)
            self.shares, self.books = shares, self.books if shares.keys() == self.shares.keys() else {}
        if self.books:
            self._enter(*entry)

    def copy(self) -> SharedAccounts:
        """Accounts of their own with the same entries; those so far are shared, and not copied."""
        books = {name: book.copy() for name, book in self.books.items()}
        earlier = partial(self._entries, len(self.past))
        return SharedAccounts(self.budget, self.new_book, self.total.copy(), dict(self.shares), [], books, earlier)

    def _entries(self, end: int | None = None) -> Iterable[Entry]:
        return chain(self.earlier(), islice(self.past, end))

    def state(self) -> Tree:
        """The books and shares as plain values: that of the data set, and under shares those of all analysts."""
        shares = [[name, str(fraction)] for name, fraction in self.shares.items()]
        books = [[name, book.state()] for name, book in self._books().items()] if self.shares else []
        return [self.total.state(), shares, books]

    def restore(self, state: Tree, earlier: Callable[[], Iterable[Entry]]) -> None:
        """Make empty accounts into those whose state it is; `earlier` are the entries that they were added up of."""
        total, shares, books = state
        self.total.restore(total)
        self.shares = {name: Fraction(fraction) for name, fraction in shares}
        self.books = {name: self.new_book().restore(book) for name, book in books}
        self.earlier = earlier

    def spent(self, plus: Sequence[Owned] = ()) -> int:
        """Units of 2^-50 after everything so far and `plus`: a bound of everybody's loss.

        The sum over the accounts is such a bound too, and counts where the data set's own is too loose for the budget.
        """
        bound = super().spent(plus)
        if bound <= self.budget.units or not self.shares:
            return bound
        more: dict[str, list[Footprint]] = defaultdict(list)
        for analyst, footprint in plus:
            more[self._account(analyst)].append(footprint)
        return min(bound, sum(book.spent(more[name]) for name, book in self._books().items()))

    def book_of(self, analyst: str) -> Book:
        """The book of the payer for what the analyst asks; AnalystError for somebody without a share."""
        if self.shares and analyst not in self.shares:
            raise AnalystError(
                f"{analyst!r} has no share of this budget, and only analysts who have one can ask\n"
                "try: the name you were given, on the command line as --as NAME; the data owner gives out shares under "
                "[analysts]"
            )
        return self._book(analyst)

    def cap_of(self, analyst: str) -> int:
        """What the payer may spend, in units of 2^-50, rounded down."""
        return share_of(self.budget, self.shares[analyst]) if self.shares else self.budget.units

    def account(self, analyst: str) -> Account:
        """What the analyst may spend and has spent; AnalystError where there are shares, and none for this one."""
        return Account(spent=self.book_of(analyst).spent(), cap=self.cap_of(analyst))

    def admit(self, analyst: str, others: Sequence[Owned], more: Sequence[Footprint]) -> Charge:
        book = self.book_of(analyst)
        if not self.shares:
            return super().admit(analyst, others, more)
        held = [footprint for who, footprint in others if who == analyst]
        limit = f"is left of the share of {analyst}"
        account = self.raised(book.spent(held), book.spent([*held, *more]), self.cap_of(analyst), limit)
        return Charge(total=super().admit(analyst, others, more).total, account=account)

    def price(self, analyst: str, more: Sequence[Footprint]) -> Charge:
        charge = super().price(analyst, more)
        if not self.shares:
            return charge
        book = self._book(analyst)
        return Charge(total=charge.total, account=max(book.spent(more) - book.spent(), 0))

    def play(self, record: Record) -> Charge:
        if not self.shares:
            return super().play(record)
        book = self._book(record.analyst)
        before = book.spent()
        charge = super().play(record)
        return Charge(total=charge.total, account=max(book.spent() - before, 0))

    def allotment(self, shares: Mapping[str, Fraction], holds: Sequence[Owned]) -> Allotted:
        """The event that declares new shares; refused where they would promise what was spent, or take away from it.

        Guarantees: with the new shares, each analyst's account with the holds is within the share, and all shares and
        the account of the rest are within the budget together.
        """
        event = Allotted(shares=tuple(sorted(shares.items())))
        new, unit = self.copy(), self.budget.mode.unit
        new.shares, new.books = dict(event.shares), {}

        def spent(accounts: SharedAccounts, name: str) -> int:
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

    def _book(self, analyst: str) -> Book:
        return self._books()[self._account(analyst)] if self.shares else self.total

    def _account(self, analyst: str) -> str:
        return analyst if analyst in self.shares else REST

    def _books(self) -> dict[str, Book]:
        if not self.books:
            self.books = {name: self.new_book() for name in (*self.shares, REST)}
            for entry in self._entries():
                self._enter(*entry)
        return self.books

    def _enter(self, position: int, analyst: str, event: Event) -> None:
        books: Iterable[Book] = (
            self.books.values() if isinstance(event, Versioned | Added) else (self.books[self._account(analyst)],)
        )
        for book in books:
            book.add(event, position)


def share_of(budget: Budget, fraction: Fraction) -> int:
    """A fraction of a budget in units of 2^-50, rounded down."""
    return budget.units * fraction.numerator // fraction.denominator


def allot(kernel: Kernel, shares: Mapping[str, Fraction]) -> None:
    """For the data owner: give out shares of the budget, one commit; AnalystError where they cannot be given."""
    from bursar.core.ledger import Purpose  # the ledger knows every kind of event

    def work(transaction: Transaction) -> None:
        accounts = kernel._accounts_with(transaction)
        held = kernel._held(transaction, accounts)
        with kernel._lock:
            event = accounts.allotment(shares, held)
        if dict(event.shares) != accounts.shares:
            purpose = Purpose("declared the shares", "owner")
            transaction.append(analyst="owner", purpose=purpose, event=event, values=np.zeros(0, np.int64))

    kernel.ledger.commit(work)


def shares_now(public: Public) -> dict[str, Fraction]:
    """The fractions of the budget that analysts have, as the log declares them; none where all spend together."""
    with public._lock:
        return dict(public._advanced().shares)


def account(public: Public, analyst: str) -> Account:
    """What the analyst may spend and has spent; AnalystError where there are shares, and none for this one."""
    with public._lock:
        return public._advanced().account(analyst)
