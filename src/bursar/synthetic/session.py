"""Synthetic tables: plan one, see every way to make it, and make it.

The flow is that of a question in `engine.py`: request, choose, grant, run. A run that was interrupted, or overtaken,
goes on from its own records.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bursar.core.accounting import from_units, left_of, to_units
from bursar.core.grant import Grant
from bursar.core.ledger import Record
from bursar.engine import Engine
from bursar.errors import AnalystError, BudgetError, LedgerError, QueryError, Stale
from bursar.pace import paced
from bursar.planner.choose import best_payable, binding
from bursar.planner.explain import OfferLine
from bursar.planner.goals import Wanted
from bursar.planner.offer import Price, Views
from bursar.report.spending.purchases import reader
from bursar.report.status import OWNER, budget_of
from bursar.synthetic.alone import Turn, alone

if TYPE_CHECKING:
    from bursar.synthetic.plan.offers import TableExplanation, TableOffer, TableRows
    from bursar.synthetic.plan.workload import EvidentMarginals, MarginalWorkload, TableRequest
    from bursar.synthetic.report.report import Report
    from bursar.synthetic.table.synthetic_data import SyntheticData

Progress = Callable[[int, int], None]
"""Hears how much of how much is bought."""

OVERTAKEN = (
    "the table is not finished: the data were changed meanwhile, or the run stood still for so long that the budget "
    "set aside for it was given back\n"
    "try: the same again; what was measured is kept, and is not paid for twice"
)


def silent(done: int, of: int) -> None:
    """Nobody is told."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Prepared:
    """A table to be made: every way to make it, what each would cost, and the one to take; nothing is paid yet."""

    synthesis: Synthesis
    request: TableRequest
    workload: MarginalWorkload
    evident: EvidentMarginals
    offers: tuple[TableOffer, ...]
    offer: TableOffer
    why: str
    refusal: BudgetError | None  # where what is left cannot pay for the offer

    @property
    def price(self) -> float:
        """What is still to be paid, at most; nothing where everything is in the log."""
        return from_units(self.offer.price.at_most)

    @property
    def unit(self) -> str:
        return self.request.unit

    @property
    def left(self) -> float:
        """What whoever pays has left."""
        status = budget_of(self.synthesis.kernel, self.request.analyst)
        return status.accounts[0].left if len(status.accounts) == 1 else status.left

    @property
    def method(self) -> str:
        return self.offer.label

    def explain(self) -> TableExplanation:
        """Every way to make the table, with its price and the error to expect. Costs nothing."""
        from bursar.synthetic.plan.offers import TableExplanation

        request = self.request
        spend = "nothing is spent" if request.spend is None else f"at most {request.unit} {request.spend:.9g}"
        return TableExplanation(
            question=request.text,
            goal=f"a synthetic table, {request.about}, {spend}",
            contract="the largest error over all cells, exceeded every other time",
            unit=request.unit,
            offers=tuple(
                OfferLine.of(offer, request.goal, meets=math.isfinite(offer.widest(request.goal)))
                for offer in self.offers
            ),
            chosen=None if self.refusal is not None else self.offers.index(self.offer),
            left=self.left,
            analyst=None if self.offer.price.total is None else request.analyst,
            total_left=left_of(self.synthesis.kernel.left()),
        )

    def check(self) -> None:
        """Refuse what cannot be paid, before anything is."""
        if self.refusal is not None:
            raise self.refusal

    def make(self, *, progress: Progress = silent, seconds: float | None = None) -> SyntheticData:
        """Buy what is missing and make the table. After so many seconds, with whatever is there."""
        deadline = None if seconds is None else time.monotonic() + seconds
        with paced(self.synthesis.config.pace):
            return self.synthesis.make_table(
                self, progress, lambda: deadline is not None and time.monotonic() > deadline
            )


