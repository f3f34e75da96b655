"""What a release has bought so far, as the log says it: an interrupted one goes on from there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from bursar.arrays import Integers
from bursar.core.accounting import Measured, Noise, Selected
from bursar.core.ledger import Record
from bursar.synthetic.rap.threshold_workload import ThresholdWorkload


@dataclass(frozen=True, kw_only=True, eq=False)
class Bought:
    """Queries of a workload, by number, with their noisy counts."""

    queries: Integers
    counts: Integers
    variance: float  # of each count

    @staticmethod
    def of(queries: Integers | range, record: Record, noise: Noise) -> Bought:
        numbers = np.arange(queries.start, queries.stop) if isinstance(queries, range) else queries
        return Bought(queries=numbers, counts=record.values, variance=noise.variance())


@dataclass(frozen=True, kw_only=True, eq=False)
class RunProgress:
    """The finished rounds of a run, and what its next round has picked and not measured, if it was cut off there."""

    rounds: tuple[Bought, ...] = ()
    picked: Integers | None = None

    @staticmethod
    def of(workload: ThresholdWorkload, records: Iterable[Record]) -> RunProgress:
        """From the records of a run; those of other questions are passed over."""
        candidates = workload.candidates
        whole = {part.digest: queries for queries, part in workload.portions}
        rounds: list[Bought] = []
        picked: Integers | None = None
        for record in records:
            event = record.event
            if isinstance(event, Selected) and event.candidates.digest == candidates.digest:
                picked = record.values
            elif isinstance(event, Measured) and event.strategy.digest in whole:
                rounds.append(Bought.of(whole[event.strategy.digest], record, event.noise))
            elif isinstance(event, Measured) and picked is not None:
                measured = workload.taken(picked).digest
                rounds += [Bought.of(np.sort(picked), record, event.noise)] if event.strategy.digest == measured else []
                picked = None if event.strategy.digest == measured else picked
        return RunProgress(rounds=tuple(rounds), picked=picked)

    @property
    def queries(self) -> Integers:
        """The numbers of all measured queries."""
        return np.concatenate([np.zeros(0, np.int64), *(bought.queries for bought in self.rounds)])

    def plus(self, bought: Bought) -> RunProgress:
        return RunProgress(rounds=(*self.rounds, bought))
