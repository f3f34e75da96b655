"""The number of rows, as far as the log has told it."""

from __future__ import annotations

from bursar.tails.tails import half_width
from bursar.views.measurements import Measurements, Reconstructions, noise_of
from bursar.core.queries import Product

ALL_ROWS = Product(())
"""The one query that counts everything."""


def measured_size(measurements: Measurements, reconstructions: Reconstructions, beta: float) -> float | None:
    """A number that the true size falls short of with probability at most beta; None where nothing tells it."""
    record = measurements.finest.get(ALL_ROWS.digest)
    if record is not None:
        return float(record.values[0]) - half_width(noise_of(record), beta)
    estimates = [found.answer(ALL_ROWS) for found in reconstructions.over(ALL_ROWS)]
    known = [estimate for estimate in estimates if estimate is not None]
    if not known:
        return None
    best = min(known, key=lambda estimate: estimate.law.mean_square())
    return float(best.values[0] - best.law.half_widths(beta)[0])
