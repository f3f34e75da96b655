"""Bursar in one page: a question becomes an answer in `Engine.ask`. Read this first.

text --sql--> Query --compile--> Workload --planner--> Offer --core--> records --estimation--> Answer

A synthetic table goes the same way in `synthetic/session.py`: request, choose, grant, run.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy

from bursar import presets
from bursar.analysts.guarantee import guarantee_of
from bursar.analysts.policy import PlannerParts, policy_of
from bursar.analysts.queue import queue_of
from bursar.answer import Answer
from bursar.compile.compiler import CompileCache
from bursar.compile.workload import Workload
from bursar.config import Config
from bursar.core.accounts import Charge
from bursar.core.grant import Grant, new_claim
from bursar.core.kernel import Kernel
from bursar.core.ledger import Ledger
from bursar.core.noise.system import Randomness
from bursar.core.source.source import Source
from bursar.errors import Busy, LedgerError, QueryError, Stale
from bursar.estimation.estimate import Estimate
from bursar.goal import Goal, Horizon
from bursar.planner.balance import planning_request
from bursar.planner.choose import Preset
from bursar.planner.explain import Explanation
from bursar.planner.goals import Wanted, in_counts, resolve
from bursar.planner.offer import Offer
from bursar.planner.planner import Planner
from bursar.planner.request import ONCE, PlanningRequest, Request
from bursar.repeated import FreeAnswers
from bursar.report.status import OWNER, payment
from bursar.rewrite.suggest import suggest
from bursar.sql import Query
from bursar.synthetic.sight import TableSight
from bursar.threads import one_thread
from bursar.views.baseline import MemoryNotes, QuestionNotes
from bursar.views.log import SharedLog

PATIENCE_SECONDS = 120.0
"""How long a question waits for another process that answers the same key, or plans again when overtaken."""


class Engine:
    """One data set, opened for one analyst: the parts that a question passes through, and the flow between them."""

    def __init__(
        self,
        config: Config,
        ledger: Ledger,
        *,
        open_source: Callable[[bytes], Source],
        randomness: Randomness,
        analyst: str = OWNER,
        preset: Preset = presets.default,
        notes: QuestionNotes | None = None,
    ) -> None:
        self.config, self.ledger, self.analyst = config, ledger, analyst
        self.notes: QuestionNotes = MemoryNotes() if notes is None else notes
        self.open_source, self.randomness = open_source, randomness
        self.kernel = Kernel(
            domain=config.domain,
            unit=config.unit,
            budget=config.budget,
            max_rows=config.max_rows,
            ledger=ledger,
            open_source=open_source,
            randomness=randomness,
            sequential=preset.sequential,
        )
        self.policy, self.queue = policy_of(config.analysts), queue_of(config.analysts, ledger)
        self._preset = presets.under(config.family, preset, config.domain, config.groups)
        self._compiled = CompileCache(config.domain, config.table, config.levels)
        self.records = SharedLog(ledger.records)
        self.sight = TableSight(config, ledger, analyst, self.records)
        self.planner = self._planner(self.sight, analyst)
        self._planners = {analyst: self.planner}
        self._free = FreeAnswers(self.records)
        self._others = threading.Lock()

    def _planner(self, sight: TableSight, analyst: str) -> Planner:
        return self.policy.planner(
            PlannerParts(
                domain=self.config.domain,
                mode=self.config.budget.mode,
                preset=self._preset,
                prices=self.kernel,
                ledger=self.ledger,
                records=self.records,
                analyst=analyst,
                synthetic=sight.synthetic_rows,
                promised=guarantee_of(self.config.analysts, self.config.budget),
                notes=self.notes,
                horizon=self.config.horizon,
            )
        )

    def as_analyst(self, analyst: str) -> Engine:
        """The same open data set for another analyst: one kernel and one ledger, and one planner for all who share.

        Whoever shares nothing has a planner of their own, which is kept, since it has read the log.
        """
        other = copy(self)
        other.analyst, other.sight = analyst, TableSight(self.config, self.ledger, analyst, self.records)
        with self._others:
            if analyst not in self._planners:
                shared = self.config.analysts.policy == "shared"
                self._planners[analyst] = self.planner if shared else self._planner(other.sight, analyst)
            other.planner = self._planners[analyst]
        return other

    def ask(
        self,
        question: str | PlanningRequest,
        wanted: Wanted | None = None,
        *,
        key: str | None = None,
        wait: bool = True,
        ticket: int | None = None,
    ) -> Answer | Explanation:
        """The flow of a question, from its text to its answer; an Explanation where the text begins with EXPLAIN.

        A batch and a set of thresholds, which are not made of one text, come as a request that was prepared before.
        """
        repeats = None
        if isinstance(question, PlanningRequest):
            request = question
        else:
            nameless = key is None or key.startswith(ONCE)
            if nameless and ticket is None and self.config.analysts.scheduler == "none":
                repeats = self._free.repeats(question, wanted, self.analyst)
                if repeats.answer is not None:
                    return repeats.answer
            sealed = self.kernel.sealed()
            with self._refusing(question, sealed):
                query = self._compiled.parse(question)  # text -> Query
                workload = self._compiled.compile(query, sealed)  # Query -> Workload
            goal, explain = wanted or Wanted(), query.explain
            request = self.request(
                question, workload, goal, query.goal, key=key, wait=wait, ticket=ticket, explain=explain
            )
        if request.explain:
            return self.planner.explain(request)
        if (done := self.answered(request.asked)) is not None:
            return done  # same key, same question: the same bytes, no charge
        with self.queue.turn(request.asked):
            give_up = time.monotonic() + PATIENCE_SECONDS
            while time.monotonic() < give_up:
                if (done := self.answered(request.asked)) is not None:
                    return done  # somebody else answered this key meanwhile
                try:
                    self.policy.begin(self.kernel)
                    offer = self.planner.choose(request)  # Workload -> Offer
                    with self._grant(request.asked, offer) as grant, one_thread():
                        estimate = offer.run(grant)  # Offer -> records -> Estimate
                        body = self._answer(request, offer, estimate, grant.charged)
                        answer = Answer.from_bytes(grant.store(body))
                    if repeats is not None:
                        repeats.keep(answer)
                    return answer
                except Stale:
                    continue  # overtaken by another commit: plan again on the longer log
                except Busy:
                    time.sleep(0.05)
        raise LedgerError("the ledger is too busy to answer now; try again")

    def prepare(
        self, text: str, wanted: Wanted, key: str | None = None, *, wait: bool = True, ticket: int | None = None
    ) -> PlanningRequest:
        """A question that is only compiled, to be priced, or asked together with others."""
        query, workload = self.read(text)
        return self.request(
            text, workload, wanted, query.goal, key=key, wait=wait, ticket=ticket, explain=query.explain
        )

    def read(self, text: str) -> tuple[Query, Workload]:
        """What a text asks for; nothing is planned."""
        sealed = self.kernel.sealed()
        with self._refusing(text, sealed):
            query = self._compiled.parse(text)
            return query, self._compiled.compile(query, sealed)

    @contextmanager
    def _refusing(self, text: str, sealed: int | None) -> Iterator[None]:
        """A question that cannot be parsed or compiled is refused with one that can be asked instead."""
        try:
            yield
        except QueryError as refusal:
            config = self.config
            raise suggest(text, refusal, config.domain, config.table, sealed, config.levels) from refusal.__cause__

    def request(
        self,
        text: str,
        workload: Workload,
        wanted: Wanted,
        clause: Goal | None = None,
        *,
        key: str | None = None,
        wait: bool = True,
        ticket: int | None = None,
        explain: bool = False,
    ) -> PlanningRequest:
        """A compiled question with the one goal that it is asked with, and the same as it is planned, in counts."""
        asked = Request(
            text=text,
            workload=workload,
            goal=resolve(wanted, clause, self.config.goal, mode=self.config.budget.mode),
            analyst=self.analyst,
            key=key,
            explain=explain,
            wait=wait,
            ticket=ticket,
            horizon=None if wanted.horizon is None else Horizon.of(wanted.horizon),
            synthetic=wanted.synthetic,
        )
        return planning_request(asked, in_counts(asked.goal, self.config.public_size, self.planner.measured_size))

    def answered(self, request: Request) -> Answer | None:
        """What is stored under the key of the request, if anything is."""
        if request.key is None:
            return None
        body = self.ledger.answered(analyst=request.analyst, key=request.key, question=request.question)
        return None if body is None else Answer.from_bytes(body)

    def close(self) -> None:
        """Forget the exact counts, and close source, ledger and notes."""
        self.kernel.close()
        self.ledger.close()
        self.notes.close()

    def _grant(self, request: Request, offer: Offer) -> Grant:
        analyst, key = request.analyst, request.key
        claim = None
        if key is not None and not (offer.free and key.startswith(ONCE)):
            claim = new_claim(self.randomness, analyst=analyst, key=key, question=request.question)
        events, most = offer.price.events, offer.price.at_most
        return Grant(self.kernel, analyst, request.text, events, most, claim, proposer=offer.proposer)

    def _answer(self, request: PlanningRequest, offer: Offer, estimate: Estimate, charged: Charge) -> bytes:
        return Answer.of(
            request.workload,
            estimate,
            wanted=request.goal,
            contract=self.planner.preset.contract.value,
            **request.facts,
            **offer.facts,
            **payment(self.kernel, request.analyst, charged),
        ).to_bytes()
