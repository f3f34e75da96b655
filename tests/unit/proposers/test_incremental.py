"""One row at a time: cheaper than asking, free where there is slack, and the stated law is that of the answer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from bursar.core.budget import Budget
from bursar.core.domain import Categories, Domain, IntegerRange
from bursar.estimation.estimate import WeightedRows, meets
from bursar.estimation.least_squares import Reconstruction
from bursar.goal import Horizon
from bursar.planner.choose import Preset, offers
from bursar.planner.goals import Wanted
from bursar.planner.grant import Grant
from bursar.planner.offer import Offer, Views
from bursar.planner.request import PlanningRequest
from bursar.proposers.direct import Direct
from bursar.proposers.incremental import Incremental, information_of
from bursar.proposers.reuse import Reconstruct
from bursar.session import Bursar
from bursar.views.baseline import CAP, FIRST_CAP, FIRST_QUESTIONS
from harness.small import config, counts, engine

PRESET = Preset("one at a time", (Reconstruct(), Incremental(), Direct()))
LINE = Domain((IntegerRange(name="x", lower=0, upper=39, null=0),))


def small(**changes: object) -> Bursar:
    return engine(settings=config(**{"budget": Budget.of(rho=900.0), **changes}), preset=PRESET)


def line(table: np.ndarray | None = None) -> Bursar:
    table = np.arange(40) if table is None else table
    return engine(table=table, settings=config(domain=LINE, budget=Budget.of(rho=900.0)), preset=PRESET)


def between(low: int, high: int) -> str:
    return f"SELECT COUNT(*) FROM people WHERE x BETWEEN {low} AND {high}"


def asked(db: Bursar, sql: str, **wanted: float) -> tuple[PlanningRequest, list[Offer]]:
    request = db.engine.prepare(sql, Wanted(**wanted), None)
    return request, list(offers(Preset("alone", (Incremental(),)), request, db.engine.planner.views()))


def bought(db: Bursar, offer: Offer) -> np.ndarray:
    with Grant(db.kernel, "ana", "why", offer.price.events, offer.price.at_most) as grant:
        return offer.run(grant).values


def test_nothing_is_offered_before_anything_is_known() -> None:
    assert asked(line(), between(3, 9), within=20)[1] == []


@pytest.mark.parametrize("wanted", [{"epsilon": 0.1}, {"rho": 0.1}])
def test_a_price_as_goal_is_for_others(wanted: dict[str, float]) -> None:
    budget = Budget.of(epsilon=9.0) if "epsilon" in wanted else Budget.of(rho=9.0)
    db = engine(settings=config(domain=LINE, budget=budget), table=np.arange(40), preset=PRESET)
    db.query(between(0, 39), within=30)
    assert asked(db, between(3, 9), **wanted)[1] == []


def test_nothing_is_offered_in_pure_mode() -> None:
    db = engine(settings=config(domain=LINE, budget=Budget.of(epsilon=9.0)), table=np.arange(40), preset=PRESET)
    db.query(between(0, 39), within=30)
    assert asked(db, between(3, 9), within=20)[1] == []


@pytest.mark.parametrize("wanted", [{"within": 20.0}, {"rmse": 10.0}])
def test_a_question_like_an_earlier_one_costs_less_than_asking_it(wanted: dict[str, float]) -> None:
    db = line()
    db.query(between(3, 30), **wanted)
    request, (offer,) = asked(db, between(3, 31), **wanted)
    direct = min(each.bid for each in Direct().offers(request, db.engine.planner.views()))
    assert 0 < offer.bid < 0.6 * direct
    assert meets(offer.law, request.goal)
    assert offer.reuses == offer.buys == 1
    assert "rounded by" in offer.note


def test_people_about_whom_less_was_told_are_asked_for_free() -> None:
    db = line()
    db.query(between(0, 4), rmse=1.0)
    _, (offer,) = asked(db, between(10, 30), rmse=2.0)
    assert offer.bid == 0
    assert offer.buys == 1
    before = db.kernel.spent()
    answer = db.query(between(10, 30), rmse=2.0)
    assert answer.source == "incremental"
    assert answer.charge == 0.0
    assert db.kernel.spent() == before


ranges = st.tuples(st.integers(0, 39), st.integers(0, 39)).map(sorted)


@settings(max_examples=12, deadline=None)
@given(st.lists(st.tuples(ranges, st.sampled_from((8.0, 10.0, 13.0))), min_size=3, max_size=14))
def test_every_goal_is_kept_for_no_more_than_asking_and_slack_is_free(wanted: list[tuple[list[int], float]]) -> None:
    """The kernel charges exactly what was offered, and nothing where the offer says that slack is enough."""
    db = line()
    for (low, high), rmse in wanted:
        request, offers = asked(db, between(low, high), rmse=rmse)
        direct = min(each.bid for each in Direct().offers(request, db.engine.planner.views()))
        chosen, before = db.engine.planner.choose(request), db.kernel.spent()
        assert chosen.bid <= direct
        assert meets(chosen.law, request.goal)
        for offer in offers:
            assert ("slack" in offer.note) == (offer.bid == 0)
        bought(db, chosen)
        assert db.kernel.spent() - before == chosen.bid


@pytest.mark.parametrize("wanted", [{"within": 40.0}, {"rmse": 15.0}])
def test_few_rows_are_bought_one_after_the_other(wanted: dict[str, float]) -> None:
    db = small()
    db.query("SELECT COUNT(*) FROM people WHERE age < 5", **wanted)
    request, offers = asked(db, "SELECT sex, COUNT(*) FROM people WHERE age < 6 GROUP BY sex", **wanted)
    offer = min(offers, key=lambda each: each.bid)
    assert 1 <= offer.buys <= 2
    assert len(offer.price.events) == offer.buys
    assert meets(offer.law, request.goal)
    truth = counts()[:6].sum(axis=(0, 2))
    assert np.abs(bought(db, offer) - truth).max() < 8 * np.sqrt(offer.law.mean_square())


def test_a_question_with_many_rows_is_left_to_others() -> None:
    db = small()
    db.query("SELECT COUNT(*) FROM people", within=20)
    assert asked(db, "SELECT age, sex, COUNT(*) FROM people GROUP BY age, sex", within=50)[1] == []


def test_plans_depend_on_the_question_and_the_log_only() -> None:
    db = line()
    for low, high in ((3, 30), (5, 20), (0, 33)):
        db.query(between(low, high), rmse=10)
    proposer = Incremental()
    first, second = (
        each.offers(db.engine.prepare(between(7, 31), Wanted(rmse=8), None), db.engine.planner.views())[0]
        for each in (Incremental(), proposer)
    )
    proposer.offers(db.engine.prepare(between(1, 2), Wanted(rmse=3), None), db.engine.planner.views())
    third = proposer.offers(db.engine.prepare(between(7, 31), Wanted(rmse=8), None), db.engine.planner.views())[0]
    for other in (second, third):
        for mine, its in zip(first.price.events, other.price.events, strict=True):
            assert mine.strategy.digest == its.strategy.digest
            assert mine.noise == its.noise


@pytest.fixture(scope="module")
def squares() -> float:
    """The sum, over 320 runs of three questions, of the last one's squared error over its stated variance."""
    table, total = np.arange(40), 0.0
    for _ in range(320):
        db = line(table)
        for low, high in ((3, 30), (5, 20)):
            bought(db, db.engine.planner.choose(db.engine.prepare(between(low, high), Wanted(rmse=10), None)))
        _, (offer,) = asked(db, between(4, 27), rmse=6)
        assert isinstance(offer.law, WeightedRows)
        error = bought(db, offer)[0] - table[4:28].sum()
        total += float(error**2 / offer.law.variances[0])
    return total


