"""The log as a cache of boxes: for every box of cells that was ever counted, the most accurate count of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from itertools import pairwise
from itertools import product as combinations

import numpy as np
from numpy.typing import NDArray

from bursar.core.accounting import Measured, Noise, Refined, Versioned
from bursar.core.domain import Domain
from bursar.core.ledger import Record
from bursar.core.queries import LinearMap, Product, Steps
from bursar.lazy_dataclass import dataclass
from bursar.views.measurements import Columns, products_of

Range = tuple[int, int]
"""Cells [low, high) of one column."""

Box = tuple[Range, ...]
"""One range per column."""

MOST_ROWS = 2**17
"""Blocks with more rows than this are not looked at box by box."""


@dataclass(frozen=True)
class Node:
    """The finest measurement of a box: row `row` of the block that the record at position `block` measured."""

    block: int
    row: int
    noise: Noise
    value: int


@dataclass(frozen=True, eq=False)
class _News:
    """Rows of one product of a block that have new values."""

    block: int
    product: Product
    first: int  # the row of the block where the product starts
    rows: NDArray[np.int64]  # of the product
    noise: Noise
    values: NDArray[np.int64]


@dataclass
class Nodes:
    """A view of the log: per column set, the boxes measured on the current version. Advanced when it is asked.

    Guarantees: a finer measurement of a box takes the place of a coarser one here, never in the log.
    Edge cases: rows that are not one range per column are not here; nor are blocks of more than 2^17 rows.
    """

    domain: Domain
    finest: dict[Columns, dict[Box, Node]] = field(default_factory=dict)
    news: dict[Columns, list[_News]] = field(default_factory=dict)
    strategies: dict[int, LinearMap] = field(default_factory=dict)  # of the blocks

    def advance(self, records: Iterable[Record]) -> None:
        for record in records:
            match record.event:
                case Versioned():
                    self.finest.clear()  # rows are reused within their version only
                    self.news.clear()
                    self.strategies.clear()
                case Measured(strategy=strategy, noise=noise):
                    self.strategies[record.position] = strategy
                    rows = np.arange(strategy.rows) if strategy.rows <= MOST_ROWS else np.zeros(0, np.int64)
                    self._take(record.position, strategy, rows, noise, record.values)
                case Refined(block=block, measured=strategy, rows=rows, after=noise):
                    self._take(block, strategy, rows, noise, record.values)

    def over(self, columns: Columns) -> dict[Box, Node]:
        """The boxes over exactly these columns, which stand in the order of the domain; not to be changed."""
        finest = self.finest.setdefault(columns, {})
        boxes_of: dict[str, list[list[Box]] | None] = {}  # many records measure the same again
        for news in self.news.pop(columns, []):
            digest = news.product.digest
            if digest not in boxes_of:
                boxes_of[digest] = sums_of(news.product, columns, self.domain)
            boxes = boxes_of[digest]
            if boxes is None:
                continue
            variance = news.noise.variance()
            for row, value in zip(news.rows.tolist(), news.values.tolist(), strict=True):
                if len(boxes[row]) != 1:
                    continue
                (box,) = boxes[row]
                old = finest.get(box)
                if old is None or variance < old.noise.variance():
                    finest[box] = Node(block=news.block, row=news.first + row, noise=news.noise, value=value)
        return finest

    def _take(
        self, block: int, strategy: LinearMap, rows: NDArray[np.int64], noise: Noise, values: NDArray[np.int64]
    ) -> None:
        first = 0
        for part in products_of(strategy):
            inside = (first <= rows) & (rows < first + part.rows)
            if inside.any():
                columns = self.domain.ordered(part.attrs)
                news = _News(block, part, first, rows[inside] - first, noise, values[inside])
                self.news.setdefault(columns, []).append(news)
            first += part.rows


def boxes_of(product: Product, columns: Columns, domain: Domain) -> list[Box] | None:
    """The rows of a product as boxes over the given columns; None where `sums_of` is, or a row is not one box."""
    sums = sums_of(product, columns, domain)
    return None if sums is None or any(len(row) != 1 for row in sums) else [row[0] for row in sums]


def sums_of(product: Product, columns: Columns, domain: Domain) -> list[list[Box]] | None:
    """Each row of a product as a sum of disjoint boxes over the given columns, all of a column that it is not about.

    None where a row is not made of zeros and ones, or a mask is about several columns at once.
    """
    if any(len(mask.attrs) != 1 for mask in product.masks):
        return None
    names = [mask.attrs[0] for mask in product.masks]
    runs = [ranges for mask in product.masks if (ranges := runs_of(mask.steps)) is not None]
    if len(runs) < len(names):
        return None
    place_of = dict(zip(names, range(len(names)), strict=True))
    whole = [(0, domain[name].size) for name in columns]
    places = [place_of.get(name, -1) for name in columns]

    def box(ranges: Box) -> Box:
        return tuple(ranges[place] if place >= 0 else whole[i] for i, place in enumerate(places))

    return [[box(ranges) for ranges in combinations(*row)] for row in combinations(*runs)]


def ranges_of(steps: Steps) -> list[Range] | None:
    """The rows as ranges [low, high) of cells; None where one of them is not a single run of ones."""
    runs = runs_of(steps)
    return None if runs is None or any(len(row) != 1 for row in runs) else [row[0] for row in runs]


def runs_of(steps: Steps) -> list[list[Range]] | None:
    """The ones of each row as ranges [low, high) of cells; None where there is anything but zeros and ones."""
    if not np.all((steps.levels == 0) | (steps.levels == 1)):
        return None
    runs: list[list[Range]] = []
    at = steps.at.tolist()
    for first, end in pairwise(steps.starts.tolist()):
        ends = at[first:end] if (end - first) % 2 == 0 else [*at[first:end], steps.size]
        runs.append(list(zip(ends[::2], ends[1::2], strict=True)))
    return runs
