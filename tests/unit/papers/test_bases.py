"""Trees, wavelets, Fourier bases and data cubes: what they are made of, and what they are good for."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from bursar.errors import QueryError
from bursar.papers.eigen_design import workloads
from bursar.papers.eigen_design.fourier import bmax, datacube, fourier, fourier_basis, wavelet
from bursar.strategies.hierarchical import (
    best_tree,
    hierarchical,
    identity,
    level_weights,
    product,
    total,
    tree,
    weighted_levels,
    widths,
)
from bursar.strategies.measure import pure_error, ratio, rms_error, sensitivity


def test_a_binary_tree_over_four_cells() -> None:
    assert hierarchical(4).tolist() == [
        [1, 1, 1, 1],
        [1, 1, 0, 0],
        [0, 0, 1, 1],
        *np.eye(4).tolist(),
    ]


@pytest.mark.parametrize(("size", "branching"), [(1, 2), (5, 2), (9, 3), (10, 3), (16, 4), (17, 16)])
def test_every_level_of_a_tree_asks_for_every_cell_once(size: int, branching: int) -> None:
    A = hierarchical(size, branching=branching)
    assert np.all(A.sum(axis=0) == len(widths(size, branching)))
    assert np.linalg.matrix_rank(A) == size


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize(("size", "branching"), [(16, 2), (13, 2), (27, 3)])
def test_level_weights_are_feasible_and_better_than_equal_ones(size: int, branching: int, power: int) -> None:
    error = rms_error if power == 2 else pure_error
    for V in (workloads.all_ranges(size), workloads.prefix(size), workloads.identity(size)):
        A = tree(V, branching=branching, power=power)
        assert sensitivity(A, power) == pytest.approx(1)
        assert error(V, A) <= error(V, hierarchical(size, branching=branching)) * (1 + 1e-9)


def test_level_weights_are_the_best_there_are() -> None:
    V = workloads.all_ranges(16)
    best = rms_error(V, tree(V))
    rng = np.random.default_rng(0)
    for _ in range(200):
        assert rms_error(V, weighted_levels(16, rng.random(5))) >= best * (1 - 1e-9)


def test_single_cells_need_no_tree() -> None:
    assert level_weights(workloads.identity(8), power=1) == pytest.approx([0, 0, 0, 1], abs=1e-3)


def test_a_tree_of_nothing_and_a_wrong_tree() -> None:
    assert sensitivity(tree(np.zeros((4, 4)))) == pytest.approx(1)
    with pytest.raises(QueryError, match="3 levels"):
        weighted_levels(4, [1.0])
    with pytest.raises(QueryError, match="two children"):
        hierarchical(4, branching=1)


def test_the_wavelet_of_fig_2() -> None:
    assert wavelet(8).tolist() == [
        [1, 1, 1, 1, 1, 1, 1, 1],
        [1, 1, 1, 1, -1, -1, -1, -1],
        [1, 1, -1, -1, 0, 0, 0, 0],
        [0, 0, 0, 0, 1, 1, -1, -1],
        [1, -1, 0, 0, 0, 0, 0, 0],
        [0, 0, 1, -1, 0, 0, 0, 0],
        [0, 0, 0, 0, 1, -1, 0, 0],
        [0, 0, 0, 0, 0, 0, 1, -1],
    ]


@pytest.mark.parametrize("sizes", [(1,), (5,), (8,), (4, 3), (2, 2, 2)])
def test_bases_have_full_rank(sizes: tuple[int, ...]) -> None:
    cells = int(np.prod(sizes))
    assert wavelet(*sizes).shape == (cells, cells)
    assert np.linalg.matrix_rank(wavelet(*sizes)) == cells
    assert fourier_basis(*sizes) @ fourier_basis(*sizes).T == pytest.approx(cells * np.eye(cells), abs=1e-9)


def test_products_multiply_sensitivities() -> None:
    A = product(hierarchical(4), wavelet(4))
    assert sensitivity(A) == pytest.approx(sensitivity(hierarchical(4)) * sensitivity(wavelet(4)))
    assert sensitivity(A, 1) == pytest.approx(sensitivity(hierarchical(4), 1) * sensitivity(wavelet(4), 1))
    assert product(identity(2), total(3)).tolist() == [[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]]


def test_fourier_keeps_what_marginals_need() -> None:
    sizes = (4, 3, 2)
    V = workloads.marginals(sizes, workloads.ways(3, 1))
    A = fourier(V, sizes)
    assert len(A) == 1 + 3 + 2 + 1
    assert ratio(V, A) < ratio(V, fourier_basis(*sizes))
    with pytest.raises(QueryError):
        fourier(V, (4, 3))


def largest_variance(
    sizes: tuple[int, ...], wanted: list[tuple[int, ...]], chosen: tuple[tuple[int, ...], ...]
) -> float:
    def one(s: tuple[int, ...]) -> float:
        return min((np.prod([sizes[i] for i in t if i not in s]) for t in chosen if set(s) <= set(t)), default=np.inf)

    return len(chosen) * max(one(s) for s in wanted)


def test_bmax_is_close_to_the_best_choice() -> None:
    sizes = (4, 2, 3)
    lattice = [t for k in range(4) for t in itertools.combinations(range(3), k)]
    for wanted in (workloads.ways(3, 1), workloads.ways(3, 2), [(0,), (0, 1), (2,)], [()]):
        choices = [c for k in (1, 2, 3, 4) for c in itertools.combinations(lattice, k)]
        best = min(largest_variance(sizes, wanted, c) for c in choices)
        assert largest_variance(sizes, wanted, tuple(bmax(sizes, wanted))) <= 1.5 * best


def test_a_data_cube_answers_its_marginals() -> None:
    sizes, sets = (4, 2, 3), workloads.ways(3, 2)
    assert np.isfinite(rms_error(workloads.marginals(sizes, sets), datacube(sizes, sets)))
    assert datacube(sizes, []).shape == (0, 24)
    assert bmax((50, 50), [(0,), (1,)]) == [(0,), (1,)]
    assert bmax((2, 2, 2, 2), workloads.ways(4, 3) + workloads.ways(4, 4)) == [(0, 1, 2, 3)]
    with pytest.raises(QueryError, match="too many"):
        bmax((2,) * 13, [(0,)])
    with pytest.raises(QueryError, match="not there"):
        bmax((2, 2), [(2,)])


@pytest.mark.parametrize("cells", [70, 200, 400])
def test_the_best_tree_is_found_without_building_them_all(cells: int) -> None:
    V = workloads.all_ranges(cells)
    errors = [pure_error(V, tree(V, branching=k, power=1)) for k in (2, 4, 8)]
    found = pure_error(V, best_tree(V, branchings=(2, 4, 8), power=1))
    assert found <= 1.001 * min(errors)
    assert max(errors) > 1.005 * min(errors)
