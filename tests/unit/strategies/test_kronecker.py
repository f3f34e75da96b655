"""Products of strategies: optimal where the factors are, and exact in whole numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bursar.core.queries import Mask, Product, Steps
from bursar.papers.eigen_design import workloads
from bursar.strategies.cells import is_disjoint, merged_mask
from bursar.strategies.kronecker import KroneckerStrategy, _running_totals, kronecker
from bursar.strategies.measure import svd_bound
from bursar.strategies.optimal import optimum
from bursar.strategies.plan import StrategyPart
from harness.maps import Table, domain_of
from harness.plans import all_ranges, least_squares_variances, matrix, values

DOMAIN = domain_of(a=7, b=5)
PREFIXES = Mask(("b",), (5,), Steps.ranges(np.zeros(5), np.arange(1, 6), 5))
WORKLOADS = {
    "boxes": Product((all_ranges("a", 7), all_ranges("b", 5))),
    "ranges by value": Product((all_ranges("a", 7), values("b", 5))),
    "ranges by prefix": Product((all_ranges("a", 7), PREFIXES)),
    "one range": Product((all_ranges("a", 7).take([9]), values("b", 5))),
    "twice the same": Product((all_ranges("a", 7).take([3, 3, 4]),)),
    "everybody": Product(()),
}


def made(workload: Product, power: int = 2, gap: float = 1e-3) -> KroneckerStrategy:
    return kronecker([merged_mask(mask) for mask in workload.masks], power=power, gap=gap)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("name", WORKLOADS)
def test_errors_and_norms_are_those_of_the_dense_matrices(name: str, power: int) -> None:
    workload = WORKLOADS[name]
    strategy = made(workload, power)
    part = StrategyPart(map=strategy.product, scale=strategy.sensitivity)
    expected = least_squares_variances(workload, (part,), DOMAIN)
    assert np.allclose(strategy.variances * strategy.sensitivity**2, expected, rtol=1e-7)
    columns = (np.abs(matrix(strategy.product, DOMAIN)) ** power).sum(axis=0)
    assert columns.max() == pytest.approx(strategy.sensitivity**power, rel=1e-12)
    (norm,) = strategy.product.norms(power)
    assert norm.largest() == columns.max()
    W = matrix(workload, DOMAIN)
    assert 1 - 1e-9 <= strategy.ratio <= math.sqrt(expected.sum()) / svd_bound(W.T @ W) * (1 + 1e-9)


@pytest.mark.parametrize("name", WORKLOADS)
def test_exact_answers_give_exact_estimates(name: str) -> None:
    workload = WORKLOADS[name]
    strategy = made(workload)
    counts = Table(DOMAIN, np.random.default_rng(0).integers(0, 100, (7, 5)))
    assert np.allclose(strategy.estimate(strategy.product.apply(counts)), workload.apply(counts), atol=1e-7)


def test_the_product_of_optima_is_the_optimum_of_the_product() -> None:
    product = made(WORKLOADS["boxes"], gap=1e-6)
    joint = optimum(workloads.all_ranges(7, 5), gap=1e-6)
    error = product.sensitivity * math.sqrt(product.variances.sum())
    assert error == pytest.approx(joint.error, rel=2e-4)  # what rounding may cost
    assert math.prod(f.bound for f in product.factors) <= joint.error
    assert 1 <= product.ratio <= 1.0003


def test_boxes_of_large_columns_are_near_the_bound() -> None:
    V = (workloads.all_ranges(64), workloads.all_ranges(32))
    strategy = made(Product((all_ranges("a", 64), all_ranges("b", 32))), gap=1e-4)
    error = strategy.sensitivity * math.sqrt(strategy.variances.sum())
    assert error / (svd_bound(V[0]) * svd_bound(V[1])) <= 1.023


def test_many_factors_share_the_bits_that_there_are() -> None:
    strategy = made(Product(tuple(all_ranges(name, 4) for name in "abcd")))
    (norm,) = strategy.product.norms(2)
    assert norm.largest() <= 2**60
    assert 1 <= strategy.ratio < 1.05


def test_long_columns_are_merged_first() -> None:
    """Three ranges over a million cells are seven merged cells."""
    mask = Mask(("a",), (10**6,), Steps.ranges([10, 1000, 500], [5000, 90_000, 10**6], 10**6))
    strategy = made(Product((mask,)))
    assert strategy.product.rows <= 12
    counts = Table(domain_of(a=10**6), np.random.default_rng(1).integers(0, 5, 10**6))
    assert np.allclose(strategy.estimate(strategy.product.apply(counts)), mask.steps.apply(counts(("a",))), atol=1e-4)


def test_rows_that_share_no_cell_are_asked_as_they_are() -> None:
    bins = Mask(("a",), (10**6,), Steps.ranges(np.arange(0, 10**6, 100), np.arange(100, 10**6 + 1, 100), 10**6))
    strategy = kronecker([bins, merged_mask(all_ranges("b", 5))])
    assert strategy.factors[0].mask is bins
    assert strategy.product.rows == 10_000 * strategy.factors[1].mask.rows
    assert strategy.ratio < 1.001
    assert not is_disjoint(all_ranges("b", 5))
    assert not is_disjoint(Mask(("b",), (5,), Steps.ranges([1, 2], [1, 4], 5)))  # the first row is empty
    assert not is_disjoint(Mask(("b",), (5,), Steps.dense([[2, 0, 0, 0, 0]])))


def totals(ends: np.ndarray, times: np.ndarray | int) -> Mask:
    rows = Steps.ranges(np.zeros_like(ends), ends, 600)
    jump = rows.jump * np.broadcast_to(times, len(ends))[rows.owner]
    return Mask(("x",), (600,), Steps(600, rows.starts, rows.at, jump))


def test_long_running_totals_in_groups_are_measured_by_sines() -> None:
    """Rows that come twice, and multiples, keep their answers; the certificate is near one."""
    ends = np.concatenate([np.arange(1, 601), [600, 300]])
    groups = Mask(("g",), (2,), Steps.identity(2))
    strategy = kronecker([groups, merged_mask(totals(ends, 3))], beta=0.05)
    counts = np.random.default_rng(0).integers(0, 50, (2, 600))
    measured = np.array([strategy.factors[1].mask.steps.at_cells(np.arange(600)) @ row for row in counts])
    assert strategy.estimate(measured) == pytest.approx(3 * np.cumsum(counts, axis=1)[:, ends - 1].ravel())
    assert strategy.variances[601] == pytest.approx(strategy.variances[299])
    assert 1 < strategy.ratio < 1.06
    norms = strategy.factors[1].mask.steps.norms(2)
    assert norms.max() < 1.001 * norms.min()  # every cell pays the same


def test_sines_are_for_all_running_totals_alike() -> None:
    """One of them in a larger multiple has the largest error, which a plan for all of them would not look after."""
    ends = np.arange(1, 601)
    for mask, by_sines in ((totals(ends, 1), True), (totals(ends, np.where(ends == 300, 3, 1)), False)):
        assert (_running_totals(merged_mask(mask)[1]) is not None) is by_sines


@pytest.mark.heavy
def test_an_empty_row_beside_long_running_totals_stays_empty() -> None:
    strategy = kronecker([merged_mask(totals(np.append(np.arange(1, 601), 0), 1))], beta=0.05)
    counts = np.random.default_rng(0).integers(0, 50, 600)
    measured = strategy.factors[0].mask.steps.at_cells(np.arange(600)) @ counts
    assert strategy.estimate(measured) == pytest.approx(np.append(np.cumsum(counts), 0))
