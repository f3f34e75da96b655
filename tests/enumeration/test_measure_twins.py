"""Kernels that are wrong about `measure` in one way each: the enumeration must expose every one of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from bursar.core.accounting import AddRemove, Event, Footprint, Measured, Noise, NoiseKind
from bursar.core.accounting.accountant import Accountant
from bursar.core.domain import Domain, Unit
from bursar.core.kernel import Kernel
from bursar.core.queries import Mask, Product, Steps
from harness.adversaries import (
    AGES,
    ALL,
    BOTH,
    CONCENTRATED,
    OTHER_ROW,
    SEXES,
    TWICE,
    TWO_ROWS,
    WOMEN,
    neighbours,
    once,
    plus,
    same_look_twice,
    two_looks,
    worst,
)
from harness.cells import Numbers
from harness.enumeration import ALLOWED, INFINITE, BranchingTape, renyi_excess
from harness.kernels import ROW, enumerated
from harness.twins import GroupsFromTheData, PricesAddRemove, clipped, drawing


class Tape:
    """Noise that is not what the kernel asked for."""

    def __init__(self, tape: BranchingTape) -> None:
        self.tape = tape
        self.secret = tape.secret


class HalfTheNoise(Tape):
    """Draws at half the scale that is priced."""

    def draw(self, noise: Noise, size: int) -> Numbers:
        return self.tape.draw(replace(noise, scale=noise.scale / 2), size)


class ReusedNoise(Tape):
    """Draws once and uses it again."""

    first: Numbers | None = None

    def draw(self, noise: Noise, size: int) -> Numbers:
        self.first = self.tape.draw(noise, size) if self.first is None else self.first
        return self.first


class RoundedLaplace(Tape):
    """Rounds -b log U with a sign, as floating point would have it; U has `bits` bits, or is a true uniform."""

    bits: int | None = None

    def draw(self, noise: Noise, size: int) -> Numbers:
        return np.array([self.tape.choose(lambda x: self.mass(abs(x), noise.scale)) for _ in range(size)], np.int64)

    def mass(self, x: int, scale: float) -> Decimal:
        low, high = (math.exp(-(x + side) / scale) for side in (0.5, -0.5))
        if self.bits is None:
            return Decimal(1 - low if x == 0 else (high - low) / 2)
        grid = 2**self.bits
        inside = sum(low < u / grid <= high for u in range(1, grid + 1))
        return Decimal(inside) / grid / (1 if x == 0 else 2)


class CoarseLaplace(RoundedLaplace):
    bits = 8


class ForgetsARow(Accountant):
    """Prices all rows of a strategy but the last."""

    def footprints(self, event: Event, block: Hashable = None) -> tuple[Footprint, ...]:
        if isinstance(event, Measured):
            event = replace(event, strategy=event.strategy.take(range(event.strategy.rows - 1)))
        return super().footprints(event, block)


class OneIsEnough(Accountant):
    """Prices every coefficient as if it were 1."""

    def footprints(self, event: Event, block: Hashable = None) -> tuple[Footprint, ...]:
        if isinstance(event, Measured) and isinstance(event.strategy, Product):
            signs = [np.sign(m.steps.at_cells(np.arange(m.steps.size))) for m in event.strategy.masks]
            masks = [Mask(m.attrs, m.sizes, Steps.dense(s)) for m, s in zip(event.strategy.masks, signs, strict=True)]
            event = replace(event, strategy=Product(tuple(masks)))
        return super().footprints(event, block)


class ForgetsTheUnit(Accountant):
    """Prices a unit of several rows as one row."""

    def units(self, noise: Noise, finer: int = 0) -> int:
        return super().units(noise, finer) // self.unit.max_contributions


class OnTheWrongCell(AddRemove):
    """Books the right amount on the neighbours of those it was learnt about."""

    def _placed(self, footprints: Iterable[Footprint]) -> dict[tuple[str, ...], Numbers]:
        return {columns: np.roll(loss, 1) for columns, loss in super()._placed(footprints).items()}


class OnlyTheDifference(AddRemove):
    """Charges a later measurement by how much dearer than everything before it is, as if it were a refinement."""

    def add(self, footprints: Iterable[Footprint]) -> None:
        for columns, more in self._placed(footprints).items():
            before = self.losses.get(columns)
            self.losses[columns] = more if before is None else np.maximum(before, more)
            self.changed[columns] = self.added
        self.bounds.clear()
        self.tried = None


def with_accountant(accountant: type[Accountant]) -> type[Kernel]:
    class Twin(Kernel):
        def __init__(self, **parts: object) -> None:
            super().__init__(**parts)
            self._accountant = accountant(mode=self.budget.mode, unit=self._accountant.unit)
            self._accounts = self._empty_accounts()

    return Twin


def with_profile(profile: type[AddRemove]) -> type[Kernel]:
    class Twin(Kernel):
        def _profile_of(self, domain: Domain, unit: Unit) -> AddRemove:
            return profile(domain)

    return Twin


TWINS: dict[str, Callable[[], Decimal]] = {
    "half the noise": lambda: worst(enumerated(once(WOMEN), reach=4, tape=HalfTheNoise), neighbours(ROW)),
    "noise reused": lambda: worst(enumerated(two_looks, reach=4, tape=ReusedNoise), neighbours(ROW)),
    "a coarse Laplace, rounded": lambda: worst(enumerated(once(WOMEN), reach=8, tape=CoarseLaplace), neighbours(ROW)),
    "a row forgotten": lambda: worst(
        enumerated(once(BOTH), reach=2, kernel=with_accountant(ForgetsARow)), neighbours(ROW)
    ),
    "a coefficient of 2 priced as 1": lambda: worst(
        enumerated(once(TWICE), reach=4, margin=2, kernel=with_accountant(OneIsEnough)), neighbours(ROW)
    ),
    "a unit of two rows priced as one": lambda: worst(
        enumerated(once(ALL), reach=4, margin=2, unit=TWO_ROWS, kernel=with_accountant(ForgetsTheUnit)),
        [(plus(), plus((0, 0), (1, 1)))],
    ),
    "only the difference charged": lambda: worst(
        enumerated(same_look_twice, reach=2, kernel=with_profile(OnlyTheDifference)), neighbours(ROW)
    ),
    "the right amount on the wrong cell": lambda: worst(
        enumerated(once(WOMEN), reach=3, kernel=with_profile(OnTheWrongCell)), neighbours(ROW)
    ),
    "replace-one priced as add-remove": lambda: worst(
        enumerated(once(SEXES), reach=2, unit=OTHER_ROW, kernel=PricesAddRemove), neighbours(OTHER_ROW)
    ),
    "empty groups omitted": lambda: worst(
        enumerated(once(AGES), reach=1, kernel=GroupsFromTheData), [(((),), (((0, 1),),))]
    ),
}


IMPOSSIBLE = {"noise reused", "a coarse Laplace, rounded", "empty groups omitted"}
"""Twins with outputs that the other side cannot have at all; the others tell 1 more than they claim."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", TWINS)
def test_a_wrong_twin_is_exposed(name: str) -> None:
    excess = TWINS[name]()
    assert excess == INFINITE if name in IMPOSSIBLE else abs(excess - 1) <= ALLOWED


def test_half_the_gaussian_noise_is_exposed() -> None:
    adversary = once(WOMEN, 1.5, NoiseKind.GAUSSIAN)
    mechanism = enumerated(adversary, reach=30, budget=CONCENTRATED, tape=HalfTheNoise)
    assert renyi_excess(mechanism, plus(), plus((0, 0)), Decimal(2)) > Decimal("0.1")


@pytest.mark.heavy
def test_post_processing_is_no_false_alarm() -> None:
    """Rounding a true continuous Laplace, and raising negative answers to 0, only take away from what is told."""
    rounded = enumerated(once(WOMEN), reach=8, tape=RoundedLaplace)
    assert worst(rounded, neighbours(ROW)) <= ALLOWED
    raised = enumerated(once(WOMEN), reach=6, margin=50, kernel=drawing(clipped))
    assert worst(raised, neighbours(ROW)) <= ALLOWED
