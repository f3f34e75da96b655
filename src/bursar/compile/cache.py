"""Questions that were parsed and compiled before: the same text over the same columns is the same workload."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TypeVar

from bursar.compile.compile import compile
from bursar.compile.levels import Level
from bursar.compile.workload import Workload
from bursar.core.domain import Domain
from bursar.sql import Query, parse

REMEMBERED = 256
"""How many questions are remembered; the one not asked for longest goes first."""

LARGEST = 4096
"""Most answers of a question that is remembered. Larger ones take long to answer anyway, and much memory to keep."""

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class CompileCache:
    """Texts to queries, and queries to workloads, over the columns of one config. Shared by the threads of a process.

    Guarantees: what is remembered is what parsing and compiling would return: the columns and the table never change,
    and text and sealed partitions, the rest of what it depends on, are the key. Refusals are not remembered.
    """

    def __init__(self, domain: Domain, table: str, levels: tuple[Level, ...] = ()) -> None:
        self._domain, self._table, self._levels = domain, table, levels
        self._queries: OrderedDict[str, Query] = OrderedDict()
        self._workloads: OrderedDict[tuple[str, int | None], Workload] = OrderedDict()
        self._lock = threading.Lock()

    def parse(self, text: str) -> Query:
        """The question that a text asks."""
        with self._lock:
            if (query := self._queries.get(text)) is not None:
                self._queries.move_to_end(text)
                return query
        query = parse(text)
        with self._lock:
            _remember(self._queries, text, query)
        return query

    def compile(self, query: Query, sealed: int | None = None) -> Workload:
        """The workload of a question that `parse` has returned."""
        key = (query.text, sealed)
        with self._lock:
            if (workload := self._workloads.get(key)) is not None:
                self._workloads.move_to_end(key)
                return workload
        workload = compile(query, self._domain, self._table, sealed, self._levels)
        if workload.index.size <= LARGEST:
            workload.index.setflags(write=False)
            with self._lock:
                _remember(self._workloads, key, workload)
        return workload


def _remember(cache: OrderedDict[_Key, _Value], key: _Key, value: _Value) -> None:
    cache[key] = value
    while len(cache) > REMEMBERED:
        cache.popitem(last=False)
