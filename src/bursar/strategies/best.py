"""The best strategy known for a workload, by its structure; what it is, and how far from the best it can be.

    product          a Kronecker product of masks: the product of the factors' optima (`kronecker`)
    joint            a few products over at most 4096 merged joint cells: the optimum (`optimal`)
    marginals        tables over any number of columns: the residual basis (`marginals`), or tables (Laplace)
    range-marginals  the same queries per column wherever it is used, over a large domain: the residual basis
    apart            other products over more cells: each by its own optimum
    columns          products about different columns: those of each column by a strategy, the number of rows by all
    sines            all ranges or prefix sums of a long column, or more queries about one than a matrix can hold: the
                     sine transform (`ranges`)
    long column      ranges of a long column with Laplace noise: cells, and extra queries over blocks of them
                     (`long_columns`)
    nothing          queries that are zero everywhere: no strategy is needed

Dense strategies are remembered by a hash of the Gram matrix.

A plan in use, with a budget of rho and a kernel:

    plan = best_strategy(workload, Mode.CONCENTRATED)
    unit = plan.unit(rho)
    values = [measure(map, noise) for map, noise in plan.noises(unit)]
    estimates = plan.answers.estimate(values)  # with variances plan.variances(unit)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from bursar.arrays import Integers, Reals
from bursar.core.accounting import Mode
from bursar.core.extensions.transform import LARGEST_ROWS
from bursar.core.queries import LinearMap, Mask, Product, Stack, Steps
from bursar.errors import QueryError
from bursar.strategies.cells import (
    MergedCells,
    factors_on_overlaps,
    is_disjoint,
    merged_mask,
    merged_products,
    times,
    without_factor,
)
from bursar.strategies.kronecker import KroneckerStrategy, kronecker
from bursar.strategies.long_columns import long_column
from bursar.strategies.low_rank import applies as few_sums
from bursar.strategies.marginals import (
    MeasuredTables,
    ResidualColumn,
    ResidualPlan,
    every_value,
    laplace_marginals,
    residuals,
    some_queries,
)
from bursar.strategies.measure import LARGEST_DENSE
from bursar.strategies.plan import Answers, ColumnPart, GroupAnswers, StrategyPart, StrategyPlan, error_of, pooled
from bursar.strategies.ranges import LONG_COLUMN, RangeFamily, SineStrategy, sine_strategy
from bursar.threads import one_thread


@dataclass(frozen=True, kw_only=True)
class LineWorkload:
    """All ranges, or all prefix sums, of the cells [first, first + cells) of a column of `size` cells."""

    family: RangeFamily
    column: str
    cells: int
    max_rows: int  # the data set's public bound; what rounding can lose depends on it
    first: int = 0
    size: int | None = None  # first + cells, unless the column goes on


@dataclass(frozen=True, kw_only=True)
class Marginals:
    """Tables over sets of columns, given by their numbers in `names`, in increasing order."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    sets: tuple[tuple[int, ...], ...]
    largest: bool = False  # keep the largest variance of a count small, rather than the sum over all counts


SMALL_JOINT = 1024
"""Up to this many merged joint cells the optimum is sought first, also where the residual basis would do."""

FEW_JOINT = 256
"""Above so many joint cells, products of different columns are measured apart with Laplace noise: a cell of all columns
tells too little about each, and the search takes seconds. Few sums are mixed over joint cells all the same."""

LONG_FOR_LAPLACE = 256
"""From this many cells on, ranges of a column with Laplace noise are planned over blocks of them."""

MOST_JUMPS = 4
"""At most this many jumps of a query of a long column on average: a range has two."""

MOST_SINE_WORK = 2**28
"""Most queries, times cells, whose variances are worked out one by one from sines."""

RESIDUAL_BITS = 29
"""Bits of the rows of a residual, shared by the columns of the largest set: squares multiply, up to 2^58."""


