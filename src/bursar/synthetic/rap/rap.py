"""RAP: relaxed adaptive projection, for workloads too large to measure (RAP, Alg. 1 with Alg. 4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from bursar.core.ledger import Record
from bursar.core.queries import LinearMap
from bursar.errors import QueryError
from bursar.planner.grant import Verbs
from bursar.synthetic.entropy import entropy
from bursar.synthetic.plan.bought import Bought, RunProgress
from bursar.synthetic.plan.spend import Spend
from bursar.synthetic.rap.projection import PATIENT, Hook, Patience, Stop, never, no_hook, project, targets
from bursar.synthetic.rap.relaxed import Relaxed, relaxed_answers, relaxed_counts, start
from bursar.synthetic.rap.rounds import SIZE_SHARE, Adaptivity, Round, feasible_adaptivity, recorded_total, total_query
from bursar.synthetic.rap.threshold_workload import ThresholdWorkload


@dataclass(frozen=True, kw_only=True, eq=False)
class RapResult:
    """The result of RAP: relaxed rows, and the noisy counts that they were fitted to."""

    workload: ThresholdWorkload
    relaxed: Relaxed
    rounds: tuple[Bought, ...]
    size: float  # public or measured
    finished: bool  # whether no round is missing

    def answers(self) -> NDArray[np.float32]:
        """Every query of the workload as a fraction, in the order of the query numbers."""
        return relaxed_answers(self.workload, self.relaxed)


def rap(
    workload: ThresholdWorkload,
    verbs: Verbs,
    *,
    rounds: int,
    picks: int,
    spend: Spend,
    size: int | None = None,
    rows: int = 1000,
    rng: Generator | None = None,
    records: Sequence[Record] = (),
    patience: Patience = PATIENT,
    on_step: Hook = no_hook,
    on_round: Callable[[int], None] | None = None,
    stop: Stop = never,
) -> RapResult:
    """T = `rounds` times: pick K = `picks` queries on which the relaxed rows are worst, measure them, project.

    Half of a round's part of the budget is for picking and half for measuring. Picked queries are barred from then on;
    rows are carried over from round to round. Where K is at least the number of queries, all of them are measured
    once, for the whole budget: the non-adaptive case (T = 1, K = m). More than can be measured at once are measured in
    portions, and projected onto together.

    `size` is the number of rows where it is public; otherwise it is measured first, for 1/64 of the budget. `records`
    are those of an interrupted run, in the order of the log: what they hold is not bought again.

    Differs: positions are those of the whole workload in every round (the published code mixes them up from the second
    round on), the Gumbel scale costs what it should (`Spend.selection_scale`), and the projection ends at the noise.
    Guarantees: what it buys costs at most `spend`, under both kinds of neighbours. If it is stopped or refused, what it
    has bought is in the log.
    Edge cases: T K beyond the number of queries makes fewer rounds, of which the last picks what is left.
    """
    if rounds < 1 or picks < 1:
        raise QueryError("RAP needs at least one round and at least one query in each")
    rng = entropy() if rng is None else rng
    if size is None:
        size, spend = measured_size(workload, verbs, spend.part(SIZE_SHARE), records), spend.part(1 - SIZE_SHARE)
    run = _Run(
        workload=workload,
        verbs=verbs,
        size=max(size, 1),
        picks=picks,
        patience=patience,
        rng=rng,
        stop=stop,
        on_round=on_round,
    )
    return run.go(start(workload, rows=rows, rng=rng), rounds, spend, RunProgress.of(workload, records), on_step)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Run:
    workload: ThresholdWorkload
    verbs: Verbs
    size: float
    picks: int
    patience: Patience
    rng: Generator
    stop: Stop
    on_round: Callable[[int], None] | None  # hears the number of a round when its queries are picked

    def go(self, relaxed: Relaxed, rounds: int, spend: Spend, progress: RunProgress, on_step: Hook) -> RapResult:
        everything, portions = self.picks >= self.workload.queries, self.workload.portions
        adaptive = feasible_adaptivity(self.workload, Adaptivity(rounds=rounds, picks=self.picks))
        rounds = len(portions) if everything else adaptive.rounds
        steps = count()

        def hook(epoch: int, loss: float, now: Relaxed) -> None:
            on_step(next(steps), loss, now)

        def fitted() -> Relaxed:
            measured = targets(self.workload, progress.rounds, size=self.size)
            return project(relaxed, measured, rng=self.rng, patience=self.patience, on_step=hook, stop=self.stop)

        while everything and len(progress.rounds) < rounds and not self.stop():
            progress = progress.plus(self._all(*portions[len(progress.rounds)], spend))
        if progress.rounds:
            relaxed = fitted()
        while not everything and len(progress.rounds) < rounds and not self.stop():
            progress = progress.plus(self._worst(relaxed, spend, rounds, progress))
            relaxed = fitted()
        return RapResult(
            workload=self.workload,
            relaxed=relaxed,
            rounds=progress.rounds,
            size=self.size,
            finished=len(progress.rounds) >= rounds,
        )

    def _all(self, queries: range, portion: LinearMap, spend: Spend) -> Bought:
        """RAP, Alg. 1 lines 4-6: every query by itself, with an equal part."""
        noise = spend.noise(self.workload.queries)
        return Bought.of(queries, self.verbs.measure(portion, noise), noise)

    def _worst(self, relaxed: Relaxed, spend: Spend, rounds: int, progress: RunProgress) -> Bought:
        """RAP, Alg. 4, one-shot adaptive selection."""
        picked = progress.picked
        if picked is None:
            barred = progress.queries
            left = min(self.picks, self.workload.queries - len(barred))
            picked = self.verbs.select(
                self.workload.candidates,
                relaxed_counts(self.workload, relaxed, size=self.size),
                count=left,
                scale=Round.of(spend, rounds, left).scale,
                barred=barred,
            ).values
            if self.on_round is not None:
                self.on_round(len(progress.rounds) + 1)
        noise = Round.of(spend, rounds, len(picked)).noise
        return Bought.of(np.sort(picked), self.verbs.measure(self.workload.taken(picked), noise), noise)


def measured_size(workload: ThresholdWorkload, verbs: Verbs, spend: Spend, records: Sequence[Record]) -> int:
    """The number of all rows with noise, bought unless it is among the records."""
    recorded = recorded_total(workload, records)
    return int(verbs.measure(total_query(workload), spend.noise(1)).values[0]) if recorded is None else recorded
