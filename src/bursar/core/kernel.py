"""The kernel: the only code that reads exact counts and draws noise.

A verb is one function: check public sizes, read exact counts, then in one commit admit, draw and record; the value
is returned after the commit and not before. See kernel.proof.md for why this keeps the budget.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING, NotRequired, TypedDict, Unpack

from bursar.arrays import Integers
from bursar.core.accounting import Event, Footprint, Measured, Noise, Paid, Versioned, same_purchase
from bursar.core.accounting.kind import ROOT
from bursar.core.accounts import Charge
from bursar.core.budget import Budget
from bursar.core.domain import Domain, Unit
from bursar.core.extensions.carried import hand_over
from bursar.core.extensions.discovery import discover
from bursar.core.extensions.open_keys import name_keys
from bursar.core.extensions.open_texts import give_cells
from bursar.core.extensions.partitions import check_sealed, content_names
from bursar.core.extensions.refine import refine
from bursar.core.extensions.relations import Relation
from bursar.core.extensions.select import select_rows, stands_in
from bursar.core.extensions.shares import SharedAccounts, allot
from bursar.core.extensions.sparse_vector import instances_tested, may_lease, open_vector, run_test
from bursar.core.ledger import Claim, Hold, Ledger, Purpose, Record, Transaction
from bursar.core.noise.system import Randomness
from bursar.core.public import Public
from bursar.core.queries import LinearMap
from bursar.core.source.source import CHANGED, UNDECLARED, Source
from bursar.core.tables import Tables
from bursar.errors import SourceError, Stale

if TYPE_CHECKING:
    from bursar.core.accounts import Owned


class PaymentTerms(TypedDict):
    """Who pays for a purchase, for which question, and at most how much, in units of 2^-50."""

    analyst: str
    purpose: Purpose
    at_most: int
    claim: NotRequired[Claim | None]  # the key that is being answered
    fence: NotRequired[int | None]  # of the hold, where the plan has one


class Kernel(Public):
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
        table: str = ROOT,
        relations: Sequence[Relation] = (),
    ) -> None:
        super().__init__(
            domain=domain,
            unit=unit,
            budget=budget,
            max_rows=max_rows,
            ledger=ledger,
            sequential=sequential,
            table=table,
            relations=relations,
        )
        self._open_source, self._randomness = open_source, randomness
        ledger.while_waiting(self.position)  # so that little is left to be added up while nobody else can write
        self._group: tuple[int, Sequence[Record], SharedAccounts] = (0, (), self._accounts)  # see `_accounts_with`
        self._opening = threading.RLock()  # guards the data; no work takes it
        self._data: tuple[int, Source, Tables] | None = None  # opened at the first purchase: free answers need none

    # -- verbs ---------------------------------------------------------------------------------------------------

    def measure(self, strategy: LinearMap, noise: Noise, **terms: Unpack[PaymentTerms]) -> tuple[Record, Charge]:
        """Noisy answers to all rows of a strategy, one commit; with what it was charged, in units of 2^-50.

        Stale is raised, and nothing charged, where it would cost the payer more than `at_most` or the data version
        changed.
        """
        self.check(strategy)
        version, tables = self._opened()
        check_sealed(strategy, self.domain, tables.sealed)
        exact = tables.answers(strategy)
        event = Measured(strategy=strategy, noise=noise, version=version)
        return self._buy(event, lambda: exact + self._randomness.draw(noise, strategy.rows), **terms)

    refine, select, open, test, allot = refine, select_rows, open_vector, run_test, allot
    name_keys, discover, hand_over = name_keys, discover, hand_over
    """The extensions: a closed list."""

    def hold(self, events: Sequence[Event], *, analyst: str, seconds: float) -> Hold:
        """Set the budget for a plan of several verbs aside; refused, like a verb, if it does not fit.

        Sparse vectors that the plan may test (a `Failed` of them is planned) are leased to it. Busy is raised where
        another plan is testing one; Stale where one is not open or had to be closed.
        """
        tested = instances_tested(events)

        def work(transaction: Transaction) -> Hold | None:
            accounts = self._accounts_with(transaction)
            if tested and not may_lease(self, transaction, tested, None if not accounts.shares else analyst):
                return None
            planned = accounts.total.all_footprints(events)
            self._require_budget(accounts, analyst, self._held(transaction, accounts), planned)
            expires = self.ledger.now() + seconds
            hold = Hold(fence=transaction.next_fence(), analyst=analyst, expires=expires, events=tuple(events))
            transaction.put_hold(hold, replace=False)
            self._vectors.lease(transaction, tested, hold.fence)
            return hold

        hold = self.ledger.commit(work)
        if hold is None:
            raise Stale("a sparse vector had to be closed")
        self._vectors.leased(hold.fence, tested)
        return hold

    def drop_hold(self, fence: int) -> None:
        """Drop a hold, and give back the sparse vectors that were leased with it; those with a test that was drawn and
        never returned are closed."""

        def work(transaction: Transaction) -> None:
            with self._lock:
                self._advance(transaction.committed(self._position))
                self._vectors.give_back(transaction, fence)
            transaction.drop_hold(fence)

        self.ledger.commit(work)
        self._vectors.given_back(fence)

    # -- purchases ----------------------------------------------------------------------------------------------

    def _answers(self, event: Paid, strategy: LinearMap) -> Integers:
        """Exact answers for an event of the present version that was made before the data were touched."""
        self._accountant.footprints(event)  # refuses what has no price before the data are touched
        version, tables = self._opened()
        if version != event.version:
            raise Stale("the data version changed meanwhile")
        check_sealed(strategy, self.domain, tables.sealed)
        return tables.answers(strategy)

    def _buy(self, event: Paid, draw: Callable[[], Integers], **terms: Unpack[PaymentTerms]) -> tuple[Record, Charge]:
        """Admit, draw and record, one commit."""

        def work(transaction: Transaction) -> tuple[Record, Charge]:
            charge = self._admit(transaction, event, **terms)
            return self._append(transaction, event, draw(), **terms), charge

        return self.ledger.commit(work)

    @staticmethod
    def _append(transaction: Transaction, event: Paid, values: Integers, **terms: Unpack[PaymentTerms]) -> Record:
        return transaction.append(analyst=terms["analyst"], purpose=terms["purpose"], event=event, values=values)

    # -- inside a commit -----------------------------------------------------------------------------------------

    def _admit(self, transaction: Transaction, event: Paid, **terms: Unpack[PaymentTerms]) -> Charge:
        analyst, fence = terms["analyst"], terms.get("fence")
        self._require_key(transaction, terms.get("claim"))
        accounts = self._accounts_with(transaction)
        declared = [record for record in transaction.pending() if isinstance(record.event, Versioned)]
        if declared or event.version != self._version:
            raise Stale("the data version changed meanwhile")
        check_sealed(event.looks_at, self.domain, self._seals.sealed)
        others = self._held(transaction, accounts, besides=fence)
        if fence is not None:
            others += self._owned([self._take_from_hold(transaction, event, fence)], accounts)
        more = accounts.total.footprints(event)
        charge = self._require_budget(accounts, analyst, others, more)
        if others:
            # As the log will tell it: beside what is only held, each part of a plan could look free.
            charge = self._require_budget(accounts, analyst, [], more)
        if charge.account > terms["at_most"]:
            raise Stale("the price has risen meanwhile")
        return charge

    def _require_key(self, transaction: Transaction, claim: Claim | None) -> None:
        if claim is not None and transaction.claim(claim, self.ledger.now()) is not None:
            raise Stale("this key has been answered meanwhile")

    def _accounts_with(self, transaction: Transaction) -> SharedAccounts:
        """The accounts with everything durable, and with this group's earlier members, which are not durable yet.

        The members are added to a copy, which is carried on from work to work of the same group. A group that failed
        leaves nothing behind: its records never come again, and the copy of the next group begins with the accounts.
        """
        with self._lock:
            self._advance(transaction.committed(self._position))
            pending = transaction.pending()
            if not pending:
                return self._accounts
            position, booked, accounts = self._group
            if position != self._position or any(a is not b for a, b in zip_longest(booked, pending[: len(booked)])):
                booked, accounts = (), self._accounts.copy()
            for record in pending[len(booked) :]:
                accounts.add(record)
            self._group = (self._position, pending, accounts)
            return accounts

    def _held(self, transaction: Transaction, accounts: SharedAccounts, besides: int | None = None) -> list[Owned]:
        """What the holds of other plans keep aside, about whatever table."""
        return self._owned((hold for hold in transaction.holds(self.ledger.now()) if hold.fence != besides), accounts)

    @staticmethod
    def _owned(holds: Iterable[Hold], accounts: SharedAccounts) -> list[Owned]:
        return [(hold.analyst, more) for hold in holds for more in accounts.total.all_footprints(hold.events)]

    def _require_budget(
        self, accounts: SharedAccounts, analyst: str, others: Sequence[Owned], more: Sequence[Footprint]
    ) -> Charge:
        with self._lock:
            return accounts.admit(analyst, others, more)

    def _take_from_hold(self, transaction: Transaction, event: Paid, fence: int) -> Hold:
        """Replace the hold by what remains of its plan, and return that; what was not planned does not fit."""
        hold = next((h for h in transaction.holds(self.ledger.now()) if h.fence == fence), None)
        if hold is None:
            raise Stale("the hold has expired")
        for fits in (same_purchase, stands_in):
            for place, planned in enumerate(hold.events):
                if fits(planned, event):
                    remaining = replace(hold, events=(*hold.events[:place], *hold.events[place + 1 :]))
                    transaction.put_hold(remaining, replace=True)
                    return remaining
        raise Stale("this is not part of the plan that was held")

    # -- data ---------------------------------------------------------------------------------------------------

    def open_data(self) -> None:
        """Open the data now, and not at the first purchase; SourceError where they are not what the log says."""
        self._opened()

    def _opened(self) -> tuple[int, Tables]:
        """The current version and its counts; data that are not what the log says they are stop the data set.

        They are read again when partitions were sealed since: what those held before is not what they hold for good.
        """
        if self._axis is not None or self._keys.capacities:
            self.version()  # what was sealed or named since the log was read last can be asked about
        with self._opening:
            present = None if self._data is None else (self._data[0], self._data[2].sealed)
            if self._data is None or present != (self._version, self._seals.sealed):
                with self._lock:
                    self._advanced()
                    version, sealed = self._version, self._seals.sealed
                self.close()
                source = self._open_source(self._secret("data key"))
                names = content_names(version, self._axis, sealed)
                if [content.encode() for content in source.content(len(names))[: len(names)]] != self._secrets(names):
                    source.close()
                    raise SourceError(CHANGED)
                self._data = version, source, Tables(source, domain=self.domain, sealed=sealed)
            with self._lock:
                texts = self._keys.texts(self.table)
            version, source, tables = self._data
            if tables.texts != texts:
                give_cells(source, texts)
                self._data = version, source, Tables(source, domain=self.domain, sealed=tables.sealed, texts=texts)
            return self._data[0], self._data[2]

    def _secrets(self, names: Sequence[str]) -> list[bytes | None]:
        return self.ledger.commit(lambda transaction: [transaction.secret(name) for name in names])

    def _secret(self, name: str) -> bytes:
        (value,) = self._secrets([name])
        if value is None:
            raise SourceError(UNDECLARED)
        return value

    def close(self) -> None:
        """Forget the exact counts and close the source."""
        with self._opening:
            if self._data is not None:
                self._data[1].close()
            self._data = None
