"""How many rounds and picks RAP takes unless told otherwise: a rule that looks at public numbers only."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bursar.core.accounting import NoiseKind
from bursar.synthetic.plan.spend import Spend
from bursar.synthetic.rap.threshold_workload import ThresholdWorkload

FEW_PICKS = 4
"""Picks in a round for thresholds below all columns: many rounds with few queries each (RAP, section 4.3.1)."""

MOST_ROUNDS = 64
"""The most rounds of the published grid; each of them answers the whole workload once."""


@dataclass(frozen=True, kw_only=True)
class Adaptivity:
    """T and K."""

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
    wanted = (level * math.sqrt(spend.amount)) ** (2 / 3) if concentrated else math.sqrt(level * spend.amount / 4)
    total = min(max(1, round(wanted)), workload.queries)
    marginals = all(workload.least in (None, len(names)) for names in workload.sets)
    rounds = math.sqrt(total) if marginals else total / FEW_PICKS
    rounds = min(max(1, round(rounds)), MOST_ROUNDS)
    return Adaptivity(rounds=rounds, picks=math.ceil(total / rounds))
