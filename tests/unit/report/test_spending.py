"""What the budget went into, as the data owner and as an analyst may see it."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

import bursar
from bursar import presets
from bursar.analysts.shares import AnalystSettings, Shares
from bursar.core.budget import Budget
from bursar.core.domain import Neighbours, Unit
from bursar.core.ledger import MemoryLedger, Purpose
from bursar.planner.choose import Preset
from bursar.planner.offer import Offer
from bursar.planner.request import PlanningRequest
from bursar.proposers.direct import Direct
from bursar.proposers.invest import Invest
from bursar.report import spending as spending_module
from bursar.report.spending import losses_by_value
from bursar.report.status import OWNER
from bursar.session import Bursar
from harness.configs import clinic
from harness.small import charter, config, engine

BY_AGE = "SELECT age, COUNT(*) AS n FROM people GROUP BY age"
BY_SEX = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
THREE = "SELECT COUNT(*) AS n FROM people WHERE age = 3"
SEVEN = "SELECT COUNT(*) AS n FROM people WHERE age = 7"

PLAIN = Preset("plain", (Direct(),), plain=Direct())


def test_nothing_was_bought() -> None:
    spending = engine(analyst="owner").spending()
    assert str(spending) == "nothing was bought yet"
    assert str(engine(analyst="ann").spending()) == "nothing was bought yet by ann"
    assert (spending.paid, spending.people, spending.saved) == (0, (), None)


def test_portions_add_up_to_what_is_spent() -> None:
    db = engine(analyst="owner")
    for question in (BY_AGE, BY_SEX, "SELECT COUNT(*) FROM people"):
        db.query(question, within=60)
    db.query(BY_AGE, within=30)
    spending, spent = db.spending(), db.budget().spent
    parts = (spending.by_columns, spending.by_way, spending.by_proposer, spending.by_question, spending.by_analyst)
    for portions in parts:
        assert sum(portion.charge for portion in portions) == pytest.approx(spent)
        assert sorted(portions, key=lambda portion: -portion.charge) == list(portions)
    assert {portion.name for portion in spending.by_columns} >= {"age", "sex"}
    assert [portion.name for portion in spending.by_analyst] == ["owner"]
    assert json.loads(json.dumps(spending.to_json()))["paid"] == pytest.approx(spent)
    for word in ("columns", "bought", "from ", "asked ", "analyst", "people"):
        assert word in str(spending)
    assert "saved" not in str(spending)  # it takes a while, and is worked out where it is asked for
    for word in ("saved ", "Plain noise for each"):
        assert word in str(db.spending(saved=True))


def test_looking_costs_nothing() -> None:
    db = engine(analyst="owner")
    db.query(BY_AGE, within=60)
    before = (len(db.ledger.records()), db.budget().spent)
    db.spending()
    assert (len(db.ledger.records()), db.budget().spent) == before


def test_the_way_of_buying_is_told() -> None:
    db = engine(analyst="owner", preset=PLAIN)
    db.query(THREE, within=60)
    assert [portion.name for portion in db.spending().by_way] == ["rows measured"]
    finer = engine(analyst="owner")
    finer.query(THREE, within=60)
    finer.query(THREE, within=30)
    assert "earlier rows made finer" in {portion.name for portion in finer.spending().by_way}


ASKED = (
    (THREE, {"within": 60}),
    (THREE, {"within": 30}),
    ("SELECT COUNT(*) AS n FROM people WHERE age BETWEEN 2 AND 6", {"within": 30}),
    (BY_SEX, {"within": 40}),
    ("SELECT age, sex, COUNT(*) AS n FROM people GROUP BY age, sex", {"within": 30}),
    ("SELECT COUNT(*) AS n FROM people WHERE age < 7 OR sex = 'F'", {"within": 20}),
    ("SELECT region, COUNT(*) AS n FROM people WHERE age < 5 GROUP BY region", {"within": 20}),
)


PRESETS = {
    "pure": (presets.default, Budget.of(epsilon=40.0)),
    "zcdp": (presets.default, Budget.of(rho=10.0)),
    "histogram": (presets.boost, Budget.of(epsilon=40.0)),
}


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", PRESETS)
def test_spending_names_the_offers_that_were_taken(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each proposer and each question with the money that its offers cost, and with no other."""
    preset, budget = PRESETS[name]
    db = engine(analyst="owner", preset=preset, settings=config(budget=budget, public_size=6000))
    taken: list[str] = []
    choose = db.engine.planner.choose

    def noted(request: PlanningRequest) -> Offer:
        offer = choose(request)
        taken.append(offer.proposer)
        return offer

    monkeypatch.setattr(db.engine.planner, "choose", noted)
    by_proposer, by_question = dict[str, float](), dict[str, float]()
    for question, goal in (*ASKED, *((text, {"within": 15}) for text, _ in ASKED)):
        charge = db.query(question, **goal).charge
        by_question[question] = by_question.get(question, 0.0) + charge
        by_proposer[taken[-1]] = by_proposer.get(taken[-1], 0.0) + charge
    spending = db.spending()
    paid = {proposer: charge for proposer, charge in by_proposer.items() if charge}
    assert len(paid) >= (1 if name == "histogram" else 2)
    assert {each.name: each.charge for each in spending.by_proposer if each.charge} == pytest.approx(paid)
    asked = {question: charge for question, charge in by_question.items() if charge}
    assert {each.name: each.charge for each in spending.by_question if each.charge} == pytest.approx(asked)


