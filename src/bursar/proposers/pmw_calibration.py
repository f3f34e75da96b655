"""How much noise a test and an answer may have: the constants of Boost, published and printed, and the exact ones.

A test passes where |q(D) - e| + Y < cut + X, with X the noise of the threshold and Y that of the test. An estimate e
that is off by alpha or more passes with probability at most p_test = Pr[X - Y > alpha - cut]; if it does not pass, the
answer q(D) + Z is off by alpha or more with probability p_answer. So the whole fails with at most

    p_test + (1 - p_test) p_answer                                                       (Lemma A.2, for whole numbers)

and with p_answer alone where the estimate was right. Of several queries asked together it is enough that one bad
estimate is caught, since then all of them are bought: p_test is that of one query, p_answer that of all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np

from bursar.arrays import Reals
from bursar.core.accounting import Noise, NoiseKind
from bursar.core.noise.law import LARGEST_SCALE, SMALLEST_SCALE
from bursar.errors import GoalError
from bursar.estimation.estimate import any_of, each_of
from bursar.tails.single_draw import pair_tail, scale_for, single_tail, steps
from bursar.tails.tails import tail

TEST_SHARE = 6 / 7
"""The part of beta that the test gets: a test costs about six times an answer, so this is the cheapest split."""

RATIO = 1.2
"""The scale of the test's noise over that of the threshold's: for beta from .05 to 1e-6 within 1 % of the cheapest."""

ROUNDED = 1 - 1e-12
"""A hair below beta, so that rounding cannot lift the whole above it."""

CLOSE, AROUND = 1e-4, 1.03
"""How closely the largest allowed scale of a test is found, as a part of it; and where it is first looked for, around
that of continuous noise."""

FINER = 0.998
"""By which scales are made smaller until a goal is kept."""


@dataclass(frozen=True, kw_only=True)
class Calibrated:
    """Noises for one error alpha and failure probability beta."""

    alpha: float
    rows: int
    cut: int
    threshold: Noise
    test: Noise
    answer: Noise  # after a failed test
    bypass: Noise  # without a test
    parts: int = 1  # answers that are added up, with independent noise
    claimed: float | None = None  # the failure probability that a publication says it has; None where it is as proved

    @cached_property
    def honest(self) -> float:
        """At least the probability that a tested answer is off by alpha or more."""
        passes = passing(self.threshold, self.test, steps(self.alpha) - self.cut)
        answer = any_of(sum_tail(self.answer, self.parts, self.alpha), self.rows)
        return min(1.0, passes + (1 - passes) * answer)


class Calibration(Protocol):
    """Values that are equal where their settings are. None where a goal cannot be kept with noise that can be drawn."""

    def of(self, alpha: float, beta: float, rows: int, kind: NoiseKind, parts: int = 1) -> Calibrated | None: ...

    def __hash__(self) -> int: ...


@dataclass(frozen=True, kw_only=True)
class Tight:
    """Exact tails of discrete noise; beta is split between test and answer, and all of it is the bypass's."""

    test_share: float = TEST_SHARE

    def of(self, alpha: float, beta: float, rows: int, kind: NoiseKind, parts: int = 1) -> Calibrated | None:
        return _tight(alpha, beta, rows, kind, parts, self.test_share)


@dataclass(frozen=True, kw_only=True)
class Published:
    """The constants behind the published figures: 1/(n epsilon) as a number of rows.

    epsilon = ln(1/beta)/(n alpha) for answers; for the sparse vector the least epsilon with (1/2 + x/4) exp(-x) <=
    beta, x = alpha n epsilon / 2. Test and answer may both fail, with up to 2 beta together; beta is what is claimed.
    Differs: the noise of several parts is the exact quantile of their sum, which was published as one of 10,000 draws.
    """

    tau: float = 0.05

    def of(self, alpha: float, beta: float, rows: int, kind: NoiseKind, parts: int = 1) -> Calibrated | None:
        test = alpha / (2 * _least(lambda x: (0.5 + x / 4) * math.exp(-x), beta))
        answer = alpha / reach(NoiseKind.LAPLACE, parts, beta / rows)
        return _paper(alpha, test, answer, rows, kind, parts, self.tau, claimed=beta)


