"""The flow as a whole: ask, repeat, reconstruct, refuse, keep keys."""

from __future__ import annotations

import threading
from dataclasses import fields
from datetime import date
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from bursar.answer import Answer
from bursar.core.accounting import Measured, Noise, NoiseKind
from bursar.core.accounting.events import KINDS
from bursar.core.budget import Budget
from bursar.core.domain import Bins, Categories, Dates, Domain, IntegerRange, Neighbours, Period, Unit
from bursar.core.extensions.curator import declare_version
from bursar.core.extensions.partitions import PartitionAxis
from bursar.core.ledger import SqliteLedger
from bursar.core.noise.system import SystemRandomness
from bursar.core.queries import Product
from bursar.engine import OF_A_TABLE
from bursar.errors import BudgetError, GoalError, KeyConflict, LedgerError, QueryError, SourceError
from bursar.planner.explain import Explanation
from bursar.planner.goals import Wanted
from bursar.testing import stage
from harness.small import Silence, TableSource, charter, config, counts, engine

BY_SEX = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"


def test_an_answer_without_noise_is_the_truth() -> None:
    db = engine(randomness=Silence())
    answer = db.query(BY_SEX, within=50)
    assert [line["n"] for line in answer.rows] == counts().sum(axis=(0, 2)).tolist()
    assert [line["sex"] for line in answer.rows] == ["F", "M"]


def test_the_price_shown_is_the_price_charged() -> None:
    db = engine()
    for sql in (BY_SEX, "SELECT COUNT(*) FROM people WHERE age < 5", "SELECT COUNT(*) FROM people WHERE sex = 'F'"):
        shown = db.explain(sql, within=20)
        answer = db.query(sql, within=20)
        assert shown.chosen is not None
        assert answer.charge == shown.offers[shown.chosen].price
    assert sum(line.charge for line in db.log()) == pytest.approx(db.budget().spent, rel=1e-12)


def test_a_repeated_question_is_free_and_gives_the_same_numbers() -> None:
    db = engine()
    first = db.query(BY_SEX, within=50)
    again = db.query(BY_SEX, within=80)
    assert (first.free, again.free, again.source) == (False, True, "exact")
    assert again.values == first.values
    assert again.left == first.left


def test_a_tighter_goal_is_paid_again() -> None:
    db = engine()
    first = db.query(BY_SEX, within=50)
    tighter = db.query(BY_SEX, within=20)
    assert not tighter.free
    assert tighter.error < first.error


def test_rows_of_the_log_answer_what_they_determine() -> None:
    db = engine(randomness=Silence())
    db.query("SELECT age, sex, COUNT(*) FROM people GROUP BY age, sex", within=20)
    answer = db.query("SELECT COUNT(*) FROM people WHERE age < 3 AND sex = 'F'", within=100)
    assert (answer.free, answer.source) == (True, "reconstruct")
    assert answer.value == pytest.approx(counts()[:3, 0].sum())
    elsewhere = db.query("SELECT COUNT(*) FROM people WHERE region = 'north'", within=100)
    assert not elsewhere.free


def test_disjoint_people_cost_the_dearer_question() -> None:
    db = engine()
    db.query("SELECT COUNT(*) FROM people WHERE age < 5", within=20)
    spent = db.budget().spent
    other = db.query("SELECT COUNT(*) FROM people WHERE age >= 5", within=30)
    assert other.free
    assert db.budget().spent == spent


def test_explain_has_the_same_kind_of_error_for_every_way() -> None:
    db = engine(randomness=Silence())
    db.query(BY_SEX, within=20)
    shown = db.explain("SELECT age, sex, COUNT(*) AS n FROM people GROUP BY age, sex", within=30)
    assert "~" not in str(shown)
    again = db.explain(BY_SEX, within=20)
    bars = {line.proposer: line.error for line in again.offers}
    assert bars["exact"] == bars["direct"] == 20  # not half of it, as if there were one group


def test_a_notebook_shows_an_explanation() -> None:
    page = engine().explain(BY_SEX, within=20)._repr_html_()
    assert "<th>goal met</th>" in page
    assert '<tr style="font-weight:bold"><td>direct</td>' in page
    assert "left: epsilon" in page


def test_explain_in_the_sql_costs_nothing() -> None:
    db = engine()
    shown = db.run(f"EXPLAIN {BY_SEX}", Wanted(within=10))
    assert isinstance(shown, Explanation)
    assert "direct" in str(shown)
    assert db.budget().spent == 0


