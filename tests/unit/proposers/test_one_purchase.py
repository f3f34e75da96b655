"""Answers under the simultaneous contract: from one purchase each, with its own share; others are refused."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest

from bursar import presets
from bursar.answer import Answer
from bursar.core.accounting import Measured, Mode
from bursar.core.budget import Budget
from bursar.core.domain import Domain, IntegerRange
from bursar.errors import BudgetError, GoalError, QueryError
from bursar.estimation.simultaneous import EveryQuestion, Family, share
from bursar.planner.choose import Preset
from bursar.planner.goals import Wanted
from bursar.planner.offer import Offer
from bursar.planner.request import PlanningRequest
from bursar.proposers.direct import Direct
from bursar.proposers.reuse import Exact, Reconstruct, Refine
from bursar.proposers.simultaneous import Estimators, OnePurchase, Reuse, purchases
from bursar.proposers.tree import Tree
from bursar.session import Bursar
from harness.small import DOMAIN, Silence, config, counts, engine

FAMILY = Family(domain=DOMAIN, sets=(("age", "sex"), ("region",)))
BUDGETS = {
    Mode.PURE: Budget.of(epsilon=20.0),
    Mode.CONCENTRATED: Budget.of(rho=2.0),
    Mode.RENYI: Budget.of(epsilon=20.0, delta=1e-6, accountant="rdp"),
}
BY_AGE = "SELECT age, COUNT(*) AS n FROM people GROUP BY age"
FOUR = "SELECT COUNT(*) FROM people WHERE age = 4"


def small(*, family: Family = FAMILY, budget: Budget = BUDGETS[Mode.PURE], **rest: object) -> Bursar:
    return engine(settings=config(family=family, budget=budget, **rest))


def bought(db: Bursar) -> list[Measured]:
    return [record.event for record in db.ledger.records() if isinstance(record.event, Measured)]


@pytest.mark.parametrize("mode", list(Mode))
def test_rows_and_sums_of_one_purchase_are_free(mode: Mode) -> None:
    db = small(budget=BUDGETS[mode])
    first = db.query(BY_AGE, within=30)
    again, one = db.query(BY_AGE, within=30), db.query(FOUR, within=30)
    few = db.query("SELECT COUNT(*) FROM people WHERE age BETWEEN 2 AND 4", within=200)
    assert [answer.free for answer in (first, again, one, few)] == [False, True, True, True]
    assert again.values == first.values
    assert one.value == first.values[4][0]
    assert few.value == pytest.approx(sum(first.values[age][0] for age in (2, 3, 4)))
    assert {answer.contract for answer in (first, again, one, few)} == {"simultaneous"}
    assert one.error == first.error  # the bar of a number does not depend on what it is asked with
    assert len(bought(db)) == 1


def test_rows_of_two_purchases_are_not_put_together() -> None:
    sums = "SELECT COUNT(*) FROM people WHERE age BETWEEN {} AND {}"
    asked = {sums.format(0, 2): 20, sums.format(3, 5): 20, sums.format(0, 5): 200}
    preset = Preset("mixing", (Exact(), Reconstruct(), Direct()))
    for family, reused in ((None, [0, 0, 2]), (FAMILY, [0, 0, 0])):
        db = engine(settings=config(family=family, budget=BUDGETS[Mode.PURE]), preset=preset)
        assert [db.query(text, within=error).reused for text, error in asked.items()] == reused


def test_without_noise_every_answer_is_the_truth() -> None:
    db = engine(settings=config(family=FAMILY, budget=BUDGETS[Mode.PURE]), randomness=Silence())
    for low in range(0, 10, 3):
        for high in range(low, 10, 2):
            text = f"SELECT COUNT(*) FROM people WHERE age BETWEEN {low} AND {high} AND sex = 'F'"
            assert db.query(text, within=60).value == pytest.approx(counts()[low : high + 1, 0].sum())
    assert {line.kind for line in db.log()} == {"measured"}  # nothing is ever refined


@pytest.mark.parametrize("mode", list(Mode))
def test_a_goal_is_kept_with_the_share_of_the_purchase(mode: Mode) -> None:
    db = small(budget=BUDGETS[mode])
    for number, age in enumerate(range(5), start=1):
        request = db.engine.prepare(f"SELECT COUNT(*) FROM people WHERE age = {age}", Wanted(within=40), None)
        offer = db.engine.planner.choose(request)
        assert isinstance(offer.law, EveryQuestion)
        assert offer.law.times == pytest.approx(1 / share(number))  # one row, one question
        answer = db.engine.ask(request)
        assert answer.error <= 40
        assert f"purchase {number}" in answer.note
    prices = [line.noise for line in db.log() if line.kind == "measured"]
    assert len(set(prices)) == 5  # each purchase has less failure probability to give, and so less noise


def test_a_new_version_counts_from_one() -> None:
    db = small()
    for age in range(4):
        db.query(f"SELECT COUNT(*) FROM people WHERE age = {age}", within=40)
    assert [p.number for p in purchases(db.engine.planner.views().measurements)] == [1, 2, 3, 4]
    db.owner.declare_version()
    assert purchases(db.engine.planner.views().measurements) == []
    db.query("SELECT COUNT(*) FROM people WHERE age = 9", within=40)
    scales = [event.noise.scale for event in bought(db)]
    assert scales[-1] == scales[0] > scales[1]


def test_each_purchase_is_its_own_family_and_widens_later_ones() -> None:
    """The bars of an old purchase stay what they were, whatever is bought afterwards."""
    db = small()
    before = db.query(BY_AGE, within=30)
    for sex in ("F", "M"):
        db.query(f"SELECT COUNT(*) FROM people WHERE sex = '{sex}'", within=10)
    assert replace(db.query(BY_AGE, within=30), left=0, charge=0) == replace(
        before, left=0, charge=0, source="reuse", note="measured before, record 2", reused=10, bought=0
    )


RANGES = [f"SELECT COUNT(*) FROM people WHERE age BETWEEN {a} AND {b}" for a in range(10) for b in range(a, 10)]


@pytest.mark.heavy
@pytest.mark.parametrize("mode", list(Mode))
def test_investments_pay_off(mode: Mode) -> None:
    renting, investing = (
        engine(settings=config(family=FAMILY, budget=BUDGETS[mode]), preset=preset)
        for preset in (Preset("renting", (Direct(),)), presets.default)
    )
    for db in (renting, investing):
        assert all(db.query(text, within=30).error <= 30 for text in RANGES)
    assert investing.budget().spent < 0.9 * renting.budget().spent


@pytest.mark.heavy
def test_an_investment_answers_the_family() -> None:
    db = small()
    sources = [db.query(text, within=30).source for text in RANGES]
    assert set(sources[sources.index("invest") + 1 :]) == {"reuse"}


def test_a_strategy_for_overlapping_questions_is_one_purchase() -> None:
    db = small()
    parts = ", ".join(f"COUNT(*) FILTER (WHERE age < {age})" for age in range(1, 10))
    answer = db.query(f"SELECT {parts} FROM people", within=40)
    assert (answer.source, len(bought(db))) == ("strategy", 1)
    assert answer.error <= 40


def test_a_histogram_too_large_for_least_squares_answers_itself() -> None:
    domain = Domain((IntegerRange(name="x", lower=0, upper=2999, null=0),))
    settings = config(domain=domain, family=Family(domain=domain, sets=(("x",),)))
    db = engine(table=np.full(3000, 30), settings=settings)
    text = "SELECT x, COUNT(*) FROM people GROUP BY x"
    first, again = db.query(text, within=100), db.query(text, within=100)
    assert (first.free, again.free, again.values) == (False, True, first.values)
    assert not db.query("SELECT COUNT(*) FROM people WHERE x = 5", within=100).free


@pytest.mark.parametrize(
    ("text", "column", "reason", "rewrite"),
    [
        (
            "SELECT COUNT(*) FROM people WHERE age IN (1, 3) AND sex = 'F'",
            "age",
            "one range of neighbouring values",
            "SELECT age, COUNT(*) FROM people WHERE sex = 'F' GROUP BY age",
        ),
        (
            "SELECT COUNT(*) FROM people WHERE age = 1 OR sex = 'F'",
            "age",
            "for age and sex this is none",
            "SELECT age, sex, COUNT(*) FROM people GROUP BY age, sex",
        ),
        (
            "SELECT sex, COUNT(*) FILTER (WHERE age IN (1, 3)) AS n FROM people GROUP BY sex ORDER BY n",
            "age",
            "for age this is none",
            "SELECT age, sex, COUNT(*) AS n FROM people GROUP BY age, sex",
        ),
        (
            "SELECT sex, AVG(age) FROM people GROUP BY sex",
            "age",
            "for age this is none",
            "SELECT age, sex, COUNT(*) FROM people GROUP BY age, sex",
        ),
        (
            "SELECT CASE WHEN age < 3 OR sex = 'F' THEN 'a' ELSE 'b' END AS g, COUNT(*) FROM people GROUP BY g",
            "age",
            "for age and sex this is none",
            "SELECT age, sex, COUNT(*) FROM people GROUP BY age, sex",
        ),
        (
            "SELECT age, region, COUNT(*) FROM people GROUP BY age, region",
            "region",
            r"no questions about age and region \(it has: age and sex; region\)",
            "SELECT age, COUNT(*) FROM people GROUP BY age",
        ),
    ],
)
def test_questions_outside_the_family_are_refused(text: str, column: str, reason: str, rewrite: str) -> None:
    db = small()
    for ask in (db.query, db.explain):
        with pytest.raises(QueryError, match=reason) as refused:
            ask(text, within=50)
        assert refused.value.position == text.index(column)
        assert refused.value.rewrite == rewrite
    assert db.explain(rewrite, within=50).chosen is not None
    with pytest.raises(QueryError, match=reason):
        db.batch([BY_AGE, text], within=50)
    batch = db.batch(within=50)
    batch.query(BY_AGE)
    batch.query(text)
    with pytest.raises(QueryError, match=reason):
        _ = batch.price
    assert (db.budget().spent, bought(db)) == (0, [])


def test_a_rewrite_asks_for_one_error() -> None:
    """Errors of their own are refused as well, so they cannot be part of the way out."""
    db, counts = (
        small(),
        "SELECT COUNT(*) AS n, COUNT(*) FILTER (WHERE age < 3) AS few FROM people WHERE region = 'north'",
    )
    with pytest.raises(QueryError, match="no questions about age and region") as refused:
        db.query(f"{counts} WITH ERROR 600 ON n, 900 ON few")
    assert "ON" not in refused.value.rewrite.split()
    assert db.explain(refused.value.rewrite, within=600).chosen is not None


def test_what_else_is_refused() -> None:
    db = small()
    with pytest.raises(GoalError, match="ask for an error"):
        db.query(BY_AGE, rmse=20)
    with pytest.raises(GoalError, match="public_size is not declared"):
        db.query(BY_AGE, within="2%")
    db.query("SELECT COUNT(*) FROM people", within=50)
    with pytest.raises(GoalError, match="public_size is not declared"):
        db.query(BY_AGE, within="2%")
    assert small(public_size=5000).query(BY_AGE, within="2%").error <= 100


def test_a_refusal_names_a_goal_that_is_then_accepted() -> None:
    db = small(budget=Budget.of(epsilon=1.0))
    with pytest.raises(BudgetError) as refused:
        db.query(BY_AGE, within=2)
    assert db.query(f"{BY_AGE} {refused.value.fits}").charge <= 1.0


def test_a_price_buys_bars_that_hold_for_all_questions() -> None:
    answer, alone = small().query(BY_AGE, epsilon=0.5), engine().query(BY_AGE, epsilon=0.5)
    assert answer.charge == pytest.approx(0.5, rel=1e-6)
    assert answer.error > 1.2 * alone.error  # the same noise, and a promise about 55 questions instead of ten


def test_a_question_about_nobody_and_one_about_everybody() -> None:
    db = small()
    nobody = db.query("SELECT COUNT(*) FROM people WHERE age < 3 AND age > 5", within=1)
    assert (nobody.value, nobody.free) == (0, True)
    assert db.query("SELECT COUNT(*) FROM people", within=50).error <= 50


def test_a_batch_is_one_purchase() -> None:
    db = small()
    both = [BY_AGE, "SELECT region, COUNT(*) FROM people GROUP BY region"]
    batch = db.batch(both, within=40)
    assert len(bought(db)) == 1
    assert all(answer.contract == "simultaneous" and answer.error <= 40 for answer in batch.answers)
    assert db.query(BY_AGE, within=40).free


def test_explain_says_which_contract_is_in_force() -> None:
    shown = small().explain(BY_AGE, within=50)
    assert shown.contract == "simultaneous"
    assert "(simultaneous)" in str(shown)
    assert "(per-query)" in str(engine().explain(BY_AGE, within=50))


def test_a_higher_confidence_has_wider_bars_from_the_same_rows() -> None:
    db = small()
    answers = [db.query(BY_AGE, within=60, confidence=sure) for sure in (0.99, 0.95, 0.5)]
    assert [answer.free for answer in answers] == [False, True, True]
    assert answers[0].error > answers[1].error > answers[2].error


def test_a_purchase_that_was_overtaken_shows_the_bars_of_its_later_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """The share that it was planned with belongs to the other purchase now."""
    db = small()
    other = engine(settings=db.config, ledger=db.ledger, analyst="bob")
    choose, came = db.engine.planner.choose, []

    def slowly(request: PlanningRequest) -> Offer:
        offer = choose(request)
        came.append(other.query("SELECT COUNT(*) FROM people WHERE region = 'north'", within=30))
        return offer

    planned = db.explain(FOUR, within=30)
    monkeypatch.setattr(db.engine.planner, "choose", slowly)
    answer = db.query(FOUR, within=30)
    monkeypatch.undo()
    assert (len(came), len(bought(db))) == (1, 2)
    assert planned.chosen is not None
    assert planned.offers[planned.chosen].error == 30
    assert 30 < answer.error <= 45
    again = db.query(FOUR, within=45)
    assert (again.free, again.values, again.error) == (True, answer.values, answer.error)


def test_threads_take_turns() -> None:
    db = small(budget=Budget.of(epsilon=100.0))
    answers: dict[int, Answer] = {}

    def ask(i: int) -> None:
        answers[i] = db.query(f"SELECT COUNT(*) FROM people WHERE age = {i}", within=10 + i, key=str(i))

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(bought(db)) == 10
    assert all(answers[i].error <= 10 + i for i in range(10))
    assert sorted(answer.note.split()[-1] for answer in answers.values()) == sorted(map(str, range(1, 11)))


def test_a_preset_is_wrapped_and_keeps_its_own_facts() -> None:
    wrapped = presets.under(FAMILY, replace(presets.default, sequential=True), FAMILY.domain)
    assert presets.under(None, presets.default, FAMILY.domain) is presets.default
    assert wrapped.sequential
    assert [one.name for one in wrapped.proposers] == ["reuse", "strategy", "invest", "direct"]
    assert all(isinstance(one, Reuse | OnePurchase) for one in wrapped.proposers)


def test_offers_that_mix_purchases_are_dropped() -> None:
    """A proposer that answers from everything in the log gets no word in, even if somebody wraps it."""
    db = small()
    db.query(BY_AGE, within=30)
    request, views = db.engine.prepare(BY_AGE, Wanted(within=10), None), db.engine.planner.views()
    for inner in (Reconstruct(), Refine(), Tree(theta=presets.NODES)):
        made = OnePurchase(inner, Estimators(FAMILY)).offers(request, views)
        assert all(len(offer.price.events) == 1 and isinstance(offer.price.events[0], Measured) for offer in made)
        assert all(isinstance(offer.law, EveryQuestion) for offer in made)
    assert OnePurchase(Reconstruct(), Estimators(FAMILY)).offers(request, views) == []
