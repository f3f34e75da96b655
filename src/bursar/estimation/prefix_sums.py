"""Free answers in next to no time: questions about one column from sums over all cells before a boundary.

A row that changes at few cells, as a range does at two, is a sum of few such prefixes. Their estimates and covariances
are added up once, so that an answer and its variance take a handful of numbers, however many cells and measured rows
there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bursar.arrays import Integers, Reals
from bursar.core.queries import Steps
from bursar.estimation.gaussian_state import IN_SPAN, GaussianState

MOST_CHANGES = 16
"""Most cells at which a question changes: all pairs of them are looked up."""

ROUNDING = 1e-11
"""What cancelling may cost a variance, as a share of the numbers that cancel; it is added, never taken off."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PrefixSums:
    """The knowledge about one column, whose merged cells are `labels`, in sums over the cells from a boundary on."""

    state: GaussianState
    labels: Integers  # the merged cell of each cell of the column

    def look_up(self, steps: Steps) -> tuple[Reals, Reals] | None:
        """Estimates and variances of the rows; None where they are not determined, or only a closer look can tell."""
        if len(steps.at) > MOST_CHANGES:
            return None
        values, variances = np.empty(steps.rows), np.empty(steps.rows)
        for row in range(steps.rows):
            own = slice(steps.starts[row], steps.starts[row + 1])
            found = self._row(steps.at[own], steps.jump[own])
            if found is None:
                return None
            values[row], variances[row] = found
        return values, variances

    def _row(self, at: Integers, jump: Integers) -> tuple[float, float] | None:
        place = self._boundary[at]
        if place.min(initial=0) < 0 or not self._whole(at, jump) or not self._determined(place, jump):
            return None
        pairs = self._covariance[place[:, None], place]
        variance = float(jump @ pairs @ jump)
        doubt = ROUNDING * float(np.square(jump) @ pairs.diagonal())
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
        wanted = self._members[:, place] @ jump
        left = np.abs(wanted - self._spanned[:, place] @ jump).max(initial=0)
        return bool(left <= IN_SPAN * np.abs(wanted).max(initial=0))

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
