"""Mazmudar et al., "Cache Me If You Can" (CacheDP): its worked examples, lemmas and stated numbers.

Where the text is wrong the right figure is tested, and the printed one is named beside it.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.arrays import Reals
from bursar.goal import Goal, GoalKind
from bursar.papers.cachedp import modules
from bursar.papers.cachedp.accuracy import Analytic, law_of, loose, search
from bursar.papers.cachedp.full_rank import Nested
from bursar.papers.cachedp.range_tree import JointTree, Marked, decompose, nodes, overlap
from bursar.planner.choose import Preset
from bursar.views.nodes import Box
from harness.small import config, engine

LINE = JointTree.over((8,), [], 2)  # Figure 2
W1, W2 = [(0, 7)], [(2, 6), (3, 7)]


def on_line(*ranges: tuple[int, int]) -> list[Box]:
    return [(own,) for own in ranges]


def strategy(tree: JointTree, wanted: list[Box]) -> list[Box]:
    """A, the union of the decompositions."""
    return list(dict.fromkeys(box for query in wanted for box in decompose(tree, query)))


def squares(weights: Reals, scales: list[float]) -> float:
    """|W A^+ diag(b)|_F^2."""
    return float(np.square(weights * np.array(scales)).sum())


# -- the strategy: sections 3, 5.1 and 7 ---------------------------------------------------------------------------


def test_examples_3_1_and_5_1() -> None:
    assert strategy(LINE, on_line(*W1)) == on_line((0, 4), (4, 6), (6, 7))
    assert set(strategy(LINE, on_line(*W2))) == set(on_line((2, 4), (4, 6), (3, 4), (6, 7)))
    assert decompose(LINE, ((3, 8),)) == on_line((3, 4), (4, 8))  # Example 6.1
    assert len(list(nodes(LINE))) == 2**3 + 2**2 + 2**1 + 1


def test_the_norms_of_example_5_1() -> None:
    assert Nested(tuple(nodes(LINE))).norm == 4
    assert Nested(tuple(strategy(LINE, on_line(*W1)))).norm == 1
    assert Nested(tuple(strategy(LINE, on_line(*W2)))).norm == 2


@pytest.mark.parametrize(("leaves", "count"), [(41, 81), (74, 147), (1000, 1999)])
def test_the_cache_sizes_of_table_3(leaves: int, count: int) -> None:
    """Country and age; the 1,998 of the random ranges are all nodes but the root."""
    assert sum(1 for _ in nodes(JointTree.over((leaves,), [], 2))) == count


def test_example_5_2_with_its_third_row_put_right() -> None:
    """Row 3 is [3, 4), not [5, 6); so the buckets are [2,3), [3,4), [4,6), [6,7)."""
    boxes = on_line((2, 4), (4, 6), (3, 4), (6, 7))
    nested = Nested(tuple(boxes))
    columns = {tuple(column) for column in nested.matrix.T.astype(int).tolist()}
    assert columns == {(1, 0, 0, 0), (1, 0, 1, 0), (0, 1, 0, 0), (0, 0, 0, 1)}
    assert np.linalg.matrix_rank(nested.matrix) == 4


def test_example_7_2_is_two_by_three() -> None:
    """The last of the six is ([2, 3), [4, 6)); the text repeats another."""
    wanted = ((0, 3), (1, 6))
    tree = JointTree.over((4, 8), [wanted], 2)
    assert decompose(tree, wanted) == [(a, b) for a in [(0, 2), (2, 3)] for b in [(1, 2), (2, 4), (4, 6)]]


def test_the_column_with_the_most_ranges_comes_last() -> None:
    tree = JointTree.over((8, 8), [((low, low + 1), (0, 4)) for low in range(8)], 2)
    assert tree.order == (1, 0)
    assert tree.leaves == (frozenset({(0, 4), (4, 8)}),)


def test_the_transform_does_not_change_the_weights() -> None:
    for wanted, extra in [(W1, []), (W2, []), (W2, [(2, 3), (4, 8), (0, 8)]), (W1, [(4, 5), (5, 6)])]:
        boxes = [*strategy(LINE, on_line(*wanted)), *on_line(*extra)]
        raw = np.array([[low <= cell < high for cell in range(8)] for ((low, high),) in boxes], float)
        asked = np.array([[low <= cell < high for cell in range(8)] for low, high in wanted], float)
        answers = np.array([[box in decompose(LINE, (own,)) for box in boxes] for own in wanted], float)
        np.testing.assert_allclose(Nested(tuple(boxes)).weights(answers), asked @ np.linalg.pinv(raw), atol=1e-12)


# -- the modified matrix mechanism: section 4 ------------------------------------------------------------------------


def test_example_4_1() -> None:
    """Printed 300; the expected squared error is 600, since a Laplace draw has variance 2 b^2. 6.12 is right."""
    ones = np.ones((1, 3))
    assert squares(ones, [10.0] * 3) == 300
    assert law_of(ones, np.full(3, 10.0)).mean_square() == pytest.approx(600, rel=1e-3)
    assert math.sqrt((600 / 2 - 15**2) / 2) == pytest.approx(6.12, abs=0.005)


def test_a_cached_row_that_is_too_noisy_is_not_used() -> None:
    """Theorem 4.1 on Example 4.1: all rows at 10, never two of them at 6.12."""
    cached = np.array([15.0, math.inf, math.inf])
    goal = Goal(kind=GoalKind.RMSE, amount=math.sqrt(600))
    found = search(fixed(np.ones((1, 3))), cached, np.ones(3, bool), 1.0, goal, Analytic())
    assert found is not None
    assert found.paid == pytest.approx(10, rel=1e-3)
    assert np.all(found.scales == found.paid)


def fixed(weights: Reals):
    return lambda scales: weights if np.isfinite(scales).all() else None


@given(
    st.lists(st.one_of(st.just(math.inf), st.floats(1.0, 200.0)), min_size=2, max_size=6),
    st.floats(20.0, 400.0),
    st.sampled_from([GoalKind.RMSE, GoalKind.ERROR]),
)
@settings(max_examples=60, deadline=None)
def test_algorithm_2_is_one_bisection(cached: list[float], amount: float, kind: GoalKind) -> None:
    """Lines 12 to 15, a search through the cached scales and one between two of them, find the same b_P and F."""
    scales, weights = np.array(cached), np.vstack([np.ones(len(cached)), np.eye(len(cached))[0]])
    goal = Goal(kind=kind, amount=amount)
    accuracy, start = Analytic(), loose(weights, goal)

    def good(paid: float) -> bool:
        return accuracy.check(weights, np.minimum(scales, paid), goal) is not None

    listed = sorted({start, *(scale for scale in cached if start < scale < math.inf)})
    largest = max(place for place, scale in enumerate(listed) if good(scale))
    low, high = listed[largest], listed[largest + 1] if largest + 1 < len(listed) else 2.0**30
    everything = all(map(math.isfinite, cached))
    while high > low * (1 + 1e-9) and not (everything and largest + 1 == len(listed)):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if good(middle) else (low, middle)
    found = search(fixed(weights), scales, np.ones(len(cached), bool), start, goal, accuracy)
    assert found is not None
    paid = found.scales < scales
    np.testing.assert_array_equal(paid, scales > low * (1 + 1e-12) if paid.any() else np.zeros(len(cached), bool))
    if paid.any():
        assert found.paid == pytest.approx(low, rel=2e-3)


def test_the_loose_bound_keeps_the_goal() -> None:
    """Theorem 2.2, and the same for an expected squared error."""
    weights = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]])
    for kind in (GoalKind.ERROR, GoalKind.RMSE):
        goal = Goal(kind=kind, amount=50.0)
        assert Analytic().check(weights, np.full(3, loose(weights, goal)), goal) is not None
    assert loose(weights, Goal(kind=GoalKind.ERROR, amount=50.0)) == pytest.approx(50 * math.sqrt(0.05 / 2) / 2)


# -- the strategy expander: section 5.2 and appendix D ---------------------------------------------------------------

FIGURE_5 = on_line((0, 1), (1, 2), (2, 4))
ANSWERS = np.array([[1.0, 0, 0], [1, 1, 0], [0, 0, 1]])  # [0,1), [0,2), [2,4)


def expanded(extra: tuple[int, int] | None, scales: list[float], *, gls: bool = False) -> float:
    boxes = FIGURE_5 if extra is None else [*FIGURE_5, (extra,)]
    answers = np.pad(ANSWERS, ((0, 0), (0, len(boxes) - 3)))
    nested = Nested(tuple(boxes))
    weights = nested.least_squares(answers, np.array(scales)) if gls else nested.weights(answers)
    assert weights is not None
    return squares(weights, [0.0 if math.isinf(scale) else scale for scale in scales])


@pytest.mark.parametrize(
    ("extra", "scales", "error"),
    [
        (None, [1, 1, 5], 28.0),  # Figure 5
        ((0, 4), [1, 1, 5, 4], 29.125),
        ((0, 4), [1, 1, 5, 3], 26.5),  # Appendix D
        (None, [1, 2, 5], 31.0),
        ((0, 4), [1, 2, 5, 4], 30.25),
        ((1, 4), [1, 1, 5, 4], 20.0),
        ((0, 2), [1, 1, 5, 4], 34.67),
    ],
)
def test_figure_5_and_appendix_d(extra: tuple[int, int] | None, scales: list[float], error: float) -> None:
    assert expanded(extra, scales) == pytest.approx(error, abs=0.005)


def test_the_row_101_of_appendix_d() -> None:
    """It gives 24.0; printed is 26.5, which belongs to the example before."""
    wide = np.vstack([np.eye(3), [1, 0, 1]])
    assert squares(ANSWERS @ np.linalg.pinv(wide), [1, 1, 5, 4]) == pytest.approx(24.0)


def test_weighted_least_squares_never_hurts() -> None:
    """Figure 5 becomes 13.35 with all four rows, and 21 without the one that was to be paid for: still below 28."""
    assert expanded((0, 4), [1, 1, 5, 4], gls=True) == pytest.approx(13.35, abs=0.005)
    assert expanded((0, 4), [1, 1, math.inf, 4], gls=True) == pytest.approx(21.0)
    assert expanded((0, 4), [1, 1, 200, 4], gls=True) == pytest.approx(20.99, abs=0.005)


@st.composite
def strategies(draw: st.DrawFn) -> tuple[JointTree, list[Box], Box]:
    size, branching = draw(st.integers(2, 16)), draw(st.integers(2, 4))
    tree = JointTree.over((size,), [], branching)
    cuts = st.lists(st.integers(0, size), min_size=2, max_size=2, unique=True).map(sorted)
    wanted = [((low, high),) for low, high in draw(st.lists(cuts, min_size=1, max_size=4))]
    return tree, wanted, draw(st.sampled_from(list(nodes(tree))))


@given(strategies(), st.floats(0.05, 1.0))
@settings(max_examples=150, deadline=None)
def test_theorem_d_1(case: tuple[JointTree, list[Box], Box], finer: float) -> None:
    """Where all scales are equal, one more row that is no coarser does not raise the error."""
    tree, wanted, extra = case
    boxes = strategy(tree, wanted)
    answers = np.array([[box in decompose(tree, own) for box in boxes] for own in wanted], float)
    before = squares(Nested(tuple(boxes)).weights(answers), [1.0] * len(boxes))
    if extra in boxes:
        return
    wider = np.pad(answers, ((0, 0), (0, 1)))
    after = squares(Nested((*boxes, extra)).weights(wider), [*([1.0] * len(boxes)), finer])
    assert after <= before * (1 + 1e-9)


# -- proactive querying: section 5.3 ---------------------------------------------------------------------------------


def test_example_5_5() -> None:
    """Its list follows if P_2 is all of A_2; [7, 8) was bought along with A_1."""
    first = frozenset(strategy(LINE, on_line(*W1)))
    along = Marked(LINE, first).proactive(set(), 100)
    assert along == on_line((7, 8))
    second = Marked(LINE, frozenset(strategy(LINE, on_line(*W2))))
    assert second.norm == 2
    found = second.proactive({*first, *along}, 100)
    assert found == on_line((4, 8), (0, 2), (0, 1), (1, 2), (2, 3))


@st.composite
def marked(draw: st.DrawFn) -> tuple[Marked, set[Box]]:
    """Paid nodes of a tree over one or two columns, and cached ones."""
    sizes = draw(st.sampled_from([(5,), (8,), (13,), (3, 4), (2, 6)]))
    wanted = tuple((low, low + 1) for low in (0, 1))[: len(sizes)]
    tree = JointTree.over(sizes, [wanted], draw(st.integers(2, 3)))
    every = list(nodes(tree))
    paid = draw(st.sets(st.sampled_from(every), min_size=1, max_size=6))
    cached = draw(st.sets(st.sampled_from(every), max_size=6)) - paid
    return Marked(tree, frozenset(paid)), cached


@given(marked())
@settings(max_examples=200, deadline=None)
def test_proactive_rows_cost_nothing_and_leave_nothing_out(case: tuple[Marked, set[Box]]) -> None:
    """Lemma 5.1, Theorem 5.2, and that no other node could come along."""
    chosen, cached = case
    more = chosen.proactive(cached, 10**6)
    assert chosen.norm == Nested(tuple(chosen.paid)).norm
    together = {*chosen.paid, *more}
    assert len(together) == len(chosen.paid) + len(more)
    assert not cached & set(more)
    assert Nested(tuple(together)).norm == chosen.norm
    for node in nodes(chosen.tree):
        if node not in together and node not in cached:
            assert Nested((*together, node)).norm == chosen.norm + 1
    few = chosen.proactive(cached, 2)
    assert few == more[:2]


def test_no_two_nodes_of_a_tree_cross() -> None:
    """What Lemma 5.1 and the full-rank transform rest on."""
    every = list(nodes(JointTree.over((3, 4), [((0, 2), (1, 2))], 2)))
    for one in every:
        for other in every:
            common = overlap(one, other)
            assert common is None or common in (one, other)


# -- what the contract does not cover --------------------------------------------------------------------------------


@pytest.mark.heavy
def test_an_adaptive_analyst_is_not_covered() -> None:
    """74 equal leaves are measured; asking for the largest again, free, misses its goal of 5 % in about 84 % of runs.

    The same question about a leaf that was chosen beforehand does not. Answers say `per-query`.
    """
    from bursar.core.domain import Domain, IntegerRange

    domain = Domain((IntegerRange(name="age", lower=17, upper=90, null=0),))
    table, runs = np.full(74, 660), 80
    chosen, fixed_beforehand = 0, 0
    preset = Preset("cachedp", modules(tails="analytic", proactive=False))
    for _ in range(runs):
        db = engine(table=table, settings=config(domain=domain), preset=preset)
        first = db.query("SELECT age, COUNT(*) AS n FROM people GROUP BY age", within=300)
        scale = db.ledger.records()[-1].event.noise.scale
        alone = math.ceil(scale * math.log(20)) + 1
        largest = max(range(74), key=lambda cell: first.values[cell][0])
        for cell, adaptive in ((largest, True), (0, False)):
            again = db.query(f"SELECT COUNT(*) AS n FROM people WHERE age = {17 + cell}", within=alone)
            assert again.free
            assert again.contract == "per-query"
            missed = abs(again.value - 660) >= alone
            chosen, fixed_beforehand = chosen + (missed and adaptive), fixed_beforehand + (missed and not adaptive)
    assert chosen > 0.6 * runs
    assert fixed_beforehand < 0.3 * runs
