"""Threshold queries: r of k columns have given values; a query for every choice of values, none of them written out."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np

from bursar.arrays import Integers
from bursar.core.extensions.pairs import PAIR_CELLS, outer, sliced
from bursar.core.queries.linear_map import Counts, Header, Norm
from bursar.core.queries.mask import LARGEST_JOINT, Mask, Steps
from bursar.errors import QueryError

LARGEST_TABLE = 2**26
"""Most joint cells of the columns, whose table is read as a whole."""

MOST_MATCHED = 10
"""Most columns: an answer is made of the counts over all sets of at least `least` of them."""

LARGEST_DENSE = 2**22
"""Most numbers that chosen rows are written out in, where every pair of cells is compared."""


class Written(Norm):
    """The norm of rows of 0 and 1 that are written out as one mask."""

    def largest_pair(self) -> int:
        return min(super().largest_pair(), self.masks[0].rows)


@dataclass(frozen=True, eq=False)
class Hits(Norm):
    """How many of some rows of 0 and 1 hit each cell: the outer product of `factors`, one for each mask.

    The masks only name the columns. `shared` says how many rows at least hit both of two cells, by the columns on which
    they agree: one axis per column, 1 where they do.
    """

    factors: tuple[Integers, ...]
    shared: Integers
    rows: int

    @cached_property
    def vectors(self) -> tuple[Integers, ...]:
        return self.factors

    def largest_pair(self) -> int:
        return min(2 * (self.largest() - int(self.shared.min())), self.rows)

    def at(self, column: str, cell: int) -> Hits:
        if column not in self.columns:
            return self
        masks, factors = [], []
        for mask, factor in zip(self.masks, self.factors, strict=True):
            has_column = column in mask.attrs
            table = factor.reshape(mask.sizes)
            factors.append(table.take(cell, mask.attrs.index(column)).ravel() if has_column else factor)
            masks.append(sliced(mask, column, cell) if has_column else mask)
        shared = np.asarray(self.shared.take(1, self.columns.index(column)))
        return replace(self, masks=tuple(masks), factors=tuple(factors), shared=shared)

    def slices(self, column: str, size: int) -> list[tuple[Norm, Integers]]:
        if column not in self.columns:
            return [(self, np.arange(size))]
        equal: dict[tuple[bytes, ...], tuple[Norm, list[int]]] = {}
        for cell in range(size):
            norm = self.at(column, cell)
            equal.setdefault(tuple(factor.tobytes() for factor in norm.factors), (norm, []))[1].append(cell)
        return [(norm, np.array(cells)) for norm, cells in equal.values() if norm.largest() > 0]

    def pairs(self) -> Integers | None:
        """At least sum_j |q_j(v) - q_j(w)| for all pairs of cells; None where there are more than 2,048 cells."""
        sizes = tuple(size for part in self.sizes for size in part)
        cells = math.prod(sizes)
        if cells > PAIR_CELLS:
            return None
        agree = np.zeros((cells, cells), np.int64)
        for values in np.unravel_index(np.arange(cells), sizes) if sizes else ():
            agree = 2 * agree + (values[:, None] == values[None, :])
        norm = outer(list(self.factors)).ravel()
        apart: Integers = np.minimum(norm[:, None] + norm[None, :] - 2 * self.shared.ravel()[agree], self.rows)
        np.fill_diagonal(apart, 0)
        return apart


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Row y counts whoever agrees with y in at least `least` of the columns `attrs`; RAP, Def. 2.4.

    q_y(v) = 1 if |{i : v_i = y_i}| >= least, else 0; y runs through all joint cells with the last column fastest, or
    through the `chosen` ones in their order. All of k columns: a marginal; one of them: k-way disjunctions.

    Guarantees: answers are exact; the norms are exact for all rows, and for chosen rows where the columns have at most
    2^20 joint cells, else too high rather than too low.
    Edge cases: more than 2^26 joint cells or 10 columns are refused, and chosen rows that are not there.
    """

    attrs: tuple[str, ...]
    sizes: tuple[int, ...]
    least: int
    chosen: Integers | None = None

    def __post_init__(self) -> None:
        named = all(isinstance(name, str) for name in self.attrs) and len(set(self.attrs)) == len(self.attrs)
        whole = all(type(size) is int and size > 0 for size in self.sizes)
        if not (named and whole) or len(self.attrs) != len(self.sizes):
            raise QueryError("a threshold does not fit the columns it is for")
        if type(self.least) is not int or not 1 <= self.least <= len(self.attrs):
            raise QueryError("a threshold asks for at least one of its columns, and at most for all of them")
        if len(self.attrs) > MOST_MATCHED:
            raise QueryError(f"a threshold is over {len(self.attrs)} columns; {MOST_MATCHED} are possible")
        if self.cells > LARGEST_TABLE:
            together = " and ".join(self.attrs)
            raise QueryError(f"thresholds over {together} have {self.cells} joint cells; {LARGEST_TABLE} are possible")
        if self.chosen is not None:
            chosen = np.array(self.chosen)
            if chosen.dtype != np.int64 or chosen.ndim != 1 or np.any(chosen < 0) or np.any(chosen >= self.cells):
                raise QueryError("a row is taken that is not there")
            chosen.setflags(write=False)
            object.__setattr__(self, "chosen", chosen)

    @property
    def cells(self) -> int:
        return math.prod(self.sizes)

    @property
    def rows(self) -> int:
        return self.cells if self.chosen is None else len(self.chosen)

    @cached_property
    def digest(self) -> str:
        from bursar.core.queries.map_codec import encode  # the codec knows every kind of map

        return hashlib.blake2b(encode(self), digest_size=16).hexdigest()

    def packed(self) -> tuple[Header, list[Integers]]:
        """What its bytes say, among those of products: a shape, and the chosen rows if there are any."""
        shape = {"attrs": self.attrs, "sizes": self.sizes, "least": self.least}
        if self.chosen is None:
            return {**shape, "chosen": None}, []
        return {**shape, "chosen": len(self.chosen)}, [self.chosen]

    @staticmethod
    def unpacked(shape: Header, numbers: Integers) -> Thresholds:
        """The thresholds of a shape, whose chosen rows are the last numbers."""
        chosen = None if shape["chosen"] is None else numbers[len(numbers) - shape["chosen"] :]
        return Thresholds(tuple(shape["attrs"]), tuple(shape["sizes"]), shape["least"], chosen)

    def apply(self, counts: Counts) -> Integers:
        return self._answers(counts(self.attrs))

    def _answers(self, table: Integers) -> Integers:
        """sum_{i=r}^k (-1)^(i-r) C(i-1, i-r) times the counts over each i columns; RAP, Def. 4.4 summed over people."""
        k = len(self.sizes)
        rows = () if self.chosen is None else np.unravel_index(self.chosen, self.sizes)
        answers = np.zeros(self.sizes if self.chosen is None else self.rows, np.int64)
        marginals = {tuple(range(k)): table}  # over so many columns, one value long along the others
        for size in range(k, self.least - 1, -1):
            if size < k:
                marginals = {columns: _summed(marginals, columns) for columns in combinations(range(k), size)}
            times = (-1) ** (size - self.least) * math.comb(size - 1, size - self.least)
            for columns, marginal in marginals.items():
                answers += times * marginal[tuple(row if i in columns else 0 for i, row in enumerate(rows))]
        return answers.ravel()

    def norms(self, power: int) -> tuple[Norm, ...]:
        return (self._norms[power],)

    @cached_property
    def _norms(self) -> dict[int, Norm]:
        """Priced over and over while a plan is made, so computed once; 0 and 1 are their own powers."""
        return {power: self._norm(power) for power in (1, 2)}

    def _norm(self, power: int) -> Norm:
        shared = _shared(self.sizes, self.least)
        hits = int(shared.flat[-1])
        if self.chosen is not None:
            if self.cells <= PAIR_CELLS and self.rows * self.cells <= LARGEST_DENSE:
                return Written((Mask(self.attrs, self.sizes, Steps.dense(self._dense(self.chosen))),), power)
            shared = np.zeros_like(shared)
            if self.cells <= LARGEST_JOINT:
                # y hits v where v hits y: how many rows hit a cell is how many people in these rows a cell would count.
                rows = np.bincount(self.chosen, minlength=self.cells).reshape(self.sizes)
                whole = Mask(self.attrs, self.sizes, Steps.total(self.cells))
                return Hits((whole,), power, (replace(self, chosen=None)._answers(rows),), shared, self.rows)
            often = int(np.unique(self.chosen, return_counts=True)[1].max())
            hits = min(often * hits, self.rows)
        columns = zip(self.attrs, self.sizes, strict=True)
        masks = (Mask((), (), Steps.total(1)), *(Mask((name,), (size,), Steps.total(size)) for name, size in columns))
        factors = (np.array([hits]), *(np.ones(size, np.int64) for size in self.sizes))
        return Hits(masks, power, factors, shared, self.rows)

    def _dense(self, chosen: Integers) -> Integers:
        """q_y(v) for the chosen rows y and all cells v."""
        places = zip(*(np.unravel_index(cells, self.sizes) for cells in (chosen, np.arange(self.cells))), strict=True)
        matches = np.zeros((len(chosen), self.cells), np.int64)
        for row_values, values in places:
            matches += row_values[:, None] == values[None, :]
        return (matches >= self.least).astype(np.int64)

    def largest(self) -> int:
        return 1

    def take(self, rows: Sequence[int] | Integers) -> Thresholds:
        places = np.asarray(rows, np.int64)
        if np.any(places < 0) or np.any(places >= self.rows):
            raise QueryError("a row is taken that is not there")
        return replace(self, chosen=places if self.chosen is None else self.chosen[places])


