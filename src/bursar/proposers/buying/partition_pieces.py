"""Questions about windows of partitions, taken apart: what each row asks of each partition, and put together again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bursar.tails.grouped_rows import GroupedRows, Term, Terms
from bursar.views.partition_measurements import Integers, Reals, Shelf
from bursar.views.measurements import products_of
from bursar.core.accounting import Mode, Noise, NoiseKind
from bursar.core.queries import LinearMap, Product

MOST_ROWS = 2048
"""Most answers of a question that is put together partition by partition."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Piece:
    """Rows of a question: windows of partitions, each with every row of a product over the other columns."""

    windows: Integers  # (windows, partitions)
    rest: Product
    shape: tuple[int, ...]  # rows of each mask of the question's product
    place: int  # of the windows among them

    def arranged(self, grid: NDArray[Any]) -> NDArray[Any]:
        """An array of (windows, rows of the rest) in the order of the workload's rows."""
        rest = [rows for place, rows in enumerate(self.shape) if place != self.place]
        return np.moveaxis(grid.reshape(len(self.windows), *rest), 0, self.place).reshape(-1)


@dataclass(frozen=True, kw_only=True, eq=False)
class Asked:
    """A piece with the weights of its rows on a strategy."""

    piece: Piece
    weights: Reals
    sizes: tuple[tuple[tuple[float, int], ...], ...]  # per row of the rest: the different |weights|, and how many


def pieces_of(wanted: LinearMap, column: str | None) -> list[Piece] | None:
    """The question by products; None where it is not windows of partitions times other columns."""
    products = products_of(wanted)
    if column is None or not 1 <= wanted.rows <= MOST_ROWS or sum(part.rows for part in products) < wanted.rows:
        return None
    pieces = []
    for part in products:
        own = [mask for mask in part.masks if column in mask.attrs]
        if len(own) != 1 or own[0].attrs != (column,):
            return None
        (mask,) = own
        rest = Product(tuple(other for other in part.masks if other is not mask))
        windows = mask.steps.at_cells(np.arange(mask.sizes[0]))
        shape = tuple(each.rows for each in part.masks)
        pieces.append(Piece(windows=windows, rest=rest, shape=shape, place=part.masks.index(mask)))
    return pieces


def law_of(asked: Sequence[Asked], shelf: Shelf, mode: Mode) -> GroupedRows:
    """How far off the answers are that a shelf gives; every partition that is asked about must be there."""
    kind = NoiseKind.LAPLACE if mode is Mode.PURE else NoiseKind.GAUSSIAN
    rows: list[Terms] = []
    for part in asked:
        grid = np.empty((len(part.piece.windows), len(part.sizes)), object)
        for place, window in enumerate(part.piece.windows):
            used = np.flatnonzero(window)
            found, counts = np.unique(
                np.stack([np.abs(window[used]), shelf.scales[used], shelf.merged[used]]), axis=1, return_counts=True
            )
            for row, sizes in enumerate(part.sizes):
                grid[place, row] = tuple(
                    Term(times * size, Noise(kind=kind, scale=scale), count * number, bool(merged))
                    for (times, scale, merged), count in zip(found.T.tolist(), counts.tolist(), strict=True)
                    for size, number in sizes
                )
        rows += part.piece.arranged(grid).tolist()
    return GroupedRows(rows=tuple(rows))


def values_of(asked: Sequence[Asked], shelf: Shelf) -> Reals:
    """The answers that a shelf gives."""
    made = [part.piece.arranged((part.piece.windows @ shelf.values) @ part.weights.T) for part in asked]
    return np.concatenate(made)
