"""Accountants: k and k^2, rounding, and nothing that is unknown for free."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from bursar.core.accounting import (
    Accountant,
    Measured,
    Mode,
    Noise,
    NoiseKind,
    Versioned,
    from_units,
    left_of,
    to_units,
)
from bursar.core.accounting.profile import LARGEST_LOSS
from bursar.core.domain import Unit
from bursar.core.queries import Product, Stack
from bursar.errors import BudgetError, QueryError, Unsupported
from harness.maps import domain_of, mask_of

DOMAIN = domain_of(a=3, b=2)
EYE = Product((mask_of(DOMAIN, ("a",), np.eye(3, dtype=int)),))
LAPLACE = Noise(kind=NoiseKind.LAPLACE, scale=4.0)
GAUSSIAN = Noise(kind=NoiseKind.GAUSSIAN, scale=4.0)
UNIT = 2**50


def accountant(mode: Mode, rows: int = 1) -> Accountant:
    return Accountant(mode=mode, unit=Unit(column="person", max_contributions=rows))


def test_units_for_one_row_and_for_several() -> None:
    assert accountant(Mode.PURE).units(LAPLACE) == UNIT // 4
    assert accountant(Mode.PURE, 3).units(LAPLACE) == 3 * UNIT // 4
    assert accountant(Mode.CONCENTRATED).units(GAUSSIAN) == UNIT // 32
    assert accountant(Mode.CONCENTRATED, 3).units(GAUSSIAN) == 9 * UNIT // 32
    assert accountant(Mode.CONCENTRATED, 3).units(LAPLACE) == 9 * UNIT // 32  # epsilon^2 / 2


def test_gaussian_noise_has_no_pure_price() -> None:
    with pytest.raises(Unsupported, match="epsilon alone"):
        accountant(Mode.PURE).units(GAUSSIAN)


@pytest.mark.parametrize(("mode", "power"), [(Mode.PURE, 1), (Mode.CONCENTRATED, 2)])
def test_a_measurement_has_a_footprint_for_each_part(mode: Mode, power: int) -> None:
    event = Measured(strategy=Stack((EYE, Product(()))), noise=LAPLACE, version=7)
    found = accountant(mode).footprints(event)
    assert [f.norm.columns for f in found] == [("a",), ()]
    assert {(f.norm.power, f.units, f.version) for f in found} == {(power, accountant(mode).units(LAPLACE), 7)}
    assert accountant(mode).footprints(Versioned(version=1)) == ()


@pytest.mark.parametrize("scale", [2.0**-6, 1.0, 3.0, 1e6, 1e9, 2.0**40])
@pytest.mark.parametrize("mode", [Mode.PURE, Mode.CONCENTRATED])
@pytest.mark.parametrize("rows", [1, 7, 2**12])
def test_wide_noise_is_priced_in_finer_units(scale: float, mode: Mode, rows: int) -> None:
    """However wide the noise, the price of large coefficients is right to one part in 2^20, and never too low."""
    power = 1 if mode is Mode.PURE else 2
    for value in (1, 10, 2**14):
        strategy = Product((mask_of(DOMAIN, ("a",), [[value, 0, 0]]),))
        event = Measured(strategy=strategy, noise=Noise(kind=NoiseKind.LAPLACE, scale=scale), version=1)
        exact = Fraction(rows * value) ** power / Fraction(scale) ** power / power
        if exact > 1000:
            continue
        (found,) = accountant(mode, rows).footprints(event)
        assert exact * UNIT <= found.largest() <= exact * UNIT * (1 + Fraction(1, 2**19)) + 1
        assert exact * UNIT <= int(found.loss(np.array([value**power]))[0]) <= found.largest() + 1


def test_declaring_a_version_costs_nothing() -> None:
    assert accountant(Mode.PURE).footprints(Versioned(version=1)) == ()


def test_unknown_events_and_strategies_are_refused_not_free() -> None:
    @dataclass(frozen=True)
    class Opened:
        version: int = 1

    class Foreign:
        def norms(self, power: int) -> tuple[()]:
            return ()

    with pytest.raises(Unsupported, match="Opened"):
        accountant(Mode.PURE).footprints(Opened())
    with pytest.raises(Unsupported, match="Foreign"):
        accountant(Mode.PURE).footprints(Measured(strategy=Foreign(), noise=LAPLACE, version=1))


def test_events_beyond_every_budget_are_refused() -> None:
    sharp = Noise(kind=NoiseKind.LAPLACE, scale=2.0**-6)
    heavy = Product((mask_of(DOMAIN, ("a",), [[17, 0, 0]]),))
    with pytest.raises(BudgetError, match="1024"):
        accountant(Mode.PURE).footprints(Measured(strategy=heavy, noise=sharp, version=1))
    nothing = Product((mask_of(DOMAIN, ("a",), [[0, 0, 0]]),))
    with pytest.raises(BudgetError, match="1024"):  # units beyond 64 bits, whatever they are multiplied with
        accountant(Mode.CONCENTRATED, 2**40).footprints(Measured(strategy=nothing, noise=sharp, version=1))


def test_coefficients_beyond_the_squares_that_fit_are_refused() -> None:
    huge = Product((mask_of(DOMAIN, ("a",), [[2**32, 0, 0]]),))
    with pytest.raises(QueryError, match="too large"):
        accountant(Mode.CONCENTRATED).footprints(Measured(strategy=huge, noise=GAUSSIAN, version=1))


@pytest.mark.parametrize("budget", [0.0, 1e-300, 0.1, 1.0, math.pi, 1000.0])
def test_budgets_round_down_and_losses_up(budget: float) -> None:
    units = to_units(budget)
    assert Fraction(units, UNIT) <= Fraction(budget) < Fraction(units + 1, UNIT)
    assert units < LARGEST_LOSS
    assert Fraction(from_units(units)) >= Fraction(units, UNIT)
    assert Fraction(left_of(units)) <= Fraction(units, UNIT)
    assert from_units(0) == left_of(0) == 0.0
    assert Fraction(from_units(2**60 - 1)) >= Fraction(2**60 - 1, UNIT) >= Fraction(left_of(2**60 - 1))


@pytest.mark.parametrize("budget", [-1.0, 1000.1, math.nan, math.inf])
def test_budgets_that_are_none_are_refused(budget: float) -> None:
    with pytest.raises(BudgetError):
        to_units(budget)
