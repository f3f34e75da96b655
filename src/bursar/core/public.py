"""What everybody may know: functions of the log, the holds, the charter and the clock. Nothing here reads data."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from fractions import Fraction

from bursar.core.accounting import (
    Accountant,
    AddRemove,
    Book,
    Event,
    Profile,
    ReplaceOne,
    Sequential,
    Versioned,
)
from bursar.core.accounts import Account, Charge
from bursar.core.budget import Budget
from bursar.core.domain import Domain, Neighbours, Unit
from bursar.core.extensions.partitions import PartitionAxis, Seals
from bursar.core.extensions.refine import Blocks
from bursar.core.extensions.shares import REST, SharedAccounts
from bursar.core.extensions.sparse_vector import SparseVectors, check_test, live
from bursar.core.ledger import Ledger, Record
from bursar.core.limits import check_strategy
from bursar.core.queries import LinearMap


class Public:
    """The log of a data set, read as far as it goes, and what it says about the budget."""

    def __init__(
        self, *, domain: Domain, unit: Unit, budget: Budget, max_rows: int, ledger: Ledger, sequential: bool = False
    ) -> None:
        """`sequential` charges every measurement its largest loss, as the published systems do."""
        self.domain, self.budget, self.max_rows, self.ledger = domain, budget, max_rows, ledger
        self._accountant = Accountant(mode=budget.mode, unit=unit, order=budget.order)
        self._sequential = sequential
        self._accounts = self._empty_accounts()
        self._blocks, self._vectors = Blocks(), SparseVectors()
        self._axis, self._seals = PartitionAxis.of(domain, unit), Seals()
        self._position = 0
        self._lock = threading.RLock()  # guards what was read of the log; works take it, so no holder of it may commit
        self._version = 0  # the last one declared in the log

    def price(self, events: Iterable[Event]) -> int:
        """What the events would add to what is spent, in units of 2^-50; looks at the log only."""
        return self.charge(events, REST).total

    def charge(self, events: Iterable[Event], analyst: str) -> Charge:
        """What the events would add to what is spent, and to what the analyst has caused; looks at the log only."""
        more = self._accountant.all_footprints(events)
        with self._lock:
            return self._advanced().price(analyst, more)

    def spent(self) -> int:
        """The bound of the profile over everything in the log, in units of 2^-50."""
        with self._lock:
            return self._advanced().spent()

    def spent_by_partition(self) -> list[int]:
        """What is spent on the rows of each partition, in units of 2^-50; one number where there are none."""
        with self._lock:
            return self._advanced().total.spent_by_partition()

    def left(self) -> int:
        """What the profile may still grow by, in units of 2^-50; holds are not counted, admission does that."""
        return max(self.budget.units - self.spent(), 0)

    def held(self, analyst: str | None = None) -> int:
        """What plans that are running have set aside, in units of 2^-50: all of them, or one analyst's account."""
        holds = self.ledger.commit(lambda transaction: transaction.holds(time.time()))
        events = [event for hold in holds if analyst in (None, hold.analyst) for event in hold.events]
        return self.price(events) if analyst is None else self.charge(events, analyst).account

    def shares(self) -> dict[str, Fraction]:
        """The fractions of the budget that analysts have, as the log declares them; none where all spend together."""
        with self._lock:
            return dict(self._advanced().shares)

    def account(self, analyst: str) -> Account:
        """What the analyst may spend and has spent; AnalystError where there are shares, and none for this one."""
        with self._lock:
            return self._advanced().account(analyst)

    def history(self) -> list[tuple[Record, Charge]]:
        """Every record with what it was charged: the log played again from the start."""
        accounts = self._empty_accounts()
        return [(record, accounts.play(record)) for record in self.ledger.records()]

    def empty_book(self) -> Book:
        """A book as it was when nothing had been spent, to add up what some events cost by themselves."""
        return Book(self._accountant, self._new_profile)

    def version(self) -> int:
        """The version of the data that verbs run on: the last one declared."""
        with self._lock:
            self._advanced()
            return self._version

    def sealed(self) -> int | None:
        """How many partitions, from the first one on, can be asked about; None where the data have no partitions."""
        with self._lock:
            self._advanced()
            return None if self._axis is None else self._seals.sealed

    def sizes(self) -> tuple[int, ...]:
        """The numbers of rows of the sealed partitions, where these are public; else nothing."""
        with self._lock:
            self._advanced()
            return self._seals.sizes

    live = live

    def check(self, strategy: LinearMap) -> None:
        """Refuse, from public sizes alone, what could overflow or not fit in memory."""
        check_strategy(strategy, self.domain, self.max_rows)

    check_test = check_test

    # -- the log -------------------------------------------------------------------------------------------------

    def _new_profile(self) -> Profile:
        return Sequential(self._own_profile) if self._sequential else self._own_profile()

    def _own_profile(self) -> Profile:
        around = AddRemove(self.domain)
        replaced = self._accountant.unit.neighbours is Neighbours.REPLACE_ONE
        return ReplaceOne(self.domain, around) if replaced else around

    def _empty_accounts(self) -> SharedAccounts:
        return SharedAccounts(self.budget, self.empty_book, self.empty_book())

    def _advanced(self) -> SharedAccounts:
        self._advance(self.ledger.records(self._position))
        return self._accounts

    def _advance(self, records: Sequence[Record]) -> None:
        for record in records:
            self._blocks.add(record)
            self._vectors.add(record)
            self._accounts.add(record)
            self._seals.add(record.event)
            if isinstance(record.event, Versioned):
                self._version = record.event.version
            self._position = record.position
