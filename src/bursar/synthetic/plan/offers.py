"""Offers to make a synthetic table: what is still to be bought, its price, and the run that makes rows of everything.

They are chosen, explained, refused and paid for like the offers that answer questions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator

from bursar.arrays import Codes
from bursar.core.accounting import Event, Measured, Selected, from_units, left_of
from bursar.core.ledger import Record
from bursar.errors import BudgetError, QueryError
from bursar.goal import Goal
from bursar.planner.choose import best_payable, binding
from bursar.planner.explain import Explanation
from bursar.planner.grant import Verbs
from bursar.planner.offer import Price, PricedPlan, Views
from bursar.synthetic.entropy import entropy
from bursar.synthetic.marginals.answers import MarginalPurchase, buy, marginals_from
from bursar.synthetic.plan.methods import TablePlan, Task, reasons
from bursar.synthetic.plan.workload import PROPOSER, Method, TableRequest
from bursar.synthetic.rap.rounds import remaining_rap_events, remaining_round_events
from bursar.synthetic.report import counted
from bursar.synthetic.table.table import SyntheticTable, corrected, table_from

if TYPE_CHECKING:
    from bursar.synthetic.rap.diagonal_search import SearchPlan
    from bursar.synthetic.rap.rap import RapResult

Step = Callable[[int, int], None]
Stop = Callable[[], bool]
Granted = Callable[[Sequence[Event]], AbstractContextManager[Verbs]]
"""Sets the budget for events aside while a block runs, and lets it buy them."""


def silent(done: int, of: int) -> None:
    """Nobody is told."""


def never() -> bool:
    """Nothing stops the run."""
    return False


SPREAD = 4
"""Rows of a table that is to be corrected, for each row of the corrected one."""

STOPPED = "stopped before anything was measured, so there is nothing to make a table of; nothing was spent"
UNTRIED = "stopped before a trial was finished; what was measured is kept, and the same command goes on from there"
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
    bought: Sequence[Record] = ()
    remade: Sequence[Record] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class TableRun:
    """One table to make: of what, by which plan, how many rows, who hears how far it is, and what stops it."""

    task: Task
    plan: TablePlan
    logged: Logged
    rows: int | None  # None: as many as the data have, or seem to have
    on_step: Step = silent
    stop: Stop = never
    rng: Generator = field(default_factory=entropy)

    def carry_out(self, verbs: Verbs) -> TableRows:
        """Buy what the plan has and the log has not, then make the table.

        Guarantees: every purchase admits itself, and is in the log before anything is made of it. Where `stop` says so,
        no more is bought, and the table is made of what there is. The hold is renewed meanwhile.
        """

        def stop() -> bool:
            verbs.renew()
            return self.stop()

        return replace(self, stop=stop)._made(verbs)

    def _made(self, verbs: Verbs) -> TableRows:
        plan = self.plan
        if plan.method is Method.RAP:
            return self._rap(verbs)
        records = buy(plan.purchases, verbs, self.logged.records, on_step=self.on_step, stop=self.stop)
        everything, finished = [*records, *self.logged.remade], not missing(plan, records)
        if not any(isinstance(record.event, Measured) for record in everything):
            raise QueryError(STOPPED)
        if plan.method is Method.MARGINALS:
            table = self._table(everything, self.rows)
            return TableRows(codes=table.codes, total=table.answers.consistent.total(), finished=finished)
        return self._both(verbs, everything, finished=finished)

    def _table(self, records: Sequence[Record], rows: int | None) -> SyntheticTable:
        task = self.task
        return table_from(records, task.sets, task.domain, size=task.size, rows=rows, rng=self.rng, stop=self.stop)

    def _rap(self, verbs: Verbs) -> TableRows:
        from bursar.synthetic.rap.rap import rap  # with its compiler, which marginals do not need

        setting, picking = self.plan.adaptivity, self.plan.picking
        assert setting is not None
        assert picking is not None
        if self.stop() and not self.logged.bought:  # or the number of rows would be bought
            raise QueryError(STOPPED)
        projected = rap(
            self.task.workload,
            verbs,
            rounds=setting.rounds,
            picks=setting.picks,
            spend=picking,
            size=self.task.size,
            rows=self.task.relaxed,
            rng=self.rng,
            records=self.logged.bought,
            on_round=lambda number: self.on_step(min(number, setting.rounds), setting.rounds),
            stop=self.stop,
        )
        if not projected.rounds and self.task.size is None:
            raise QueryError(COUNTED)
        if not projected.rounds:
            raise QueryError(STOPPED)
        return self._rounded(projected)

    def searched(self, plan: SearchPlan, version: int, granted: Granted) -> TableRows:
        """A search for T and K. Which trial is next is known when the one before has ended, so each has its own grant,
        which also holds the budget of all later ones."""
        from bursar.synthetic.rap.diagonal_search import Search, combined

        holding: list[Verbs] = []

        def stop() -> bool:
            for verbs in holding:
                verbs.renew()
            return self.stop()

        search = Search(
            plan,
            size=self.task.size,
            rows=self.task.relaxed,
            rng=self.rng,
            records=self.logged.bought,
            stop=stop,
        )
        while (trial := search.following()) is not None and not self.stop():
            with granted(search.events(trial, version)) as verbs:
                holding[:] = [verbs]
                search.run(trial, verbs)
            holding.clear()
            self.on_step(len(search.finished), plan.grid.trials)
        if not search.finished:
            raise QueryError(UNTRIED)
        best = combined(search.trials, rng=self.rng, stop=self.stop)
        return self._rounded(replace(best, finished=len(search.finished) >= plan.grid.trials))

    def _rounded(self, projected: RapResult) -> TableRows:
        from bursar.synthetic.rap.relaxed import randomized_rounding

        rows = math.ceil(projected.size) if self.rows is None else self.rows
        codes = randomized_rounding(projected.relaxed, size=rows, rng=self.rng).astype(np.int32)
        return TableRows(codes=codes, total=float(projected.size), finished=projected.finished)

    def _both(self, verbs: Verbs, records: Sequence[Record], *, finished: bool) -> TableRows:
        setting, picking, task = self.plan.adaptivity, self.plan.picking, self.task
        assert setting is not None
        assert picking is not None
        total = marginals_from(records, task.sets, task.domain, size=task.size).consistent.total()
        rows = math.ceil(total) if self.rows is None else self.rows
        codes, done = corrected(
            self._table(records, SPREAD * max(rows, math.ceil(total))),
            task.workload,
            verbs,
            spend=picking,
            setting=setting,
            rows=rows,
            rng=self.rng,
            records=self.logged.bought,
            on_step=self.on_step,
            stop=self.stop,
        )
        return TableRows(codes=codes, total=total, finished=finished and done)


def missing(plan: TablePlan, records: Sequence[Record]) -> list[MarginalPurchase]:
    """The purchases of a plan that are not among the records."""
    measured = [record.event for record in records if isinstance(record.event, Measured)]
    bought = {(event.strategy.digest, event.noise) for event in measured}
    return [purchase for purchase in plan.purchases if (purchase.strategy.digest, purchase.noise) not in bought]


def to_come(task: Task, plan: TablePlan, logged: Logged, version: int) -> tuple[Event, ...]:
    """All that a plan will still buy, in its order, as far as it can be told before: the worst case of its branches.

    Guarantees: `carry_out` buys nothing that has no place here, and nothing dearer than what keeps its place: the same
    `MarginalPurchase`, `Round` and `Spend` set the noise. What is in the log already is not among it.
    """
    events: list[Event] = [
        Measured(strategy=purchase.strategy, noise=purchase.noise, version=version)
        for purchase in missing(plan, logged.records)
    ]
    if plan.search is not None:
        events += plan.search.remaining_events(logged.bought, version)
    if plan.picking is not None and plan.adaptivity is not None:
        workload, setting, records = task.workload, plan.adaptivity, logged.bought
        if plan.method is Method.RAP:
            sized = task.size is not None
            events += remaining_rap_events(workload, setting, plan.picking, records, version, sized=sized)
        else:
            events += remaining_round_events(workload, setting, plan.picking, records, version)
    return tuple(events)


@dataclass(frozen=True, kw_only=True, eq=False)
class TableOffer(PricedPlan[TableRows]):
    """One way to make a table. The worst case of all that is still to be bought is its price, and held meanwhile."""

    table: TableRun

    @property
    def label(self) -> str:
        return self.table.plan.method.value

    def widest(self, goal: Goal) -> float:
        """The largest error over all cells of the workload, which is exceeded every other time."""
        return self.table.plan.error

    def watched(self, on_step: Step, stop: Stop) -> TableOffer:
        """The same offer, with somebody who hears how far it is and may stop it."""
        table = replace(self.table, on_step=on_step, stop=stop)
        return replace(self, table=table, run=table.carry_out)


class TableExplanation(Explanation):
    """Every way to make a table; what picked counts cost depends on which ones they are."""

    charged = "the most that would be charged now"


@dataclass(frozen=True, kw_only=True, eq=False)
class PlannedTable:
    """A table request for the proposer: what is to be learnt, every method's plan, and the log as a run finds it."""

    asked: TableRequest
    task: Task
    plans: Mapping[Method, TablePlan]
    logged: Logged

    def run(self, plan: TablePlan) -> TableRun:
        return TableRun(task=self.task, plan=plan, logged=self.logged, rows=self.asked.rows)


