"""Growing least squares: after any rows, the same as solving for all of them at once."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.estimation.gaussian_state import GaussianState, _solved

SIZE = 5
rows_of_numbers = st.lists(st.integers(-2, 3), min_size=SIZE, max_size=SIZE)
blocks = st.lists(
    st.tuples(
        st.lists(rows_of_numbers, min_size=1, max_size=3),
        st.sampled_from((0.5, 1.0, 7.0, 400.0)),
        st.lists(st.integers(-50, 50), min_size=3, max_size=3),
    ),
    min_size=1,
    max_size=5,
)
Blocks = list[tuple[list[list[int]], float, list[int]]]
quick = settings(max_examples=80, deadline=None)


def grown(found: Blocks, size: int = SIZE) -> GaussianState:
    state = GaussianState.empty(np.ones(size))
    for rows, variance, values in found:
        state.take(np.array(rows, float), np.array(values[: len(rows)], float), variance)
    return state


def at_once(found: Blocks) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Estimate, covariance and projector from the normal equations of all rows."""
    matrix = np.concatenate([np.array(rows, float) for rows, _, _ in found])
    precision = np.concatenate([np.full(len(rows), 1 / variance) for rows, variance, _ in found])
    values = np.concatenate([np.array(v[: len(rows)], float) for rows, _, v in found])
    covariance = np.linalg.pinv(matrix.T @ (precision[:, None] * matrix), rcond=1e-11, hermitian=True)
    projector = np.linalg.pinv(matrix, rcond=1e-9) @ matrix
    return covariance @ matrix.T @ (precision * values), covariance, projector


@quick
@given(blocks)
def test_row_by_row_is_all_at_once(found: Blocks) -> None:
    state = grown(found)
    estimate, covariance, projector = at_once(found)
    assert np.allclose(state.span, projector, atol=1e-8)
    assert np.allclose(state.covariance, covariance, rtol=1e-6, atol=1e-6 * max(1.0, np.abs(covariance).max()))
    assert np.allclose(state.estimate, estimate, rtol=1e-6, atol=1e-6 * max(1.0, np.abs(estimate).max()))


@quick
@given(blocks, st.lists(rows_of_numbers, min_size=1, max_size=2))
def test_queries_are_spanned_exactly_if_the_rows_determine_them(found: Blocks, queries: list[list[int]]) -> None:
    matrix = np.concatenate([np.array(rows) for rows, _, _ in found])
    together = np.concatenate([matrix, np.array(queries)])
    determined = np.linalg.matrix_rank(together) == np.linalg.matrix_rank(matrix)
    assert grown(found).spans(np.array(queries, float)) == determined


def test_a_histogram_at_once_is_a_histogram_cell_by_cell() -> None:
    values = np.array([3.0, -1.0, 4.0])
    whole, single = GaussianState.empty(np.ones(3)), GaussianState.empty(np.ones(3))
    whole.take(np.eye(3), values, 2.0)
    for row, value in zip(np.eye(3), values, strict=True):
        single.take(row[None], np.array([value]), 2.0)
    for state in (whole, single):
        assert state.estimate.tolist() == values.tolist()
        assert np.allclose(state.covariance, 2 * np.eye(3))
        assert np.allclose(state.span, np.eye(3))


def test_disjoint_ranges_beside_what_is_known_are_taken_at_once() -> None:
    state = GaussianState.empty(np.ones(5))
    state.take(np.array([[1.0, 1, 0, 0, 0]]), np.array([10.0]), 4.0)
    state.take(np.array([[0.0, 0, 1, 1, 0], [0, 0, 0, 0, 2]]), np.array([6.0, 8.0]), 1.0)
    assert state.estimate.tolist() == pytest.approx([5, 5, 3, 3, 4])
    assert state.spans(np.array([[1.0, 1, 1, 1, 1]]))
    assert not state.spans(np.array([[1.0, 0, 0, 0, 0]]))


def test_asking_twice_halves_the_variance() -> None:
    state = GaussianState.empty(np.ones(1))
    for value in (10.0, 20.0):
        state.take(np.ones((1, 1)), np.array([value]), 6.0)
    assert state.estimate.tolist() == pytest.approx([15.0])
    assert state.covariance.tolist() == pytest.approx(np.array([[3.0]]))


