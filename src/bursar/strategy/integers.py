"""Strategies as the kernel measures them: whole numbers on a grid, with norms and losses of what is really measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bursar.errors import QueryError
from bursar.queries import Mask, Steps
from bursar.strategy.measure import Reals, checked_gram, spectrum, trace_error

MOST_BITS = 24
"""Finest grid: 2^-24 of the sensitivity."""

IN_SPAN = 1e-6
"""A workload is answered if in every cell less than this share of its largest column norm is left open."""


@dataclass(frozen=True, kw_only=True, eq=False)
class IntegerStrategy:
    """Whole-number rows, and what rounding has cost."""

    rows: NDArray[np.int64]
    bits: int  # a unit of the real strategy is 2^bits units here
    loss: float  # relative growth of the error by rounding; may be a little below zero

    def norm(self, power: int) -> int:
        """The largest sum over rows of |a_ij|^power, in exact integers: the sensitivity, to that power."""
        columns = (
            np.abs(self.rows).astype(object) ** power if power * self._most_bits() > 62 else np.abs(self.rows) ** power
        )
        return int(columns.sum(axis=0).max(initial=0))

    def mask(self, attrs: Sequence[str], sizes: Sequence[int]) -> Mask:
        """The rows as queries over the joint cells of the named columns."""
        return Mask(tuple(attrs), tuple(sizes), Steps.dense(self.rows))

    def _most_bits(self) -> int:
        return int(np.abs(self.rows).max(initial=1)).bit_length() + math.ceil(len(self.rows).bit_length())


def to_integers(
    strategy: ArrayLike, gram: ArrayLike, *, power: int = 2, bits: int | None = None, loss: float = 1e-4
) -> IntegerStrategy:
    """A_int = round(2^k A / ||A||): the given k, or the coarsest grid with no more than the given loss in error.

    Guarantees: every query of the workload lies in the row space of the rounded rows; `norm` is that of the rounded
    rows. A strategy of whole numbers stays as it is, at no loss.
    Edge cases: where rounding moves a row space that has room for nothing else, as for a strategy of less than full
    rank, no grid is fine enough and the strategy is refused; `complete` it first.
    """
    A, V = np.asarray(strategy, np.float64), checked_gram(gram)
    if A.ndim != 2 or A.shape[1] != len(V):
        raise QueryError("the strategy and the workload are over different cells")
    before = _error(V, A, power)
    if np.array_equal(A, np.round(A)) and np.abs(A).max(initial=0.0) < 2**MOST_BITS:
        return _answering(V, IntegerStrategy(rows=A.astype(np.int64), bits=0, loss=0.0))
    unit = A / (np.abs(A) ** power).sum(axis=0).max() ** (1 / power)
    last = None
    for k in range(6, MOST_BITS + 1, 2) if bits is None else (bits,):
        rows = np.round(unit * 2.0**k).astype(np.int64)
        rows = rows[rows.any(axis=1)]
        last = IntegerStrategy(rows=rows, bits=k, loss=_error(V, rows.astype(np.float64), power) / before - 1)
        if bits is None and last.loss <= loss and spans(last.rows, V):
            return last
    if last is None or (bits is None and last.loss > loss):
        raise QueryError("no grid is fine enough for this strategy; complete its columns first")
    return _answering(V, last)


def spans(rows: ArrayLike, gram: ArrayLike) -> bool:
    """Whether every query of the workload lies in the row space of the rows, cell by cell.

    With P the projection onto the row space, what is left of the column norms, sqrt diag((1-P) V (1-P)), must vanish.
    """
    A, V = np.asarray(rows, np.float64), checked_gram(gram)
    _, vectors = spectrum(checked_gram(A.T @ A))
    if vectors.shape[1] == len(V) or not V.any():
        return True
    left = np.eye(len(V)) - vectors @ vectors.T
    open_part = np.einsum("ij,ij->i", left @ V, left)
    return bool(open_part.max() <= IN_SPAN**2 * V.diagonal().max())


def _answering(V: Reals, made: IntegerStrategy) -> IntegerStrategy:
    if not spans(made.rows, V):
        raise QueryError("the rounded strategy does not answer every query of the workload; complete its columns first")
    return made


def _error(V: Reals, A: Reals, power: int) -> float:
    norm = (np.abs(A) ** power).sum(axis=0).max(initial=0.0) ** (1 / power)
    trace = trace_error(V, A.T @ A)
    return float(norm * math.sqrt(trace)) if math.isfinite(trace) else math.inf
