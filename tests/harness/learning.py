"""A stage for proposers that test and learn: a planner, and verbs over known counts with noise from a seed.

It is quick, so that thousands of questions can be asked; prices are those of a replaced row, added up one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np

from bursar.compile.workload import Workload
from bursar.core.accounting import Event, Failed, Measured, Mode, Noise, NoiseKind, Opened, Sealed, Versioned
from bursar.core.domain import Categories, Domain
from bursar.core.ledger import Record
from bursar.core.queries import LinearMap, Mask, Product, Steps
from bursar.estimation.estimate import Estimate
from bursar.goal import Goal, GoalKind
from bursar.planner.choose import Preset
from bursar.planner.offer import Offer
from bursar.planner.planner import Planner
from bursar.planner.request import PlanningRequest, Request, planning_request

UNIT = 2**50


def grid(*sizes: int, partition: str | None = None) -> Domain:
    """Columns a, b, c, ... with so many values."""
    names = "abcdefgh"[: len(sizes)]
    return Domain(
        tuple(
            Categories(name=n, values=tuple(map(str, range(s))), outside=0, null=0)
            for n, s in zip(names, sizes, strict=True)
        ),
        partition,
    )


def cells(domain: Domain, **picked: Sequence[int]) -> Product:
    """The count of the rows whose columns have one of the given cells."""
    masks = []
    for name, places in picked.items():
        row = np.zeros((1, domain[name].size), np.int64)
        row[0, list(places)] = 1
        masks.append(Mask((name,), (domain[name].size,), Steps.dense(row)))
    return Product(tuple(masks))


def request(query: LinearMap, *, within: float, beta: float) -> PlanningRequest:
    goal = Goal(kind=GoalKind.ERROR, amount=within, confidence=1 - beta)
    labels = tuple((str(row),) for row in range(query.rows))
    workload = Workload(query, ("row",), labels, ("n",), np.arange(query.rows)[:, None])
    return planning_request(Request(text="", workload=workload, goal=goal, analyst="ana"))


@dataclass
class Stage:
    """A log, the planner that reads it, and verbs that write it."""

    table: np.ndarray
    preset: Preset
    seed: int | None = 0  # None: no noise at all
    domain: Domain = field(init=False)
    records: list[Record] = field(default_factory=list)
    spent: int = 0
    tests: int = 0
    shift: float = 1.0  # of the cut, for wrong twins
    partition: str | None = None  # a column; the first `through` + 1 of its cells are sealed at the start
    through: int = -1

    def __post_init__(self) -> None:
        self.domain = grid(*self.table.shape, partition=self.partition)
        self._rng = np.random.default_rng(self.seed)
        self._thresholds: dict[int, int] = {}
        self._write(Versioned(version=1))
        if self.through >= 0:
            self.seal(self.through)
        self.planner = self.reopened()

    def reopened(self) -> Planner:
        """A new planner on the same log."""
        return Planner(self.domain, Mode.PURE, self.preset, self, lambda after: self.records[after:])  # type: ignore[arg-type]

    def seal(self, through: int) -> None:
        """Partitions up to this one; their numbers of rows are public."""
        assert self.partition is not None
        rows = self._counts((self.partition,)).tolist()
        new = tuple(rows[self.sealed() or 0 : through + 1])
        self._write(Sealed(through=through, version=1, sizes=new))

    def ask(self, query: LinearMap, *, within: float, beta: float) -> tuple[Offer, Estimate]:
        offer = self.planner.choose(request(query, within=within, beta=beta))
        return offer, offer.run(self)  # type: ignore[arg-type]

    def truth(self, query: LinearMap) -> np.ndarray:
        return query.apply(self._counts)

    # -- verbs -----------------------------------------------------------------------------------------------------

    def measure(self, strategy: LinearMap, noise: Noise) -> Record:
        event = Measured(strategy=strategy, noise=noise, version=1)
        return self._write(event, self.truth(strategy) + self._draw(noise, strategy.rows))

    def above(self, instance: Opened | int, query: Product, estimate: int) -> Any:
        position = instance if isinstance(instance, int) else self._open(instance)
        opened = self.records[position - 1].event
        assert isinstance(opened, Opened)
        self.tests += 1
        error = abs(int(self.truth(query)[0]) - estimate) + int(self._draw(opened.test, 1)[0])
        above = error >= self._thresholds[position]
        if above:
            del self._thresholds[position]
            self._write(Failed(instance=position, query=query, estimate=estimate, version=1))
        return SimpleNamespace(instance=position, above=above)

    def _open(self, event: Opened) -> int:
        position = self._write(event).position
        self._thresholds[position] = round(self.shift * event.cut) + int(self._draw(event.threshold, 1)[0])
        return position

    def _draw(self, noise: Noise, size: int) -> np.ndarray:
        if self.seed is None:
            return np.zeros(size, np.int64)
        assert noise.kind is NoiseKind.LAPLACE
        stop = -np.expm1(-1 / noise.scale)
        return self._rng.geometric(stop, size) - self._rng.geometric(stop, size)

    def _write(self, event: Event, values: np.ndarray | None = None) -> Record:
        self.spent += self.price((event,))
        none = np.zeros(0, np.int64)
        place = len(self.records) + 1
        record = Record(
            position=place,
            at=0.0,
            analyst="ana",
            question="",
            proposer="",
            run=0,
            event=event,
            values=none if values is None else values,
        )
        self.records.append(record)
        return record

    def _counts(self, attrs: tuple[str, ...]) -> np.ndarray:
        gone = tuple(i for i, name in enumerate(self.domain.names) if name not in attrs)
        kept = [name for name in self.domain.names if name in attrs]
        return np.transpose(self.table.sum(axis=gone), [kept.index(name) for name in attrs])

    # -- prices ----------------------------------------------------------------------------------------------------

    def price(self, events: Iterable[Event]) -> int:
        return sum(map(self._price, events))

    def _price(self, event: Event) -> int:
        if isinstance(event, Opened):
            return round(event.scope.largest() * event.rate * UNIT)
        if isinstance(event, Measured) and event.strategy.attrs:
            most = sum(norm.largest() for norm in event.strategy.norms(1))
            return round(most * UNIT / Fraction(event.noise.scale))
        return 0

    def left(self) -> int:
        return 1000 * UNIT - self.spent

    def sealed(self) -> int | None:
        if self.partition is None:
            return None
        return max((r.event.through + 1 for r in self.records if isinstance(r.event, Sealed)), default=0)

    def shares(self) -> dict[str, Fraction]:
        return {}

    def empty_book(self) -> Any:
        return SimpleNamespace(price=self.price)
