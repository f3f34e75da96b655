"""The strategy with the least largest error at a confidence, for Gaussian noise, and a bound that none goes below.

A goal "all errors within t but for a chance of beta" is kept where sum_i h(v_i / t^2) <= beta, with v_i the variance of
query i and h(x) = 2 Q(1 / sqrt x) the two tails of a normal error. For weights q >= 0 of sum one, `optimal` bounds the
weighted mean q . v from below, and the least t that this leaves room for is a bound on the error of every strategy
(`least_error`). It is tight where q is proportional to h'(v_i / t^2), so that is where weights move (`QueryWeights`).

h is convex as far as x = 1/3, a query's own chance of 8.3 %; variances are convex in X = A^T A. The limit of small beta
is the least largest variance (minimax).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import scipy.linalg
import scipy.sparse
from scipy.special import ndtr

from bursar.arrays import Reals
from bursar.errors import QueryError
from bursar.strategies.measure import FEWEST_CELLS, is_positive, spectrum
from bursar.strategies.optimal import (
    CAUTIOUS_STEPS,
    GAP_OF_MANY,
    MANY_CELLS,
    SMALLEST_WEIGHT,
    Remembered,
    complete,
    raised,
    recall,
    rounded,
    solved_over_all_cells,
    weighted_bound,
)
from bursar.threads import one_thread

SMALLEST_SHARE = 1e-4
"""No query's weight falls below this share of the mean weight: its answer must follow from the strategy in any case."""

CONVEX_FROM = math.sqrt(3)
"""h is convex for errors of this many deviations or more."""

BISECTIONS, DUAL_STEPS, NEWTON_STEPS = 40, 12, 8
DUAL_WITHIN, SMALLEST_CHANCE = 1e-6, 1e-300

MOST_STEPS, MOST_FULL_STEPS = 100, 30
"""Steps for workloads of low rank, which are cheap, and of full rank, an eigendecomposition over all cells each."""

STALLED_STEPS, STALLED_WITHIN = 8, 1 / 8
"""The search ends after this many steps that gain no more than this share of the gap that is sought: neither is the gap
narrower, nor the bound better than that of the step before."""

SHORTER, LONGER = 1 / 2, 5 / 4
"""Weights go less far, by this factor, after a step that has lowered the bound; and further after one that has not."""

SHORTEST = 1 / 16


def error_at(variances: Reals, beta: float) -> float:
    """The t with sum_i Pr[|error_i| >= t] = beta for normal errors.

    Edge cases: queries without variance are left out; 0 where none is left.
    """
    deviations = np.sqrt(variances[variances > 0])
    if not deviations.size:
        return 0.0
    largest = float(deviations.max())
    low, high = largest * _quantile(beta), largest * _quantile(beta / len(deviations))
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if 2 * float(ndtr(-middle / deviations).sum()) > beta else (low, middle)
    return high


def least_error(weights: Reals, mean: float, beta: float) -> float:
    """The error that no strategy is below if none has a weighted mean variance below `mean`.

    By duality: with m the largest q . x at which sum_i h(x_i) <= beta, an error of t allows a mean of t^2 m. For every
    price p of chance, m <= p beta + sum_i max_x (q_i x - p h(x)), where x <= 1/z^2, z the quantile of beta.
    Guarantees: true for all weights of sum one, however they were found.
    Edge cases: weights that are negative, or do not sum to one, are refused.
    """
    if not (np.all(weights >= 0) and abs(float(weights.sum()) - 1) <= 1e-9):
        raise QueryError("the weights of queries are not negative, and their sum is one")
    q = weights[weights > 0]
    log_price = float(-math.log(len(q)) - _log_slope(np.array(max(_quantile(beta / len(q)), CONVEX_FROM))))
    most = math.inf
    for _ in range(DUAL_STEPS):
        z = _dearest(q, log_price, _quantile(beta))
        chances = 2 * ndtr(-z)
        chance = float(chances.sum())
        most = min(most, float((q / np.square(z)).sum()) + math.exp(log_price) * (beta - chance))
        excess = math.log(chance / beta)
        if abs(excess) <= DUAL_WITHIN:
            break
        typical = (
            float(chances @ np.square(z)) / chance
        )  # log chance falls by z^2 / (z^2 - 3) for each unit of log price
        log_price += excess * max(1 - 3 / typical, 0.2)
    return math.sqrt(mean / most)


