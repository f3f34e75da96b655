"""How Boost turns an accuracy into an epsilon: as in its figures, and as its text prints it.

alpha is a fraction of the n rows asked about; neighbours replace one row, and n is public, so a query moves by 1/n.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np

SIMULATED = 10_000
"""Draws of the Monte Carlo calibration."""


def laplace(alpha: float, beta: float, n: int) -> float:
    """ln(1/beta) / (n alpha): Laplace noise of scale 1 / (epsilon n) exceeds alpha with probability beta."""
    return math.log(1 / beta) / (n * alpha)


def printed(alpha: float, beta: float, n: int) -> float:
    """4 ln(1/beta) / (n alpha): Alg. 1 line 7, Thm. A.3."""
    return 4 * math.log(1 / beta) / (n * alpha)


@cache
def sparse_vector(alpha: float, beta: float, n: int) -> float:
    """The least epsilon with (1/2 + x/4) exp(-x) <= beta, x = alpha n epsilon / 2: a test misses an error of alpha."""
    return 2 * _least(lambda x: (0.5 + x / 4) * math.exp(-x), beta) / (alpha * n)


def vanilla(alpha: float, beta: float, n: int) -> float:
    """The least epsilon with exp(-2x) + (1/2 + x/4) exp(-x) <= beta, x as above: Lemma A.2 with its n."""
    return 2 * _least(lambda x: math.exp(-2 * x) + (0.5 + x / 4) * math.exp(-x), beta) / (alpha * n)


@cache
def together(alpha: float, beta: float, n: int, parts: int) -> float:
    """The least epsilon, by simulation, with Pr[|sum of `parts` Lap(1/epsilon)| > n alpha] <= beta.

    One part has the closed form. The draws are the same whenever the same is asked.
    """
    if parts == 1:
        return laplace(alpha, beta, n)
    rng = np.random.default_rng([n, parts])
    sums = np.sort(np.abs(rng.laplace(size=(SIMULATED, parts)).sum(axis=1)))
    return float(sums[SIMULATED - 1 - int(SIMULATED * beta)]) / (n * alpha)


def _least(failure: Callable[[float], float], beta: float) -> float:
    """Where a falling function comes down to beta."""
    low, high = 0.0, 4 * math.log(1 / beta) + 4
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (low, middle) if failure(middle) <= beta else (middle, high)
    return high
