"""A grant: what one question may spend, and the only way for an offer to reach the kernel, by the four verbs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from functools import partial
from types import TracebackType
from typing import Protocol, Unpack

import numpy as np
from numpy.typing import NDArray

from bursar.core.accounting import Event, Failed, Measured, Noise, Opened, Refined, Selected
from bursar.core.accounts import FREE, Charge
from bursar.core.extensions.select import NONE_BARRED
from bursar.core.kernel import Kernel, PaymentTerms
from bursar.core.ledger import Claim, Hold, Purpose, Record, Transaction
from bursar.core.noise.system import Randomness
from bursar.core.queries import LinearMap
from bursar.errors import Stale
from bursar.lazy_dataclass import dataclass


@dataclass(frozen=True, kw_only=True)
class Tested:
    """The outcome of one test of a sparse vector, which is all that a test reveals."""

    instance: int  # the position of its `Opened` in the log
    above: bool  # closed by this test


class Verbs(Protocol):
    """Guarantees: each verb admits, draws, records and commits in one transaction before it returns a value; of a
    sparse vector, opening it is such a transaction, and so is every test, which costs nothing more."""

    def measure(self, strategy: LinearMap, noise: Noise) -> Record:
        """Answer every row of the strategy with independent noise."""

    def refine(self, block: int, rows: Sequence[int], noise: Noise) -> Record:
        """Make rows of an earlier measurement, which stands at position `block` of the log, more accurate.

        The rows rise and have one and the same noise now, as the `Refined` of the plan says; rows of different noise
        take several calls. Raises Stale where a row has got finer since the plan was made.
        """

    def above(self, instance: Opened | int, query: LinearMap, estimate: int) -> Tested:
        """Test of a sparse vector: is |q(D) - estimate| + noise at or above its noisy threshold?

        With an `Opened` of the plan, the instance is opened for its whole price and tested; with a position, one is
        tested that is open already, and that a `Failed` of the plan names. A test that is above closes the instance.
        Raises Stale where it is not open any more.
        """

    def select(
        self,
        candidates: LinearMap,
        estimates: NDArray[np.int64],
        *,
        count: int,
        scale: float,
        barred: NDArray[np.int64] = NONE_BARRED,
    ) -> Record:
        """Noisy top-k: the numbers of rows that are far from their estimates, as the values of the record.

        `count` rows are picked one after the other, without replacement, each with a probability in proportion to
        exp(|q_i(D) - estimates_i| / scale); rows whose numbers are `barred` are never picked.
        """

    def renew(self) -> None:
        """Put off the end of the hold where it is near: for a plan that takes its time between its verbs."""


HOLD_SECONDS = 600.0
CLAIM_SECONDS = 60.0
TEST_SECONDS = 60.0
"""How long a plan that tests a sparse vector may take: if it dies, everyone else waits that long for the instance."""


def new_claim(randomness: Randomness, *, analyst: str, key: str, question: str, now: float) -> Claim:
    """A claim to a key under a fence that nobody else has."""
    fence = int.from_bytes(randomness.secret(8), "little") >> 2
    return Claim(analyst=analyst, key=key, question=question, fence=fence, expires=now + CLAIM_SECONDS)


class Verb(Protocol):
    """A verb of the kernel, but for its payment terms."""

    def __call__(self, **terms: Unpack[PaymentTerms]) -> tuple[Record, Charge]: ...


@dataclass
class Grant:
    """Holds the worst case of a plan of several verbs; a plan of one verb needs no hold, its commit admits it. A plan
    that tests sparse vectors always has one, which is also the lease of these; and so has one that picks, where a
    selection may stand in for measuring what is picked.

    Guarantees: what the payer is charged under a grant is at most `at_most` units; leaving the `with` block drops
    the hold, and gives the leases back. A plan with a measurement that would be refused does not begin.
    """

    kernel: Kernel
    analyst: str
    purpose: str
    events: Sequence[Event]
    at_most: int
    claim: Claim | None = None
    charged: Charge = FREE
    proposer: str = field(default="unnamed", kw_only=True)
    _hold: Hold | None = field(default=None, init=False)
    _seconds: float = field(default=HOLD_SECONDS, init=False)
    _run: int | None = field(default=None, init=False)  # by which the log names this plan; the hold's fence, if any

    def __enter__(self) -> Grant:
        tests = any(isinstance(event, Opened | Failed) for event in self.events)
        if tests or len(self.events) > 1 or any(isinstance(event, Selected) for event in self.events):
            for event in self.events:
                if isinstance(event, Measured):
                    self.kernel.check(event.strategy)  # or the verbs before it would be paid for nothing
            self._seconds = TEST_SECONDS if tests else HOLD_SECONDS
            self._hold = self.kernel.hold(self.events, analyst=self.analyst, seconds=self._seconds)
            self._run = self._hold.fence
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._hold is not None:
            self.kernel.drop_hold(self._hold.fence)

    @property
    def fence(self) -> int | None:
        """The number of the hold, if there is one: whoever knows it can drop the hold of a process that has died."""
        return None if self._hold is None else self._hold.fence

    def renew(self) -> None:
        """Put off the end of the hold where it is near: for a plan that takes its time between its verbs."""
        now, held = self.kernel.ledger.now(), self._hold
        if held is None or held.expires - now > self._seconds / 2:
            return

        def work(transaction: Transaction) -> None:
            for hold in transaction.holds(now):
                if hold.fence == held.fence:  # or it is over, and the next verb will say so
                    transaction.put_hold(replace(hold, expires=now + self._seconds), replace=True)

        self.kernel.ledger.commit(work)
        self._hold = replace(held, expires=now + self._seconds)

    def measure(self, strategy: LinearMap, noise: Noise) -> Record:
        return self._charged(partial(self.kernel.measure, strategy, noise))

    def refine(self, block: int, rows: Sequence[int], noise: Noise) -> Record:
        """The noise that the rows have now is the one that the plan believed them to have."""
        refined = [event for event in self.events if isinstance(event, Refined) and event.after == noise]
        for event in refined:
            if event.block == block and np.array_equal(event.rows, rows):
                return self._charged(partial(self.kernel.refine, block, rows, noise, before=event.before))
        raise Stale("this refinement is not part of the plan")

    def above(self, instance: Opened | int, query: LinearMap, estimate: int) -> Tested:
        if self._hold is None:
            raise Stale("this test is not part of the plan")
        if isinstance(instance, Opened):
            self.kernel.check_test(instance, query, estimate)  # before anybody pays
            instance = self._charged(partial(self.kernel.open, instance)).position
        above = self.kernel.test(
            instance,
            query,
            estimate,
            analyst=self.analyst,
            purpose=Purpose(self.purpose, self.proposer, self._run),
            fence=self._hold.fence,
            claim=self.claim,
        )
        return Tested(instance=instance, above=above)

    def select(
        self,
        candidates: LinearMap,
        estimates: NDArray[np.int64],
        *,
        count: int,
        scale: float,
        barred: NDArray[np.int64] = NONE_BARRED,
    ) -> Record:
        verb = partial(self.kernel.select, candidates, estimates, count=count, scale=scale, barred=barred)
        return self._charged(verb)

    def _charged(self, verb: Verb) -> Record:
        record, charge = verb(
            analyst=self.analyst,
            purpose=Purpose(self.purpose, self.proposer, self._run),
            at_most=self.at_most - self.charged.account,
            claim=self.claim,
            fence=self.fence,
        )
        self.charged, self._run = self.charged.plus(charge), record.run
        return record

    def store(self, body: bytes) -> bytes:
        """The answer as it is stored: with a key, the first one stored wins, and everyone gets its bytes."""
        claim, ledger = self.claim, self.kernel.ledger
        if claim is None:
            return body

        def work(transaction: Transaction) -> bytes:
            stored = transaction.claim(claim, ledger.now())
            return transaction.answer(claim, body) if stored is None else stored

        return ledger.commit(work)