@dataclass(frozen=True, kw_only=True)
class Printed:
    """Algorithm 1 as printed: epsilon = 4 ln(1/beta) / (n alpha) everywhere. More exact than was asked for.

    Where an answer has several parts, each has the noise of `Published`.
    """

    tau: float = 0.05

    def of(self, alpha: float, beta: float, rows: int, kind: NoiseKind, parts: int = 1) -> Calibrated | None:
        scale = alpha / (4 * math.log(rows / beta))
        answer = scale if parts == 1 else alpha / reach(NoiseKind.LAPLACE, parts, beta / rows)
        return _paper(alpha, scale, answer, rows, kind, parts, self.tau, claimed=None if parts == 1 else beta)


@dataclass(frozen=True, kw_only=True)
class Lemma:
    """One epsilon for test and answer, the least that Lemma A.2 allows: e^-y + (1/2 + y/8) e^(-y/2) <= beta, with y =
    alpha n epsilon. It is what vanilla PMW runs with. Proved for continuous noise, so beta is claimed here."""

    tau: float = 0.05

    def of(self, alpha: float, beta: float, rows: int, kind: NoiseKind, parts: int = 1) -> Calibrated | None:
        scale = alpha / _least(lambda y: rows * math.exp(-y) + (0.5 + y / 8) * math.exp(-y / 2), beta)
        answer = scale if parts == 1 else alpha / reach(NoiseKind.LAPLACE, parts, beta / rows)
        return _paper(alpha, scale, answer, rows, kind, parts, self.tau, claimed=beta)


@dataclass(frozen=True, kw_only=True, eq=False)
class Checked:
    """The law of answers that are tested estimates, or bought where the test fails: only alpha itself is promised.

    mean_square: an estimate off by d passes with probability at most (1/2 + x/4) e^-x for d = cut + x b, b the larger
    scale; so E[d^2; passed] <= (cut + 3b)^2, as d^2 grows less than that falls beyond x = 3. Bought ones add theirs.
    """

    calibrated: Calibrated
    chance: float  # at least Pr[some error >= alpha], or what is claimed for it
    beside: float = 0.0  # the mean square of what is added to them, which is independent of them and has mean 0

    def tail(self, alpha: float, enough: float) -> float:
        return self.chance if alpha >= self.calibrated.alpha else 1.0

    def half_widths(self, beta: float) -> Reals:
        return np.full(self.calibrated.rows, self.calibrated.alpha if beta >= self.chance else math.inf)

    def mean_square(self) -> float:
        made = self.calibrated
        farthest = made.cut + 3 * max(made.threshold.scale, made.test.scale, 1.0)
        return farthest**2 + made.parts * made.answer.variance() + self.beside


def passing(threshold: Noise, test: Noise, short: int) -> float:
    """At least Pr[X - Y > short] for the noises of a threshold and of a test: half of a symmetric tail."""
    if short < 0:
        return 1.0
    closed = pair_tail(threshold, test, short + 1)
    return tail([1.0, 1.0], [threshold, test], short + 1) / 2 if closed is None else closed


def sum_tail(noise: Noise, parts: int, alpha: float) -> float:
    """At least Pr[|S| >= alpha] for the sum S of so many draws."""
    return single_tail(noise, alpha) if parts == 1 else tail([1.0] * parts, [noise] * parts, alpha)


@lru_cache(maxsize=1024)
def reach(kind: NoiseKind, parts: int, beta: float) -> float:
    """How far the sum of so many continuous draws of scale 1 reaches with probability beta, to one part in 10^4.

    One Laplace draw has a closed form, ln(1/beta); otherwise noise of a large scale stands for continuous noise.
    """
    if parts == 1 and kind is NoiseKind.LAPLACE:
        return math.log(1 / beta)
    noise = Noise(kind=kind, scale=2.0**20)
    low, high = 1.0, 2.0
    while sum_tail(noise, parts, high * noise.scale) > beta:
        low, high = high, 2 * high
    while high > (1 + CLOSE) * low:
        middle = (low + high) / 2
        low, high = (middle, high) if sum_tail(noise, parts, middle * noise.scale) > beta else (low, middle)
    return high


