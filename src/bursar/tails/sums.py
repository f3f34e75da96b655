"""Upper bounds on the tails of weighted sums of discrete noise, and of whole workloads of them.

An estimate is a weighted sum of measured rows, so its error is S = sum_j w_j X_j with independent discrete noise X_j
of known laws; a workload has one such sum for each query. Nothing here depends on data, and nothing is simulated:
single draws have closed forms, sums are bounded by Chernoff where that is enough and by inversion of their transform
where it is not, and workloads by the union bound.

Guarantees: a probability is never below the truth and a half-width never too narrow, rounding included. Between 1e-1
and 1e-9 the bound on one sum is within about 2 % of the truth. The exceptions are a law with much mass just below the
threshold, on no lattice, and a sum of very many kinds of terms (`_raised`): there it is within 2 % of the tail at a
threshold that is lower by less than 1 %.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bursar.arrays import Reals
from bursar.core.noise.law import Noise, NoiseKind
from bursar.errors import GoalError
from bursar.lazy_dataclass import dataclass
from bursar.tails.characteristic import Kinds, Noises, Sums
from bursar.tails.inversion import Inversion, NearLattice, chernoff_exponent, chernoff_width, quick_exponent
from bursar.tails.single_draw import (
    FARTHEST,
    beyond,
    check_beta,
    half_width,
    outward,
    steps,
)

CHERNOFF_ONLY_BELOW = 1e-30
"""Chernoff's bound is not improved below this: it moves a threshold by less than 3 %."""
SHARED_BOUND_SHIFT = 2.0**-20
"""Rows whose weights agree to 2^-36 share one bound, at a threshold that is lower by this part."""
SHORT_WEIGHT_BITS, ALIKE_SHIFT = 36, 2.0**-30
"""Weights of one row that agree to so many binary digits are taken for equal, at a threshold lower by this part."""
REMAINDER_SHARE_OF_TAIL = 2.0**-14
"""What a sum has beside its lattice may take up this part of a tail, or of a failure probability."""
REMAINDER_SHARE_OF_WIDTH = 0.001
"""And this part of a half-width."""
REMEMBERED_SUMS, REMEMBERED_TERMS = 4096, 64
"""How many bounds are remembered, each a function of its sum alone, and of how many kinds of terms at most."""
ROUNDING_OF_WEIGHTS = 2.0**-40
"""Weights of the same rows that were computed in another order, or by another machine, differ by less."""
ROUNDING_OF_SPARED_TAILS = 2.0**-40
"""For the rounding of what is spared: far more than a dozen operations can have lost."""
MOST_RARE, ROUNDING_OF_RARE_DRAWS = 0.1, 1e-5
"""Draws are rare if no more than this part of them is not zero; and by which part that chance, as it is computed, may
exceed the truth, with a margin."""
SMOOTH_SCALE = 1000.0
"""Gaussian noise of such a scale is so near to a normal law that bounds in closed form are tight."""
MOST_EXACT_ROWS, RAISED_BITS = 64, 6
"""How many half-widths of raised weights are found exactly at most, and the binary digits that are left of a weight."""
MOST_COVERED_ROWS = 256
"""The same where only one width is asked about: the widest row comes first, and one that is too wide ends it."""
MANY_TERMS, RAISED_SPREAD, RAISED_SHIFT = 256, 1.005, 0.002
"""Sums of more terms may have their weights raised; by how much that may widen them, and the part of a threshold that
it may move."""
SAMPLED_ROWS, SAMPLING_ERROR = 8, 0.1
"""How many rows stand for all of them while a plan is searched for, and how far their mean is off at least."""
LARGEST_WEIGHT = 2.0**300
NUMBERS_AT_ONCE = 1 << 18
"""How many weights are looked at together."""
TINY = sys.float_info.min


