"""A strategy for all questions about some columns, with some noise: by itself, or on top of what is known already."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Reals
from bursar.core.accounting import Noise, NoiseKind
from bursar.core.grant import Verbs
from bursar.core.queries import LinearMap
from bursar.estimation.estimate import ErrorLaw, Estimate, WeightedRows
from bursar.estimation.least_squares import Block, Reconstruction
from bursar.goal import Goal, GoalKind
from bursar.views.measurements import products_of

if TYPE_CHECKING:
    from bursar.strategies.universal import Universal


MOST_CELLS = 1024
"""Most merged cells over which what is known and what is bought are put together beforehand."""

SHARE = 0.985
"""Of the variance that a goal would allow if errors were exactly normal; whole numbers are a little worse."""

STEPS = 60


@dataclass(frozen=True, kw_only=True, eq=False)
class Investment:
    """The noise to measure the strategy with, and what that does to the question."""

    noise: Noise
    law: ErrorLaw
    run: Callable[[Verbs], Estimate]


def by_itself(plan: Universal, noise: Noise, wanted: LinearMap) -> Investment:
    """The question is answered from the strategy alone."""
    law = WeightedRows(weights=plan.weights(wanted), noises=(noise,) * plan.product.rows)
    return Investment(noise=noise, law=law, run=partial(_alone, plan, law, noise))


def on_top(plan: Universal, known: Reconstruction, wanted: LinearMap, goal: Goal) -> Investment | None:
    """As little of the strategy as the question needs beside what is known: Gaussian precisions add up.

    With M the information there is and p G that of the strategy at noise of precision p, a question w has the variance
    w^T (M + p G)^-1 w. With G^-1 = L L^T and L^T M L = U diag(m) U^T that is the sum of (U^T L^T w)^2 / (m + p).
    None where question and log tell too many cells apart.
    """
    known = known.copy()
    if not all(known.split_by(part) for part in products_of(wanted)) or len(known.state.cells) > MOST_CELLS:
        return None
    root = np.sqrt(known.state.cells)
    covariance = np.ones((1, 1))
    for column in plan.columns:
        labels = known.classes[column.mask.attrs[0]]
        into = (labels[:, None] == np.arange(int(labels.max()) + 1)).astype(np.float64)
        rows = into.T if column.inverse is None else into.T @ column.inverse
        covariance = np.kron(covariance, rows @ rows.T)
    lower = np.linalg.cholesky(covariance)
    strengths, turn = np.linalg.eigh(lower.T @ (known.state.information / np.outer(root, root)) @ lower)
    asked = np.concatenate([known.coordinates(part) for part in products_of(wanted)]) / root
    energy = np.square(asked @ lower @ turn)
    precision = _needed(energy, np.maximum(strengths, 0.0), goal)
    noise = Noise(kind=NoiseKind.GAUSSIAN, scale=1 / math.sqrt(precision))
    variances = energy @ (1 / (np.maximum(strengths, 0.0) + precision))
    law = Together(known=known, plan=plan, noise=noise, wanted=wanted, variances=np.asarray(variances))
    return Investment(noise=noise, law=law, run=law.run)


@dataclass(frozen=True, kw_only=True, eq=False)
class Together:
    """The law of least squares over what is known and the strategy; weights are found when a tail is asked for."""

    known: Reconstruction
    plan: Universal
    noise: Noise
    wanted: LinearMap
    variances: Reals

    def tail(self, alpha: float, enough: float) -> float:
        if self.variances.max(initial=0.0) > alpha**2:
            return 1.0
        return self._rows.tail(alpha, enough)

    def half_widths(self, beta: float) -> Reals:
        return self._rows.half_widths(beta)

    def mean_square(self) -> float:
        return float(self.variances.mean())

    def run(self, verbs: Verbs) -> Estimate:
        values = verbs.measure(self.plan.product, self.noise).values
        estimate = self._after(values).answer(self.wanted)
        assert estimate is not None  # the strategy determines every question on its columns
        return estimate

    @cached_property
    def _rows(self) -> WeightedRows:
        after = self._after(np.zeros(self.plan.product.rows, np.int64))
        weights = after.weights_of(self.wanted)
        assert weights is not None
        return after.law_of(weights)

    def _after(self, values: NDArray[np.int64]) -> Reconstruction:
        after = self.known.copy()
        after.add(Block(self.plan.product, values, self.noise))
        return after


def _needed(energy: Reals, strengths: Reals, goal: Goal) -> float:
    """The least precision at which the variances keep the goal, by bisection to a relative 1e-4."""
    mean = goal.kind is GoalKind.RMSE
    z = -NormalDist().inv_cdf(goal.beta / (2 * len(energy)))
    bound = goal.amount**2 * (1 - 1e-9) if mean else SHARE * (goal.amount / z) ** 2
    high = float(energy.sum(axis=1).max()) / bound  # enough where nothing is known
    low = high * 1e-9
    for _ in range(STEPS):
        if high <= 1.0001 * low:
            break
        middle = math.sqrt(low * high)
        each = energy @ (1 / (strengths + middle))
        low, high = (low, middle) if (each.mean() if mean else each.max()) <= bound else (middle, high)
    return high


def _alone(plan: Universal, law: WeightedRows, noise: Noise, verbs: Verbs) -> Estimate:
    return Estimate(values=law.weights @ verbs.measure(plan.product, noise).values.astype(float), law=law)
