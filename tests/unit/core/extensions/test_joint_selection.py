"""The sampler of joint selections: walked along every path, its law is the law promised."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import accumulate, permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bursar.core.extensions import joint_selection
from bursar.core.extensions.joint_selection import Layers, select_jointly
from bursar.core.extensions.select import below, classes_of, kept, kept_floors
from bursar.core.noise.exact_sampler import Words, system_words
from bursar.core.noise.system import SystemRandomness
from harness.cells import Numbers
from harness.enumeration import BranchingTape
from harness.masses import jointly_picked

EVERY_BIT = 2**64 - 1
CASES: dict[str, tuple[list[int], int, float]] = {
    "two of a few": ([3, 5, 5, -1, 0, 2], 2, 1.5),
    "three of a few": ([7, 1, 4, 4, 2], 3, 3.0),
    "in another order": ([1, 2, 3, 9], 2, 2.0),
    "all of them": ([4, 1, 0], 3, 1.0),
    "all equal": ([2, 2, 2, 2], 2, 0.5),
    "one pick": ([0, 3, 5, 5], 1, 2.0),
    "narrow": ([1, 0, 0, 2], 2, 2.0**-3),
    "wide": ([30, 9, 14, 0, 21], 2, 25.0),
    "one far ahead": ([400, 3, 5, 4], 2, 2.5),
    "huge": ([3 * 2**40, 5 * 2**40, 0, 2**40], 2, 2.0**40),
}


def layers(scores: Numbers, count: int, scale: float) -> Layers:
    return Layers.of(*classes_of(scores), count, scale)


def short(scores: list[int], rows: tuple[int, ...]) -> int:
    best = sorted(scores, reverse=True)
    return max(best[j] - scores[row] for j, row in enumerate(rows))


class RejectedError(Exception):
    """The sampler begins anew."""


def share(part: int, whole: int) -> Decimal:
    with localcontext(Context(prec=80)):
        return Decimal(part) / Decimal(whole)


def walked(
    monkeypatch: pytest.MonkeyPatch, scores: Numbers, count: int, scale: float
) -> tuple[dict[tuple[int, ...], Decimal], Decimal]:
    """The law of one proposal that is kept, and how likely that is: all draws of the sampler take all their values.

    A layer stands for all numbers that lead to it; how likely it is to keep something is known to 512 bits.
    """
    weights = layers(scores, count, scale).weights
    starts = [0, *accumulate(weights)]
    law: dict[tuple[int, ...], Decimal] = {}
    path: list[int] | None = []
    while path is not None:
        tape, proposals = BranchingTape(path, reach=0, margin=0), 0

        def number(limit: int, words: Words, tape: BranchingTape = tape) -> int:
            nonlocal proposals
            if limit != starts[-1]:
                return tape.among([(value, share(1, limit)) for value in range(limit)])
            proposals += 1
            if proposals > 1:
                raise RejectedError
            layer = tape.among([(at, share(weight, limit)) for at, weight in enumerate(weights)])
            return tape.among([(starts[layer], Decimal("0.5")), (starts[layer + 1] - 1, Decimal("0.5"))])

        def keep(q: Fraction, weight: int, words: Words, tape: BranchingTape = tape, **unit: int) -> bool:
            if q > 0:
                likely = share(kept_floors(q, weight, 512, **unit)[0], 1 << 512)
                if not tape.among([(1, likely), (0, 1 - likely)]):
                    raise RejectedError
            return True

        with monkeypatch.context() as patched:
            patched.setattr(joint_selection, "below", number)
            patched.setattr(joint_selection, "kept", keep)
            try:
                rows = tuple(select_jointly(scores, count=count, scale=scale).tolist())
                law[rows] = law.get(rows, Decimal(0)) + tape.mass
            except RejectedError:
                pass
        path = tape.next_path()
    often = sum(law.values(), Decimal(0))
    return {rows: mass / often for rows, mass in law.items()}, often


def differ(law: dict[tuple[int, ...], Decimal], scores: list[int], count: int, scale: float) -> Decimal:
    promised = jointly_picked(tuple(scores), count, scale)
    assert set(law) == set(promised)
    return max(abs(law[rows] / mass - 1) for rows, mass in promised.items())


@pytest.mark.parametrize("name", CASES)
def test_the_law_is_the_one_that_is_promised(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scores, count, scale = CASES[name]
    law, often = walked(monkeypatch, np.array(scores), count, scale)
    assert differ(law, scores, count, scale) < Decimal("1e-20")
    assert often > Decimal("0.2")


@pytest.mark.parametrize("name", ["three of a few", "narrow", "wide"])
@pytest.mark.parametrize("layered", [1, 2])
def test_the_law_holds_wherever_the_last_layer_begins(name: str, layered: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one layer, everything is proposed alike; only more is rejected."""
    scores, count, scale = CASES[name]
    digits = math.perm(sum(score >= 0 for score in scores), count).bit_length()
    monkeypatch.setattr(joint_selection, "SPARE", layered - 1 - digits)
    assert len(layers(np.array(scores), count, scale).sizes) == layered
    assert differ(walked(monkeypatch, np.array(scores), count, scale)[0], scores, count, scale) < Decimal("1e-20")


