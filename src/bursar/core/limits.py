"""What verbs refuse from public sizes alone, before the data are touched."""

from __future__ import annotations

import math

import numpy as np

from bursar.arrays import Integers
from bursar.core.accounting import Opened
from bursar.core.accounting.profile import columns_of
from bursar.core.domain import Domain
from bursar.core.extensions.sparse_vector import check_query
from bursar.core.queries import LinearMap, Product, Transform
from bursar.core.source.source import MOST_CELLS
from bursar.errors import QueryError

LARGEST_ANSWER = 2**61
"""Exact answers and noise (scales end at 2^40) stay far below 64 bits; so do distances from estimates."""

MOST_ROWS = 2**22
"""Most rows of one measurement."""

MOST_CANDIDATES = 2**25
"""Most rows that one selection may pick from."""


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


def check_test(opened: Opened, query: LinearMap, estimate: int, *, one_sign: bool) -> Product:
    """The query of a test; refused if the sparse vector has not paid for it."""
    asked = check_query(opened, query, estimate, one_sign=one_sign)
    if (cells := math.prod(mask.steps.size for mask in asked.masks)) > MOST_CELLS:
        raise QueryError(f"this looks at {cells} joint cells at once; {MOST_CELLS} are possible")
    return asked


def check_candidates(
    candidates: LinearMap, estimates: Integers, barred: Integers, count: int, domain: Domain, max_rows: int
) -> tuple[Integers, Integers]:
    """Copies of the estimates and, sorted, of the barred rows of a selection; refused if they do not fit.

    Nobody else has the copies: what is checked is what is scored.
    """
    check_strategy(candidates, domain, max_rows, MOST_CANDIDATES)
    for norm in candidates.norms(1):
        columns_of(norm, domain)  # its price may not know all of its columns
    around, out = np.array(estimates), np.unique(barred)
    if around.dtype != np.int64 or around.shape != (candidates.rows,):
        raise QueryError("a selection needs one whole number as the estimate of each candidate")
    if int(around.min(initial=0)) < -LARGEST_ANSWER or int(around.max(initial=0)) > LARGEST_ANSWER:
        raise QueryError("the estimates of a selection are whole numbers of at most 2^61")
    if out.dtype != np.int64 or np.any((out < 0) | (out >= candidates.rows)):
        raise QueryError("barred rows are numbers of candidates")
    if count > candidates.rows - len(out):
        raise QueryError(f"{candidates.rows - len(out)} candidates are left, too few for this selection")
    return around, out
