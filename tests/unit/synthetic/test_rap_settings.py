"""T, K and n' of RAP as options: they are what is run, and part of what the log calls the request."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.core.accounting import Selected
from bursar.core.budget import Budget
from bursar.core.domain import Neighbours, Unit
from bursar.core.queries import Thresholds
from bursar.errors import QueryError
from bursar.synthetic.plan.workload import TableRequest
from bursar.synthetic.rap import rap as mechanism
from harness.cases import few
from harness.small import config, counts, engine

SETTINGS = config(budget=Budget.of(rho=50.0), public_size=6_000)


@pytest.mark.heavy
def test_so_many_rounds_pick_so_many_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    fitted: list[int] = []
    plain = mechanism.rap

    def watched(*given: object, **named: object) -> object:
        fitted.append(int(str(named["rows"])))
        return plain(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(mechanism, "rap", watched)
    db = engine(settings=SETTINGS, analyst="owner")
    table = db.synthesize(ways=2, spend=20.0, method="rap", rounds=2, picks=3, relaxed=40, rows=100)
    picked = [len(record.values) for record in db.ledger.records() if isinstance(record.event, Selected)]
    assert picked == [3, 3]
    assert fitted == [40]
    assert len(table.codes) == 100


def test_other_settings_are_another_request() -> None:
    asked = {"ways": 2, "spend": 0.1, "method": "rap", "unit": "rho", "analyst": "owner"}
    plain, named = TableRequest(**asked), TableRequest(**asked, rounds=4, picks=16)  # type: ignore[arg-type]
    assert plain.question != named.question
    assert named.text.endswith("rho 0.1, T 4, K 16")
    assert plain.text.endswith("rho 0.1")  # as it always was


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "marginals", "rounds": 2, "picks": 2}, "settings of RAP"),
        ({"spend": None, "relaxed": 10}, "settings of RAP"),
        ({"rounds": 2}, "go together"),
        ({"rounds": 0, "picks": 2}, "between 1 and"),
        ({"relaxed": 10**6}, "between 1 and"),
        ({"method": "both", "agree": 1}, "settings of RAP"),
        ({"method": "auto", "search": True}, "settings of RAP"),
        ({"rounds": 2, "picks": 2, "search": True}, "finds rounds and picks by itself"),
        ({"agree": 6}, "can be asked to agree"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings: dict[str, object], message: str) -> None:
    asked = {"ways": 2, "spend": 0.1, "method": "rap", "unit": "rho", "analyst": "owner", **settings}
    with pytest.raises(QueryError, match=message):
        TableRequest(**asked)  # type: ignore[arg-type]


def agreeing(codes: np.ndarray, columns: tuple[int, int]) -> np.ndarray:
    """For all values of two columns, how many rows agree in at least one of them."""
    first, second = (codes[:, column] for column in columns)
    return np.array([[((first == a) | (second == b)).sum() for b in range(second.max() + 1)] for a in range(10)])


@pytest.mark.heavy
def test_a_table_is_right_about_thresholds() -> None:
    pytest.importorskip("numba")
    table = counts()
    cells = np.indices(table.shape).reshape(3, -1).T.repeat(table.ravel(), axis=0)
    settings = config(budget=Budget.of(rho=50.0), public_size=int(table.sum()))
    db = engine(settings=settings, analyst="owner")
    asked = {"marginals": "age,region", "spend": 40.0, "method": "rap", "agree": 1, "relaxed": 200}
    assert "30 thresholds, 1 columns of each of 1 set" in db.prepare_synthesis(**asked).why  # type: ignore[arg-type]
    made = db.synthesize(**asked)  # type: ignore[arg-type]
    assert 0 < made.charge <= 40.0
    picked = [r.event.candidates for r in db.ledger.records() if isinstance(r.event, Selected)]
    assert {(c.attrs, c.least) for c in picked if isinstance(c, Thresholds)} == {(("age", "region"), 1)}
    error = np.abs(agreeing(made.codes, (0, 2)) * made.report.total / len(made) - agreeing(cells, (0, 2))).max()
    chance = np.random.default_rng(1).integers(0, (10, 2, 3), (len(cells), 3))
    assert error < 0.5 * np.abs(agreeing(chance, (0, 2)) - agreeing(cells, (0, 2))).max()
    (line,) = (line for line in made.report.lines if line.asked)
    assert line.bound is None
    assert line.measured is not None
    assert line.measured < 3 * error + 50  # how far the table is from the thresholds that were picked
    assert made.report.apart == (("age", "sex"), ("sex", "region"))  # of age and region some counts were measured
    assert db.synthesize(**asked).charge == 0  # type: ignore[arg-type]


@pytest.mark.heavy
@pytest.mark.parametrize("neighbours", few(Neighbours))
@pytest.mark.parametrize("budget", few([Budget.of(rho=1.0), Budget.of(epsilon=10.0)]), ids=["rho", "epsilon"])
def test_a_search_costs_what_was_allowed_and_once_only(neighbours: Neighbours, budget: Budget) -> None:
    pytest.importorskip("numba")
    settings = config(budget=budget, unit=Unit(neighbours=neighbours), public_size=int(counts().sum()))
    db = engine(settings=settings, analyst="owner")
    asked = {"marginals": "age,sex; age,region", "spend": 0.9, "method": "rap", "search": True, "relaxed": 30}
    ahead = db.prepare_synthesis(**asked)  # type: ignore[arg-type]
    assert 0.8 < ahead.price <= 0.9
    trials = next(offer for offer in ahead.explain().offers if "search" in offer.note)
    assert "a search for rounds and picks in" in trials.note
    made = db.synthesize(**asked)  # type: ignore[arg-type]
    assert 0 < made.charge <= ahead.price
    assert made.report.finished
    assert db.prepare_synthesis(**asked).price == 0  # type: ignore[arg-type]
    records = len(db.ledger.records())
    assert db.synthesize(**asked).charge == 0  # type: ignore[arg-type]
    assert len(db.ledger.records()) == records


@pytest.mark.heavy
def test_a_search_that_was_stopped_goes_on() -> None:
    pytest.importorskip("numba")
    settings = config(budget=Budget.of(rho=1.0), public_size=int(counts().sum()))
    db = engine(settings=settings, analyst="owner")
    asked = {"marginals": "age,sex", "spend": 1.0, "method": "rap", "search": True, "relaxed": 30}
    ahead, heard = db.prepare_synthesis(**asked), []  # type: ignore[arg-type]

    class Stopped(Exception):
        pass

    def progress(done: int, of: int) -> None:
        heard.append((done, of))
        if done == 2:
            raise Stopped

    with pytest.raises(Stopped):
        ahead.make(progress=progress)
    before = db.budget().spent
    assert 0 < before < 1.0
    rest = db.prepare_synthesis(**asked)  # type: ignore[arg-type]
    assert 0 < rest.price <= 1.0 - before
    made = rest.make()
    assert 0 < made.charge <= rest.price
    assert made.report.finished
    assert db.prepare_synthesis(**asked).price == 0  # type: ignore[arg-type]
