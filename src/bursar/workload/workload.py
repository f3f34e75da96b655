"""Labelled queries that are asked together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bursar.domain import Value
from bursar.queries import LinearMap


@dataclass(frozen=True, eq=False)
class Workload:
    """A table of answers to come: one line per group, one column per aggregate, each cell a row of `map`.

    Guarantees: `map` has no row twice and no row of zeros unless the question is about nothing at all; the lines
    are the full public key set of the groups, in the order of the domain, whatever the data hold.
    """

    map: LinearMap
    keys: tuple[str, ...]  # names of the group columns
    labels: tuple[tuple[Value, ...], ...]  # one tuple of group values per line
    outputs: tuple[str, ...]  # names of the aggregates
    index: NDArray[np.int64]  # (lines, outputs) -> row of the map, -1 where the answer is 0 by definition
