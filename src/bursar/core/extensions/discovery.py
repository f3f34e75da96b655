"""Discovery: texts of an open column that enough people have are found, and get cells of their own.

Every person gives a weight to the texts without a cell that their own rows have; each text's weight gets Gaussian
noise, and those at or above a threshold are released. The noise costs rho like any other. That a text is released which
one person alone has is not impossible: its probability is booked too, in an account of its own, `delta_keys`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol, Unpack, runtime_checkable

import numpy as np

from bursar.core.accounting.kind import Fields, PaidEvent
from bursar.core.extensions.carried import Carried
from bursar.core.extensions.distinct import Reach, Unshared
from bursar.core.extensions.open_keys import check_keys, keys_with
from bursar.core.extensions.predicate import Predicate, check_columns
from bursar.core.noise.law import DELTA_BITS, Noise, NoiseKind
from bursar.core.queries import LinearMap, Product
from bursar.core.source.source import LARGEST_ANSWER
from bursar.errors import BudgetError, LedgerError, QueryError, SourceError, Stale, Unsupported

if TYPE_CHECKING:
    from bursar.core.accounting.accountant import Accountant
    from bursar.core.accounting.profile import Footprint
    from bursar.core.accounts import Charge
    from bursar.core.extensions.saved_state import Tree
    from bursar.core.kernel import Kernel, PaymentTerms
    from bursar.core.ledger import Record, Transaction
    from bursar.core.public import Public
    from bursar.core.tables import Tables

LARGEST_WEIGHT = 2**20
LARGEST_THRESHOLD = 2**50

ROUNDING_MARGIN = 1 + 1e-9
"""Slack relative to a probability, thousands of times what floating point can lose in it."""

FINDER = "owner"
"""Who is said to have named what was found: everybody sees it."""


@dataclass(frozen=True, kw_only=True)
class Found(PaidEvent):
    """Texts without a cell were looked for in an open column: those whose noisy weight is at least `threshold`.

    A person with j such texts, at most `most`, gives floor(weight / sqrt(j)) to each; where there is a scope, only rows
    for which it holds count. What is found follows in the log.
    Edge cases: refused are noise that is not Gaussian, and a threshold that one person could reach without noise.
    """

    kind = "found"
    column: str
    most: int
    weight: int
    noise: Noise
    threshold: int
    version: int
    scope: Predicate | None = None  # all rows, unless it says which

    def __post_init__(self) -> None:
        whole = all(type(number) is int and number > 0 for number in (self.most, self.weight, self.threshold))
        small = whole and self.weight <= LARGEST_WEIGHT and self.weight < self.threshold <= LARGEST_THRESHOLD
        if not small or self.noise.kind is not NoiseKind.GAUSSIAN:
            raise QueryError("texts are looked for with Gaussian noise, and above what one person weighs")
        if not (self.scope is None or type(self.scope) is Predicate):
            raise QueryError("texts are looked for among all rows, or among those for which a condition holds")

    def share(self, texts: int) -> int:
        """The weight that a person adds to each of their `texts` texts: floor(weight / sqrt(texts)), exactly."""
        return math.isqrt(self.weight * self.weight // texts)

    @property
    def delta(self) -> int:
        """The chance that a text is found which one person alone has, in units of 2^-100, rounded up.

        Over every number j of texts that the person may have: the largest one is not always the worst.
        """
        least = {texts: self.threshold - self.share(texts) for texts in range(1, self.most + 1)}
        chance = max(texts * _tail(self.noise.scale, each) for texts, each in least.items())
        return min(max(math.ceil(chance * (1 << DELTA_BITS)), 1), 1 << DELTA_BITS)

    @property
    def looks_at(self) -> LinearMap:
        return Product(()) if self.scope is None else self.scope

    @property
    def purchase(self) -> Hashable:
        numbers = self.most, self.weight, self.noise, self.threshold, self.version
        return self.kind, self.column, self.looks_at.digest, *numbers

    def footprints(self, accountant: Accountant, filed: Hashable) -> tuple[Footprint, ...]:
        """Everybody loses what a change by `weight` costs, in whatever cells they are; who is replaced, twice that."""
        if accountant.unit.max_contributions != self.most:
            raise Unsupported("texts are looked for among as many rows of a unit as are counted")
        reach = Reach(1, self.weight, (Unshared((), accountant.power),))
        return accountant.over_units(reach, self.noise, version=self.version, block=filed)

    def fields(self) -> dict[str, object]:
        plain = {name: getattr(self, name) for name in ("kind", "column", "most", "weight", "threshold", "version")}
        scope = {} if self.scope is None else {"strategy": self.scope.digest}
        return {**plain, **scope, "scale": self.noise.scale.hex()}

    @staticmethod
    def read(fields: Fields) -> Found:
        most, weight, threshold, version = (
            fields.take(name, int) for name in ("most", "weight", "threshold", "version")
        )
        noise = Noise(kind=NoiseKind.GAUSSIAN, scale=fields.scale("scale"))
        column, scope = fields.take("column", str), _condition(fields)
        numbers = {"most": most, "weight": weight, "threshold": threshold, "version": version}
        return Found(column=column, noise=noise, scope=scope, **numbers)


def _condition(fields: Fields) -> Predicate | None:
    """The condition that says among which rows texts are looked for, or nothing where it is all of them."""
    strategy = fields.strategy() if fields.has("strategy") else None
    if not (strategy is None or isinstance(strategy, Predicate)):
        raise LedgerError("what says of which rows an event is, is a condition")
    return strategy


def _tail(scale: float, least: int) -> Fraction:
    """At least the probability that discrete Gaussian noise of this scale is `least` or more, for least >= 1.

    From x^2 >= t^2 + 2 t (x - t) a geometric series; and the masses add up to max(1, scale sqrt(2 pi)) or more.
    """
    square = scale * scale
    series = math.exp(-least * least / (2 * square)) / -math.expm1(-least / square)
    return min(Fraction(ROUNDING_MARGIN * series / max(1.0, scale * math.sqrt(2 * math.pi))), Fraction(1))


@dataclass
class KeyDeltas:
    """What the finds of a log add up to in delta, whatever table and version they are of, with those that were carried
    over; in units of 2^-100."""

    spent: int = 0

    def add(self, record: Record) -> None:
        self.spent = self.after([record])

    def after(self, records: Iterable[Record]) -> int:
        """What is spent with these records."""
        return self.spent + sum(each.event.delta for each in records if isinstance(each.event, Found | Carried))

    def state(self) -> Tree:
        """As plain values."""
        return str(self.spent)

    def restore(self, state: Tree) -> None:
        self.spent = int(state)


@runtime_checkable
class TextSource(Protocol):
    """A source that can weigh the texts of an open column."""

    def unlisted(self, event: Found) -> list[tuple[str, int]]:
        """The weight of every text without a cell that somebody has, of the bounded rows in the scope of the event.

        Guarantees: a unit's part depends on its own rows, and on which texts have cells. The order is that of a keyed
        hash of the texts, not of storage.
        """


def discover(kernel: Kernel, event: Found, **terms: Unpack[PaymentTerms]) -> tuple[list[str], Charge]:
    """Look for texts that enough people have, one commit; those found, sorted, with what it was charged.

    Guarantees: admitted in rho and in delta before anything is drawn. Where more are found than there are free cells,
    those with the largest noisy weights are kept; the others are not released.
    Edge cases: refused are columns that are not open or have no free cell, and data in partitions.
    """
    if kernel.domain.partition is not None:
        raise Unsupported("texts are looked for in data without partitions")
    if (kernel.table, event.column) not in kernel._keys.capacities:
        raise QueryError(f"{event.column} is no open column")
    if event.scope is not None:
        check_columns(kernel.domain, event.scope)
    if event.weight * kernel.max_rows > LARGEST_ANSWER:
        raise QueryError("the weight of a person is too large for max_rows")
    kernel._accountant.footprints(event)  # refuses what has no price before the data are touched
    version, tables = kernel._opened()
    if version != event.version:
        raise Stale("the data version changed meanwhile")
    weighed = weigh(tables, event)

    def work(transaction: Transaction) -> tuple[list[str], Charge]:
        charge = kernel._admit(transaction, event, **terms)
        admit_delta(kernel, transaction, event)
        lists = keys_with(kernel, transaction)
        free = kernel._keys.capacities[kernel.table, event.column] - len(lists.keys[kernel.table, event.column])
        if free == 0:
            raise QueryError(f"all cells of {event.column} are taken: nothing that is found could be told apart")
        exact = np.array([weight for _, weight in weighed], np.int64)
        noisy = (exact + kernel._randomness.draw(event.noise, len(exact))).tolist()
        listed = {key.text for key in lists.keys[kernel.table, event.column]}
        above = [(-sum_, text) for (text, _), sum_ in zip(weighed, noisy, strict=True) if sum_ >= event.threshold]
        texts = sorted(text for _, text in sorted(each for each in above if each[1] not in listed)[:free])
        kernel._append(transaction, event, np.zeros(0, np.int64), **terms)
        for text in texts:
            keyed = lists.next(kernel.table, event.column, text)
            assert keyed is not None
            values = np.zeros(0, np.int64)
            lists.add(transaction.append(analyst=FINDER, purpose=terms["purpose"], event=keyed, values=values))
        return texts, charge

    return kernel.ledger.commit(work)


def weigh(tables: Tables, event: Found) -> list[tuple[str, int]]:
    """The exact weights of texts without a cell; SourceError where the source cannot weigh them. Refused where the
    scope tells texts apart that have no cells."""
    if event.scope is not None and tables._domain is not None:
        check_keys(event.scope, tables._domain, tables.texts)
    if not isinstance(tables._source, TextSource):
        raise SourceError("texts cannot be looked for in this kind of source")
    return tables._source.unlisted(event)


def admit_delta(kernel: Kernel, transaction: Transaction, event: Found) -> None:
    """Refuse a find that would raise the delta of the log, of this commit and of all plans above `delta_keys`."""
    held = [each for hold in transaction.holds(kernel.ledger.now()) for each in hold.events]
    others = sum(each.delta for each in held if isinstance(each, Found))
    with kernel._lock:
        spent, cap = kernel._deltas.after(transaction.pending()) + others, kernel.budget.key_units
    if spent + event.delta > cap:
        left = max(cap - spent, 0) / 2**DELTA_BITS
        raise BudgetError(asked=event.delta / 2**DELTA_BITS, left=left, unit="delta", limit="is left of delta_keys")


def delta_spent(public: Public) -> int:
    """What looking for texts has used up of delta, in units of 2^-100."""
    with public._lock:
        public._advanced()
        return public._deltas.spent
