"""Learning rates, and when a histogram is taken to be ready."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.papers.boost.learning import AdaptiveAsPrinted, Always, ConstantRate, Never
from bursar.views.histograms import Histogram, QueryBins
from bursar.views.learner import Adaptive, Decaying


def cells(low: int, high: int) -> QueryBins:
    return QueryBins(index=(slice(low, high),), listed=False, values=None, even=(high - low) / 10)


def trained(*updates: int) -> Histogram:
    histogram = Histogram((len(updates),))
    for cell, count in enumerate(updates):
        for _ in range(count):
            histogram.update(cells(cell, cell + 1), 0.01)
    return histogram


@pytest.mark.parametrize(("updates", "rate"), [(0, 0.25), (49, 0.25), (50, 0.0625), (99, 0.0625), (100, 0.025)])
def test_the_published_rates(updates: int, rate: float) -> None:
    histogram = trained(updates, 120)
    assert Decaying().rate(histogram, cells(0, 2)) == rate
    assert Decaying().rate(histogram, cells(1, 2)) == 0.025
    assert ConstantRate(value=0.05 / 8).rate(histogram, cells(0, 2)) == 0.00625


def test_ready_where_every_bin_was_updated_often_enough() -> None:
    adaptive = Adaptive(first=3, step=2)
    histogram = trained(2, 3, 4)
    assert not adaptive.ready(Histogram((3,)), cells(0, 3))
    assert not adaptive.ready(histogram, cells(0, 3))
    assert adaptive.ready(histogram, cells(1, 3))
    assert Adaptive(first=0).ready(Histogram((3,)), cells(0, 3))


def test_a_failed_test_as_published() -> None:
    """All bins of the query get the least number of updates plus the step, whatever they had."""
    adaptive = Adaptive(first=3, step=2)
    histogram = trained(3, 5, 9)
    adaptive.failed(histogram, cells(0, 2))
    assert histogram.thresholds is not None
    assert histogram.thresholds.tolist() == [5, 5, 0]
    assert [adaptive.ready(histogram, cells(i, i + 1)) for i in range(3)] == [False, True, True]
    histogram.update(cells(0, 2), 0.01)
    adaptive.corrected(histogram, cells(0, 2))  # after the update, as Algorithm 1 has it
    assert histogram.thresholds.tolist() == [6, 6, 0]
    adaptive.failed(trained(), cells(0, 0))  # nothing to penalise


def test_a_failed_test_as_printed() -> None:
    """Only the least updated bins, each by the step; and the same whether before or after the update."""
    adaptive = AdaptiveAsPrinted(first=3, step=2)
    histogram = trained(3, 5, 3, 9)
    adaptive.failed(histogram, cells(0, 4))
    adaptive.corrected(histogram, cells(0, 4))
    assert histogram.thresholds is not None
    assert histogram.thresholds.tolist() == [5, 0, 5, 0]
    adaptive.failed(histogram, cells(0, 2))
    assert histogram.thresholds.tolist() == [7, 0, 5, 0]
    untouched = Histogram((2,))
    AdaptiveAsPrinted(first=0, step=2).failed(untouched, cells(0, 2))
    np.testing.assert_array_equal(untouched.thresholds, [2, 2])


def test_a_threshold_never_falls_below_the_first() -> None:
    adaptive = Adaptive(first=100, step=5)
    histogram = trained(20)
    adaptive.failed(histogram, cells(0, 1))
    assert not adaptive.ready(histogram, cells(0, 1))
    histogram = trained(99)
    histogram.thresholds = np.array([25], np.int32)
    assert not adaptive.ready(histogram, cells(0, 1))
    histogram.update(cells(0, 1), 0.01)
    assert adaptive.ready(histogram, cells(0, 1))


def test_always_and_never() -> None:
    histogram = trained(1)
    for heuristic, ready in ((Always(), True), (Never(), False)):
        heuristic.failed(histogram, cells(0, 1))
        heuristic.corrected(histogram, cells(0, 1))
        assert heuristic.ready(histogram, cells(0, 1)) is ready
    assert histogram.thresholds is None
