"""Tests of sparse vectors as the kernel runs them, against the law that they are priced by.

How many tests an instance takes until one is above, or none of them, has known masses. Pearson's chi-square at level
10^-6; 1,400 instances reject each twin with probability > .999. The smallest effect, tests with half their noise,
moves the masses so far that the statistic is 99 on average, and 33 rejects.
"""

from __future__ import annotations

from collections import Counter
from decimal import Decimal

import numpy as np
import pytest
from scipy import stats

from bursar.core.accounting import Noise, Opened
from bursar.core.budget import Budget
from bursar.core.kernel import Kernel
from bursar.core.noise.system import SystemRandomness
from bursar.core.queries import Mask, Product, Steps
from bursar.planner.grant import Grant
from harness.cells import Numbers
from harness.small import config, counts, engine
from harness.sparse import Outcome, joint, laplace

pytestmark = pytest.mark.heavy
ALPHA = 1e-6
SIZE = 1400
SCOPE = Product((Mask(("sex",), (2,), Steps.total(2)),))
WOMEN = Product((Mask(("sex",), (2,), Steps.dense([[1, 0]])),))
TRUTH = int(counts().sum(axis=(0, 2))[0])
AWAY = (2, -4, 3, 5)
"""How far the estimates of the tests are from the truth."""

EVENT = Opened(scope=SCOPE, cut=5, threshold=laplace(3.0), test=laplace(4.0), version=1)


class Twin(SystemRandomness):
    """The right noise for thresholds (drawn first) and tests, times a factor each."""

    def __init__(self, threshold: float = 1.0, test: float = 1.0) -> None:
        self.factors = {EVENT.threshold.scale: threshold, EVENT.test.scale: test}

    def draw(self, noise: Noise, size: int) -> Numbers:
        factor = self.factors[noise.scale]
        if factor == 0:
            return np.zeros(size, np.int64)
        return super().draw(Noise(kind=noise.kind, scale=noise.scale * factor), size)


def first_above(kernel: Kernel) -> int:
    """Which test of a new instance is the first that is above; as many as there are tests, where none is."""
    with Grant(kernel, "ana", "", (EVENT,), 2**60) as grant:
        instance: Opened | int = EVENT
        for number, away in enumerate(AWAY):
            tested = grant.above(instance, WOMEN, TRUTH + away)
            if tested.above:
                return number
            instance = tested.instance
    return len(AWAY)


def fit(randomness: SystemRandomness) -> float:
    """The p-value of what many instances did."""
    seen: Counter[int] = Counter()
    for _ in range(SIZE // 200):  # a long log would only make every opening slower
        kernel = engine(settings=config(budget=Budget.of(epsilon=1000.0)), randomness=randomness).kernel
        seen.update(first_above(kernel) for _ in range(200))
    expected = [SIZE * float(mass) for mass in masses()]
    return float(stats.chisquare([seen[place] for place in range(len(expected))], expected).pvalue)


def masses() -> list[Decimal]:
    criticals = [EVENT.cut - abs(away) for away in AWAY]
    passed: tuple[Outcome, ...] = ()
    found = []
    for critical in criticals:
        found.append(joint(EVENT.threshold, EVENT.test, (*passed, (critical, True))))
        passed = (*passed, (critical, False))
    return [*found, joint(EVENT.threshold, EVENT.test, passed)]


def test_tests_follow_their_law() -> None:
    assert abs(sum(masses()) - 1) < Decimal("1e-20")
    assert fit(Twin()) > ALPHA


@pytest.mark.parametrize(
    "twin",
    [Twin(test=0.5), Twin(threshold=0), Twin(test=0), Twin(threshold=2.0)],
    ids=["tests with half their noise", "no noise on the threshold", "no noise on the tests", "threshold noisier"],
)
def test_another_law_is_rejected(twin: Twin) -> None:
    assert fit(twin) < ALPHA


def test_instances_have_thresholds_of_their_own() -> None:
    """With one threshold for all, the noise of which is drawn once, outcomes would not vary as they should."""

    class Shared(Twin):
        kept: int | None = None

        def draw(self, noise: Noise, size: int) -> Numbers:
            if noise.scale != EVENT.threshold.scale:
                return super().draw(noise, size)
            self.kept = 4 if self.kept is None else self.kept
            return np.full(size, self.kept)

    assert fit(Shared()) < ALPHA
