"""Making synthetic tables through the engine: what they cost, who may, what is kept, what goes on after a stop."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bursar.analysts.shares import AnalystSettings, Shares
from bursar.core.accounting import Measured, Selected, Versioned
from bursar.core.budget import Budget
from bursar.core.domain import Categories, Domain, IntegerRange, Neighbours, Unit
from bursar.core.extensions.curator import declare_version
from bursar.core.extensions.partitions import PartitionAxis
from bursar.core.ledger import MemoryLedger
from bursar.core.noise.system import SystemRandomness
from bursar.errors import AnalystError, BudgetError, LedgerError, QueryError, Unsupported
from bursar.planner.grant import Grant
from bursar.session import Bursar
from bursar.simulate import replayed
from bursar.synthetic.plan.methods import TablePlan, Task
from bursar.synthetic.plan.workload import Method
from bursar.synthetic.session import silent
from harness.small import DOMAIN, Silence, TableSource, charter, config, counts, engine

pytestmark = pytest.mark.thinned(2)

BY_AGE = "SELECT age, COUNT(*) FROM people GROUP BY age"
BY_PAIR = "SELECT sex, region, COUNT(*) FROM people GROUP BY sex, region"


def owner(**changes: Any) -> Bursar:
    settings = config(**{"budget": Budget.of(rho=1.0), **changes.pop("settings", {})})
    return engine(settings=settings, analyst="owner", **changes)


def counted(db: Bursar, kind: type) -> int:
    return sum(isinstance(record.event, kind) for record in db.ledger.records())


def test_nothing_in_the_log_and_nothing_to_spend_is_a_clear_refusal() -> None:
    with pytest.raises(QueryError, match="--spend"):
        owner().synthesize()


def test_what_was_asked_before_makes_a_table_for_nothing() -> None:
    db = owner(randomness=Silence())
    db.query(BY_AGE, within=50)
    before = db.budget().spent
    made = db.synthesize()
    assert (made.charge, db.budget().spent) == (0.0, before)
    assert len(made) == counts().sum()
    found = np.bincount(made.codes[:, 0], minlength=10)
    assert np.abs(found - counts().sum(axis=(1, 2))).max() <= 2
    assert ("sex", "region") in made.report.apart


def test_ranges_in_the_log_are_used_too() -> None:
    """No marginal was measured as such; least squares over the ranges determines it."""
    db = owner(randomness=Silence())
    for age in range(10):
        db.query(f"SELECT COUNT(*) FROM people WHERE age <= {age}", rho=0.01)
    found = np.bincount(db.synthesize().codes[:, 0], minlength=10)
    assert np.abs(found - counts().sum(axis=(1, 2))).max() <= 10


@pytest.mark.sampled(3)
@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("budget", [Budget.of(rho=1.0), Budget.of(epsilon=10.0)], ids=["rho", "epsilon"])
@pytest.mark.parametrize("method", ["marginals", "both"])
def test_a_table_costs_what_was_allowed_and_once_only(neighbours: Neighbours, budget: Budget, method: str) -> None:
    total = int(counts().sum())
    db = owner(settings={"budget": budget, "unit": Unit(neighbours=neighbours), "public_size": total})
    price = db.prepare_synthesis(ways=2, spend=0.5, method=method).price
    made = db.synthesize(ways=2, spend=0.5, method=method)
    assert 0 < made.charge <= price <= 0.5
    assert made.report.finished
    assert db.synthesize(ways=2, spend=0.5, method=method).charge == 0
    if neighbours is Neighbours.REPLACE_ONE:
        assert made.report.total == total


@pytest.mark.sampled(3)
@pytest.mark.parametrize("method", ["marginals", "both", "rap"])
def test_what_the_same_run_bought_meanwhile_is_not_bought_again(method: str) -> None:
    """Both were prepared before either of them paid."""
    db = owner()
    first, second = (db.prepare_synthesis(ways=2, spend=0.5, method=method) for _ in range(2))
    assert first.price == second.price > 0
    assert first.make().charge > 0
    bought = len(db.ledger.records())
    assert second.make().charge == 0
    assert len(db.ledger.records()) == bought
    other = db.prepare_synthesis(ways=2, spend=0.25, method=method)  # nobody has bought that
    assert other.make().charge > 0


def test_every_way_to_make_a_table_is_explained_and_nothing_is_spent() -> None:
    db = owner()
    told = db.prepare_synthesis(ways=2, spend=0.5).explain()
    assert [line.proposer for line in told.offers] == ["marginals", "rap", "both"]
    assert told.chosen is not None
    assert told.offers[told.chosen].error == min(line.error for line in told.offers)
    assert all(0 < line.price <= 0.5 and line.buys > 0 and line.note for line in told.offers)
    assert "a synthetic table, ways 2, at most rho 0.5" in str(told)
    assert "the price shown is the most that would be charged now" in str(told)
    assert db.budget().spent == 0
    rap = db.prepare_synthesis(ways=2, spend=0.5, method="rap").explain()
    assert (len(rap.offers), rap.chosen) == (3, 1)
    assert db.prepare_synthesis(ways=2, spend=5.0).explain().chosen is None
    db.query(BY_AGE, within=50)
    (free,) = db.prepare_synthesis().explain().offers
    assert (free.price, free.note, free.reuses) == (0.0, "what is in the log", 10)


def test_what_no_method_can_do_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def plans(task: Task) -> dict[Method, TablePlan]:
        return {method: TablePlan(method=method, error=math.inf, why="too many cells") for method in Method}

    monkeypatch.setattr("bursar.synthetic.plan.methods.plans", plans)
    for method, words in (("auto", "no method can do this: too many cells"), ("rap", "rap cannot do this: too many")):
        with pytest.raises(QueryError, match=words):
            owner().prepare_synthesis(spend=0.1, method=method)


def test_bounds_hold_and_are_not_idle() -> None:
    db = owner()
    made = db.synthesize(ways=2, spend=0.5)
    for line in made.report.lines:
        places = [DOMAIN.place(name) for name in line.columns]
        gone = tuple(i for i in range(3) if i not in places)
        cells = np.ravel_multi_index(made.codes[:, places].T, DOMAIN.sizes(line.columns))
        table = np.bincount(cells, minlength=line.cells) * made.report.total / len(made)
        off = np.abs(table - counts().sum(axis=gone).ravel()).max()
        assert line.bound is not None
        assert line.measured is not None
        assert line.noise is not None
        assert off <= line.measured + 6 * line.noise  # 95 % would fail now and then
        assert 0 < line.bound < 200


@pytest.mark.heavy
def test_rap_picks_what_it_measures() -> None:
    db = owner(randomness=Silence())
    made = db.synthesize(ways=2, spend=0.5, method="rap", rows=500)
    assert counted(db, Selected) > 0
    assert len(made) == 500
    assert made.report.method == "rap"
    assert all(line.bound is None for line in made.report.lines if len(line.columns) > 1)
    assert any(line.measured is not None for line in made.report.lines)
    before = len(db.ledger.records())
    db.synthesize(ways=2, spend=0.5, method="rap", rows=500)
    assert len(db.ledger.records()) == before


def test_too_dear_is_refused_with_what_would_fit() -> None:
    db = owner()
    with pytest.raises(BudgetError, match=r"--spend 1(\.0+)?$") as refused:
        db.synthesize(ways=2, spend=5.0)
    assert refused.value.asked == pytest.approx(5.0, rel=1e-3)
    assert counted(db, Measured) == 0


def test_wrong_wishes_are_refused() -> None:
    db = owner()
    for wish, words in (
        ({"ways": 2, "history": True}, "one of ways"),
        ({"augment": 0.1}, "--history"),
        ({"rows": 0}, "at least one row"),
        ({"spend": 0.1, "method": "magic"}, "marginals, rap, both"),
        ({"spend": 0.1, "marginals": "age,wage"}, "no column 'wage'"),
        ({"spend": 0.1, "history": True}, "nothing was asked yet"),
        ({"spend": 0.1, "workload": ["SELECT COUNT(*) FROM people"]}, "no set of columns"),
    ):
        with pytest.raises(QueryError, match=words):
            db.synthesize(**wish)  # type: ignore[arg-type]


def test_only_the_owner_may_spend_unless_there_are_shares() -> None:
    with pytest.raises(AnalystError, match="data owner"):
        engine(analyst="ana").synthesize(spend=0.1)
    settings = config(analysts=AnalystSettings(shares=Shares({"ana": Fraction(1, 2)})))
    db = engine(settings=settings, analyst="ana")
    db.owner.declare_shares()
    with pytest.raises(BudgetError, match=r"--spend 0\.5"):
        db.synthesize(spend=0.8)
    assert 0 < db.synthesize(spend=0.4).charge <= 0.4
    assert db.budget().accounts[0].left == pytest.approx(0.1, rel=1e-3)


def test_analysts_who_share_nothing_see_their_own_table_only() -> None:
    halves = Shares({"ana": Fraction(1, 2), "bob": Fraction(1, 2)})
    settings = config(analysts=AnalystSettings(policy="independent", shares=halves))
    ana = engine(settings=settings, analyst="ana")
    ana.owner.declare_shares()
    ana.synthesize(spend=0.2)
    bob = engine(settings=settings, analyst="bob", ledger=ana.ledger)
    with pytest.raises(QueryError, match="log says nothing"):
        bob.synthesize()
    assert ana.engine.sight.synthetic_rows() is not None
    assert bob.engine.sight.synthetic_rows() is None


def test_a_workload_of_questions_and_one_of_names_are_the_same() -> None:
    db = owner()
    by_name = db.prepare_synthesis(marginals="region,sex", spend=0.1)
    by_question = db.prepare_synthesis(workload=[BY_PAIR], spend=0.1)
    assert by_name.workload.sets == by_question.workload.sets == (("sex", "region"),)


def test_time_is_kept_and_the_same_again_goes_on() -> None:
    db = owner()
    db.query(BY_AGE, rho=0.01)
    stopped = db.synthesize(ways=2, spend=0.2, seconds=0)
    assert not stopped.report.finished
    assert stopped.charge == 0
    assert "run the same command" in str(stopped)
    assert db.synthesize(ways=2, spend=0.2).report.finished


def test_a_run_that_is_stopped_before_anything_says_so() -> None:
    for method in ("marginals", "rap", "both"):
        db = owner()
        with pytest.raises(QueryError, match="nothing was spent"):
            db.synthesize(ways=2, spend=0.2, seconds=0, method=method)
        assert db.budget().spent == 0


def test_a_run_that_is_stopped_after_the_number_of_rows_says_so_and_keeps_it() -> None:
    db = owner()
    prepared = db.prepare_synthesis(ways=2, spend=0.2, method="rap")
    with pytest.raises(QueryError, match="only the number of rows"):
        prepared.synthesis.make_table(prepared, silent, lambda: counted(db, Measured) > 0)
    assert (counted(db, Measured), counted(db, Selected)) == (1, 0)


class Interrupted(Exception):
    pass


@pytest.mark.sampled(3)
@pytest.mark.parametrize("method", ["marginals", "rap", "both"])
def test_an_interrupted_run_goes_on_and_buys_nothing_twice(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every verb fails once after its commit: what it bought is in the log, and nobody has heard of it."""
    whole = owner()
    price = whole.synthesize(ways=2, spend=0.2, method=method).charge
    verbs = len(whole.ledger.records())
    db, tries, seen = owner(), 0, len(owner().ledger.records())
    charged = Grant._charged

    def failing(self: Grant, verb: Any) -> Any:
        charged(self, verb)
        raise Interrupted

    while tries < verbs:
        monkeypatch.setattr(Grant, "_charged", failing)
        try:
            db.synthesize(ways=2, spend=0.2, method=method)
            break
        except Interrupted:
            tries += 1
            seen += 1
            assert len(db.ledger.records()) == seen
    assert len(db.ledger.records()) == verbs
    assert db.budget().spent <= 0.2  # what picked counts cost depends on which ones they are
    assert method != "marginals" or db.budget().spent == pytest.approx(price, rel=1e-6)
    monkeypatch.undo()
    assert db.synthesize(ways=2, spend=0.2, method=method).charge == 0