@one_thread()
def best_strategy(
    workload: LinearMap | LineWorkload | Marginals, mode: Mode, *, gap: float = 1e-3, beta: float | None = None
) -> StrategyPlan:
    """The strategy to measure for a workload: Gaussian noise in concentrated mode, Laplace in pure mode.

    `gap` is the relative duality gap to which dense optima are sought. With `beta` the largest error of a query but for
    that chance is to be small, not the mean square of all errors. For queries that are not listed no such strategies
    are known, and `beta` makes no difference; for Laplace noise it only says how parts share the budget.
    Edge cases: an all-zero workload needs nothing. A product of several columns with more than 4096 merged cells in one
    of them is refused, and says so.
    """
    if isinstance(workload, LineWorkload):
        return _line(workload, mode, gap)
    if isinstance(workload, Marginals):
        return _marginals(workload, mode)
    if isinstance(workload, Product):
        return _product(workload, mode, gap, beta)
    if isinstance(workload, Stack):
        products = [part for part in workload.parts if isinstance(part, Product)]
        if len(products) == len(workload.parts):
            return _stack(products, mode, gap, beta)
    raise QueryError("no strategy is sought for a strategy")


def _power(mode: Mode) -> int:
    return 1 if mode is Mode.PURE else 2


def _product(product: Product, mode: Mode, gap: float, beta: float | None = None) -> StrategyPlan:
    if product.rows == 0 or product.largest() == 0:
        return _nothing(mode, product.rows)
    product = factors_on_overlaps(product)
    overlapping = [mask for mask in product.masks if not is_disjoint(mask)]
    if len(overlapping) == 1 and _is_long(overlapping[0], mode):
        groups = tuple(mask for mask in product.masks if mask is not overlapping[0])
        if groups and mode is Mode.PURE:
            return _in_each_group(groups, [product], mode, gap, beta)
        if not groups:
            return _long(overlapping[0], mode, gap)
    factors = [mask if is_disjoint(mask) else merged_mask(mask) for mask in product.masks]
    return _kronecker("product", factors, mode, gap, beta)


def _kronecker(
    kind: str, factors: Sequence[Mask | tuple[MergedCells, Reals]], mode: Mode, gap: float, beta: float | None
) -> StrategyPlan:
    beta = None if mode is Mode.PURE else beta  # no strategies for the largest error are known for Laplace noise
    return kronecker_plan(kind, kronecker(factors, power=_power(mode), gap=gap, beta=beta), mode)


def kronecker_plan(kind: str, strategy: KroneckerStrategy, mode: Mode) -> StrategyPlan:
    """A product of strategies as a plan: one map, measured with one noise."""

    def estimate(values: Sequence[Integers]) -> Reals:
        return strategy.estimate(values[0])

    return StrategyPlan(
        kind=kind,
        mode=mode,
        parts=(StrategyPart(map=strategy.product, scale=strategy.sensitivity),),
        ratio=strategy.ratio,
        source=strategy,
        answers=Answers(
            variances=lambda: strategy.variances * strategy.sensitivity**2,
            estimate=estimate,
            weights=lambda: strategy.weights,
            groups=_kronecker_groups(strategy),
        ),
    )


def _kronecker_groups(strategy: KroneckerStrategy) -> GroupAnswers | None:
    """A product as the same plan in every group, where all of its factors but one are their own strategies."""
    sought = [axis for axis, factor in enumerate(strategy.factors) if factor.weights is not None]
    if len(sought) != 1:
        return None
    (axis,) = sought
    weights = strategy.factors[axis].weights
    assert weights is not None
    queries = len(weights)
    shape = [factor.mask.rows for place, factor in enumerate(strategy.factors) if place != axis]
    copies = math.prod(shape)

    def order() -> Integers:
        by_group = np.arange(copies * queries).reshape([*shape, queries])
        return np.moveaxis(by_group, -1, axis).ravel()

    return GroupAnswers(copies=copies, weights=lambda: weights, order=order)


def _is_long(mask: Mask, mode: Mode) -> bool:
    """Whether cells are too many for one matrix; or, with Laplace noise, ranges so many that it would take long."""
    if len(mask.attrs) != 1:
        return False
    steps, cells = mask.steps, len(mask.steps.breaks())
    many_ranges = cells <= 2 * steps.rows and len(steps.at) <= MOST_JUMPS * steps.rows
    return cells > LARGEST_DENSE or (mode is Mode.PURE and cells >= LONG_FOR_LAPLACE and many_ranges)


