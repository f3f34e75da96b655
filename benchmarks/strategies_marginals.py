"""Laplace noise for unions of marginals, beside HDMM's strategy for them (McKenna et al., Sec. 6.3, OPT_M).

Figures are the root mean square error of a count at epsilon one. HDMM itself is not to be had as a package, so its
optimisation is written down here: a weight for every set of columns, 2^d of them, each the share of the budget for the
table over that set, and a search for the weights with the least sum of variances from starts without a pattern.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize

from benchmarks.harness import Figures
from bursar.arrays import Reals
from bursar.strategies.marginals import Set, laplace_marginals

UNIONS, STARTS = 3, 6


def unions(seed: int) -> Figures:
    """Three random unions: four to six columns, up to eleven sets of one to three of them."""
    drawn = [union(np.random.default_rng([seed, number])) for number in range(UNIONS)]
    return {
        "default": {
            f"union_{number}": _error(sizes, sets, laplace_marginals(sizes, sets).total())
            for number, (sizes, sets) in enumerate(drawn, 1)
        },
        "hdmm": {f"union_{number}": _error(*case, hdmm(*case)) for number, case in enumerate(drawn, 1)},
    }


def union(rng: np.random.Generator) -> tuple[tuple[int, ...], tuple[Set, ...]]:
    columns = int(rng.integers(4, 7))
    sizes = tuple(rng.integers(2, 12, columns).tolist())
    sets = [
        tuple(sorted(rng.choice(columns, int(rng.integers(1, 4)), replace=False).tolist()))
        for _ in range(int(rng.integers(4, 12)))
    ]
    return sizes, tuple(dict.fromkeys(sets))


def hdmm(sizes: Sequence[int], sets: Sequence[Set]) -> float:
    """The least sum of all counts' variances, over that of a draw of scale one, that HDMM's search finds.

    Least squares works on the residual of each set S of columns by itself. With weights u the precision there is
    p_S = sum over tables B with S <= B of u_B^2 / n_(B - S), and the sum of variances is (sum u)^2 sum_S c_S / p_S.
    """
    columns = range(len(sizes))
    tables = [B for count in range(len(sizes) + 1) for B in itertools.combinations(columns, count)]
    amounts = {S: sum(_amount(sizes, S, A) for A in sets if set(S) <= set(A)) for S in tables}
    needed = [S for S in tables if amounts[S] > 0]
    c = np.array([amounts[S] for S in needed])
    shares = np.array([[_share(sizes, S, B) if set(S) <= set(B) else 0.0 for S in needed] for B in tables])

    def variances(u: Reals) -> tuple[float, Reals]:
        p = np.square(u) @ shares
        total, spent = float((c / p).sum()), float(u.sum())
        return total * spent**2, 2 * total * spent - 2 * spent**2 * u * (shares @ (c / np.square(p)))

    rng = np.random.default_rng(0)
    bounds, steps = [(1e-9, None)] * len(tables), {"maxiter": 2000}
    starts = (rng.random(len(tables)) for _ in range(STARTS))
    return min(float(minimize(variances, u, jac=True, bounds=bounds, options=steps).fun) for u in starts)


def _share(sizes: Sequence[int], part: Set, table: Set) -> float:
    return 1 / math.prod(sizes[i] for i in table if i not in part)


def _amount(sizes: Sequence[int], part: Set, marginal: Set) -> float:
    return math.prod(sizes[i] - 1 for i in part) * _share(sizes, part, marginal)


def _error(sizes: Sequence[int], sets: Sequence[Set], total: float) -> float:
    counts = sum(math.prod(sizes[i] for i in A) for A in sets)
    return math.sqrt(2 * total / counts)
