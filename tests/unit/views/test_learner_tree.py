"""Histograms on the nodes of a tree: what each learns from, where it starts, and which sparse vectors are open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from bursar.core.accounting import Closed, Event, Failed, Measured, Noise, NoiseKind, Opened, Sealed, Versioned
from bursar.core.ledger import Record
from bursar.core.queries import Mask, Product, Stack, Steps
from bursar.papers.boost.learning import ConstantRate
from bursar.papers.boost.tilings import Flat, Overlapping
from bursar.views.histograms import Factored
from bursar.views.learner import Adaptive, Learning
from bursar.views.learner_tree import Binary, LearnerTree, Node, WindowTiling, windowed
from harness.learning import cells, grid

DOMAIN = grid(8, 2, 3, partition="a")
B0, C0 = cells(DOMAIN, b=[0]), cells(DOMAIN, c=[0])
LEARNING = Learning(schedule=ConstantRate(value=0.1), heuristic=Adaptive(first=1, step=1), tau=0.0)
NOISE = Noise(kind=NoiseKind.LAPLACE, scale=1.0)
SIZES = (100,) * 8


def over(window: Node, query: Product) -> Product:
    return Product((*cells(DOMAIN, a=range(window[0], window[1] + 1)).masks, *query.masks))


def log(*events: tuple[Event, Sequence[int]] | Event, start: int = 0) -> list[Record]:
    pairs = [event if isinstance(event, tuple) else (event, ()) for event in events]
    return [
        Record(
            position=start + i,
            at=0.0,
            analyst="ana",
            question="",
            proposer="",
            run=0,
            event=event,
            values=np.array(values, np.int64),
        )
        for i, (event, values) in enumerate(pairs, 1)
    ]


def bought(window: Node, query: Product, value: int, noise: Noise = NOISE) -> tuple[Event, Sequence[int]]:
    return Measured(strategy=over(window, query), noise=noise, version=1), [value]


def tree(
    *events: tuple[Event, Sequence[int]] | Event,
    cut: WindowTiling | None = None,
    warm: bool = True,
    sizes: tuple[int, ...] | None = SIZES,
) -> LearnerTree:
    made = LearnerTree(DOMAIN, LEARNING, cut or Binary(), warm)
    made.advance(log(Versioned(version=1), Sealed(through=7, version=1, sizes=sizes), *events))
    return made


def share(made: LearnerTree, node: Node, query: Product = B0) -> float:
    return made.nodes[node].histogram.estimate(query)


@pytest.mark.parametrize("cut", [Binary(), Flat(), Overlapping(longest=4)])
def test_a_node_is_made_of_itself_and_a_window_of_its_nodes(cut: WindowTiling) -> None:
    for low in range(8):
        for high in range(low, min(low + 4, 8)):
            nodes = cut.nodes((low, high))
            assert nodes is not None
            assert [place for a, b in nodes for place in range(a, b + 1)] == list(range(low, high + 1))
            assert all(cut.nodes(node) == [node] for node in nodes)


def test_overlapping_trees_share_their_nodes_and_have_a_longest_window() -> None:
    assert Overlapping(longest=4).nodes((0, 4)) is None
    for window in ((2, 5), (3, 6), (4, 7)):
        assert Overlapping(longest=4).nodes(window) == Binary().nodes(window)


def test_a_measurement_teaches_the_node_with_its_window_only() -> None:
    made = tree(bought((2, 3), B0, 190), bought((1, 2), B0, 190), bought((4, 4), B0, 10))
    assert set(made.nodes) == {(2, 3), (4, 4)}
    assert share(made, (2, 3)) > 0.5
    assert share(made, (4, 4)) < 0.5
    assert made.answers[(2, 3), B0.digest] == (190, NOISE)
    assert made.nodes[2, 3].count(B0) == round(200 * share(made, (2, 3)))


def test_one_purchase_may_be_about_several_nodes() -> None:
    stacked = Stack((over((0, 1), B0), over((2, 2), B0)))
    made = tree((Measured(strategy=stacked, noise=NOISE, version=1), [180, 20]))
    apart = tree(bought((0, 1), B0, 180), bought((2, 2), B0, 20))
    assert made.answers == apart.answers
    assert [share(made, node) for node in ((0, 1), (2, 2))] == [share(apart, node) for node in ((0, 1), (2, 2))]


def test_the_finest_answer_is_kept() -> None:
    fine, coarse = NOISE, replace(NOISE, scale=9.0)
    made = tree(bought((0, 0), B0, 1, coarse), bought((0, 0), B0, 2, fine), bought((0, 0), B0, 3, coarse))
    assert made.answers[(0, 0), B0.digest] == (2, fine)


def test_nothing_is_learnt_where_numbers_of_rows_are_not_public() -> None:
    made = tree(bought((0, 0), B0, 90), sizes=None)
    assert made.nodes == {}
    assert made.size((0, 0)) is None


def test_a_flat_tree_has_no_inner_nodes() -> None:
    made = tree(bought((0, 1), B0, 180), bought((0, 0), B0, 90), cut=Flat())
    assert set(made.nodes) == {(0, 0)}


@pytest.mark.parametrize("warm", [True, False])
def test_a_partition_starts_from_the_nearest_earlier_one(warm: bool) -> None:
    before = [bought((1, 1), B0, 95) for _ in range(10)]
    first = share(tree(*before), (1, 1))
    made = tree(*before, bought((4, 4), C0, 33), warm=warm)  # says nothing of b
    assert share(made, (4, 4)) == pytest.approx(first if warm else 0.5, abs=0.01)
    assert made.ready((4, 4), B0) is warm
    assert share(made, (1, 1)) == first  # a copy


@pytest.mark.parametrize("warm", [True, False])
def test_an_inner_node_starts_from_the_average_of_its_halves(warm: bool) -> None:
    halves = [bought((0, 0), B0, 95) for _ in range(9)] + [bought((1, 1), B0, 5) for _ in range(9)]
    known = tree(*halves, warm=False)
    mean = (share(known, (0, 0)) + share(known, (1, 1))) / 2
    lone = tree(*halves, bought((4, 5), C0, 67), warm=warm)
    assert share(lone, (4, 5)) == pytest.approx(0.5)  # its own halves have not learnt
    pushed = [bought((0, 0), B0, 95) for _ in range(20)]
    made = tree(*halves, *pushed, bought((0, 1), C0, 67), warm=warm)
    if warm:
        assert share(made, (0, 1)) > mean + 0.01
    else:
        assert share(made, (0, 1)) == pytest.approx(0.5)


def opening(window: Node) -> Opened:
    scope = over(window, cells(DOMAIN, b=[0, 1]))
    return Opened(scope=scope, cut=10, threshold=NOISE, test=NOISE, version=1)


def test_sparse_vectors_are_live_by_exact_window_until_they_are_closed() -> None:
    made = tree(opening((0, 3)), opening((0, 3)), opening((2, 3)))
    assert {window: set(own) for window, own in made.live.items() if own} == {(0, 3): {3, 4}, (2, 3): {5}}
    failed = Failed(instance=3, query=over((0, 3), B0), estimate=1, version=1)
    made.advance(log(failed, Closed(instance=5, version=1), start=5))
    assert {window: set(own) for window, own in made.live.items() if own} == {(0, 3): {4}}


def test_a_failed_test_makes_the_nodes_it_was_about_wait() -> None:
    taught = [bought(node, B0, value) for node, value in (((1, 1), 90), ((2, 3), 190), ((4, 4), 90), ((5, 5), 90))]
    made = tree(*taught, opening((1, 4)))
    del made.answers[(1, 1), B0.digest], made.answers[(2, 3), B0.digest]
    assert all(made.ready(node, B0) for node in ((1, 1), (2, 3), (4, 4), (5, 5)))
    made.advance(log(Failed(instance=7, query=over((1, 4), B0), estimate=1, version=1), start=7))
    assert [made.ready(node, B0) for node in ((1, 1), (2, 3), (4, 4), (5, 5))] == [False, False, True, True]


def test_a_new_version_forgets_everything() -> None:
    made = tree(bought((0, 0), B0, 90), opening((0, 3)))
    made.advance(log(Versioned(version=2), start=4))
    assert (made.nodes, made.answers, dict(made.live)) == ({}, {}, {})
    assert made.size((0, 0)) is None


def test_the_same_log_read_in_parts_is_the_same_tree() -> None:
    events = [bought((i % 8, i % 8), (B0, C0)[i % 2], 20 + 7 * i % 60) for i in range(40)]
    whole, parts = tree(*events), tree()
    for place, event in enumerate(events):
        parts.advance(log(event, start=2 + place))
    assert whole.answers == parts.answers
    assert [share(whole, node) for node in whole.nodes] == [share(parts, node) for node in whole.nodes]


def test_windows_of_products() -> None:
    assert windowed(B0, DOMAIN) == ((0, 7), B0)
    window, rest = windowed(over((2, 7), B0), DOMAIN) or ((0, 0), C0)
    assert (window, rest.digest) == ((2, 7), B0.digest)
    twice = Mask(("a",), (8,), Steps.dense(np.array([[0, 2, 2, 0, 0, 0, 0, 0]])))
    gap = Mask(("a",), (8,), Steps.dense(np.array([[1, 0, 1, 0, 0, 0, 0, 0]])))
    pair = Mask(("a", "b"), (8, 2), Steps.dense(np.ones((1, 16), np.int64)))
    for mask in (twice, gap, pair):
        assert windowed(Product((mask,)), DOMAIN) is None


def test_an_average_joins_groups_that_only_one_half_has() -> None:
    """Asked together in one half, apart in the other: the average has them together, with the right margins."""
    both = cells(DOMAIN, b=[0], c=[0])
    halves = [bought((0, 0), both, 60) for _ in range(5)] + [bought((1, 1), B0, 80) for _ in range(5)]
    known = tree(*halves, warm=False)
    joined = Factored.average([known.nodes[half].histogram for half in ((0, 0), (1, 1))])
    assert ("b", "c") in joined.groups
    for query in (B0, C0):
        mean = (share(known, (0, 0), query) + share(known, (1, 1), query)) / 2
        assert joined.estimate(query) == pytest.approx(mean, rel=1e-5)
    assert known.nodes[1, 1].histogram.single(("b", "c")) is None  # the halves stay as they were
