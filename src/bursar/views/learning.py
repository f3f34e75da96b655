"""How a histogram learns, and when it is trusted: learning rates and the readiness heuristic (Boost, section 4.2)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

import numpy as np

from bursar.views.multiplicative_weights import Histogram, QueryBins


class Schedule(Protocol):
    """How large a step to take. A value: it keeps no state, and two with equal settings are equal."""

    def rate(self, histogram: Histogram, bins: QueryBins) -> float: ...


@dataclass(frozen=True, kw_only=True)
class ConstantRate:
    """The same for every update; alpha/8 is what vanilla PMW hard-codes."""

    value: float

    def rate(self, histogram: Histogram, bins: QueryBins) -> float:
        return self.value


@dataclass(frozen=True, kw_only=True)
class Decaying:
    """By the query's least updated bin: `rates` are (below how many updates, rate), then `last`.

    The published run: .25 below 50 updates, .0625 below 100, else .025. The paper prints ".25, decays to .025".
    """

    rates: tuple[tuple[int, float], ...] = ((50, 0.25), (100, 0.0625))
    last: float = 0.025

    def rate(self, histogram: Histogram, bins: QueryBins) -> float:
        least = histogram.least_updates(bins)
        return next((rate for below, rate in self.rates if least < below), self.last)


class Heuristic(Protocol):
    """ISHISTOGRAMREADY and PENALIZE of Algorithm 1. Free, as it looks at the histogram only. A value, as above."""

    def ready(self, histogram: Histogram, bins: QueryBins) -> bool:
        """Whether the estimate is likely to pass the test."""

    def failed(self, histogram: Histogram, bins: QueryBins) -> None:
        """A test that was thought to pass came out above."""

    def corrected(self, histogram: Histogram, bins: QueryBins) -> None:
        """The histogram has learnt from the answer that was bought after a failed test."""


class Penalty(Enum):
    """What a failed test does to the thresholds of the query's bins."""

    PUBLISHED = "published"  # all of them get the least number of updates among them, plus the step
    PRINTED = "printed"  # those of the least updated bins rise by the step


@dataclass(frozen=True, kw_only=True)
class Adaptive:
    """Ready where every bin of the query was updated as often as its own threshold says; failed tests raise those.

    `first` is C_0 and `step` S_0 of the paper. Thresholds never fall below `first`.

    Differs: Algorithm 1 penalises after the update (line 27); here at the failed test too, which stands in the log even
    if a crash kept the answer from being bought. Set anew after the update, the published thresholds are the paper's;
    the printed ones do not depend on the order.
    """

    first: int = 100
    step: int = 5
    penalty: Penalty = Penalty.PUBLISHED

    def ready(self, histogram: Histogram, bins: QueryBins) -> bool:
        if histogram.updates is None:
            return self.first <= 0
        if histogram.thresholds is None:
            return histogram.least_updates(bins) >= self.first
        thresholds = np.maximum(bins.of(histogram.thresholds), self.first)
        return bool(np.all(bins.of(histogram.updates) >= thresholds))

    def failed(self, histogram: Histogram, bins: QueryBins) -> None:
        self._raise(histogram, bins)

    def corrected(self, histogram: Histogram, bins: QueryBins) -> None:
        if self.penalty is Penalty.PUBLISHED:
            self._raise(histogram, bins)

    def _raise(self, histogram: Histogram, bins: QueryBins) -> None:
        if histogram.thresholds is None:
            histogram.thresholds = np.zeros(histogram.shape, np.int32)
        least = histogram.least_updates(bins)
        old = bins.of(histogram.thresholds)
        if self.penalty is Penalty.PUBLISHED:
            new = np.full(old.shape, least + self.step, np.int32)
        else:
            updates = np.zeros_like(old) if histogram.updates is None else bins.of(histogram.updates)
            new = np.where(updates == least, np.maximum(old, self.first) + self.step, old).astype(np.int32)
        bins.put(histogram.thresholds, new)


@dataclass(frozen=True, kw_only=True)
class Always:
    """Vanilla PMW: every question is tested."""

    def ready(self, histogram: Histogram, bins: QueryBins) -> bool:
        return True

    def failed(self, histogram: Histogram, bins: QueryBins) -> None:
        pass

    def corrected(self, histogram: Histogram, bins: QueryBins) -> None:
        pass


@dataclass(frozen=True, kw_only=True)
class Never(Always):
    """Every question is bought; the histogram learns and is never asked."""

    def ready(self, histogram: Histogram, bins: QueryBins) -> bool:
        return False
