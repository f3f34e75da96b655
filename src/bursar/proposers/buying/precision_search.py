"""How exact to make some rows, so that questions keep their error and the largest loss grows as little as possible.

State: the information M = sum_j q_j q_j^T / v_j of everything measured, over merged cells, and the loss L of each of
them. Candidates: rows that may be bought or refined, each with its present loss l_j per unit of its coefficients (zero
for a row that is new). With discrete Laplace noise of scale b the loss is 1/b and the variance 1 / (2 sinh^2(1/2b)),
so the precision 2 sinh^2(l/2); with Gaussian noise the loss is 1/(2 s^2) and the precision 2 l. Refined rows count
once, at their finest.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Reals
from bursar.core.accounting import Mode

UNKNOWN = 1e-9
"""Precision, as a share of what the questions need, that directions nobody has measured are given."""

ROUNDING = 1e-14
"""The same as a share of the largest precision there is: less would be lost in the arithmetic."""

STEPS = 60
TIGHT = 1e-4
"""The search stops at this relative width of the loss, or of what is kept below its bound."""

FARTHEST = 1e6
"""Precision is sought within so many times what the questions need."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PrecisionSearch:
    """What is known, what is asked, what can be bought: everything over the same merged cells."""

    mode: Mode
    information: Reals  # (cells, cells)
    asked: Reals  # (questions, cells)
    candidates: Reals  # (rows, cells)
    present: Reals  # (rows,) the loss of each candidate per unit of its coefficients

    def level(self, variance: float, *, mean: bool) -> float | None:
        """The least loss to which all coarser candidates must be brought, so that the variances asked for keep a bound.

        The bound is on each of them, or on their mean. None where the candidates do not determine the questions,
        or the numbers are too far apart to tell.
        Rows all alike are not only simple: rows of one level are disjoint, so their losses do not add up, and making
        some finer than others costs as much as making all of them as fine.
        """

        def excess(after: Posterior) -> float:
            each = after.variances()
            return _log((each.mean() if mean else each.max(initial=0.0)) / variance)

        return self.level_by(excess, variance)

    def level_by(self, excess: Callable[[Posterior], float], variance: float) -> float | None:
        """The least loss at which an excess is not positive; `variance` says about where to look. None as for `level`.

        The excess falls as the loss grows: the logarithm of something that is about a power of it, best of its inverse.
        """
        try:
            held = self._held(variance)
        except np.linalg.LinAlgError:
            return None
        before, need = self._precision(self.present), 1 / variance

        def at(place: float) -> float:
            total = self._precision(np.maximum(self.present, math.exp(place)))
            # A Gaussian row is bought beside the one that is there; a Laplace row becomes the finer one.
            return excess(Posterior(held=held, more=total - before, own=total))

        low, start, high = (math.log(self._loss(need * times)) for times in (1 / FARTHEST, 1.0, FARTHEST))
        least = math.log(max(self.present.min(initial=math.inf), math.exp(low)))  # below it nothing changes
        return _root(at, least, min(max(start, least), high), max(high, least))

    def _held(self, variance: float) -> PriorCovariance:
        least = max(UNKNOWN / variance, ROUNDING * float(self.information.diagonal().max(initial=0.0)))
        known = self.information + least * np.eye(len(self.information))
        solved = np.linalg.solve(known, np.concatenate([self.candidates, self.asked]).T)
        own, asked = solved[:, : len(self.candidates)], solved[:, len(self.candidates) :]
        return PriorCovariance(
            base=np.einsum("ij,ji->i", self.asked, asked),
            among=self.candidates @ own,
            shared=self.candidates @ asked,
        )

    def _precision(self, losses: Reals) -> Reals:
        return 2 * np.square(np.sinh(losses / 2)) if self.mode is Mode.PURE else 2 * losses

    def _loss(self, precision: float) -> float:
        return 2 * math.asinh(math.sqrt(precision / 2)) if self.mode is Mode.PURE else precision / 2


@dataclass(frozen=True, kw_only=True, eq=False)
class PriorCovariance:
    """What is known before a purchase, as far as it takes part in what will be known after it."""

    base: Reals  # variances of the questions
    among: Reals  # covariances of the candidates
    shared: Reals  # of candidates and questions


@dataclass(frozen=True, kw_only=True, eq=False)
class Posterior:
    """What is known after candidates gained precision, by Woodbury's formula."""

    held: PriorCovariance
    more: Reals  # (rows,) precision that each candidate gains
    own: Reals  # (rows,) precision of what is measured of it by then

    def variances(self) -> Reals:
        """Of the questions."""
        gain = self.held.shared[self._changed]
        return np.asarray(self.held.base - np.einsum("ij,ij->j", gain, self._solved))

    def weights(self) -> Reals:
        """(questions, rows) how much each candidate's own measurement counts in each question."""
        shared = self.held.shared - self.held.among[:, self._changed] @ self._solved
        return np.asarray(shared.T * self.own)

    @cached_property
    def _changed(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.more > 0)

    @cached_property
    def _solved(self) -> Reals:
        inner = self.held.among[np.ix_(self._changed, self._changed)] + np.diag(1 / self.more[self._changed])
        return np.asarray(np.linalg.solve(inner, self.held.shared[self._changed]))


def _root(excess: Callable[[float], float], low: float, start: float, high: float) -> float | None:
    """exp(x) for the least x between low and high at which a falling function is not positive, if there is one.

    By the secant through the last two places; by halving where that leaves the bracket, or does not get on. It aims a
    hair below zero, so that what is found is on the right side.
    """
    x, slope, farthest, last = start, -1.0, high, (math.nan, math.inf)
    for _ in range(STEPS):
        y = excess(x)
        low, high = (x, high) if y > 0 else (low, x)
        if -TIGHT <= y <= 0 or high - low <= TIGHT:
            break
        slope = (y - last[1]) / (x - last[0]) if math.isfinite(last[0]) else slope
        following = x - (y + TIGHT / 2) / slope if slope < 0 and abs(y) < 0.5 * abs(last[1]) else math.nan
        last, x = (x, y), following if low < following < high else (low + high) / 2
    return math.exp(high) if high < farthest or excess(high) <= 0 else None


def _log(ratio: float) -> float:
    return math.log(max(ratio, 1e-300))
