"""Sparse vectors with cut-off 1: their events and price, which are open, which plan may test them, and the verbs.

A threshold is drawn when an instance is opened, and stays a kernel secret. A test only says whether |q(D) - estimate|,
with noise of its own, reaches it. Passed tests cost nothing; the first that is above ends the instance. The argument is
in `sparse_vector.proof.md`.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from hashlib import blake2b
from typing import TYPE_CHECKING, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from bursar.core.accounting.kind import EventKind, Fields, FreeEvent, PaidEvent, Versioned
from bursar.core.accounting.profile import Footprint, fine_units
from bursar.core.domain import Neighbours
from bursar.core.extensions.relations import Versions
from bursar.core.extensions.renyi import bit_divergence, laplace_divergence
from bursar.core.noise.law import UNIT_BITS, Noise, NoiseKind
from bursar.core.queries import Ceiling, LinearMap, Mask, Product
from bursar.core.source.source import LARGEST_ANSWER, MOST_CELLS
from bursar.errors import AnalystError, Busy, LedgerError, QueryError, Stale, Unsupported

if TYPE_CHECKING:
    from bursar.core.accounting.accountant import Accountant
    from bursar.core.accounts import Charge
    from bursar.core.extensions.saved_state import Tree
    from bursar.core.kernel import Kernel, PaymentTerms
    from bursar.core.ledger import Claim, Purpose, Record, Transaction
    from bursar.core.noise.system import Randomness
    from bursar.core.public import Public

LARGEST_NUMBER = 2**61
"""Largest cut and largest estimate of a sparse vector; exact answers end there too."""

DIGEST_NUMBERS = 2
"""How many whole numbers the record of an opened sparse vector holds: the keyed digest of its noisy threshold."""

KEY_BYTES = 64
"""So many more than a digest has that every threshold is as likely behind every digest."""

ENDED = "closed: its threshold is lost, or its last test did not end"
TOO_LARGE = "a tested query has larger entries than the scope of its sparse vector"


def _product(fields: Fields) -> Product:
    """The strategy of a stored event of a sparse vector, which tests products and nothing else."""
    strategy = fields.strategy()
    if not isinstance(strategy, Product):
        raise LedgerError("a sparse vector tests products")
    return strategy


@dataclass(frozen=True, kw_only=True, eq=False)
class Opened(PaidEvent):
    """A sparse vector with cut-off 1 was opened: tests may be run on it until the first of them is above.

    A test of a query q with an estimate e is above where |q(D) - e| + (noise of the test) >= cut + (noise of the
    threshold). The threshold's noise is drawn once, a test's for every test; all numbers are whole.

    Guarantees: `scope` is one row D >= 0, and pays for every query q with |q(v)| <= D(v) in all cells v.
    Edge cases: refused are scopes that are no product, and noise that is not Laplace.
    """

    kind = "opened"
    scope: Product
    cut: int
    threshold: Noise
    test: Noise
    version: int

    def __post_init__(self) -> None:
        check_row(self.scope, self.cut)
        if any(np.any(mask.steps.levels < 0) for mask in self.scope.masks):
            raise QueryError("the scope of a sparse vector has no negative entries")
        if any(noise.kind is not NoiseKind.LAPLACE for noise in (self.threshold, self.test)):
            raise Unsupported("a sparse vector has Laplace noise, on its threshold and on its tests")

    @property
    def rate(self) -> Fraction:
        """epsilon of the whole instance for a unit that changes every tested query by at most one, 1/b_T + 2/b_Q."""
        return 1 / Fraction(self.threshold.scale) + 2 / Fraction(self.test.scale)

    @cached_property
    def norms(self) -> dict[int, Ceiling]:
        """D(v)^power by power: priced over and over while a plan is made, so computed once."""
        return {power: Ceiling(self.scope.masks, power) for power in (1, 2)}

    @cached_property
    def least(self) -> tuple[int, ...]:
        """The least entry of each factor of the scope: queries that stay below it need no look at single cells."""
        return tuple(int(vector.min()) for vector in self.norms[1].vectors)

    @property
    def looks_at(self) -> LinearMap:
        return self.scope

    @property
    def answers(self) -> int:
        return DIGEST_NUMBERS

    @property
    def purchase(self) -> Hashable:
        return self.kind, self.scope.digest, self.cut, self.threshold, self.test, self.version

    def footprints(self, accountant: Accountant, filed: Hashable) -> tuple[Footprint, ...]:
        units, finer = fine_units(partial(accountant.opened_units, self))
        norm = self.norms[accountant.power]
        return (Footprint(norm=norm, units=units, version=self.version, finer=finer, block=filed),)

    def fields(self) -> dict[str, object]:
        laws = {"cut": self.cut, "threshold": self.threshold.scale.hex(), "test": self.test.scale.hex()}
        return {"kind": self.kind, "strategy": self.scope.digest, "version": self.version, **laws}

    @staticmethod
    def read(fields: Fields) -> Opened:
        threshold, test = fields.laplace("threshold"), fields.laplace("test")
        cut, version = fields.take("cut", int), fields.take("version", int)
        return Opened(scope=_product(fields), cut=cut, threshold=threshold, test=test, version=version)


@dataclass(frozen=True, kw_only=True, eq=False)
class Failed(FreeEvent):
    """A test of a sparse vector was above, which closed the instance. It costs nothing: the opening was paid for it."""

    kind = "failed"
    instance: int  # the position of its `Opened` in the log
    query: Product
    estimate: int
    version: int

    def __post_init__(self) -> None:
        check_row(self.query, self.estimate)

    @property
    def stored(self) -> LinearMap:
        return self.query

    def fields(self) -> dict[str, object]:
        row = {"strategy": self.query.digest, "estimate": self.estimate}
        return {"kind": self.kind, "instance": self.instance, "version": self.version, **row}

    @staticmethod
    def read(fields: Fields) -> Failed:
        instance, version = fields.take("instance", int), fields.take("version", int)
        return Failed(instance=instance, query=_product(fields), estimate=fields.take("estimate", int), version=version)


@dataclass(frozen=True, kw_only=True)
class Closed(FreeEvent):
    """A sparse vector was closed although no test of it was above: it cannot be known to be as it was."""

    kind = "closed"
    instance: int
    version: int

    def fields(self) -> dict[str, object]:
        return {"kind": self.kind, "instance": self.instance, "version": self.version}

    @staticmethod
    def read(fields: Fields) -> Closed:
        return Closed(instance=fields.take("instance", int), version=fields.take("version", int))


def check_row(row: LinearMap, number: int) -> Product:
    """One row of a sparse vector with its whole number; anything else is refused."""
    if not isinstance(row, Product):
        raise Unsupported("a sparse vector tests queries that are a product of conditions on columns, and no others")
    if row.rows != 1:
        raise QueryError("a sparse vector tests one query at a time")
    if type(number) is not int or abs(number) > LARGEST_NUMBER:
        raise QueryError("cuts and estimates are whole numbers of at most 2^61")
    return row


def opened_units(accountant: Accountant, opened: Opened, finer: int = 0) -> int:
    """The loss of a whole sparse vector where each row of a unit changes every query by one: k (1/b_T + 2/b_Q).

    In concentrated mode half its square; in RENYI mode the least of two bounds of its divergence, over the order:
    that of the most telling bit of the same pure loss, and the threshold's divergence plus the pure loss of a test,
    2k/b_Q. In units of 2^-(50 + finer), rounded up.
    """
    rows = accountant.unit.max_contributions
    loss = rows * opened.rate
    if accountant.order is not None:
        threshold = laplace_divergence(scale=opened.threshold.scale, change=rows, order=accountant.order)
        apart = threshold + 2 * rows / Fraction(opened.test.scale)
        loss = min(bit_divergence(loss=loss, order=accountant.order), apart) / accountant.order
    elif accountant.power == 2:
        loss = loss**2 / 2
    return math.ceil(loss * (1 << (UNIT_BITS + finer)))


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
        fields = {"noisy": self.noisy, "key": self.key.hex(), "holder": self.holder}
        return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode("ascii")

    @staticmethod
    def of(body: bytes) -> Threshold:
        fields = json.loads(body)
        return Threshold(noisy=fields["noisy"], key=bytes.fromhex(fields["key"]), holder=fields["holder"])


@dataclass
class SparseVectors:
    """The open instances of the present version of each table, advanced record by record; and this process's leases.

    Guarantees: an instance is tested under one lease at a time, which a hold keeps alive and which is written down
    before the first test. It is handed on only by a lease that ended with every test's outcome returned; after anything
    else, a crash or a commit that failed, the instance is closed.
    """

    opened: dict[int, tuple[Record, Opened]] = field(default_factory=dict)  # by position
    versions: Versions = field(default_factory=Versions)  # of the tables
    _leases: dict[int, set[int]] = field(default_factory=dict)  # fence -> instances
    _unsettled: set[int] = field(default_factory=set)  # those with a test that was drawn and has not been returned
    _process: int = field(default_factory=os.getpid)

    # -- what the log says ---------------------------------------------------------------------------------------

    def add(self, record: Record) -> None:
        """Edge cases: an end of something that is not open raises LedgerError, and changes nothing."""
        event = record.event
        self.versions.add(event)
        if type(event) is Versioned:
            self.opened = {at: opening for at, opening in self.opened.items() if opening[1].version in self.versions}
        elif type(event) is Opened:
            self.opened[record.position] = record, event
        elif type(event) is Failed or type(event) is Closed:
            if event.instance not in self.opened:
                raise LedgerError(f"record {record.position} closes a sparse vector that is not open")
            del self.opened[event.instance]

    def state(self) -> Tree:
        """The positions of the open instances, as plain values."""
        return list(self.opened)

    def restore(self, state: Tree, read: Callable[[int], Record]) -> None:
        """Open again, from their own records, what was open."""
        for record in map(read, state):
            self.add(record)

    def find(self, instance: int, pending: Iterable[Record] = ()) -> tuple[Record, Opened]:
        """An open instance; `pending` are records that come before, not added yet. Stale where it is not open."""
        if instance not in self.opened or any(_ends(record, instance) for record in pending):
            raise Stale("this sparse vector is not open any more")
        return self.opened[instance]

    # -- leases, inside a commit ---------------------------------------------------------------------------------

    def close_stranded(self, transaction: Transaction, instances: Sequence[tuple[Record, Opened]], now: float) -> bool:
        """Close those of the instances that nobody may go on with; whether there were any. Busy where another plan has
        the lease of one and is still running.

        They are stranded where the secret is not the one of the record, or the plan that had the lease is gone and has
        not given it back.
        """
        running = {hold.fence for hold in transaction.holds(now)}
        stranded = []
        for record, event in instances:
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
        from bursar.core.ledger import Purpose  # the ledger knows every kind of event

        event = Closed(instance=record.position, version=opened.version)
        self.end(transaction, event, {"analyst": record.analyst, "purpose": Purpose(ENDED, record.proposer)})

    def give_back(self, transaction: Transaction, fence: int) -> None:
        """End a lease: instances are free for the next plan, or closed where a test has not been returned."""
        for instance in sorted(self.leases.get(fence, ())):
            threshold = _threshold(transaction, instance)
            if threshold is None or threshold.holder != fence:
                continue
            try:
                opening = self.find(instance, transaction.pending())
            except Stale:
                transaction.drop_secret(_name(instance))
                continue
            if instance in self._unsettled:
                self._close(transaction, *opening)
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
    row, unused = check_row(query, estimate), list(range(len(opened.scope.masks)))
    for mask in row.masks:
        factors = [place for place in unused if set(opened.scope.masks[place].attrs) <= set(mask.attrs)]
        unused = [place for place in unused if place not in factors]
        limits = [opened.scope.masks[place] for place in factors]
        sizes = {name: size for limit in limits for name, size in zip(limit.attrs, limit.sizes, strict=True)}
        if sizes != dict(zip(mask.attrs, mask.sizes, strict=True)):
            raise QueryError("a tested query looks at columns beyond the scope of its sparse vector")
        small = mask.steps.largest() <= math.prod(opened.least[place] for place in factors)
        if not small and _exceeds(mask, limits, [opened.norms[1].vectors[place] for place in factors]):
            raise QueryError(TOO_LARGE)
        if one_sign and np.any(mask.steps.levels < 0):
            raise QueryError("where neighbours replace a row, a tested query has no negative entries")
    if any(opened.least[place] < 1 for place in unused):
        raise QueryError(TOO_LARGE)
    return row


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


def open_vector(kernel: Kernel, event: Opened, **terms: Unpack[PaymentTerms]) -> tuple[Record, Charge]:
    """Open a sparse vector for the plan that holds it, one commit; with what it was charged.

    The whole price is booked before anything is tested. Stale is raised where `measure` raises it.
    """
    if (fence := terms.get("fence")) is None:
        raise Stale("a sparse vector is opened by a plan that holds it")
    if event.scope.largest() * kernel.max_rows > LARGEST_ANSWER:
        raise QueryError("the scope of this sparse vector is too large for max_rows")

    def work(transaction: Transaction) -> tuple[Record, Charge]:
        charge = kernel._admit(transaction, event, **terms)
        facts: Facts = {"analyst": terms["analyst"], "purpose": terms["purpose"]}
        return kernel._vectors.start(transaction, kernel._randomness, event, fence, facts), charge

    record, charge = kernel.ledger.commit(work)
    with kernel._lock:
        kernel._advanced()
        kernel._vectors.leased(fence, [record.position])
    return record, charge


def run_test(
    kernel: Kernel,
    instance: int,
    query: LinearMap,
    estimate: int,
    *,
    fence: int,
    claim: Claim | None = None,
    **facts: Unpack[Facts],
) -> bool:
    """Whether a test of a sparse vector is above, |q(D) - estimate| + noise >= noisy threshold, one commit.

    A pass writes nothing to the log; a test that is above closes the instance in the same commit. Stale is raised,
    and nothing drawn, where the instance is not open or not leased by the plan, or the data version changed.
    """
    with kernel._lock:
        _, opened = kernel._vectors.find(instance)
    row = kernel.check_test(opened, query, estimate)
    version, tables = kernel._opened()
    if version != opened.version:
        raise Stale("this sparse vector is of another version or table")
    distance = abs(int(tables.answers(row)[0]) - estimate)
    event = Failed(instance=instance, query=row, estimate=estimate, version=version)

    def work(transaction: Transaction) -> bool:
        kernel._require_key(transaction, claim)
        with kernel._lock:
            kernel._advance(transaction.committed(kernel._position))
            if version != kernel._version:
                raise Stale("the data version changed meanwhile")
            return kernel._vectors.run(transaction, kernel._randomness, event, distance, fence, facts)

    above = kernel.ledger.commit(work)
    kernel._vectors.returned(instance)
    return above


def check_test(kernel: Public, opened: Opened, query: LinearMap, estimate: int) -> Product:
    """The query of a test; refused, from public facts alone, if the sparse vector has not paid for it."""
    replaced = kernel._accountant.unit.neighbours is Neighbours.REPLACE_ONE
    row = check_query(opened, query, estimate, one_sign=replaced)
    if (cells := math.prod(mask.steps.size for mask in row.masks)) > MOST_CELLS:
        raise QueryError(f"this looks at {cells} joint cells at once; {MOST_CELLS} are possible")
    return row


def live(kernel: Public, analyst: str) -> dict[int, Opened]:
    """The sparse vectors that are open as far as the log says and that the analyst may test, by position.

    Where there are shares, these are the analyst's own: what tests reveal is in the account of whoever opened it. Those
    of other tables are not among them.
    """
    with kernel._lock:
        shares = kernel._advanced().shares
        opened = [each for each in kernel._vectors.opened.items() if each[1][1].version == kernel._version]
        return {place: event for place, (record, event) in opened if record.analyst == analyst or not shares}


def instances_tested(events: Iterable[EventKind]) -> list[int]:
    """The sparse vectors that a plan may test."""
    return sorted({event.instance for event in events if isinstance(event, Failed)})


def may_lease(kernel: Kernel, transaction: Transaction, instances: Sequence[int], owner: str | None) -> bool:
    """Whether a plan may be leased the instances; those that had to be closed are closed in this commit.

    Busy is raised where another plan is testing one, Stale where one is not open, and AnalystError where only its
    owner may test it.
    """
    with kernel._lock:
        opened = [kernel._vectors.find(instance, transaction.pending()) for instance in instances]
    if owner is not None and any(record.analyst != owner for record, _ in opened):
        raise AnalystError("where there are shares, a sparse vector is tested by whoever opened it")
    return not kernel._vectors.close_stranded(transaction, opened, kernel.ledger.now())
