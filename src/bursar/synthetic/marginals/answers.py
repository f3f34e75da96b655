"""Answers to all cells of a workload of marginals, with noise calibrated to whole marginals.

A row of data lies in one cell of a marginal, so all its cells together cost no more than one count. What is measured
is chosen from public sizes and the budget alone, by the largest error to expect over all cells.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property

import numpy as np

from bursar.arrays import Reals
from bursar.core.accounting import Measured, Noise, NoiseKind
from bursar.core.domain import Domain, Neighbours
from bursar.core.extensions.pairs import PAIR_CELLS
from bursar.core.ledger import Record
from bursar.core.noise.law import SMALLEST_SCALE
from bursar.core.queries import LinearMap, Stack
from bursar.core.source.source import MOST_ROWS
from bursar.errors import GoalError, QueryError
from bursar.planner.grant import Verbs
from bursar.strategies.marginals import every_value, residuals
from bursar.strategies.plan import ROUNDING_OF_PRICES
from bursar.synthetic.marginals.estimates import Consistent, MarginalAccuracy
from bursar.synthetic.marginals.evidence import (
    MOST_COLUMNS,
    MarginalSource,
    Names,
    evidence_in,
    marginal_map,
    source_of,
)
from bursar.synthetic.plan.spend import Spend
from bursar.tails.marginals import HALF, Cells, largest_error, lowering, on_simplex

BATCH_CELLS = 2**20
"""Marginals are measured together up to this number of cells: a measurement's memory grows with them."""


@dataclass(frozen=True, kw_only=True)
class Allowance:
    """What a release may spend, and on whose privacy: whole marginals cost more where rows are replaced."""

    spend: Spend
    neighbours: Neighbours
    contributions: int = 1  # rows of one privacy unit

    @property
    def pure(self) -> bool:
        """Whether it is spent on Laplace noise."""
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
    marginals = [columns for columns in dict.fromkeys(sets) if domain.cells(columns) > 1 or size is None]
    if not marginals:
        return ()
    plans = [whole_marginals(domain, marginals, allowance)]
    if not allowance.pure:
        plans += _residual_basis(domain, marginals, allowance, sized=size is not None)
    return min(plans, key=lambda plan: _largest_error(domain, marginals, plan, sized=size is not None))


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
    by_size: dict[int, list[Names]] = {}
    for columns in sets:
        if (cells := domain.cells(columns)) > MOST_ROWS:
            raise QueryError(f"{', '.join(columns)} have {cells} cells together; {MOST_ROWS} can be measured at once")
        by_size.setdefault((cells - 1).bit_length(), []).append(columns)
    if aim is Aim.LARGEST:
        weights = {bits: math.log(2 * 2.0**bits * len(sets) / HALF) for bits in by_size}
    else:
        weights = {bits: 2.0 ** (bits / 2 if allowance.pure else 2 * bits / 3) for bits in by_size}
    total = sum(weight * len(by_size[bits]) for bits, weight in weights.items())
    purchases = []
    for bits, members in sorted(by_size.items()):
        maps = [marginal_map(domain, columns) for columns in members]
        noise = allowance.part(weights[bits] / total).noise(allowance.cells_price)
        step = max(BATCH_CELLS >> bits, 1)
        for first in range(0, len(members), step):
            parts = tuple(maps[first : first + step])
            sources = tuple(source_of(columns, noise) for columns in members[first : first + step])
            purchases.append(
                MarginalPurchase(strategy=parts[0] if len(parts) == 1 else Stack(parts), noise=noise, sources=sources)
            )
    return tuple(purchases)


def _residual_basis(
    domain: Domain, sets: Sequence[Names], allowance: Allowance, *, sized: bool
) -> list[tuple[MarginalPurchase, ...]]:
    """The least largest variance by the residual basis, at the prices of these neighbours; none where it cannot be."""
    names = domain.ordered(name for columns in sets for name in columns)
    basis = [every_value(name, domain[name].size) for name in names]
    place = {name: number for number, name in enumerate(names)}
    try:
        basis_plan = residuals(basis, [tuple(place[name] for name in columns) for columns in sets])
        priced = zip(basis_plan.prices, basis_plan.parts, strict=True)
        prices = np.array([allowance.residual_price(p, [basis[i].queries for i in part]) for p, part in priced])
        prices[[sized and not part for part in basis_plan.parts]] = 0.0
        plan = replace(basis_plan, prices=prices).least_largest(gap=1e-2)
        purchases = []
        for number, part in enumerate(basis_plan.parts):
            if prices[number] > 0:
                noise = allowance.part(prices[number] / plan.noise[number]).noise(prices[number])
                source = source_of(tuple(names[i] for i in part), noise, residual=bool(part))
                purchases.append(MarginalPurchase(strategy=plan.product(number), noise=noise, sources=(source,)))
    except (QueryError, GoalError):
        return []
    return [tuple(purchases)]


def _largest_error(domain: Domain, sets: Sequence[Names], plan: Sequence[MarginalPurchase], *, sized: bool) -> float:
    accuracy = MarginalAccuracy(domain, (source for purchase in plan for source in purchase.sources), sized=sized)
    cells = [Cells(count=domain.cells(columns), variance=_or_infinite(accuracy.variance(columns))) for columns in sets]
    return largest_error(cells, heavy=accuracy.heavy)


def _or_infinite(variance: float | None) -> float:
    return math.inf if variance is None else variance


