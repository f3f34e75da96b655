"""Li and Miklau, "An Adaptive Mechanism for Accurate Query Answering": its examples, bounds and propositions.

The absolute numbers of Figs. 1 and 2 follow from neither Prop. 4 nor Def. 5; their ratios to the bound do.
"""

from __future__ import annotations

import numpy as np
import pytest

from bursar.strategy import workloads
from bursar.strategy.datacube import datacube
from bursar.strategy.eigen import eigen_design, eigen_queries, for_relative_error, principal, separated
from bursar.strategy.fourier import fourier, fourier_basis
from bursar.strategy.hierarchical import hierarchical
from bursar.strategy.measure import ratio, rms_error, svd_bound
from bursar.strategy.optimal import optimum
from bursar.strategy.simple import identity
from bursar.strategy.wavelet import wavelet
from bursar.strategy.weights import query_weights, weigh_basis

FIG_1 = np.array(
    [
        [1, 1, 1, 1, 1, 1, 1, 1],
        [1, 1, 1, 1, 0, 0, 0, 0],
        [0, 0, 0, 0, 1, 1, 1, 1],
        [1, 1, 0, 0, 1, 1, 0, 0],
        [0, 0, 1, 1, 0, 0, 1, 1],
        [0, 0, 0, 0, 0, 0, 1, 1],
        [1, 1, 0, 0, 0, 0, 0, 0],
        [1, 1, 1, 1, -1, -1, -1, -1],
    ]
)
V_1 = workloads.gram_of(FIG_1)


def test_fig_1_ratios_to_the_bound() -> None:
    assert svd_bound(V_1) ** 2 == pytest.approx(14.933, abs=5e-4)
    assert ratio(V_1, identity(8)) == pytest.approx(1.5527, abs=5e-5)
    assert ratio(V_1, wavelet(8)) == pytest.approx(1.1859, abs=5e-5)
    assert ratio(V_1, eigen_design(V_1, gap=1e-6)) == pytest.approx(1.018, abs=5e-4)
    best = optimum(V_1, gap=1e-6)
    assert best.error / svd_bound(V_1) == pytest.approx(1.0028, abs=5e-5)
    assert best.bound / svd_bound(V_1) == pytest.approx(1.0028, abs=5e-5)


def test_fig_1_sensitivity_of_the_workload() -> None:
    assert np.linalg.norm(FIG_1, axis=0).max() == pytest.approx(np.sqrt(5))


def random_gram(seed: int, cells: int = 16) -> np.ndarray:
    return workloads.gram_of(np.random.default_rng(seed).normal(size=(2 * cells, cells)))


@pytest.mark.parametrize("seed", range(6))
def test_theorem_2_no_strategy_is_below_the_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    W = rng.integers(0, 2, (10 + 6 * seed, 16))
    V = workloads.gram_of(W)
    made = (
        identity(16),
        hierarchical(16),
        hierarchical(16, branching=4),
        wavelet(16),
        wavelet(4, 4),
        fourier_basis(4, 4),
        fourier(V, (4, 4)),
        weigh_basis(V, wavelet(16)),
        eigen_design(V),
        separated(V),
        principal(V),
        optimum(V).strategy,
    )
    assert all(ratio(V, A) >= 1 - 1e-9 for A in made)


def test_theorem_2_for_marginals() -> None:
    sizes, sets = (4, 3, 2), workloads.ways(3, 2)
    V = workloads.marginals(sizes, sets)
    assert ratio(V, datacube(sizes, sets)) >= 1
    assert ratio(V, fourier(V, sizes)) >= 1


THEOREM_3 = {
    "ranges": workloads.all_ranges(64),
    "prefix": workloads.prefix(64),
    "marginals": workloads.marginals((4, 4, 4), workloads.ways(3, 1)),
    "total": workloads.total(16),
    "one heavy query": workloads.identity(16) + 100 * workloads.total(16),
    "random": random_gram(0),
    "fig 1": V_1,
}


@pytest.mark.parametrize("name", THEOREM_3)
def test_theorem_3_ratio_to_the_optimum(name: str) -> None:
    V = THEOREM_3[name]
    # The squared bound of our trace units is SVDB(W).
    allowed = (len(V) * np.linalg.eigvalsh(V)[-1] / svd_bound(V) ** 2) ** 0.25
    best = optimum(V, gap=1e-5)
    assert rms_error(V, eigen_design(V)) / best.bound <= allowed * (1 + 1e-4)


