"""Some rows of a map, in few products: `take` makes a product of every single row."""

from __future__ import annotations

import math

import numpy as np

from bursar.arrays import Integers
from bursar.core.queries import LinearMap, Product, Stack, Thresholds
from bursar.errors import Unsupported


def rows_of(linear_map: LinearMap, rows: Integers) -> LinearMap:
    """The given rows, which rise, as a map of their own: its row i is row rows[i] of the map."""
    return _taken(linear_map, rows, ordered=True)


def gathered(linear_map: LinearMap, rows: Integers) -> LinearMap:
    """The given rows, which rise, in whatever order takes the fewest products: to price them, order does not matter."""
    return _taken(linear_map, rows, ordered=False)


def _taken(linear_map: LinearMap, rows: Integers, *, ordered: bool) -> LinearMap:
    if len(rows) == linear_map.rows:
        return linear_map
    if not isinstance(linear_map, Product | Stack | Thresholds):
        raise Unsupported(f"rows of a map of kind {type(linear_map).__name__} cannot be taken by themselves")
    parts = linear_map.parts if isinstance(linear_map, Stack) else (linear_map,)
    ends = np.cumsum([part.rows for part in parts])
    products: list[Product | Thresholds] = []
    for part, end, own in zip(parts, ends, np.split(rows, np.searchsorted(rows, ends[:-1])), strict=True):
        if len(own) == 0:
            continue
        if len(own) == part.rows:
            products.append(part)
        elif isinstance(part, Thresholds):
            products.append(part.take(own - (end - part.rows)))
        else:
            products += _products(part, own - (end - part.rows), ordered=ordered)
    return products[0] if len(products) == 1 else Stack(tuple(products))


def _products(product: Product, rows: Integers, *, ordered: bool) -> list[Product]:
    """Rows of a product, those that differ in one mask only together; in order, if that is the fastest mask."""
    counts = [mask.rows for mask in product.masks]
    places = np.unravel_index(rows, counts)
    several = [axis for axis, count in enumerate(counts) if count > 1]
    apart = {axis: rows - places[axis] * math.prod(counts[axis + 1 :]) for axis in several}  # but for that mask
    axis = several[-1] if ordered else min(several, key=lambda axis: len(np.unique(apart[axis])))
    order = np.argsort(apart[axis], kind="stable")
    found = []
    for group in np.split(order, np.flatnonzero(np.diff(apart[axis][order])) + 1):
        picks = [place[group] if at == axis else place[group[:1]] for at, place in enumerate(places)]
        found.append(Product(tuple(mask.take(pick) for mask, pick in zip(product.masks, picks, strict=True))))
    return found
