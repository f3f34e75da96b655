"""Figs. 1, 3, 4, 5 and Table 2 of the Eigen-Design paper, and what goes beyond them: tables, and pictures in a folder.

Here are the figures with 2048 cells, computed densely; those with 8192 are in `strategies_8192`.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from benchmarks import strategies_8192 as large
from benchmarks import strategies_laplace as laplace
from benchmarks import strategies_scaling as scaling
from benchmarks import strategies_workloads as drawn
from benchmarks.published import published
from benchmarks.strategies_relative import BOXES, FLOOR, fig_3_relative, relative_error
from benchmarks.strategies_show import Rows, show
from benchmarks.strategies_systems import SYSTEMS, Case, deviations, error
from benchmarks.strategies_table_2 import table_2 as table_2_large
from bursar.papers.eigen_design import workloads
from bursar.papers.eigen_design.eigen_design import eigen_design, eigen_queries, for_relative_error
from bursar.papers.eigen_design.fourier import fourier_basis, wavelet
from bursar.papers.eigen_design.weights import weigh_basis
from bursar.strategies.measure import rms_error, svd_bound
from bursar.strategies.optimal import optimum

FOR_RANGES = ("default", "eigen", "wavelet", "hierarchical")
FOR_MARGINALS = ("default", "eigen", "fourier", "datacube")
EPSILONS = (0.1, 0.5, 1.0, 2.5)

FIG_1 = [[1] * 8, [1] * 4 + [0] * 4, [0] * 4 + [1] * 4, [1, 1, 0, 0] * 2, [0, 0, 1, 1] * 2]
FIG_1 += [[0] * 6 + [1] * 2, [1] * 2 + [0] * 6, [1] * 4 + [-1] * 4]


def paper_figures(folder: Path | None, rng: np.random.Generator) -> None:
    """Everything, one table after the other; about a quarter of an hour on one core."""
    at_2048(folder, rng)
    at_8192(folder, rng)
    show("Theorem 3: error over the optimum, and what is allowed; 256 cells", theorem_3(), folder)
    laplace.show_all(folder, rng)
    scaling.show_all(folder)
    for title, rows in published().items():
        show(title, rows, folder)


def at_2048(folder: Path | None, rng: np.random.Generator) -> None:
    show("Fig. 1: error over the bound", fig_1(), folder)
    show("Fig. 3: error over the bound, 2048 cells", fig_3(rng), folder)
    census, (adult, which) = drawn.census(drawn.CENSUS, rng), drawn.adult(drawn.ADULT, rng)
    for name, table, sizes in (("generated census", census, drawn.CENSUS), (f"{which} adult", adult, drawn.ADULT)):
        title = f"Fig. 3: relative error, 2048 cells, {name}, by epsilon; s = {FLOOR} of all rows"
        show(title, fig_3_relative(table, sizes, EPSILONS, 0), folder)
    show("Fig. 5: design queries, 2048 cells; error over the bound, before completion", fig_5(rng), folder)
    title = f"Table 2: 2048 cells; error over the bound, relative error at s = {FLOOR}, generated census, epsilon 0.5"
    show(title, table_2(census, rng), folder)


def at_8192(folder: Path | None, rng: np.random.Generator) -> None:
    show("Fig. 3: error over the bound, 8192 cells", large.fig_3(rng), folder)
    fine, (adult, which) = drawn.census(drawn.FINE_CENSUS, rng), drawn.adult(drawn.FINE_ADULT, rng)
    for name, table, sizes in (
        ("generated census", fine, drawn.FINE_CENSUS),
        (f"{which} adult", adult, drawn.FINE_ADULT),
    ):
        title = f"Fig. 3: relative error, 8192 cells, {name}, by epsilon; s = {FLOOR} of all rows"
        show(title, fig_3_relative(table, sizes, (0.5,), 0), folder)
    for name, rows in large.fig_4().items():
        show(f"Fig. 4: {name}, 8192 cells; error over the bound before completion, and seconds", rows, folder)
    title = f"Table 2: 8192 cells; error over the bound, relative error at s = {FLOOR}, generated census, epsilon 0.5"
    show(title, table_2_large(fine, rng), folder)


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


def fig_5(rng: np.random.Generator, sizes: tuple[int, ...] = (16, 16, 8)) -> Rows:
    cells = math.prod(sizes)
    order = rng.permutation(cells)
    ranges, cube = workloads.all_ranges(cells), workloads.marginals(sizes, drawn.two_way(sizes))
    found: Rows = {}
    for name, V, columns in (("ranges", ranges, (cells,)), ("2-way marginals", cube, sizes)):
        for kind, gram in ((name, V), (f"{name}, permuted", workloads.permuted(V, order))):
            bound = svd_bound(gram)
            bases = {"eigen": eigen_queries(gram)[1], "wavelet": wavelet(*columns), "fourier": fourier_basis(*columns)}
            found[kind] = {label: rms_error(gram, weigh_basis(gram, Q, gap=1e-3)) / bound for label, Q in bases.items()}
    return found


def table_2(table: np.ndarray, rng: np.random.Generator) -> Rows:
    """Absolute errors, and relative ones on the census at epsilon .5; the latter for queries of length one."""
    sizes, flat = drawn.CENSUS, (2048,)
    order = rng.permutation(2048)
    ones, twos = workloads.ways(3, 1), workloads.ways(3, 2)
    some = drawn.predicates(2048, rng)
    whole = drawn.box_rows(drawn.some_boxes(flat, (0,), BOXES, rng), flat)
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
            np.concatenate([drawn.box_rows(drawn.some_boxes(sizes, s, BOXES // 4, rng), sizes) for s in sets]),
            (*FOR_RANGES, "fourier", "datacube"),
        )
    found: Rows = {}
    for name, (case, unit, queries, names) in plans.items():
        found[name] = _ratios(case, names)
        found[f"{name}, relative"] = {
            system: relative_error(
                [(deviations(queries, SYSTEMS[system](unit)), queries @ table)], float(table.sum()), 0.5
            )
            for system in names
        }
    return found


def theorem_3() -> Rows:
    """Eigen-Design over the optimum, and (n s_1 / SVDB)^1/4, which it cannot exceed."""
    rng, sizes = np.random.default_rng(0), (8, 8, 4)
    grams = {
        "ranges": workloads.all_ranges(256),
        "boxes 16x16": workloads.all_ranges(16, 16),
        "CDF": workloads.prefix(256),
        "2-way marginals": workloads.marginals(sizes, drawn.two_way(sizes)),
        "1-way range marginals": workloads.range_marginals(sizes, workloads.ways(3, 1)),
        "random ranges": workloads.gram_of(drawn.random_ranges((256,), rng)),
        "random predicates": workloads.gram_of(drawn.predicates(256, rng)),
        "normal numbers": workloads.gram_of(rng.normal(size=(512, 256))),
    }
    found: Rows = {}
    for name, V in grams.items():
        largest = float(np.linalg.eigvalsh(V)[-1])
        ours = rms_error(V, eigen_design(V)) / optimum(V, gap=1e-5).bound
        found[name] = {"eigen": ours, "allowed": (len(V) * largest / svd_bound(V) ** 2) ** 0.25}
    return found


def _ratios(case: Case, names: tuple[str, ...]) -> dict[str, float]:
    bound = svd_bound(case.gram)
    return {name: error(case.gram, SYSTEMS[name](case)) / bound for name in names}
