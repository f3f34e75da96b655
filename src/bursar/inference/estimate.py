"""Estimates and the laws of their errors, which are known before anything is measured."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bursar.goal import Goal, GoalKind
from bursar.inference.tails import half_width, half_widths, single_tail, union_tail
from bursar.kernel.accounting import Noise

Reals = NDArray[np.float64]


class ErrorLaw(Protocol):
    """How far the estimates of a workload's rows can be off. Depends on strategies and noises, never on data."""

    def tail(self, alpha: float, enough: float) -> float:
        """A bound on Pr[max_i |error_i| >= alpha]; where it exceeds `enough`, only that it does is promised."""

    def half_widths(self, beta: float) -> Reals:
        """One h_i per row: with probability at least 1 - beta, |error_i| <= h_i for all i together."""

    def mean_square(self) -> float:
        """The mean over the rows of the expected squared error."""


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
    """Row i is sum_j weights[i, j] times measured row j; errors of different rows may depend on each other."""

    weights: Reals
    noises: tuple[Noise, ...]

    @cached_property
    def variances(self) -> Reals:
        result: Reals = np.square(self.weights) @ np.array([noise.variance() for noise in self.noises])
        return result

    def tail(self, alpha: float, enough: float) -> float:
        if len(self.variances) and self.variances.max() > alpha**2:
            return 1.0  # hopeless at any sensible confidence, and not worth an inversion
        return union_tail(self.weights, self.noises, alpha, enough)

    def half_widths(self, beta: float) -> Reals:
        return half_widths(self.weights, self.noises, beta)

    def mean_square(self) -> float:
        return float(self.variances.mean()) if len(self.variances) else 0.0


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
