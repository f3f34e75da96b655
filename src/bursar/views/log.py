"""The log as a process has read it: decoded once for all who look at it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from bursar.core.ledger import Record

REMEMBERED = 2**15
"""How many records are kept, the last ones, or up to twice as many."""


class SharedLog:
    """Looks at the log like `Ledger.records`, which says how it ends now, and keeps what was decoded.

    Guarantees: what it returns is what the ledger returned, and nothing is missing up to the end at the time of the
    call: every call asks the ledger for what is new, so a ledger that was exchanged or closed is noticed as ever.
    """

    def __init__(self, records: Callable[[int], Sequence[Record]], begin: int = 0) -> None:
        """`begin` is a position of the log: what is before is read if somebody asks for it."""
        self._records = records
        self._lock = threading.Lock()
        self._last: list[Record] = []
        self._end = begin  # the position of the last record that was read; there are no gaps

    def __call__(self, after: int) -> Sequence[Record]:
        """Records after a position."""
        with self._lock:
            if news := self._records(self._end):
                self._last += news
                self._end = news[-1].position
                if len(self._last) > 2 * REMEMBERED:  # now and then, not with every record
                    del self._last[:-REMEMBERED]
            missing = self._end - len(self._last)
            if after >= missing:
                return self._last[after - missing :]
            earlier = self._records(after)[: missing - after]
            records = [*earlier, *self._last]
            if len(records) <= REMEMBERED:
                self._last = records
            return records
