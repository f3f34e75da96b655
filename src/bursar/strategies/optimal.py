"""The best strategy there is for Gaussian noise, with a certificate of how far from the best it can be.

min tr(V X^-1) over X with diag X <= 1, X = A^T A. Its dual is max over v >= 0 of (tr (D^1/2 V D^1/2)^1/2)^2 / sum v
with D = diag v; v = 1 gives exactly the singular value bound (Eigen-Design, Thm. 2), and every v gives a bound.

For pure epsilon-differential privacy the sensitivity is the largest L1 norm of a column, which A^T A does not
determine (Eigen-Design, Sec. 3.5), so strategies are sought within a family. The p-identity family is that of McKenna
et al. (HDMM); trees with weighted levels (`hierarchical.tree` with power 1) are better for large n.
"""

from __future__ import annotations

import hashlib
import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray

from bursar.arrays import Reals
from bursar.errors import QueryError
from bursar.strategies.cells import merge_gram
from bursar.strategies.hierarchical import identity, tree
from bursar.strategies.integers import spans, to_integers
from bursar.strategies.measure import ROUNDING, checked_gram, pure_error, rms_error, spectrum, svd_bound
from bursar.threads import one_thread

FEW_CELLS = 16
"""Up to here the identity is as good as anything."""

CELLS_PER_QUERY = 16
"""How many cells there are for each extra query, unless told otherwise."""

MOST_CELLS = 1024
"""Most cells for which extra queries are sought; their number of unknowns grows with the square."""

SEARCH_STEPS = 300


def p_identity(gram: ArrayLike, *, extra: int | None = None) -> Reals:
    """A = [I; T] diag(1 / (1 + column sums of T)), T >= 0 with `extra` rows, of locally least tr(V (A^T A)^-1).

    Guarantees: every column has L1 norm one; the error is at most that of the identity.
    Edge cases: no extra query gives the identity.
    """
    V = checked_gram(gram)
    n = len(V)
    p = n // CELLS_PER_QUERY if extra is None else extra
    if p < 0:
        raise QueryError("the number of extra queries is not negative")
    if p == 0 or not V.any():
        return identity(n)
    from scipy.optimize import minimize  # only here, and slow to import

    scale = float(np.trace(V))
    minimum = minimize(
        _trace,
        _start(p, n),
        args=(V / scale, p),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, None)] * (p * n),
        options={"maxiter": SEARCH_STEPS},
    )
    T = minimum.x.reshape(p, n)
    strategy = np.concatenate([np.eye(n), T]) / (1 + T.sum(axis=0))
    return strategy if minimum.fun <= 1 else identity(n)


def for_laplace(gram: ArrayLike) -> Reals:
    """The best of the identity, trees with 2 to 16 children and weighted levels, and, where it is small, p-identity."""
    V = checked_gram(gram)
    strategies = [identity(len(V))]
    if len(V) > FEW_CELLS:
        strategies += [tree(V, branching=k, power=1) for k in (2, 4, 8, 16)]
        if len(V) <= MOST_CELLS:
            strategies.append(p_identity(V))
    return min(strategies, key=lambda strategy: pure_error(V, strategy))


def _trace(unknowns: Reals, V: Reals, p: int) -> tuple[float, Reals]:
    """tr(V (A^T A)^-1) and its gradient in T.

    With s = 1 + column sums, Y = diag(s) V diag(s) and G = (I + T^T T)^-1 = I - T^T (I + T T^T)^-1 T, the trace is
    tr(Y G); its gradient is -2 T G Y G through G, and 2 (s_j sum over i of s_i V_ij G_ij) / s_j through s.
    """
    T = unknowns.reshape(p, -1)
    s = 1 + T.sum(axis=0)
    Y = V * np.outer(s, s)
    R = np.linalg.solve(np.eye(p) + T @ T.T, T)  # T G
    G = np.eye(T.shape[1]) - T.T @ R
    YG = Y * G
    RY = R @ Y
    gradient = 2 * YG.sum(axis=0) / s - 2 * (RY - (RY @ T.T) @ R)
    return float(YG.sum()), gradient.ravel()


def _start(p: int, n: int) -> Reals:
    """Numbers in [0, 1) without a pattern, the same every time: the fractional parts of i^2 times the golden ratio."""
    numbers = np.arange(1, p * n + 1, dtype=np.float64)
    return np.asarray(np.modf(np.square(numbers % 65521) * ((1 + np.sqrt(5)) / 2))[0])


SMALLEST_WEIGHT = 1e-12
"""No cell's dual weight falls below this share of the largest: a bound holds for every v, and none divides by zero."""


CAUTIOUS_STEPS = 4
"""So many steps have exponent 2, which is nearly exact for the usual workloads; the slow ones are faster with 3."""

