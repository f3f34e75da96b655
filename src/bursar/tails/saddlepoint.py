"""Where the tail of a sum of noise falls to a given probability, nearly: a starting point for who then makes sure.

For a sum S of independent draws with cumulant function K, Pr[S >= t] is about Q(w) + phi(w)(1/v - 1/w), where
K'(s) = t, w^2 = 2(st - K(s)) and v^2 = s^2 K''(s) (Lugannani and Rice, 1980). It is exact for normal draws, and off by
a few per cent of the probability for Laplace draws. Discrete noise is taken for continuous.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from bursar.arrays import Reals
from bursar.core.accounting import NoiseKind

STEPS = 30
ROUNDS = 15

CENTRE = 1e-3
"""Below so many standard deviations the normal tail does, and the correction to it would be lost in rounding."""

FARTHEST = 1e12
"""So many scales out, a Laplace draw's tail is nothing, and a tilt would be rounded to where K ceases to be finite."""


def near_threshold(scales: Reals, kind: NoiseKind, beta: float) -> float:
    """About the t with sum_i Pr[|S_i| >= t] = beta, S_i the sum of draws of the given scales, one row for each sum.

    Edge cases: a row without a positive scale is left out; 0 where none is left.
    """
    rows = scales[scales.max(axis=1, initial=0.0) > 0]
    if not len(rows):
        return 0.0
    spread = math.sqrt(float(np.square(rows).sum(axis=1).max()) * (1 if kind is NoiseKind.GAUSSIAN else 2))
    t = -NormalDist().inv_cdf(min(beta, 1.0) / 2) * spread  # as if the widest row were alone, and normal
    t = max(t, CENTRE * spread)
    low, high = 0.0, math.inf
    for _ in range(ROUNDS):
        s, tails = _tails(rows, kind, np.full(len(rows), t))
        total = float(tails.sum())
        low, high = (t, high) if 2 * total > beta else (low, t)
        # Newton's step, as the logarithm of a tail falls by about s for each unit of t; within what is known. Near the
        # centre, where s is close to zero, it would go much too far.
        t += min(math.log(2 * total / beta) / float(s @ tails / total), 2 * spread)
        if not low < t < high:
            t = 2 * low if high == math.inf else math.sqrt(low * high) if low > 0 else high / 2
        if high < (1 + 1e-4) * low:
            break
    return t


def near_tails(scales: Reals, kind: NoiseKind, thresholds: Reals) -> Reals:
    """About Pr[|S_i| >= t_i], each t_i > 0, for sums of draws of the given scales, one row for each.

    Edge cases: 0 for a row without a positive scale.
    """
    some = scales.max(axis=1, initial=0.0) > 0
    found = np.zeros(len(scales))
    if some.any():
        _, tails = _tails(scales[some], kind, thresholds[some])
        found[some] = np.minimum(2 * tails, 1.0)
    return found


def _tails(rows: Reals, kind: NoiseKind, t: Reals) -> tuple[Reals, Reals]:
    """The tilt s and Pr[S >= t], for each row."""
    if kind is NoiseKind.LAPLACE:
        t = np.minimum(t, FARTHEST * rows.max(axis=1))
    s = _first(rows, kind, t)
    for _ in range(STEPS):
        _, slope, bend = _cumulants(rows, kind, s)
        s, before = s - (slope - t) / bend, s
        if np.all(np.abs(s - before) <= 1e-8 * s):
            break
    value, _, bend = _cumulants(rows, kind, s)
    w, v = np.sqrt(2 * np.maximum(s * t - value, 0.0)), s * np.sqrt(bend)
    normal = np.array([math.erfc(each) for each in w / math.sqrt(2)]) / 2
    off = np.minimum(w, v) > CENTRE
    more = np.divide(w - v, w * v, out=np.zeros_like(w), where=off)
    return s, np.maximum(normal + np.exp(-np.square(w) / 2) / math.sqrt(2 * math.pi) * more, 1e-300)


def _first(rows: Reals, kind: NoiseKind, t: Reals) -> Reals:
    """A tilt not below the right one: K' is convex, and from there Newton's steps do not turn back."""
    if kind is NoiseKind.GAUSSIAN:
        return np.asarray(t / np.square(rows).sum(axis=1))
    widest = rows.max(axis=1)  # alone it has K' = 2s/(widest^-2 - s^2), and the others add to that
    return np.asarray(t / np.square(widest) / (1 + np.hypot(1, t / widest)))


def _cumulants(rows: Reals, kind: NoiseKind, s: Reals) -> tuple[Reals, Reals, Reals]:
    """K(s), K'(s) and K''(s) for each row; a draw of Laplace noise of scale x has K = -log(1 - x^2 s^2)."""
    squares = np.square(rows)
    if kind is NoiseKind.GAUSSIAN:
        spread = squares.sum(axis=1)
        return spread * np.square(s) / 2, spread * s, spread
    tilted = squares * np.square(s)[:, None]
    rest = 1 - tilted
    slope = (2 * squares / rest).sum(axis=1) * s
    return -np.log(rest).sum(axis=1), slope, (2 * squares * (1 + tilted) / np.square(rest)).sum(axis=1)
