"""The synthetic table answers: free, never beyond what it can promise, and as it is only where it is named."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

from bursar import presets
from bursar.core.budget import Budget
from bursar.core.queries import LinearMap, Mask, Product, Steps
from bursar.errors import QueryError
from bursar.estimation.estimate import Estimate, meets
from bursar.goal import Goal, GoalKind
from bursar.planner.choose import Preset
from bursar.planner.goals import Wanted
from bursar.proposers.synthetic import Synthetic, _fitting
from bursar.session import Bursar
from bursar.tails.marginals import ByVariance
from harness.small import Silence, config, engine

TABLE_ONLY = Preset("table only", (Synthetic(),))
WITH_TABLE = replace(
    presets.default,
    proposers=(*(one for one in presets.default.proposers if not isinstance(one, Synthetic)), Synthetic()),
)
PAIRS = "SELECT age, COUNT(*) FROM people WHERE sex = 'F' GROUP BY age"
TRIPLES = "SELECT age, COUNT(*) FROM people WHERE sex = 'F' AND region = 'north' GROUP BY age"


def made(preset: Preset = WITH_TABLE, **changes: object) -> Bursar:
    """An engine whose pairs of columns were measured for a table."""
    db = engine(settings=config(budget=Budget.of(rho=1.0)), analyst="owner", preset=preset, **changes)  # type: ignore[arg-type]
    db.synthesize(ways=2, spend=0.1)
    return db


@pytest.fixture(scope="module")
def db() -> Bursar:
    return made()


@pytest.fixture(scope="module")
def only() -> Bursar:
    return made(TABLE_ONLY)


def test_it_answers_by_itself_where_it_keeps_the_goal(only: Bursar) -> None:
    answer = only.query(PAIRS, within=400)
    assert answer.source == "synthetic"
    assert answer.free
    assert answer.error <= 400


def test_it_never_wins_with_a_goal_that_it_cannot_promise(only: Bursar, db: Bursar) -> None:
    assert only.explain(PAIRS, within=1).chosen is None
    assert only.explain(TRIPLES, within=10**6).chosen is None
    assert only.explain(TRIPLES, rmse=10**6).chosen is None
    assert only.explain(TRIPLES, rho=0.5).chosen is None
    chosen = db.explain(TRIPLES, rho=1e-9)
    assert chosen.chosen is None or chosen.offers[chosen.chosen].proposer != "synthetic"


def test_what_it_does_not_promise_is_listed_all_the_same(db: Bursar) -> None:
    found = db.explain(TRIPLES, within=50)
    (line,) = [line for line in found.offers if line.proposer == "synthetic"]
    assert (line.price, line.meets) == (0.0, False)
    assert math.isinf(line.error)
    assert "no bound" in str(found)
    assert "age, sex, region were never measured together" in line.note
    assert json.loads(json.dumps(found.to_json(), allow_nan=False))["offers"]


def test_as_it_is_where_the_asker_says_so(db: Bursar) -> None:
    answer = db.query(TRIPLES, synthetic=True)
    assert answer.source == "synthetic"
    assert answer.free
    assert "no error bound" in str(answer)
    assert answer.to_json()["error"] is None
    bounded = db.query(PAIRS, synthetic=True)
    assert "no error bound" not in str(bounded)
    assert 0 < bounded.error < 10_000
    assert db.explain(TRIPLES, synthetic=True).price == 0


def test_a_batch_can_be_asked_of_the_table(db: Bursar) -> None:
    answers = db.batch([PAIRS, TRIPLES], synthetic=True).answers
    assert {answer.source for answer in answers} == {"synthetic"}
    assert answers[0].charge == 0


def test_a_key_remembers_that_the_table_was_asked(db: Bursar) -> None:
    first = db.engine.prepare(PAIRS + " WITH ERROR 50", Wanted(synthetic=True), None)
    assert first.asked.question != db.engine.prepare(PAIRS + " WITH ERROR 50", Wanted(), None).asked.question


def test_without_a_table_there_is_nothing_to_ask() -> None:
    fresh = engine(preset=WITH_TABLE)
    with pytest.raises(QueryError, match="bursar synth"):
        fresh.query(PAIRS, synthetic=True)
    assert "synthetic" not in [line.proposer for line in fresh.explain(PAIRS, within=50).offers]


def test_without_noise_the_bound_is_the_noise_that_could_have_been() -> None:
    """|table - truth| <= |table - estimate| + tail: with silent noise the estimate is the truth."""
    silent = made(randomness=Silence())
    answer = silent.query(PAIRS, synthetic=True)
    truth = silent.engine.open_source(b"").table(("sex", "age"))[0]  # the harness's source, which any key opens
    off = np.abs(np.array(answer.values)[:, 0] - truth)
    widths = np.array(answer.high)[:, 0] - np.array(answer.values)[:, 0]
    assert np.all(widths > off)


@dataclass
class Far:
    """A table whose answers are far from what was measured."""

    distance: float
    note: str = "a table"

    def answers(self, wanted: LinearMap) -> np.ndarray:
        return np.full(wanted.rows, 100.0 + self.distance)

    def estimate(self, wanted: LinearMap) -> Estimate:
        return Estimate(values=np.full(wanted.rows, 100.0), law=ByVariance(variances=np.ones(wanted.rows), heavy=False))

    def unmeasured(self, wanted: LinearMap) -> tuple[str, ...]:
        return ()


@pytest.mark.parametrize("kind", [GoalKind.ERROR, GoalKind.RMSE])
def test_whether_it_is_taken_does_not_depend_on_how_well_it_fits(kind: GoalKind) -> None:
    """Both tables are taken or none is; the far one's answers are moved until the promise holds."""
    wanted = Product((Mask(("sex",), (2,), Steps.identity(2)),))
    goal = Goal(kind=kind, amount=10.0)
    for distance in (0.0, 1000.0):
        table = Far(distance)
        offer = _fitting(table, wanted, table.estimate(wanted), goal)
        assert offer is not None
        assert meets(offer.law, goal)
        values = offer.run(None).values  # type: ignore[arg-type]
        assert np.all(np.abs(values - 100.0) <= 10.0)
        assert ("moved" in offer.note) == (distance > 0)
        assert _fitting(table, wanted, table.estimate(wanted), replace(goal, amount=0.5)) is None
