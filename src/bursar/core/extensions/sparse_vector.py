"""Sparse vectors with cut-off 1: which are open, which plan may test them, and what a test may ask.

A threshold is drawn when an instance is opened, and stays a kernel secret. A test only says whether |q(D) - estimate|,
with noise of its own, reaches it. Passed tests cost nothing; the first that is above ends the instance. The argument is
in `sparse_vector.proof.md`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from bursar.core.accounting import Closed, Failed, Opened, Versioned
from bursar.core.accounting.events import DIGEST_NUMBERS, check_row
from bursar.core.ledger import Purpose, Record, Transaction
from bursar.core.ledger.record_codec import from_json, to_json
from bursar.core.noise.system import Randomness
from bursar.core.queries import LinearMap, Mask, Product
from bursar.errors import Busy, LedgerError, QueryError, Stale

KEY_BYTES = 64
"""So many more than a digest has that every threshold is as likely behind every digest."""

ENDED = "closed: its threshold is lost, or its last test did not end"
TOO_LARGE = "a tested query has larger entries than the scope of its sparse vector"


class Facts(TypedDict):
    """What a record says besides its event."""

    analyst: str
    purpose: Purpose


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """The secret of an instance: the noisy threshold, the key of its digest, and the one plan that may test it now."""

    noisy: int
    key: bytes
    holder: int | None  # the fence of that plan's hold; None where no plan is using the instance

    def digest(self) -> NDArray[np.int64]:
        text = str(self.noisy).encode()
        return np.frombuffer(blake2b(text, digest_size=8 * DIGEST_NUMBERS, key=self.key).digest(), "<i8")

    def to_bytes(self) -> bytes:
        return to_json({"noisy": self.noisy, "key": self.key.hex(), "holder": self.holder})

    @staticmethod
    def of(body: bytes) -> Threshold:
        fields = from_json(body)
        return Threshold(noisy=fields["noisy"], key=bytes.fromhex(fields["key"]), holder=fields["holder"])


@dataclass
class SparseVectors:
    """The open instances of the present version of the data, advanced record by record; and the leases of this process.

    Guarantees: an instance is tested under one lease at a time, which a hold keeps alive and which is written down
    before the first test. It is handed on only by a lease that ended with every test's outcome returned; after anything
    else, a crash or a commit that failed, the instance is closed.
    """

    opened: dict[int, tuple[Record, Opened]] = field(default_factory=dict)  # by position
    _leases: dict[int, set[int]] = field(default_factory=dict)  # fence -> instances
    _unsettled: set[int] = field(default_factory=set)  # those with a test that was drawn and has not been returned
    _process: int = field(default_factory=os.getpid)

    # -- what the log says ---------------------------------------------------------------------------------------

    def add(self, record: Record) -> None:
        """Edge cases: an end of something that is not open raises LedgerError, and changes nothing."""
        event = record.event
        if isinstance(event, Versioned):
            self.opened.clear()
        elif isinstance(event, Opened):
            self.opened[record.position] = record, event
        elif isinstance(event, Failed | Closed):
            if event.instance not in self.opened:
                raise LedgerError(f"record {record.position} closes a sparse vector that is not open")
            del self.opened[event.instance]

    def find(self, instance: int, pending: Iterable[Record] = ()) -> tuple[Record, Opened]:
        """An open instance; `pending` are records that come before, not added yet. Stale where it is not open."""
        if instance not in self.opened or any(_ends(record, instance) for record in pending):
            raise Stale("this sparse vector is not open any more")
        return self.opened[instance]

    # -- leases, inside a commit ---------------------------------------------------------------------------------

    def close_stranded(self, transaction: Transaction, found: Sequence[tuple[Record, Opened]], now: float) -> bool:
        """Close those of the instances that nobody may go on with; whether there were any. Busy where another plan has
        the lease of one and is still running.

        They are stranded where the secret is not the one of the record, or the plan that had the lease is gone and has
        not given it back.
        """
        running = {hold.fence for hold in transaction.holds(now)} if found else set()
        stranded = []
        for record, event in found:
            threshold = _threshold(transaction, record.position)
            if threshold is not None and threshold.holder in running:
                raise Busy("another plan is testing this sparse vector right now")
            if (
                threshold is None
                or threshold.holder is not None
                or not np.array_equal(threshold.digest(), record.values)
            ):
                stranded.append((record, event))
        for record, event in stranded:
            self._close(transaction, record, event)
        return bool(stranded)

    def lease(self, transaction: Transaction, instances: Iterable[int], fence: int) -> None:
        for instance in instances:
            self._hand(transaction, instance, fence)

    def end(self, transaction: Transaction, event: Failed | Closed, facts: Facts) -> None:
        """Close an instance, and forget its secret; what was paid stays paid."""
        transaction.append(**facts, event=event, values=np.zeros(0, np.int64))
        transaction.drop_secret(_name(event.instance))

    def _close(self, transaction: Transaction, record: Record, opened: Opened) -> None:
        event = Closed(instance=record.position, version=opened.version)
        self.end(transaction, event, {"analyst": record.analyst, "purpose": Purpose(ENDED, record.proposer)})

    def give_back(self, transaction: Transaction, fence: int) -> None:
        """End a lease: instances are free for the next plan, or closed where a test has not been returned."""
        for instance in sorted(self.leases.get(fence, ())):
            threshold = _threshold(transaction, instance)
            if threshold is None or threshold.holder != fence:
                continue
            try:
                found = self.find(instance, transaction.pending())
            except Stale:
                transaction.drop_secret(_name(instance))
                continue
            if instance in self._unsettled:
                self._close(transaction, *found)
            else:
                self._hand(transaction, instance, None)

    def _hand(self, transaction: Transaction, instance: int, holder: int | None) -> None:
        threshold = _threshold(transaction, instance)
        assert threshold is not None
        transaction.put_secret(_name(instance), replace(threshold, holder=holder).to_bytes())

    # -- tests ---------------------------------------------------------------------------------------------------

    def start(
        self, transaction: Transaction, randomness: Randomness, event: Opened, fence: int, facts: Facts
    ) -> Record:
        """Draw the threshold of a new instance, leased to the plan that opens it; only its digest is in the log."""
        noisy = event.cut + int(randomness.draw(event.threshold, 1)[0])
        threshold = Threshold(noisy=noisy, key=randomness.secret(KEY_BYTES), holder=fence)
        record = transaction.append(**facts, event=event, values=threshold.digest())
        transaction.put_secret(_name(record.position), threshold.to_bytes())
        return record

    def run(
        self,
        transaction: Transaction,
        randomness: Randomness,
        event: Failed,
        distance: int,
        fence: int,
        facts: Facts,
    ) -> bool:
        """One test: distance + noise >= noisy threshold. If so, the event ends the instance in the same commit.

        Whoever calls says so, by `returned`, when the outcome is durable. Stale is raised, before anything is drawn,
        where the instance is not open, not leased under this fence by this process, or has a test that was drawn and
        never returned.
        """
        _, opened = self.find(event.instance, transaction.pending())
        threshold = self.threshold_for(transaction, event.instance, fence)
        self._unsettled.add(event.instance)
        above = distance + int(randomness.draw(opened.test, 1)[0]) >= threshold
        if above:
            self.end(transaction, event, facts)
        return above

    def threshold_for(self, transaction: Transaction, instance: int, fence: int) -> int:
        """The noisy threshold, for whoever has the lease; Stale for everybody else."""
        threshold = _threshold(transaction, instance)
        if threshold is None or threshold.holder != fence or instance not in self.leases.get(fence, ()):
            raise Stale("this plan has not leased the sparse vector that it tests")
        if instance in self._unsettled:
            raise Stale("a test of this sparse vector did not end")
        return threshold.noisy

    def returned(self, instance: int) -> None:
        self._unsettled.discard(instance)

    def leased(self, fence: int, instances: Iterable[int]) -> None:
        """The commit that leased the instances is durable."""
        self.leases.setdefault(fence, set()).update(instances)

    def given_back(self, fence: int) -> None:
        """The commit that gave the lease back is durable."""
        self._unsettled -= self.leases.pop(fence, set())

    @property
    def leases(self) -> dict[int, set[int]]:
        """A fork has no leases: those are its parent's, and so is what the parent knows of tests that did not end."""
        if self._process != os.getpid():
            self._process, self._leases, self._unsettled = os.getpid(), {}, set()
        return self._leases


