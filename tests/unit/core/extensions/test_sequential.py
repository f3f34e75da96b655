"""Sequential composition: every measurement at its largest loss, once, at its present noise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.core.accounting import (
    Accountant,
    AddRemove,
    Book,
    Event,
    Measured,
    Mode,
    Noise,
    NoiseKind,
    Refined,
    ReplaceOne,
    Versioned,
)
from bursar.core.accounting.profile import Profile
from bursar.core.budget import Budget
from bursar.core.domain import Neighbours, Unit
from bursar.core.extensions.sequential import Sequential
from bursar.core.kernel import Kernel
from bursar.core.ledger import Purpose
from bursar.core.queries import LinearMap, Mask, Product, Stack, Steps
from harness.cases import examples
from harness.maps import domain_of, maps
from harness.small import config, engine

DOMAIN = domain_of(a=3, b=2)
ONE = 2**50


def rows(matrix: list[list[int]]) -> Product:
    return Product((Mask(("a",), (3,), Steps.dense(matrix)),))


EYE = rows([[1, 0, 0], [0, 1, 0], [0, 0, 1]])
TREE = Stack((rows([[1, 1, 1]]), EYE, rows([[3, 0, 0]])))


def laplace(scale: float) -> Noise:
    return Noise(kind=NoiseKind.LAPLACE, scale=scale)


def measured(strategy: LinearMap, scale: float, version: int = 1) -> Measured:
    return Measured(strategy=strategy, noise=laplace(scale), version=version)


def refined(strategy: LinearMap, block: int, picks: list[int], before: float, after: float) -> Refined:
    laws = {"before": laplace(before), "after": laplace(after)}
    return Refined(block=block, measured=strategy, rows=np.array(picks), version=1, **laws)


def profile(neighbours: Neighbours) -> Profile:
    around = AddRemove(DOMAIN)
    return ReplaceOne(DOMAIN, around) if neighbours is Neighbours.REPLACE_ONE else around


def book(sequential: bool = True, neighbours: Neighbours = Neighbours.ADD_REMOVE, mode: Mode = Mode.PURE) -> Book:
    accountant = Accountant(mode=mode, unit=Unit(neighbours=neighbours))
    own = lambda: profile(neighbours)  # noqa: E731
    return Book(accountant, (lambda: Sequential(own)) if sequential else own)


def filled(*events: Event, **kind: object) -> Book:
    made = book(**kind)
    for event in events:
        made.add(event)
    return made


def test_disjoint_people_cost_twice() -> None:
    first, second = rows([[1, 0, 0]]), rows([[0, 1, 0]])
    assert filled(measured(first, 1.0), measured(second, 2.0)).spent() == ONE + ONE // 2
    assert filled(measured(first, 1.0), measured(second, 2.0), sequential=False).spent() == ONE


def test_a_measurement_of_several_parts_is_one_measurement() -> None:
    """The total, one's own cell, and three times that: 5 in the first cell, and not 1 + 1 + 3 in the worst of each."""
    other = Stack((rows([[0, 0, 2]]), rows([[1, 0, 0]])))
    assert filled(measured(TREE, 1.0)).spent() == 5 * ONE
    assert filled(measured(other, 1.0)).spent() == 2 * ONE


def test_refined_as_a_whole_it_costs_the_difference() -> None:
    made = filled(measured(EYE, 8.0), measured(TREE, 4.0))
    assert made.spent() == ONE // 8 + 5 * ONE // 4
    everything = list(range(TREE.rows))
    assert made.price([refined(TREE, 2, everything, 4.0, 1.0)]) == 5 * ONE * 3 // 4
    made.add(refined(TREE, 2, everything, 4.0, 1.0))
    assert made.spent() == ONE // 8 + 5 * ONE


def test_rows_of_one_measurement_are_refined_side_by_side() -> None:
    made = filled(measured(EYE, 8.0), measured(EYE, 4.0), refined(EYE, 1, [0], 8.0, 1.0))
    assert made.spent() == ONE + ONE // 4
    made.add(refined(EYE, 1, [2], 8.0, 1.0))
    assert made.spent() == ONE + ONE // 4  # other people of the same measurement
    made.add(refined(EYE, 2, [2], 4.0, 1.0))
    assert made.spent() == 2 * ONE


