"""Noise down: the draws lead to the law that Bayes' rule gives, and the cuts are the probabilities promised."""

from __future__ import annotations

from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import islice

import numpy as np
import pytest

from bursar.core.extensions.refine import _tables, cut_floors, noise_down, placed
from bursar.core.noise.exact_sampler import Words, exp_between, system_words
from bursar.core.noise.law import Noise, NoiseKind
from harness.masses import finer, mass_of

PAIRS = [(2.0, 1.0), (2.5, 0.4), (1.25, 1.2), (40.0, 0.75), (2.0**40, 3.0)]
EXACT = Decimal("1e-45")
REACH = 40


def noise(scale: float) -> Noise:
    return Noise(kind=NoiseKind.LAPLACE, scale=scale)


def power(rate: Fraction) -> Decimal:
    """exp(-rate)."""
    return (Decimal(-rate.numerator) / Decimal(rate.denominator)).exp()


def implied(current: int, before: float, after: float, reach: int) -> dict[int, Decimal]:
    """The law of `placed` over all of its draws, whose laws are as the docstring of `noise_down` says."""
    coarse, fine = 1 / Fraction(before), 1 / Fraction(after)
    a1, a2, r, g = (power(rate) for rate in (coarse, fine, fine - coarse, fine + coarse))
    across, leaps = a2 * (a1 - a2) / (1 - a2 * a2), a1 * (a1 - a2) / (1 - a1 * a2)
    law: dict[int, Decimal] = {}

    def add(mass: Decimal, **draws: object) -> None:
        arrays = {name: np.array([value]) for name, value in draws.items()}
        (value,) = placed(np.array([current]), **arrays)
        law[int(value)] = law.get(int(value), Decimal(0)) + mass

    size = abs(current)
    for far in range(reach):
        geometric = (1 - g) * g**far
        add(across * geometric, across=True, along=0, leaps=False, beyond=far)
        add((1 - across) * r ** (size + 1) * leaps * geometric, across=False, along=size + 1, leaps=True, beyond=far)
    for near in range(size + 1):
        add((1 - across) * (1 - r) * r**near, across=False, along=near, leaps=True, beyond=3)
    add((1 - across) * r ** (size + 1) * (1 - leaps), across=False, along=size + 7, leaps=False, beyond=3)
    return law


@pytest.mark.parametrize(("before", "after"), PAIRS)
@pytest.mark.parametrize("current", [0, 1, -1, 2, 5, -5, 17])
def test_the_draws_lead_to_the_law_of_finer_noise(current: int, before: float, after: float) -> None:
    with localcontext(Context(prec=60)):
        law = implied(current, before, after, REACH)
        right = finer(noise(before), noise(after), current)
        for value, mass in law.items():
            assert abs(mass - right(value)) <= EXACT * right(value)
    outward = {-value if current < 0 else value for value in law}
    assert set(range(-5, abs(current) + 5)) <= outward


def test_the_law_test_sees_a_wrong_probability() -> None:
    with localcontext(Context(prec=60)):
        law = implied(2, 2.0, 1.0, REACH)
        wrong = finer(noise(2.0), noise(1.0 + 2.0**-40), 2)
        assert any(abs(mass - wrong(value)) > EXACT for value, mass in law.items())


@pytest.mark.parametrize(("before", "after"), [(2.0, 1.0), (0.75, 0.5)])
def test_finer_noise_under_coarser_noise_has_its_own_law(before: float, after: float) -> None:
    """Summed over the coarser noise, what is left out is beyond 1e-30."""
    wide, narrow = mass_of(noise(before)), mass_of(noise(after))
    with localcontext(Context(prec=60)):
        for value in (0, 1, -3):
            total = sum(wide(x) * finer(noise(before), noise(after), x)(value) for x in range(-160, 161))
            assert abs(total - narrow(value)) < Decimal("1e-30")


@pytest.mark.parametrize(("before", "after"), [*PAIRS, (2.0**40, 2.0**40 * (1 - 2.0**-9)), (2.0**-5, 2.0**-6)])
def test_the_cuts_are_the_probabilities(before: float, after: float) -> None:
    coarse, fine = 1 / Fraction(before), 1 / Fraction(after)
    a1, a2 = (Fraction(exp_between(rate, 600)[0], 2**600) for rate in (coarse, fine))
    for start, s in ((fine, a2), (coarse, a1)):
        [cut] = cut_floors(start, coarse, fine, 128)
        assert 0 <= s * (a1 - a2) / (1 - s * a2) - Fraction(cut, 2**128) < Fraction(2, 2**128)


def tape(*words: int) -> Words:
    left = iter(words)
    return lambda count: np.fromiter(islice(left, count), dtype=np.uint64)


def test_a_tied_side_is_decided_by_further_words() -> None:
    """The first word of the side equals the head of its cut; the next words settle it."""
    coarse, fine = 1 / Fraction(8.0), 1 / Fraction(2.0)
    [cut] = cut_floors(fine, coarse, fine, 128)
    middle = [2**63] * 60
    for miss, across in ((-1, True), (1, False)):
        words = [(cut + miss) >> 64, (cut + miss) & (2**64 - 1), *middle]
        (value,) = noise_down(np.array([100]), before=8.0, after=2.0, words=tape(*words))
        assert (value < 0) == across


@pytest.mark.parametrize("size", [0, 1, 1000])
@pytest.mark.parametrize(("before", "after"), [*PAIRS, (2.0**40, 2.0**-6)])
def test_every_bit_of_randomness_comes_through_the_words(before: float, after: float, size: int) -> None:
    current = np.arange(size, dtype=np.int64) - size // 2
    words = [int(word) for word in system_words(20_000)]
    first, again = (noise_down(current, before=before, after=after, words=tape(*words)) for _ in range(2))
    assert first.dtype == np.int64
    assert first.shape == (size,)
    assert np.array_equal(first, again)


def test_the_smallest_scale_is_all_but_the_truth() -> None:
    assert not noise_down(np.arange(-500, 500), before=2.0**40, after=2.0**-6).any()


def test_tables_are_made_once_for_a_pair_of_scales() -> None:
    assert _tables(3.25, 1.5) is _tables(3.25, 1.5)
