"""The loss profile under replace-one: how well two cells of the domain can be told apart.

Sizes are public there, so a question on which two cells agree costs nothing between them: the count of all rows is
free, and a histogram costs twice what it costs under add-or-remove.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from bursar.domain import Domain
from bursar.kernel.accounting.grid import LARGEST_SUM, added
from bursar.kernel.accounting.profile import AddRemove, Columns, Footprint, columns_of
from bursar.queries import MOST_COLUMNS
from bursar.queries.norm import PAIR_CELLS

Integers = NDArray[np.int64]

KEPT_PAIRS = 2**25
"""Most numbers that the pairs of all column sets take up together; sets that come later keep only their largest."""


@dataclass
class ReplaceOne:
    """loss(v, v') = sum_j |q_j(v) - q_j(v')|^power times the units of row j's noise; spent is the largest.

    Up to 2,048 joint cells of the columns in use every pair is kept. Above that, the least of two bounds:
    - a multiple of the add-or-remove profile: |x - y| <= |x| + |y| gives twice it in pure mode; in concentrated mode
      (x - y)^2 <= 2x^2 + 2y^2 gives four times it, and (x - y)^2 <= x^2 + y^2 twice it where rows have one sign;
    - the sum over column sets of each set's own largest pair loss.

    A unit of several rows keeps their number when it is replaced: the number of all rows is public.
    """

    domain: Domain
    around: AddRemove
    pairs: dict[Columns, Integers] = field(default_factory=dict)  # column sets whose pairs are all kept
    large: dict[Columns, int] = field(default_factory=dict)  # what is not in `pairs`: a bound on the largest pair loss
    factor: int = 2

    def add(self, footprints: Iterable[Footprint]) -> None:
        listed = list(footprints)
        self.around.add(listed)
        self.pairs, self.large = self._with(listed)
        self.factor = max([self.factor, *(f.norm.pair_factor for f in listed)])

    def copy(self) -> ReplaceOne:
        return replace(self, around=self.around.copy(), pairs=dict(self.pairs), large=dict(self.large))

    def spent(self, plus: Iterable[Footprint] = ()) -> int:
        listed = list(plus)
        pairs, large = self._with(listed)
        columns = self.domain.ordered(name for names in [*pairs, *large] for name in names)
        if not large and len(columns) <= MOST_COLUMNS and self.domain.cells(columns) <= PAIR_CELLS:
            return int(self._joint(columns, pairs).max(initial=0))
        factor = max([self.factor, *(f.norm.pair_factor for f in listed)])
        by_set = sum(int(matrix.max(initial=0)) for matrix in pairs.values()) + sum(large.values())
        return min(factor * self.around.spent(listed), by_set)

    def _with(self, footprints: list[Footprint]) -> tuple[dict[Columns, Integers], dict[Columns, int]]:
        pairs, large = dict(self.pairs), dict(self.large)
        for footprint in footprints:
            norm = footprint.norm
            columns = columns_of(norm, self.domain)
            matrix = norm.pairs()
            if matrix is None:
                large[columns] = large.get(columns, 0) + footprint.of(norm.pair_factor * norm.largest())
            elif columns in pairs:
                pairs[columns] = added(pairs[columns], self._loss(footprint, matrix, columns))
            elif matrix.size + sum(kept.size for kept in pairs.values()) <= KEPT_PAIRS:
                pairs[columns] = self._loss(footprint, matrix, columns)
            else:
                large[columns] = large.get(columns, 0) + footprint.of(int(matrix.max(initial=0)))
        return pairs, large

    def _loss(self, footprint: Footprint, matrix: Integers, columns: Columns) -> Integers:
        """The pair losses of a footprint, with cells numbered in the order of the domain."""
        names = footprint.norm.columns
        numbers = np.arange(len(matrix)).reshape(self.domain.sizes(names))
        place = numbers.transpose([names.index(name) for name in columns]).ravel()
        # A footprint loses at most 2^60 in a cell, hence at most 2^62 in a pair: the product cannot wrap around.
        loss: Integers = np.minimum(footprint.loss(matrix[np.ix_(place, place)]), LARGEST_SUM)
        return loss

    def _joint(self, columns: Columns, pairs: dict[Columns, Integers]) -> Integers:
        sizes = self.domain.sizes(columns)
        cells = np.stack(np.unravel_index(np.arange(self.domain.cells(columns)), sizes or (1,)))
        total = np.zeros((cells.shape[1],) * 2, np.int64)
        for names, matrix in pairs.items():
            own = [cells[columns.index(name)] for name in names]
            place = np.ravel_multi_index(own, self.domain.sizes(names)) if names else np.zeros(len(total), np.int64)
            total = added(total, matrix[np.ix_(place, place)])
        return total
