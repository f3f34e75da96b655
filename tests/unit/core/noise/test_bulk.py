"""Bulk noise: the law that the tables imply is the law promised, and words lead where the argument says."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import islice

import numpy as np
import pytest
from numpy.typing import NDArray

from bursar.core.noise.exact_sampler import (
    MARGIN,
    Cuts,
    Words,
    _accepted,
    _geometric,
    _tables,
    exp_between,
    exp_floors,
    gaussian,
    laplace,
    system_words,
)
from bursar.core.noise.law import Noise, NoiseKind

Sampler = Callable[[float, int, Words], NDArray[np.int64]]

ALL_ONES = 2**64 - 1
TOLERANCE = Fraction(1, 2**60)
SCALES = [2.0**-6, 0.1, 1.0, 3.7, 1000.0, 2.0**30 + 0.5, 2.0**40]


def tape(*words: int) -> Words:
    left = iter(words)
    return lambda count: np.fromiter(islice(left, count), dtype=np.uint64)


def cell_masses(cuts: Cuts) -> list[tuple[Fraction, Fraction]]:
    """For each cell, the mass of the words that lead to it at once, and that mass with the tied words added."""
    heads = [int(head) for head in cuts.heads]
    starts, ends = [0, *(head + 1 for head in heads)], [*heads, 2**64]
    at_once = [Fraction(max(0, end - start), 2**64) for start, end in zip(starts, ends, strict=True)]
    return [(mass, mass + Fraction(2, 2**64)) for mass in at_once]


def geometric_masses(scale: float, count: int) -> list[tuple[Fraction, Fraction]]:
    """Lower and upper masses of the magnitudes 0 .. count-1, digit by digit and over the end of the top table."""
    tables = _tables(scale).magnitude
    top = cell_masses(tables.top)
    last = len(top) - 1
    digits = [cell_masses(cuts) for cuts in tables.digits]
    masses = []
    for magnitude in range(count):
        low = high = Fraction(1)
        rest = magnitude
        for cells in reversed(digits):
            rest, digit = divmod(rest, len(cells))
            low, high = low * cells[digit][0], high * cells[digit][1]
        overflows, rest = divmod(rest, last)
        low, high = low * top[last][0] ** overflows * top[rest][0], high * top[last][1] ** overflows * top[rest][1]
        masses.append((low, high))
    return masses


def implied_laplace(scale: float, reach: int) -> dict[int, tuple[Fraction, Fraction]]:
    masses = geometric_masses(scale, reach + 1)
    right, left = cell_masses(_tables(scale).side)
    law = {x: (right[0] * masses[x][0], right[1] * masses[x][1]) for x in range(reach + 1)}
    return law | {-1 - x: (left[0] * masses[x][0], left[1] * masses[x][1]) for x in range(reach)}


def power(q: Fraction) -> Fraction:
    """exp(-q) within 2^-198."""
    return Fraction(exp_between(q, 200)[0], 2**200)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("scale", [2.0**-6, 0.1, 1.0, 3.7, 16.0, 40.0, 5000.0])
def test_the_tables_imply_the_discrete_laplace_law(scale: float) -> None:
    a = power(1 / Fraction(scale))
    for x, (low, high) in implied_laplace(scale, 600).items():
        mass = (1 - a) / (1 + a) * power(abs(x) / Fraction(scale))
        assert mass - TOLERANCE <= low <= mass + TOLERANCE
        assert mass - TOLERANCE <= high <= mass + TOLERANCE


def test_the_law_test_sees_a_wrong_scale() -> None:
    a = power(1 / Fraction(3.7))
    low, _ = implied_laplace(3.7 * (1 + 2.0**-50), 3)[2]
    assert abs((1 - a) / (1 + a) * a**2 - low) > TOLERANCE


@pytest.mark.parametrize("scale", [0.1, 1.0, 3.7])
def test_proposal_times_acceptance_is_the_discrete_gaussian_law(scale: float) -> None:
    sigma = Fraction(scale)
    t = int(scale) + 1
    kept = {}
    for x, (low, _) in implied_laplace(float(t), 100).items():
        accept = Fraction(exp_floors((abs(x) - sigma**2 / t) ** 2 / (2 * sigma**2), 128)[0], 2**128)
        kept[x] = low * accept
    shape = {x: power(x**2 / (2 * sigma**2)) for x in kept}
    total_kept, total = sum(kept.values()), sum(shape.values())
    assert all(abs(kept[x] / total_kept - shape[x] / total) <= TOLERANCE for x in kept)


def word_for(cuts: Cuts, cell: int) -> int:
    """A word in the middle of a cell."""
    edges = [0, *(int(head) for head in cuts.heads), 2**64]
    return (edges[cell] + edges[cell + 1]) // 2


def test_a_magnitude_is_read_from_its_digits_and_then_mirrored() -> None:
    tables = _tables(2.0**30)
    assert len(tables.magnitude.digits) == 4
    digits = [word_for(cuts, cell) for cuts, cell in zip(tables.magnitude.digits, (0, 255, 7, 130), strict=True)]
    top = word_for(tables.magnitude.top, 2)
    value = (((2 * 256 + 0) * 256 + 255) * 256 + 7) * 256 + 130
    assert laplace(2.0**30, 1, tape(top, *digits, word_for(tables.side, 0))).tolist() == [value]
    assert laplace(2.0**30, 1, tape(top, *digits, word_for(tables.side, 1))).tolist() == [-1 - value]


def test_the_top_digit_runs_on_beyond_its_table() -> None:
    cuts = _tables(16.0).magnitude.top
    third = word_for(cuts, 3)
    words = tape(third, ALL_ONES, ALL_ONES, third, ALL_ONES, third)
    assert _geometric(cuts, 3, words).tolist() == [3, 255 + 3, 2 * 255 + 3]


def exponent(y: int, scale: float) -> Fraction:
    """The q of the acceptance exp(-q), as the paper prints it."""
    sigma, t = Fraction(scale), int(scale) + 1
    return (abs(y) - sigma**2 / t) ** 2 / (2 * sigma**2)


def proposals(scale: float) -> list[int]:
    """Values around the centre, the flanks and the far tail of a scale."""
    t = int(scale) + 1
    spread = [round(t * f) for f in (0.3, 0.5, 0.999, 1.001, 1.5, 2.5, 5)]
    return sorted({0, 1, -1, 2, *spread, *(-y for y in spread)})


@pytest.mark.parametrize("scale", SCALES)
def test_acceptance_is_decided_rightly_on_both_sides_of_the_margin(scale: float) -> None:
    inside = round(MARGIN * 2**64)
    for y in proposals(scale):
        [cut] = exp_floors(exponent(y, scale), 64)
        for miss in (1, 2**11, inside // 2, inside - 2**12, inside + 2**12, 2 * inside, 2**40):
            for word, expected in ((cut - miss, True), (cut + miss, False)):
                if 0 <= word <= ALL_ONES:
                    assert _accepted(np.array([y]), scale, tape(word)).tolist() == [expected], (y, miss)


@pytest.mark.parametrize("scale", SCALES)
def test_a_tied_acceptance_is_decided_by_further_words(scale: float) -> None:
    for y in proposals(scale):
        [cut] = exp_floors(exponent(y, scale), 192)
        for miss, expected in ((-1, True), (1, False)):
            if cut + miss >= 0:
                words = [(cut + miss) >> 128, (cut + miss) >> 64 & ALL_ONES, (cut + miss) & ALL_ONES]
                assert _accepted(np.array([y]), scale, tape(*words)).tolist() == [expected], y


def test_a_proposal_beyond_all_reason_is_refused() -> None:
    assert _accepted(np.array([2**62, -(2**62)]), 2.0**-6, tape(0, 1, 1)).tolist() == [False, False]


def test_numpy_exp_is_as_good_as_the_argument_assumes() -> None:
    """The argument needs an error of at most 2^-41; anything near that would be a broken library."""
    points = -np.linspace(0, 40, 1501)[1:] * (1 + 2.0**-30)
    errors = [abs(Fraction(float(y)) - power(-Fraction(float(x)))) for x, y in zip(points, np.exp(points), strict=True)]
    assert max(errors) < Fraction(1, 2**50)


@pytest.mark.parametrize("sampler", [laplace, gaussian])
@pytest.mark.parametrize("scale", SCALES)
def test_every_bit_of_randomness_comes_through_the_words(sampler: Sampler, scale: float) -> None:
    words = [int(word) for word in system_words(40_000)]
    first, again = sampler(scale, 1000, tape(*words)), sampler(scale, 1000, tape(*words))
    assert first.dtype == np.int64
    assert first.shape == (1000,)
    assert np.array_equal(first, again)
    if scale >= 1:
        assert not np.array_equal(first, sampler(scale, 1000, system_words))


@pytest.mark.parametrize("sampler", [laplace, gaussian])
@pytest.mark.parametrize("size", [0, 1, 2, 1000])
def test_as_many_draws_as_asked_for(sampler: Sampler, size: int) -> None:
    assert sampler(0.3, size, system_words).shape == (size,)


@pytest.mark.parametrize("kind", list(NoiseKind))
def test_the_smallest_scale_is_all_but_the_truth(kind: NoiseKind) -> None:
    """P(0) misses 1 by less than 2^-91, and by less than 2^-2900 for the Gaussian."""
    sampler = {NoiseKind.LAPLACE: laplace, NoiseKind.GAUSSIAN: gaussian}[kind]
    assert not sampler(Noise(kind=kind, scale=2.0**-6).scale, 10_000, system_words).any()
