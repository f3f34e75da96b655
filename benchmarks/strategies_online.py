"""Questions one at a time, none known beforehand: `python -m benchmarks.strategies_online [--quick] [--out DIR]`.

CacheDP's random range queries: 1,000 cells, start ~ N(500, 10), length ~ N(320, 10), endpoints rounded, each with its
own goal on the expected squared error ~ N(250000, 25000). What is spent is rho, by the profile, for the same questions
in the same order. `failure_rate` is the share of answers whose computed expected squared error exceeds the goal;
`cpu_ms_per_query` is planning and running, without SQL and disk, with one thread.

    independent  a fresh Gaussian answer each time
    exact_cache  the same, but a range that was answered as well before is free
    reuse        exact matches, least squares over everything bought, else a fresh answer
    incremental  the same, but what is bought is just what is missing
    default      the preset that everybody gets
    hindsight    all questions known beforehand: the least rho with which one strategy could keep all goals, known up to
                 the gap between `online_rho`, which a strategy reaches, and `bound`, which none can go below
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import Figures, options, report
from benchmarks.sheet import sheet
from bursar import presets
from bursar.compile.workload import Workload
from bursar.config import Config
from bursar.core.budget import Budget
from bursar.core.domain import Domain, IntegerRange, Unit
from bursar.core.queries import Mask, Product, Steps
from bursar.core.source.duckdb import DuckDBSource
from bursar.goal import Goal, GoalKind
from bursar.planner.choose import Preset
from bursar.planner.grant import Grant
from bursar.planner.request import PlanningRequest, Request, planning_request
from bursar.proposers.direct import Direct
from bursar.proposers.incremental import Incremental
from bursar.proposers.reuse import Exact, Reconstruct
from bursar.session import Bursar
from bursar.strategies.optimal import optimum
from bursar.testing import stage

Reals = NDArray[np.float64]
CELLS = 1000
QUESTIONS, QUICK_QUESTIONS = 50_000, 3_000
PRESETS = (
    Preset("reuse", (Exact(), Reconstruct(), Direct())),
    Preset("incremental", (Exact(), Reconstruct(), Incremental(), Direct())),
    presets.default,
)
ROUNDS = 60
"""Rounds of weighing the questions for the hindsight optimum."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Asked:
    """Ranges [low, high) with the largest expected squared error allowed for each."""

    lows: NDArray[np.int64]
    highs: NDArray[np.int64]
    variances: Reals

    @staticmethod
    def drawn(seed: int, questions: int) -> Asked:
        rng = np.random.default_rng(seed)
        starts, lengths = rng.normal(500, 10, questions), rng.normal(320, 10, questions)
        lows, highs = np.rint(starts).astype(np.int64), np.rint(starts + lengths).astype(np.int64)
        return Asked(lows=lows, highs=highs, variances=rng.normal(250_000, 25_000, questions))


@dataclass
class Run:
    """What happened to one system."""

    spent: list[tuple[int, float]] = field(default_factory=list)  # (questions so far, rho), where it rose
    failures: int = 0
    misses: int = 0
    cpu: float = 0.0

    def figures(self, questions: int) -> dict[str, float]:
        return {
            "online_rho": self.spent[-1][1],
            "failure_rate": self.failures / questions,
            "misses": float(self.misses),
            "cpu_ms_per_query": 1000 * self.cpu / questions,
        }


def online(seed: int, questions: int) -> Figures:
    """The figures of all systems on the same questions."""
    asked = Asked.drawn(seed, questions)
    return figures_of(asked, all_runs(asked))


def all_runs(asked: Asked) -> dict[str, Run]:
    runs = {"independent": fresh(asked), "exact_cache": fresh(asked, cache=True)}
    return runs | {preset.name: engine_run(preset, asked) for preset in PRESETS}


def figures_of(asked: Asked, runs: dict[str, Run]) -> Figures:
    figures = {name: run.figures(len(asked.lows)) for name, run in runs.items()}
    for name in ("independent", "exact_cache"):
        del figures[name]["cpu_ms_per_query"]  # added up, not run
    reached, bound = hindsight(asked)
    figures["hindsight"] = {"online_rho": reached, "bound": bound}
    figures["default"]["online_over_hindsight"] = figures["default"]["online_rho"] / reached
    return figures


def fresh(asked: Asked, *, cache: bool = False) -> Run:
    """Each range is measured by itself with just the variance allowed, unless the cache has it as exactly."""
    run, loss = Run(), np.zeros(CELLS)
    known: dict[tuple[int, int], float] = {}
    for number, (low, high, variance) in enumerate(zip(asked.lows, asked.highs, asked.variances, strict=True), 1):
        if cache and known.get((low, high), np.inf) <= variance:
            continue
        known[low, high] = variance
        loss[low:high] += 1 / (2 * variance)
        run.misses += 1
        run.spent.append((number, float(loss.max())))
    return run