def _long(mask: Mask, mode: Mode, gap: float) -> StrategyPlan:
    """Queries about a long column: through sines, or with extra queries (Laplace)."""
    if mode is Mode.PURE:
        strategy = long_column(mask)
        masks = [strategy.single] if strategy.extra is None else [strategy.single, strategy.extra]
        return StrategyPlan(
            kind="long column",
            mode=mode,
            parts=tuple(StrategyPart(map=Product((part,)), scale=strategy.sensitivity) for part in masks),
            ratio=None,
            source=strategy,
            answers=Answers(
                variances=lambda: strategy.variances * strategy.sensitivity**2,
                estimate=lambda values: strategy.estimate(
                    values[0], values[1] if len(values) > 1 else np.zeros(0, np.int64)
                ),
                weights=strategy.weights,
            ),
        )
    if mask.rows * mask.steps.size > MOST_SINE_WORK:
        raise QueryError(f"{mask.rows} queries about {mask.steps.size} cells are too many to plan together")
    line = LineWorkload(family=RangeFamily.RANGES, column=mask.attrs[0], cells=mask.steps.size, max_rows=LARGEST_ROWS)
    plan = _line(line, mode, gap)
    sines = plan.source
    assert isinstance(sines, SineStrategy)
    steps = mask.steps

    def estimate(values: Sequence[Integers]) -> Reals:
        from_here_on = np.cumsum(sines.reconstruct(values[0])[::-1])[::-1]
        return np.asarray(np.bincount(steps.owner, steps.jump * from_here_on[steps.at], steps.rows))

    answers = Answers(variances=lambda: sines.variances(steps) * sines.sensitivity**2, estimate=estimate)
    return replace(plan, ratio=None, answers=answers)


def _nothing(mode: Mode, rows: int) -> StrategyPlan:
    answers = Answers(variances=lambda: np.zeros(rows), estimate=lambda values: np.zeros(rows))
    return StrategyPlan(kind="nothing", mode=mode, parts=(), ratio=1.0, source=None, answers=answers)


def _line(line: LineWorkload, mode: Mode, gap: float) -> StrategyPlan:
    if mode is not Mode.PURE and line.cells >= LONG_COLUMN:
        strategy = sine_strategy(
            line.family, line.column, cells=line.cells, max_rows=line.max_rows, first=line.first, size=line.size
        )
        part = StrategyPart(map=strategy.transform, scale=strategy.sensitivity)
        return StrategyPlan(kind="sines", mode=mode, parts=(part,), ratio=strategy.ratio, source=strategy, answers=None)
    if line.cells > LARGEST_DENSE:
        raise QueryError(
            f"all {line.family.value} of {line.cells} cells need Gaussian noise; with Laplace noise {LARGEST_DENSE} "
            "are possible; declare epsilon and delta, or rho, or use coarser bins"
        )
    size = line.first + line.cells if line.size is None else line.size
    highs = 1 + np.arange(line.cells)
    lows = np.zeros(line.cells, np.int64)
    if line.family is RangeFamily.RANGES:
        lows, highs = (x.ravel() for x in np.meshgrid(np.arange(line.cells), highs, indexing="ij"))
        lows, highs = lows[lows < highs], highs[lows < highs]
    steps = Steps.ranges(line.first + lows, line.first + highs, size)
    return _product(Product((Mask((line.column,), (size,), steps),)), mode, gap)


def _marginals(marginals: Marginals, mode: Mode) -> StrategyPlan:
    if not marginals.sets:
        return _nothing(mode, 0)
    if mode is Mode.PURE:
        return _tables(marginals, None)
    columns = [every_value(name, size) for name, size in zip(marginals.names, marginals.sizes, strict=True)]
    parts = residuals(columns, marginals.sets)
    if marginals.largest:
        plan = parts.least_largest()
        return _residual("marginals", plan, mode, math.sqrt(1 + plan.gap), None)
    return _residual("marginals", parts.least_total(), mode, 1.0, None)


