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

from bursar.compile.open_columns import open_columns
from bursar.core.accounting import Event, from_units, left_of, to_units
from bursar.core.ledger import Record, chain
from bursar.engine import Engine
from bursar.errors import AnalystError, BudgetError, BursarError, LedgerError, QueryError, Stale
from bursar.pace import paced
from bursar.planner.explain import OfferLine
from bursar.planner.goals import Wanted
from bursar.planner.grant import Grant
from bursar.report.status import OWNER, budget_of
from bursar.sql.tokens import questions_of
from bursar.synthetic.alone import Turn, alone

if TYPE_CHECKING:
    from bursar.papers.rap.drift import DriftReport
    from bursar.synthetic.plan.offers import TableChoice, TableExplanation, TableOffer, TableRows
    from bursar.synthetic.plan.workload import EvidentMarginals, MarginalWorkload, TableRequest
    from bursar.synthetic.report import Report
    from bursar.synthetic.table.synthetic_data import SyntheticData

Progress = Callable[[int, int], None]
"""Hears how much of how much is bought."""

OVERTAKEN = (
    "the table is not finished: the data were changed meanwhile, or the run stood still for so long that the budget "
    "set aside for it was given back\n"
    "try: the same again; what was measured is kept, and is not paid for twice"
)


NO_TABLE = (
    "there is no synthetic table to judge, or it is about other data\ntry: bursar synth --out people2.csv --spend 0.1"
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
    choice: TableChoice

    @property
    def offer(self) -> TableOffer:
        return self.choice.offer

    @property
    def why(self) -> str:
        """Which method is taken, in words, and what error to expect from each."""
        return self.choice.why

    @property
    def price(self) -> float:
        """What is still to be paid, at most; nothing where everything is in the log."""
        return from_units(self.offer.price.at_most)

    @property
    def text(self) -> str:
        """What the log says about the run."""
        return self.request.text

    @property
    def unit(self) -> str:
        return self.request.unit

    @property
    def left(self) -> float:
        """What the payer has left."""
        status = budget_of(self.synthesis.kernel, self.request.analyst)
        return status.accounts[0].left if len(status.accounts) == 1 else status.left

    @property
    def method(self) -> str:
        """How the table will be made, as EXPLAIN calls it."""
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
                for offer in self.choice.offers
            ),
            chosen=None if self.choice.refusal is not None else self.choice.offers.index(self.offer),
            left=self.left,
            analyst=None if self.offer.price.total is None else request.analyst,
            total_left=left_of(self.synthesis.kernel.left()),
        )

    def check(self) -> None:
        """Refuse what cannot be paid, before anything is."""
        if self.choice.refusal is not None:
            raise self.choice.refusal

    def make(self, *, progress: Progress = silent, seconds: float | None = None) -> SyntheticData:
        """Buy what is missing and make the table. After `seconds`, with whatever is there."""
        deadline = None if seconds is None else time.monotonic() + seconds
        with paced(self.synthesis.config.pace):
            return self.synthesis.make_table(
                self, progress, lambda: deadline is not None and time.monotonic() > deadline
            )


