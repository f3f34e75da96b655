"""Figs. 1, 3, 4, 5 and Table 2 of the Eigen-Design paper: printed as tables, and drawn where a folder is given."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks import strategies_large as large
from benchmarks import strategies_workloads as drawn
from benchmarks.strategies_systems import SYSTEMS, Case, error, relative_error
from bursar.strategy import workloads
from bursar.strategy.eigen import eigen_queries, for_relative_error, principal_weights, separated_weights
from bursar.strategy.fourier import fourier_basis
from bursar.strategy.measure import rms_error, svd_bound
from bursar.strategy.wavelet import wavelet
from bursar.strategy.weights import query_weights, weigh_basis

Rows = dict[str, dict[str, float]]
Weighing = Callable[[large.Spectrum], large.Reals]
FOR_RANGES = ("default", "eigen", "wavelet", "hierarchical")
FOR_MARGINALS = ("default", "eigen", "fourier", "datacube")
EPSILONS = (0.1, 0.5, 1.0, 2.5)
DELTA = 1e-4
FLOOR = 0.001
"""Relative errors are |error| / max(true answer, this share of all rows)."""

FIG_1 = [[1] * 8, [1] * 4 + [0] * 4, [0] * 4 + [1] * 4, [1, 1, 0, 0] * 2, [0, 0, 1, 1] * 2]
FIG_1 += [[0] * 6 + [1] * 2, [1] * 2 + [0] * 6, [1] * 4 + [-1] * 4]


def paper_figures(folder: Path | None, rng: np.random.Generator) -> None:
    """Everything, one table after the other; minutes."""
    _show("Fig. 1: error over the bound", fig_1(), folder)
    _show("Fig. 3: error over the bound, 2048 cells", fig_3(rng), folder)
    _show("Fig. 3: relative error, generated census and adult, by epsilon", fig_3_relative(rng), folder)
    for name, rows in fig_4().items():
        _show(f"Fig. 4: {name}, 8192 cells, before completion; error over the bound and seconds", rows, folder)
    _show("Fig. 5: design queries, 2048 cells; error over the bound", fig_5(rng), folder)
    _show("Table 2: 2048 cells; error over the bound and relative error", table_2(rng), folder)
    _show("Table 2: 8192 cells; error over the bound, eigen before completion", table_2_large(rng), folder)


def fig_1() -> Rows:
    case = Case(gram=workloads.gram_of(FIG_1), sizes=(8,))
    return {"Fig. 1": _ratios(case, (*FOR_RANGES, "identity"))}


def fig_3(rng: np.random.Generator) -> Rows:
    found: Rows = {}
    for sizes in ((2048,), (64, 32), (16, 16, 8)):
        name = "x".join(map(str, sizes))
        found[f"all ranges {name}"] = _ratios(Case(gram=workloads.all_ranges(*sizes), sizes=sizes), FOR_RANGES)
        some = workloads.gram_of(drawn.random_ranges(sizes, rng))
        found[f"random ranges {name}"] = _ratios(Case(gram=some, sizes=sizes), FOR_RANGES)
    for sizes in ((64, 32), (16, 16, 8), (8, 8, 8, 4)):
        name = "x".join(map(str, sizes))
        for kind, sets in (("2-way", drawn.two_way(sizes)), ("random", drawn.random_sets(len(sizes), rng))):
            case = Case(gram=workloads.marginals(sizes, sets), sizes=sizes, sets=tuple(sets))
            found[f"{kind} marginals {name}"] = _ratios(case, FOR_MARGINALS)
    return found


def fig_3_relative(rng: np.random.Generator) -> Rows:
    """All boxes and 2-way marginals; strategies for queries scaled to length one, errors of the queries themselves."""
    found: Rows = {}
    for data, (sizes, people) in (("census", drawn.CENSUS), ("adult", drawn.ADULT)):
        table, sets = drawn.counts(sizes, people, rng), drawn.two_way(sizes)
        boxes = drawn.some_boxes(sizes, range(len(sizes)), 4000, rng)
        ranges = Case(gram=workloads.all_ranges(*sizes, unit_norm=True), sizes=sizes)
        cube = Case(gram=workloads.marginals(sizes, sets, unit_norm=True), sizes=sizes, sets=tuple(sets))
        margins = np.concatenate([_margin_rows(sizes, s) for s in sets])
        for kind, case, queries, names in (
            ("ranges", ranges, boxes, FOR_RANGES),
            ("marginals", cube, margins, FOR_MARGINALS),
        ):
            made = {name: SYSTEMS[name](case) for name in names}
            for epsilon in EPSILONS:
                found[f"{data}, {kind}, {epsilon}"] = {
                    name: relative_error(queries, X, table, _noise(epsilon), FLOOR * people) for name, X in made.items()
                }
    return found


def fig_4() -> dict[str, Rows]:
    """What the two shortcuts cost, and what they save."""
    cube = (16, 32, 16)
    found: dict[str, Rows] = {}
    for name, spectrum in (
        ("all ranges", large.range_spectrum(8192)),
        ("2-way marginals", large.marginal_spectrum(cube, drawn.two_way(cube), np.eye)),
    ):
        rows: Rows = {}
        for label, work in {
            "Program 1": lambda s: query_weights(s.costs, s.squares, gap=1e-3).factors,
            **{f"groups of {g}": _in_groups(g) for g in (16, 64, 256)},
            **{f"{share:.0%} principal": _principal(share) for share in (0.02, 0.06, 0.25)},
        }.items():
            start = time.process_time()
            factors = work(spectrum)
            rows[label] = {"error": spectrum.error(factors) / spectrum.bound, "cpu_s": time.process_time() - start}
        found[name] = rows
    return found


def fig_5(rng: np.random.Generator) -> Rows:
    sizes = (16, 16, 8)
    order = rng.permutation(2048)
    ranges, cube = workloads.all_ranges(2048), workloads.marginals(sizes, drawn.two_way(sizes))
    found: Rows = {}
    for name, V, columns in (("ranges", ranges, (2048,)), ("2-way marginals", cube, sizes)):
        for kind, gram in ((name, V), (f"{name}, permuted", workloads.permuted(V, order))):
            bound = svd_bound(gram)
            bases = {"eigen": eigen_queries(gram)[1], "wavelet": wavelet(*columns), "fourier": fourier_basis(*columns)}
            found[kind] = {label: rms_error(gram, weigh_basis(gram, Q, gap=1e-3)) / bound for label, Q in bases.items()}
    return found


def table_2(rng: np.random.Generator) -> Rows:
    """Absolute and relative errors on the generated census, epsilon .5; the relative ones for queries of length one."""
    sizes, people = drawn.CENSUS
    table, flat = drawn.counts(sizes, people, rng), (2048,)
    order = rng.permutation(2048)
    ones, twos = workloads.ways(3, 1), workloads.ways(3, 2)
    some = drawn.predicates(2048, rng)
    whole = drawn.some_boxes(flat, (0,), 4000, rng)
    plans = {
        "1-D ranges, permuted": (
            Case(gram=workloads.permuted(workloads.all_ranges(2048), order), sizes=flat),
            Case(gram=workloads.permuted(workloads.all_ranges(2048, unit_norm=True), order), sizes=flat),
            whole[:, order],
            FOR_RANGES,
        ),
        "CDF": (
            Case(gram=workloads.prefix(2048), sizes=flat),
            Case(gram=workloads.prefix(2048, unit_norm=True), sizes=flat),
            np.tril(np.ones((2048, 2048))),
            FOR_RANGES,
        ),
        "predicates": (
            Case(gram=workloads.gram_of(some), sizes=sizes),
            Case(gram=workloads.gram_of(for_relative_error(some)), sizes=sizes),
            some,
            (*FOR_RANGES, "fourier"),
        ),
    }
    for name, sets in (("1-way range marginals", ones), ("2-way range marginals", twos)):
        plans[name] = (
            Case(gram=workloads.range_marginals(sizes, sets), sizes=sizes, sets=tuple(sets)),
            Case(gram=workloads.range_marginals(sizes, sets, unit_norm=True), sizes=sizes, sets=tuple(sets)),
            np.concatenate([drawn.some_boxes(sizes, s, 1000, rng) for s in sets]),
            (*FOR_RANGES, "fourier", "datacube"),
        )
    found: Rows = {}
    for name, (case, unit, queries, names) in plans.items():
        found[name] = _ratios(case, names)
        found[f"{name}, relative"] = {
            system: relative_error(queries, SYSTEMS[system](unit), table, _noise(0.5), FLOOR * people)
            for system in names
        }
    return found


def table_2_large(rng: np.random.Generator) -> Rows:
    cells, cube = 8192, (16, 32, 16)
    found: Rows = {}
    order = rng.permutation(cells)
    plans = {
        "1-D ranges, permuted": (large.range_spectrum(cells), (cells,), large.range_energies(cells, order)),
        "CDF": (large.prefix_spectrum(cells), (cells,), large.prefix_energies(cells)),
    }
    for k in (1, 2):
        sets = workloads.ways(3, k)
        spectrum = large.marginal_spectrum(cube, sets, workloads.all_ranges)
        plans[f"{k}-way range marginals"] = (spectrum, cube, large.set_energies(cube, sets))
    for name, (spectrum, sizes, energies) in plans.items():
        factors = query_weights(spectrum.costs, spectrum.squares, gap=1e-3).factors
        found[name] = {"eigen": spectrum.error(factors) / spectrum.bound} | {
            system: large.haar_error(sizes, energies, system) / spectrum.bound for system in ("wavelet", "hierarchical")
        }
    return found


def _ratios(case: Case, names: tuple[str, ...]) -> dict[str, float]:
    bound = svd_bound(case.gram)
    return {name: error(case.gram, SYSTEMS[name](case)) / bound for name in names}


def _noise(epsilon: float) -> float:
    """The Gaussian mechanism of Prop. 2, per unit of sensitivity."""
    return math.sqrt(2 * math.log(2 / DELTA)) / epsilon


def _margin_rows(sizes: tuple[int, ...], columns: tuple[int, ...]) -> large.Reals:
    made = np.ones((1, 1))
    for i, size in enumerate(sizes):
        made = np.kron(made, np.eye(size) if i in columns else np.ones((1, size)))
    return made


def _in_groups(group: int) -> Weighing:
    return lambda spectrum: separated_weights(spectrum.costs, spectrum.squares, group, gap=1e-3)


def _principal(share: float) -> Weighing:
    return lambda s: principal_weights(s.costs, s.squares, math.ceil(share * s.squares.shape[1]), gap=1e-3)


def _show(title: str, rows: Rows, folder: Path | None) -> None:
    columns = list(dict.fromkeys(key for row in rows.values() for key in row))
    print(title)
    print(" " * 34 + "".join(f"{column:>14}" for column in columns))
    for name, row in rows.items():
        print(f"{name:34}" + "".join(_number(row.get(c)) for c in columns))
    print(flush=True)
    if folder is not None:
        _draw(title, rows, [c for c in columns if c != "cpu_s"], folder)


def _number(value: float | None) -> str:
    return " " * 14 if value is None else f"{value:14.4f}" if value >= 0.1 else f"{value:14.3g}"


def _draw(title: str, rows: Rows, columns: list[str], folder: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    folder.mkdir(parents=True, exist_ok=True)
    figure, axes = pyplot.subplots(figsize=(max(6.0, 0.9 * len(rows)), 4.5), layout="constrained")
    for number, column in enumerate(columns):
        places = [i + number * 0.8 / len(columns) for i, row in enumerate(rows.values()) if column in row]
        axes.bar(places, [row[column] for row in rows.values() if column in row], 0.8 / len(columns), label=column)
    axes.set_xticks([i + 0.4 - 0.4 / len(columns) for i in range(len(rows))], list(rows), rotation=35, ha="right")
    axes.set_yscale("log")
    axes.set_title(title, fontsize=9)
    axes.legend(fontsize=8)
    name = "".join(c if c.isalnum() else "-" for c in title.split(";")[0].lower()).strip("-")
    figure.savefig(folder / f"{name.replace('--', '-')}.png", dpi=120)
    pyplot.close(figure)
