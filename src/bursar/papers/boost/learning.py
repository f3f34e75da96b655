"""Learning rates and readiness of Boost that the engine does not use: Algorithm 1 as printed, vanilla PMW."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bursar.core.accounting import Noise
from bursar.views.histograms import Histogram, QueryBins
from bursar.views.learner import Adaptive, Learning


@dataclass(frozen=True, kw_only=True)
class ConstantRate:
    """The same for every update; alpha/8 is what vanilla PMW hard-codes."""

    value: float

    def rate(self, histogram: Histogram, bins: QueryBins) -> float:
        return self.value


@dataclass(frozen=True, kw_only=True)
class AdaptiveAsPrinted(Adaptive):
    """The readiness heuristic with the penalty as printed: thresholds of the least updated bins rise by the step.

    They do not depend on the order of penalty and update, so the penalty is due once, at the failed test.
    """

    def failed(self, histogram: Histogram, bins: QueryBins) -> None:
        if histogram.thresholds is None:
            histogram.thresholds = np.zeros(histogram.shape, np.int32)
        least, thresholds = histogram.least_updates(bins), bins.of(histogram.thresholds)
        updates = np.zeros_like(thresholds) if histogram.updates is None else bins.of(histogram.updates)
        raised = np.where(updates == least, np.maximum(thresholds, self.first) + self.step, thresholds)
        bins.put(histogram.thresholds, raised.astype(np.int32))

    def corrected(self, histogram: Histogram, bins: QueryBins) -> None:
        pass


@dataclass(frozen=True, kw_only=True)
class LearningAsPrinted(Learning):
    """A failed test is taken at its word: the histogram learns from the answer without a margin (Algorithm 1, line 24).

    The error alpha of an answer is taken to be `spread` times what its noise keeps but for `beta`: with the constants
    of Algorithm 1 as printed that is alpha itself for spread 4.
    """

    spread: float = 1.0

    def margin(self, noise: Noise, *, failed: bool) -> float:
        return 0.0 if failed else self.spread * super().margin(noise, failed=failed)


@dataclass(frozen=True, kw_only=True)
class Always:
    """Vanilla PMW: every question is tested."""

    fewest: ClassVar[int] = 0

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