Sets = Sequence[Sequence[str]]


def buy(
    plan: Sequence[MarginalPurchase],
    verbs: Verbs,
    records: Iterable[Record] = (),
    *,
    on_step: Callable[[int, int], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> list[Record]:
    """Measure what the records do not have yet, and return the records with what was bought.

    Guarantees: a purchase that is among the records, with its noise, is not made again, so an interrupted release goes
    on where it was. Where `stop` says so, what was bought so far is returned; it is in the log in any case.
    """
    logged = list(records)
    measured = [record.event for record in logged if isinstance(record.event, Measured)]
    paid = {(event.strategy.digest, event.noise) for event in measured}
    for number, purchase in enumerate(plan):
        if (purchase.strategy.digest, purchase.noise) not in paid:
            if stop is not None and stop():
                break
            logged.append(verbs.measure(purchase.strategy, purchase.noise))
        if on_step is not None:
            on_step(number + 1, len(plan))
    return logged


class Shape(Enum):
    """What is done to estimates before they are released; all but CONSISTENT make them biased."""

    CONSISTENT = "consistent"  # unbiased, marginals agree, cells may be negative
    NON_NEGATIVE = "non-negative"  # negative counts become 0: no cell gets worse
    LOWERED = "lowered"  # the least bound on the largest error, and not negative
    SUMMING = "summing"  # the nearest counts that are not negative and sum to the number of rows


@dataclass(frozen=True, kw_only=True, eq=False)
class MarginalAnswers:
    """All cells of a workload of marginals, made one marginal at a time.

    `size` is the public number of rows, or None.
    """

    sets: tuple[Names, ...]
    consistent: Consistent
    size: int | None
    shape: Shape = Shape.CONSISTENT

    def __post_init__(self) -> None:
        if self.shape is Shape.SUMMING and self.size is None:
            raise QueryError("counts can be made to sum to the number of rows only where that is public")

    @cached_property
    def cells(self) -> dict[Names, Cells]:
        """Of every marginal that is known, in the shape that is released."""
        domain = self.consistent.domain
        variances = {columns: self.consistent.variance(columns) for columns in dict.fromkeys(self.sets)}
        listed = {
            columns: Cells(count=domain.cells(columns), variance=variance)
            for columns, variance in variances.items()
            if variance is not None
        }
        if self.shape is Shape.LOWERED and self.size is not None and self.size > 0:
            lowered = lowering(list(listed.values()), heavy=self.consistent.heavy, size=self.size)
            return dict(zip(listed, lowered, strict=True))
        return listed

    @property
    def missing(self) -> tuple[Names, ...]:
        """Marginals that nothing was measured for; they have no answer."""
        return tuple(columns for columns in self.sets if columns not in self.cells)

    def counts(self, columns: Names) -> Reals:
        """The counts of one marginal, one axis per column in the order of the domain."""
        estimate = self.consistent.estimate(columns)
        if estimate is None or columns not in self.cells:
            raise QueryError(f"nothing was measured that says how {', '.join(columns)} are distributed together")
        match self.shape:
            case Shape.CONSISTENT:
                return estimate
            case Shape.SUMMING:
                return on_simplex(estimate, float(self.consistent.total()))
        shaped: Reals = np.maximum(estimate - self.cells[columns].lowered, 0.0)
        return shaped

    def bound(self, confidence: float) -> float:
        """A count that no error, in any cell of any marginal, exceeds with this confidence.

        SUMMING takes one amount off all cells, at most the largest error of any, for with more of it the sum would
        fall below that of the true counts: its bound is twice that of the unbiased estimates.
        """
        if not 0 < confidence < 1:
            raise QueryError("a confidence lies between 0 and 1")
        listed = list(self.cells.values())
        plain = largest_error(listed, heavy=self.consistent.heavy, size=self.size, beta=1 - confidence)
        return 2 * plain if self.shape is Shape.SUMMING else plain


def ordered_sets(domain: Domain, sets: Sets) -> tuple[Names, ...]:
    """The sets with their columns in the order of the domain, each set once."""
    for columns in sets:
        if any(name not in domain for name in columns) or len(columns) > MOST_COLUMNS:
            raise QueryError(f"a marginal names columns that are declared, at most {MOST_COLUMNS} of them")
    return tuple(dict.fromkeys(domain.ordered(columns) for columns in sets))


def measure_marginals(
    sets: Sets,
    verbs: Verbs,
    domain: Domain,
    *,
    budget: Allowance,
    size: int | None = None,
    shape: Shape = Shape.CONSISTENT,
    records: Sequence[Record] = (),
    on_step: Callable[[int, int], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> MarginalAnswers:
    """Spend the budget on a workload of marginals, and answer it from that and from the records of the log."""
    ordered = ordered_sets(domain, sets)
    plan = plan_marginals(domain, ordered, budget, size=size)
    return marginals_from(
        buy(plan, verbs, records, on_step=on_step, stop=stop), ordered, domain, size=size, shape=shape
    )


def marginals_from(
    records: Sequence[Record], sets: Sets, domain: Domain, *, size: int | None = None, shape: Shape = Shape.CONSISTENT
) -> MarginalAnswers:
    """Answers from what is in the log already; nothing is bought."""
    consistent = Consistent(domain, evidence_in(records, domain), size=size)
    return MarginalAnswers(sets=ordered_sets(domain, sets), consistent=consistent, size=size, shape=shape)
