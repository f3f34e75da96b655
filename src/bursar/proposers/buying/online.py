"""Buying one question at a time: the row that answers a query at the least rise of the largest loss.

Noise is Gaussian. Over n cells, M = sum q q^T / sigma^2 is what has been bought (the information), and a cell's loss is
half of l_j, by default M_jj. A new row q, at noise of variance one, leaves the query w with variance
w^T (M + q q^T)^-1 w and lifts cell j to l_j + q_j^2. What counts is the largest loss, the *cap*: cells below it have
slack, and what uses nothing but slack is free.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike

from bursar.arrays import Reals
from bursar.errors import QueryError
from bursar.strategies.measure import checked_gram
from bursar.threads import one_thread

NO_SLACK = 1e-12
"""Slack below this share of the cap is none."""

SMALLEST_SHARE = 1e-12
"""No cell's dual weight falls below this, so that none divides by zero; a bound holds for all weights."""

GAP = 0.02
"""How far, as a share of the rise, the cap may stay above the least possible."""

MARGIN = 1e-3
"""A row is taken for free only if it would leave the query this much below its target: rounding needs some room."""

MOST_STEPS = 60


@dataclass(frozen=True, kw_only=True, eq=False)
class RowPurchase:
    """A row to buy: a multiple of `blend` = query - M k for some k, which is what M lacks to answer the query."""

    row: Reals  # to be measured with noise of variance one
    blend: Reals
    cap: float  # the largest l_j + row_j^2
    bound: float  # no row that keeps the target has a lower cap
    free: bool  # nothing but slack is used
    steps: int


@dataclass(frozen=True, kw_only=True, eq=False)
class _Iterate:
    """What weights p give at a cap C with slack c = C - l: K = (M + diag(c/p))^-1 w and b = (c/p) K = w - M K.

    For every p of sum one, lower = w^T K is below what any row within the cap can reach; and b / sqrt(max g),
    g = b^2/c, is a row within the cap. With S = M^-1 and u = w^T S w, w^T S b = u - lower and
    b^T S b = u - lower - K.b, so what a multiple of b reaches takes no other matrix. Where M does not determine the
    query, u is infinite.
    """

    blend: Reals
    loads: Reals  # g
    lower: float
    own: float  # K . b
    slope: float  # -d lower / dC

    def upper(self, before: float) -> float:
        """The variance of the query after the row b / sqrt(max g), from u before it."""
        noise = float(self.loads.max())
        if math.isinf(before):
            return self.lower - self.own + noise
        gained = before - self.lower
        return before - gained**2 / (noise + gained - self.own)

    def scaled(self, before: float, variance: float) -> Reals | None:
        """The least multiple of b that reaches the variance; None where none does."""
        if math.isinf(before):
            room = variance - self.lower + self.own
        else:
            missing = before - variance
            room = (before - self.lower) * (variance - self.lower) / missing + self.own
        return self.blend / math.sqrt(room) if room > 0 else None


@one_thread()
def best_row(
    information: ArrayLike,
    query: ArrayLike,
    variance: float,
    *,
    before: float = math.inf,
    losses: ArrayLike | None = None,
) -> RowPurchase:
    """The row after which the query has at most the given variance, at the least cap that can be found.

    `before` is the variance that the information gives it now: infinite where it is not determined.

    min over X >= 0 with diag X <= c of w^T (M + X)^-1 w = max over p >= 0 with sum p = 1 of
    w^T (M + diag(c/p))^-1 w, solved by p <- p sqrt(g / max g). First at the present cap, where a row would be free;
    then at falling and rising caps between the bounds that every iterate gives: `lower` is convex in C, so its tangent
    meets the target below the least cap, and a blend scaled to the target is a row with a cap that suffices.

    Guarantees: `bound <= cap`, and `cap` is at most that of asking the query itself. Cells without slack get 0 in a
    free row. M may be singular, and nothing at all may be known.
    Edge cases: a query of zeros and a target that is not positive are refused, and a query that has its target already.
    """
    M, w = checked_gram(information), np.asarray(query, np.float64)
    l = np.asarray(M.diagonal() if losses is None else losses, np.float64)  # noqa: E741
    if w.shape != (len(M),) or l.shape != w.shape or not (np.all(np.isfinite(w)) and np.any(w)):
        raise QueryError("a query is a list of finite numbers, one for each cell, and not all zero")
    if not (math.isfinite(variance) and 0 < variance < before):
        raise QueryError("a variance to keep is a positive number, below the present one")
    return _Search(M, w, l, variance, before).found()


