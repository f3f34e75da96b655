"""What a sparse vector pays for: the scopes that `pmw` opens, and whether one covers a question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from bursar.core.accounting import Opened
from bursar.core.domain import Domain
from bursar.core.queries import LinearMap, Mask, Predicate, Product, Steps
from bursar.proposers.pmw_calibration import Calibrated
from bursar.views.learner import Learning
from bursar.views.measurements import products_of

Heights = Mapping[str, int]
"""Per column, the largest value that its conditions take."""


def learnt(wanted: LinearMap, learning: Learning, domain: Domain) -> bool:
    """Whether histograms learn from the rows of a question; not from one that spans groups declared to be apart."""
    if isinstance(wanted, Predicate):
        return False
    columns = ([name for name in part.attrs if name != domain.partition] for part in products_of(wanted))
    return all(map(learning.together, columns))


def heights_of(queries: Sequence[Product]) -> Heights:
    """How large a query's values get, per column; the first column of a condition over several stands for all."""
    found: dict[str, int] = {}
    for mask in (mask for query in queries for mask in query.masks):
        for place, name in enumerate(mask.attrs):
            found[name] = max(found.get(name, 1), mask.steps.largest() if place == 0 else 1)
    return dict(sorted(found.items()))


def scope_of(columns: Sequence[str], heights: Heights, domain: Domain) -> Product:
    """Ones over the histogram's columns, or what the values get up to."""
    masks = []
    for name in columns:
        size = domain[name].size
        whole = Steps(size, np.array([0, 1]), np.array([0]), np.array([heights.get(name, 1)]))
        masks.append(Mask((name,), (size,), whole))
    return Product(tuple(masks))


def covers(opened: Opened, scope: Product, heights: Heights, made: Calibrated) -> bool:
    """Whether a sparse vector has this cut and these noises, and a scope that the queries keep to.

    `scope` is the sparse vector's own, or the part of it that is not about partitions.
    """
    if (opened.cut, opened.threshold, opened.test) != (made.cut, made.threshold, made.test):
        return False
    known = _scope_heights(scope)
    return known is not None and all(height <= known.get(name, 0) for name, height in heights.items())


@lru_cache(maxsize=4096)
def _scope_heights(scope: Product) -> Heights | None:
    """The heights of a scope as it is made here; None for any other."""
    found: dict[str, int] = {}
    for mask in scope.masks:
        if len(mask.attrs) > 1 or mask.steps.at.tolist() != [0]:
            return None
        found[mask.attrs[0]] = int(mask.steps.levels[0])
    return found
