"""The residual basis: exact in whole numbers, as good as the bound, and any marginal on demand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from bursar.core.accounting import Accountant, AddRemove, Measured, Mode, Noise, NoiseKind
from bursar.core.domain import Unit
from bursar.core.ledger import Purpose
from bursar.core.queries import Product
from bursar.errors import QueryError
from bursar.estimation.least_squares import Block, Reconstruction
from bursar.papers.eigen_design import workloads
from bursar.strategies.cells import merged_mask
from bursar.strategies.marginals import ResidualPlan, every_value, residuals, some_queries
from bursar.strategies.measure import svd_bound
from bursar.strategies.plan import StrategyPart
from harness.maps import Table, domain_of
from harness.plans import all_ranges, kernel_over, least_squares_variances, matrix, stacked, table_of
from harness.small import TableSource

DOMAIN = domain_of(a=3, b=2, c=4, d=1)
NAMES = DOMAIN.names
SIZES = DOMAIN.sizes(NAMES)
COLUMNS = [every_value(name, DOMAIN[name].size) for name in NAMES]
CASES = [
    [(0, 1), (1, 2), (0, 3), ()],
    [(0,), (1,), (2,)],
    [(0, 1, 2)],
    [()],
    [(3,)],
    [(0, 2), (0, 2), (2,)],
]


def parts(plan: ResidualPlan) -> tuple[StrategyPart, ...]:
    return tuple(StrategyPart(map=plan.product(i), scale=float(s)) for i, s in enumerate(np.sqrt(plan.noise)))


def marginal(plan: ResidualPlan, members: tuple[int, ...]) -> Product:
    return table_of(*(NAMES[i] for i in members), domain=DOMAIN)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 10, 31])
def test_rows_of_a_column_are_a_tight_frame_of_its_residual(size: int) -> None:
    column = every_value("a", size)
    H = matrix(Product((column.mask,)), domain_of(a=size))
    gram = H.T @ H
    assert np.array_equal(
        gram * size, gram[0, 0] * size / max(size - 1, 1) * (size * np.eye(size) - 1) if size > 1 else gram
    )
    assert column.norm == gram.diagonal().max()


@pytest.mark.parametrize("sets", CASES, ids=str)
def test_the_least_total_is_the_singular_value_bound_at_sensitivity_one(sets: list[tuple[int, ...]]) -> None:
    plan = residuals(COLUMNS, sets).least_total()
    assert plan.totals.sum() == pytest.approx(svd_bound(workloads.marginals(SIZES, sets)) ** 2, rel=1e-9)
    lengths = np.square(stacked(parts(plan), DOMAIN)).sum(axis=0)
    assert np.allclose(lengths, 1, atol=1e-12)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("sets", CASES, ids=str)
@pytest.mark.parametrize("objective", ["total", "largest"])
def test_variances_are_those_of_least_squares(sets: list[tuple[int, ...]], objective: str) -> None:
    found = residuals(COLUMNS, sets)
    plan = found.least_total() if objective == "total" else found.least_largest()
    for number, members in enumerate(sets):
        expected = least_squares_variances(marginal(plan, members), parts(plan), DOMAIN)
        assert np.allclose(plan.variances(members), expected, rtol=1e-9)
        assert plan.totals[number] == pytest.approx(expected.sum(), rel=1e-9)


def test_the_planned_price_is_the_charged_one() -> None:
    plan = residuals(COLUMNS, CASES[0]).least_total()
    accountant = Accountant(mode=Mode.CONCENTRATED, unit=Unit())
    profile = AddRemove(DOMAIN)
    for part in parts(plan):
        noise = Noise(kind=NoiseKind.GAUSSIAN, scale=part.scale * 10)
        profile.add(accountant.footprints(Measured(strategy=part.map, noise=noise, version=1)))
    assert profile.spent() / 2**50 == pytest.approx(1 / 200, rel=1e-9)


def test_estimates_are_those_of_a_reconstruction_from_the_log() -> None:
    plan = residuals(COLUMNS, CASES[0]).least_total()
    rng = np.random.default_rng(0)
    reconstruction = Reconstruction(DOMAIN, NAMES)
    values = {}
    for S, part in zip(plan.residuals.parts, parts(plan), strict=True):
        noise = Noise(kind=NoiseKind.GAUSSIAN, scale=part.scale * 10)
        values[S] = part.map.apply(Table(DOMAIN, rng.integers(0, 50, SIZES))) + rng.integers(-20, 20, part.map.rows)
        assert isinstance(part.map, Product)
        assert reconstruction.add(Block(part.map, values[S], noise))
    for members in [*CASES[0], (1,), (2,)]:
        estimate = reconstruction.answer(marginal(plan, members))
        assert estimate is not None
        assert np.allclose(plan.estimate(members, values), estimate.values, atol=1e-7)
        assert np.allclose(plan.variances(members) * 100, estimate.law.variances, rtol=1e-7)


def test_weights_move_noise_to_where_it_matters_less() -> None:
    found = residuals(COLUMNS, [(0, 1), (1, 2)])
    equal, skewed = found.least_total(), found.least_total([100.0, 1.0])
    assert skewed.totals[0] < equal.totals[0]
    assert skewed.totals[1] > equal.totals[1]
    w = np.array([100.0, 1.0])
    assert w @ skewed.totals <= w @ equal.totals


def test_the_least_largest_variance_is_certified_and_beats_the_least_total() -> None:
    sets = [(), (0,), (0, 1), (0, 1, 2)]
    found = residuals(COLUMNS, sets)
    total, largest = found.least_total(), found.least_largest(1e-4)
    worst = (largest.totals / found.queries).max()
    assert largest.gap <= 1e-4
    assert worst < (total.totals / found.queries).max()
    rng = np.random.default_rng(1)
    for _ in range(300):  # no other split of the same price is better than the certificate allows
        shares = rng.dirichlet(np.ones(len(found.parts)))
        other = (found.coefficients @ (found.prices / shares) / found.queries).max()
        assert other >= worst / (1 + 1e-4)


@pytest.mark.heavy
def test_queries_other_than_all_values() -> None:
    """All ranges of two columns and some of a third, some of whose cells nobody asks for."""
    domain = domain_of(a=6, b=5, c=7)
    masks = [all_ranges("a", 6), all_ranges("b", 5), all_ranges("c", 7).take([1, 2, 9, 10])]
    columns = [some_queries(*merged_mask(mask), bits=14) for mask in masks]
    sets = [(0, 1), (1, 2), (0,)]
    plan = residuals(columns, sets).least_total()
    assert np.square(stacked(parts(plan), domain)).sum(axis=0).max() <= 1 + 1e-12
    counts = np.random.default_rng(2).integers(0, 50, (6, 5, 7))
    values = {S: plan.product(i).apply(Table(domain, counts)) for i, S in enumerate(plan.residuals.parts)}
    for members in sets:
        workload = Product(tuple(masks[i] for i in members))
        assert np.allclose(plan.estimate(members, values), workload.apply(Table(domain, counts)), atol=1e-6)
        best = least_squares_variances(workload, parts(plan), domain)
        assert np.all(best <= plan.variances(members) * (1 + 1e-9))
        assert plan.variances(members).sum() <= 1.01 * best.sum()


@pytest.mark.heavy
def test_range_marginals_are_near_the_bound_where_it_can_be_computed() -> None:
    sizes, sets = (16, 16, 8), [(0, 1), (0, 2), (1, 2)]
    columns = [
        some_queries(*merged_mask(all_ranges(name, size)), bits=14) for name, size in zip("abc", sizes, strict=True)
    ]
    plan = residuals(columns, sets).least_total()
    bound = svd_bound(workloads.range_marginals(sizes, sets))
    assert 1 < np.sqrt(plan.totals.sum()) / bound < 1.06


@pytest.mark.heavy
def test_all_marginals_of_up_to_three_of_a_hundred_columns() -> None:
    columns = [every_value(f"c{i}", 10) for i in range(100)]
    sets = [s for k in range(4) for s in itertools.combinations(range(100), k)]
    found = residuals(columns, sets)
    plan = found.least_total()
    assert len(found.parts) == len(sets) == 166_751
    assert float((found.prices / plan.noise).sum()) == pytest.approx(1)
    one = plan.variances((3, 50, 99))
    assert one.shape == (1000,)
    assert np.allclose(one.sum(), plan.totals[sets.index((3, 50, 99))])


def test_a_billion_cells_are_measured_and_answered() -> None:
    """Nine ten-valued columns: the kernel reads two-way tables only."""
    domain = domain_of(**{f"c{i}": 10 for i in range(9)})
    rows = np.random.default_rng(3).integers(0, 10, (9, 5000))

    class Rows(TableSource):
        def table(self, attrs: tuple[str, ...]) -> np.ndarray:
            number = np.zeros(rows.shape[1], np.int64)
            for name in attrs:
                number = number * 10 + rows[domain.place(name)]
            return np.bincount(number, minlength=domain.cells(attrs)).reshape(domain.sizes(attrs))

    source = Rows(np.zeros(0), domain)
    sets = list(itertools.combinations(range(9), 2))[:6]
    plan = residuals([every_value(name, 10) for name in domain.names], sets).least_total()
    kernel = kernel_over(domain, source, Mode.CONCENTRATED)
    values = {}
    for S, part in zip(plan.residuals.parts, parts(plan), strict=True):
        noise = Noise(kind=NoiseKind.GAUSSIAN, scale=part.scale)
        values[S] = kernel.measure(part.map, noise, analyst="ana", purpose=Purpose("", "test"), at_most=2**60)[0].values
    assert kernel.spent() / 2**50 == pytest.approx(0.5, rel=1e-6)
    for members in sets:
        error = plan.estimate(members, values) - source.table(tuple(domain.names[i] for i in members)).ravel()
        assert np.abs(error / np.sqrt(plan.variances(members))).max() < 6.5


@pytest.mark.parametrize("sets", [[(1, 0)], [(0, 0)], [(0, 9)], [(-1,)], [tuple(range(25))]], ids=str)
def test_what_is_no_marginal_is_refused(sets: list[tuple[int, ...]]) -> None:
    with pytest.raises(QueryError):
        residuals([*COLUMNS, *[every_value(str(i), 2) for i in range(21 if len(sets[0]) == 25 else 0)]], sets)


def test_weights_of_marginals_are_positive() -> None:
    with pytest.raises(QueryError):
        residuals(COLUMNS, [(0,), (1,)]).least_total([1.0, 0.0])


def test_columns_with_too_many_values_together_are_refused() -> None:
    with pytest.raises(QueryError, match="too many values"):
        residuals([every_value(name, 2**11) for name in "abc"], [(0, 1, 2)])
