"""How far strategies go: any workload to 4096 cells, ranges to 2^20 cells, marginals to 100 columns.

CPU seconds of this process, planning alone: `OPENBLAS_NUM_THREADS=1` for those of one thread.
"""

from __future__ import annotations

import time
from pathlib import Path

from benchmarks.strategies_show import Rows, show
from bursar.core.accounting import Mode
from bursar.papers.eigen_design import workloads
from bursar.strategies.best import LineWorkload, Marginals, best_strategy
from bursar.strategies.marginals import ResidualPlan
from bursar.strategies.measure import svd_bound
from bursar.strategies.optimal import optimum
from bursar.strategies.ranges import RangeFamily, SineStrategy

VALUES = 10
"""Values of each column of the marginals."""


def show_all(folder: Path | None) -> None:
    show("Scaling: the optimum of all ranges by dense matrices to a gap of 1e-3", dense(), folder, plain=("steps",))
    show("Scaling: all ranges and all prefix sums of one column by sines", lines(), folder)
    show(
        f"Scaling: all 1- to 3-way marginals of columns with {VALUES} values",
        marginals(),
        folder,
        plain=("log10 cells",),
    )


def dense() -> Rows:
    found: Rows = {}
    for cells in (256, 512, 1024, 2048, 4096):
        V = workloads.all_ranges(cells)
        start = time.process_time()
        made = optimum(V, gap=1e-3)
        seconds = time.process_time() - start
        found[f"{cells} cells"] = {"over bound": made.error / svd_bound(V), "steps": made.steps, "cpu_s": seconds}
    return found


def lines() -> Rows:
    found: Rows = {}
    for family in RangeFamily:
        for power in (12, 14, 16, 18, 20):
            start = time.process_time()
            line = LineWorkload(family=family, column="x", cells=2**power, max_rows=2**24)
            plan = best_strategy(line, Mode.CONCENTRATED)
            seconds = time.process_time() - start
            assert isinstance(plan.source, SineStrategy)
            found[f"{family.value} 2^{power}"] = {"over bound": plan.source.ratio, "cpu_s": seconds}
    return found


def marginals() -> Rows:
    found: Rows = {}
    for columns in (10, 20, 50, 100):
        sets = tuple(s for k in (1, 2, 3) for s in workloads.ways(columns, k))
        names = tuple(f"c{i}" for i in range(columns))
        start = time.process_time()
        plan = best_strategy(Marginals(names=names, sizes=(VALUES,) * columns, sets=sets), Mode.CONCENTRATED)
        seconds = time.process_time() - start
        assert isinstance(plan.source, ResidualPlan)
        found[f"{columns} columns"] = {"marginals": len(sets), "log10 cells": float(columns), "cpu_s": seconds}
    return found
