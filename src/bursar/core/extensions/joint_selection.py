"""Rows picked by their scores, all of them in one draw, exactly. The argument is in `joint_selection.proof.md`.

A sequence of picks falls short of the best one by a whole number. Those that fall short by no more than some number are
easily counted, and one of them is easily drawn; so a layer of shortfalls is proposed by a bound that is a little too
large, and what is too large about it is rejected, exactly.
"""

from __future__ import annotations

import math
from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

import numpy as np

from bursar.arrays import Integers
from bursar.core.extensions.select import below, classes_of, kept, places_of
from bursar.core.noise.exact_sampler import Words, powers, system_words

SPARE = 20
"""So many layers beyond the one from which all picks together weigh less than the best; then the rest is one layer."""


def select_jointly(scores: Integers, *, count: int, scale: float, words: Words = system_words) -> Integers:
    """`count` different places s_1, s_2, ... of the scores, all at once, with a probability proportional to
    exp(-t / scale), t = max_j (c_(j) - c_{s_j}), where c_(1) >= c_(2) >= ... are the scores sorted; places of negative
    scores are never picked (Gillenwater, Joseph, Munoz, Ribero 2022: the joint exponential mechanism for top-k).

    Guarantees: exact for at most 2^25 scores of any size and every float `scale` from 2^-6 to 2^40. One pass makes the
    classes and one finds the rows; what is between grows with the classes and with count^2.
    Edge cases: needs a count of at least 1, and at least so many scores that are not negative. One pick has the law
    of `select`.
    Differs: the paper draws a shortfall from all count * len(scores) of them, by floating-point Gumbel noise.
    """
    return places_of(scores, Layers.of(*classes_of(scores), count, scale).pick(words))


@dataclass(frozen=True, kw_only=True)
class Layers:
    """Sequences of picks by their shortfall t: layer a has those with a = floor(t / width), the last has the rest too.

    Ranks number the rows from the highest score down. A sequence lies in layer a or one before if, for every j, its
    j-th row is among the first n_j.
    """

    scores: Integers  # of the classes, the highest first
    ends: Integers  # how many rows the classes up to each have
    best: Integers  # c_(1), c_(2), ..., as many as there are picks
    scale: Fraction
    width: int
    free: list[list[int]]  # for each layer n_j less the j - 1 rows that were picked before
    sizes: list[int]  # how many sequences lie in each layer or one before
    bits: int
    weights: list[int]  # of each layer, no less than 2^bits size exp(-a width / scale)

    @classmethod
    def of(cls, scores: Integers, rows: Integers, count: int, scale: float) -> Layers:
        ends = np.cumsum(rows)
        best = np.repeat(scores[:count], np.minimum(rows[:count], count))[:count]
        width = math.ceil(0.7 * scale)
        digits = math.perm(int(ends[-1]), count).bit_length()
        last = min(int(best[0] - scores[-1]) // width, digits + SPARE)
        least = best - (width * np.arange(1, last + 1) - 1)[:, None]  # scores that come j-th in a layer, or before it
        among = ends[np.searchsorted(-scores, -least, side="right") - 1]
        free = (np.vstack([among, np.full(count, ends[-1])]) - np.arange(count)).tolist()
        sizes = [math.prod(left) for left in free]
        bits = digits + 64
        _, _, decays = powers(width / Fraction(scale), last, bits)
        weights = [size * decay for size, decay in zip(sizes, decays, strict=True)]
        return cls(
            scores=scores,
            ends=ends,
            best=best,
            scale=Fraction(scale),
            width=width,
            free=free,
            sizes=sizes,
            bits=bits,
            weights=weights,
        )

    def pick(self, words: Words) -> Sequence[tuple[int, int]]:
        """Of each pick the score of its class, and which of the rows of the class it is."""
        ends = list(accumulate(self.weights))
        while True:
            layer = bisect_right(ends, below(ends[-1], words))
            ranks = self._sequence(layer, words)
            at = np.searchsorted(self.ends, ranks, side="right")
            short = int((self.best - self.scores[at]).max())
            if min(short // self.width, len(ends) - 1) < layer:
                continue
            if kept(short / self.scale, self.weights[layer], words, unit=self.sizes[layer] << self.bits):
                return list(zip(self.scores[at].tolist(), (self.ends[at] - 1 - ranks).tolist(), strict=True))

    def _sequence(self, layer: int, words: Words) -> Integers:
        """Ranks of a sequence that lies in this layer or one before, each of them with the same probability."""
        ranks: list[int] = []
        taken: list[int] = []  # the same, rising
        for free in self.free[layer]:
            rank = below(free, words)
            for other in taken:
                rank += rank >= other
            insort(taken, rank)
            ranks.append(rank)
        return np.array(ranks, np.int64)