def tail(weights: ArrayLike, noises: Sequence[Noise], alpha: float, enough: float = 0.0) -> float:
    """At least Pr[max_i |S_i| > alpha] over the rows of a matrix of weights: the union bound over the rows.

    S_i is the sum of `weights[i, j]` times a draw of `noises[j]`; a list of weights is one row.

    Every row is bounded by Chernoff, first by a quick guess, then with the tail of its widest draw; then the worst are
    inverted, until the sum is at most `enough` or cannot be. Before that, the widest draws alone may show that it
    cannot, and two kinds of noise are looked at whose tails have bounds in closed form, near to each other: next to
    none, where draws other than zero are rare and an inversion takes longest; and Gaussian noise of a large scale, as
    strategies in whole numbers have.

    Guarantees: at least the truth. If it is above `enough`, so is the sum of the tight bounds of all rows.
    Edge cases: 1 for alpha < 0 (if there is a row); 0 for alpha >= 0 and no weight but zero; one term is as good as
    `single_tail`.
    """
    matrix = _matrix(np.atleast_2d(np.asarray(weights, dtype=np.float64)), noises)
    if steps(alpha) == 0:
        return 1.0 if len(matrix) else 0.0
    some, alpha = matrix[matrix.any(axis=1)], min(alpha, FARTHEST)
    if len(some) == 0:
        return 0.0
    if enough > 0.0:
        if (quick := _quick(some, noises, alpha)) <= enough:
            return outward(quick)
        if _of_widest_draws(some, noises, alpha) > enough:
            return min(1.0, outward(quick))
        for bounds_of in (_of_rare_draws, _of_smooth_draws):
            least, most = bounds_of(some, noises, alpha)
            if least > enough or most <= enough:
                return outward(most)
    rows = _Rows.of(some, noises)
    alphas = alpha * np.where(rows.equal, 1.0, 1.0 - SHARED_BOUND_SHIFT)
    s, exponents, bounds = chernoff_tails(rows.sums, alphas)
    # Rows that are only nearly equal differ by a D with E exp(2^35 s D) <= E exp(sS): this is its own Chernoff bound.
    strays = np.exp(-np.clip(exponents + (2.0**35 * SHARED_BOUND_SHIFT - 1.0) * s * alphas, 0.0, 700.0))
    strays = np.where(rows.equal, 0.0, 2.0 * strays)
    order = np.argsort(-rows.count * bounds)
    remaining = np.append(np.cumsum((rows.count * (bounds + strays))[order][::-1])[::-1], 0.0)
    settled = 0.0
    for place, i in enumerate(order):
        if settled > enough or settled + remaining[place] <= enough:
            return outward(settled + float(remaining[place]))
        exact = rows.tail(i, float(alphas[i]), float(bounds[i]), float(s[i]), float(exponents[i]))
        settled += float(rows.count[i] * (exact + strays[i]))
    return outward(settled)


def sampled_tail(weights: Reals, noises: Sequence[Noise], alpha: float, enough: float) -> float | None:
    """About `tail`, from a few of very many rows, for whoever is searching and makes sure of what is found.

    Rows are inverted that are spread evenly over the sum of Chernoff's bounds; the others are taken to be as far below
    theirs. None where there are few rows, where bounds alone decide, and where it is not clear on which side of
    `enough` the sum is.
    """
    if len(weights) <= 2 * SAMPLED_ROWS or steps(alpha) == 0:
        return None
    rows = _Rows.of(_matrix(weights, noises), noises)
    alphas = np.full(len(rows.count), min(alpha, FARTHEST))
    s, exponents, bounds = chernoff_tails(rows.sums, alphas)
    mass = rows.count * bounds
    if len(mass) <= 2 * SAMPLED_ROWS or mass.sum() <= enough:
        return None
    order = np.argsort(-mass)
    total = np.cumsum(mass[order])
    places = order[np.searchsorted(total, (np.arange(SAMPLED_ROWS) + 0.5) / SAMPLED_ROWS * total[-1])].tolist()
    inverted = {
        i: rows.tail(i, float(alphas[i]), float(bounds[i]), float(s[i]), float(exponents[i])) / float(bounds[i])
        for i in dict.fromkeys(places)
    }
    shares = np.array([inverted[i] for i in places])
    about, unsure = float(total[-1] * shares.mean()), float(shares.std() / shares.mean()) / math.sqrt(SAMPLED_ROWS)
    factor = 1.0 + SAMPLING_ERROR + 2.0 * unsure
    return about if about > factor * enough or factor * about <= enough else None


