"""Deduplicated rows of a question, and maps that are measured part by part: counts that tie many columns together."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Integers
from bursar.core.queries import Counts, LinearMap, Mask, Norm, Predicate, Product, Stack
from bursar.errors import QueryError

MOST_GROUPS = 64
"""Most counts of one question that tie too many columns together for a mask: groups times counts.

Each is counted by the source, and committed, by itself.
"""


@dataclass(frozen=True, eq=False)
class PartwiseMap:
    """The rows of all parts in order. No verb takes it: what is measured are its parts.

    Where `times` are given, the rows are multiples of those of the parts. A part is measured as it is even so, with so
    many times less noise, and the norms are those of the parts.

    Guarantees: no accountant has a price for it, so that the kernel refuses it as a whole.
    """

    parts: tuple[LinearMap, ...]
    times: tuple[int, ...] = ()  # one per part; () where all are 1

    @cached_property
    def attrs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for part in self.parts for name in part.attrs))

    @property
    def measured(self) -> list[tuple[LinearMap, int]]:
        """Each part, and what its rows are taken times."""
        return list(zip(self.parts, self.times or (1,) * len(self.parts), strict=True))

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts)

    @cached_property
    def digest(self) -> str:
        text = f"apart {self.times} " + " ".join(part.digest for part in self.parts)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def apply(self, counts: Counts) -> Integers:
        return np.concatenate([times * part.apply(counts) for part, times in self.measured])

    def norms(self, power: int) -> tuple[Norm, ...]:
        return tuple(norm for part in self.parts for norm in part.norms(power))

    def largest(self) -> int:
        return max(times * part.largest() for part, times in self.measured)

    def take(self, rows: Sequence[int]) -> LinearMap:
        ends = np.cumsum([part.rows for part in self.parts])
        picked: list[tuple[LinearMap, int]] = []
        for row in rows:
            place = min(int(np.searchsorted(ends, row, side="right")), len(self.parts) - 1)
            part, times = self.measured[place]
            picked.append((part.take([row - int(ends[place]) + part.rows]), times))
        if len(picked) == 1 and picked[0][1] == 1:
            return picked[0][0]
        return PartwiseMap(tuple(part for part, _ in picked), tuple(times for _, times in picked) if self.times else ())


def pieces_of(whole: LinearMap) -> tuple[LinearMap, ...]:
    """The products, predicates and others that a map is made of, in the order of its rows."""
    if isinstance(whole, PartwiseMap):
        return tuple(piece for part in whole.parts for piece in pieces_of(part))
    return whole.parts if isinstance(whole, Stack) else (whole,)


def put_together(pieces: Iterable[LinearMap]) -> LinearMap:
    """Pieces as one map, each once: products as a stack, in front, and what is measured by itself behind it.

    Edge cases: refused where more than MOST_GROUPS pieces are counted one by one.
    """
    every = {piece.digest: piece for piece in pieces}
    stacked = Stack(tuple(piece for piece in every.values() if isinstance(piece, Product)))
    alone = tuple(piece for piece in every.values() if not isinstance(piece, Product))
    if len(alone) > MOST_GROUPS:
        raise too_many_tied(alone[0].attrs, -1)
    if not alone:
        return stacked
    parts = (stacked, *alone) if stacked.parts else alone
    return parts[0] if len(parts) == 1 else PartwiseMap(parts)


def too_many_tied(attrs: Iterable[str], position: int) -> QueryError:
    """The refusal of more than MOST_GROUPS counts that are measured one by one; each group is such a count."""
    return QueryError(
        f"counts that tie {' and '.join(attrs)} together are counted one by one, and this asks for more than "
        f"{MOST_GROUPS} of them: groups times counts",
        position=position,
    )


def check_batch(whole: LinearMap) -> None:
    """Refuse among questions that are one purchase, as those of a seed are, what has to be bought by itself."""
    if isinstance(whole, PartwiseMap | Predicate):
        tied = " and ".join(whole.attrs)
        raise QueryError(f"a count that ties {tied} together is asked by itself, not in a batch")


Rows = NDArray[np.int64]
Box = tuple[Rows, ...]
"""Some rows of each mask of a product: together, the rows of the product that combine them."""


class SharedRows:
    """A growing stack without duplicate rows: those that are equal mask by mask, number by number."""

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
                    np.array([row_of_key.get(key, -1) for key in mask], np.int64)
                    for mask, row_of_key in zip(keys, places, strict=True)
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