def test_a_query_that_is_an_explanation_is_told_the_right_method() -> None:
    with pytest.raises(QueryError, match="is for `explain`") as refused:
        engine().query(f"EXPLAIN {BY_SEX}", within=10)
    assert refused.value.rewrite == BY_SEX


def test_a_typing_mistake_names_the_argument() -> None:
    with pytest.raises(TypeError, match="whithin"):
        engine().query(BY_SEX, whithin=10)  # type: ignore[call-arg]


def test_a_question_that_no_row_can_match_is_zero_and_free() -> None:
    db = engine()
    answer = db.query("SELECT COUNT(*) FROM people WHERE age < 3 AND age > 5", within=1)
    assert (answer.value, answer.error, answer.free) == (0, 0, True)


def test_a_refusal_names_a_goal_that_is_then_accepted() -> None:
    db = engine()
    with pytest.raises(BudgetError) as refused:
        db.query(BY_SEX, within=2)
    assert db.budget().spent == 0
    answer = db.query(f"{BY_SEX} {refused.value.fits}")
    assert isinstance(answer, Answer)
    assert answer.charge <= 1.0


def test_max_cost_refuses_and_names_what_it_would_buy() -> None:
    db = engine()
    with pytest.raises(BudgetError, match="the most you would pay") as refused:
        db.query(BY_SEX, within=20, max_cost=0.01)
    assert db.query(f"{BY_SEX} {refused.value.fits}", max_cost=0.01).charge <= 0.01


def test_the_budget_ends_exactly_where_it_is_declared() -> None:
    db = engine(settings=config(budget=Budget.of(epsilon=0.5)))
    db.query(BY_SEX, epsilon=0.5)
    assert 0 <= db.budget().left < 1e-6
    with pytest.raises(BudgetError):
        db.query("SELECT COUNT(*) FROM people", within=1)


def test_a_key_gives_the_same_bytes_and_is_bound_to_its_question() -> None:
    db = engine()
    first = db.query(BY_SEX, within=50, key="monday")
    assert db.query(BY_SEX, within=50, key="monday") == first
    with pytest.raises(KeyConflict):
        db.query("SELECT COUNT(*) FROM people", within=50, key="monday")
    with pytest.raises(KeyConflict):
        db.query(BY_SEX, within=40, key="monday")
    assert len([line for line in db.log() if line.kind == "measured"]) == 1


def test_keys_belong_to_their_analyst() -> None:
    ana = engine()
    bob = engine(ledger=ana.ledger, analyst="bob")
    ana.query(BY_SEX, within=50, key="k")
    assert bob.query("SELECT COUNT(*) FROM people", within=500, key="k").value is not None


def test_free_answers_can_carry_a_key() -> None:
    db = engine()
    db.query(BY_SEX, within=50)
    free = db.query(BY_SEX, within=50, key="again")
    db.query(BY_SEX, within=5)
    assert free.free
    assert db.query(BY_SEX, within=50, key="again") == free


@pytest.mark.parametrize(
    ("wanted", "error"),
    [({}, GoalError), ({"within": -1}, GoalError), ({"within": 5, "rmse": 5}, GoalError), ({"rho": 0.1}, GoalError)],
)
def test_bad_goals_cost_nothing(wanted: dict[str, float], error: type[Exception]) -> None:
    db = engine()
    with pytest.raises(error):
        db.query(BY_SEX, **wanted)
    with pytest.raises(GoalError):
        db.query(f"{BY_SEX} WITH ERROR 5", within=5)
    assert db.budget().spent == 0


def test_a_price_below_all_prices_is_named() -> None:
    with pytest.raises(GoalError, match="no answer can be that cheap"):
        engine().query(BY_SEX, epsilon=1e-20)


def test_bad_sql_costs_nothing() -> None:
    db = engine()
    with pytest.raises(QueryError):
        db.query("SELECT age FROM people", within=5)
    with pytest.raises(QueryError):
        db.query("SELECT COUNT(*) FROM peeple", within=5)
    assert db.budget().spent == 0


def test_percentages_of_a_public_size() -> None:
    db = engine(settings=config(public_size=5000))
    assert db.query(BY_SEX, within="2%").goal.startswith("WITH ERROR 100 ")


