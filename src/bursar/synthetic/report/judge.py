"""Comparing a synthetic table with what was measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Codes, Reals
from bursar.core.domain import Domain
from bursar.core.ledger import Record
from bursar.synthetic.marginals.consistent import Consistent
from bursar.synthetic.marginals.derived import DerivedMarginal
from bursar.synthetic.marginals.evidence import Names
from bursar.synthetic.rap.threshold_workload import ThresholdWorkload
from bursar.synthetic.report.report import CONFIDENCE, ColumnBars, MarginalLine
from bursar.synthetic.table.fit import cell_numbers
from bursar.tails.marginals import Cells as Draws
from bursar.tails.marginals import largest_error

Cells = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Numbers of cells of a marginal, and their noisy counts."""

MOST_CELLS = 2**22
"""Marginals of more cells are not compared."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Judge:
    """Compares a table with what was measured: whole marginals, and such as follow from other rows."""

    domain: Domain
    codes: Codes
    total: float
    clean: Consistent
    remade: Sequence[DerivedMarginal] = ()
    picked: Mapping[Names, Cells] = field(default_factory=dict)  # single cells that were measured

    def lines(self, asked: Iterable[Names], others: Iterable[Names]) -> tuple[MarginalLine, ...]:
        """One for each set, those asked for first; all bounds together have the confidence of a report."""
        wanted = {**dict.fromkeys(asked, True), **{own: False for own in others if own not in set(asked)}}
        beta = (1 - CONFIDENCE) / max(len(wanted), 1)
        return tuple(self._line(columns, mine, beta) for columns, mine in wanted.items())

    def distance(self, columns: Names) -> float | None:
        """The largest distance of the table from noisy counts; None where there are none."""
        noisy = self.noisy(columns, 1 - CONFIDENCE)
        return None if noisy is None else float(np.abs(self.counts(columns) - noisy[0]).max(initial=0.0))

    def apart(self) -> tuple[Names, ...]:
        """Pairs of columns that nothing was measured about together."""
        varying = [own.name for own in self.domain.attributes if own.size > 1]
        known = {own.columns for own in self.remade}
        pairs = (self.domain.ordered(pair) for pair in combinations(varying, 2))
        return tuple(p for p in pairs if self.clean.variance(p) is None and p not in known)

    def bars(self) -> tuple[ColumnBars, ...]:
        """Every column that has more than one value."""
        varying = [own for own in self.domain.attributes if own.size > 1]
        made = []
        for own in varying:
            found = self.noisy((own.name,), (1 - CONFIDENCE) / len(varying))
            labels = tuple("NULL" if (label := own.label(cell)) is None else str(label) for cell in range(own.size))
            noisy, noise = (None, None) if found is None else found
            made.append(
                ColumnBars(name=own.name, labels=labels, table=self.counts((own.name,)), noisy=noisy, noise=noise)
            )
        return tuple(made)

    def counts(self, columns: Names) -> Reals:
        """The table's counts, in rows of the data."""
        cells = np.bincount(cell_numbers(self.domain, self.codes, columns), minlength=self.domain.cells(columns))
        return cells.astype(np.float64) * np.float64(self.total / len(self.codes))

    def noisy(self, columns: Names, beta: float) -> tuple[Reals, float] | None:
        """Unbiased counts, and what none of them is wrong by but with probability beta."""
        if self.domain.cells(columns) > MOST_CELLS:
            return None
        estimate, variance = self.clean.estimate(columns), self.clean.variance(columns)
        if estimate is not None and variance is not None:
            own = Draws(count=estimate.size, variance=variance)
            return estimate.ravel(), largest_error([own], heavy=self.clean.heavy, beta=beta)
        for one in self.remade:
            if one.columns == columns:
                return one.estimate.values, float(one.estimate.law.half_widths(beta).max(initial=0.0))
        return None

    def _line(self, columns: Names, asked: bool, beta: float) -> MarginalLine:
        found, cells = self.noisy(columns, beta), self.domain.cells(columns)
        if found is None:
            return MarginalLine(columns=columns, cells=cells, asked=asked, measured=self._beside(columns), noise=None)
        noisy, noise = found
        measured = float(np.abs(self.counts(columns) - noisy).max(initial=0.0))
        return MarginalLine(columns=columns, cells=cells, asked=asked, measured=measured, noise=noise)

    def _beside(self, columns: Names) -> float | None:
        """The largest distance from those cells that were measured, where not all of them were."""
        if columns not in self.picked:
            return None
        places, noisy = self.picked[columns]
        return float(np.abs(self.counts(columns)[places] - noisy).max(initial=0.0))


def picked_cells(workload: ThresholdWorkload, records: Sequence[Record]) -> dict[Names, Cells]:
    """The single cells that a run has picked and measured, set by set."""
    from bursar.synthetic.plan.bought import RunProgress  # with the compiler of RAP, which only its runs need

    rounds = RunProgress.of(workload, records).rounds
    if not rounds:
        return {}
    queries = np.concatenate([bought.queries for bought in rounds])
    counts = np.concatenate([bought.counts for bought in rounds])
    owner = np.searchsorted(workload.starts, queries, side="right") - 1
    return {
        workload.sets[number]: (queries[owner == number] - int(workload.starts[number]), counts[owner == number])
        for number in np.unique(owner).tolist()
    }
