"""Where every measured row stands now: the finest noise that was drawn for it, and the value it was shown with."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bursar.errors import LedgerError, Stale
from bursar.core.accounting import Measured, Refined, Versioned
from bursar.core.ledger import Record

Scales = NDArray[np.float64]
Values = NDArray[np.int64]


@dataclass
class Blocks:
    """The measurements of the present version of the data, advanced record by record.

    Guarantees: a lookup costs as much as it asks for rows, whatever the log has seen.
    """

    measured: dict[int, tuple[Measured, Values]] = field(default_factory=dict)  # by position, as they were bought
    refined: dict[int, tuple[Scales, Values]] = field(default_factory=dict)  # of those ever refined: how they are now

    def add(self, record: Record) -> None:
        """Edge cases: a refinement of rows that the log has otherwise raises LedgerError, and changes nothing."""
        event = record.event
        if isinstance(event, Versioned):
            self.measured.clear()
            self.refined.clear()
        elif isinstance(event, Measured):
            self.measured[record.position] = event, record.values
        elif isinstance(event, Refined):
            try:
                self.values(event)
            except Stale as fault:
                raise LedgerError(f"record {record.position} refines rows that the log has otherwise") from fault
            if event.block not in self.refined:
                measured, values = self.measured[event.block]
                self.refined[event.block] = np.full(len(values), measured.noise.scale), values.copy()
            scales, values = self.refined[event.block]
            scales[event.rows], values[event.rows] = event.after.scale, record.values

    def find(self, block: int) -> Measured:
        """The measurement at a position of the log, of the present version of the data."""
        if block not in self.measured:
            raise Stale("the measurement to refine is not of the present version of the data")
        return self.measured[block][0]

    def values(self, event: Refined, pending: Iterable[Record] = ()) -> Values:
        """The values that the rows of a refinement have; `pending` are records that come before it, not added yet.

        Edge cases: Stale where the rows are not the ones of the event, or one of them has not the noise it had there.
        """
        measured = self.find(event.block)
        if event.block in self.refined:
            scales, values = self.refined[event.block]
            scales, values = scales[event.rows], values[event.rows]
        else:
            values = self.measured[event.block][1][event.rows]
            scales = np.full(len(values), measured.noise.scale)
        for record in pending:
            if isinstance(record.event, Refined) and record.event.block == event.block:
                shared = np.intersect1d(event.rows, record.event.rows, assume_unique=True, return_indices=True)
                scales[shared[1]], values[shared[1]] = record.event.after.scale, record.values[shared[2]]
        known = (measured.strategy.digest, measured.version, measured.noise.kind)
        if known != (event.measured.digest, event.version, event.before.kind) or np.any(scales != event.before.scale):
            raise Stale("the rows to refine have become finer meanwhile")
        return values