@pytest.mark.soak
@pytest.mark.parametrize("stated", [1.0, 2.0], ids=["as stated", "twice the variance stated"])
def test_errors_have_the_stated_variance(stated: float, squares: float) -> None:
    """At alpha 1e-6; the wrong twin states half of the true variance, and is accepted with probability 4e-5."""
    inside = chi2.ppf(5e-7, 320) < stated * squares < chi2.ppf(1 - 5e-7, 320)
    assert inside == (stated == 1.0)


def test_a_goal_beyond_any_noise_is_not_offered() -> None:
    db = line()
    db.query(between(0, 39), rmse=30)
    request, _ = asked(db, between(3, 9), rmse=10)
    hopeless = replace(request, goal=replace(request.goal, amount=2.0**-60))
    assert Incremental().offers(hopeless, db.engine.planner.views()) == []


def test_what_is_free_ends_the_search_and_explain_looks_further(monkeypatch: pytest.MonkeyPatch) -> None:
    plane = Domain((*LINE.attributes, IntegerRange(name="y", lower=0, upper=1, null=0)))
    table, preset = np.ones((40, 2), np.int64), Preset("all", (Incremental(), Direct()))
    db = engine(table=table, settings=config(domain=plane, budget=Budget.of(rho=900.0)), preset=preset)
    for text in (between(0, 9), f"{between(0, 9)} AND y = 0"):
        db.query(text, within=20)
    planned: list[tuple[str, ...]] = []
    plan = Incremental._offer

    def noted(self: Incremental, known: Reconstruction, request: PlanningRequest, views: Views) -> Offer | None:
        planned.append(known.columns)
        return plan(self, known, request, views)

    monkeypatch.setattr(Incremental, "_offer", noted)
    request, offers = asked(db, between(0, 19), within=60)
    assert [offer.free for offer in offers] == [True]
    assert planned == [("x",)]
    Incremental().offers(replace(request, asked=replace(request.asked, explain=True)), db.engine.planner.views())
    assert planned[1:] == [("x",), ("x", "y")]
    assert not asked(db, between(5, 29), within=20)[1][0].free
    assert planned[3:] == [("x",), ("x", "y")]