def _tables(marginals: Marginals, answers: Callable[[MeasuredTables], Answers] | None) -> StrategyPlan:
    tables = laplace_marginals(marginals.sizes, marginals.sets)
    masks = [
        Mask((name,), (size,), Steps.identity(size))
        for name, size in zip(marginals.names, marginals.sizes, strict=True)
    ]
    parts = tuple(
        StrategyPart(map=Product(tuple(masks[i] for i in table)), scale=float(scale))
        for table, scale in zip(tables.tables, tables.scales, strict=True)
    )
    own_answers = None if answers is None else answers(tables)
    return StrategyPlan(kind="marginals", mode=Mode.PURE, parts=parts, ratio=None, source=tables, answers=own_answers)


def _residual(kind: str, plan: ResidualPlan, mode: Mode, ratio: float | None, answers: Answers | None) -> StrategyPlan:
    scales = np.sqrt(plan.noise)
    parts = tuple(StrategyPart(map=plan.product(number), scale=float(scale)) for number, scale in enumerate(scales))
    return StrategyPlan(kind=kind, mode=mode, parts=parts, ratio=ratio, source=plan, answers=answers)


# -- several products one below the other ------------------------------------------------------------------------


def _stack(products: Sequence[Product], mode: Mode, gap: float, beta: float | None) -> StrategyPlan:
    nonempty = [product for product in products if product.rows]
    if not any(product.largest() for product in nonempty):
        return _nothing(mode, sum(product.rows for product in nonempty))
    if mode is Mode.PURE and (mask := _one_mask(nonempty)) is not None and _is_long(mask, mode):
        return _long(mask, mode, gap)
    seen = _per_column(nonempty)
    if seen is not None and all(_identity(mask.steps) for mask in seen.values()):
        return _stacked_tables(nonempty, seen, mode, beta)
    groups = _shared_groups(nonempty)
    if groups:
        return _in_each_group(groups, nonempty, mode, gap, beta)
    if seen is not None and mode is not Mode.PURE and _joint_cells(seen) > SMALL_JOINT:
        plans = [_stacked_residuals(nonempty, seen, gap, beta), _apart(nonempty, mode, gap, beta)]
        return min(plans, key=lambda plan: plan.variances(1.0).sum() if beta is None else plan.variances(1.0).max())
    if mode is Mode.PURE and seen is not None and _share_no_column(nonempty) and _joint_cells(seen) > FEW_JOINT:
        return _apart(nonempty, mode, gap, beta)
    try:
        merged = merged_products(nonempty)
    except QueryError:  # too many cells for one matrix
        return _apart(nonempty, mode, gap, beta)
    queries = merged[1]
    if mode is Mode.PURE and queries.shape[1] > FEW_JOINT and not few_sums(queries):
        named = set() if beta is None else {_columns_of(product) for product in nonempty}
        if _disjoint(_told_apart(nonempty)) or _disjoint(named):
            return _apart(nonempty, mode, gap, beta)
    together = _kronecker("joint", [merged], mode, gap, beta)
    if mode is Mode.PURE and len({product.attrs for product in nonempty}) > 1:
        # In the L1 norm a strategy over joint cells does not find what measuring each column by itself comes to.
        return _better([together, _apart(nonempty, mode, gap, beta)], beta)
    return together


def _better(plans: Sequence[StrategyPlan], beta: float | None) -> StrategyPlan:
    """The plan with the least sum of variances, or with the least error but for a chance of beta."""
    return min(plans, key=lambda plan: error_of(plan.variances(1.0), beta))


def _share_no_column(products: Sequence[Product]) -> bool:
    names = [name for product in products for name in product.attrs]
    return len(set(names)) == len(names)


def _one_mask(products: Sequence[Product]) -> Mask | None:
    """All rows of products that are about the same column, or about none, as one mask; None for others."""
    masks = [product.masks for product in products]
    attrs = {(mask.attrs, mask.sizes) for some in masks for mask in some}
    if len(attrs) != 1 or any(len(some) > 1 for some in masks):
        return None
    ((names, sizes),) = attrs
    size = math.prod(sizes)
    rows = [some[0].steps if some else Steps.total(size) for some in masks]
    lengths = np.concatenate([[0], *(np.diff(steps.starts) for steps in rows)])
    at, jump = (np.concatenate([getattr(steps, name) for steps in rows]) for name in ("at", "jump"))
    return Mask(names, sizes, Steps(size, np.cumsum(lengths), at, jump))


