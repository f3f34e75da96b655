"""Which way to make a table: by the error to expect, from public numbers alone."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest

from bursar.core.accounting import NoiseKind
from bursar.core.domain import Domain, IntegerRange, Neighbours
from bursar.synthetic.marginals.answers import Allowance
from bursar.synthetic.plan.methods import TablePlan, Task, marginal_purchases, plans, reasons, unnoticed
from bursar.synthetic.plan.spend import Spend
from bursar.synthetic.plan.workload import Method, sets_of_size
from bursar.synthetic.rap.rounds import Adaptivity

DOMAIN = Domain(tuple(IntegerRange(name=f"c{i}", lower=0, upper=9, null=0) for i in range(6)))


def task(**changes: object) -> Task:
    allowance = Allowance(spend=Spend.rho(0.01), neighbours=Neighbours.ADD_REMOVE)
    sets = sets_of_size(DOMAIN, 2)
    facts: dict[str, object] = {"domain": DOMAIN, "sets": sets, "allowance": allowance, "about": 50_000}
    return Task(**{**facts, **changes})  # type: ignore[arg-type]


def least(by_method: Mapping[Method, TablePlan]) -> TablePlan:
    return min(by_method.values(), key=lambda plan: plan.error)


def test_few_marginals_are_measured_as_wholes() -> None:
    made = plans(task())
    assert least(made).method is Method.MARGINALS
    assert "marginals: the least of these" in reasons(made, least(made), task())


def test_of_very_many_marginals_and_little_to_spend_the_worst_are_picked() -> None:
    wide = Domain(tuple(IntegerRange(name=f"c{i}", lower=0, upper=3, null=0) for i in range(24)))
    little = Allowance(spend=Spend.rho(1e-5), neighbours=Neighbours.ADD_REMOVE)
    many = task(domain=wide, sets=sets_of_size(wide, 3), allowance=little)
    assert least(plans(many)).method is not Method.MARGINALS


def test_a_method_can_be_asked_for() -> None:
    made = plans(task())
    assert made[Method.RAP].adaptivity is not None
    assert "rap: as asked for" in reasons(made, made[Method.RAP], task())


def test_what_cannot_be_done_says_why() -> None:
    large = Domain(tuple(IntegerRange(name=f"c{i}", lower=0, upper=3999, null=0) for i in range(2)))
    made = plans(task(domain=large, sets=(("c0", "c1"),)))
    assert made[Method.MARGINALS].error == math.inf
    assert made[Method.MARGINALS].why.startswith("c0, c1 have too many cells")
    assert least(made).method is not Method.MARGINALS


def test_errors_fall_with_what_is_spent() -> None:
    less, more = (
        plans(task(allowance=Allowance(spend=Spend.rho(rho), neighbours=Neighbours.ADD_REMOVE))) for rho in (0.01, 0.04)
    )
    assert all(more[method].error < less[method].error for method in Method)
    assert more[Method.MARGINALS].error == pytest.approx(less[Method.MARGINALS].error / 2, rel=0.01)


def test_a_budget_in_which_nothing_can_be_seen_is_told() -> None:
    poor = task(allowance=Allowance(spend=Spend.epsilon(1e-4), neighbours=Neighbours.ADD_REMOVE))
    made = plans(poor)
    assert "as many as there are rows" in reasons(made, least(made), poor)


def test_what_picking_does_not_find_follows_from_its_noise() -> None:
    setting = Adaptivity(rounds=4, picks=4)
    whole = unnoticed(1000, Spend.rho(1.0), setting)
    scale = math.sqrt(16 / 1.0)  # sqrt(T K / rho), half of the budget
    assert whole == pytest.approx(scale * math.log(1000) + scale * math.sqrt(2 * math.log(2 * 16 / 0.5)), rel=1e-3)


@pytest.mark.parametrize("kind", NoiseKind)
def test_what_counts_more_is_measured_better_at_the_same_price(kind: NoiseKind) -> None:
    sets = (("c0", "c1"), ("c2", "c3"))
    allowance = Allowance(spend=Spend(kind=kind, amount=0.1), neighbours=Neighbours.ADD_REMOVE)
    purchases = marginal_purchases(task(sets=sets, allowance=allowance, weights={sets[0]: 16.0, sets[1]: 1.0}))
    known = dict.fromkeys(sets, 0.0)
    spent = 0.0
    for purchase in purchases:
        noise, parts = purchase.noise, len(purchase.sources)
        spent += parts * (1 / noise.scale if kind is NoiseKind.LAPLACE else 1 / (2 * noise.scale**2))
        for source in purchase.sources:
            if source.columns in known:
                known[source.columns] += 1 / source.variance
    assert known[sets[0]] > 1.5 * known[sets[1]]
    assert 0.099 < spent <= 0.1


def test_units_of_several_rows_cost_more() -> None:
    rows = Allowance(spend=Spend.rho(0.09), neighbours=Neighbours.ADD_REMOVE, contributions=3)
    assert task(allowance=rows).spend.amount == pytest.approx(0.01)
    laplace = Allowance(spend=Spend.epsilon(0.3), neighbours=Neighbours.ADD_REMOVE, contributions=3)
    assert task(allowance=laplace).spend.amount == pytest.approx(0.1)
