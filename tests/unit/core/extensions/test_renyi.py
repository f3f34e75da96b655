"""Divergences of one order: against sums over mass functions, and what accountants and budgets make of them."""

from __future__ import annotations

from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from bursar.core.accounting import Accountant, Measured, Mode, Noise, NoiseKind, Opened, Refined
from bursar.core.budget import Budget, charter_of, epsilon_of, rho_of
from bursar.core.domain import Unit
from bursar.core.extensions import renyi
from bursar.core.extensions.renyi import (
    LARGEST_ORDER,
    best_order,
    bit_divergence,
    epsilon_at,
    laplace_divergence,
    rate_of,
)
from bursar.core.queries import Product
from bursar.errors import ConfigError, Unsupported
from bursar.report.status import budget_words
from harness.divergences import divergence
from harness.maps import domain_of, mask_of

UNIT = 2**50
DOMAIN = domain_of(a=3)
EYE = Product((mask_of(DOMAIN, ("a",), [[1, 0, 0], [0, 1, 0], [0, 0, 1]]),))
ORDERS = [2, 3, 16, 100]
SCALES = [0.25, 1.0, 3.7, 20.0]


def noise(scale: float, kind: NoiseKind = NoiseKind.LAPLACE) -> Noise:
    return Noise(kind=kind, scale=scale)


def accountant(order: int | None, rows: int = 1, mode: Mode = Mode.RENYI) -> Accountant:
    return Accountant(mode=mode, unit=Unit(column="person", max_contributions=rows), order=order)


def opened(b_t: float, b_q: float) -> Opened:
    scope = Product((mask_of(DOMAIN, ("a",), [[1, 1, 1]]),))
    return Opened(scope=scope, cut=0, threshold=noise(b_t), test=noise(b_q), version=1)


def exactly(scale: Fraction, change: int, order: int) -> Decimal:
    """The sum over the mass function to 200 digits."""
    with localcontext(Context(prec=200)):
        a = (-Decimal(scale.denominator) / Decimal(scale.numerator)).exp()
        far = int(480 * scale)
        powers = [order * abs(x) + (1 - order) * abs(x - change) for x in range(-far, far + change + 1)]
        return ((1 - a) / (1 + a) * sum(a**power for power in powers)).ln() / (order - 1)


# -- from mass functions ---------------------------------------------------------------------------------------------


@pytest.mark.thinned(4)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("change", [1, 2, 9])
def test_laplace_noise_has_the_divergence_of_its_mass_function(scale: float, change: int, order: int) -> None:
    found = laplace_divergence(scale=scale, change=change, order=order)
    assert abs(found - Fraction(divergence(noise(scale), change, order))) < Fraction(1, 10**40)


@pytest.mark.parametrize(("scale", "change", "order"), [(1.0, 1, 2), (0.5, 3, 16), (1.5, 2, 7)])
def test_it_is_rounded_up(scale: float, change: int, order: int, monkeypatch: pytest.MonkeyPatch) -> None:
    exact = Fraction(exactly(Fraction(scale), change, order))
    found = laplace_divergence(scale=scale, change=change, order=order)
    assert exact <= found <= exact + Fraction(2, 10**60)
    monkeypatch.setattr(renyi, "SLACK", Decimal("-1e-60"))
    assert laplace_divergence.__wrapped__(scale=scale, change=change, order=order) < exact


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("loss", [Fraction(1, 1000), Fraction(1, 3), Fraction(2), Fraction(30)])
def test_a_bit_has_the_divergence_of_its_two_masses(loss: Fraction, order: int) -> None:
    with localcontext(Context(prec=200)):
        odds = (Decimal(loss.numerator) / Decimal(loss.denominator)).exp()
        exact = Fraction(((odds**order + odds ** (1 - order)) / (1 + odds)).ln() / (order - 1))
    found = bit_divergence(loss=loss, order=order)
    assert exact <= found <= exact + Fraction(2, 10**60)
    assert found < min(loss, order * loss**2 / 2) + Fraction(2, 10**60)


