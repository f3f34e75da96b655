"""Table 2 of the Eigen-Design paper with 8192 cells: absolute errors over the bound, and relative ones on a census.

The systems are those of `strategies_8192`. `default` is scaled to queries of length one where it can be: for range
marginals, not for the ranges and prefix sums of one column, which would be no such families any more.
"""

from __future__ import annotations

import math

import numpy as np

from benchmarks import strategies_large as large
from benchmarks import strategies_workloads as drawn
from benchmarks.strategies_8192 import (
    CELLS,
    CUBE,
    HAAR,
    every_range,
    in_parts,
    line,
    of_rows,
    program_1,
    ranges_spectrum,
    sine_deviations,
)
from benchmarks.strategies_relative import BOXES, relative_error
from benchmarks.strategies_show import Rows
from benchmarks.strategies_spaces import Spaces
from bursar.core.accounting import Mode
from bursar.core.queries import Product, Stack
from bursar.papers.eigen_design import workloads
from bursar.strategies.best import best_strategy
from bursar.strategies.cells import merged_mask
from bursar.strategies.marginals import ResidualPlan, residuals, some_queries
from bursar.strategies.ranges import RangeFamily


def table_2(table: large.Reals, rng: np.random.Generator) -> Rows:
    """Absolute errors over the bound, and relative ones on a census of 16x32x16 cells."""
    found: Rows = {}
    order = rng.permutation(CELLS)
    absolute = line(RangeFamily.RANGES, ranges_spectrum()) | {
        system: large.haar_error((CELLS,), large.haar_energies(CELLS, large.of_ranges, np.argsort(order)), system)
        / ranges_spectrum().bound
        for system in HAAR
    }
    found["1-D ranges, permuted"] = absolute
    rows = drawn.box_rows(drawn.some_boxes((CELLS,), (0,), BOXES, rng), (CELLS,))
    found["1-D ranges, permuted, relative"] = _relative_line(
        RangeFamily.RANGES, rows, _unit_ranges(CELLS), table[np.argsort(order)], rng, order
    )
    spectrum = large.prefix_spectrum(CELLS)
    found["CDF"] = line(RangeFamily.PREFIXES, spectrum) | {
        system: large.haar_error((CELLS,), large.haar_energies(CELLS, large.of_prefixes), system) / spectrum.bound
        for system in HAAR
    }
    found["CDF, relative"] = _relative_line(
        RangeFamily.PREFIXES, np.tri(CELLS)[1::2], _unit_prefixes(CELLS), table, rng
    )
    for k in (1, 2):
        sets = workloads.ways(len(CUBE), k)
        found[f"{k}-way range marginals"] = _range_marginals(sets)
        found[f"{k}-way range marginals, relative"] = _relative_range_marginals(sets, table, rng)
    found["predicates"], found["predicates, relative"] = _predicates(table, rng)
    return found


def _relative_line(
    family: RangeFamily,
    rows: large.Reals,
    unit: large.Reals,
    table: large.Reals,
    rng: np.random.Generator,
    order: np.ndarray | None = None,
) -> dict[str, float]:
    """`default` is not scaled to queries of length one: that would not be all ranges any more."""
    made = {"default": sine_deviations(family), "eigen 6 %": large.principal(unit, 0.06, rng)}
    found = {name: [(in_parts(d, rows), rows @ table)] for name, d in made.items()}
    there = rows if order is None else rows[:, order]
    for system in HAAR:
        found[system] = [(in_parts(large.haar_deviations((CELLS,), system), there), rows @ table)]
    return _relative(found, table)


def _relative(parts: dict[str, list[tuple[large.Reals, large.Reals]]], table: large.Reals) -> dict[str, float]:
    return {name: relative_error(own, float(table.sum()), 0.5) for name, own in parts.items()}


def _unit_prefixes(size: int) -> large.Reals:
    """All prefix sums, each of length one."""
    cells = np.arange(size)
    tails = np.cumsum((1.0 / (cells + 1.0))[::-1])[::-1]
    return np.asarray(tails[np.maximum.outer(cells, cells)])


def _unit_ranges(size: int) -> large.Reals:
    """All ranges, each of length one: sum of 1 / (end - start) over starts <= i and ends > j, by two running sums."""
    harmonic = np.concatenate([[0.0, 0.0], np.cumsum(1.0 / np.arange(1, size + 1))])  # H_(k-1) at k
    sums = np.cumsum(harmonic)  # sum of H_(m-1) for m <= k
    i, j = np.minimum.outer(np.arange(size), np.arange(size)), np.maximum.outer(np.arange(size), np.arange(size))
    # for a start a the ends give H_(n-a) - H_(j-a), and a runs from 0 to i
    return np.asarray(sums[size + 1] - sums[size - i] - (sums[j + 1] - sums[j - i]))


