"""Views of the log: built lazily, advanced record by record, free."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from bursar.domain import Domain
from bursar.inference.least_squares import Block, Reconstruction
from bursar.kernel.accounting import Measured, Noise, Versioned
from bursar.kernel.ledger import Record
from bursar.queries import LinearMap, Product, Stack

Columns = tuple[str, ...]

KEPT_BYTES = 256 * 2**20
"""How much memory reconstructions may take; those not asked for longest go first."""

TRIED_SETS = 4
"""How many column sets, the smallest first, are tried for one question."""


@dataclass
class Measurements:
    """What has been measured on the current version of the data, by strategy and by column set."""

    domain: Domain
    finest: dict[str, Record] = field(default_factory=dict)  # strategy digest -> its most accurate measurement
    blocks: dict[Columns, list[Block]] = field(default_factory=dict)
    version: int = 0

    def advance(self, records: Iterable[Record]) -> None:
        for record in records:
            event = record.event
            if isinstance(event, Versioned):
                self.version = event.version
                self.finest.clear()  # rows are reused within their version only
                self.blocks.clear()
            elif isinstance(event, Measured) and event.version == self.version:
                self._take(event, record)

    def _take(self, event: Measured, record: Record) -> None:
        digest = event.strategy.digest
        known = self.finest.get(digest)
        if known is None or event.noise.variance() < noise_of(known).variance():
            self.finest[digest] = record
        start = 0
        for product in products_of(event.strategy):
            columns = self.domain.ordered(product.attrs)
            values = record.values[start : start + product.rows]
            self.blocks.setdefault(columns, []).append(Block(product, values, event.noise))
            start += product.rows

    def sets_above(self, columns: Columns) -> list[Columns]:
        """Column sets whose joint cells could determine a question on `columns`, the smallest domain first."""
        wanted = set(columns)
        above = [measured for measured in self.blocks if wanted.issubset(measured)]
        return sorted(dict.fromkeys([columns, *above]), key=lambda names: (self.domain.cells(names), names))


@dataclass
class Reconstructions:
    """One reconstruction per column set in use, each advanced only when it is asked."""

    domain: Domain
    measurements: Measurements
    kept: OrderedDict[Columns, tuple[int, Reconstruction, dict[Columns, int]]] = field(default_factory=OrderedDict)

    def over(self, queries: LinearMap) -> Iterator[Reconstruction]:
        """Reconstructions that might determine the queries."""
        columns = self.domain.ordered(queries.attrs)
        for names in self.measurements.sets_above(columns)[:TRIED_SETS]:
            reconstruction = self._current(names)
            if reconstruction.noises:
                yield reconstruction

    def _current(self, names: Columns) -> Reconstruction:
        version, reconstruction, taken = self.kept.get(names, (0, None, {}))
        if reconstruction is None or version != self.measurements.version:
            reconstruction, taken = Reconstruction(self.domain, names), {}
        for columns, blocks in self.measurements.blocks.items():
            if set(columns).issubset(names):
                for block in blocks[taken.get(columns, 0) :]:
                    reconstruction.add(block)
                taken[columns] = len(blocks)
        self.kept[names] = (self.measurements.version, reconstruction, taken)
        self.kept.move_to_end(names)
        while len(self.kept) > 1 and sum(found.bytes for _, found, _ in self.kept.values()) > KEPT_BYTES:
            self.kept.popitem(last=False)
        return reconstruction


def products_of(strategy: LinearMap) -> tuple[Product, ...]:
    """The products that a strategy is made of."""
    parts = strategy.parts if isinstance(strategy, Stack) else (strategy,)
    return tuple(part for part in parts if isinstance(part, Product))


def noise_of(record: Record) -> Noise:
    assert isinstance(record.event, Measured)
    return record.event.noise
