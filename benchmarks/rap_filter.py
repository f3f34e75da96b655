"""Does leaving out marginals with more cells than people matter? Figs. 5 and 6 of the RAP paper, and its Appendix A."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median_low

import numpy as np

from benchmarks.harness import Figures
from benchmarks.rap_bench import Bench, over_pairs
from benchmarks.rap_plots import Axes, Line, page, write
from benchmarks.rap_regression import Fit, Observation, design, fit, holm, likelihood_ratio
from benchmarks.rap_run import Setting

AGAINST = {"workload size": "|W|", "number of queries": "queries"}
KINDS = {"uniform": "unfiltered", "filtered": "filtered"}


def filtering(bench: Bench) -> Figures:
    """Both regressions on the same runs: each workload is drawn anew for each seed, and rap is at its best (T, K)."""
    sized, counted = observations(bench)
    levels = sorted(bench.grid.epsilons)
    figures: Figures = {}
    models: list[tuple[str, Fit, Fit, Sequence[Observation]]] = []
    for (title, name), seen in zip(AGAINST.items(), (sized, counted), strict=True):
        errors = np.array([one.error for one in seen])
        full, restricted = (fit(design(seen, levels, full=whole), errors) for whole in (True, False))
        models.append((title, full, restricted, seen))
        _draw(bench, title, name, full, seen, levels)
    p_values = [likelihood_ratio(restricted, full) for _, full, restricted, _ in models]
    for (title, full, _, seen), p_value, adjusted in zip(models, p_values, holm(p_values), strict=True):
        figures[title] = {
            "observations": len(seen),
            "adjusted_r2": full.adjusted_r2,
            "f_p": full.f_p_value,
            "omnibus_p": full.omnibus_p_value,
            "filter_p": p_value,
            "filter_p_holm": adjusted,
        }
        _coefficients(bench, title, full)
    return figures


def observations(bench: Bench) -> tuple[list[Observation], list[Observation]]:
    """One for each epsilon, |W|, seed and filter: against the workload size, and against the number of queries."""
    grid = bench.grid
    bases = [
        Setting(data=bench.data, system="rap", sets=kind, epsilon=epsilon, size=size)
        for kind in KINDS
        for epsilon in grid.epsilons
        for size in grid.sizes
    ]
    tried = {base: over_pairs(base, grid.pairs) for base in bases}
    found = bench.each([setting for many in tried.values() for setting in many])
    sized: list[Observation] = []
    counted: list[Observation] = []
    for base, many in tried.items():
        for place in range(len(bench.seeds)):
            outcome = min((found[setting][place] for setting in many), key=lambda one: one["max_error"])
            one = Observation(
                error=outcome["max_error"],
                epsilon=base.epsilon,
                size=base.size,
                filtered=base.sets == "filtered",
            )
            sized.append(one)
            counted.append(replace(one, size=outcome["queries"]))
    return sized, counted


def _draw(bench: Bench, title: str, name: str, full: Fit, seen: Sequence[Observation], levels: Sequence[float]) -> None:
    """The fitted lines at the middle epsilon, and the runs that they were fitted to."""
    epsilon = median_low(levels)
    inside: dict[str, Line] = {}
    for kind in KINDS.values():
        own = sorted(
            (one for one in seen if one.epsilon == epsilon and one.filtered == (kind == "filtered")),
            key=lambda one: one.size,
        )
        at = [one.size for one in own]
        inside[f"{kind}, runs"] = Line(x=at, y=[one.error for one in own], joined=False)
        inside[f"{kind}, model"] = Line(x=at, y=full.predict(design(own, levels, full=True)).tolist(), points=False)
    figure = bench.figure("fig5" if title == "workload size" else "fig6")
    page(bench.out, figure, {f"epsilon = {epsilon:g}": inside}, Axes(x=name, y="present error", log="x"))


def _coefficients(bench: Bench, title: str, full: Fit) -> None:
    if bench.out is not None:
        columns = zip(full.coefficients, full.errors, full.p_values, strict=True)
        rows = [
            {"coefficient": f"beta_{i}", "value": value, "standard_error": error, "p": p}
            for i, (value, error, p) in enumerate(columns)
        ]
        write(bench.out / f"{bench.figure('regression')}-{title.replace(' ', '-')}.csv", rows)