class TableProposer:
    """Offers a table by every method that can make it, at what is still to be bought for it."""

    name = PROPOSER

    def offers(self, request: PlannedTable, views: Views) -> list[TableOffer]:
        offers = []
        for plan in request.plans.values():
            if plan.possible:
                events = to_come(request.task, plan, request.logged, views.version)
                offers.append(_offer(request.run(plan), Price(events=events, at_most=views.price(events))))
        return [views.completed(offer) for offer in offers if views.possible(offer)]


@dataclass(frozen=True, kw_only=True, eq=False)
class TableChoice:
    """Every offer to make a table, the one to take, and why it or no other; a refusal where it cannot be paid now."""

    offers: tuple[TableOffer, ...]
    offer: TableOffer
    why: str
    refusal: BudgetError | None = None


def choose_table(request: PlannedTable, views: Views) -> TableChoice:
    """The least error to expect, among what can be paid, as for any goal that is a price; refused where none can."""
    stated = request.asked
    method = None if stated.method == "auto" else Method(stated.method)
    offers = tuple(TableProposer().offers(request, views))
    eligible = [offer for offer in offers if method in (None, offer.table.plan.method)]
    offer = best_payable(eligible, stated.goal, views)
    if offer is None:
        raise _impossible(request.plans, method, views)
    why = reasons(request.plans, offer.table.plan, request.task)
    refusal = None if views.payable(offer) else _refusal(offer, views)
    return TableChoice(offers=offers, offer=offer, why=why, refusal=refusal)