def test_percentages_of_a_measured_size() -> None:
    db = engine(randomness=Silence())
    with pytest.raises(GoalError, match="ask for it once"):
        db.query(BY_SEX, within="2%")
    size = db.query("SELECT COUNT(*) FROM people", within=50)
    answer = db.query(BY_SEX, within="2%")
    asked = float(answer.goal.split()[2])
    assert 0.02 * (size.value - 2 * 50) < asked < 0.02 * size.value
    assert answer.confidence > 0.95  # a share of the failure went to the size


def test_data_that_changed_stop_the_data_set() -> None:
    db = engine()
    db.query(BY_SEX, within=50)
    other = engine(ledger=db.ledger)
    other.engine.open_source(b"").stamp = "changed"
    with pytest.raises(SourceError, match="not the ones that were declared"):
        other.query(BY_SEX, within=5)
    assert other.query(BY_SEX, within=50).free  # what is in the log stays free
    assert other.owner.declare_version() == 2
    assert not other.query(BY_SEX, within=50).free  # rows are reused within their version only


def test_losses_of_versions_add_up_unless_rows_were_only_added() -> None:
    for same_rows in (False, True):
        db = engine()
        before = db.query("SELECT COUNT(*) FROM people WHERE sex = 'F'", within=50).charge
        db.owner.declare_version(same_rows=same_rows)
        after = db.query("SELECT COUNT(*) FROM people WHERE sex = 'M'", within=20).charge
        alone = engine().query("SELECT COUNT(*) FROM people WHERE sex = 'M'", within=20).charge
        assert after == pytest.approx(alone - before if same_rows else alone, rel=1e-9)


def test_replace_one_gets_the_size_for_nothing() -> None:
    unit = Unit(neighbours=Neighbours.REPLACE_ONE)
    db = engine(settings=config(unit=unit, public_size=6000))
    assert db.query("SELECT COUNT(*) FROM people", within=1).free
    histogram = db.query(BY_SEX, epsilon=0.2)
    assert histogram.charge == pytest.approx(0.2, rel=1e-6)


def test_several_rows_per_unit_cost_as_many_times() -> None:
    one = engine().explain(BY_SEX, within=20).offers[-1].price
    unit = Unit(column="person", max_contributions=3)
    three = engine(settings=config(unit=unit)).explain(BY_SEX, within=20).offers[-1].price
    assert three == pytest.approx(3 * one, rel=1e-9)


def test_gaussian_noise_wins_for_many_rows_in_concentrated_mode() -> None:
    db = engine(settings=config(budget=Budget.of(epsilon=1.0, delta=1e-9)))
    answer = db.query("SELECT age, region, COUNT(*) FROM people GROUP BY age, region", within=100)
    assert answer.unit == "rho"
    assert "gaussian" in answer.note


RDP = Budget.of(epsilon=1.0, delta=1e-9, accountant="rdp", order=32)


def test_an_engine_at_one_order_answers_refuses_and_goes_on(tmp_path: Path) -> None:
    settings = config(budget=RDP)
    ledger = SqliteLedger.create(tmp_path / "ledger.sqlite", charter(settings))
    source, axis = TableSource(counts()), PartitionAxis.of(settings.domain, settings.unit)
    declare_version(ledger, lambda key: source, SystemRandomness(), axis=axis, through=0)
    db = engine(settings=settings, ledger=ledger)
    answer = db.query(BY_SEX, within=60)
    assert (answer.unit, 0 < answer.charge < RDP.amount) == ("rho", True)
    db.query("SELECT age, COUNT(*) FROM people GROUP BY age", rho=0.8 * RDP.amount)
    with pytest.raises(GoalError, match="WITH RHO"):
        db.query(BY_SEX, epsilon=0.1)
    with pytest.raises(BudgetError, match="rho") as refused:
        db.query("SELECT region, COUNT(*) FROM people GROUP BY region", within=1)
    assert refused.value.unit == "rho"
    status = db.budget()
    assert status.spent <= RDP.amount
    assert "at order 32" in status.statement
    db.close()
    again = engine(settings=settings, ledger=SqliteLedger.open(tmp_path / "ledger.sqlite", charter(settings)))
    assert again.budget().spent == status.spent
    assert again.query(BY_SEX, within=60).charge == 0
    again.close()
    other = config(budget=Budget.of(epsilon=1.0, delta=1e-9, accountant="rdp", order=33))
    with pytest.raises(LedgerError):
        SqliteLedger.open(tmp_path / "ledger.sqlite", charter(other))