class Synthesis:
    """Makes synthetic tables for one analyst, from the log and with what may be spent."""

    def __init__(self, engine: Engine) -> None:
        if opened := open_columns(engine.config.domain):
            raise QueryError(
                f"synthetic tables are made of columns whose values are declared, and {opened[0].name} is open"
            )
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
        rounds: int | None = None,
        picks: int | None = None,
        relaxed: int | None = None,
        agree: int | None = None,
        search: bool = False,
        wait: bool = True,
        ticket: int | None = None,
    ) -> Prepared:
        """What a table would cost and how exact it would be; nothing is spent.

        `rows`: how many, as many as the data have unless named. The table is right about all sets of `ways` columns,
        or of `marginals` ("age,sex; age,region"), or of the questions of a `workload`, or of those in the log
        (`history`, with a share `augment` for others). Without `spend` it is free, made of what is in the log; with it,
        up to that much is spent. `method`: "marginals", "rap", "both", or "auto" for the least error to expect. With
        "rap" also its T and K (`rounds`, `picks`), or a `search` for them, and n' (`relaxed` rows); and thresholds: for
        every set of columns and all values of them, how many rows agree in at least `agree` of the columns.
        """
        from bursar.synthetic.plan.workload import TableRequest

        if rows is not None and rows < 1:
            raise QueryError("a synthetic table has at least one row")
        if spend is not None and not self._may_spend():
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
            rounds=rounds,
            picks=picks,
            relaxed=relaxed,
            agree=agree,
            search=search,
            unit=self.config.budget.mode.unit,
            analyst=self.analyst,
            wait=wait,
            ticket=ticket,
        )
        return self.plan(request)

    def _may_spend(self) -> bool:
        return self.analyst == OWNER or bool(self.kernel.shares())

    def drift(
        self,
        *,
        spend: float,
        ways: int | None = None,
        marginals: str | None = None,
        workload: Sequence[str] | None = None,
        history: bool = False,
        agree: int | None = None,
    ) -> DriftReport:
        """How the kept table does on questions that drifted away from those that it was made for; up to `spend`."""
        from bursar.papers.rap.drift import DriftPlan, DriftReport, asked_digest, drifted_sets
        from bursar.synthetic.plan.offers import what_fits
        from bursar.synthetic.plan.workload import PROPOSER, Method, TableRequest, workload_of

        if not self._may_spend():
            raise AnalystError("only the data owner may spend on a report about a synthetic table here")
        request = TableRequest(
            ways=ways,
            marginals=marginals,
            workload=None if workload is None else self._sets_of(workload),
            history=history,
            spend=spend,
            method=Method.RAP.value,
            agree=agree,
            unit=self.config.budget.mode.unit,
            analyst=self.analyst,
        )
        with self._turn(request, lambda: False) as turn:
            table = self._sight.view().rows()
            if table is None:
                raise QueryError(NO_TABLE)
            evident = self._evident(self._sight.visible(0))
            made_for = workload_of(request, evident, self._engine.ledger.texts(), self._read, analyst=self._sight.asker)
            weights = made_for.weights or dict.fromkeys(made_for.sets, 1.0)
            text = f"{request.text}, drift from {asked_digest(weights)} of the table {table.table.mark}"
            questions = drifted_sets(evident.domain, weights, agree=agree, seed=text)
            plan = DriftPlan(questions=questions, spend=self._sight.task(evident, made_for, spend).spend)
            run = (self.analyst, chain.question(text))
            bought = [record for record in evident.records if (record.analyst, record.question) == run]
            events = tuple(plan.remaining_events(bought, self.kernel.version()))
            grant = Grant(self.kernel, self.analyst, text, events, to_units(spend), proposer=PROPOSER)
            try:
                with grant:
                    turn.note(grant.fence)
                    lines = plan.carry_out(table, grant, bought)
            except BudgetError as refused:
                raise what_fits(refused) from None
            finally:
                turn.note(None)
        return DriftReport(lines=lines, unit=request.unit, charge=from_units(grant.charged.account))

    def plan(self, request: TableRequest) -> Prepared:
        """Every way to make the table from the log as it is now, and the one to take.

        A run that was interrupted is planned from the log that it began with, so that it goes on as it was planned.
        """
        from bursar.synthetic.plan.workload import NOTHING

        evident = self._evident(self._sight.visible(0))
        if request.spend is None and not evident.sets:
            raise QueryError(NOTHING)
        run = (request.analyst, request.question)
        paid = () if request.spend is None else evident.records
        bought = [record for record in paid if (record.analyst, record.question) == run]
        if bought:
            begun = self._evident([record for record in evident.records if record.position < bought[0].position])
            prepared = self._prepared(request, begun, evident, bought)
            if not request.history or prepared.price > 0:
                return prepared  # else the run is finished, and begins anew where more was asked since
        return self._prepared(request, evident, evident, bought)

    def _prepared(
        self, request: TableRequest, begun: EvidentMarginals, evident: EvidentMarginals, bought: Sequence[Record]
    ) -> Prepared:
        """Planned from what was evident when the run began; what it has bought since is not bought again."""
        from bursar.synthetic.plan.methods import plan_from_log, plans
        from bursar.synthetic.plan.offers import Logged, PlannedTable, choose_table, table_from_log
        from bursar.synthetic.plan.workload import workload_of
        from bursar.synthetic.rap.rounds import Adaptivity

        texts = self._engine.ledger.texts()
        workload = workload_of(request, begun, texts, self._read, analyst=self._sight.asker)
        task = self._sight.task(begun, workload, 1.0 if request.spend is None else request.spend)
        if request.rounds is not None and request.picks is not None:
            task = replace(task, setting=Adaptivity(rounds=request.rounds, picks=request.picks))
        if request.relaxed is not None:
            task = replace(task, relaxed=request.relaxed)
        task = replace(task, agree=request.agree, search=request.search)
        remade = [marginal.record(self.kernel.version()) for marginal in evident.remade]
        logged = Logged(records=evident.records, bought=bought, remade=remade)
        by_method = plan_from_log(task) if request.spend is None else plans(task)
        planned = PlannedTable(asked=request, task=task, plans=by_method, logged=logged)
        if request.spend is None:
            choice = table_from_log(planned, evident.sets)
        else:
            choice = self._engine.planner.look(request.analyst, lambda views: choose_table(planned, views))
        return Prepared(synthesis=self, request=request, workload=workload, evident=evident, choice=choice)

    def _evident(self, records: Sequence[Record]) -> EvidentMarginals:
        from bursar.synthetic.plan.workload import EvidentMarginals

        return EvidentMarginals.of(records, self.config.domain, size=self._sight.size)

    def make_table(self, prepared: Prepared, progress: Progress, stop: Callable[[], bool]) -> SyntheticData:
        """Carry a prepared table out, keep it beside the ledger, and judge it.

        Guarantees: where the same table is made twice at once, the second run waits for the first and uses what it has
        bought. The budget for all that is still to be bought is set aside before anything is; what others spend
        meanwhile does not stop the run. What it does not use is free again when it ends, however it ends. A run that
        stood still for longer than its hold goes on from what it has bought, within what may be spent.
        """
        from bursar.synthetic.plan.offers import what_fits

        charged, version = 0, self.kernel.version()
        with self._turn(prepared.request, stop) as turn:
            while True:
                prepared, before = self._up_to_date(prepared), charged
                offer = prepared.offer.watched(progress, stop)
                if offer.table.plan.search is not None:
                    rows, charged = self._searched(prepared, offer, turn)
                    break
                grant = self._grant(prepared, offer, stop, charged)
                try:
                    with grant:
                        turn.note(grant.fence)
                        rows = offer.run(grant)
                except (Stale, BudgetError) as refused:
                    charged += grant.charged.account
                    if isinstance(refused, BudgetError) and charged == 0:
                        raise what_fits(refused) from None
                    if isinstance(refused, BudgetError) or charged == before or self.kernel.version() != version:
                        raise LedgerError(OVERTAKEN) from None
                    continue  # the hold was given back; what was bought is in the log
                finally:
                    turn.note(None)
                charged += grant.charged.account
                break
        return self._finished(prepared, rows, charged)

    def _searched(self, prepared: Prepared, offer: TableOffer, turn: Turn) -> tuple[TableRows, int]:
        """A table whose purchases follow from one another: a grant after the other, and what all of them charged."""
        from bursar.synthetic.plan.offers import what_fits

        request, search = prepared.request, offer.table.plan.search
        assert request.spend is not None
        assert search is not None
        at_most, charged = to_units(request.spend), 0

        @contextmanager
        def granted(events: Sequence[Event]) -> Iterator[Grant]:
            nonlocal charged
            grant = Grant(
                self.kernel, request.analyst, request.text, events, at_most - charged, proposer=offer.proposer
            )
            try:
                with grant:
                    turn.note(grant.fence)
                    yield grant
            finally:
                turn.note(None)
                charged += grant.charged.account

        try:
            rows = offer.table.searched(search, self.kernel.version(), granted)
        except (Stale, BudgetError) as refused:
            if isinstance(refused, BudgetError) and charged == 0:
                raise what_fits(refused) from None
            raise LedgerError(OVERTAKEN) from None
        return rows, charged

    @contextmanager
    def _turn(self, request: TableRequest, stop: Callable[[], bool]) -> Iterator[Turn]:
        """The right to buy: in line with other analysts, and one table at a time. A free table needs none."""
        if request.spend is None:
            yield Turn()
            return
        with self._engine.queue.turn(request), alone(self._sight.path, stop, self._engine.queue.tell) as turn:
            self._engine.plant_seed()
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
        from bursar.synthetic.report import Report, TableComparison, measured_cells

        domain, table = evident.domain, prepared.offer.table
        paid = f"{prepared.unit} {from_units(charged):.6g}" if charged else "free"
        bought = [record for record in evident.records if record.question == prepared.request.question]
        judge = TableComparison(
            domain=domain,
            codes=rows.codes,
            total=rows.total,
            consistent=evident.clean,
            derived=evident.remade,
            picked={} if table.plan.picking is None else measured_cells(table.task.workload, bought),
            agree=table.task.agree,
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
            apart=judge.unmeasured_pairs(),
            bars=judge.bars(),
            future=None if later is None else future_error(judge.distance(columns) for columns in later),
        )

    def _sets_of(self, questions: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """The column sets that questions are about."""
        from bursar.synthetic.plan.workload import sets_in

        requests = [self._engine.prepare(sql, Wanted(synthetic=True)) for sql in questions]
        return tuple(dict.fromkeys(columns for request in requests for columns in sets_in(request.asked.workload.map)))

    def _read(self, text: str) -> list[tuple[str, ...]]:
        """The column sets that a text of the log is about: one question, or several that were asked as one."""
        try:
            return list(self._sets_of(questions_of(text)))
        except BursarError:
            return []
