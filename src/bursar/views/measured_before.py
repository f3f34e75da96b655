"""Which record has measured a strategy: an index of the log that is saved beside it.

A new process that is asked something again need not read all of the log first.

Nothing rests on it. It says where to look; what stands there is read from the log and checked by its own link.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, replace

import numpy as np
from numpy.typing import NDArray

from bursar.core.accounting import Measured, Versioned
from bursar.core.ledger import Ledger, Record
from bursar.core.queries import LinearMap
from bursar.lazy_dataclass import dataclass

SAVED = "measured"
"""The name under which a ledger keeps it."""

ENTRY = np.dtype([("digest", "<u8", 2), ("position", "<i8"), ("variance", "<f8")])
HEAD = 2
"""Whole numbers at its beginning: the position of the last record that is in it, and the version of the data."""


@dataclass(frozen=True, kw_only=True, eq=False)
class MeasuredBefore:
    """Strategies that were measured on one version of the data, by digest: where, of each the most accurate record.

    So it grows with different strategies, and not with the log.
    """

    position: int = 0
    version: int = 0
    entries: NDArray[np.void] = field(default_factory=lambda: np.zeros(0, ENTRY))  # by digest

    @staticmethod
    def saved_in(ledger: Ledger) -> MeasuredBefore:
        """The one that was saved; an empty one where that cannot be read."""
        body = ledger.saved(SAVED) or b""
        size = len(body) - 8 * HEAD
        if size < 0 or size % ENTRY.itemsize:
            return MeasuredBefore()
        position, version = np.frombuffer(body, "<i8", HEAD).tolist()
        return MeasuredBefore(position=position, version=version, entries=np.frombuffer(body, ENTRY, offset=8 * HEAD))

    def save_in(self, ledger: Ledger) -> None:
        head = np.array([self.position, self.version], "<i8")
        ledger.save(SAVED, head.tobytes() + self.entries.tobytes())

    def after(self, records: Iterable[Record]) -> MeasuredBefore:
        """With the records that follow."""
        index, new, position = self, dict[str, tuple[int, float]](), self.position
        for record in records:
            event, position = record.event, record.position
            if isinstance(event, Versioned):
                index, new = MeasuredBefore(version=event.version), {}
            elif isinstance(event, Measured) and event.version == index.version:
                variance = event.noise.variance()
                if event.strategy.digest not in new or variance < new[event.strategy.digest][1]:
                    new[event.strategy.digest] = position, variance
        entries = np.array([(digest_numbers(digest), *facts) for digest, facts in new.items()], ENTRY)
        entries = np.concatenate([index.entries, entries])
        entries = entries[np.lexsort((entries["variance"], entries["digest"][:, 1], entries["digest"][:, 0]))]
        first = np.ones(len(entries), bool)
        first[1:] = np.any(entries["digest"][1:] != entries["digest"][:-1], axis=1)
        return replace(index, position=position, entries=entries[first])

    def find(self, strategy: LinearMap, ledger: Ledger, *, version: int, end: int) -> Record | None:
        """The record that measured a strategy on this version of the data, among those up to the position `end`."""
        if self.version != version or not len(self.entries):
            return None
        high, low = digest_numbers(strategy.digest)
        first, last = (int(np.searchsorted(self.entries["digest"][:, 0], high, side)) for side in ("left", "right"))
        for entry in self.entries[first:last]:
            if int(entry["digest"][1]) == low and 0 < entry["position"] <= end:
                record = ledger.record(int(entry["position"]))
                event = record.event
                if isinstance(event, Measured) and (event.strategy.digest, event.version) == (strategy.digest, version):
                    return record
        return None


def digest_numbers(digest: str) -> tuple[int, int]:
    """A digest as two whole numbers."""
    return int(digest[:16], 16), int(digest[16:32], 16)
