"""Several maps one below the other, without asking for any row twice."""

from __future__ import annotations

from collections.abc import Sequence

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
        self._places: list[list[dict[bytes, int]]] = []  # of each part, by mask: the place of each of its rows
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
            self._append(predicate)
        return self._tied[predicate.digest]

    def place(self, product: Product) -> Rows:
        """The row of the stack that each row of the product is; rows that are new are put at the end."""
        shape = tuple(mask.rows for mask in product.masks)
        keys = [_row_keys(mask) for mask in product.masks]
        index = np.full(shape, -1, np.int64)
        new: list[Box] = [tuple(np.arange(rows) for rows in shape)]
        offset = 0
        for part, places in zip(self._parts, self._places, strict=True):
            if isinstance(part, Product) and _columns(part) == _columns(product):
                positions = [
                    np.array([known.get(key, -1) for key in mask], np.int64)
                    for mask, known in zip(keys, places, strict=True)
                ]
                shared = tuple(np.flatnonzero(position >= 0) for position in positions)
                if all(map(len, shared)):
                    rows = np.arange(part.rows).reshape([mask.rows for mask in part.masks])
                    there = tuple(position[hits] for position, hits in zip(positions, shared, strict=True))
                    index[np.ix_(*shared)] = offset + rows[np.ix_(*there)]
                    new = [left for box in new for left in _without(box, [position >= 0 for position in positions])]
            offset += part.rows
        for box in new:
            part = Product(tuple(mask.take(rows) for mask, rows in zip(product.masks, box, strict=True)))
            index[np.ix_(*box)] = offset + np.arange(part.rows).reshape([len(rows) for rows in box])
            self._append(part)
            offset += part.rows
        return index.reshape(-1)

    def _append(self, part: Product | Predicate) -> None:
        masks = part.masks if isinstance(part, Product) else ()
        self._parts.append(part)
        self._places.append([{key: row for row, key in enumerate(_row_keys(mask))} for mask in masks])


def _stacked(run: list[Product]) -> LinearMap:
    return run[0] if len(run) == 1 else Stack(tuple(run))


def _columns(product: Product) -> list[tuple[str, ...]]:
    return [mask.attrs for mask in product.masks]


def _row_keys(mask: Mask) -> list[bytes]:
    """Each row of a mask in a form that can be looked up."""
    steps = mask.steps
    pairs = np.stack([steps.at, steps.jump], axis=1)
    return [pairs[low:high].tobytes() for low, high in zip(steps.starts, steps.starts[1:], strict=False)]


def _without(box: Box, shared: Sequence[NDArray[np.bool_]]) -> list[Box]:
    """What is left of a box without the rows that are shared along every axis, as boxes that do not overlap."""
    left: list[Box] = []
    head: Box = ()
    for axis, rows in enumerate(box):
        inside = shared[axis][rows]
        left.append((*head, rows[~inside], *box[axis + 1 :]))
        head = (*head, rows[inside])
    return [part for part in left if all(map(len, part))]
