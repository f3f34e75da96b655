"""The choice of a strategy: every kind against dense linear algebra and the kernel, and clear refusals."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from bursar.core.accounting import Mode
from bursar.core.queries import LinearMap, Mask, Product, Stack, Steps
from bursar.errors import QueryError
from bursar.strategies import best, p_identity
from bursar.strategies import optimal as memory
from bursar.strategies.best import LineWorkload, Marginals, best_strategy
from bursar.strategies.largest_error import error_at
from bursar.strategies.marginals import ResidualPlan
from bursar.strategies.measure import svd_bound
from bursar.strategies.plan import StrategyPlan
from bursar.strategies.ranges import RangeFamily, SineStrategy
from harness.cases import HEAVY, few, marked
from harness.maps import Table, domain_of
from harness.plans import (
    all_ranges,
    check_errors,
    kernel_over,
    least_squares_variances,
    matrix,
    measured,
    stacked,
    tables,
    values,
)
from harness.small import TableSource

pytestmark = pytest.mark.thinned(3)

DOMAIN = domain_of(a=5, b=4, c=6)
A, B, C = all_ranges("a", 5), all_ranges("b", 4), all_ranges("c", 6)
EVERYBODY = Mask(("b",), (4,), Steps.total(4))
DIAGONAL = Mask(("a", "b"), (5, 4), Steps.dense(np.eye(5, 4, dtype=int).reshape(1, -1)))
SUM = Mask(("c",), (6,), Steps.dense(np.arange(-2, 4).reshape(1, -1)))
THRICE = Mask(("b",), (4,), Steps.dense(3 * np.eye(4, dtype=int)))
ZERO = Mask(("a",), (5,), Steps.dense(np.zeros((2, 5), int)))

WORKLOADS: dict[str, tuple[str, LinearMap]] = {
    "boxes": ("product", Product((A, values("b", 4)))),
    "everybody": ("product", Product(())),
    "one cell": ("product", Product((values("a", 5).take([2]),))),
    "two columns at once": ("product", Product((DIAGONAL,))),
    "multiples of boxes": ("product", Product((THRICE, A))),
    "tables": ("marginals", tables(("a", "b"), ("c", "b"), ("a",), domain=DOMAIN)),
    "tables in any order": ("marginals", Stack((Product((values("c", 6), EVERYBODY, values("a", 5))), Product(())))),
    "the same table twice": ("marginals", tables(("a",), ("a",), domain=DOMAIN)),
    "range tables": ("joint", Stack((Product((A, B)), Product((C, B))))),
    "ranges and values": ("joint", Stack((Product((A,)), Product((values("a", 5),))))),
    "of less than full rank": ("joint", Stack((Product((A.take([0, 3]),)), Product((A.take([7]), C.take([4])))))),
    "sums in groups": (
        "joint",
        Stack((Product((SUM, values("b", 4))), Product((THRICE,)), Product((values("b", 4), A.take([2, 7]), SUM)))),
    ),
    "zeros": ("nothing", Product((ZERO,))),
    "zeros twice": ("nothing", Stack((Product((ZERO,)), Product((ZERO, B))))),
}


def exact_estimates(plan: StrategyPlan, workload: LinearMap) -> None:
    counts = Table(DOMAIN, np.random.default_rng(0).integers(0, 100, (5, 4, 6)))
    assert plan.answers is not None
    found = plan.answers.estimate([part.map.apply(counts) for part in plan.parts])
    assert np.allclose(found, workload.apply(counts), atol=1e-6)


@pytest.mark.sampled(9)
@pytest.mark.parametrize("mode", [Mode.PURE, Mode.CONCENTRATED])
@pytest.mark.parametrize("name", WORKLOADS)
def test_every_kind_against_dense_matrices(name: str, mode: Mode) -> None:
    kind, workload = WORKLOADS[name]
    plan = best_strategy(workload, mode)
    found_better = {("range tables", Mode.PURE): "apart"}
    assert plan.kind == found_better.get((name, mode), kind)
    exact_estimates(plan, workload)
    power = 2 if mode is Mode.CONCENTRATED else 1
    columns = (np.abs(stacked(plan.parts, DOMAIN)) ** power).sum(axis=0)
    if not plan.parts:
        assert not plan.variances(1.0).any()
        return
    assert columns.max() == pytest.approx(1, abs=1e-9)
    least = least_squares_variances(workload, plan.parts, DOMAIN) * (1 if mode is Mode.CONCENTRATED else 2)
    found = plan.variances(1.0)
    if mode is Mode.PURE and plan.kind in ("marginals", "apart"):  # each by itself; together they can only be better
        assert np.all(least <= found * (1 + 1e-9))
    else:
        assert np.allclose(found, least, rtol=1e-6)
    W = matrix(workload, DOMAIN)
    over = np.sqrt(found.sum() / (1 if mode is Mode.CONCENTRATED else 2)) / svd_bound(W.T @ W)
    assert over >= 1 - 1e-9
    if plan.ratio is not None:
        assert 1 - 1e-9 <= plan.ratio <= over + 1e-6  # the certified bound is at least the singular value bound


@pytest.mark.parametrize("mode", [Mode.PURE, Mode.CONCENTRATED])
def test_groups_that_all_queries_share_lose_nothing(mode: Mode, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planned for one group, a strategy is as good as one for all groups at once; and its weights are at hand."""
    workload = WORKLOADS["sums in groups"][1]
    plan = best_strategy(workload, mode)
    exact_estimates(plan, workload)
    assert plan.answers is not None
    assert plan.answers.weights is not None
    (part,) = plan.parts
    assert np.allclose(plan.answers.weights() @ matrix(part.map, DOMAIN), matrix(workload, DOMAIN), atol=1e-9)
    monkeypatch.setattr(best, "_shared_groups", lambda products: ())
    at_once = best_strategy(workload, mode)
    assert plan.variances(1.0).sum() <= 1.002 * at_once.variances(1.0).sum()


