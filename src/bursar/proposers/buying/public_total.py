"""The number of all rows, where everybody may know it: a constraint on answers, for nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bursar.arrays import Integers
from bursar.core.accounting import Measured
from bursar.planner.grant import Verbs
from bursar.planner.offer import Views


@dataclass(frozen=True, kw_only=True)
class PublicTotal:
    """The exact number of rows: as it stands in the log, or a free purchase."""

    value: int | None
    event: Measured | None

    @staticmethod
    def of(views: Views) -> PublicTotal | None:
        """None where the log does not have it and it would cost something, as under add-remove."""
        value, event = views.measurements.total, views.free_total()
        return None if value is None and event is None else PublicTotal(value=value, event=event)

    @property
    def events(self) -> tuple[Measured, ...]:
        return () if self.event is None else (self.event,)

    def values(self, verbs: Verbs) -> Integers:
        """The number, bought where it has to be."""
        if self.event is not None:
            return verbs.measure(self.event.strategy, self.event.noise).values
        return np.array([self.value], np.int64)