def test_many_rows_measured_again_are_taken_at_once() -> None:
    rng = np.random.default_rng(0)
    rows = rng.integers(-2, 3, (12, 6)).astype(float)
    rows[:, 5] = rows[:, 4]  # one direction stays open
    first, again = rng.integers(0, 99, (2, 12)).astype(float)
    whole, single = GaussianState.empty(np.ones(6)), GaussianState.empty(np.ones(6))
    for values, variance in ((first, 3.0), (again, 8.0)):
        whole.take(rows, values, variance)
        for row, value in zip(rows, values, strict=True):
            single.take(row[None], np.array([value]), variance)
    assert np.allclose(whole.estimate, single.estimate)
    assert np.allclose(whole.covariance, single.covariance)
    assert np.allclose(whole.span, single.span)


@pytest.mark.parametrize("count", [2, 7, 20, 300])
def test_rows_that_are_known_in_part_are_taken_at_once_as_one_by_one(count: int) -> None:
    """Ranges over merged cells of all sizes; some rows come twice, some are known, some are empty, one adds nothing."""
    rng, size = np.random.default_rng(count), 12
    cells = rng.integers(1, 10**5, size).astype(float)
    whole, single = GaussianState.empty(cells), GaussianState.empty(cells)
    for variance in (3.0, 0.5, 40.0):
        ends = np.sort(rng.integers(0, size - 1, (count, 2)), axis=1)  # the last cell stays open
        rows = ((ends[:, :1] <= np.arange(size)) & (np.arange(size) < ends[:, 1:])) * np.sqrt(cells)
        rows[-1] = rows[0]
        values = rng.integers(0, 99, count).astype(float)
        whole.take(rows, values, variance)
        for row, value in zip(rows, values, strict=True):
            single.take(row[None], np.array([value]), variance)
        for name in ("estimate", "covariance", "information", "span"):
            expected = getattr(single, name)
            assert np.allclose(getattr(whole, name), expected, rtol=1e-7, atol=1e-7 * np.abs(expected).max()), name
        assert whole.spans(rows)
        assert not whole.spans(np.eye(size)[-1:])


@pytest.mark.parametrize("far", [1e-12, 3e-9, 3e-8, 1e-4])
def test_rows_together_are_inside_the_span_exactly_if_they_are_one_by_one(far: float) -> None:
    """A row that leaves next to nothing open beside one that leaves much open: about `far`, single rows decide."""
    whole, single = GaussianState.empty(np.ones(4)), GaussianState.empty(np.ones(4))
    rows, values = np.array([[1.0, far, 0, 0], [0, 0, 1, 0], [1, 0, 1, 0]]), np.array([5.0, 7.0, 11.0])
    for state in (whole, single):
        state.take(np.eye(4)[:1], np.array([4.0]), 2.0)
    whole.take(rows, values, 3.0)
    for row, value in zip(rows, values, strict=True):
        single.take(row[None], np.array([value]), 3.0)
    assert whole.spans(np.eye(4)[1:2]) == single.spans(np.eye(4)[1:2]) == (far > 1e-8)
    assert np.allclose(whole.span, single.span)
    assert np.allclose(whole.estimate, single.estimate)


@pytest.mark.parametrize("large", [1e3, 1e7, 1e9, 1e11])
def test_a_small_row_beside_a_large_one_is_heard(large: float) -> None:
    rows, values = np.array([[1.0, 0, 0, 0], [0, large, 0, 0]]), np.array([1000.0, 10 * large])
    together, apart = GaussianState.empty(np.ones(4)), GaussianState.empty(np.ones(4))
    for state in (together, apart):
        state.take(np.ones((1, 4)), np.array([40.0]), 1.0)
    together.take(rows, values, 1.0)
    for row, value in zip(rows, values, strict=True):
        apart.take(row[None], np.array([value]), 1.0)
    assert np.trace(together.span) == pytest.approx(3)
    np.testing.assert_allclose(together.estimate, apart.estimate, rtol=1e-6)


