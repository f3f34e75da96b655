"""Strategies for Laplace noise: the identity with p extra queries, all weighted so that every column sums to one.

For pure epsilon-differential privacy the sensitivity is the largest L1 norm of a column, which A^T A does not
determine (Eigen-Design, Sec. 3.5), so strategies are sought within a family. The p-identity family is that of McKenna
et al. (HDMM); trees with weighted levels (`hierarchical.tree` with power 1) are better for large n.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from bursar.arrays import Reals
from bursar.errors import QueryError
from bursar.strategies.hierarchical import identity, tree
from bursar.strategies.measure import checked_gram, pure_error

FEW_CELLS = 16
"""Up to here the identity is as good as anything."""

CELLS_PER_QUERY = 16
"""How many cells there are for each extra query, unless told otherwise."""

MOST_CELLS = 1024
"""Most cells for which extra queries are sought; their number of unknowns grows with the square."""

STEPS = 300


def p_identity(gram: ArrayLike, *, extra: int | None = None) -> Reals:
    """A = [I; T] diag(1 / (1 + column sums of T)), T >= 0 with `extra` rows, of locally least tr(V (A^T A)^-1).

    Guarantees: every column has L1 norm one; the error is at most that of the identity.
    Edge cases: no extra query gives the identity.
    """
    V = checked_gram(gram)
    n = len(V)
    p = n // CELLS_PER_QUERY if extra is None else extra
    if p < 0:
        raise QueryError("the number of extra queries is not negative")
    if p == 0 or not V.any():
        return identity(n)
    from scipy.optimize import minimize  # only here, and slow to import

    scale = float(np.trace(V))
    found = minimize(
        _trace,
        _start(p, n),
        args=(V / scale, p),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, None)] * (p * n),
        options={"maxiter": STEPS},
    )
    T = found.x.reshape(p, n)
    made = np.concatenate([np.eye(n), T]) / (1 + T.sum(axis=0))
    return made if found.fun <= 1 else identity(n)


def for_laplace(gram: ArrayLike) -> Reals:
    """The best of the identity, trees with 2 to 16 children and weighted levels, and, where it is small, p-identity."""
    V = checked_gram(gram)
    made = [identity(len(V))]
    if len(V) > FEW_CELLS:
        made += [tree(V, branching=k, power=1) for k in (2, 4, 8, 16)]
        if len(V) <= MOST_CELLS:
            made.append(p_identity(V))
    return min(made, key=lambda strategy: pure_error(V, strategy))


def _trace(unknowns: Reals, V: Reals, p: int) -> tuple[float, Reals]:
    """tr(V (A^T A)^-1) and its gradient in T.

    With s = 1 + column sums, Y = diag(s) V diag(s) and G = (I + T^T T)^-1 = I - T^T (I + T T^T)^-1 T, the trace is
    tr(Y G); its gradient is -2 T G Y G through G, and 2 (s_j sum over i of s_i V_ij G_ij) / s_j through s.
    """
    T = unknowns.reshape(p, -1)
    s = 1 + T.sum(axis=0)
    Y = V * np.outer(s, s)
    R = np.linalg.solve(np.eye(p) + T @ T.T, T)  # T G
    G = np.eye(T.shape[1]) - T.T @ R
    YG = Y * G
    RY = R @ Y
    gradient = 2 * YG.sum(axis=0) / s - 2 * (RY - (RY @ T.T) @ R)
    return float(YG.sum()), gradient.ravel()


def _start(p: int, n: int) -> Reals:
    """Numbers in [0, 1) without a pattern, the same every time: the fractional parts of i^2 times the golden ratio."""
    numbers = np.arange(1, p * n + 1, dtype=np.float64)
    return np.asarray(np.modf(np.square(numbers % 65521) * ((1 + np.sqrt(5)) / 2))[0])
