"""Picks of the kernel's sampler against the law that they are priced by.

Pearson's chi-square of ordered pairs of picks at level 10^-6, over 7,000 selections. The nearest twin, a scale too
large by a fifth, adds 220 to the statistic, which has 28 degrees of freedom; 79 rejects: it passes with probability
1e-9.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from bursar.core.extensions.select import select
from harness.cases import few
from harness.cells import Numbers
from harness.selecting import in_turn

ALPHA = 1e-6
SIZE = 7_000
SCALE = 1.5
SCORES = {
    "few": np.array([3, 5, 5, -1, 0, 2, 5]),
    "one far ahead": np.array([3, 400, 5, 4, 5, 2]),
    "wide": np.array([3, 5, 5, -1, 0, 2, 5]) * 2**40,
}
Picker = Callable[[Numbers, float], Numbers]


def picked(scores: Numbers, scale: float) -> Numbers:
    return select(scores, count=2, scale=scale)


def with_replacement(scores: Numbers, scale: float) -> Numbers:
    return np.concatenate([select(scores, count=1, scale=scale) for _ in range(2)])


def barred_too(scores: Numbers, scale: float) -> Numbers:
    return select(np.maximum(scores, 0), count=2, scale=scale)


def first_of_equal(scores: Numbers, scale: float) -> Numbers:
    """Rows of a class in their order, not at random."""
    return np.array([np.flatnonzero(scores == scores[row])[0] for row in picked(scores, scale)])


def p_value(name: str, picker: Picker, factor: float = 1.0) -> float:
    """Pairs that are expected fewer than five times count together."""
    scores, scale = SCORES[name], SCALE * (2**40 if name == "wide" else 1)
    law = in_turn({row: int(score) for row, score in enumerate(scores) if score >= 0}, 2, scale)
    found = Counter(tuple(picker(scores, scale * factor).tolist()) for _ in range(SIZE))
    often = [pair for pair, mass in law.items() if mass * SIZE >= 5]
    expected = np.array([float(law[pair]) * SIZE for pair in often])
    seen = np.array([found[pair] for pair in often], float)
    rest, rarely = SIZE - expected.sum(), SIZE - seen.sum()
    if rest > 1e-3:
        expected, seen = np.append(expected, rest), np.append(seen, rarely)
    elif rarely:
        return 0.0
    return float(stats.chi2.sf(((seen - expected) ** 2 / expected).sum(), len(seen) - 1))


@pytest.mark.heavy
@pytest.mark.parametrize("name", few(SCORES))
def test_picks_have_the_law_that_they_are_priced_by(name: str) -> None:
    assert p_value(name, picked) > ALPHA


TWINS: dict[str, tuple[Picker, float]] = {
    "a scale too small by a fifth": (picked, 0.8),
    "a scale too large by a fifth": (picked, 1.2),
    "with replacement": (with_replacement, 1.0),
    "barred rows forgotten": (barred_too, 1.0),
    "the first of equal rows": (first_of_equal, 1.0),
}


@pytest.mark.heavy
@pytest.mark.parametrize("name", few(TWINS))
def test_a_wrong_twin_is_rejected(name: str) -> None:
    assert p_value("few", *TWINS[name]) < ALPHA
