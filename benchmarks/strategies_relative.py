"""Relative errors of Fig. 3: boxes and 2-way marginals of the census and of Adult, in 2048 or in 8192 cells.

Strategies are made for queries scaled to length one (Eigen-Design, Sec. 3.4), errors are those of the queries
themselves: the mean over the queries of E|error| / max(true answer, FLOOR times all rows). Everything by structure, so
both sizes are computed alike: boxes are products, and marginals have closed forms.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from benchmarks import strategies_large as large
from benchmarks import strategies_workloads as drawn
from benchmarks.strategies_show import Rows
from benchmarks.strategies_spaces import Spaces
from benchmarks.strategies_systems import QUOTED
from bursar.papers.eigen_design import workloads
from bursar.papers.eigen_design.weights import query_weights
from bursar.strategies.marginals import ResidualPlan, every_value, residuals
from bursar.strategies.optimal import optimum

DELTA = 1e-4
FLOOR = 0.001
"""Answers below this share of all rows are divided by this share: s of |error| / max(true, s)."""

BOXES = 4000
"""How many of all boxes are drawn."""


def relative_error(parts: Iterable[tuple[large.Reals, large.Reals]], rows: float, epsilon: float) -> float:
    """From standard deviations at noise one and true answers, in parts; Gaussian noise of Prop. 2."""
    noise = math.sqrt(2 * math.log(2 / DELTA)) / epsilon
    each = [deviations / np.maximum(answers, FLOOR * rows) for deviations, answers in parts]
    return noise * math.sqrt(2 / math.pi) * float(np.concatenate(each).mean())


def fig_3_relative(table: large.Reals, sizes: tuple[int, ...], epsilons: Sequence[float], seed: int) -> Rows:
    """One row per kind of query and epsilon."""
    found: Rows = {}
    for kind, systems in (("ranges", _boxes(table, sizes, seed)), ("2-way marginals", _marginals(table, sizes))):
        for epsilon in epsilons:
            found[f"{kind}, {epsilon}"] = {
                name: relative_error(parts, float(table.sum()), epsilon) for name, parts in systems.items()
            }
    return found


Parts = list[tuple[large.Reals, large.Reals]]


def _boxes(table: large.Reals, sizes: tuple[int, ...], seed: int) -> dict[str, Parts]:
    edges = drawn.some_boxes(sizes, range(len(sizes)), BOXES, np.random.default_rng(seed))
    rows = drawn.box_rows(edges, sizes)
    grams = [workloads.all_ranges(size, unit_norm=True) for size in sizes]
    spectrum = large.product_spectrum(grams)
    made = {
        "default": large.product_deviations([optimum(V, gap=QUOTED).strategy for V in grams]),
        "eigen": spectrum.deviations(query_weights(spectrum.costs, spectrum.squares, gap=1e-3).factors),
        "wavelet": large.haar_deviations(sizes, "wavelet"),
        "hierarchical": large.haar_deviations(sizes, "hierarchical"),
    }
    answers = rows @ table
    return {name: [(deviations(rows), answers)] for name, deviations in made.items()}


def _marginals(table: large.Reals, sizes: tuple[int, ...]) -> dict[str, Parts]:
    sets, spaces = drawn.two_way(sizes), Spaces(sizes=sizes)
    answers = [_margin(table, sizes, s) for s in sets]
    planned = planned_marginals(sizes, sets)
    made = {"default": [(np.sqrt(planned.variances(s)), own) for s, own in zip(sets, answers, strict=True)]}
    for name, strategy in spaces.strategies(sets, spaces.marginals(sets, unit_norm=True)).items():
        each = [spaces.count_deviation(s, strategy) for s in sets]
        made[name] = [(np.full(len(own), x), own) for x, own in zip(each, answers, strict=True)]
    return made


def planned_marginals(sizes: Sequence[int], sets: Sequence[tuple[int, ...]]) -> ResidualPlan:
    """The residual basis for counts of length one: a marginal's squares count 1 / the cells that a count adds up."""
    columns = [every_value(f"c{i}", size) for i, size in enumerate(sizes)]
    added = [math.prod(n for i, n in enumerate(sizes) if i not in s) for s in sets]
    return residuals(columns, sets).least_total([1 / x for x in added])


def _margin(table: large.Reals, sizes: tuple[int, ...], columns: tuple[int, ...]) -> large.Reals:
    gone = tuple(i for i in range(len(sizes)) if i not in columns)
    return table.reshape(sizes).sum(axis=gone).ravel()
