"""`above`, enumerated: all outcomes of a sparse vector's tests together tell no more than its opening was charged."""

from __future__ import annotations

from decimal import Decimal

import pytest

from bursar.core.budget import Budget
from bursar.core.domain import Unit
from bursar.core.kernel import Kernel
from bursar.core.queries import LinearMap, Product
from harness.adversaries import (
    CONCENTRATED,
    EITHER,
    GROWN,
    OLD_WOMEN,
    OTHER_ROW,
    TWICE,
    TWO_ROWS,
    WOMEN,
    neighbours,
    over,
    plus,
    worst,
)
from harness.enumeration import ALLOWED, renyi_excess, worst_ratio
from harness.kernels import ROW, Adversary, Session
from harness.sparse import EVERYBODY, ValueByValue, asked_in_turn, joint, laplace, opened, played

UNITS = pytest.mark.parametrize("unit", [ROW, OTHER_ROW], ids=["add-remove", "replace-one"])


def asking(
    *asked: tuple[LinearMap, int], scope: Product = EVERYBODY, cut: int = 0, b_t: float = 1.0, b_q: float = 1.0
) -> Adversary:
    return asked_in_turn(asked, opened(cut, b_t, b_q, scope))


FAR = asking(*[(WOMEN, -9)] * 4, (WOMEN, 3))
"""On more women the first tests are likelier to be above, the last is less likely: as telling as tests can be."""


def test_the_price_is_reached_and_not_passed() -> None:
    """Four tests that are unlikely to pass, and one that is unlikely to be above: 1/b_T + 2/b_Q."""
    found = worst_ratio(played(FAR), plus(), plus((0, 1)))
    assert Decimal("2.99999999") < found.ratio <= 3
    assert found.excess <= ALLOWED
    assert abs(found.claim - 3) <= ALLOWED


@pytest.mark.parametrize(("b_t", "b_q", "passes"), [(2.0, 0.5, 2), (0.5, 2.0, 6), (1.5, 1.5, 3)])
def test_either_noise_pays_its_part(b_t: float, b_q: float, passes: int) -> None:
    mechanism = played(asking(*[(WOMEN, -9)] * passes, (WOMEN, 3), b_t=b_t, b_q=b_q))
    found = worst_ratio(mechanism, plus(), plus((0, 1)))
    assert found.excess <= ALLOWED
    assert abs(found.claim - Decimal(1 / b_t + 2 / b_q)) <= ALLOWED
    assert found.ratio > found.claim * Decimal("0.99")


@pytest.mark.heavy
@pytest.mark.parametrize("asked", [FAR, asking((WOMEN, 4), (GROWN, 0), cut=2)], ids=["far", "near"])
def test_adding_up_over_the_threshold_is_what_all_its_values_come_to(asked: Adversary) -> None:
    """The kernel is run for every value of the threshold's noise up to 32; what lies beyond has a mass of e^-32."""
    whole, added_up = played(asked, reach=32, tape=ValueByValue).transcripts(plus()), played(asked).transcripts(plus())
    assert set(whole.outcomes) == set(added_up.outcomes)
    assert whole.missing < Decimal("1e-13")
    for transcript, outcome in added_up.outcomes.items():
        assert 0 <= outcome.mass - whole.outcomes[transcript].mass <= whole.missing
    assert abs(sum(outcome.mass for outcome in added_up.outcomes.values()) - 1) <= Decimal("1e-20")


def test_a_test_has_the_law_that_it_should_have() -> None:
    """The women of the base data number 1: |1 - 4| + X >= 2 + Z."""
    law = played(asking((WOMEN, 4), cut=2, b_t=2.0, b_q=1.5)).transcripts(plus())
    seen = {transcript[-1][-2]: outcome.mass for transcript, outcome in law.outcomes.items()}
    assert set(seen) == {False, True}
    assert abs(seen[True] - joint(laplace(2.0), laplace(1.5), ((-1, True),))) <= Decimal("1e-20")


@pytest.mark.thinned(4)
@UNITS
@pytest.mark.parametrize("query", [WOMEN, GROWN, OLD_WOMEN, EITHER, Product(())])
def test_any_query_within_the_scope(query: LinearMap, unit: Unit) -> None:
    mechanism = played(asking((query, -2), (query, 3)), unit=unit)
    assert worst(mechanism, neighbours(unit)) <= ALLOWED


def test_a_scope_pays_where_its_entries_are() -> None:
    """Women may count twice and men not at all: a woman can lose twice the price, a man nothing."""
    scope = over(("sex",), [[2, 0]])
    mechanism = played(asking((TWICE, -5), (TWICE, 8), (WOMEN, 3), scope=scope, b_t=2.0, b_q=2.0))
    found = worst_ratio(mechanism, plus(), plus((0, 1)))
    assert found.excess <= ALLOWED
    assert abs(found.claim - 3) <= ALLOWED
    nothing = worst_ratio(mechanism, plus(), plus((1, 1)))
    assert (nothing.claim, nothing.excess <= ALLOWED) == (0, True)


