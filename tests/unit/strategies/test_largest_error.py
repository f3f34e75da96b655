"""The least largest error: its certificate is true, and tiny cases agree with a search over all strategies."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest
import scipy.linalg
from scipy.optimize import minimize

from bursar.arrays import Reals
from bursar.core.accounting import Mode
from bursar.core.queries import LinearMap, Product, Stack
from bursar.errors import QueryError
from bursar.strategies import largest_error, optimal
from bursar.strategies.best import best_strategy
from bursar.strategies.cells import merge_workload
from bursar.strategies.largest_error import QueryRows, error_at, largest_error_optimum, least_error
from bursar.strategies.measure import sensitivity
from bursar.strategies.optimal import optimum
from harness.cases import few
from harness.maps import Table, domain_of
from harness.plans import all_ranges, tables, values

RNG = np.random.default_rng(22)


def ranges(cells: int, rows: int) -> Reals:
    ends = np.sort(RNG.integers(0, cells, (rows, 2)), axis=1)
    at = np.arange(cells)
    matrix = ((ends[:, :1] <= at) & (at <= ends[:, 1:])).astype(np.float64)
    return merge_workload(matrix).queries(matrix)


TOTAL_AND_PARTS = np.concatenate([np.eye(64), np.ones((1, 64)), np.repeat(np.eye(2), 32, axis=1)])
WORKLOADS: dict[str, Reals] = {
    "prefix": np.tril(np.ones((12, 12))),
    "total and parts": TOTAL_AND_PARTS,
    "ranges": ranges(60, 40),
    "few ranges": ranges(40, 7),
    "predicates": RNG.integers(0, 2, (48, 24)).astype(np.float64),
    "with a query of zeros": np.concatenate([np.tril(np.ones((6, 6))), np.zeros((1, 6))]),
    "one large query": np.concatenate([np.eye(5), 10 * np.ones((1, 5))]),
}
BETAS = [0.3, 0.05, 1e-6]


def variances(queries: Reals, strategy: Reals) -> Reals:
    return np.square(queries @ np.linalg.pinv(strategy)).sum(axis=1) * sensitivity(strategy) ** 2


@pytest.mark.thinned(3)
@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("name", WORKLOADS)
def test_no_strategy_goes_below_the_bound(name: str, beta: float) -> None:
    W = WORKLOADS[name]
    found = largest_error_optimum(W, beta=beta)
    own = variances(W, found.strategy)
    assert sensitivity(found.strategy) == pytest.approx(1, rel=1e-9)
    assert error_at(own, beta) <= found.error * (1 + 1e-6)  # completed columns can only help
    total = optimum(W.T @ W).strategy
    others = [total, np.eye(W.shape[1]), found.strategy * (1 + 0.05 * RNG.normal(size=found.strategy.shape))]
    assert found.bound <= error_at(own, beta) * (1 + 1e-9)
    assert all(found.bound <= error_at(variances(W, other), beta) * (1 + 1e-9) for other in others)
    # The total's optimum has neither a smaller error nor a smaller largest variance.
    assert error_at(own, beta) <= error_at(variances(W, total), beta) * 1.002
    assert own.max() <= variances(W, total).max() * 1.002


@pytest.mark.parametrize("name", WORKLOADS)
def test_the_gap_is_small_at_the_usual_confidence(name: str) -> None:
    found = largest_error_optimum(WORKLOADS[name], beta=0.05)
    assert found.error <= found.bound * 1.0021
    assert found.steps <= 20


def counts_beside_sums(seed: int) -> Reals:
    """Ranges of one column, some of them sums of its values, and in every other case the sum of each value."""
    rng = np.random.default_rng(seed)
    at, ends = np.arange(1, 61), np.sort(rng.integers(1, 61, (rng.integers(4, 20), 2)), axis=1)
    sums = rng.random((len(ends), 1)) < 0.3
    ranges = ((ends[:, :1] <= at) & (at <= ends[:, 1:])) * np.where(sums, at, 1.0)
    matrix = np.concatenate([ranges, np.diag(at)]) if seed % 2 else ranges
    return merge_workload(matrix).queries(matrix)


def largest_gap(workloads: list[Reals]) -> float:
    """How much more the dearest price is than the least possible: prices are squares of errors."""
    found = [largest_error_optimum(W, beta=0.05) for W in workloads]
    return max((each.error / each.bound) ** 2 for each in found)


def test_counts_beside_sums_have_a_small_gap_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights of queries of very different sizes overshoot. The twin lets them, and ends far from the bound."""
    workloads = [counts_beside_sums(seed) for seed in range(12)]
    assert largest_gap(workloads) <= 1.05
    monkeypatch.setattr(largest_error, "SHORTER", 1.0)
    assert largest_gap(workloads) > 1.07


