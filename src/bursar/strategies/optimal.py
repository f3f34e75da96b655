"""The best strategy there is for Gaussian noise, with a certificate of how far from the best it can be.

min tr(V X^-1) over X with diag X <= 1, X = A^T A. Its dual is max over v >= 0 of (tr (D^1/2 V D^1/2)^1/2)^2 / sum v
with D = diag v; v = 1 gives exactly the singular value bound (Eigen-Design, Thm. 2), and every v gives a bound.

For pure epsilon-differential privacy the sensitivity is the largest L1 norm of a column, which A^T A does not
determine (Eigen-Design, Sec. 3.5), so strategies are sought within families: `p_identity`, and trees with weighted
levels (`hierarchical.tree` with power 1).
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
from bursar.strategies.hierarchical import best_tree, identity, tree
from bursar.strategies.integers import spans, to_integers
from bursar.strategies.measure import ROUNDING, checked_gram, is_positive, pure_error, rms_error, svd_bound
from bursar.strategies.p_identity import BlockGram, block_width, overlapping_nodes, p_identity, with_identity
from bursar.threads import one_thread

FEW_CELLS = 16
"""Up to here the identity is as good as anything."""

MOST_SOUGHT_FREELY = 512
"""Most cells for which extra queries are sought from a start without a pattern; the search grows with the cube.

For 1,000 cells it takes six times as long as from nodes, which come to the same error over all ranges and prefix sums,
and to .6 to 1.7 % more over random ranges.
"""

BRANCHINGS = (2, 4, 8, 16)


def for_laplace(gram: ArrayLike) -> Reals:
    """The best of the identity, trees with weighted levels, and the identity with extra queries (`p_identity`)."""
    V = checked_gram(gram)
    cells = len(V)
    if cells <= FEW_CELLS:
        return identity(cells)
    if cells <= MOST_SOUGHT_FREELY:
        strategies = [identity(cells), *(tree(V, branching=k, power=1) for k in BRANCHINGS), p_identity(V)]
        return min(strategies, key=lambda strategy: pure_error(V, strategy))
    width = block_width(cells)
    blocks = BlockGram.of(V, width)
    T = overlapping_nodes(blocks)
    strategies = [with_identity(T, width, cells), best_tree(V, branchings=BRANCHINGS, power=1), identity(cells)]
    errors = [math.sqrt(blocks.trace(T)[0]), pure_error(V, strategies[1]), math.sqrt(np.trace(V))]
    return strategies[int(np.argmin(errors))]


SMALLEST_WEIGHT = 1e-12
"""No cell's dual weight falls below this share of the largest: a bound holds for every v, and none divides by zero."""


CAUTIOUS_STEPS = 4
"""So many steps have exponent 2, which is nearly exact for the usual workloads; the slow ones are faster with 3."""

MOST_STEPS, MOST_FULL_STEPS = 500, 60
"""Steps for workloads of low rank, which are cheap, and of full rank, an eigendecomposition over all cells each."""


MANY_CELLS, GAP_OF_MANY = 1024, 1e-2
"""From this number of cells on, strategies are sought to this gap of the squared error at most: one per cent of rho."""

NEARLY_FULL = 0.75
"""With many cells, a workload whose rank is this share of them, or more, is solved over all cells: in fewer steps."""


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
    trace: float  # tr(V X^+) = tr (D^1/2 V D^1/2)^1/2, or a little more
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
    its own row space, in time that falls with the rank, unless there are many cells and hardly fewer dimensions. After
    `most_steps` the best so far is returned, with its gap.
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
    values, vectors = scipy.linalg.eigh(V, driver="evd", check_finite=False)
    positive = is_positive(values)
    full = solved_over_all_cells(int(positive.sum()), len(V))
    most = most_steps if most_steps is not None else MOST_FULL_STEPS if full else MOST_STEPS
    factor = np.sqrt(values[positive])[:, None] * vectors[:, positive].T  # V = F^T F
    v = np.ones(len(V))
    bound, least, best, steps = 0.0, math.inf, factor, 0
    while steps < most and least > (1 + gap) * bound:
        if not full:
            now = _low_rank(factor, v)
        elif steps == 0:
            now = _full_rank(values, vectors, v, gap)
        else:
            root = np.sqrt(v)
            values, vectors = scipy.linalg.eigh(V * np.outer(root, root), driver="evd", check_finite=False)
            now = _full_rank(values, vectors, v, gap)
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


def solved_over_all_cells(rank: int, cells: int) -> bool:
    """Whether a strategy is sought over all cells, rather than in the row space of the workload."""
    return rank == cells or (cells > MANY_CELLS and rank >= NEARLY_FULL * cells)


def raised(values: Reals, gap: float) -> Reals:
    """Eigenvalues of D^1/2 V D^1/2, in increasing order, none of them zero.

    Directions that no query looks at get a little, so that X can be scaled to unit diagonal: together a quarter of the
    gap of tr X^1/2, which is what is lost.
    """
    positive = is_positive(values)
    missing = len(values) - int(positive.sum())
    least = (gap / 4 * float(np.sqrt(values[positive]).sum()) / missing) ** 2 if missing else 0.0
    return np.maximum(values, max(least, values[-1] * SMALLEST_WEIGHT**2))


def _full_rank(values: Reals, vectors: Reals, v: Reals, gap: float) -> _Iterate:
    """From the eigenvalues and eigenvectors of D^1/2 V D^1/2."""
    root = np.sqrt(raised(values, gap))
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
        return rounded(best.strategy, V, power=2, bits=bits, loss=loss, bound=best.bound, before=best.error)

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
    before: float | None = None,
) -> Remembered:
    """A strategy in whole numbers, on a grid of at most 2^bits where `bits` is given.

    Edge cases: refused where the rounded rows do not answer the workload.
    """
    whole = to_integers(strategy, V, power=power, loss=loss, before=before)
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
