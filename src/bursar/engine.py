"""Bursar in one page: a question becomes an answer in `Engine.ask`. Read this first.

text --sql--> Query --compile--> Workload --planner--> Offer --core--> records --estimation--> Answer

A synthetic table goes the same way in `synthetic/session.py`: request, choose, grant, run.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import replace
from functools import cached_property

from bursar import presets
from bursar.analysts.guarantee import guarantee_of
from bursar.analysts.policy import PlannerParts, policy_of
from bursar.analysts.queue import queue_of
from bursar.answer import Answer, Payment
from bursar.compile.compile_cache import CompileCache
from bursar.compile.open_columns import Keys, OpenColumns, labelled, open_columns
from bursar.compile.resolve import with_levels
from bursar.compile.workload import Workload
from bursar.config import Config
from bursar.core.accounting import Closed, Failed, Paid, Refined, Sealed, Versioned, from_units, left_of
from bursar.core.accounts import FREE, Charge
from bursar.core.domain import Domain
from bursar.core.extensions.relations import Relation
from bursar.core.kernel import Kernel
from bursar.core.ledger import Ledger, Record
from bursar.core.noise.system import Randomness
from bursar.core.queries import LinearMap, Predicate
from bursar.core.source.source import Source
from bursar.errors import Busy, LedgerError, QueryError, Stale
from bursar.estimation.estimate import Estimate
from bursar.goal import DEFAULT_CONFIDENCE, Goal, Horizon
from bursar.open_keys import OpenKeys, left_after, paid_before
from bursar.planner.choose import Preset, check_strategy
from bursar.planner.explain import Explanation
from bursar.planner.goals import Wanted, beside_goal, goals_in_people, in_counts, resolve
from bursar.planner.grant import Grant, new_claim
from bursar.planner.offer import Offer
from bursar.planner.planner import Planner, Promised
from bursar.planner.request import ONCE, PlanningRequest, Request, planning_request
from bursar.repeated import FreeAnswers
from bursar.report.status import OWNER
from bursar.sql import Query
from bursar.sql.joins import tables_named
from bursar.sql.parameters import Clock, ResolvedQuestion, resolve_day, utc_clock
from bursar.synthetic.sight import TableSight
from bursar.threads import one_thread
from bursar.views.kept_records import KeptRecords, bring_up_to_date
from bursar.views.log import SharedLog
from bursar.views.measured_before import MeasuredBefore
from bursar.views.measurements import Measurements
from bursar.views.question_notes import MemoryNotes, QuestionNotes

PATIENCE_SECONDS = 120.0
"""How long a question waits for another process that answers the same key, or plans again when overtaken."""


OF_A_TABLE = Paid | Versioned | Sealed | Failed | Closed
"""Events that are of one private table, which their version says."""


class Engine:
    """One private table of a data set, opened for one analyst: the parts that a question passes through, and the flow
    between them."""

    checkpoints = False
    """Whether a long log gets checkpoints by itself: where others will open it."""

    def __init__(
        self,
        config: Config,
        ledger: Ledger,
        *,
        open_source: Callable[[bytes], Source],
        randomness: Randomness,
        analyst: str = OWNER,
        preset: Preset | None = None,
        notes: QuestionNotes | None = None,
        clock: Clock = utc_clock,
        relations: Sequence[Relation] = (),
    ) -> None:
        """`relations` are all private tables of the data set, where this is one of several."""
        self.config, self.ledger, self.analyst, self.clock = config, ledger, analyst, clock
        self.notes: QuestionNotes = MemoryNotes() if notes is None else notes
        self.open_source, self.randomness, self.relations = open_source, randomness, relations
        preset = presets.named(config.preset) if preset is None else preset
        self.kernel = Kernel(
            domain=config.domain,
            unit=config.unit,
            budget=config.budget,
            max_rows=config.max_rows,
            ledger=ledger,
            open_source=open_source,
            randomness=randomness,
            sequential=preset.sequential,
            table=config.relation,
            relations=relations,
        )
        self.tables = PrivateTables((self,))
        self.policy, self.queue = policy_of(config.analysts), queue_of(config.analysts, ledger)
        self._preset = presets.under(config.family, preset, config.domain, config.groups)
        joined = config.tables if config.parents else None
        self._compiled = CompileCache(config.domain, config.table, config.levels, config.unit, joined)
        self._index: MeasuredBefore | None = None  # read when it is first looked at
        self._start: tuple[int, Sequence[Record]] | None = None  # likewise
        self._log = SharedLog(ledger.records, self.kernel.begun)
        self.sight = TableSight(config, ledger, analyst, self.records)
        self._planners: dict[str | None, Planner] = {}  # by analyst; one for all, under None, where they share
        self._free = FreeAnswers(self.kernel.position, self.records, lambda who: self._payment(who, FREE))
        self._others = threading.Lock()
        self.open_keys = OpenKeys(config, ledger, self.kernel, analyst)
        self._open_columns = bool(open_columns(config.domain))

    def records(self, after: int) -> Sequence[Record]:
        """Records of the log after a position, without those about other private tables."""
        records = self._log(after)
        if len(self.tables) == 1:
            return records
        others = {version for version, table in self.kernel.tables().items() if table != self.kernel.table}
        return [each for each in records if not (isinstance(each.event, OF_A_TABLE) and each.event.version in others)]

    def kept(self, after: int) -> Sequence[Record]:
        """The same, for planners: who begins to read a long log gets the records of its start that count.

        They end before the start does, maybe, and whoever reads on from there has no use for those left out.
        """
        if len(self.tables) > 1 or self.config.domain.partition is not None:
            return self.records(after)
        if self._start is None:
            index = KeptRecords.saved_in(self.ledger)
            usable = 0 < self.kernel.begun <= index.position <= self.kernel.position()
            self._start = (index.position, index.read(self.ledger)) if usable else (0, ())
        position, start = self._start
        later = self.records(max(after, position))
        return later if after > 0 else [*start, *later]

    @cached_property
    def planner(self) -> Planner:
        """The analyst's planner, or the one of all who share: made for the first who plans, and kept with what it has
        read of the log."""
        parts = PlannerParts(
            domain=self.config.domain,
            mode=self.config.budget.mode,
            preset=self._preset,
            prices=self.kernel,
            ledger=self.ledger,
            records=self.records,
            kept=self.kept,
            analyst=self.analyst,
            synthetic=self.sight.synthetic_rows,
            promised=self.promised,
            notes=self.notes,
            horizon=self.config.horizon,
            before=self._measured_before,
        )
        whose = None if self.config.analysts.policy == "shared" else self.analyst
        with self._others:
            if whose not in self._planners:
                self._planners[whose] = self.policy.planner(parts)
            return self._planners[whose]

    @property
    def promised(self) -> Promised | None:
        """What analysts can rely on, where there are shares."""
        return guarantee_of(self.config.analysts, self.config.budget)

    def _measured_before(self, queries: LinearMap) -> Measurements | None:
        """Measurements of one map, by the index that is saved with a checkpoint; None where there is none of use."""
        if self._index is None:
            self._index = MeasuredBefore.saved_in(self.ledger)
        index, begun = self._index, self.kernel.begun
        if len(self.tables) > 1 or not 0 < begun <= index.position:
            return None
        tail = self.records(index.position)
        if any(isinstance(record.event, Refined) for record in tail):
            return None  # it may be of rows that stand before the tail, which only the whole log has
        record = index.find(queries, self.ledger, version=self.kernel.version(), end=index.position)
        measurements = Measurements(self.config.domain, version=index.version)
        measurements.advance([*([] if record is None else [record]), *tail])
        return measurements

    def as_analyst(self, analyst: str) -> Engine:
        """The same open data set for another analyst: one kernel and one ledger, and one planner for all who share.

        Whoever shares nothing has a planner of their own, which is kept, since it has read the log.
        """
        tables = PrivateTables(tuple(engine._for(analyst) for engine in self.tables))
        for engine in tables:
            engine.tables = tables
        return tables.of(self)

    def _for(self, analyst: str) -> Engine:
        other = copy(self)
        other.analyst, other.sight = analyst, TableSight(self.config, self.ledger, analyst, self.records)
        other.open_keys = self.open_keys.of(analyst)
        vars(other).pop("planner", None)
        return other

    def ask(
        self,
        question: str | PlanningRequest,
        options: Wanted | None = None,
        *,
        key: str | None = None,
        wait: bool = True,
        ticket: int | None = None,
    ) -> Answer | Explanation:
        """The flow of a question, from its text to its answer; an Explanation where the text begins with EXPLAIN.

        A batch and a set of thresholds, which are not made of one text, come as a request that was prepared before.
        """
        if isinstance(question, str) and (engine := self.tables.asked(question, self)) is not self:
            return engine.ask(question, options, key=key, wait=wait, ticket=ticket)
        repeats = None
        if isinstance(question, PlanningRequest):
            request = question
        else:
            resolved = resolve_day(question, self.clock)
            nameless = key is None or key.startswith(ONCE)
            if nameless and ticket is None and self.config.analysts.scheduler == "none":
                repeats = self._free.repeats(resolved, options, self.analyst)
                if repeats.answer is not None:
                    return repeats.answer
            sealed, keys = self.kernel.sealed(), self.keys()
            with self._refusing(resolved.text, sealed):
                goal = options or Wanted()
                query = self._compiled.parse(resolved.text, measured=goal.measures)  # text -> Query
                workload = self._compiled.compile(query, sealed, keys, self.tables.names)  # Query -> Workload
            explain = query.explain
            request = self.request(
                resolved, workload, goal, query.goal, key=key, wait=wait, ticket=ticket, explain=explain
            )
            if workload.named and not explain and self._named(request):
                return self.ask(question, options, key=key, wait=wait, ticket=ticket)  # with cells for its texts
            request = self._with_searches(query, request, goal)
        if request.explain:
            return self.explain(request)
        if (done := self.answered(request.asked)) is not None:
            return done  # same key, same question: the same bytes, no charge
        if request.searches:
            searched = self.open_keys.search(request, self.planner.choose(request))
            remaining = left_after(options or Wanted(), searched)
            again = self.prepare(
                request.text, remaining, key, wait=wait, ticket=ticket
            )  # with cells for what was found
            with paid_before(searched):
                return self.ask(replace(again, searches=(), searched=searched))
        with self.queue.turn(request.asked):
            give_up = time.monotonic() + PATIENCE_SECONDS
            while time.monotonic() < give_up:
                if (done := self.answered(request.asked)) is not None:
                    return done  # somebody else answered this key meanwhile
                try:
                    self.plant_seed()
                    offer = self.planner.choose(request)  # Workload -> Offer
                    with self._grant(request.asked, offer) as grant, one_thread():
                        estimate = offer.run(grant)  # Offer -> records -> Estimate
                        answer = self._answer(request, offer, estimate, grant.charged)
                        if grant.claim is not None:  # the first one that is stored under a key is everybody's
                            answer = Answer.from_bytes(grant.store(answer.to_bytes()))
                    if repeats is not None:
                        repeats.keep(answer, self._lasting_rows(request, offer))
                    if not offer.free:
                        self.checkpoint_if_due()
                    return answer
                except Stale:
                    continue  # overtaken by another commit: plan again on the longer log
                except Busy:
                    time.sleep(0.05)
        raise LedgerError("the ledger is too busy to answer now; try again")

    def plant_seed(self) -> None:
        """Measure what the policy owes everyone, once, before the first question is planned."""
        if self.policy.seed is not None:
            from bursar.analysts.seed_measurements import plant  # strategies are slow to import, and this happens once

            plant(self.kernel, self.policy.seed)

    def _lasting_rows(self, request: PlanningRequest, offer: Offer) -> str | None:
        """The rows that were read again, where they are as long as nobody measures or refines them.

        So it is where whoever looks for them is asked first, and the goal does not change with the log.
        """
        goal, first = request.asked.goal, next(iter(self.planner.preset.proposers))
        of_people = goal.percent or goal.relative or any(part.percent for part in goal.parts)
        fixed = self.config.public_size is not None or not of_people
        plain = fixed and self.config.analysts.policy in ("shared", "independent")
        return request.workload.map.digest if plain and offer.same_rows and first.same_rows else None

    def repeated(self, question: str, options: Wanted) -> Answer | None:
        """The answer of `ask` where it was free before and nothing has happened since: neither planned nor waited for.

        None where that is not known at once: also where answers are paced or wait for turns, and where the ledger is on
        another machine.
        """
        config = self.config
        if config.pace > 0 or config.analysts.scheduler != "none" or config.ledger.url is not None:
            return None
        return self._free.repeats(resolve_day(question, self.clock), options, self.analyst).answer

    @property
    def domain(self) -> Domain:
        """The columns as the analyst sees them now: open ones with the texts that can be told apart."""
        keys = self.keys()
        return self.config.domain if keys is None else OpenColumns.of(self.config.domain, keys, ()).domain

    @property
    def cells(self) -> Domain:
        """The columns with all cells that they ever have; those of open ones called by their texts."""
        return labelled(self.config.domain, self.keys() or {})

    @property
    def columns(self) -> Domain:
        """All that a question can name, as the analyst sees it now: with the levels of columns."""
        return with_levels(self.domain, self.config.levels)

    def keys(self) -> Keys | None:
        """The keys of open columns that the analyst may tell apart; None where no column is open."""
        return self.open_keys.keys() if self._open_columns else None

    def scope(self, where: str) -> Predicate:
        """The rows for which a condition holds."""
        return self._compiled.scope(where, self.keys() or {})

    def _named(self, request: PlanningRequest) -> bool:
        """Give texts that a question is the first to name cells of their own, if it can be paid for and is not answered
        before; says whether that was done."""
        if self.answered(request.asked) is not None:
            return False
        self.planner.choose(request)
        self.kernel.name_keys(request.asked.workload.named, analyst=self.analyst)
        return True

    def prepare(
        self,
        text: str,
        options: Wanted,
        key: str | None = None,
        *,
        wait: bool = True,
        ticket: int | None = None,
        naming: bool = False,
    ) -> PlanningRequest:
        """A question that is only compiled, to be priced, or asked together with others about the same table.

        With `naming`, texts that it is the first to name get cells of their own at once.
        """
        resolved = resolve_day(text, self.clock)
        query, workload = self._read(resolved.text, options)
        if query.search is not None and naming:
            raise QueryError(
                "texts are looked for by a question of its own, and not in a batch", position=query.search.position
            )
        if workload.named and naming:
            self.kernel.name_keys(workload.named, analyst=self.analyst)
            query, workload = self._read(resolved.text, options)
        request = self.request(
            resolved, workload, options, query.goal, key=key, wait=wait, ticket=ticket, explain=query.explain
        )
        return self._with_searches(query, request, options)

    def _with_searches(self, query: Query, request: PlanningRequest, options: Wanted) -> PlanningRequest:
        """A request with what is to be looked for first; it is then priced as if much had been found."""
        if self._open_columns or query.search is not None:
            request = self.open_keys.with_searches(query, request)
        if not request.searches:
            return request
        keys, as_asked = self.open_keys.as_if_found(request.searches), request.asked
        workload = self._compiled.compile(query, self.kernel.sealed(), keys, self.tables.names)
        question = ResolvedQuestion(request.text)
        ahead = self.request(question, workload, options, query.goal, key=as_asked.key, explain=as_asked.explain)
        return replace(ahead, searches=request.searches)

    def read(self, text: str) -> tuple[Query, Workload]:
        """What a text asks for, about whichever table; nothing is planned."""
        resolved = resolve_day(text, self.clock).text
        return self.tables.asked(resolved, self)._read(resolved, Wanted())

    def _read(self, text: str, options: Wanted) -> tuple[Query, Workload]:
        sealed = self.kernel.sealed()
        with self._refusing(text, sealed):
            query = self._compiled.parse(text, measured=options.measures)
            return query, self._compiled.compile(query, sealed, self.keys(), self.tables.names)

    @contextmanager
    def _refusing(self, text: str, sealed: int | None) -> Iterator[None]:
        """A question that cannot be parsed or compiled is refused with one that can be asked instead."""
        try:
            yield
        except QueryError as refusal:
            if self._compiled.knows_better(text):
                raise
            from bursar.rewrite.suggest import suggest  # a good question does not need it

            config = self.config
            columns = (self.domain, config.table, sealed, config.levels)
            raise suggest(text, refusal, *columns, config.unit) from refusal.__cause__

    def request(
        self,
        question: ResolvedQuestion,
        workload: Workload,
        options: Wanted,
        clause: Goal | None = None,
        *,
        key: str | None = None,
        wait: bool = True,
        ticket: int | None = None,
        explain: bool = False,
    ) -> PlanningRequest:
        """A compiled question with the one goal that it is asked with, and the same as it is planned, in counts."""
        check_strategy(self._preset, options.strategy, self.config.budget.mode)
        if question.remarks:
            workload = replace(workload, remarks=(*workload.remarks, *question.remarks))
        request = Request(
            text=question.text,
            workload=workload,
            goal=resolve(options, clause, self.config.goal, mode=self.config.budget.mode, public=not workload.map.rows),
            analyst=self.analyst,
            key=key,
            explain=explain,
            wait=wait,
            ticket=ticket,
            horizon=None if options.horizon is None else Horizon.of(options.horizon),
            synthetic=options.synthetic,
            strategy=options.strategy,
        )
        return planning_request(request, in_counts(request.goal, self.config.public_size, self.planner.measured_size))

    def explain(self, request: PlanningRequest) -> Explanation:
        """Every way to answer, and what the goal means for outputs whose errors it counts in people."""
        return replace(
            self.planner.explain(request),
            in_people=goals_in_people(request, self._size),
            search_price=sum(search.rho for search in request.searches),
            searches=tuple(search.ahead for search in request.searches),
        )

    def _size(self) -> float | None:
        """How many people there are, at least, if that is public or the log tells it."""
        if self.config.public_size is not None or self.planner.preset.family is not None:
            return self.config.public_size
        return self.planner.measured_size(1 - DEFAULT_CONFIDENCE)

    def answered(self, request: Request) -> Answer | None:
        """What is stored under the key of the request, if anything is."""
        if request.key is None:
            return None
        body = self.ledger.answered(analyst=request.analyst, key=request.key, question=request.question)
        return None if body is None else Answer.from_bytes(body)

    @property
    def charging(self) -> str:
        """How costs add up, where that is not by the loss of each cell."""
        return self._preset.charging

    def checkpoint_if_due(self) -> None:
        """Save what a long log adds up to: whoever opens it next begins there."""
        if self.checkpoints and self.kernel.checkpoint_due():
            with suppress(LedgerError):  # a ledger that cannot be written to is read from the start
                self.checkpoint()

    def checkpoint(self) -> int:
        """Save what the log adds up to, which of its records count, and what questions add up to; returns how far the
        first goes."""
        position = self.kernel.checkpoint()
        if len(self.tables) == 1:
            bring_up_to_date(self.ledger, self.records)
        self.planner.save_baselines()
        return position

    def close(self) -> None:
        """Forget the exact counts, and close source, ledger and notes."""
        for engine in self.tables:
            engine.kernel.close()
            engine.notes.close()
        self.ledger.close()

    def _grant(self, request: Request, offer: Offer) -> Grant:
        analyst, key = request.analyst, request.key
        claim = None
        if key is not None and not (offer.free and key.startswith(ONCE)):
            now = self.ledger.now()
            claim = new_claim(self.randomness, analyst=analyst, key=key, question=request.question, now=now)
        events, most = offer.price.events, offer.price.at_most
        return Grant(self.kernel, analyst, request.text, events, most, claim, proposer=offer.proposer)

    def _answer(self, request: PlanningRequest, offer: Offer, estimate: Estimate, charged: Charge) -> Answer:
        for search in request.searched:
            charged = charged.plus(search.charge)
        answer = Answer.of(
            request.workload,
            estimate,
            accuracy=request.goal,
            contract=self.planner.preset.contract.value,
            charging=self.charging,
            **request.facts,
            **offer.facts,
            **self._payment(request.analyst, charged),
        )
        looked_for = [search.done for search in request.searched]
        return replace(answer, remarks=(*answer.remarks, *looked_for, *beside_goal(request, answer)))

    def _payment(self, analyst: str, charge: Charge) -> Payment:
        """What an answer says about its cost: to the payer, and where a share pays to the data set too."""
        kernel, account = self.kernel, self.kernel.account(analyst)
        paid: Payment = {
            "unit": kernel.budget.mode.unit,
            "charge": from_units(charge.account),
            "left": left_of(account.left),
            "total": left_of(account.cap) if kernel.shares() else kernel.budget.amount,
        }
        if kernel.shares():
            whole_left = left_of(max(kernel.budget.units - kernel.spent(), 0))
            paid |= {"payer": analyst, "whole_charge": from_units(charge.total), "whole_left": whole_left}
        return paid


class PrivateTables:
    """The private tables of a data set, and which of them a question is about: always one."""

    def __init__(self, engines: tuple[Engine, ...]) -> None:
        self._engines = engines

    def __len__(self) -> int:
        return len(self._engines)

    def __iter__(self) -> Iterator[Engine]:
        return iter(self._engines)

    @property
    def names(self) -> tuple[str, ...]:
        """What they are called."""
        return tuple(engine.config.table for engine in self)

    @property
    def first(self) -> Engine:
        """The engine of the table that the charter describes."""
        return self._engines[0]

    def save_checkpoints(self) -> None:
        """A long log gets checkpoints by itself: others will open it."""
        for engine in self:
            engine.checkpoints = True

    def of(self, engine: Engine) -> Engine:
        """The engine of the same table."""
        return next(each for each in self if each.config.table == engine.config.table)

    def named(self, table: str) -> Engine:
        """The engine of a table; QueryError where there is none."""
        for engine in self:
            if engine.config.table.casefold() == table.casefold():
                return engine
        listed = ", ".join(engine.config.table for engine in self)
        raise QueryError(f"there is no private table {table}; there are {listed}")

    def asked(self, text: str, otherwise: Engine) -> Engine:
        """The engine of the table that a text asks about; `otherwise` where it names none of them.

        Joined tables add columns to the rows of one, so that one is asked about. QueryError where several would be
        counted at once: each of them is measured by itself.
        """
        if len(self) == 1:
            return otherwise
        selects = tables_named(text)
        named = [e for e in self if any(e.config.table.casefold() in names for names in selects)]
        for engine in named:
            table, joined = engine.config.table.casefold(), {p.table.casefold() for p in engine.config.parents}
            if all(table in names and names <= {table, *joined} for names in selects):
                return engine
        if len(named) <= 1:
            return named[0] if named else otherwise
        listed = " and ".join(engine.config.table for engine in named)
        apart = "ask about each by itself and put the answers together"
        if any(len(names & {engine.config.table.casefold() for engine in named}) > 1 for names in selects):
            paths = [e.config.tables.path(parent) for e in named for parent in e.config.parents]
            missing = f"no join is declared, as by [tables.{named[-1].config.table}.tables.{named[0].config.table}]"
            declared = f"declared is {'; '.join(paths)}" if paths else f"{missing} in the config"
            raise QueryError(
                f"{listed} are private tables with rows of their own, and rows of different people are not joined; "
                f"{declared}; or {apart}",
                text=text,
            )
        raise QueryError(
            f"{listed} are private tables with rows of their own, and one question is about one of them; {apart}",
            text=text,
        )