def test_rows_of_zeros_and_no_rows_teach_nothing() -> None:
    state = grown([([[1, 1, 0, 0, 0]], 1.0, [5, 0, 0])])
    before = state.estimate.copy(), state.covariance.copy(), state.span.copy()
    state.take(np.zeros((1, SIZE)), np.array([99.0]), 1.0)
    state.take(np.zeros((0, SIZE)), np.zeros(0), 1.0)
    assert all(
        np.array_equal(a, b) for a, b in zip(before, (state.estimate, state.covariance, state.span), strict=True)
    )
    assert state.spans(np.zeros((1, SIZE)))
    assert state.spans(np.zeros((0, SIZE)))


def test_splitting_keeps_what_is_known() -> None:
    """Two coordinates of 3 and 5 cells; the first is split into 1 and 2."""
    state = GaussianState.empty(np.array([3.0, 5.0]))
    root = np.sqrt([3.0, 5.0])
    state.take(np.array([[1.0, 1.0]]) * root, np.array([80.0]), 9.0)
    finer = state.split(np.array([0, 0, 1]), np.sqrt([1 / 3, 2 / 3, 1.0]))
    assert finer.cells == pytest.approx([1.0, 2.0, 5.0])
    total = np.ones((1, 3)) * np.sqrt(finer.cells)
    assert finer.spans(total)
    assert (total @ finer.estimate).tolist() == pytest.approx([80.0])
    assert (total @ finer.covariance @ total.T).tolist() == pytest.approx(np.array([[9.0]]))
    assert not finer.spans(np.array([[1.0, 0.0, 0.0]]))


@pytest.mark.parametrize("billions", [1e3, 1e9, 1e12, 1e15])
def test_one_cell_of_billions_is_a_cell_to_rows_taken_together(billions: float) -> None:
    state = GaussianState.empty(np.array([billions, 1.0, 7.0]))
    root = np.sqrt(state.cells)
    rows = np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]]) * root
    state.take(rows, np.array([100.0, 5000.0]), 1.0)
    assert state.spans(np.array([[0.0, 1.0, 0.0]]))
    assert not state.spans(np.array([[0.0, 0.0, 1.0]]))
    assert (rows @ state.estimate).tolist() == pytest.approx([100.0, 5000.0])
    assert float(state.estimate[1]) == pytest.approx(4900.0)


@pytest.mark.parametrize("billions", [1e3, 1e9, 1e12, 1e15])
def test_one_cell_of_billions_is_a_cell(billions: float) -> None:
    """Everybody but one cell was counted; everybody is another question, however large the domain."""
    state = GaussianState.empty(np.array([billions, 1.0]))
    root = np.sqrt(state.cells)
    almost, everybody, cell = np.array([[1.0, 0.0]]) * root, np.array([[1.0, 1.0]]) * root, np.array([[0.0, 1.0]])
    state.take(almost, np.array([100.0]), 1.0)
    assert state.spans(almost)
    assert not state.spans(everybody)
    assert not state.spans(cell)
    state.take(everybody, np.array([5000.0]), 1.0)
    assert state.spans(cell)
    assert (cell @ state.estimate).tolist() == pytest.approx([4900.0])
    assert (almost @ state.estimate).tolist() == pytest.approx([100.0])


@quick
@given(blocks)
def test_the_information_is_that_of_all_rows(found: Blocks) -> None:
    state = grown(found)
    matrix = np.concatenate([np.array(rows, float) for rows, _, _ in found])
    precision = np.concatenate([np.full(len(rows), 1 / variance) for rows, variance, _ in found])
    assert np.allclose(state.information, matrix.T @ (precision[:, None] * matrix))