def test_only_the_most_expensive_questions_are_printed() -> None:
    db = engine(analyst="owner", preset=PLAIN)
    for age in range(8):
        db.query(
            f"SELECT COUNT(*) AS n FROM people\nWHERE age = {age} /* {'x' * 80} \x1b */", epsilon=0.05 + age / 1000
        )
    told = str(db.spending())
    assert "asked   SELECT COUNT(*) AS n FROM people WHERE age = 7 /* xxx" in told
    assert "(3 more)" in told
    assert "\x1b" not in told
    assert len(db.spending().by_question) == 8


def test_one_who_tests_what_was_learnt_is_named() -> None:
    db = engine(
        analyst="owner", preset=presets.boost, settings=config(budget=Budget.of(epsilon=40.0), public_size=6000)
    )
    db.query(THREE, within=100)
    assert [portion.name for portion in db.spending().by_proposer] == ["pmw"]


def test_counts_measured_one_by_one_are_just_what_was_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bursar.compile.conditions.LARGEST_JOINT", 4)
    few = replace(presets.default, proposers=tuple(p for p in presets.default.proposers if not isinstance(p, Invest)))
    db = engine(analyst="owner", settings=config(budget=Budget.of(epsilon=40.0)), preset=few)
    tied = "COUNT(*) FILTER (WHERE age > 3 OR sex = 'F') AS a"
    db.query(f"SELECT {tied}, COUNT(*) AS n FROM people", within=40)
    db.query(f"SELECT {tied}, COUNT(*) FILTER (WHERE age > 6 OR sex = 'M') AS b FROM people", within=40)
    spending = db.spending(saved=True)
    assert [(portion.name, portion.purchases) for portion in spending.by_proposer] == [("direct", 2), ("one-by-one", 1)]
    assert spending.saved.questions == 2
    assert spending.saved.cached >= spending.saved.spent


def test_reuse_is_compared_over_all_tables(tmp_path: Path) -> None:
    """What was paid for questions about visits is set beside plain noise for them, not beside that for people alone."""
    (tmp_path / "people.csv").write_text("person,sex\na,F\nb,M\n")
    (tmp_path / "visits.csv").write_text("person,ward\na,A\na,B\nb,A\n")
    text = clinic(epsilon=9, visits=2).replace("clinic.duckdb", "people.csv")
    visits = '[tables.visits]\npath = "visits.csv"'
    (tmp_path / "clinic.toml").write_text(text.replace("[tables.visits]", visits))
    with bursar.create(tmp_path / "clinic.toml") as db:
        db.query("SELECT sex, COUNT(*) FROM people GROUP BY sex", within=60)
        db.query("SELECT ward, COUNT(*) FROM visits GROUP BY ward", within=60)
        saved = db.spending(saved=True).saved
        assert saved is not None
        assert saved.questions == 2
        assert saved.spent == pytest.approx(db.budget().spent)
        assert saved.plain == pytest.approx(saved.spent)
        strips = losses_by_value(db.kernel, OWNER, domain=db.config.domain)
        assert list(strips) == ["sex", "visits.ward"]
        assert [value for value, _ in strips["visits.ward"]] == ["A", "B", "C", "other", "NULL"]
        assert sum(strips[name][0][1] for name in strips) == pytest.approx(db.budget().spent)  # with a table's parts
        for used in db.spending().people:
            assert used.top[0][1] == max(loss for _, loss in strips[used.column])


