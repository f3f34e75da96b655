"""How good a strategy is: its error over a workload, and the bound that no strategy beats.

Throughout, V = W^T W is the Gram matrix of the workload and A the strategy. Errors are root mean squares over the
workload, times the root of its number of queries, per unit of noise at sensitivity one ("trace units").
"""

from __future__ import annotations

import math

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray

from bursar.arrays import Reals
from bursar.errors import QueryError

LARGEST_DENSE = 4096
"""Most cells of a workload that is treated as a dense matrix."""

ROUNDING = 1e-14
"""Eigenvalues below this, times the size, times the largest one, are zeros that rounding has moved."""

OUT_OF_SPAN = 1e-9
"""A strategy does not answer a workload if it leaves more than this share of tr V open."""


def checked_size(cells: int) -> int:
    """The number of cells, if a dense matrix over them is possible.

    Edge cases: no cells, and more than `LARGEST_DENSE`, are refused.
    """
    if cells < 1:
        raise QueryError("a workload needs at least one cell")
    if cells > LARGEST_DENSE:
        raise QueryError(
            f"this workload spans {cells} merged cells; a strategy can be computed for {LARGEST_DENSE}: ask about "
            "fewer columns together, or with coarser bins"
        )
    return cells


def checked_gram(gram: ArrayLike) -> Reals:
    """A Gram matrix as floats.

    Edge cases: what is not square, symmetric, finite and of a possible size is refused; so is a negative diagonal.
    """
    V = np.asarray(gram, np.float64)
    if V.ndim != 2 or V.shape[0] != V.shape[1]:
        raise QueryError("the Gram matrix of a workload is square")
    checked_size(len(V))
    largest = float(max(V.max(), -V.min()))
    if not math.isfinite(largest):
        raise QueryError("the Gram matrix of a workload is finite")
    symmetric = np.array_equal(V, V.T) or np.abs(V - V.T).max() <= 1e-9 * largest
    if not symmetric or V.diagonal().min() < 0:
        raise QueryError("the Gram matrix of a workload is symmetric, with no negative number on its diagonal")
    return V


def spectrum(gram: Reals) -> tuple[Reals, Reals]:
    """The nonzero eigenvalues of a positive semidefinite matrix and their eigenvectors, as columns."""
    values, vectors = scipy.linalg.eigh(gram, driver="evd", check_finite=False)
    positive = is_positive(values)
    return values[positive], vectors[:, positive]


def is_positive(values: Reals) -> NDArray[np.bool_]:
    """Which eigenvalues, in increasing order, are more than rounding."""
    return np.asarray(values > len(values) * ROUNDING * max(values[-1], 0.0))


def full_rank_root(X: Reals) -> Reals | None:
    """L with X = L L^T, or None where X has, or may have, less than full rank."""
    try:
        L: Reals = scipy.linalg.cholesky(X, lower=True, check_finite=False)
    except scipy.linalg.LinAlgError:
        return None
    pivots = np.square(L.diagonal())
    return None if pivots.min() <= len(X) * 100 * ROUNDING * pivots.max() else L


def weights_on(rows: Reals, queries: Reals) -> Reals:
    """Queries as combinations of rows, W A^+: how least squares weighs noise of equal variance."""
    root = full_rank_root(rows.T @ rows)
    if root is None:
        return np.asarray(queries @ np.linalg.pinv(rows))
    return np.asarray((rows @ scipy.linalg.cho_solve((root, True), queries.T, check_finite=False)).T)


def sensitivity(strategy: ArrayLike, power: int = 2) -> float:
    """||A||_2, the largest L2 norm of a column (Eigen-Design, Prop. 1); the largest L1 norm for power 1."""
    A = np.asarray(strategy, np.float64)
    sums = np.abs(A).sum(axis=0) if power == 1 else np.einsum("ij,ij->j", A, A)
    return math.pow(float(sums.max(initial=0.0)), 1 / power)


def trace_error(gram: ArrayLike, information: ArrayLike) -> float:
    """tr(V X^+) for X = A^T A: the total variance over the workload at noise of variance one.

    Edge cases: infinite where some query of the workload lies outside the row space of A; zero for an all-zero V.
    """
    V, X = checked_gram(gram), checked_gram(information)
    if V.shape != X.shape:
        raise QueryError("the strategy and the workload are over different cells")
    if not V.any():
        return 0.0
    root = full_rank_root(X)
    if root is not None:
        inverse = scipy.linalg.lapack.dpotri(root, lower=1)[0]  # its lower half, over zeros
        return float(2 * np.vdot(inverse, V) - inverse.diagonal() @ V.diagonal())
    values, vectors = spectrum(X)
    seen = np.einsum("ij,ij->j", vectors, V @ vectors)
    if not seen.size or np.trace(V) - seen.sum() > OUT_OF_SPAN * np.trace(V):
        return math.inf
    return float((seen / values).sum())


def rms_error(gram: ArrayLike, strategy: ArrayLike) -> float:
    """||A||_2 sqrt(tr(V (A^T A)^+)): the error with Gaussian noise (Eigen-Design, Prop. 4, P(epsilon, delta) = 1)."""
    A = np.asarray(strategy, np.float64)
    return _times(sensitivity(A), trace_error(gram, A.T @ A))


def pure_error(gram: ArrayLike, strategy: ArrayLike) -> float:
    """||A||_1 sqrt(tr(V (A^T A)^+)): the error with Laplace noise (Eigen-Design, Sec. 3.5)."""
    A = np.asarray(strategy, np.float64)
    return _times(sensitivity(A, 1), trace_error(gram, A.T @ A))


def svd_bound(gram: ArrayLike) -> float:
    """(sqrt s_1 + ... + sqrt s_n) / sqrt n, s the eigenvalues of V: no strategy has a smaller `rms_error` (Thm. 2)."""
    V = checked_gram(gram)
    values = scipy.linalg.eigvalsh(V, check_finite=False)
    return float(np.sqrt(values[is_positive(values)]).sum()) / math.sqrt(len(V))


def ratio(gram: ArrayLike, strategy: ArrayLike) -> float:
    """How many times the singular value bound the error of a strategy is; 1 for an all-zero workload."""
    bound = svd_bound(gram)
    return rms_error(gram, strategy) / bound if bound > 0 else 1.0


def _times(norm: float, trace: float) -> float:
    return trace if math.isinf(trace) or trace == 0 else norm * math.sqrt(trace)