def half_widths(weights: ArrayLike, noises: Sequence[Noise], beta: float) -> Reals:
    """For each of the m rows of a matrix of weights, the least h_i with Pr[|S_i| > h_i] <= beta/m.

    Guarantees: all intervals value_i +- h_i, ends included, cover together with chance 1 - beta. Within 1 % of the
    least, but for beta/m below 1e-30.
    Edge cases: 0 for a row without weight; a multiple of the weight for a row of one term.
    """
    matrix = _matrix(weights, noises)
    widths, rows = np.zeros(len(matrix)), _Rows.of(matrix, noises)
    if len(rows.count) == 0:
        return widths
    share = beta / len(matrix) * (1.0 - 2.0**-40)
    check_beta(share)
    outer = np.concatenate([chernoff_width(rows.sums.rows(block), share) for block in _blocks(rows.sums)])
    distinct = np.array([rows.width(i, share, float(outer[i])) for i in range(len(outer))])
    # As in `tail`; here the chance that |D| > SHARED_BOUND_SHIFT outer is below share / 2^30000.
    distinct = np.where(rows.equal, distinct, np.nextafter(distinct + SHARED_BOUND_SHIFT * outer, np.inf))
    widths[rows.place >= 0] = distinct[rows.place[rows.place >= 0]]
    return widths


def covering_half_widths(weights: ArrayLike, noises: Sequence[Noise], beta: float, *, exact: bool) -> Reals:
    """For each of the m rows w of a matrix of weights, an h with Pr[|S_v| > h] <= beta/m for every v, |v_j| <= |w_j|.

    S_v is the sum of v_j X_j. Moments grow with the weights, so Chernoff's half-width of S_w is such an h. A tail does
    not, quite: sums on a coarser lattice may jump. Let U_j be uniform on [-1/2, 1/2]: X_j + U_j has a density that is
    symmetric with one mode, as X_j has masses like that, and so have sums of such (Wintner 1938). Of a Z like that
    Pr[|Z + c| > s] grows with |c|, hence Pr[|sum_j w_j (X_j + U_j)| > s] with each |w_j|; and the U_j move a sum by
    half of sum_j |w_j| at most. With W = sum_j |w_j| therefore Pr[|S_v| > s + W] <= Pr[|S_w| > s], and the half-width
    of S_w, or of anything with larger weights, is such an h once W is added. Weights are first raised to a lattice,
    where a half-width is soon found; the less of the two is taken.

    Edge cases: Chernoff's alone unless `exact`, and where more than `MOST_EXACT_ROWS` rows are different; 0 for a row
    without weight.
    """
    matrix = np.abs(_matrix(weights, noises))
    some = np.flatnonzero(matrix.any(axis=1))
    widths = np.zeros(len(matrix))
    if len(some) == 0:
        return widths
    share = beta / len(matrix) * (1.0 - 2.0**-40)
    check_beta(share)
    sums = Sums.of(matrix[some], noises)
    widths[some] = np.concatenate([chernoff_width(sums.rows(block), share) for block in _blocks(sums)])
    raised, shift = _covering(matrix[some])
    if exact and len(np.unique(raised, axis=0)) <= MOST_EXACT_ROWS:
        least = (1.0 + 2.0 * ROUNDING_OF_WEIGHTS) * (half_widths(raised, noises, share * len(some)) + shift)
        widths[some] = np.minimum(widths[some], least)
    return widths


def covered(
    weights: ArrayLike, noises: Sequence[Noise], width: float, chance: float, *, most: int | None = None
) -> bool:
    """Whether Pr[|S_v| > width] <= chance for every v, |v_j| <= |w_j|, of each row w of a matrix by itself.

    As `covering_half_widths` has it, and sooner than by them: True where their exact ones are at most `width`, and
    otherwise only where they are above it by less than they may be off the least. With `most`, of that many rows only,
    the widest.
    """
    matrix = np.abs(_matrix(weights, noises))
    matrix = matrix[matrix.any(axis=1)]
    if len(matrix) == 0:
        return True
    raised, shift = _covering(matrix)
    _, places = np.unique(raised, axis=0, return_index=True)
    if len(places) > MOST_COVERED_ROWS:
        return bool(covering_half_widths(matrix, noises, chance * len(matrix), exact=False).max() <= width)
    reach = (1.0 - 2.0 * ROUNDING_OF_WEIGHTS) * width - shift
    places = places[np.argsort(-np.square(raised[places]).sum(axis=1), kind="stable")][:most]
    return all(reach[i] > 0 and tail(raised[i], noises, float(reach[i]), chance) <= chance for i in places)


