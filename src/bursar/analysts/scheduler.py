"""Whose turn comes next: in turn (`RoundRobin`) or by lot (`Randomized`). Multi-Analyst DP, Section 7.

A scheduler reorders questions; it changes no price and no answer. What it buys is the sharing incentive, and only
where the mechanism behind it is efficient enough (Theorems 7 and 9); never non-interference.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from fractions import Fraction
from typing import Protocol

from bursar.core.noise.system import SystemRandomness
from bursar.lazy_dataclass import dataclass

Turns = Mapping[str, int]
"""How many turns each analyst has had, taken or let go; 0 where one is missing."""


def lot() -> Fraction:
    """Uniform in [0, 1), in steps of 2^-64, from where all randomness comes from."""
    return Fraction(int.from_bytes(SystemRandomness().secret(8), "big"), 2**64)


class Scheduler(Protocol):
    """Decides whose turn comes next."""

    @property
    def weights(self) -> Mapping[str, Fraction]:
        """The analysts, and how often each is to come; only proportions count."""

    def next(self, turns: Turns, among: Collection[str]) -> tuple[str, Turns]:
        """Who comes next among those who are ready for it (at least one), and the turns that are counted by then.

        Somebody who is passed over is counted a turn where one would have come, so that nobody saves turns up.
        """


@dataclass(frozen=True, kw_only=True)
class RoundRobin:
    """A fixed rotation, proportional where weights differ: the t-th turn of i is due at t / w_i, and whoever is due
    first comes first; ties go by name.

    Guarantees: of the first T turns, i has had at least floor(T w_i / sum of w), so that T = k c turns under equal
    weights give c to each (Theorem 7); everybody comes again and again, whatever the others do.
    Differs: the paper rotates in rounds and gives several turns in a row for a larger share; these are spread out.
    """

    weights: Mapping[str, Fraction]

    def next(self, turns: Turns, among: Collection[str]) -> tuple[str, Turns]:
        """Who is due first; turns that others are due meanwhile and let go count as had."""
        due, who = min(((turns.get(name, 0) + 1) / self.weights[name], name) for name in among)
        skipped = self.weights.keys() - set(among)
        counted = {name: max(turns.get(name, 0), self._before(name, due, who)) for name in skipped}
        return who, {**turns, **counted, who: turns.get(who, 0) + 1}

    def _before(self, name: str, due: Fraction, who: str) -> int:
        """How many turns of `name` are due before this one of `who`."""
        until = due * self.weights[name]
        return int(until) - (until.denominator == 1 and name > who)


@dataclass(frozen=True, kw_only=True)
class Randomized:
    """Independent lots: analyst i is drawn with probability w_i / sum of w (Algorithm 2 line 5; Theorem 9 for any
    probabilities).

    Guarantees: nobody who asks can steer a lot; where some are not ready, the lot falls on the others in their
    proportions, as if it had been drawn again.
    """

    weights: Mapping[str, Fraction]
    draw: Callable[[], Fraction | float] = lot

    def next(self, turns: Turns, among: Collection[str]) -> tuple[str, Turns]:
        """Who the lot falls on, in proportion to weights."""
        names = sorted(among)
        point = Fraction(self.draw()) * sum((self.weights[name] for name in names), Fraction(0))
        for who in names:
            point -= self.weights[who]
            if point < 0:
                break
        return who, {**turns, who: turns.get(who, 0) + 1}
