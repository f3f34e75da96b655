"""The partial knowledge setting: Table 5 with Figs. 10 to 13 and 15 of the RAP paper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

import numpy as np

from benchmarks.harness import Figures
from benchmarks.rap_bench import Bench, best, over_pairs
from benchmarks.rap_data import ADULT, LOANS
from benchmarks.rap_measures import half_width, total_variation
from benchmarks.rap_plots import Axes, Line, bars, page, write
from benchmarks.rap_run import GAMMAS, Outcome, Setting
from benchmarks.rap_workloads import drifted, masses

SMALL_HISTORY = {"adult": 4, "loans": 16}
"""|W_H| of Fig. 15."""

DRIFTED = "geometric"
"""The distribution of Figs. 10, 11 and 15."""


def partial(bench: Bench) -> Figures:
    """Future error against |W_H|, at the (T, K) of least present error and at the best one; and against drift."""
    grid = bench.grid
    (least,) = grid.least
    points = [(distribution, size) for distribution in grid.distributions for size in grid.sizes]
    bases = {
        at: Setting(
            data=bench.data,
            system="rap",
            sets=f"history-{at[0]}",
            size=at[1],
            least=least,
            epsilon=grid.epsilons[0],
            future=grid.future,
        )
        for at in points
    }
    tried = {at: over_pairs(base, grid.pairs) for at, base in bases.items()}
    zero = {at: replace(base, system="all-zero") for at, base in bases.items()}
    each = bench.each([*zero.values(), *(setting for many in tried.values() for setting in many)])
    found = bench.mean(list(each))
    chosen = {
        "rap": {at: best(found, many) for at, many in tried.items()},
        "rap (opt)": {at: best(found, many, "future_0") for at, many in tried.items()},
        "all-zero": zero,
    }
    lines = {
        distribution: {
            label: _line(grid.sizes, [each[by[distribution, size]] for size in grid.sizes], grid.future)
            for label, by in chosen.items()
        }
        for distribution in grid.distributions
    }
    axes = Axes(x="|W_H|", y="future error", log="x")
    page(bench.out, bench.figure("fig12"), lines, axes)
    page(bench.out, bench.figure("fig13"), {bench.data: {name: own["rap"] for name, own in lines.items()}}, axes)
    rows: Figures = {}
    for (distribution, size), setting in chosen["rap"].items():
        place = grid.sizes.index(size)
        own = lines[distribution]
        half = own["rap"].half
        rows[f"{distribution} W_H={size}"] = {
            "present_error": found[setting]["max_error"],
            "future_error": own["rap"].y[place],
            "future_half": 0.0 if half is None else half[place],
            "future_error_opt": own["rap (opt)"].y[place],
            "future_error_all_zero": own["all-zero"].y[place],
            "T": setting.rounds,
            "K": setting.picks,
        }
    small = min(grid.sizes, key=lambda size: abs(size - SMALL_HISTORY[bench.data]))
    return rows | _by_drift(bench, each[chosen["rap"][DRIFTED, small]], each[zero[DRIFTED, small]], small)


def _by_drift(bench: Bench, rap: Sequence[Outcome], zero: Sequence[Outcome], size: int) -> Figures:
    """Fig. 15: the future may be drawn from a distribution that drifted away from the history's."""
    draws = bench.grid.future * len(rap)
    lines = {}
    for label, outcomes in {"rap": rap, "all-zero": zero}.items():
        found = [_future(outcomes, gamma, draws) for gamma in GAMMAS]
        lines[label] = Line(x=GAMMAS, y=[mean for mean, _ in found], half=[half for _, half in found])
    title = f"{bench.data}, {DRIFTED}, |W_H| = {size}"
    page(bench.out, bench.figure("fig15"), {title: lines}, Axes(x="gamma", y="future error", log=""))
    return {
        f"{DRIFTED} W_H={size} gamma={gamma:g}": {
            "future_error": lines["rap"].y[i],
            "future_half": (lines["rap"].half or [])[i],
            "future_error_all_zero": lines["all-zero"].y[i],
        }
        for i, gamma in enumerate(GAMMAS)
    }


def drift(bench: Bench, repetitions: int = 2000) -> Figures:
    """Figs. 10 and 11: masses that drifted, and their total variation from those of the history."""
    features = len(ADULT if bench.data == "adult" else LOANS)
    historical = masses(DRIFTED, features)
    rng = np.random.default_rng(bench.seeds[0])
    examples = {f"gamma = {gamma:g}": drifted(historical, gamma, rng).tolist() for gamma in (0.0, 0.1, 0.2, 0.5, 1.0)}
    figures: Figures = {}
    for gamma in np.linspace(0, 1, 21).round(2).tolist():
        distances = [total_variation(historical, drifted(historical, gamma, rng)) for _ in range(repetitions)]
        figures[f"gamma={gamma:g}"] = {
            "tv": fmean(distances),
            "low": float(np.quantile(distances, 0.025)),
            "high": float(np.quantile(distances, 0.975)),
        }
    if bench.out is not None:
        bars(bench.out / f"{bench.figure('fig10')}.png", examples, Axes(x="feature", y="mass"))
        write(
            bench.out / f"{bench.figure('fig10')}.csv",
            [
                {"panel": title, "feature": i, "mass": mass}
                for title, own in examples.items()
                for i, mass in enumerate(own)
            ],
        )
    lines = {
        name: Line(x=[float(row.split("=")[1]) for row in figures], y=[found[name] for found in figures.values()])
        for name in ("tv", "low", "high")
    }
    page(bench.out, bench.figure("fig11"), {bench.data: lines}, Axes(x="gamma", y="total variation", log=""))
    return figures


def _line(sizes: Sequence[int], outcomes: Sequence[Sequence[Outcome]], future: int) -> Line:
    found = [_future(own, 0.0, future * len(own)) for own in outcomes]
    return Line(x=sizes, y=[mean for mean, _ in found], half=[half for _, half in found])


def _future(outcomes: Sequence[Outcome], gamma: float, draws: int) -> tuple[float, float]:
    """The mean over repetitions and draws, and half the width of its 95 % interval."""
    mean = fmean(one[f"future_{gamma:g}"] for one in outcomes)
    square = fmean(one[f"future_square_{gamma:g}"] for one in outcomes)
    variance = max(square - mean**2, 0.0) * draws / max(draws - 1, 1)
    return mean, half_width(math.sqrt(variance), draws)
