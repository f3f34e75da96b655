"""CacheDP's evaluation: what exploring a table costs, system by system.

    python -m benchmarks.cachedp --task bfs|dfs|taxi|taxi-pairs|taxi-dfs|rrq|idebench|idebench-summed
                                 [--seeds 0 1 2] [--out DIR] [--systems apex default ...] [--horizon many]
                                 [--grid full|small] [--quick]

Every system serves the same clients with the same parameters and seeds; what clients ask next depends on the answers
they get. `cachedp-profile` buys what `cachedp` buys and is charged as `default` is: what lies between the first two is
accounting, what lies between the last two is planning. `epsilon` is what a run has spent at its end, with the
half-width of its 95 % interval over the seeds beside it; `free` counts workloads that cost nothing, `rows` the
different queries in the log (Table 3's cache entries), and `cpu_ms_per_query` is planning, noise and inference for one
workload, without SQL and disk. `failure_rate` counts workloads whose answer misses its goal; an answer that a cache
gives again misses again, so `failed_answers` counts every different answer once: IDEBench asks some charts dozens of
times. The second table counts which way of answering was paid for (Table 4). With --out: the curves of Fig. 6, Fig. 8
where ablations of cachedp were run, and, on the full grid, Fig. 7 with --task idebench. `--grid small` has fewer
clients or questions where a task takes long, and the line above the table says how many.
"""

from __future__ import annotations

import math
import multiprocessing
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from statistics import fmean, stdev

from benchmarks.cachedp_plots import ablation, by_attributes, curves
from benchmarks.cachedp_run import QUADS, SYSTEMS, WITHOUT, Trace, job
from benchmarks.cachedp_tasks import TASKS
from benchmarks.harness import Figures, at_once, options, report
from bursar.goal import Horizon

QUICK: dict[str, dict[str, int]] = {
    "bfs": {"clients": 8},
    "dfs": {"clients": 8, "steps": 40},
    "taxi": {"clients": 3},
    "taxi-pairs": {"clients": 3},
    "taxi-dfs": {"clients": 3, "steps": 30},
    "rrq": {"questions": 600},
    "idebench": {"clients": 3, "questions": 8},
    "idebench-summed": {"clients": 3, "questions": 8},
}
SMALL: dict[str, dict[str, int]] = {
    "taxi": {"clients": 5},
    "taxi-pairs": {"clients": 5},
    "taxi-dfs": {"clients": 5, "steps": 40},
    "rrq": {"questions": 3_000},
    "idebench": {"clients": 3, "questions": 12},
    "idebench-summed": {"clients": 3, "questions": 12},
}
"""Between the two; tasks that are not named here are run in full."""

FULL: dict[str, int] = {}
MODULES = ("mmm", "rp", "se")
"""The modules of CacheDP, whose purchases Table 4 counts."""

EXPLORERS = ("apex", "default", "cachedp")
"""Systems of Fig. 7."""


def traces(
    task: str, setting: Mapping[str, int], systems: Sequence[str], seeds: Sequence[int], horizon: str
) -> list[Trace]:
    """All runs, each in a process of its own, so that memory is told apart."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(at_once(), mp_context=context, max_tasks_per_child=1) as pool:
        jobs = [pool.submit(job, task, setting, system, seed, horizon) for seed in seeds for system in systems]
        return [done.result() for done in jobs]


def figures(runs: Sequence[Trace]) -> dict[str, float]:
    """The mean over the seeds of one system's runs."""
    spent = [run.epsilon[-1] for run in runs]
    asked = [len(run.epsilon) for run in runs]
    found = {"epsilon": fmean(spent), "epsilon_ci": half_interval(spent)} if len(runs) > 1 else {"epsilon": spent[0]}
    return {
        **found,
        "failure_rate": sum(run.failures for run in runs) / sum(asked),
        "failed_answers": fmean([misses for run in runs for misses in run.answers.values()]),
        "workloads": fmean(asked),
        "free": fmean(run.used["free"] for run in runs),
        **{way: fmean(run.used[way] for run in runs) for way in MODULES if any(run.used[way] for run in runs)},
        "rows": fmean(run.distinct_rows for run in runs),
        "cpu_ms_per_query": 1000 * fmean(sum(run.cpu_s) for run in runs) / fmean(asked),
        "peak_mb": max(run.peak_mb for run in runs),
    }


def half_interval(values: Sequence[float]) -> float:
    """Half the width of Student's 95 % interval of the mean."""
    from scipy.stats import t

    return float(t.ppf(0.975, len(values) - 1)) * stdev(values) / math.sqrt(len(values))


def modules(by_system: Mapping[str, Sequence[Trace]]) -> str:
    """Table 4: how often each way of answering was taken, a mean over the seeds."""
    lines = ["which answered, workloads per run:"]
    for system, runs in by_system.items():
        names = sorted({name for run in runs for name in run.used}, key=lambda name: (name != "free", name))
        counts = (f"{name} {fmean(run.used[name] for run in runs):,.1f}" for name in names)
        lines.append(f"  {system:<16} {'   '.join(counts)}")
    return "\n".join(lines)


def main() -> None:
    args = options(
        __doc__ or "",
        task={"choices": list(QUICK), "default": "bfs"},
        systems={"nargs": "+", "choices": [*SYSTEMS, *QUADS, *WITHOUT], "default": None},
        horizon={"choices": [horizon.value for horizon in Horizon], "default": Horizon.SOME.value},
        grid={"choices": ["full", "small"], "default": "full", "help": "how large the task is"},
    )
    setting = QUICK[args.task] if args.quick else SMALL.get(args.task, FULL) if args.grid == "small" else FULL
    task = TASKS[args.task](**setting)
    systems = [name for name in args.systems or [*SYSTEMS, *task.besides] if name not in task.without]
    runs = traces(args.task, setting, systems, args.seeds, args.horizon)
    by_system = {name: [run for run in runs if run.system == name] for name in systems}
    found: Figures = {name: figures(own) for name, own in by_system.items()}
    if args.out is not None:
        args.out.mkdir(parents=True, exist_ok=True)
        curves(args.out / f"cachedp-{args.task}.png", by_system)
        ablation(args.out / f"cachedp-{args.task}-modules.png", by_system)
        if args.task == "idebench" and setting is FULL:
            explorers = [name for name in EXPLORERS if name in systems]
            alone = traces("explorer", FULL, explorers, args.seeds[:1], args.horizon)
            by_attributes(args.out / "cachedp-attributes.png", {run.system: run for run in alone})
    print(modules(by_system))
    size = ", ".join(f"{count:,} {name}" for name, count in setting.items())
    grid = f"{'quick' if args.quick else args.grid}: {size}" if setting else ""
    report(f"cachedp/{args.task}", args, found, data="real" if runs[0].real else "stand-in", grid=grid)


if __name__ == "__main__":
    main()
