"""Answers to a workload of marginals, through a real kernel."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from bursar.core.accounting import Measured, Noise, NoiseKind, from_units
from bursar.core.budget import Budget
from bursar.core.domain import Categories, Domain, Neighbours, Unit
from bursar.core.kernel import Kernel
from bursar.core.queries import Mask, Product, Stack, Steps
from bursar.errors import QueryError
from bursar.planner.grant import Grant
from bursar.synthetic.marginals.answers import (
    Aim,
    Allowance,
    MarginalAnswers,
    Shape,
    buy,
    marginals_from,
    measure_marginals,
    ordered_sets,
    plan_marginals,
    whole_marginals,
)
from bursar.synthetic.marginals.estimates import Consistent
from bursar.synthetic.marginals.evidence import evidence_in, marginal_map
from bursar.synthetic.plan.spend import Spend
from bursar.tails.marginals import Cells, largest_error
from harness.small import Silence, config, engine

SIZES = {"a": 5, "b": 2, "c": 3, "d": 4, "e": 1}
DOMAIN = Domain(
    tuple(
        Categories(name=name, values=tuple(f"{name}{i}" for i in range(size)), outside=0, null=0)
        for name, size in SIZES.items()
    )
)
WIDE = Domain(
    tuple(Categories(name=name, values=tuple(f"{name}{i}" for i in range(30)), outside=0, null=0) for name in "abc")
)
PAIRS = tuple(combinations("abcd", 2))
COUNTS = np.random.default_rng(3).integers(0, 40, tuple(SIZES.values()))
SIZE = int(COUNTS.sum())

ADD_REMOVE, REPLACE_ONE = Neighbours.ADD_REMOVE, Neighbours.REPLACE_ONE


def kernel(
    neighbours: Neighbours,
    *,
    pure: bool = False,
    domain: Domain = DOMAIN,
    table: np.ndarray = COUNTS,
    quiet: bool = False,
) -> Kernel:
    budget = Budget.of(epsilon=1.0) if pure else Budget.of(rho=0.5)
    settings = config(domain=domain, unit=Unit(neighbours=neighbours), budget=budget)
    return engine(table=table, settings=settings, randomness=Silence() if quiet else None).kernel


def grant(own: Kernel) -> Grant:
    return Grant(own, "ana", "", (), own.budget.units)


def allowance(neighbours: Neighbours, *, pure: bool = False) -> Allowance:
    return Allowance(spend=Spend.epsilon(1.0) if pure else Spend.rho(0.5), neighbours=neighbours)


def size_of(neighbours: Neighbours) -> int | None:
    return SIZE if neighbours is REPLACE_ONE else None


def true_counts(columns: tuple[str, ...]) -> np.ndarray:
    return COUNTS.sum(axis=tuple(i for i, name in enumerate(SIZES) if name not in columns))


class TestPlan:
    @pytest.mark.parametrize("neighbours", list(Neighbours))
    @pytest.mark.parametrize("pure", [False, True])
    @pytest.mark.parametrize("domain", [DOMAIN, WIDE])
    def test_a_plan_costs_no_more_than_the_allowance(self, neighbours: Neighbours, pure: bool, domain: Domain) -> None:
        """In the kernel's own book; the wrong twin, planned for the cheaper neighbours, costs twice that."""
        own = kernel(neighbours, pure=pure, domain=domain, table=np.zeros(domain.sizes(domain.names), np.int64))
        sets = ordered_sets(domain, list(combinations(domain.names[:3], 2)))
        plans = {who: whole_marginals(domain, sets, allowance(who, pure=pure)) for who in (neighbours, ADD_REMOVE)}
        plans["any"] = plan_marginals(domain, sets, allowance(neighbours, pure=pure))
        cost = {
            who: from_units(own.price(Measured(strategy=p.strategy, noise=p.noise, version=1) for p in plan))
            for who, plan in plans.items()
        }
        amount = allowance(neighbours, pure=pure).spend.amount
        assert cost["any"] <= amount
        assert 0.99 * amount < cost[neighbours] <= amount or domain is DOMAIN  # small tables: pairs share their loss
        if neighbours is REPLACE_ONE and domain is WIDE:
            assert cost[ADD_REMOVE] > 1.9 * amount

    def test_larger_marginals_get_less_noise(self) -> None:
        plan = whole_marginals(WIDE, [("a",), ("a", "b", "c")], allowance(ADD_REMOVE))
        small, large = plan
        assert small.sources[0].columns == ("a",)
        assert large.noise.scale < small.noise.scale

    @pytest.mark.parametrize("pure", [False, True])
    def test_each_aim_is_met_best_by_its_own_plan(self, pure: bool) -> None:
        """The sum over all cells of their scales, and the bound on the largest error."""
        sets = [("a",), ("a", "b", "c")]

        def totals(aim: Aim) -> tuple[float, float]:
            plan = whole_marginals(WIDE, sets, allowance(ADD_REMOVE, pure=pure), aim)
            scales = {p.sources[0].columns: p.noise.scale for p in plan}
            cells = [Cells(count=WIDE.cells(own), variance=scales[own] ** 2 * (2 if pure else 1)) for own in sets]
            return sum(WIDE.cells(own) * scales[own] for own in sets), largest_error(cells, heavy=pure)

        largest, total = totals(Aim.LARGEST), totals(Aim.TOTAL)
        assert total[0] < 0.95 * largest[0]
        assert largest[1] < 0.95 * total[1]

    def test_the_residual_basis_is_taken_where_it_promises_less(self) -> None:
        """Where few columns make many marginals, and a row is added or removed; where it is replaced, it costs more."""
        names = [f"x{i}" for i in range(8)]
        domain = Domain(
            tuple(Categories(name=n, values=tuple(f"{n}{i}" for i in range(14)), outside=0, null=0) for n in names)
        )
        sets = list(combinations(names, 3))
        chosen = {who: plan_marginals(domain, sets, allowance(who), size=size_of(who)) for who in Neighbours}
        assert any(source.residual for purchase in chosen[ADD_REMOVE] for source in purchase.sources)
        assert not any(source.residual for purchase in chosen[REPLACE_ONE] for source in purchase.sources)

    def test_nothing_is_bought_for_what_is_public(self) -> None:
        assert plan_marginals(DOMAIN, [("e",)], allowance(REPLACE_ONE), size=SIZE) == ()
        assert len(plan_marginals(DOMAIN, [("e",)], allowance(ADD_REMOVE))) == 1

    def test_too_large_a_marginal_is_refused(self) -> None:
        big = Domain(
            tuple(Categories(name=n, values=tuple(f"{n}{i}" for i in range(3000)), outside=0, null=0) for n in "ab")
        )
        with pytest.raises(QueryError, match="9000000 cells"):
            plan_marginals(big, [("a", "b")], allowance(ADD_REMOVE))


