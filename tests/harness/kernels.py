"""The kernel as something to enumerate: a small domain, an adversary that asks, and what the kernel's book claims."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from bursar.core.accounting import Event, Failed, Noise, NoiseKind, Opened
from bursar.core.accounts import Charge
from bursar.core.budget import Budget
from bursar.core.domain import Categories, Domain, IntegerRange, Unit
from bursar.core.extensions.curator import declare_version, seal
from bursar.core.extensions.partitions import PartitionAxis
from bursar.core.kernel import Kernel
from bursar.core.ledger import MemoryLedger, Purpose, Record
from bursar.core.ledger.record_codec import encode_record
from bursar.core.noise.law import UNIT_BITS
from bursar.core.noise.system import Randomness
from bursar.core.queries import LinearMap
from bursar.errors import BursarError
from bursar.planner.grant import Grant
from harness.cells import Cell, Numbers, table_of
from harness.claims import claimed
from harness.clock import same_clock
from harness.enumeration import BranchingTape, Claims, Enumerated, Transcript
from harness.plainly import PeopleSource
from harness.small import TableSource, charter, config

DOMAIN = Domain(
    (
        Categories(name="sex", values=("F", "M"), outside=0, null=0),
        IntegerRange(name="age", lower=0, upper=2, null=0),
    )
)
CELLS: tuple[Cell, ...] = tuple((sex, age) for sex in range(2) for age in range(3))
NO_LIMIT = 2**60
ROW = Unit()
PLENTY = Budget.of(epsilon=100.0)

Versions = tuple[tuple[Cell, ...], ...]
"""The rows of every version of the data, as cells."""


class Session:
    """What an adversary has of the kernel: verbs, and what they return; everything seen is written down."""

    def __init__(self, kernel: Kernel, declare: Callable[[bool], None], seal: Callable[[int], object]) -> None:
        self._kernel, self._declare, self._seal = kernel, declare, seal
        self.seen: list[tuple[object, ...]] = []
        self.block = 0  # where the last measurement stands in the log
        self.instance = 0  # where the last sparse vector stands in the log

    def measure(self, strategy: LinearMap, scale: float, kind: NoiseKind = NoiseKind.LAPLACE) -> Numbers | None:
        """The noisy answers, or None where the kernel refuses."""
        noise = Noise(kind=kind, scale=scale)
        try:
            record, charge = self._kernel.measure(
                strategy, noise, analyst="eve", purpose=Purpose("", "test"), at_most=NO_LIMIT
            )
        except BursarError as refusal:
            self.seen.append((type(refusal).__name__, str(refusal)))
            return None
        self.seen.append((encode_record(record), charge))
        self.block = record.position
        return record.values

    def refine(self, scale: float, *, before: float, rows: Sequence[int] = (0,)) -> Numbers | None:
        """Finer answers to rows of what was measured last, or None where the kernel refuses."""
        laws = [Noise(kind=NoiseKind.LAPLACE, scale=each) for each in (scale, before)]
        facts: Any = {"analyst": "eve", "purpose": Purpose("", "test"), "at_most": NO_LIMIT}
        try:
            record, charge = self._kernel.refine(self.block, rows, laws[0], before=laws[1], **facts)
        except BursarError as refusal:
            self.seen.append((type(refusal).__name__, str(refusal)))
            return None
        self.seen.append((encode_record(record), charge))
        return record.values

    def above(self, instance: Opened | int, query: LinearMap, estimate: int) -> bool | None:
        """Whether a test of a sparse vector is above, or None where the kernel refuses; each test is a plan of its own.

        The keyed digest of a threshold is left out: nobody has the key.
        """
        before = len(self._kernel.ledger.records())
        try:
            event: Event = instance if isinstance(instance, Opened) else _test(instance, query, estimate)
            with Grant(self._kernel, "eve", "", (event,), NO_LIMIT) as grant:
                tested = grant.above(instance, query, estimate)
        except BursarError as refusal:
            self.seen.append((type(refusal).__name__, str(refusal)))
            return None
        log = [_without_digest(record) for record in self._kernel.ledger.records(before)]
        self.seen.append((*map(encode_record, log), tested.above, grant.charged))
        self.instance = tested.instance
        return tested.above

    def select(
        self, candidates: LinearMap, estimates: Sequence[int], *, barred: Sequence[int] = (), **law: Any
    ) -> Numbers | None:
        """The numbers of the candidates that were picked, or None where the kernel refuses."""
        given = (np.array(estimates, np.int64), np.array(barred, np.int64))
        facts: Any = {"analyst": "eve", "purpose": Purpose("", "test"), "at_most": NO_LIMIT}
        try:
            record, charge = self._kernel.select(candidates, given[0], barred=given[1], **law, **facts)
        except BursarError as refusal:
            self.seen.append((type(refusal).__name__, str(refusal)))
            return None
        self.seen.append((encode_record(record), charge))
        return record.values

    def next_version(self, *, same_rows: bool) -> None:
        """The data owner declares the next version of the data."""
        self._declare(same_rows)

    def seal(self, through: int) -> None:
        """The data owner seals partitions; what the log says about it can be seen."""
        self._seal(through)
        self.seen.append((encode_record(self._kernel.ledger.records()[-1]), self._kernel.sealed()))


Adversary = Callable[[Session], None]
KernelClass = type[Kernel]
Wrap = Callable[[BranchingTape], Randomness]


@dataclass(frozen=True, kw_only=True)
class Played:
    """A kernel played by an adversary, as the program of an enumeration. Twins come in as `kernel` or `tape`."""

    adversary: Adversary
    unit: Unit = ROW
    budget: Budget = PLENTY
    kernel: KernelClass = Kernel
    domain: Domain = DOMAIN
    tape: Wrap = lambda tape: tape
    named: bool = False  # rows say whose they are; then everything spent is the claim, not what is booked on cells

    def __call__(self, data: Versions, tape: BranchingTape) -> tuple[Transcript, Claims[Versions]]:
        settings = config(domain=self.domain, unit=self.unit, budget=self.budget, max_rows=1000)
        ledger = MemoryLedger(charter(settings))
        randomness = self.tape(tape)
        declared = 0

        def open_source(key: bytes) -> TableSource:
            if self.named:
                return PeopleSource(data[declared], self.domain, content=str(declared))
            return TableSource(table_of(DOMAIN, data[declared]), self.domain, content=str(declared))

        axis = PartitionAxis.of(self.domain, self.unit)

        def declare(same_rows: bool) -> None:
            nonlocal declared
            declared += bool(ledger.records())
            declare_version(ledger, open_source, randomness, same_rows=same_rows, axis=axis)

        with same_clock():
            declare(False)
            kernel = self.kernel(
                domain=self.domain,
                unit=self.unit,
                budget=self.budget,
                max_rows=1000,
                ledger=ledger,
                open_source=open_source,
                randomness=randomness,
            )
            session = Session(kernel, declare, lambda through: seal(ledger, open_source, axis=axis, through=through))
            self.adversary(session)
            spent, book = Fraction(kernel.spent(), 2**UNIT_BITS), kernel._accounts.total
        if self.named:
            return tuple(session.seen), lambda left, right: _decimal(spent)
        return tuple(session.seen), lambda left, right: _decimal(min(spent, claimed(book, self.domain, left, right)))


def enumerated(adversary: Adversary, *, reach: int, margin: int = 1, **setting: object) -> Enumerated[Versions]:
    """The law of everything that an adversary sees of a kernel."""
    return Enumerated(Played(adversary=adversary, **setting), reach=reach, margin=margin)


def _test(instance: int, query: LinearMap, estimate: int) -> Failed:
    return Failed(instance=instance, query=query, estimate=estimate, version=1)


def _without_digest(record: Record) -> Record:
    return replace(record, values=record.values * 0) if isinstance(record.event, Opened) else record


def _decimal(amount: Fraction) -> Decimal:
    return Decimal(amount.numerator) / Decimal(amount.denominator)


def history(kernel: Kernel) -> list[tuple[Record, Charge]]:
    """Every record with what it was charged: the log played again from the start."""
    accounts = kernel._empty_accounts()
    return [(record, accounts.play(record)) for record in kernel.ledger.records()]