def table_from_log(request: PlannedTable, measured: Sequence[Sequence[str]]) -> TableChoice:
    """The one offer where nothing may be spent: a table of what is measured already."""
    offer = _offer(request.run(request.plans[Method.MARGINALS]), Price())
    why = f"marginals: from {counted(len(measured), 'column set')} in the log; nothing is spent."
    return TableChoice(offers=(offer,), offer=offer, why=why)


def _impossible(by_method: Mapping[Method, TablePlan], method: Method | None, views: Views) -> QueryError:
    """Why a method cannot make the table, or none can where None is named."""
    plan = by_method[Method.MARGINALS if method is None else method]
    if plan.possible:
        return QueryError(f"this looks at partitions of {views.domain.partition} that are not sealed yet")
    if method is None:
        return QueryError(f"no method can do this: {plan.why}")
    return QueryError(f"{method.value} cannot do this: {plan.why}")


def _refusal(offer: TableOffer, views: Views) -> BudgetError:
    needed, left, limit = binding(offer, views)
    return what_fits(BudgetError(asked=from_units(needed), left=left_of(left), unit=views.mode.unit, limit=limit))


def what_fits(error: BudgetError) -> BudgetError:
    """The same refusal, with what would fit, rounded down to three digits so that it can be typed."""
    if error.left <= 0:
        return replace(error, fits="the same without --spend, which is free")
    step = 10.0 ** (math.floor(math.log10(error.left)) - 2)
    return replace(error, fits=f"--spend {math.floor(error.left / step) * step:.3g}")


def _offer(run: TableRun, price: Price) -> TableOffer:
    measured = [event.strategy.rows for event in price.events if isinstance(event, Measured)]
    picked = [event.count for event in price.events if isinstance(event, Selected)]
    return TableOffer(
        proposer=PROPOSER,
        price=price,
        run=run.carry_out,
        reuses=sum(evidence.table.size for evidence in run.task.evidence),
        buys=sum(measured) + sum(picked[::-1][::2]),  # from the last on, every other one stands in for measuring
        note=_note(run.plan),
        table=run,
    )


def _note(plan: TablePlan) -> str:
    """What it would measure."""
    marginals = sum(len(purchase.sources) for purchase in plan.purchases)
    parts = [counted(marginals, "whole marginal")] if marginals else []
    if plan.search is not None:
        parts.append(f"a search for rounds and picks in {counted(plan.search.grid.trials, 'trial')}")
    if plan.adaptivity is not None:
        parts.append(f"{counted(plan.adaptivity.rounds, 'round')} of {plan.adaptivity.picks:,} picked counts")
    return ", then ".join(parts) if parts else "what is in the log"
