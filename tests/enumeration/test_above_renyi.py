"""`above` and `measure` at one order, enumerated: the divergence of everything released stays below what is claimed."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from bursar.core.accounting import Accountant, Mode, NoiseKind, Opened
from bursar.core.budget import Budget
from bursar.core.domain import Unit
from bursar.core.kernel import Kernel
from harness.adversaries import GROWN, OTHER_ROW, TWO_ROWS, WOMEN, neighbours, once, plus
from harness.enumeration import ALLOWED, renyi_excess
from harness.kernels import ROW, Adversary, Session, enumerated
from harness.sparse import asked_in_turn, opened, played


def budget(order: int) -> Budget:
    return Budget(mode=Mode.RENYI, amount=100.0, order=order)


def excess(adversary: Adversary, order: int, unit: Unit = ROW, kernel: type[Kernel] = Kernel) -> Decimal:
    """How far the divergence goes beyond the claim, for the worst neighbours."""
    mechanism = played(adversary, budget=budget(order), unit=unit, kernel=kernel)
    return max(renyi_excess(mechanism, left, right, Decimal(order)) for left, right in neighbours(unit))


def turns(b_t: float, b_q: float) -> Adversary:
    """Tests that are likelier to be above on more women, and tests that are less likely."""
    return asked_in_turn([(WOMEN, -3), (WOMEN, 3)] * 3, opened(3, b_t, b_q))


def interleaved(session: Session) -> None:
    """Two instances are open at once; which is tested next depends on what came out."""
    session.above(opened(1), WOMEN, -1)
    first = session.instance
    session.above(opened(0, 0.5, 2.0), GROWN, 2)
    second = session.instance
    if session.above(first, GROWN, 4) is False:
        session.above(second, WOMEN, 0)


@pytest.mark.heavy
@pytest.mark.sampled(10)
@pytest.mark.parametrize("unit", [ROW, OTHER_ROW], ids=["add-remove", "replace-one"])
@pytest.mark.parametrize("order", [2, 16, 500])
def test_tests_tell_no_more_than_is_claimed(order: int, unit: Unit) -> None:
    for b_t, b_q in ((1.0, 1.0), (0.5, 4.0), (4.0, 0.5)):
        assert excess(turns(b_t, b_q), order, unit) <= ALLOWED
    assert excess(interleaved, order, unit) <= ALLOWED


@pytest.mark.parametrize("order", [2, 16])
def test_units_with_several_rows_are_covered_together(order: int) -> None:
    mechanism = played(turns(2.0, 2.0), unit=TWO_ROWS, budget=budget(order))
    assert renyi_excess(mechanism, plus(), plus((0, 1), (0, 2)), Decimal(order)) <= ALLOWED


@pytest.mark.thinned(4)
@pytest.mark.parametrize("order", [2, 4])
@pytest.mark.parametrize("kind", NoiseKind)
def test_measured_rows_reach_what_is_claimed_and_do_not_pass_it(kind: NoiseKind, order: int) -> None:
    mechanism = enumerated(once(WOMEN, 1.0, kind), reach=40, margin=2, budget=budget(order))
    found = renyi_excess(mechanism, plus(), plus((0, 1)), Decimal(order))
    assert -Decimal("0.01") < found <= ALLOWED


class OnlyTheThreshold(Accountant):
    """The noise of the tests is not paid for."""

    def opened_units(self, event: Opened, finer: int = 0) -> int:
        return self.units(event.threshold, finer)


class OnlyTheTest(Accountant):
    """The noise of the threshold is not paid for, and what a test loses is priced by its order."""

    def opened_units(self, event: Opened, finer: int = 0) -> int:
        return self.units(event.test, finer)


class OfOneStep(Accountant):
    """The divergence of the rate is taken as a rate, as if the order were 1."""

    def opened_units(self, event: Opened, finer: int = 0) -> int:
        assert self.order is not None
        return int(Fraction(super().opened_units(event, finer), self.order))


def pricing(accountant: type[Accountant]) -> type[Kernel]:
    class Priced(Kernel):
        def __init__(self, **parts: Any) -> None:
            super().__init__(**parts)
            own = self._accountant
            self._accountant = accountant(mode=own.mode, unit=own.unit, order=own.order)
            self._accounts = self._empty_accounts()

    return Priced


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("twin", "b_t", "b_q"), [(OnlyTheThreshold, 4.0, 0.5), (OnlyTheTest, 0.5, 4.0), (OfOneStep, 0.5, 0.5)]
)
def test_twins_that_pay_for_less_are_exposed(twin: type[Accountant], b_t: float, b_q: float) -> None:
    assert excess(turns(b_t, b_q), 16, kernel=pricing(twin)) > ALLOWED