@pytest.mark.parametrize("order", [2, 5, 64, LARGEST_ORDER])
@pytest.mark.parametrize("scale", [2.0**-6, 0.3, 1.0, 17.0, 1e6, 2.0**40])
def test_divergences_grow_at_least_in_proportion_and_at_most_as_squares(scale: float, order: int) -> None:
    """What makes one price per square of a coefficient a bound; rounding errs by 1e-60."""
    loss = [laplace_divergence(scale=scale, change=s, order=order) for s in range(1, 12)]
    bits = [bit_divergence(loss=s / Fraction(scale), order=order) for s in range(1, 12)]
    apart = [each + 2 * s / Fraction(scale) for s, each in enumerate(loss, 1)]
    small = Fraction(1, 10**50)
    for found in (loss, bits, apart):
        per_step = [each / s for s, each in enumerate(found, 1)]
        assert all(one <= other + small for one, other in pairwise(per_step))
        assert all(one / s >= other / (s + 1) - small for s, (one, other) in enumerate(pairwise(per_step), 1))


def test_wide_noise_is_nearly_as_good_as_gaussian_noise_of_its_scale_and_narrow_noise_has_its_pure_loss() -> None:
    wide = laplace_divergence(scale=2.0**40, change=1, order=16)
    assert float(wide) == pytest.approx(16 / 2 / 2**80, rel=1e-9)
    assert float(laplace_divergence(scale=2.0**-6, change=2**32, order=LARGEST_ORDER)) == pytest.approx(2.0**38)


# -- prices ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("scale", SCALES)
def test_what_a_row_costs(scale: float, order: int, rows: int) -> None:
    gaussian, laplace = noise(scale, NoiseKind.GAUSSIAN), noise(scale)
    concentrated = Accountant(mode=Mode.CONCENTRATED, unit=Unit(column="person", max_contributions=rows))
    assert accountant(order, rows).units(gaussian) == concentrated.units(gaussian)
    exact = laplace_divergence(scale=scale, change=rows, order=order) / order * UNIT
    found = accountant(order, rows).units(laplace)
    assert exact <= found < exact + 1
    assert found <= concentrated.units(laplace)
    assert found <= laplace.pure_units(change=rows) // order + 1


def test_footprints_count_squares() -> None:
    event = Measured(strategy=EYE, noise=noise(1e9), version=1)
    (found,) = accountant(16).footprints(event)
    exact = laplace_divergence(scale=1e9, change=1, order=16) / 16 * UNIT
    assert found.norm.power == 2
    assert exact <= Fraction(found.units, 2**found.finer) <= exact * (1 + Fraction(1, 2**19))


def by_masses(b_t: float, b_q: float, rows: int, order: int) -> tuple[Fraction, Fraction]:
    """The two bounds of a sparse vector, from sums over masses."""
    with localcontext(Context(prec=60)):
        odds = (rows * (1 / Decimal(b_t) + 2 / Decimal(b_q))).exp()
        bit = ((odds**order + odds ** (1 - order)) / (1 + odds)).ln() / (order - 1)
        apart = divergence(noise(b_t), rows, order) + 2 * rows / Decimal(b_q)
    return Fraction(bit), Fraction(apart)


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize(
    ("b_t", "b_q", "order", "which"), [(1.0, 1.0, 2, 1), (8.0, 16.0, 3, 0), (2.0, 40.0, 4, 1), (1.0, 30.0, 64, 1)]
)
def test_what_a_sparse_vector_costs(b_t: float, b_q: float, order: int, which: int, rows: int) -> None:
    found = Fraction(accountant(order, rows).opened_units(opened(b_t, b_q)), UNIT) * order
    bounds = by_masses(b_t, b_q, rows, order)
    assert bounds.index(min(bounds)) == which
    assert 0 <= found - min(bounds) <= Fraction(order, UNIT)


def test_the_two_noises_of_a_sparse_vector_are_not_interchanged() -> None:
    """Only the threshold's loss is a divergence of an order; a twin that exchanges the two is told from it."""
    order, b_t, b_q = 64, 1.0, 30.0
    found = Fraction(accountant(order).opened_units(opened(b_t, b_q)), UNIT) * order
    exchanged = divergence(noise(b_q), 2, order) + 1 / Decimal(b_t)
    assert abs(float(exchanged) / float(found) - 1) > 0.005
    assert float(found) == pytest.approx(float(divergence(noise(b_t), 1, order) + 2 / Decimal(b_q)))