def part_scale(kind: NoiseKind, alpha: float, beta: float, parts: int) -> float:
    """A scale, nearly the largest, at which the sum of so many draws has Pr[|S| >= alpha] <= beta.

    Edge cases: as for `scale_for`, which it is for one draw.
    """
    if parts == 1:
        return scale_for(kind, alpha, beta)
    scale = min((steps(alpha) - 0.5) / reach(kind, parts, beta), LARGEST_SCALE)
    while scale >= SMALLEST_SCALE:
        if sum_tail(Noise(kind=kind, scale=scale), parts, alpha) <= beta:
            return scale
        scale *= FINER
    raise GoalError(f"not even the least noise stays below an error of {alpha:g} all but {beta:g} of the time")


def _tight(alpha: float, beta: float, rows: int, kind: NoiseKind, parts: int, share: float) -> Calibrated | None:
    beta *= ROUNDED
    whole = steps(alpha)
    cut = whole // 2
    if cut < 1:
        return None
    noises = _test_noises(whole - cut, share * beta)
    if noises is None:
        return None
    try:
        answer = part_scale(kind, alpha, each_of((1 - share) * beta, rows), parts)
        bypass = part_scale(kind, alpha, each_of(beta, rows), parts)
    except GoalError:
        return None
    return Calibrated(
        alpha=alpha,
        rows=rows,
        cut=cut,
        threshold=noises[0],
        test=noises[1],
        answer=Noise(kind=kind, scale=answer),
        bypass=Noise(kind=kind, scale=bypass),
        parts=parts,
    )


def _test_noises(short: int, beta: float) -> tuple[Noise, Noise] | None:
    """The most noise of a threshold and of a test with Pr[X - Y > short] <= beta; None where there is none."""

    def noises(scale: float) -> tuple[Noise, Noise]:
        return Noise(kind=NoiseKind.LAPLACE, scale=scale), Noise(kind=NoiseKind.LAPLACE, scale=RATIO * scale)

    def keeps(scale: float) -> bool:
        return passing(*noises(scale), short) <= beta

    least, most = SMALLEST_SCALE, LARGEST_SCALE / RATIO
    low = high = min(max((short + 0.5) / _continuous(beta), least), most)
    while low > least and not keeps(low):
        low = max(low / AROUND, least)
    if not keeps(low):
        return None
    while high < most and keeps(high):
        low, high = high, min(high * AROUND, most)
    if keeps(high):
        return noises(high)
    while high > (1 + CLOSE) * low:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return noises(low)


def _continuous(beta: float) -> float:
    """The x with Pr[X - Y > x] = beta for Laplace noise of scales 1 and r: (r^2 e^(-x/r) - e^-x) / (2 (r^2 - 1))."""
    return _least(lambda x: (RATIO**2 * math.exp(-x / RATIO) - math.exp(-x)) / (2 * (RATIO**2 - 1)), beta)


def _paper(
    alpha: float,
    test: float,
    answer: float,
    rows: int,
    kind: NoiseKind,
    parts: int,
    tau: float,
    *,
    claimed: float | None,
) -> Calibrated | None:
    if kind is NoiseKind.GAUSSIAN and parts > 1:
        return None
    if kind is NoiseKind.GAUSSIAN:
        answer = tau * alpha / math.sqrt(18 * math.log(2) + 3 * tau * alpha / answer)  # A.5; already a fraction there
    cut = round(alpha / 2)
    if cut < 1 or not all(SMALLEST_SCALE <= scale <= LARGEST_SCALE for scale in (test, answer)):
        return None
    noise = Noise(kind=NoiseKind.LAPLACE, scale=test)
    bought = Noise(kind=kind, scale=answer)
    return Calibrated(
        alpha=alpha,
        rows=rows,
        cut=cut,
        threshold=noise,
        test=noise,
        answer=bought,
        bypass=bought,
        parts=parts,
        claimed=claimed,
    )


def _least(bound: Callable[[float], float], beta: float) -> float:
    """The least x at which a falling bound is beta or less, to a few parts in 10^15."""
    low, high = 0.0, 1.0
    while bound(high) > beta:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if bound(middle) > beta else (low, middle)
    return high
