"""Joint picks of the kernel's sampler against the law that they are priced by.

Pearson's chi-square of ordered pairs of picks at level 10^-6, over 2,400 selections. The nearest twin, a scale too
large by four tenths, adds 330 to the statistic, which has 29 degrees of freedom; 80 rejects: it passes with probability
1e-15.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from bursar.core.extensions.joint_selection import select_jointly
from bursar.core.extensions.select import select
from harness.cases import few
from harness.cells import Numbers
from harness.masses import jointly_picked

ALPHA = 1e-6
SIZE = 2_400
SCALE = 1.5
SCORES = {
    "few": np.array([3, 6, 5, -1, 0, 2, 6]),
    "one far ahead": np.array([3, 400, 5, 4, 5, 2]),
    "wide": np.array([3, 6, 5, -1, 0, 2, 6]) * 2**40,
}
Picker = Callable[[Numbers, float], Numbers]


def picked(scores: Numbers, scale: float) -> Numbers:
    return select_jointly(scores, count=2, scale=scale)


def in_turn(scores: Numbers, scale: float) -> Numbers:
    return select(scores, count=2, scale=scale)


def barred_too(scores: Numbers, scale: float) -> Numbers:
    return select_jointly(np.maximum(scores, 0), count=2, scale=scale)


def sorted_picks(scores: Numbers, scale: float) -> Numbers:
    """In the order of their scores, as if only the set mattered."""
    rows = picked(scores, scale)
    return rows[np.argsort(-scores[rows], kind="stable")]


def statistic(name: str, picker: Picker, factor: float = 1.0) -> tuple[float, int]:
    """Chi-square and its degrees of freedom; pairs that are expected fewer than five times count together."""
    scores, scale = SCORES[name], SCALE * (2**40 if name == "wide" else 1)
    law = jointly_picked(tuple(scores.tolist()), 2, scale)
    found = Counter(tuple(picker(scores, scale * factor).tolist()) for _ in range(SIZE))
    often = [pair for pair, mass in law.items() if mass * SIZE >= 5]
    expected = np.array([float(law[pair]) * SIZE for pair in often])
    seen = np.array([found[pair] for pair in often], float)
    if SIZE - expected.sum() > 1e-3:
        expected, seen = np.append(expected, SIZE - expected.sum()), np.append(seen, SIZE - seen.sum())
    elif seen.sum() < SIZE:
        return np.inf, 1
    return float(((seen - expected) ** 2 / expected).sum()), len(seen) - 1


def p_value(name: str, picker: Picker, factor: float = 1.0) -> float:
    found, degrees = statistic(name, picker, factor)
    return float(stats.chi2.sf(found, degrees))


@pytest.mark.parametrize("name", few(SCORES))
def test_joint_picks_have_the_law_that_they_are_priced_by(name: str) -> None:
    assert p_value(name, picked) > ALPHA


TWINS: dict[str, tuple[Picker, float]] = {
    "a scale too small by three tenths": (picked, 0.7),
    "a scale too large by four tenths": (picked, 1.4),
    "one after the other": (in_turn, 1.0),
    "barred rows forgotten": (barred_too, 1.0),
    "sorted": (sorted_picks, 1.0),
}


@pytest.mark.parametrize("name", few(TWINS))
def test_a_wrong_twin_is_rejected(name: str) -> None:
    assert p_value("few", *TWINS[name]) < ALPHA
