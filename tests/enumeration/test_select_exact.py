"""`select`, enumerated: all picks together tell no more than was charged, and have the law that is promised."""

from __future__ import annotations

from decimal import Context, Decimal, localcontext

import pytest

from bursar.core.budget import Budget
from bursar.core.domain import Unit
from bursar.core.kernel import Kernel
from bursar.core.queries import LinearMap, Mask, Product, Stack, Steps
from harness.adversaries import (
    AGES,
    APART,
    CONCENTRATED,
    EITHER,
    GROWN,
    OTHER_ROW,
    SEXES,
    TWICE,
    TWO_ROWS,
    WOMEN,
    neighbours,
    over,
    plus,
    worst,
)
from harness.enumeration import ALLOWED, renyi_excess, worst_ratio
from harness.kernels import ROW, Session, enumerated
from harness.masses import DIGITS
from harness.selecting import apart, played, promised, selecting, shown

UNITS = pytest.mark.parametrize("unit", [ROW, OTHER_ROW], ids=["add-remove", "replace-one"])
ORDERS = (Decimal("1.5"), Decimal(2), Decimal(32))
MARGINALS = Stack((SEXES, AGES))
CELLS = Product((SEXES.masks[0], AGES.masks[0]))
NUMBERS = [Mask((), (), Steps.dense([[number]])) for number in (2, -1, 1)]
CANDIDATES: dict[str, LinearMap] = {
    "one histogram": AGES,
    "marginals": MARGINALS,
    "joint cells": CELLS,
    "twice": Stack((TWICE, SEXES)),
    "apart": Stack((APART, SEXES)),
    "rows on joint columns": Stack((EITHER, WOMEN)),
    "numbers in front": Stack((Product((NUMBERS[0], *WOMEN.masks, *NUMBERS[1:])), SEXES)),
}


@pytest.mark.parametrize("name", CANDIDATES)
@pytest.mark.parametrize(("estimates", "count", "scale", "barred"), [((0, 3), 2, 1.5, ()), ((1, -2, 2), 1, 0.75, (1,))])
def test_the_law_is_the_one_that_is_promised(
    name: str, estimates: tuple[int, ...], count: int, scale: float, barred: tuple[int, ...]
) -> None:
    asked = {"count": count, "scale": scale, "barred": barred}
    mechanism = played(selecting(CANDIDATES[name], estimates, **asked))
    found = shown(mechanism, plus((0, 1)), count)
    expected = promised(CANDIDATES[name], estimates, **asked, data=plus((0, 1)))
    assert set(found) == set(expected)
    assert apart(found, expected) < Decimal("1e-20")


@pytest.mark.sampled(6)
@UNITS
@pytest.mark.parametrize("name", CANDIDATES)
@pytest.mark.parametrize("estimates", [(9, -9), (1, 2, 0)])
def test_a_selection_tells_no_more_than_the_book_claims(name: str, estimates: tuple[int, ...], unit: Unit) -> None:
    candidates = CANDIDATES[name]
    mechanism = played(selecting(candidates, estimates, count=1 if candidates.rows > 4 else 2, scale=1.25), unit=unit)
    pairs = neighbours(unit)
    assert worst(mechanism, pairs) <= ALLOWED
    assert max(worst_ratio(mechanism, *pair).ratio for pair in pairs) > Decimal("0.3")


def test_the_price_is_reached_and_not_passed() -> None:
    """One more woman raises the score of the women, which is far behind, and lowers that of the grown-ups: 2/g."""
    mechanism = played(selecting(Stack((WOMEN, GROWN)), (0, 60), count=1, scale=0.5))
    found = worst_ratio(mechanism, plus(), plus((0, 1)))
    assert abs(found.claim - 4) <= ALLOWED
    assert Decimal("3.99999999") < found.ratio <= 4
    assert found.excess <= ALLOWED


def test_every_pick_pays() -> None:
    """Two that are likely to be last are picked first: 4/g."""
    likely = Stack((WOMEN, GROWN, WOMEN, GROWN))
    found = worst_ratio(played(selecting(likely, (0, 60), scale=2.0)), plus(), plus((0, 1)))
    assert abs(found.claim - 2) <= ALLOWED
    assert Decimal("1.99999") < found.ratio <= 2


def test_a_row_is_charged_where_the_candidates_are() -> None:
    mechanism = played(selecting(over(("sex",), [[2, 0], [1, 0]]), (0, 9), count=1, scale=2.0))
    woman, man = (worst_ratio(mechanism, plus(), plus((sex, 1))) for sex in (0, 1))
    assert abs(woman.claim - 2) <= ALLOWED
    assert woman.excess <= ALLOWED
    assert (man.claim, man.ratio) == (0, 0)


