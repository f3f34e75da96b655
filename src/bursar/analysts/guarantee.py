"""What analysts can rely on under a policy, in words, for `bursar budget` and EXPLAIN.

Three properties (Multi-Analyst DP, Definitions 3 to 5), each about the number of questions answered well enough:
sharing incentive: nobody gets fewer than alone with the own share; non-interference: nobody gets fewer because one of
the others takes part; analyst monotonicity: the same in every group of analysts, which implies the two others.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from bursar.analysts.fairness_bounds import expected_turns
from bursar.analysts.settings import Settings
from bursar.core.budget import Budget

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
            alike = (one.name for one in self.promises if (one.holds, one.because) == (holds, because))
            lines.append(f"  {', '.join(alike)}: {'yes' if holds else 'not promised'}, {because}")
        return "\n".join([*lines, f"  collusion: {self.collusion}"])

    @property
    def short(self) -> str:
        """One line for EXPLAIN."""
        held = [promise.name for promise in self.promises if promise.holds]
        what = " and ".join([", ".join(held[:-1]), held[-1]]) if len(held) > 1 else "".join(held)
        said = f"holds, under the conditions that the budget shows: {what}" if held else "no promise between analysts"
        return f"sharing: {self.policy}; {said}"


def guarantee_of(settings: Settings, budget: Budget) -> Guarantee:
    """What holds under these settings."""
    named = settings.policy if settings.scheduler == "none" else f"{settings.policy} behind {settings.scheduler}"
    found = {
        "independent": _independent,
        "seeded-cache": _seeded_cache,
        "shared": _shared,
    }[settings.policy](settings)
    return Guarantee(policy=named, promises=found, collusion=collusion(settings, budget))


def _all(because: str) -> tuple[Promise, ...]:
    names = ("sharing incentive", "non-interference", "analyst monotonicity")
    return tuple(Promise(name=name, holds=True, because=because) for name in names)


def _independent(settings: Settings) -> tuple[Promise, ...]:
    return _all("since nothing is shared: each analyst is served from the own share and the own measurements")


def _seeded_cache(settings: Settings) -> tuple[Promise, ...]:
    return _all(f"{GOALS}. A question that your share cannot pay for ends your purchases for good: EXPLAIN it first")


def _shared(settings: Settings) -> tuple[Promise, ...]:
    incentive = {
        "none": Promise(name="sharing incentive", holds=False, because="who asks first is served first"),
        "round-robin": _round_robin(settings),
        "randomized": _randomized(settings),
    }[settings.scheduler]
    seen = "the planner sees everybody's measurements, so what one analyst asks changes what another pays"
    others = ("non-interference", "analyst monotonicity")
    return (incentive, *(Promise(name=name, holds=False, because=seen) for name in others))


def _round_robin(settings: Settings) -> Promise:
    shares = list(settings.shares.values())
    turns = "equal shares" if len(set(shares)) <= 1 else "turns in proportion to shares"
    return Promise(
        name="sharing incentive",
        holds=True,
        because=f"if, with {turns}, a budget k times as large answers at least the first k times as many questions as "
        "one share does (Theorem 7), and everybody has a question ready or passes",
    )


def _randomized(settings: Settings) -> Promise:
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


def collusion(settings: Settings, budget: Budget) -> str:
    """The worst case where analysts put together what they have seen, and what one of them sees alone."""
    together = f"analysts who put everything they saw together know what the whole budget reveals, {budget.describe()}"
    if settings.policy == "independent" and settings.shares:
        largest = max(settings.shares.values(), default=Fraction(1))
        alone = f"one alone knows what the own share reveals, at most {float(largest):.3g} of it"
    else:
        alone = "one alone may be shown rows that others paid for, so the same bound holds for one"
    return f"{together}; {alone}. Shares limit what analysts cause, never what people are protected by"
