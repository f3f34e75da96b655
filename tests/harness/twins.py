"""Kernels with one fault each, which more than one kind of test must find."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bursar.core.accounting import AddRemove, Noise, Profile
from bursar.core.accounts import Charge
from bursar.core.domain import Domain, Unit
from bursar.core.kernel import Kernel
from bursar.core.ledger import Record
from bursar.core.noise.system import Randomness
from bursar.core.queries import LinearMap
from harness.cells import Numbers

Redraw = Callable[[Randomness, Numbers, Noise], Numbers]
"""Noise from the true randomness, the exact answers and the law that was paid for."""


def exact(kernel: Kernel, strategy: LinearMap) -> Numbers:
    """The exact answers, which only the kernel may look at."""
    _, tables = kernel._opened()
    return strategy.apply(tables.counts)


def drawing(redraw: Redraw) -> type[Kernel]:
    """A kernel whose noise depends on the exact answers."""

    class Drawing(Kernel):
        def measure(self, strategy: LinearMap, noise: Noise, **rest: Any) -> tuple[Record, Charge]:
            true, answers = self._randomness, exact(self, strategy)

            class Faulty:
                def draw(self, noise: Noise, size: int) -> Numbers:
                    return redraw(true, answers, noise)

            self._randomness = Faulty()
            try:
                return super().measure(strategy, noise, **rest)
            finally:
                self._randomness = true

    return Drawing


def clipped(true: Randomness, answers: Numbers, noise: Noise) -> Numbers:
    """No negative answers."""
    return np.maximum(true.draw(noise, len(answers)), -answers)


def sparing(true: Randomness, answers: Numbers, noise: Noise) -> Numbers:
    """No noise where there is nobody to protect."""
    drawn = np.zeros(len(answers), np.int64)
    drawn[answers != 0] = true.draw(noise, int(np.count_nonzero(answers)))
    return drawn


def drawn_again(true: Randomness, answers: Numbers, noise: Noise) -> Numbers:
    """Drawn until no answer is negative, at most three times."""
    drawn = true.draw(noise, len(answers))
    for _ in range(2):
        if np.any(answers + drawn < 0):
            drawn = true.draw(noise, len(answers))
    return drawn


class GroupsFromTheData(Kernel):
    """Empty groups are left out."""

    def measure(self, strategy: LinearMap, noise: Noise, **rest: Any) -> tuple[Record, Charge]:
        return super().measure(strategy.take(np.flatnonzero(exact(self, strategy))), noise, **rest)


class PricesAddRemove(Kernel):
    """Replace-one is priced as if a row could only come or go."""

    def _profile_of(self, domain: Domain, unit: Unit) -> Profile:
        return AddRemove(domain)