def _shared_groups(products: Sequence[Product]) -> tuple[Mask, ...]:
    """The masks that all products have, but for a factor, and whose rows share no cell: the groups of every query."""
    units = [[without_factor(mask) for mask in product.masks] for product in products]
    shared = tuple(
        mask
        for mask, _ in units[0]
        if not _total(mask.steps)
        and is_disjoint(mask)
        and all(any(_equal(mask, other) for other, _ in masks) for masks in units[1:])
    )
    return () if all(len(product.masks) == len(shared) for product in products) else shared


def _in_each_group(
    groups: tuple[Mask, ...], products: Sequence[Product], mode: Mode, gap: float, beta: float | None
) -> StrategyPlan:
    """The strategy for one group in each of them, at no higher price: nobody is in two groups.

    A strategy for all groups is one for each by itself, and in one of them it fails with at most the mean of all
    chances. So nothing is lost, and how near to the best it is holds for all groups if it does for one.
    """
    others = _within_a_group(products, {name for group in groups for name in group.attrs})
    shape = [group.rows for group in groups]
    copies = math.prod(shape)
    in_one = None if beta is None else beta / copies
    plan = _product(others[0], mode, gap, in_one) if len(others) == 1 else _stack(others, mode, gap, in_one)
    if plan.answers is None or not all(isinstance(part.map, Product) for part in plan.parts):
        raise QueryError("no strategy is known for these queries in groups")
    one_group = plan.answers

    def spread(each: Reals) -> Reals:
        """From numbers by group and query to the order of the products' rows."""
        ends = np.cumsum([product.rows for product in others])[:-1]
        tables = np.split(each, ends, axis=1)
        return _joined(
            _by_masks(table.reshape([*shape, *(mask.rows for mask in other.masks)]), (*groups, *other.masks), product)
            for table, other, product in zip(tables, others, products, strict=True)
        )

    def estimate(values: Sequence[Integers]) -> Reals:
        by_group = [measured.reshape(copies, -1) for measured in values]
        return spread(np.array([one_group.estimate([part[g] for part in by_group]) for g in range(copies)]))

    def order() -> Integers:
        queries = sum(product.rows for product in others)
        return spread(np.arange(float(copies * queries)).reshape(copies, -1)).astype(np.int64)

    def weights(in_one_group: Callable[[], Reals]) -> Reals:
        ends = np.cumsum([part.map.rows for part in plan.parts])[:-1]
        by_part = [np.kron(np.eye(copies), block) for block in np.split(in_one_group(), ends, axis=1)]
        return np.concatenate(by_part, axis=1)[order()]

    return StrategyPlan(
        kind=plan.kind,
        mode=mode,
        parts=tuple(
            StrategyPart(map=Product((*groups, *part.map.masks)), scale=part.scale)
            for part in plan.parts
            if isinstance(part.map, Product)
        ),
        ratio=plan.ratio,
        source=None,
        answers=Answers(
            variances=lambda: spread(np.tile(one_group.variances(), (copies, 1))),
            estimate=estimate,
            weights=None if one_group.weights is None else partial(weights, one_group.weights),
            own=None if one_group.own is None else partial(weights, one_group.own),
            groups=None
            if one_group.weights is None
            else GroupAnswers(copies=copies, weights=one_group.weights, order=order),
        ),
    )


def _within_a_group(products: Sequence[Product], grouped: set[str]) -> list[Product]:
    """The products without the masks of the groups, whose factors stay."""
    own_masks = [[mask for mask in product.masks if not grouped.issuperset(mask.attrs)] for product in products]
    some = next(mask for masks in own_masks for mask in masks)
    within: list[Product] = []
    for product, masks in zip(products, own_masks, strict=True):
        factor = math.prod(without_factor(mask)[1] for mask in product.masks if grouped.issuperset(mask.attrs))
        if factor > 1:
            first, *more = masks or [Mask(some.attrs, some.sizes, Steps.total(some.steps.size))]
            masks = [times(first, factor), *more]
        within.append(Product(tuple(masks)))
    return within


