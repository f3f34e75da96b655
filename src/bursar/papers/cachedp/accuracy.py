"""Whether noise of given scales keeps a goal: by simulation as CacheDP prints it, or by bounds on the tails.

The expected total squared error of the paper, alpha^2 = E |W x - z|^2, is our root mean square over the l queries of a
workload: alpha^2 = l rmse^2. It has a closed form and is never simulated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Reals
from bursar.core.accounting import Noise, NoiseKind
from bursar.core.noise.exact_sampler import Words, system_words
from bursar.core.noise.law import LARGEST_SCALE, SMALLEST_SCALE
from bursar.estimation.estimate import ErrorLaw, WeightedRows, meets
from bursar.goal import Goal, GoalKind

DRAWS = 10_000
"""N of Algorithm 2, line 19."""

AT_ONCE = 2**16
"""How many numbers of a simulation are worked on together: few enough to stay in the cache of the processor."""

LARGE, SPARSE = 2**14, 0.1
"""From this many weights on, if no more than this share of them is not zero, errors are added up from those alone."""

ROUNDED = 1 - 1e-12
"""A hair below the goal, so that the same figure computed in another order cannot exceed it."""


def failure_chance(failed: int, draws: int, beta: float) -> float:
    """The chance to fail as N draws have it, n_f of which failed (Algorithm 2, lines 20 to 24); below beta it passes.

    beta_e + z_{1-p/2} sqrt(beta_e (1 - beta_e) / N) + p/2 with beta_e = n_f / N and p = beta/100.
    """
    failing, p = failed / draws, beta / 100
    return failing + NormalDist().inv_cdf(1 - p / 2) * math.sqrt(failing * (1 - failing) / draws) + p / 2


class AccuracyCheck(Protocol):
    """A check that either returns the law of the errors, which then keeps the goal, or None."""

    def check(self, weights: Reals, scales: Reals, goal: Goal) -> ErrorLaw | None:
        """For Laplace noise of the given scale in each measured row, and answers weighted from the rows."""


class Analytic:
    """Bounds on the tails that are never too low. The same question always gets the same verdict."""

    def check(self, weights: Reals, scales: Reals, goal: Goal) -> ErrorLaw | None:
        if goal.kind is GoalKind.RMSE and not _small(weights, scales, goal):
            return None
        law = law_of(weights, scales)
        return law if goal.kind is GoalKind.RMSE or meets(law, goal) else None


@dataclass(frozen=True, kw_only=True)
class MonteCarlo:
    """CheckAccuracy (Algorithm 2, lines 17 to 24), by `failure_chance`: fresh draws for every check.

    Guarantees: the draws decide how much noise is bought and nothing else: they never touch the data, and what is
    bought is priced and admitted by the kernel.
    Edge cases: fresh draws may fail what passed before; the same question is then charged again.
    Differs: Laplace noise on the whole numbers, which is what is bought; an error of exactly alpha counts as a failure,
    as in Equation (3); line 21 draws the noise of the free and of the paid rows.
    """

    words: Words = system_words
    draws: int = DRAWS

    def check(self, weights: Reals, scales: Reals, goal: Goal) -> ErrorLaw | None:
        if goal.kind is GoalKind.RMSE:
            return law_of(weights, scales) if _small(weights, scales, goal) else None
        chance = self._chance(weights, scales, goal)
        return Simulated(rows=law_of(weights, scales), alpha=goal.amount, chance=chance) if chance < goal.beta else None

    def _chance(self, weights: Reals, scales: Reals, goal: Goal) -> float:
        """beta_e and its confidence term; where these reach beta before the last draw, what they have reached then.

        A failure counts as one of N from the first draw on, so more draws can only raise the sum further.
        """
        picked, used_scales = _used(weights, scales)
        errors = _errors(picked)
        step = max(1, AT_ONCE // max(picked.shape, default=1))
        failed, chance = 0, 0.0
        for start in range(0, self.draws, step):
            noise = draw(self.words, used_scales, min(step, self.draws - start))
            failed += int((np.abs(errors(noise)).max(axis=0, initial=0.0) >= goal.amount).sum())
            chance = failure_chance(failed, self.draws, goal.beta)
            if chance >= goal.beta:
                break
        return chance


@dataclass(frozen=True, kw_only=True, eq=False)
class Simulated:
    """Weighted rows, of which a simulation found that some error reaches `alpha` with probability `chance` at most.

    The simulation that set the noise is the one that is quoted: `tail` at `alpha` is its estimate with the printed
    confidence term, not a bound that always holds, and the half-widths are `alpha` for every query. What was not
    simulated is bounded as for any weighted rows.
    """

    rows: WeightedRows
    alpha: float
    chance: float

    def tail(self, alpha: float, enough: float) -> float:
        return self.chance if alpha >= self.alpha else self.rows.tail(alpha, enough)

    def half_widths(self, beta: float) -> Reals:
        return np.full(len(self.rows.weights), self.alpha) if beta >= self.chance else self.rows.half_widths(beta)

    def mean_square(self) -> float:
        return self.rows.mean_square()


def law_of(weights: Reals, scales: Reals) -> WeightedRows:
    """The law of the errors of answers weighted from rows with Laplace noise; rows without weight are left out."""
    picked, used_scales = _used(weights, scales)
    noises = {scale: Noise(kind=NoiseKind.LAPLACE, scale=scale) for scale in set(used_scales.tolist())}
    return WeightedRows(weights=picked, noises=tuple(noises[scale] for scale in used_scales.tolist()))


def draw(words: Words, scales: Reals, count: int) -> Reals:
    """Discrete Laplace noise, `count` draws for each scale, one row per scale, each from one word.

    With a = exp(-1/b) and a uniform U, |X| = floor(b ln(2 / ((1 + a) U))) has Pr[|X| >= k] = 2 a^k / (1 + a).
    """
    bits = words(len(scales) * count).reshape(len(scales), count)
    uniform = (bits >> np.uint64(11)).astype(np.float64)
    uniform += 0.5
    np.log(uniform, out=uniform)
    top = math.log(2.0**54) - np.log1p(np.exp(-1 / scales))
    size = np.floor((top[:, None] - uniform) * scales[:, None])
    noise: Reals = np.where(bits & np.uint64(1), size, -size)
    return noise


def _used(weights: Reals, scales: Reals) -> tuple[Reals, Reals]:
    """The rows that have any weight."""
    used = np.flatnonzero(np.abs(weights).max(axis=0, initial=0.0) > 0)
    return weights[:, used], scales[used]


def _errors(weights: Reals) -> Callable[[Reals], Reals]:
    """The errors of the queries as a function of the noise of the rows."""
    if weights.size < LARGE or np.count_nonzero(weights) > SPARSE * weights.size:
        return weights.__matmul__
    from scipy.sparse import csr_array  # takes a while to load, and few questions are that large

    sparse: Callable[[Reals], Reals] = csr_array(weights).__matmul__
    return sparse


def _small(weights: Reals, scales: Reals, goal: Goal) -> bool:
    """Whether the root of the mean variance over the queries keeps the goal; 2 b^2 per row, but for whole numbers."""
    picked, used_scales = _used(weights, scales)
    variances = 0.5 / np.square(np.sinh(0.5 / used_scales))
    mean = float(np.square(picked).sum(axis=0) @ variances) / len(weights)
    return mean <= ROUNDED * goal.amount**2


CLOSE = {GoalKind.ERROR: 1e-3, GoalKind.RMSE: 1e-9}
"""To which share b_P is searched."""

Weights = Callable[[Reals], Reals | None]
"""How rows with noise of the given scales are weighted; None where they do not answer the workload."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Bound:
    """Noise that keeps a goal: b_P, the scale of each row, and the answers as sums of the rows."""

    paid: float
    scales: Reals
    weights: Reals
    law: ErrorLaw


