"""One run of RAP's evaluation: a system, a workload, and what came of it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from benchmarks.harness import peak_mb
from benchmarks.rap_data import DATA, Coded
from benchmarks.rap_measures import Reals, compare, of_table
from benchmarks.rap_workloads import Sets, distinct, drawn, drifted, masses, queries, uniform, workload

GAMMAS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0)
"""Drifts at which future error is measured: those of Table 5, and some between."""

MOST_CELLS = 2**22
"""Most joint values of a feature set that is drawn: the kernel measures no more rows at once."""

Outcome = dict[str, float]


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One run: everything but the noise is fixed by it.

    `sets` says how feature sets are chosen: "published" (or uniform, where that is not at hand), "uniform", "filtered"
    (no more joint values than people), or "history-" with a distribution of features, i.i.d. and then each once.
    """

    data: str = "adult"
    system: str
    k: int = 3
    least: int = 3
    size: int = 16
    sets: str = "published"
    epsilon: float = 1.0
    rounds: int = 16  # T of rap
    picks: int = 4  # K of rap
    rows: int = 1000  # n' of rap
    future: int = 0  # thresholds drawn for the future, at each drift
    seconds: float = math.inf  # CPU time after which rap-nonadaptive is stopped, with the rows that it has
    seed: int = 0


KEY = [each.name for each in fields(Setting)]
FUTURE = [f"{name}_{gamma:g}" for gamma in GAMMAS for name in ("future", "future_square")]
MEASURED = [
    *("queries", "max_error", "mean_error", "tv", "answers_tv", "table_max_error"),
    *("spent", "cpu_s", "peak_mb", "queries_per_s", "answers_per_s", *FUTURE),
]


def sets_of(setting: Setting, data: Coded) -> Sets:
    """The feature sets that a setting asks about."""
    k, size, seed = setting.k, setting.size, setting.seed
    kind, _, distribution = setting.sets.partition("-")
    if kind == "history":
        rng = np.random.default_rng([seed, k, size, 1])
        return distinct(drawn(masses(distribution, data.features), k, size, rng))
    if kind == "published":
        return workload(data, k, size, seed, most_cells=None if k < 4 else MOST_CELLS)
    return uniform(data, k, size, seed, most_cells=data.rows if kind == "filtered" else MOST_CELLS)


def run(setting: Setting) -> Outcome:
    """One system on one workload: errors, CPU time of everything but the truth, and the memory of this process."""
    from benchmarks.rap_systems import SYSTEMS

    data = DATA[setting.data]()
    sets, least = sets_of(setting, data), setting.least
    asked = queries(data, sets)
    prepared = SYSTEMS[setting.system](data, setting)
    start = time.process_time()
    released = prepared(sets)
    cpu = time.process_time() - start
    answering = Stopwatch(released.answers(sets))
    errors = compare(data, sets, least, answering)
    cpu += answering.seconds
    outcome = {
        "queries": float(asked),
        "max_error": errors.max_error,
        "mean_error": errors.mean_error,
        "spent": released.spent,
        "cpu_s": cpu,
        "peak_mb": own_peak_mb(),
        "queries_per_s": asked / max(cpu, 1e-9),
        "answers_per_s": asked / max(answering.seconds, 1e-9),
    }
    table = None if released.table is None else of_table(data, sets, least, released.table)
    if table is not None:
        outcome["table_max_error"] = table.max_error
    if least == setting.k:  # marginals are distributions, thresholds are not
        outcome |= {"tv": errors.tv if table is None else table.tv, "answers_tv": errors.tv}
    if setting.future:
        outcome |= future(setting, data, released.answers)
    return outcome


def future(setting: Setting, data: Coded, answers: Callable[[Sets], Iterable[Reals]]) -> Outcome:
    """The largest error of a threshold yet to come: its mean and its mean square over the draws, at each drift."""
    historical = masses(setting.sets.partition("-")[2], data.features)
    later: dict[float, Sets] = {}
    for place, gamma in enumerate(GAMMAS):
        rng = np.random.default_rng([setting.seed, setting.k, 2, place])  # the same for every history
        later[gamma] = drawn(drifted(historical, gamma, rng), setting.k, setting.future, rng)
    every = distinct([features for sets in later.values() for features in sets])
    worst = dict(zip(every, compare(data, every, setting.least, answers(every)).largest, strict=True))
    found: Outcome = {}
    for gamma, sets in later.items():
        errors = np.array([worst[features] for features in sets])
        found |= {f"future_{gamma:g}": float(errors.mean()), f"future_square_{gamma:g}": float((errors**2).mean())}
    return found


class Stopwatch:
    """An iterable that knows the CPU time that its items took to make."""

    def __init__(self, items: Iterable[Reals]) -> None:
        self._items, self.seconds = items, 0.0

    def __iter__(self) -> Iterator[Reals]:
        items = iter(self._items)
        while True:
            start = time.process_time()
            item = next(items, None)
            self.seconds += time.process_time() - start
            if item is None:
                return
            yield item


def own_peak_mb() -> float:
    """The most memory this program has used; where it can be told apart, without the process that started it."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), peak_mb())
