"""The data set's book against its budget: what is admitted, what it is charged, what is left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from bursar.core.noise.law import from_units, left_of
from bursar.errors import BudgetError

if TYPE_CHECKING:
    from bursar.core.accounting.accountant import Book
    from bursar.core.accounting.profile import Footprint
    from bursar.core.budget import Budget
    from bursar.core.ledger import Record

    Owned = tuple[str, Footprint]
    """A loss, and who would cause it."""


class Charge(NamedTuple):
    """By how much something raises what is spent, in units of 2^-50."""

    total: int  # of the data set
    account: int  # of the payer: the analyst's account, or the data set where there are no shares

    def plus(self, more: Charge) -> Charge:
        return Charge(total=self.total + more.total, account=self.account + more.account)


FREE = Charge(total=0, account=0)


@dataclass(frozen=True, kw_only=True)
class Account:
    """The limit and the loss of an analyst, or of the data set, in units of 2^-50."""

    cap: int
    spent: int

    @property
    def left(self) -> int:
        return max(self.cap - self.spent, 0)


@dataclass
class Accounts:
    """The data set's book, advanced record by record.

    Guarantees: nothing is admitted that would raise the bound of the whole log, with what is held, above the budget.
    """

    budget: Budget
    new_book: Callable[[], Book]
    total: Book

    def add(self, record: Record) -> None:
        self.total.add(record.event, record.position)

    def spent(self, plus: Sequence[Owned] = ()) -> int:
        """Units of 2^-50 after everything so far and `plus`: a bound of everybody's loss."""
        return self.total.spent(footprint for _, footprint in plus)

    def admit(self, analyst: str, others: Sequence[Owned], more: Sequence[Footprint]) -> Charge:
        """What `more` by the analyst costs beside what `others` have set aside; refused where it does not fit.

        Edge cases: the charge is 0 where a bound falls, as it can when more columns come into use.
        """
        planned = [*others, *((analyst, footprint) for footprint in more)]
        total = self.raised(self.spent(others), self.spent(planned), self.budget.units, "is left")
        return Charge(total=total, account=total)

    def price(self, analyst: str, more: Sequence[Footprint]) -> Charge:
        """What `more` by the analyst would cost, whatever is left."""
        total = max(self.spent([(analyst, footprint) for footprint in more]) - self.spent(), 0)
        return Charge(total=total, account=total)

    def play(self, record: Record) -> Charge:
        """Add a record, and say by how much it raised what is spent."""
        before = self.spent()
        self.add(record)
        total = max(self.spent() - before, 0)
        return Charge(total=total, account=total)

    def raised(self, before: int, after: int, cap: int, limit: str) -> int:
        """By how much a bound rises; BudgetError where it would exceed the cap."""
        if after > cap:
            rise, left = from_units(after - before), left_of(max(cap - before, 0))
            raise BudgetError(asked=rise, left=left, unit=self.budget.mode.unit, limit=limit)
        return max(after - before, 0)