class _Search:
    """The state of one search: weights and what has been certified so far."""

    def __init__(self, M: Reals, w: Reals, losses: Reals, variance: float, before: float) -> None:
        self.M, self.w, self.losses, self.variance, self.before = M, w, losses, variance, before
        self.present = float(losses.max())
        self.row, self.blend = w / math.sqrt(variance), w
        self.cap = float(np.max(losses + np.square(self.row)))  # of asking the query itself
        self.tiny = NO_SLACK * self.cap
        self.bound = self.present
        self.p = np.full(len(w), 1 / len(w))
        self.steps = 0

    def found(self) -> RowPurchase:
        if self.cap > self.present:
            row = self._within_slack()
            if row is not None:
                return self._purchase(row, self.present, free=True)
            self._least_cap()
        return self._purchase(self.row, self.cap, free=self.cap <= self.present)

    def _purchase(self, row: Reals, cap: float, *, free: bool) -> RowPurchase:
        return RowPurchase(row=row, blend=self.blend, cap=cap, bound=min(self.bound, cap), free=free, steps=self.steps)

    def _within_slack(self) -> Reals | None:
        """A row that keeps the target at the present cap, or None as soon as it is certain that there is none."""
        if self.present <= 0:
            return None
        open_cells, target = self.present - self.losses > self.tiny, (1 - MARGIN) * self.variance
        for _ in range(MOST_STEPS):
            now = self._iterate(self.present)
            if now is None or now.lower > self.variance:
                return None
            row = now.scaled(self.before, target) if now.upper(self.before) <= target else None
            if row is not None:
                self.blend = np.where(open_cells, now.blend, 0.0)
                return np.where(open_cells, row, 0.0)
        return None

    def _least_cap(self) -> None:
        cap = self.cap
        self.p = (self.p + 1 / len(self.p)) / 2  # cells that had no slack have some now, and regain weight slowly
        for _ in range(MOST_STEPS):
            now = self._iterate(cap)
            if now is None:
                return
            self.bound = max(self.bound, cap + (now.lower - self.variance) / now.slope)
            row = now.scaled(self.before, self.variance)
            if row is not None:
                enough = float(np.max(self.losses + np.square(row)))
                if enough < self.cap:
                    self.cap, self.row, self.blend = enough, row, now.blend
            rise = self.cap - self.present
            if self.cap - self.bound <= GAP * rise:
                return
            # Far from the end the tangent's meeting point moves slowly; halving is safe.
            cap = self.bound if self.cap - self.bound < 0.5 * rise else (self.bound + self.cap) / 2

    def _iterate(self, cap: float) -> _Iterate | None:
        """One solution at the present weights, and the next weights; None where rounding has made it meaningless."""
        slack = np.maximum(cap - self.losses, self.tiny)
        ridge = slack / self.p
        matrix = self.M.copy()
        matrix[np.diag_indices_from(matrix)] += ridge
        try:
            factor = scipy.linalg.cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
        except scipy.linalg.LinAlgError:
            return None
        K = scipy.linalg.cho_solve(factor, self.w, check_finite=False)
        b = ridge * K
        g = np.square(b) / slack
        lower = float(self.w @ K)
        now = _Iterate(blend=b, loads=g, lower=lower, own=float(K @ b), slope=float((np.square(K) / self.p).sum()))
        weights = np.maximum(self.p * np.sqrt(g / g.max()), SMALLEST_SHARE)
        self.p = weights / weights.sum()
        self.steps += 1
        return now
