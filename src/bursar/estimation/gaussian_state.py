"""Weighted least squares that grows row by row: the best linear estimate of everything the rows determine.

With rows q_j measured with variance v_j, M = sum_j q_j q_j^T / v_j is the information. The covariance S = M^+ and the
projector P onto the span of the rows are kept beside it, so that a query w in the span has estimate w.x and variance
w^T S w. A new row costs O(n^2): inside the span by Sherman-Morrison, outside it by Meyer's formula for the
pseudo-inverse. Many rows cost as much each, but in products of matrices, which take a fraction of the time.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Integers, Reals
from bursar.core.queries import Steps

IN_SPAN = 1e-8
"""A query is answered by the rows if in every cell they leave less than this share of its largest value open.

Lengths would not do: a query may differ from the span in one cell of billions, and everybody may sit in that cell.
"""

FEWEST_TOGETHER, MOST_TOGETHER = 2, 256
"""How few rows, and how many, are taken in together."""

FEWEST_TO_INVERT = 8
"""From this many rows on it may pay to invert the information."""

CLEARANCE_OF_SPAN = 100.0
"""Turned rows are inside the span, or outside, if what they leave open is below, or above, `IN_SPAN` by this factor."""

LARGEST_RATIO_OF_ROWS = 1e6
"""Rows are turned together if none is larger than another by more than this factor, which rounding would hide."""

SMALLEST_PIVOT = 1e-8
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

    def given(self, row: Reals, value: float) -> GaussianState:
        """What is known where a row has no noise at all: the limit of a variance that falls to zero, taken by itself.

        Such a row comes last, after all that have noise, and nothing is taken in after it: what remains of the
        covariance along it is zero, which no information stands for.
        """
        twin = copy.copy(self)
        outside = np.zeros_like(row) if self.complete else self._open(row)
        twin._add_one(row, value, 0.0, outside)
        return twin

    def _take_orthogonal(self, rows: Reals, values: Reals, variance: float) -> bool:
        """All rows at once where no two share a cell and all are orthogonal to what is known, as a histogram is."""
        lengths = np.square(rows).sum(axis=1)
        disjoint = bool(np.all(np.count_nonzero(rows, axis=0) <= 1)) and bool(np.all(lengths > 0))
        if not disjoint or (np.any(self.span) and np.any(rows @ self.span)):
            return False
        self.estimate = self.estimate + (values / lengths) @ rows
        owner, cell = np.nonzero(rows)
        if len(cell) == len(rows):  # one cell each: no need to multiply matrices
            self.covariance = _plus(self.covariance, cell, variance / lengths[owner])
            self.span = _plus(self.span, cell, np.ones(len(cell)))
            self.information = _plus(self.information, cell, lengths[owner] / variance)
        else:
            self.covariance = self.covariance + variance * (rows.T / np.square(lengths)) @ rows
            self.span = self.span + (rows.T / lengths) @ rows
            self.information = self.information + rows.T @ rows / variance
        return True

    def _take_everything(self, rows: Reals, values: Reals, variances: Reals) -> bool:
        """All rows at once where nothing is left open after them: the information is simply inverted."""
        if len(rows) < max(FEWEST_TO_INVERT, len(self.cells) // 2):
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
        if pivots.min() ** 2 < SMALLEST_PIVOT:
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
        if len(rows) < FEWEST_TOGETHER:
            return False
        outside = np.zeros_like(rows) if self.complete else self._open(rows)
        settled = self._settled(rows, outside)
        sizes = np.abs(rows[~settled] / np.sqrt(self.cells)).max(axis=1, initial=0)
        if sizes.max(initial=0) > LARGEST_RATIO_OF_ROWS * sizes.min(initial=np.inf):
            return False
        turn, lengths, ways = np.linalg.svd(outside[~settled], full_matrices=len(rows) > len(self.cells))
        rank = min(len(turn), len(ways))
        left = np.zeros(len(turn))
        left[:rank] = lengths * np.abs(ways[:rank] / np.sqrt(self.cells)).max(axis=1, initial=0)
        left /= IN_SPAN * np.abs(rows / np.sqrt(self.cells)).max(initial=0)
        fresh = left > CLEARANCE_OF_SPAN
        if np.any(left[~fresh] > 1 / CLEARANCE_OF_SPAN):
            return False
        turned, told = turn.T @ rows[~settled], turn.T @ values[~settled]
        inside, heard = np.concatenate([rows[settled], turned[~fresh]]), np.concatenate([values[settled], told[~fresh]])
        self._add_inside(inside, heard, np.full(len(inside), variance))
        if np.any(fresh):
            outside_span = fresh[:rank]
            self._add_outside(turned[fresh], told[fresh], variance, ways[:rank][outside_span], lengths[outside_span])
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
        self.information = self.information + _square(row, 1 / variance)
        self._add_one(row, value, variance, np.zeros_like(row) if self.complete else self._open(row))

    def _add_one(self, row: Reals, value: float, variance: float, outside: Reals) -> None:
        gain = self.covariance @ row
        surprise = value - float(row @ self.estimate)
        spread = variance + float(row @ gain)
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


MOST_CHANGES = 16
"""Most cells at which a question changes: all pairs of them are looked up."""

CANCELLATION_SHARE = 1e-11
"""What cancelling may cost a variance, as a share of the numbers that cancel; it is added, never taken off."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PrefixSums:
    """Prefix sums of the estimate and covariance of one column, whose merged cells are `labels`.

    A row that changes at few cells, as a range does at two, is a sum of few such prefixes. They are added up once, so
    that an answer and its variance take a handful of numbers, however many cells and measured rows there are.
    """

    state: GaussianState
    labels: Integers  # the merged cell of each cell of the column

    def look_up(self, steps: Steps) -> tuple[Reals, Reals] | None:
        """Estimates and variances of the rows; None where they are not determined, or only a closer look can tell."""
        if len(steps.at) > MOST_CHANGES:
            return None
        values, variances = np.empty(steps.rows), np.empty(steps.rows)
        for row in range(steps.rows):
            changes = slice(steps.starts[row], steps.starts[row + 1])
            estimate = self._row(steps.at[changes], steps.jump[changes])
            if estimate is None:
                return None
            values[row], variances[row] = estimate
        return values, variances

    def _row(self, at: Integers, jump: Integers) -> tuple[float, float] | None:
        place = self._boundary[at]
        if place.min(initial=0) < 0 or not self._whole(at, jump) or not self._determined(place, jump):
            return None
        pairs = self._covariance[place[:, None], place]
        variance = float(jump @ pairs @ jump)
        doubt = CANCELLATION_SHARE * float(np.square(jump) @ np.abs(pairs.diagonal()))
        return float(jump @ self._estimate[place]), max(variance, 0.0) + doubt

    def _whole(self, at: Integers, jump: Integers) -> bool:
        """Whether the row has one value on each merged cell, also on those whose cells do not lie side by side."""
        first, later = self._scattered
        if not len(first):
            return True
        value = (at <= first[:, None]) @ jump
        return bool(np.array_equal(value, (at <= later[:, None]) @ jump))

    def _determined(self, place: Integers, jump: Integers) -> bool:
        if self._complete:
            return True
        query = self._members[:, place] @ jump
        left = np.abs(query - self._spanned[:, place] @ jump).max(initial=0)
        return bool(left <= IN_SPAN * np.abs(query).max(initial=0))

    @cached_property
    def _runs(self) -> Integers:
        """Where the merged cell changes along the column, with cell 0."""
        return np.flatnonzero(np.diff(self.labels, prepend=-1))

    @cached_property
    def _boundary(self) -> Integers:
        """For each cell the run that begins there, or -1."""
        result = np.full(len(self.labels), -1)
        result[self._runs] = np.arange(len(self._runs))
        return result

    @cached_property
    def _scattered(self) -> tuple[Integers, Integers]:
        """Cells that are merged without lying side by side: the first cell of each such run, and of a later one."""
        _, first, owner = np.unique(self._owners, return_index=True, return_inverse=True)
        earlier = first[owner]
        later = earlier != np.arange(len(earlier))
        return self._runs[earlier[later]], self._runs[later]

    @cached_property
    def _complete(self) -> bool:
        return self.state.complete

    @cached_property
    def _owners(self) -> Integers:
        """The merged cell of each run."""
        return self.labels[self._runs]

    @cached_property
    def _shares(self) -> Reals:
        """How much of its merged cell each run is."""
        lengths = np.diff(np.append(self._runs, len(self.labels)))
        result: Reals = lengths / self.state.cells[self._owners]
        return result

    @cached_property
    def _scaled(self) -> Reals:
        """What each run counts in its coordinate."""
        result: Reals = self._shares * np.sqrt(self.state.cells)[self._owners]
        return result

    @cached_property
    def _members(self) -> Reals:
        """(merged cells, runs): how much of the merged cell lies from the run on."""
        result = np.zeros((len(self.state.cells), len(self._owners)))
        result[self._owners, np.arange(len(self._owners))] = self._shares
        return _from_here_on(result.T).T

    @cached_property
    def _spanned(self) -> Reals:
        """`_members`, projected onto the span of the measured rows, per cell."""
        projected = _from_here_on(self.state.span[self._owners] * self._scaled[:, None])
        return np.asarray((projected / np.sqrt(self.state.cells)).T)

    @cached_property
    def _estimate(self) -> Reals:
        return _from_here_on(self.state.estimate[self._owners] * self._scaled)

    @cached_property
    def _covariance(self) -> Reals:
        runs = self.state.covariance[np.ix_(self._owners, self._owners)] * np.outer(self._scaled, self._scaled)
        return _from_here_on(np.ascontiguousarray(_from_here_on(runs).T))


def _from_here_on(numbers: Reals) -> Reals:
    """Along the first axis, which is the fast one to add along, the sum from each place to the end."""
    return np.cumsum(numbers[::-1], axis=0)[::-1]
