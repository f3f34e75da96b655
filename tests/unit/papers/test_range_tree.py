"""Trees of ranges: children split their node, decompositions are minimal, and nothing depends on the domain's size."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.papers.cachedp.full_rank import Nested, containment, meeting
from bursar.papers.cachedp.range_tree import (
    JointTree,
    Marked,
    QuadTree,
    RangeTree,
    decompose,
    inside,
    nodes,
    overlap,
    split,
)
from bursar.views.nodes import Box


def cells(box: Box) -> set[tuple[int, ...]]:
    return set(itertools.product(*(range(low, high) for low, high in box)))


@pytest.mark.parametrize("parts", [2, 3, 8])
def test_children_split_their_node(parts: int) -> None:
    for low, high in [(0, 1), (0, 2), (3, 10), (5, 69)]:
        found = split((low, high), parts)
        assert len(found) == (min(parts, high - low) if high - low > 1 else 0)
        if found:
            assert [cell for a, b in found for cell in range(a, b)] == list(range(low, high))
            lengths = [b - a for a, b in found]
            assert max(lengths) - min(lengths) <= 1


@pytest.mark.parametrize("tree", [JointTree.over((3, 5), [((0, 2), (1, 4))], 2), QuadTree((5, 3)), QuadTree((1, 4))])
def test_children_of_a_box_make_it_up(tree: RangeTree) -> None:
    for node in nodes(tree):
        children = tree.children(node)
        assert len(children) != 1
        if children:
            assert sorted(c for child in children for c in cells(child)) == sorted(cells(node))


def test_a_quad_tree_quarters() -> None:
    assert QuadTree((4, 6)).children(((0, 4), (0, 6))) == tuple(
        (tall, wide) for tall in [(0, 2), (2, 4)] for wide in [(0, 3), (3, 6)]
    )
    assert sum(1 for _ in nodes(QuadTree((8, 8)))) == 1 + 4 + 16 + 64
    assert decompose(QuadTree((4, 4)), ((0, 4), (0, 2))) == [((0, 2), (0, 2)), ((2, 4), (0, 2))]


@given(st.integers(1, 40), st.integers(2, 5), st.data())
@settings(max_examples=100, deadline=None)
def test_a_decomposition_is_the_least(size: int, branching: int, data: st.DataObject) -> None:
    tree = JointTree.over((size,), [], branching)
    low = data.draw(st.integers(0, size - 1))
    wanted = ((low, data.draw(st.integers(low + 1, size))),)
    found = decompose(tree, wanted)
    assert [cell for ((a, b),) in found for cell in range(a, b)] == list(range(*wanted[0]))
    within = [node for node in nodes(tree) if inside(node, wanted)]
    outermost = [node for node in within if not any(node != other and inside(node, other) for other in within)]
    assert sorted(found) == sorted(outermost)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5), st.integers(1, 4), st.integers(1, 6)), min_size=1))
@settings(max_examples=80, deadline=None)
def test_a_joint_tree_answers_the_workload_it_was_made_for(raw: list[tuple[int, int, int, int]]) -> None:
    wanted = [((a, min(a + c, 4)), (b, min(b + d, 6))) for a, b, c, d in raw]
    tree = JointTree.over((4, 6), wanted, 2)
    for box in wanted:
        found = decompose(tree, box)
        assert sorted(c for node in found for c in cells(node)) == sorted(cells(box))
        assert len(set(found)) == len(found)


def test_a_question_about_nothing_but_the_total() -> None:
    tree = JointTree.over((), [()], 2)
    assert decompose(tree, ()) == [()]
    assert list(nodes(tree)) == [()]
    assert Nested(((),)).norm == 1


def test_large_domains_cost_nothing() -> None:
    """A million values in each of three columns: what is laid out are the boxes that are bought."""
    size = 10**6
    wanted = ((1, size), (0, size // 2), (size // 4, size))
    tree = JointTree.over((size,) * 3, [wanted], 2)
    found = decompose(tree, wanted)
    assert len(found) < 100
    more = Marked(tree, frozenset(found)).proactive(set(), 500)
    assert 0 < len(more) <= 500
    assert Nested((*found, *more)).norm == 1


@st.composite
def strategies(draw: st.DrawFn) -> tuple[tuple[int, ...], list[Box], list[Box], list[list[Box]]]:
    """Sizes, a workload, the boxes of a strategy with some more of the tree, and the decompositions."""
    sizes = draw(st.sampled_from([(7,), (16,), (3, 4)]))
    box = st.tuples(*(st.tuples(st.integers(0, n - 1), st.integers(1, n)) for n in sizes))
    raw = draw(st.lists(box, min_size=1, max_size=4))
    wanted = [tuple((low, min(low + length, n)) for (low, length), n in zip(one, sizes, strict=True)) for one in raw]
    tree = JointTree.over(sizes, wanted, draw(st.integers(2, 3)))
    parts = [decompose(tree, one) for one in wanted]
    extra = draw(st.lists(st.sampled_from(list(nodes(tree))), max_size=5))
    return sizes, wanted, list(dict.fromkeys([*(b for part in parts for b in part), *extra])), parts


def matrix(boxes: list[Box], sizes: tuple[int, ...]) -> np.ndarray:
    rows = np.zeros((len(boxes), *sizes))
    for row, box in zip(rows, boxes, strict=True):
        row[tuple(slice(low, high) for low, high in box)] = 1
    return rows.reshape(len(boxes), -1)


@given(strategies())
@settings(max_examples=150, deadline=None)
def test_the_full_rank_transform_keeps_rank_norm_and_weights(case: tuple) -> None:
    sizes, wanted, boxes, parts = case
    raw, asked = matrix(boxes, sizes), matrix(wanted, sizes)
    nested = Nested(tuple(boxes))
    assert np.linalg.matrix_rank(nested.matrix) == nested.matrix.shape[1] == np.linalg.matrix_rank(raw)
    assert nested.norm == raw.sum(axis=0).max()
    answers = np.array([[box in part for box in boxes] for part in parts], float)
    np.testing.assert_allclose(nested.weights(answers), asked @ np.linalg.pinv(raw), atol=1e-9)


@given(strategies(), st.randoms(use_true_random=False))
@settings(max_examples=80, deadline=None)
def test_weighted_least_squares_has_the_least_variance(case: tuple, rng: object) -> None:
    _, _, boxes, parts = case
    nested = Nested(tuple(boxes))
    answers = np.array([[box in part for box in boxes] for part in parts], float)
    scales = np.array([rng.uniform(1, 5) for _ in boxes])
    best, plain = nested.least_squares(answers, scales), nested.weights(answers)
    assert best is not None
    np.testing.assert_allclose(best @ nested.matrix, answers @ nested.matrix, atol=1e-8)
    assert np.all(np.square(best * scales).sum(axis=1) <= np.square(plain * scales).sum(axis=1) * (1 + 1e-9))
    missing = scales.copy()
    missing[0] = np.inf
    without = nested.least_squares(answers, missing)
    assert without is None or np.all(without[:, 0] == 0)


def test_which_boxes_meet_and_contain() -> None:
    one = [((0, 4), (0, 4)), ((2, 3), (1, 6))]
    other = [((1, 2), (1, 2)), ((2, 5), (3, 5))]
    assert meeting(one, other).tolist() == [[overlap(a, b) is not None for b in other] for a in one]
    assert containment(one, other).tolist() == [[inside(b, a) for b in other] for a in one]
    assert meeting([], one).shape == (0, 2)