def test_others_who_use_up_the_budget_meanwhile_are_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    db = owner()
    calls = 0
    charged = Grant._charged

    def refusing(self: Grant, verb: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise BudgetError(asked=1, left=0, unit="rho")
        return charged(self, verb)

    monkeypatch.setattr(Grant, "_charged", refusing)
    with pytest.raises(LedgerError, match="what was measured is kept"):
        db.synthesize(ways=2, spend=0.2)


def test_old_versions_are_not_used() -> None:
    db = owner()
    db.synthesize(ways=2, spend=0.2)
    assert db.engine.sight.synthetic_rows() is not None
    source = TableSource(counts(1), DOMAIN)
    declare_version(db.ledger, lambda key: source, db.engine.randomness)
    assert counted(db, Versioned) == 2
    assert db.engine.sight.synthetic_rows() is None
    with pytest.raises(QueryError, match="log says nothing"):
        db.synthesize()
    assert db.prepare_synthesis(ways=2, spend=0.2).price > 0


def test_a_column_with_one_value_and_a_table_of_one_row() -> None:
    domain = Domain((Categories(name="one", values=("only",), outside=0, null=0), *DOMAIN.attributes))
    db = owner(settings={"domain": domain}, table=counts()[None])
    made = db.synthesize(ways=2, spend=0.2, rows=1)
    assert made.codes.shape == (1, 4)
    assert all("one" not in line.columns for line in made.report.lines)


def test_units_of_several_rows() -> None:
    unit = Unit(column="person", max_contributions=3)
    db = owner(settings={"unit": unit})
    for method in ("marginals", "rap", "both"):
        assert 0 < db.synthesize(ways=2, spend=0.2, method=method).charge <= 0.2


def test_a_history_is_a_workload_with_weights_and_a_future() -> None:
    db = owner(randomness=Silence())
    for bound in range(1, 9):
        db.query(f"SELECT COUNT(*) FROM people WHERE age < {bound} AND sex = 'F'", rho=0.001)
    db.query(BY_PAIR, rho=0.001)
    db.query(BY_PAIR + " WITH RHO 0.002")
    prepared = db.prepare_synthesis(history=True, spend=0.2)
    assert prepared.workload.weights == {("age", "sex"): 8.0}
    assert prepared.workload.future == (("sex", "region"),) * 2
    more = db.prepare_synthesis(history=True, augment=0.3, spend=0.2).workload
    assert len(more.sets) == 2
    made = db.synthesize(history=True, spend=0.2)
    assert made.report.future is not None
    assert (made.report.future.questions, made.report.future.unknown) == (2, 0)
    assert "later questions" in str(made)
    before = len(db.ledger.records())
    assert db.synthesize(history=True, spend=0.2).charge == 0  # the run itself is no history
    assert len(db.ledger.records()) == before
    assert db.synthesize(history=True).charge == 0


def test_an_analyst_has_no_history_but_the_own() -> None:
    db = owner(randomness=Silence())
    db.query(BY_AGE, rho=0.001)
    other = engine(settings=db.config, ledger=db.ledger, analyst="ana", randomness=Silence())
    with pytest.raises(QueryError, match="nothing was asked yet"):
        other.prepare_synthesis(history=True)
    other.query(BY_PAIR, rho=0.001)
    assert other.prepare_synthesis(history=True).workload.sets == (("sex", "region"),)
    assert set(db.prepare_synthesis(history=True).workload.sets) == {("age",), ("sex", "region")}


def test_an_interrupted_history_is_not_planned_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    db = owner()
    for _ in range(2):
        db.query(BY_PAIR, rho=0.001)
    sets = db.prepare_synthesis(history=True, spend=0.2).workload.sets
    charged = Grant._charged

    def failing(self: Grant, verb: Any) -> Any:
        charged(self, verb)
        raise Interrupted

    monkeypatch.setattr(Grant, "_charged", failing)
    with pytest.raises(Interrupted):
        db.synthesize(history=True, spend=0.2)
    monkeypatch.undo()
    db.query("SELECT age, sex, COUNT(*) FROM people GROUP BY age, sex", rho=0.001)
    assert db.prepare_synthesis(history=True, spend=0.2).workload.sets == sets
    db.synthesize(history=True, spend=0.2)
    assert db.prepare_synthesis(history=True, spend=0.2).workload.sets != sets  # finished: the next begins anew


def test_what_was_not_asked_in_sql_is_history_too_and_tables_are_not() -> None:
    db = owner()
    db.thresholds(k=2, r=2, features=["age", "region"], rho=0.001)
    assert db.prepare_synthesis(history=True, spend=0.1).workload.sets == (("age", "region"),)
    fresh = owner()
    fresh.synthesize(ways=2, spend=0.1)
    with pytest.raises(QueryError, match="nothing was asked yet"):
        fresh.synthesize(history=True)
    with pytest.raises(QueryError, match="no question"):
        replayed(fresh.log(), ["owner"])


@pytest.mark.heavy
def test_files_are_checked_before_anything_is_paid(tmp_path: Path) -> None:
    db = owner()
    with pytest.raises(Unsupported):
        db.synthesize(spend=0.1, out=tmp_path / "nowhere" / "rows.csv")
    assert counted(db, Measured) == 0
    made = db.synthesize(spend=0.1, out=tmp_path / "rows.csv", report=tmp_path / "report")
    assert len((tmp_path / "rows.csv").read_text().splitlines()) == len(made) + 1
    assert {file.name for file in (tmp_path / "report").iterdir()} == {"report.md", "errors.png", "columns.png"}
    text = (tmp_path / "report" / "report.md").read_text()
    assert "What it must not be used for" in text
    assert "| age, sex | 20 |" in text


def test_rows_as_a_frame() -> None:
    made = owner(randomness=Silence()).synthesize(spend=0.1, rows=50)
    frame = made.to_pandas()
    assert list(frame.columns) == ["age", "sex", "region"]
    assert set(frame["sex"]) <= {"F", "M"}
    assert len(frame) == 50


def test_progress_is_told() -> None:
    steps: list[tuple[int, int]] = []
    owner().synthesize(spend=0.1, progress=lambda done, of: steps.append((done, of)))
    assert steps[-1][0] == steps[-1][1] > 0


def test_partitions_must_be_sealed() -> None:
    domain = Domain((IntegerRange(name="week", lower=0, upper=1, null=0), *DOMAIN.attributes), partition="week")
    facts: Any = {"settings": {"domain": domain}, "table": np.stack([counts(1), counts(2)])}
    assert owner(**facts).synthesize(ways=2, spend=0.1).charge > 0
    settings = config(domain=domain, budget=Budget.of(rho=1.0))
    ledger, source = MemoryLedger(charter(settings)), TableSource(facts["table"], domain)
    axis = PartitionAxis.of(domain, settings.unit)
    declare_version(ledger, lambda key: source, SystemRandomness(), axis=axis, through=0)
    with pytest.raises(QueryError, match="not sealed yet"):
        owner(**facts, ledger=ledger).synthesize(ways=2, spend=0.1)
