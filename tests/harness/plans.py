"""Plans measured by a real kernel, and dense matrices to compare them with."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import norm

from bursar.core.accounting import Mode
from bursar.core.budget import Budget
from bursar.core.domain import Domain
from bursar.core.extensions.curator import declare_version
from bursar.core.kernel import Kernel
from bursar.core.ledger import MemoryLedger, Purpose
from bursar.core.noise.system import SystemRandomness
from bursar.core.queries import LinearMap, Mask, Product, Stack, Steps
from bursar.strategies.plan import StrategyPart, StrategyPlan
from harness.maps import Table, columns_matrix
from harness.small import TableSource, charter, config

ALPHA = 1e-6


def matrix(linear_map: LinearMap, domain: Domain) -> np.ndarray:
    """The map as a dense matrix over all cells of the domain."""
    return np.array(columns_matrix(linear_map, domain), float).T.reshape(linear_map.rows, -1)


def stacked(parts: tuple[StrategyPart, ...], domain: Domain) -> np.ndarray:
    """All parts one below the other, each over its noise: rows with noise of one variance."""
    cells = domain.cells(domain.names)
    return np.concatenate([np.zeros((0, cells)), *(matrix(part.map, domain) / part.scale for part in parts)])


def least_squares_variances(workload: LinearMap, parts: tuple[StrategyPart, ...], domain: Domain) -> np.ndarray:
    """The variances of the best linear estimates, by dense linear algebra."""
    A, W = stacked(parts, domain), matrix(workload, domain)
    weights = W @ np.linalg.pinv(A)
    assert np.allclose(weights @ A, W, atol=1e-6)
    return np.square(weights).sum(axis=1)


def values(name: str, size: int) -> Mask:
    return Mask((name,), (size,), Steps.identity(size))


def all_ranges(name: str, size: int) -> Mask:
    low, high = np.triu_indices(size + 1, 1)
    return Mask((name,), (size,), Steps.ranges(low, high, size))


def table_of(*names: str, domain: Domain) -> Product:
    return Product(tuple(values(name, domain[name].size) for name in names))


def tables(*sets: tuple[str, ...], domain: Domain) -> Stack:
    return Stack(tuple(table_of(*names, domain=domain) for names in sets))


def kernel_over(domain: Domain, source: TableSource, mode: Mode) -> Kernel:
    budget = Budget.of(rho=1000.0) if mode is Mode.CONCENTRATED else Budget.of(epsilon=1000.0)
    settings = config(domain=domain, budget=budget, max_rows=10**6)
    ledger, randomness = MemoryLedger(charter(settings)), SystemRandomness()
    declare_version(ledger=ledger, open_source=lambda key: source, randomness=randomness)
    return Kernel(
        domain=domain,
        unit=settings.unit,
        budget=budget,
        max_rows=settings.max_rows,
        ledger=ledger,
        open_source=lambda key: source,
        randomness=randomness,
    )


def measured(kernel: Kernel, plan: StrategyPlan, unit: float) -> list[np.ndarray]:
    return [
        kernel.measure(strategy, noise, analyst="ana", purpose=Purpose("", "test"), at_most=2**60)[0].values
        for strategy, noise in plan.noises(unit)
    ]


def errors_over_predicted(plan: StrategyPlan, workload: LinearMap, domain: Domain, runs: int) -> np.ndarray:
    """One error per run, of another query each time, over its predicted standard deviation."""
    counts = np.random.default_rng(0).integers(0, 100, domain.sizes(domain.names))
    truth = workload.apply(Table(domain, counts))
    unit = 20.0
    deviation = np.sqrt(plan.variances(unit))
    kernel = kernel_over(domain, TableSource(counts, domain), plan.mode)
    assert plan.answers is not None
    result = []
    for run in range(runs):
        query = run % workload.rows
        error = plan.answers.estimate(measured(kernel, plan, unit))[query] - truth[query]
        result.append(error / deviation[query])
    return np.array(result)


def of_variance_one(scores: np.ndarray, kurtosis: float = 3.0) -> bool:
    """Whether independent scores of this kurtosis, normal unless stated, may have variance one (at ALPHA)."""
    widest = float(norm.isf(ALPHA / 2)) * math.sqrt((kurtosis - 1) / len(scores))
    return bool(abs(np.square(scores).mean() - 1) <= widest)


def check_errors(plan: StrategyPlan, workload: LinearMap, domain: Domain) -> None:
    """The prediction is accepted, and so would not be one that is off by 1.5 in variance (power above .998).

    Of a sum of Laplace draws the kurtosis is at most 6, that of one draw; of Gaussian ones it is 3.
    """
    kurtosis, runs = (6.0, 2400) if plan.mode is Mode.PURE else (3.0, 960)
    scores = errors_over_predicted(plan, workload, domain, runs)
    assert of_variance_one(scores, kurtosis)
    assert not of_variance_one(scores * math.sqrt(1.5), kurtosis)
    assert not of_variance_one(scores / math.sqrt(1.5), kurtosis)
