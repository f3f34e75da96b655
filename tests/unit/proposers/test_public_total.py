"""The number of rows as a constraint: free where rows are replaced, never where they are added or removed."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from bursar.core.accounting import Measured, Mode
from bursar.core.budget import Budget
from bursar.core.domain import Categories, Domain, IntegerRange, Neighbours, Unit
from bursar.core.ledger import Purpose
from bursar.core.queries import Mask, Product, Steps
from bursar.errors import Stale
from bursar.estimation.least_squares import EXACT_TOTAL
from bursar.planner.choose import Preset
from bursar.planner.goals import Wanted
from bursar.planner.offer import Views
from bursar.proposers.direct import Direct
from bursar.proposers.invest import Invest
from bursar.proposers.reuse import Exact, Reconstruct
from bursar.session import Bursar
from bursar.strategies.universal import universal
from bursar.tails import single_tail
from bursar.views.measurements import ALL_ROWS
from harness.small import DOMAIN, Silence, config, counts, engine

REPLACED, ADDED = Unit(neighbours=Neighbours.REPLACE_ONE), Unit(neighbours=Neighbours.ADD_REMOVE)
INVESTING = Preset("investing", (Exact(), Reconstruct(), Invest(theta={Mode.PURE: 1.0}), Direct()))
BUDGETS = (Budget.of(epsilon=100.0), Budget.of(rho=20.0))
YOUNG, OLD = (f"SELECT COUNT(*) FROM people WHERE age {where}" for where in ("< 4", ">= 4"))


def session(unit: Unit, budget: Budget, *, silent: bool = True, **changes: object) -> Bursar:
    size = int(counts().sum())
    settings = config(unit=unit, budget=budget, public_size=size, **changes)
    return engine(settings=settings, randomness=Silence() if silent else None)


def totals(db: Bursar) -> list[Measured]:
    events = [record.event for record in db.engine.kernel.ledger.records(0)]
    return [event for event in events if isinstance(event, Measured) and event.strategy.digest == ALL_ROWS.digest]


@pytest.mark.parametrize("budget", BUDGETS)
def test_what_is_left_of_the_total_is_free(budget: Budget) -> None:
    db = session(REPLACED, budget)
    young = db.query(YOUNG, within=30)
    assert not totals(db)  # it would not have helped
    old = db.query(OLD, within=30)
    assert young.charge > 0
    assert old.charge == 0
    assert old.values[0][0] == counts()[4:].sum()
    assert [single_tail(event.noise, 1.0) < 4e-28 for event in totals(db)] == [True]


@pytest.mark.parametrize("budget", BUDGETS)
def test_under_add_remove_the_total_is_neither_free_nor_known(budget: Budget) -> None:
    db = session(ADDED, budget)
    assert db.engine.planner.views().free_total() is None
    for question in (YOUNG, OLD, YOUNG.replace("4", "7")):
        db.query(question, within=30)
    assert not totals(db)
    assert db.engine.planner.views().free_total() is None


def free_total(views: Views) -> Measured:
    """The wrong twin: it takes the total for free everywhere."""
    return Measured(strategy=ALL_ROWS, noise=EXACT_TOTAL, version=views.version)


@pytest.mark.parametrize(("unit", "honest"), [(REPLACED, True), (ADDED, False)])
def test_a_planner_that_takes_it_for_free_under_add_remove_is_stopped(
    unit: Unit, honest: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel has a price of its own: what the twin would use under add-remove is neither drawn nor charged."""
    monkeypatch.setattr(Views, "free_total", free_total)
    db = session(unit, BUDGETS[0])
    db.query(YOUNG, within=30)
    offer = db.engine.planner.choose(db.engine.prepare(OLD, Wanted(within=30), None))
    assert [event.looks_at.digest for event in offer.price.events] == [ALL_ROWS.digest]
    kernel, before = db.engine.kernel, db.budget().spent
    terms = {"analyst": "ana", "purpose": Purpose("", "reconstruct"), "at_most": offer.price.at_most}
    assert offer.price.at_most == 0
    if honest:
        kernel.measure(ALL_ROWS, EXACT_TOTAL, **terms)
    else:
        with pytest.raises(Stale):
            kernel.measure(ALL_ROWS, EXACT_TOTAL, **terms)
    assert (len(totals(db)), db.budget().spent) == (int(honest), before)


def test_a_declared_size_is_no_record() -> None:
    """Answers rest on the count in the log, whatever the config says about percentages."""
    settings = config(unit=REPLACED, budget=BUDGETS[0], public_size=7)
    db = engine(settings=settings, randomness=Silence())
    db.query(YOUNG, within=30)
    assert db.query(OLD, within=30).values[0][0] == counts()[4:].sum()