def test_a_batch_is_one_purchase() -> None:
    db = engine(analyst="owner", preset=PLAIN)
    db.batch([BY_AGE, BY_SEX], within=60)
    spending = db.spending(saved=True)
    assert len({portion.name for portion in spending.by_question}) == 1
    assert spending.saved.questions == 1
    assert spending.saved.cached == pytest.approx(spending.saved.spent)


def test_people_of_some_values_are_used_more() -> None:
    db = engine(analyst="owner", preset=PLAIN)
    db.query(THREE, epsilon=0.25)
    db.query(SEVEN, epsilon=0.5)  # about other people: half of one more than those of age 3 have lost
    db.query("SELECT COUNT(*) FROM people WHERE age = 7 AND sex = 'M'", epsilon=0.125)
    age, sex = db.spending().people
    assert [label for label, _ in age.top[:2]] == ["7", "3"]
    assert [used for _, used in age.top] == pytest.approx([0.75 + 0.125, 0.25, 0.0], rel=1e-5)
    assert age.rest == 0
    assert not age.alike
    assert dict(sex.top) == pytest.approx({"M": 0.875, "F": 0.75}, rel=1e-5)
    assert age.top[0][1] == pytest.approx(db.budget().spent)
    assert "by age: 7 0.875" in str(db.spending())


def test_nobody_is_said_to_have_lost_more_than_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spending_module, "MOST_JOINT", 0)  # losses are then added up column by column
    db = engine(analyst="owner", preset=PLAIN)
    db.query(THREE, epsilon=0.25)
    db.query("SELECT COUNT(*) FROM people WHERE age = 7 AND sex = 'F'", epsilon=0.25)
    spending, spent = db.spending(), db.budget().spent
    assert spent == pytest.approx(0.5, rel=1e-5)
    assert max(amount for used in spending.people for _, amount in used.top) <= spent
    assert "(the most that was learnt about anyone with that value; never more than what is spent)" in str(spending)


def test_notebooks_show_budget_and_spending() -> None:
    db = engine(analyst="owner", preset=PLAIN)
    db.query(BY_SEX, epsilon=0.25)
    budget, spending = db.budget()._repr_html_(), db.spending()._repr_html_()
    assert "<td>spent</td><td>epsilon 0.25" in budget
    assert "nobody&#x27;s presence" in budget
    assert spending.startswith("<pre>columns sex")


def test_where_the_value_makes_no_difference() -> None:
    db = engine(analyst="owner", preset=PLAIN)
    db.query(BY_SEX, epsilon=0.25)
    (used,) = db.spending().people
    assert used.alike
    assert "whatever the value" in str(db.spending())


def test_a_few_values_that_are_alike_are_not_all() -> None:
    db = engine(analyst="owner", preset=PLAIN)
    db.query("SELECT COUNT(*) FROM people WHERE age IN (2, 5, 8)", epsilon=0.25)
    (used,) = db.spending().people
    assert not used.alike
    assert used.rest == 0
    assert "by age: 2 0.25, 5 0.25, 8 0.25; others at most 0" in str(db.spending())


@pytest.mark.parametrize("mode", [{"epsilon": 1.0}, {"rho": 0.5}])
def test_direct_purchases_save_nothing(mode: dict[str, float]) -> None:
    db = engine(analyst="owner", preset=PLAIN, settings=config(budget=Budget.of(**mode)))
    for question in (BY_AGE, BY_SEX, THREE):
        db.query(question, rmse=30)
    saved = db.spending(saved=True).saved
    assert saved.questions == 3
    assert saved.cached == pytest.approx(saved.spent, rel=1e-5)
    assert saved.plain >= saved.cached


