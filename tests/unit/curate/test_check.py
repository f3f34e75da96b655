"""What `check` says is what the config says, and its prices are those that would be charged."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from bursar.config import load
from bursar.core.budget import Budget
from bursar.core.domain import Bins, Categories, Dates, Domain, IntegerRange, Neighbours, Period, Unit
from bursar.curate.check import FIRST_SHARE, check, example_goal, first_question, prices
from bursar.estimation.simultaneous import Family
from bursar.goal import Goal, GoalKind
from harness.small import DOMAIN, config, engine


def test_the_prices_are_those_that_are_charged() -> None:
    settings = config(public_size=1000, goal=Goal(kind=GoalKind.ERROR, amount=40))
    found = prices(settings)
    assert [price.what for price in found][:2] == ["a count", "a histogram of age"]
    for price in found[:-1]:
        answer = engine(settings=settings).query(price.sql, within=price.within)
        assert answer.charge == pytest.approx(price.price)
        assert price.times == int(1.0 / answer.charge)
        assert not price.whole


def test_the_budget_buys_as_many_counts_as_it_says() -> None:
    count = prices(config(goal=Goal(kind=GoalKind.ERROR, amount=40)))[0]
    assert count.times * count.price <= 1 < (count.times + 1) * count.price
    assert count.price == pytest.approx(math.log(20) / 40, rel=0.05)
    assert f"the budget buys {count.times} of these" in str(count)


def test_the_whole_budget_buys_what_it_says() -> None:
    best = prices(config())[-1]
    assert best.whole
    assert best.price == pytest.approx(1.0)
    answer = engine().query(best.sql, epsilon=1.0)
    assert answer.error == pytest.approx(best.within)
    assert str(best).startswith(f"one histogram of age within {best.within:.6g} costs epsilon 1; that is the whole")


def test_a_budget_that_no_question_can_use_up_is_not_said_to_be_spent() -> None:
    best = prices(config(budget=Budget.of(epsilon=1000.0)))[-1]
    assert best.price < 900
    assert not best.whole
    assert "that is the whole budget" not in str(best)


def test_a_price_above_the_budget_is_shown_as_such() -> None:
    settings = config(budget=Budget.of(epsilon=0.001), goal=Goal(kind=GoalKind.ERROR, amount=40))
    dear = prices(settings)[0]
    assert dear.times == 0
    assert "more than the budget" in str(dear)


def test_rows_per_person_make_it_dearer() -> None:
    one = prices(config(unit=Unit(column="p"), goal=Goal(kind=GoalKind.ERROR, amount=40)))[0]
    three = prices(config(unit=Unit(column="p", max_contributions=3), goal=Goal(kind=GoalKind.ERROR, amount=40)))[0]
    assert three.price == pytest.approx(3 * one.price)


ERROR, RMSE = GoalKind.ERROR, GoalKind.RMSE


@pytest.mark.parametrize(
    ("changes", "goal"),
    [
        ({}, Goal(kind=ERROR, amount=100)),
        ({"max_rows": 1000}, Goal(kind=ERROR, amount=5)),
        ({"unit": Unit(column="p", max_contributions=3)}, Goal(kind=ERROR, amount=300)),
        ({"unit": Unit(column="p", max_contributions=100)}, Goal(kind=ERROR, amount=2000)),
        ({"public_size": 500}, Goal(kind=ERROR, amount=5)),
        ({"goal": Goal(kind=ERROR, amount=7, confidence=0.9)}, Goal(kind=ERROR, amount=7, confidence=0.9)),
        ({"goal": Goal(kind=ERROR, amount=7), "public_size": 500}, Goal(kind=ERROR, amount=7)),
        ({"goal": Goal(kind=ERROR, amount=2, percent=True), "public_size": 500}, Goal(kind=ERROR, amount=10)),
        (
            {"goal": Goal(kind=ERROR, amount=2, percent=True, confidence=0.9)},
            Goal(kind=ERROR, amount=100, confidence=0.9),
        ),
        ({"goal": Goal(kind=RMSE, amount=2)}, Goal(kind=RMSE, amount=2)),
        ({"goal": Goal(kind=RMSE, amount=2, percent=True), "public_size": 500}, Goal(kind=RMSE, amount=10)),
    ],
)
def test_examples_are_asked_with_the_goal_of_the_config(changes: dict[str, object], goal: Goal) -> None:
    assert example_goal(config(**changes)) == goal


@pytest.mark.parametrize("goal", [Goal(kind=ERROR, amount=40, confidence=0.8), Goal(kind=RMSE, amount=30)])
def test_the_prices_are_those_of_questions_that_name_no_goal(goal: Goal) -> None:
    settings = config(goal=goal)
    for price in prices(settings)[:-1]:
        assert engine(settings=settings).query(price.sql).charge == pytest.approx(price.price)
        assert ("with a root mean square error of 30, within" in str(price)) == (goal.kind is RMSE)


def test_questions_about_every_kind_of_column() -> None:
    columns = (
        Bins(name="income", edges=(0.0, 10.0, 20.0)),
        Dates(name="joined", first=date(2020, 1, 1), last=date(2020, 12, 31), by=Period.MONTH),
        IntegerRange(name="my age", lower=0, upper=9),
        Categories(name="it's", values=("o'clock", "b")),
    )
    for column in columns:
        found = prices(config(domain=Domain((column,)), table="my table"))
        assert [price.what.split()[-1] for price in found] == [
            "count",
            column.name.split()[-1],
            column.name.split()[-1],
        ]


def test_one_bin_cannot_be_cut() -> None:
    found = prices(config(domain=Domain((Bins(name="a", edges=(0.0, 1.0)),))))
    assert "count" not in [price.what for price in found]


def test_a_family_prices_what_it_covers() -> None:
    settings = config(family=Family(domain=DOMAIN, sets=(("age",),)))
    found = check(settings)
    assert {price.what for price in found.prices} == {"a histogram of age", "one histogram of age"}
    assert found.promise["errors"].startswith("simultaneous")


def test_a_column_too_long_to_look_at_has_no_histogram() -> None:
    found = prices(config(domain=Domain((IntegerRange(name="a", lower=0, upper=9999),))))
    assert [price.what for price in found] == ["a count"]


@pytest.mark.parametrize("budget", [Budget.of(epsilon=1.0), Budget.of(epsilon=0.1), Budget.of(rho=0.1)])
@pytest.mark.parametrize("rows", [1, 3])
def test_the_first_question_costs_little(budget: Budget, rows: int) -> None:
    unit = Unit(column="p", max_contributions=rows)
    first = first_question(config(budget=budget, max_rows=2000, unit=unit))
    assert first is not None
    assert first.sql == "SELECT COUNT(*) FROM people"
    assert FIRST_SHARE / 3 < first.price / budget.amount <= FIRST_SHARE * 1.01
    assert first.unit == budget.mode.unit


def test_words_for_add_remove() -> None:
    found = check(config())
    assert found.promise["protected"].startswith("each row by itself")
    assert "by a factor of at most 2.72" in found.promise["in total"]
    assert found.promise["neighbours"].startswith("add-remove")
    assert "at most 100,000 rows, the budget" in found.promise["public"]
    assert any("several rows" in gap for gap in found.not_promised)
    assert any("privacy.pace" in gap for gap in found.not_promised)


def test_words_for_replace_one_and_a_unit() -> None:
    unit = Unit(column="person", max_contributions=2, neighbours=Neighbours.REPLACE_ONE)
    found = check(config(unit=unit, public_size=500, pace=0.5))
    assert "at most 2 rows of each are counted" in found.promise["protected"]
    assert "between any two guesses" in found.promise["in total"]
    assert "that there are 500 rows" in found.promise["public"]
    assert any("several values of person" in gap for gap in found.not_promised)
    assert not any("privacy.pace" in gap for gap in found.not_promised)


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        (Budget.of(epsilon=1.0, delta=1e-6), "2.72, but for a chance of 1e-06"),
        (Budget.of(rho=0.1), "but for a chance of 1e-06"),
        (Budget.of(epsilon=20.0), "by a factor of more than a thousand: hardly anybody is protected"),
    ],
)
def test_words_for_budgets(budget: Budget, words: str) -> None:
    assert words in check(config(budget=budget)).promise["in total"]


def test_what_is_open_is_said() -> None:
    found = check(replace(config(), unconfirmed=(("budget",), ("columns", "age"))))
    assert found.unconfirmed == ("budget", "columns.age")
    assert "budget, columns.age\ntry: bursar confirm" in str(found)
    assert "confirm" not in str(check(config()))


def test_everything_stands_in_the_json() -> None:
    found = check(config())
    sections = {"dataset", "promise", "not_promised", "prices", "unconfirmed", "changes", "left_out"}
    assert set(found.to_json()) == sections
    assert found.to_json()["prices"][0]["sql"] in str(found)


TWO_TABLES = """
dataset = "clinic"
[source]
path = "people.csv"
table = "people"
max_rows = 1000
[privacy]
unit = { column = "person" }
[budget]
epsilon = 9
[goal]
error = 40
[columns.sex]
values = ["F", "M"]
[tables.visits]
path = "visits.csv"
max_contributions = 3
[tables.visits.columns.ward]
values = ["A", "B"]
"""


def test_every_private_table_is_spoken_of(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("person,sex\na,F\nb,X\n")
    (tmp_path / "visits.csv").write_text("person,ward\na,A\na,Z\nb,Q\n")
    (tmp_path / "bursar.toml").write_text(TWO_TABLES)
    told = check(load(tmp_path / "bursar.toml"), data=tmp_path / "people.csv")
    assert "1 in people, 3 in visits" in told.promise["protected"]
    assert "of people: sex; of visits: ward" in told.promise["public"]
    assert [change.name for change in told.changes or () if change.outside] == ["sex", "visits.ward"]
    of_people, of_visits = (
        [price for price in told.prices if f"FROM {table}" in price.sql and not price.whole]
        for table in ("people", "visits")
    )
    assert of_visits[0].price == pytest.approx(3 * of_people[0].price, rel=0.01), "a person has three times the rows"