class TestAnswers:
    @pytest.mark.parametrize("neighbours", list(Neighbours))
    @pytest.mark.parametrize("pure", [False, True])
    def test_without_noise_the_answers_are_the_counts(self, neighbours: Neighbours, pure: bool) -> None:
        own = kernel(neighbours, pure=pure, quiet=True)
        found = measure_marginals(
            PAIRS, grant(own), DOMAIN, budget=allowance(neighbours, pure=pure), size=size_of(neighbours)
        )
        for columns in found.sets:
            np.testing.assert_allclose(found.counts(columns), true_counts(columns), atol=1e-6)
        assert from_units(own.spent()) <= allowance(neighbours, pure=pure).spend.amount

    @pytest.mark.parametrize("neighbours", list(Neighbours))
    @pytest.mark.parametrize("pure", [False, True])
    @pytest.mark.parametrize("shape", list(Shape))
    def test_no_error_is_larger_than_the_bound(self, neighbours: Neighbours, pure: bool, shape: Shape) -> None:
        """At a chance of 1e-7 to fail."""
        if shape is Shape.SUMMING and neighbours is ADD_REMOVE:
            return
        found = measure_marginals(
            PAIRS,
            grant(kernel(neighbours, pure=pure)),
            DOMAIN,
            budget=allowance(neighbours, pure=pure),
            size=size_of(neighbours),
            shape=shape,
        )
        worst = max(np.abs(found.counts(columns) - true_counts(columns)).max() for columns in found.sets)
        assert worst <= found.bound(1 - 1e-7)

    def test_a_bound_for_less_noise_is_exceeded(self) -> None:
        """The wrong twin: the bound for five times the budget, at the same confidence, on 27,000 cells."""
        own = kernel(ADD_REMOVE, domain=WIDE, table=np.zeros((30, 30, 30), np.int64))
        found = measure_marginals(["abc"], grant(own), WIDE, budget=allowance(ADD_REMOVE))
        (own_evidence,) = found.consistent.evidence
        less = replace(own_evidence, source=replace(own_evidence.source, variance=own_evidence.source.variance / 5))
        twin = replace(found, consistent=Consistent(WIDE, [less], size=None))
        worst = np.abs(found.counts(("a", "b", "c"))).max()
        assert worst <= found.bound(1 - 1e-7)
        assert worst > twin.bound(1 - 1e-7)

    def test_an_interrupted_release_goes_on(self) -> None:
        own = kernel(ADD_REMOVE)
        plan = whole_marginals(DOMAIN, ordered_sets(DOMAIN, PAIRS), allowance(ADD_REMOVE))
        assert len(plan) > 1
        answers = iter([False, True])
        first = buy(plan, grant(own), stop=lambda: next(answers))
        assert len(first) == 1
        seen: list[tuple[int, int]] = []
        rest = buy(plan, grant(own), first, on_step=lambda done, of: seen.append((done, of)))
        assert len(rest) == len(plan)
        assert rest[0] is first[0]
        assert seen == [(i + 1, len(plan)) for i in range(len(plan))]
        spent = own.spent()
        assert len(buy(plan, grant(own), own.ledger.records())) == len(own.ledger.records())
        assert own.spent() == spent

    def test_the_log_is_used_and_nothing_bought(self) -> None:
        own = kernel(ADD_REMOVE, quiet=True)
        grant(own).measure(marginal_map(DOMAIN, ("a", "b", "c")), Noise(kind=NoiseKind.GAUSSIAN, scale=10.0))
        found = marginals_from(own.ledger.records(), [("b", "a"), ("a", "d")], DOMAIN)
        assert found.missing == (("a", "d"),)
        np.testing.assert_allclose(found.counts(("a", "b")), true_counts(("a", "b")), atol=1e-9)
        with pytest.raises(QueryError, match="nothing was measured"):
            found.counts(("a", "d"))

    def test_shapes(self) -> None:
        own = kernel(REPLACE_ONE)
        found = measure_marginals([("a", "d")], grant(own), DOMAIN, budget=allowance(REPLACE_ONE).part(1e-8), size=SIZE)
        made = {shape: replace(found, shape=shape).counts(("a", "d")) for shape in Shape}
        plain = made[Shape.CONSISTENT]
        assert plain.min() < 0  # noise of scale 10,000 in 20 cells: all above zero with a chance of 2^-20
        assert plain.sum() == pytest.approx(SIZE)
        np.testing.assert_allclose(made[Shape.NON_NEGATIVE], np.maximum(plain, 0))
        assert np.all(made[Shape.LOWERED] <= made[Shape.NON_NEGATIVE])
        assert made[Shape.SUMMING].min() == 0
        assert made[Shape.SUMMING].sum() == pytest.approx(SIZE)

    def test_sums_need_a_public_size(self) -> None:
        found = marginals_from([], [("a",)], DOMAIN)
        with pytest.raises(QueryError, match="only where that is public"):
            MarginalAnswers(sets=found.sets, consistent=found.consistent, size=None, shape=Shape.SUMMING)

    def test_what_cannot_be_asked(self) -> None:
        with pytest.raises(QueryError, match="declared"):
            ordered_sets(DOMAIN, [("a", "nobody")])
        with pytest.raises(QueryError, match="confidence"):
            marginals_from([], [("a",)], DOMAIN).bound(1.0)