@pytest.mark.parametrize("mode", [Mode.PURE, Mode.CONCENTRATED])
@pytest.mark.parametrize("name", [name for name, (kind, _) in WORKLOADS.items() if kind != "nothing"])
def test_a_budget_is_kept_and_nearly_used(name: str, mode: Mode) -> None:
    plan = best_strategy(WORKLOADS[name][1], mode)
    kernel = kernel_over(DOMAIN, TableSource(np.ones((5, 4, 6), np.int64), DOMAIN), mode)
    measured(kernel, plan, plan.unit(0.01))
    assert 0.01 * 0.9999 < kernel.spent() / 2**50 <= 0.01


def test_marginals_are_certified_as_optimal() -> None:
    plan = best_strategy(WORKLOADS["tables"][1], Mode.CONCENTRATED)
    W = matrix(WORKLOADS["tables"][1], DOMAIN)
    assert plan.ratio == 1.0
    assert np.sqrt(plan.variances(1.0).sum()) == pytest.approx(svd_bound(W.T @ W), rel=1e-9)


@pytest.mark.heavy
@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["boxes", "tables", "range tables"])
def test_errors_through_the_kernel_are_as_predicted(name: str) -> None:
    _, workload = WORKLOADS[name]
    check_errors(best_strategy(workload, Mode.CONCENTRATED), workload, DOMAIN)


