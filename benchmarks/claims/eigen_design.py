"""What Eigen-Design says of its figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import combinations

from benchmarks.claims.claim import Here, PaperFigure, at_least, at_most, between, computed, number
from benchmarks.harness import Figures
from benchmarks.published import TABLE_2

OURS = ("default", "eigen", "identity")
"""Columns that are no competitors of the paper."""

QUICK_NAMES = {"range_1024": "all ranges 2048", "marginals": "2-way marginals 8x8x8x4"}
"""Workloads of the quick benchmark that stand for larger ones."""

MANY_COLUMNS = "2-way marginals 2x2x2x2x2x2x2x2x2x2x2"

COMPLETED = "here before columns are completed, and competitors are weighted trees as well"


def _rows(rows: Mapping[str, Mapping[str, float]]) -> Figures:
    return {name: dict(row) for name, row in rows.items()}


def _eigen_fig_1(quick: bool) -> Figures:
    from benchmarks.strategies_figures import fig_1

    return _rows(fig_1())


def _eigen_fig_3(quick: bool) -> Figures:
    import numpy as np

    from benchmarks.strategies import ratios
    from benchmarks.strategies_figures import fig_3

    columns = {MANY_COLUMNS: {"eigen": 1.0, "fourier": equal_weights((2,) * 11, 2)}}
    if not quick:
        return _rows(fig_3(np.random.default_rng(0))) | columns
    by_system = ratios(0)
    return {
        shown: {system: row[name] for system, row in by_system.items() if name in row}
        for name, shown in QUICK_NAMES.items()
    } | columns


def equal_weights(sizes: tuple[int, ...], ways: int) -> float:
    """The error of a Fourier basis without weights over the bound, for all marginals of so many columns.

    It is that of measuring all these marginals alike, too: sqrt(N sum_i s_i) / sum_i sqrt(s_i) over the N eigenvalues
    that are not 0. Those of a set R of columns are prod_{i in R} (n_i - 1) equal ones, n / prod_{i in S} n_i added up
    over the marginals S that contain R. Eigen-Design reaches the bound on marginals.
    """
    eigenvalues: dict[tuple[int, ...], float] = {}
    for columns in combinations(range(len(sizes)), ways):
        for k in range(ways + 1):
            for inside in combinations(columns, k):
                weight = math.prod(sizes) / math.prod(sizes[i] for i in columns)
                eigenvalues[inside] = eigenvalues.get(inside, 0.0) + weight
    times = {inside: math.prod(sizes[i] - 1 for i in inside) for inside in eigenvalues}
    total = math.fsum(times[inside] * value for inside, value in eigenvalues.items())
    roots = math.fsum(times[inside] * math.sqrt(value) for inside, value in eigenvalues.items())
    return math.sqrt(sum(times.values()) * total) / roots


_FROM_THE_BOUND = "the text may count from the lower bound, which is below Program 1"


def _eigen_fig_4(quick: bool) -> Figures:
    from benchmarks.strategies_8192 import fig_4

    return (
        {}
        if quick
        else {f"{name}: {label}": dict(row) for name, rows in fig_4().items() for label, row in rows.items()}
    )


def _eigen_fig_5(quick: bool) -> Figures:
    import numpy as np

    from benchmarks.strategies_figures import fig_5

    return _rows(fig_5(np.random.default_rng(0), (8, 8, 4) if quick else (16, 16, 8)))


def _eigen_table_2(quick: bool) -> Figures:
    import numpy as np

    from benchmarks.strategies_figures import table_2
    from benchmarks.strategies_workloads import CENSUS, census

    rng = np.random.default_rng(0)
    return {} if quick else _rows(table_2(census(CENSUS, rng), rng))


def _gain(row: str, pick: Callable[[list[float]], float] = min) -> Here:
    """A competitor of the paper over Eigen-Design: the best one, or the worst."""

    def gain(found: Mapping[str, Figures]) -> float:
        errors = found["computed"][row]
        return pick([error for name, error in errors.items() if name not in OURS]) / errors["eigen"]

    return gain


def _over_eigen(row: str, basis: str) -> Here:
    return lambda found: found["computed"][row][basis] / found["computed"][row]["eigen"]


def _figures() -> tuple[PaperFigure, ...]:
    identity, wavelet, adapted = 45.36, 34.62, 29.79
    units = "absolute numbers of Fig. 2 follow from neither Prop. 4 nor Def. 5"
    table_2 = [
        claim
        for name, row in TABLE_2.items()
        for claim in (
            number(f"{name}: the best competitor", row["absolute, best"], _gain(name), within=1.15, why=COMPLETED),
            number(f"{name}: the worst competitor", row["worst"], _gain(name, max), within=1.15, why=COMPLETED),
            number(f"{name}: the bound over the error", row["bound/error"], _inverse(name), within=1.03, why=COMPLETED),
        )
    ]
    return (
        PaperFigure(
            paper="eigen-design",
            name="fig1",
            title="the workload of Figs. 1 and 2: errors over that of the adapted strategy",
            compute=_eigen_fig_1,
            claims=(
                number("identity", identity / adapted, _over_eigen("Fig. 1", "identity"), within=1.03, why=units),
                number("wavelet", wavelet / adapted, _over_eigen("Fig. 1", "wavelet"), within=1.03, why=units),
            ),
        ),
        PaperFigure(
            paper="eigen-design",
            name="fig3",
            title="2048 cells: errors over the bound",
            compute=_eigen_fig_3,
            claims=(
                between("all ranges: the best competitor over eigen", 1.2, 2.1, _gain("all ranges 2048")),
                at_most("all ranges: eigen over the bound", 1.3, computed("all ranges 2048", "eigen")),
                between(
                    "2-way marginals: the best competitor over eigen",
                    1.3,
                    2.2,
                    _gain("2-way marginals 8x8x8x4"),
                    told="1.3 to 2.2, with random marginals, shapes not named",
                    why="the fewer and larger the columns, the nearer to 1; see the next line",
                ),
                between(
                    "2-way marginals, eleven columns of two values: the same",
                    1.3,
                    2.2,
                    _gain(MANY_COLUMNS),
                    told="1.3 to 2.2, with random marginals, shapes not named",
                ),
                at_most("2-way marginals: eigen over the bound", 1.001, computed("2-way marginals 8x8x8x4", "eigen")),
            ),
        ),
        PaperFigure(
            paper="eigen-design",
            name="fig4",
            title="8192 cells: separation and principal vectors, errors over Program 1",
            compute=_eigen_fig_4,
            claims=(
                number(
                    "ranges, groups of 16",
                    1.05,
                    computed("all ranges: groups of 16", "over Program 1"),
                    within=1.03,
                    why=_FROM_THE_BOUND,
                ),
                number(
                    "marginals, groups of 16",
                    1.11,
                    computed("2-way marginals: groups of 16", "over Program 1"),
                    within=1.03,
                    why=_FROM_THE_BOUND,
                ),
                number(
                    "ranges, 6 % principal vectors",
                    1.10,
                    computed("all ranges: 6% principal", "over Program 1"),
                    within=1.03,
                ),
                number(
                    "marginals, 6 % principal vectors",
                    1.0,
                    computed("2-way marginals: 6% principal", "over Program 1"),
                    within=1.01,
                ),
            ),
        ),
        PaperFigure(
            paper="eigen-design",
            name="fig5",
            title="2048 cells: Program 1 over other design queries, errors over those of eigen-queries",
            compute=_eigen_fig_5,
            claims=(
                number("ranges: wavelet", 1.2, _over_eigen("ranges", "wavelet"), within=1.05),
                number("ranges: fourier", 1.2, _over_eigen("ranges", "fourier"), within=1.05),
                at_least("permuted ranges: wavelet", 4, _over_eigen("ranges, permuted", "wavelet")),
                at_least("permuted ranges: fourier", 4, _over_eigen("ranges, permuted", "fourier")),
                number("2-way marginals: fourier", 1.0, _over_eigen("2-way marginals", "fourier"), within=1.01),
            ),
        ),
        PaperFigure(
            paper="eigen-design",
            name="table2",
            title="2048 cells: competitors over Eigen-Design, workload error",
            compute=_eigen_table_2,
            claims=tuple(table_2),
        ),
    )


def _inverse(row: str) -> Here:
    return lambda found: 1 / found["computed"][row]["eigen"]


EIGEN_DESIGN = _figures()
