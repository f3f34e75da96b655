"""All thresholds over sets of columns: asked from Python, and against the same question in SQL."""

from __future__ import annotations

import itertools
import sys
from datetime import date
from typing import Any

import numpy as np
import pytest

from bursar.answer import Answer
from bursar.compile import threshold_rows as module
from bursar.compile.threshold_rows import thresholds
from bursar.compile.workload import Labels, Numbers, read
from bursar.core.accounting import Mode
from bursar.core.budget import Budget
from bursar.core.domain import Categories, Dates, Domain, IntegerRange, Neighbours, Period, Unit
from bursar.core.queries import Product, Stack, Thresholds
from bursar.errors import BudgetError, GoalError, QueryError
from bursar.estimation.simultaneous import Family
from bursar.planner.choose import MOST_PLANNED
from bursar.session import Bursar
from bursar.strategies.best import best_strategy
from bursar.views.measurements import products_of
from harness.small import DOMAIN, Silence, config, counts, engine

PATIENT = Domain(
    (
        Categories(name="smoker", values=("yes", "no"), null=0),
        IntegerRange(name="visits", lower=0, upper=2),
        Dates(name="since", first=date(2024, 1, 1), last=date(2024, 1, 3), by=Period.DAY),
    )
)


def exact() -> Bursar:
    """An engine whose answers have no noise."""
    return engine(randomness=Silence(), settings=config(budget=Budget.of(rho=1000.0)))


@pytest.fixture
def db() -> Bursar:
    return exact()


def by_hand(names: tuple[str, ...], r: int) -> list[int]:
    """Def. 2.4, cell by cell."""
    table = counts()
    axes = [DOMAIN.names.index(name) for name in names]
    found = []
    for y in itertools.product(*(range(DOMAIN[name].size) for name in names)):
        agree = sum(np.indices(table.shape)[axis] == value for axis, value in zip(axes, y, strict=True))
        found.append(int(table[agree >= r].sum()))
    return found


@pytest.mark.parametrize(("k", "r"), [(k, r) for k in (1, 2, 3) for r in range(1, k + 1)])
def test_answers_are_the_counts_of_the_definition(db: Bursar, k: int, r: int) -> None:
    answer = db.thresholds(k, r, within=50)
    sets = list(itertools.combinations(DOMAIN.names, k))
    counts = [count for names in sets for count in by_hand(names, r)]
    assert [value for (value,) in answer.values] == pytest.approx(counts, abs=1e-9)  # pairs come from least squares
    assert len(answer.labels) == len(answer.values)
    assert answer.outputs == ("count",)


CONDITIONS = ["age = {}", "sex = '{}'", "region = '{}'"]


@pytest.mark.parametrize("r", [1, 2, 3])
def test_sql_and_python_agree(r: int) -> None:
    asked, spoken = exact(), exact()
    answer = asked.thresholds(3, r, features=["age", "sex", "region"], within=50)
    for line in (0, 17, 33, 59):
        label = answer.labels[line]
        written = ", ".join(one.format(value) for one, value in zip(CONDITIONS, label, strict=True))
        sql = f"SELECT COUNT(*) FROM people WHERE AT_LEAST({r}, {written})"
        assert spoken.query(sql, within=50).value == pytest.approx(answer.values[line][0])


def test_labels_name_their_columns_where_there_are_several_sets(db: Bursar) -> None:
    answer = db.thresholds(2, 1, features=[("sex", "region"), ("region", "age")], within=500)
    assert answer.keys == ("columns", "value 1", "value 2")
    assert answer.labels[0] == ("sex, region", "F", "north")
    assert answer.labels[5] == ("sex, region", "M", "east")
    assert answer.labels[6] == ("region, age", "north", 0)
    assert answer.labels[-1] == ("region, age", "east", 9)
    assert answer.rows[6]["value 2"] == 0
    one = db.thresholds(2, 1, features=[("sex", "region")], within=500)
    assert one.keys == ("sex", "region")
    assert (one.rows[4]["sex"], one.rows[4]["region"]) == ("M", "south")


