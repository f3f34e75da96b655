"""Noise down: finer discrete Laplace noise under coarser noise that was shown before; see `refine.proof.md`.

Writing a_i = exp(-1/b_i) for a scale b1 and a smaller one b2, noise of scale b1 is noise of scale b2 plus something
independent of it. What is drawn here is the noise of scale b2, given their sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Integers
from bursar.core.noise.exact_sampler import TABLES_KEPT, Cuts, Geometric, Words, agreed, exp_between, system_words


def noise_down(current: Integers, *, before: float, after: float, words: Words = system_words) -> Integers:
    """One draw of the noise of scale `after` for each number of `current`, which are noise of scale `before`.

    Let x >= 0 be the present noise (the other sign is its mirror image), r = a2/a1, K, G independent and geometric with
    ratios r and a1 a2. With probability a2 (a1 - a2)/(1 - a2^2) the result is -1 - G; else it is K where K <= x;
    else, with probability a1 (a1 - a2)/(1 - a1 a2), x + 1 + G; else x.

    Guarantees: if `current` has the law of `before`, what is returned has the law of `after`, and the law of `current`
    given the result does not depend on anything else; exact where 1/after - 1/before >= 2^-50. Nothing is rejected and
    every draw is made for every number, so the work done hardly depends on the values.
    Edge cases: no numbers give none.
    Differs: the four cases of the usual form (keep, other side, between, beyond) have probabilities that depend on x;
    here only K is compared with x.
    """
    tables = _tables(before, after)
    size = current.size
    return placed(
        current,
        across=tables.across.draw(size, words) == 0,
        along=tables.along.draw(size, words),
        leaps=tables.leaps.draw(size, words) == 0,
        beyond=tables.beyond.draw(size, words),
    )


def placed(
    current: Integers, *, across: NDArray[np.bool_], along: Integers, leaps: NDArray[np.bool_], beyond: Integers
) -> Integers:
    """The finer noise that the independent draws lead to."""
    distance = np.abs(current)
    outside = distance + np.where(leaps, 1 + beyond, 0)
    finer = np.where(across, -1 - beyond, np.where(along <= distance, along, outside))
    mirrored: Integers = np.where(current < 0, -finer, finer)
    return mirrored


def cut_floors(start: Fraction, before: Fraction, after: Fraction, bits: int) -> list[int]:
    """floor(2^bits F), F = s (a1 - a2)/(1 - s a2), with s, a1, a2 = exp(-start), exp(-before), exp(-after).

    One cut: a uniform lies below it with probability F. Needs start > 0 and 0 < before < after.
    """

    def bounds(guard: int) -> tuple[list[int], list[int]]:
        one = 1 << 2 * (bits + guard)
        s, a1, a2 = (exp_between(rate, bits + guard) for rate in (start, before, after))
        low = (s[0] * (a1[0] - a2[1]) << bits) // (one - s[0] * a2[0])
        high = (s[1] * (a1[1] - a2[0]) << bits) // (one - s[1] * a2[1])
        return [low], [high]

    return agreed(bounds, bits)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Tables:
    """What one pair of scales needs."""

    across: Cuts  # 0: the finer noise is on the other side of zero
    along: Geometric
    leaps: Cuts  # 0: it is larger than the coarser noise
    beyond: Geometric


@lru_cache(maxsize=TABLES_KEPT)
def _tables(before: float, after: float) -> _Tables:
    coarse, fine = 1 / Fraction(before), 1 / Fraction(after)
    return _Tables(
        across=Cuts.of(partial(cut_floors, fine, coarse, fine)),
        along=Geometric.of(fine - coarse),
        leaps=Cuts.of(partial(cut_floors, coarse, coarse, fine)),
        beyond=Geometric.of(fine + coarse),
    )
