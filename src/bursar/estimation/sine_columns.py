"""Columns measured by a sine transform: every range and prefix sum of them, from one reconstruction.

A transform has too many rows for a matrix of weights. All its cells are estimated once, in O(n log n), and kept as
prefix sums; a query that changes its value k times is then a combination of k of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from bursar.arrays import Integers, Reals
from bursar.core.accounting import Measured, Noise, NoiseKind
from bursar.core.ledger import Record
from bursar.core.queries import LinearMap, Product, Stack, Steps, Transform
from bursar.estimation.estimate import Estimate, NearlyNormal
from bursar.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from bursar.strategies.ranges import SineStrategy


@dataclass(frozen=True, kw_only=True, eq=False)
class SineColumn:
    """A measured transform, and what it says about the cells that take part in it."""

    transform: Transform
    noise: Noise
    values: Integers

    @staticmethod
    def of(record: Record) -> SineColumn | None:
        """The line that a record holds; None where it holds another measurement."""
        event = record.event
        if not isinstance(event, Measured) or not isinstance(event.strategy, Transform):
            return None
        gaussian = event.noise.kind is NoiseKind.GAUSSIAN  # the law of the errors is known for it alone
        return SineColumn(transform=event.strategy, noise=event.noise, values=record.values) if gaussian else None

    def answer(self, queries: LinearMap) -> Estimate | None:
        """The best linear estimate of the queries; None where they look at other columns or cells."""
        rows = rows_on(queries, self.transform.column, self.transform.size)
        inside = None if rows is None else within(rows, self.transform)
        if inside is None or self._strategy is None:
            return None
        lengths, less_last = (
            np.sqrt(self._strategy.variances(inside)),
            partial(lengths_less_last, self._strategy, inside),
        )
        return Estimate(values=self.estimates(inside), law=law_of(self._strategy, lengths, self.noise, less_last))

    def estimates(self, rows: Steps) -> Reals:
        """The estimates of rows over the cells of the transform: a jump at v adds the sum of all cells from v on."""
        from_here_on = self._sums[-1] - self._sums[rows.at]
        sums: Reals = np.bincount(rows.owner, rows.jump * from_here_on, rows.rows).astype(np.float64)
        return sums

    @cached_property
    def _strategy(self) -> SineStrategy | None:
        from bursar.strategies.ranges import SineStrategy  # linear algebra takes a while to load

        return SineStrategy.of(self.transform)

    @cached_property
    def _sums(self) -> Reals:
        """The sum of all cells before each cell, and of all cells."""
        assert self._strategy is not None
        return np.concatenate([[0.0], np.cumsum(self._strategy.reconstruct(self.values))])


def law_of(strategy: SineStrategy, lengths: Reals, noise: Noise, less_last: Callable[[], Reals]) -> NearlyNormal:
    """The law of estimates with the given roots of `SineStrategy.variances`, and of those less the last one."""
    draws, off = strategy.transform.rows, strategy.off
    return NearlyNormal(noise=noise, draws=draws, lengths=lengths, off=off, less_last=less_last)


def lengths_less_last(strategy: SineStrategy, rows: Steps) -> Reals:
    """The roots of the variances of all rows less the last one."""
    last = slice(int(rows.starts[-2]), int(rows.starts[-1]))
    at = [np.concatenate([row, rows.at[last]]) for row in np.split(rows.at, rows.starts[1:-1])]
    jump = [np.concatenate([row, -rows.jump[last]]) for row in np.split(rows.jump, rows.starts[1:-1])]
    return np.sqrt(strategy.variances(_merged(rows.size, at, jump)))


def _merged(size: int, at: list[Integers], jump: list[Integers]) -> Steps:
    """Rows of jumps in any order, several of them at one place."""
    places, jumps, starts = [], [], [0]
    for row, by in zip(at, jump, strict=True):
        where, place = np.unique(row, return_inverse=True)
        total = np.bincount(place, by, len(where)).astype(np.int64)
        places.append(where[total != 0])
        jumps.append(total[total != 0])
        starts.append(starts[-1] + len(places[-1]))
    return Steps(size, np.array(starts), np.concatenate(places), np.concatenate(jumps))


def answers(lines: Mapping[str, Mapping[str, SineColumn]], queries: LinearMap) -> Iterator[Estimate]:
    """What the measured lines say about the queries; the number of all rows may follow from a line on any column."""
    columns = queries.attrs or tuple(lines)
    if len(queries.attrs) <= 1:
        estimates = (line.answer(queries) for column in columns for line in lines.get(column, {}).values())
        yield from (estimate for estimate in estimates if estimate is not None)


def rows_on(queries: LinearMap, column: str, size: int) -> Steps | None:
    """All rows of the queries one below the other over one column; None where they look at another."""
    parts = queries.parts if isinstance(queries, Stack) else (queries,)
    stacked = [Steps(size, np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64))]
    for part in parts:
        if not isinstance(part, Product) or [mask.attrs for mask in part.masks] not in ([], [(column,)]):
            return None
        stacked.append(part.masks[0].steps if part.masks else Steps.total(size))
    ends = np.cumsum(np.concatenate([np.diff(steps.starts) for steps in stacked]))
    at, jump = np.concatenate([steps.at for steps in stacked]), np.concatenate([steps.jump for steps in stacked])
    return Steps(size, np.concatenate([[0], ends]), at, jump)


def within(rows: Steps, transform: Transform) -> Steps | None:
    """The rows over the cells of a transform alone; None where one of them is not zero in another cell."""
    first, cells = transform.first, len(transform.cell_weights)
    end = first + cells
    if np.any(rows.at < first) or np.any(rows.at > end):
        return None
    last = rows.starts[1:][np.diff(rows.starts) > 0] - 1
    if end < rows.size and np.any(rows.levels[last]):
        return None
    inside = rows.at < end
    lengths = np.bincount(rows.owner[inside], minlength=rows.rows)
    return Steps(cells, np.concatenate([[0], np.cumsum(lengths)]), rows.at[inside] - first, rows.jump[inside])
