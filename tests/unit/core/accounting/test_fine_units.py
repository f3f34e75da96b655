"""Losses of rows whose noise is so large that 2^-50 is too coarse a unit."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bursar.core.accounting import Accountant, AddRemove, Footprint, Measured, Mode, Noise, NoiseKind, ReplaceOne
from bursar.core.domain import Domain, IntegerRange, Unit
from bursar.core.queries import Mask, Product, Steps

DOMAIN = Domain((IntegerRange(name="a", lower=0, upper=1, null=0),))
UNIT = 2**50


def footprint(coefficients: list[int], scale: float, rows: int = 1) -> Footprint:
    strategy = Product((Mask(("a",), (2,), Steps.dense([coefficients])),))
    unit = Unit() if rows == 1 else Unit(column="person", max_contributions=rows)
    accountant = Accountant(mode=Mode.CONCENTRATED, unit=unit)
    noise = Noise(kind=NoiseKind.GAUSSIAN, scale=scale)
    (made,) = accountant.footprints(Measured(strategy=strategy, noise=noise, version=1))
    return made


cases = st.tuples(st.integers(0, 2**30), st.integers(0, 2**30), st.floats(2.0**-6, 2.0**40), st.integers(1, 4))


@settings(max_examples=300, deadline=None)
@given(case=cases)
def test_a_loss_is_never_rounded_down_and_hardly_up(case: tuple[int, int, float, int]) -> None:
    left, right, scale, rows = case
    exact = [Fraction(q * q * rows * rows * UNIT) / (2 * Fraction(scale) ** 2) for q in (left, right)]
    assume(max(*exact, Fraction(rows * rows * UNIT) / (2 * Fraction(scale) ** 2)) < 2**59)
    made = footprint([left, right], scale, rows)
    around = AddRemove(DOMAIN)
    around.add([made])
    replaced = ReplaceOne(DOMAIN, AddRemove(DOMAIN))
    replaced.add([made])
    apart = Fraction((left - right) ** 2 * rows * rows * UNIT) / (2 * Fraction(scale) ** 2)
    for loss, real in ((around.spent(), max(exact)), (made.largest(), max(exact)), (replaced.spent(), apart)):
        assert real <= loss <= real * (1 + Fraction(rows * rows, 2**19)) + 2


@pytest.mark.parametrize("scale", [2.0**20, 2.0**30, 2.0**40])
def test_large_coefficients_under_large_noise_cost_what_they_cost(scale: float) -> None:
    """In units of 2^-50, rounded up per row, the last would cost 2^31 times too much."""
    made = footprint([int(scale) >> 11, 0], scale)
    real = Fraction((int(scale) >> 11) ** 2) / (2 * Fraction(scale) ** 2)
    assert real <= Fraction(made.largest(), UNIT) <= real * (1 + Fraction(1, 2**19))


def test_where_units_are_fine_enough_nothing_changes() -> None:
    made = footprint([3, 1], 3.0)
    noise = Noise(kind=NoiseKind.GAUSSIAN, scale=3.0)
    assert (made.finer, made.units, made.largest()) == (0, noise.concentrated_units(), 9 * noise.concentrated_units())


def test_arrays_and_numbers_agree() -> None:
    made = footprint([2**29 + 12345, 1], 2.0**33 + 1)
    norms = np.array([0, 1, 2**30 - 1, 2**30, 2**45 + 7, 2**58 + 3], np.int64)
    for loss, norm in zip(made.loss(norms), norms, strict=True):
        assert made.of(int(norm)) <= int(loss) <= made.of(int(norm)) + 1