def test_variances_that_are_too_far_apart_leave_nothing_negative() -> None:
    """The plain inverse of such a covariance has large negative numbers on its diagonal."""
    rows = np.random.default_rng(0).normal(size=(75, 40))
    covariance = 1e8 * rows @ rows.T + 1e-6 * np.eye(75)
    assert np.linalg.inv(covariance).diagonal().min() < 0
    found = information_of(covariance)
    assert found.diagonal().min() > 0
    assert np.abs(found - found.T).max() <= 1e-12 * found.max()
    assert np.allclose(rows.T @ found @ rows, 1e-8 * np.eye(40), atol=1e-9)  # what 40 rows tell is still known


def test_usual_covariances_are_simply_inverted() -> None:
    rows = np.random.default_rng(1).normal(size=(9, 20))
    assert np.allclose(information_of(rows @ rows.T) @ rows @ rows.T, np.eye(9))


AHEAD = Preset("ahead", (Reconstruct(), Incremental(), Direct()), plain=Direct())
"""As above, where questions are noted, so that rows may be bought for ranges like them."""


def session(horizon: Horizon, number: int = 90) -> tuple[Bursar, list[Offer]]:
    """Random ranges with ends about two values, and the offers that were taken."""
    domain = Domain((IntegerRange(name="x", lower=0, upper=59, null=0),))
    db = engine(
        table=np.arange(60), settings=config(domain=domain, budget=Budget.of(rho=900.0), horizon=horizon), preset=AHEAD
    )
    rng, taken = np.random.default_rng(5), []
    for low, high in zip(rng.integers(8, 20, number), rng.integers(35, 50, number), strict=True):
        request = db.engine.prepare(between(int(low), int(high)), Wanted(rmse=20), None)
        offer = db.engine.planner.choose(request)
        bought(db, offer)
        taken.append(offer)
    return db, taken


@pytest.mark.heavy
def test_ranges_like_those_asked_are_bought_ahead() -> None:
    """At most half as much more than the question costs, and within the cap; in the end less is spent."""
    db, taken = session(Horizon.SOME)
    ahead = [offer for offer in taken if offer.credit > 0]
    assert ahead
    assert not any(offer.credit for offer in taken[:1])
    for offer in ahead:
        assert offer.price.at_most <= 1.5 * (offer.price.at_most - offer.credit) + 1
        assert "more rows for ranges like those asked" in offer.note
        assert offer.law.mean_square() <= 400 * (1 + 1e-9)
    alone, none = session(Horizon.ONE_OFF)
    assert not any(offer.credit for offer in none)
    assert db.budget().spent < 0.85 * alone.budget().spent
    assert sum(offer.free for offer in taken) > sum(offer.free for offer in none)


def test_what_is_bought_ahead_stays_below_the_cap() -> None:
    """Whatever is bought for later questions: spent <= c times what plain noise with a cache would have spent."""
    domain = Domain((IntegerRange(name="x", lower=0, upper=59, null=0),))
    db = engine(table=np.arange(60), settings=config(domain=domain, budget=Budget.of(rho=900.0)), preset=AHEAD)
    rng, ahead = np.random.default_rng(8), 0
    for number in range(1, 31):
        low, high = sorted(rng.choice(61, 2, replace=False).tolist())
        request = db.engine.prepare(between(low, high - 1), Wanted(rmse=float(rng.choice([10, 20, 40]))), None)
        offer = db.engine.planner.choose(request)
        bought(db, offer)
        compared = db.engine.planner.comparison("ana")
        if offer.credit > 0:
            ahead += 1
            cap = FIRST_CAP if compared.questions <= FIRST_QUESTIONS else CAP
            assert compared.spent <= cap * compared.cached * (1 + 1e-9)
        assert number == 1 or compared.spent <= 1.1 * CAP * compared.cached
    assert ahead > 3


def test_columns_without_order_are_not_bought_ahead() -> None:
    domain = Domain((Categories(name="x", values=tuple(f"v{place}" for place in range(40))),))
    db = engine(table=np.arange(42), settings=config(domain=domain, budget=Budget.of(rho=900.0)), preset=AHEAD)
    for place in range(12):
        values = ", ".join(f"'v{other}'" for other in range(place, place + 9))
        request = db.engine.prepare(f"SELECT COUNT(*) FROM people WHERE x IN ({values})", Wanted(rmse=20), None)
        offer = db.engine.planner.choose(request)
        assert offer.credit == 0
        bought(db, offer)
