"""Stages: whole sessions in memory, over rows that belong to nobody. For tests, benchmarks, audits and simulations.

Noise is drawn and prices are charged as always; only the data and the ledger are made up. No analyst's path comes here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256

import numpy as np

from bursar.arrays import Integers
from bursar.config import Config
from bursar.core.domain import Domain
from bursar.core.extensions.curator import declare_version
from bursar.core.extensions.distinct import check_counted
from bursar.core.extensions.partitions import PartitionAxis
from bursar.core.extensions.predicate import check_columns
from bursar.core.ledger import Ledger, MemoryLedger
from bursar.core.noise.system import Randomness, SystemRandomness
from bursar.core.queries import Distinct, PerPerson, Predicate
from bursar.core.source.source import Source, table_shape
from bursar.planner.choose import Preset
from bursar.report.status import OWNER
from bursar.session import Bursar


class CountsSource:
    """A source that is its full table of counts, one axis per column: exact answers are known."""

    def __init__(self, counts: Integers, domain: Domain, content: str = "as it was") -> None:
        self.counts, self.domain, self.stamp = counts, domain, content

    def content(self, first: int | None = None) -> tuple[str, ...]:
        """One text per partition, which changes with its counts."""
        if self.domain.partition is None:
            return (self.stamp,)
        parts = np.moveaxis(self.counts, self.domain.place(self.domain.partition), 0)
        return tuple(f"{self.stamp} {sha256(part.tobytes()).hexdigest()}" for part in parts)

    def table(self, attrs: tuple[str, ...]) -> Integers:
        """Counts over some columns, in the order in which they are named."""
        summed = tuple(axis for axis, name in enumerate(self.domain.names) if name not in attrs)
        ordered = [name for name in self.domain.names if name in attrs]
        counts: Integers = np.transpose(self.counts.sum(axis=summed), [ordered.index(name) for name in attrs])
        return counts

    def count(self, predicate: Predicate) -> int:
        """Rows that meet a predicate."""
        check_columns(self.domain, predicate)
        return int(predicate.apply(self.table)[0])

    def distinct(self, distinct: Distinct) -> Integers:
        """Values that occur; people are not known here."""
        check_counted(self.domain, distinct)
        return distinct.apply(self.table)

    def per_person(self, people: PerPerson) -> Integers:
        """People are not known here."""
        return people.apply(self.table)

    def close(self) -> None:
        """Nothing is open."""


class EmptySource:
    """A source without a single row, over a domain of any size: what an answer costs does not depend on rows."""

    def __init__(self, domain: Domain) -> None:
        self._domain = domain

    def content(self, first: int | None = None) -> tuple[str, ...]:
        """Always the same."""
        return ("nobody",) * self._domain.partitions

    def table(self, attrs: tuple[str, ...]) -> Integers:
        """Zeros."""
        return np.zeros(table_shape(self._domain, attrs), np.int64)

    def count(self, predicate: Predicate) -> int:
        """No row meets anything."""
        return 0

    def distinct(self, distinct: Distinct) -> Integers:
        """Nobody is there."""
        return np.zeros(distinct.rows, np.int64)

    def per_person(self, people: PerPerson) -> Integers:
        """Nobody is there."""
        return np.zeros(people.rows, np.int64)

    def assign(self, texts: Mapping[str, Sequence[str]]) -> None:
        """Nobody has a text."""

    def close(self) -> None:
        """Nothing is open."""


def memory_ledger(
    config: Config, open_source: Callable[[bytes], Source], randomness: Randomness | None = None
) -> MemoryLedger:
    """A ledger in memory on which nothing was asked yet: version 1 is declared, and every partition is sealed."""
    ledger, axis = MemoryLedger(config.charter), PartitionAxis.of(config.domain, config.unit)
    last = config.domain.partitions - 1
    declare_version(ledger, open_source, randomness or SystemRandomness(), axis=axis, through=last)
    return ledger


def stage(
    config: Config,
    open_source: Callable[[bytes], Source],
    *,
    ledger: Ledger | None = None,
    randomness: Randomness | None = None,
    preset: Preset | None = None,
    analyst: str = OWNER,
) -> Bursar:
    """A session over a source, on a ledger in memory unless another one is given."""
    randomness = randomness or SystemRandomness()
    if ledger is None:
        ledger = memory_ledger(config, open_source, randomness)
    return Bursar(config, ledger, open_source=open_source, randomness=randomness, analyst=analyst, preset=preset)
