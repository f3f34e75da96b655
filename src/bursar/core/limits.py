"""What verbs refuse from public sizes alone, before the data are touched."""

from __future__ import annotations

from bursar.core.domain import Domain
from bursar.core.queries import LinearMap, Transform
from bursar.core.source.source import MOST_CELLS
from bursar.errors import QueryError

LARGEST_ANSWER = 2**61
"""Exact answers and noise (scales end at 2^40) stay far below 64 bits; so do distances from estimates."""

MOST_ROWS = 2**22
"""Most rows of one measurement."""


def check_strategy(strategy: LinearMap, domain: Domain, max_rows: int, most_rows: int = MOST_ROWS) -> None:
    """Refuse what could overflow or not fit in memory."""
    parts = [domain.cells(norm.columns) for norm in strategy.norms(1)]
    if max(parts, default=1) > MOST_CELLS:
        raise QueryError(f"this looks at {max(parts)} joint cells at once; {MOST_CELLS} are possible")
    if strategy.rows > most_rows:
        raise QueryError(f"this asks for {strategy.rows} numbers at once; {most_rows} are possible")
    if strategy.largest() * max_rows > LARGEST_ANSWER:
        raise QueryError("the coefficients of this workload are too large for max_rows")
    if isinstance(strategy, Transform) and strategy.max_rows < max_rows:
        raise QueryError("a transform was made for fewer rows than max_rows")
