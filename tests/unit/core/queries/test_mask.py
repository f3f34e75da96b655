"""Masks: joint grids, their cells, and which cells they tell apart."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.core.extensions import pairs
from bursar.core.extensions.pairs import classes
from bursar.core.queries import LARGEST_JOINT, Mask, Steps
from bursar.errors import QueryError

GRID = np.array([[[1, 0, 2], [0, 0, 3]], [[5, 5, 5], [5, 5, 5]]])
JOINT = Mask(("a", "b"), (2, 3), Steps.dense(GRID.reshape(2, 6)))


def test_values_on_a_grid_follow_the_order_of_the_columns() -> None:
    cells = {"a": np.array([1, 0]), "b": np.array([2, 0])}
    assert JOINT.at(cells).tolist() == [[3, 0, 2, 1], [5, 5, 5, 5]]


def test_take_keeps_the_columns() -> None:
    taken = JOINT.take([1])
    assert (taken.attrs, taken.sizes, taken.rows) == (("a", "b"), (2, 3), 1)


@pytest.mark.parametrize(
    ("attrs", "sizes"),
    [(("a",), (5,)), (("a", "b"), (6,)), (("a",), (2, 3)), (("a", "b"), (-2, -3)), (("a",), (6.0,)), ((1,), (6,))],
)
def test_masks_that_do_not_fit_are_refused(attrs: tuple[str, ...], sizes: tuple[int, ...]) -> None:
    with pytest.raises(QueryError, match="fit"):
        Mask(attrs, sizes, Steps.total(6))


def test_a_true_is_not_a_size() -> None:
    with pytest.raises(QueryError, match="fit"):
        Mask(("a",), (True,), Steps.total(1))


def test_joint_grids_are_limited_and_single_columns_are_not() -> None:
    size = 2 * LARGEST_JOINT
    assert Mask(("a",), (size,), Steps.total(size)).rows == 1
    with pytest.raises(QueryError, match=f"{LARGEST_JOINT} are possible"):
        Mask(("a", "b"), (2, LARGEST_JOINT), Steps.total(size))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 1), min_size=12, max_size=12), st.integers(1, 2))
def test_classes_are_equal_exactly_where_no_row_differs(values: list[int], rows: int) -> None:
    matrix = np.array(values).reshape(rows, -1)
    sizes = (2, 12 // rows // 2)
    joint = Mask(("a", "b"), sizes, Steps.dense(matrix))
    flat = Mask(("x",), (matrix.shape[1],), Steps.dense(matrix))
    by_cell = {"a": matrix.reshape(rows, *sizes), "b": matrix.reshape(rows, *sizes).transpose(0, 2, 1)}
    for name in joint.attrs:
        groups = classes(joint, name, 100)
        assert groups is not None
        for i, one in enumerate(groups):
            for j, two in enumerate(groups):
                assert (one == two) == np.array_equal(by_cell[name][:, i], by_cell[name][:, j])
    groups = classes(flat, "x", 100)
    assert groups is not None
    assert [[a == b for a in groups] for b in groups] == [
        [bool(np.all(matrix[:, i] == matrix[:, j])) for i in range(len(groups))] for j in range(len(groups))
    ]


def test_more_classes_than_allowed_are_none() -> None:
    column = Mask(("x",), (6,), Steps.identity(6))
    assert classes(column, "x", 6) is not None
    assert classes(column, "x", 5) is None
    assert classes(JOINT, "b", 3) is not None
    assert classes(JOINT, "b", 2) is None


def test_work_beyond_the_limit_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "CLASS_WORK", 11)
    assert classes(JOINT, "a", 100) is None
    assert classes(Mask(("x",), (6,), Steps.identity(6)), "x", 100) is None
    assert classes(Mask(("x",), (6,), Steps.total(6)), "x", 100) is not None


def test_a_huge_column_with_few_changes_has_few_classes() -> None:
    column = Mask(("x",), (2**22,), Steps.ranges([5, 10], [2**21, 2**21], 2**22))
    groups = classes(column, "x", 4)
    assert groups is not None
    assert [int(groups[cell]) for cell in (0, 4, 5, 10, 2**21, 2**22 - 1)] == [0, 0, 1, 2, 0, 0]