def _summed(marginals: dict[tuple[int, ...], Integers], columns: tuple[int, ...]) -> Integers:
    """The counts over some columns, from those over any one column more."""
    wider = next(names for names in marginals if set(columns) < set(names))
    (gone,) = set(wider) - set(columns)
    summed: Integers = marginals[wider].sum(axis=gone, keepdims=True)
    return summed


def _shared(sizes: Sequence[int], least: int) -> Integers:
    """How many rows hit both of two cells, by the columns on which these agree: one axis per column, 1 where they do.

    Rows are counted by how many of the columns so far they have in common with either cell. Two values of a column that
    has only one always agree.
    """
    k = len(sizes)
    ways = np.zeros((1, k + 1, k + 1), np.int64)
    ways[0, 0, 0] = 1
    for size in sizes:
        agree, differ = (size - 1) * ways, (size - 2) * ways
        agree[:, 1:, 1:] += ways[:, :-1, :-1]
        differ[:, 1:, :] += ways[:, :-1, :]
        differ[:, :, 1:] += ways[:, :, :-1]
        ways = np.stack([differ if size > 1 else agree, agree], axis=1).reshape(-1, k + 1, k + 1)
    both: Integers = ways[:, least:, least:].sum(axis=(1, 2)).reshape((2,) * k)
    return both
