"""How often to ask each query of a basis: the best weights for a given set of design queries, and free completion.

Program 1 of Eigen-Design as a fixed point of its dual, with the same certificate as in `optimal`, at O(rows x cells)
a step instead of a semidefinite program.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike

from bursar.arrays import Reals
from bursar.errors import QueryError
from bursar.strategies.measure import OUT_OF_SPAN, checked_gram


class DesignMatrix(Protocol):
    """Anything that multiplies vectors from both sides as a matrix does: dense, or a structure of its own."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""

    def __matmul__(self, vector: Reals, /) -> ArrayLike: ...

    def __rmatmul__(self, vector: Reals, /) -> ArrayLike: ...


@dataclass(frozen=True, kw_only=True, eq=False)
class Weights:
    """One factor per design query, the total variance it gives, and what no weights can go below."""

    factors: Reals
    value: float
    bound: float

    @property
    def gap(self) -> float:
        """The relative duality gap: 0 for the best weights."""
        return self.value / self.bound - 1 if self.bound > 0 else 0.0


def query_weights(
    costs: Reals, basis: DesignMatrix, *, power: int = 2, gap: float = 1e-4, most_steps: int = 5000
) -> Weights:
    """min sum c_i / l_i^2 over l >= 0 with sum_i l_i^p |q_ij|^p <= 1 for every cell j.

    `basis` holds |q_ij|^p. Power 2 is Program 1 (u = l^2): the dual is max over v of (sum_i sqrt(c_i (QoQ v)_i))^2 /
    sum v, with u = sqrt(c/(QoQ v)) and v <- v ((QoQ)^T u)^2. Power 1 is its analogue for Laplace noise (Sec. 3.5):
    max of (sum_i c_i^1/3 (|Q| v)_i^2/3)^3 / (sum v)^2, with l = (c/(|Q| v))^1/3.
    Guarantees: `bound` holds whatever the number of steps; the factors meet the constraint.
    Edge cases: a design query of cost zero gets weight zero.
    """
    if power not in (1, 2):
        raise QueryError("weights are for an L1 or an L2 sensitivity")
    share = power / (power + 2)  # 1/2 for L2, 1/3 for L1: the exponent of c / (Q v)
    v = np.full(basis.shape[1], 1.0 / basis.shape[1])
    bound, value, best = 0.0, math.inf, np.zeros_like(costs)
    for _ in range(most_steps):
        seen = np.asarray(basis @ v)
        used = (costs > 0) & (seen > 0)
        amounts = np.where(used, (costs / np.where(used, seen, 1.0)) ** share, 0.0)  # l^p, up to a factor
        loads = np.asarray(amounts @ basis)
        amounts = amounts / loads.max()
        now = float((costs[used] / amounts[used] ** (2 / power)).sum())
        if now < value:
            value, best = now, amounts
        total = float((costs[used] ** share * seen[used] ** (1 - share)).sum())
        bound = max(bound, total ** (1 + 2 / power) / float(v.sum()) ** (2 / power))
        if value <= (1 + gap) * bound:
            break
        v = v * np.square(loads)
        v /= v.sum()
    return Weights(factors=best ** (1 / power), value=value, bound=bound)


def weigh_basis(gram: ArrayLike, basis: ArrayLike, *, power: int = 2, gap: float = 1e-4) -> Reals:
    """The best strategy made of weighted rows of a basis: Program 1 with c_i = ||column i of W Q^+||^2 (Thm. 1).

    Rows of weight zero are left out. For an overcomplete set the costs are those of the pseudo-inverse, as in the
    paper: the weights are then good, not the best.
    Edge cases: a basis that does not span the workload is refused; an all-zero workload gives no rows.
    """
    V, Q = checked_gram(gram), np.asarray(basis, np.float64)
    inverse = _pseudo_inverse(Q)
    solved = V @ inverse
    costs = np.einsum("ij,ij->j", inverse, solved)
    left = V - (solved @ Q)
    if np.abs(left).max() > math.sqrt(OUT_OF_SPAN) * np.abs(V).max():
        raise QueryError("the basis does not span the workload")
    costs = np.where(costs > OUT_OF_SPAN * costs.max(initial=0.0), costs, 0.0)
    used = costs > 0
    if not used.any():
        return np.zeros((0, len(V)))
    factors = query_weights(costs[used], np.abs(Q[used]) ** power, power=power, gap=gap).factors
    strategy: Reals = factors[:, None] * Q[used]
    return strategy


def _pseudo_inverse(Q: Reals) -> Reals:
    """Q^+; without a decomposition where the rows are orthogonal."""
    products = Q @ Q.T
    norms = products.diagonal().copy()
    if np.abs(products - np.diag(norms)).max() <= 1e-12 * norms.max() and norms.min() > 0:
        return np.asarray(Q.T / norms)
    return np.asarray(scipy.linalg.pinv(Q))
