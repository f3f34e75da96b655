"""The sampler of selections: the law that its numbers imply is the law promised, and words lead where they should."""

from __future__ import annotations

from collections import Counter
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import islice, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bursar.core.extensions.select import FADED, UNIT, Urn, below, kept, kept_floors, proposal_weights, select
from bursar.core.noise.exact_sampler import Words, system_words
from bursar.core.noise.system import SystemRandomness
from harness.masses import picked

SCALES = [2.0**-6, 0.3, 1.0, 7.5, 1000.0, 2.0**30 + 0.5, 2.0**40]
GAPS = np.array([0, 1, 2, 3, 10, 1000, 10**6, 2**40, 2**40 + 1, 2**62])
EVERY_BIT = 2**64 - 1


def tape(*words: int) -> Words:
    left = iter(words)
    return lambda count: np.fromiter(islice(left, count), dtype=np.uint64)


def decay(gap: int, scale: float, bits: int = UNIT) -> Decimal:
    """2^bits exp(-gap / scale), to a hundred digits."""
    with localcontext(Context(prec=100)):
        return (-Decimal(gap) / Decimal(scale)).exp() * 2**bits


def urn(*classes: tuple[int, int], scale: float = 1.0) -> Urn:
    scores, left = (np.array(numbers) for numbers in zip(*classes, strict=True))
    return Urn(scores, left, scale)


@pytest.mark.parametrize("scale", SCALES)
def test_weights_are_large_enough_and_not_much_too_large(scale: float) -> None:
    gaps = np.unique(np.concatenate([GAPS, (scale * np.linspace(0.001, 60, 500)).astype(np.int64)]))
    weights = proposal_weights(gaps, scale)
    assert weights[0] == 2**UNIT
    for gap, weight in zip(gaps.tolist()[1:], weights.tolist()[1:], strict=True):
        assert decay(gap, scale) < weight < decay(gap, scale) + 3


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("bits", [64, 200])
def test_what_is_kept_is_known_to_every_bit(scale: float, bits: int) -> None:
    gaps = GAPS[1:8]
    for gap, weight in zip(gaps.tolist(), proposal_weights(gaps, scale).tolist(), strict=True):
        with localcontext(Context(prec=100)):
            exact = decay(gap, scale, UNIT + bits) / weight
        (found,) = kept_floors(gap / Fraction(scale), weight, bits)
        assert 0 <= exact - found < 1


def test_a_gap_beyond_all_digits_is_never_kept() -> None:
    assert kept_floors(Fraction(2**68), 2, 64) == [0]
    assert not kept(Fraction(2**68), 2, tape(1))
    assert not kept(Fraction(2**68), 2, tape(0, 0, 1))  # undecided twice


def test_a_tie_takes_more_bits() -> None:
    q, weight = Fraction(1, 3), int(proposal_weights(np.array([1]), 3.0)[0])
    (head,) = kept_floors(q, weight, 64)
    (longer,) = kept_floors(q, weight, 128)
    assert kept(q, weight, tape(head - 1))
    assert not kept(q, weight, tape(head + 1))
    assert kept(q, weight, tape(head, longer % 2**64 - 1))
    assert not kept(q, weight, tape(head, longer % 2**64 + 1))


def test_the_highest_score_is_kept_without_a_word() -> None:
    assert kept(Fraction(0), 2**UNIT, tape())


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 2**36, 2**61 + 12345])
def test_a_uniform_number_takes_the_first_bits_of_a_word(limit: int) -> None:
    spare = 64 - limit.bit_length()
    assert below(limit, tape(0)) == 0
    assert below(limit, tape((limit - 1) << spare)) == limit - 1
    if limit & (limit - 1):
        assert below(limit, tape(EVERY_BIT, limit << spare, 1 << spare)) == 1


