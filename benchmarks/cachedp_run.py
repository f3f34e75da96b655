"""Runs one system through one task: the planner and the kernel with real noise, without SQL and disk."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from itertools import product as combinations

import numpy as np
from numpy.typing import NDArray

from benchmarks.cachedp_tasks import TASKS, Task, converse
from benchmarks.harness import peak_mb
from benchmarks.memory_kernel import memory_kernel
from bursar import presets
from bursar.core.accounting import Measured, from_units
from bursar.core.budget import Budget
from bursar.core.domain import Unit
from bursar.core.ledger import Record
from bursar.core.queries import Steps
from bursar.core.source.duckdb import DuckDBSource
from bursar.core.tables import Tables
from bursar.estimation.estimate import Estimate
from bursar.goal import GoalKind, Horizon
from bursar.papers.cachedp import modules
from bursar.planner.choose import Preset
from bursar.planner.grant import Grant
from bursar.planner.offer import Offer
from bursar.planner.planner import Planner
from bursar.planner.request import PlanningRequest
from bursar.views.measurements import products_of

SYSTEMS: dict[str, Preset] = {
    name: presets.named(name)
    for name in ("laplace", "apex", "apex-cache", "pioneer", "cachedp", "cachedp-profile", "default")
}
"""What is compared, in the order of the tables; a preset that is added here takes part."""

WITHOUT: dict[str, Preset] = {
    "cachedp-no-se": Preset("cachedp-no-se", modules(expander=False), sequential=True),
    "cachedp-no-pq": Preset("cachedp-no-pq", modules(proactive=False), sequential=True),
    "cachedp-no-rp": Preset("cachedp-no-rp", modules(relax=False), sequential=True),
}
"""CacheDP without one of its modules (Fig. 8); they take part where --systems names them."""

QUADS: dict[str, Preset] = {"cachedp-quads": presets.named("cachedp-quads")}
"""CacheDP with a quad-tree for pairs of columns, for tasks that have such pairs."""

BUDGET = Budget.of(epsilon=1000.0)

LATE = ("opendp.measurements", "scipy.linalg", "scipy.sparse")
"""Libraries that are loaded when they are first needed: before the clock runs, here."""


@dataclass(kw_only=True)
class Trace:
    """What happened in one run."""

    system: str
    seed: int
    real: bool  # whether the data are
    epsilon: list[float] = field(default_factory=list)  # spent after each workload
    attributes: list[int] = field(default_factory=list)  # columns of each workload
    rows: list[int] = field(default_factory=list)  # rows in the log after each workload
    cpu_s: list[float] = field(default_factory=list)  # planning, noise and inference of each workload
    used: Counter[str] = field(default_factory=Counter)  # "free", or the proposer that was paid
    failures: int = 0
    answers: dict[tuple[str, bytes], bool] = field(default_factory=dict)  # different ones, and whether each failed
    distinct_rows: int = 0
    peak_mb: float = 0.0


class Kept(DuckDBSource):
    """A source that is read once and serves all who open it with its key."""

    def close(self) -> None:
        """Nothing to do: it goes with the process."""


class Bench:
    """A table behind a kernel on a memory ledger, and a planner in front of it."""

    def __init__(self, task: Task, preset: Preset, *, sequential: bool, horizon: Horizon = Horizon.SOME) -> None:
        table, unit = task.data, Unit()
        rows = 10 * table.size
        opened: dict[bytes, Kept] = {}

        def open_source(key: bytes) -> Kept:
            if key not in opened:
                opened[key] = Kept(table.frame, table.domain, unit, key=key, max_rows=rows)
            return opened[key]

        self.ledger, self.kernel = memory_kernel(
            dataset=task.name,
            domain=table.domain,
            unit=unit,
            budget=BUDGET,
            max_rows=rows,
            open_source=open_source,
            sequential=sequential,
        )
        self.planner = Planner(table.domain, BUDGET.mode, preset, self.kernel, self.ledger.records, horizon=horizon)
        (source,) = opened.values()
        self.truth = Tables(source).counts

    def ask(self, request: PlanningRequest) -> tuple[Offer, Estimate]:
        """`Engine.ask` without the parts that are about keys, bytes and other processes."""
        offer = self.planner.choose(request)
        events, at_most = offer.price.events, offer.price.at_most
        with Grant(self.kernel, request.analyst, request.text, events, at_most, proposer=offer.proposer) as grant:
            return offer, offer.run(grant)


def run(task: Task, system: str, seed: int, horizon: Horizon = Horizon.SOME) -> Trace:
    """All clients of a task, served by one system; the horizon matters to the default only."""
    for name in LATE:
        import_module(name)
    preset = {**SYSTEMS, **WITHOUT, **QUADS}[system]
    bench = Bench(task, preset, sequential=preset.sequential, horizon=horizon)
    trace = Trace(system=system, seed=seed, real=task.data.real)
    log: list[Record] = []

    def answer(request: PlanningRequest) -> NDArray[np.float64]:
        start = time.process_time()
        offer, estimate = bench.ask(request)
        trace.cpu_s.append(time.process_time() - start)
        new = bench.ledger.records(len(log))
        log.extend(new)
        bought = sum(len(record.values) for record in new if isinstance(record.event, Measured))
        trace.rows.append((trace.rows[-1] if trace.rows else 0) + bought)
        paid = from_units(bench.kernel.spent()) if new or not trace.epsilon else trace.epsilon[-1]
        trace.epsilon.append(paid)
        trace.used["free" if offer.free else offer.proposer] += 1
        trace.attributes.append(len(request.workload.map.attrs))
        misses = failed(request, estimate, bench)
        trace.failures += misses
        key = request.text, estimate.values.tobytes()
        trace.answers[key] = trace.answers.get(key, False) or misses
        return estimate.values

    converse(task.clients(seed), np.random.default_rng([seed, 2**20]), answer)
    trace.distinct_rows, trace.peak_mb = distinct(log), peak_mb()
    return trace


def failed(request: PlanningRequest, estimate: Estimate, bench: Bench) -> bool:
    """Whether an answer misses its goal: an error by what it is, an expected squared error by what was computed."""
    goal = request.goal
    if goal.kind is GoalKind.RMSE:
        return estimate.law.mean_square() > goal.amount**2 * (1 + 1e-9)
    errors = np.abs(estimate.values - request.workload.map.apply(bench.truth))
    return bool(errors.max(initial=0.0) >= goal.amount)


def distinct(log: Iterable[Record]) -> int:
    """How many different queries the log has answers to: what a cache of them would hold."""
    seen: set[tuple[object, ...]] = set()
    for record in log:
        if isinstance(record.event, Measured):
            for part in products_of(record.event.strategy):
                names = [tuple(_row_keys(mask.steps)) for mask in part.masks]
                seen |= {(part.attrs, *row) for row in combinations(*names)}
    return len(seen)


def job(task: str, options: Mapping[str, int], system: str, seed: int, horizon: str) -> Trace:
    """A run by names alone, so that it can be handed to a process of its own."""
    return run(TASKS[task](**options), system, seed, Horizon.of(horizon))


def _row_keys(steps: Steps) -> list[bytes]:
    ends = steps.starts[1:-1]
    pairs = zip(np.split(steps.at, ends), np.split(steps.jump, ends), strict=True)
    return [at.tobytes() + jump.tobytes() for at, jump in pairs]