def _dearest(q: Reals, log_price: float, fewest: float) -> Reals:
    """For each query by itself the z = 1/sqrt x >= fewest that maximises q x - price h(x).

    That is where h' = q / price, which Newton's method finds in z; or, as h is not convex everywhere, the fewest. As
    3 log z < z^2/4 + 1.2, log h' is below all slopes where the search begins, and it is concave.
    """
    slopes = np.log(q) - log_price
    z = 2 * np.sqrt(np.maximum(1.2 - 0.5 * math.log(2 * math.pi) - slopes, 1.0))
    for _ in range(NEWTON_STEPS):
        z = np.maximum(z - (_log_slope(z) - slopes) / np.minimum(3 / z - z, -1e-2), CONVEX_FROM)
    z = np.maximum(z, fewest)
    price = math.exp(log_price)
    gain = q / np.square(z) - 2 * price * ndtr(-z)
    return np.where(q / fewest**2 - 2 * price * ndtr(-fewest) > gain, fewest, z)


def _log_slope(z: Reals) -> Reals:
    """log h'(x) at x = 1 / z^2: h'(x) = phi(z) z^3."""
    return np.asarray(3 * np.log(z) - np.square(z) / 2 - 0.5 * math.log(2 * math.pi))


def _quantile(chance: float) -> float:
    """How many deviations a normal error exceeds with the given chance, on both sides together."""
    return -NormalDist().inv_cdf(chance / 2)


@dataclass
class QueryWeights:
    """Weights of queries that sum to one, moved towards those whose errors exceed a goal most often."""

    beta: float
    shares: Reals

    @staticmethod
    def even(rows: Reals, beta: float) -> QueryWeights:
        """The same for every row that is not zero, and none for the others."""
        used = np.abs(rows).max(axis=1) > 0
        return QueryWeights(beta, used / used.sum())

    def least_error(self, mean: float) -> float:
        """No strategy has a smaller error if none has a smaller mean variance in these weights."""
        return least_error(self.shares, mean, self.beta)

    def move(self, variances: Reals, error: float, share: float = 1.0) -> None:
        """Towards h'(v / t^2), which the weights of the best strategy are proportional to; `share` of the way there,
        in logarithms.

        As if each variance fell with the root of its own weight alone, as it does where queries share no cell: a weight
        p makes z^2 (p/q)^1/2 of z^2 = t^2 / v. With y = log z^2, p = c phi(z) z^3 is an equation for each query,
        e^y / 2 + y / 2 = log c + 2 log z_old^2 - log q, and c is such that the errors keep the chance of beta.
        """
        used = self.shares > 0
        old = np.log(error**2 / variances[used])
        constant = 2 * old - np.log(self.shares[used])
        level = float(np.average((np.exp(old) + old) / 2 - constant, weights=ndtr(-np.exp(old / 2))))
        for _ in range(DUAL_STEPS):
            y = _implicit(constant + level)
            excess = math.log(max(2 * float(ndtr(-np.exp(y / 2)).sum()), SMALLEST_CHANCE) / self.beta)
            if abs(excess) <= DUAL_WITHIN:
                break
            level += excess
        logs = share * _log_slope(np.exp(y / 2)) + (1 - share) * np.log(self.shares[used])
        shares = np.exp(logs - logs.max())
        shares = np.maximum(shares, SMALLEST_SHARE * shares.mean())
        self.shares[used] = shares / shares.sum()


def _implicit(right: Reals) -> Reals:
    """The y with e^y + y = 2 right."""
    y = np.where(right > 1, np.log(np.maximum(2 * right, 1.0)), np.minimum(2 * right, 1.0))
    for _ in range(NEWTON_STEPS):
        y = y - (np.exp(y) + y - 2 * right) / (np.exp(y) + 1)
    return y


FEWER_QUERIES = 2
"""Over this many times as many cells, queries are looked at by what they have in common with each other."""

