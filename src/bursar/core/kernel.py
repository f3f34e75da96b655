"""The kernel: the only code that reads exact counts and draws noise.

A verb is one function: check public sizes, read exact counts, then in one commit admit, draw and record; the value
is returned after the commit and not before. See kernel.proof.md for why this keeps the budget.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from hashlib import blake2b
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from bursar.core.accounting import (
    Event,
    Failed,
    Footprint,
    Measured,
    Noise,
    Opened,
    Paid,
    Refined,
    Selected,
    Versioned,
    same_purchase,
    stands_in,
)
from bursar.core.accounts import Accounts, Charge, Owned
from bursar.core.budget import Budget
from bursar.core.domain import Domain, Unit
from bursar.core.extensions.select import NONE_BARRED
from bursar.core.extensions.sparse_vector import Facts
from bursar.core.ledger import Claim, Hold, Ledger, Purpose, Record, Transaction
from bursar.core.limits import LARGEST_ANSWER, check_candidates
from bursar.core.noise.system import Randomness
from bursar.core.public import Public
from bursar.core.queries import LinearMap
from bursar.core.seals import check_sealed, content_names
from bursar.core.source.source import CHANGED, UNDECLARED, Source
from bursar.core.tables import Tables
from bursar.errors import AnalystError, QueryError, SourceError, Stale


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
    ) -> None:
        super().__init__(
            domain=domain, unit=unit, budget=budget, max_rows=max_rows, ledger=ledger, sequential=sequential
        )
        self._open_source, self._randomness = open_source, randomness
        self._group: tuple[int, Sequence[Record], Accounts] = (0, (), self._accounts)  # see `_accounts_with`
        self._opening = threading.RLock()  # guards the data; no work takes it
        self._data: tuple[int, Source, Tables] | None = None  # opened at the first purchase: free answers need none

    # -- verbs ---------------------------------------------------------------------------------------------------

    def measure(
        self,
        strategy: LinearMap,
        noise: Noise,
        *,
        analyst: str,
        purpose: Purpose,
        at_most: int,
        claim: Claim | None = None,
        fence: int | None = None,
    ) -> tuple[Record, Charge]:
        """Noisy answers to all rows of a strategy, one commit; with what it was charged, in units of 2^-50.

        Stale is raised, and nothing charged, where it would cost whoever pays more than `at_most` or the data version
        changed.
        """
        self.check(strategy)
        version, tables = self._opened()
        check_sealed(strategy, self.domain, tables.sealed)
        event = Measured(strategy=strategy, noise=noise, version=version)
        exact = tables.answers(strategy)

        def work(transaction: Transaction) -> tuple[Record, Charge]:
            charge = self._admit(transaction, event, analyst=analyst, at_most=at_most, claim=claim, fence=fence)
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
        purpose: Purpose,
        at_most: int,
        claim: Claim | None = None,
        fence: int | None = None,
    ) -> tuple[Record, Charge]:
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
        check_sealed(measured, self.domain, tables.sealed)
        exact = tables.answers(measured)[event.rows]

        def work(transaction: Transaction) -> tuple[Record, Charge]:
            with self._lock:
                self._advance(transaction.committed(self._position))
                shown = self._blocks.values(event, transaction.pending())
            charge = self._admit(transaction, event, analyst=analyst, at_most=at_most, claim=claim, fence=fence)
            values = exact + self._randomness.refine(shown - exact, before, noise)
            return transaction.append(analyst=analyst, purpose=purpose, event=event, values=values), charge

        return self.ledger.commit(work)

    def select(
        self,
        candidates: LinearMap,
        estimates: NDArray[np.int64],
        *,
        count: int,
        scale: float,
        barred: NDArray[np.int64] = NONE_BARRED,
        analyst: str,
        purpose: Purpose,
        at_most: int,
        claim: Claim | None = None,
        fence: int | None = None,
    ) -> tuple[Record, Charge]:
        """The numbers of `count` candidates, picked by their distances |q_i(D) - estimate_i|, one after the other,
        one commit; with what it was charged.

        Stale is raised where `measure` raises it.
        """
        version = self.version()
        around, out = check_candidates(candidates, estimates, barred, count, self.domain, self.max_rows)
        near, bars = _digest(around), _digest(out)
        event = Selected(candidates=candidates, count=count, scale=scale, version=version, estimates=near, barred=bars)
        self._accountant.footprints(event)  # refuses what has no price before the data are touched
        opened, tables = self._opened()
        if opened != version:
            raise Stale("the data version changed meanwhile")
        check_sealed(candidates, self.domain, tables.sealed)
        scores = np.subtract(tables.answers(candidates), around, out=around)  # millions: no more copies
        np.abs(scores, out=scores)
        scores[out] = -1

        def work(transaction: Transaction) -> tuple[Record, Charge]:
            charge = self._admit(transaction, event, analyst=analyst, at_most=at_most, claim=claim, fence=fence)
            values = self._randomness.select(scores, count=count, scale=scale)
            return transaction.append(analyst=analyst, purpose=purpose, event=event, values=values), charge

        return self.ledger.commit(work)

    def open(
        self, event: Opened, *, analyst: str, purpose: Purpose, at_most: int, fence: int, claim: Claim | None = None
    ) -> tuple[Record, Charge]:
        """Open a sparse vector for the plan that holds it, one commit; with what it was charged.

        The whole price is booked before anything is tested. Stale is raised where `measure` raises it.
        """
        if event.scope.largest() * self.max_rows > LARGEST_ANSWER:
            raise QueryError("the scope of this sparse vector is too large for max_rows")

        def work(transaction: Transaction) -> tuple[Record, Charge]:
            charge = self._admit(transaction, event, analyst=analyst, at_most=at_most, claim=claim, fence=fence)
            facts: Facts = {"analyst": analyst, "purpose": purpose}
            return self._vectors.start(transaction, self._randomness, event, fence, facts), charge

        record, charge = self.ledger.commit(work)
        with self._lock:
            self._advanced()
            self._vectors.leased(fence, [record.position])
        return record, charge

    def test(
        self,
        instance: int,
        query: LinearMap,
        estimate: int,
        *,
        analyst: str,
        purpose: Purpose,
        fence: int,
        claim: Claim | None = None,
    ) -> bool:
        """Whether a test of a sparse vector is above, |q(D) - estimate| + noise >= noisy threshold, one commit.

        A pass writes nothing to the log; a test that is above closes the instance in the same commit. Stale is raised,
        and nothing drawn, where the instance is not open or not leased by the plan, or the data version changed.
        """
        with self._lock:
            _, opened = self._vectors.find(instance)
        asked = self.check_test(opened, query, estimate)
        version, tables = self._opened()
        distance = abs(int(asked.apply(tables.counts)[0]) - estimate)
        event = Failed(instance=instance, query=asked, estimate=estimate, version=version)
        facts: Facts = {"analyst": analyst, "purpose": purpose}

        def work(transaction: Transaction) -> bool:
            self._require_key(transaction, claim)
            with self._lock:
                self._advance(transaction.committed(self._position))
                if version != self._version:
                    raise Stale("the data version changed meanwhile")
                return self._vectors.run(transaction, self._randomness, event, distance, fence, facts)

        above = self.ledger.commit(work)
        self._vectors.returned(instance)
        return above

    def hold(self, events: Sequence[Event], *, analyst: str, seconds: float) -> Hold:
        """Set the budget for a plan of several verbs aside; refused, like a verb, if it does not fit.

        Sparse vectors that the plan may test (a `Failed` of them is planned) are leased to it. Busy is raised where
        another plan is testing one; Stale where one is not open or had to be closed.
        """
        tested = sorted({event.instance for event in events if isinstance(event, Failed)})

        def work(transaction: Transaction) -> Hold | None:
            accounts = self._accounts_with(transaction)
            with self._lock:
                found = [self._vectors.find(instance, transaction.pending()) for instance in tested]
            if accounts.shares and any(record.analyst != analyst for record, _ in found):
                raise AnalystError("where there are shares, a sparse vector is tested by whoever opened it")
            if self._vectors.close_stranded(transaction, found, time.time()):
                return None
            planned = self._accountant.all_footprints(events)
            self._require_budget(accounts, analyst, self._held(transaction), planned)
            expires = time.time() + seconds
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

    def allot(self, shares: Mapping[str, Fraction]) -> None:
        """For the data owner: give out shares of the budget, one commit; AnalystError where they cannot be given."""

        def work(transaction: Transaction) -> None:
            accounts, held = self._accounts_with(transaction), self._held(transaction)
            with self._lock:
                event = accounts.allotment(shares, held)
            if dict(event.shares) != accounts.shares:
                nothing = np.zeros(0, np.int64)
                transaction.append(
                    analyst="owner", purpose=Purpose("declared the shares", "owner"), event=event, values=nothing
                )

        self.ledger.commit(work)

    # -- inside a commit -----------------------------------------------------------------------------------------

    def _admit(
        self,
        transaction: Transaction,
        event: Paid,
        *,
        analyst: str,
        at_most: int,
        claim: Claim | None,
        fence: int | None,
    ) -> Charge:
        self._require_key(transaction, claim)
        accounts = self._accounts_with(transaction)
        declared = [record for record in transaction.pending() if isinstance(record.event, Versioned)]
        if declared or event.version != self._version:
            raise Stale("the data version changed meanwhile")
        check_sealed(_looking(event), self.domain, self._seals.sealed)
        others = self._held(transaction, besides=fence)
        if fence is not None:
            others += self._owned([self._take_from_hold(transaction, event, fence)])
        more = self._accountant.footprints(event)
        charge = self._require_budget(accounts, analyst, others, more)
        if others:
            # As the log will tell it: beside what is only held, each part of a plan could look free.
            charge = self._require_budget(accounts, analyst, [], more)
        if charge.account > at_most:
            raise Stale("the price has risen meanwhile")
        return charge

    def _require_key(self, transaction: Transaction, claim: Claim | None) -> None:
        if claim is not None and transaction.claim(claim, time.time()) is not None:
            raise Stale("this key has been answered meanwhile")

    def _accounts_with(self, transaction: Transaction) -> Accounts:
        """The accounts with everything durable, and with this group's earlier members, which are not durable yet.

        The members are added to a copy, which is carried on from work to work of the same group. A group that failed
        leaves nothing behind: its records never come again, and the copy of the next group begins with the accounts.
        """
        with self._lock:
            self._advance(transaction.committed(self._position))
            pending = transaction.pending()
            if not pending:
                return self._accounts
            position, known, accounts = self._group
            if position != self._position or any(a is not b for a, b in zip_longest(known, pending[: len(known)])):
                known, accounts = (), self._accounts.copy()
            for record in pending[len(known) :]:
                accounts.add(record)
            self._group = (self._position, pending, accounts)
            return accounts

    def _held(self, transaction: Transaction, besides: int | None = None) -> list[Owned]:
        """What the holds of other plans keep aside."""
        return self._owned(hold for hold in transaction.holds(time.time()) if hold.fence != besides)

    def _owned(self, holds: Iterable[Hold]) -> list[Owned]:
        return [(hold.analyst, more) for hold in holds for more in self._accountant.all_footprints(hold.events)]

    def _require_budget(
        self, accounts: Accounts, analyst: str, others: Sequence[Owned], more: Sequence[Footprint]
    ) -> Charge:
        with self._lock:
            return accounts.admit(analyst, others, more)

    def _take_from_hold(self, transaction: Transaction, event: Paid, fence: int) -> Hold:
        """Replace the hold by what remains of its plan, and return that; what was not planned does not fit."""
        hold = next((h for h in transaction.holds(time.time()) if h.fence == fence), None)
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

    def _opened(self) -> tuple[int, Tables]:
        """The current version and its counts; data that are not what the log says they are stop the data set.

        They are read again when partitions were sealed since: what those held before is not what they hold for good.
        """
        if self._axis is not None:
            self.version()  # what was sealed since the log was read last can be asked about
        with self._opening:
            known = None if self._data is None else (self._data[0], self._data[2].sealed)
            if self._data is None or known != (self._version, self._seals.sealed):
                with self._lock:
                    self._advanced()
                    version, sealed = self._version, self._seals.sealed
                self.close()
                source = self._open_source(self._secret("data key"))
                names = content_names(version, self._axis, sealed)
                if [content.encode() for content in source.content()[: len(names)]] != self._secrets(names):
                    source.close()
                    raise SourceError(CHANGED)
                self._data = version, source, Tables(source, sealed=sealed)
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


def _digest(numbers: NDArray[np.int64]) -> str:
    return blake2b(numbers.astype("<i8", copy=False).data, digest_size=16).hexdigest()


def _looking(event: Paid) -> LinearMap:
    """A map that is not zero wherever the event looks."""
    match event:
        case Refined():
            return event.measured
        case Opened():
            return event.scope
        case Selected():
            return event.candidates
    return event.strategy
