"""How long a random order takes to be fair: collecting coupons (Multi-Analyst DP, Theorems 2, 3, 8 and 9)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from bursar.errors import QueryError

PIECES = 64
"""Panels of the integral, each with a rule of 16 points: the integrand is smooth, and 0 or 1 outside of them."""

NEGLIGIBLE = 1e-12
"""Where the integrand is so close to 0 or 1, the integral is cut off."""


def expected_turns(quotas: Sequence[int], weights: Sequence[float]) -> float:
    """The expected number of draws until each analyst i was drawn quotas[i] times, drawn in proportion to weights.

    T(m, p) = P int_0^inf (1 - prod_i (1 - S_{m_i}(p_i t) e^{-p_i t})) dt, S_m(t) = sum_{k<m} t^k / k!, P = sum p_i
    (Theorem 2). S_m(x) e^{-x} is the probability that a Poisson variable of mean x stays below m.
    Edge cases: quotas of 0 are met from the start; without any other quota 0 draws are needed.
    Differs: Corollary 1's closed form k (log k + (m - 1) log log k + o(1)), which Theorems 8 and 9 print, holds for
    many analysts and a fixed quota; for k = 10, m = 100 it says 849, fewer than the 1,000 that are needed at least.
    """
    m, p = np.asarray(quotas, np.int64), np.asarray(weights, np.float64)
    if m.shape != p.shape or m.ndim != 1 or np.any(m < 0) or not np.all(np.isfinite(p) & (p > 0)):
        raise QueryError("one quota of at least 0 and one weight above 0 are needed per analyst")
    m, p, total = m[m > 0], p[m > 0], float(p.sum())
    if len(m) == 0:
        return 0.0
    low, high = _ends(m, p)
    nodes, shares = np.polynomial.legendre.leggauss(16)
    edges = np.linspace(low, high, PIECES + 1)
    half = np.diff(edges) / 2
    t = (edges[:-1, None] + half[:, None] * (1 + nodes)).ravel()
    inside = float(np.sum(_missing(t, m, p).reshape(PIECES, -1) * shares * half[:, None]))
    return total * (low + inside)


def turns_at_most(quotas: Sequence[int], weights: Sequence[float]) -> float:
    """Theorem 3, the bound behind Theorem 9: T(m, p) <= (p_max / p_min) T(m_max, 1)."""
    spread = max(weights) / min(weights)
    return spread * expected_turns([max(quotas)] * len(quotas), [1.0] * len(quotas))


def _missing(t: np.ndarray, m: np.ndarray, p: np.ndarray) -> np.ndarray:
    """The probability that at time t of a Poisson process somebody's quota is not met yet."""
    from scipy.special import gammainc  # slow to import, and seldom needed

    met = gammainc(m[None, :].astype(float), p[None, :] * t[:, None])
    return np.asarray(1.0 - met.prod(axis=1))


def _ends(m: np.ndarray, p: np.ndarray) -> tuple[float, float]:
    """From where to where the integrand is neither 1 nor 0."""
    middle = float((m / p).max())
    low, high = middle, 2 * middle
    while low > middle * 1e-9 and _missing(np.array([low]), m, p)[0] < 1 - NEGLIGIBLE:
        low /= 1.25
    while _missing(np.array([high]), m, p)[0] > NEGLIGIBLE / max(math.log(high / middle), 1):
        high *= 1.25
    return (low if low > middle * 1e-9 else 0.0), high