def loose(weights: Reals, goal: Goal) -> float:
    """b_L, which keeps the goal by Chebyshev whatever is cached.

    alpha sqrt(beta/2) / |W A^+|_F (Theorem 2.2); for an expected squared error alpha / (sqrt(2) |W A^+|_F).

    Differs: the variance of a row is 2 b^2; Proposition 4.2 has b^2.
    """
    size = math.sqrt(float(np.square(weights).sum()))
    if goal.kind is GoalKind.ERROR:
        return goal.amount * math.sqrt(goal.beta / 2) / size
    return goal.amount * math.sqrt(len(weights) / 2) / size


def search(
    weights: Weights, cached: Reals, payable: NDArray[np.bool_], start: float, goal: Goal, accuracy: AccuracyCheck
) -> Bound | None:
    """The largest b_P that keeps the goal, from b_L on; infinite where the cached rows do by themselves.

    `cached` has the scale of each row in the cache, infinite for those that are not there; rows that are not `payable`
    keep it.

    Edge cases: None where not even the least noise that can be drawn keeps the goal.
    Differs: F has c.b <= b_P, as Equation (8) says; lines 14 and 18 have c.b < b_P.
    """

    def at(paid: float) -> Bound | None:
        scales = np.where(payable, np.minimum(cached, paid), cached)
        matrix = weights(scales)
        law = None if matrix is None else accuracy.check(matrix, scales, goal)
        return None if matrix is None or law is None else Bound(paid=paid, scales=scales, weights=matrix, law=law)

    everything = bool(np.isfinite(cached).all())
    free = at(math.inf)
    if free is not None:
        return free
    low = min(max(start, SMALLEST_SCALE), LARGEST_SCALE)
    while (best := at(low)) is None:
        if low == SMALLEST_SCALE:
            return None
        low = max(low / 2, SMALLEST_SCALE)
    high = float(cached.max()) if everything else min(2 * low, LARGEST_SCALE)
    while not everything and low < high and (better := at(high)) is not None:
        best, low, high = better, high, min(2 * high, LARGEST_SCALE)
    while high > (1 + CLOSE[goal.kind]) * low:
        middle = math.sqrt(low * high)
        better = at(middle)
        best, low, high = (best, low, middle) if better is None else (better, middle, high)
    return best
