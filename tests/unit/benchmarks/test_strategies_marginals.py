"""HDMM's strategy for marginals, as the benchmark has it, against dense linear algebra; and ours beside it."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.strategies_marginals import hdmm, union

from bursar.strategies.marginals import laplace_marginals


def test_one_marginal_is_read_from_its_own_table() -> None:
    assert hdmm((3, 4), ((0, 1),)) == pytest.approx(12, rel=1e-4)


def test_a_table_and_its_sum_cost_what_the_best_two_scales_cost() -> None:
    """A column of nine values and the total, four times: weights u on cells, 1 - u on the total, least squares."""
    cells, total = np.eye(9), np.ones((1, 9))
    best = np.inf
    for u in np.linspace(0.01, 0.999, 990):
        information = u**2 * cells + (1 - u) ** 2 * total.T @ total
        best = min(best, float(np.trace(np.linalg.solve(information, cells + 4 * total.T @ total))))
    assert hdmm((9,), ((0,), (), (), (), ())) == pytest.approx(best, rel=1e-4)
    assert best < 44.9  # the total is worth measuring: cells alone give 9 + 4 * 9


@pytest.mark.parametrize("seed", range(4))
def test_ours_needs_no_more(seed: int) -> None:
    sizes, sets = union(np.random.default_rng([9, seed]))
    assert laplace_marginals(sizes, sets).total() <= 1.001 * hdmm(sizes, sets)