FEW_CHANGES = 1 / 16
"""Queries that change at no more than this share of all cells are multiplied by way of their changes."""


@dataclass(frozen=True, eq=False)
class QueryRows:
    """Queries W over cells, for products with large matrices: ranges are sums of two running totals each.

    With D the changes from each cell to the next, W M = D times the sums of M's rows from each one on, and
    W^T diag(q) W are the running totals of D^T diag(q) D in both directions.
    """

    rows: Reals
    changes: scipy.sparse.csr_array | None

    @staticmethod
    def of(rows: Reals) -> QueryRows:
        changes = np.diff(rows, prepend=0.0, axis=1)
        few = np.count_nonzero(changes) <= FEW_CHANGES * changes.size
        return QueryRows(rows, scipy.sparse.csr_array(changes) if few else None)

    def times(self, matrix: Reals) -> Reals:
        """W M."""
        if self.changes is None:
            return self.rows @ matrix
        return np.asarray(self.changes @ np.cumsum(matrix[::-1], axis=0)[::-1])

    def gram(self, weights: Reals) -> Reals:
        """W^T diag(weights) W."""
        if self.changes is None:
            return np.asarray(self.rows.T @ (weights[:, None] * self.rows))
        weighted = self.changes.multiply(weights[:, None]).tocsr()
        both = np.asarray((self.changes.T @ weighted).toarray(), np.float64)
        return np.asarray(both.cumsum(axis=0).cumsum(axis=1))


@dataclass(frozen=True, kw_only=True, eq=False)
class LargestErrorOptimum:
    """A strategy of sensitivity one, its largest error but for a chance of beta, and what no such error is below.

    `bound` is the `least_error` of `weights` and `mean`: no strategy of sensitivity one has a smaller mean variance in
    these weights.
    """

    strategy: Reals
    error: float
    bound: float
    weights: Reals
    mean: float
    steps: int


@one_thread()
def largest_error_optimum(queries: Reals, *, beta: float, gap: float = 4e-3) -> LargestErrorOptimum:
    """The strategy whose largest error, but for a chance of beta, is least up to the given gap of its square.

    Each step solves the problem of `optimal` for the present weights q of queries and v of cells, and moves both: v to
    v diag(X)^2 (from the fifth step on ^3), and q as `QueryWeights.move` says. Where queries are of very different
    sizes, as counts beside sums, one move undoes what the other has gained, back and forth: the bound falls, and from
    then on both go a part of the way only.
    Guarantees: `bound <= error of every strategy`, whatever the number of steps.
    Edge cases: after the most steps the best so far is returned, with its bound. Queries are over merged cells, so that
    every cell is in one of them.
    """
    cells = queries.shape[1]
    gap = gap if cells <= MANY_CELLS else max(gap, GAP_OF_MANY)
    listed = QueryRows.of(queries)
    basis = _row_space(listed)
    weights = QueryWeights.even(queries, beta)
    v = np.ones(cells)
    least, bound, steps, stalled = math.inf, 0.0, 0, 0
    narrowest, last, share, fallen = math.inf, 0.0, 1.0, False
    most_steps = MOST_FULL_STEPS if basis is None else MOST_STEPS
    while steps < most_steps and stalled < STALLED_STEPS and least**2 > (1 + gap) * bound**2:
        now = _full_rank(listed, weights.shares, v, gap) if basis is None else _low_rank(*basis, weights.shares, v)
        steps += 1
        proved = weights.least_error(now.mean)
        if proved > bound:
            bound, proof, mean = proved, weights.shares.copy(), now.mean
        error, variances, rows = min(
            ((error_at(variances, beta), variances, rows) for rows, variances in now.strategies),
            key=lambda strategy: strategy[0],
        )
        if error < least:
            least, best = error, rows
        enough = 1 + STALLED_WITHIN * gap
        stalled = 0 if least / bound * enough < narrowest or proved > last * enough else stalled + 1
        share = max(SHORTER * share, SHORTEST) if proved < last else min(LONGER * share, 1.0)
        narrowest, last, fallen = min(least / bound, narrowest), proved, fallen or proved < last
        weights.move(variances, error, share)
        v = v * now.diagonal ** (2 * share if fallen or steps < CAUTIOUS_STEPS else 3)
        v = np.maximum(v / v.max(), SMALLEST_WEIGHT)
    return LargestErrorOptimum(strategy=complete(best), error=least, bound=bound, weights=proof, mean=mean, steps=steps)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Iterate:
    """What weights give: strategies of sensitivity one with the variances of all queries, and the least mean."""

    strategies: tuple[tuple[Reals, Reals], ...]
    diagonal: Reals  # of X
    mean: float


