"""A product of histograms is exactly the histogram over all columns, as long as nothing spans two groups."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.core.domain import Categories, Domain
from bursar.core.queries import Mask, Product, Steps
from bursar.views.histograms import Factored, Histogram, HistogramGrid
from bursar.views.learner import Adaptive

SIZES = {"a": 3, "b": 4, "c": 2, "d": 5}
DOMAIN = Domain(
    tuple(Categories(name=name, values=tuple(map(str, range(size))), outside=0, null=0) for name, size in SIZES.items())
)
WHOLE = HistogramGrid(tuple(SIZES), tuple(SIZES.values()))


def query(**cells: int) -> Product:
    """One cell of each of the columns."""
    return Product(tuple(Mask((n,), (SIZES[n],), Steps.ranges([c], [c + 1], SIZES[n])) for n, c in cells.items()))


def either(a: int, b: int) -> Product:
    """a or b: a condition over two columns that does not fall apart."""
    table = np.zeros((3, 4), np.int64)
    table[a], table[:, b] = 1, 1
    return Product((Mask(("a", "b"), (3, 4), Steps.dense(table.reshape(1, -1))),))


def learn(factored: Factored, whole: Histogram, asked: Product, step: float) -> None:
    factor = factored.join(asked.attrs)
    assert factor is not None
    factor.histogram.update(factor.bins(asked), step)
    whole.update(WHOLE.bins(asked), step)


def test_exactly_the_histogram_over_all_columns() -> None:
    rng = np.random.default_rng(3)
    factored, whole = Factored(DOMAIN), Histogram(WHOLE.shape)
    singles = [query(a=1), query(a=0, b=2), query(c=0), query(c=1, d=3), either(1, 1)]
    for _ in range(100):
        learn(factored, whole, singles[rng.integers(5)], float(rng.choice([-0.1, 0.1])))
    assert set(factored.groups) == {("a", "b"), ("c", "d")}
    spanning = [query(a=2, d=1), query(a=1, b=1, c=0, d=4), Product(())]
    for asked in [*singles, *spanning]:
        assert factored.estimate(asked) == pytest.approx(whole.estimate(WHOLE.bins(asked)), rel=1e-4)
    before = factored.estimate(query(b=1))
    learn(factored, whole, query(b=3, d=0), 0.3)
    assert factored.groups == [("a", "b", "c", "d")]
    assert factored.estimate(query(b=1)) != before
    for asked in [*singles, *spanning]:
        assert factored.estimate(asked) == pytest.approx(whole.estimate(WHOLE.bins(asked)), rel=1e-4)


def test_a_condition_across_groups_changes_nothing_by_being_estimated() -> None:
    factored, whole = Factored(DOMAIN), Histogram(WHOLE.shape)
    for asked in (query(a=1), query(b=2), query(b=2)):
        learn(factored, whole, asked, 0.5)
    assert factored.estimate(either(1, 2)) == pytest.approx(whole.estimate(WHOLE.bins(either(1, 2))), rel=1e-5)
    assert ("a",) in factored.groups
    assert ("b",) in factored.groups


def test_updates_and_thresholds_are_kept_when_groups_are_joined() -> None:
    factored = Factored(DOMAIN)
    for asked, times in ((query(a=1), 3), (query(b=2), 2)):
        factor = factored.join(asked.attrs)
        assert factor is not None
        for _ in range(times):
            factor.histogram.update(factor.bins(asked), 0.1)
    factor = factored.single(("a",))
    assert factor is not None
    Adaptive(first=1, step=4).failed(factor.histogram, factor.bins(query(a=1)))
    joined = factored.join(("a", "b"))
    assert joined is not None
    assert joined.histogram.updates is not None
    assert joined.histogram.thresholds is not None
    assert (joined.histogram.updates[1, 2], joined.histogram.updates[1, 0], joined.histogram.updates[0, 2]) == (5, 3, 2)
    assert (joined.histogram.thresholds[1].tolist(), joined.histogram.thresholds[0].tolist()) == ([7] * 4, [0] * 4)


def test_groups_too_large_to_join() -> None:
    factored = Factored(DOMAIN, most_bins=15)
    assert factored.join(("a", "b")) is not None
    assert factored.join(("b", "c")) is None
    assert not factored.holds(("b", "c"))
    assert factored.holds(("c", "d"))
    assert factored.group(("b", "c")) == ("a", "b", "c")
    assert factored.single(("b", "c")) is None
    assert factored.estimate(query(b=0, c=0)) == pytest.approx(1 / 8)


def test_an_untouched_domain_costs_nothing() -> None:
    assert Factored(DOMAIN).bytes == 0
    factored, whole = Factored(DOMAIN), Histogram(WHOLE.shape)
    learn(factored, whole, query(a=1, c=1), 0.1)
    assert factored.bytes == 8 * 6