def _covering(matrix: Reals) -> tuple[Reals, Reals]:
    """Weights raised to a lattice, where tails are soon found, and the W of `covering_half_widths` for each row.

    Weights that the last digits of their computation put above a point of the lattice stay there: v times
    1 - `ROUNDING_OF_WEIGHTS` is at most as large as what is returned, so thresholds are stretched by as much.
    """
    pitch = np.exp2(np.floor(np.log2((1.0 + ROUNDING_OF_WEIGHTS) * matrix.max(axis=1))) - RAISED_BITS)[:, None]
    raised = pitch * np.ceil((1.0 - ROUNDING_OF_WEIGHTS) * matrix / pitch)
    return raised, (1.0 + 2.0**-40) * raised.sum(axis=1)


@dataclass(frozen=True, kw_only=True)
class _Rows:
    """The distinct sums of a workload: rows with equal sizes of weights on equal noises have one law."""

    matrix: Reals
    noises: Noises
    sums: Sums
    count: Reals
    equal: NDArray[np.bool_]  # False where some of the rows only agree to 2^-36
    place: NDArray[np.int64]  # of each row of the workload among the distinct ones; -1 where all weights are zero

    @staticmethod
    def of(weights: Reals, noises: Sequence[Noise]) -> _Rows:
        drawn = Noises.of(noises)
        columns = [np.flatnonzero(drawn.which == kind) for kind in dict.fromkeys(drawn.which.tolist())]
        by_noise = [np.sort(np.abs(weights[:, block]), axis=1) for block in columns]
        matrix = np.concatenate([np.empty((len(weights), 0)), *by_noise], axis=1)
        seen: dict[bytes, int] = {}
        firsts: list[int] = []
        equal, place = np.ones(len(matrix), dtype=np.bool_), np.full(len(matrix), -1)
        rounded = (matrix.view(np.int64) + (1 << 15)) >> 16
        for i in np.flatnonzero(matrix.any(axis=1)).tolist():
            first = place[i] = seen.setdefault(rounded[i].tobytes(), len(firsts))
            if first == len(firsts):
                firsts.append(i)
            elif matrix[i].tobytes() != matrix[firsts[first]].tobytes():  # no weight is negative, nor -0
                equal[first] = False
        matrix, drawn = matrix[firsts], drawn.take(np.concatenate([np.zeros(0, np.int64), *columns]))
        return _Rows(
            matrix=matrix,
            noises=drawn,
            sums=Sums.of(matrix, drawn),
            count=np.bincount(place[place >= 0], minlength=len(firsts)).astype(np.float64),
            equal=equal[: len(firsts)],
            place=place,
        )

    @cached_property
    def spreads(self) -> Reals:
        return np.sqrt(self.noises.variances)

    def tail(self, i: int, alpha: float, chernoff: float, tilted: float, exponent: float) -> float:
        """The tightest bound on Pr[|S_i| > alpha]; Chernoff's, at its best tilt, is one on Pr[|S_i| >= alpha]."""
        weights = self.matrix[i]
        if np.count_nonzero(weights) > 1:
            if chernoff < CHERNOFF_ONLY_BELOW:
                return chernoff
            near = NearLattice.of(weights, self.noises, self.spreads)
            place, beside = (alpha, 1.0) if near is None else near.split(alpha)
            if near is not None and beside <= REMAINDER_SHARE_OF_TAIL * chernoff:
                return min(chernoff, outward(_sum_tail(near.whole, self.noises, place) + beside))
            beside = 2.0 * math.exp(-min(max(exponent + (LOUDER - 1.0) * tilted * alpha, 0.0), 700.0))
            alike = _alike(weights) if beside <= ALIKE_SHIFT * chernoff else None
            if alike is not None:
                place = (1.0 - ALIKE_SHIFT) * alpha
                return min(chernoff, outward(_sum_tail(alike, self.noises, place, tilted) + beside))
        return min(chernoff, _sum_tail(weights, self.noises, alpha, tilted))

    def width(self, i: int, beta: float, outer: float) -> float:
        """The least h, or a little more, with Pr[|S_i| > h] <= beta; `outer` is Chernoff's."""
        weights = self.matrix[i]
        if np.count_nonzero(weights) > 1:
            if beta < CHERNOFF_ONLY_BELOW:
                return outer
            near = NearLattice.of(weights, self.noises, self.spreads)
            beside = math.inf if near is None else near.reach(REMAINDER_SHARE_OF_TAIL * beta)
            if near is not None and beside <= REMAINDER_SHARE_OF_WIDTH * outer:
                width = _sum_width(near.whole, self.noises, (1.0 - REMAINDER_SHARE_OF_TAIL) * beta)
                return min(outer, math.nextafter(width + beside, math.inf))
            alike = _alike(weights)
            if alike is not None:  # |D| exceeds its part of `outer` with a chance below beta exp(-(LOUDER - 1) log(2))
                width = _sum_width(alike, self.noises, (1.0 - ALIKE_SHIFT) * beta)
                return min(outer, math.nextafter(width + ALIKE_SHIFT * outer, math.inf))
        return _sum_width(weights, self.noises, beta, outer)


