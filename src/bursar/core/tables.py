"""Exact counts in memory: contingency tables of the columns in use, the least recently used go first.

Tables are never written anywhere and never leave the kernel.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from bursar.core.domain import Domain
from bursar.core.extensions.open_keys import check_keys
from bursar.core.queries import Distinct, LinearMap, PerPerson, Predicate
from bursar.core.source.source import Source

MOST_BYTES = 256 * 2**20
SUMMED_CELLS = 2**22
"""The largest kept table worth adding up, a few milliseconds; beyond it the source is asked."""

Counts = NDArray[np.int64]


class Tables:
    """Tables of one source, whose rows do not change; keeps at most `most_bytes` of them.

    `sealed` is how many partitions were sealed when the source was opened: only these are what the log says they are.
    `texts` are those that have cells of their own in the open columns of the domain, if it has any.

    Guarantees: `counts` equals `source.table`, whatever is kept; what it returns cannot be written to. Safe to use
    from several threads. What is kept depends on the tables asked for and on public sizes, never on counts.
    """

    def __init__(
        self,
        source: Source,
        most_bytes: int = MOST_BYTES,
        *,
        domain: Domain | None = None,
        sealed: int = 0,
        texts: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        self.sealed, self.texts, self._domain = sealed, texts or {}, domain
        self._source = source
        self._most_bytes = most_bytes
        self._kept: OrderedDict[frozenset[str], tuple[tuple[str, ...], Counts]] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def counts(self, attrs: tuple[str, ...]) -> Counts:
        """How many rows fall into each joint cell of the columns, one axis per column in the given order."""
        with self._lock:
            wider = self._smallest(frozenset(attrs)) if len(set(attrs)) == len(attrs) else None
        table = self._source.table(attrs) if wider is None else _summed(*wider, attrs)
        table.setflags(write=False)
        if wider is None or set(wider[0]) != set(attrs):
            with self._lock:
                self._keep(attrs, table)
        return table

    def answers(self, strategy: LinearMap) -> Counts:
        """The exact answers to all rows of a strategy; refused where it tells texts apart that have no cells."""
        if self._domain is not None:
            check_keys(strategy, self._domain, self.texts)
        if isinstance(strategy, Predicate):
            return np.array([self._source.count(strategy)], np.int64)
        if isinstance(strategy, Distinct):
            return self._source.distinct(strategy)
        if isinstance(strategy, PerPerson):
            return self._source.per_person(strategy)
        return strategy.apply(self.counts)

    def _smallest(self, columns: frozenset[str]) -> tuple[tuple[str, ...], Counts] | None:
        """The smallest cached table over these columns or a superset of them, marked as used."""
        fitting = [
            (table.size, key)
            for key, (_, table) in self._kept.items()
            if key == columns or (key > columns and table.size <= SUMMED_CELLS)
        ]
        if not fitting:
            return None
        _, key = min(fitting, key=lambda pair: pair[0])
        self._kept.move_to_end(key)
        return self._kept[key]

    def _keep(self, attrs: tuple[str, ...], table: Counts) -> None:
        key = frozenset(attrs)
        if key in self._kept or table.nbytes > self._most_bytes:
            return
        self._kept[key] = attrs, table
        self._bytes += table.nbytes
        while self._bytes > self._most_bytes:
            _, (_, oldest) = self._kept.popitem(last=False)
            self._bytes -= oldest.nbytes


def _summed(have: tuple[str, ...], table: Counts, want: tuple[str, ...]) -> Counts:
    """The table over `want`, a subset of `have` in any order."""
    dropped = tuple(axis for axis, name in enumerate(have) if name not in want)
    names = [name for name in have if name in want]
    total = np.asarray(table.sum(axis=dropped, dtype=np.int64)) if dropped else table
    return total.transpose([names.index(name) for name in want])
