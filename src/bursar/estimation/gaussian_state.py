"""Weighted least squares that grows row by row: the best linear estimate of everything the rows determine.

With rows q_j measured with variance v_j, M = sum_j q_j q_j^T / v_j is the information, and a query w in the span of the
rows has estimate w.x and variance w^T S w, with the covariance S = M^+. A log has few rows and may tell thousands of
cells apart, so all of it is kept along an orthonormal basis B of the span, with one coordinate for each row that told
something new: S = B^T C B. A new row costs O(nk) for n cells and k coordinates: inside the span it is taken in by
Sherman-Morrison, outside it adds a coordinate. Many rows cost as much each, but in products of matrices, which take a
fraction of the time.
"""

from __future__ import annotations

import copy
import math
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Integers, Reals
from bursar.core.queries import Steps
from bursar.lazy_dataclass import dataclass

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

CLEARLY_OUTSIDE = 1e-5
"""Directions of which many rows together have less than this share of what they have of the clearest are not new."""

LARGEST_RATIO_OF_ROWS = 1e6
"""Rows are turned together if none is larger than another by more than this factor, which rounding would hide."""

SMALLEST_SIZE = 1e-12
"""Less than this share of the largest, as a square root, is known of a coordinate that no row looks at, by rounding."""

SMALLEST_PIVOT = 1e-8
"""Rows determine every coordinate beyond doubt if no pivot of the information, at unit diagonal, is below this."""


