"""Ends of ratios from the joint law: what they cover, how short they are, and what they are where nothing is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bursar.core.accounting import Noise, NoiseKind
from bursar.estimation.derived import Combination, Ratio
from bursar.estimation.estimate import IndependentRows, WeightedRows
from bursar.estimation.joint_ratios import JointRows, ratio_ends
from bursar.tails import covered, covering_half_widths, half_widths, tail

NOISE = Noise(kind=NoiseKind.LAPLACE, scale=20.0)


def share(*, lowest: float = -math.inf, highest: float = math.inf) -> Ratio:
    """The first column over the second."""
    columns, steps = (0, 1), (1.0, 1.0)
    return Ratio(
        above=Combination(columns=columns, weights=(1.0, 0.0), steps=steps),
        below=Combination(columns=columns, weights=(0.0, 1.0), steps=steps),
        least=(0.0, 1.0),
        lowest=lowest,
        highest=highest,
    )


def ends(ratio: Ratio, above: float, below: float, law: IndependentRows | WeightedRows) -> tuple[float, float]:
    rows = JointRows(law, np.array([[0, 1]]), np.ones(3))
    low, high = ratio_ends(ratio, np.array([[above, below]]), rows, 0.05)
    return float(low[0]), float(high[0])


@pytest.mark.thinned(4)
@pytest.mark.parametrize("kind", NoiseKind)
@pytest.mark.parametrize(("above", "below"), [(300.0, 1000.0), (5000.0, 1000.0), (0.0, 800.0), (-200.0, 4000.0)])
def test_everything_that_the_test_keeps_is_within_and_little_else(kind: NoiseKind, above: float, below: float) -> None:
    noise = Noise(kind=kind, scale=20.0)
    low, high = ends(share(), above, below, IndependentRows(noise=noise, rows=2))
    for t in np.linspace(low - 0.3, high + 0.3, 41).tolist():
        (reached,) = half_widths([[1.0, t]], [noise] * 2, 0.05)
        assert low <= t <= high or abs(above - t * below) > reached * (1 - 1e-9)
        deep = low + 0.12 * (high - low) < t < high - 0.12 * (high - low)
        assert not deep or abs(above - t * below) <= reached * (1 + 1e-9)


def test_errors_that_belong_together_are_not_counted_twice() -> None:
    """A share of a whole: the numerator's noise is in the denominator as well, and half of it cancels."""
    together = WeightedRows(weights=np.array([[1.0, 0.0], [1.0, 1.0]]), noises=(NOISE, NOISE))
    apart = WeightedRows(weights=np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]]), noises=(NOISE,) * 3)
    low, high = ends(share(lowest=0.0, highest=1.0), 500.0, 1000.0, together)
    wide_low, wide_high = ends(share(lowest=0.0, highest=1.0), 500.0, 1000.0, apart)
    assert high - low < 0.75 * (wide_high - wide_low)


def test_what_is_public_is_kept_where_the_estimates_say_nothing() -> None:
    law = IndependentRows(noise=NOISE, rows=2)
    assert ends(share(lowest=0.0, highest=1.0), 3.0, 5.0, law) == (0.0, 1.0)
    assert ends(share(), 3.0, 5.0, law) == (-math.inf, math.inf)
    assert ends(share(lowest=0.0, highest=1.0), 3.0, 0.0, law) == (0.0, 1.0)


def test_estimates_that_contradict_what_is_public_leave_it_as_it_is() -> None:
    assert ends(share(lowest=0.0, highest=1.0), 9000.0, 1000.0, IndependentRows(noise=NOISE, rows=2)) == (0.0, 1.0)


@pytest.mark.parametrize("kind", NoiseKind)
def test_half_widths_cover_all_smaller_weights(kind: NoiseKind) -> None:
    rng, noise = np.random.default_rng(3), Noise(kind=kind, scale=2.0)
    weights, beta = np.array([[1.0, 1.7]]), 0.05
    for exact in (False, True):
        (width,) = covering_half_widths(weights, [noise] * 2, beta, exact=exact)
        for smaller in [[1.0, 1.0], [1.0, 0.0], *(weights * rng.uniform(size=(20, 2))).tolist()]:
            assert tail(smaller, [noise] * 2, width * (1 + 1e-9)) <= beta
    assert covering_half_widths([[0.0, 0.0]], [noise] * 2, beta, exact=True).tolist() == [0.0]


@pytest.mark.parametrize("kind", NoiseKind)
def test_without_the_step_smaller_weights_would_not_be_covered(kind: NoiseKind) -> None:
    """The wrong twin: X + .99 Y exceeds 5 where X is 6 and Y is -1; X + Y does not."""
    noises = [Noise(kind=kind, scale=2.0)] * 2
    beta = tail([1.0, 1.0], noises, 5.0)
    assert half_widths([[1.0, 1.0]], noises, beta * (1 + 1e-6))[0] == 5.0
    assert tail([1.0, 0.99], noises, 5.0) > 1.02 * beta
    assert tail([1.0, 0.99], noises, float(covering_half_widths([[1.0, 1.0]], noises, beta, exact=True)[0])) <= beta


def test_last_digits_of_weights_do_not_widen_what_covers() -> None:
    """Weights on the lattice that were computed in another order stand a trifle above it, and mean the same."""
    noises, chance = [Noise(kind=NoiseKind.LAPLACE, scale=100.0)] * 2, 0.01
    weights = np.array([[0.0625, 1.0], [0.5, 0.75]])
    plain = covering_half_widths(weights, noises, chance, exact=True)
    for digits in (1 + 2.0**-52, 1 - 2.0**-53, 1 + 1e-14):
        computed = covering_half_widths(weights * digits, noises, chance, exact=True)
        assert computed == pytest.approx(plain, rel=1e-9)
        widest = 1.0001 * float(half_widths([[0.5, 0.75]], noises, chance)[0]) + 1.25
        assert covered(weights[1:] * digits, noises, widest, chance)
    raised = covering_half_widths(weights * 1.001, noises, chance, exact=True)
    assert np.all(raised > 1.001 * plain)  # what is truly above the lattice is raised to its next point
