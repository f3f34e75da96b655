"""Which ranges may come after those that were asked: the same, with ends that are a little off.

Each range that was asked stands for ranges about it, whose ends are normal around its own and independent of each
other. How wide, the spread of all first ends says, and that of all last ends (Silverman's rule, doubled): the more
were seen, the less there is to guess.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from bursar.arrays import Integers, Reals

AskedRange = tuple[int, int, float]
"""A range [low, high) of cells, and the variance that its answer may have."""

WIDTH, LEAST_WIDTH = 2 * 1.06, 0.7
"""Times the spread of n ends over n^(1/5); and in cells, since ends are whole numbers."""

QUARTILES_OF_NORMAL = 1.34
"""Between them, in standard deviations."""

REACHES = np.linspace(-2.0, 2.0, 9)
"""Where ranges to come may end, in widths from ends that were asked for."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RangesToCome:
    """A law of ranges [low, high) of a column of `size` cells, and how much each counts."""

    lows: Reals
    highs: Reals
    weights: Reals
    low_width: float
    high_width: float
    size: int

    @staticmethod
    def like(asked: Sequence[AskedRange], size: int) -> RangesToCome:
        """After ranges with these ends and variances: one that has to be answered more exactly counts for more."""
        lows, highs, variances = np.array(asked, np.float64).T
        return RangesToCome(
            lows=lows,
            highs=highs,
            weights=1 / variances,
            low_width=_width(lows),
            high_width=_width(highs),
            size=size,
        )

    def ends(self) -> Integers:
        """Where such ranges begin or end inside of the column."""
        low = (self.lows[:, None] + REACHES * self.low_width).ravel()
        high = (self.highs[:, None] + REACHES * self.high_width).ravel()
        every = np.unique(np.rint(np.concatenate([low, high])).astype(np.int64))
        return np.asarray(every[(every > 0) & (every < self.size)])

    def gram(self, firsts: Integers) -> Reals:
        """How much ranges count that hold two cells, of the cells at `firsts`, in increasing order."""
        begun = ndtr((firsts + 0.5 - self.lows[:, None]) / self.low_width)
        left = ndtr((self.highs[:, None] - firsts - 0.5) / self.high_width)
        pairs = (
            begun.T * self.weights
        ) @ left  # the range begins at the first cell or before, and ends after the second
        return np.asarray(np.triu(pairs) + np.triu(pairs, 1).T)


def _width(ends: Reals) -> float:
    spread, quartiles = float(np.std(ends)), np.percentile(ends, [25, 75])
    between = float(quartiles[1] - quartiles[0]) / QUARTILES_OF_NORMAL
    spread = min(spread, between) if between > 0 else spread
    return max(WIDTH * spread * math.pow(len(ends), -0.2), LEAST_WIDTH)
