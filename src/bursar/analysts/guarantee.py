"""What analysts can rely on under a policy, in words, for `bursar budget` and EXPLAIN.

Three properties (Multi-Analyst DP, Definitions 3 to 5), each about the number of questions answered well enough:
sharing incentive: nobody gets fewer than alone with the own share; non-interference: nobody gets fewer because one of
the others takes part; analyst monotonicity: the same in every group of analysts, which implies the two others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from bursar.analysts.shares import AnalystSettings
from bursar.core.budget import Budget
from bursar.errors import QueryError
from bursar.lazy_dataclass import dataclass
from bursar.report.status import budget_words

GOALS = (
    "as long as goals are in rows or in % of a public size. It is exact for expected errors over one set of columns; "
    "the tail of an error, and bounds over several sets of columns, can differ a little"
)
EXAMPLE = 100
"""Questions per analyst in the example of a randomized order."""


@dataclass(frozen=True, kw_only=True)
class Promise:
    """One property: whether it holds, and under what condition or why not."""

    name: str
    holds: bool
    because: str


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """All that is promised about sharing one budget."""

    policy: str
    promises: tuple[Promise, ...]
    collusion: str

    def __str__(self) -> str:
        reasons = dict.fromkeys((promise.holds, promise.because) for promise in self.promises)
        lines = [f"sharing: {self.policy}"]
        for holds, because in reasons:
            alike = (promise.name for promise in self.promises if (promise.holds, promise.because) == (holds, because))
            lines.append(f"  {', '.join(alike)}: {'yes' if holds else 'not promised'}, {because}")
        return "\n".join([*lines, f"  collusion: {self.collusion}"])

    @property
    def short(self) -> str:
        """One line for EXPLAIN."""
        held = [promise.name for promise in self.promises if promise.holds]
        what = " and ".join([", ".join(held[:-1]), held[-1]]) if len(held) > 1 else "".join(held)
        said = f"holds, under the conditions that the budget shows: {what}" if held else "no promise between analysts"
        return f"sharing: {self.policy}; {said}"


def guarantee_of(settings: AnalystSettings, budget: Budget) -> Guarantee:
    """What holds under these settings."""
    named = settings.policy if settings.scheduler == "none" else f"{settings.policy} behind {settings.scheduler}"
    promises = {
        "independent": _independent,
        "seeded-cache": _seeded_cache,
        "shared": _shared,
    }[settings.policy](settings)
    return Guarantee(policy=named, promises=promises, collusion=collusion(settings, budget))


def _all(because: str) -> tuple[Promise, ...]:
    names = ("sharing incentive", "non-interference", "analyst monotonicity")
    return tuple(Promise(name=name, holds=True, because=because) for name in names)


def _independent(settings: AnalystSettings) -> tuple[Promise, ...]:
    return _all("since nothing is shared: each analyst is served from the own share and the own measurements")


def _seeded_cache(settings: AnalystSettings) -> tuple[Promise, ...]:
    return _all(f"{GOALS}. A question that your share cannot pay for ends your purchases for good: EXPLAIN it first")


def _shared(settings: AnalystSettings) -> tuple[Promise, ...]:
    incentive = {
        "none": Promise(name="sharing incentive", holds=False, because="who asks first is served first"),
        "round-robin": _round_robin(settings),
        "randomized": _randomized(settings),
    }[settings.scheduler]
    seen = "the planner sees everybody's measurements, so what one analyst asks changes what another pays"
    others = ("non-interference", "analyst monotonicity")
    return (incentive, *(Promise(name=name, holds=False, because=seen) for name in others))


def _round_robin(settings: AnalystSettings) -> Promise:
    shares = list(settings.shares.values())
    turns = "equal shares" if len(set(shares)) <= 1 else "turns in proportion to shares"
    return Promise(
        name="sharing incentive",
        holds=True,
        because=f"if, with {turns}, a budget k times as large answers at least the first k times as many questions as "
        "one share does (Theorem 7), and everybody has a question ready or passes",
    )


def _randomized(settings: AnalystSettings) -> Promise:
    shares = list(settings.shares.values())
    because = (
        "if the whole budget answers at least the first T questions, T the expected number of turns until everybody "
        "has had as many as the own share would answer (Theorems 8 and 9 with the integral of Theorem 2)"
    )
    if len(shares) > 1:
        quotas = [max(round(EXAMPLE * share * len(shares) / sum(shares)), 1) for share in shares]
        turns = expected_turns(quotas, [1.0] * len(shares))
        because += f": for {EXAMPLE} questions per analyst on average and equal chances T is {turns:.0f}"
    return Promise(name="sharing incentive", holds=True, because=because)


def collusion(settings: AnalystSettings, budget: Budget) -> str:
    """The worst case where analysts put together what they have seen, and what one of them sees alone."""
    together = (
        f"analysts who put everything they saw together know what the whole budget reveals, {budget_words(budget)}"
    )
    if settings.policy == "independent" and settings.shares:
        largest = max(settings.shares.values(), default=Fraction(1))
        alone = f"one alone knows what the own share reveals, at most {float(largest):.3g} of it"
    else:
        alone = "one alone may be shown rows that others paid for, so the same bound holds for one"
    return f"{together}; {alone}. Shares limit what analysts cause, never what people are protected by"


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