def test_replaced_rows_that_agree_on_the_scope_lose_nothing() -> None:
    scope = over(("sex",), [[1, 1]])
    mechanism = played(asking((WOMEN, -5), (WOMEN, 3), scope=scope), unit=OTHER_ROW)
    assert worst_ratio(mechanism, plus((0, 0)), plus((0, 2))).claim == 0
    found = worst_ratio(mechanism, plus((0, 0)), plus((1, 2)))
    assert abs(found.claim - 3) <= ALLOWED
    assert found.excess <= ALLOWED


def adaptive(session: Session) -> None:
    """What is tested, bought and opened next depends on what came out."""
    if session.above(opened(1), WOMEN, -1):
        session.above(opened(0, 2.0, 2.0, over(("age",), [[1, 1, 1]])), GROWN, 1)
        return
    first = session.instance
    (value,) = session.measure(over(("sex",), [[1, 0]]), 4.0) if session.above(first, GROWN, 3) else (0,)
    if value > 1:
        session.above(opened(2), OLD_WOMEN, 0)
    else:
        session.above(first, OLD_WOMEN, 4)


def stubborn(session: Session) -> None:
    """Tests what was closed, what lies outside the scope and what is no instance, and goes on."""
    scope = over(("sex",), [[1, 1]])
    session.above(opened(1, scope=scope), WOMEN, -1)
    instance = session.instance
    for query, estimate in ((GROWN, 0), (TWICE, 0), (WOMEN, 2**70), (WOMEN, 3), (WOMEN, 1)):
        session.above(instance, query, estimate)
    session.above(99, WOMEN, 1)


@pytest.mark.thinned(4)
@UNITS
@pytest.mark.parametrize("adversary", [adaptive, stubborn])
def test_adaptive_tests_tell_no_more_than_the_book_claims(adversary: Adversary, unit: Unit) -> None:
    """The measurement is dropped from the adaptive one here: its values would multiply the transcripts."""
    mechanism = played(without_measurements(adversary), unit=unit)
    assert worst(mechanism, neighbours(unit)) <= ALLOWED


def without_measurements(adversary: Adversary) -> Adversary:
    def quiet(session: Session) -> None:
        session.measure = lambda *asked: (0,)  # type: ignore[method-assign]
        adversary(session)

    return quiet


def interleaved(session: Session) -> None:
    """Two instances are open at once, and tested in turns."""
    session.above(opened(1), WOMEN, -1)
    first = session.instance
    session.above(opened(0, 0.5, 0.5), GROWN, 2)
    second = session.instance
    if session.above(first, GROWN, 4) is False:
        session.above(second, WOMEN, 0)


def test_instances_side_by_side() -> None:
    assert worst(played(interleaved), neighbours(ROW)) <= ALLOWED


def test_units_with_several_rows_are_covered_together() -> None:
    mechanism = played(asking((WOMEN, -7), (WOMEN, -7), (WOMEN, 5), b_t=2.0, b_q=2.0), unit=TWO_ROWS)
    found = worst_ratio(mechanism, plus(), plus((0, 1), (0, 2)))
    assert found.excess <= ALLOWED
    assert abs(found.claim - 3) <= ALLOWED
    assert found.ratio > Decimal("2.6")


def test_refusals_tell_nothing_beyond_the_budget() -> None:
    def greedy(session: Session) -> None:
        while session.above(opened(0, 2.0, 2.0), WOMEN, 3) is not None:
            pass

    mechanism = played(greedy, budget=Budget.of(epsilon=3.5))
    found = worst_ratio(mechanism, plus(), plus((0, 1)))
    assert found.excess <= ALLOWED
    assert found.ratio <= Decimal("3.5")
    assert all(t[-1][0] == "BudgetError" for t in mechanism.transcripts(plus()).outcomes)


@pytest.mark.parametrize("order", [Decimal("1.5"), Decimal(2), Decimal(8)])
def test_in_concentrated_mode_the_divergence_stays_below_half_the_square(order: Decimal) -> None:
    for adversary in (FAR, without_measurements(adaptive)):
        mechanism = played(adversary, budget=CONCENTRATED)
        assert renyi_excess(mechanism, plus(), plus((0, 1)), order) <= ALLOWED


def test_an_older_version_is_left_alone() -> None:
    def adversary(session: Session) -> None:
        session.above(opened(9), WOMEN, 1)
        first = session.instance
        session.next_version(same_rows=True)
        assert session.above(first, WOMEN, 1) is None
        session.above(opened(1, version=2), WOMEN, 1)

    mechanism = played(adversary)
    assert worst(mechanism, [(plus() + plus(), plus((0, 1)) + plus((0, 1)))]) <= ALLOWED


class OneNumber(Kernel):
    """Charges as the published systems do."""

    def __init__(self, **parts: object) -> None:
        super().__init__(**parts, sequential=True)


@UNITS
def test_sequential_composition_claims_enough(unit: Unit) -> None:
    mechanism = played(asking((WOMEN, -3), (GROWN, 4)), unit=unit, kernel=OneNumber)
    assert worst(mechanism, neighbours(unit)) <= ALLOWED
