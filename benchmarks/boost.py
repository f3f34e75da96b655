"""Boost's evaluation: what a long run of counting questions costs, system by system.

    python -m benchmarks.boost --workload covid|citibike --setting single|static|stream --zipf 0|1
                               [--quick] [--seeds 0 1 2] [--out DIR] [--systems boost default ...]
    python -m benchmarks.boost --sweep demo|convergence|parameters|windows [--quick] [--seeds 0 1 2] [--out DIR]

Every answer must be within 5 % of the rows asked about, with probability .999; neighbours replace one row, sizes are
public. `single` is the first block (Fig. 7), `static` windows over 50 blocks (Fig. 9), `stream` the latest blocks while
they come (Fig. 10). All systems get the same questions in the same order. `epsilon` is a mean over the blocks,
`epsilon_max` the largest; `hit_rate` is the share of questions answered from a cache or a histogram, or at no cost;
`unlearned` is the share of the pool that a uniform histogram answers within the error. `default`, and the same told
to expect many questions (`default-many`), are charged by the profile, all others by sequential composition, as in the
paper. Most are simulated with seeded noise; these and the package's own preset `boost` (`package-boost`, and charged by
the profile `package-boost-profile`) run with real noise, and their time excludes SQL and disk. The first table shows
which way questions went, and the CPU time of each (Fig. 10d).
A sweep is Fig. 3, 7d or 8, or Question 5.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from statistics import fmean

from benchmarks.boost_data import covid
from benchmarks.boost_plots import Runs, curves, lines, path_times, per_path, shares
from benchmarks.boost_run import FREE, SETTINGS, Size, Trace, full, job, systems
from benchmarks.boost_sweeps import SWEEPS, averaged
from benchmarks.cachedp import half_interval
from benchmarks.harness import Figures, at_once, options, report

QUICK: dict[tuple[str, str], Size] = {
    ("covid", "single"): Size(questions=3_000, blocks=1),
    ("covid", "static"): Size(questions=3_000, blocks=2),
    ("covid", "stream"): Size(questions=3_000, blocks=2),
    ("citibike", "single"): Size(questions=700, blocks=1),
    ("citibike", "static"): Size(questions=10_000, blocks=8),
    ("citibike", "stream"): Size(questions=10_000, blocks=8),
}

DRAWN = {
    "convergence": ("Boost Fig. 7 (d): until what was learnt is right, by the learning rate", "questions, or updates"),
    "windows": ("Boost Question 5: by the mean length of windows", "epsilon, a mean over the blocks"),
}
"""Title and unit of the sweeps that are drawn as the lines of their table."""


def traces(args: argparse.Namespace, size: Size, names: Sequence[str]) -> list[Trace]:
    """All runs, each in a process of its own, so that memory is told apart."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    context = multiprocessing.get_context("spawn")
    longest_first = list(reversed(names))
    with ProcessPoolExecutor(at_once(), mp_context=context, max_tasks_per_child=1) as pool:
        jobs = [
            pool.submit(job, args.workload, args.setting, args.zipf, size, name, seed)
            for seed in args.seeds
            for name in longest_first
        ]
        return [done.result() for done in jobs]


def figures(runs: Sequence[Trace]) -> dict[str, float]:
    """The mean over the seeds of one system's runs."""
    spent = [run.epsilon[-1] for run in runs]
    asked = sum(run.paths.total() for run in runs)
    found = {"epsilon": fmean(spent)} | ({"epsilon_ci": half_interval(spent)} if len(runs) > 1 else {})
    return found | {
        "epsilon_max": fmean(run.largest[-1] for run in runs),
        "failure_rate": sum(run.failures for run in runs) / asked,
        "hit_rate": sum(run.paths[path] for run in runs for path in FREE) / asked,
        "updates": fmean(run.updates for run in runs),
        "cpu_ms_per_query": 1000 * sum(sum(run.cpu_s.values()) for run in runs) / asked,
        "histograms_mb": max(run.histograms_mb for run in runs),
        "peak_mb": max(run.peak_mb for run in runs),
        "unlearned": runs[0].unlearned,
    }


def ways(by_system: Runs) -> str:
    """How questions were answered, and what that took."""
    told = ["which way questions were answered, questions per run (ms of CPU each):"]
    for system, runs in by_system.items():
        times = per_path(runs)
        parts = (f"{path} {number:,.0f} ({1000 * times[path]:.3g})" for path, number in shares(runs).items())
        told.append(f"  {system:<22} {'   '.join(parts)}")
    return "\n".join(told)


def sweep(args: argparse.Namespace) -> None:
    """A figure that varies a knob; curves are those of the first seed."""
    made = [SWEEPS[args.sweep](seed, args.quick) for seed in args.seeds]
    found: Figures = averaged(numbers for numbers, _ in made)
    if args.out is not None:
        args.out.mkdir(parents=True, exist_ok=True)
        file = args.out / f"boost-{args.sweep}.png"
        drawn = made[0][1]
        if drawn:
            curves(file, {trace.system: [trace] for trace in drawn})
        else:
            lines(file, found, *DRAWN[args.sweep])
    report(f"boost/{args.sweep}", args, found, data="real" if covid(1).real else "stand-in")


def compare(args: argparse.Namespace) -> None:
    """All systems on one workload."""
    size = QUICK[args.workload, args.setting] if args.quick else full(args.setting)
    names = [name for name in systems(args.setting) if name in (args.systems or systems(args.setting))]
    if not names:
        raise SystemExit(f"the systems of --setting {args.setting} are: {', '.join(systems(args.setting))}")
    runs = traces(args, size, names)
    by_system = {name: [run for run in runs if run.system == name] for name in names}
    bench = f"boost/{args.workload}-{args.setting}-zipf{args.zipf:g}"
    if args.out is not None:
        args.out.mkdir(parents=True, exist_ok=True)
        stem = bench.replace("/", "-")
        curves(args.out / f"{stem}.png", by_system)
        path_times(args.out / f"{stem}-paths.png", by_system)
    print(ways(by_system))
    found: Figures = {name: figures(own) for name, own in by_system.items()}
    report(bench, args, found, data="real" if runs[0].real else "stand-in")


def main() -> None:
    every = sorted({name for setting in SETTINGS for name in systems(setting)})
    args = options(
        __doc__ or "",
        workload={"choices": ["covid", "citibike"], "default": "covid"},
        setting={"choices": SETTINGS, "default": "single"},
        zipf={"type": float, "default": 0.0, "help": "skew of the questions, 0 for uniform"},
        systems={"nargs": "+", "choices": every, "default": None},
        sweep={"choices": list(SWEEPS), "default": None},
    )
    if args.sweep is None:
        compare(args)
    else:
        sweep(args)


if __name__ == "__main__":
    main()
