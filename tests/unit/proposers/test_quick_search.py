"""The search by approximate tails ends where exact ones would, and few exact tails are computed on the way."""

from __future__ import annotations

import gc
from dataclasses import replace

import numpy as np
import pytest

from bursar.compile import compiler
from bursar.core.accounting import Mode
from bursar.core.budget import Budget
from bursar.core.domain import Categories, Domain, IntegerRange
from bursar.estimation.estimate import WeightedRows, meets
from bursar.planner.goals import Wanted
from bursar.proposers import direct
from bursar.proposers.buying.purchase import PurchaseProblem
from bursar.proposers.direct import Direct
from bursar.proposers.tree import candidate_nodes
from bursar.session import Bursar
from bursar.tails import sums as tails
from bursar.tails.inversion import Inversion
from harness.small import config, engine

DOMAIN = Domain(
    (
        IntegerRange(name="age", lower=0, upper=99, null=0),
        Categories(name="sex", values=("F", "M"), outside=0, null=0),
    )
)
TABLE = np.random.default_rng(7).integers(0, 60, (100, 2))
BUDGETS = {Mode.PURE: Budget.of(epsilon=500.0), Mode.CONCENTRATED: Budget.of(rho=500.0)}
QUESTIONS = {
    "one range": "SELECT COUNT(*) FROM people WHERE age BETWEEN 13 AND 57",
    "two groups": "SELECT sex, COUNT(*) FROM people WHERE age BETWEEN 3 AND 20 GROUP BY sex",
    "overlapping": "SELECT COUNT(*) FILTER (WHERE age < 30), COUNT(*) FILTER (WHERE age < 70) FROM people",
}
BEFORE = {
    "nothing known": (),
    "known": (("SELECT COUNT(*) FROM people WHERE age BETWEEN 10 AND 40", 150.0),),
    "known well": (
        ("SELECT COUNT(*) FROM people WHERE age BETWEEN 10 AND 40", 60.0),
        ("SELECT sex, COUNT(*) FROM people WHERE age < 50 GROUP BY sex", 90.0),
    ),
}


def small(mode: Mode) -> Bursar:
    return engine(table=TABLE, settings=config(domain=DOMAIN, budget=BUDGETS[mode]))


def shop(db: Bursar, text: str, **wanted: float) -> PurchaseProblem:
    request = db.engine.prepare(text, Wanted(**wanted), None)
    views, asked = db.engine.planner.views(), request.workload.map
    candidates = candidate_nodes(asked, views.domain.ordered(asked.attrs), views)
    assert candidates is not None
    found = PurchaseProblem.of(candidates, request, views)
    assert found is not None
    return found


@pytest.mark.sampled(15)
@pytest.mark.parametrize("mode", [Mode.PURE, Mode.CONCENTRATED])
@pytest.mark.parametrize("before", BEFORE.values(), ids=BEFORE)
@pytest.mark.parametrize("text", QUESTIONS.values(), ids=QUESTIONS)
@pytest.mark.parametrize("wanted", [{"within": 33.0}, {"within": 4.5, "confidence": 0.999}, {"rmse": 20.0}], ids=str)
def test_it_ends_where_exact_tails_say(
    mode: Mode, before: tuple[tuple[str, float], ...], text: str, wanted: dict[str, float]
) -> None:
    """The exact way: halve the range of levels until the last one that keeps the goal is known to a thousandth."""
    db = small(mode)
    for asked, error in before:
        db.query(asked, within=error)
    found = shop(db, text, **wanted)
    made, goal = found.cheapest(), found.request.goal
    assert made is not None
    assert meets(made.law, goal)

    def keeps(level: float) -> bool:
        tried = found._purchase(level)
        return tried is not None and meets(tried.law, goal)

    low, high = made.level / 2, made.level
    while high > 1.001 * low:
        middle = (low + high) / 2
        low, high = (low, middle) if keeps(middle) else (middle, high)
    assert made.level <= 1.02 * high


def test_a_search_that_stops_too_soon_would_be_noticed() -> None:
    """Three per cent below the level that is found the goal is lost."""
    found = shop(small(Mode.PURE), QUESTIONS["two groups"], within=33.0)
    made = found.cheapest()
    assert made is not None
    coarser = found._purchase(0.97 * made.level)
    assert coarser is not None
    assert not meets(coarser.law, found.request.goal)


@pytest.fixture
def inversions(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The thresholds of all exact inversions from now on, none of them remembered."""
    thresholds: list[float] = []
    made = Inversion.of

    def counted(row: object, alpha: float) -> Inversion:
        thresholds.append(alpha)
        return made(row, alpha)  # type: ignore[arg-type]

    tails._tail_of.cache_clear()
    tails._width_of.cache_clear()
    monkeypatch.setattr(Inversion, "of", staticmethod(counted))
    return thresholds


def test_a_fresh_question_takes_three_inversions(inversions: list[float]) -> None:
    db = small(Mode.PURE)
    sql = "SELECT sex, COUNT(*) FROM people WHERE age BETWEEN 13 AND 57 GROUP BY sex"
    answer = db.query(sql, within=40, horizon="many")
    assert answer.source == "tree"
    assert 1 <= len(inversions) <= 3


def test_a_repeated_question_takes_none_and_is_not_compiled(
    inversions: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    db = small(Mode.PURE)
    text = "SELECT sex, COUNT(*) FROM people WHERE age BETWEEN 13 AND 57 GROUP BY sex"
    first = db.query(text, within=40)
    inversions.clear()
    monkeypatch.setattr(compiler, "compile", lambda *facts: pytest.fail("compiled before"))
    again = db.query(text, within=40)
    assert (again.values, again.charge) == (first.values, 0)
    assert inversions == []


def test_direct_offers_are_made_once_for_a_request_and_its_views() -> None:
    db = small(Mode.PURE)
    request = db.engine.prepare(QUESTIONS["one range"], Wanted(within=50), None)
    views = db.engine.planner.views()
    first = Direct().offers(request, views)
    assert Direct().offers(request, views) is first
    assert Direct().offers(replace(request), views) is not first
    assert db.engine.planner.views() is views
    db.query("SELECT COUNT(*) FROM people", within=50)
    assert Direct().offers(request, db.engine.planner.views()) is not first


def test_direct_offers_do_not_outlive_their_request() -> None:
    db = small(Mode.PURE)
    gc.collect()
    before = len(direct._MADE)
    Direct().offers(db.engine.prepare(QUESTIONS["one range"], Wanted(within=50), None), db.engine.planner.views())
    gc.collect()
    assert len(direct._MADE) == before


def test_the_search_by_some_of_the_sums_finds_what_that_by_all_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    """And where these spoke wrongly, all are looked at from the start."""
    db = small(Mode.PURE)
    db.query("SELECT age, COUNT(*) FROM people GROUP BY age", within=80)
    found = shop(db, "SELECT MAX(age) FROM people", within=6.0)
    goal = found.request.goal
    exact = found._searched(lambda law: meets(law, goal))
    quick = found._cheapest()
    assert exact is not None
    assert quick is not None
    assert quick.level == exact.level
    monkeypatch.setattr(WeightedRows, "about_tail", lambda self, alpha, enough: 0.0)
    misled = found._cheapest()
    assert misled is not None
    assert misled.level == exact.level
