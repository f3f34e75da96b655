"""Policies side by side: utility, ratio error, interference and time to completion for the same questions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from bursar.analysts.scheduler import Randomized, RoundRobin, Scheduler
from bursar.analysts.settings import Seed
from bursar.config import Config
from bursar.errors import AnalystError
from bursar.simulate.measures import Utilities, interference, ratio_error
from bursar.simulate.mix import Asked
from bursar.simulate.order import served
from bursar.simulate.trial import Policy, utilities

POLICIES = (
    Policy(name="one budget", shares=False),
    Policy(name="shared"),
    Policy(name="round-robin", scheduler="round-robin"),
    Policy(name="randomized", scheduler="randomized"),
    Policy(name="independent", policy="independent"),
    Policy(name="seeded-cache", policy="seeded-cache"),
)
"""What a config can say. "one budget" has no shares; "round-robin" and "randomized" stand in front of "shared"."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class Figures:
    """What one policy does for these analysts; see `measures`."""

    policy: str
    asked: int
    answered: float  # the sum of all utilities
    utility: Mapping[str, float]  # by analyst
    ratio_error: float
    interference: float
    steps: float  # time to completion


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What is compared: the same questions and shares for every policy."""

    config: Config
    arrivals: Sequence[Asked]
    shares: Mapping[str, Fraction]
    seed: Seed | None = None
    lots: int = 3  # orders by lot that are averaged
    wanted: Mapping[str, Any]

    @property
    def policies(self) -> tuple[Policy, ...]:
        """All of them; without a seed there is nothing to put into its cache."""
        return tuple(one for one in POLICIES if one.policy != "seeded-cache" or self.seed is not None)


def shares_of(config: Config, analysts: Sequence[str]) -> dict[str, Fraction]:
    """The shares of those who ask: the config's, or equal ones where it has none."""
    declared = config.analysts.shares
    if not declared:
        return {who: Fraction(1, len(analysts)) for who in analysts}
    if unknown := [who for who in analysts if who not in declared]:
        raise AnalystError(f"{unknown[0]!r} has no share in the config\ntry: one of {', '.join(declared)}")
    return {who: declared[who] for who in analysts}


def compare(setting: Setting, progress: Progress = lambda done, of: None) -> list[Figures]:
    """Every policy on the same questions: all together, each alone, and all without each.

    Guarantees: nothing is read from or charged to the real data set; noise is drawn, and nothing depends on it.
    """
    policies, found = setting.policies, []
    alone: dict[str, Utilities] = {}  # by policy: one who is alone has the whole budget, and no turns to wait for
    for place, policy in enumerate(policies):
        kind = "seeded-cache" if policy.policy == "seeded-cache" else "shared"
        if kind not in alone:
            alone[kind] = {who: _mean(setting, policy, [who])[0][who] for who in setting.shares}
        found.append(_figures(setting, policy, alone[kind]))
        progress(place + 1, len(policies))
    return found


def _figures(setting: Setting, policy: Policy, alone: Utilities) -> Figures:
    everybody = list(setting.shares)
    joint, steps = _mean(setting, policy, everybody)
    without = {who: _mean(setting, policy, [other for other in everybody if other != who])[0] for who in everybody}
    return Figures(
        policy=policy.name,
        asked=len(setting.arrivals),
        answered=sum(joint.values()),
        utility=joint,
        ratio_error=ratio_error(alone, joint),
        interference=interference(without, joint),
        steps=steps,
    )


def _mean(setting: Setting, policy: Policy, members: Sequence[str]) -> tuple[Utilities, float]:
    """Utilities and steps of a collective, averaged over several lots where the order is drawn."""
    if not members:
        return {}, 0.0
    runs = setting.lots if policy.scheduler == "randomized" and len(members) > 1 else 1
    tries = [_once(setting, policy, members) for _ in range(runs)]
    mean = {who: sum(answered[who] for answered, _ in tries) / runs for who in members}
    return mean, sum(steps for _, steps in tries) / runs


def _once(setting: Setting, policy: Policy, members: Sequence[str]) -> tuple[Utilities, int]:
    shares = {who: setting.shares[who] for who in members}
    arrivals = [asked for asked in setting.arrivals if asked.analyst in shares]
    order, steps = served(arrivals, _scheduler(setting, policy, shares))
    found = utilities(setting.config, policy, order, shares=shares, seed=setting.seed, **setting.wanted)
    return found, steps


def _scheduler(setting: Setting, policy: Policy, shares: Mapping[str, Fraction]) -> Scheduler | None:
    if policy.scheduler == "none":
        return None
    if policy.scheduler == "round-robin":
        return RoundRobin(weights=shares)
    declared = setting.config.analysts.probabilities
    return Randomized(weights=shares if declared is None else {who: declared[who] for who in shares})
