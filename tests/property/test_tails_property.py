"""For any sum: the bound is never below the tail, and close above it, where the tail can be added up mass by mass."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from bursar.core.noise.law import Noise, NoiseKind
from bursar.tails import half_widths, scale_for, single_tail, tail
from bursar.tails.characteristic import Sums
from bursar.tails.sums import chernoff_tails

kinds = st.sampled_from(NoiseKind)
noises = st.builds(
    lambda kind, exponent: Noise(kind=kind, scale=2.0**exponent), kinds, st.floats(min_value=-4.0, max_value=3.5)
)
small_noises = st.builds(
    lambda kind, exponent: Noise(kind=kind, scale=2.0**exponent), kinds, st.floats(min_value=-2.0, max_value=1.5)
)
heights = st.floats(min_value=0.3, max_value=6.5)  # of a threshold, in standard deviations
rounding = 1e-12  # of the masses added up here


def masses(noise: Noise) -> np.ndarray:
    """The mass function on -n..n, where n is so far out that the rest is below 1e-30."""
    reach = math.ceil(70 * noise.scale if noise.kind is NoiseKind.LAPLACE else 12 * noise.scale) + 2
    x = np.abs(np.arange(-reach, reach + 1))
    mass = np.exp(-x / noise.scale) if noise.kind is NoiseKind.LAPLACE else np.exp(-(x**2) / (2 * noise.scale**2))
    return mass / mass.sum()


def law_of_sum(weights: list[int], of: list[Noise]) -> np.ndarray:
    """The mass function of a sum with whole weights, centred."""
    law = np.ones(1)
    for weight, noise in zip(weights, of, strict=True):
        mass = masses(noise)
        spread = np.zeros(weight * (mass.size - 1) + 1)
        spread[::weight] = mass
        law = np.convolve(law, spread)
    return law


def beyond(law: np.ndarray, alpha: float) -> float:
    return float(law[np.abs(np.arange(law.size) - law.size // 2) > alpha].sum())


def deviation(weights: list[float] | list[int], of: list[Noise]) -> float:
    return math.sqrt(sum(w * w * noise.variance() for w, noise in zip(weights, of, strict=True)))


def narrow(scale: float) -> list[tuple[int, Noise]]:
    """Two draws that are nearly always zero: their means grow with the tilt by leaps, not in proportion."""
    return [(1, Noise(kind=NoiseKind.GAUSSIAN, scale=scale))] * 2


RARE = [
    Noise(kind=NoiseKind.LAPLACE, scale=2.0**-4),
    Noise(kind=NoiseKind.LAPLACE, scale=1.0),
    Noise(kind=NoiseKind.GAUSSIAN, scale=2.0**-2.5),
]
"""The first and the last are equally seldom anything but zero: two thirds of a pitch are not all of it."""

terms = st.lists(st.tuples(st.integers(min_value=1, max_value=6), noises), min_size=2, max_size=5)


@settings(max_examples=150, deadline=None)
@given(terms=terms, height=heights)
@example(terms=narrow(0.25), height=0.3046875)
@example(terms=narrow(0.125), height=0.3)
@example(terms=[(2, RARE[0]), (3, RARE[2])], height=4.0)
def test_whole_weights(terms: list[tuple[int, Noise]], height: float) -> None:
    weights, of = [w for w, _ in terms], [noise for _, noise in terms]
    alpha = height * deviation(weights, of)
    truth, found = beyond(law_of_sum(weights, of), alpha), tail(weights, of, alpha)
    assert found >= truth * (1 - rounding)
    if 1e-9 <= truth <= 0.1:
        assert found <= 1.02 * truth


@settings(max_examples=100, deadline=None)
@given(
    terms=st.lists(st.tuples(st.floats(min_value=0.2, max_value=5.0), small_noises), min_size=2, max_size=3),
    height=heights,
)
def test_real_weights(terms: list[tuple[float, Noise]], height: float) -> None:
    """On no lattice an atom just below the threshold may count; never one that is 1 % below."""
    weights, of = [w for w, _ in terms], [noise for _, noise in terms]
    alpha = height * deviation(weights, of)
    values, chances = np.zeros(1), np.ones(1)
    for weight, noise in terms:
        mass = masses(noise)
        likely = np.flatnonzero(mass > 1e-15)
        values = np.add.outer(values, weight * (likely - mass.size // 2)).ravel()
        chances = np.multiply.outer(chances, mass[likely]).ravel()
    # An atom within rounding of the threshold is on either side: the lower bound leaves it out, the upper counts it.
    least, most = (float(chances[np.abs(values) >= alpha * at].sum()) for at in (1 + 1e-12, 0.99))
    found = tail(weights, of, alpha)
    assert found >= least * (1 - rounding)
    if 1e-9 <= most <= 0.1:
        assert found <= 1.02 * most + 1e-13


@settings(max_examples=60, deadline=None)
@given(terms=terms, height=heights)
def test_chernoff_is_above_every_tail(terms: list[tuple[int, Noise]], height: float) -> None:
    weights, of = [w for w, _ in terms], [noise for _, noise in terms]
    alpha = height * deviation(weights, of)
    _, _, bounds = chernoff_tails(Sums.of(np.array([weights], float), of), np.array([alpha]))
    assert bounds[0] >= beyond(law_of_sum(weights, of), alpha) * (1 - rounding)


@settings(max_examples=60, deadline=None)
@given(terms=terms, exponent=st.floats(min_value=-8.0, max_value=-0.3))
@example(terms=narrow(0.0625), exponent=-1.0)
def test_half_widths_cover_and_nothing_much_smaller_does(terms: list[tuple[int, Noise]], exponent: float) -> None:
    weights, of = [w for w, _ in terms], [noise for _, noise in terms]
    beta, law = 10.0**exponent, law_of_sum(weights, of)
    (width,) = half_widths([weights], of, beta)
    assert beyond(law, width) <= beta * (1 + rounding)
    pitch = math.gcd(*weights)
    assert width <= pitch or beyond(law, min(0.99 * width, width - pitch) - 1e-9) > beta


@settings(max_examples=40, deadline=None)
@given(
    rows=st.lists(st.lists(st.integers(min_value=-3, max_value=3), min_size=3, max_size=3), min_size=1, max_size=6),
    of=st.lists(noises, min_size=3, max_size=3),
    height=heights,
    share=st.floats(min_value=0.5, max_value=2.0),
)
@example(rows=[[2, 0, 3]], of=RARE, height=4.0, share=2.0)
def test_union_is_above_the_sum_and_decides(
    rows: list[list[int]], of: list[Noise], height: float, share: float
) -> None:
    alpha = height * max(deviation(row, of) for row in rows)
    assume(alpha > 0)
    truth = 0.0
    for row in rows:
        kept = [(abs(w), noise) for w, noise in zip(row, of, strict=True) if w]
        truth += beyond(law_of_sum([w for w, _ in kept], [noise for _, noise in kept]), alpha)
    found = tail(rows, of, alpha, enough=share * truth)
    assert found >= min(1.0, truth) * (1 - rounding)
    if share >= 1.03 and 1e-9 <= truth <= 0.1:
        assert found <= share * truth


@settings(max_examples=60, deadline=None)
@given(kind=kinds, exponents=st.lists(st.floats(min_value=-6.0, max_value=39.0), min_size=2, max_size=6), k=st.data())
def test_a_single_tail_grows_with_its_scale(kind: NoiseKind, exponents: list[float], k: st.DataObject) -> None:
    alpha = k.draw(st.floats(min_value=0.5, max_value=2.0**41))
    found = [single_tail(Noise(kind=kind, scale=2.0**e), alpha) for e in sorted(exponents)]
    assert all(low <= high * (1 + 1e-6) for low, high in pairwise(found))


@settings(max_examples=60, deadline=None)
@given(kind=kinds, alpha=st.floats(min_value=1.0, max_value=1e7), exponent=st.floats(min_value=-9.0, max_value=-0.3))
def test_scale_for_is_the_inverse_of_single_tail(kind: NoiseKind, alpha: float, exponent: float) -> None:
    beta = 10.0**exponent
    scale = scale_for(kind, alpha, beta)
    assert single_tail(Noise(kind=kind, scale=scale), alpha) <= beta
    assert single_tail(Noise(kind=kind, scale=1.15 * scale), alpha) > beta  # 15 % more noise breaks the promise
