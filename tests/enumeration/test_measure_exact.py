"""`measure`, enumerated: no transcript of the real kernel is more telling than the kernel's own book claims."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import NoReturn, get_type_hints

import pytest

from bursar.core.accounting import NoiseKind
from bursar.core.budget import Budget
from bursar.core.domain import Unit
from bursar.planner.grant import Grant, Verbs
from harness.adversaries import (
    ALL,
    APART,
    CONCENTRATED,
    GROWN,
    OTHER_ROW,
    STRATEGIES,
    TWO_ROWS,
    WOMEN,
    branching,
    chasing,
    greedy,
    neighbours,
    once,
    plus,
    worst,
)
from harness.enumeration import ALLOWED, renyi_excess, worst_ratio
from harness.kernels import CELLS, ROW, Adversary, Session, enumerated

ENUMERATED = {"measure", "refine", "above", "select"}
"""Verbs that have an enumeration in this folder."""


@pytest.mark.sampled(5)
@pytest.mark.parametrize("unit", [ROW, OTHER_ROW], ids=["add-remove", "replace-one"])
@pytest.mark.parametrize("name", STRATEGIES)
def test_one_measurement_tells_no_more_than_the_book_claims(name: str, unit: Unit) -> None:
    reach = 3 if STRATEGIES[name].rows == 1 else 2
    mechanism = enumerated(once(STRATEGIES[name], 1.25), reach=reach, margin=2, unit=unit)
    pairs = neighbours(unit)
    assert worst(mechanism, pairs) <= ALLOWED
    tight = max(worst_ratio(mechanism, *pair).ratio for pair in pairs)
    free = unit is OTHER_ROW and name == "all"
    assert (tight == 0) if free else (tight > Decimal("0.79")), "an enumeration that sees no loss proves nothing"


@pytest.mark.heavy
@pytest.mark.sampled(2)
@pytest.mark.parametrize("scale", [0.3, 1.0, 2.7])
def test_the_tails_are_no_exception(scale: float) -> None:
    mechanism = enumerated(once(WOMEN, scale), reach=math.ceil(46 * scale))
    found = worst_ratio(mechanism, plus(), plus((0, 1)))
    assert mechanism.transcripts(plus()).missing < Decimal("1e-19")
    assert abs(found.excess) <= ALLOWED  # the claim is reached, and not passed


@pytest.mark.heavy
@pytest.mark.sampled(3)
@pytest.mark.parametrize("unit", [ROW, OTHER_ROW], ids=["add-remove", "replace-one"])
@pytest.mark.parametrize(
    ("adversary", "reach", "margin"),
    [
        pytest.param(branching, 1, 2, id="branching"),
        pytest.param(chasing, 1, 1, id="chasing", marks=pytest.mark.heavy),
        pytest.param(branching, 4, 2, id="branching far", marks=pytest.mark.soak),
        pytest.param(chasing, 3, 1, id="chasing far", marks=pytest.mark.soak),
    ],
)
def test_adaptive_questions_tell_no_more_than_the_book_claims(
    adversary: Adversary, reach: int, margin: int, unit: Unit
) -> None:
    mechanism = enumerated(adversary, reach=reach, margin=margin, unit=unit)
    assert worst(mechanism, neighbours(unit)) <= ALLOWED


@pytest.mark.heavy
def test_refusals_tell_nothing_beyond_the_budget() -> None:
    budget = Budget.of(epsilon=2.0)
    mechanism = enumerated(greedy, reach=2, budget=budget)
    for left, right in neighbours(ROW):
        found = worst_ratio(mechanism, left, right)
        assert found.excess <= ALLOWED
        assert found.ratio <= 2 + ALLOWED
    refused = [t for t in mechanism.transcripts(plus()).outcomes if t[-1][0] == "BudgetError"]
    assert refused


@pytest.mark.heavy
def test_units_with_several_rows_are_covered_together() -> None:
    def adversary(session: Session) -> None:
        (first,) = session.measure(ALL, 1.5)
        session.measure(WOMEN if first > 3 else GROWN, 1.0)

    mechanism = enumerated(adversary, reach=2, margin=2, unit=TWO_ROWS)
    pairs = [(plus(), plus(*rows)) for rows in [((0, 0),), ((0, 1), (0, 2)), ((0, 0), (1, 1))]]
    assert worst(mechanism, pairs) <= ALLOWED


@pytest.mark.parametrize("same_rows", [False, True])
def test_two_versions_of_the_data(same_rows: bool) -> None:
    """A person may move between versions, or, where rows were only added, stay."""

    def adversary(session: Session) -> None:
        (first,) = session.measure(WOMEN, 1.0)
        session.next_version(same_rows=same_rows)
        session.measure(APART if first > 1 else GROWN, 1.5)

    mechanism = enumerated(adversary, reach=2)
    after = [(v, v) for v in CELLS] if same_rows else [(v, w) for v in CELLS[:2] for w in CELLS]
    pairs = [(plus() + plus(), plus(v) + plus(w)) for v, w in after]
    assert worst(mechanism, pairs) <= ALLOWED


ORDERS = [Decimal("1.25"), Decimal(2), Decimal(5)]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("unit", [ROW, OTHER_ROW], ids=["add-remove", "replace-one"])
@pytest.mark.parametrize("name", ["women", "twice", "apart", "either"])
def test_gaussian_divergences_keep_to_rho(name: str, unit: Unit) -> None:
    strategy = STRATEGIES[name]
    adversary = once(strategy, 1.5, NoiseKind.GAUSSIAN)
    mechanism = enumerated(adversary, reach=24, margin=2, unit=unit, budget=CONCENTRATED)
    pairs = [(plus(), plus((0, 2))), (plus(), plus((1, 2)))] if unit is ROW else [(plus((0, 2)), plus((1, 1)))]
    for left, right in pairs:
        for order in ORDERS:
            assert renyi_excess(mechanism, left, right, order) <= ALLOWED


@pytest.mark.heavy
def test_gaussian_divergences_keep_to_rho_adaptively() -> None:
    def adversary(session: Session) -> None:
        (first,) = session.measure(WOMEN, 1.0, NoiseKind.GAUSSIAN)
        session.measure(GROWN if first > 1 else WOMEN, 0.5 if first % 2 else 1.0, NoiseKind.GAUSSIAN)

    mechanism = enumerated(adversary, reach=11, budget=CONCENTRATED)
    for order in (Decimal("1.25"), Decimal(3)):
        assert renyi_excess(mechanism, plus(), plus((0, 2)), order) <= ALLOWED


@pytest.mark.heavy
def test_laplace_divergences_keep_to_half_the_square() -> None:
    mechanism = enumerated(once(WOMEN, 1.0), reach=70, budget=CONCENTRATED)
    for order in ORDERS:
        assert renyi_excess(mechanism, plus(), plus((0, 0)), order) <= ALLOWED


def test_every_open_verb_is_enumerated() -> None:
    """A verb that is opened comes with an enumeration of its own, and is entered into ENUMERATED."""
    verbs = {name for name in vars(Verbs) if not name.startswith("_")}
    silent = NoReturn, type(None)  # they tell nothing about the data
    open_verbs = {name for name in verbs if get_type_hints(getattr(Grant, name))["return"] not in silent}
    assert verbs >= {"measure", "refine", "above", "select"}
    assert open_verbs == ENUMERATED