def test_remembering_saves() -> None:
    db = engine(analyst="owner")
    for high in range(1, 9):
        db.query(f"SELECT COUNT(*) FROM people WHERE age <= {high}", within=60)
    saved = db.spending(saved=True).saved
    assert saved.questions == 8  # those that were free are counted
    assert saved.cached > 1.3 * saved.spent
    assert saved.spent == pytest.approx(db.budget().spent)


def test_versions_are_kept_apart() -> None:
    db = engine(analyst="owner", preset=PLAIN)
    db.query(THREE, epsilon=0.25)
    db.owner.declare_version()
    db.query(SEVEN, epsilon=0.125)
    spending = db.spending(saved=True)
    assert spending.people[0].top[0] == ("7", pytest.approx(0.125))
    assert spending.saved.cached == pytest.approx(0.375, rel=1e-5)


def test_replaced_people_and_sequential_composition() -> None:
    unit = Unit(neighbours=Neighbours.REPLACE_ONE)
    replaced = engine(analyst="owner", preset=PLAIN, settings=config(unit=unit, public_size=1000))
    replaced.query(THREE, within=60)
    assert replaced.spending().people[0].top[0][0] == "3"
    published = engine(analyst="owner", preset=presets.cachedp)
    published.query(BY_AGE, within=60)
    assert published.spending().people == ()
    assert published.spending().paid == pytest.approx(published.budget().spent)


def shared(policy: str = "shared") -> tuple[Bursar, Bursar, Bursar]:
    """Ann, Bob and the owner, in front of one ledger."""
    shares = Shares({"ann": Fraction(1, 2), "bob": Fraction(1, 2)})
    settings = config(analysts=AnalystSettings(policy=policy, shares=shares))
    owner = engine(settings=settings, analyst="owner")
    owner.owner.declare_shares()
    doors = [
        Bursar(
            settings,
            owner.ledger,
            open_source=owner.engine.open_source,
            randomness=owner.engine.randomness,
            analyst=name,
        )
        for name in ("ann", "bob")
    ]
    return doors[0], doors[1], owner


@pytest.mark.parametrize("policy", ["shared", "independent"])
def test_an_analyst_learns_nothing_about_the_questions_of_others(policy: str) -> None:
    ann, bob, owner = shared(policy)
    ann.query(BY_SEX, within=60)
    before = ann.spending(saved=True)
    bob.query(BY_AGE, within=60)
    bob.query("SELECT region, COUNT(*) FROM people GROUP BY region", within=60)
    assert ann.spending(saved=True) == before
    assert "by age" not in str(before)
    assert '"age' not in json.dumps(before.to_json())
    assert "bob" not in json.dumps(before.to_json())
    assert before.by_analyst == ()
    assert before.paid == pytest.approx(ann.budget().accounts[0].spent)
    everybody = owner.spending()
    assert {portion.name for portion in everybody.by_analyst} == {"ann", "bob"}
    assert {portion.name for portion in everybody.by_columns} == {"sex", "age", "region"}


def test_what_is_no_question_is_told_apart() -> None:
    """A log that cannot be read as questions is still added up."""
    db = engine(analyst="owner", preset=PLAIN)
    db.query(THREE, epsilon=0.25)
    foreign = config(table="patients")
    other = engine(analyst="owner", preset=PLAIN, settings=foreign, ledger=_copy(db, foreign))
    spending = other.spending(saved=True)
    assert (spending.saved.questions, spending.saved.cached) == (0, pytest.approx(0.25))
    assert spending.paid == pytest.approx(0.25)


def _copy(db: Bursar, settings: object) -> MemoryLedger:
    ledger, texts = MemoryLedger(charter(settings)), db.ledger.texts()
    for record in db.ledger.records():
        ledger.commit(
            lambda transaction, r=record: transaction.append(
                analyst=r.analyst, purpose=Purpose(texts[r.question], r.proposer), event=r.event, values=r.values
            )
        )
    return ledger
