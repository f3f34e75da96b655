"""Kernels that are wrong about `above` in one way each: the enumeration must expose every one of them.

The numbered ones are wrong sparse vectors that were published, and their like (Lyu, Su, Li 2017, Algorithms 3 to 6).
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from typing import Any

import pytest

from bursar.core.accounting import Accountant, Closed, Failed, Noise, Opened
from bursar.core.extensions.sparse_vector import SparseVectors
from bursar.core.kernel import Kernel
from bursar.core.ledger import Transaction
from bursar.core.queries import LinearMap, Product
from harness.adversaries import OTHER_ROW, TWICE, WOMEN, over, plus
from harness.enumeration import ALLOWED, INFINITE, worst_ratio
from harness.kernels import Adversary, Session
from harness.masses import DIGITS, mass_of, reaches
from harness.sparse import Comparing, Outcome, asked_in_turn, joint, opened, played, thresholds, with_thresholds

REACH = 40


class QuietTests(Comparing):
    """(1) No noise on the tests: only the threshold is noisy."""

    def joint(self, threshold: Noise, test: Noise, outcomes: tuple[Outcome, ...]) -> Decimal:
        with localcontext(Context(prec=DIGITS)):
            right = [z for z in range(-REACH, REACH + 1) if all((critical + z <= 0) == up for critical, up in outcomes)]
            return sum((mass_of(threshold)(z) for z in right), Decimal(0))


class QuietThreshold(Comparing):
    """(5) No noise on the threshold: only the tests are noisy."""

    def joint(self, threshold: Noise, test: Noise, outcomes: tuple[Outcome, ...]) -> Decimal:
        with localcontext(Context(prec=DIGITS)):
            total = Decimal(1)
            for critical, above in outcomes:
                total *= reaches(test, critical) if above else 1 - reaches(test, critical)
            return total


class OneDraw(Comparing):
    """(5') The noise of the first test serves all of them."""

    def joint(self, threshold: Noise, test: Noise, outcomes: tuple[Outcome, ...]) -> Decimal:
        """Above where X - Z >= critical: an interval of X for every Z."""
        least = max((critical for critical, above in outcomes if above), default=None)
        below = min((critical for critical, above in outcomes if not above), default=None)
        with localcontext(Context(prec=DIGITS)):
            total = Decimal(0)
            for z in range(-REACH, REACH + 1):
                high = Decimal(1) if least is None else reaches(test, least + z)
                low = Decimal(0) if below is None else reaches(test, below + z)
                total += mass_of(threshold)(z) * max(high - low, Decimal(0))
            return total


class Halved(Comparing):
    """Tests have half the noise that they are priced by."""

    def joint(self, threshold: Noise, test: Noise, outcomes: tuple[Outcome, ...]) -> Decimal:
        return super().joint(threshold, Noise(kind=test.kind, scale=test.scale / 2), outcomes)


class NeverEnds(SparseVectors):
    """(2) A test that is above leaves the instance open, with the same threshold."""

    def end(self, transaction: Transaction, event: Failed | Closed, facts: Any) -> None:
        assert isinstance(event, Failed)


class GoesOn(Kernel):
    def __init__(self, **parts: Any) -> None:
        super().__init__(**parts)
        self._vectors = NeverEnds()


class OneSide(Accountant):
    """(3) The noise of a test is priced as if a change could move it on one side only: 1/b_Q instead of 2/b_Q."""

    def opened_units(self, event: Opened, finer: int = 0) -> int:
        noises = [self.units(noise, finer) for noise in (event.threshold, event.test)]
        return sum(noises)


class Gratis(Accountant):
    """Only the threshold's noise is paid for."""

    def opened_units(self, event: Opened, finer: int = 0) -> int:
        return self.units(event.threshold, finer)


def pricing(accountant: type[Accountant]) -> type[Kernel]:
    class Priced(Kernel):
        def __init__(self, **parts: Any) -> None:
            super().__init__(**parts)
            self._accountant = accountant(mode=self.budget.mode, unit=self._accountant.unit)
            self._accounts = self._empty_accounts()

    return Priced


class Unchecked(Kernel):
    """Any query may be tested, whatever the scope has paid for."""

    def check_test(self, event: Opened, query: LinearMap, estimate: int) -> Product:
        assert isinstance(query, Product)
        return query


class ScopeOfNobody(Unchecked):
    """Prices what the scope differs by between two cells: nothing, where it is the same for everybody."""

    def __init__(self, **parts: Any) -> None:
        super().__init__(**parts)
        self._accountant = AsMeasured(mode=self.budget.mode, unit=self._accountant.unit)
        self._accounts = self._empty_accounts()


class AsMeasured(Accountant):
    def footprints(self, event: Any, block: Any = None) -> Any:
        if isinstance(event, Opened):
            object.__setattr__(event, "norms", {power: event.scope.norms(power)[0] for power in (1, 2)})
        return super().footprints(event, block)


class ShowsTheValue(Comparing):
    """(4) What is compared is shown as well: the tape branches over values just above the threshold.

    Values far above are taken together, which tells less; so what is found is no more than what is lost.
    """

    WIDTH = 3

    def branch(self, event: Opened, before: tuple[Outcome, ...], critical: int) -> bool:
        laws = (event.threshold, event.test)
        terms = dict(zip(thresholds(event.threshold), with_thresholds(*laws, before), strict=True))
        with localcontext(Context(prec=DIGITS)):
            so_far, all_above = joint(*laws, before), joint(*laws, (*before, (critical, True)))
            shown = [
                mass_of(event.test)(critical + step) * sum((m for z, m in terms.items() if z <= step), Decimal(0))
                for step in range(self.WIDTH)
            ]
            masses = [so_far - all_above, *shown, all_above - sum(shown, Decimal(0))]
            self.step = self.tape.among([(place - 1, mass / so_far) for place, mass in enumerate(masses)])
        return self.step >= 0

    def test(self, instance: int, event: Opened, distance: int) -> int:
        drawn = super().test(instance, event, distance)
        return drawn + max(self.step, 0)


class SaysTheValue(Kernel):
    """(4) The record of a failed test says which value was compared with the threshold."""

    def test(self, instance: int, query: LinearMap, estimate: int, **rest: Any) -> bool:
        true = self._randomness
        drawn: list[int] = []

        class Noted:
            testing = None

            def draw(self, noise: Noise, size: int) -> Any:
                values = true.draw(noise, size)
                drawn.append(int(values[0]))
                return values

        real, self._randomness = self._randomness, Noted()
        try:
            above = super().test(instance, query, estimate, **rest)
        finally:
            self._randomness = real
        exact = int(query.apply(self._opened()[1].counts)[0])
        self.told = abs(exact - estimate) + drawn[-1] if above else None
        return above


def shown_value(session: Session) -> None:
    far(5)(session)
    session.seen.append((session._kernel.told,))


def far(passes: int, last: int = 3, b_t: float = 1.0, b_q: float = 1.0) -> Adversary:
    return asked_in_turn([*[(WOMEN, -9)] * passes, (WOMEN, last)], opened(0, b_t, b_q))


def again_and_again(session: Session) -> None:
    """Asks on after a test that was above."""
    far(5)(session)
    session.above(session.instance, WOMEN, 3)


def beyond_the_scope(session: Session) -> None:
    event = opened(0)
    for number, (query, estimate) in enumerate([(TWICE, -18), (TWICE, -18), (TWICE, -18), (TWICE, 6)]):
        if session.above(session.instance if number else event, query, estimate):
            return


def men_or_women(session: Session) -> None:
    session.above(opened(0, scope=over(("sex",), [[1, 1]])), WOMEN, 3)


def excess(adversary: Adversary, pair: Any = None, **twin: Any) -> Decimal:
    left, right = pair or (plus(), plus((0, 1)))
    return worst_ratio(played(adversary, **twin), left, right).excess


TWINS: dict[str, Callable[[], Decimal]] = {
    "(1) noise on the threshold only": lambda: excess(
        asked_in_turn([(WOMEN, -2), (WOMEN, 5)], opened(0)), tape=QuietTests
    ),
    "(2) never closed": lambda: excess(again_and_again, kernel=GoesOn),
    "(3) one side of the tests' noise counted": lambda: excess(far(4), kernel=pricing(OneSide)),
    "(4) the compared value is shown": lambda: excess(shown_value, kernel=SaysTheValue, tape=ShowsTheValue),
    "(5) noise on the tests only": lambda: excess(far(5, b_t=4.0), tape=QuietThreshold),
    "(5') one draw for all tests": lambda: excess(
        asked_in_turn([(WOMEN, -2), (WOMEN, 5)], opened(0, 0.5, 0.5)), tape=OneDraw
    ),
    "tests with half their noise": lambda: excess(far(4), tape=Halved),
    "only the threshold paid for": lambda: excess(far(4), kernel=pricing(Gratis)),
    "queries beyond the scope": lambda: excess(beyond_the_scope, kernel=Unchecked),
    "a pair priced by what the scope differs by": lambda: excess(
        men_or_women, (plus((0, 0)), plus((1, 0))), unit=OTHER_ROW, kernel=ScopeOfNobody
    ),
}

EXPECTED = {
    "(1) noise on the threshold only": INFINITE,
    "(3) one side of the tests' noise counted": Decimal(1),
    "(5') one draw for all tests": INFINITE,
    "tests with half their noise": Decimal(2),
    "(2) never closed": Decimal(2),
    "(4) the compared value is shown": Decimal(3),
    "only the threshold paid for": Decimal(2),
    "queries beyond the scope": Decimal(3),
}
"""By how much the claim is passed, where that is a round number."""


@pytest.mark.parametrize("name", TWINS)
def test_a_wrong_twin_is_exposed(name: str) -> None:
    found = TWINS[name]()
    assert found > 1000 * ALLOWED
    if name in EXPECTED:
        assert found == EXPECTED[name] or abs(found - EXPECTED[name]) <= Decimal("1e-3")


@pytest.mark.parametrize(
    "adversary",
    [
        asked_in_turn([(WOMEN, -2), (WOMEN, 5)], opened(0)),
        again_and_again,
        far(4),
        far(5, b_t=4.0),
        beyond_the_scope,
        men_or_women,
    ],
)
def test_the_right_kernel_is_not_exposed(adversary: Adversary) -> None:
    assert excess(adversary) <= ALLOWED
