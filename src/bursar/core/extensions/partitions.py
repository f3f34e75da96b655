"""Partitions: which of them are sealed, and that nothing looks at the others.

A partition is a cell of the partition column. They are sealed in the order of the domain, by calendar or by the data
owner, never because a row appeared; a sealed one never changes, and only sealed ones can be asked about.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bursar.core.accounting.kind import ROOT, EventKind, Fields, FreeEvent, Versioned
from bursar.core.domain import Domain, Neighbours, Unit
from bursar.core.queries import LinearMap
from bursar.errors import ConfigError, LedgerError, QueryError

if TYPE_CHECKING:
    from bursar.core.accounting.accountant import Book
    from bursar.core.extensions.saved_state import Tree
    from bursar.core.ledger import Record
    from bursar.core.public import Public


@dataclass(frozen=True, kw_only=True)
class Sealed(FreeEvent):
    """The data owner sealed the partitions up to the one with the number `through`: they can be asked about.

    `sizes` are the numbers of rows of the partitions sealed by this event, where sizes are public (replace-one); None
    elsewhere, since a size would reveal whether somebody is there.
    """

    kind = "sealed"
    through: int
    version: int
    sizes: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if self.through < 0 or any(size < 0 for size in self.sizes or ()):
            raise ConfigError("partitions and their sizes are counted from 0")

    def fields(self) -> dict[str, object]:
        return {"kind": self.kind, "through": self.through, "version": self.version, "sizes": self.sizes}

    @staticmethod
    def read(fields: Fields) -> Sealed:
        through, version, sizes = fields.take("through", int), fields.take("version", int), fields.numbers("sizes")
        return Sealed(through=through, version=version, sizes=sizes)


@dataclass(frozen=True, kw_only=True)
class PartitionAxis:
    """The partition column, with how many cells, and whether the numbers of rows in them are public."""

    column: str
    size: int
    public_sizes: bool

    @staticmethod
    def of(domain: Domain, unit: Unit) -> PartitionAxis | None:
        """The axis of the data; None where they have no partitions.

        Edge cases: units of several rows cannot be replaced inside one partition, so replace-one takes rows as units.
        """
        if domain.partition is None:
            return None
        replaced = unit.neighbours is Neighbours.REPLACE_ONE
        if replaced and unit.column is not None:
            raise ConfigError(
                'a unit with a column may have rows in several partitions, and neighbours = "replace-one" keeps the '
                'size of each: use neighbours = "add-remove", or unit = "row"'
            )
        return PartitionAxis(column=domain.partition, size=domain.partitions, public_sizes=replaced)


@dataclass
class Seals:
    """What the log says about the partitions of the present version, advanced event by event.

    Guarantees: within a version partitions are only added, in their order.
    Edge cases: of several private tables, the first alone has partitions.
    """

    version: int = 0
    sealed: int = 0  # how many, from the first one on
    sizes: tuple[int, ...] = ()  # of the sealed ones, where sizes are public

    def add(self, event: EventKind) -> None:
        """Edge cases: a record that takes a seal back, or leaves a partition out, raises LedgerError."""
        if type(event) is Versioned and event.table == ROOT:
            self.version, self.sealed, self.sizes = event.version, 0, ()
        elif type(event) is Sealed:
            new = event.through + 1 - self.sealed
            if event.version != self.version or new <= 0 or (event.sizes is not None and len(event.sizes) != new):
                raise LedgerError("the log seals partitions out of their order")
            self.sealed, self.sizes = event.through + 1, self.sizes + (event.sizes or ())

    def state(self) -> Tree:
        """As plain values."""
        return [self.version, self.sealed, list(self.sizes)]

    def restore(self, state: Tree) -> None:
        self.version, self.sealed, sizes = state
        self.sizes = tuple(sizes)

    @staticmethod
    def after(records: Iterable[Record]) -> Seals:
        seals = Seals()
        for record in records:
            seals.add(record.event)
        return seals


def content_names(version: int, axis: PartitionAxis | None, sealed: int) -> list[str]:
    """The names of the secrets that hold the content hashes which bind: of the sealed partitions, or of all data."""
    return [f"content {version}"] if axis is None else [f"content {version} {place}" for place in range(sealed)]


def looked_at(strategy: LinearMap, domain: Domain) -> int:
    """One past the last partition in which some row of the strategy is not zero; 0 where there is none.

    A row without the partition column looks at all partitions.
    """
    if domain.partition is None:
        return 0
    last = 0
    for norm in strategy.norms(1):
        if norm.largest() == 0:
            continue
        factors = [place for place, names in enumerate(norm.attrs) if domain.partition in names]
        if not factors:
            return domain.partitions
        names, sizes = norm.attrs[factors[0]], norm.sizes[factors[0]]
        axis = names.index(domain.partition)
        others = tuple(place for place in range(len(names)) if place != axis)
        last = max(last, 1 + int(np.flatnonzero(norm.vectors[factors[0]].reshape(sizes).max(axis=others))[-1]))
    return last


def check_sealed(strategy: LinearMap, domain: Domain, sealed: int) -> None:
    """Refuse, from public facts alone, a strategy that looks at a partition which is not sealed.

    Edge cases: where every partition is sealed, the strategy need not have the column.
    """
    if looked_at(strategy, domain) > sealed:
        raise QueryError(f"this looks at partitions of {domain.partition} that are not sealed yet")


def sealed(public: Public) -> int | None:
    """How many partitions, from the first one on, can be asked about; None where the data have no partitions."""
    with public._lock:
        public._advanced()
        return None if public._axis is None else public._seals.sealed


def sizes(public: Public) -> tuple[int, ...]:
    """The numbers of rows of the sealed partitions, where these are public; else nothing."""
    with public._lock:
        public._advanced()
        return public._seals.sizes


def losses_by_partition(book: Book) -> list[int]:
    """What is spent on rows of each partition that stay there in all versions; in units of 2^-50. Of several
    tables, the first alone has partitions.

    The largest of these is what is spent, where there is one table, and one generation of its rows.
    """
    first = (profile for generation, profile in book.profiles.items() if book._terms(generation) is None)
    spent = (profile.spent_by_partition() for profile in first)
    empty = book.new_profile().spent_by_partition()
    return [book.carried + sum(each) for each in zip(empty, *spent, strict=True)]


def spent_by_partition(public: Public) -> list[int]:
    """What is spent on the rows of each partition of the first table, in units of 2^-50; one number where there are
    none."""
    with public._lock:
        return losses_by_partition(public._advanced().total)