@pytest.mark.parametrize("before", [0, 2, 6])
def test_rows_that_determine_everything_are_taken_at_once(before: int) -> None:
    rng = np.random.default_rng(before)
    early, rows = rng.integers(-2, 3, (before, 6)).astype(float), rng.integers(-2, 3, (12, 6)).astype(float)
    told, values = rng.integers(0, 99, before).astype(float), rng.integers(0, 99, 12).astype(float)
    whole, single = GaussianState.empty(np.ones(6)), GaussianState.empty(np.ones(6))
    for state in (whole, single):
        state.take(early, told, 3.0)
    whole.take(rows, values, 8.0)
    for row, value in zip(rows, values, strict=True):
        single.take(row[None], np.array([value]), 8.0)
    assert whole.complete
    assert np.allclose(whole.estimate, single.estimate)
    assert np.allclose(whole.covariance, single.covariance)
    assert np.allclose(whole.information, single.information)
    assert np.allclose(single.span, np.eye(6))


def test_a_state_never_writes_to_what_it_shares() -> None:
    state = grown([([[1, 1, 0, 0, 0]], 1.0, [5, 0, 0])])
    twin, before = copy.copy(state), [array.copy() for array in (state.covariance, state.span, state.information)]
    for rows in (np.eye(SIZE)[:1], np.eye(SIZE)[3:], np.ones((9, SIZE)), np.arange(45.0).reshape(9, 5) ** 0.5):
        twin.take(rows, np.ones(len(rows)), 2.0)
    for array, was in zip((state.covariance, state.span, state.information), before, strict=True):
        assert np.array_equal(array, was)


@quick
@given(blocks, blocks, st.lists(st.integers(1, 3), min_size=SIZE, max_size=SIZE), rows_of_numbers)
def test_rows_before_and_after_a_split_are_all_at_once(
    early: Blocks, late: Blocks, parts: list[int], query: list[int]
) -> None:
    """Each coordinate is split into so many of the same size; what is known is that of all rows over the finer ones."""
    parent = np.repeat(np.arange(SIZE), parts)
    shrink = np.sqrt(1 / np.array(parts, float))[parent]
    rng = np.random.default_rng(sum(parts))
    finer_rows = [(rng.integers(-2, 3, (len(rows), len(parent))), variance, v) for rows, variance, v in late]
    state = grown(early).split(parent, shrink)
    for rows, variance, values in finer_rows:
        state.take(rows.astype(float), np.array(values[: len(rows)], float), variance)
    first_rows = [((np.array(rows, float)[:, parent] * shrink).tolist(), v, values) for rows, v, values in early]
    estimate, covariance, projector = at_once(first_rows + [(rows.tolist(), v, u) for rows, v, u in finer_rows])
    w = np.array(query, float)[parent] * shrink
    scale = max(1.0, np.abs(covariance).max())
    assert np.allclose(state.span, projector, atol=1e-7)
    assert state.rank == round(np.trace(projector))
    assert np.allclose(state.estimate, estimate, rtol=1e-6, atol=1e-6 * max(1.0, np.abs(estimate).max()))
    assert np.allclose(state.covaried(w[None])[0], covariance @ w, atol=1e-6 * scale)
    assert np.allclose(state.variances(w[None]), w @ covariance @ w, atol=1e-5 * scale)
    assert np.allclose(state.outside(w), w - projector @ w, atol=1e-6)


def test_rows_that_are_sharpened_after_a_split_are_rows_of_a_smaller_variance() -> None:
    rng = np.random.default_rng(5)
    rows, values = rng.integers(0, 3, (4, 6)).astype(float), rng.integers(0, 99, 4).astype(float)
    parent, shrink = np.array([0, 0, 1, 2, 3, 4, 5, 5]), np.sqrt([0.25, 0.75, 1, 1, 1, 1, 0.5, 0.5])
    cells = np.array([4.0, 1, 1, 1, 1, 2])
    sharpened, at_first = GaussianState.empty(cells), GaussianState.empty(cells)
    sharpened.take(rows, values, 9.0)
    sharpened = sharpened.split(parent, shrink)
    sharpened.sharpen(rows[:, parent] * shrink, values, np.full(4, 18.0))  # 1/9 + 1/18 = 1/6
    at_first.take(rows, values, 6.0)
    at_first = at_first.split(parent, shrink)
    for name in ("estimate", "covariance", "information", "span"):
        assert np.allclose(getattr(sharpened, name), getattr(at_first, name)), name


