"""Bursar in one page: a question becomes an answer in `Bursar.ask`. Read this first.

    text --sql--> Query --workload--> Workload --planner--> Offer --kernel--> records --inference--> Answer
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from bursar import presets
from bursar.answer import Answer
from bursar.config import Config
from bursar.errors import BudgetError, Busy, LedgerError, Stale
from bursar.inference.size import measured_size
from bursar.inference.views import Measurements, Reconstructions
from bursar.kernel.accounting import from_units, left_of
from bursar.kernel.curator import declare_version
from bursar.kernel.grant import Grant, new_claim
from bursar.kernel.kernel import Kernel
from bursar.kernel.ledger import Health, Ledger
from bursar.kernel.randomness import Randomness
from bursar.kernel.sources.source import Source
from bursar.planner.choose import Preset, choose
from bursar.planner.explain import Explanation, explain
from bursar.planner.goals import Wanted, in_counts, resolve
from bursar.planner.offer import Offer, Views
from bursar.planner.refuse import refusal
from bursar.planner.request import Request
from bursar.sql import parse
from bursar.status import BudgetStatus, LogLine, log_lines
from bursar.workload import compile as compile_query

PATIENCE_SECONDS = 120.0
"""How long a question waits for another process that is answering the same key, or plans again when overtaken."""


class Bursar:
    """A data set behind a budget. Ask with `query`, look ahead with `explain`, look back with `budget` and `log`."""

    def __init__(
        self,
        config: Config,
        ledger: Ledger,
        *,
        open_source: Callable[[bytes], Source],
        randomness: Randomness,
        analyst: str = "owner",
        preset: Preset = presets.default,
    ) -> None:
        self.config, self.ledger, self.analyst, self.preset = config, ledger, analyst, preset
        self._open_source, self._randomness = open_source, randomness
        self.kernel = Kernel(
            domain=config.domain,
            unit=config.unit,
            budget=config.budget,
            max_rows=config.max_rows,
            ledger=ledger,
            open_source=open_source,
            randomness=randomness,
        )
        self._measurements = Measurements(config.domain)
        self._reconstructions = Reconstructions(config.domain, self._measurements)
        self._position = 0
        self._planning = threading.Lock()  # views are shared by the threads of a process

    def query(self, sql: str, *, key: str | None = None, **wanted: Any) -> Any:
        """An Answer; within=50 | "2%", confidence=, rmse=, epsilon=, rho=, max_cost= as in `Wanted`. With EXPLAIN in
        front, an Explanation."""
        request = self.prepare(sql, Wanted(**wanted), key)
        return self._explain(request) if request.explain else self.ask(request)

    def explain(self, sql: str, **wanted: Any) -> Explanation:
        """Every way to answer, with its price and error. Free."""
        return self._explain(self.prepare(sql, Wanted(**wanted), None))

    def prepare(self, text: str, wanted: Wanted, key: str | None) -> Request:
        """Parse, compile, and settle on one goal in counts."""
        query = parse(text)
        workload = compile_query(query, self.config.domain, self.config.table)
        asked = resolve(wanted, query.goal, self.config.goal, mode=self.config.budget.mode)
        goal = in_counts(asked, self.config.public_size, self._measured_size)
        return Request(text=text, workload=workload, goal=goal, analyst=self.analyst, key=key, explain=query.explain)

    def ask(self, request: Request) -> Answer:
        """The flow: answered before? else choose an offer, run it under a grant, release what is stored."""
        give_up = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < give_up:
            if (done := self._answered(request)) is not None:
                return done  # same key, same question: the same bytes, no charge
            try:
                with self._planning:
                    views = self._views()
                    offer = self._choose(request, views)
                with self._grant(request, offer) as grant:
                    estimate = offer.run(grant)
                    answer = self._answer(request, offer, Answer.table_of(request.workload, estimate, request.goal.beta), grant.charged)
                    return Answer.from_bytes(grant.release(answer.to_bytes()))
            except Stale:
                continue  # overtaken by another commit: plan again on the longer log
            except Busy:
                time.sleep(0.05)
        raise LedgerError("the ledger is too busy to answer now; try again")

    def budget(self) -> BudgetStatus:
        """What may be spent, what is spent, what is left."""
        return BudgetStatus.of(self.config.budget, spent=self.kernel.spent(), held=self.kernel.held())

    def log(self, last: int | None = None) -> list[LogLine]:
        """Who paid how much for what, oldest first."""
        lines = log_lines(self.kernel.history())
        return lines if last is None else lines[-last:] if last else []

    def declare_version(self, *, same_rows: bool = False) -> int:
        """For the data owner: the data have changed, and are what they are now."""
        return declare_version(
            ledger=self.ledger, open_source=self._open_source, randomness=self._randomness, same_rows=same_rows
        )

    def verify(self) -> Health:
        return self.ledger.verify()

    def recover(self) -> Health:
        return self.ledger.recover()

    def close(self) -> None:
        self.kernel.close()
        self.ledger.close()

    def __enter__(self) -> Bursar:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    # -- steps of the flow ---------------------------------------------------------------------------------------

    def _answered(self, request: Request) -> Answer | None:
        if request.key is None:
            return None
        body = self.ledger.answered(analyst=request.analyst, key=request.key, question=request.question)
        return None if body is None else Answer.from_bytes(body)

    def _views(self) -> Views:
        records = self.ledger.records(self._position)
        self._measurements.advance(records)
        self._position = records[-1].position if records else self._position
        return Views(
            domain=self.config.domain,
            mode=self.config.budget.mode,
            version=self._measurements.version,
            left=self.kernel.left(),
            measurements=self._measurements,
            reconstructions=self._reconstructions,
            price=self.kernel.price,
        )

    def _measured_size(self, beta: float) -> float | None:
        with self._planning:
            self._views()
            return measured_size(self._measurements, self._reconstructions, beta)

    def _choose(self, request: Request, views: Views) -> Offer:
        offer = choose(self.preset, request, views)
        if offer is None or offer.bid > views.left:
            raise refusal(self.preset, request, views, offer)
        return offer

    def _explain(self, request: Request) -> Explanation:
        with self._planning:
            return explain(self.preset, request, self._views())

    def _grant(self, request: Request, offer: Offer) -> Grant:
        claim = None
        if request.key is not None:
            names = {"analyst": request.analyst, "key": request.key, "question": request.question}
            claim = new_claim(self._randomness, **names)
        return Grant(self.kernel, request.analyst, request.text, offer.price.events, offer.price.at_most, claim)

    def _answer(self, request: Request, offer: Offer, table: dict[str, Any], charged: int) -> Answer:
        return Answer(
            **table,
            question=request.text,
            goal=request.goal.describe(),
            confidence=request.goal.confidence,
            contract=self.config.contract.value,
            source=offer.proposer,
            note=offer.note,
            reused=offer.reuses,
            bought=offer.buys,
            unit=self.config.budget.mode.value,
            charge=from_units(charged),
            left=left_of(self.kernel.left()),
            total=self.config.budget.amount,
        )