LOUDER = 2.0 ** (SHORT_WEIGHT_BITS - 1) * ALIKE_SHIFT
"""Of what weights that are taken for equal leave over, `ALIKE_SHIFT` of a threshold is so many times that threshold."""


def _alike(weights: Reals) -> Reals | None:
    """Weights in `SHORT_WEIGHT_BITS` digits, where that leaves no more than half as many different ones; else None.

    Least squares gives rows that count alike weights that differ in their last digits, and an inversion takes as long
    as there are different ones. With v the short weights, D = sum_j (w_j - v_j) X_j and |w_j - v_j| <= 2^-36 |v_j| and
    |w_j|, E exp(2^36 s D) <= E exp(s S): the moments of symmetric draws grow with their weights. So for every s > 0

        Pr[|S| > alpha] <= Pr[|S_v| > (1 - d) alpha] + Pr[|D| >= d alpha],
        Pr[|D| >= d alpha] <= 2 E exp(s S) exp(-2^36 d s alpha) = 2 exp(-(x + (2^36 d - 1) s alpha)),

    where exp(-x) is Chernoff's bound at s. `LOUDER` has half of 2^36 d, for all that is rounded. Whole numbers and
    short fractions stay what they are.
    """
    half = 1 << (52 - SHORT_WEIGHT_BITS)
    short = ((weights.view(np.int64) + half) & -(2 * half)).view(np.float64)
    return short if 2 * len(np.unique(short)) <= len(np.unique(weights)) else None


def _sum_tail(weights: Reals, noises: Noises, alpha: float, tilted: float | None = None) -> float:
    """The tightest bound on Pr[|S| > alpha] for one sum with a weight that is not zero."""
    terms = _few_terms(weights, noises)
    if terms is not None:
        return _tail_of(terms, alpha)
    raised, shift = _raised(weights, noises, alpha)
    return Inversion.of(_alone(raised, noises), alpha - shift, tilted).upper(alpha - shift)


def _sum_width(weights: Reals, noises: Noises, beta: float, outer: float | None = None) -> float:
    """The least h, or a little more, with Pr[|S| > h] <= beta, for one sum with a weight that is not zero.

    `outer` is Chernoff's, where it is known.
    """
    terms = _few_terms(weights, noises)
    if terms is not None:
        return _width_of(terms, beta)
    outer = float(chernoff_width(_alone(weights, noises), beta)[0]) if outer is None else outer
    raised, shift = _raised(weights, noises, outer)
    width = _inverted_width(_alone(raised, noises), beta, None if shift else outer)
    return min(outer, math.nextafter(width + shift, math.inf)) if shift else width


def _raised(weights: Reals, noises: Noises, near: float) -> tuple[Reals, float]:
    """Weights that are at least as large and of which few are different, and how far a threshold moves for them.

    An inversion takes as long as there are different terms, and estimates from a strategy for very many cells are sums
    of as many as there are rows in it. Raised to multiples of a part of the largest, most weights are equal to others.

    Guarantees: Pr[|S| > alpha + shift] is at most the chance that the raised sum is beyond alpha (the argument is that
    of `covering_half_widths`); the spread grows by `RAISED_SPREAD` at most, and the shift is a small part of `near`.
    Edge cases: the weights themselves, and 0, where that cannot be had, or would gain little.
    """
    if np.count_nonzero(weights) <= MANY_TERMS:
        return weights, 0.0
    largest = float(weights.max())
    limit = RAISED_SPREAD**2 * float(np.square(weights) @ noises.variances)
    for bits in range(RAISED_BITS, 4 * RAISED_BITS):
        pitch = 2.0 ** (math.floor(math.log2(largest)) - bits)
        raised = pitch * np.ceil(weights / pitch)
        shift = (1.0 + 2.0**-40) * float(raised.sum())
        if float(np.square(raised) @ noises.variances) <= limit and shift <= RAISED_SHIFT * near:
            return raised, shift
    return weights, 0.0


def _alone(weights: Reals, noises: Noises) -> Sums:
    return Sums.of(weights[None, :], noises).row(0)


