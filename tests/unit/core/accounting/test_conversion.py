"""From (epsilon, delta) to rho and back: never optimistic, close to the best, monotone."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import opendp.prelude as dp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_ndtr

from bursar.core.budget import epsilon_of, rho_of
from bursar.errors import ConfigError

EPSILONS = (0.01, 0.1, 0.5, 1.0, 3.0, 10.0, 50.0)
DELTAS = (1e-15, 1e-10, 1e-6, 1e-3, 0.1)
dp.enable_features("contrib")


def delta_of_gaussian(rho: float, epsilon: float) -> float:
    """The exact delta of a Gaussian mechanism with this rho (Balle and Wang 2018, Theorem 8), mu = sqrt(2 rho)."""
    mu = math.sqrt(2 * rho)
    first, second = log_ndtr(mu / 2 - epsilon / mu), epsilon + log_ndtr(-mu / 2 - epsilon / mu)
    return float(np.exp(first) - np.exp(second))


def delta_of_rho(rho: float, epsilon: float) -> float:
    """The tight delta of rho-zCDP at epsilon (Canonne, Kamath, Steinke 2020, Cor. 13), by a search over a grid."""
    grid = np.linspace(math.log(1e-5), math.log(1e9), 2001)
    for _ in range(3):
        excess = np.exp(grid)
        order = 1 + excess
        log = excess * (order * rho - epsilon) + order * np.log1p(-1 / order) - np.log(excess)
        best, step = grid[log.argmin()], grid[1] - grid[0]
        grid = np.linspace(best - step, best + step, 2001)
    return float(np.exp(min(log.min(), 0.0)))


def least_epsilon(rho: float, delta: float) -> Decimal:
    """The least epsilon of the formula (the same, Prop. 12) over all orders, in fifty digits, by golden section."""
    r, d = Decimal(rho), Decimal(delta)

    def at(log_excess: Decimal) -> Decimal:
        excess = log_excess.exp()
        order = 1 + excess
        return r * order - (order * d).ln() / excess + (excess / order).ln()

    golden = (Decimal(5).sqrt() - 1) / 2
    best = min((Decimal(x) / 2 for x in range(-32, 60)), key=at)
    low, high = best - 1, best + 1
    for _ in range(120):
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, right) if at(left) < at(right) else (left, high)
    return at((low + high) / 2)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_a_gaussian_of_this_rho_keeps_epsilon_and_delta(epsilon: float, delta: float) -> None:
    rho = rho_of(epsilon, delta)
    assert 0 < delta_of_gaussian(rho, epsilon) <= delta
    assert delta_of_rho(rho, epsilon) <= delta * (1 + 1e-6)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_rho_is_the_largest_that_the_formula_allows(epsilon: float, delta: float) -> None:
    rho = rho_of(epsilon, delta)
    assert delta_of_rho(rho * (1 + 1e-5), epsilon) > delta * (1 - 1e-6)
    assert epsilon_of(rho, delta) <= epsilon <= epsilon_of(rho * (1 + 1e-6), delta)


@pytest.mark.parametrize("delta", [1e-10, 1e-6, 1e-3])
def test_opendp_agrees(delta: float) -> None:
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="i64")
    for scale in (1.0, 5.0, 30.0):
        gaussian = dp.m.make_gaussian(*space, scale=scale)
        theirs = dp.c.make_zCDP_to_approxDP(gaussian).map(1).epsilon(delta)
        assert epsilon_of(1 / (2 * scale**2), delta) == pytest.approx(theirs, rel=1e-6)


@settings(max_examples=30, deadline=None)
@given(
    st.floats(math.log(1e-12), math.log(800)).map(math.exp),
    st.floats(math.log(1e-30), math.log(0.99)).map(math.exp),
)
def test_rounding_is_outward(rho: float, delta: float) -> None:
    """Never below the exact minimum, and above it by no more than one part in a hundred million."""
    with localcontext(prec=50):
        exact, found = least_epsilon(rho, delta), Decimal(epsilon_of(rho, delta))
        assert exact <= found <= max(exact, Decimal(0)) * (1 + Decimal("1e-8")) + Decimal("1e-10")


@pytest.mark.heavy
def test_both_grow_with_what_is_allowed() -> None:
    rhos = [rho_of(epsilon, 1e-6) for epsilon in EPSILONS]
    assert rhos == sorted(rhos)
    assert len(set(rhos)) == len(rhos)
    by_delta = [rho_of(1.0, delta) for delta in DELTAS]
    assert by_delta == sorted(by_delta)
    losses = [epsilon_of(rho, 1e-6) for rho in (0.0, 1e-9, 1e-4, 0.1, 1.0, 100.0)]
    assert losses == sorted(losses)
    assert losses[0] == 0.0


def test_the_looser_formula_would_be_seen() -> None:
    """rho + 2 sqrt(rho log(1/delta)) is valid and buys less; forgetting its second term is caught by the Gaussian."""
    epsilon, delta = 1.0, 1e-6
    log = math.log(1 / delta)
    loose = (math.sqrt(log + epsilon) - math.sqrt(log)) ** 2
    assert loose < rho_of(epsilon, delta)
    assert delta_of_gaussian(epsilon, epsilon) > delta
    assert delta_of_gaussian(1.5 * rho_of(epsilon, delta), epsilon) > delta


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(0.0, 1e-6), (-1.0, 1e-6), (math.nan, 1e-6), (1.0, 0.0), (1.0, 1.0), (1.0, -0.1), (1.0, math.nan)],
)
def test_budgets_that_make_no_sense_are_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(ConfigError, match="epsilon"):
        rho_of(epsilon, delta)


def test_nothing_is_lost_where_nothing_is_spent() -> None:
    assert epsilon_of(0.0, 1e-6) == 0


@pytest.mark.parametrize(("rho", "delta"), [(-1.0, 1e-6), (math.nan, 1e-6), (1.0, 0.0), (1.0, 1.0), (0.0, 2.0)])
def test_losses_that_make_no_sense_are_refused(rho: float, delta: float) -> None:
    with pytest.raises(ConfigError, match="rho"):
        epsilon_of(rho, delta)


@pytest.mark.parametrize("epsilon", [1.0, 5.0])
def test_a_delta_near_one_allows_more_rho_than_epsilon(epsilon: float) -> None:
    """Nobody would take such a delta; what is found is still a rho that implies it, and the largest."""
    rho = rho_of(epsilon, 0.9)
    assert rho > epsilon
    assert epsilon_of(rho, 0.9) <= epsilon < epsilon_of(1.001 * rho, 0.9)
