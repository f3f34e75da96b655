"""The full-rank transform (CacheDP, Algorithm 4): nested boxes as a matrix over the fewest buckets for them.

For boxes of which any two are nested or disjoint, as the nodes of one tree are, the buckets need no search: what a box
has beside the boxes inside it is one bucket, unless they fill it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Flags, Reals
from bursar.views.nodes import Box


@dataclass(frozen=True, eq=False)
class Nested:
    """Distinct boxes, any two nested or disjoint."""

    boxes: tuple[Box, ...]

    @cached_property
    def contains(self) -> Flags:
        """At [i, j], whether box i contains box j; every box contains itself."""
        return containment(self.boxes, self.boxes)

    @cached_property
    def buckets(self) -> list[int]:
        """The boxes that are larger than the boxes inside them together; each stands for one bucket."""
        volumes = [math.prod(high - low for low, high in box) for box in self.boxes]
        volume_left = list(volumes)
        for box, around in enumerate(self.contains.T):
            outer = [i for i in np.flatnonzero(around).tolist() if i != box]
            if outer:
                volume_left[min(outer, key=volumes.__getitem__)] -= volumes[box]
        return [box for box, left in enumerate(volume_left) if left > 0]

    @property
    def matrix(self) -> Reals:
        """A, one row per box and one column per bucket; its columns are linearly independent (Theorem 5.1)."""
        return self.contains[:, self.buckets].astype(np.float64)

    @property
    def norm(self) -> int:
        """|A|_1, the most boxes that one cell lies in."""
        return int(self.contains.sum(axis=0).max(initial=0))

    @property
    def redundant(self) -> bool:
        """Whether some box follows from the others."""
        return len(self.buckets) < len(self.boxes)

    def weights(self, answers: Reals) -> Reals:
        """W A^+ for the workload W = D A, with D in `answers`: one row per query, one column per box.

        Differs: W A^+ = D (A A^+), and the projection A A^+ is made up of a block for each outermost box, the identity
        where nothing follows from anything else; no matrix over the domain is formed.
        """
        if not self.redundant:
            return answers
        result = answers.copy()
        for members in self._families():
            matrix = self._family(members)
            if matrix.shape[1] < len(members):
                q, _ = np.linalg.qr(matrix)
                result[:, members] = (answers[:, members] @ q) @ q.T
        return result

    def least_squares(self, answers: Reals, scales: Reals) -> Reals | None:
        """The same by weighted least squares, W (A^T S A)^+ A^T S with S = diag(1/scale^2): the least variance.

        Edge cases: a box of infinite scale was not measured; None where the others do not determine the workload.
        """
        matrix = self.matrix
        weighted, finer = answers @ matrix, 1 / scales
        weights = weighted @ np.linalg.pinv(matrix * finer[:, None], rcond=1e-12) * finer
        return weights if np.allclose(weights @ matrix, weighted, rtol=0, atol=1e-8) else None

    def _families(self) -> list[NDArray[np.intp]]:
        """The boxes inside each outermost box, that box included."""
        outermost = np.flatnonzero(self.contains.sum(axis=0) == 1).tolist()
        return [np.flatnonzero(self.contains[box]) for box in outermost]

    def _family(self, members: NDArray[np.intp]) -> Reals:
        buckets = np.intersect1d(members, self.buckets)
        matrix: Reals = self.contains[np.ix_(members, buckets)].astype(np.float64)
        return matrix


def containment(outer: Sequence[Box], inner: Sequence[Box]) -> Flags:
    """At [i, j], whether box i of the one list contains box j of the other."""
    (low, high), (lows, highs) = _ends(outer), _ends(inner)
    result = np.ones((len(outer), len(inner)), np.bool_)
    for column in range(min(low.shape[1], lows.shape[1])):
        result &= low[:, column, None] <= lows[None, :, column]
        result &= highs[None, :, column] <= high[:, column, None]
    return result


def meeting(first: Sequence[Box], other: Sequence[Box]) -> Flags:
    """At [i, j], whether box i of the one list and box j of the other have a cell in common."""
    (low, high), (lows, highs) = _ends(first), _ends(other)
    result = np.ones((len(first), len(other)), np.bool_)
    for column in range(min(low.shape[1], lows.shape[1])):
        result &= low[:, column, None] < highs[None, :, column]
        result &= lows[None, :, column] < high[:, column, None]
    return result


def _ends(boxes: Sequence[Box]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    columns = len(boxes[0]) if boxes else 0
    ends = np.array(boxes, np.int64).reshape(len(boxes), columns, 2)
    return ends[:, :, 0], ends[:, :, 1]
