"""Bursar in one page: a question becomes an answer in `Bursar.ask`. Read this first.

text --sql--> Query --workload--> Workload --planner--> Offer --kernel--> records --inference--> Answer
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from bursar import presets
from bursar.analysts.guarantee import guarantee_of
from bursar.analysts.policy import policy_of
from bursar.analysts.queue import queue_of
from bursar.answer import Answer
from bursar.compile.remembered import Compiled
from bursar.compile.workload import Workload
from bursar.config import Config
from bursar.core.accounts import Charge
from bursar.core.grant import Grant, new_claim
from bursar.core.kernel import Kernel
from bursar.core.ledger import Ledger
from bursar.core.noise.system import Randomness
from bursar.core.source.source import Source
from bursar.errors import Busy, LedgerError, Stale
from bursar.estimation.estimate import Estimate
from bursar.goal import Goal
from bursar.pace import paced
from bursar.planner.choose import Preset
from bursar.planner.explain import Explanation
from bursar.planner.goals import Wanted, in_counts, resolve
from bursar.planner.offer import Offer
from bursar.planner.request import Request
from bursar.report.status import OWNER, payment
from bursar.synthetic.session import SynthesisDoor
from bursar.threads import one_thread

PATIENCE_SECONDS = 120.0
"""How long a question waits for another process that answers the same key, or plans again when overtaken."""


class Bursar(SynthesisDoor):
    """A data set behind a budget. Ask with `query` and `batch`, look ahead with `explain` and back with `log`.

    What is not about one question is in `SynthesisDoor`, `ThresholdDoor`, `BatchDoor` and `OwnersDoor`.
    """

    def __init__(
        self,
        config: Config,
        ledger: Ledger,
        *,
        open_source: Callable[[bytes], Source],
        randomness: Randomness,
        analyst: str = OWNER,
        preset: Preset = presets.default,
    ) -> None:
        self.config, self.ledger, self.analyst = config, ledger, analyst
        self._open_source, self._randomness, self._compiled = open_source, randomness, Compiled()
        door: Any = {"ledger": ledger, "open_source": open_source, "randomness": randomness}
        self.kernel = Kernel(**config.facts, **door, sequential=preset.sequential)
        self.policy, self.queue = policy_of(config.analysts), queue_of(config.analysts, ledger)
        facts: Any = {
            "domain": config.domain,
            "mode": config.budget.mode,
            "preset": presets.under(config.family, preset, config.domain, config.groups),
        }
        self.planner = self.policy.planner(**facts, prices=self.kernel, ledger=ledger, analyst=analyst)
        self.planner.promised = guarantee_of(config.analysts, config.budget)
        self.planner.synthetic = self.synthetic_rows

    def query(
        self, sql: str, *, key: str | None = None, wait: bool = True, ticket: int | None = None, **wanted: Any
    ) -> Any:
        """An Answer, within=50 | "2%" (more in `Wanted`); an Explanation where the SQL begins with EXPLAIN."""
        with paced(self.config.pace):
            request = self.prepare(sql, Wanted(**wanted), key, wait=wait, ticket=ticket)
            return self.planner.explain(request) if request.explain else self.ask(request)

    def explain(self, sql: str, **wanted: Any) -> Explanation:
        """Every way to answer, with its price and error. Free."""
        return self.planner.explain(self.prepare(sql, Wanted(**wanted), None))

    def prepare(self, text: str, wanted: Wanted, key: str | None, **place: Any) -> Request:
        """Parse, compile, and settle on one goal in counts."""
        sealed = self.kernel.sealed()
        query, workload = self._compiled(text, self.config.domain, self.config.table, sealed, self.config.levels)
        return self.requested(text, workload, wanted, query.goal, key, **place, explain=query.explain)

    def requested(
        self, text: str, workload: Workload, wanted: Wanted, clause: Goal | None, key: str | None, **place: Any
    ) -> Request:
        """A compiled question with the one goal that it is asked with, in counts."""
        asked = resolve(wanted, clause, self.config.goal, mode=self.config.budget.mode)
        goal = in_counts(asked, self.config.public_size, self.planner.measured_size)
        facts: Any = {
            "text": text,
            "workload": workload,
            "asked": asked,
            "goal": goal,
            "synthetic": wanted.synthetic,
            **place,
        }
        return Request.of(**facts, analyst=self.analyst, key=key)

    def ask(self, request: Request) -> Answer:
        """The flow: answered before? else wait for the turn, if there is a queue, and answer."""
        if (done := self.answered(request)) is not None:
            return done  # same key, same question: the same bytes, no charge
        with self.queue.turn(request):
            return self._ask_now(request)

    def _ask_now(self, request: Request) -> Answer:
        """Choose an offer, run it under a grant, release what is stored."""
        give_up = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < give_up:
            if (done := self.answered(request)) is not None:
                return done  # somebody else answered this key meanwhile
            try:
                self.policy.begin(self.kernel)
                offer = self.planner.choose(request)
                with self._grant(request, offer) as grant, one_thread():
                    estimate = offer.run(grant)
                    return Answer.from_bytes(grant.release(self._answer(request, offer, estimate, grant.charged)))
            except Stale:
                continue  # overtaken by another commit: plan again on the longer log
            except Busy:
                time.sleep(0.05)
        raise LedgerError("the ledger is too busy to answer now; try again")

    def answered(self, request: Request) -> Answer | None:
        """What is stored under the key of the request, if anything is."""
        who, key = request.analyst, request.key
        body = None if key is None else self.ledger.answered(analyst=who, key=key, question=request.question)
        return None if body is None else Answer.from_bytes(body)

    def _grant(self, request: Request, offer: Offer) -> Grant:
        who, key = request.analyst, request.key
        claim = None if key is None else new_claim(self._randomness, analyst=who, key=key, question=request.question)
        events, most = offer.price.events, offer.price.at_most
        return Grant(self.kernel, who, request.text, events, most, claim, proposer=offer.proposer)

    def _answer(self, request: Request, offer: Offer, estimate: Estimate, charged: Charge) -> bytes:
        facts: Any = {**request.facts, **offer.facts, **payment(self.kernel, request.analyst, charged)}
        contract = self.planner.preset.contract.value
        return Answer.of(request.workload, estimate, wanted=request.goal, contract=contract, **facts).to_bytes()
