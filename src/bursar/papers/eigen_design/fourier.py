"""Fourier bases: constant and oscillating functions per column, and their products; the natural basis of marginals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike

from bursar.errors import QueryError
from bursar.strategies.measure import OUT_OF_SPAN, Reals, checked_gram, checked_size
from bursar.strategies.simple import product


def fourier_basis(*sizes: int) -> Reals:
    """Orthogonal rows of length sqrt n, the constant first; the product over columns.

    Walsh-Hadamard, with entries 1 and -1, where a size is a power of two (as Barak et al. for binary columns), the
    real discrete Fourier basis otherwise.
    """
    return product(*(_basis(checked_size(size)) for size in sizes))


def fourier(gram: ArrayLike, sizes: Sequence[int]) -> Reals:
    """The basis without the queries that the workload does not need (Eigen-Design, Sec. 5, Competing Approaches)."""
    V, Q = checked_gram(gram), fourier_basis(*sizes)
    if V.shape[0] != Q.shape[1]:
        raise QueryError("the columns' sizes do not fit the workload")
    shares = np.einsum("ij,ij->i", Q @ V, Q)
    return np.asarray(Q[shares > OUT_OF_SPAN * shares.max(initial=0.0)])


def _basis(size: int) -> Reals:
    if size & (size - 1) == 0:
        return np.asarray(scipy.linalg.hadamard(size), np.float64)
    turns = 2 * np.pi * np.outer(np.arange(size // 2 + 1), np.arange(size)) / size
    waves = np.concatenate([np.cos(turns), np.sin(turns)])
    kept = waves[np.square(waves).sum(axis=1) > 0.25]  # sin 0, and sin of the half turn, are no functions
    return np.asarray(kept * np.sqrt(size / np.square(kept).sum(axis=1, keepdims=True)))
