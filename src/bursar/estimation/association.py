"""Covariance, correlation and the line of least squares of two columns, with their intervals.

From numbers of rows N and sums over rows of values less a constant each, which lie in boxes: X, Y, XY, XX, YY. With
means x = X/N and y = Y/N, the covariance is XY/N - x y, the variance XX/N - x^2. Every end is that of interval
arithmetic over the boxes, cut to what is possible at all: it holds whenever the bars do, and is wider than need be.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from bursar.arrays import Reals
from bursar.estimation.derived import ROUNDING_OF_COUNTS, ROUNDING_OF_ENDS, Box, Combination, Derived, single
from bursar.lazy_dataclass import dataclass

Interval = tuple[Reals, Reals, Reals]
"""Value, low and high."""


class Associated(Enum):
    """What is made of two columns, under the name that SQL has for it."""

    COVAR_POP = "COVAR_POP"
    COVAR_SAMP = "COVAR_SAMP"
    CORR = "CORR"
    REGR_SLOPE = "REGR_SLOPE"
    REGR_INTERCEPT = "REGR_INTERCEPT"
    REGR_R2 = "REGR_R2"


@dataclass(frozen=True, kw_only=True)
class Association:
    """Columns and units of N, X, Y, XY, XX and YY; y is the column that is explained, x the one that explains it."""

    kind: Associated
    columns: tuple[int, ...]
    units: tuple[float, ...]
    steps: tuple[float, ...]
    centres: tuple[float, float]  # what was taken off x and y
    widths: tuple[float, float]  # of the ranges of x and y

    def of(self, box: Box) -> Derived:
        sums = box.columns(self.columns).times(np.array(self.units))
        needed = 2.0 if self.kind is Associated.COVAR_SAMP else 1.0
        nothing = sums.high[:, 0] < needed - ROUNDING_OF_COUNTS
        sums = sums.at_least(np.array([needed, *[-np.inf] * 3, 0.0, 0.0]))
        n, x, y, xy, xx, yy = ((sums.values[:, place], sums.low[:, place], sums.high[:, place]) for place in range(6))
        half = [width / 2 for width in self.widths]
        mean_x, mean_y = (_cut(_over(total, n), -h, h) for total, h in zip((x, y), half, strict=True))
        most = self.widths[0] * self.widths[1] / 4
        covariance = _cut(_less(_over(xy, n), _times(mean_x, mean_y)), -most, most)
        var_x, var_y = (
            _cut(_less(_over(square, n), _squared(mean)), 0.0, width**2 / 4)
            for square, mean, width in zip((xx, yy), (mean_x, mean_y), self.widths, strict=True)
        )
        value, low, high = self._made(n, covariance, var_x, var_y, mean_x, mean_y)
        low, high = low - ROUNDING_OF_ENDS * np.abs(low), high + ROUNDING_OF_ENDS * np.abs(high)
        lowest, highest = self.reach
        value = np.where(nothing | np.isnan(value), np.nan, np.clip(value, low, high))
        return Derived(value, np.where(nothing, lowest, low), np.where(nothing, highest, high))

    @property
    def reach(self) -> tuple[float, float]:
        most = self.widths[0] * self.widths[1] / 4
        match self.kind:
            case Associated.CORR:
                return -1.0, 1.0
            case Associated.REGR_R2:
                return 0.0, 1.0
            case Associated.COVAR_POP | Associated.COVAR_SAMP:
                return -2 * most, 2 * most
        return -np.inf, np.inf

    @property
    def rows(self) -> Combination:
        return single(self.columns[0])

    def _made(
        self, n: Interval, covariance: Interval, var_x: Interval, var_y: Interval, mean_x: Interval, mean_y: Interval
    ) -> Interval:
        match self.kind:
            case Associated.COVAR_POP:
                return covariance
            case Associated.COVAR_SAMP:
                fewest, most = n[1], n[2]
                factor = n[0] / (n[0] - 1), most / (most - 1), fewest / np.maximum(fewest - 1, 1e-12)
                return _times(covariance, factor)
        slope = _over(covariance, var_x)
        match self.kind:
            case Associated.REGR_SLOPE:
                return slope
            case Associated.REGR_INTERCEPT:
                centre_x, centre_y = self.centres
                moved = tuple(end + centre_x for end in mean_x)
                raised = tuple(end + centre_y for end in mean_y)
                return _less((raised[0], raised[1], raised[2]), _times(slope, (moved[0], moved[1], moved[2])))
        product = _times(var_x, var_y)
        with np.errstate(invalid="ignore"):
            root = (np.sqrt(product[0]), np.sqrt(product[1]), np.sqrt(product[2]))
        correlation = _cut(_over(covariance, root), -1.0, 1.0)
        if self.kind is Associated.CORR:
            return correlation
        value, low, high = _cut(_squared(correlation), 0.0, 1.0)
        explained = (var_y[0] == 0) & (var_x[0] > 0)  # what does not vary is explained in full, as SQL has it
        return np.where(explained, 1.0, value), low, high

    def rehearsed(self, rows: float, error: float) -> tuple[float, float]:
        """The interval among so many rows if values deviate by an eighth of their ranges, and correlate by a half."""
        x, y = (width / 8 for width in self.widths)
        sums = rows * np.array([1.0, 0.0, 0.0, x * y / 2, x * x, y * y]) / np.array(self.units)
        bars = error * np.array(self.steps)
        box = Box(sums[None, :], (sums - bars)[None, :], (sums + bars)[None, :])
        derived = replace(self, columns=tuple(range(6))).of(box)
        return float(derived.low[0]), float(derived.high[0])

    def sure(self, box: Box) -> NDArray[np.bool_] | None:
        sums = box.columns(self.columns).times(np.array(self.units))
        fewest, spread = sums.low[:, 0] > 1, sums.low[:, 4] > 0
        return np.asarray(fewest if self.kind in (Associated.COVAR_POP, Associated.COVAR_SAMP) else fewest & spread)

    def facts(self) -> list[object]:
        return ["association", self.kind.value, list(self.columns), list(self.units), list(self.centres)]


def _times(left: Interval, right: Interval) -> Interval:
    with np.errstate(invalid="ignore"):
        corners = np.stack([a * b for a in left[1:] for b in right[1:]])
    corners = np.where(np.isnan(corners), 0.0, corners)
    return left[0] * right[0], corners.min(axis=0), corners.max(axis=0)


def _less(left: Interval, right: Interval) -> Interval:
    return left[0] - right[0], left[1] - right[2], left[2] - right[1]


def _squared(part: Interval) -> Interval:
    ends = np.square(part[1]), np.square(part[2])
    across = (part[1] <= 0) & (part[2] >= 0)
    return np.square(part[0]), np.where(across, 0.0, np.minimum(*ends)), np.maximum(*ends)


def _over(above: Interval, below: Interval) -> Interval:
    """NaN where the divisor is 0; without ends where it may be."""
    across = (below[1] <= 0) & (below[2] >= 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.where(below[0] == 0, np.nan, above[0] / below[0])
        corners = np.stack([a / b for a in above[1:] for b in below[1:]])
    corners = np.where(np.isnan(corners), 0.0, corners)
    return value, np.where(across, -np.inf, corners.min(axis=0)), np.where(across, np.inf, corners.max(axis=0))


def _cut(part: Interval, lowest: float, highest: float) -> Interval:
    value, low, high = (np.clip(end, lowest, highest) for end in part)
    return value, low, high
