"""Weighted least squares that grows row by row: the best linear estimate of everything the rows determine.

With rows q_j measured with variance v_j, M = sum_j q_j q_j^T / v_j is the information. The covariance S = M^+ and the
projector P onto the span of the rows are kept beside it, so that a query w in the span has estimate w.x and variance
w^T S w. A new row costs O(n^2): inside the span by Sherman-Morrison, outside it by Meyer's formula for the
pseudo-inverse. Many rows cost as much each, but in products of matrices, which take a fraction of the time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Reals

IN_SPAN = 1e-8
"""A query is answered by the rows if in every cell they leave less than this share of its largest value open.

Lengths would not do: a query may differ from the span in one cell of billions, and everybody may sit in that cell.
"""

TOGETHER, MOST_TOGETHER = 2, 256
"""How few rows, and how many, are taken in together."""

INVERTED = 8
"""From so many rows on it may pay to invert the information."""

BEYOND_DOUBT = 100.0
"""Turned rows are inside the span, or outside, if what they leave open is so many times below, or above, `IN_SPAN`."""

ALIKE = 1e6
"""Rows are turned together if none is more than so many times as large as another, which rounding would hide."""

WELL_CONDITIONED = 1e-8
"""Rows determine every coordinate beyond doubt if no pivot of the information, at unit diagonal, is below this."""


@dataclass
class GaussianState:
    """Estimate, covariance and span over n coordinates, each the sum of some cells over the root of their number.

    Arrays are replaced, never written to, so a shallow copy is a state of its own.
    """

    estimate: Reals
    covariance: Reals
    span: Reals
    information: Reals
    cells: Reals  # how many cells each coordinate stands for

    @staticmethod
    def empty(cells: Reals) -> GaussianState:
        size = len(cells)
        nothing = np.zeros((size, size))
        return GaussianState(np.zeros(size), nothing, nothing, nothing, cells)

    @property
    def complete(self) -> bool:
        """Whether the rows determine everything. The trace of a projector is its rank."""
        return bool(np.trace(self.span) > len(self.cells) - 0.5)

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
            self.information[pick] * scale,
            self.cells[parent] * np.square(shrink),
        )

    def spans(self, queries: Reals) -> bool:
        """Whether every query lies in the span of the measured rows."""
        return self.complete or bool(np.all(self._settled(queries, self._open(queries))))

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
        if self._take_orthogonal(rows, values, variance):
            return
        if self._take_everything(rows, values, np.full(len(rows), variance)):
            return
        for start in range(0, len(rows), MOST_TOGETHER):
            some = slice(start, start + MOST_TOGETHER)
            if not self._take_turned(rows[some], values[some], variance):
                for row, value in zip(rows[some], values[some], strict=True):
                    self._take_one(row, float(value), variance)

    def sharpen(self, rows: Reals, values: Reals, variances: Reals) -> None:
        """Take in more about rows that were taken in before, each with noise of a variance of its own."""
        if self._take_everything(rows, values, variances):
            return
        for start in range(0, len(rows), MOST_TOGETHER):
            some = slice(start, start + MOST_TOGETHER)
            self._add_inside(rows[some], values[some], variances[some])
        self.information = self.information + (rows.T / variances) @ rows

    def _take_orthogonal(self, rows: Reals, values: Reals, variance: float) -> bool:
        """All rows at once where no two share a cell and all are orthogonal to what is known, as a histogram is."""
        lengths = np.square(rows).sum(axis=1)
        disjoint = bool(np.all(np.count_nonzero(rows, axis=0) <= 1)) and bool(np.all(lengths > 0))
        if not disjoint or (np.any(self.span) and np.any(rows @ self.span)):
            return False
        self.estimate = self.estimate + (values / lengths) @ rows
        owner, own = np.nonzero(rows)
        if len(own) == len(rows):  # one cell each: no need to multiply matrices
            self.covariance = _plus(self.covariance, own, variance / lengths[owner])
            self.span = _plus(self.span, own, np.ones(len(own)))
            self.information = _plus(self.information, own, lengths[owner] / variance)
        else:
            self.covariance = self.covariance + variance * (rows.T / np.square(lengths)) @ rows
            self.span = self.span + (rows.T / lengths) @ rows
            self.information = self.information + rows.T @ rows / variance
        return True

    def _take_everything(self, rows: Reals, values: Reals, variances: Reals) -> bool:
        """All rows at once where nothing is left open after them: the information is simply inverted."""
        if len(rows) < max(INVERTED, len(self.cells) // 2):
            return False
        information = self.information + (rows.T / variances) @ rows
        size = np.sqrt(information.diagonal())
        if size.min() <= 0:
            return False
        scaled = information / np.outer(size, size)
        try:
            pivots = np.linalg.cholesky(scaled).diagonal()
        except np.linalg.LinAlgError:
            return False
        if pivots.min() ** 2 < WELL_CONDITIONED:
            return False
        told = self.information @ self.estimate + (values / variances) @ rows
        covariance = np.linalg.inv(scaled) / np.outer(size, size)
        self.covariance = (covariance + covariance.T) / 2
        self.estimate = self.covariance @ told
        self.estimate = self.estimate + self.covariance @ (told - information @ self.estimate)
        self.span, self.information = np.eye(len(self.cells)), information
        return True

    def _take_turned(self, rows: Reals, values: Reals, variance: float) -> bool:
        """Many rows at once, some of which the span leaves open in part: turned until nothing is in part.

        Independent noise of one variance stays that under a rotation. Let O = U diag(s) V^T be what the span leaves
        open of the rows R. Then U^T R are rows that leave s_i v_i open, orthogonal to each other: those with s_i = 0
        are inside, and the others can be taken in together.
        Edge cases: False, and nothing changed, for few rows, for rows of very different sizes, and where rounding
        leaves open which s_i are zero.
        """
        if len(rows) < TOGETHER:
            return False
        outside = np.zeros_like(rows) if self.complete else self._open(rows)
        settled = self._settled(rows, outside)
        sizes = np.abs(rows[~settled] / np.sqrt(self.cells)).max(axis=1, initial=0)
        if sizes.max(initial=0) > ALIKE * sizes.min(initial=np.inf):
            return False
        turn, lengths, ways = np.linalg.svd(outside[~settled], full_matrices=len(rows) > len(self.cells))
        rank = min(len(turn), len(ways))
        left = np.zeros(len(turn))
        left[:rank] = lengths * np.abs(ways[:rank] / np.sqrt(self.cells)).max(axis=1, initial=0)
        left /= IN_SPAN * np.abs(rows / np.sqrt(self.cells)).max(initial=0)
        fresh = left > BEYOND_DOUBT
        if np.any(left[~fresh] > 1 / BEYOND_DOUBT):
            return False
        turned, told = turn.T @ rows[~settled], turn.T @ values[~settled]
        inside, heard = np.concatenate([rows[settled], turned[~fresh]]), np.concatenate([values[settled], told[~fresh]])
        self._add_inside(inside, heard, np.full(len(inside), variance))
        if np.any(fresh):
            own = fresh[:rank]
            self._add_outside(turned[fresh], told[fresh], variance, ways[:rank][own], lengths[own])
        self.information = self.information + rows.T @ rows / variance
        return True

    def _add_inside(self, rows: Reals, values: Reals, variances: Reals) -> None:
        """Rows in the span, by Woodbury's formula."""
        gain = self.covariance @ rows.T
        spread = rows @ gain + np.diag(variances)
        surprise = values - rows @ self.estimate
        solved = np.linalg.solve(spread, np.column_stack([surprise, gain.T]))
        self.estimate = self.estimate + gain @ solved[:, 0]
        self.covariance = self.covariance - gain @ solved[:, 1:]

    def _add_outside(self, rows: Reals, values: Reals, variance: float, ways: Reals, lengths: Reals) -> None:
        """Rows of which the span leaves open `lengths[i] ways[i]`, the ways orthonormal: Meyer's formula for many."""
        gain, fresh = self.covariance @ rows.T, ways.T / lengths
        spread = rows @ gain + variance * np.eye(len(rows))
        cross = (fresh @ spread / 2 - gain) @ fresh.T
        self.estimate = self.estimate + fresh @ (values - rows @ self.estimate)
        self.covariance = self.covariance + cross + cross.T
        self.span = self.span + ways.T @ ways

    def _take_one(self, row: Reals, value: float, variance: float) -> None:
        if not np.any(row):
            return
        gain = self.covariance @ row
        surprise = value - float(row @ self.estimate)
        spread = variance + float(row @ gain)
        self.information = self.information + _square(row, 1 / variance)
        outside = np.zeros_like(row) if self.complete else self._open(row)
        if self._settled(row, outside):
            self.estimate = self.estimate + gain * (surprise / spread)
            self.covariance = self.covariance - _square(gain, 1 / spread)
            return
        beyond = float(outside @ outside)
        fresh = outside / beyond
        self.estimate = self.estimate + fresh * surprise
        cross = np.outer(gain, fresh)
        self.covariance = self.covariance + _square(fresh, spread) - cross - cross.T
        self.span = self.span + _square(outside, 1 / beyond)


def _square(vector: Reals, factor: float) -> Reals:
    """factor x x^T, symmetric to the last bit."""
    scaled = math.sqrt(factor) * vector
    return np.multiply.outer(scaled, scaled)


def _plus(matrix: Reals, places: NDArray[np.int64], amounts: Reals) -> Reals:
    """The matrix with amounts added on its diagonal."""
    result = matrix.copy()
    result[places, places] += amounts
    return result