def engine_run(preset: Preset, asked: Asked) -> Run:
    """Through the planner and the kernel, on a memory ledger."""
    db, run = engine(preset), Run()
    for number in range(len(asked.lows)):
        request = _request(int(asked.lows[number]), int(asked.highs[number]), float(asked.variances[number]))
        start = time.process_time()
        offer = db.engine.planner.choose(request)
        events, at_most = offer.price.events, offer.price.at_most
        with Grant(db.kernel, "analyst", request.text, events, at_most, proposer=offer.proposer) as grant:
            offer.run(grant)
        run.cpu += time.process_time() - start
        run.failures += offer.law.mean_square() > asked.variances[number] * (1 + 1e-9)  # the goal is its square root
        if offer.buys:
            run.misses += 1
            run.spent.append((number + 1, db.kernel.spent() / 2**50))
    return run


def engine(preset: Preset) -> Bursar:
    """A column of 1,000 values; what they are makes no difference to any figure."""
    import duckdb

    frame = duckdb.sql(f"SELECT (hash(i) % {CELLS})::INT AS value FROM range(100000) t(i)").df()
    domain = Domain((IntegerRange(name="value", lower=0, upper=CELLS - 1, null=0),))
    facts = {"dataset": "online", "domain": domain, "unit": Unit(), "budget": Budget.of(rho=10.0), "max_rows": 10**6}
    config = Config(path=Path("online.toml"), location=Path("online"), table="people", **facts)

    def open_source(key: bytes) -> DuckDBSource:
        return DuckDBSource(frame, domain, Unit(), key=key, max_rows=config.max_rows)

    return stage(config, open_source, preset=preset)


def _request(low: int, high: int, variance: float) -> PlanningRequest:
    product = Product((Mask(("value",), (CELLS,), Steps.ranges([low], [high], CELLS)),))
    workload = Workload(product, (), ((),), ("count",), np.zeros((1, 1), np.int64))
    goal = Goal(kind=GoalKind.RMSE, amount=float(np.sqrt(variance)))
    return planning_request(Request(text=workload.map.digest, workload=workload, goal=goal, analyst="analyst"))


def hindsight(asked: Asked) -> tuple[float, float]:
    """The least rho of one strategy that keeps every goal: what was reached, and what none can go below.

    min over X with diag X <= 1 of max_i w_i^T X^-1 w_i / v_i. For weights y of sum one, the least weighted mean of
    these ratios is below that, and is what `optimum` bounds; y is moved to the questions that come out worst.
    """
    tightest: dict[tuple[int, int], float] = {}
    for low, high, variance in zip(asked.lows.tolist(), asked.highs.tolist(), asked.variances.tolist(), strict=True):
        tightest[low, high] = min(variance, tightest.get((low, high), np.inf))
    ends = np.array(list(tightest))
    edges = np.unique(ends)
    cells = edges[:-1]
    inside = (ends[:, :1] <= cells) & (cells < ends[:, 1:])
    inside = inside[:, inside.any(axis=0)]  # no strategy need look into the gaps between ranges
    queries = inside / np.sqrt(list(tightest.values()))[:, None]
    y = np.full(len(queries), 1 / len(queries))
    reached, bound = np.inf, 0.0
    for _ in range(ROUNDS):
        found = optimum(queries.T @ (y[:, None] * queries), gap=1e-3)
        bound = max(bound, found.bound**2)
        # Not by solving with X, which is singular where few ranges tell many cells apart.
        ratios = np.square(queries @ np.linalg.pinv(found.strategy)).sum(axis=1)
        reached = min(reached, float(ratios.max()))
        y = y * np.square(ratios / ratios.max())
        y /= y.sum()
    return reached / 2, bound / 2


def draw(runs: dict[str, Run], questions: int, reached: float, folder: Path) -> None:
    """rho against the number of questions."""
    folder.mkdir(parents=True, exist_ok=True)
    with sheet(folder / "strategies-online.png", title="Random range queries, one at a time") as (axes,):
        for name, run in runs.items():
            x, rho = zip(*run.spent, strict=True)
            axes.step([*x, questions], [*rho, rho[-1]], where="post", label=name)
        axes.axhline(reached, color="grey", linestyle=":", label="hindsight")
        axes.set(xscale="log", yscale="log", xlabel="questions", ylabel="rho")


def in_one_thread(args: argparse.Namespace) -> Figures:
    """The figures from a process of its own: the number of threads is fixed when numpy is loaded."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "benchmarks.strategies_online", "--seeds", str(args.seeds[0])]
    command += ["--quick"] if args.quick else []
    command += ["--out", str(args.out)] if args.out is not None else []
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    figures: Figures = json.loads(ran.stdout.splitlines()[-1])["figures"]
    return figures


def main() -> None:
    args = options(__doc__ or "")
    questions = QUICK_QUESTIONS if args.quick else QUESTIONS
    asked = Asked.drawn(args.seeds[0], questions)
    runs = all_runs(asked)
    figures = figures_of(asked, runs)
    if args.out is not None and not args.quick:
        draw(runs, questions, figures["hindsight"]["online_rho"], args.out)
    report("strategies/online", args, figures)


if __name__ == "__main__":
    main()