def test_a_total_beside_its_parts_is_much_cheaper_than_by_the_total_error() -> None:
    """Prices are squares of errors: .57 of the price at 95 %."""
    found = largest_error_optimum(TOTAL_AND_PARTS, beta=0.05)
    total = optimum(TOTAL_AND_PARTS.T @ TOTAL_AND_PARTS).strategy
    assert (found.error / error_at(variances(TOTAL_AND_PARTS, total), 0.05)) ** 2 == pytest.approx(0.568, abs=0.01)


def test_queries_that_are_alike_need_one_step() -> None:
    assert largest_error_optimum(np.eye(30), beta=0.05).steps == 1


@pytest.mark.heavy
@pytest.mark.parametrize("beta", few([0.05, 1e-4]))
@pytest.mark.parametrize(
    "W",
    few(
        [
            np.array([[1.0, 0], [1, 1]]),
            np.array([[1.0, 0], [0, 1], [3, 3]]),
            np.array([[1.0, 1, 0], [0, 1, 1], [1, 1, 1], [0, 0, 2]]),
        ],
        2,
    ),
    ids=["prefix", "a heavy total", "three cells"],
)
def test_a_search_over_all_strategies_finds_the_same(W: Reals, beta: float) -> None:
    n = W.shape[1]

    def error(unknowns: Reals) -> float:
        strategy = unknowns.reshape(n, n)
        if abs(np.linalg.det(strategy)) < 1e-6:
            return 1e6
        return error_at(variances(W, strategy), beta)

    starts = [np.eye(n).ravel(), *RNG.normal(size=(2, n * n))]
    searched = min(
        minimize(error, start, method="Nelder-Mead", options={"maxiter": 800, "fatol": 1e-9}).fun for start in starts
    )
    found = largest_error_optimum(W, beta=beta)
    assert found.bound <= searched * (1 + 1e-9)
    assert found.error <= searched * 1.0021


@pytest.mark.parametrize("beta", BETAS)
def test_the_certificate_can_be_checked_by_itself(beta: float) -> None:
    """From the weights of queries alone: none beats the singular value bound of the weighted workload."""
    W = WORKLOADS["predicates"]
    found = largest_error_optimum(W, beta=beta)
    assert found.bound == pytest.approx(least_error(found.weights, found.mean, beta))
    roots = np.sqrt(np.maximum(scipy.linalg.eigvalsh(W.T @ (found.weights[:, None] * W)), 0))
    assert roots.sum() ** 2 / W.shape[1] <= found.mean * (1 + 1e-9)
    assert float(found.weights @ variances(W, found.strategy)) >= found.mean * (1 - 1e-9)


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_weights_that_do_not_sum_to_one_prove_nothing(factor: float) -> None:
    """The wrong twin: halved weights with the same mean would claim more than the best strategy's error."""
    found = largest_error_optimum(WORKLOADS["prefix"], beta=0.05)
    with pytest.raises(QueryError, match="sum is one"):
        least_error(factor * found.weights, found.mean, 0.05)
    with pytest.raises(QueryError, match="not negative"):
        least_error(np.array([2.0, -1.0]), 1.0, 0.05)
    assert least_error(found.weights, found.mean / 0.5, 0.05) > found.error  # what the twin would have claimed


@pytest.mark.parametrize("rows", [1, 7, 500])
@pytest.mark.parametrize("beta", BETAS)
def test_equal_variances_have_a_bound_in_closed_form(rows: int, beta: float) -> None:
    """Each query has a chance of beta / rows; that is the least possible where the tails are convex."""
    quantile = -NormalDist().inv_cdf(beta / rows / 2)
    assert error_at(np.full(rows, 4.0), beta) == pytest.approx(2 * quantile)
    bound = least_error(np.full(rows, 1 / rows), 4.0, beta)
    assert bound <= 2 * quantile * (1 + 1e-9)
    if beta < 0.08:
        assert bound == pytest.approx(2 * quantile, rel=1e-6)


