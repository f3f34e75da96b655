"""Weighted least squares that grows row by row: the best linear estimate of everything the rows determine.

With rows q_j measured with variance v_j, M = sum_j q_j q_j^T / v_j. The covariance S = M^+ and the projector P onto
the span of the rows are kept, so that a query w in the span has estimate w.x and variance w^T S w. A new row costs
O(n^2): inside the span by Sherman-Morrison, outside it by Meyer's formula for the pseudo-inverse.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]

IN_SPAN = 1e-8
"""A query is answered by the rows if in every cell they leave less than this share of its largest value open.

Lengths would not do: a query may differ from the span in one cell of billions, and everybody may sit in that cell.
"""

TOGETHER = 8
"""From so many rows on it pays to take them in at once."""


@dataclass
class GaussianState:
    """Estimate, covariance and span over n coordinates, each the sum of some cells over the root of their number."""

    estimate: Reals
    covariance: Reals
    span: Reals
    cells: Reals  # how many cells each coordinate stands for

    @staticmethod
    def empty(cells: Reals) -> GaussianState:
        size = len(cells)
        return GaussianState(np.zeros(size), np.zeros((size, size)), np.zeros((size, size)), cells)

    def split(self, parent: NDArray[np.int64], shrink: Reals) -> GaussianState:
        """The same knowledge over finer coordinates: new coordinate i is `shrink[i]` times old one `parent[i]`.

        The embedding is an isometry, so estimate, pseudo-inverse and projector simply move along.
        """
        scale = shrink[:, None] * shrink[None, :]
        pick = np.ix_(parent, parent)
        return GaussianState(
            self.estimate[parent] * shrink,
            self.covariance[pick] * scale,
            self.span[pick] * scale,
            self.cells[parent] * np.square(shrink),
        )

    def spans(self, queries: Reals) -> bool:
        """Whether every query lies in the span of the measured rows."""
        return bool(np.all(self._settled(queries, self._open(queries))))

    def _open(self, queries: Reals) -> Reals:
        """The part of each query outside the span; taken twice, since rounding leaves some of the span in the first."""
        outside = queries - queries @ self.span
        return outside - outside @ self.span

    def _settled(self, queries: Reals, outside: Reals) -> NDArray[np.bool_]:
        root = np.sqrt(self.cells)
        largest: Reals = np.abs(queries / root).max(axis=-1, initial=0)
        left: Reals = np.abs(outside / root).max(axis=-1, initial=0)
        return np.asarray(left <= IN_SPAN * largest)

    def take(self, rows: Reals, values: Reals, variance: float) -> None:
        """Take in rows that were measured with independent noise of one variance."""
        if self._take_orthogonal(rows, values, variance) or self._take_known(rows, values, variance):
            return
        for row, value in zip(rows, values, strict=True):
            self._take_one(row, float(value), variance)

    def _take_orthogonal(self, rows: Reals, values: Reals, variance: float) -> bool:
        """All rows at once where no two share a cell and all are orthogonal to what is known, as a histogram is."""
        lengths = np.square(rows).sum(axis=1)
        disjoint = bool(np.all(np.count_nonzero(rows, axis=0) <= 1)) and bool(np.all(lengths > 0))
        if not disjoint or (np.any(self.span) and np.any(rows @ self.span)):
            return False
        self.estimate += (values / lengths) @ rows
        owner, own = np.nonzero(rows)
        if len(own) == len(rows):  # one cell each: no need to multiply matrices
            self.covariance[own, own] += variance / lengths[owner]
            self.span[own, own] += 1.0
        else:
            self.covariance += variance * (rows.T / np.square(lengths)) @ rows
            self.span += (rows.T / lengths) @ rows
        return True

    def _take_known(self, rows: Reals, values: Reals, variance: float) -> bool:
        """Many rows at once where all lie in the span, by Woodbury's formula: measured again, only more exactly."""
        if len(rows) < TOGETHER or not self.spans(rows):
            return False
        gain = self.covariance @ rows.T
        spread = rows @ gain + variance * np.eye(len(rows))
        surprise = values - rows @ self.estimate
        solved = np.linalg.solve(spread, np.column_stack([surprise, gain.T]))
        self.estimate += gain @ solved[:, 0]
        self.covariance -= gain @ solved[:, 1:]
        return True

    def _take_one(self, row: Reals, value: float, variance: float) -> None:
        if not np.any(row):
            return
        gain = self.covariance @ row
        surprise = value - float(row @ self.estimate)
        spread = variance + float(row @ gain)
        outside = self._open(row)
        if self._settled(row, outside):
            self.estimate += gain * (surprise / spread)
            self.covariance -= np.outer(gain, gain) / spread
            return
        beyond = float(outside @ outside)
        fresh = outside / beyond
        self.estimate += fresh * surprise
        cross = np.outer(gain, fresh)
        self.covariance += spread * np.outer(fresh, fresh) - cross - cross.T
        self.span += np.outer(outside, outside) / beyond