def test_at_one_order_laplace_noise_is_cheaper_and_gaussian_noise_costs_the_same() -> None:
    budget = Budget.of(epsilon=8.0, delta=1e-9, accountant="rdp")
    rdp, zcdp = (engine(settings=config(budget=each)).kernel for each in (budget, Budget.of(rho=1.0)))
    for scale, kind, less in ((1.0, NoiseKind.LAPLACE, True), (1.0, NoiseKind.GAUSSIAN, False)):
        event = Measured(strategy=Product(()), noise=Noise(kind=kind, scale=scale), version=1)
        assert rdp.price([event]) <= zcdp.price([event])
        assert (rdp.price([event]) < zcdp.price([event])) is less


def test_threads_share_an_engine() -> None:
    db = engine(settings=config(budget=Budget.of(epsilon=100.0)))
    answers: list[Answer] = []

    def ask(i: int) -> None:
        answers.append(db.query(f"SELECT COUNT(*) FROM people WHERE age = {i % 10}", within=5 + i, key=str(i)))

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 24
    db.owner.verify()
    assert sum(line.charge for line in db.log()) == pytest.approx(db.budget().spent, rel=1e-9)


def test_an_answer_survives_its_stored_form() -> None:
    answer = engine().query(BY_SEX, within=50)
    assert Answer.from_bytes(answer.to_bytes()) == answer


def test_what_is_of_a_table_is_known_by_its_version() -> None:
    versioned = {kind for kind in KINDS.values() if "version" in {each.name for each in fields(kind)}}
    assert versioned == set(get_args(OF_A_TABLE))


def test_closing_twice_is_fine() -> None:
    db = engine()
    db.query(BY_SEX, within=50)
    db.close()
    db.close()


def test_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bursar.engine.PATIENCE_SECONDS", 0.0)
    with pytest.raises(LedgerError, match="try again"):
        engine().query(BY_SEX, within=50)


ALL_KINDS_OF_LABELS = Domain(
    (
        Dates(name="day", first=date(2024, 1, 1), last=date(2024, 1, 4), by=Period.DAY),
        Bins(name="pay", edges=(0.0, 10.5, 20.0, 40.0), null=0),
        Categories(name="sex", values=("F", "M")),
        IntegerRange(name="age", lower=0, upper=3),
    )
)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT day, sex, COUNT(*) FROM people GROUP BY day, sex",
        "SELECT pay, AVG(age) AS a, COUNT(*) FROM people WHERE age < 0 OR age > 2 GROUP BY pay",
        "SELECT age, sex = 'F' AS f, SUM(age) FROM people GROUP BY age, f ORDER BY age DESC LIMIT 3",
        "SELECT MEDIAN(age), COUNT(*) FILTER (WHERE sex IS NULL) FROM people",
        "SELECT sex, COUNT(*) AS n FROM people GROUP BY ROLLUP (sex) HAVING n > 10",
    ],
)
def test_an_answer_is_the_one_that_would_be_read_again_from_what_is_stored(sql: str) -> None:
    """To the last type: with a key it is stored and read, without one it is given as it was made."""
    settings = config(domain=ALL_KINDS_OF_LABELS, budget=Budget.of(epsilon=1000.0))
    made = np.random.default_rng(0).integers(0, 90, ALL_KINDS_OF_LABELS.sizes(ALL_KINDS_OF_LABELS.names))
    db = stage(settings, lambda key: TableSource(made, ALL_KINDS_OF_LABELS), randomness=Silence())
    answer = db.query(sql, within=200)
    assert repr(Answer.from_bytes(answer.to_bytes())) == repr(answer)


def test_very_many_groups_are_answered_by_measuring_them() -> None:
    many = Domain(tuple(IntegerRange(name=name, lower=0, upper=399, null=0) for name in ("a", "b")))
    made = np.random.default_rng(0).integers(0, 3, (400, 400))
    db = stage(config(domain=many, max_rows=10**6), lambda key: TableSource(made, many), randomness=Silence())
    sql = "SELECT a, b, COUNT(*) AS n FROM people GROUP BY a, b"
    assert [offer.proposer for offer in db.explain(sql, within=50).offers] == ["direct"]
    answer, again = db.query(sql, within=50), db.query(sql, within=50)
    assert (len(answer.labels), answer.source, again.source, again.free) == (160_000, "direct", "exact", True)
    assert [value for (value,) in answer.values] == made.ravel().tolist()
    assert again.values == answer.values
