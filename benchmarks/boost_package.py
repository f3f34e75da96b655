"""Bursar itself in Boost's evaluation: a preset before the planner and the kernel, real noise, no SQL and no disk.

Neighbours replace one row, sizes are public, and epsilon is pure: the setting of the paper. A preset for questions over
windows of blocks takes part once `PRESETS` has a maker for that setting.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.boost_data import Blocks
from benchmarks.boost_questions import Pool
from benchmarks.cachedp_run import Bench, Kept
from benchmarks.cachedp_tasks import request
from benchmarks.systems.boost_world import Reals, System, World
from bursar import presets
from bursar.domain import Domain, Integers, Neighbours, Unit
from bursar.goal import Goal, GoalKind
from bursar.kernel.accounting import from_units
from bursar.kernel.budget import Budget, charter_of
from bursar.kernel.curator import declare_version
from bursar.kernel.kernel import Kernel
from bursar.kernel.ledger import MemoryLedger
from bursar.kernel.randomness import SystemRandomness
from bursar.kernel.tables import Tables
from bursar.planner.choose import Preset
from bursar.planner.planner import Planner
from bursar.queries import Mask, Product, Steps

BUDGET = Budget.of(epsilon=10.0)


class OneBlock(Bench):
    """The first block behind a kernel on a memory ledger, and a planner in front of it."""

    def __init__(self, blocks: Blocks, preset: Preset, *, sequential: bool) -> None:
        unit, randomness = Unit(neighbours=Neighbours.REPLACE_ONE), SystemRandomness()
        columns = zip(blocks.columns, blocks.shape, strict=True)
        domain = Domain(tuple(Integers(name=name, lower=0, upper=size - 1, null=0) for name, size in columns))
        cells = np.repeat(np.arange(blocks.counts.shape[1]), blocks.counts[0])
        rows = dict(zip(blocks.columns, np.unravel_index(cells, blocks.shape), strict=True))
        frame, most = pd.DataFrame(rows), 10 * blocks.size
        facts: Any = {"domain": domain, "unit": unit, "budget": BUDGET, "max_rows": most}
        self.ledger = MemoryLedger(charter_of(dataset=blocks.name, **facts))
        opened: dict[bytes, Kept] = {}

        def open_source(key: bytes) -> Kept:
            if key not in opened:
                opened[key] = Kept(frame, domain, unit, key=key, max_rows=most)
            return opened[key]

        door: Any = {"ledger": self.ledger, "open_source": open_source, "randomness": randomness}
        declare_version(**door)
        self.kernel = Kernel(**facts, **door, sequential=sequential)
        self.planner = Planner(domain, BUDGET.mode, preset, self.kernel, self.ledger.records)
        (source,) = opened.values()
        self.truth = Tables(source).counts


class Single:
    """A preset as a system for questions about one block."""

    def __init__(self, blocks: Blocks, pool: Pool, world: World, preset: Preset) -> None:
        self._bench = OneBlock(blocks, preset, sequential=preset.sequential)
        self._pool, self._size = pool, blocks.size
        self._goal = Goal(kind=GoalKind.ERROR, amount=world.alpha * blocks.size, confidence=1 - world.beta)
        self.spent: Reals = np.zeros(1)

    def answer(self, query: int, first: int, last: int) -> tuple[float, str]:
        offer, estimate = self._bench.ask(request(product(self._pool, query), self._goal))
        if not offer.free:
            self.spent = np.array([from_units(self._bench.kernel.spent())])
        return float(estimate.values[0]) / self._size, "free" if offer.free else offer.proposer

    def explain(self, query: int) -> str:
        """All offers for a question as things stand."""
        return str(self._bench.planner.explain(request(product(self._pool, query), self._goal)))


def product(pool: Pool, query: int) -> Product:
    """A query of the pool with a mask for each column whose values do not all count."""
    parts = zip(pool.columns, pool.shape, pool.subsets[query], strict=True)
    masks = [
        Mask((name,), (size,), Steps.dense([[subset >> value & 1 for value in range(size)]]))
        for name, size, subset in parts
        if subset != 2**size - 1
    ]
    return Product(tuple(masks))


Maker = Callable[[Blocks, Pool, World], System]


def _single(preset: Preset) -> Maker:
    return lambda blocks, pool, world: Single(blocks, pool, world, preset)


PRESETS: dict[str, dict[str, Maker]] = {
    "single": {"default": _single(presets.default)},
    "static": {},
    "stream": {},
}
"""Presets of the package by setting; one that is added here takes part."""
