"""Bursar itself in Boost's evaluation: a preset before the planner and the kernel, real noise, no SQL and no disk.

Neighbours replace one row, sizes are public, and epsilon is pure: the setting of the paper. Blocks are partitions,
sealed at the start where the setting is static, and as questions reach them where it is a stream.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pandas as pd

from benchmarks.boost_data import Blocks
from benchmarks.boost_questions import Pool
from benchmarks.cachedp_run import Bench, Kept
from benchmarks.cachedp_tasks import request
from benchmarks.memory_kernel import memory_kernel
from benchmarks.systems.boost_world import PATH, Reals, System, World
from bursar import presets
from bursar.core.accounting import Failed, Opened, from_units
from bursar.core.budget import Budget
from bursar.core.domain import Domain, IntegerRange, Neighbours, Unit
from bursar.core.extensions.curator import seal
from bursar.core.extensions.partitions import PartitionAxis
from bursar.core.ledger import Record
from bursar.core.queries import Mask, Product, Steps
from bursar.core.tables import Tables
from bursar.goal import Goal, GoalKind, Horizon
from bursar.planner.choose import Preset
from bursar.planner.offer import Offer
from bursar.planner.planner import Planner
from bursar.testing import CountsSource

BUDGET = Budget.of(epsilon=10.0)

BLOCK = "block"
"""The partition column."""


class OneBlock(Bench):
    """The first block behind a kernel on a memory ledger, and a planner in front of it."""

    def __init__(self, blocks: Blocks, preset: Preset, *, sequential: bool, horizon: Horizon) -> None:
        unit = Unit(neighbours=Neighbours.REPLACE_ONE)
        columns = zip(blocks.columns, blocks.shape, strict=True)
        domain = Domain(tuple(IntegerRange(name=name, lower=0, upper=size - 1, null=0) for name, size in columns))
        cells = np.repeat(np.arange(blocks.counts.shape[1]), blocks.counts[0])
        rows = dict(zip(blocks.columns, np.unravel_index(cells, blocks.shape), strict=True))
        frame, most = pd.DataFrame(rows), 10 * blocks.size
        opened: dict[bytes, Kept] = {}

        def open_source(key: bytes) -> Kept:
            if key not in opened:
                opened[key] = Kept(frame, domain, unit, key=key, max_rows=most)
            return opened[key]

        self.ledger, self.kernel = memory_kernel(
            dataset=blocks.name,
            domain=domain,
            unit=unit,
            budget=BUDGET,
            max_rows=most,
            open_source=open_source,
            sequential=sequential,
        )
        self.planner = Planner(domain, BUDGET.mode, preset, self.kernel, self.ledger.records, horizon=horizon)
        (source,) = opened.values()
        self.truth = Tables(source).counts


class ManyBlocks(Bench):
    """All blocks as partitions behind a kernel on a memory ledger, and a planner in front of it."""

    def __init__(self, blocks: Blocks, preset: Preset, *, sealed: int) -> None:
        unit = Unit(neighbours=Neighbours.REPLACE_ONE)
        columns = [(BLOCK, blocks.number), *zip(blocks.columns, blocks.shape, strict=True)]
        domain = Domain(tuple(IntegerRange(name=n, lower=0, upper=size - 1, null=0) for n, size in columns), BLOCK)
        source = CountsSource(blocks.counts.reshape(blocks.number, *blocks.shape), domain)
        self._axis, self._open = PartitionAxis.of(domain, unit), lambda key: source
        self.ledger, self.kernel = memory_kernel(
            dataset=blocks.name,
            domain=domain,
            unit=unit,
            budget=BUDGET,
            max_rows=10 * blocks.size * blocks.number,
            open_source=self._open,
            sequential=preset.sequential,
            axis=self._axis,
            through=sealed - 1,
        )
        preset = presets.under(None, preset, domain)
        self.planner = Planner(domain, BUDGET.mode, preset, self.kernel, self.ledger.records)
        self.truth = source.table
        self._sealed = sealed

    def seal(self, through: int) -> None:
        if through >= self._sealed and self._axis is not None:
            self._sealed = seal(self.ledger, self._open, axis=self._axis, through=through)


class Single:
    """A preset as a system for questions about one block."""

    def __init__(
        self, blocks: Blocks, pool: Pool, world: World, preset: Preset, horizon: Horizon = Horizon.SOME
    ) -> None:
        self._bench = OneBlock(blocks, preset, sequential=preset.sequential, horizon=horizon)
        self._pool, self._size = pool, blocks.size
        self._goal = Goal(kind=GoalKind.ERROR, amount=world.alpha * blocks.size, confidence=1 - world.beta)
        self._seen = 0
        self.spent: Reals = np.zeros(1)

    def answer(self, query: int, first: int, last: int) -> tuple[float, str]:
        offer, estimate = self._bench.ask(request(product(self._pool, query), self._goal))
        new = self._bench.ledger.records(self._seen)
        if new:
            self._seen = new[-1].position
            self.spent = np.array([from_units(self._bench.kernel.spent())])
        return float(estimate.values[0]) / self._size, way(offer, new)

    def explain(self, query: int) -> str:
        """All offers for a question as things stand."""
        return str(self._bench.planner.explain(request(product(self._pool, query), self._goal)))


class Windows:
    """A preset as a system for questions about windows of blocks."""

    def __init__(self, blocks: Blocks, pool: Pool, world: World, preset: Preset, *, sealed: int) -> None:
        self._bench = ManyBlocks(blocks, preset, sealed=sealed)
        self._pool, self._world, self._number = pool, world, blocks.number
        self._seen = 0
        self.spent: Reals = np.zeros(blocks.number)

    def answer(self, query: int, first: int, last: int) -> tuple[float, str]:
        self._bench.seal(last)
        rows = self._world.rows((first, last))
        share = Goal(kind=GoalKind.ERROR, amount=100 * self._world.alpha, confidence=1 - self._world.beta, percent=True)
        goal = replace(share, amount=self._world.alpha * rows, percent=False)
        window = Steps.dense([[first <= block <= last for block in range(self._number)]])
        asked = Product((Mask((BLOCK,), (self._number,), window), *product(self._pool, query).masks))
        planned = request(asked, goal)
        offer, estimate = self._bench.ask(replace(planned, asked=replace(planned.asked, goal=share)))
        new = self._bench.ledger.records(self._seen)
        if new:
            self._seen = new[-1].position
            self.spent = np.array([from_units(units) for units in self._bench.kernel.spent_by_partition()])
        return float(estimate.values[0]) / rows, way(offer, new)


def way(offer: Offer, new: Sequence[Record]) -> str:
    """Which way an answer came: those of Boost by their names, else the proposer that was paid."""
    if not offer.proposer.startswith("pmw"):
        return "free" if offer.free else offer.proposer
    if any(isinstance(record.event, Failed) for record in new):
        return PATH.failed
    if any(isinstance(event, Opened | Failed) for event in offer.price.events):
        return PATH.estimated
    return PATH.bought if offer.price.events else PATH.cached


def product(pool: Pool, query: int) -> Product:
    """A query of the pool with a mask for each column whose values do not all count."""
    parts = zip(pool.columns, pool.shape, pool.subsets[query], strict=True)
    return Product(tuple(_mask(name, size, int(subset)) for name, size, subset in parts if subset != 2**size - 1))


@lru_cache(maxsize=4096)
def _mask(name: str, size: int, subset: int) -> Mask:
    """Some values of a column; kept, since what a question takes to write down is not what is measured."""
    return Mask((name,), (size,), Steps.dense([[subset >> value & 1 for value in range(size)]]))


Maker = Callable[[Blocks, Pool, World], System]


def _single(preset: Preset, horizon: Horizon = Horizon.SOME) -> Maker:
    return lambda blocks, pool, world: Single(blocks, pool, world, preset, horizon)


def _windows(preset: Preset, *, stream: bool) -> Maker:
    def made(blocks: Blocks, pool: Pool, world: World) -> System:
        return Windows(blocks, pool, world, preset, sealed=1 if stream else blocks.number)

    return made


PRESETS: dict[str, dict[str, Maker]] = {
    "single": {
        "default": _single(presets.default),
        "default-many": _single(presets.default, Horizon.MANY),
        "package-boost": _single(presets.boost),
        "package-boost-profile": _single(presets.named("boost-profile")),
    },
    "static": {
        "default": _windows(presets.default, stream=False),
        "package-boost": _windows(presets.boost, stream=False),
        "package-boost-profile": _windows(presets.named("boost-profile"), stream=False),
        "package-boost-cold": _windows(presets.boost_cold, stream=False),
    },
    "stream": {
        "default": _windows(presets.default, stream=True),
        "package-boost": _windows(presets.boost, stream=True),
        "package-boost-profile": _windows(presets.named("boost-profile"), stream=True),
        "package-boost-cold": _windows(presets.boost_cold, stream=True),
    },
}
"""Presets of the package by setting; one that is added here takes part."""