def test_every_boundary_of_a_proposal() -> None:
    """Two rows of score 5 and three of score 3: the first and the last number of each row."""
    width, low = 2**UNIT, int(proposal_weights(np.array([2]), 1.0)[0])
    ends = [0, width, 2 * width, 2 * width + low, 2 * width + 2 * low, 2 * width + 3 * low]
    spare = 64 - ends[-1].bit_length()
    found = []
    for first, end in pairwise(ends):
        for number in (first, end - 1):
            found.append(urn((5, 2), (3, 3)).pick(tape(number << spare, 0)))
    assert found == [rows for rows in [(5, 1), (5, 0), (3, 2), (3, 1), (3, 0)] for _ in range(2)]


def test_a_proposal_that_is_not_kept_is_made_anew() -> None:
    low = int(proposal_weights(np.array([2]), 1.0)[0])
    total = 2 * 2**UNIT + 3 * low
    spare = 64 - total.bit_length()
    words = tape((total - 1) << spare, EVERY_BIT, 0)
    assert urn((5, 2), (3, 3)).pick(words) == (5, 1)


def test_rows_of_a_class_stand_in_for_those_taken() -> None:
    """Whatever ranks are drawn, every row of a class comes once, and a rank leads to each of the rows left."""
    for seed in range(50):
        rng = np.random.default_rng(seed)
        left = urn((7, 6))
        rows = [left._take(0, int(rng.integers(6 - n))) for n in range(6)]
        assert sorted(rows) == list(range(6))
    for taken in ([], [0], [2], [0, 0], [3, 1], [1, 2, 0]):
        followers = []
        for rank in range(5 - len(taken)):
            left = urn((7, 5))
            before = [left._take(0, each) for each in taken]
            followers.append(left._take(0, rank))
        assert sorted(followers) == sorted(set(range(5)) - set(before))


def test_weights_are_taken_anew_when_the_best_have_gone() -> None:
    left = urn((100, 1), (50, 1), (49, 2))
    assert left.reference == 100
    assert left.weights[1] < FADED
    left._take(0, 0)
    assert (left.reference, left.best) == (50, 1)
    assert left.weights.tolist() == [2**UNIT, 2**UNIT, proposal_weights(np.array([1]), 1.0)[0]]
    left._take(1, 0)
    assert left.reference == 50  # 49 is near enough
    left._take(2, 1)
    left._take(2, 0)
    assert left.left.tolist() == [0, 0, 0]


@given(st.lists(st.integers(-1, 9), min_size=1, max_size=12), st.sampled_from([0.5, 3.0, 1e6]), st.data())
def test_any_scores(listed: list[int], scale: float, data: st.DataObject) -> None:
    scores = np.array(listed) * data.draw(st.sampled_from([1, 1, 10**9, 2**58]))
    scores[scores < 0] = -1
    allowed = np.flatnonzero(scores >= 0)
    if len(allowed) == 0:
        return
    count = data.draw(st.integers(1, len(allowed)))
    found = select(scores, count=count, scale=scale)
    assert found.dtype == np.int64
    assert len(set(found.tolist())) == count
    assert set(found.tolist()) <= set(allowed.tolist())


def test_no_overflow_at_the_largest_gaps() -> None:
    scores = np.array([2**62, 0, 2**61, 2**40])
    assert select(scores, count=4, scale=2.0**-6).tolist() == [0, 2, 3, 1]
    assert select(scores, count=3, scale=2.0**10).tolist() == [0, 2, 3]


def test_the_door_gives_the_same_law() -> None:
    scores = np.array([0, 2, -1])
    found = Counter(SystemRandomness().select(scores, count=1, scale=1.0).tolist()[0] for _ in range(3000))
    share = picked((0, 2, -1), 1.0)
    assert set(found) == {0, 1}
    assert abs(found[1] / 3000 - float(share[1])) < 0.035  # five standard deviations


def test_millions_of_rows_are_some_classes() -> None:
    """What a pick draws does not grow with the rows."""
    asked = []

    def words(count: int) -> np.ndarray:
        asked.append(count)
        return system_words(count)

    scores = np.arange(2**20) % 50
    found = select(scores, count=8, scale=2.0, words=words)
    assert len(set(found.tolist())) == 8
    assert sum(asked) < 100
