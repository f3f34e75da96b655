"""All ranges, or all prefix sums, of one ordered column in closed form: a million cells in seconds.

For the n(n+1)/2 ranges V = (n+1) tridiag(-1, 2, -1)^-1, whose eigenvectors are the sines sin(pi k s/(n+1)), s = 1 .. n;
for the n prefix sums V^-1 is tridiagonal too, with the odd sines of period 2n+1. The first step of the dual fixed point
of `optimal`, X = D V^1/2 D with unit diagonal, is therefore a `Transform`: it is measured and inverted in O(n log n).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import numpy as np
import scipy.fft
import scipy.linalg
from numpy.typing import ArrayLike

from bursar.arrays import Integers, Reals
from bursar.core.extensions.transform import LARGEST_PERIOD, factors_of, smooth_from
from bursar.core.queries import Steps, Transform
from bursar.errors import QueryError

WEIGHT_BITS = 25
"""Weights are rounded to this many bits, which moves the error by less than a millionth."""

NORM_BITS = 24
"""Columns of the integer strategy have a length of about 2^24: rounding a million answers then costs 6e-5.

No answer then leaves 2^61, the kernel's limit, for any number of rows that can be declared.
"""

MATRIX_BITS = 16
"""The same for a strategy that is written out: rounding then adds less than 1e-4 to the variances."""

SPARED_WORK = 2**24
"""Most covariances between cells and empty positions that are looked at to make the error of ranges exact."""

CELLS_AT_ONCE = 2**14
"""Cells whose covariances with the empty positions are held at once."""

MOST_EMPTY = 2**12
"""Most positions without a cell that are taken into account."""

REMEMBERED_SINES = 2**23
"""Most sines at the empty positions that are kept; where there are more, they come out of a transform each time."""

NUMBERS_AT_ONCE = 2**21
"""How many numbers of queries are transformed at once."""


LONG_COLUMN = 512
"""From this many cells on, sines are measured: a search over all strategies would take seconds, and gain 1 % of rho."""


class RangeFamily(Enum):
    """Which queries about one ordered column are all to be answered."""

    RANGES = "ranges"
    PREFIXES = "prefixes"


@dataclass(frozen=True, kw_only=True, eq=False)
class SineStrategy:
    """A transform that answers a whole family, and how its answers become estimates.

    The cells are those of the transform, x_0 .. x_(n-1). Positions of the circle that no cell sits on hold nothing, and
    that is known: the estimates are the least-squares ones given it.
    """

    family: RangeFamily
    transform: Transform

    @staticmethod
    def of(transform: Transform) -> SineStrategy | None:
        """The strategy that a transform belongs to; None for a transform that was made in some other way."""
        period, cells = transform.period, len(transform.cell_weights)
        upper_half = period % 2 == 1 and transform.start > period // 2
        for family, step, fits in ((RangeFamily.RANGES, 1, True), (RangeFamily.PREFIXES, 2, upper_half)):
            every = np.arange(1, period, step)
            placed = fits and 0 <= len(every) - cells <= MOST_EMPTY and int(transform.cell_weights.min()) > 0
            if placed and np.array_equal(transform.frequencies, every):
                return SineStrategy(family=family, transform=transform)
        return None

    @property
    def cells(self) -> int:
        return len(self.transform.cell_weights)

    @cached_property
    def sensitivity(self) -> float:
        """How far one row can move all answers together (L2), the transform's rounding counted in."""
        (norm,) = self.transform.norms(2)
        return math.sqrt(norm.largest())

    @property
    def off(self) -> float:
        """How far (L2) the answers can be from the exact ones before noise: floating point, and 1/2 in each answer."""
        return self.transform.float_error + math.sqrt(self.transform.rows) / 2

    def reconstruct(self, values: ArrayLike) -> Reals:
        """The best linear estimate of every cell from the measured answers."""
        spectrum = np.asarray(values, np.float64) / self._row_scale
        weighted = self._fold * self._sines(self._at_frequencies(spectrum))
        if len(self._empty):
            pull = np.zeros(len(weighted))
            pull[self._empty - 1] = scipy.linalg.cho_solve(self._empty_factor, weighted[self._empty - 1])
            weighted -= self._covary(pull)
        estimates: Reals = weighted[self._places - 1] / self.transform.cell_weights
        return estimates

    def variances(self, queries: Steps) -> Reals:
        """The variance of the estimate of each query over the cells at noise of variance one; O(n log n) each.

        The estimate weighs measured row k by a_k = fold/scale_k sum_s sin(pi k s/M) w_s/c_s, and its variance is |a|^2;
        less what is spared because positions without a cell are known to hold nothing.
        """
        if queries.size != self.cells:
            raise QueryError("these queries are not over the cells of the strategy")
        step = max(1, NUMBERS_AT_ONCE // self.transform.period)
        blocks = [range(low, min(low + step, queries.rows)) for low in range(0, queries.rows, step)]
        return np.concatenate([np.zeros(0), *(self._variances(queries.take(block)) for block in blocks)])

    def _variances(self, queries: Steps) -> Reals:
        placed = np.zeros((queries.rows, self.transform.period - 1))
        placed[:, self._places - 1] = queries.at_cells(np.arange(self.cells)) / self.transform.cell_weights
        weights = self._sines(placed)[:, self.transform.frequencies - 1] * (self._fold / self._row_scale)
        variances: Reals = np.square(weights).sum(axis=1)
        if not len(self._empty):
            return variances
        at_empty = self._at_empty(weights * (self._fold / self._row_scale)).T
        spared: Reals = np.einsum("ij,ij->j", at_empty, scipy.linalg.cho_solve(self._empty_factor, at_empty))
        return variances - spared

    def _at_empty(self, spectra: Reals) -> Reals:
        """sum_k sin(pi k s/M) y_k at every empty position s."""
        if self._empty_sines is not None:
            return spectra @ self._empty_sines
        return self._sines(self._at_frequencies(spectra))[:, self._empty - 1]

    @cached_property
    def _empty_sines(self) -> Reals | None:
        if self.transform.rows * len(self._empty) > REMEMBERED_SINES:
            return None
        turns = np.outer(self.transform.frequencies, self._empty) % (2 * self.transform.period)
        return np.asarray(np.sin(np.pi / self.transform.period * turns))

    @cached_property
    def total_variance(self) -> float:
        """The sum over the family of the variances at noise of variance one: tr(V S), S the covariance of the cells.

        S_uv = (z(s_u - s_v) - z(s_u + s_v)) / (c_u c_v) with z a cosine sum, and V_uv = a_u b_v for u <= v; then what
        is spared because positions without a cell are known to hold nothing.
        Edge cases: for ranges over many cells the little that is spared is left out, and the sum is an upper bound.
        """
        n, start = self.cells, self.transform.start
        a, b = (x / self.transform.cell_weights for x in self._triangle)
        z = self._cosines
        length = scipy.fft.next_fast_len(2 * n, real=True)
        spectra = np.conj(scipy.fft.rfft(a, length)) * scipy.fft.rfft(b, length)
        apart = scipy.fft.irfft(spectra, length)[:n]
        diagonal = float((a * b) @ (z[0] - z[2 * start : 2 * start + 2 * n : 2]))
        total = diagonal + 2 * float(z[1:n] @ apart[1:]) - 2 * _half_convolution(a, b, z[2 * start :])
        return total - self._spared

    @property
    def _triangle(self) -> tuple[Reals, Reals]:
        """a and b with V_uv = a_u b_v for u <= v."""
        u = np.arange(1.0, self.cells + 1)
        return (u if self.family is RangeFamily.RANGES else np.ones(self.cells)), self.cells + 1 - u

    @cached_property
    def _spared(self) -> float:
        """tr(V C E^-1 C^T), with C the covariance between cells and empty positions and E that among the latter."""
        much_work = self.cells * len(self._empty) > SPARED_WORK and self.family is RangeFamily.RANGES
        if not len(self._empty) or much_work:
            return 0.0
        a, b = self._triangle
        slices = [slice(low, low + CELLS_AT_ONCE) for low in range(0, self.cells, CELLS_AT_ONCE)]
        after = np.sum([b[block] @ self._with_empty(block) for block in slices], axis=0)
        before = np.zeros(len(after))
        total = np.zeros((len(after), len(after)))
        for block in slices:
            C = self._with_empty(block)
            upto, later = before + np.cumsum(a[block, None] * C, axis=0), after - np.cumsum(b[block, None] * C, axis=0)
            total += C.T @ (b[block, None] * upto + a[block, None] * later)
            before, after = upto[-1], later[-1]
        return float(np.trace(scipy.linalg.cho_solve(self._empty_factor, total)))

    def _with_empty(self, block: slice) -> Reals:
        s, e, z = self._places[block, None], self._empty, self._cosines
        return np.asarray((z[abs(s - e)] - z[s + e]) / self.transform.cell_weights[block, None])

    @cached_property
    def least_variance(self) -> float:
        """What the sum of variances over the family cannot be below, for any strategy of sensitivity one."""
        return least_variance(self.family, self.cells)

    @property
    def ratio(self) -> float:
        """At most how many times the error of the best strategy this one's root mean square error is."""
        return self.sensitivity * math.sqrt(self.total_variance / self.least_variance)

    @property
    def _fold(self) -> float:
        """The sines used have squared length M/2 over the circle, the odd ones M/4 over their half of it."""
        return (2 if self.family is RangeFamily.RANGES else 4) / self.transform.period

    @cached_property
    def _row_scale(self) -> Reals:
        t = self.transform
        return np.asarray(t.row_weights[t.frequencies - 1] * 2.0**-t.shift, np.float64)

    @cached_property
    def _places(self) -> Integers:
        return self.transform.start + np.arange(self.cells)

    @cached_property
    def _empty(self) -> Integers:
        """Positions without a cell; of mirror images under the odd sines, the upper."""
        period = self.transform.period
        lowest = 1 if self.family is RangeFamily.RANGES else period // 2 + 1
        return np.setdiff1d(np.arange(lowest, period), self._places)

    @cached_property
    def _empty_factor(self) -> tuple[Reals, bool]:
        s = self._empty
        z = self._cosines
        factor: tuple[Reals, bool] = scipy.linalg.cho_factor(z[abs(s[:, None] - s)] - z[s[:, None] + s])
        return factor

    @cached_property
    def _cosines(self) -> Reals:
        """z(d) = fold^2/2 sum_k cos(pi k d/M) / scale_k^2, for d = 0 .. 2M."""
        t = self.transform
        inverse = np.zeros(t.period + 1)
        inverse[t.frequencies] = np.square(self._fold / self._row_scale) / 2
        half: Reals = (scipy.fft.dct(inverse, type=1)) / 2
        return np.concatenate([half, half[-2::-1]])

    def _covary(self, query: Reals) -> Reals:
        """The covariance of the weighted positions, times a vector over them."""
        spectrum = self._sines(query)[self.transform.frequencies - 1]
        return self._fold * self._sines(self._at_frequencies(spectrum * self._fold / np.square(self._row_scale)))

    def _at_frequencies(self, spectrum: Reals) -> Reals:
        full = np.zeros((*spectrum.shape[:-1], self.transform.period - 1))
        full[..., self.transform.frequencies - 1] = spectrum
        return full

    def _sines(self, vector: Reals) -> Reals:
        """sum_s sin(pi k s/M) x_s, which is its own transpose."""
        result: Reals = scipy.fft.dst(vector, type=1) / 2
        return result


def sine_strategy(
    family: RangeFamily, column: str, *, cells: int, max_rows: int, first: int = 0, size: int | None = None
) -> SineStrategy:
    """The strategy for all ranges, or all prefix sums, over `cells` cells of a column of `size` from `first` on.

    g_k^2 = 1/(2 sin(pi k/(2M))), the root of V's eigenvalue, and c_i^-2 = sum_k g_k^2 sin^2(pi k s_i/M), so that every
    column has the same length. M is n+1 for ranges and 2n+1 for prefix sums, or the next that can be transformed.
    Guarantees: the error is at most 1.012 times that of the best strategy for ranges and 1.031 for prefix sums from 64
    cells on, and falls with their number (`ratio` says how far); all rounding is counted.
    Edge cases: more than 2^23 - 1 cells (half as many for prefix sums), or none, are refused.
    """
    if cells < 1 or (2 if family is RangeFamily.PREFIXES else 1) * cells >= LARGEST_PERIOD // 2:
        raise QueryError(f"all {family.value} of {cells} cells cannot be measured together")
    if family is RangeFamily.RANGES:
        period, start, step = smooth_from(cells + 1), 1, 1
    else:
        period = next(m for m in range(2 * cells + 1, 4 * cells + 3, 2) if factors_of(m) is not None)
        start, step = period - cells, 2
    frequencies = np.arange(1, period, step)
    ideal = np.zeros(period + 1)
    ideal[frequencies] = 1 / (2 * np.sin(np.pi * frequencies / (2 * period)))
    row_weights = np.rint(np.sqrt(ideal[1:-1] / ideal.max()) * 2.0**WEIGHT_BITS).astype(np.int64)
    places = start + np.arange(cells)
    energy = _energy(row_weights)[places]
    cell_weights = np.rint(np.sqrt(energy.min() / energy) * 2.0**WEIGHT_BITS).astype(np.int64)
    length = float((cell_weights * np.sqrt(energy)).max())
    transform = Transform(
        column=column,
        size=first + cells if size is None else size,
        first=first,
        start=start,
        period=period,
        shift=math.floor(math.log2(length)) - NORM_BITS,
        max_rows=max_rows,
        row_weights=row_weights,
        cell_weights=cell_weights,
    )
    return SineStrategy(family=family, transform=transform)


def least_variance(family: RangeFamily, cells: int) -> float:
    """What the sum of variances of no strategy of sensitivity one can be below: (tr V^1/2)^2 / n."""
    n = cells
    k = np.arange(1, n + 1)
    if family is RangeFamily.RANGES:
        roots = math.sqrt(n + 1) / (2 * np.sin(np.pi * k / (2 * (n + 1))))
    else:
        roots = 1 / (2 * np.sin(np.pi * (2 * k - 1) / (2 * (2 * n + 1))))
    return float(roots.sum()) ** 2 / n


def prefix_matrix(cells: int) -> Integers:
    """The strategy for all prefix sums written out, in whole numbers: one row for each of the odd sines.

    Where a column is only one of several, so that it cannot be transformed. Unlike in a transform no position of the
    circle is empty: its period is 2n + 1, whatever the factors of that.
    """
    period = 2 * cells + 1
    frequencies, places = np.arange(1, period, 2), np.arange(cells + 1, period)
    sines = np.sin(np.pi / period * (np.outer(frequencies, places) % (2 * period)))
    rows = sines / np.sqrt(2 * np.sin(np.pi / (2 * period) * frequencies))[:, None]
    scaled: Integers = np.rint(rows * (2.0**MATRIX_BITS / np.sqrt(np.square(rows).sum(axis=0)))).astype(np.int64)
    return scaled


def _energy(row_weights: Integers) -> Reals:
    """sum_k g_k^2 sin^2(pi k s/M) for s = 0 .. M-1."""
    squares = np.concatenate([[0.0], np.square(row_weights.astype(np.float64))])
    energy: Reals = (squares.sum() - scipy.fft.fft(squares).real) / 2
    return energy


def _half_convolution(a: Reals, b: Reals, z: Reals) -> float:
    """sum over i < j of a_i b_j z(i + j): halves, then halves of halves, each pair of halves by one convolution."""
    n = 1 << max(len(a) - 1, 1).bit_length()
    left, right = (np.pad(x, (0, n - len(x))) for x in (a, b))
    weights = np.pad(z[: 2 * n], (0, max(2 * n - len(z), 0)))
    total, half = 0.0, n // 2
    while half >= 1:
        blocks = n // (2 * half)
        first = scipy.fft.rfft(left.reshape(blocks, 2, half)[:, 0], 2 * half)
        second = scipy.fft.rfft(right.reshape(blocks, 2, half)[:, 1], 2 * half)
        sums = scipy.fft.irfft(first * second, 2 * half)
        lowest = 4 * half * np.arange(blocks) + half
        total += float((sums * weights[lowest[:, None] + np.arange(2 * half)]).sum())
        half //= 2
    return total
