"""Strategies of Eigen-Design and its competitors for a batch, by their names: `db.batch(questions, strategy="eigen")`.

    eigen            Program 2: Program 1 over the eigen-queries, then completed columns
    eigen-program-1  Program 1 over the eigen-queries alone
    eigen-separated  eigen-query separation, groups of n^1/3 (Sec. 4.2)
    eigen-principal  principal vectors, one in ten with a weight of its own (Sec. 4.2)
    wavelet, fourier Program 1 over another basis (Sec. 5.3)

The default measures the certified optimum instead, which is never worse in mean square error; these are for comparison.
Cells that no question tells apart are merged first, which loses nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bursar.arrays import Reals
from bursar.compile.partwise import PartwiseMap
from bursar.core.accounting import Mode
from bursar.core.domain import Domain
from bursar.core.queries import LinearMap
from bursar.errors import QueryError
from bursar.planner.offer import Offer, Views
from bursar.planner.request import PlanningRequest
from bursar.proposers.buying.strategy_plans import ExplicitPlan
from bursar.proposers.strategy import MOST_ROWS, Planned, Strategy
from bursar.views.measurements import products_of

MOST_CELLS = 1024
"""Most merged cells: eigen-queries take the cube of their number in time."""

Design = Callable[[Reals], Reals]
"""A strategy from the Gram matrix of a workload over merged cells."""


def _program_1(gram: Reals) -> Reals:
    from bursar.papers.eigen_design.eigen_design import eigen_queries
    from bursar.papers.eigen_design.weights import query_weights

    costs, queries = eigen_queries(gram)
    return query_weights(costs, np.square(queries)).factors[:, None] * queries if costs.size else queries


def _program_2(gram: Reals) -> Reals:
    from bursar.papers.eigen_design.eigen_design import eigen_design

    return eigen_design(gram)


def _separated(gram: Reals) -> Reals:
    from bursar.papers.eigen_design.eigen_design import separated

    return separated(gram)


def _principal(gram: Reals) -> Reals:
    from bursar.papers.eigen_design.eigen_design import principal

    return principal(gram)


def _wavelet(gram: Reals) -> Reals:
    from bursar.papers.eigen_design.fourier import wavelet
    from bursar.papers.eigen_design.weights import weigh_basis

    return weigh_basis(gram, wavelet(len(gram)))


def _fourier(gram: Reals) -> Reals:
    from bursar.papers.eigen_design.fourier import fourier_basis
    from bursar.papers.eigen_design.weights import weigh_basis

    return weigh_basis(gram, fourier_basis(len(gram)))


DESIGNS: dict[str, Design] = {
    "eigen": _program_2,
    "eigen-program-1": _program_1,
    "eigen-separated": _separated,
    "eigen-principal": _principal,
    "wavelet": _wavelet,
    "fourier": _fourier,
}


class NamedStrategy(Strategy):
    """Measures one strategy for the question as a whole, whether or not something else would be cheaper.

    Edge cases: no offer where more than 1,024 cells are told apart, or by conditions over many columns.
    """

    def __init__(self, design: str) -> None:
        super().__init__()
        self.design = self.name = design

    def offers(self, request: PlanningRequest, views: Views) -> list[Offer]:
        workload = request.workload.map
        if isinstance(workload, PartwiseMap) or not 1 <= workload.rows <= MOST_ROWS or views.mode is Mode.PURE:
            return []
        return self.offered(request, views, None)

    def plan(self, workload: LinearMap, domain: Domain, mode: Mode, beta: float | None) -> Planned | None:
        """Over merged cells, rounded to whole numbers, with the certified ratio to the least possible error."""
        from bursar.strategies.best import kronecker_plan
        from bursar.strategies.cells import merged_products
        from bursar.strategies.kronecker import KroneckerStrategy, WorkloadFactor
        from bursar.strategies.measure import svd_bound, weights_on
        from bursar.strategies.optimal import rounded

        products = products_of(workload)
        if sum(product.rows for product in products) != workload.rows or not workload.attrs:
            return None
        try:
            cells, queries = merged_products(products)
            if queries.shape[1] > MOST_CELLS:
                return None
            gram = queries.T @ queries
            whole = rounded(DESIGNS[str(self.design)](gram), gram, power=2, bits=None, loss=1e-4, bound=svd_bound(gram))
        except QueryError:
            return None
        factor = WorkloadFactor(
            mask=cells.mask(whole.rows),
            weights=weights_on(whole.rows.astype(np.float64), queries),
            bound=whole.bound,
            importance=np.ones(len(queries)),
        )
        strategy = KroneckerStrategy(factors=(factor,), power=2)
        return ExplicitPlan(kronecker_plan(self.name, strategy, mode), strategy.weights)


def named_strategies() -> tuple[NamedStrategy, ...]:
    """One proposer for each name."""
    return tuple(map(NamedStrategy, DESIGNS))