def test_replaced_rows_that_agree_on_all_columns_lose_nothing() -> None:
    mechanism = played(selecting(SEXES, (0, 9), count=1, scale=2.0), unit=OTHER_ROW)
    assert worst_ratio(mechanism, plus((0, 0)), plus((0, 2))).claim == 0
    found = worst_ratio(mechanism, plus((0, 0)), plus((1, 2)))
    assert abs(found.claim - 1) <= ALLOWED
    assert found.excess <= ALLOWED


@pytest.mark.sampled(2)
@UNITS
@pytest.mark.parametrize(("name", "scale"), [("marginals", 0.75), ("apart", 4.0), ("twice", 2.0)])
def test_in_concentrated_mode_the_divergence_stays_below(name: str, scale: float, unit: Unit) -> None:
    mechanism = played(selecting(CANDIDATES[name], (2, 0), scale=scale), unit=unit, budget=CONCENTRATED)
    for pair in neighbours(unit)[:4]:
        assert all(renyi_excess(mechanism, *pair, order) <= ALLOWED for order in ORDERS)


def test_in_concentrated_mode_the_price_is_nearly_reached() -> None:
    """Two candidates that are as likely, one of which rises where the other falls; wide noise: d^2/(2g^2)."""
    mechanism = played(selecting(Stack((WOMEN, GROWN)), (0, 3), count=1, scale=16.0), budget=CONCENTRATED)
    pair, order = (plus(), plus((0, 1))), Decimal(2)
    (claim,) = {o.claims(*pair) for o in mechanism.transcripts(pair[0]).outcomes.values()}
    assert abs(claim - Decimal(1) / 512) <= ALLOWED
    left, right = (mechanism.transcripts(data).outcomes for data in pair)
    with localcontext(Context(prec=DIGITS)):
        divergence = sum(o.mass**2 / right[t].mass for t, o in left.items()).ln()
    assert claim * order * Decimal("0.99") < divergence <= claim * order


def test_units_with_several_rows_are_covered_together() -> None:
    mechanism = played(selecting(Stack((WOMEN, GROWN)), (0, 60), count=1, scale=2.0), unit=TWO_ROWS)
    found = worst_ratio(mechanism, plus(), plus((0, 1), (0, 2)))
    assert found.excess <= ALLOWED
    assert abs(found.claim - 2) <= ALLOWED
    assert found.ratio > Decimal("1.9999")


def adaptive(session: Session) -> None:
    """What is selected next, and from what, depends on what was picked; some of it is refused."""
    (first,) = session.select(Stack((SEXES, WOMEN)), [1, 2, 3], count=1, scale=1.0)
    second = session.select(AGES, [int(first)] * 3, count=1 + int(first == 2), scale=2.0, barred=[int(first) % 2])
    session.select(SEXES, [0, 0], count=3 if second[0] == 0 else 1, scale=0.5)


@pytest.mark.heavy
@UNITS
def test_adaptive_selections_tell_no_more_than_the_book_claims(unit: Unit) -> None:
    assert worst(played(adaptive, unit=unit), neighbours(unit)) <= ALLOWED


def test_adaptive_selections_in_concentrated_mode() -> None:
    mechanism = played(adaptive, budget=CONCENTRATED)
    for pair in neighbours(ROW)[:3]:
        assert all(renyi_excess(mechanism, *pair, order) <= ALLOWED for order in ORDERS)


def then_measured(session: Session) -> None:
    """As RAP does: the row that is picked is measured."""
    (row,) = session.select(MARGINALS, [2, 0, 1, 1, 1], count=1, scale=1.0)
    session.measure(MARGINALS.take([int(row)]), 1.5)


@pytest.mark.heavy
def test_a_selection_beside_a_measurement() -> None:
    mechanism = enumerated(then_measured, reach=1, margin=1)
    assert worst(mechanism, neighbours(ROW)) <= ALLOWED


def test_refusals_tell_nothing_beyond_the_budget() -> None:
    def greedy(session: Session) -> None:
        while session.select(SEXES, [0, 60], count=1, scale=1.0) is not None:
            pass

    mechanism = played(greedy, budget=Budget.of(epsilon=5.0))
    found = worst_ratio(mechanism, plus(), plus((0, 1)))
    assert found.excess <= ALLOWED
    assert found.ratio <= 5
    assert all(t[-1][0] == "BudgetError" for t in mechanism.transcripts(plus()).outcomes)


class OneNumber(Kernel):
    """Charges as the published systems do."""

    def __init__(self, **parts: object) -> None:
        super().__init__(**parts, sequential=True)


@UNITS
def test_sequential_composition_claims_enough(unit: Unit) -> None:
    mechanism = played(selecting(MARGINALS, (2, 0), count=1), unit=unit, kernel=OneNumber)
    assert worst(mechanism, neighbours(unit)) <= ALLOWED
