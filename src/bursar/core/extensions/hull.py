"""Upper bounds of norms: one row q >= 0 that stands for every row p with |p| <= q, in every cell."""

from __future__ import annotations

import numpy as np

import bursar.core.extensions.pairs as pairs
from bursar.arrays import Integers
from bursar.core.queries.linear_map import Norm


class Hull(Norm):
    """The norm of one row q >= 0 that stands for every row p with 0 <= p(v) <= q(v): the largest |p(v)|^power.

    p may tell cells apart by other columns than those of q, so two cells differ by at most |p(v) - p(v')| <=
    max(q(v), q(v')), even where they agree on the columns of q.
    """

    @property
    def pair_factor(self) -> int:
        return 1

    def pairs(self) -> Integers | None:
        """max(q(v), q(v'))^power for all pairs of cells; None where there are more than 2,048 cells."""
        if self.cells > pairs.PAIR_CELLS:
            return None
        norm = pairs.outer(list(self.vectors)).ravel()
        largest: Integers = np.maximum.outer(norm, norm)
        return largest


class Ceiling(Hull):
    """A hull of rows that depend on its own columns only: a cell does not differ from itself."""

    def pairs(self) -> Integers | None:
        """max(q(v), q(v'))^power for all pairs of different cells; None where there are more than 2,048 cells."""
        largest = super().pairs()
        if largest is not None:
            np.fill_diagonal(largest, 0)
        return largest
