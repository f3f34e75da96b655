"""A table on drifted questions: what is asked, what it costs, and that it tells a good table from a bad one."""

from __future__ import annotations

from typing import Any

import pytest

from bursar.core.accounting import Measured, Selected
from bursar.core.budget import Budget
from bursar.core.domain import Categories, Domain, Neighbours, Unit
from bursar.errors import BudgetError, QueryError
from bursar.papers.rap.drift import GAMMAS, DriftPlan, drifted_sets
from bursar.session import Bursar
from bursar.synthetic.plan.spend import Spend
from harness.small import Silence, config, counts, engine

NAMES = "abcdefgh"
WIDE = Domain(tuple(Categories(name=name, values=("x", "y", "z"), outside=0, null=0) for name in NAMES))
ASKED = {("a", "b"): 8.0, ("a", "c"): 4.0, ("b", "c"): 2.0, ("c", "d"): 1.0}
PAIRS = "age,sex; age,region"


def owner(**changes: Any) -> Bursar:
    settings = {"budget": Budget.of(rho=1.0), "public_size": int(counts().sum()), **changes.pop("settings", {})}
    return engine(settings=config(**settings), analyst="owner", **changes)


def columns(sets: tuple[tuple[str, ...], ...]) -> set[str]:
    return {name for names in sets for name in names}


def test_drift_moves_questions_to_other_columns() -> None:
    made_for, *drifts = drifted_sets(WIDE, ASKED, agree=None, seed="s")
    assert (made_for.gamma, made_for.workload.sets) == (None, tuple(ASKED))
    assert [each.gamma for each in drifts] == list(GAMMAS)
    none, *_, whole = drifts
    assert none.moved == 0
    assert columns(none.workload.sets) <= set("abcd")  # what was never asked has no mass
    assert whole.moved > 0.5
    assert columns(whole.workload.sets) <= set("efgh")  # drift 1 turns the order around
    assert all(len(names) == 2 for each in drifts for names in each.workload.sets)


def test_the_same_questions_are_drawn_again() -> None:
    first, second, other = (drifted_sets(WIDE, ASKED, agree=None, seed=seed) for seed in "sst")
    assert [each.workload.sets for each in first] == [each.workload.sets for each in second]
    assert [each.workload.sets for each in first] != [each.workload.sets for each in other]


@pytest.mark.thinned(4)
@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("budget", [Budget.of(rho=1.0), Budget.of(epsilon=10.0)], ids=["rho", "epsilon"])
def test_a_report_costs_what_was_allowed_and_once_only(neighbours: Neighbours, budget: Budget) -> None:
    db = owner(settings={"budget": budget, "unit": Unit(neighbours=neighbours)})
    db.synthesize(marginals=PAIRS, spend=0.3, method="marginals")
    before = db.budget().spent
    report = db.drift(marginals=PAIRS, spend=0.5)
    assert 0.2 < report.charge <= 0.5
    assert report.charge == pytest.approx(db.budget().spent - before)
    kinds = [type(record.event) for record in db.ledger.records()][-14:]
    assert kinds == [Selected, Measured] * 7
    again = db.drift(marginals=PAIRS, spend=0.5)
    assert (again.charge, again.lines) == (0.0, report.lines)
    assert "as made for" in str(report)
    assert report.to_json()["unit"] == budget.mode.unit


def test_errors_are_those_of_the_table() -> None:
    """Without noise the worst count is found, and its error is exact; a table that knows nothing has larger ones."""
    good, bad = owner(randomness=Silence()), owner(randomness=Silence())
    good.synthesize(marginals="age,sex; age,region; sex,region", spend=0.5, method="marginals")
    bad.query("SELECT sex, COUNT(*) FROM people GROUP BY sex", within=50)
    bad.synthesize()  # free: it knows nothing else
    (line, *_), (other, *_) = (db.drift(marginals=PAIRS, spend=0.1).lines for db in (good, bad))
    assert line.error < 10 < other.error


def test_an_interrupted_report_goes_on() -> None:
    db = owner()
    db.synthesize(marginals=PAIRS, spend=0.3, method="marginals")
    plan = DriftPlan(questions=drifted_sets(WIDE, ASKED, agree=None, seed="s"), spend=Spend.rho(0.5))
    records = [record for record in db.ledger.records() if isinstance(record.event, Measured)][:1]
    events = [len(list(plan.remaining_events(records * bought, 1))) for bought in range(15)]
    assert events == list(range(14, -1, -1))


def test_thresholds_can_be_drifted_too() -> None:
    db = owner()
    db.synthesize(marginals=PAIRS, spend=0.3, method="marginals")
    assert db.drift(marginals=PAIRS, spend=0.1, agree=1).charge > 0


def test_what_is_refused() -> None:
    with pytest.raises(QueryError, match="no synthetic table"):
        owner().drift(spend=0.1)
    db = owner()
    db.synthesize(marginals=PAIRS, spend=0.3, method="marginals")
    before = db.budget().spent
    with pytest.raises(BudgetError):
        db.drift(marginals=PAIRS, spend=5.0)
    with pytest.raises(QueryError, match="no column"):
        db.drift(marginals="height", spend=0.1)
    assert db.budget().spent == before