MOST_STEPS, MOST_FULL_STEPS = 500, 60
"""Steps for workloads of low rank, which are cheap, and of full rank, an eigendecomposition over all cells each."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Optimum:
    """A strategy of sensitivity one, its error, and a number that the error of no strategy can be below."""

    strategy: Reals
    error: float
    bound: float
    steps: int

    @property
    def gap(self) -> float:
        """The relative duality gap of the total variance: 0 at the optimum."""
        return (self.error / self.bound) ** 2 - 1 if self.bound > 0 else 0.0


@dataclass(frozen=True, kw_only=True, eq=False)
class _Iterate:
    """What a weight v gives: B with B^T B = X = D^-1/2 (D^1/2 V D^1/2)^1/2 D^-1/2, and the bound."""

    rows: Reals
    inverse: Reals | None  # of B, where V has full rank
    trace: float  # tr(V X^+) = tr (D^1/2 V D^1/2)^1/2
    bound: float

    @property
    def diagonal(self) -> Reals:
        """diag X."""
        return np.asarray(np.einsum("ij,ij->j", self.rows, self.rows))


@one_thread()
def optimum(gram: ArrayLike, *, gap: float = 1e-3, most_steps: int | None = None) -> Optimum:
    """The strategy with the least `rms_error`, up to the given duality gap; ask 1e-4 where a figure is quoted.

    Each step solves X for the present v and then sets v <- v diag(X)^2 (from the fifth on ^3). A feasible strategy is
    made of X by scaling it to unit diagonal where V has full rank; otherwise, where that would leave the row space, by
    dividing by the largest diagonal element and completing columns (Program 2, steps 4 and 5).
    Guarantees: `bound <= error of every strategy`, whatever the number of steps; `error` is that of `strategy`.
    Edge cases: an all-zero workload has the strategy without rows and error 0. A workload of low rank is solved in
    its own row space, in time that falls with the rank. After `most_steps` the best so far is returned, with its gap.
    """
    merging = merge_gram(gram)
    if merging.cells == 0:
        return Optimum(strategy=np.zeros((0, len(merging.group))), error=0.0, bound=0.0, steps=0)
    V = checked_gram(merging.gram(gram))
    unit = float(np.trace(V)) / len(V)  # errors of a common size, whatever the queries' coefficients
    solved = _solve(V / unit, gap, most_steps)
    size = math.sqrt(unit)
    strategy = merging.spread(solved.strategy)
    return Optimum(strategy=strategy, error=solved.error * size, bound=solved.bound * size, steps=solved.steps)


def _solve(V: Reals, gap: float, most_steps: int | None) -> Optimum:
    values, vectors = spectrum(V)
    full = len(values) == len(V)
    most = most_steps if most_steps is not None else MOST_FULL_STEPS if full else MOST_STEPS
    factor = np.sqrt(values)[:, None] * vectors.T  # V = F^T F
    v = np.ones(len(V))
    bound, least, best, steps = 0.0, math.inf, factor, 0
    while steps < most and least > (1 + gap) * bound:
        if not full:
            now = _low_rank(factor, v)
        elif steps == 0:
            now = _full_rank(values, vectors, v)
        else:
            root = np.sqrt(v)
            values, vectors = scipy.linalg.eigh(V * np.outer(root, root), driver="evd", check_finite=False)
            now = _full_rank(values, vectors, v)
        steps += 1
        bound = max(bound, now.bound)
        diagonal = now.diagonal
        for rows, trace in _feasible(V, now, diagonal):
            if trace < least:
                least, best = trace, rows
        v = v * diagonal ** (2 if steps < CAUTIOUS_STEPS else 3)
        v = np.maximum(v / v.max(), SMALLEST_WEIGHT)
    strategy = complete(best)
    error = math.sqrt(least) if strategy is best else rms_error(V, strategy)
    return Optimum(strategy=strategy, error=error, bound=math.sqrt(bound), steps=steps)


def _feasible(V: Reals, now: _Iterate, diagonal: Reals) -> list[tuple[Reals, float]]:
    """Strategies of sensitivity one, with their total variances: X over its largest diagonal element, S X S."""
    most = float(diagonal.max())
    strategies = [(now.rows / math.sqrt(most), most * now.trace)]
    if now.inverse is not None:
        size = np.sqrt(diagonal)
        inverse = size[:, None] * now.inverse
        strategies.append((now.rows / size, float(np.vdot(inverse, V @ inverse))))
    return strategies


def _full_rank(values: Reals, vectors: Reals, v: Reals) -> _Iterate:
    """From the eigenvalues and eigenvectors of D^1/2 V D^1/2."""
    root = np.sqrt(np.maximum(values, values[-1] * SMALLEST_WEIGHT**2))
    rows = np.sqrt(root)[:, None] * (vectors.T / np.sqrt(v))
    inverse = (vectors * np.sqrt(v)[:, None]) / np.sqrt(root)
    return _Iterate(rows=rows, inverse=inverse, trace=float(root.sum()), bound=weighted_bound(values, v))


def _low_rank(factor: Reals, v: Reals) -> _Iterate:
    """The same through F D F^T, which has the same nonzero eigenvalues and is as small as the rank."""
    values, vectors = scipy.linalg.eigh((factor * v) @ factor.T, driver="evd", check_finite=False)
    root = np.sqrt(np.maximum(values, values[-1] * SMALLEST_WEIGHT**2))
    rows = (vectors / np.sqrt(root)).T @ factor
    return _Iterate(rows=rows, inverse=None, trace=float(root.sum()), bound=weighted_bound(values, v))


def weighted_bound(values: Reals, v: Reals) -> float:
    """(tr (D^1/2 V D^1/2)^1/2)^2 / sum v, without the eigenvalues that may be rounding: a bound stays one."""
    sure = values[values > len(values) * ROUNDING * values[-1]]
    return float(np.sqrt(sure).sum()) ** 2 / float(v.sum())


REMEMBERED_STRATEGIES = 64
"""Most strategies that are remembered."""

REMEMBERED_BYTES = 256 * 2**20
"""Most memory that they may take up together."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Remembered:
    """Whole-number rows over merged cells, and the error (`rms_error`) that no strategy of sensitivity one is below."""

    rows: NDArray[np.int64]
    bits: int  # of the grid they were rounded to; 0 for a strategy of whole numbers
    loss: float  # relative growth of the error by rounding
    bound: float
    weights: Reals | None = None  # of the queries, where the error that the bound is for is a weighted one