def _by_masks(table: Reals, masks: Sequence[Mask], product: Product) -> Reals:
    """A table with an axis for each mask, in the order of the product's masks."""
    place = {mask.attrs: number for number, mask in enumerate(product.masks)}
    order = sorted(range(len(masks)), key=lambda axis: place.get(masks[axis].attrs, len(place)))
    return np.transpose(table, order).ravel()


def _apart(products: Sequence[Product], mode: Mode, gap: float, beta: float | None) -> StrategyPlan:
    """Products about different columns by strategies of their own.

    Those of one column have one together, with queries about no column in it: of these there are then several answers,
    which are weighed by their precisions. Or every product has one, where that is better.
    """
    starts = np.cumsum([0, *(product.rows for product in products)])
    columns = [_columns_of(product) for product in products]
    every = [[place] for place in range(len(products))]
    by_column = [
        [place for place, names in enumerate(columns) if names == some or not names]
        for some in dict.fromkeys(columns)
        if some
    ]
    splits = [every, by_column] if len(by_column) > 1 and by_column != every else [every]
    plans: list[StrategyPlan] = []
    for split in splits:
        parts = [_column_part(products, starts, places, mode, gap, beta) for places in split]
        plans += [pooled(parts, int(starts[-1]), each) for each in dict.fromkeys((beta, None))]
    return _better(plans, beta)


def _columns_of(product: Product) -> frozenset[str]:
    return frozenset(name for mask in product.masks if not _total(mask.steps) for name in mask.attrs)


def _told_apart(products: Sequence[Product]) -> set[frozenset[str]]:
    """The columns of which products tell cells apart that they look at: not those of a condition that all share."""
    masks = [{mask.attrs: mask for mask in product.masks} for product in products]
    shared = set(masks[0]).intersection(*masks[1:])
    looked_at = {names: np.flatnonzero(sum(each[names].steps.norms(1) for each in masks)) for names in shared}
    columns = (
        frozenset(
            name
            for names, mask in each.items()
            for name in names
            if not (_total(mask.steps) or (names in shared and _is_condition(mask, looked_at[names])))
        )
        for each in masks
    )
    return {some for some in columns if some}


def _is_condition(mask: Mask, cells: Integers) -> bool:
    """Whether a mask is one row that tells none of these cells apart."""
    return mask.rows == 1 and len(np.unique(mask.steps.at_cells(cells))) == 1


def _disjoint(sets: set[frozenset[str]]) -> bool:
    """Whether there are several sets of columns that have none in common."""
    return len(sets) > 1 and sum(map(len, sets)) == len(frozenset().union(*sets))


def _column_part(
    products: Sequence[Product], starts: Integers, places: Sequence[int], mode: Mode, gap: float, beta: float | None
) -> ColumnPart:
    part_products = [products[place] for place in places]
    plan = (
        _product(part_products[0], mode, gap, beta)
        if len(part_products) == 1
        else _stack(part_products, mode, gap, beta)
    )
    if plan.answers is None:
        raise QueryError("no strategy is known for these queries")
    counts = np.repeat(
        [len(_columns_of(product)) for product in part_products], [product.rows for product in part_products]
    )
    return ColumnPart(
        plan=plan,
        answers=plan.answers,
        queries=np.concatenate([np.arange(starts[place], starts[place + 1]) for place in places]),
        exclusive=np.flatnonzero(counts) if len(part_products) > 1 else np.arange(part_products[0].rows),
        each=plan.answers.variances(),
    )


def _per_column(products: Sequence[Product]) -> dict[str, Mask] | None:
    """The one mask that each column has wherever it has not the total; None where there is no such mask."""
    seen: dict[str, Mask] = {}
    for product in products:
        for mask in product.masks:
            if len(mask.attrs) != 1:
                return None
            if not _total(mask.steps):
                first = seen.setdefault(mask.attrs[0], mask)
                if first is not mask and not _same(first.steps, mask.steps):
                    return None
    return seen