@pytest.mark.thinned(3)
@pytest.mark.parametrize("before", [0, 3, 40])
@pytest.mark.parametrize("open_cells", [0, 1, 5])
def test_very_many_rows_at_once_are_rows_one_after_the_other(before: int, open_cells: int) -> None:
    """Ranges of all lengths with noise of all sizes; some come twice, some are empty, the last cells may stay open."""
    rng, size = np.random.default_rng(before), 20
    cells = rng.integers(1, 10**4, size).astype(float)
    whole, single = GaussianState.empty(cells), GaussianState.empty(cells)
    ends = np.sort(rng.integers(0, size + 1 - open_cells, (before + 600, 2)), axis=1)
    rows = ((ends[:, :1] <= np.arange(size)) & (np.arange(size) < ends[:, 1:])) * np.sqrt(cells)
    values, variances = rng.integers(0, 99, len(rows)).astype(float), rng.choice([0.5, 3.0, 4000.0], len(rows))
    for row, value, variance in zip(rows, values, variances, strict=True):
        single.take(row[None], np.array([value]), variance)
    for row, value, variance in zip(rows[:before], values[:before], variances[:before], strict=True):
        whole.take(row[None], np.array([value]), variance)
    whole.take_all(rows[before:], values[before:], variances[before:])
    assert whole.rank == single.rank == size - open_cells
    for name in ("estimate", "covariance", "information", "span"):
        expected = getattr(single, name)
        assert np.allclose(getattr(whole, name), expected, rtol=1e-7, atol=1e-7 * np.abs(expected).max()), name
    assert whole.spans(rows)


@pytest.mark.parametrize("far", [1e-12, 3e-8, 1e-4])
def test_many_rows_of_which_one_is_nearly_known_are_taken_as_one_by_one(far: float) -> None:
    rows = np.concatenate([np.eye(4)[[0, 2, 0, 2]], np.array([[1.0, far, 0, 0]])])
    whole, single = GaussianState.empty(np.ones(4)), GaussianState.empty(np.ones(4))
    values, variances = np.array([5.0, 7.0, 6.0, 8.0, 5.5]), np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    whole.take_all(rows, values, variances)
    for row, value, variance in zip(rows, values, variances, strict=True):
        single.take(row[None], np.array([value]), float(variance))
    assert whole.spans(np.eye(4)[1:2]) == single.spans(np.eye(4)[1:2]) == (far > 1e-8)
    assert np.allclose(whole.estimate, single.estimate)


def test_what_rounding_leaves_of_nothing_is_not_taken_for_knowledge() -> None:
    """Where no row looks at a cell, next to nothing may stand in place of the zero that is known of it."""
    information = np.diag([4.0, 1.0, 1e-34])
    assert _solved(information, np.zeros(3)) is None
    solved = _solved(np.diag([4.0, 1.0, 1e-12]), np.zeros(3))
    assert solved is not None
    assert solved[1].diagonal() == pytest.approx([0.25, 1.0, 1e12])


def test_a_covariance_that_rounding_broke_takes_rows_one_by_one() -> None:
    """Their spread is singular: -1 from the covariance and 1 of noise. What is left is not sound, and says so."""
    state = GaussianState(np.eye(2), np.zeros(2), -np.eye(2), np.eye(2), np.ones(2))
    state._add_inside(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([3.0, 4.0]), np.ones(2))
    assert np.all(np.isfinite(state.estimate))
    assert not state.sound


@pytest.mark.parametrize("rows", [2, 8])
def test_sharpening_leaves_the_span_as_it_is(rows: int) -> None:
    """Also where next to nothing stands in place of a zero: what no row looked at, no finer row of these does."""
    basis = np.eye(5)[:4] + 1e-11 * np.outer(np.ones(4), np.eye(5)[4])
    state = GaussianState(basis, np.zeros(4), np.eye(4), np.eye(4), np.ones(5))
    again = np.resize(np.eye(5)[:4], (rows, 5))
    state.sharpen(again, np.full(rows, 7.0), np.ones(rows))
    assert state.rank == 4
    assert not state.spans(np.eye(5)[4:])
