"""Every formula for a Gram matrix against the queries written out."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from bursar.errors import QueryError
from bursar.papers.eigen_design import workloads


def written_out(rows: list[np.ndarray], unit_norm: bool = False) -> np.ndarray:
    W = np.array([row.ravel() / (np.linalg.norm(row) if unit_norm else 1) for row in rows])
    return W.T @ W


def boxes(sizes: tuple[int, ...]) -> list[np.ndarray]:
    ranges = [[(a, b) for a in range(size) for b in range(a + 1, size + 1)] for size in sizes]
    made = []
    for box in itertools.product(*ranges):
        row = np.zeros(sizes)
        row[tuple(slice(a, b) for a, b in box)] = 1
        made.append(row)
    return made


def margins(sizes: tuple[int, ...], columns: tuple[int, ...], *, ranges: bool) -> list[np.ndarray]:
    inside = tuple(sizes[i] for i in columns)
    cells = boxes(inside) if ranges else [row.reshape(inside) for row in np.eye(int(np.prod(inside)))]
    shape = [size if i in columns else 1 for i, size in enumerate(sizes)]
    return [np.broadcast_to(row.reshape(shape), sizes) for row in cells]


@pytest.mark.parametrize("unit_norm", [False, True])
def test_ranges_in_one_and_more_dimensions(unit_norm: bool) -> None:
    for sizes in [(7,), (1,), (4, 3), (3, 2, 2)]:
        assert workloads.all_ranges(*sizes, unit_norm=unit_norm) == pytest.approx(written_out(boxes(sizes), unit_norm))


@pytest.mark.parametrize("unit_norm", [False, True])
def test_prefix_sums(unit_norm: bool) -> None:
    rows = [np.where(np.arange(6) <= k, 1.0, 0.0) for k in range(6)]
    assert workloads.prefix(6, unit_norm=unit_norm) == pytest.approx(written_out(rows, unit_norm))


@pytest.mark.parametrize("unit_norm", [False, True])
def test_marginals_and_range_marginals(unit_norm: bool) -> None:
    sizes = (3, 2, 4)
    for k in range(4):
        sets = workloads.ways(3, k)
        plain = [row for columns in sets for row in margins(sizes, columns, ranges=False)]
        ranges = [row for columns in sets for row in margins(sizes, columns, ranges=True)]
        assert workloads.marginals(sizes, sets, unit_norm=unit_norm) == pytest.approx(written_out(plain, unit_norm))
        assert workloads.range_marginals(sizes, sets, unit_norm=unit_norm) == pytest.approx(
            written_out(ranges, unit_norm)
        )


def test_given_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workloads, "AT_ONCE", 30)  # so that several rounds are needed
    lows, highs = [[0, 1], [2, 0], [1, 1], [0, 0]], [[3, 3], [4, 3], [1, 2], [4, 3]]
    rows = []
    for (a, c), (b, d) in zip(lows, highs, strict=True):
        row = np.zeros((4, 3))
        row[a:b, c:d] = 1
        rows.append(row)
    assert workloads.ranges_between(lows, highs, (4, 3)) == pytest.approx(written_out(rows))
    kept = [row for row in rows if row.any()]
    assert workloads.ranges_between(lows, highs, (4, 3), unit_norm=True) == pytest.approx(written_out(kept, True))


def test_permuted_cells() -> None:
    W = np.random.default_rng(0).integers(0, 5, (6, 4))
    order = [2, 0, 3, 1]
    assert workloads.permuted(W.T @ W, order) == pytest.approx(workloads.gram_of(W[:, order]))


def test_identity_and_total() -> None:
    assert workloads.identity(3) == pytest.approx(np.eye(3))
    assert workloads.total(3) == pytest.approx(np.ones((3, 3)))


def test_predicates_given_as_true_and_false() -> None:
    W = np.array([[True, True, False], [True, False, False]])
    assert workloads.gram_of(W).tolist() == [[2, 1, 0], [1, 1, 0], [0, 0, 0]]


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(QueryError, match="merged cells"):
        workloads.all_ranges(100, 100)
    with pytest.raises(QueryError, match="outside"):
        workloads.ranges_between([[0]], [[5]], (4,))
    with pytest.raises(QueryError, match="not there"):
        workloads.marginals((2, 2), [(0, 2)])
    with pytest.raises(QueryError, match="at least one"):
        workloads.identity(0)
