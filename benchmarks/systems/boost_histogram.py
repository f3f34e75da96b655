"""The histogram of PMW-Bypass: it learns from bought answers, and knows for which queries it has learned enough."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.boost_questions import Selector

TIDIED = 256
"""Updates after which the weights are scaled to 1 again, so that they stay in range and rounding does not pile up."""


class Histogram:
    """Weights, and for each bin the updates it has had and the updates from which on it counts as ready.

    Lazily normalised: an estimate divides by the sum of all weights, and an update touches the query's bins alone.
    """

    def __init__(self, bins: tuple[int, ...], threshold: int) -> None:
        self.weights = np.full(bins, 1 / math.prod(bins))
        self.total = 1.0
        self.updates = np.zeros(bins, np.int32)
        self.thresholds = np.full(bins, threshold, np.int32)
        self.learned = 0

    def copy(self) -> Histogram:
        """What a new leaf starts from: all that its predecessor has learned, and how well it knows it."""
        other = Histogram.__new__(Histogram)
        other.weights, other.total, other.learned = self.weights.copy(), self.total, 0
        other.updates, other.thresholds = self.updates.copy(), self.thresholds.copy()
        return other

    @staticmethod
    def mean(left: Histogram, right: Histogram) -> Histogram:
        """What an inner node starts from: the average of its children."""
        other = left.copy()
        other.weights = left.weights / (2 * left.total) + right.weights / (2 * right.total)
        other.total = 1.0
        other.updates = (left.updates + right.updates) // 2
        other.thresholds = (left.thresholds + right.thresholds) // 2
        return other

    @property
    def bytes(self) -> int:
        return self.weights.nbytes + self.updates.nbytes + self.thresholds.nbytes

    def estimate(self, bins: Selector) -> float:
        return float(self.weights[bins].sum()) / self.total

    def ready(self, bins: Selector) -> bool:
        """Whether every bin has had as many updates as its threshold asks for (section 4.2)."""
        return bool((self.updates[bins] >= self.thresholds[bins]).all())

    def least(self, bins: Selector) -> int:
        """The updates of the query's least updated bin."""
        return int(self.updates[bins].min())

    def update(self, bins: Selector, rate: float) -> None:
        """h(v) <- h(v) exp(rate) in the query's bins, then scaled to 1: UPDATE of Alg. 1."""
        factor = math.exp(rate)
        self.total += float(self.weights[bins].sum()) * (factor - 1)
        self.weights[bins] *= factor
        self.updates[bins] += 1
        self.learned += 1
        if self.learned % TIDIED == 0:
            self.weights /= self.weights.sum()
            self.total = 1.0

    def raise_all(self, bins: Selector, step: int) -> None:
        """After a failed test, as in the figures: every bin of the query waits for `step` more of the least updated."""
        self.thresholds[bins] = self.least(bins) + step

    def raise_least(self, bins: Selector, step: int) -> None:
        """After a failed test, as printed: `step` more for the least updated bins alone."""
        updates = self.updates[bins]
        self.thresholds[bins] += step * (updates == updates.min())
