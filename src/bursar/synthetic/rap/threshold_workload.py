"""Threshold queries (RAP, sections 2.3 and 4.2): workloads of millions by number, and their polynomial surrogates.

A relaxed row has a number from 0 to 1 for every value of every column. The r-of-k threshold query for k values reads
the k numbers x_1 .. x_k of these values; on a one-hot row they say which of the k values the row has. All surrogates
below are the same polynomial: of degree at most 1 in each variable, and so determined by its values on {0, 1}^k.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import combinations, groupby, pairwise
from operator import add, mul

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Integers, Reals
from bursar.core.domain import Domain
from bursar.core.extensions.pairs import PAIR_CELLS
from bursar.core.queries import LinearMap, Mask, Product, Stack, Steps, Thresholds
from bursar.core.source.source import MOST_ROWS
from bursar.errors import QueryError

MOST_TOGETHER = 5
"""Most columns of one set: the surrogate of a query has up to 2^k products."""


@dataclass(frozen=True, kw_only=True)
class ThresholdWorkload:
    """All r-of-k threshold queries over each of several sets of columns (RAP, Def. 2.4).

    Query numbers run through the sets in order, and in a set through the joint values, the last column fastest. They
    are the row numbers of `candidates`. `least` is r; None stands for all columns of each set, that is, marginals.
    """

    names: tuple[str, ...]  # every column of the synthetic table
    sizes: tuple[int, ...]
    sets: tuple[tuple[str, ...], ...]
    least: int | None = None

    def __post_init__(self) -> None:
        if len(self.names) != len(self.sizes) or len(set(self.names)) != len(self.names) or min(self.sizes) < 1:
            raise QueryError("every column of a workload has a name of its own and at least one value")
        if not self.sets:
            raise QueryError("a workload needs at least one set of columns")
        for names in self.sets:
            if not set(names) <= set(self.names) or len(set(names)) != len(names):
                raise QueryError("a set of columns names columns of the table, each once")
            if not (1 if self.least is None else self.least) <= len(names) <= MOST_TOGETHER:
                raise QueryError(f"a set has as many columns as must agree, and at most {MOST_TOGETHER}")
        if self.least is not None and self.least < 1:
            raise QueryError("at least one column must agree")

    @staticmethod
    def of(domain: Domain, sets: Iterable[Sequence[str]], least: int | None = None) -> ThresholdWorkload:
        """A workload over the columns of a domain."""
        names = domain.names
        return ThresholdWorkload(
            names=names, sizes=domain.sizes(names), sets=tuple(tuple(columns) for columns in sets), least=least
        )

    @cached_property
    def size_of(self) -> dict[str, int]:
        """The number of values of each column."""
        return dict(zip(self.names, self.sizes, strict=True))

    @cached_property
    def first_of(self) -> dict[str, int]:
        """Where the numbers of each column begin in a relaxed row."""
        return dict(zip(self.names, np.cumsum([0, *self.sizes[:-1]]).tolist(), strict=True))

    @property
    def width(self) -> int:
        """d', the length of a one-hot row."""
        return sum(self.sizes)

    def shape(self, names: Iterable[str]) -> tuple[int, ...]:
        """The numbers of values of some columns, in their order."""
        return tuple(self.size_of[name] for name in names)

    @cached_property
    def starts(self) -> Integers:
        """The number of each set's first query, and at the end the number of all."""
        return np.cumsum([0, *(math.prod(self.shape(names)) for names in self.sets)])

    @property
    def queries(self) -> int:
        """m, the number of all queries."""
        return int(self.starts[-1])

    @property
    def together(self) -> int:
        """To how many places all queries are padded: the largest k, for marginals at least 3, the quickest."""
        largest = max(len(names) for names in self.sets)
        return max(largest, 3) if self.least is None else largest

    @property
    def agreeing(self) -> int:
        """r of the padded queries."""
        return self.together if self.least is None else self.least

    @property
    def padding(self) -> float:
        """What padded places hold: a value that always agrees in marginals, one that never does in thresholds."""
        return 1.0 if self.least is None else 0.0

    @cached_property
    def candidates(self) -> LinearMap:
        """All queries as a map that the kernel evaluates."""
        return self._whole(range(len(self.sets)))

    @cached_property
    def portions(self) -> tuple[tuple[range, LinearMap], ...]:
        """All queries in order, as many whole sets together as can be measured at once: their numbers, and the map."""
        ends = [0]
        for number in range(1, len(self.sets)):
            if self.starts[number + 1] - self.starts[ends[-1]] > MOST_ROWS:
                ends.append(number)
        return tuple(
            (range(self.starts[first], self.starts[end]), self._whole(range(first, end)))
            for first, end in pairwise([*ends, len(self.sets)])
        )

    def _whole(self, numbers: Sequence[int]) -> LinearMap:
        """All queries of some sets."""
        parts = tuple(self._part(self.sets[number]) for number in numbers)
        return parts[0] if len(parts) == 1 else Stack(parts)

    def _part(self, names: tuple[str, ...]) -> Thresholds:
        """Marginals too: rows that are taken from one set stay one part, which is quick to answer and to price."""
        return Thresholds(names, self.shape(names), len(names) if self.least is None else self.least)

    def taken(self, queries: Integers) -> LinearMap:
        """Some queries as a map of their own, in the order of their numbers: those of one set come together.

        Cells of a large marginal are products of one row each. The price of rows that stay together is worked out over
        all joint values of their set and is kept with them, which is megabytes for each set and round; a product's is
        a number for each value of each column. Where every pair of joint values is compared, one part is quicker.
        """
        ordered = np.sort(queries)
        set_of = np.searchsorted(self.starts, ordered, side="right") - 1
        parts: list[Product | Thresholds] = []
        for number in np.unique(set_of):
            names, inside = self.sets[number], ordered[set_of == number] - self.starts[number]
            if self.least is None and math.prod(self.shape(names)) > PAIR_CELLS:
                parts += self._cells(names, inside)
            else:
                parts.append(self._part(names).take(inside))
        return parts[0] if len(parts) == 1 else Stack(tuple(parts))

    def _cells(self, names: tuple[str, ...], cells: Integers) -> list[Product]:
        """Single cells of a marginal."""
        shape = self.shape(names)
        return [
            Product(
                tuple(
                    Mask((name,), (size,), Steps.ranges([value], [value + 1], size))
                    for name, size, value in zip(names, shape, values, strict=True)
                )
            )
            for values in zip(*np.unravel_index(cells, shape), strict=True)
        ]

    def places(self, queries: Integers) -> NDArray[np.int32]:
        """For each query the places in a relaxed row that its surrogate reads, (queries, k), as in RAP, Lemma 2.8.

        Padded places have the number `width`, one beyond the row.
        """
        places = np.full((len(queries), self.together), self.width, np.int32)
        set_of = np.searchsorted(self.starts, queries, side="right") - 1
        for number in np.unique(set_of):
            names, inside = self.sets[number], np.flatnonzero(set_of == number)
            values = np.unravel_index(queries[inside] - self.starts[number], self.shape(names))
            for at, name in enumerate(names):
                places[inside, at] = self.first_of[name] + values[at]
        return places


