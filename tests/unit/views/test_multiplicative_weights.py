"""The histogram: against multiplicative weights written out over all cells."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.core.queries import Mask, Product, Steps
from bursar.views import histograms as mw
from bursar.views.histograms import LEAST_WEIGHT, UPDATES_BETWEEN_REFRESHES, Histogram, HistogramGrid, QueryBins

NAMES, SHAPE = ("a", "b", "c"), (4, 3, 5)
GRID = HistogramGrid(NAMES, SHAPE)


def query(**rows: list[int]) -> Product:
    return Product(tuple(Mask((n,), (len(row),), Steps.dense([row])) for n, row in rows.items()))


def written_out(asked: Product) -> np.ndarray:
    """The values over all cells, divided by the largest."""
    whole = np.ones(SHAPE)
    for mask in asked.masks:
        places = [NAMES.index(name) for name in mask.attrs]
        table = mask.steps.at_cells(np.arange(mask.steps.size)).reshape(mask.sizes)
        whole = whole * np.transpose(table, np.argsort(places)).reshape(
            [SHAPE[place] if place in places else 1 for place in range(3)]
        )
    return whole / whole.max()


def joint() -> Product:
    row = np.zeros(15, np.int64)
    row[[0, 4, 5, 9, 14]] = [1, 2, 4, 4, 3]
    return Product((Mask(("c", "b"), (5, 3), Steps.dense(row[None])), Mask(("a",), (4,), Steps.dense([[0, 1, 1, 0]]))))


ASKED = {
    "a range": query(a=[0, 1, 1, 0]),
    "one cell": query(a=[1, 0, 0, 0], c=[0, 0, 0, 0, 1], b=[0, 1, 0]),
    "every other": query(c=[1, 0, 1, 0, 1]),
    "a list": query(c=[1, 1, 0, 0, 1], a=[0, 1, 0, 1]),
    "values": query(a=[0, 1, 2, 3], b=[1, 1, 0]),
    "values on a list": query(c=[3, 1, 0, 0, 2], b=[2, 0, 1]),
    "all": Product(()),
    "a joint condition": joint(),
}


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED.keys())
def test_bins_are_where_a_query_is_not_zero(asked: Product) -> None:
    bins = GRID.bins(asked)
    found = np.zeros(SHAPE)
    bins.put(found, np.ones(bins.of(found).shape) * (1 if bins.values is None else bins.values))
    np.testing.assert_allclose(found, written_out(asked), rtol=1e-6)
    assert bins.even == pytest.approx(written_out(asked).mean())
    assert Histogram(SHAPE).estimate(bins) == bins.even


def test_ranges_and_equal_distances_are_slices() -> None:
    assert all(isinstance(one, slice) for one in GRID.bins(ASKED["a range"]).index)
    assert GRID.bins(ASKED["every other"]).index[2] == slice(0, 5, 2)
    assert not all(isinstance(one, slice) for one in GRID.bins(ASKED["a list"]).index)
    whole = np.zeros(SHAPE)
    assert np.shares_memory(GRID.bins(ASKED["every other"]).of(whole), whole)


def test_a_run_of_updates_is_what_is_printed() -> None:
    """UPDATE of Algorithm 1: g = h e^(s q), h = g / sum g."""
    rng = np.random.default_rng(1)
    histogram, h = Histogram(SHAPE), np.full(SHAPE, 1 / 60)
    touched = np.zeros(SHAPE, int)
    for _ in range(400):
        asked = list(ASKED.values())[rng.integers(len(ASKED))]
        step = float(rng.choice([-0.25, -0.025, 0.025, 0.25]))
        histogram.update(GRID.bins(asked), step)
        g = h * np.exp(step * written_out(asked))
        h = g / g.sum()
        touched += written_out(asked) > 0
    np.testing.assert_allclose(histogram.distribution(), h, rtol=1e-4)
    np.testing.assert_array_equal(histogram.updates, touched)
    for asked in ASKED.values():
        bins = GRID.bins(asked)
        assert histogram.estimate(bins) == pytest.approx(float((written_out(asked) * h).sum()), rel=1e-4)
        assert histogram.least_updates(bins) == touched[written_out(asked) > 0].min()


def test_nothing_is_allocated_before_the_first_update() -> None:
    large = Histogram((604_800,))
    assert large.bytes == 0
    assert large.least_updates(QueryBins(index=(slice(0, 10),), listed=False, values=None, even=0.1)) == 0
    assert large.copy().bytes == Histogram.average([large, large]).bytes == 0
    large.update(QueryBins(index=(slice(0, 10),), listed=False, values=None, even=0.1), 0.1)
    assert large.bytes == 8 * 604_800  # a hundred of them in half a gigabyte


def test_weights_neither_overflow_nor_vanish() -> None:
    bins = GRID.bins(ASKED["one cell"])
    histogram = Histogram(SHAPE)
    for _ in range(2000):
        histogram.update(bins, 0.5)
    assert histogram.estimate(bins) == pytest.approx(1)
    assert np.isfinite(histogram.distribution()).all()
    for _ in range(4000):
        histogram.update(bins, -0.5)
    assert 0 < histogram.estimate(bins) < 1e-20
    assert histogram.weights is not None
    assert histogram.weights.min() >= LEAST_WEIGHT
    for _ in range(200):
        histogram.update(bins, 0.5)
    assert histogram.estimate(bins) > 0.9  # it came back


def test_the_sum_is_taken_afresh_now_and_then() -> None:
    histogram, bins = Histogram(SHAPE), GRID.bins(ASKED["a range"])
    for turn in range(UPDATES_BETWEEN_REFRESHES - 1):
        histogram.update(bins, 0.1 if turn % 2 else -0.1)
    histogram.total *= 1.5  # as if rounding had piled up
    assert histogram.estimate(bins) < 0.4
    histogram.update(bins, 0.1)
    assert histogram.weights is not None
    assert histogram.total == pytest.approx(float(histogram.weights.sum()), rel=1e-5)


def test_a_copy_goes_on_by_itself() -> None:
    histogram, bins = Histogram(SHAPE), GRID.bins(ASKED["values"])
    histogram.update(bins, 0.25)
    warm = histogram.copy()
    np.testing.assert_array_equal(warm.distribution(), histogram.distribution())
    warm.update(bins, 0.25)
    assert warm.estimate(bins) > histogram.estimate(bins)
    assert (warm.least_updates(bins), histogram.least_updates(bins)) == (2, 1)


def test_the_average_of_children() -> None:
    low, high, bins = Histogram(SHAPE), Histogram(SHAPE), GRID.bins(ASKED["a range"])
    for _ in range(3):
        low.update(bins, -0.25)
    high.update(bins, 0.25)
    low.thresholds = np.full(SHAPE, 8, np.int32)
    parent = Histogram.average([low, high])
    expected = (low.distribution() + high.distribution()) / 2
    np.testing.assert_allclose(parent.distribution(), expected, rtol=1e-6)
    assert parent.least_updates(bins) == 2
    assert parent.thresholds is not None
    assert parent.thresholds.max() == 4
    half = Histogram.average([low, Histogram(SHAPE)]).estimate(bins)
    assert half == pytest.approx((low.estimate(bins) + 0.5) / 2, rel=1e-5)


def test_bins_are_remembered_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    grid = HistogramGrid(NAMES, SHAPE)
    first = grid.bins(ASKED["a list"])
    assert grid.bins(query(c=[1, 1, 0, 0, 1], a=[0, 1, 0, 1])) is first
    monkeypatch.setattr(mw, "REMEMBERED_BINS", first.remembered)
    grid.bins(joint())
    assert list(grid.cached) == [joint().digest]
    assert grid.listed == grid.bins(joint()).remembered
    monkeypatch.setattr(mw, "REMEMBERED_QUERIES", 1)
    grid.bins(ASKED["a range"])
    assert (list(grid.cached), grid.listed) == ([ASKED["a range"].digest], 0)


def test_a_query_about_nothing() -> None:
    bins = GRID.bins(query(a=[0, 0, 0, 0]))
    histogram = Histogram(SHAPE)
    assert histogram.estimate(bins) == 0
    histogram.update(bins, 1.0)
    assert histogram.estimate(bins) == 0
