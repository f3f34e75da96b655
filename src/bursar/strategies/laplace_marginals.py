"""Marginals with Laplace noise: which tables to measure, with how much noise each.

Every row of data falls into one cell of each table, so tables with scales b_B cost sum 1/b_B. For given tables and
given numbers of answers c_B taken from each, sum c_B b_B^2 is least for b_B proportional to c_B^(-1/3).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bursar.arrays import Reals

Set = tuple[int, ...]

COVERED_SETS = 2000
"""Most marginals among which larger ones are sought to answer smaller ones."""


@dataclass(frozen=True, kw_only=True, eq=False)
class MeasuredTables:
    """Tables, their scales at sum 1/b = 1, and the table that answers each marginal."""

    sizes: tuple[int, ...]
    marginals: tuple[Set, ...]
    tables: tuple[Set, ...]
    scales: Reals
    source: tuple[int, ...]

    def variance(self, marginal: int) -> float:
        """Of each count of a marginal, over the variance of a draw of scale one: cells added up, times b^2."""
        table = self.source[marginal]
        added = math.prod(self.sizes[i] for i in self.tables[table] if i not in self.marginals[marginal])
        return added * float(self.scales[table]) ** 2

    def estimate(self, marginal: int, values: Reals) -> Reals:
        """The counts of a marginal from the values of its table."""
        table = self.tables[self.source[marginal]]
        gone = tuple(axis for axis, i in enumerate(table) if i not in self.marginals[marginal])
        counts: Reals = values.reshape([self.sizes[i] for i in table]).sum(axis=gone)
        return counts.ravel()

    def total(self) -> float:
        cells = [math.prod(self.sizes[i] for i in A) for A in self.marginals]
        return sum(count * self.variance(number) for number, count in enumerate(cells))


def laplace_marginals(sizes: Sequence[int], marginals: Sequence[Set]) -> MeasuredTables:
    """The better of measuring every marginal and measuring only those that are contained in no other."""
    listed = tuple(dict.fromkeys(marginals))
    made = [_measured(tuple(sizes), tuple(marginals), listed)]
    if len(listed) <= COVERED_SETS:
        largest = tuple(A for A in listed if not any(set(A) < set(B) for B in listed))
        if len(largest) < len(listed):
            made.append(_measured(tuple(sizes), tuple(marginals), largest))
    return min(made, key=MeasuredTables.total)


def _measured(sizes: tuple[int, ...], marginals: tuple[Set, ...], tables: tuple[Set, ...]) -> MeasuredTables:
    place = {table: number for number, table in enumerate(tables)}
    cells = [math.prod(sizes[i] for i in table) for table in tables]
    source = []
    for A in marginals:
        above = [place[A]] if A in place else [n for n, B in enumerate(tables) if set(A) <= set(B)]
        source.append(min(above, key=lambda n: cells[n]))
    answers = np.bincount(source, minlength=len(tables)) * np.array(cells, np.float64)
    shares = np.cbrt(answers)
    return MeasuredTables(
        sizes=sizes, marginals=marginals, tables=tables, scales=shares.sum() / shares, source=tuple(source)
    )
