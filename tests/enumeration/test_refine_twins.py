"""Kernels that are wrong about `refine` in one way each: the enumeration must expose every one of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from bursar.core.accounting import Event, Footprint, Noise, Refined
from bursar.core.accounting.accountant import Accountant
from bursar.core.extensions.refine import Blocks
from bursar.core.kernel import Kernel
from harness.adversaries import WOMEN, plus
from harness.cells import Numbers
from harness.enumeration import ALLOWED, INFINITE, BranchingTape, worst_ratio
from harness.kernels import Session, enumerated
from harness.masses import Mass, finer, given, laplace


class Tape:
    """Draws as it should, but for refinements."""

    def __init__(self, tape: BranchingTape) -> None:
        self.tape = tape
        self.draw, self.secret = tape.draw, tape.secret

    def refine(self, current: Numbers, before: Noise, after: Noise) -> Numbers:
        return np.array([self.tape.choose(self.law(int(x), before, after)) for x in current], np.int64)

    def law(self, current: int, before: Noise, after: Noise) -> Mass:
        return finer(before, after, current)


class FreshNoise(Tape):
    """A second, independent look."""

    def law(self, current: int, before: Noise, after: Noise) -> Mass:
        return laplace(after.scale)


class ContinuousKeep(Tape):
    """Keeps the value as often as continuous noise would, (b2/b1)^2."""

    def law(self, current: int, before: Noise, after: Noise) -> Mass:
        wide, narrow, p = laplace(before.scale), laplace(after.scale), Decimal(after.scale / before.scale) ** 2
        shape = given(wide, narrow, p, current)
        total = sum(shape(y) for y in range(-80, 81))
        return lambda y: shape(y) / total


class NeverKeeps(Tape):
    """What is seen is never the old value."""

    def law(self, current: int, before: Noise, after: Noise) -> Mass:
        right = finer(before, after, current)
        return lambda y: Decimal(0) if y == current else right(y) / (1 - right(current))


class FewBits(Tape):
    """A uniform of twelve bits."""

    def law(self, current: int, before: Noise, after: Noise) -> Mass:
        right = finer(before, after, current)
        return lambda y: Decimal(round(right(y) * 4096)) / 4096


class NotMirrored(Tape):
    """Forgets the sign of the old noise."""

    def law(self, current: int, before: Noise, after: Noise) -> Mass:
        return finer(before, after, abs(current))


class OtherScale(Tape):
    """Draws a finer noise than the one that is priced."""

    def law(self, current: int, before: Noise, after: Noise) -> Mass:
        return finer(before, replace(after, scale=after.scale / 2), current)


class FromTheCoarsest(Blocks):
    """Refines what was measured first, whatever was refined since."""

    def values(self, event: Refined, pending: object = ()) -> Numbers:
        return self.records[event.block].values[event.rows]


class RefinesTheFirst(Kernel):
    def __init__(self, **parts: object) -> None:
        super().__init__(**parts)
        self._blocks = FromTheCoarsest()


class Gratis(Accountant):
    """Refinements are free: the rows were paid for."""

    def footprints(self, event: Event, block: Hashable = None) -> tuple[Footprint, ...]:
        return () if isinstance(event, Refined) else super().footprints(event, block)


class RefinesForFree(Kernel):
    def __init__(self, **parts: object) -> None:
        super().__init__(**parts)
        self._accountant = Gratis(mode=self.budget.mode, unit=self._accountant.unit)
        self._accounts = self._empty_accounts()


def once(session: Session) -> None:
    session.measure(WOMEN, 2.0)
    session.refine(1.0, before=2.0)


def twice(session: Session) -> None:
    session.measure(WOMEN, 2.0)
    session.refine(1.0, before=2.0)
    session.refine(0.75, before=1.0)


def worst_of(adversary: Callable[[Session], None], reach: int, **twin: object) -> Decimal:
    return worst_ratio(enumerated(adversary, reach=reach, **twin), plus(), plus((0, 1))).excess


TWINS: dict[str, Callable[[], Decimal]] = {
    "fresh noise": lambda: worst_of(once, 3, tape=FreshNoise),
    "kept as often as continuous noise": lambda: worst_of(once, 3, tape=ContinuousKeep),
    "never kept": lambda: worst_of(once, 3, tape=NeverKeeps),
    "a uniform of few bits": lambda: worst_of(once, 8, tape=FewBits),
    "the sign forgotten": lambda: worst_of(once, 3, tape=NotMirrored),
    "finer than priced": lambda: worst_of(once, 3, tape=OtherScale),
    "for free": lambda: worst_of(once, 3, kernel=RefinesForFree),
    "from the coarsest": lambda: worst_of(twice, 2, kernel=RefinesTheFirst),
}

EXPECTED = {
    "fresh noise": Decimal("0.5"),  # 1/2 + 1 instead of 1
    "a uniform of few bits": INFINITE,
    "finer than priced": Decimal(1),
    "for free": Decimal("0.5"),
}
"""By how much the claim is passed, where that is a round number."""


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", TWINS)
def test_a_wrong_twin_is_exposed(name: str) -> None:
    excess = TWINS[name]()
    assert excess > 1000 * ALLOWED
    if name in EXPECTED:
        assert excess == EXPECTED[name] or abs(excess - EXPECTED[name]) <= ALLOWED


@pytest.mark.heavy
def test_the_right_tape_is_not_exposed() -> None:
    assert worst_of(once, 3, tape=Tape) <= ALLOWED
    assert abs(worst_ratio(enumerated(twice, reach=2), plus(), plus((0, 1))).excess) <= ALLOWED