def test_plans_are_priced_as_they_would_be_charged() -> None:
    made = filled(measured(EYE, 8.0))
    plan: list[Event] = [measured(EYE, 4.0), refined(EYE, 1, [0], 8.0, 4.0), refined(EYE, 1, [1], 8.0, 2.0)]
    price, before = made.price(plan), made.spent()
    assert price == ONE // 4 + ONE // 2 - ONE // 8
    for event in plan:
        made.add(event)
    assert made.spent() - before == price
    same = measured(EYE, 4.0)
    assert made.price([same, same]) == ONE // 2


def test_versions_have_numbers_of_their_own() -> None:
    made = filled(Versioned(version=1), measured(EYE, 1.0), Versioned(version=2), measured(EYE, 1.0, version=2))
    assert made.spent() == 2 * ONE


@pytest.mark.hypothesis
@pytest.mark.sampled(2)
@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("mode", [Mode.PURE, Mode.CONCENTRATED])
def test_never_below_the_profile(neighbours: Neighbours, mode: Mode) -> None:
    strategies = maps(DOMAIN).filter(lambda found: 0 < found.rows <= 12 and found.largest() < 2**10)

    scales = st.floats(2.0**9, 2.0**20)  # with less noise a loss could be larger than any book holds

    @settings(max_examples=examples(40), deadline=None)
    @given(st.lists(st.tuples(strategies, scales), min_size=1, max_size=3), st.data())
    def check(bought: list[tuple[LinearMap, float]], data: st.DataObject) -> None:
        events: list[Event] = [measured(strategy, scale) for strategy, scale in bought]
        if mode is Mode.PURE:
            for block, (strategy, scale) in enumerate(bought, 1):
                picks = sorted(data.draw(st.sets(st.integers(0, strategy.rows - 1), min_size=1)))
                events.append(refined(strategy, block, picks, scale, scale / 2))
        one, other = (filled(*events, sequential=kind, neighbours=neighbours, mode=mode) for kind in (True, False))
        assert one.spent() >= other.spent()
        empty = book(neighbours=neighbours, mode=mode)
        rounding = 2 * sum(len(empty.accountant.footprints(event)) for event in events)
        plain = sum(empty.price([event]) for event in events)
        assert one.spent() <= plain + rounding

    check()


def test_copies_do_not_touch_each_other() -> None:
    made = filled(measured(EYE, 8.0), refined(EYE, 1, [0], 8.0, 4.0))
    other = made.copy()
    other.add(refined(EYE, 1, [0], 4.0, 1.0))
    other.add(measured(EYE, 1.0))
    assert (made.spent(), other.spent()) == (ONE // 4, 2 * ONE)
    made.add(refined(EYE, 1, [0], 4.0, 2.0))
    assert (made.spent(), other.spent()) == (ONE // 2, 2 * ONE)


@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_a_kernel_can_charge_so(neighbours: Neighbours) -> None:
    settings_ = config(unit=Unit(neighbours=neighbours), budget=Budget.of(epsilon=5.0), public_size=1000)
    db = engine(settings=settings_)
    door = {"ledger": db.ledger, "open_source": db.engine.open_source, "randomness": db.engine.randomness}
    facts = {"unit": settings_.unit, "budget": settings_.budget, "max_rows": settings_.max_rows}
    kernel = Kernel(domain=settings_.domain, **facts, **door, sequential=True)
    parts = Steps.identity(10)
    for picked in ([0], [1]):
        strategy = Product((Mask(("age",), (10,), parts.take(picked)),))
        kernel.measure(strategy, laplace(1.0), analyst="ana", purpose=Purpose("", "test"), at_most=2**60)
    assert kernel.spent() == 2 * ONE
    assert db.kernel.spent() == (ONE if neighbours is Neighbours.ADD_REMOVE else 2 * ONE)
