"""How far each marginal of a table can be from the data's, as far as noisy counts can tell."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bursar.errors import QueryError
from bursar.synthetic.marginals.evidence import Names
from bursar.synthetic.marginals.release import Sets
from bursar.synthetic.table.table import SyntheticTable
from bursar.tails.marginals import Cells, largest_error


@dataclass(frozen=True, kw_only=True)
class MarginalError:
    """One marginal of a table, in rows of the data.

    |table - truth| <= |table - noisy| + |noisy - truth| in every cell: the first is `measured`, at its largest, and the
    second is at most `noise` with the confidence asked for. All are None where nothing measured says anything.
    """

    columns: Names
    cells: int
    measured: float | None
    noise: float | None

    @property
    def bound(self) -> float | None:
        """No cell is wrong by more, with the confidence asked for."""
        return None if self.measured is None or self.noise is None else self.measured + self.noise


def table_errors(
    table: SyntheticTable, sets: Sets | None = None, *, confidence: float = 0.95
) -> tuple[MarginalError, ...]:
    """The errors of marginals of a table, those of its workload unless others are named.

    Guarantees: with this confidence all bounds hold together, whatever was done with the noisy counts to make the
    table: each marginal is given an equal part of the chance to fail, and each of its cells an equal part of that. In
    add-or-remove mode the number of rows is estimated, and the table is scaled to that.
    """
    if not 0 < confidence < 1:
        raise QueryError("a confidence lies between 0 and 1")
    consistent, domain = table.answers.consistent, table.domain
    named = table.answers.sets if sets is None else tuple(domain.ordered(own) for own in sets)
    found = []
    for columns in named:
        estimate, variance = consistent.estimate(columns), consistent.variance(columns)
        cells = domain.cells(columns)
        if estimate is None or variance is None:
            found.append(MarginalError(columns=columns, cells=cells, measured=None, noise=None))
            continue
        own = Cells(count=cells, variance=variance)
        noise = largest_error([own], heavy=consistent.heavy, beta=(1 - confidence) / len(named))
        measured = float(np.abs(table.counts(columns) - estimate).max())
        found.append(MarginalError(columns=columns, cells=cells, measured=measured, noise=noise))
    return tuple(found)
