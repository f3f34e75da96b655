"""Threshold queries on relaxed rows: polynomials that agree with the predicate on every one-hot row (RAP, section 4.2).

A relaxed row has a number from 0 to 1 for every value of every column. The r-of-k threshold query for k values reads
the k numbers x_1 .. x_k of these values; on a one-hot row they say which of the k values the row has. All forms below
are the same polynomial: of degree at most 1 in each variable, and so determined by its values on {0, 1}^k.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations, groupby
from operator import add, mul

from bursar.arrays import Reals
from bursar.errors import QueryError


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
        sums = ((times, reduce(add, (one for _, one in alike))) for times, alike in terms)
        total: Reals = reduce(add, (one if times == 1 else one * times for times, one in sums))
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
    held = (set(subset) for size in range(r, k + 1) for subset in combinations(range(k), size))
    products = (reduce(mul, [x if i in own else 1 - x for i, x in enumerate(columns)]) for own in held)
    total: Reals = reduce(add, products)
    return total


def _included(k: int, r: int, *, negated: bool) -> Expansion:
    subsets = [subset for size in range(r, k + 1) for subset in combinations(range(k), size)]
    coefficients = tuple((-1) ** (len(subset) - r) * math.comb(len(subset) - 1, r - 1) for subset in subsets)
    return Expansion(k=k, subsets=tuple(subsets), coefficients=coefficients, negated=negated)


def _checked(k: int, r: int) -> None:
    if not 1 <= r <= k:
        raise QueryError(f"a threshold asks for at least 1 and at most all of its columns, not for {r} of {k}")