def test_an_order_is_part_of_it_and_of_nothing_else() -> None:
    for order in (None, 1, 0, -3, LARGEST_ORDER + 1, 2.5):
        with pytest.raises(ConfigError, match="needs an order"):
            accountant(order)  # type: ignore[arg-type]
    for mode in (Mode.PURE, Mode.CONCENTRATED):
        with pytest.raises(ConfigError, match="belongs to Renyi"):
            accountant(2, mode=mode)


def test_rows_are_not_refined() -> None:
    event = Refined(block=1, measured=EYE, rows=np.array([0]), before=noise(4.0), after=noise(2.0), version=1)
    with pytest.raises(Unsupported, match="buy a fresh row"):
        accountant(2).footprints(event)


def test_people_read_of_rho() -> None:
    assert [mode.unit for mode in Mode] == ["epsilon", "rho", "rho"]


# -- budgets -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [2, 16, 1000])
@pytest.mark.parametrize("delta", [1e-12, 1e-6])
@pytest.mark.parametrize("rate", [0.0, 0.01, 3.0])
def test_the_tight_formula_at_one_order(rate: float, delta: float, order: int) -> None:
    with localcontext(Context(prec=50)):
        a = Decimal(order)
        exact = Decimal(rate) * a - (a * Decimal(delta)).ln() / (a - 1) + (1 - 1 / a).ln()
    found = Decimal(epsilon_at(rate, delta, order))
    assert max(exact, Decimal(0)) <= found <= max(exact, Decimal(0)) + Decimal("1e-8")


@pytest.mark.thinned(4)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1.0, 1e-9), (1.0, 1e-6), (8.0, 1e-5)])
def test_the_default_order_buys_nearly_what_all_orders_together_do(epsilon: float, delta: float) -> None:
    order = best_order(epsilon, delta)
    amount = rate_of(epsilon, delta, order)
    assert epsilon_at(amount, delta, order) <= epsilon <= epsilon_at(amount * (1 + 1e-6), delta, order)
    assert 0.97 * rho_of(epsilon, delta) < amount <= rho_of(epsilon, delta) * (1 + 1e-9)
    assert epsilon_of(amount, delta) <= epsilon * (1 + 1e-9)
    for other in (order - 1, order + 1):
        assert rate_of(epsilon, delta, other) <= amount


def test_budgets_that_make_no_sense() -> None:
    with pytest.raises(ConfigError, match="leave nothing to spend"):
        Budget.of(epsilon=1.0, delta=1e-9, accountant="rdp", order=8)
    with pytest.raises(ConfigError, match="needs epsilon and delta"):
        Budget.of(epsilon=1.0, accountant="rdp")
    with pytest.raises(ConfigError, match="needs epsilon and delta"):
        Budget.of(epsilon=1.0, delta=1e-9, order=8)
    with pytest.raises(ConfigError, match="epsilon > 0"):
        Budget.of(epsilon=-1.0, delta=1e-9, accountant="rdp")
    for bad in ({"rate": -1.0}, {"delta": 0.0}, {"delta": 1.0}, {"order": 1}):
        with pytest.raises(ConfigError, match="an order of at least 2"):
            epsilon_at(**{"rate": 1.0, "delta": 1e-6, "order": 2, **bad})


def charter(budget: Budget) -> dict[str, object]:
    found = charter_of(dataset="d", domain=DOMAIN, unit=Unit(), budget=budget, max_rows=10)
    return found["budget"]  # type: ignore[return-value]


def test_the_order_is_in_the_charter_and_only_there_where_there_is_one() -> None:
    one, other = (Budget.of(epsilon=1.0, delta=1e-6, accountant="rdp", order=order) for order in (16, 17))
    assert budget_words(one) == f"epsilon 1 at delta 1e-06 (rho {one.amount:.6g} at order 16)"
    assert (charter(one)["mode"], charter(one)["order"], charter(other)["order"]) == ("rdp", 16, 17)
    assert set(charter(Budget.of(epsilon=1.0, delta=1e-6))) == {"mode", "amount", "delta"}
