"""Present error of r-of-k thresholds: Table 4 with Figs. 7 to 9, and what the two optimisations of Sec. 4.2.2 save."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from benchmarks.harness import Figures
from benchmarks.rap_bench import Bench, best, over_pairs, shown
from benchmarks.rap_plots import Axes, Line, heat_page, page
from benchmarks.rap_run import Setting
from bursar.synthetic.rap.threshold_workload import expansion, generalized_products, inclusion_exclusion

BASELINES = ("all-zero", "gaussian-naive", "gaussian")
USUAL_ROWS = 1000
HEAT_SIZE = 64


def thresholds(bench: Bench) -> Figures:
    """Every r, |W| and epsilon, and every n' at one of them; rap at its best (T, K).

    Workloads that are too large for it are left out.
    """
    grid = bench.grid
    bases = {
        (r, epsilon, size): Setting(data=bench.data, system="rap", k=grid.k, least=r, epsilon=epsilon, size=size)
        for r in grid.least
        for epsilon in grid.epsilons
        for size in grid.sizes
    }
    bases = {at: base for at, base in bases.items() if bench.can(base)}
    sizes = sorted({size for _, _, size in bases})
    epsilon, size = min(grid.epsilons), max(size for size in sizes if size <= HEAT_SIZE)
    tried = {
        (rows, *at): over_pairs(replace(base, rows=rows), grid.pairs)
        for at, base in bases.items()
        for rows in grid.rows
        if rows == USUAL_ROWS or at[1:] == (epsilon, size)
    }
    plain = {(system, *at): replace(base, system=system) for at, base in bases.items() for system in BASELINES}
    found = bench.mean([*plain.values(), *(setting for many in tried.values() for setting in many)])
    chosen = plain | {("rap", *at): best(found, tried[USUAL_ROWS, *at]) for at in bases}
    page(
        bench.out,
        bench.figure("fig7"),
        {
            f"r = {r}, epsilon = {each:g}": {
                system: Line(x=sizes, y=[found[chosen[system, r, each, size]]["max_error"] for size in sizes])
                for system in (*BASELINES, "rap")
            }
            for each in grid.epsilons
            for r in grid.least
        },
        Axes(x="|W|", y="present error"),
    )
    heat_page(
        bench.out,
        bench.figure("fig8"),
        {
            f"r = {r}, |W| = {size}, epsilon = {epsilon:g}": {
                (each.rounds, each.picks): found[each]["max_error"] for each in tried[USUAL_ROWS, r, epsilon, size]
            }
            for r in grid.least
        },
    )
    of_rows = {(r, rows): best(found, tried[rows, r, epsilon, size]) for r in grid.least for rows in grid.rows}
    page(
        bench.out,
        bench.figure("fig9"),
        {
            title: {
                f"r = {r}": Line(x=grid.rows, y=[found[of_rows[r, rows]][name] for rows in grid.rows])
                for r in grid.least
            }
            for title, name in {"present error": "max_error", "CPU seconds": "cpu_s"}.items()
        },
        Axes(x="n'", y=""),
    )
    present = {
        f"r={r} W={size} eps={epsilon:g} {system}": shown(found[chosen[system, r, epsilon, size]])
        | (
            {"T": chosen["rap", r, epsilon, size].rounds, "K": chosen["rap", r, epsilon, size].picks}
            if system == "rap"
            else {}
        )
        for r, epsilon, size in bases
        for system in (*BASELINES, "rap")
    }
    by_rows = {
        f"r={r} n'={n} rap": shown(found[setting]) | {"T": setting.rounds, "K": setting.picks}
        for (r, n), setting in of_rows.items()
    }
    return present | by_rows | saved(grid.k)


def saved(k: int, rows: int = 200_000) -> Figures:
    """CPU time of one query on relaxed rows in each form, over that of Def. 4.3."""
    columns = list(np.random.default_rng(0).random((k, rows)))
    found: Figures = {}
    for r in range(1, k + 1):
        plain = _seconds(lambda r=r: generalized_products(columns, r))
        found[f"surrogate {r}-of-{k}"] = {
            "inclusion_exclusion": _seconds(lambda r=r: inclusion_exclusion(k, r).evaluate(columns)) / plain,
            "with_negation": _seconds(lambda r=r: expansion(k, r).evaluate(columns)) / plain,
        }
    return found


def _seconds(work: Callable[[], object], times: int = 5) -> float:
    taken = []
    for _ in range(times):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return min(taken)
