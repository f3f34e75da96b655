"""What a sparse vector costs: D(v) (1/b_T + 2/b_Q), once, for every query that its scope allows."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.core.accounting import (
    Accountant,
    AddRemove,
    Book,
    Closed,
    Event,
    Failed,
    Measured,
    Mode,
    Noise,
    NoiseKind,
    Opened,
    Profile,
    ReplaceOne,
    Versioned,
    same_purchase,
)
from bursar.core.domain import Neighbours, Unit
from bursar.core.extensions.sequential import Sequential
from bursar.core.queries import Mask, Product, Steps
from harness.cases import examples
from harness.maps import domain_of, mask_of

DOMAIN = domain_of(a=3, b=2, x=3000)
UNIT = 2**50
SCOPE = Product((mask_of(DOMAIN, ("a",), [[1, 1, 1]]), mask_of(DOMAIN, ("b",), [[1, 1]])))
NEIGHBOURS = list(Neighbours)


def laplace(scale: float) -> Noise:
    return Noise(kind=NoiseKind.LAPLACE, scale=scale)


def opened(scope: Product = SCOPE, b_t: float = 4.0, b_q: float = 4.0, cut: int = 0, version: int = 1) -> Opened:
    return Opened(scope=scope, cut=cut, threshold=laplace(b_t), test=laplace(b_q), version=version)


def accountant(mode: Mode, rows: int, neighbours: Neighbours = Neighbours.ADD_REMOVE) -> Accountant:
    return Accountant(mode=mode, unit=Unit(column="person", max_contributions=rows, neighbours=neighbours))


def book(
    neighbours: Neighbours = Neighbours.ADD_REMOVE, rows: int = 1, mode: Mode = Mode.PURE, sequential: bool = False
) -> Book:
    def profile() -> Profile:
        around = AddRemove(DOMAIN)
        return ReplaceOne(DOMAIN, around) if neighbours is Neighbours.REPLACE_ONE else around

    return Book(accountant(mode, rows, neighbours), (lambda: Sequential(profile)) if sequential else profile)


def spent(*events: Event, **facts: object) -> int:
    made = book(**facts)
    for event in events:
        made.add(event)
    assert book(**facts).price(events) == made.spent()
    return made.spent()


def test_three_epsilon_at_equal_scales_and_k_times_for_units_of_k_rows() -> None:
    assert spent(opened()) == UNIT * 3 // 4
    assert spent(opened(b_t=2.0, b_q=8.0)) == UNIT * 3 // 4
    assert spent(opened(), rows=3) == UNIT * 9 // 4
    assert spent(opened(), mode=Mode.CONCENTRATED) == UNIT * 9 // 32
    assert spent(opened(), rows=3, mode=Mode.CONCENTRATED) == UNIT * 81 // 32


def test_ends_cost_nothing() -> None:
    failed = Failed(instance=1, query=SCOPE, estimate=0, version=1)
    assert spent(opened(), failed, Closed(instance=1, version=1)) == spent(opened())


@pytest.mark.parametrize("mode", [Mode.PURE, Mode.CONCENTRATED])
@pytest.mark.parametrize("rows", [1, 7])
def test_a_scope_is_paid_where_its_entries_are(mode: Mode, rows: int) -> None:
    scope = Product((mask_of(DOMAIN, ("a",), [[0, 1, 5]]), mask_of(DOMAIN, ("b",), [[2, 1]])))
    event = opened(scope, 3.0, 7.0)
    made = book(rows=rows, mode=mode)
    made.add(event)
    power = 1 if mode is Mode.PURE else 2
    rate = (rows * (Fraction(1, 3) + Fraction(2, 7))) ** power / power * UNIT
    losses = made.profiles[1].losses["a", "b"]
    for v, w in product(range(3), range(2)):
        exact = ([0, 1, 5][v] * [2, 1][w]) ** power * rate
        assert exact <= int(losses[v, w]) <= exact + 10**power


@pytest.mark.parametrize("mode", [Mode.PURE, Mode.CONCENTRATED])
def test_a_pair_loses_what_the_larger_of_its_cells_may_change(mode: Mode) -> None:
    weights = [0, 1, 5]
    scope = Product((mask_of(DOMAIN, ("a",), [weights]),))
    made = book(Neighbours.REPLACE_ONE, mode=mode)
    made.add(opened(scope))
    power, price = (1, UNIT * 3 // 4) if mode is Mode.PURE else (2, UNIT * 9 // 32)
    wanted = [[0 if v == w else max(v, w) ** power * price for w in weights] for v in weights]
    assert made.profiles[1].parts[0].complete["a",].tolist() == wanted


@pytest.mark.parametrize("mode", [Mode.PURE, Mode.CONCENTRATED])
def test_with_many_cells_a_pair_loses_the_largest_entry_once(mode: Mode) -> None:
    price = UNIT * 3 // 4 if mode is Mode.PURE else UNIT * 9 // 32
    wide = Product((Mask(("x",), (3000,), Steps.total(3000)),))
    assert spent(opened(wide), neighbours=Neighbours.REPLACE_ONE, mode=mode) == price
    assert spent(opened(SCOPE), neighbours=Neighbours.REPLACE_ONE, mode=mode) == price
    assert spent(opened(wide), opened(SCOPE), neighbours=Neighbours.REPLACE_ONE, mode=mode) == 2 * price


def test_replaced_rows_that_agree_on_the_scope_lose_nothing() -> None:
    made = book(Neighbours.REPLACE_ONE)
    made.add(opened(Product((mask_of(DOMAIN, ("a",), [[1, 1, 1]]),))))
    made.add(Measured(strategy=Product((mask_of(DOMAIN, ("b",), [[1, 0]]),)), noise=laplace(1.0), version=1))
    joint = made.profiles[1].parts[0].total
    assert joint is not None
    assert joint[0, 1] == UNIT  # differ in b alone
    assert joint[0, 2] == UNIT * 3 // 4  # differ in a alone
    assert made.spent() == joint[0, 3] == UNIT * 7 // 4


@pytest.mark.parametrize("scale", [2.0**-6, 1.0, 1e6, 2.0**40])
@pytest.mark.parametrize("mode", [Mode.PURE, Mode.CONCENTRATED])
@pytest.mark.parametrize("rows", [1, 7])
def test_wide_noise_is_priced_in_finer_units(scale: float, mode: Mode, rows: int) -> None:
    power = 1 if mode is Mode.PURE else 2
    for value in (1, 10, 2**14):
        event = opened(Product((mask_of(DOMAIN, ("a",), [[value, 0, 0]]),)), scale, min(2 * scale, 2.0**40))
        exact = (rows * value * event.rate) ** power / power
        if exact > 1000:
            continue
        (found,) = accountant(mode, rows).footprints(event)
        assert exact * UNIT <= found.largest() <= exact * UNIT * (1 + Fraction(1, 2**19)) + 1
        assert exact * UNIT <= int(found.loss(np.array([value**power]))[0]) <= found.largest() + 1


def test_published_systems_charge_an_instance_as_one_block() -> None:
    """Two about different people: the dearer of the two by the profile, both of them by sequential composition."""
    first, second = (opened(Product((mask_of(DOMAIN, ("a",), [row]),))) for row in ([1, 0, 0], [0, 1, 0]))
    assert spent(first, second) == UNIT * 3 // 4
    assert spent(first, second, sequential=True) == UNIT * 3 // 2
    failed = Failed(instance=1, query=first.scope, estimate=0, version=1)
    assert spent(first, failed, second, sequential=True) == UNIT * 3 // 2


@pytest.mark.hypothesis
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_with_other_events_losses_add_up_cell_by_cell(neighbours: Neighbours) -> None:
    rows = st.lists(st.integers(0, 3), min_size=3, max_size=3)

    @settings(max_examples=examples(40), deadline=None)
    @given(st.lists(st.tuples(rows, st.floats(0.5, 2.0**30)), min_size=1, max_size=4), rows)
    def check(scopes: list[tuple[list[int], float]], measured: list[int]) -> None:
        made, exact = book(neighbours), np.zeros((3, 3), object)
        for weights, scale in scopes:
            event = opened(Product((mask_of(DOMAIN, ("a",), [weights]),)), scale, scale)
            made.add(event)
            cells = [[0 if v == w else max(weights[v], weights[w]) for w in range(3)] for v in range(3)]
            if neighbours is Neighbours.ADD_REMOVE:
                cells = [[weights[v]] * 3 for v in range(3)]
            exact += np.array(cells, object) * (event.rate * UNIT)
        made.add(Measured(strategy=Product((mask_of(DOMAIN, ("a",), [measured]),)), noise=laplace(2.0), version=1))
        differ = [[abs(v - w) if neighbours is Neighbours.REPLACE_ONE else v for w in measured] for v in measured]
        exact += np.array(differ, object) * Fraction(UNIT, 2)
        real = exact.max()
        assert real <= made.spent() <= real * (1 + Fraction(1, 2**18)) + 20

    check()


def test_same_purchases() -> None:
    event = opened()
    assert same_purchase(event, opened())
    others = [
        opened(Product(())),
        opened(b_t=5.0),
        opened(b_q=5.0),
        opened(cut=1),
        opened(version=2),
        Measured(strategy=SCOPE, noise=laplace(4.0), version=1),
        Versioned(version=1),
    ]
    assert not any(same_purchase(event, other) for other in others)
    failed = Failed(instance=1, query=SCOPE, estimate=0, version=1)
    assert not same_purchase(failed, failed)
