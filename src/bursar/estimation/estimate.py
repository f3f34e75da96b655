"""Estimates and the laws of their errors, which are known before anything is measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import NormalDist
from typing import Protocol, runtime_checkable

import numpy as np

from bursar.arrays import Integers, Reals
from bursar.core.accounting import Noise
from bursar.goal import Goal, GoalKind
from bursar.tails import LaplaceSums, Noises, half_width, half_widths, single_tail, tail

OUTWARD = 1 + 2.0**-30
"""Bounds in closed form are widened by this: far more than the arithmetic that made them can have lost."""


class ErrorLaw(Protocol):
    """How far the estimates of a workload's rows can be off. Depends on strategies and noises, never on data."""

    def tail(self, alpha: float, enough: float) -> float:
        """A bound on Pr[max_i |error_i| > alpha]; where it exceeds `enough`, only that it does is promised."""

    def half_widths(self, beta: float) -> Reals:
        """One h_i per row: with probability at least 1 - beta, |error_i| <= h_i for all i together."""

    def mean_square(self) -> float:
        """The mean over the rows of the expected squared error."""


@runtime_checkable
class JointLaw(Protocol):
    """An error law that knows how the errors of different rows belong together."""

    def as_draws(self, combinations: Reals) -> tuple[Reals, Sequence[Noise]]:
        """Combinations of the rows, one for each line of the matrix, as weights of independent draws of noise."""


def meets(law: ErrorLaw, goal: Goal) -> bool:
    """Whether an error law keeps the accuracy that a goal asks for; a price cap asks for none."""
    if goal.kind is GoalKind.ERROR:
        return law.tail(goal.amount, goal.beta) <= goal.beta
    if goal.kind is GoalKind.RMSE:
        return math.sqrt(law.mean_square()) <= goal.amount
    return True


def error_bars(law: ErrorLaw, goal: Goal) -> Reals:
    """One half-width per row, all of them right together with the goal's confidence.

    Two sets of bars are valid: one of its own for each row, which shares the failure probability out evenly, and the
    goal's own error for all rows, where the law keeps it. The first is taken unless one of its bars exceeds the goal.
    """
    weighed = law if isinstance(law, WeightedRows | RepeatedRows) else None
    if goal.kind is GoalKind.ERROR and weighed is not None and weighed.exceeds(goal.amount, goal.beta):
        return np.full(weighed.rows, goal.amount) if meets(law, goal) else law.half_widths(goal.beta)
    widths = law.half_widths(goal.beta)
    if goal.kind is GoalKind.ERROR and widths.max(initial=0.0) > goal.amount and meets(law, goal):
        return np.full(len(widths), goal.amount)
    return widths


@dataclass(frozen=True, kw_only=True)
class IndependentRows:
    """Every row has its own draw of one noise, so the largest error follows exactly: 1 - (1 - p)^rows."""

    noise: Noise
    rows: int

    def tail(self, alpha: float, enough: float) -> float:
        return any_of(single_tail(self.noise, alpha), self.rows)

    def half_widths(self, beta: float) -> Reals:
        return np.full(self.rows, half_width(self.noise, each_of(beta, self.rows)) if self.rows else 0.0)

    def mean_square(self) -> float:
        return self.noise.variance()

    def as_draws(self, combinations: Reals) -> tuple[Reals, Sequence[Noise]]:
        return combinations, [self.noise] * self.rows


@dataclass(frozen=True, kw_only=True)
class Certain:
    """No row at all, or rows whose answers are public: no error."""

    rows: int = 0

    def tail(self, alpha: float, enough: float) -> float:
        return 0.0

    def half_widths(self, beta: float) -> Reals:
        return np.zeros(self.rows)

    def mean_square(self) -> float:
        return 0.0


