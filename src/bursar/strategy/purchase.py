"""How exact to make some rows, so that questions keep their error and the largest loss grows as little as possible.

State: the information M = sum_j q_j q_j^T / v_j of everything measured, over merged cells, and the loss L of each of
them. Candidates: rows that may be bought or refined, each with its present loss l_j per unit of its coefficients (zero
for a row that is new). With Laplace noise of scale b the loss is 1/b and the variance 2 b^2, so the precision l^2 / 2;
with Gaussian noise the loss is 1/(2 s^2) and the precision 2 l. Refined rows count once, at their finest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bursar.kernel.accounting import Mode
from bursar.strategy.measure import Reals

UNKNOWN = 1e-9
"""Precision, as a share of what the questions need, that directions nobody has measured are given."""

ROUNDING = 1e-14
"""The same as a share of the largest precision there is: less would be lost in the arithmetic."""

STEPS = 60
TIGHT = 1e-4
"""The search stops at this relative width."""

FARTHEST = 1e6
"""Precision is sought within so many times what the questions need."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Market:
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
        try:
            held = self._held(variance)
        except np.linalg.LinAlgError:
            return None
        need = 1 / variance

        def kept(loss: float) -> bool:
            each = held.variances(self._precision(np.maximum(self.present, loss)) - self._precision(self.present))
            return bool((each.mean() if mean else each.max(initial=0.0)) <= variance)

        low, high = self._loss(need / FARTHEST), self._loss(need * FARTHEST)
        if not kept(high):
            return None
        for _ in range(STEPS):
            if high - low <= TIGHT * high:
                break
            middle = math.sqrt(low * high)
            low, high = (low, middle) if kept(middle) else (middle, high)
        return high

    def _held(self, variance: float) -> _Held:
        least = max(UNKNOWN / variance, ROUNDING * float(self.information.diagonal().max(initial=0.0)))
        known = self.information + least * np.eye(len(self.information))
        inverse = np.linalg.inv(known)
        return _Held(
            base=np.einsum("ij,ij->i", self.asked @ inverse, self.asked),
            among=self.candidates @ inverse @ self.candidates.T,
            shared=self.candidates @ inverse @ self.asked.T,
        )

    def _precision(self, losses: Reals) -> Reals:
        return np.square(losses) / 2 if self.mode is Mode.PURE else 2 * losses

    def _loss(self, precision: float) -> float:
        return math.sqrt(2 * precision) if self.mode is Mode.PURE else precision / 2


@dataclass(frozen=True, kw_only=True, eq=False)
class _Held:
    """Variances of the questions as a function of the candidates' added precisions, by Woodbury's formula."""

    base: Reals
    among: Reals
    shared: Reals

    def variances(self, more: Reals) -> Reals:
        changed = more > 0
        inner = self.among[np.ix_(changed, changed)] + np.diag(1 / more[changed])
        gain = self.shared[changed]
        return np.asarray(self.base - np.einsum("ij,ij->j", gain, np.linalg.solve(inner, gain)))
