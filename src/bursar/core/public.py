"""What everybody may know: functions of the log, the holds, the charter and the clock. Nothing here reads data."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from bursar.core.accounting import (
    Accountant,
    AddRemove,
    Book,
    Event,
    Measured,
    Opened,
    Profile,
    Refined,
    ReplaceOne,
    Sequential,
    Versioned,
)
from bursar.core.accounts import REST, Account, Accounts, Charge
from bursar.core.budget import Budget
from bursar.core.domain import Domain, Neighbours, Unit
from bursar.core.extensions.sparse_vector import SparseVectors
from bursar.core.ledger import Ledger, Record
from bursar.core.limits import check_strategy, check_test
from bursar.core.queries import LinearMap, Product
from bursar.core.seals import PartitionAxis, Seals
from bursar.errors import LedgerError, Stale


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
            accounts = self._advanced()
            return Account(spent=accounts.book_of(analyst).spent(), cap=accounts.cap_of(analyst))

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

    def live(self, analyst: str) -> dict[int, Opened]:
        """The sparse vectors that are open as far as the log says and that the analyst may test, by position.

        Where there are shares, these are the analyst's own: what tests reveal is in the account of whoever opened it.
        """
        with self._lock:
            shares = self._advanced().shares
            return {
                p: event
                for p, (record, event) in self._vectors.opened.items()
                if record.analyst == analyst or not shares
            }

    def check(self, strategy: LinearMap) -> None:
        """Refuse, from public sizes alone, what could overflow or not fit in memory."""
        check_strategy(strategy, self.domain, self.max_rows)

    def check_test(self, opened: Opened, query: LinearMap, estimate: int) -> Product:
        """The query of a test; refused, from public facts alone, if the sparse vector has not paid for it."""
        replaced = self._accountant.unit.neighbours is Neighbours.REPLACE_ONE
        return check_test(opened, query, estimate, one_sign=replaced)

    # -- the log -------------------------------------------------------------------------------------------------

    def _new_profile(self) -> Profile:
        return Sequential(self._own_profile) if self._sequential else self._own_profile()

    def _own_profile(self) -> Profile:
        around = AddRemove(self.domain)
        replaced = self._accountant.unit.neighbours is Neighbours.REPLACE_ONE
        return ReplaceOne(self.domain, around) if replaced else around

    def _empty_accounts(self) -> Accounts:
        return Accounts(self.budget, self.empty_book, self.empty_book())

    def _advanced(self) -> Accounts:
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


Scales = NDArray[np.float64]
Values = NDArray[np.int64]


@dataclass
class Blocks:
    """The measurements of the present version of the data, advanced record by record.

    Guarantees: a lookup costs as much as it asks for rows, whatever the log has seen.
    """

    measured: dict[int, tuple[Measured, Values]] = field(default_factory=dict)  # by position, as they were bought
    refined: dict[int, tuple[Scales, Values]] = field(default_factory=dict)  # of those ever refined: how they are now

    def add(self, record: Record) -> None:
        """Edge cases: a refinement of rows that the log has otherwise raises LedgerError, and changes nothing."""
        event = record.event
        if isinstance(event, Versioned):
            self.measured.clear()
            self.refined.clear()
        elif isinstance(event, Measured):
            self.measured[record.position] = event, record.values
        elif isinstance(event, Refined):
            try:
                self.values(event)
            except Stale as fault:
                raise LedgerError(f"record {record.position} refines rows that the log has otherwise") from fault
            if event.block not in self.refined:
                measured, values = self.measured[event.block]
                self.refined[event.block] = np.full(len(values), measured.noise.scale), values.copy()
            scales, values = self.refined[event.block]
            scales[event.rows], values[event.rows] = event.after.scale, record.values

    def find(self, block: int) -> Measured:
        """The measurement at a position of the log, of the present version of the data."""
        if block not in self.measured:
            raise Stale("the measurement to refine is not of the present version of the data")
        return self.measured[block][0]

    def values(self, event: Refined, pending: Iterable[Record] = ()) -> Values:
        """The values that the rows of a refinement have; `pending` are records that come before it, not added yet.

        Edge cases: Stale where the rows are not the ones of the event, or one of them has not the noise it had there.
        """
        measured = self.find(event.block)
        if event.block in self.refined:
            scales, values = self.refined[event.block]
            scales, values = scales[event.rows], values[event.rows]
        else:
            values = self.measured[event.block][1][event.rows]
            scales = np.full(len(values), measured.noise.scale)
        for record in pending:
            if isinstance(record.event, Refined) and record.event.block == event.block:
                shared = np.intersect1d(event.rows, record.event.rows, assume_unique=True, return_indices=True)
                scales[shared[1]], values[shared[1]] = record.event.after.scale, record.values[shared[2]]
        known = (measured.strategy.digest, measured.version, measured.noise.kind)
        if known != (event.measured.digest, event.version, event.before.kind) or np.any(scales != event.before.scale):
            raise Stale("the rows to refine have become finer meanwhile")
        return values