def check_query(opened: Opened, query: LinearMap, estimate: int, *, one_sign: bool) -> Product:
    """The query q; refused, from public facts, if it could change by more than the scope D has paid for.

    Every factor of the query is compared with the factors of the scope on the same columns, |q_f(v)| <= D_f(v) in all
    cells v; on columns that the query does not look at it is 1. `one_sign` also refuses negative entries.
    """
    asked, unused = check_row(query, estimate), list(range(len(opened.scope.masks)))
    for mask in asked.masks:
        own = [place for place in unused if set(opened.scope.masks[place].attrs) <= set(mask.attrs)]
        unused = [place for place in unused if place not in own]
        limits = [opened.scope.masks[place] for place in own]
        sizes = {name: size for limit in limits for name, size in zip(limit.attrs, limit.sizes, strict=True)}
        if sizes != dict(zip(mask.attrs, mask.sizes, strict=True)):
            raise QueryError("a tested query looks at columns beyond the scope of its sparse vector")
        small = mask.steps.largest() <= math.prod(opened.least[place] for place in own)
        if not small and _exceeds(mask, limits, [opened.norms[1].vectors[place] for place in own]):
            raise QueryError(TOO_LARGE)
        if one_sign and np.any(mask.steps.levels < 0):
            raise QueryError("where neighbours replace a row, a tested query has no negative entries")
    if any(opened.least[place] < 1 for place in unused):
        raise QueryError(TOO_LARGE)
    return asked


def _exceeds(mask: Mask, limits: Sequence[Mask], vectors: Sequence[NDArray[np.int64]]) -> bool:
    """Whether |q_f(v)| > D_f(v) in some cell v, where D_f is the product of some factors of the scope."""
    most, names = np.ones((), np.int64), list[str]()
    for limit, vector in zip(limits, vectors, strict=True):
        most = np.multiply.outer(most, vector.reshape(limit.sizes))
        names += limit.attrs
    ordered = np.transpose(most, [names.index(name) for name in mask.attrs])
    return bool(np.any(mask.steps.norms(1).reshape(mask.sizes) > ordered))


def _ends(record: Record, instance: int) -> bool:
    event = record.event
    return isinstance(event, Versioned) or (isinstance(event, Failed | Closed) and event.instance == instance)


def _threshold(transaction: Transaction, instance: int) -> Threshold | None:
    body = transaction.secret(_name(instance))
    return None if body is None else Threshold.of(body)


def _name(instance: int) -> str:
    return f"sparse vector {instance}"
