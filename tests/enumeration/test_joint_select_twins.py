"""Kernels that are wrong about joint selections in one way each: the enumeration must expose every one of them."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from bursar.core.accounting import Accountant, Mode, Selected
from bursar.core.kernel import Kernel
from bursar.core.noise.law import UNIT_BITS
from bursar.core.queries import Stack
from harness.adversaries import AGES, CONCENTRATED, SEXES, plus
from harness.cells import Numbers
from harness.enumeration import ALLOWED, BranchingTape, renyi_excess, worst_ratio
from harness.masses import DIGITS
from harness.selecting import apart, moving, played, promised, selecting, shown

PAIR = (plus(), plus((0, 1)))
FAR = selecting(*moving((8, 1), (6, -1), (3, 1), *[(5, -1)] * 8), count=2, scale=8.0, joint=True)
EVEN = selecting(*moving((12, 1), (8, -1), *[(6, 1)] * 4, *[(5, -1)] * 8), count=2, scale=2.0, joint=True)
FIVE = Stack((SEXES, AGES))


def pricing(pure: Fraction, concentrated: Fraction) -> type[Kernel]:
    """A kernel in which a joint selection costs so much, times d/g or its square."""

    class Priced(Accountant):
        def selected_units(self, selected: Selected, finer: int = 0) -> int:
            change = 1 / Fraction(selected.scale)
            loss = pure * change if self.mode is Mode.PURE else concentrated * change**2
            return int(loss * (1 << (UNIT_BITS + finer)))

    class Cheap(Kernel):
        def __init__(self, **parts: Any) -> None:
            super().__init__(**parts)
            self._accountant = Priced(mode=self.budget.mode, unit=self._accountant.unit)
            self._accounts = self._empty_accounts()

    return Cheap


RIGHT = pricing(Fraction(4), Fraction(2))
ONE_WAY = pricing(Fraction(2), Fraction(1, 2))
"""The price for counts that all rise or all fall, where c_(j) and c_{s_j} move the same way."""


def test_scores_that_move_one_way_only_are_exposed() -> None:
    assert worst_ratio(played(FAR, kernel=RIGHT), *PAIR).excess <= ALLOWED
    assert worst_ratio(played(FAR, kernel=ONE_WAY), *PAIR).excess > Decimal("1.5") / 8
    assert worst_ratio(played(FAR, kernel=pricing(Fraction(7, 2), Fraction(2))), *PAIR).excess > 0


def test_scores_that_move_one_way_only_are_exposed_in_concentrated_mode() -> None:
    order = Decimal("1.01")
    right, wrong = (played(EVEN, budget=CONCENTRATED, kernel=kernel) for kernel in (RIGHT, ONE_WAY))
    assert renyi_excess(right, *PAIR, order) <= ALLOWED
    assert renyi_excess(wrong, *PAIR, order) > Decimal("0.4") / 4


class Wrong:
    """A tape that picks jointly by another shortfall."""

    def __init__(self, tape: BranchingTape) -> None:
        self.tape, self.secret = tape, tape.secret

    def short(self, scores: list[int], rows: tuple[int, ...]) -> int:
        best = sorted(scores, reverse=True)
        return max(best[j] - scores[row] for j, row in enumerate(rows))

    def select_jointly(self, scores: Numbers, *, count: int, scale: float) -> Numbers:
        listed = scores.tolist()
        with localcontext(Context(prec=DIGITS)):
            weights = {
                rows: (-Decimal(self.short(listed, rows)) / Decimal(scale)).exp()
                for rows in permutations(np.flatnonzero(scores >= 0).tolist(), count)
            }
            total = sum(weights.values())
            options = [(at, weight / total) for at, weight in enumerate(weights.values())]
        return np.array(list(weights)[self.tape.among(options)], np.int64)


class HalfTheScale(Wrong):
    def short(self, scores: list[int], rows: tuple[int, ...]) -> int:
        return 2 * super().short(scores, rows)


class AllAgainstTheBest(Wrong):
    def short(self, scores: list[int], rows: tuple[int, ...]) -> int:
        return max(scores) - min(scores[row] for row in rows)


class AddedUp(Wrong):
    def short(self, scores: list[int], rows: tuple[int, ...]) -> int:
        best = sorted(scores, reverse=True)
        return sum(best[j] - scores[row] for j, row in enumerate(rows))


class LastOnly(Wrong):
    def short(self, scores: list[int], rows: tuple[int, ...]) -> int:
        best = sorted(scores, reverse=True)
        return best[len(rows) - 1] - scores[rows[-1]]


class OneByOne(Wrong):
    def select_jointly(self, scores: Numbers, *, count: int, scale: float) -> Numbers:
        return self.tape.select(scores, count=count, scale=scale)


LAWS: dict[str, Callable[[BranchingTape], Wrong]] = {
    "half the scale": HalfTheScale,
    "all against the best": AllAgainstTheBest,
    "shortfalls added up": AddedUp,
    "the last pick only": LastOnly,
    "one pick after the other": OneByOne,
}


@pytest.mark.parametrize("name", LAWS)
def test_a_wrong_law_is_exposed(name: str) -> None:
    asked = {"estimates": (0, 6, 0), "count": 2, "scale": 1.5, "barred": (1,), "joint": True}
    law = promised(FIVE, **asked, data=plus())
    assert apart(shown(played(selecting(FIVE, **asked), tape=Wrong), plus(), 2), law) < Decimal("1e-20")
    assert apart(shown(played(selecting(FIVE, **asked), tape=LAWS[name]), plus(), 2), law) > Decimal("0.05")


def test_half_the_scale_is_worth_more_than_its_price() -> None:
    assert worst_ratio(played(FAR, tape=HalfTheScale), *PAIR).excess > Decimal("0.01")
