"""From a plan to rows: buy what is missing, and make a table of everything."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bursar.arrays import Codes
from bursar.core.accounting import Event, Measured, Noise, Selected
from bursar.core.ledger import Record
from bursar.core.queries import LinearMap
from bursar.core.verbs import NONE_BARRED
from bursar.errors import QueryError
from bursar.synthetic.entropy import entropy
from bursar.synthetic.marginals.choice import MarginalPurchase
from bursar.synthetic.marginals.release import buy, marginals_from
from bursar.synthetic.plan.buyer import Buyer
from bursar.synthetic.plan.methods import Method, TablePlan, Task
from bursar.synthetic.table.table import SyntheticTable, table_from

Step = Callable[[int, int], None]
Stop = Callable[[], bool]

SPREAD = 4
"""Rows of a table that is to be corrected, for each row of the corrected one."""

STOPPED = "stopped before anything was measured, so there is nothing to make a table of; nothing was spent"
COUNTED = "stopped when only the number of rows was measured; it is kept, and the same command goes on from there"


@dataclass(frozen=True, kw_only=True, eq=False)
class TableRows:
    """A synthetic table, how many rows of the data it stands for, and whether all that was planned was bought."""

    codes: Codes
    total: float
    finished: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class Logged:
    """The log as a run finds it: the records of this version, those of the same run before, and remade marginals."""

    records: Sequence[Record]
    own: Sequence[Record] = ()
    remade: Sequence[Record] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """One table to make: of what, how many rows, who hears how far it is, and what stops it."""

    task: Task
    logged: Logged
    rows: int | None  # None: as many as the data have, or seem to have
    on_step: Step
    stop: Stop
    rng: Generator = field(default_factory=entropy)

    def from_log(self) -> TableRows:
        """A table of what is there; nothing is bought."""
        return self._fitted([*self.logged.records, *self.logged.remade], finished=True)

    def carry_out(self, plan: TablePlan, buyer: Buyer) -> TableRows:
        """Buy what the plan has and the log has not, then make the table.

        Guarantees: every purchase admits itself, and is in the log before anything is made of it. Where `stop` says so,
        no more is bought, and the table is made of what there is.
        """
        if plan.method is Method.RAP:
            return self._rap(plan, buyer)
        have = buy(plan.purchases, buyer, self.logged.records, on_step=self.on_step, stop=self.stop)
        if not any(isinstance(record.event, Measured) for record in have):
            raise QueryError(STOPPED)
        everything, finished = [*have, *self.logged.remade], not missing(plan, have)
        if plan.method is Method.MARGINALS:
            return self._fitted(everything, finished=finished)
        return self._both(plan, buyer, everything, finished=finished)

    def _fitted(self, records: Sequence[Record], *, finished: bool) -> TableRows:
        table = self._table(records, self.rows)
        return TableRows(codes=table.codes, total=table.answers.consistent.total(), finished=finished)

    def _table(self, records: Sequence[Record], rows: int | None) -> SyntheticTable:
        task = self.task
        return table_from(records, task.sets, task.domain, size=task.size, rows=rows, rng=self.rng, stop=self.stop)

    def _rap(self, plan: TablePlan, buyer: Buyer) -> TableRows:
        from bursar.synthetic.rap.rap import rap  # with its compiler, which marginals do not need
        from bursar.synthetic.rap.rounding import rounded

        assert plan.adaptivity is not None
        assert plan.picking is not None
        if self.stop() and not self.logged.own:  # or the number of rows would be bought
            raise QueryError(STOPPED)
        done = sum(isinstance(record.event, Selected) for record in self.logged.own)
        found = rap(
            self.task.workload,
            _Told(buyer, self.on_step, done=done, of=plan.adaptivity.rounds),
            rounds=plan.adaptivity.rounds,
            picks=plan.adaptivity.picks,
            spend=plan.picking,
            size=self.task.size,
            rng=self.rng,
            records=self.logged.own,
            stop=self.stop,
        )
        if not found.rounds and self.task.size is None:
            raise QueryError(COUNTED)
        if not found.rounds:
            raise QueryError(STOPPED)
        wanted = math.ceil(found.size) if self.rows is None else self.rows
        codes = rounded(found.relaxed, size=wanted, rng=self.rng).astype(np.int32)
        return TableRows(codes=codes, total=float(found.size), finished=found.finished)

    def _both(self, plan: TablePlan, buyer: Buyer, records: Sequence[Record], *, finished: bool) -> TableRows:
        from bursar.synthetic.table.combined import corrected  # with the compiler too

        assert plan.adaptivity is not None
        assert plan.picking is not None
        task = self.task
        total = marginals_from(records, task.sets, task.domain, size=task.size).consistent.total()
        wanted = math.ceil(total) if self.rows is None else self.rows
        codes, done = corrected(
            self._table(records, SPREAD * max(wanted, math.ceil(total))),
            task.workload,
            buyer,
            spend=plan.picking,
            setting=plan.adaptivity,
            rows=wanted,
            rng=self.rng,
            records=self.logged.own,
            on_step=self.on_step,
            stop=self.stop,
        )
        return TableRows(codes=codes, total=total, finished=finished and done)


def missing(plan: TablePlan, records: Sequence[Record]) -> list[MarginalPurchase]:
    """The purchases of a plan that are not among the records."""
    measured = [record.event for record in records if isinstance(record.event, Measured)]
    known = {(event.strategy.digest, event.noise) for event in measured}
    return [one for one in plan.purchases if (one.strategy.digest, one.noise) not in known]


def to_come(task: Task, plan: TablePlan, logged: Logged, version: int) -> tuple[Event, ...]:
    """All that a plan will still buy, in its order, as far as it can be told before: the worst case of its branches.

    Guarantees: `carry_out` buys nothing that has no place here, and nothing dearer than what keeps its place: the same
    `MarginalPurchase`, `Round` and `Spend` set the noise. What is in the log already is not among it.
    """
    events: list[Event] = [
        Measured(strategy=one.strategy, noise=one.noise, version=version) for one in missing(plan, logged.records)
    ]
    if plan.picking is not None and plan.adaptivity is not None:
        from bursar.synthetic.rap.rounds import rap_to_come, rounds_to_come  # with the compiler, as above

        workload, setting, own = task.workload, plan.adaptivity, logged.own
        if plan.method is Method.RAP:
            events += rap_to_come(workload, setting, plan.picking, own, version, sized=task.size is not None)
        else:
            events += rounds_to_come(workload, setting, plan.picking, own, version)
    return tuple(events)


@dataclass
class _Told:
    """A buyer that says how many rounds have been picked."""

    buyer: Buyer
    on_step: Step
    done: int
    of: int

    def measure(self, strategy: LinearMap, noise: Noise) -> Record:
        return self.buyer.measure(strategy, noise)

    def select(
        self,
        candidates: LinearMap,
        estimates: NDArray[np.int64],
        *,
        count: int,
        scale: float,
        barred: NDArray[np.int64] = NONE_BARRED,
    ) -> Record:
        found = self.buyer.select(candidates, estimates, count=count, scale=scale, barred=barred)
        self.done = min(self.done + 1, self.of)
        self.on_step(self.done, self.of)
        return found