TWINS: dict[str, Any] = {
    "a size that is forgotten": lambda made: {"sizes": [1] * len(made.sizes)},
    "layers of another width": lambda made: {"width": made.width + 1},
    "another scale": lambda made: {"scale": made.scale / 2},
    "scores that are sorted the other way": lambda made: {"best": made.best[::-1]},
}


@pytest.mark.parametrize("name", TWINS)
def test_a_wrong_twin_is_exposed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    true = Layers.of

    def wrong(*given: Any) -> Layers:
        made = true(*given)
        return Layers(**vars(made) | TWINS[name](made))

    scores, count, scale = CASES["three of a few"]
    monkeypatch.setattr(Layers, "of", wrong)
    with localcontext(Context(prec=60)):
        found, _ = walked(monkeypatch, np.array(scores), count, scale)
    promised = jointly_picked(tuple(scores), count, scale)
    assert sum(abs(found.get(rows, 0) - mass) for rows, mass in promised.items()) > Decimal("0.05")


@given(st.lists(st.integers(-1, 12), min_size=2, max_size=6), st.sampled_from([0.3, 1.0, 4.5, 30.0]), st.data())
def test_layers_count_their_sequences(listed: list[int], scale: float, data: st.DataObject) -> None:
    allowed = [place for place, score in enumerate(listed) if score >= 0]
    if len(allowed) == 0:
        return
    count = data.draw(st.integers(1, min(3, len(allowed))))
    made = layers(np.array(listed), count, scale)
    found = [short(listed, rows) for rows in permutations(allowed, count)]
    for layer, size in enumerate(made.sizes[:-1]):
        assert size == sum(each < (layer + 1) * made.width for each in found)
    assert made.sizes[-1] == len(found)
    assert made.best.tolist() == sorted((listed[place] for place in allowed), reverse=True)[:count]


@pytest.mark.parametrize(("n", "count", "scale"), [(60, 9, 0.3), (60, 9, 9.0), (500, 4, 700.0), (500, 1, 2.0**40)])
def test_weights_are_large_enough_and_hardly_larger(n: int, count: int, scale: float) -> None:
    scores = np.random.default_rng(1).geometric(1e-3, n)
    made = layers(scores, count, scale)
    with localcontext(Context(prec=200)):
        unit, least = Decimal(1 << made.bits), made.sizes[0] << made.bits
        rate = Decimal(made.width) / Decimal(scale)
        for layer, (size, weight) in enumerate(zip(made.sizes, made.weights, strict=True)):
            exact = unit * size * (-rate * layer).exp()
            assert exact <= weight
            assert weight - exact <= Decimal(least) / 2**40
    assert made.weights[0] == least