def test_what_is_known_of_partitions_is_not_mixed_up() -> None:
    domain = Domain(
        (*(DOMAIN[name] for name in DOMAIN.names), IntegerRange(name="week", lower=0, upper=1, null=0)), "week"
    )
    table = np.stack([counts(), counts(1)], axis=-1)
    db = engine(table=table, settings=config(domain=domain, unit=REPLACED, public_size=int(table.sum())))
    assert db.engine.planner.views().free_total() is None


@pytest.mark.heavy
@pytest.mark.sampled(2)
@pytest.mark.parametrize("budget", BUDGETS)
def test_every_answer_is_exact_without_noise(budget: Budget) -> None:
    """Through all ways to answer, whatever was bought before."""
    db = session(REPLACED, budget)
    table = counts().sum(axis=(1, 2))
    rng = np.random.default_rng(3)
    for _ in range(40):
        low, high = sorted(rng.choice(11, 2, replace=False))
        question = f"SELECT COUNT(*) FROM people WHERE age BETWEEN {low} AND {high - 1}"
        answer = db.query(question, within=float(rng.choice([20, 40, 80])))
        assert answer.values[0][0] == pytest.approx(table[low:high].sum(), abs=1e-6)
    sexes = db.query("SELECT sex, COUNT(*) FROM people GROUP BY sex", within=20)
    assert [row[0] for row in sexes.values] == pytest.approx(counts().sum(axis=(0, 2)).tolist(), abs=1e-6)


WIDE = Domain((Categories(name="x", values=tuple(f"v{i:03}" for i in range(128)), outside=0, null=0),))


def invested(unit: Unit) -> tuple[float, float]:
    """What a strategy for all sets of 128 cells costs, and all that was spent until then."""
    table = np.full(128, 100)
    settings = config(domain=WIDE, unit=unit, budget=Budget.of(epsilon=50.0), public_size=12_800)
    db = engine(table=table, settings=settings, preset=INVESTING, randomness=Silence())
    rng = np.random.default_rng(1)
    for _ in range(200):
        names = ", ".join(f"'v{i:03}'" for i in np.sort(rng.choice(128, 64, replace=False)))
        answer = db.query(f"SELECT COUNT(*) FROM people WHERE x IN ({names})", within=600)
        assert answer.values[0][0] == pytest.approx(6400, abs=1e-6)
        if answer.source == "invest" and answer.charge > 0:
            return answer.charge, db.budget().spent
    raise AssertionError("nothing was bought for all questions")


@pytest.mark.heavy
def test_a_strategy_for_all_questions_needs_half_of_the_budget_beside_the_total() -> None:
    """A histogram costs twice as much where rows are replaced; its worst question has a quarter of the variance."""
    (added, _), (replaced, _) = invested(ADDED), invested(REPLACED)
    assert replaced == pytest.approx(added, rel=0.05)


def families(name: str, size: int, ordered: bool) -> list[np.ndarray]:
    ranges = [(low, high) for low in range(size) for high in range(low + 1, size + 1) if ordered or low == 0]
    return [np.array([low <= cell < high for cell in range(size)], int) for low, high in ranges]


@pytest.mark.parametrize("mode", [Mode.PURE, Mode.CONCENTRATED])
@pytest.mark.parametrize("sizes", [(12,), (3, 9), (10, 2), (2, 2), (1, 4)])
def test_the_worst_question_beside_the_total(mode: Mode, sizes: tuple[int, ...]) -> None:
    """Against every question of the family; the worst one without the total is not among the worst with it."""
    domain = Domain(tuple(IntegerRange(name=f"c{i}", lower=0, upper=n - 1, null=0) for i, n in enumerate(sizes)))
    plan = universal(domain, domain.names, mode)
    assert plan is not None
    largest = 0.0
    parts = [families(f"c{i}", n, plan.columns[i].inverse is not None) for i, n in enumerate(sizes)]
    for question in itertools.product(*parts):
        masks = (Mask((f"c{i}",), (len(row),), Steps.dense(row[None])) for i, row in enumerate(question))
        rows, _ = plan.beside_total(plan.weights(Product(tuple(masks))))
        largest = max(largest, float(np.square(rows).sum()))
    worst = np.square(plan.worst_beside_total).sum(axis=1)
    assert worst.max() == pytest.approx(largest, rel=1e-9)
    assert largest < 0.6 * float(np.square(plan.worst).sum())
