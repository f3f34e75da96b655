"""What to measure for a workload of marginals, decided from public sizes and the budget alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from bursar.core.accounting import Noise, NoiseKind
from bursar.core.domain import Domain, Neighbours
from bursar.core.limits import MOST_ROWS
from bursar.core.noise.law import SMALLEST_SCALE
from bursar.core.queries import LinearMap, Stack
from bursar.core.queries.norm import PAIR_CELLS
from bursar.errors import GoalError, QueryError
from bursar.strategies.best import ROUNDING_OF_PRICES
from bursar.strategies.marginals import every_value, residuals
from bursar.synthetic.marginals.consistent import MarginalAccuracy
from bursar.synthetic.marginals.evidence import MarginalSource, Names, marginal_map, source_of
from bursar.synthetic.plan.spend import Spend
from bursar.tails.marginals import HALF, Cells, largest_error

AT_ONCE = 2**20
"""Marginals are measured together up to so many cells: what a measurement takes in memory grows with them."""


@dataclass(frozen=True, kw_only=True)
class Allowance:
    """What a release may spend, and on whose privacy: whole marginals cost more where rows are replaced."""

    spend: Spend
    neighbours: Neighbours
    contributions: int = 1  # rows of one privacy unit

    @property
    def pure(self) -> bool:
        return self.spend.kind is NoiseKind.LAPLACE

    def part(self, share: float) -> Allowance:
        return replace(self, spend=self.spend.part(share))

    @property
    def cells_price(self) -> float:
        """What all cells of a marginal cost at noise of scale one: a row is in one cell, a replaced one in two."""
        return 1.0 if self.neighbours is Neighbours.ADD_REMOVE else 2.0

    def residual_price(self, norm: float, sizes: Sequence[int]) -> float:
        """What the residuals of columns cost in concentrated mode, for a row that moves them by `norm` in squares.

        Two rows that differ in the smallest column alone have the inner product -norm / (n - 1), and no two have a
        lower one. Where there are too many cells to compare pairs, the kernel charges 4 norm.
        """
        if self.neighbours is Neighbours.ADD_REMOVE or not sizes:
            return norm * self.cells_price
        return norm * (2 + 2 / (min(sizes) - 1) if math.prod(sizes) <= PAIR_CELLS else 4.0)

    def noise(self, price: float) -> Noise:
        """The noise at which rows of this price cost all of it: b = k p / epsilon, sigma^2 = k^2 p / (2 rho)."""
        concentrated = math.sqrt(price / (2 * self.spend.amount))
        scale = self.contributions * (price / self.spend.amount if self.pure else concentrated)
        return Noise(kind=self.spend.kind, scale=max(scale * ROUNDING_OF_PRICES, SMALLEST_SCALE))


@dataclass(frozen=True, kw_only=True, eq=False)
class MarginalPurchase:
    """One measurement of a plan, and what it will say about marginals."""

    strategy: LinearMap
    noise: Noise
    sources: tuple[MarginalSource, ...]


def plan_marginals(
    domain: Domain, sets: Sequence[Names], allowance: Allowance, *, size: int | None = None
) -> tuple[MarginalPurchase, ...]:
    """What to measure: whole marginals or the residual basis, whichever promises the smaller largest error.

    Guarantees: the purchases cost the allowance together, at most. The data are not looked at.
    """
    wanted = [columns for columns in dict.fromkeys(sets) if domain.cells(columns) > 1 or size is None]
    if not wanted:
        return ()
    plans = [whole_marginals(domain, wanted, allowance)]
    if not allowance.pure:
        plans += _residual_basis(domain, wanted, allowance, sized=size is not None)
    return min(plans, key=lambda plan: _promised(domain, wanted, plan, sized=size is not None))


class Aim(Enum):
    """What the noise of marginals of different sizes is to keep small."""

    LARGEST = "the largest error of a cell"
    TOTAL = "the sum of all cells' absolute errors"


def whole_marginals(
    domain: Domain, sets: Sequence[Names], allowance: Allowance, aim: Aim = Aim.LARGEST
) -> tuple[MarginalPurchase, ...]:
    """Every marginal, with noise by how many cells it has.

    LARGEST: the chance that some cell of N is wrong by u is 2N exp(-x), with x = u^2 / (2 sigma^2) or u / b, and the
    price of a marginal is in proportion to x. The sum over marginals is least, at a given price, where all terms are
    equal: the share of a marginal is in proportion to log(2N |W| / beta). TOTAL: the sum of N sigma or N b is least at
    shares in proportion to N^(2/3) or N^(1/2). N is rounded up to a power of two, so that marginals of about one size
    have one noise and are measured together.
    """
    alike: dict[int, list[Names]] = {}
    for columns in sets:
        if (cells := domain.cells(columns)) > MOST_ROWS:
            raise QueryError(f"{', '.join(columns)} have {cells} cells together; {MOST_ROWS} can be measured at once")
        alike.setdefault((cells - 1).bit_length(), []).append(columns)
    if aim is Aim.LARGEST:
        weights = {bits: math.log(2 * 2.0**bits * len(sets) / HALF) for bits in alike}
    else:
        weights = {bits: 2.0 ** (bits / 2 if allowance.pure else 2 * bits / 3) for bits in alike}
    whole = sum(weight * len(alike[bits]) for bits, weight in weights.items())
    made = []
    for bits, members in sorted(alike.items()):
        maps = [marginal_map(domain, columns) for columns in members]
        noise = allowance.part(weights[bits] / whole).noise(allowance.cells_price)
        step = max(AT_ONCE >> bits, 1)
        for first in range(0, len(members), step):
            parts = tuple(maps[first : first + step])
            sources = tuple(source_of(columns, noise) for columns in members[first : first + step])
            made.append(
                MarginalPurchase(strategy=parts[0] if len(parts) == 1 else Stack(parts), noise=noise, sources=sources)
            )
    return tuple(made)


def _residual_basis(
    domain: Domain, sets: Sequence[Names], allowance: Allowance, *, sized: bool
) -> list[tuple[MarginalPurchase, ...]]:
    """The least largest variance by the residual basis, at the prices of these neighbours; none where it cannot be."""
    names = domain.ordered(name for columns in sets for name in columns)
    basis = [every_value(name, domain[name].size) for name in names]
    place = {name: number for number, name in enumerate(names)}
    try:
        found = residuals(basis, [tuple(place[name] for name in columns) for columns in sets])
        priced = zip(found.prices, found.parts, strict=True)
        prices = np.array([allowance.residual_price(p, [basis[i].queries for i in part]) for p, part in priced])
        prices[[sized and not part for part in found.parts]] = 0.0
        plan = replace(found, prices=prices).least_largest(gap=1e-2)
        made = []
        for number, part in enumerate(found.parts):
            if prices[number] > 0:
                noise = allowance.part(prices[number] / plan.noise[number]).noise(prices[number])
                source = source_of(tuple(names[i] for i in part), noise, residual=bool(part))
                made.append(MarginalPurchase(strategy=plan.product(number), noise=noise, sources=(source,)))
    except (QueryError, GoalError):
        return []
    return [tuple(made)]


def _promised(domain: Domain, sets: Sequence[Names], plan: Sequence[MarginalPurchase], *, sized: bool) -> float:
    accuracy = MarginalAccuracy(domain, (source for purchase in plan for source in purchase.sources), sized=sized)
    cells = [Cells(count=domain.cells(columns), variance=_known(accuracy.variance(columns))) for columns in sets]
    return largest_error(cells, heavy=accuracy.heavy)


def _known(variance: float | None) -> float:
    return math.inf if variance is None else variance