def _range_marginals(sets: list[tuple[int, ...]]) -> dict[str, float]:
    spectrum = large.marginal_spectrum(CUBE, sets, workloads.all_ranges)
    products = tuple(Product(tuple(every_range(i, CUBE[i]) for i in s)) for s in sets)
    plan = best_strategy(Stack(products), Mode.CONCENTRATED, gap=1e-4).source
    assert isinstance(plan, ResidualPlan)
    errors = {
        "default": math.sqrt(float(plan.totals.sum())),
        "eigen": spectrum.completed_error(program_1(spectrum)),
        **{system: large.haar_error(CUBE, large.set_energies(CUBE, sets), system) for system in HAAR},
    }
    spaces = Spaces(sizes=CUBE)
    for name, strategy in spaces.strategies(sets, spaces.marginals(sets)).items():
        if name != "eigen":
            errors[name] = spaces.error(spaces.range_marginals(sets), strategy)
    return {name: error / spectrum.bound for name, error in errors.items()}


def _relative_range_marginals(
    sets: list[tuple[int, ...]], table: large.Reals, rng: np.random.Generator
) -> dict[str, float]:
    spectrum = large.marginal_spectrum(CUBE, sets, lambda n: workloads.all_ranges(n, unit_norm=True), unit_norm=True)
    spaces = Spaces(sizes=CUBE)
    made = {"eigen": spectrum.deviations(program_1(spectrum))}
    made |= {system: large.haar_deviations(CUBE, system) for system in HAAR}
    for name, strategy in spaces.strategies(sets, spaces.marginals(sets)).items():
        if name != "eigen":
            made[name] = lambda rows, strategy=strategy: spaces.deviations(rows, strategy)
    plan = _unit_range_plan(sets)
    parts: dict[str, list[tuple[large.Reals, large.Reals]]] = {name: [] for name in ("default", *made)}
    for s in sets:
        edges = drawn.some_boxes(CUBE, s, BOXES // 4, rng)
        rows = drawn.box_rows(edges, CUBE)
        answers = rows @ table
        lengths = math.prod((edges[1] - edges[0])[:, i] for i in s)
        which = np.ravel_multi_index(
            [_number_of(edges[0][:, i], edges[1][:, i], CUBE[i]) for i in s], [CUBE[i] * (CUBE[i] + 1) // 2 for i in s]
        )
        parts["default"].append((np.sqrt(plan.variances(s)[which] * lengths), answers))
        for name, deviations in made.items():
            parts[name].append((in_parts(deviations, rows), answers))
    return _relative(parts, table)


def _unit_range_plan(sets: list[tuple[int, ...]]) -> ResidualPlan:
    """The residual basis for boxes of length one: ranges, and what they add up outside, over the root of both."""
    columns = []
    for i, size in enumerate(CUBE):
        cells, queries = merged_mask(every_range(i, size))
        columns.append(some_queries(cells, queries / np.sqrt(queries.sum(axis=1, keepdims=True)), bits=14, gap=1e-4))
    outside = [math.prod(n for i, n in enumerate(CUBE) if i not in s) for s in sets]
    return residuals(columns, sets).least_total([1 / x for x in outside])


def _number_of(low: np.ndarray, high: np.ndarray, size: int) -> np.ndarray:
    """The place of a range among all ranges, by low and then by high."""
    return low * size - low * (low - 1) // 2 + high - low - 1


def _predicates(table: large.Reals, rng: np.random.Generator) -> tuple[dict[str, float], dict[str, float]]:
    W = drawn.predicates(CELLS, rng)
    absolute = of_rows(W, {"fourier": _identity}, CUBE, rng)
    some = W[:BOXES]
    made = {"eigen 6 %": large.principal(W.T @ (W / W.sum(axis=1, keepdims=True)), 0.06, rng), "fourier": _identity}
    made |= {system: large.haar_deviations(CUBE, system) for system in HAAR}
    return absolute, _relative({name: [(in_parts(d, some), some @ table)] for name, d in made.items()}, table)


def _identity(rows: large.Reals) -> large.Reals:
    """All Fourier queries, equally weighted, are as good as all cells."""
    return np.asarray(np.linalg.norm(rows, axis=1))
