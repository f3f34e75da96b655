"""Questions that were compiled before: the same text over the same columns is the same workload."""

from __future__ import annotations

import threading
from collections import OrderedDict

from bursar.compile.compile import read
from bursar.compile.levels import Level
from bursar.compile.values import representatives_of
from bursar.compile.workload import Workload
from bursar.core.domain import Domain
from bursar.sql import Query

REMEMBERED = 256
"""How many questions are remembered; the one not asked for longest goes first."""

LARGEST = 4096
"""Most answers of a question that is remembered. Larger ones take long to answer anyway, and much memory to keep."""

_Facts = tuple[object, ...]


class Compiled:
    """Text to query and workload, each compiled once. Shared by the threads of a process.

    Guarantees: what is remembered is what `read` would return. Everything that it depends on is part of the key, and
    no data are. Refusals are not remembered.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[_Facts, tuple[Query, Workload]] = OrderedDict()
        self._lock = threading.Lock()

    def __call__(
        self, text: str, domain: Domain, table: str, sealed: int | None = None, levels: tuple[Level, ...] = ()
    ) -> tuple[Query, Workload]:
        key = (text, domain.digest, representatives_of(domain), table, sealed, levels)
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
        query, workload = read(text, domain, table, sealed, levels)
        if workload.index.size <= LARGEST:
            workload.index.setflags(write=False)
            with self._lock:
                self._known[key] = query, workload
                while len(self._known) > REMEMBERED:
                    self._known.popitem(last=False)
        return query, workload
