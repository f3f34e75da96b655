"""Present error of marginals: Table 3 with Figs. 2 to 4, Fig. 1 (time and memory), and what rounding does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median_low

from benchmarks.harness import Figures
from benchmarks.rap_bench import Bench, best, over_pairs, shown
from benchmarks.rap_grids import SYSTEMS
from benchmarks.rap_plots import Axes, Line, heat_page, page
from benchmarks.rap_run import Outcome, Setting

ERROR = Axes(x="|W|", y="present error")


def tables(bench: Bench) -> Figures:
    """Table 3: every system at each |W| and epsilon; rap at its best (T, K), and at all of them as heat maps.

    Workloads that are too large for a system are left out.
    """
    grid = bench.grid
    points = [(epsilon, size) for epsilon in grid.epsilons for size in grid.sizes]
    asked = {
        (system, *at): Setting(data=bench.data, system=system, epsilon=at[0], size=at[1])
        for at in points
        for system in SYSTEMS
    }
    asked = {key: setting for key, setting in asked.items() if bench.can(setting)}
    plain = {key: setting for key, setting in asked.items() if setting.system != "rap"}
    tried = {at: over_pairs(asked["rap", *at], grid.pairs) for at in points if ("rap", *at) in asked}
    found = bench.mean([*plain.values(), *(setting for many in tried.values() for setting in many)])
    chosen = plain | {("rap", *at): best(found, many) for at, many in tried.items()}
    page(
        bench.out,
        bench.figure("fig2"),
        {
            f"epsilon = {epsilon:g}": {
                system: _line(found, {size: chosen.get((system, epsilon, size)) for size in grid.sizes})
                for system in SYSTEMS
            }
            for epsilon in grid.epsilons
        },
        ERROR,
    )
    middle, sizes = median_low(grid.epsilons), sorted({size for _, size in tried})
    largest = sizes[-1]
    heat_page(bench.out, bench.figure("fig3"), {f"|W| = {w}": _heat(found, tried[middle, w]) for w in sizes})
    heat_page(
        bench.out, bench.figure("fig4"), {f"epsilon = {e:g}": _heat(found, tried[e, largest]) for e in grid.epsilons}
    )
    return {
        f"W={size} eps={epsilon:g} {system}": shown(found[chosen[system, epsilon, size]])
        | (
            {"T": chosen[system, epsilon, size].rounds, "K": chosen[system, epsilon, size].picks}
            if system == "rap"
            else {}
        )
        for epsilon, size in points
        for system in SYSTEMS
        if (system, epsilon, size) in chosen
    }


def runtime(bench: Bench) -> Figures:
    """Fig. 1: CPU time and memory against |W|, up to all marginals; T = 16 and K = 4 for the adaptive variant.

    The published figure has two implementations; ours is one, beside the two that need no projection.
    """
    grid, systems = bench.grid, ("gaussian", "rap-nonadaptive", "rap", "default")
    ((rounds, picks),) = grid.pairs
    settings = {
        (system, size): Setting(
            data=bench.data, system=system, size=size, sets="uniform", epsilon=0.1, rounds=rounds, picks=picks
        )
        for system in systems
        for size in grid.sizes
    }
    settings = {key: setting for key, setting in settings.items() if bench.can(setting)}
    found = bench.mean(list(settings.values()))

    def measured(name: str) -> dict[str, Line]:
        return {
            system: _line(found, {size: settings.get((system, size)) for size in grid.sizes}, name)
            for system in systems
        }

    panels = {"CPU seconds": measured("cpu_s"), "peak MB": measured("peak_mb")}
    page(bench.out, bench.figure("fig1"), panels, Axes(x="|W|", y=""))
    return {
        f"W={size} {system}": shown(found[settings[system, size]])
        for size in grid.sizes
        for system in systems
        if (system, size) in settings
    }


def rounding(bench: Bench) -> Figures:
    """Errors of the relaxed rows, and of the table of n rows that randomized rounding makes of them."""
    grid = bench.grid
    ((rounds, picks),) = grid.pairs
    settings = {
        (epsilon, size): Setting(data=bench.data, system="rap", epsilon=epsilon, size=size, rounds=rounds, picks=picks)
        for epsilon in grid.epsilons
        for size in grid.sizes
    }
    settings = {key: setting for key, setting in settings.items() if bench.can(setting)}
    found = bench.mean(list(settings.values()))
    sides = {"before": ("max_error", "answers_tv"), "after": ("table_max_error", "tv")}
    titles = ("maximum error", "total variation")
    page(
        bench.out,
        bench.figure("rounding"),
        {
            f"{title}, epsilon = {epsilon:g}": {
                side: _line(found, {size: settings.get((epsilon, size)) for size in grid.sizes}, names[place])
                for side, names in sides.items()
            }
            for place, title in enumerate(titles)
            for epsilon in grid.epsilons
        },
        Axes(x="|W|", y="error"),
    )
    return {
        f"W={size} eps={epsilon:g}": {
            f"{name}_{side}": found[settings[epsilon, size]][names[place]]
            for place, name in enumerate(("max_error", "tv"))
            for side, names in sides.items()
        }
        for epsilon, size in settings
    }


def _line(found: Mapping[Setting, Outcome], by_size: Mapping[int, Setting | None], name: str = "max_error") -> Line:
    """Through the sizes that were run."""
    run = {size: setting for size, setting in by_size.items() if setting is not None}
    return Line(x=list(run), y=[found[setting][name] for setting in run.values()])


def _heat(found: Mapping[Setting, Outcome], settings: Sequence[Setting]) -> dict[tuple[int, int], float]:
    return {(each.rounds, each.picks): found[each]["max_error"] for each in settings}
