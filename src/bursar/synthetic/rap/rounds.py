"""Rounds of picking and measuring: how many, how the budget is divided among them, and what the next ones cost."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bursar.core.accounting import Event, Measured, Noise, NoiseKind, Selected
from bursar.core.ledger import Record
from bursar.core.queries import LinearMap, Mask, Product, Steps
from bursar.synthetic.plan.bought import RunProgress
from bursar.synthetic.plan.spend import Spend
from bursar.synthetic.rap.threshold_workload import ThresholdWorkload

FEW_PICKS = 4
"""Picks in a round for thresholds below all columns: many rounds with few queries each (RAP, section 4.3.1)."""

MOST_ROUNDS = 64
"""The most rounds of the published grid; each of them answers the whole workload once."""


@dataclass(frozen=True, kw_only=True)
class Adaptivity:
    """T and K: how many rounds, and how many queries are picked in each."""

    rounds: int
    picks: int


def adaptivity(workload: ThresholdWorkload, spend: Spend, *, size: int) -> Adaptivity:
    """(T, K) from the budget, the public number of rows n, the number of sets |W| and of queries m.

    Only c = T K matters much (RAP, section 3.4.2), so c comes first. More picks find smaller errors, and make picking
    noisier; c is where the two meet:
    - The answers of one set sum to n, so the c-th largest of it is at most n/c. Over |W| sets that is n |W|/c if no two
      have a large answer in common and n/c if all have all; between the two, n sqrt(|W|)/c in geometric mean.
    - Half of the budget on picking gives Gumbel noise of scale g = sqrt(c/rho), or 4 c/epsilon, whatever T and K are.
      The largest of m such noises is near g ln m; errors below that are not found.
    So n sqrt(|W|)/c = g ln m, that is, c = (n sqrt(|W| rho)/ln m)^(2/3), or c = sqrt(n sqrt(|W|) epsilon/(4 ln m)).

    Marginals have T near sqrt(c), since all of the diagonal T K = c is alike; other thresholds have 4 picks a round.
    Guarantees: T and K are at least 1, and T K at most m, rounded up to full rounds.
    """
    level = size * math.sqrt(len(workload.sets)) / math.log(max(workload.queries, 3))
    concentrated = spend.kind is NoiseKind.GAUSSIAN
    balanced = (level * math.sqrt(spend.amount)) ** (2 / 3) if concentrated else math.sqrt(level * spend.amount / 4)
    total = min(max(1, round(balanced)), workload.queries)
    marginals = all(workload.least in (None, len(names)) for names in workload.sets)
    rounds = math.sqrt(total) if marginals else total / FEW_PICKS
    rounds = min(max(1, round(rounds)), MOST_ROUNDS)
    return Adaptivity(rounds=rounds, picks=math.ceil(total / rounds))


SIZE_SHARE = 1 / 64
"""The part of a budget that goes into counting all rows where their number is not public."""


@dataclass(frozen=True, kw_only=True)
class Round:
    """`count` queries are picked for half of the round's part of the budget, and measured for the other half."""

    count: int
    half: Spend

    @staticmethod
    def of(spend: Spend, rounds: int, count: int) -> Round:
        """One of `rounds` rounds, which share the budget evenly."""
        return Round(count=count, half=spend.part(1 / rounds).part(1 / 2))

    @property
    def scale(self) -> float:
        """The Gumbel scale of the picks."""
        return self.half.selection_scale(self.count)

    @property
    def noise(self) -> Noise:
        """The noise of the measured queries."""
        return self.half.noise(self.count)

    def events(self, candidates: LinearMap, version: int, *, picked: bool) -> Iterator[Event]:
        """The picks, unless there are some already, and what stands in for measuring them.

        Which queries will be measured nobody knows, and what they cost depends on which they are: at most what as many
        picks cost that are as dear as `count` queries which all count the same person.
        """
        scales = (self.half.picks_as_dear(self.count),) if picked else (self.scale, self.half.picks_as_dear(self.count))
        for scale in scales:
            yield Selected(candidates=candidates, count=self.count, scale=scale, version=version)


def remaining_round_events(
    workload: ThresholdWorkload, setting: Adaptivity, spend: Spend, records: Sequence[Record], version: int
) -> Iterator[Event]:
    """What the rounds will buy, at most, that a run with these records has not finished; they end with the queries."""
    progress = RunProgress.of(workload, records)
    picked, measured = progress.picked, len(progress.queries)
    for _ in range(len(progress.rounds), setting.rounds):
        count = min(setting.picks, workload.queries - measured) if picked is None else len(picked)
        if count < 1:
            return
        yield from Round.of(spend, setting.rounds, count).events(
            workload.candidates, version, picked=picked is not None
        )
        picked, measured = None, measured + count


def remaining_rap_events(
    workload: ThresholdWorkload,
    setting: Adaptivity,
    spend: Spend,
    records: Sequence[Record],
    version: int,
    *,
    sized: bool,
) -> Iterator[Event]:
    """What RAP will buy, at most, when a run has these records: the number of rows, all queries or rounds of them."""
    if not sized:
        if recorded_total(workload, records) is None:
            yield Measured(strategy=total_query(workload), noise=spend.part(SIZE_SHARE).noise(1), version=version)
        spend = spend.part(1 - SIZE_SHARE)
    if setting.picks < workload.queries:
        yield from remaining_round_events(workload, feasible_adaptivity(workload, setting), spend, records, version)
        return
    for _, portion in workload.portions[len(RunProgress.of(workload, records).rounds) :]:
        yield Measured(strategy=portion, noise=spend.noise(workload.queries), version=version)


def feasible_adaptivity(workload: ThresholdWorkload, setting: Adaptivity) -> Adaptivity:
    """No more rounds than there are queries for: the budget is divided among those that take place."""
    return Adaptivity(rounds=min(setting.rounds, math.ceil(workload.queries / setting.picks)), picks=setting.picks)


def total_query(workload: ThresholdWorkload) -> Product:
    """The number of all rows, as a query."""
    name, values = workload.names[0], workload.sizes[0]
    return Product((Mask((name,), (values,), Steps.total(values)),))


def recorded_total(workload: ThresholdWorkload, records: Sequence[Record]) -> int | None:
    """The noisy number of all rows, where it is among the records."""
    digest = total_query(workload).digest
    counts = (r for r in records if isinstance(r.event, Measured) and r.event.strategy.digest == digest)
    return next((int(record.values[0]) for record in counts), None)
