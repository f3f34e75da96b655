"""The coded table behind a real kernel, in memory: what the systems of RAP's evaluation buy from.

Neighbours replace one row, and the number of rows is public, as in the paper, unless said otherwise; noise is real.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from benchmarks.memory_kernel import memory_kernel
from benchmarks.rap_data import Coded
from bursar.core.accounting import Measured, Noise, NoiseKind, from_units
from bursar.core.budget import Budget
from bursar.core.domain import Domain, IntegerRange, Neighbours, Unit
from bursar.core.queries import Distinct, PerPerson, Predicate
from bursar.planner.grant import Grant
from bursar.synthetic.plan.spend import Spend
from bursar.synthetic.rap.threshold_workload import ThresholdWorkload

NEIGHBOURS = Neighbours.REPLACE_ONE


class CodedSource:
    """A source that counts the rows of a coded table."""

    def __init__(self, data: Coded) -> None:
        self._data = data

    def fingerprint(self) -> str:
        return "unchanged"

    def content(self, first: int | None = None) -> tuple[str, ...]:
        return (sha256(self._data.codes.tobytes()).hexdigest(),)

    def table(self, attrs: tuple[str, ...]) -> NDArray[np.int64]:
        return self._data.counts([self._data.names.index(name) for name in attrs])

    def count(self, predicate: Predicate) -> int:
        return int(predicate.apply(self.table)[0])

    def distinct(self, distinct: Distinct) -> NDArray[np.int64]:
        return distinct.apply(self.table)

    def per_person(self, people: PerPerson) -> NDArray[np.int64]:
        return people.apply(self.table)

    def close(self) -> None:
        """Nothing to do: it goes with the process."""


class World:
    """A kernel over the table, with a budget that is there for one run."""

    def __init__(self, data: Coded, budget: Budget, *, sequential: bool, neighbours: Neighbours = NEIGHBOURS) -> None:
        columns = zip(data.names, data.sizes, strict=True)
        self.data, self.budget, source = data, budget, CodedSource(data)
        self.domain = Domain(tuple(IntegerRange(name=name, lower=0, upper=size - 1, null=0) for name, size in columns))
        self.ledger, self.kernel = memory_kernel(
            dataset=data.name,
            domain=self.domain,
            unit=Unit(neighbours=neighbours),
            budget=budget,
            max_rows=data.rows,
            open_source=lambda key: source,
            sequential=sequential,
        )

    def grant(self) -> Grant:
        """Verbs that may spend the whole budget, each admitted by itself."""
        return Grant(self.kernel, "benchmark", "", (), self.budget.units)

    @property
    def spent(self) -> float:
        """In epsilon or rho, as the budget is declared."""
        return from_units(self.kernel.spent())

    def workload(self, sets: Sequence[Sequence[int]], least: int) -> ThresholdWorkload:
        """All queries over the feature sets; where all features of a set must agree, they are marginals."""
        every = all(len(features) == least for features in sets)
        return ThresholdWorkload.of(self.domain, self.names(sets), None if every else least)

    def names(self, sets: Sequence[Sequence[int]]) -> list[tuple[str, ...]]:
        return [tuple(self.data.names[f] for f in features) for features in sets]

    @property
    def spend(self) -> Spend:
        """The whole budget, as a release takes it."""
        return Spend.rho(self.budget.amount)

    def calibrated(self, sets: Sequence[Sequence[int]], least: int) -> float:
        """The scale of Gaussian noise on all queries at which the whole budget is spent on them.

        Prices fall with the square of the scale, but are rounded up for each query: so what the last guess would cost
        corrects it, until it fits.
        """
        parts = [self.workload([features], least).candidates for features in sets]

        def over(scale: float) -> float:
            noise = Noise(kind=NoiseKind.GAUSSIAN, scale=scale)
            return (
                self.kernel.price([Measured(strategy=part, noise=noise, version=1) for part in parts])
                / self.budget.units
            )

        scale = 2.0**10
        scale *= math.sqrt(over(scale))
        while (excess := over(scale)) > 1:
            scale *= math.sqrt(excess) * (1 + 1e-9)
        return scale


def budget_of(epsilon: float, rows: int) -> Budget:
    """delta = 1/n^2, by the tight conversion from rho."""
    return Budget.of(epsilon=epsilon, delta=rows**-2.0)


def published_rho(epsilon: float, delta: float) -> float:
    """rho = epsilon + 2 (L - sqrt(L (epsilon + L))) with L = log(1/delta): RAP, Alg. 1 line 1."""
    log = math.log(1 / delta)
    return epsilon + 2 * (log - math.sqrt(log * (epsilon + log)))