def _full_rank(queries: QueryRows, weights: Reals, v: Reals, gap: float) -> _Iterate:
    """X = D^-1/2 (D^1/2 V D^1/2)^1/2 D^-1/2, V = W^T diag(q) W: over its largest diagonal element, and S X S."""
    root = np.sqrt(v)
    values, U = scipy.linalg.eigh(queries.gram(weights) * np.outer(root, root), driver="evd", check_finite=False)
    roots = np.sqrt(raised(values, gap))
    rows = np.sqrt(roots)[:, None] * (U.T / root)
    diagonal = np.einsum("ij,ij->j", rows, rows)
    size, most = np.sqrt(diagonal), float(diagonal.max())
    variances, of_unit_diagonal = (
        np.square(queries.times(scale[:, None] * U)) @ (1 / roots) for scale in (root, root * size)
    )
    strategies = ((rows / math.sqrt(most), most * variances), (rows / size, of_unit_diagonal))
    return _Iterate(strategies=strategies, diagonal=diagonal, mean=weighted_bound(values, v))


def _row_space(queries: QueryRows) -> tuple[Reals, Reals] | None:
    """F of few rows and C of orthonormal columns with W = C F; None where all cells are looked at.

    Few queries over many cells are looked at by W W^T, whose eigenvectors are the columns of C.
    """
    cells = queries.rows.shape[1]
    if cells >= FEWEST_CELLS and FEWER_QUERIES * len(queries.rows) <= cells:
        _, columns = spectrum(queries.rows @ queries.rows.T)
        return columns.T @ queries.rows, columns
    V = queries.gram(np.ones(len(queries.rows)))
    if solved_over_all_cells(int(is_positive(scipy.linalg.eigvalsh(V, check_finite=False)).sum()), cells):
        return None
    values, vectors = spectrum(V)
    return np.sqrt(values)[:, None] * vectors.T, queries.rows @ (vectors / np.sqrt(values))


def _low_rank(basis: Reals, parts: Reals, weights: Reals, v: Reals) -> _Iterate:
    """The same with W = C F, of orthonormal columns and of few rows: V = G^T G, G = L^T F, L L^T = C^T diag(q) C."""
    L = scipy.linalg.cholesky(parts.T @ (weights[:, None] * parts), lower=True, check_finite=False)
    G = L.T @ basis
    values, U = scipy.linalg.eigh((G * v) @ G.T, driver="evd", check_finite=False)
    roots = np.sqrt(np.maximum(values, values[-1] * SMALLEST_WEIGHT**2))
    rows = (U / np.sqrt(roots)).T @ G
    diagonal = np.einsum("ij,ij->j", rows, rows)
    most = float(diagonal.max())
    seen = U.T @ scipy.linalg.solve_triangular(L, parts.T, lower=True, check_finite=False)
    strategies = ((rows / math.sqrt(most), most * (roots @ np.square(seen))),)
    return _Iterate(strategies=strategies, diagonal=diagonal, mean=weighted_bound(values, v))


def integer_largest_error(queries: Reals, *, beta: float, bits: int | None = None, loss: float = 1e-4) -> Remembered:
    """The optimum in whole numbers; on a grid of at most 2^bits where `bits` is given."""

    def make() -> Remembered:
        best = largest_error_optimum(queries, beta=beta)
        V = queries.T @ (best.weights[:, None] * queries)
        bound = math.sqrt(best.mean)
        return rounded(best.strategy, V, power=2, bits=bits, loss=loss, bound=bound, weights=best.weights)

    return recall(make, queries, beta, bits, loss)
