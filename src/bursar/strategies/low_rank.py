"""Few queries over many cells, with Laplace noise: as many rows as there are queries, mixed so that they weigh least.

A count and a sum of values from -1 to 1 move by up to 2 together. Measured as the sums of (1 + x)/2 and (1 - x)/2,
which each person moves by 1, they follow with half the variance. In general the strategy is A = M W, M invertible, and

    error = max_j |M w_j|_1  ||M^-1||_F,    w_j the columns of W                                                 (1)

which is the low-rank mechanism (Yuan et al., VLDB 2012) with as many rows as W has. The search begins where k cells are
measured that span the largest volume (the others are mixtures of them, with coefficients up to one), and at W itself.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.linalg

from bursar.arrays import Integers, Reals
from bursar.strategies.optimal import FEW_CELLS, Remembered, integer_laplace, recall
from bursar.threads import one_thread

MOST_QUERIES = 16
"""Most queries that are mixed; beyond them p-identity and trees do as well."""

MOST_SWAPS = 100
WITHIN = 1e-9
"""Rounding of a sum that is one."""

SMOOTHINGS = ((20.0, 1e-2), (100.0, 1e-3), (1000.0, 1e-4))
"""Exponents in place of the maximum in (1), and how far from 0 sizes of numbers are rounded off: finer every time."""

SEARCH_STEPS = 200
COARSEST_BITS, FINEST_BITS = 8, 32
"""Grids for M, relative to sensitivity one."""

MOST_LOSS = 0.01
"""Most that rounding to the finest grid may add to the error."""


def applies(queries: Reals) -> bool:
    """Whether there are few queries, none of which follows from others, over more cells."""
    return len(queries) <= min(MOST_QUERIES, queries.shape[1] - 1) and (
        int(np.linalg.matrix_rank(queries)) == len(queries)
    )


def integer_low_rank(queries: Reals, *, gap: float, bits: int | None = None, loss: float = 1e-4) -> Remembered:
    """The best mixture of the queries in whole numbers; where cells are few, the best of it and of other strategies.

    A mixture's rows are whole multiples of queries added up, so the queries follow from them without any loss of span.
    Edge cases: where whole numbers on the grid would lose more than 1 %, it is what is made for many queries.
    """

    def make() -> Remembered:
        mixed = _rounded(queries, bits, loss)
        if mixed is not None and queries.shape[1] > FEW_CELLS:
            return mixed
        other = integer_laplace(queries.T @ queries, gap=gap, bits=bits, loss=loss)
        return (
            other
            if mixed is None
            else min(mixed, other, key=lambda strategy: _error(strategy.rows.astype(np.float64), queries))
        )

    return recall(make, queries, "low rank", gap, bits, loss)


def _error(rows: Reals, queries: Reals) -> float:
    weights = queries @ np.linalg.pinv(rows)
    return float(np.abs(rows).sum(axis=0).max() * np.linalg.norm(weights))


def _rounded(queries: Reals, bits: int | None, loss: float) -> Remembered | None:
    common = np.gcd.reduce(np.rint(queries).astype(np.int64), axis=1).astype(np.float64)
    W = queries / common[:, None]
    mixture, volume = mix(W, common)
    before = _cost(mixture, W, common)
    finest = 2.0 ** (FINEST_BITS if bits is None else bits)
    grids = [volume, *(2.0**power for power in range(COARSEST_BITS, FINEST_BITS + 1, 2))]
    least, best = MOST_LOSS, None
    for grid in (grid for grid in grids if 1 <= grid <= finest):
        whole = np.rint(grid * mixture)
        lost = _cost(whole, W, common) / before - 1
        if lost <= least:
            least, best = lost, whole
        if lost <= loss:
            break
    if best is None:
        return None
    rows: Integers = np.rint(best @ W).astype(np.int64)
    rows //= np.gcd.reduce(rows, axis=None)
    eigenvalues = np.linalg.eigvalsh(queries @ queries.T)
    return Remembered(
        rows=rows,
        bits=int(np.abs(rows).sum(axis=0).max()).bit_length(),
        loss=float(least),
        bound=float(np.sqrt(np.maximum(eigenvalues, 0.0)).sum()) / math.sqrt(queries.shape[1]),  # `svd_bound`
    )


@one_thread()
def mix(W: Reals, units: Reals) -> tuple[Reals, float]:
    """The M of least error (1), with sensitivity one, where query i is `units[i]` times row i of W; and a grid.

    The grid is the determinant of the cells that were begun with: it makes M whole where they are what is measured.
    """
    cells = _largest_volume(W)
    basis = W[:, cells]
    mixture = np.asarray(np.linalg.inv(basis), np.float64)
    volume = abs(float(np.linalg.det(basis)))
    if np.abs(mixture @ W).sum(axis=0).max() > 1 + WITHIN:  # else every cell is a mixture of these: nothing is better
        starts: list[Reals] = [mixture, np.diag(1 / np.abs(W).max(axis=1))]
        mixture = min((_polished(start, W, units) for start in starts), key=lambda each: _cost(each, W, units))
    return mixture / np.abs(mixture @ W).sum(axis=0).max(), volume


def _cost(mixture: Reals, W: Reals, units: Reals) -> float:
    """The error (1); infinite where nothing follows from the rows."""
    try:
        inverse = np.linalg.inv(mixture)
    except np.linalg.LinAlgError:
        return math.inf
    return float(np.abs(mixture @ W).sum(axis=0).max() * np.linalg.norm(units[:, None] * inverse))


def _largest_volume(W: Reals) -> Integers:
    """Cells, as many as rows, whose columns span all others with coefficients of at most one."""
    _, pivots = scipy.linalg.qr(W, mode="r", pivoting=True)
    cells: Integers = np.asarray(pivots[: len(W)], np.int64)
    for _ in range(MOST_SWAPS):
        coefficients = np.abs(np.linalg.solve(W[:, cells], W))
        place, cell = np.unravel_index(int(np.argmax(coefficients)), coefficients.shape)
        if coefficients[place, cell] <= 1 + WITHIN:
            break
        cells[place] = cell
    return cells


def _polished(start: Reals, W: Reals, units: Reals) -> Reals:
    """A local minimum of the logarithm of (1), smoothed less and less, in rows of W of size one."""
    from scipy.optimize import minimize  # slow to import

    sizes = np.abs(W).max(axis=1)
    columns, mixture = W / sizes[:, None], start * sizes
    squares = np.square(units * sizes)
    for power, rounding in SMOOTHINGS:
        mixture = mixture / np.abs(mixture @ columns).sum(axis=0).max()
        result = minimize(
            _smoothed,
            mixture.ravel(),
            args=(columns, squares / squares.max(), power, rounding),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": SEARCH_STEPS},
        )
        mixture = result.x.reshape(mixture.shape)
    return min(start, mixture / sizes, key=lambda each: _cost(each, W, units))


def _smoothed(unknowns: Reals, W: Reals, squares: Reals, power: float, rounding: float) -> tuple[float, Reals]:
    """log of (1) and its gradient in M, with sqrt(y^2 + r^2) for |y| and a p-norm over cells for the maximum.

    With I = M^-1 and D the diagonal of `squares`, the gradient of log tr(I^T D I) / 2 is -I^T D I I^T over that trace.
    """
    M = unknowns.reshape(len(W), len(W))
    Y = M @ W
    size = np.sqrt(np.square(Y) + rounding**2)
    norms = size.sum(axis=0)
    shares = (norms / norms.max()) ** power
    try:
        inverse = np.linalg.inv(M)
    except np.linalg.LinAlgError:
        return math.inf, np.zeros(M.size)
    trace = float(squares @ np.square(inverse).sum(axis=1))
    value = math.log(norms.max()) + math.log(shares.sum()) / power + math.log(trace) / 2
    gradient = (Y / size * (shares / norms / shares.sum())) @ W.T
    gradient -= (inverse.T * squares) @ inverse @ inverse.T / trace
    return value, gradient.ravel()
