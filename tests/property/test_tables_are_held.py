"""A table that was begun is finished, whatever others spend between its steps, and the budget is never exceeded."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bursar.core.accounting import Measured, Mode, Noise, NoiseKind, Paid, Selected
from bursar.core.budget import Budget
from bursar.core.domain import Categories, Domain, IntegerRange, Neighbours, Unit
from bursar.core.kernel import Kernel
from bursar.core.ledger import Purpose
from bursar.core.queries import Mask, Product, Steps
from bursar.errors import BudgetError, LedgerError
from bursar.planner.grant import HOLD_SECONDS, Grant
from bursar.session import Bursar
from bursar.synthetic.session import silent
from harness.faults import Clock
from harness.small import DOMAIN, Silence, config, engine

WIDE = Domain((*DOMAIN.attributes, IntegerRange(name="wage", lower=0, upper=39, null=0)))
LARGE = Domain(tuple(Categories(name=name, values=tuple("abcdefghijklmnop"), outside=0, null=0) for name in "uvwx"))
"""Sets of three columns have more cells than are compared in pairs: what is picked is measured as single cells."""

BUDGETS = {
    "rho": Budget.of(rho=0.5),
    "epsilon": Budget.of(epsilon=2.0),
    "rdp": Budget.of(epsilon=4.0, delta=1e-6, accountant="rdp"),
}
METHODS = ("marginals", "rap", "both")


def owner(budget: Budget, unit: Unit, *, domain: Domain = WIDE) -> Bursar:
    settings = config(domain=domain, budget=budget, unit=unit, public_size=3000)
    return engine(settings=settings, analyst="owner", randomness=Silence(), table=people(domain))


def people(domain: Domain) -> np.ndarray:
    rng, sizes = np.random.default_rng(1), domain.sizes(domain.names)
    return rng.multinomial(3000, rng.dirichlet(np.full(math.prod(sizes), 0.05))).reshape(sizes)


def another(db: Bursar) -> Bursar:
    """Of another analyst, on the same ledger."""
    table = people(db.config.domain)
    return engine(settings=db.config, ledger=db.ledger, analyst="ana", randomness=Silence(), table=table)


def anything(kernel: Kernel, rng: np.random.Generator) -> Product:
    """Some values of some columns: it costs nobody but the people who have them."""
    names = rng.choice(kernel.domain.names, int(rng.integers(1, 4)), replace=False).tolist()
    masks = []
    for name in kernel.domain.ordered(names):
        size = kernel.domain[name].size
        low = int(rng.integers(size))
        masks.append(Mask((name,), (size,), Steps.ranges([low], [int(rng.integers(low + 1, size + 1))], size)))
    return Product(tuple(masks))


def spend_what_is_left(other: Bursar, rng: np.random.Generator) -> int:
    """Another analyst, who takes as much as can be had, in ever smaller pieces; how many were granted."""
    kernel, rows, granted = other.kernel, other.config.unit.max_contributions, 0
    pure = kernel.budget.mode is Mode.PURE
    for power in (1, 3, 6, 10):
        amount = kernel.budget.units / 2 ** (50 + power)
        kind = NoiseKind.LAPLACE if pure else NoiseKind.GAUSSIAN
        scale = rows / amount if pure else rows / math.sqrt(2 * amount)
        try:
            kernel.measure(
                anything(kernel, rng),
                Noise(kind=kind, scale=scale),
                analyst="ana",
                purpose=Purpose("other", "test"),
                at_most=2**60,
            )
            granted += 1
        except BudgetError:
            pass
    return granted


def between_steps(monkeypatch: pytest.MonkeyPatch, db: Bursar, act: Callable[[], object]) -> None:
    """Something happens before every verb of the owner's grants."""
    charged = Grant._charged

    def first(self: Grant, verb: Any) -> Any:
        if self.kernel is db.kernel:
            act()
        return charged(self, verb)

    monkeypatch.setattr(Grant, "_charged", first)


