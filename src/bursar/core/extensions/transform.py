"""Weighted sine transforms of one column: a million rows that could not be written down, measured in O(n log n).

The answers are rounded to whole numbers, and what a unit can move them by is bounded with the rounding and the
floating point counted in; see transform.proof.md.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Integers, Reals
from bursar.core.extensions.pairs import PAIR_CELLS
from bursar.core.queries.linear_map import Counts, Header, LinearMap, Norm
from bursar.core.queries.mask import Mask, Steps
from bursar.errors import QueryError

LARGEST_PERIOD = 2**23
LARGEST_WEIGHT = 2**26
LARGEST_SHIFT = 64
LARGEST_ROWS = 2**36
"""A weight times so many rows fits in 64 bits."""

HEADER = ("column", "size", "first", "start", "period", "shift", "max_rows")

ROUNDING_MARGIN = 1 + 2.0**-30
"""A bound is multiplied by this last: far more than the arithmetic that made it can have lost."""


@dataclass(frozen=True, eq=False)
class DistanceNorm(Norm):
    """The norm of answers of which only a distance is known: a row in cell v moves them by at most b(v) in all.

    It is kept as one mask with one row b, so the norm is b(v)^power. Directions are not known, hence two cells are at
    most b(v) + b(w) apart.
    """

    @cached_property
    def one_sign(self) -> bool:
        return False

    def pairs(self) -> Integers | None:
        (mask,) = self.masks
        if mask.steps.size > PAIR_CELLS:
            return None
        reach = mask.steps.at_cells(np.arange(mask.steps.size))[0]
        apart: Integers = (reach[:, None] + reach[None, :]) ** self.power
        np.fill_diagonal(apart, 0)
        return apart


@dataclass(frozen=True, kw_only=True, eq=False)
class Transform:
    """Row k, for every k of 1 .. period-1 with g_k > 0, asks for the whole number nearest to

        2^-shift g_k sum_i c_i x(first + i) sin(pi k (start + i) / period),

    with g = `row_weights`, c = `cell_weights`, and x the counts of the column.

    Guarantees: `norms` bound how far one row of data can move the rounded answers, for tables of at most `max_rows`
    rows; the kernel refuses a transform made for fewer rows than the data may have. Arrays are copies that cannot be
    written to.
    Edge cases: weights outside 0 .. 2^26, a period above 2^23 or with a prime factor above 61, cells outside the
    column or positions outside 1 .. period-1 are refused. Rows cannot be taken one by one.
    """

    column: str
    size: int
    first: int
    start: int
    period: int
    shift: int
    max_rows: int
    row_weights: Integers
    cell_weights: Integers

    def __post_init__(self) -> None:
        for name in ("row_weights", "cell_weights"):
            array = np.array(getattr(self, name))
            if array.dtype != np.int64 or array.ndim != 1:
                raise QueryError("the weights of a transform are lists of whole numbers")
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        if not (self._whole() and self._placed() and self._bounded()):
            raise QueryError("a transform is malformed, or its weights are too large")

    def _whole(self) -> bool:
        numbers = (self.size, self.first, self.start, self.period, self.shift, self.max_rows)
        return isinstance(self.column, str) and all(type(number) is int for number in numbers)

    def _placed(self) -> bool:
        cells = len(self.cell_weights)
        inside = self.first >= 0 and self.first + cells <= self.size and cells > 0
        on_circle = self.start >= 1 and self.start + cells <= self.period == len(self.row_weights) + 1
        return inside and on_circle

    def _bounded(self) -> bool:
        weights = (self.row_weights, self.cell_weights)
        fits = all(int(w.min()) >= 0 and int(w.max()) <= LARGEST_WEIGHT for w in weights)
        ranges = 0 <= self.shift <= LARGEST_SHIFT and 0 <= self.max_rows <= LARGEST_ROWS
        return fits and ranges and self.period <= LARGEST_PERIOD and factors_of(2 * self.period) is not None

    @property
    def attrs(self) -> tuple[str, ...]:
        return (self.column,)

    @cached_property
    def frequencies(self) -> Integers:
        """The k of each row."""
        return 1 + np.flatnonzero(self.row_weights)

    @property
    def rows(self) -> int:
        return len(self.frequencies)

    @cached_property
    def digest(self) -> str:
        from bursar.core.queries.map_codec import encode  # the codec knows every kind of map

        return hashlib.blake2b(encode(self), digest_size=16).hexdigest()

    def packed(self) -> tuple[Header, list[Integers]]:
        """What its bytes say: a header, and arrays."""
        header = {name: getattr(self, name) for name in HEADER}
        return {"kind": "transform", "cells": len(self.cell_weights), **header}, [self.row_weights, self.cell_weights]

    @staticmethod
    def unpacked(header: Header, numbers: Integers) -> Transform:
        rows, cells = np.split(numbers, [header["period"] - 1])
        if len(cells) != header["cells"]:
            raise ValueError("a transform has another number of cells than it says")
        return Transform(**{name: header[name] for name in HEADER}, row_weights=rows, cell_weights=cells)

    def apply(self, counts: Counts) -> Integers:
        cells = len(self.cell_weights)
        padded = np.zeros(2 * self.period)
        padded[self.start : self.start + cells] = (
            self.cell_weights * counts(self.attrs)[self.first : self.first + cells]
        )
        _, imaginary = dft(padded)
        answers = -imaginary[self.frequencies] * self.row_weights[self.frequencies - 1] * 2.0**-self.shift
        return np.rint(answers).astype(np.int64)

    def norms(self, power: int) -> tuple[Norm, ...]:
        return (self._norms[power],)

    @cached_property
    def _norms(self) -> dict[int, Norm]:
        """Distances add up over rows by squares; in first powers they are at most sqrt(rows) times that."""
        root = math.sqrt(self.rows)
        return {power: self._reach(self.reach * (1.0 if power == 2 else root), power) for power in (1, 2)}

    def _reach(self, distance: Reals, power: int) -> DistanceNorm:
        whole = np.zeros(self.size, np.int64)
        whole[self.first : self.first + len(distance)] = np.ceil(distance * ROUNDING_MARGIN)
        return DistanceNorm((Mask(self.attrs, (self.size,), Steps.dense(whole)),), power)

    @cached_property
    def reach(self) -> Reals:
        """b(v) for each cell that takes part: the length of its column, twice the floating error, sqrt(rows).

        The length follows from sum_k g_k^2 sin^2(pi k s/M) = (sum_k g_k^2 - sum_k g_k^2 cos(2 pi k s/M)) / 2.
        Edge cases: a cell of weight zero does not move anything: the same numbers are computed with and without it.
        """
        squares = np.concatenate([[0.0], np.square(self.row_weights.astype(np.float64))])
        total = math.fsum(squares)
        cosines, _ = dft(squares)
        cells = len(self.cell_weights)
        energy = (total - cosines[self.start : self.start + cells]) / 2 + error_of(self.period) * total
        length = self.cell_weights * np.sqrt(np.maximum(energy, 0.0)) * 2.0**-self.shift
        distance = length + 2 * self.float_error + math.sqrt(self.rows)
        return np.asarray(np.where(self.cell_weights > 0, distance, 0.0))

    @cached_property
    def float_error(self) -> float:
        """How far all answers together can be, before they are rounded, from the exact ones (L2); rounded up.

        Each sum is off by at most e times the weighted number of rows; one rounding of c_i x_i and two of the
        weighting are added.
        """
        relative = (1 + error_of(2 * self.period)) * (1 + 4 * UNIT_ROUNDOFF) - 1
        g = math.sqrt(math.fsum(np.square(self.row_weights.astype(np.float64))))
        return relative * g * int(self.cell_weights.max()) * self.max_rows * 2.0**-self.shift * ROUNDING_MARGIN

    def largest(self) -> int:
        """The largest |q_k(v)|, with what rounding and floating point add per row of data."""
        product = int(self.row_weights.max()) * int(self.cell_weights.max())
        return -(-product >> self.shift) + 1

    def take(self, rows: Sequence[int]) -> LinearMap:
        if list(rows) == list(range(self.rows)):
            return self
        raise QueryError("the rows of a transform are measured together")


LARGEST_FACTOR = 61
"""Largest prime factor of a length that can be transformed; lengths with smaller factors only lie close together."""

PREFERRED_FACTOR = 16
"""Small primes are multiplied up to this: fewer stages, and still short sums."""

UNIT_ROUNDOFF = 2.0**-53
WEIGHT_ERROR = 2.0**-49
"""How far a computed cosine or sine of 2 pi j/N, |j| <= N/2, can be off; the proof says why."""


def factors_of(length: int) -> tuple[int, ...] | None:
    """The factors that a length is transformed by; None where it has a prime factor above `LARGEST_FACTOR`."""
    factors: list[int] = []
    left, prime = length, 2
    while left > 1 and prime <= LARGEST_FACTOR:
        while left % prime == 0:
            left //= prime
            if factors and factors[-1] * prime <= PREFERRED_FACTOR:
                factors[-1] *= prime
            else:
                factors.append(prime)
        prime += 1
    return tuple(factors) if left == 1 else None


def smooth_from(least: int) -> int:
    """The smallest length of at least `least` that can be transformed."""
    return next(length for length in range(least, 2 * least + 1) if factors_of(length) is not None)


def error_of(length: int) -> float:
    """e with |computed - exact| <= e sum_j |x_j| for every entry of `dft`; rounded up.

    1 + e is the product over stages of (1 + sqrt2 mu)^2 (1 + sqrt2 gamma_(f+1)) (1 + sqrt2 gamma_2), with f the
    stage's factor, mu the error of a weight and gamma_k = k u / (1 - k u).
    """
    log = 0.0
    for factor in factors_of(length) or ():
        for part in (WEIGHT_ERROR, WEIGHT_ERROR, _gamma(factor + 1), _gamma(2)):
            log += math.log1p(math.sqrt(2) * part)
    return math.expm1(log) * (1 + 2.0**-20) + 2.0**-60


def dft(values: Reals) -> tuple[Reals, Reals]:
    """Real and imaginary parts of sum_j x_j exp(-2 pi i j k / N), for k = 0 .. N-1; x is real.

    Stage by stage, j = j1 m + j2 and k = k1 + f k2: exp(-2 pi i jk/N) is the product of exp(-2 pi i j1 k1/f),
    exp(-2 pi i j2 k1/(f m)) and exp(-2 pi i j2 k2/m). New indices go in front, so the result is in order at the end.
    """
    length = len(values)
    re: Reals = np.array(values, np.float64)
    im: Reals = np.zeros(length)
    done, left = 1, length
    for factor in factors_of(length) or ():
        left //= factor
        cosine, sine = _weights(factor, np.outer(np.arange(factor), np.arange(factor)))
        re, im = (_split(part, done, factor, left) for part in (re, im))
        re, im = cosine @ re + sine @ im, cosine @ im - sine @ re
        cosine, sine = _weights(factor * left, np.outer(np.arange(factor), np.arange(left)))
        re, im = (part.reshape(factor, done, left) for part in (re, im))
        cosine, sine = cosine[:, None, :], sine[:, None, :]
        re, im = re * cosine + im * sine, im * cosine - re * sine
        done *= factor
    return re.reshape(length), im.reshape(length)


def _split(part: Reals, done: int, factor: int, left: int) -> Reals:
    return part.reshape(done, factor, left).transpose(1, 0, 2).reshape(factor, done * left)


def _weights(length: int, power: NDArray[np.int64]) -> tuple[Reals, Reals]:
    """Cosine and sine of 2 pi power/length, from the power's remainder nearest to zero."""
    remainder = power % length
    angle = (remainder - length * (2 * remainder > length)) * (2 * math.pi) / length
    return np.cos(angle), np.sin(angle)


def _gamma(operations: int) -> float:
    return operations * UNIT_ROUNDOFF / (1 - operations * UNIT_ROUNDOFF)