SumTerms = tuple[tuple[float, Noise, int], ...]
"""A sum: weights, none of them zero, each with the noise that it weighs and the number of such terms."""


def _few_terms(weights: Reals, noises: Noises) -> SumTerms | None:
    """The terms of a sum whose bounds are worth remembering; None where it has too many kinds of them."""
    present = np.flatnonzero(weights)
    if len(present) > REMEMBERED_TERMS and len(np.unique(weights[present])) > REMEMBERED_TERMS:
        return None
    counts = Counter(zip(weights[present].tolist(), noises.which[present].tolist(), strict=True))
    terms = ((weight, noises.kinds.noises[kind], count) for (weight, kind), count in counts.items())
    return tuple(terms) if len(counts) <= REMEMBERED_TERMS else None


@lru_cache(maxsize=REMEMBERED_SUMS)
def _tail_of(terms: SumTerms, alpha: float) -> float:
    weight, noise, count = terms[0]
    if len(terms) == count == 1:
        return beyond(noise, steps(alpha, weight))
    return _inverted(_row(terms), alpha)


def _inverted(row: Sums, alpha: float) -> float:
    return Inversion.of(row, alpha).upper(alpha)


@lru_cache(maxsize=REMEMBERED_SUMS)
def _width_of(terms: SumTerms, beta: float) -> float:
    weight, noise, count = terms[0]
    if len(terms) == count == 1:
        return _multiple(int(half_width(noise, beta)), weight)
    return _inverted_width(_row(terms), beta)


def _inverted_width(row: Sums, beta: float, outer: float | None = None) -> float:
    outer = float(chernoff_width(row, beta)[0]) if outer is None else outer
    made_for, covers = math.inf, outer
    while 1e-6 * outer < covers < 0.7 * made_for:
        made_for, fails = covers, 0.0
        inversion = Inversion.of(row, made_for)
        while 1e-6 * outer < covers and covers - fails > 0.002 * covers:
            middle = 0.5 * (fails + covers)
            fails, covers = (fails, middle) if inversion.upper(middle) <= beta else (middle, covers)
    if inversion.pitch is None:
        return covers
    # No value of S lies strictly between two points of its lattice.
    return _multiple(steps(covers, inversion.pitch) - 1, inversion.pitch)


def _row(terms: SumTerms) -> Sums:
    weights, noises, counts = zip(*terms, strict=True)
    each = Noises(Kinds(noises), np.arange(len(noises)))  # to find equal ones would take longer than it saves
    return Sums.of(np.array([weights]), each, np.array(counts, np.float64)).row(0)


def _multiple(k: int, unit: float) -> float:
    """k times unit, rounded up."""
    product = k * unit
    return product if Fraction(product) >= k * Fraction(unit) else math.nextafter(product, math.inf)


def chernoff_tails(sums: Sums, alphas: Reals) -> tuple[Reals, Reals, Reals]:
    """For each row the tilt, the exponent and a bound on both tails, a block of rows at a time.

    The bound is Chernoff's, but for the widest draw of a row, which has a tail of its own.
    """
    blocks = []
    for block in _blocks(sums):
        some = sums.rows(block)
        s, exponent = chernoff_exponent(some, alphas[block])
        blocks.append((s, exponent, some.log_spared(s)))
    s, exponent, spared = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    bound = np.where(exponent > 0.0, np.exp(np.minimum(spared - exponent, 0.0)), 1.0)
    return s, exponent, np.clip(2.0 * (1.0 + ROUNDING_OF_SPARED_TAILS) * bound, TINY, 1.0)


def _of_widest_draws(matrix: Reals, noises: Sequence[Noise], alpha: float) -> float:
    """A bound from below on the sum over rows of Pr[|S_i| > alpha], by the widest draw of each row if it is Laplace.

    With X that draw and R the rest of S, all symmetric and independent, R has the sign of wX, or is 0, at least every
    second time: Pr[|S| > alpha] >= Pr[|wX| > alpha] / 2. For discrete Laplace noise, a = e^(-1/scale), Pr[|X| >= k] is
    2 a^k / (1 + a), with k taken larger by 1 than it need be: more than rounding can move it.
    """
    drawn, sizes = Noises.of(noises), np.abs(matrix)
    widest = np.argmax(sizes * np.sqrt(drawn.variances), axis=1)
    laplace = drawn.laplace[widest]
    weight, scale = sizes[np.arange(len(sizes)), widest][laplace], drawn.scales[widest][laplace]
    k = np.floor(alpha / weight) + 2.0
    return float((np.exp(-k / scale) / (1.0 + np.exp(-1.0 / scale))).sum()) * (1.0 - ROUNDING_OF_RARE_DRAWS)