@dataclass(frozen=True, kw_only=True, eq=False)
class WeightedRows:
    """Row i is sum_j weights[i, j] times measured row j; errors of different rows may depend on each other.

    `chance` bounds the probability that a number which was taken to be exact is not: an exact total has noise that is
    zero but for 4e-28. It is added to every tail.
    """

    weights: Reals
    noises: Sequence[Noise]
    chance: float = 0.0
    tails: dict[tuple[float, float], float] = field(default_factory=dict, repr=False)  # found before: not cheap
    widths: dict[float, Reals] = field(default_factory=dict, repr=False)

    @property
    def rows(self) -> int:
        return len(self.weights)

    @cached_property
    def variances(self) -> Reals:
        result: Reals = np.square(self.weights) @ Noises.of(self.noises).variances
        return result

    def tail(self, alpha: float, enough: float) -> float:
        if len(self.variances) and self.variances.max() > alpha**2:
            return 1.0  # hopeless at any sensible confidence, and not worth an inversion
        if (alpha, enough) not in self.tails:
            self.tails[alpha, enough] = self.chance + tail(self.weights, self.noises, alpha, enough)
        return self.tails[alpha, enough]

    def exceeds(self, amount: float, beta: float) -> bool:
        """Whether the bar of the widest row alone is above an amount: one inversion instead of one for each row."""
        if len(self.variances) == 0:
            return False
        widest = self.weights[int(np.argmax(self.variances))]
        return tail(widest, self.noises, amount) > (beta - self.chance) / len(self.weights)

    def half_widths(self, beta: float) -> Reals:
        if beta not in self.widths:
            self.widths[beta] = half_widths(self.weights, self.noises, beta - self.chance)
        return self.widths[beta]

    def mean_square(self) -> float:
        return float(self.variances.mean()) if len(self.variances) else 0.0

    def as_draws(self, combinations: Reals) -> tuple[Reals, Sequence[Noise]]:
        return combinations @ self.weights, self.noises


@dataclass(frozen=True, kw_only=True, eq=False)
class RepeatedRows:
    """The same weighted rows in each of several groups of people, all measured with one Laplace noise.

    Groups have draws of their own, so the chance that all of them keep an error is a power of that of one.
    """

    weights: Reals  # of one group's measured rows, in one group's queries
    sums: LaplaceSums  # of these weights
    noise: Noise
    copies: int
    order: Integers  # of each row: its group, times the number of a group's queries, and which of them

    @property
    def rows(self) -> int:
        return len(self.order)

    def tail(self, alpha: float, enough: float) -> float:
        return any_of(self.sums.tail(self.noise.scale, alpha), self.copies)

    def exceeds(self, amount: float, beta: float) -> bool:
        """Whether the bar of the widest row alone is above an amount."""
        return self.sums.largest_tail(self.noise.scale, amount) > self._share(beta)

    def half_widths(self, beta: float) -> Reals:
        widths = self.sums.half_widths(self.noise.scale, self._share(beta))
        return np.asarray(widths[self.order % len(self.weights)])

    def mean_square(self) -> float:
        return float(np.square(self.weights).sum(axis=1).mean()) * self.noise.variance()

    def as_draws(self, combinations: Reals) -> tuple[Reals, Sequence[Noise]]:
        groups, queries = np.divmod(self.order, len(self.weights))
        inside = [np.flatnonzero(groups == group) for group in range(self.copies)]
        drawn = np.concatenate([combinations[:, some] @ self.weights[queries[some]] for some in inside], axis=1)
        return drawn, Noises.alike(self.noise, drawn.shape[1])

    def rows_as_draws(self, rows: Integers) -> tuple[Reals, Sequence[Noise]]:
        """Some of the rows as weights of the draws of their groups alone."""
        groups, queries = np.divmod(self.order[rows], len(self.weights))
        present = np.unique(groups)
        if len(present) == 1:
            drawn = self.weights[queries]
        else:
            own = np.where(groups[:, None] == present, 1.0, 0.0)
            drawn = np.einsum("ig,ij->igj", own, self.weights[queries]).reshape(len(rows), -1)
        return drawn, Noises.alike(self.noise, drawn.shape[1])

    def _share(self, beta: float) -> float:
        """Of the failure probability, for each row."""
        return each_of(beta, self.copies) / len(self.weights)