class Memory:
    """The strategies used last, by key; safe to use from several threads."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Remembered] = OrderedDict()
        self._lock = Lock()

    def recall(self, key: str, make: Callable[[], Remembered]) -> Remembered:
        """What was made under this key, or what `make` makes now."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        strategy = make()
        with self._lock:
            self._kept[key] = strategy
            while len(self._kept) > REMEMBERED_STRATEGIES or (len(self._kept) > 1 and self._bytes() > REMEMBERED_BYTES):
                self._kept.popitem(last=False)
        return strategy

    def _bytes(self) -> int:
        return sum(strategy.rows.nbytes for strategy in self._kept.values())


MEMORY = Memory()


def integer_optimum(V: Reals, *, gap: float, bits: int | None = None, loss: float = 1e-4) -> Remembered:
    """The optimum for Gaussian noise, with its certified bound; on a grid of at most 2^bits where `bits` is given."""

    def make() -> Remembered:
        best = optimum(V, gap=gap)
        return rounded(best.strategy, V, power=2, bits=bits, loss=loss, bound=best.bound)

    return recall(make, V, 2, gap, bits, loss)


def integer_laplace(V: Reals, *, gap: float, bits: int | None = None, loss: float = 1e-4) -> Remembered:
    """The best strategy known for Laplace noise; the bound is that for Gaussian noise, which holds a fortiori.

    An L1 norm is at least the L2 norm, so the error at L1 sensitivity one is at least that at L2 sensitivity one.
    """

    def make() -> Remembered:
        return rounded(for_laplace(V), V, power=1, bits=bits, loss=loss, bound=svd_bound(V))

    return recall(make, V, 1, gap, bits, loss)


def rounded(
    strategy: Reals,
    V: Reals,
    *,
    power: int,
    bits: int | None,
    loss: float,
    bound: float,
    weights: Reals | None = None,
) -> Remembered:
    """A strategy in whole numbers, on a grid of at most 2^bits where `bits` is given.

    Edge cases: refused where the rounded rows do not answer the workload.
    """
    whole = to_integers(strategy, V, power=power, loss=loss)
    if bits is None or whole.bits <= bits:
        return Remembered(rows=whole.rows, bits=whole.bits, loss=whole.loss, bound=bound, weights=weights)
    rows = np.rint(whole.rows * 2.0 ** (bits - whole.bits)).astype(np.int64)
    rows = rows[rows.any(axis=1)]
    error = rms_error if power == 2 else pure_error
    lost = error(V, rows) / error(V, whole.rows) * (1 + whole.loss) - 1
    if not (np.isfinite(lost) and spans(rows, V)):
        raise QueryError("this workload looks at too many columns together to find a strategy in whole numbers")
    return Remembered(rows=rows, bits=bits, loss=float(lost), bound=bound, weights=weights)


def recall(make: Callable[[], Remembered], matrix: Reals, *settings: object) -> Remembered:
    """What was made for this matrix with these settings, or what `make` makes now."""
    hashed = hashlib.blake2b(repr((matrix.shape, settings)).encode(), digest_size=16)
    hashed.update(np.ascontiguousarray(matrix).tobytes())
    return MEMORY.recall(hashed.hexdigest(), make)


COMPLETE_WITHIN = 1e-12
"""A column whose squared norm is this close to the largest, relatively, needs no completion."""


def complete(strategy: Reals) -> Reals:
    """Rows that lift every column to the largest norm (Program 2, steps 4 and 5): more answers at the same price.

    Guarantees: the L2 sensitivity is unchanged, the error never larger; a strategy that needs nothing is returned
    itself.
    """
    norms = np.einsum("ij,ij->j", strategy, strategy)
    room = norms.max(initial=0.0) - norms
    open_cells = np.flatnonzero(room > COMPLETE_WITHIN * norms.max(initial=0.0))
    if not open_cells.size:
        return strategy
    rows = np.zeros((len(open_cells), strategy.shape[1]))
    rows[np.arange(len(open_cells)), open_cells] = np.sqrt(room[open_cells])
    return np.concatenate([strategy, rows])
