"""RAP's evaluation: large workloads of marginals and thresholds, answered at once.

    python -m benchmarks.rap [--data adult|loans] [--size 16] [--epsilon 1] [--rounds 16] [--picks 4]
                             [--systems rap default ...] [--quick] [--seeds 0 1 2] [--out DIR]
    python -m benchmarks.rap --part tables|synthesizers|runtime|rounding|filter|thresholds|partial|drift|training
                             [--data adult|loans] [--grid full|stated|small] [--quick] [--seeds 0 1 2] [--out DIR]

Without a part, all systems answer |W| random 3-way marginals; where the published workloads are at hand these are
asked, whatever the seed. delta = 1/n^2, one row may be replaced, and noise is real. Errors are of fractions:
`max_error` and `mean_error` of the answers, `table_max_error` of the synthetic table (for `rap` its rows after
randomized rounding), `tv` half the L1 distance of a marginal, a mean over the workload, of the table where there is
one, else of the answers. `cpu_s` is everything from the first purchase to the last answer and the table, without
compiling; `queries_per_s` is the number of queries over it, `answers_per_s` over the time that answering alone takes.
Each run has a process, and so `peak_mb`, of its own.

A part is a table of the paper with its figures: `tables` Table 3 and Figs. 2-4, `runtime` Fig. 1, `filter` Figs. 5 and
6 and Appendix A, `thresholds` Table 4 and Figs. 7-9, `partial` Table 5 and Figs. 12, 13 and 15, `drift` Figs. 10 and
11, `training` Fig. 14, and `rounding` errors before and after rounding. `synthesizers` has our synthetic table beside
those of AIM and MST over six columns of Adult; packages are installed in an environment of their own and left out, with
a word, where that fails or a limit on CPU time is below what they need. In full, parts take hours to days; with --out
every run is kept in a file there, and a program that was stopped goes on where it was. `--grid stated` takes the part
of each grid that is listed in `rap_grids.STATED`, smaller for the loans: `tables` |W| 1 to 64 (loans 16) at epsilon .1
and 1 with 7 (4) pairs (T, K) around the diagonal; `filter` |W| 1 to 16 (8) at the same epsilons with 2 (1) pairs;
`thresholds` |W| 1 and 4 (1) at epsilon .1 with 3 (2) pairs and n' of 500, 1000 and 2000 (500 and 1000); `partial` |W_H|
1 to 64 (16) with 2 pairs and 16 (8) thresholds drawn for the future at each drift; `runtime` |W| 1 to 64 and all 364 (1
to 16). `--grid small` takes a still smaller part (`rap_grids.SMALL`, Adult alone); the line above a table says which
values it has. A projection onto all queries can take very long: `rap-nonadaptive` is stopped after 60 seconds of CPU on
the stated grid, after 10 on the small one and with --quick. Workloads of more than 2^25 queries are left out for `rap`
and `rap-nonadaptive`.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping
from dataclasses import replace

from benchmarks.harness import Figures, options, report
from benchmarks.rap_bench import Bench, shown
from benchmarks.rap_data import DATA, is_real
from benchmarks.rap_filter import filtering
from benchmarks.rap_grids import FULL, QUICK, SMALL, STATED, STATED_LOANS, SYSTEMS, Grid
from benchmarks.rap_partial import drift, partial
from benchmarks.rap_run import Setting
from benchmarks.rap_store import Runs
from benchmarks.rap_synthesizers import synthesizers
from benchmarks.rap_tables import rounding, runtime, tables
from benchmarks.rap_thresholds import thresholds
from benchmarks.rap_training import training

PARTS: Mapping[str, Callable[[Bench], Figures]] = {
    "tables": tables,
    "synthesizers": synthesizers,
    "runtime": runtime,
    "rounding": rounding,
    "filter": filtering,
    "thresholds": thresholds,
    "partial": partial,
    "drift": drift,
    "training": training,
}
QUICK_SECONDS, STATED_SECONDS = 10.0, 60.0


def compare(args: argparse.Namespace, bench: Bench) -> Figures:
    """The systems on one workload; those that take longest begin."""
    names = [name for name in SYSTEMS if name in (args.systems or SYSTEMS)]
    asked = Setting(
        data=args.data, system="", size=args.size, epsilon=args.epsilon, rounds=args.rounds, picks=args.picks
    )
    settings = {name: replace(asked, system=name) for name in reversed(names)}
    found = bench.mean(list(settings.values()))
    return {name: shown(found[settings[name]]) for name in names}


def main() -> None:
    args = options(
        __doc__ or "",
        data={"choices": list(DATA), "default": "adult"},
        part={"choices": list(PARTS), "default": None},
        size={"type": int, "default": 16, "help": "|W|, the number of marginals"},
        epsilon={"type": float, "default": 1.0},
        rounds={"type": int, "default": 16, "help": "T of rap"},
        picks={"type": int, "default": 4, "help": "K of rap"},
        grid={"choices": ["full", "stated", "small"], "default": "full", "help": "how much of a part's grid is run"},
        systems={"nargs": "+", "choices": SYSTEMS, "default": None},
    )
    grids, seconds = FULL, math.inf
    if args.quick:
        grids, seconds = QUICK, QUICK_SECONDS
    elif args.grid == "stated":
        grids, seconds = (STATED if args.data == "adult" else STATED_LOANS), STATED_SECONDS
    elif args.grid == "small":
        if args.data != "adult":
            raise SystemExit("--grid small is for --data adult")
        grids, seconds = SMALL, QUICK_SECONDS
    bench = Bench(
        data=args.data,
        grid=grids.get(args.part, Grid(sizes=(args.size,))),
        seeds=tuple(args.seeds),
        out=args.out,
        runs=Runs(args.out, args.data),
        seconds=seconds,
    )
    figures = compare(args, bench) if args.part is None else PARTS[args.part](bench)
    name = f"rap/{args.data}" if args.part is None else f"rap/{args.data}-{args.part}"
    grid = "" if grids is FULL or args.part not in grids else f"{'quick' if args.quick else args.grid}: {bench.grid}"
    report(name, args, figures, data="real" if is_real(args.data) else "stand-in", grid=grid)


if __name__ == "__main__":
    main()