@dataclass(frozen=True, kw_only=True, eq=False)
class NearlyNormal:
    """Row i is a_i . y, a sum of very many measured rows y of which only the length |a_i| is kept.

    The measured rows are y = exact + r + X: independent discrete Gaussian X_k of one scale s, and a fixed r with |r| at
    most `off`. So row i errs by a . X + a . r, and |a . r| <= |a| off. For z = t/(s |a|), n draws, Q the normal tail:

        Pr[|a . X| >= t] <= 2 exp(-z^2/2)                                                                      (1)
        Pr[|a . X| >= t, G] <= e^(.75 n/s) 2 Q(z - sqrt(n)/(2s)),  Pr[not G] <= e^(-.15 n),  for s >= 3          (2)

    with one event G for all rows: X . X <= 2 n s^2. Workloads are bounded by the union over their rows, by (1) or by
    (2), whichever is less; for the large s of a transform (2) is the normal law but for a fraction of a per cent.

    (1): E exp(uX) = exp(u^2 s^2/2) sum_x exp(-(x - u s^2)^2/(2 s^2)) / sum_x exp(-x^2/(2 s^2)), and a shift only
    lowers the sum, whose Fourier coefficients are positive (Poisson): X is sub-Gaussian with parameter s^2.
    (2): let U be uniform on the cube of side 1, so |a . U| <= |a| sqrt(n)/2. X + U has the density prod_k
    exp(-x_k^2/(2 s^2))/Z at a point y, x the whole numbers nearest to y, and Z >= sqrt(2 pi) s (Poisson). Over the
    density of n normal draws that is at most exp(sum_k (|x_k| + 1/4)/(2 s^2)), as y_k^2 - x_k^2 <= |x_k| + 1/4, and
    sum_k |x_k| <= sqrt(2) n s in G. Lastly E exp(X_k^2/(4 s^2)) <= sqrt(2), from Z at s and at sqrt(2) s; so not G has
    a probability of at most (sqrt(2) e^(-1/2))^n.
    """

    noise: Noise  # Gaussian
    draws: int
    lengths: Reals
    off: float

    def tail(self, alpha: float, enough: float) -> float:
        z = (alpha / (OUTWARD * self.lengths[self.lengths > 0]) - self.off) / self.noise.scale
        if np.any(z <= 0):
            return 1.0
        by_moments = 2 * float(np.exp(-np.square(z) / 2).sum())
        normal = sum(math.erfc(each / math.sqrt(2)) for each in z - self._shift)
        return min(1.0, OUTWARD * min(by_moments, self._factor * normal + (self._rare if len(z) else 0.0)))

    def half_widths(self, beta: float) -> Reals:
        rows = max(len(self.lengths), 1)
        z = math.sqrt(2 * math.log(2 * rows / beta))
        share = (beta - self._rare) / (2 * rows * self._factor)
        if share > 0:
            z = min(z, self._shift - NormalDist().inv_cdf(min(share, 0.5)))
        return np.asarray(OUTWARD * self.lengths * (self.off + self.noise.scale * z))

    def mean_square(self) -> float:
        each = np.square(self.lengths) * (self.noise.variance() + self.off**2)
        return float(each.mean()) if len(each) else 0.0

    @property
    def _factor(self) -> float:
        exponent = 0.75 * self.draws / self.noise.scale
        return math.exp(exponent) if self.noise.scale >= 3 and exponent < 700 else math.inf

    @property
    def _shift(self) -> float:
        return math.sqrt(self.draws) / (2 * self.noise.scale)

    @property
    def _rare(self) -> float:
        return math.exp(-0.15 * self.draws)


@dataclass(frozen=True, kw_only=True, eq=False)
class Estimate:
    """Values for the rows of a workload's map, with the law of their errors."""

    values: Reals
    law: ErrorLaw


def any_of(each: float, count: int) -> float:
    """Pr[at least one of `count` independent events of probability `each`], without cancellation."""
    return 1.0 if each >= 1 else -math.expm1(count * math.log1p(-each))


def each_of(total: float, count: int) -> float:
    """The probability p per event with `any_of(p, count)` = total."""
    return -math.expm1(math.log1p(-total) / count) if count else total