def test_queries_without_variance_have_no_error() -> None:
    assert error_at(np.zeros(3), 0.05) == 0


DOMAIN = domain_of(a=5, b=4, c=6)
A, B = all_ranges("a", 5), all_ranges("b", 4)
PLANS: dict[str, LinearMap] = {
    "product": Product((A, values("b", 4))),
    "two overlapping factors": Product((A, B)),
    "marginals": tables(("a", "b", "c"), ("a",), (), domain=DOMAIN),
    "joint": Stack((Product((A,)), Product((A.take([3]), B)), Product(()))),
}


@pytest.mark.parametrize("name", PLANS)
def test_plans_for_the_largest_error_answer_the_same_and_are_certified(name: str) -> None:
    workload = PLANS[name]
    plan, total = (best_strategy(workload, Mode.CONCENTRATED, beta=beta) for beta in (0.05, None))
    counts = Table(DOMAIN, np.random.default_rng(0).integers(0, 100, (5, 4, 6)))
    assert plan.answers is not None
    assert plan.ratio is not None
    answers = plan.answers.estimate([part.map.apply(counts) for part in plan.parts])
    assert np.allclose(answers, workload.apply(counts), atol=1e-6)
    ours, theirs = error_at(plan.variances(1.0), 0.05), error_at(total.variances(1.0), 0.05)
    assert ours <= theirs * 1.002
    assert 1 - 1e-9 <= plan.ratio <= 1.05
    assert ours / plan.ratio <= theirs * (1 + 1e-9)  # the bound holds for the other plan as well


def test_marginals_of_unequal_sizes_gain() -> None:
    """The grand total has the variance of few parts, the large table that of many."""
    workload = PLANS["marginals"]
    plan, total = (best_strategy(workload, Mode.CONCENTRATED, beta=beta) for beta in (0.05, None))
    assert (error_at(plan.variances(1.0), 0.05) / error_at(total.variances(1.0), 0.05)) ** 2 < 0.8


def test_laplace_noise_keeps_the_total() -> None:
    plans = [best_strategy(PLANS["joint"], Mode.PURE, beta=beta) for beta in (0.05, None)]
    assert np.array_equal(*(plan.variances(1.0) for plan in plans))


@pytest.mark.parametrize("name", ["ranges", "predicates"])
def test_products_by_way_of_changes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, rng = WORKLOADS[name], np.random.default_rng(4)
    monkeypatch.setattr(largest_error, "FEW_CHANGES", 1.0)
    listed, matrix, weights = QueryRows.of(rows), rng.normal(size=(rows.shape[1], 5)), rng.random(len(rows))
    assert listed.changes is not None
    assert np.allclose(listed.times(matrix), rows @ matrix)
    assert np.allclose(listed.gram(weights), rows.T @ (weights[:, None] * rows))


def test_many_cells_of_nearly_full_rank_have_a_true_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = WORKLOADS["ranges"]
    exact = largest_error_optimum(rows, beta=0.05, gap=1e-4)
    for module in (largest_error, optimal):
        monkeypatch.setattr(module, "MANY_CELLS", 10)
    monkeypatch.setattr(optimal, "NEARLY_FULL", 0.5)
    found = largest_error_optimum(rows, beta=0.05)
    variances = np.square(rows @ np.linalg.pinv(found.strategy)).sum(axis=1)
    assert found.error == pytest.approx(error_at(variances, 0.05))
    assert found.bound <= exact.error
    assert exact.bound <= found.error <= 1.005 * exact.error
    assert sensitivity(found.strategy) == pytest.approx(1)


def test_few_queries_over_many_cells_are_planned_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    """As well as by way of the matrix over all cells, which is never taken apart."""
    W = np.random.default_rng(3).integers(-20, 21, (6, 300)).astype(np.float64)
    sizes: list[int] = []
    original = scipy.linalg.eigh
    monkeypatch.setattr(
        scipy.linalg, "eigh", lambda matrix, **options: (sizes.append(len(matrix)), original(matrix, **options))[1]
    )
    found = largest_error_optimum(W, beta=0.05)
    assert max(sizes) == 6
    monkeypatch.setattr(largest_error, "FEWEST_CELLS", 301)
    before = largest_error_optimum(W, beta=0.05)
    assert max(sizes) == 300
    assert found.error == pytest.approx(before.error, rel=1e-9)
    assert found.bound == pytest.approx(before.bound, rel=1e-9)
