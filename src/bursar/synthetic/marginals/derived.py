"""Marginals that were never measured as such, and that follow from other things in the log all the same.

Ranges, trees, groups under a condition: least squares over the rows of a few columns may determine every joint cell of
them. Errors of such cells depend on each other, so these marginals help to make a table, and each has a bound of its
own; they are not mixed with measured ones where the law of the mixture matters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from bursar.core.accounting import Measured, Noise, NoiseKind
from bursar.core.domain import Domain
from bursar.core.ledger import Record
from bursar.core.noise.law import LARGEST_SCALE, SMALLEST_SCALE
from bursar.core.queries import Product
from bursar.estimation.estimate import Estimate
from bursar.estimation.least_squares import Reconstruction
from bursar.synthetic.marginals.consistent import MarginalAccuracy
from bursar.synthetic.marginals.evidence import MOST_TOGETHER, Names, marginal_map
from bursar.views.measurements import Measurements

MOST_CELLS = 2048
"""Most joint cells of columns that are put together again."""


class JointKnowledge(Protocol):
    """What is known about the joint cells of columns."""

    def on(self, names: Names) -> Reconstruction: ...


@dataclass(frozen=True, kw_only=True, eq=False)
class DerivedMarginal:
    """A marginal with the law of its errors."""

    columns: Names
    map: Product
    estimate: Estimate

    def record(self, version: int) -> Record:
        """The marginal as if it had been measured: with one noise for all cells, as large as the mean of theirs."""
        scale = math.sqrt(self.estimate.law.mean_square())
        noise = Noise(kind=NoiseKind.GAUSSIAN, scale=min(max(scale, SMALLEST_SCALE), LARGEST_SCALE))
        return Record(
            position=0,
            at=0.0,
            analyst="",
            question="",
            proposer="",
            run=0,
            event=Measured(strategy=self.map, noise=noise, version=version),
            values=np.rint(self.estimate.values).astype(np.int64),
        )


def remade(
    domain: Domain, measurements: Measurements, known: JointKnowledge, clean: MarginalAccuracy
) -> Sequence[DerivedMarginal]:
    """Every column set in the log that measured marginals do not determine and other rows do, the smallest first."""
    found = []
    for columns in sorted(measurements.blocks, key=lambda names: (len(names), names)):
        small = 0 < len(columns) <= MOST_TOGETHER and domain.cells(columns) <= MOST_CELLS
        if small and clean.variance(columns) is None:
            wanted = marginal_map(domain, columns)
            estimate = known.on(columns).answered(wanted)
            if estimate is not None:
                found.append(DerivedMarginal(columns=columns, map=wanted, estimate=estimate))
    return found
