"""How good a strategy is: its error over a workload, and the bound that no strategy beats.

Throughout, V = W^T W is the Gram matrix of the workload and A the strategy. Errors are root mean squares over the
workload, times the root of its number of queries, per unit of noise at sensitivity one ("trace units").
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray

from bursar.arrays import Integers, Reals
from bursar.errors import QueryError

LARGEST_DENSE = 4096
"""Most cells of a workload that is treated as a dense matrix."""

ROUNDING = 1e-14
"""Eigenvalues below this, times the size, times the largest one, are zeros that rounding has moved."""

OUT_OF_SPAN = 1e-9
"""A strategy does not answer a workload if it leaves more than this share of tr V open."""

IN_SPAN = 1e-8
"""A workload is answered if in every cell less than this share of its largest column norm is left open."""

FEWEST_CELLS, FEW_ROWS = 256, 1 / 4
"""From so many cells on, a strategy of single cells and few other rows, this share of the cells at most, is looked at
by way of these few: else all takes the cube of the number of cells."""

LEAST_ALONE = 1e-4
"""Of what all rows come to in a cell the least share of its own row: beside less, digits would cancel out."""


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


@dataclass(frozen=True, eq=False)
class FewRows:
    """A strategy A of few rows R, and of rows about single cells: X = A^T A = R^T R + D, D the diagonal of the latter.

    Let P be the cells of which D has enough, and Z the few others. With K = 1 + R_P D_P^-1 R_P^T, F = D_P^-1 R_P^T and
    Y = E_Z - F K^-1 R_Z, a generalized inverse is

        X^- = D_P^-1 - F K^-1 F^T + Y S^+ Y^T,    S = D_Z + R_Z^T K^-1 R_Z

    by the Schur complement S of P. For queries in the row space it comes to the same as any other, and X is singular
    exactly where S is.
    """

    few: Reals  # R
    alone: Reals  # D
    apart: Integers  # Z

    @staticmethod
    def of(A: Reals) -> FewRows | None:
        """None where other rows, or cells in Z, are many; or cells are so few that it makes no difference."""
        cells = A.shape[1]
        if cells < FEWEST_CELLS:
            return None
        seen = np.count_nonzero(A, axis=1)
        if np.count_nonzero(seen > 1) > FEW_ROWS * cells:
            return None
        few, single = A[seen > 1], A[seen == 1]
        rows, at = np.nonzero(single)
        alone = np.asarray(np.bincount(at, np.square(single[rows, at]), cells), np.float64)
        apart = np.flatnonzero(alone <= LEAST_ALONE * (alone + np.square(few).sum(axis=0)))
        return FewRows(few, alone, apart) if len(apart) <= FEW_ROWS * cells else None

    @cached_property
    def _inverses(self) -> Reals:
        """D_P^-1, and zero in Z."""
        inverses = np.zeros(len(self.alone))
        inside = np.setdiff1d(np.arange(len(inverses)), self.apart)
        inverses[inside] = 1 / self.alone[inside]
        return inverses

    @cached_property
    def _over_alone(self) -> Reals:
        """F."""
        return self._inverses[:, None] * self.few.T

    @cached_property
    def _inverted(self) -> Reals:
        """K^-1 (F^T, R_Z)."""
        if not len(self.few):
            return np.zeros((0, len(self.alone) + len(self.apart)))
        K = np.eye(len(self.few)) + self.few @ self._over_alone
        both = np.concatenate([self._over_alone.T, self.few[:, self.apart]], axis=1)
        return np.asarray(scipy.linalg.solve(K, both, assume_a="pos", check_finite=False))

    @cached_property
    def _lifted(self) -> Reals:
        """Y."""
        Y = -self._over_alone @ self._inverted[:, len(self.alone) :]
        Y[self.apart, np.arange(len(self.apart))] += 1.0
        return np.asarray(Y)

    @cached_property
    def _spectrum(self) -> tuple[Reals, Reals, NDArray[np.bool_]]:
        """The eigenvalues and eigenvectors of S, and which are more than rounding."""
        few = self.few[:, self.apart]
        S = np.diag(self.alone[self.apart]) + few.T @ self._inverted[:, len(self.alone) :]
        values, vectors = scipy.linalg.eigh((S + S.T) / 2, check_finite=False)
        largest = float(self.alone.max(initial=0.0)) + float(np.square(self.few).sum())
        return values, vectors, values > len(self.alone) * ROUNDING * largest

    @cached_property
    def _seen(self) -> Reals:
        """Y S^+^1/2."""
        values, vectors, positive = self._spectrum
        return np.asarray(self._lifted @ (vectors[:, positive] / np.sqrt(values[positive])))

    @cached_property
    def unseen(self) -> Reals:
        """An orthonormal basis, as columns, of what no row sees: none where X has full rank."""
        _, vectors, positive = self._spectrum
        basis: Reals = np.linalg.qr(self._lifted @ vectors[:, ~positive])[0]
        return basis

    def trace(self, V: Reals) -> float:
        """tr(V X^-)."""
        single = float(self._inverses @ V.diagonal())
        both = float(np.vdot(self._inverted[:, : len(V)].T, V @ self._over_alone))
        return single - both + float(np.vdot(self._seen, V @ self._seen))

    def weights(self, queries: Reals, rows: Reals) -> Reals:
        """W X^- A^T."""
        by_few = (queries @ self._over_alone) @ self._inverted[:, : len(self.alone)]
        inverted = queries * self._inverses - by_few + (queries @ self._seen) @ self._seen.T
        return np.asarray(inverted @ rows.T)

    def open(self, V: Reals) -> float:
        """How much of tr V no row sees."""
        return float(np.vdot(self.unseen, V @ self.unseen))

    def spans(self, V: Reals) -> bool:
        """As `integers.spans`."""
        still_open = np.einsum("ij,ij->i", self.unseen @ (self.unseen.T @ V @ self.unseen), self.unseen)
        return bool(still_open.max(initial=0.0) <= IN_SPAN**2 * V.diagonal().max())


def weights_on(rows: Reals, queries: Reals) -> Reals:
    """Queries as combinations of rows, W A^+: how least squares weighs noise of equal variance."""
    few = FewRows.of(rows)
    if few is not None:
        return few.weights(queries, rows)
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
    return error_of(checked_gram(gram), np.asarray(strategy, np.float64), 2)


def pure_error(gram: ArrayLike, strategy: ArrayLike) -> float:
    """||A||_1 sqrt(tr(V (A^T A)^+)): the error with Laplace noise (Eigen-Design, Sec. 3.5)."""
    return error_of(checked_gram(gram), np.asarray(strategy, np.float64), 1)


def error_of(V: Reals, A: Reals, power: int) -> float:
    """The error with Gaussian noise, power 2, or with Laplace noise, power 1, over a Gram matrix that was checked."""
    few = FewRows.of(A) if A.shape[1] == len(V) else None
    if few is None:
        trace = trace_error(V, A.T @ A)
    else:
        trace = math.inf if few.open(V) > OUT_OF_SPAN * np.trace(V) else few.trace(V)
    return trace if math.isinf(trace) or trace == 0 else sensitivity(A, power) * math.sqrt(trace)


def svd_bound(gram: ArrayLike) -> float:
    """(sqrt s_1 + ... + sqrt s_n) / sqrt n, s the eigenvalues of V: no strategy has a smaller `rms_error` (Thm. 2)."""
    V = checked_gram(gram)
    values = scipy.linalg.eigvalsh(V, check_finite=False)
    return float(np.sqrt(values[is_positive(values)]).sum()) / math.sqrt(len(V))


def ratio(gram: ArrayLike, strategy: ArrayLike) -> float:
    """How many times the singular value bound the error of a strategy is; 1 for an all-zero workload."""
    bound = svd_bound(gram)
    return rms_error(gram, strategy) / bound if bound > 0 else 1.0
