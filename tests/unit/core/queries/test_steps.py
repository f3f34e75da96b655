"""Rows stored by their changes: compared with plain matrices, and refused where they are not what they should be."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.core.queries import Steps
from bursar.core.queries import mask as steps
from bursar.errors import QueryError

matrices = st.integers(1, 7).flatmap(
    lambda size: st.lists(st.lists(st.integers(-4, 4), min_size=size, max_size=size), min_size=1, max_size=5)
)
quick = settings(max_examples=80, deadline=None)


def spelt(rows: Steps) -> np.ndarray:
    return rows.at_cells(np.arange(rows.size))


@quick
@given(matrices)
def test_dense_rows_come_back(matrix: list[list[int]]) -> None:
    rows = Steps.dense(matrix)
    assert spelt(rows).tolist() == matrix
    assert rows.largest() == max(abs(x) for row in matrix for x in row)
    assert rows.rows == len(matrix)
    assert np.all(rows.jump != 0)


@quick
@given(matrices, st.integers(0, 2), st.data())
def test_apply_is_matrix_multiplication(matrix: list[list[int]], more_axes: int, data: st.DataObject) -> None:
    shape = (len(matrix[0]), *[data.draw(st.integers(0, 3)) for _ in range(more_axes)])
    table = np.arange(np.prod(shape, dtype=int), dtype=np.int64).reshape(shape) ** 2 % 11
    expected = np.tensordot(np.array(matrix), table, axes=1)
    assert np.array_equal(Steps.dense(matrix).apply(table), expected)


@quick
@given(matrices, st.integers(1, 9))
def test_apply_in_small_pieces_is_the_same(matrix: list[list[int]], at_once: int) -> None:
    table = np.arange(len(matrix[0]) * 3, dtype=np.int64).reshape(-1, 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(steps, "AT_ONCE", at_once)
        assert np.array_equal(Steps.dense(matrix).apply(table), np.array(matrix) @ table)


@quick
@given(matrices, st.sampled_from((1, 2)))
def test_norms_are_column_sums(matrix: list[list[int]], power: int) -> None:
    assert np.array_equal(Steps.dense(matrix).norms(power), (np.abs(np.array(matrix)) ** power).sum(axis=0))


@quick
@given(matrices, st.data())
def test_take_picks_rows_in_any_order(matrix: list[list[int]], data: st.DataObject) -> None:
    picks = data.draw(st.lists(st.integers(0, len(matrix) - 1), max_size=6))
    assert spelt(Steps.dense(matrix).take(picks)).tolist() == [matrix[i] for i in picks]


@quick
@given(matrices)
def test_between_two_breaks_no_row_changes(matrix: list[list[int]]) -> None:
    breaks = set(Steps.dense(matrix).breaks().tolist())
    assert 0 in breaks
    changes = {v for v in range(1, len(matrix[0])) if any(row[v] != row[v - 1] for row in matrix)}
    assert breaks - {0} == changes


def test_ranges_identity_and_total() -> None:
    ranges = Steps.ranges([0, 1, 3, 2, 0], [2, 4, 4, 2, 0], 4)
    assert spelt(ranges).tolist() == [[1, 1, 0, 0], [0, 1, 1, 1], [0, 0, 0, 1], [0, 0, 0, 0], [0, 0, 0, 0]]
    assert np.array_equal(spelt(Steps.identity(3)), np.eye(3))
    assert spelt(Steps.total(3)).tolist() == [[1, 1, 1]]
    assert spelt(Steps.identity(1)).tolist() == [[1]]
    for low, high in ((-1, 2), (0, 5)):
        with pytest.raises(QueryError, match="outside"):
            Steps.ranges([low], [high], 4)


def test_rows_of_nothing() -> None:
    none = Steps.ranges([], [], 3)
    assert none.rows == 0
    assert none.largest() == 0
    assert none.norms(1).tolist() == [0, 0, 0]
    assert none.apply(np.ones((3, 2), np.int64)).shape == (0, 2)
    zero = Steps.dense([[0, 0], [0, 0]])
    assert zero.norms(2).tolist() == [0, 0]
    assert zero.apply(np.ones(2, np.int64)).tolist() == [0, 0]
    assert zero.take([]).rows == 0
    assert Steps.total(0).apply(np.zeros((0, 2), np.int64)).tolist() == [[0, 0]]


def test_a_huge_column_costs_what_its_changes_cost() -> None:
    rows = Steps.ranges([0, 2**20], [2**22, 2**22], 2**22)
    assert len(rows.at) == 2
    assert rows.norms(1)[[0, 2**20, -1]].tolist() == [1, 2, 2]
    assert rows.at_cells([2**22 - 1, 0, 5]).tolist() == [[1, 1, 1], [1, 0, 0]]


def test_cells_may_be_asked_in_any_order_and_twice() -> None:
    assert Steps.dense([[1, 5, 2]]).at_cells([2, 0, 2, 1]).tolist() == [[2, 1, 2, 5]]


# -- nothing that could be priced too low gets through -----------------------------------------------------------------


def test_equal_rows_have_equal_arrays() -> None:
    one, two = Steps.dense([[0, 1, 1], [2, 2, 2]]), Steps.ranges([1], [3], 3)
    assert np.array_equal(one.take([0]).at, two.at)
    assert np.array_equal(one.take([0]).jump, two.jump)


@pytest.mark.parametrize(
    ("starts", "at", "jump"),
    [
        ([0, 2], [5, 3], [1, -1]),  # cells out of order: the norm would come out negative
        ([0, 2], [3, 3], [1, 1]),  # a cell twice
        ([0, 1], [6], [1]),  # a cell outside
        ([0, 1], [-1], [1]),
        ([0, 1], [0], [0]),  # no change at all
        ([0, 1], [0, 1], [1, 1]),  # jumps that no row owns
        ([1, 1], [0], [1]),
        ([0, 2, 1], [0], [1]),
        ([0, 2, 1, 2], [0, 1], [1, 1]),
        ([], [], []),
        ([0, 1], [0], [1, 1]),
        ([0, 1], [0], [2**60 + 1]),
        ([0, 1], [0], [-(2**63)]),
        ([0, 2], [0, 1], [2**60, 1]),
        ([0, 3], [0, 1, 2], [2**60, 2**62, -(2**62)]),
        ([0, 1], [0], [1.5]),
        ([0, 1], [[0]], [1]),
    ],
)
def test_malformed_rows_are_refused(starts: list[int], at: list[int], jump: list[int]) -> None:
    with pytest.raises(QueryError):
        Steps(6, np.array(starts), np.array(at), np.array(jump))


def test_other_types_are_refused() -> None:
    for kind in (np.int8, np.int32, np.uint64, np.float64, object):
        with pytest.raises(QueryError):
            Steps(2, np.array([0, 1]), np.array([0]), np.array([1], kind))


@pytest.mark.parametrize(
    "matrix", [[[1.0, 2.0]], [["a"]], np.array([[2**64 - 1]], np.uint64), [[2**70]], np.zeros((1, 1, 1), np.int64)]
)
def test_only_whole_numbers_make_queries(matrix: object) -> None:
    with pytest.raises(QueryError, match="whole"):
        Steps.dense(matrix)


@pytest.mark.parametrize("value", [2**60 + 1, -(2**60) - 1, 2**63 - 1, -(2**63)])
def test_coefficients_that_could_wrap_around_are_refused(value: int) -> None:
    with pytest.raises(QueryError):
        Steps.dense([[0, value]])
    assert Steps.dense([[2**60, -(2**60)]]).largest() == 2**60


def test_squares_and_sums_that_do_not_fit_are_refused_not_wrapped() -> None:
    assert Steps.dense([[2**30]]).norms(2).tolist() == [2**60]
    with pytest.raises(QueryError, match="too large"):
        Steps.dense([[2**31]]).norms(2)
    with pytest.raises(QueryError, match="too large"):
        Steps.dense([[2**32]]).norms(2)  # the square is 2^64: nothing at all in 64 bits
    with pytest.raises(QueryError, match="too large"):
        Steps.dense([[2**60]] * 4).norms(1)  # 2^62
    assert Steps.dense([[2**60]] * 3).norms(1).tolist() == [3 * 2**60]
    mixed = [[2**60, 7], [1, -3]]
    assert Steps.dense(mixed).norms(1).tolist() == [2**60 + 1, 10]


def test_rows_cannot_be_changed_after_they_were_made() -> None:
    at = np.array([0])
    rows = Steps(2, np.array([0, 1]), at, np.array([1]))
    at[0] = 1
    assert rows.at.tolist() == [0]
    for array in (rows.starts, rows.at, rows.jump, rows.levels):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 9
    with pytest.raises(dataclasses.FrozenInstanceError):
        rows.size = 3


@pytest.mark.parametrize("row", [-1, 2])
def test_rows_that_are_not_there_cannot_be_taken(row: int) -> None:
    with pytest.raises(QueryError, match="not there"):
        Steps.dense([[1], [2]]).take([row])
