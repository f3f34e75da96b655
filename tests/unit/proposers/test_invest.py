"""Investing: when it happens, what it costs, and that it answers the family it is for."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from bursar import presets
from bursar.core.accounting import Measured, Mode, from_units
from bursar.core.budget import Budget
from bursar.core.domain import Categories, Domain, IntegerRange
from bursar.core.queries import Mask, Product, Stack, Steps
from bursar.estimation.estimate import WeightedRows, meets
from bursar.estimation.least_squares import Block
from bursar.goal import Goal, GoalKind, Horizon
from bursar.planner.choose import Preset
from bursar.planner.goals import Wanted
from bursar.proposers import invest
from bursar.proposers.direct import Direct
from bursar.proposers.invest import Invest, Invested, TopUpLaw, filled_up, on_top
from bursar.proposers.reuse import Exact, Reconstruct
from bursar.proposers.tree import all_nodes
from bursar.session import Bursar
from bursar.strategies.hierarchical import best_tree
from bursar.strategies.universal import MOST_CELLS, Universal, all_ranges, universal
from harness.small import DOMAIN, config, engine

THETA = {Mode.PURE: 1.0, Mode.CONCENTRATED: 0.4}
RENTING = Preset("renting", (Exact(), Reconstruct(), Direct()))
INVESTING = Preset("investing", (Exact(), Reconstruct(), Invest(theta=THETA), Direct()))
BUDGETS = {Mode.PURE: Budget.of(epsilon=20.0), Mode.CONCENTRATED: Budget.of(rho=2.0)}

SETS = [
    f"SELECT COUNT(*) FROM people WHERE age BETWEEN {low} AND {high}"
    for low in range(10)
    for high in range(low + 1, 10)
]


def test_rent_and_purchase_cost_at_most_twice_the_purchase() -> None:
    db = engine(settings=config(budget=BUDGETS[Mode.PURE]), preset=INVESTING)
    bought = [answer for text in SETS if (answer := db.query(text, within=30)).source == "invest"]
    assert len(bought) == 1
    rent = db.budget().spent - bought[0].charge
    assert rent <= bought[0].charge
    assert db.budget().spent <= 2 * bought[0].charge


@pytest.mark.heavy
def test_gaussian_investments_buy_what_is_missing() -> None:
    """All together they cost less than the strategy for the worst question of the family would have cost."""
    db = engine(settings=config(budget=BUDGETS[Mode.CONCENTRATED]), preset=INVESTING)
    answers = [db.query(text, within=30) for text in SETS]
    charges = [answer.charge for answer in answers if answer.source == "invest"]
    assert charges
    plan = universal(DOMAIN, ("age",), Mode.CONCENTRATED)
    assert plan is not None
    sigma = 30 / (1.96 * np.sqrt(np.square(plan.worst).sum()))
    assert max(charges) < plan.sensitivity**2 / (2 * sigma**2)
    assert db.budget().spent < 1.5 * plan.sensitivity**2 / (2 * sigma**2)


def test_an_investment_on_top_has_the_law_it_says() -> None:
    """Its variances come from eigenvectors, its weights from least squares: they agree."""
    db = engine(settings=config(budget=BUDGETS[Mode.CONCENTRATED]), preset=INVESTING)
    for text in SETS[:6]:
        db.query(text, within=60)
    request = db.engine.prepare("SELECT COUNT(*) FROM people WHERE age BETWEEN 2 AND 8", Wanted(rmse=6), None)
    plan = universal(DOMAIN, ("age",), Mode.CONCENTRATED)
    assert plan is not None
    made = on_top(
        plan, db.engine.planner.views().reconstructions.on(("age",)), request.workload.map, request.goal, None
    )
    assert made is not None
    assert isinstance(made.law, TopUpLaw)
    assert made.law.mean_square() == pytest.approx(36, rel=1e-3)
    assert made.law._rows.mean_square() == pytest.approx(made.law.mean_square(), rel=1e-6)


def test_after_the_purchase_the_family_is_free() -> None:
    db = engine(settings=config(budget=BUDGETS[Mode.PURE]), preset=INVESTING)
    charges = [db.query(text, within=30) for text in SETS]
    place = [answer.source for answer in charges].index("invest")
    assert all(answer.charge == 0 for answer in charges[place + 1 :])


@pytest.mark.heavy
def test_it_is_cheaper_than_renting_on_and_on() -> None:
    spent = {}
    for preset in (RENTING, INVESTING):
        db = engine(settings=config(budget=Budget.of(epsilon=20.0)), preset=preset)
        for text in SETS:
            db.query(text, within=30)
        spent[preset.name] = db.budget().spent
    assert spent["investing"] < 0.8 * spent["renting"]


def test_nothing_is_bought_before_rent_was_paid() -> None:
    db = engine(preset=INVESTING)
    assert [line.proposer for line in db.explain(SETS[0], within=50).offers] == ["direct"]


def test_an_investment_that_does_not_fit_keeps_nothing_out() -> None:
    """Its bid may be the lowest; its price is more than is left."""
    db = engine(settings=config(budget=Budget.of(epsilon=0.2)), preset=INVESTING)
    sources = [db.query(text, within=60).source for text in SETS[:3]]
    assert "invest" not in sources


def test_rent_starts_again_after_a_purchase() -> None:
    db = engine(settings=config(budget=Budget.of(epsilon=50.0)), preset=INVESTING)
    for text in SETS:
        db.query(text, within=30)
    plan = universal(DOMAIN, ("age",), Mode.PURE)
    assert plan is not None
    rents = db.engine.planner.views().rents
    assert rents.since(("age",), "invest", lambda strategy: strategy.digest == plan.product.digest) == 0
    paid = db.query(SETS[0], within=3).charge
    rent = db.engine.planner.views().rents.since(
        ("age",), "invest", lambda strategy: strategy.digest == plan.product.digest
    )
    assert from_units(rent) == pytest.approx(paid, rel=0.5)


def test_a_new_version_owes_no_rent() -> None:
    db = engine(preset=INVESTING)
    db.query(SETS[0], within=60)
    assert db.engine.planner.views().rents.sets() == [frozenset({"age"})]
    db.owner.declare_version()
    assert db.engine.planner.views().rents.sets() == []


def test_the_worst_question_keeps_the_goal_and_so_do_the_others() -> None:
    mode = Mode.PURE
    db = engine(settings=config(budget=BUDGETS[mode]), preset=INVESTING)
    db.query("SELECT COUNT(*) FROM people WHERE age BETWEEN 1 AND 3 AND sex = 'F'", within=40)
    request = db.engine.prepare(
        "SELECT COUNT(*) FROM people WHERE age BETWEEN 2 AND 5 AND sex = 'F'", Wanted(within=40), None
    )
    (offer,) = Invest(theta=THETA).offers(request, db.engine.planner.views())
    (event,) = offer.price.events
    plan = universal(DOMAIN, ("age", "sex"), mode)
    assert plan is not None
    boxes = [(low, high) for low, high in itertools.combinations(range(11), 2)]
    ages = Mask(("age",), (10,), Steps.ranges([a for a, _ in boxes], [b for _, b in boxes], 10))
    sexes = Mask(("sex",), (2,), Steps.dense([[1, 0], [0, 1], [1, 1]]))
    noises = (event.noise,) * plan.product.rows
    for weights in plan.weights(Product((ages, sexes))):
        assert meets(WeightedRows(weights=weights[None], noises=noises), request.goal)
    louder = type(event.noise)(kind=event.noise.kind, scale=1.1 * event.noise.scale)
    assert not meets(WeightedRows(weights=plan.worst[None], noises=(louder,) * plan.product.rows), request.goal)


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("size", [5, 40, 100])
def test_weights_recover_every_query(mode: Mode, size: int) -> None:
    domain = Domain(
        (
            IntegerRange(name="x", lower=0, upper=size - 1, null=0),
            Categories(name="c", values=("a", "b", "d"), null=0, outside=0),
        )
    )
    plan = universal(domain, ("x", "c"), mode)
    assert plan is not None
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 50, (size, 3))

    def table(attrs: tuple[str, ...]) -> np.ndarray:
        gone = tuple(i for i, name in enumerate(("x", "c")) if name not in attrs)
        kept = [name for name in ("x", "c") if name in attrs]
        return np.transpose(truth.sum(axis=gone), [kept.index(name) for name in attrs])

    both = Product((Mask(("c", "x"), (3, size), Steps.dense(rng.integers(-2, 3, (4, 3 * size)))),))
    ranges = Product((Mask(("x",), (size,), Steps.ranges([0, 2], [3, size], size)),))
    asked = Stack((both, ranges, Product(())))
    answers = plan.weights(asked) @ plan.product.apply(table).astype(float)
    assert np.allclose(answers, np.concatenate([p.apply(table) for p in asked.parts]), atol=1e-6)


def test_the_worst_range_is_the_worst() -> None:
    plan = universal(Domain((IntegerRange(name="x", lower=0, upper=39, null=0),)), ("x",), Mode.CONCENTRATED)
    assert plan is not None
    boxes = list(itertools.combinations(range(41), 2))
    every = Product((Mask(("x",), (40,), Steps.ranges([a for a, _ in boxes], [b for _, b in boxes], 40)),))
    variances = np.square(plan.weights(every)).sum(axis=1)
    assert np.square(plan.worst).sum() == pytest.approx(variances.max())


@pytest.mark.parametrize("size", [65, 74, 300])
def test_with_laplace_noise_the_worst_range_of_a_longer_column_costs_less_than_with_the_best_tree(size: int) -> None:
    plan = universal(Domain((IntegerRange(name="x", lower=0, upper=size - 1, null=0),)), ("x",), Mode.PURE)
    assert plan is not None
    tree = best_tree(all_ranges(size), branchings=(4, 8, 16), power=1)
    lows, highs = np.triu_indices(size + 1, 1)
    cells = np.arange(size)
    ranges = ((lows[:, None] <= cells) & (cells < highs[:, None])).astype(np.float64)
    worst = np.square(ranges @ np.linalg.pinv(tree)).sum(axis=1).max()
    sensitivity = np.abs(tree).sum(axis=0).max()
    assert plan.sensitivity**2 * np.square(plan.worst).sum() < 0.9 * sensitivity**2 * worst


def test_too_many_cells_have_no_universal_strategy() -> None:
    domain = Domain((IntegerRange(name="x", lower=0, upper=MOST_CELLS, null=0),))
    assert universal(domain, ("x",), Mode.PURE) is None
    assert universal(domain, (), Mode.PURE) is None


FIRST = [
    "SELECT COUNT(*) FROM people WHERE sex = 'F' AND region = 'north'",
    "SELECT COUNT(*) FROM people WHERE age < 3",
]
TOGETHER = ("age", "sex", "region")
INVEST = Invest(theta=THETA)


def bought(db: Bursar, columns: tuple[str, ...], within: float = 30) -> Universal:
    """The strategy for all questions about some columns, measured as `invest` would for this goal."""
    plan = universal(DOMAIN, columns, Mode.PURE)
    assert plan is not None
    for text in FIRST:
        db.query(text, within=10 * within)
    request = db.engine.prepare(f"{FIRST[0]} AND age < 5", Wanted(within=within), None)
    made = Invest(theta=THETA)._offer(columns, request, db.engine.planner.views())
    assert made is not None
    with db.engine._grant(request.asked, made) as grant:
        made.run(grant)
    return plan


def test_what_was_bought_answers_by_itself() -> None:
    """Also a question about one column where least squares looks at smaller sets of columns only, and as promised."""
    db = engine(settings=config(budget=BUDGETS[Mode.PURE]), preset=Preset("test", (Invested(INVEST), Direct())))
    plan = bought(db, TOGETHER)
    answer = db.query("SELECT COUNT(*) FROM people WHERE region = 'north'", within=30)
    assert (answer.source, answer.charge) == ("invest", 0)
    (record,) = [one for one in db.ledger.records() if len(one.values) == plan.product.rows]
    assert answer.value == record.values.reshape(10, 2, 3)[:, :, 0].sum()
    assert answer.error <= 30
    assert db.query("SELECT COUNT(*) FROM people WHERE region = 'north'", within=30).value == answer.value
    assert db.query("SELECT COUNT(*) FROM people WHERE region = 'north'", within=1).source == "direct"
    assert db.query("SELECT COUNT(*) FROM people WHERE region = 'north'", epsilon=0.1).source == "direct"


def test_nodes_are_rent_on_several_columns_and_none_on_one() -> None:
    db = rented("age < 8")
    events = [record.event for record in db.ledger.records()]
    assert all(all_nodes(event.strategy) for event in events if isinstance(event, Measured))
    assert not due(db, ("age",), SETS[0])
    assert due(db, ("age", "sex"), f"{SETS[0]} AND sex = 'F'")


def test_counts_of_every_value_are_no_rent_on_more_columns() -> None:
    """They leave nothing to ask about their own column."""
    db = rented("age < 10")
    assert not due(db, ("age", "sex"), f"{SETS[0]} AND sex = 'F'")
    db.query(f"{SETS[1]} AND sex = 'F'", within=30)
    assert due(db, ("age", "sex"), f"{SETS[0]} AND sex = 'F'")


def rented(ages: str) -> Bursar:
    """Somebody has asked for each of some ages, one by one."""
    db = engine(settings=config(budget=BUDGETS[Mode.PURE]), preset=RENTING)
    db.query(f"SELECT age, COUNT(*) FROM people WHERE {ages} GROUP BY age", within=30)
    return db


def due(db: Bursar, columns: tuple[str, ...], text: str) -> bool:
    """Whether a strategy for all questions about the columns is offered."""
    request = db.engine.prepare(text, Wanted(within=30), None)
    return Invest(theta=THETA)._offer(columns, request, db.engine.planner.views()) is not None


def test_the_larger_strategy_is_bought_where_the_smaller_would_make_it_due() -> None:
    """Bids below what the smaller one costs: rent and that price are more than the larger one costs."""
    db = engine(settings=config(budget=BUDGETS[Mode.PURE]), preset=RENTING)
    sizes = []
    for text in (
        "SELECT COUNT(*) FROM people WHERE age < 5",
        "SELECT COUNT(*) FROM people WHERE age < 7 AND sex = 'F'",
    ):
        db.query(text, within=30)
        request = db.engine.prepare("SELECT COUNT(*) FROM people WHERE age < 6", Wanted(within=30), None)
        views = db.engine.planner.views()
        offers = [INVEST._offer(columns, request, views) for columns in (("age",), ("age", "sex"))]
        (chosen,) = INVEST.offers(request, views)
        alone, together = offers
        assert alone is not None
        larger = together is not None and together.bid < alone.price.at_most
        assert chosen.buys == (together if larger and together is not None else alone).buys
        sizes.append(chosen.buys)
    assert sizes == [10, 20]


LONG = Domain((IntegerRange(name="age", lower=0, upper=59, null=0),))


def ranges_asked(db: Bursar, seed: int) -> list[str]:
    """Random ranges of 60 ages; the sources of their answers, each of which keeps its goal."""
    rng = np.random.default_rng(seed)
    sources = []
    for low, high in zip(rng.integers(10, 16, 40), rng.integers(30, 40, 40), strict=True):
        text = f"SELECT COUNT(*) FROM people WHERE age BETWEEN {low} AND {high}"
        request = db.engine.prepare(text, Wanted(rmse=30), None)
        offer = db.engine.planner.choose(request)
        assert offer.law.mean_square() <= 900 * (1 + 1e-9)
        sources.append(db.query(text, rmse=30).source)
    return sources


@pytest.mark.heavy
def test_what_is_known_is_filled_up_to_ranges_like_those_asked() -> None:
    """The law is that of the rows as they are measured; what is known after them is not bought again.

    Where questions are not noted, so that nothing is bought ahead with each of them.
    """
    unnoted = replace(presets.default, plain=None)
    db = engine(table=np.full(60, 100), settings=config(budget=BUDGETS[Mode.CONCENTRATED], domain=LONG), preset=unnoted)
    db.engine.planner._horizon = Horizon.MANY
    assert "invest" in ranges_asked(db, 1)
    known = db.engine.planner.views().reconstructions.on(("age",))
    before = known.state.information
    query = Product((Mask(("age",), (60,), Steps.ranges([9], [41], 60)),))
    made = filled_up(known, query, Goal(kind=GoalKind.RMSE, amount=12.0))
    assert made is not None
    assert isinstance(made.law, TopUpLaw)
    assert 0.99 * 144 <= made.law.mean_square() <= 144
    assert made.law._rows.mean_square() == pytest.approx(made.law.mean_square(), rel=1e-6)
    assert np.array_equal(known.state.information, before)
    known = known.copy()
    known.add(Block(made.product, np.zeros(made.product.rows, np.int64), made.noise, for_many=True))
    assert filled_up(known, query, Goal(kind=GoalKind.RMSE, amount=13.0)) is None


def test_rent_that_cost_nothing_is_no_reason_to_invest() -> None:
    db = engine(table=np.full(60, 100), settings=config(budget=BUDGETS[Mode.CONCENTRATED], domain=LONG), preset=RENTING)
    db.query("SELECT COUNT(*) FROM people WHERE age < 30", rmse=30)
    rents = db.engine.planner.views().rents
    paid = rents.risen(("age",), all_nodes)
    assert from_units(paid) == pytest.approx(db.budget().spent)
    assert db.query("SELECT COUNT(*) FROM people WHERE age >= 30", rmse=30).charge == 0  # other people
    rents = db.engine.planner.views().rents
    assert rents.risen(("age",), all_nodes) == paid


@pytest.mark.heavy
def test_a_strategy_that_is_not_due_is_dismissed_by_one_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a look dismisses would have lost; what is dismissed too soon would be seen."""

    def session(rival: Direct | None) -> list[tuple[str, float]]:
        preset = Preset("looking", (Exact(), Reconstruct(), Invest(theta=THETA, rival=rival), Direct()))
        db = engine(settings=config(budget=BUDGETS[Mode.PURE]), preset=preset)
        answers = [db.query(text, within=error) for error in (90, 60, 30) for text in SETS[::3]]
        return [(answer.source, answer.charge) for answer in answers]

    reach, looked = invest._reach, session(Direct())
    assert "invest" in {source for source, _ in looked}
    assert looked == session(None)
    monkeypatch.setattr(invest, "_least_reach", lambda questions, mode, beta: 1e-3 * reach(questions[0], mode, beta))
    assert looked == session(Direct())  # a bound that is too low says nothing
    monkeypatch.setattr(invest, "_least_reach", lambda questions, mode, beta: 30 * reach(questions[0], mode, beta))
    assert looked != session(Direct())


def test_a_chance_too_small_to_be_shared_by_rows_is_no_reason_to_refuse() -> None:
    db = engine(settings=config(budget=Budget.of(epsilon=9.0)))
    for age in (3, 5):
        db.query(f"SELECT COUNT(*) FROM people WHERE age < {age} AND sex = 'F'", within=90)
    answer = db.query("SELECT age, sex, COUNT(*) FROM people GROUP BY age, sex", within=200, confidence=1 - 1e-15)
    assert answer.charge > 0