def _of_rare_draws(matrix: Reals, noises: Sequence[Noise], alpha: float) -> tuple[float, float]:
    """Bounds on the sum over rows of Pr[|S_i| > alpha], where noise is nearly always zero: from below, and from above.

    With p_j = Pr[X_j != 0] and Z the chance that all rare draws of a row are zero, some is not with 1 - Z, and one
    alone is not with Z p_j / (1 - p_j). What other draws add is within alpha but for q, by Chernoff's bound. So S_i is
    beyond alpha with at most 1 - Z + q, and with at least 1 - q times the chance of one draw alone whose weight is
    above 2 alpha; above alpha where there are no other draws.
    Edge cases: 0 and 1, which say nothing, where no draws are rare.
    """
    drawn = Noises.of(noises)
    kinds = np.array([beyond(noise, 1) for noise in drawn.kinds.noises])
    chances = kinds[drawn.which]
    rare = chances <= MOST_RARE
    others = matrix[:, ~rare]
    others = others[others.any(axis=1)]
    if not rare.any():
        return 0.0, 1.0
    strays = min(_quick(others, drawn.take(~rare), alpha), 1.0) if len(others) else 0.0
    sizes, chances = np.abs(matrix[:, rare]), chances[rare]
    calm = (sizes > 0) @ np.log1p(-chances)
    far = sizes > (2 if len(others) else 1) * alpha * (1 + ROUNDING_OF_SPARED_TAILS)
    alone = float((np.exp(calm) * (far @ (chances / (1 - chances)))).sum())
    most = float(-np.expm1(calm).sum()) + strays
    return alone * (1 - strays) * (1 - ROUNDING_OF_RARE_DRAWS), most * (1 + ROUNDING_OF_SPARED_TAILS)


def _of_smooth_draws(matrix: Reals, noises: Sequence[Noise], alpha: float) -> tuple[float, float]:
    """Bounds on the sum over rows of Pr[|S_i| > alpha], where all noise is Gaussian of a large scale: below, and above.

    Let N be normal with variance 1. X + N, X discrete with scale s, has at y the density of a normal Y of variance
    s^2 + 1, times sum_x exp(-(x - c)^2 / (2 t^2)) s / (t Z), with t^2 = s^2 / (s^2 + 1), c = y t^2 and Z the sum of all
    exp(-x^2 / (2 s^2)). By Poisson's formula the two sums are t sqrt(2 pi) and s sqrt(2 pi), but for parts of
    2 sum_k exp(-2 pi^2 t^2 k^2) and less: below 6e-9 for s >= 1000. So all that n draws do beside such N has the chance
    that normal draws give it, but for a factor of (1 - 6e-9)^2n to (1 + 6e-9)^2n. With W = sum_j w_j N_j and any d,

        Pr[|S + W| > alpha + d] - Pr[|W| > d] <= Pr[|S| > alpha] <= Pr[|S + W| > alpha - d] + Pr[|W| > d].

    d = 6.5 spreads of W leaves 1e-10 beyond it.
    Edge cases: 0 and 1, which say nothing, for other noise.
    """
    drawn = Noises.of(noises)
    if any(noise.kind is not NoiseKind.GAUSSIAN or noise.scale < SMOOTH_SCALE for noise in drawn.kinds.noises):
        return 0.0, 1.0
    squares = np.square(matrix)
    added = np.sqrt(squares.sum(axis=1))
    scales = np.array([noise.scale for noise in drawn.kinds.noises])[drawn.which]
    spread = np.sqrt(squares @ (np.square(scales) + 1.0))
    near, far = (sum(map(math.erfc, (alpha + way * added) / (math.sqrt(2.0) * spread))) for way in (-6.5, 6.5))
    factor = math.exp(2 * 6e-9 * matrix.shape[1]) * (1 + ROUNDING_OF_SPARED_TAILS)
    beyond_d = len(matrix) * 1e-10
    return far * (1 - 2**-30) / factor - beyond_d, near * (1 + 2**-30) * factor + beyond_d