def test_theorem_1_weights_are_the_best_over_the_eigen_queries() -> None:
    V = random_gram(1, 6)
    costs, queries = eigen_queries(V)
    best = np.sqrt(query_weights(costs, np.square(queries), gap=1e-8).bound)
    rng = np.random.default_rng(0)
    for _ in range(300):
        assert rms_error(V, rng.random(6)[:, None] * queries) >= best


@pytest.mark.parametrize("seed", range(4))
def test_proposition_5_the_order_of_the_cells_does_not_matter(seed: int) -> None:
    V = random_gram(seed)  # a simple spectrum: the eigen-queries are unique
    order = np.random.default_rng(seed).permutation(len(V))
    there = workloads.permuted(V, order)
    assert rms_error(there, eigen_design(there)) == pytest.approx(rms_error(V, eigen_design(V)), rel=1e-6)
    assert rms_error(there, wavelet(16)) != pytest.approx(rms_error(V, wavelet(16)), rel=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_proposition_6_rotated_queries_have_equal_error(seed: int) -> None:
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(20, 12))
    rotation = np.linalg.qr(rng.normal(size=(20, 20)))[0]
    here, there = workloads.gram_of(W), workloads.gram_of(rotation @ W)
    assert rms_error(there, eigen_design(there)) == pytest.approx(rms_error(here, eigen_design(here)), rel=1e-6)


@pytest.mark.parametrize("name", ["ranges", "prefix", "marginals", "random"])
def test_section_4_reductions_lose_little(name: str) -> None:
    V = THEOREM_3[name]
    full = rms_error(V, eigen_design(V))
    assert rms_error(V, separated(V, group=4)) <= 1.12 * full
    assert rms_error(V, principal(V, share=0.25)) <= 1.12 * full
    assert rms_error(V, separated(V, group=len(V))) == pytest.approx(full, rel=1e-3)
    assert rms_error(V, principal(V, share=1.0)) == pytest.approx(full)


def relative_error(W: np.ndarray, A: np.ndarray, shares: np.ndarray) -> float:
    """The root mean square over queries of their standard deviation over their true answer."""
    deviations = np.linalg.norm(A, axis=0).max() * np.linalg.norm(W @ np.linalg.pinv(A), axis=1)
    return float(np.sqrt(np.mean(np.square(deviations / (W @ shares)))))


def test_section_3_4_scaled_queries_have_smaller_relative_errors() -> None:
    ranges = np.array([[a <= i < b for i in range(16)] for a in range(16) for b in range(a + 1, 17)], float)
    flat, skewed = np.ones(16), 1.0 / np.arange(1, 17) ** 2
    scaled = {"no": ranges, "unit": for_relative_error(ranges), "known": for_relative_error(ranges, skewed)}
    scaled["inverse"] = for_relative_error(ranges, 1 / skewed)
    for design in (eigen_design, lambda V: optimum(V).strategy):
        made = {name: design(workloads.gram_of(W)) for name, W in scaled.items()}
        assert relative_error(ranges, made["unit"], flat) < relative_error(ranges, made["no"], flat)
        error = {name: relative_error(ranges, A, skewed) for name, A in made.items()}
        assert error["known"] < error["unit"] < error["no"]
        assert error["known"] < error["inverse"]  # what the paper's words would give


def test_unit_norms_of_the_formulas_are_those_of_the_rows() -> None:
    rows = np.tril(np.ones((5, 5)))
    assert workloads.gram_of(for_relative_error(rows)) == pytest.approx(workloads.prefix(5, unit_norm=True))


def test_table_2_permuted_ranges_ruin_wavelets_and_not_eigen_queries() -> None:
    V = workloads.all_ranges(256)
    there = workloads.permuted(V, np.random.default_rng(0).permutation(256))
    assert ratio(there, wavelet(256)) > 3
    assert ratio(there, hierarchical(256)) > 3
    assert ratio(there, eigen_design(there)) == pytest.approx(ratio(V, eigen_design(V)), rel=1e-6)
    assert ratio(there, weigh_basis(there, wavelet(256))) > 2
    assert optimum(there, gap=1e-4).error == pytest.approx(optimum(V, gap=1e-4).error, rel=1e-4)


def test_edge_cases_of_the_reductions() -> None:
    nothing = np.zeros((3, 3))
    assert all(design(nothing).shape == (0, 3) for design in (eigen_design, separated, principal))
    assert ratio(np.array([[4.0]]), eigen_design(np.array([[4.0]]))) == pytest.approx(1)
    assert ratio(np.ones((3, 3)), eigen_design(np.ones((3, 3)))) == pytest.approx(1)
