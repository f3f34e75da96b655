"""Several products one below the other, without asking for any row twice."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bursar.errors import QueryError
from bursar.queries import LinearMap, Mask, Predicate, Product, Stack

Rows = NDArray[np.int64]
Box = tuple[Rows, ...]
"""Some rows of each mask of a product: together, the rows of the product that combine them."""


class SharedRows:
    """A growing stack. Rows are the same when they are the same in form: mask by mask, number by number.

    Edge cases: a predicate is asked for by itself, and refused beside anything else.
    """

    def __init__(self) -> None:
        self._parts: list[Product] = []
        self._alone: tuple[Predicate, int] | None = None  # with its place in the text

    def map(self) -> LinearMap:
        """All rows so far: a single product as it is, a stack otherwise, with no part at all for no row."""
        if self._alone is not None:
            return self._alone[0]
        return self._parts[0] if len(self._parts) == 1 else Stack(tuple(self._parts))

    def alone(self, predicate: Predicate, position: int) -> int:
        """The row of a predicate, the only one."""
        known = self._alone
        if self._parts or (known is not None and known[0].digest != predicate.digest):
            raise _beside_others(predicate, position)
        self._alone = predicate, position
        return 0

    def place(self, product: Product) -> Rows:
        """The row of the stack that each row of the product is; rows that are new are put at the end."""
        if self._alone is not None:
            raise _beside_others(*self._alone)
        shape = tuple(mask.rows for mask in product.masks)
        index = np.full(shape, -1, np.int64)
        new: list[Box] = [tuple(np.arange(rows) for rows in shape)]
        offset = 0
        for part in self._parts:
            if [mask.attrs for mask in part.masks] == [mask.attrs for mask in product.masks]:
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


def _beside_others(predicate: Predicate, position: int) -> QueryError:
    tied = " and ".join(predicate.attrs)
    return QueryError(f"a count that ties {tied} together is asked by itself, one to a question", position=position)


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
