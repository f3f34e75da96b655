"""Answers to all cells of a workload of marginals, with noise calibrated to whole marginals.

A row of data lies in one cell of a marginal, so all its cells together cost no more than one count. What is measured
is chosen without the data, by the largest error to expect over all cells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import numpy as np

from bursar.arrays import Reals
from bursar.core.accounting import Measured
from bursar.core.domain import Domain
from bursar.core.ledger import Record
from bursar.core.verbs import Verbs
from bursar.errors import QueryError
from bursar.synthetic.marginals.choice import Allowance, MarginalPurchase, plan_marginals
from bursar.synthetic.marginals.consistent import Consistent
from bursar.synthetic.marginals.evidence import MOST_TOGETHER, Names, evidence_in
from bursar.tails.marginals import Cells, largest_error, lowering, on_simplex

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
    have = list(records)
    measured = [record.event for record in have if isinstance(record.event, Measured)]
    known = {(event.strategy.digest, event.noise) for event in measured}
    for number, purchase in enumerate(plan):
        if (purchase.strategy.digest, purchase.noise) not in known:
            if stop is not None and stop():
                break
            have.append(verbs.measure(purchase.strategy, purchase.noise))
        if on_step is not None:
            on_step(number + 1, len(plan))
    return have


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
        found = {columns: self.consistent.variance(columns) for columns in dict.fromkeys(self.sets)}
        listed = {
            columns: Cells(count=domain.cells(columns), variance=variance)
            for columns, variance in found.items()
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
    for own in sets:
        if any(name not in domain for name in own) or len(own) > MOST_TOGETHER:
            raise QueryError(f"a marginal names columns that are declared, at most {MOST_TOGETHER} of them")
    return tuple(dict.fromkeys(domain.ordered(own) for own in sets))


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
    wanted = ordered_sets(domain, sets)
    plan = plan_marginals(domain, wanted, budget, size=size)
    return marginals_from(buy(plan, verbs, records, on_step=on_step, stop=stop), wanted, domain, size=size, shape=shape)


def marginals_from(
    records: Sequence[Record], sets: Sets, domain: Domain, *, size: int | None = None, shape: Shape = Shape.CONSISTENT
) -> MarginalAnswers:
    """Answers from what is in the log already; nothing is bought."""
    consistent = Consistent(domain, evidence_in(records, domain), size=size)
    return MarginalAnswers(sets=ordered_sets(domain, sets), consistent=consistent, size=size, shape=shape)
