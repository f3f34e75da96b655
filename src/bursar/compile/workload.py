"""Labelled queries that are asked together, and what is made of their answers."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Reals
from bursar.compile.lazy_rows import Labels
from bursar.compile.result_lines import ResultClauses
from bursar.core.domain import Value
from bursar.core.queries import LinearMap
from bursar.estimation.derived import Box, Derived, Form, single


@dataclass(frozen=True, eq=False)
class Workload:
    """A table of answers to come: one line per group, one output per aggregate, made of columns of rows of `map`.

    Where no forms are given, every output is a column as it is.

    Guarantees: `map` has no row twice and no row of zeros unless the question is about nothing at all; the lines
    are the full public key set of the groups, in the order of the domain, whatever the data hold.
    """

    map: LinearMap
    keys: tuple[str, ...]  # names of the group columns
    labels: tuple[tuple[Value, ...], ...] | Labels  # one tuple of group values per line
    outputs: tuple[str, ...]  # names of the aggregates
    index: NDArray[np.int64]  # (lines, columns) -> row of the map, -1 where the number is 0 by definition
    forms: tuple[Form, ...] = ()  # how each output follows from columns
    largest: tuple[int, ...] = ()  # per column, the most that one row of the data can change it; 1 for a count
    remarks: tuple[str, ...] = ()  # what an analyst must know about the numbers, whatever they are
    after: ResultClauses | None = None  # what is done with the answers
    times: NDArray[np.int64] | None = None  # what each row of the map is a multiple of, where that is not 1

    def __post_init__(self) -> None:
        if not self.forms:
            object.__setattr__(self, "forms", tuple(single(column) for column in range(len(self.outputs))))
        if not self.largest:
            object.__setattr__(self, "largest", (1,) * self.index.shape[1])

    @property
    def plain(self) -> bool:
        """Whether every output is a column as it is."""
        return self.forms == tuple(single(column) for column in range(len(self.outputs)))

    @property
    def mixed(self) -> bool:
        """Whether outputs are other things than counts, so that no one error is for all of them."""
        return not self.plain or max(self.largest, default=1) > 1

    def derive(self, values: Reals, low: Reals, high: Reals) -> list[Derived]:
        """Every output from estimates of the rows and the ends of their bars."""
        scale = np.append(np.ones(len(values)) if self.times is None else self.times, 1.0)
        values, low, high = ((np.append(part, 0.0) / scale)[self.index] for part in (values, low, high))
        box = Box(values, low, high)
        return [replace(form.of(box), sure=form.sure(box)) for form in self.forms]
