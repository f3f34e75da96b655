"""Measurements of single partitions: for each strategy, the finest one of every partition."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Integers, Reals
from bursar.core.accounting import Book, Measured, Noise, NoiseKind, Refined, Versioned
from bursar.core.domain import Domain
from bursar.core.ledger import Record
from bursar.core.queries import LinearMap, Mask, Product, Steps
from bursar.lazy_dataclass import dataclass

Columns = frozenset[str]


@dataclass(eq=False)
class PartitionMeasurements:
    """Measurements of one strategy, partition by partition; the scale is infinite where there is none.

    With Laplace noise the finest measurement of a partition counts. Gaussian ones are put together by their precisions;
    the scale is then that of the mean, which has no heavier moments than one discrete Gaussian of that scale.
    """

    strategy: Product
    values: Reals  # (partitions, rows of the strategy)
    scales: Reals  # (partitions,)
    blocks: Integers  # (partitions,): the position of the measurement in the log
    firsts: Integers  # (partitions,): where the partition's rows begin in it
    merged: NDArray[np.bool_]  # (partitions,): whether several measurements were put together

    @staticmethod
    def empty(strategy: Product, partitions: int) -> PartitionMeasurements:
        """Nothing measured yet, in any partition."""
        return PartitionMeasurements(
            strategy,
            np.zeros((partitions, strategy.rows)),
            np.full(partitions, math.inf),
            np.zeros(partitions, np.int64),
            np.zeros(partitions, np.int64),
            np.zeros(partitions, bool),
        )

    def copy(self) -> PartitionMeasurements:
        places = (self.blocks.copy(), self.firsts.copy())
        return PartitionMeasurements(self.strategy, self.values.copy(), self.scales.copy(), *places, self.merged.copy())

    def add(self, partitions: Integers, values: Integers, noise: Noise, *, block: int) -> None:
        """A measurement of the strategy on some partitions."""
        for place, (partition, rows) in enumerate(zip(partitions, values.reshape(len(partitions), -1), strict=True)):
            self.put(int(partition), rows, noise, block=block, first=place * self.strategy.rows)

    def put(self, partition: int, values: Integers, noise: Noise, *, block: int, first: int) -> None:
        """One more measurement of a partition, or a refinement of the one that is there."""
        had = self.scales[partition]
        if noise.kind is NoiseKind.GAUSSIAN and math.isfinite(had):
            share = noise.scale**2 / (noise.scale**2 + had**2)  # of what was known
            self.values[partition] = share * self.values[partition] + (1 - share) * values
            self.scales[partition] = had * math.sqrt(share)
            self.merged[partition] = True
        elif noise.scale < had:
            self.values[partition], self.scales[partition] = values, noise.scale
            self.blocks[partition], self.firsts[partition] = block, first


def placed(strategy: Product, column: str, cells: Integers, size: int) -> Product:
    """The strategy on each of the given partitions: what a purchase for single partitions measures."""
    return Product((Mask((column,), (size,), Steps.ranges(cells, cells + 1, size)), *strategy.masks))


def taken_apart(strategy: LinearMap, column: str) -> tuple[Integers, Product] | None:
    """The partitions, and the strategy on each of them, of what `placed` makes; None for anything else."""
    if not isinstance(strategy, Product) or not strategy.masks or strategy.masks[0].attrs != (column,):
        return None
    rows = strategy.masks[0].steps.at_cells(np.arange(strategy.masks[0].sizes[0]))
    if len(strategy.masks) == 1 or np.any(np.abs(rows).sum(axis=1) != 1) or rows.min(initial=0) < 0:
        return None
    return np.argmax(rows, axis=1).astype(np.int64), Product(strategy.masks[1:])


@dataclass
class PartitionViews:
    """A view of the log: partition measurements by strategy, and what questions have cost each partition alone."""

    domain: Domain
    empty_book: Callable[[], Book]
    by_strategy: dict[str, PartitionMeasurements] = field(default_factory=dict)  # by the digest of the strategy
    column_sets: list[Columns] = field(default_factory=list)  # the columns of questions that were paid for, in order
    _blocks: dict[int, tuple[PartitionMeasurements, Integers, LinearMap]] = field(
        default_factory=dict
    )  # of a strategy, its partitions, what was measured
    _paid: list[tuple[Columns, Reals, str | None]] = field(default_factory=list)
    _rents: dict[tuple[Columns, str], tuple[int, Reals]] = field(default_factory=dict)

    @property
    def partitions(self) -> int:
        return 0 if self.domain.partition is None else self.domain[self.domain.partition].size

    def advance(self, records: Iterable[Record]) -> None:
        assert self.domain.partition is not None
        for record in records:
            match record.event:
                case Versioned():
                    for collection in (self.by_strategy, self.column_sets, self._blocks, self._paid, self._rents):
                        collection.clear()
                case Measured() as event:
                    self._measured(record, event, self.domain.partition)
                case Refined() as event if event.block in self._blocks:
                    self._refined(record, event)

    def of(self, strategy: Product) -> PartitionMeasurements:
        """What is measured of a strategy, partition by partition."""
        return self.by_strategy.get(strategy.digest) or PartitionMeasurements.empty(strategy, self.partitions)

    def measured(self, block: int) -> LinearMap:
        """What the measurement at a position of the log measured."""
        return self._blocks[block][2]

    def rent(self, columns: Iterable[str], strategy: Product) -> Reals:
        """Per partition, what questions about the columns or fewer have cost since the strategy was last bought there.

        In units of 2^-50, each question as if it were the only one.
        """
        key = (frozenset(columns), strategy.digest)
        start, total = self._rents.get(key, (0, np.zeros(self.partitions)))
        for about, cost, bought in self._paid[start:]:
            if bought == strategy.digest:
                total = np.where(cost > 0, 0.0, total)
            elif about <= key[0]:
                total = total + cost
        self._rents[key] = (len(self._paid), total)
        return total

    def _measured(self, record: Record, event: Measured, column: str) -> None:
        cost = self.empty_book().price((event,)) * self._touched(event.strategy, column)
        about = frozenset(event.strategy.attrs) - {column}
        apart = taken_apart(event.strategy, column)
        self._paid.append((about, cost, None if apart is None else apart[1].digest))
        if about not in self.column_sets:
            self.column_sets.append(about)
        if apart is not None:
            partitions, strategy = apart
            measurements = self.by_strategy.setdefault(
                strategy.digest, PartitionMeasurements.empty(strategy, self.partitions)
            )
            self._blocks[record.position] = measurements, partitions, event.strategy
            measurements.add(partitions, record.values, event.noise, block=record.position)

    def _refined(self, record: Record, event: Refined) -> None:
        """Only refinements of all rows of a partition count; what `placed` bought is refined in no other way."""
        measurements, partitions, _ = self._blocks[event.block]
        size = measurements.strategy.rows
        places, counts = np.unique(event.rows // size, return_counts=True)
        ends = np.cumsum(counts)
        for place, count, end in zip(places.tolist(), counts.tolist(), ends.tolist(), strict=True):
            if count == size:
                values = record.values[end - size : end]
                measurements.put(int(partitions[place]), values, event.after, block=event.block, first=place * size)

    def _touched(self, strategy: LinearMap, column: str) -> Reals:
        touched = np.zeros(self.partitions)
        for norm in strategy.norms(1):
            for mask, vector in zip(norm.masks, norm.vectors, strict=True):
                if column in mask.attrs:
                    grid = vector.reshape(mask.sizes)
                    others = tuple(axis for axis, name in enumerate(mask.attrs) if name != column)
                    touched = np.maximum(touched, grid.max(axis=others) > 0)
        return touched