def test_nothing_is_paid_to_look_at_the_price(db: Bursar) -> None:
    before = db.budget().left
    shown = db.thresholds(2, 1, within=50, explain=True)
    assert db.budget().left == before
    assert {line.proposer for line in shown.offers} == {"direct"}
    assert 0 < shown.price < np.inf
    answer = db.thresholds(2, 1, within=50)
    assert answer.charge == pytest.approx(shown.price)
    assert answer.error <= 50
    again = db.thresholds(2, 1, within=50)
    assert (again.free, again.source, again.values) == (True, "exact", answer.values)


def test_a_key_gives_the_same_bytes(db: Bursar) -> None:
    first = db.thresholds(2, 1, within=50, key="k")
    assert db.thresholds(2, 1, within=50, key="k") == first
    assert isinstance(first.values, Numbers)
    assert isinstance(first.labels, Labels)
    assert hash(first.values) == hash(Answer.from_bytes(first.to_bytes()).values)
    assert first.values != ()


def test_marginals_answer_questions_that_follow_from_them(db: Bursar) -> None:
    marginal = db.thresholds(2, 2, features=["sex", "region"], within=20)
    free = db.query("SELECT sex, COUNT(*) FROM people GROUP BY sex", within=100)
    assert free.free
    held = np.asarray(marginal.values).reshape(2, 3).sum(axis=1)
    assert [value for (value,) in free.values] == pytest.approx(held.tolist())


def test_thresholds_do_not_disturb_what_is_learnt_from_products(db: Bursar) -> None:
    db.thresholds(2, 1, within=20)
    (first, *_) = db.query("SELECT sex, COUNT(*) FROM people GROUP BY sex", within=100).values
    assert first == pytest.approx((counts().sum((0, 2))[0],))
    mixed = Stack((thresholds(DOMAIN, k=2, r=1, features=["age", "sex"]).map, Product(())))
    assert products_of(mixed) == ()  # rows of others lie between those of the products
    with pytest.raises(QueryError, match="no strategy"):
        best_strategy(mixed, Mode.PURE)


def test_the_simultaneous_contract_has_no_thresholds() -> None:
    db = engine(settings=config(family=Family(domain=DOMAIN, sets=(("age", "sex"),))))
    for features in (["age", "sex"], None):
        with pytest.raises(QueryError, match="has no thresholds"):
            db.thresholds(2, 1, features, within=50)


@pytest.mark.parametrize(("neighbours", "times"), [(Neighbours.ADD_REMOVE, 1), (Neighbours.REPLACE_ONE, 2)])
def test_a_marginal_costs_twice_where_a_person_is_replaced(neighbours: Neighbours, times: int) -> None:
    settings = config(budget=Budget.of(rho=1000.0), unit=Unit(neighbours=neighbours), public_size=1000)
    own = engine(settings=settings).thresholds(3, 3, within=50, explain=True)
    once = engine(settings=config(budget=Budget.of(rho=1000.0))).thresholds(3, 3, within=50, explain=True)
    assert own.price == pytest.approx(times * once.price)


def test_refusals_come_before_anything_is_spent() -> None:
    db = engine()
    before = db.budget().left
    with pytest.raises(BudgetError):
        db.thresholds(3, 2, within=1)
    with pytest.raises(GoalError):
        db.thresholds(3, 2)
    assert db.budget().left == before


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"k": 4, "r": 2}, "no 4 columns"),
    ({"k": 0, "r": 0}, "k is at least 1"),
    ({"k": 2, "r": 3}, "not for 3 of 2"),
    ({"k": 2, "r": 0}, "not for 0 of 2"),
    ({"k": 2, "r": 1, "features": []}, "no 2 columns"),
    ({"k": 2, "r": 1, "features": ["age", "height"]}, "no column height"),
    ({"k": 2, "r": 1, "features": ["age", ("sex", "age")]}, "columns, or sets"),
    ({"k": 2, "r": 1, "features": [("age", "sex", "region")]}, "2 different columns"),
    ({"k": 2, "r": 1, "features": [("age", "age")]}, "2 different columns"),
    ({"k": 2, "r": 1, "features": [("age", "sex"), ("sex", "age")]}, "named twice"),
]