QUICK = [("marginals", "rho", "ADD_REMOVE"), ("rap", "epsilon", "REPLACE_ONE"), ("both", "rdp", "ADD_REMOVE")]
"""One of each; the others are too long for every run of the suite."""

CASES = [
    pytest.param(*case, marks=() if case in QUICK else pytest.mark.heavy)
    for case in itertools.product(METHODS, BUDGETS, (each.name for each in Neighbours))
]


@pytest.mark.heavy
@pytest.mark.sampled(7)
@pytest.mark.parametrize(("method", "budget", "neighbours"), CASES)
def test_what_others_spend_between_the_steps_stops_no_table(
    method: str, budget: str, neighbours: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = owner(BUDGETS[budget], Unit(neighbours=Neighbours[neighbours]))
    other = another(db)
    rng, steps, granted = np.random.default_rng(2), 0, 0
    for _ in range(8):  # the log has something to begin with, that is not the same for all people
        half = Noise(kind=NoiseKind.LAPLACE if budget == "epsilon" else NoiseKind.GAUSSIAN, scale=20.0)
        other.kernel.measure(
            anything(other.kernel, rng), half, analyst="ana", purpose=Purpose("before", "test"), at_most=2**60
        )

    def act() -> None:
        nonlocal steps, granted
        steps, granted = steps + 1, granted + spend_what_is_left(other, rng)
        assert db.kernel.spent() <= db.kernel.budget.units

    between_steps(monkeypatch, db, act)
    spend = db.kernel.left() / 2**50 * 0.6
    made = db.synthesize(ways=2, spend=spend, method=method)
    assert made.report.finished
    assert 0 < made.charge <= spend
    assert steps > 1
    assert granted > 0
    assert db.kernel.spent() <= db.kernel.budget.units
    assert db.kernel.held() == 0


@pytest.mark.sampled(3)
@pytest.mark.parametrize("method", METHODS)
def test_units_of_several_rows_and_cells_of_large_sets_are_held_too(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = owner(Budget.of(rho=0.5), Unit(column="person", max_contributions=3), domain=LARGE)
    other = another(db)
    rng = np.random.default_rng(3)
    between_steps(monkeypatch, db, lambda: spend_what_is_left(other, rng))
    made = db.synthesize(ways=3, spend=0.3, method=method)
    assert made.report.finished
    assert db.kernel.spent() <= db.kernel.budget.units


@pytest.mark.sampled(9)
@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize(("method", "budget"), [*itertools.product(METHODS, ("rho", "epsilon"))])
def test_all_of_the_budget_can_go_into_one_table(method: str, budget: str, neighbours: Neighbours) -> None:
    """What is kept aside is no more than what was allowed, to the last unit."""
    whole = BUDGETS[budget]
    db = owner(whole, Unit(neighbours=neighbours))
    spend = whole.units / 2**50
    prepared = db.prepare_synthesis(ways=2, spend=spend, method=method)
    assert 0.99 * spend < prepared.price <= spend
    assert prepared.make().report.finished


@pytest.mark.heavy
@pytest.mark.sampled(9)
@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize(("method", "budget"), [*itertools.product(("rap", "both"), BUDGETS)])
def test_what_stands_in_for_measuring_costs_no_less_than_it(method: str, budget: str, neighbours: Neighbours) -> None:
    """Every planned event is taken by one verb, and is at least as dear as what was bought in its place."""
    db = owner(BUDGETS[budget], Unit(neighbours=neighbours))
    prepared = db.prepare_synthesis(ways=2, spend=0.25, method=method)
    planned = prepared.offer.price.events
    prepared.make()
    bought = [record.event for record in db.ledger.records() if isinstance(record.event, Paid)]
    assert len(bought) == len(planned)
    stood_in = 0
    for kept, event in zip(planned, bought, strict=True):
        stood_in += isinstance(kept, Selected) and isinstance(event, Measured)
        assert db.kernel.empty_book().price([event]) <= db.kernel.empty_book().price([kept])
    assert stood_in == sum(isinstance(event, Selected) for event in bought) > 0


def test_a_table_that_does_not_fit_beside_what_others_hold_is_refused_before_anything_is_spent() -> None:
    db = owner(Budget.of(rho=0.5), Unit())
    other = another(db)
    noise = Noise(kind=NoiseKind.GAUSSIAN, scale=1.25)  # rho .32
    total = Product((Mask(("sex",), (2,), Steps.total(2)),))
    hold = other.kernel.hold([Measured(strategy=total, noise=noise, version=1)], analyst="ana", seconds=60)
    for method in METHODS:
        with pytest.raises(BudgetError, match=r"nothing was spent\ntry: --spend 0\.1"):
            db.synthesize(ways=2, spend=0.2, method=method)
        assert db.kernel.spent() == 0
    other.kernel.drop_hold(hold.fence)
    assert db.synthesize(ways=2, spend=0.2).report.finished


@pytest.mark.sampled(3)
@pytest.mark.parametrize("method", METHODS)
def test_a_run_that_goes_on_holds_only_what_is_left(method: str) -> None:
    db = owner(Budget.of(rho=0.5), Unit())
    whole = db.prepare_synthesis(ways=2, spend=0.4, method=method)
    held: dict[int, int] = {}  # by the length of the log

    def stop(records: float = math.inf) -> bool:
        length = len(db.ledger.records())
        if length not in held:
            held[length] = db.kernel.held()
        return length > records

    assert not whole.synthesis.make_table(whole, silent, lambda: stop(3)).report.finished
    assert db.kernel.held() == 0
    again = db.prepare_synthesis(ways=2, spend=0.4, method=method)
    assert 0 < len(again.offer.price.events) < len(whole.offer.price.events)
    assert 0 < again.price < whole.price
    first = max(held.values())
    held.clear()
    assert again.synthesis.make_table(again, silent, stop).report.finished
    assert max(held.values()) <= math.ceil(again.price * 2**50) < first


def test_a_run_that_takes_its_time_keeps_its_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of the lease goes by whenever it looks whether to stop."""
    db, clock = owner(Budget.of(rho=0.5), Unit()), Clock()
    other = another(db)
    between_steps(monkeypatch, db, lambda: spend_what_is_left(other, np.random.default_rng(4)))

    def stop() -> bool:
        clock.off += HOLD_SECONDS / 4
        return False

    with clock.running():
        prepared = db.prepare_synthesis(ways=2, spend=0.3, method="both")
        assert prepared.synthesis.make_table(prepared, silent, stop).report.finished
    assert clock.off > 2 * HOLD_SECONDS


def test_a_run_that_stood_still_for_longer_than_its_hold_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    db, clock = owner(Budget.of(rho=0.5), Unit()), Clock()
    steps = itertools.count()

    def act() -> None:
        clock.off += HOLD_SECONDS + 1 if next(steps) == 2 else 0

    between_steps(monkeypatch, db, act)
    with clock.running():
        made = db.synthesize(ways=2, spend=0.3, method="both")
    assert made.report.finished
    assert made.charge == pytest.approx(db.kernel.spent() / 2**50)
    assert db.kernel.spent() <= 0.3 * 2**50


def test_a_run_that_stands_still_before_every_step_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    db, clock = owner(Budget.of(rho=0.5), Unit()), Clock()

    def act() -> None:
        clock.off += HOLD_SECONDS + 1

    between_steps(monkeypatch, db, act)
    with clock.running(), pytest.raises(LedgerError, match="given back\ntry: the same again"):
        db.synthesize(ways=2, spend=0.3, method="both")
    monkeypatch.undo()
    assert db.synthesize(ways=2, spend=0.3, method="both").report.finished
    assert db.kernel.spent() <= 0.3 * 2**50