class Synthesis:
    """Makes synthetic tables for one analyst, from the log and with what may be spent."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self._sight = engine, engine.sight
        self.config, self.kernel, self.analyst = engine.config, engine.kernel, engine.analyst

    def prepare(
        self,
        *,
        rows: int | None = None,
        ways: int | None = None,
        marginals: str | None = None,
        workload: Sequence[str] | None = None,
        history: bool = False,
        augment: float = 0.0,
        spend: float | None = None,
        method: str = "auto",
        wait: bool = True,
        ticket: int | None = None,
    ) -> Prepared:
        """What a table would cost and how exact it would be; nothing is spent.

        `rows`: how many, as many as the data have unless named. The table is right about all sets of `ways` columns,
        or of `marginals` ("age,sex; age,region"), or of the questions of a `workload`, or of those in the log
        (`history`, with a share `augment` for others). Without `spend` it is free, made of what is in the log; with it,
        up to that much is spent. `method`: "marginals", "rap", "both", or "auto" for the least error to expect.
        """
        from bursar.synthetic.plan.workload import TableRequest

        if rows is not None and rows < 1:
            raise QueryError("a synthetic table has at least one row")
        if spend is not None and self.analyst != OWNER and not self.kernel.shares():
            raise AnalystError(
                "only the data owner may spend on a synthetic table here\ntry: the same without --spend, which is free"
            )
        request = TableRequest(
            ways=ways,
            marginals=marginals,
            workload=None if workload is None else self._sets_of(workload),
            history=history,
            augment=augment,
            rows=rows,
            spend=spend,
            method=method,
            unit=self.config.budget.mode.unit,
            analyst=self.analyst,
            wait=wait,
            ticket=ticket,
        )
        return self.plan(request)

    def plan(self, request: TableRequest) -> Prepared:
        """Every way to make the table from the log as it is now, and the one to take.

        A run that was interrupted is planned from the log that it began with, so that it goes on as it was planned.
        """
        evident = self._evident(self._sight.visible(0))
        if request.spend is None:
            return self._free(request, evident)
        run = (request.analyst, request.question)
        bought = [record for record in evident.records if (record.analyst, record.question) == run]
        if bought:
            begun = self._evident([r for r in evident.records if r.position < bought[0].position])
            prepared = self._paid(request, begun, evident, bought)
            if not request.history or prepared.price > 0:
                return prepared  # else the run is finished, and begins anew where more was asked since
        return self._paid(request, evident, evident, bought)

    def _evident(self, records: Sequence[Record]) -> EvidentMarginals:
        from bursar.synthetic.plan.workload import EvidentMarginals

        return EvidentMarginals.of(records, self.config.domain, size=self._sight.size)

    def _workload(self, request: TableRequest, evident: EvidentMarginals) -> MarginalWorkload:
        from bursar.synthetic.plan.workload import workload_of

        return workload_of(request, evident, self._engine.ledger.texts(), self._read, analyst=self._sight.asker)

    def _free(self, request: TableRequest, evident: EvidentMarginals) -> Prepared:
        from bursar.synthetic.plan.methods import from_log
        from bursar.synthetic.plan.offers import Logged, TableRun, table_offer
        from bursar.synthetic.plan.workload import NOTHING
        from bursar.synthetic.report.report import counted

        if not evident.sets:
            raise QueryError(NOTHING)
        workload = self._workload(request, evident)
        task = self._sight.task(evident, workload, 1.0)  # of which nothing is spent
        logged = Logged(records=evident.records, remade=self._remade(evident))
        run = TableRun(task=task, plan=from_log(task), logged=logged, rows=request.rows)
        offer = table_offer(run, Price())
        return Prepared(
            synthesis=self,
            request=request,
            workload=workload,
            evident=evident,
            offers=(offer,),
            offer=offer,
            why=f"marginals: from {counted(len(evident.sets), 'column set')} in the log; nothing is spent.",
            refusal=None,
        )

    def _paid(
        self, request: TableRequest, begun: EvidentMarginals, evident: EvidentMarginals, bought: Sequence[Record]
    ) -> Prepared:
        """Planned from what was evident when the run began; what it has bought since is not bought again."""
        from bursar.synthetic.plan.methods import impossible, plans, reasons
        from bursar.synthetic.plan.offers import Logged, TableRun, paid_offer
        from bursar.synthetic.plan.workload import Method

        assert request.spend is not None
        workload = self._workload(request, begun)
        task = self._sight.task(begun, workload, request.spend)
        logged = Logged(records=evident.records, own=bought, remade=self._remade(evident))
        by_method = plans(task)
        named = None if request.method == "auto" else Method(request.method)

        runs = [
            TableRun(task=task, plan=plan, logged=logged, rows=request.rows)
            for plan in by_method.values()
            if plan.possible
        ]

        def planned(views: Views) -> tuple[tuple[TableOffer, ...], TableOffer | None, BudgetError | None]:
            offers = tuple(filter(views.possible, (paid_offer(run, views) for run in runs)))
            if runs and not offers:
                raise QueryError(f"this looks at partitions of {views.domain.partition} that are not sealed yet")
            eligible = [offer for offer in offers if named in (None, offer.table.plan.method)]
            chosen = best_payable(eligible, request.goal, views)
            fits = chosen is None or views.payable(chosen)
            return offers, chosen, None if fits or chosen is None else _refusal(chosen, views)

        offers, offer, refusal = self._engine.planner.look(request.analyst, planned)
        if offer is None:
            raise impossible(by_method, named)
        return Prepared(
            synthesis=self,
            request=request,
            workload=workload,
            evident=evident,
            offers=offers,
            offer=offer,
            why=reasons(by_method, offer.table.plan, task),
            refusal=refusal,
        )

    def _remade(self, evident: EvidentMarginals) -> list[Record]:
        return [marginal.record(self.kernel.version()) for marginal in evident.remade]

    def make_table(self, prepared: Prepared, progress: Progress, stop: Callable[[], bool]) -> SyntheticData:
        """Carry a prepared table out, keep it beside the ledger, and judge it.

        Guarantees: where the same table is made twice at once, the second run waits for the first and uses what it has
        bought. The budget for all that is still to be bought is set aside before anything is; what others spend
        meanwhile does not stop the run. What it does not use is free again when it ends, however it ends. A run that
        stood still for longer than its hold goes on from what it has bought, within what may be spent.
        """
        charged, version = 0, self.kernel.version()
        with self._turn(prepared.request, stop) as turn:
            while True:
                prepared, before = self._up_to_date(prepared), charged
                offer = prepared.offer.watched(progress, stop)
                grant = self._grant(prepared, offer, stop, charged)
                try:
                    with grant:
                        turn.note(grant.fence)
                        rows = offer.run(grant)
                except (Stale, BudgetError) as refused:
                    charged += grant.charged.account
                    if isinstance(refused, BudgetError) and charged == 0:
                        raise _with_what_fits(refused) from None
                    if isinstance(refused, BudgetError) or charged == before or self.kernel.version() != version:
                        raise LedgerError(OVERTAKEN) from None
                    continue  # the hold was given back; what was bought is in the log
                finally:
                    turn.note(None)
                break
        return self._finished(prepared, rows, charged + grant.charged.account)

    @contextmanager
    def _turn(self, request: TableRequest, stop: Callable[[], bool]) -> Iterator[Turn]:
        """The right to buy: in line with other analysts, and one table at a time. A free table needs none."""
        if request.spend is None:
            yield Turn()
            return
        with self._engine.queue.turn(request), alone(self._sight.path, stop, self._engine.queue.tell) as turn:
            self._engine.policy.begin(self.kernel)
            if (left_behind := turn.left_behind()) is not None:
                self.kernel.drop_hold(left_behind)
            yield turn

    def _up_to_date(self, prepared: Prepared) -> Prepared:
        """Planned anew where the same run has bought something since."""
        if prepared.request.spend is None:
            return prepared
        run, seen = (self.analyst, prepared.request.question), prepared.evident.records
        later = self._sight.visible(seen[-1].position if seen else 0)
        bought = any((record.analyst, record.question) == run for record in later)
        return self.plan(prepared.request) if bought else prepared

    def _grant(self, prepared: Prepared, offer: TableOffer, stop: Callable[[], bool], charged: int) -> Grant:
        request = prepared.request
        events = () if stop() else offer.price.events  # where there is no time left, nothing will be bought
        at_most = 0 if request.spend is None else to_units(request.spend) - charged
        return Grant(self.kernel, request.analyst, request.text, events, at_most, proposer=offer.proposer)

    def _finished(self, prepared: Prepared, rows: TableRows, charged: int) -> SyntheticData:
        from bursar.synthetic.store import StoredTable, mark
        from bursar.synthetic.table.synthetic_data import SyntheticData

        domain, records = self.config.domain, self._sight.visible(0)
        stored = StoredTable(
            domain=domain,
            codes=rows.codes,
            total=rows.total,
            position=records[-1].position,
            mark=mark(records[-1]),
            method=prepared.method,
            analyst=None if self.config.analysts.policy == "shared" else self.analyst,
        )
        self._sight.view().put(stored)
        report = self._report(prepared, rows, self._evident(records), charged)
        return SyntheticData(domain=domain, codes=rows.codes, report=report, charge=from_units(charged))

    def _report(self, prepared: Prepared, rows: TableRows, evident: EvidentMarginals, charged: int) -> Report:
        from bursar.synthetic.plan.history import future_error
        from bursar.synthetic.report.judge import Judge, picked_cells
        from bursar.synthetic.report.report import Report

        domain, table = evident.domain, prepared.offer.table
        paid = f"{prepared.unit} {from_units(charged):.6g}" if charged else "free"
        bought = [record for record in evident.records if record.question == prepared.request.question]
        judge = Judge(
            domain=domain,
            codes=rows.codes,
            total=rows.total,
            clean=evident.clean,
            remade=evident.remade,
            picked={} if table.plan.picking is None else picked_cells(table.task.workload, bought),
        )
        later = prepared.workload.future
        single = [(attribute.name,) for attribute in domain.attributes if attribute.size > 1]
        return Report(
            method=prepared.method,
            why=prepared.why,
            cost=f"{paid}; {prepared.left:.6g} is left",
            rows=len(rows.codes),
            total=rows.total,
            finished=rows.finished,
            lines=judge.lines(prepared.workload.sets, single),
            apart=judge.apart(),
            bars=judge.bars(),
            future=None if later is None else future_error(judge.distance(columns) for columns in later),
        )

    def _sets_of(self, questions: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """The column sets that questions are about."""
        from bursar.synthetic.plan.column_sets import asked

        requests = [self._engine.prepare(sql, Wanted(synthetic=True)) for sql in questions]
        return tuple(dict.fromkeys(columns for request in requests for columns in asked(request.asked.workload.map)))

    def _read(self, text: str) -> list[tuple[str, ...]]:
        from bursar.synthetic.plan.column_sets import asked

        config = self.config
        request = reader(config.domain, config.table, config.levels)(text, self.kernel.sealed() or 0)
        return [] if request is None else asked(request.asked.workload.map)


def _refusal(offer: TableOffer, views: Views) -> BudgetError:
    needed, left, limit = binding(offer, views)
    error = BudgetError(asked=from_units(needed), left=left_of(left), unit=views.mode.unit, limit=limit)
    return _with_what_fits(error)


def _with_what_fits(error: BudgetError) -> BudgetError:
    """The same refusal, with what would fit, rounded down to three digits so that it can be typed."""
    if error.left <= 0:
        return replace(error, fits="the same without --spend, which is free")
    step = 10.0 ** (math.floor(math.log10(error.left)) - 2)
    return replace(error, fits=f"--spend {math.floor(error.left / step) * step:.3g}")