def test_a_sequence_is_any_of_its_layer() -> None:
    """Three classes of two rows, two picks: each of the sequences that a layer may have comes for one pair of draws."""
    made = layers(np.array([9, 9, 5, 5, 0, 0]), 2, 4.0)
    assert made.width == 3
    for layer, most in enumerate([(2, 2), (4, 4), (4, 4), (6, 6)]):
        first, second = made.free[layer]
        assert (first, second + 1) == most
        found = Counter()
        for one in range(first):
            for other in range(second):
                words = iter([one << 64 - first.bit_length(), other << 64 - second.bit_length()])
                found[tuple(made._sequence(layer, lambda size, words=words: np.array([next(words)], np.uint64)))] += 1
        assert set(found) == set(permutations(range(most[1]), 2))
        assert set(found.values()) == {1}


def test_a_sequence_that_is_not_kept_is_drawn_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([False, False, True])
    monkeypatch.setattr(joint_selection, "kept", lambda *given, **unit: next(answers))
    assert sorted(select_jointly(np.array([5, -1, 4]), count=2, scale=30.0).tolist()) == [0, 2]
    assert list(answers) == []


def test_numbers_of_many_words() -> None:
    def tape(*words: int) -> Words:
        left = iter(words)
        return lambda size: np.array([next(left) for _ in range(size)], np.uint64)

    assert below(2**64 - 1, tape(EVERY_BIT, 17)) == 17
    assert below(2**64, tape(EVERY_BIT, EVERY_BIT, 2**63 - 1, EVERY_BIT)) == 2**64 - 1  # 65 bits
    assert below(2**100, tape(3 << 27, 0)) == 3 << 64  # 101 bits of 128
    assert below(3 * 2**126, tape(EVERY_BIT, 0, 2**63, 5)) == 2**127 + 5


@pytest.mark.parametrize("bits", [64, 300])
def test_what_is_kept_is_known_to_every_bit_however_far_it_falls_short(bits: int) -> None:
    made = layers(np.arange(400) * 3, 30, 2.0)
    for layer in (0, 1, 7, 100, len(made.sizes) - 1):
        q = (layer * made.width + 1) / made.scale
        unit, weight = made.sizes[layer] << made.bits, made.weights[layer]
        (found,) = kept_floors(q, weight, bits, unit=unit)
        with localcontext(Context(prec=1000)):
            exact = Decimal(unit) * (-Decimal(q.numerator) / Decimal(q.denominator)).exp() / Decimal(weight)
            assert 0 <= exact * 2**bits - found < 1
            assert 0 < exact < 1
            assert exact > Decimal("0.3") or layer > 100


def test_a_shortfall_beyond_all_digits_is_never_kept() -> None:
    made = layers(np.array([2**62, 2**62 - 1, 0, 1]), 2, 2.0**-6)
    assert not kept(
        Fraction(2**68), made.weights[-1], lambda size: np.ones(size, np.uint64), unit=made.sizes[-1] << made.bits
    )


def test_the_door_gives_the_same_law() -> None:
    scores = np.array([0, 2, -1, 1])
    found = Counter(tuple(SystemRandomness().select_jointly(scores, count=2, scale=1.0).tolist()) for _ in range(3000))
    law = jointly_picked((0, 2, -1, 1), 2, 1.0)
    assert set(found) <= set(law)
    assert all(abs(found[rows] / 3000 - float(mass)) < 0.05 for rows, mass in law.items())  # five standard deviations


def test_millions_of_rows_are_some_classes() -> None:
    """What is drawn does not grow with the rows."""
    asked: list[int] = []

    def words(count: int) -> Numbers:
        asked.append(count)
        return system_words(count)

    found = select_jointly(np.arange(2**20) % 50, count=8, scale=2.0, words=words)
    assert len(set(found.tolist())) == 8
    assert sum(asked) < 2000
