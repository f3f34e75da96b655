"""Synthetic tables: prepare one, and make it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from bursar.core.accounting import from_units, to_units
from bursar.core.grant import Grant
from bursar.core.ledger import chain
from bursar.engine import Engine
from bursar.errors import AnalystError, BudgetError, LedgerError, QueryError, Stale
from bursar.planner.goals import Wanted
from bursar.report.spending.purchases import reader
from bursar.report.status import OWNER
from bursar.synthetic.alone import Turn, alone
from bursar.synthetic.prepared import Place, Prepared, Progress

if TYPE_CHECKING:
    from bursar.synthetic.plan.methods import Task
    from bursar.synthetic.plan.offers import Run, TableRows
    from bursar.synthetic.plan.workload import EvidentMarginals, TableRequest
    from bursar.synthetic.report.report import Report
    from bursar.synthetic.table.synthetic_data import SyntheticData

OVERTAKEN = (
    "the table is not finished: the data were changed meanwhile, or the run stood still for so long that the budget "
    "set aside for it was given back\n"
    "try: the same again; what was measured is kept, and is not paid for twice"
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
        asked = None if workload is None else self._sets_of(workload)
        wish = TableRequest(ways=ways, marginals=marginals, workload=asked, history=history, augment=augment)
        place = Place(analyst=self.analyst, wait=wait, ticket=ticket)
        if spend is None:
            return self._free(wish, rows, place)
        return self._paid(wish, spend, method, rows, place)

    def _free(self, wish: TableRequest, rows: int | None, place: Place) -> Prepared:
        from bursar.synthetic.plan.workload import NOTHING, EvidentMarginals, workload_of
        from bursar.synthetic.report.report import counted

        evident = EvidentMarginals.of(self._sight.visible(0), self.config.domain, size=self._sight.size)
        if not evident.sets:
            raise QueryError(NOTHING)
        workload = workload_of(
            wish, evident, self._engine.ledger.texts(), self._read, analyst=self._sight.asker, spending=False
        )
        why = f"marginals: from {counted(len(evident.sets), 'column set')} in the log; nothing is spent."
        facts: Any = {
            "synthesis": self,
            "evident": evident,
            "workload": workload,
            "rows": rows,
            "place": place,
            "own": (),
        }
        again = partial(self._free, wish, rows, place)
        return Prepared(**facts, task=None, plan=None, purpose="", why=why, again=again)

    def _paid(self, wish: TableRequest, spend: float, method: str, rows: int | None, place: Place) -> Prepared:
        from bursar.synthetic.plan.methods import Method, chosen, plans, reasons
        from bursar.synthetic.plan.workload import PREFIX, EvidentMarginals, workload_of

        named = [each.value for each in Method]
        if method not in ("auto", *named):
            raise QueryError(f"there is no method {method!r}\ntry: auto, {', '.join(named)}")
        unit = self.config.budget.mode.unit
        purpose = f"{PREFIX}{wish.text}, {method}, {unit} {spend:.9g}"
        again = partial(self._paid, wish, spend, method, rows, place)
        now = EvidentMarginals.of(self._sight.visible(0), self.config.domain, size=self._sight.size)
        question, texts = chain.question(purpose), self._engine.ledger.texts()
        own = [record for record in now.records if (record.analyst, record.question) == (self.analyst, question)]
        begun = [record for record in now.records if not own or record.position < own[0].position]
        found: list[Prepared] = []
        for records in (begun, now.records):  # a run that is finished begins anew where more was asked since
            then = EvidentMarginals.of(records, self.config.domain, size=self._sight.size)
            workload = workload_of(wish, then, texts, self._read, analyst=self._sight.asker, spending=True)
            task = self._sight.task(then, workload, spend)
            made = plans(task)
            plan = chosen(made, None if method == "auto" else Method(method))
            facts: Any = {"evident": now, "workload": workload, "rows": rows, "place": place, "purpose": purpose}
            why = reasons(made, plan, task)
            found.append(Prepared(**facts, synthesis=self, task=task, plan=plan, own=own, why=why, again=again))
            if not own or not wish.history or found[-1].price > 0:
                break
        return found[-1]

    def make_table(self, prepared: Prepared, progress: Progress, stop: Callable[[], bool]) -> SyntheticData:
        """Carry a prepared table out, keep it beside the ledger, and judge it.

        Guarantees: where the same table is made twice at once, the second run waits for the first and uses what it has
        bought. The budget for all that is still to be bought is set aside before anything is; what others spend
        meanwhile does not stop the run. What it does not use is free again when it ends, however it ends.
        """
        if prepared.plan is None:
            task = self._sight.task(prepared.evident, prepared.workload, 1.0)  # of which nothing is spent
            return self._finished(prepared, self._run(prepared, task, progress, stop).from_log(), 0)
        with self._engine.queue.turn(prepared.place), alone(self._sight.path, stop, self._engine.queue.tell) as turn:
            prepared = self._up_to_date(prepared)
            made, charged = self._bought(prepared, progress, stop, turn)
        return self._finished(prepared, made, charged)

    def _up_to_date(self, prepared: Prepared) -> Prepared:
        """Prepared anew where the same run has bought something since."""
        whose, seen = (self.analyst, prepared.question), prepared.evident.records
        later = self._sight.visible(seen[-1].position if seen else 0)
        return prepared.again() if any((record.analyst, record.question) == whose for record in later) else prepared

    def _bought(
        self, prepared: Prepared, progress: Progress, stop: Callable[[], bool], turn: Turn
    ) -> tuple[TableRows, int]:
        """The rows, and what they cost in units of 2^-50."""
        from bursar.synthetic.plan.workload import PROPOSER

        plan, task = prepared.plan, prepared.task
        assert plan is not None
        assert task is not None
        self._engine.policy.begin(self.kernel)
        if (left := turn.left_behind()) is not None:
            self.kernel.drop_hold(left)
        at_most = to_units(task.allowance.spend.amount)
        events = () if stop() else prepared.events  # where there is no time left, nothing will be bought
        grant = Grant(self.kernel, self.analyst, prepared.purpose, events, at_most, proposer=PROPOSER)

        def renewed() -> bool:
            grant.renew()
            return stop()

        try:
            with grant:
                turn.note(grant.fence)
                made = self._run(prepared, task, progress, renewed).carry_out(plan, grant)
        except (Stale, BudgetError) as refused:
            if isinstance(refused, BudgetError) and grant.charged.account == 0:
                raise prepared.refused(refused) from None
            raise LedgerError(OVERTAKEN) from None
        finally:
            turn.note(None)
        return made, grant.charged.account

    def _run(self, prepared: Prepared, task: Task, progress: Progress, stop: Callable[[], bool]) -> Run:
        from bursar.synthetic.plan.offers import Run

        return Run(task=task, logged=prepared.logged, rows=prepared.rows, on_step=progress, stop=stop)

    def _finished(self, prepared: Prepared, made: TableRows, charged: int) -> SyntheticData:
        from bursar.synthetic.plan.workload import EvidentMarginals
        from bursar.synthetic.store import StoredTable, mark
        from bursar.synthetic.table.synthetic_data import SyntheticData

        records = self._sight.visible(0)
        shared = None if self.config.analysts.policy == "shared" else self.analyst
        facts: Any = {
            "position": records[-1].position,
            "mark": mark(records[-1]),
            "method": prepared.method,
            "analyst": shared,
        }
        domain = self.config.domain
        self._sight.view().put(StoredTable(domain=domain, codes=made.codes, total=made.total, **facts))
        evident = EvidentMarginals.of(records, domain, size=self._sight.size)
        report = self._report(prepared, made, evident, charged)
        return SyntheticData(domain=domain, codes=made.codes, report=report, charge=from_units(charged))

    def _report(self, prepared: Prepared, made: TableRows, evident: EvidentMarginals, charged: int) -> Report:
        from bursar.synthetic.plan.history import future_error
        from bursar.synthetic.report.judge import Judge, picked_cells
        from bursar.synthetic.report.report import Report

        domain, task = evident.domain, prepared.task
        paid = f"{prepared.unit} {from_units(charged):.6g}" if charged else "free"
        own = [record for record in evident.records if record.question == prepared.question]
        picking = task is not None and prepared.plan is not None and prepared.plan.picking is not None
        judge = Judge(
            domain=domain,
            codes=made.codes,
            total=made.total,
            clean=evident.clean,
            remade=evident.remade,
            picked=picked_cells(task.workload, own) if picking and task is not None else {},
        )
        later = prepared.workload.future
        return Report(
            method=prepared.method,
            why=prepared.why,
            cost=f"{paid}; {prepared.left:.6g} is left",
            rows=len(made.codes),
            total=made.total,
            finished=made.finished,
            lines=judge.lines(prepared.workload.sets, [(own.name,) for own in domain.attributes if own.size > 1]),
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
        found = reader(config.domain, config.table, config.levels)(text, self.kernel.sealed() or 0)
        return [] if found is None else asked(found.asked.workload.map)