def _quick(weights: Reals, noises: Sequence[Noise], alpha: float) -> float:
    """The sum over the rows, none of them zero, of a bound that takes one pass over the matrix."""
    sums = Sums.of(weights, noises)
    exponents = [quick_exponent(sums.rows(block), np.array([alpha])) for block in _blocks(sums)]
    # No probability is above 1, and exp of a bound that says nothing would overflow.
    return 2.0 * float(np.exp(np.minimum(-np.concatenate(exponents), 0.0)).sum())


def _blocks(sums: Sums) -> list[slice]:
    rows, size = len(sums.parts[0].weight), max(1, NUMBERS_AT_ONCE // int(sums.terms()))
    return [slice(start, start + size) for start in range(0, rows, size)]


def _matrix(weights: ArrayLike, noises: Sequence[Noise]) -> Reals:
    matrix = np.asarray(weights, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[1] != len(noises):
        raise GoalError("weights must be a matrix with one column for each noise")
    sizes = np.abs(matrix)
    if not np.all((sizes == 0.0) | ((sizes >= 1.0 / LARGEST_WEIGHT) & (sizes <= LARGEST_WEIGHT))):
        raise GoalError("a weight must be zero, or between 2^-300 and 2^300 in size")
    return matrix


REMEMBERED_ROWS = 1 << 16
"""How many bounds on grouped rows are remembered."""

MOST_DRAWS = 4096
"""Rows of up to this many draws have exact half-widths; larger ones, Chernoff's."""


class DrawTerm(NamedTuple):
    """`draws` independent draws of a noise, each times the weight."""

    weight: float
    noise: Noise
    draws: int
    bounded: bool = False  # the noise is a stand-in, no lighter in its moments than what was drawn


Terms = tuple[DrawTerm, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupedRows:
    """The law of rows that add up very many draws of a few noises: equal terms are counted, not listed.

    Row i errs by the sum of its terms; errors of different rows may depend on each other.

    Guarantees: as `tails`: bounds are never below the truth, rounding included. A term that is only bounded has its
    moments bounded, so a row with such a term has Chernoff's bound and no tighter one.
    """

    rows: tuple[Terms, ...]

    @cached_property
    def _distinct(self) -> Counter[Terms]:
        return Counter(row for row in self.rows if row)

    def tail(self, alpha: float, enough: float) -> float:
        if alpha <= 0:
            return 1.0 if self.rows else 0.0
        if not self._distinct:
            return 0.0
        quick = sum(count * _grouped_chernoff(row, alpha) for row, count in self._distinct.items())
        if quick <= enough:
            return outward(quick)
        return min(1.0, outward(sum(count * _grouped_tail(row, alpha) for row, count in self._distinct.items())))

    def half_widths(self, beta: float) -> Reals:
        each = beta / max(len(self.rows), 1)
        widths = {row: _grouped_width(row, each) for row in self._distinct}
        return np.array([widths[row] if row else 0.0 for row in self.rows])

    def mean_square(self) -> float:
        return float(np.mean([_grouped_variance(row) for row in self.rows])) if self.rows else 0.0


@lru_cache(REMEMBERED_ROWS)
def _grouped_sums(row: Terms) -> Sums:
    weights, counts = np.array([[term.weight for term in row]]), np.array([term.draws for term in row], np.float64)
    return Sums.of(weights, [term.noise for term in row], counts)


@lru_cache(REMEMBERED_ROWS)
def _grouped_chernoff(row: Terms, alpha: float) -> float:
    _, exponent = chernoff_exponent(_grouped_sums(row), np.array([alpha]))
    return min(1.0, 2.0 * float(np.exp(-max(exponent[0], 0.0))))


@lru_cache(REMEMBERED_ROWS)
def _grouped_tail(row: Terms, alpha: float) -> float:
    chernoff = _grouped_chernoff(row, alpha)
    if _grouped_variance(row) > alpha**2 or any(term.bounded for term in row):
        return chernoff
    return min(chernoff, Inversion.of(_grouped_sums(row), alpha).upper(alpha))


@lru_cache(REMEMBERED_ROWS)
def _grouped_width(row: Terms, beta: float) -> float:
    if any(term.bounded for term in row) or sum(term.draws for term in row) > MOST_DRAWS:
        return float(chernoff_width(_grouped_sums(row), beta)[0])
    drawn = [term for term in row for _ in range(term.draws)]
    return float(half_widths([[term.weight for term in drawn]], [term.noise for term in drawn], beta)[0])


def _grouped_variance(row: Terms) -> float:
    return sum(term.draws * term.weight**2 * term.noise.variance() for term in row)
