"""Counts of cells in our own memory: what is kept of a table that its server has coded, bounded and counted."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Integers
from bursar.core.domain import Domain, Unit
from bursar.core.extensions.distinct import Distinct, check_counted
from bursar.core.extensions.predicate import Predicate, check_columns
from bursar.core.source.servers.cell_rule import CODING, Keys
from bursar.core.source.source import table_shape
from bursar.errors import QueryError, SourceError

MOST_BYTES = 256 * 2**20
BLOCK = 2**18

Lines = Sequence[Sequence[int]] | Integers
Cells = NDArray[np.unsignedinteger]


def _cell_type(size: int) -> type[np.unsignedinteger]:
    return np.uint8 if size <= 2**8 else np.uint16 if size <= 2**16 else np.uint32


@dataclass(frozen=True)
class Capacity:
    """How many lines there can be, and whether each says whose rows they are; from public sizes."""

    lines: int
    people: bool

    @staticmethod
    def of(domain: Domain, unit: Unit, max_rows: int, most_bytes: int = MOST_BYTES) -> Capacity:
        """People are told apart where that fits; SourceError where not even the cells do."""
        width = 8 + sum(np.dtype(_cell_type(attribute.size)).itemsize for attribute in domain.attributes)
        if unit.column is not None and max_rows * width <= most_bytes:
            return Capacity(max_rows, people=True)
        lines = min(max_rows, domain.cells(domain.names))
        if lines * width > most_bytes:
            raise SourceError(
                f"up to {lines} different rows would have to be kept in memory, and {most_bytes // width} can be: "
                "declare fewer columns, coarser ones, or a smaller max_rows; or keep them in PostgreSQL (source.cells)"
            )
        return Capacity(lines, people=False)


class KeptCells:
    """One line for each cell that occurs, with how many rows it has; where people are kept, one for each row.

    A person is a number that is random and other at every opening. Nothing changes, so threads can share it.
    """

    def __init__(self, domain: Domain, capacity: Capacity, blocks: Iterable[Lines]) -> None:
        """`blocks` are lines (k0, k1, ..., rows) in the order of the first; where people are kept, persons in place of
        rows.

        Edge cases: lines out of order, or more than the capacity, raise ValueError.
        """
        # Pages that are never written to cost nothing.
        self._domain, keys = domain, Keys.of(domain)
        self._cells: dict[str, Cells] = {
            attribute.name: np.empty(capacity.lines, _cell_type(attribute.size)) for attribute in domain.attributes
        }
        last_column = np.empty(capacity.lines, np.int64)
        self._people, self._rows = None, last_column
        if capacity.people:
            self._people, self._rows = last_column, np.broadcast_to(np.int64(1), capacity.lines)
        filled, last = 0, -1
        for block in blocks:
            lines = np.asarray(block, np.int64).T
            if lines[0, 0] < last or np.any(np.diff(lines[0]) < 0):
                raise ValueError("lines are not in their order")
            place, last = slice(filled, filled + len(block)), int(lines[0, -1])
            for name, cells in self._cells.items():
                group, factor = keys.place(name)
                cells[place] = lines[group] // factor % keys.sizes[name]
            last_column[place] = lines[-1]
            filled += len(block)
        self._lines = filled

    def table(self, attrs: tuple[str, ...]) -> Integers:
        """`Source.table`."""
        shape = table_shape(self._domain, attrs)
        counts = np.zeros(math.prod(shape), np.float64)  # whole numbers below 2^53 are exact
        for block in self._blocks():
            cells = np.zeros(block.stop - block.start, np.int64)
            for name, size in zip(attrs, shape, strict=True):
                cells *= size
                cells += self._cells[name][block]
            sums = np.bincount(cells, weights=self._rows[block])
            counts[: sums.size] += sums
        return counts.astype(np.int64).reshape(shape)

    def count(self, predicate: Predicate) -> int:
        """`Source.count`."""
        check_columns(self._domain, predicate)
        inside = (predicate.holds([self._of(name, block) for name in predicate.attrs]) for block in self._blocks())
        return sum(int(self._rows[block][flags].sum()) for block, flags in zip(self._blocks(), inside, strict=True))

    def distinct(self, distinct: Distinct) -> Integers:
        """`Source.distinct`."""
        check_counted(self._domain, distinct)
        everything = slice(0, self._lines)
        if distinct.of is not None:
            what = self._of(distinct.of, everything)
        elif self._people is not None:
            what = self._people[everything]
        else:
            raise QueryError(
                "people cannot be counted: rows have no unit column, or max_rows is too large to keep them"
            )
        return distinct.counted(what, [self._of(name, everything) for name in distinct.groups.attrs])

    def content(self, key: bytes) -> tuple[str, ...]:
        """`Source.content`: a keyed BLAKE2b of the cells of each partition that occur, and how many rows each has."""
        new = np.zeros(self._lines, np.bool_)
        new[:1] = True
        for stored in self._cells.values():
            cells = stored[: self._lines]
            new[1:] |= cells[1:] != cells[:-1]
        starts = np.flatnonzero(new)
        rows = np.add.reduceat(self._rows[: self._lines], starts) if self._lines else self._rows[:0]
        columns = {name: stored[starts] for name, stored in self._cells.items()}
        ends = [0, len(starts)]
        if self._domain.partition is not None:
            ends = np.searchsorted(columns[self._domain.partition], np.arange(self._domain.partitions + 1)).tolist()
        hashes = []
        for place, (low, high) in enumerate(pairwise(ends)):
            digest = hashlib.blake2b(key=key, digest_size=32)
            for part in (CODING.encode(), self._domain.digest.encode(), str(place).encode(), str(high - low).encode()):
                digest.update(len(part).to_bytes(8, "little") + part)
            for column in (*columns.values(), rows):
                digest.update(np.ascontiguousarray(column[low:high], dtype=column.dtype.newbyteorder("<")).tobytes())
            hashes.append(digest.hexdigest())
        return tuple(hashes)

    def _blocks(self) -> Iterator[slice]:
        return (slice(start, min(start + BLOCK, self._lines)) for start in range(0, self._lines, BLOCK))

    def _of(self, name: str, place: slice) -> Integers:
        return self._cells[name][place].astype(np.int64)