class TestEvidence:
    def test_parts_are_found_in_any_order_of_columns(self) -> None:
        """Cells of columns, totals and residuals; rows of anything else are passed over."""
        own = kernel(ADD_REMOVE, quiet=True)
        cells = {name: Mask((name,), (size,), Steps.identity(size)) for name, size in SIZES.items()}
        total = Mask(("d",), (4,), Steps.total(4))
        prefix = Mask(("a",), (5,), Steps.ranges([0, 0], [2, 3], 5))
        joint = Mask(("c", "b"), (3, 2), Steps.identity(6))
        maps = Stack((Product((cells["c"], total, cells["a"])), Product((prefix,)), Product((joint,))))
        grant(own).measure(maps, Noise(kind=NoiseKind.GAUSSIAN, scale=20.0))
        found = evidence_in(own.ledger.records(), DOMAIN)
        assert [e.source.columns for e in found] == [("a", "c"), ("b", "c")]
        for e in found:
            np.testing.assert_array_equal(e.table, true_counts(e.source.columns))

    def test_laplace_noise_is_told_apart(self) -> None:
        own = kernel(ADD_REMOVE, pure=True)
        grant(own).measure(marginal_map(DOMAIN, ("a",)), Noise(kind=NoiseKind.LAPLACE, scale=4.0))
        (found,) = evidence_in(own.ledger.records(), DOMAIN)
        assert found.source.heavy
        assert found.source.variance == 32.0
