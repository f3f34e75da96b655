"""Deduplicated rows of a question, and maps that are measured part by part: counts that tie many columns together."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Integers
from bursar.core.queries import Counts, Distinct, LinearMap, Mask, Norm, PerPerson, Predicate, Product, Stack
from bursar.errors import QueryError
from bursar.lazy_dataclass import dataclass

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


def some_of(whole: LinearMap, rows: Integers) -> LinearMap:
    """Some rows of a map, in its order, and in as few pieces as they are there.

    A product without some rows of a mask is one still.
    """
    if isinstance(whole, Product):
        return _stacked(_some_of_product(whole, rows))
    if not isinstance(whole, Stack | PartwiseMap):
        return whole.take(rows.tolist())
    ends = np.cumsum([0, *(part.rows for part in whole.parts)]).tolist()
    pairs = zip(whole.parts, pairwise(ends), strict=True)
    inside = [(part, rows[(rows >= low) & (rows < high)] - low) for part, (low, high) in pairs]
    needed = [(part, some) for part, some in inside if len(some)]
    if isinstance(whole, PartwiseMap):
        parts = tuple(some_of(part, some) for part, some in needed)
        return parts[0] if len(parts) == 1 else PartwiseMap(parts)
    products = [(part, some) for part, some in needed if isinstance(part, Product)]
    if len(products) < len(needed):  # thresholds, of which there is a kind of their own
        return whole.take(rows.tolist())
    return _stacked([product for part, some in products for product in _some_of_product(part, some)])


def _some_of_product(whole: Product, rows: Integers) -> list[Product]:
    """As one product, where they are all combinations of some rows of its masks."""
    if len(rows) == whole.rows:
        return [whole]
    chosen = [np.unique(place) for place in np.unravel_index(rows, [mask.rows for mask in whole.masks])]
    if math.prod(map(len, chosen)) > len(rows):
        return [whole.row(row) for row in rows.tolist()]
    return [Product(tuple(mask.take(some) for mask, some in zip(whole.masks, chosen, strict=True)))]


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
    if any(isinstance(piece, Distinct | PerPerson) for piece in pieces_of(whole)):
        raise QueryError("what counts people or values once is asked by itself, not in a batch")
    if isinstance(whole, PartwiseMap | Predicate):
        tied = " and ".join(whole.attrs)
        raise QueryError(f"a count that ties {tied} together is asked by itself, not in a batch")


SharedPart = Product | Predicate | Distinct | PerPerson

Rows = NDArray[np.int64]
Columns = tuple[tuple[str, ...], ...]
"""The columns of each mask of a product."""

Box = tuple[Rows, ...]
"""Some rows of each mask of a product: together, the rows of the product that combine them."""


class SharedRows:
    """A growing stack without duplicate rows: those that are equal mask by mask, number by number."""

    def __init__(self) -> None:
        self._parts: list[SharedPart] = []
        self._unread: list[int] = []  # products whose rows nothing was compared with so far
        self._places: dict[int, list[dict[bytes, int]]] = {}  # of products, by mask: the place of each of their rows
        self._starts: list[int] = []  # the first row of each part
        self._rows = 0
        self._same_columns: dict[Columns, list[int]] = {}  # the products over the same columns
        self._single: dict[tuple[Columns, bytes], int] = {}  # the row of each row of products of one mask
        self._having: dict[tuple[Columns, int, bytes], list[int]] = {}  # those that have a row in one of their masks
        self._tied: dict[str, int] = {}  # the row of each predicate
        self._alone: dict[str, int] = {}  # the first row of each map that is measured by itself

    def map(self) -> LinearMap:
        """All rows so far: a single map as it is, products as a stack, with no part at all for no row.

        Predicates and distinct counts beside anything else are measured one by one, and runs of products between them
        as a stack each.
        """
        if len(self._parts) == 1:
            return self._parts[0]
        runs: list[LinearMap | list[Product]] = []
        for part in self._parts:
            if not isinstance(part, Product):
                runs.append(part)
            elif runs and isinstance(runs[-1], list):
                runs[-1].append(part)
            else:
                runs.append([part])
        if not (self._tied or self._alone):
            return Stack(tuple(part for part in self._parts if isinstance(part, Product)))
        return PartwiseMap(tuple(_stacked(run) if isinstance(run, list) else run for run in runs))

    def alone(self, people: Distinct | PerPerson) -> Rows:
        """The rows of a map that is measured by itself; one that is new is put at the end."""
        if people.digest not in self._alone:
            self._alone[people.digest] = self._rows
            self._append(people)
        return self._alone[people.digest] + np.arange(people.rows)

    def tied(self, predicate: Predicate | Distinct, position: int) -> int:
        """The row of a predicate, or of a distinct count under one; what is new is put at the end."""
        if predicate.digest not in self._tied:
            if len(self._tied) == MOST_GROUPS:
                raise too_many_tied(predicate.attrs, position)
            self._tied[predicate.digest] = self._rows
            self._append(predicate)
        return self._tied[predicate.digest]

    def place(self, product: Product) -> Rows:
        """The row of the stack that each row of the product is; rows that are new are put at the end."""
        if not self._parts:
            self._append(product)
            return np.arange(product.rows)
        for number in self._unread:
            self._read(number)
        self._unread.clear()
        shape = tuple(mask.rows for mask in product.masks)
        keys = [_row_keys(mask) for mask in product.masks]
        index = np.full(shape, -1, np.int64)
        new: list[Box] = [tuple(np.arange(rows) for rows in shape)]
        columns = _columns(product)
        if len(keys) == 1:
            index = np.array([self._single.get((columns, key), -1) for key in keys[0]], np.int64)
            new = [(np.flatnonzero(index < 0),)] if np.any(index < 0) else []
        for number in self._candidates(columns, keys) if len(keys) != 1 else ():
            positions = [
                np.array([row_of_key.get(key, -1) for key in mask], np.int64)
                for mask, row_of_key in zip(keys, self._places[number], strict=True)
            ]
            shared = tuple(np.flatnonzero(position >= 0) for position in positions)
            if all(map(len, shared)):
                part = self._parts[number]
                assert isinstance(part, Product)
                rows = self._starts[number] + np.arange(part.rows).reshape([mask.rows for mask in part.masks])
                there = tuple(position[hits] for position, hits in zip(positions, shared, strict=True))
                index[np.ix_(*shared)] = rows[np.ix_(*there)]
                new = [left for box in new for left in _without(box, [position >= 0 for position in positions])]
        for box in new:
            masks = (m if len(rows) == m.rows else m.take(rows) for m, rows in zip(product.masks, box, strict=True))
            part = Product(tuple(masks))
            index[np.ix_(*box)] = self._rows + np.arange(part.rows).reshape([len(rows) for rows in box])
            self._append(part)
        return index.reshape(-1)

    def _candidates(self, columns: Columns, keys: Sequence[Sequence[bytes]]) -> list[int]:
        """Products that may have rows in common with one: by the mask whose rows the fewest others have.

        A question with many conditions has as many products, and comparing each with each takes the square.
        """
        by_mask = ([self._having.get((columns, axis, key), []) for key in mask] for axis, mask in enumerate(keys))
        fewest = min(by_mask, key=lambda numbers: sum(map(len, numbers)), default=[self._same_columns.get(columns, [])])
        return sorted(set(chain.from_iterable(fewest)))

    def _append(self, part: SharedPart) -> None:
        if isinstance(part, Product):
            self._unread.append(len(self._parts))
        self._parts.append(part)
        self._starts.append(self._rows)
        self._rows += part.rows

    def _read(self, number: int) -> None:
        """Make the rows of a product ready to be found."""
        part = self._parts[number]
        assert isinstance(part, Product)
        columns, keys = _columns(part), [_row_keys(mask) for mask in part.masks]
        if len(keys) == 1:
            self._single.update({(columns, key): self._starts[number] + row for row, key in enumerate(keys[0])})
            return
        self._same_columns.setdefault(columns, []).append(number)
        self._places[number] = [{key: row for row, key in enumerate(mask)} for mask in keys]
        for axis, row_of_key in enumerate(self._places[number]):
            for key in row_of_key:
                self._having.setdefault((columns, axis, key), []).append(number)


def _stacked(run: list[Product]) -> LinearMap:
    return run[0] if len(run) == 1 else Stack(tuple(run))


def _columns(product: Product) -> Columns:
    return tuple(mask.attrs for mask in product.masks)


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