@dataclass
class GaussianState:
    """Estimate, covariance and span over n coordinates, each the sum of some cells over the root of their number.

    What is known is kept along `basis`, an orthonormal one of the span; None where that is everything, and the basis is
    that of the coordinates. Arrays are replaced, never written to, so a shallow copy is a state of its own.
    """

    basis: Reals | None  # (rank, n)
    reduced_estimate: Reals  # along the basis, as are the covariance and the information
    reduced_covariance: Reals
    reduced_information: Reals
    cells: Reals  # how many cells each coordinate stands for

    @staticmethod
    def empty(cells: Reals) -> GaussianState:
        """The state before any row: nothing is known of the cells."""
        nothing = np.zeros((0, 0))
        return GaussianState(np.zeros((0, len(cells))), np.zeros(0), nothing, nothing, cells)

    @property
    def rank(self) -> int:
        """How many rows of the log say something that the others do not."""
        return len(self.reduced_estimate)

    @property
    def complete(self) -> bool:
        """Whether the rows determine everything."""
        return self.rank == len(self.cells)

    @property
    def sound(self) -> bool:
        """Whether no variance is below zero, as rounding can leave one where others fall from very large to small."""
        return bool(self.reduced_covariance.diagonal().min(initial=0.0) >= 0.0)

    @property
    def estimate(self) -> Reals:
        return self.reduced_estimate if self.basis is None else self.reduced_estimate @ self.basis

    @property
    def covariance(self) -> Reals:
        """The covariance of the estimates, over all cells."""
        return self._unfolded(self.reduced_covariance)

    @property
    def information(self) -> Reals:
        """The inverse of the covariance on the span of the rows, over all cells."""
        return self._unfolded(self.reduced_information)

    @property
    def span(self) -> Reals:
        """The projector onto the span of the rows."""
        return np.eye(len(self.cells)) if self.basis is None else self.basis.T @ self.basis

    def _unfolded(self, reduced: Reals) -> Reals:
        return reduced if self.basis is None else self.basis.T @ reduced @ self.basis

    def reduced(self, queries: Reals) -> Reals:
        """Queries along the basis: what is outside the span is left out."""
        return queries if self.basis is None else queries @ self.basis.T

    def variances(self, queries: Reals) -> Reals:
        """Of queries in the span, or else of the part of each that is."""
        inside = self.reduced(queries)
        return np.asarray(np.einsum("ij,ij->i", inside @ self.reduced_covariance, inside))

    def covaried(self, queries: Reals) -> Reals:
        """S w for every query w: how its estimate goes along with each coordinate."""
        product = self.reduced(queries) @ self.reduced_covariance
        return product if self.basis is None else product @ self.basis

    @property
    def bytes(self) -> int:
        """About how much memory it takes."""
        return (0 if self.basis is None else self.basis.nbytes) + 2 * self.reduced_covariance.nbytes

    def split(self, parent: NDArray[np.int64], shrink: Reals) -> GaussianState:
        """The same knowledge over finer coordinates: new coordinate i is `shrink[i]` times old one `parent[i]`.

        The embedding is an isometry, so the basis simply moves along, and nothing changes along it.
        """
        basis = np.eye(len(self.cells)) if self.basis is None else self.basis
        return GaussianState(
            basis[:, parent] * shrink,
            self.reduced_estimate,
            self.reduced_covariance,
            self.reduced_information,
            self.cells[parent] * np.square(shrink),
        )

    def spans(self, queries: Reals) -> bool:
        """Whether every query lies in the span of the measured rows."""
        return self.complete or bool(np.all(settled(queries, self.outside(queries), self.cells)))

    def outside(self, queries: Reals) -> Reals:
        """The part of each query outside the span; taken twice, since rounding leaves some of the span in the first."""
        if self.basis is None or len(self.basis) == len(self.cells):
            return np.zeros_like(queries)
        left = queries - (queries @ self.basis.T) @ self.basis
        return left - (left @ self.basis.T) @ self.basis

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

    def take_all(self, rows: Reals, values: Reals, variances: Reals) -> None:
        """Take in very many rows, each with noise of a variance of its own: the information is inverted once.

        Edge cases: one row after the other where rounding leaves open what they span, or what they say.
        """
        basis = self._spanning(rows)
        everything = basis is not None and len(basis) == len(self.cells)
        if everything and self._take_everything(rows, values, variances, sure=True):
            return
        if basis is None or not self._take_along(basis, rows, values, variances):
            for row, value, variance in zip(rows, values.tolist(), variances.tolist(), strict=True):
                self._take_one(row, value, variance)

    def _spanning(self, rows: Reals) -> Reals | None:
        """An orthonormal basis of the span of what is known and the rows; None where that is in doubt."""
        twin = copy.copy(self)
        twin.basis = np.eye(len(self.cells)) if self.basis is None else self.basis
        for start in range(0, len(rows), MOST_TOGETHER):
            some = rows[start : start + MOST_TOGETHER]
            outside = twin.outside(some)
            open_ = outside[~settled(some, outside, self.cells)]
            if not len(open_):
                continue
            _, lengths, ways = np.linalg.svd(open_ / np.linalg.norm(open_, axis=1)[:, None], full_matrices=False)
            fresh = lengths > CLEARLY_OUTSIDE * lengths[0]
            twin.basis = np.concatenate([twin.basis, ways[fresh]])
            if not np.all(settled(some, twin.outside(some), self.cells)):
                return None
        return twin.basis

    def _completed_by(self, rows: Reals) -> bool:
        """Whether nothing is left open after the rows, beyond doubt."""
        if self.complete:
            return True
        basis = self._spanning(rows)
        return basis is not None and len(basis) == len(self.cells)

    def _take_along(self, basis: Reals, rows: Reals, values: Reals, variances: Reals) -> bool:
        """All rows at once, along a basis of what they span that begins with the present one."""
        old, rows = self.rank, rows @ basis.T
        information = (rows.T / variances) @ rows
        information[:old, :old] += self.reduced_information
        told = (values / variances) @ rows
        told[:old] += self.reduced_information @ self.reduced_estimate
        solved = _solved(information, told)
        if solved is None:
            return False
        self.reduced_estimate, self.reduced_covariance = solved
        self.basis, self.reduced_information = basis, information
        return True

    def sharpen(self, rows: Reals, values: Reals, variances: Reals) -> None:
        """Take in more about rows that were taken in before, each with noise of a variance of its own.

        The span stays as it is.
        """
        if self.complete and self._take_everything(rows, values, variances, sure=True):
            return
        many = len(rows) >= max(FEWEST_TO_INVERT, self.rank // 2)
        if many and self.basis is not None and self._take_along(self.basis, rows, values, variances):
            return
        for start in range(0, len(rows), MOST_TOGETHER):
            some = slice(start, start + MOST_TOGETHER)
            self._add_inside(rows[some], values[some], variances[some])
        self._inform(rows, variances)

    def hearing(self, told: Reals) -> GaussianState:
        """The same where the same rows had other values: `told` is the sum of each row, along the basis, times its
        value over its variance."""
        twin = copy.copy(self)
        twin.reduced_estimate = _estimated(self.reduced_information, self.reduced_covariance, told)
        return twin

    def given(self, row: Reals, value: float) -> GaussianState:
        """What is known where a row has no noise at all: the limit of a variance that falls to zero, taken by itself.

        Such a row comes last, after all that have noise, and nothing is taken in after it: what remains of the
        covariance along it is zero, which no information stands for.
        """
        twin = copy.copy(self)
        twin._add_one(row, value, 0.0)
        return twin

    def _take_orthogonal(self, rows: Reals, values: Reals, variance: float) -> bool:
        """All rows at once where no two share a cell and all are orthogonal to what is known, as a histogram is."""
        lengths = np.square(rows).sum(axis=1)
        disjoint = bool(np.all(np.count_nonzero(rows, axis=0) <= 1)) and bool(np.all(lengths > 0))
        if not disjoint or np.any(self.reduced(rows)):
            return False
        cell = np.argmax(rows != 0, axis=1) if len(rows) == len(self.cells) else None
        if cell is None:
            ways, along = rows / np.sqrt(lengths)[:, None], np.sqrt(lengths)
        else:  # a cell each: no need of a basis
            ways, order = None, np.argsort(cell)
            along, values, lengths = rows[order, cell[order]], values[order], lengths[order]
        unknown = np.zeros((self.rank, len(rows)))
        self._grow(ways, values / along, unknown, np.diag(variance / lengths))
        self.reduced_information = self.reduced_information + np.diag(
            np.concatenate([np.zeros(self.rank - len(rows)), lengths / variance])
        )
        return True

    def _take_everything(self, rows: Reals, values: Reals, variances: Reals, *, sure: bool = False) -> bool:
        """All rows at once where nothing is left open after them: the information is simply inverted.

        What was known stands along a basis, and over cells its information has rounding in place of some zeros: by
        that alone a cell that no row looks at could pass for known, without any noise. So the span has to say it too.
        """
        if len(rows) < max(FEWEST_TO_INVERT, len(self.cells) // 2):
            return False
        before = self.information
        information = before + (rows.T / variances) @ rows
        solved = _solved(information, before @ self.estimate + (values / variances) @ rows)
        if solved is None or not (sure or self._completed_by(rows)):
            return False
        self.reduced_estimate, self.reduced_covariance = solved
        self.basis, self.reduced_information = None, information
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
        outside = self.outside(rows)
        inner = settled(rows, outside, self.cells)
        sizes = np.abs(rows[~inner] / np.sqrt(self.cells)).max(axis=1, initial=0)
        if sizes.max(initial=0) > LARGEST_RATIO_OF_ROWS * sizes.min(initial=np.inf):
            return False
        turn, lengths, ways = np.linalg.svd(outside[~inner], full_matrices=len(rows) > len(self.cells))
        rank = min(len(turn), len(ways))
        left = np.zeros(len(turn))
        left[:rank] = lengths * np.abs(ways[:rank] / np.sqrt(self.cells)).max(axis=1, initial=0)
        left /= IN_SPAN * np.abs(rows / np.sqrt(self.cells)).max(initial=0)
        fresh = left > CLEARANCE_OF_SPAN
        if np.any(left[~fresh] > 1 / CLEARANCE_OF_SPAN):
            return False
        turned, told = turn.T @ rows[~inner], turn.T @ values[~inner]
        inside, heard = np.concatenate([rows[inner], turned[~fresh]]), np.concatenate([values[inner], told[~fresh]])
        self._add_inside(inside, heard, np.full(len(inside), variance))
        if np.any(fresh):
            outside_span = fresh[:rank]
            self._add_outside(turned[fresh], told[fresh], variance, ways[:rank][outside_span], lengths[outside_span])
        self._inform(rows, np.full(len(rows), variance))
        return True

    def _add_inside(self, rows: Reals, values: Reals, variances: Reals) -> None:
        """Rows in the span, by Woodbury's formula; one by one where rounding has left the covariance none."""
        inside = self.reduced(rows)
        gain = self.reduced_covariance @ inside.T
        spread = inside @ gain + np.diag(variances)
        surprise = values - inside @ self.reduced_estimate
        try:
            solved = np.linalg.solve(spread, np.column_stack([surprise, gain.T]))
        except np.linalg.LinAlgError:
            for row, value, variance in zip(inside, values.tolist(), variances.tolist(), strict=True):
                self._tell_inside(row, value, variance)
            return
        self.reduced_estimate = self.reduced_estimate + gain @ solved[:, 0]
        self.reduced_covariance = self.reduced_covariance - gain @ solved[:, 1:]

    def _add_outside(self, rows: Reals, values: Reals, variance: float, ways: Reals, lengths: Reals) -> None:
        """Rows of which the span leaves open `lengths[i] ways[i]`, the ways orthonormal.

        Along way i the data are (y_i - z_i.x - noise) / length, for the part z_i of the row that is inside.
        """
        inside = self.reduced(rows)
        gain = self.reduced_covariance @ inside.T
        spread = inside @ gain + variance * np.eye(len(rows))
        surprise = values - inside @ self.reduced_estimate
        self._grow(ways, surprise / lengths, -gain / lengths, spread / np.outer(lengths, lengths))

    def _grow(self, ways: Reals | None, estimate: Reals, shared: Reals, covariance: Reals) -> None:
        """More coordinates along the basis, with their covariances with those that there are, and among themselves.

        None for ways that are all coordinates, in their order, where there were none before.
        """
        old = self.rank
        if ways is not None and self.basis is not None:
            ways = np.concatenate([self.basis, ways])
        grown, information = np.empty((2, old + len(estimate), old + len(estimate)))
        grown[:old, :old], grown[old:, old:] = self.reduced_covariance, covariance
        grown[:old, old:], grown[old:, :old] = shared, shared.T
        information[:old, :old], information[old:], information[:, old:] = self.reduced_information, 0.0, 0.0
        self.basis, self.reduced_estimate = ways, np.concatenate([self.reduced_estimate, estimate])
        self.reduced_covariance, self.reduced_information = grown, information

    def _inform(self, rows: Reals, variances: Reals) -> None:
        """Add the information of rows that are in the span by now."""
        rows = self.reduced(rows)
        self.reduced_information = self.reduced_information + (rows.T / variances) @ rows

    def _take_one(self, row: Reals, value: float, variance: float) -> None:
        if not np.any(row):
            return
        self._add_one(row, value, variance)
        self.reduced_information = self.reduced_information + _square(self.reduced(row), 1 / variance)

    def _add_one(self, row: Reals, value: float, variance: float) -> None:
        outside, inside = self.outside(row), self.reduced(row)
        if settled(row, outside, self.cells):
            self._tell_inside(inside, value, variance)
            return
        gain, surprise, spread = self._looked_at(inside, value, variance)
        length = math.sqrt(float(outside @ outside))
        shared, alone = (-gain / length)[:, None], np.array([[spread / length**2]])
        self._grow(outside[None] / length, np.array([surprise / length]), shared, alone)

    def _tell_inside(self, inside: Reals, value: float, variance: float) -> None:
        """A row in the span, given along the basis, by Sherman-Morrison."""
        gain, surprise, spread = self._looked_at(inside, value, variance)
        self.reduced_estimate = self.reduced_estimate + gain * (surprise / spread)
        self.reduced_covariance = self.reduced_covariance - _square(gain, 1 / spread)

    def _looked_at(self, inside: Reals, value: float, variance: float) -> tuple[Reals, float, float]:
        """How estimates go along with a row's, by how much its value differs from that, and the variance of this."""
        gain = self.reduced_covariance @ inside
        surprise = value - float(inside @ self.reduced_estimate)
        # Rounding may have broken the covariance: see `sound`.
        return gain, surprise, variance + max(0.0, float(inside @ gain))


def settled(queries: Reals, outside: Reals, cells: Reals) -> NDArray[np.bool_]:
    """Which queries the span holds, going by what it leaves open of them; `cells` are those of each coordinate."""
    root = np.sqrt(cells)
    largest: Reals = np.abs(queries / root).max(axis=-1, initial=0)
    left: Reals = np.abs(outside / root).max(axis=-1, initial=0)
    return np.asarray(left <= IN_SPAN * largest)


def _solved(information: Reals, told: Reals) -> tuple[Reals, Reals] | None:
    """Estimate and covariance; None where the information does not determine every coordinate beyond doubt."""
    size = np.sqrt(np.maximum(information.diagonal(), 0.0))
    if size.min(initial=np.inf) <= SMALLEST_SIZE * size.max(initial=0.0):
        return None
    scaled = information / np.outer(size, size)
    try:
        pivots = np.linalg.cholesky(scaled).diagonal()
    except np.linalg.LinAlgError:
        return None
    if pivots.min(initial=np.inf) ** 2 < SMALLEST_PIVOT:
        return None
    covariance = np.linalg.inv(scaled) / np.outer(size, size)
    covariance = (covariance + covariance.T) / 2
    return _estimated(information, covariance, told), covariance


def _estimated(information: Reals, covariance: Reals, told: Reals) -> Reals:
    """The estimate, put right once for what rounding left of the covariance."""
    estimate = covariance @ told
    return estimate + covariance @ (told - information @ estimate)


def _square(vector: Reals, factor: float) -> Reals:
    """factor x x^T, symmetric to the last bit."""
    scaled = math.sqrt(factor) * vector
    return np.multiply.outer(scaled, scaled)


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
        pairs = self._pairs(place)
        variance = float(jump @ pairs @ jump)
        doubt = CANCELLATION_SHARE * float(np.square(jump) @ np.abs(pairs.diagonal()))
        return float(jump @ self._estimate[place]), max(variance, 0.0) + doubt

    def _pairs(self, place: Integers) -> Reals:
        """The covariances of the prefixes; all of them are worked out at once where that takes no product."""
        if self.state.basis is None:
            return self._covariance[place[:, None], place]
        loadings = self._loadings[place]
        return np.asarray(loadings @ self.state.reduced_covariance @ loadings.T)

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
        spanned = (jump @ self._loadings[place]) @ self._per_cell
        left = np.abs(query - spanned).max(initial=0)
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
    def _loadings(self) -> Reals:
        """(runs, rank): how much of each coordinate of the basis the prefix from the run on has; one is assumed."""
        assert self.state.basis is not None
        return _from_here_on(self.state.basis.T[self._owners] * self._scaled[:, None])

    @cached_property
    def _per_cell(self) -> Reals:
        """The basis, per cell."""
        assert self.state.basis is not None
        return self.state.basis / np.sqrt(self.state.cells)

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
