"""Histograms that learn: against weights written out, and the same however the log is read."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.core.accounting import Event, Failed, Measured, Noise, NoiseKind, Opened, Versioned
from bursar.core.ledger import Record
from bursar.core.queries import Mask, Product, Steps
from bursar.papers.boost.learning import AdaptiveAsPrinted
from bursar.views.histograms import Histogram, HistogramGrid
from bursar.views.learner import Adaptive, Decaying, Learner, Learning
from bursar.views.learner_tree import split
from bursar.views.measurements import ALL_ROWS
from harness.learning import cells, grid

SHAPE = (3, 4, 2)
DOMAIN = grid(*SHAPE)
NOISE = Noise(kind=NoiseKind.LAPLACE, scale=3.0)
SCOPE = cells(DOMAIN, a=range(3), b=range(4), c=range(2))


@st.composite
def queries(draw: st.DrawFn) -> Product:
    names = draw(st.lists(st.sampled_from(DOMAIN.names), min_size=1, max_size=3, unique=True))
    masks = []
    for name in names:
        size = DOMAIN[name].size
        row = draw(st.lists(st.integers(0, 3), min_size=size, max_size=size).filter(any))
        masks.append(Mask((name,), (size,), Steps.dense([row])))
    return Product(tuple(masks))


def written_out(query: Product) -> np.ndarray:
    whole = np.ones(SHAPE)
    for mask in query.masks:
        row = mask.steps.at_cells(np.arange(mask.steps.size))[0]
        whole = whole * row.reshape([-1 if name == mask.attrs[0] else 1 for name in DOMAIN.names])
    return whole / whole.max()


@given(st.lists(st.tuples(queries(), st.floats(-1, 1)), max_size=25), queries())
@settings(max_examples=60, deadline=None)
def test_lazy_weights_are_the_normalised_ones(steps: list[tuple[Product, float]], asked: Product) -> None:
    lazy, all_columns, h = Histogram(SHAPE), HistogramGrid(DOMAIN.names, SHAPE), np.full(SHAPE, 1 / 24)
    for query, step in steps:
        lazy.update(all_columns.bins(query), step)
        h = h * np.exp(step * written_out(query))
        h /= h.sum()
    np.testing.assert_allclose(lazy.distribution(), h, rtol=1e-4)
    assert lazy.estimate(all_columns.bins(asked)) == pytest.approx(float((written_out(asked) * h).sum()), rel=1e-4)


@st.composite
def logs(draw: st.DrawFn) -> list[Record]:
    """Sizes, answers, failed tests and new versions in any order."""
    version, records = 1, []
    open_: list[int] = []

    def add(event: Event, *values: int) -> None:
        place, body = len(records) + 1, np.array(values, np.int64)
        records.append(
            Record(position=place, at=0.0, analyst="", question="", proposer="", run=0, event=event, values=body)
        )

    add(Versioned(version=1))
    for _ in range(draw(st.integers(0, 40))):
        kind = draw(st.sampled_from(["size", "answer", "answer", "answer", "open", "fail", "version"]))
        if kind == "size":
            add(Measured(strategy=ALL_ROWS, noise=NOISE, version=version), draw(st.integers(0, 500)))
        elif kind == "answer":
            add(Measured(strategy=draw(queries()), noise=NOISE, version=version), draw(st.integers(-50, 600)))
        elif kind == "open":
            add(Opened(scope=SCOPE, cut=5, threshold=NOISE, test=NOISE, version=version))
            open_.append(len(records))
        elif kind == "fail" and open_:
            query = draw(queries())
            add(Failed(instance=open_.pop(), query=query, estimate=3, version=version))
            if draw(st.booleans()):
                add(Measured(strategy=query, noise=NOISE, version=version), draw(st.integers(0, 500)))
        elif kind == "version" and draw(st.integers(0, 4)) == 0:
            version += 1
            open_.clear()
            add(Versioned(version=version))
    return records


def state(learner: Learner, asked: list[Product]) -> list[object]:
    return [
        learner.size,
        sorted(learner.live),
        list(learner.recent),
        learner.histogram.groups,
        [(learner.count(query), learner.ready(query), learner.histogram.estimate(query)) for query in asked],
    ]


@given(logs(), st.lists(st.integers(0, 40), max_size=5), st.lists(queries(), min_size=1, max_size=4), st.booleans())
@settings(max_examples=40, deadline=None)
def test_a_log_read_in_parts_or_at_once_teaches_the_same(
    log: list[Record], cuts: list[int], asked: list[Product], printed: bool
) -> None:
    """And looking in between changes nothing: no view depends on a question that passed."""
    heuristic = (AdaptiveAsPrinted if printed else Adaptive)(first=2, step=1)
    learning = Learning(schedule=Decaying(), heuristic=heuristic)
    at_once, in_parts = Learner(DOMAIN, learning), Learner(DOMAIN, learning)
    at_once.advance(log)
    edges = [0, *sorted(cut for cut in cuts if cut < len(log)), len(log)]
    for low, high in pairwise(edges):
        in_parts.advance(log[low:high])
        state(in_parts, asked)
    assert state(in_parts, asked) == state(at_once, asked)


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_a_window_is_the_sum_of_its_nodes(low: int, length: int) -> None:
    nodes = split((low, low + length))
    assert (nodes[0][0], nodes[-1][1]) == (low, low + length)
    assert all(left[1] + 1 == right[0] for left, right in pairwise(nodes))
    sizes = [high - first + 1 for first, high in nodes]
    assert all(size & (size - 1) == 0 and first % size == 0 for (first, _), size in zip(nodes, sizes, strict=True))
    assert len(nodes) <= 2 * max(1, (length + 1).bit_length())