@dataclass(frozen=True, kw_only=True)
class Expansion:
    """A threshold query as a sum of products: sum_j coefficients[j] prod_{i in subsets[j]} x_i.

    Guarantees: subsets are distinct, increasing, not empty, and ordered by size; coefficients are whole numbers.
    With `negated`, every x_i is to be read as 1 - x_i, and the query is 1 minus the sum.
    """

    k: int
    subsets: tuple[tuple[int, ...], ...]
    coefficients: tuple[int, ...]
    negated: bool

    def evaluate(self, columns: Sequence[Reals]) -> Reals:
        """The query on each relaxed row, given the numbers x_1 .. x_k of all rows, one array per variable."""
        of = [1 - column for column in columns] if self.negated else columns
        products = (reduce(mul, [of[i] for i in subset]) for subset in self.subsets)
        terms = groupby(zip(self.coefficients, products, strict=True), key=lambda term: term[0])
        sums = ((times, reduce(add, (product for _, product in alike))) for times, alike in terms)
        total: Reals = reduce(add, (part if times == 1 else part * times for times, part in sums))
        return 1 - total if self.negated else total


def expansion(k: int, r: int) -> Expansion:
    """The sum of fewest products: inclusion-exclusion, on the negated row where r <= k/2.

    RAP, section 4.2.2: phi_{S,y,r}(x) = 1 - phi_{S,y,r'}(1 - x) with r' = k - r + 1.
    """
    _checked(k, r)
    negated = 2 * r <= k
    return _included(k, k - r + 1 if negated else r, negated=negated)


def inclusion_exclusion(k: int, r: int) -> Expansion:
    """RAP, Def. 4.4: phi_{T,r}(x) = sum_{i=r}^k (-1)^(i-r) C(i-1, i-r) sum_{|T_i| = i} prod_{j in T_i} x_j."""
    _checked(k, r)
    return _included(k, r, negated=False)


def generalized_products(columns: Sequence[Reals], r: int) -> Reals:
    """RAP, Def. 4.2 and 4.3: phi_{T,r}(x) = sum_{|T+| >= r} prod_{i in T+} x_i prod_{i not in T+} (1 - x_i).

    The reference for the other forms, which need fewer operations.
    """
    k = len(columns)
    _checked(k, r)
    agreeing = (set(subset) for size in range(r, k + 1) for subset in combinations(range(k), size))
    products = (reduce(mul, [x if i in subset else 1 - x for i, x in enumerate(columns)]) for subset in agreeing)
    total: Reals = reduce(add, products)
    return total


def _included(k: int, r: int, *, negated: bool) -> Expansion:
    subsets = [subset for size in range(r, k + 1) for subset in combinations(range(k), size)]
    coefficients = tuple((-1) ** (len(subset) - r) * math.comb(len(subset) - 1, r - 1) for subset in subsets)
    return Expansion(k=k, subsets=tuple(subsets), coefficients=coefficients, negated=negated)


def _checked(k: int, r: int) -> None:
    if not 1 <= r <= k:
        raise QueryError(f"a threshold asks for at least 1 and at most all of its columns, not for {r} of {k}")
