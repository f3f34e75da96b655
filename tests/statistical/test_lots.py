"""Lots fall by their probabilities, one by one and independently; wrong lots are found.

Pearson's chi-square at level 10^-6 on 50,000 lots. The wrong twins differ by a tenth in one probability, or remember
the lot before; each is rejected with probability above .9999.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Mapping
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from bursar.analysts.scheduler import Randomized, Turns

pytestmark = pytest.mark.heavy
ALPHA = 1e-6
LOTS = 50_000
UNIFORM = {name: Fraction(1, 4) for name in "abcd"}
BY_SHARE = {"a": Fraction(1, 2), "b": Fraction(3, 10), "c": Fraction(1, 10), "d": Fraction(1, 10)}


class Sticky(Randomized):
    """The wrong twin that has the right frequencies: every tenth lot falls as the one before."""

    def next(self, turns: Turns, among: Collection[str]) -> tuple[str, Turns]:
        who, counted = super().next(turns, among)
        if turns.get("before") is not None and random.random() < 0.1:
            who = str(turns["before"])
        return who, {**counted, "before": who}  # type: ignore[dict-item]


def lots(scheduler: Randomized, among: str = "abcd") -> str:
    turns: Turns = {}
    drawn = []
    for _ in range(LOTS):
        who, turns = scheduler.next(turns, among)
        drawn.append(who)
    return "".join(drawn)


def fit(drawn: str, weights: Mapping[str, Fraction]) -> float:
    seen, whole = Counter(drawn), sum(weights.values())
    return float(
        stats.chisquare([seen[n] for n in weights], [LOTS * float(w / whole) for w in weights.values()]).pvalue
    )


def independence(drawn: str) -> float:
    pairs = Counter(pairwise(drawn))
    names = sorted(set(drawn))
    return float(stats.chi2_contingency(np.array([[pairs[i, j] for j in names] for i in names])).pvalue)


@pytest.mark.parametrize("weights", [UNIFORM, BY_SHARE], ids=["uniform", "by share"])
def test_lots_fall_by_their_probabilities(weights: dict[str, Fraction]) -> None:
    drawn = lots(Randomized(weights=weights))
    assert fit(drawn, weights) > ALPHA
    assert independence(drawn) > ALPHA


@pytest.mark.parametrize("weights", [UNIFORM, BY_SHARE], ids=["uniform", "by share"])
@pytest.mark.parametrize("factor", [Fraction(9, 10), Fraction(11, 10)])
def test_other_probabilities_would_be_found(weights: dict[str, Fraction], factor: Fraction) -> None:
    assert fit(lots(Randomized(weights={**weights, "a": weights["a"] * factor})), weights) < ALPHA


def test_lots_that_remember_would_be_found() -> None:
    assert independence(lots(Sticky(weights=UNIFORM))) < ALPHA


def test_lots_among_those_who_are_ready_keep_their_proportions() -> None:
    ready = {name: BY_SHARE[name] for name in "acd"}
    assert fit(lots(Randomized(weights=BY_SHARE), among="acd"), ready) > ALPHA
    assert fit(lots(Randomized(weights=UNIFORM), among="acd"), ready) < ALPHA