@pytest.mark.heavy
def test_range_tables_of_a_large_domain_go_through_the_residual_basis(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(best, "SMALL_JOINT", 1)
    workload = Stack((Product((B, A)), Product((C, B)), Product((A, EVERYBODY))))
    plan = best_strategy(workload, Mode.CONCENTRATED)
    assert plan.kind == "range-marginals"
    assert plan.ratio is None
    exact_estimates(plan, workload)
    least = least_squares_variances(workload, plan.parts, DOMAIN)
    assert np.all(least <= plan.variances(1.0) * (1 + 1e-9))
    assert plan.variances(1.0).sum() <= 1.01 * least.sum()
    check_errors(plan, workload, DOMAIN)


@pytest.mark.parametrize("family", RangeFamily)
def test_a_long_column_is_measured_by_sines_and_a_short_one_by_rows(family: RangeFamily) -> None:
    long = best_strategy(LineWorkload(family=family, column="a", cells=700, max_rows=1000), Mode.CONCENTRATED)
    assert long.kind == "sines"
    assert isinstance(long.source, SineStrategy)
    assert long.answers is None
    assert long.ratio is not None
    assert 1 < long.ratio < 1.02
    short = best_strategy(
        LineWorkload(family=family, column="a", cells=50, first=2, size=60, max_rows=1000), Mode.CONCENTRATED
    )
    assert short.kind == "product"
    assert short.ratio is not None
    assert short.ratio < 1.001
    laplace = best_strategy(LineWorkload(family=family, column="a", cells=50, max_rows=1000), Mode.PURE)
    assert laplace.kind == "product"
    assert laplace.ratio is not None
    assert 1 < laplace.ratio < 3


def test_a_long_list_of_values_is_asked_for_as_it_is() -> None:
    plan = best_strategy(Product((values("a", 100_000),)), Mode.CONCENTRATED)
    assert plan.ratio == 1.0
    assert plan.parts[0].scale == 1.0
    assert np.array_equal(plan.variances(3.0), np.full(100_000, 9.0))


@pytest.mark.parametrize("largest", few([False, True]))
def test_tables_over_more_cells_than_can_be_counted(largest: bool) -> None:
    names = tuple(f"c{i}" for i in range(40))
    sets = tuple(itertools.combinations(range(40), 2))
    wanted = Marginals(names=names, sizes=(7,) * 40, sets=sets, largest=largest)
    plan = best_strategy(wanted, Mode.CONCENTRATED)
    assert isinstance(plan.source, ResidualPlan)
    assert len(plan.parts) == 1 + 40 + len(sets)
    assert plan.ratio is not None
    assert plan.ratio < 1.001
    assert sum(p.map.norms(2)[0].largest() / p.scale**2 for p in plan.parts) == pytest.approx(1)
    pure = best_strategy(wanted, Mode.PURE)
    assert sum(1 / part.scale for part in pure.parts) == pytest.approx(1)


def test_laplace_tables_cover_smaller_ones_where_that_is_better() -> None:
    plan = best_strategy(tables(("a", "b"), ("a",), ("b",), domain=DOMAIN), Mode.PURE)
    assert [part.map.attrs for part in plan.parts] == [("a", "b")]
    apart = best_strategy(tables(("a", "b", "c"), ("a",), domain=DOMAIN), Mode.PURE)
    assert len(apart.parts) in (1, 2)


def test_units_for_variances() -> None:
    plan = best_strategy(WORKLOADS["boxes"][1], Mode.CONCENTRATED)
    assert plan.variances(plan.unit_for(mean_variance=50.0)).mean() == pytest.approx(50)
    assert plan.variances(plan.unit_for(largest_variance=50.0)).max() == pytest.approx(50)
    assert best_strategy(WORKLOADS["zeros"][1], Mode.PURE).unit_for(mean_variance=1.0) == float("inf")


def test_a_strategy_is_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    searches = []
    monkeypatch.setattr(memory, "MEMORY", memory.Memory())
    real = memory.optimum
    monkeypatch.setattr(memory, "optimum", lambda V, gap: searches.append(1) or real(V, gap=gap))
    first = best_strategy(Product((A,)), Mode.CONCENTRATED)
    again = best_strategy(Product((all_ranges("other", 5).take(list(reversed(range(15)))),)), Mode.CONCENTRATED)
    assert len(searches) == 1  # other queries in another order, the same Gram matrix
    assert np.allclose(again.variances(1.0), first.variances(1.0)[::-1])
    best_strategy(Product((B,)), Mode.CONCENTRATED)
    assert len(searches) == 2


TOO_LARGE: dict[str, tuple[LinearMap | LineWorkload, Mode]] = {
    "many cells beside another column": (
        Product((Mask(("a",), (5001,), Steps.ranges(np.arange(5000), np.arange(2, 5002), 5001)), all_ranges("b", 4))),
        Mode.CONCENTRATED,
    ),
    "a long column under Laplace": (
        LineWorkload(family=RangeFamily.RANGES, column="a", cells=5000, max_rows=10),
        Mode.PURE,
    ),
}


@pytest.mark.parametrize(
    "name", marked(TOO_LARGE, lambda _, name: HEAVY if name == "many cells beside another column" else None)
)
def test_what_is_too_large_is_refused_in_words(name: str) -> None:
    workload, mode = TOO_LARGE[name]
    with pytest.raises(QueryError, match=r"are possible|computed for|too many"):
        best_strategy(workload, mode)


@pytest.mark.parametrize("mode", [Mode.PURE, Mode.CONCENTRATED])
def test_many_cells_of_one_column_are_planned_without_a_matrix(mode: Mode, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of two cells, some that no query looks at, a weighted query: all as dense linear algebra has it."""
    monkeypatch.setattr(best, "LARGEST_DENSE", 20)
    monkeypatch.setattr(best, "LONG_COLUMN", 20)
    monkeypatch.setattr(p_identity, "MOST_BLOCKS", 64)
    domain = domain_of(a=150)
    ends = np.sort(np.random.default_rng(3).integers(0, 140, (200, 2)), axis=1)
    ranges = Steps.ranges(ends[:, 0], ends[:, 1] + 1, 150).at_cells(np.arange(150))
    workload = Product((Mask(("a",), (150,), Steps.dense(np.concatenate([ranges, 3 * ranges[:1] - 2 * ranges[1:2]]))),))
    plan = best_strategy(workload, mode)
    assert plan.kind == ("long column" if mode is Mode.PURE else "sines")
    assert plan.answers is not None
    counts = Table(domain, np.random.default_rng(0).integers(0, 100, 150))
    assert np.allclose(
        plan.answers.estimate([part.map.apply(counts) for part in plan.parts]), workload.apply(counts), atol=1e-3
    )
    if mode is Mode.PURE:
        least = 2 * least_squares_variances(workload, plan.parts, domain)
        assert np.allclose(plan.variances(1.0), least, rtol=1e-6)
        assert np.abs(stacked(plan.parts, domain)).sum(axis=0).max() == pytest.approx(1, abs=1e-9)
        monkeypatch.undo()
        dense = best_strategy(workload, mode)
        assert plan.variances(1.0).mean() <= 1.05 * dense.variances(1.0).mean()


APART: dict[str, Stack] = {
    "ranges of one column beside its values": Stack(
        (Product((all_ranges("a", 100), values("b", 100))), Product((values("a", 100),)))
    ),
    "a billion cells in one query": Stack(
        (
            Product(tuple(Mask((n,), (1000,), Steps.ranges([1], [500], 1000)) for n in "abc")),
            Product((Mask(("a",), (1000,), Steps.ranges([7], [900], 1000)),)),
        )
    ),
}


@pytest.mark.parametrize("mode", [Mode.PURE, Mode.CONCENTRATED])
@pytest.mark.parametrize("name", APART)
def test_products_over_too_many_cells_together_are_measured_apart(name: str, mode: Mode) -> None:
    """The budget is shared out exactly, so that the sum of variances is least: an even split is worse."""
    workload = APART[name]
    plan = best_strategy(workload, mode)
    assert plan.kind == "apart"
    alone = [best_strategy(part, mode) for part in workload.parts]
    power = 1 if mode is Mode.PURE else 2
    shares = [own.parts[0].scale / part.scale for own, part in zip(alone, plan.parts, strict=True)]
    assert sum(share**power for share in shares) == pytest.approx(1)
    sums = np.array([own.variances(1.0).sum() for own in alone])
    assert plan.variances(1.0).sum() == pytest.approx((sums / np.square(shares)).sum())
    assert plan.variances(1.0).sum() <= (1 + 1e-9) * sums.sum() * len(sums) ** (2 / power)
    assert plan.answers is not None
    counts = [np.arange(part.map.rows) for part in plan.parts]
    expected = [own.answers.estimate([each]) for own, each in zip(alone, counts, strict=True) if own.answers]
    np.testing.assert_allclose(plan.answers.estimate(counts), np.concatenate(expected))


def test_ends_of_two_columns_are_not_sought_over_their_joint_cells_in_epsilon() -> None:
    """A strategy over joint cells is a fifth worse at least, here; for two workloads of one column it is better."""
    columns = {"a": 20, "b": 12}
    first = [Steps.ranges([0] * size, list(range(1, size + 1)), size) for size in columns.values()]
    parts = [
        Product((Mask((name,), (size,), steps),)) for (name, size), steps in zip(columns.items(), first, strict=True)
    ]
    plan = best_strategy(Stack(tuple(parts)), Mode.PURE)
    assert plan.kind == "apart"
    merged = best.merged_products(parts)
    together = best.kronecker_plan("joint", best.kronecker([merged], power=1, gap=1e-3), Mode.PURE)
    assert plan.variances(1.0).sum() < 0.8 * together.variances(1.0).sum()
    same = Stack((parts[0], Product((all_ranges("a", 20),))))
    assert best_strategy(same, Mode.PURE).kind != "apart"


def moments(name: str, size: int) -> list[Product]:
    """The sum of values around the middle, and the number of rows that have one: all but the last cell."""
    known = np.append(np.ones(size - 1, int), 0)
    rows = (known * (2 * np.arange(size) - size + 2), known * (size - 2))
    return [Product((Mask((name,), (size,), Steps.dense(row.reshape(1, -1))),)) for row in rows]


@pytest.mark.parametrize("beta", [None, 0.05])
@pytest.mark.parametrize("mode", [Mode.PURE, Mode.CONCENTRATED])
def test_sums_of_several_columns_are_mixed_column_by_column(mode: Mode, beta: float | None) -> None:
    """And the number of all rows follows from each column; both of its answers are used."""
    domain, sizes = domain_of(a=12, b=10), {"a": 12, "b": 10}
    products = [*moments("a", 12), *moments("b", 10), Product(())]
    workload, plan = Stack(tuple(products)), best._apart(products, mode, 1e-3, beta)
    assert plan.kind == "columns"
    assert plan.answers is not None
    assert plan.answers.weights is not None
    strategy = np.concatenate([matrix(part.map, domain) for part in plan.parts])
    weights = plan.answers.weights()
    assert np.allclose(weights @ strategy, matrix(workload, domain), atol=1e-6)
    scales = np.concatenate([np.full(part.map.rows, part.scale) for part in plan.parts])
    found = np.square(weights * scales).sum(axis=1) * (1 if mode is Mode.CONCENTRATED else 2)
    assert np.allclose(plan.variances(1.0), found, rtol=1e-9)
    power = 1 if mode is Mode.PURE else 2
    assert (np.abs(stacked(plan.parts, domain)) ** power).sum(axis=0).max() <= 1 + 1e-9
    values_of = [np.arange(part.map.rows) for part in plan.parts]
    assert np.allclose(plan.answers.estimate(values_of), weights @ np.concatenate(values_of))
    precision = 0.0
    for (name, size), part in zip(sizes.items(), plan.parts, strict=True):
        alone = best_strategy(Stack((*moments(name, size), Product(()))), mode, beta=beta)
        precision += (alone.parts[0].scale / part.scale) ** 2 / alone.variances(1.0)[-1]
    assert 1 / plan.variances(1.0)[-1] == pytest.approx(precision)


@pytest.mark.parametrize("mode", [Mode.PURE, Mode.CONCENTRATED])
def test_parts_share_the_budget_by_what_is_to_be_small(mode: Mode) -> None:
    """The largest error, but for a chance, or the sum of variances: each plan is the better one by its own measure."""
    products = [*moments("a", 12), Product((all_ranges("b", 8),))]
    largest, total = (best._apart(products, mode, 1e-3, beta) for beta in (0.05, None))
    assert error_at(largest.variances(1.0), 0.05) < error_at(total.variances(1.0), 0.05)
    assert total.variances(1.0).sum() < largest.variances(1.0).sum()


def test_many_queries_of_several_columns_are_not_sought_over_their_joint_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """That takes long and is worse; few sums are mixed over them."""
    many = [Product((values("a", 30),)), Product((values("b", 4),)), *moments("b", 4), Product(())]
    joint = best._kronecker("joint", [best.merged_products(many)], Mode.PURE, 1e-3, None)
    sought: list[str] = []
    kronecker_of = best._kronecker
    monkeypatch.setattr(best, "_kronecker", lambda kind, *given: sought.append(kind) or kronecker_of(kind, *given))
    monkeypatch.setattr(best, "FEW_JOINT", 100)
    plan = best_strategy(Stack(tuple(many)), Mode.PURE, beta=0.05)
    assert plan.kind == "columns"
    assert error_at(plan.variances(1.0), 0.05) < 0.7 * error_at(joint.variances(1.0), 0.05)
    assert sought.count("joint") == 1  # of the column that several products are about
    few_sums = Stack((*moments("a", 12), *moments("b", 10)))
    assert best_strategy(few_sums, Mode.PURE, beta=0.05).kind == "joint"


@pytest.mark.parametrize("beta", [None, 0.05])
def test_a_condition_that_all_share_joins_no_columns(beta: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """SUM(a), COUNT(*) and MAX(b) WHERE a >= 10: a joint strategy of a's values and b's is sought in vain."""
    among = np.arange(40) >= 10
    condition, total = (Mask(("a",), (40,), Steps.dense(row[None])) for row in (1 * among, among * np.arange(40)))
    up_to = Mask(("b",), (20,), Steps.ranges(np.zeros(20, np.int64), 1 + np.arange(20), 20))
    workload = Stack((Product((total,)), Product((condition,)), Product((condition, up_to))))
    sought: list[str] = []
    kronecker_of = best._kronecker
    monkeypatch.setattr(best, "_kronecker", lambda kind, *given: sought.append(kind) or kronecker_of(kind, *given))
    plan = best_strategy(workload, Mode.PURE, beta=beta)
    assert plan.kind == "apart"
    assert "product" in sought
    assert sought.count("joint") <= 1  # of a alone
    merged = best.merged_products(workload.parts)
    assert merged[1].shape[1] > best.FEW_JOINT
    joint = best._kronecker("joint", [merged], Mode.PURE, 1e-3, beta)
    assert best.error_of(plan.variances(1.0), beta) < best.error_of(joint.variances(1.0), beta)
    alone = Stack((Product((condition,)), Product((condition, up_to))))  # tell b's cells apart, and no others
    assert best._disjoint(best._told_apart(workload.parts))
    assert not best._disjoint(best._told_apart(alone.parts))


def test_a_strategy_has_no_strategy() -> None:
    plan = best_strategy(
        LineWorkload(family=RangeFamily.RANGES, column="a", cells=700, max_rows=1000), Mode.CONCENTRATED
    )
    with pytest.raises(QueryError):
        best_strategy(plan.parts[0].map, Mode.CONCENTRATED)
    with pytest.raises(QueryError):
        plan.variances(1.0)
    with pytest.raises(QueryError):
        plan.unit(0.0)


PREFIXES = Mask(("x",), (40,), Steps.ranges(np.zeros(40, np.int64), 1 + np.arange(40), 40))
LONG: dict[str, Product] = {
    "alone": Product((PREFIXES,)),
    "in groups": Product((values("g", 3), PREFIXES)),
    "groups behind": Product((PREFIXES, values("g", 3), values("h", 2))),
}


@pytest.mark.parametrize("name", few(LONG))
def test_ranges_of_a_long_column_have_the_weights_of_one_group(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against the estimates from rows that came out as one, each alone; a twin in another order would differ."""
    monkeypatch.setattr(best, "LONG_FOR_LAPLACE", 32)
    workload, domain = LONG[name], domain_of(g=3, h=2, x=40)
    plan = best_strategy(workload, Mode.PURE)
    assert plan.kind == "long column"
    assert len({part.scale for part in plan.parts}) == 1
    check_errors(plan, workload, domain)
    assert plan.answers is not None
    groups = plan.answers.groups
    copies = 1 if groups is None else groups.copies
    own = plan.answers.weights() if groups is None and plan.answers.weights else groups.weights()
    order = np.arange(workload.rows) if groups is None else groups.order()
    rng = np.random.default_rng(0)
    measured_values = [rng.integers(-9, 9, part.map.rows) for part in plan.parts]
    by_group = np.concatenate([part.reshape(copies, -1) for part in measured_values], axis=1)
    expected = (by_group @ own.T).ravel()[order]
    assert np.allclose(plan.answers.estimate(measured_values), expected)
    assert not np.allclose(expected, (by_group @ own.T).ravel()[np.roll(order, 1)])


def test_a_product_with_one_factor_to_plan_for_is_the_same_in_every_group() -> None:
    workload = Product((values("a", 5), C, values("b", 4)))
    plan = best_strategy(workload, Mode.PURE)
    assert plan.answers is not None
    groups = plan.answers.groups
    assert groups is not None
    assert groups.copies == 20
    measured_values = [np.random.default_rng(1).integers(-9, 9, part.map.rows) for part in plan.parts]
    table = np.moveaxis(measured_values[0].reshape(5, -1, 4), 1, 2).reshape(20, -1)
    expected = (table @ groups.weights().T).ravel()[groups.order()]
    assert np.allclose(plan.answers.estimate(measured_values), expected)


@pytest.mark.heavy
def test_a_total_beside_ranges_of_a_long_column_is_one_more_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(best, "LONG_FOR_LAPLACE", 32)
    domain = domain_of(g=3, x=40)
    workload = Stack((Product((values("g", 3),)), Product((values("g", 3), PREFIXES))))
    plan = best_strategy(workload, Mode.PURE)
    assert plan.kind == "long column"
    check_errors(plan, workload, domain)
    assert plan.answers is not None
    assert plan.answers.variances()[:3] == pytest.approx(plan.answers.variances()[3 + 39 :: 40])
