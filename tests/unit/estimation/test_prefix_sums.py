"""Prefix sums say the same as least squares, or nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.core.accounting import Noise, NoiseKind
from bursar.core.queries import Mask, Product, Stack, Steps
from bursar.estimation.estimate import WeightedRows
from bursar.estimation.least_squares import Block, LaterRows, Reconstruction
from harness.maps import domain_of

SIZE = 9
DOMAIN = domain_of(x=SIZE, y=2)
NOISE = Noise(kind=NoiseKind.GAUSSIAN, scale=3.0)
rows = st.lists(st.lists(st.integers(-1, 2), min_size=SIZE, max_size=SIZE), min_size=1, max_size=3)


def over_x(matrix: list[list[int]]) -> Product:
    return Product((Mask(("x",), (SIZE,), Steps.dense(matrix)),))


def learnt(*matrices: list[list[int]], seed: int = 0) -> Reconstruction:
    rng, found = np.random.default_rng(seed), Reconstruction(DOMAIN, ("x",))
    for matrix in matrices:
        assert found.add(Block(over_x(matrix), rng.integers(-50, 50, len(matrix)), NOISE))
    return found


@settings(max_examples=200, deadline=None)
@given(st.lists(rows, min_size=1, max_size=5), rows, st.integers(0, 99))
def test_the_same_answer_as_least_squares(measured: list[list[list[int]]], asked: list[list[int]], seed: int) -> None:
    found, query = learnt(*measured, seed=seed), over_x(asked)
    slow, quick = found.answer(query), found.quick(query)
    changes = len(query.masks[0].steps.at)
    if slow is None or (changes > 16 and quick is None):
        assert quick is None
        return
    assert quick is not None
    assert quick.values == pytest.approx(slow.values, rel=1e-6, abs=1e-6)
    assert quick.law.mean_square() == pytest.approx(slow.law.mean_square(), rel=1e-6, abs=1e-9)


def test_merged_cells_that_do_not_lie_side_by_side() -> None:
    """Both ends are one merged cell: a range that tells them apart is not determined, one that has both is."""
    found = learnt([[0, 0, 1, 1, 1, 0, 0, 0, 0]], [[1, 1, 1, 1, 1, 1, 1, 1, 1]])
    assert found.quick(over_x([[1, 1, 0, 0, 0, 0, 0, 0, 0]])) is None
    ends = found.quick(over_x([[1, 1, 0, 0, 0, 1, 1, 1, 1]]))
    assert ends is not None
    assert ends.law.mean_square() == pytest.approx(2 * 9.0)


def test_new_rows_are_seen() -> None:
    found, query = learnt([[1] * SIZE]), over_x([[1] * SIZE])
    before = found.quick(query)
    found.add(Block(query, np.array([70]), NOISE))
    after = found.quick(query)
    assert before is not None
    assert after is not None
    assert (before.law.mean_square(), after.law.mean_square()) == pytest.approx((9.0, 4.5))


def test_the_law_is_that_of_the_moment_it_was_given() -> None:
    """Rows that come later do not change an answer that is on its way."""
    found, query = learnt([[1, 1, 1, 0, 0, 0, 0, 0, 0]], [[0, 0, 0, 1, 1, 1, 0, 0, 0]]), over_x([[1] * 6 + [0] * 3])
    quick, slow = found.quick(query), found.answer(query)
    assert quick is not None
    assert slow is not None
    found.add(Block(query, np.array([70]), Noise(kind=NoiseKind.GAUSSIAN, scale=0.5)))
    assert isinstance(quick.law, LaterRows)
    assert isinstance(slow.law, WeightedRows)
    assert len(quick.law.noises) == 2
    assert quick.law.half_widths(0.1) == pytest.approx(slow.law.half_widths(0.1))
    assert quick.law.tail(8.0, 0.0) == pytest.approx(slow.law.tail(8.0, 0.0))
    assert quick.law.tail(1.0, 0.0) == 1.0


def test_other_questions_are_left_to_least_squares() -> None:
    found = learnt([[1] * SIZE])
    assert found.quick(Product(())) is None
    assert found.quick(Stack((over_x([[1] * SIZE]),))) is None
    both = Reconstruction(DOMAIN, ("x", "y"))
    both.add(Block(over_x([[1] * SIZE]), np.array([5]), NOISE))
    assert both.quick(over_x([[1] * SIZE])) is None