@pytest.mark.parametrize(("asked", "why"), WRONG)
def test_questions_that_make_no_sense_are_refused(db: Bursar, asked: dict[str, Any], why: str) -> None:
    with pytest.raises(QueryError, match=why):
        db.thresholds(**asked, within=50)


def test_too_many_are_refused_from_public_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ROWS", 55)
    assert thresholds(DOMAIN, k=2, r=1, features=["age", "sex", "region"][:2]).map.rows == 20
    with pytest.raises(QueryError, match="these are 56 thresholds; 55 are possible"):
        thresholds(DOMAIN, k=2, r=1)


def test_partitions_that_are_not_sealed_are_refused() -> None:
    growing = Domain(DOMAIN.attributes, partition="age")
    assert thresholds(growing, k=2, r=1, sealed=10).map.rows == 56
    with pytest.raises(QueryError, match="not all partitions of age are sealed"):
        thresholds(growing, k=2, r=1, sealed=3)


def test_every_value_of_a_column_has_a_line() -> None:
    workload = thresholds(PATIENT, k=2, r=1)
    sizes = PATIENT.sizes(PATIENT.names)
    assert len(workload.labels) == workload.map.rows == sum(a * b for a, b in itertools.combinations(sizes, 2))
    assert workload.labels[0][1] == "yes"
    assert isinstance(workload.labels, Labels)
    assert list(workload.labels) == [workload.labels[line] for line in range(len(workload.labels))]
    with pytest.raises(IndexError):
        workload.labels[len(workload.labels)]


def test_marginals_are_products_and_the_rest_thresholds() -> None:
    assert isinstance(thresholds(DOMAIN, k=3, r=3).map, Product)
    assert isinstance(thresholds(DOMAIN, k=3, r=2).map, Thresholds)
    several = thresholds(DOMAIN, k=2, r=1).map
    assert isinstance(several, Stack)
    assert {type(part) for part in several.parts} == {Thresholds}


def test_dates_and_everything_else_survive_being_stored() -> None:
    labels = thresholds(PATIENT, k=2, r=1).labels
    numbers = Numbers(np.array([[1.0], [np.inf]]))
    facts: dict[str, Any] = dict.fromkeys(("question", "goal", "contract", "source", "note", "unit"), "")
    small: dict[str, Any] = dict.fromkeys(("confidence", "reused", "bought", "charge", "left", "total"), 0)
    tables: Any = {"labels": labels, "values": numbers, "low": numbers, "high": numbers}
    answer = Answer(keys=("columns",), outputs=("count",), **facts, **small, **tables)
    assert Answer.from_bytes(answer.to_bytes()) == answer
    assert any(isinstance(value, date) for label in answer.labels for value in label)
    assert read({"another": 1}) is None


@pytest.mark.heavy
def test_a_million_numbers_have_no_object_each() -> None:
    """A column of a million lines takes the bytes of its numbers and no more."""
    wide = Domain(tuple(IntegerRange(name=name, lower=0, upper=99, null=0) for name in "abc"))
    settings = config(domain=wide, budget=Budget.of(rho=1000.0))
    db = engine(table=np.ones(wide.sizes(wide.names), np.int64), settings=settings, randomness=Silence())
    answer = db.thresholds(3, 2, within=5000)
    assert len(answer.labels) == len(answer.values) == 10**6 > MOST_PLANNED
    assert answer.labels[123_456] == (12, 34, 56)
    assert answer.values[123_456] == (1 + 3 * 99,)
    assert isinstance(answer.values, Numbers)
    assert answer.values.array.nbytes == 8 * 10**6
    assert sys.getsizeof(answer.labels) < 200
    assert db.thresholds(3, 3, within=5000, explain=True).offers[0].proposer == "direct"
