"""Relaxed rows: a table in which a row has a distribution over the values of every column, not one value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from bursar.arrays import Singles
from bursar.errors import QueryError
from bursar.synthetic.rap.sparsemax import sparsemax
from bursar.synthetic.rap.threshold_workload import ThresholdWorkload


@dataclass(frozen=True, kw_only=True, eq=False)
class Relaxed:
    """n' rows of the relaxed space [0, 1]^d' (RAP, section 2.2), in which each column's numbers sum to 1.

    `values` has d' lines, one for each value of each column, and a place for every row in a line: what queries read is
    contiguous.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    values: Singles

    @property
    def rows(self) -> int:
        return int(self.values.shape[1])

    def block(self, name: str) -> Singles:
        """The numbers of one column: (values, rows)."""
        place = self.names.index(name)
        first = sum(self.sizes[:place])
        return self.values[first : first + self.sizes[place]]


def start(workload: ThresholdWorkload, *, rows: int, rng: Generator) -> Relaxed:
    """RAP, Alg. 1 line 2: independent uniform numbers, then sparsemax on every column of each row."""
    if rows < 1:
        raise QueryError("a synthetic table has at least one row")
    values = rng.random((workload.width, rows), np.float32)
    relaxed = Relaxed(names=workload.names, sizes=workload.sizes, values=values)
    for name in workload.names:
        sparsemax(relaxed.block(name))
    return relaxed
