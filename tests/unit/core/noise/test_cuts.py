"""Cuts: their bits are right, and every uniform is placed on the right side of them, ties included."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction
from functools import partial
from itertools import accumulate, repeat

import numpy as np
import pytest
from numpy.typing import NDArray

from bursar.core.noise.exact_sampler import (
    GUIDE_BITS,
    Cuts,
    agreed,
    digit_floors,
    exp_between,
    exp_floors,
    place,
    system_words,
    tail_floors,
)

RATES = [
    Fraction(1, 2**40),
    1 / Fraction(1000.0),
    1 / Fraction(3.7),
    Fraction(1),
    1 / Fraction(0.1),
    Fraction(64),
]
ALL_ONES = 2**64 - 1
PLACES = 2000  # bits of the reference, enough to tell 1 - exp(-64)^16 from 1


class Tape:
    """Words given in advance; asking for more than there are is an error."""

    def __init__(self, words: Sequence[int]) -> None:
        self.left = list(words)

    def __call__(self, count: int) -> NDArray[np.uint64]:
        assert count <= len(self.left), "more words read than given"
        taken, self.left = self.left[:count], self.left[count:]
        return np.array(taken, dtype=np.uint64)


def true_exp(q: Fraction) -> Fraction:
    """exp(-q) within 2^-1900, by the power series in integers: nothing of `decimal` in it."""
    halvings = math.ceil(q).bit_length()
    x = (q.numerator << PLACES) // (q.denominator << halvings)
    term = total = 1 << PLACES
    n = 1
    while term:
        term = (term * x >> PLACES) // n
        total += term
        n += 1
    for _ in range(halvings):
        total = total * total >> PLACES
    return short(Fraction(1 << PLACES, total))


def short(x: Fraction) -> Fraction:
    """x to PLACES bits, to keep the arithmetic of the reference quick."""
    return Fraction(math.floor(x * 2**PLACES), 2**PLACES)


def powers(q: Fraction, count: int) -> list[Fraction]:
    r = true_exp(q)
    return list(accumulate(repeat(r, count), lambda x, y: short(x * y), initial=Fraction(1)))


def digit_cuts(q: Fraction, cells: int) -> list[Fraction]:
    r = powers(q, cells)
    return [short((1 - r[i]) / (1 - r[cells])) for i in range(1, cells)]


def tail_cuts(q: Fraction, cells: int) -> list[Fraction]:
    r = powers(q, cells)
    return [1 - r[i] for i in range(1, cells)]


@pytest.mark.parametrize("q", [*RATES, Fraction(1, 3), Fraction(1000, 7)])
@pytest.mark.parametrize("bits", [64, 200])
def test_exp_is_enclosed_and_the_enclosure_is_narrow(q: Fraction, bits: int) -> None:
    low, high = exp_between(q, bits)
    assert low <= 2**bits * true_exp(q) <= high
    assert high - low <= 2


def test_exp_far_below_every_bit_is_zero() -> None:
    assert exp_between(Fraction(2**135), 128) == (0, 1)
    assert exp_floors(Fraction(2**135), 128) == [0]


@pytest.mark.parametrize("q", RATES)
@pytest.mark.parametrize("bits", [64, 128, 192])
def test_floors_are_the_true_floors(q: Fraction, bits: int) -> None:
    assert exp_floors(q, bits) == [math.floor(2**bits * true_exp(q))]
    assert digit_floors(q, 2, bits) == [math.floor(2**bits * cut) for cut in digit_cuts(q, 2)]
    assert digit_floors(q, 16, bits) == [math.floor(2**bits * cut) for cut in digit_cuts(q, 16)]
    assert tail_floors(q, 5, bits) == [math.floor(2**bits * cut) for cut in tail_cuts(q, 5)]


def test_a_cut_beyond_the_reach_of_its_bits_costs_no_precision() -> None:
    """1 - exp(-64)^255 differs from 1 after 23,000 bits, and its first 64 are known without computing them."""
    assert tail_floors(Fraction(64), 256, 64) == [ALL_ONES] * 255


def test_guard_bits_are_added_until_both_sides_agree() -> None:
    asked = []

    def bounds(guard: int) -> tuple[list[int], list[int]]:
        asked.append(guard)
        return ([7], [7]) if guard >= 256 else ([6], [7])

    assert agreed(bounds, 64) == [7]
    assert asked == [64, 128, 256]


def next_to_three_quarters() -> tuple[Fraction, Fraction]:
    """Two rates q, close together, with exp(-q) just above and just below 3/4."""
    q = -Fraction(Context(prec=100).ln(Decimal("0.75")))
    step = Fraction(1, 10**90)
    return q - step, q + step


def test_a_cut_next_to_a_binary_fraction_is_floored_on_the_right_side() -> None:
    above, below = next_to_three_quarters()
    for bits in (64, 128, 192, 256):
        assert exp_floors(above, bits) == [3 << bits - 2]
        assert exp_floors(below, bits) == [(3 << bits - 2) - 1]


def test_place_reads_as_many_words_as_it_needs() -> None:
    """Just above 3/4, the uniform 3/4 is tied for four words; the fifth shows that it is below."""
    above, below = next_to_three_quarters()
    tape = Tape([0, 0, 0, 0])
    assert place(3 << 62, partial(exp_floors, above), tape) == 0
    assert tape.left == []
    tape = Tape([0, 0, 0, 0])
    assert place(3 << 62, partial(exp_floors, below), tape) == 1
    assert tape.left == [0, 0, 0, 0]


TABLES = [
    (partial(digit_floors, 1 / Fraction(3.7), 2), digit_cuts(1 / Fraction(3.7), 2)),
    (partial(digit_floors, 1 / Fraction(1000.0), 256), digit_cuts(1 / Fraction(1000.0), 256)),
    (partial(tail_floors, 1 / Fraction(3.7), 256), tail_cuts(1 / Fraction(3.7), 256)),
]


@pytest.mark.thinned(3)
@pytest.mark.parametrize(("floors", "cuts"), TABLES)
def test_words_beside_a_cut_fall_beside_it(floors: partial[list[int]], cuts: list[Fraction]) -> None:
    table = Cuts.of(floors)
    words = [
        word for head in floors(64) for word in (head - 1, head + 1) if word <= ALL_ONES and word not in floors(64)
    ]
    expected = [sum(cut * 2**64 < word for cut in cuts) for word in words]
    assert table.draw(len(words), Tape(words)).tolist() == expected


@pytest.mark.parametrize(("floors", "cuts"), TABLES)
def test_the_guide_is_right_at_both_ends_of_every_bucket(floors: partial[list[int]], cuts: list[Fraction]) -> None:
    table = Cuts.of(floors)
    shift = 64 - GUIDE_BITS
    words = [word for i in range(1 << GUIDE_BITS) for word in (i << shift, ((i + 1) << shift) - 1)]
    words = sorted(set(words) - set(floors(64)))
    heads = np.array([math.floor(2**64 * cut) for cut in cuts], dtype=np.uint64)
    assert np.array_equal(table.draw(len(words), Tape(words)), np.searchsorted(heads, np.array(words, dtype=np.uint64)))


@pytest.mark.parametrize(("floors", "cuts"), TABLES)
@pytest.mark.parametrize("depth", [2, 3, 4])
def test_a_tie_is_decided_by_further_words(floors: partial[list[int]], cuts: list[Fraction], depth: int) -> None:
    """The bits of a cut, followed for `depth` words and then missed by one, above or below."""
    table = Cuts.of(floors)
    for i in (0, len(cuts) // 3, min(len(cuts) - 1, 100)):
        bits = math.floor(2 ** (64 * depth) * cuts[i])
        for miss, cell in ((-1, i), (1, i + 1)):
            words = [(bits + miss) >> 64 * k & ALL_ONES for k in reversed(range(depth))]
            tape = Tape(words)
            assert table.draw(1, tape).tolist() == [cell]
            assert tape.left == []


def test_several_cuts_may_share_their_first_word() -> None:
    """At rate 64 all cuts begin with 64 ones; the next word tells the first from the second, at 1 - 2^-92.3."""
    table = Cuts.of(partial(tail_floors, Fraction(64), 256))
    assert table.draw(1, Tape([ALL_ONES - 1])).tolist() == [0]
    assert table.draw(1, Tape([ALL_ONES, 2**64 - 2**36])).tolist() == [0]
    assert table.draw(1, Tape([ALL_ONES, 2**64 - 2**35])).tolist() == [1]


def test_ties_among_other_draws_take_their_words_after_them() -> None:
    table = Cuts.of(partial(tail_floors, Fraction(64), 256))
    assert table.draw(3, Tape([5, ALL_ONES, 6, 2**64 - 2**35])).tolist() == [0, 1, 0]


def test_tables_cannot_be_written() -> None:
    table = Cuts.of(partial(digit_floors, Fraction(1), 16))
    with pytest.raises(ValueError, match="read-only"):
        table.heads[0] = 0
    with pytest.raises(ValueError, match="read-only"):
        table.guide[0] = 0


def test_system_words_are_fresh() -> None:
    words = np.concatenate([system_words(100), system_words(100)])
    assert words.dtype == np.uint64
    assert np.unique(words).size == 200
    assert system_words(0).size == 0
