"""RAP: one-shot noisy top-k has the law of K exponential mechanisms one after the other, and what it costs.

RAP, Def. 2.12 (report noisy max), Alg. 4 (one-shot adaptive selection, lines 2 and 3), after Durfee and Rogers 2019.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from scipy import integrate

from bursar.core.accounting import Accountant, Measured, Mode, Noise, NoiseKind, Selected
from bursar.core.domain import Neighbours, Unit
from bursar.core.noise.law import UNIT_BITS
from bursar.core.queries import Mask, Product, Stack, Steps
from harness.selecting import in_turn

Waiting = dict[Fraction, Fraction]
"""sum of c exp(-rate t), as {rate: c}."""


def later(waiting: Waiting, rate: Fraction) -> Waiting:
    """The integral from t on of rate exp(-rate u) waiting(u) du, term by term."""
    return {rate + other: c * rate / (rate + other) for other, c in waiting.items()}


def one_shot(weights: dict[int, Fraction], rows: tuple[int, ...]) -> Fraction:
    """P(exactly these rows come out on top, in this order), with one draw of noise for each row.

    s/g + Gumbel is -log(T), T exponential of rate w = exp(s/g): the largest noisy scores are the rows that come first.
    The last row comes at u before all others, exp(-(sum of their rates) u); the one before it comes earlier; and so on.
    """
    others = sum((weight for row, weight in weights.items() if row not in rows), Fraction(0))
    waiting: Waiting = {others: Fraction(1)}
    for row in reversed(rows):
        waiting = later(waiting, weights[row])
    return sum(waiting.values(), Fraction(0))


def iterated(weights: dict[int, Fraction], rows: tuple[int, ...]) -> Fraction:
    """The product of the rows' shares among those left."""
    left, mass = dict(weights), Fraction(1)
    for row in rows:
        mass *= left[row] / sum(left.values(), Fraction(0))
        del left[row]
    return mass


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("numbers", [(1, 2, 3, 5), (1, 1, 1, 1), (1, 100, 7, Fraction(1, 9), 7)])
def test_one_shot_is_iterated_exactly(numbers: tuple[Fraction, ...], count: int) -> None:
    weights = {row: Fraction(number) for row, number in enumerate(numbers)}
    law = {rows: one_shot(weights, rows) for rows in permutations(weights, count)}
    assert sum(law.values()) == 1
    assert all(mass == iterated(weights, rows) for rows, mass in law.items())
    again = {rows: math.prod(iterated(weights, (row,)) for row in rows) for rows in law}  # with replacement
    assert count == 1 or any(again[rows] != mass for rows, mass in law.items())


def by_integration(scores: list[int], scale: float, first: int, second: int) -> float:
    """P(two rows are the two largest, in this order), from the density of Gumbel noise of this scale."""

    def density(x: float) -> float:
        z = [(x - score) / scale for score in scores]
        below = [math.exp(-math.exp(-each)) for each in z]
        rest = math.prod(p for row, p in enumerate(below) if row not in (first, second))
        return (1 - below[first]) * math.exp(-z[second]) * below[second] / scale * rest

    low, high = min(scores) - 6 * scale, max(scores) + 40 * scale
    value, _ = integrate.quad(density, low, high, epsabs=1e-12, limit=500)
    return float(value)


def test_gumbel_noise_has_the_law_that_the_kernel_draws() -> None:
    scores, scale = [3, 5, 0, 5], 1.5
    law = in_turn(dict(enumerate(scores)), 2, scale)
    for (first, second), mass in law.items():
        assert abs(by_integration(scores, scale, first, second) - float(mass)) < 1e-8
    wrong = [abs(by_integration(scores, 1.1 * scale, *rows) - float(mass)) for rows, mass in law.items()]
    assert max(wrong) > 0.01


def rho_of_a_round(scale: float, sigma: float, count: int) -> Decimal:
    """What selecting `count` rows with this scale and measuring them with this sigma costs, in counts, replace-one."""
    whole = [Product((Mask((name,), (2,), Steps.identity(2)),)) for name in "abcdefgh"]
    accountant = Accountant(mode=Mode.CONCENTRATED, unit=Unit(neighbours=Neighbours.REPLACE_ONE))
    selected = Selected(candidates=Stack(tuple(whole)), count=count, scale=scale, version=1)
    rows = Stack(tuple(part.row(0) for part in whole[:count]))
    noise = Noise(kind=NoiseKind.GAUSSIAN, scale=sigma)
    units = [accountant.footprints(event) for event in (selected, Measured(strategy=rows, noise=noise, version=1))]
    pairs = [sum(footprint.of(int(footprint.norm.pairs().max())) for footprint in found) for found in units]
    return Decimal(sum(pairs)) / 2**UNIT_BITS


@pytest.mark.parametrize("count", [1, 4, 8])
@pytest.mark.parametrize("rho", [0.01, 0.5])
def test_a_round_costs_rho_with_the_corrected_scale_and_half_more_as_printed(rho: float, count: int) -> None:
    """Half of rho is for K picks, half for K rows of rho/(2K) each (line 3): sigma = sqrt(K/rho).

    Differs: line 2 prints the picks' scale as sqrt(K/(2 rho)), which costs K/(2 g^2) = rho; sqrt(K/rho), which is what
    Def. 2.12 gives K picks of rho/(2K) each, costs rho/2.
    """
    sigma = float(np.sqrt(count / rho))
    right = rho_of_a_round(math.sqrt(count / rho), sigma, count)
    printed = rho_of_a_round(math.sqrt(count / (2 * rho)), sigma, count)
    assert abs(right / Decimal(rho) - 1) < Decimal("1e-12")
    assert abs(printed / Decimal(rho) - Decimal("1.5")) < Decimal("1e-12")
