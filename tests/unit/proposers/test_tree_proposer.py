"""Nodes of trees: bought once, shared by questions, refined when more is asked, filled up where that is free."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.core.accounting import Measured, Mode, Refined
from bursar.core.budget import Budget
from bursar.core.domain import Categories, Domain, IntegerRange
from bursar.core.queries import Mask, Product, Steps
from bursar.planner.choose import Preset
from bursar.planner.goals import Wanted
from bursar.proposers.buying.purchase import finer
from bursar.proposers.direct import Direct
from bursar.proposers.reuse import Exact, Reconstruct, Refine
from bursar.proposers.tree import Tree, all_nodes, candidate_nodes
from bursar.session import Bursar
from bursar.views.nodes import boxes_of
from harness.small import Silence, config, engine

DOMAIN = Domain(
    (
        IntegerRange(name="age", lower=0, upper=99, null=0),
        Categories(name="sex", values=("F", "M"), outside=0, null=0),
    )
)
THETA = {Mode.PURE: 0.3, Mode.CONCENTRATED: 1.0}
BUYING = Preset("buying", (Exact(), Reconstruct(), Tree(theta=THETA), Refine(), Direct()))
ASKING = Preset("asking", (Exact(), Reconstruct(), Direct()))
TABLE = np.random.default_rng(7).integers(0, 60, (100, 2))


def small(preset: Preset = BUYING, budget: Budget | None = None) -> Bursar:
    settings = config(domain=DOMAIN, budget=budget or Budget.of(epsilon=50.0))
    return engine(table=TABLE, settings=settings, preset=preset)


def between(low: int, high: int) -> str:
    return f"SELECT COUNT(*) FROM people WHERE age BETWEEN {low} AND {high}"


def events(db: Bursar) -> list[object]:
    return [record.event for record in db.ledger.records()]


@pytest.mark.heavy
def test_overlapping_ranges_cost_less_than_asked_one_by_one() -> None:
    spent = {}
    for preset in (ASKING, BUYING):
        db = small(preset)
        for low in range(60):
            db.query(between(low, low + 30), within=40)
        spent[preset.name] = db.budget().spent
    assert spent["buying"] < 0.5 * spent["asking"]


def test_a_question_at_a_finer_goal_refines_what_was_bought() -> None:
    """The finest noise is what is paid for in the end, not the sum of the steps."""
    db, once = small(), small()
    for error in (80, 40, 20):
        db.query(between(10, 41), within=error)
    once.query(between(10, 41), within=20)
    assert any(isinstance(event, Refined) for event in events(db))
    assert db.budget().spent <= 1.05 * once.budget().spent


def test_own_rows_are_refined_too() -> None:
    question = "SELECT sex, COUNT(*) FROM people GROUP BY sex"
    preset = Preset("own rows", (Exact(), Reconstruct(), Refine(), Direct()))
    db, once = small(preset), small(preset)
    first = db.query(question, within=80)
    again = db.query(question, within=10)
    assert (first.source, again.source) == ("direct", "refine")
    once.query(question, within=10)
    assert db.budget().spent == pytest.approx(once.budget().spent, rel=0.05)
    assert db.query(question, within=10).charge == 0


def test_nodes_that_nobody_asked_for_come_free_and_answer_later() -> None:
    db = small()
    answer = db.query(between(10, 41), within=30)
    assert "more at no cost" in answer.note
    assert db.query(between(60, 62), within=30).charge == 0
    alone = small(Preset("no room", (Exact(), Reconstruct(), Tree(theta=THETA), Direct())))
    price = alone.explain(between(10, 41), within=30).price
    assert answer.charge == price


def test_everything_bought_is_a_node() -> None:
    db = small()
    db.query(between(10, 41), within=30)
    db.query("SELECT COUNT(*) FROM people WHERE age BETWEEN 3 AND 20 AND sex = 'F'", within=30)
    strategies = [event.strategy for event in events(db) if isinstance(event, Measured)]
    assert strategies
    assert all(all_nodes(strategy) for strategy in strategies)
    whole = Product((Mask(("age",), (100,), Steps.total(100)),))
    assert not all_nodes(whole)


def test_answers_are_right_without_noise() -> None:
    """Every weight is checked by answers that have to be exact when nothing is added to the rows."""
    settings = config(domain=DOMAIN, budget=Budget.of(epsilon=50.0))
    db = engine(table=TABLE, settings=settings, preset=BUYING, randomness=Silence())
    for low, high in ((10, 41), (0, 99), (37, 38), (5, 77)):
        answer = db.query(between(low, high), within=30)
        assert answer.values[0][0] == pytest.approx(TABLE[low : high + 1].sum(), abs=1e-6)


def test_it_bids_below_its_price_and_says_why() -> None:
    db = small(Preset("rent first", (Exact(), Reconstruct(), Tree(theta={**THETA, Mode.PURE: 1.0}), Direct())))
    assert db.query(between(10, 41), within=30).source == "direct"
    eager = small()
    assert eager.query(between(10, 41), within=30).source == "tree"


@pytest.mark.parametrize(
    "question",
    [
        "SELECT COUNT(*) FROM people",
        "SELECT COUNT(*) FROM people WHERE (age < 30 AND sex = 'F') OR age > 90",
    ],
)
def test_questions_without_nodes_are_left_to_others(question: str) -> None:
    db = small()
    request = db.engine.prepare(question, Wanted(within=30), None)
    assert Tree(theta=THETA).offers(request, db.engine.planner.views()) == []


def test_a_price_as_goal_is_left_to_others() -> None:
    db = small()
    request = db.engine.prepare(between(1, 50), Wanted(epsilon=0.1), None)
    assert Tree(theta=THETA).offers(request, db.engine.planner.views()) == []
    assert Refine().offers(request, db.engine.planner.views()) == []


def test_gaussian_rows_are_bought_beside_the_old_ones() -> None:
    db = small(ASKING, Budget.of(rho=5.0))
    db.query("SELECT age, COUNT(*) FROM people GROUP BY age", within=30)
    request, views = db.engine.prepare(between(10, 41), Wanted(within=30), None), db.engine.planner.views()
    candidates = candidate_nodes(request.workload.map, ("age",), views)
    assert candidates is not None
    assert any(candidates.nodes)
    made = finer(candidates, 0.05, views)
    assert [event.strategy.rows for event in made if isinstance(event, Measured)] == [len(candidates.nodes)]


def test_boxes_stand_where_the_view_says() -> None:
    db = small()
    db.query(between(10, 41), within=30)
    db.query(between(10, 41), within=10)
    views = db.engine.planner.views()
    for box, node in views.nodes.over(("age",)).items():
        strategy = views.nodes.strategies[node.block]
        assert isinstance(strategy, Product)
        found = boxes_of(strategy, ("age",), DOMAIN)
        assert found is not None
        assert found[node.row] == box