def _joint_cells(seen: dict[str, Mask]) -> int:
    return math.prod(len(mask.steps.breaks()) for mask in seen.values())


def _stacked_tables(products: Sequence[Product], seen: dict[str, Mask], mode: Mode, beta: float | None) -> StrategyPlan:
    names = tuple(seen)
    sizes = tuple(seen[name].steps.size for name in names)
    sets = [_members(product, names) for product in products]
    if mode is Mode.PURE:
        return _tables(
            Marginals(names=names, sizes=sizes, sets=tuple(sets)),
            lambda measured: Answers(
                variances=lambda: _joined(
                    np.full(product.rows, measured.variance(number)) for number, product in enumerate(products)
                ),
                estimate=partial(_from_tables, measured, products, names),
            ),
        )
    columns = [every_value(n, s) for n, s in zip(names, sizes, strict=True)]
    return _by_residuals("marginals", columns, products, names, beta)


def _from_tables(
    tables: MeasuredTables, products: Sequence[Product], names: tuple[str, ...], values: Sequence[Integers]
) -> Reals:
    parts = tables.parts(values)
    return _joined(_in_order(tables.estimate(n, parts), product, names) for n, product in enumerate(products))


def _stacked_residuals(
    products: Sequence[Product], seen: dict[str, Mask], gap: float, beta: float | None
) -> StrategyPlan:
    names = tuple(seen)
    widest = max(len(_members(product, names)) for product in products)
    bits = min(RESIDUAL_BITS // max(widest, 1), 16)
    columns = [
        every_value(name, mask.steps.size)
        if _identity(mask.steps)
        else some_queries(*merged_mask(mask), bits=bits, gap=gap)
        for name, mask in seen.items()
    ]
    return _by_residuals("range-marginals", columns, products, names, beta)


def _by_residuals(
    kind: str,
    columns: Sequence[ResidualColumn],
    products: Sequence[Product],
    names: tuple[str, ...],
    beta: float | None,
) -> StrategyPlan:
    sets = [_members(product, names) for product in products]
    parts = residuals(columns, sets)
    plan = parts.least_total() if beta is None else parts.least_largest_error(beta)
    # Only for plain marginals the residual basis is the best there is.
    ratio = (1.0 if beta is None else math.sqrt(1 + plan.gap)) if kind == "marginals" else None

    def variances() -> Reals:
        return _joined(_in_order(plan.variances(A), p, names) for A, p in zip(sets, products, strict=True))

    def estimate(values: Sequence[Integers]) -> Reals:
        by_part = dict(zip(plan.residuals.parts, values, strict=True))
        return _joined(_in_order(plan.estimate(A, by_part), p, names) for A, p in zip(sets, products, strict=True))

    return _residual(kind, plan, Mode.CONCENTRATED, ratio, Answers(variances=variances, estimate=estimate))


def _members(product: Product, names: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(sorted(names.index(mask.attrs[0]) for mask in product.masks if not _total(mask.steps)))


def _in_order(values: Reals, product: Product, names: tuple[str, ...]) -> Reals:
    """From columns in increasing order to the order of the product's masks."""
    masks = [mask for mask in product.masks if not _total(mask.steps)]
    order = np.argsort([names.index(mask.attrs[0]) for mask in masks])
    table = values.reshape([masks[i].rows for i in order])
    return np.transpose(table, np.argsort(order)).ravel()


def _joined(arrays: Iterable[Reals]) -> Reals:
    return np.concatenate(list(arrays))


def _total(steps: Steps) -> bool:
    return steps.rows == 1 and len(steps.at) == 1 and int(steps.at[0]) == 0 and int(steps.jump[0]) == 1


def _identity(steps: Steps) -> bool:
    return steps.rows == steps.size and _same(steps, Steps.identity(steps.size))


def _equal(first: Mask, other: Mask) -> bool:
    return first.attrs == other.attrs and _same(first.steps, other.steps)


def _same(first: Steps, other: Steps) -> bool:
    pairs = ((first.starts, other.starts), (first.at, other.at), (first.jump, other.jump))
    return first.size == other.size and all(np.array_equal(a, b) for a, b in pairs)
