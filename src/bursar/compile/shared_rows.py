"""Several maps one below the other, without asking for any row twice."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bursar.compile.partwise import MOST_GROUPS, PartwiseMap, too_many_tied
from bursar.core.queries import LinearMap, Mask, Predicate, Product, Stack

Rows = NDArray[np.int64]
Box = tuple[Rows, ...]
"""Some rows of each mask of a product: together, the rows of the product that combine them."""


class SharedRows:
    """A growing stack. Rows are the same when they are the same in form: mask by mask, number by number."""

    def __init__(self) -> None:
        self._parts: list[Product | Predicate] = []
        self._tied: dict[str, int] = {}  # the row of each predicate

    def map(self) -> LinearMap:
        """All rows so far: a single map as it is, products as a stack, with no part at all for no row.

        Predicates beside anything else are measured one by one, and runs of products between them as a stack each.
        """
        if len(self._parts) == 1:
            return self._parts[0]
        runs: list[LinearMap | list[Product]] = []
        for part in self._parts:
            if isinstance(part, Predicate):
                runs.append(part)
            elif runs and isinstance(runs[-1], list):
                runs[-1].append(part)
            else:
                runs.append([part])
        if not self._tied:
            return Stack(tuple(part for part in self._parts if isinstance(part, Product)))
        return PartwiseMap(tuple(_stacked(run) if isinstance(run, list) else run for run in runs))

    def tied(self, predicate: Predicate, position: int) -> int:
        """The row of a predicate; one that is new is put at the end."""
        if predicate.digest not in self._tied:
            if len(self._tied) == MOST_GROUPS:
                raise too_many_tied(predicate.attrs, position)
            self._tied[predicate.digest] = sum(part.rows for part in self._parts)
            self._parts.append(predicate)
        return self._tied[predicate.digest]

    def place(self, product: Product) -> Rows:
        """The row of the stack that each row of the product is; rows that are new are put at the end."""
        shape = tuple(mask.rows for mask in product.masks)
        index = np.full(shape, -1, np.int64)
        new: list[Box] = [tuple(np.arange(rows) for rows in shape)]
        offset = 0
        for part in self._parts:
            if isinstance(part, Product) and _columns(part) == _columns(product):
                found = [_positions(mask, known) for mask, known in zip(product.masks, part.masks, strict=True)]
                hits = tuple(np.flatnonzero(position >= 0) for position in found)
                known_rows = np.arange(part.rows).reshape([mask.rows for mask in part.masks])
                taken = tuple(position[hit] for position, hit in zip(found, hits, strict=True))
                index[np.ix_(*hits)] = offset + known_rows[np.ix_(*taken)]
                new = [rest for box in new for rest in _without(box, hits)]
            offset += part.rows
        for box in new:
            part = Product(tuple(mask.take(rows) for mask, rows in zip(product.masks, box, strict=True)))
            index[np.ix_(*box)] = offset + np.arange(part.rows).reshape([len(rows) for rows in box])
            self._parts.append(part)
            offset += part.rows
        return index.reshape(-1)


def _stacked(run: list[Product]) -> LinearMap:
    return run[0] if len(run) == 1 else Stack(tuple(run))


def _columns(product: Product) -> list[tuple[str, ...]]:
    return [mask.attrs for mask in product.masks]


def _positions(mask: Mask, known: Mask) -> Rows:
    """Where each row of a mask stands in another over the same columns; -1 where it does not."""
    places = {key: row for row, key in enumerate(_keys(known))}
    return np.array([places.get(key, -1) for key in _keys(mask)], np.int64)


def _keys(mask: Mask) -> list[bytes]:
    steps = mask.steps
    pairs = np.stack([steps.at, steps.jump], axis=1)
    return [pairs[low:high].tobytes() for low, high in zip(steps.starts, steps.starts[1:], strict=False)]


def _without(box: Box, hits: Box) -> list[Box]:
    """What is left of a box without the box of hits, as boxes that do not overlap."""
    left: list[Box] = []
    head: Box = ()
    for axis, rows in enumerate(box):
        fresh = np.setdiff1d(rows, hits[axis])
        if len(fresh):
            left.append((*head, fresh, *box[axis + 1 :]))
        head = (*head, np.intersect1d(rows, hits[axis]))
    return [one for one in left if all(len(rows) for rows in one)]
