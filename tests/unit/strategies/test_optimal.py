"""The optimum meets its bound; its certificate is true; small cases are known."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.errors import QueryError
from bursar.papers.eigen_design import workloads
from bursar.papers.eigen_design.eigen_design import eigen_design
from bursar.strategies import optimal
from bursar.strategies.measure import rms_error, sensitivity, svd_bound
from bursar.strategies.optimal import optimum

RNG = np.random.default_rng(6)
SIMPLE = {
    "ranges": workloads.all_ranges(32),
    "boxes": workloads.all_ranges(8, 4),
    "prefix": workloads.prefix(32),
    "marginals": workloads.marginals((4, 3, 3), workloads.ways(3, 2)),
    "range marginals": workloads.range_marginals((4, 3, 3), workloads.ways(3, 1)),
    "predicates": workloads.gram_of(RNG.integers(0, 2, (48, 24))),
    "few predicates": workloads.gram_of(RNG.integers(0, 2, (7, 24))),
    "any numbers": workloads.gram_of(RNG.normal(size=(9, 20))),
    "huge numbers": 1e12 * workloads.prefix(10),
    "tiny numbers": 1e-12 * workloads.prefix(10),
}


@pytest.mark.parametrize("name", SIMPLE)
def test_primal_meets_dual(name: str) -> None:
    V = SIMPLE[name]
    found = optimum(V, gap=1e-4)
    assert 0 <= found.gap + 1e-9 <= 1e-4 + 1e-9
    assert found.error == pytest.approx(rms_error(V, found.strategy), rel=1e-9)
    assert sensitivity(found.strategy) == pytest.approx(1, rel=1e-9)
    assert found.bound >= svd_bound(V) * (1 - 1e-9)


@pytest.mark.parametrize("name", SIMPLE)
def test_no_other_strategy_beats_the_bound(name: str) -> None:
    V = SIMPLE[name]
    bound = optimum(V, gap=1e-4).bound * (1 - 1e-9)
    best = optimum(V, gap=1e-4).strategy
    nearby = best * (1 + 0.1 * RNG.normal(size=best.shape))
    assert rms_error(V, eigen_design(V)) >= bound
    assert rms_error(V, np.eye(len(V))) >= bound
    assert rms_error(V, nearby) >= bound


def test_every_number_of_steps_gives_a_true_bound() -> None:
    V = workloads.prefix(40)
    best = optimum(V, gap=1e-6).error
    early = [optimum(V, gap=0.0, most_steps=steps) for steps in (1, 2, 3, 5)]
    assert all(found.bound <= best <= found.error * (1 + 1e-9) for found in early)
    assert early[0].gap > early[-1].gap > 0
    assert [found.steps for found in early] == [1, 2, 3, 5]


def test_one_query_is_asked_itself() -> None:
    query = np.array([[1.0, -1, 1, 0]])
    found = optimum(query.T @ query)
    assert found.error == pytest.approx(1)
    assert found.strategy.shape == (1, 4)
    assert np.abs(found.strategy[0]).tolist() == pytest.approx([1, 1, 1, 0])


def test_a_single_cell_and_no_question() -> None:
    assert optimum(np.array([[9.0]])).error == pytest.approx(3)
    nothing = optimum(np.zeros((3, 3)))
    assert (nothing.error, nothing.bound, nothing.gap) == (0, 0, 0)
    assert nothing.strategy.shape == (0, 3)


def test_asking_twice_costs_no_more_than_weighting() -> None:
    V = workloads.prefix(12)
    assert optimum(3 * V).error == pytest.approx(np.sqrt(3) * optimum(V).error)


def test_too_many_cells_are_refused() -> None:
    with pytest.raises(QueryError, match="merged cells"):
        optimum(np.broadcast_to(0.0, (5000, 5000)))


FIGURES = {
    "ranges 2048": (lambda: workloads.all_ranges(2048), 1.006, 1.0138),
    "ranges 64x32": (lambda: workloads.all_ranges(64, 32), 1.023, 1.0521),
    "ranges 16x16x8": (lambda: workloads.all_ranges(16, 16, 8), 1.030, 1.0762),
    "prefix 2048": (lambda: workloads.prefix(2048), 1.0145, 1.2615),
    "2-way marginals": (lambda: workloads.marginals((16, 16, 8), workloads.ways(3, 2)), 1.0001, 1.0000),
    "predicates": (
        lambda: workloads.gram_of(np.random.default_rng(0).integers(0, 2, (4096, 2048))),
        1.0001,
        1.0004,
    ),
    "1-way range marginals": (lambda: workloads.range_marginals((16, 16, 8), workloads.ways(3, 1)), 1.012, 1.0203),
    "2-way range marginals": (lambda: workloads.range_marginals((16, 16, 8), workloads.ways(3, 2)), 1.02, 1.0503),
}


ALIKE = {
    *("ranges 2048", "ranges 64x32", "ranges 16x16x8", "1-way range marginals", "2-way range marginals"),
    *("prefix 2048", "predicates"),
}
"""Long ones, of the same kinds of workload as others, here or over fewer cells."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.soak if name in ALIKE else pytest.mark.heavy) for name in FIGURES]
)
def test_the_figures_at_2048_cells(name: str) -> None:
    make, most, eigen = FIGURES[name]
    V = make()
    bound = svd_bound(V)
    found = optimum(V, gap=1e-4)
    assert found.gap <= 1e-4
    assert found.error / bound <= most
    assert rms_error(V, eigen_design(V)) / bound == pytest.approx(eigen, abs=0.005)


@pytest.mark.parametrize("gap", [1e-2, 1e-3])
def test_many_cells_of_nearly_full_rank_are_solved_over_all_cells(gap: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The certificate stays true, and the strategy answers everything, although some directions are made up."""
    ends = np.sort(np.random.default_rng(8).integers(0, 60, (55, 2)), axis=1)
    rows = ((ends[:, :1] <= np.arange(60)) & (np.arange(60) <= ends[:, 1:])).astype(float)
    V = workloads.gram_of(rows)
    exact = optimum(V, gap=1e-6)
    monkeypatch.setattr(optimal, "MANY_CELLS", 10)
    monkeypatch.setattr(optimal, "NEARLY_FULL", 0.5)
    found = optimum(V, gap=gap)
    assert found.steps < exact.steps
    assert found.bound <= exact.error * (1 + 1e-9)
    assert exact.bound * (1 - 1e-9) <= found.error <= exact.error * (1 + gap)
    assert sensitivity(found.strategy) == pytest.approx(1)
    assert rms_error(V, found.strategy) == pytest.approx(found.error)
