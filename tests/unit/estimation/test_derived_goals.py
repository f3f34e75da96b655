"""Averages, quantiles, ratios and deviations are as exact as was asked for, and rows no more exact than they need."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from bursar.core.accounting import Noise
from bursar.core.budget import Budget
from bursar.core.domain import Domain, IntegerRange
from bursar.core.noise.system import SystemRandomness
from bursar.core.queries import Steps
from bursar.estimation.derived import Quantile, Ratio, Variance
from bursar.estimation.derived_goals import DerivedGoal
from bursar.estimation.estimate import IndependentRows, NearlyNormal, RepeatedRows, WeightedRows, error_bars, meets
from bursar.estimation.joint_ratios import JointRows
from bursar.goal import Goal
from bursar.planner.goals import Wanted
from bursar.planner.grant import Grant
from bursar.planner.offer import Offer
from bursar.planner.request import PlanningRequest
from bursar.proposers.direct import Direct
from bursar.proposers.strategy import Strategy
from bursar.session import Bursar
from bursar.strategies.ranges import SineStrategy
from bursar.tails import tail
from harness.public import COUNTS, DOMAIN
from harness.small import TableSource, config, engine

EPSILON, RHO = Budget.of(epsilon=900.0), Budget.of(rho=900.0)
MANY = 50 * COUNTS
QUESTIONS = [
    "SELECT AVG(age) FROM people",
    "SELECT sex, AVG(income) FROM people GROUP BY sex",
    "SELECT MEDIAN(age) FROM people",
    "SELECT town, QUANTILE_DISC(income, 0.3) FROM people GROUP BY town",
    "SELECT AVG(age), QUANTILE_CONT(age, 0.9) FROM people",
]
RATIO, VARIANCE = "SELECT SUM(income) / SUM(code) FROM people", "SELECT VARIANCE(age) FROM people"
BESIDE = {
    "SELECT COUNT(*), AVG(age) FROM people": 0.94,
    "SELECT sex, COUNT(*), AVG(income) FROM people GROUP BY sex": 0.97,
    "SELECT town, COUNT(*), MEDIAN(income) FROM people GROUP BY town": 0.98,
    RATIO: 0.85,
    VARIANCE: 0.95,
}
"""Others, and what they cost at most of what rows do that hold together."""


RANKS = "SELECT QUANTILE_CONT(x, 0.3) FROM people"


def opened(budget: Budget = EPSILON) -> Bursar:
    return engine(table=MANY, settings=config(domain=DOMAIN, budget=budget))


def column(values: int = 200) -> Bursar:
    domain = Domain((IntegerRange(name="x", lower=1, upper=values, null=0),))
    return engine(table=np.full(values, 40, np.int64), settings=config(domain=domain, budget=EPSILON))


def planned(db: Bursar, sql: str, **wanted: object) -> PlanningRequest:
    return db.engine.prepare(sql, Wanted(**(wanted or {"within": 60})), None)


def for_rows(goal: Goal) -> Goal:
    """The goal with bars that hold for all rows together."""
    return replace(goal, derived=None)


def cheapest(db: Bursar, request: PlanningRequest) -> Offer:
    views = db.engine.planner.views()
    found = [*Strategy().offers(request, views), *Direct().offers(request, views)]
    return min(found, key=lambda offer: offer.price.at_most)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("budget", [EPSILON, RHO], ids=["epsilon", "rho"])
@pytest.mark.parametrize("sql", QUESTIONS)
def test_they_cost_about_half_of_rows_that_hold_together(sql: str, budget: Budget) -> None:
    db = opened(budget)
    request = planned(db, sql)
    offer = cheapest(db, request)
    rows = cheapest(db, replace(request, goal=for_rows(request.goal)))
    assert meets(offer.law, request.goal)
    assert not meets(offer.law, for_rows(request.goal))
    share = 0.95 if sql is QUESTIONS[-1] else 0.72  # a share of beta for each output
    assert offer.price.at_most < share * rows.price.at_most
    assert meets(rows.law, request.goal)  # whoever has more exact rows keeps it as well


@pytest.mark.parametrize("budget", [EPSILON, RHO], ids=["epsilon", "rho"])
@pytest.mark.parametrize("sql", BESIDE)
def test_beside_counts_and_for_ratios_and_variances_they_cost_less(sql: str, budget: Budget) -> None:
    db = opened(budget)
    request = planned(db, sql)
    offer = cheapest(db, request)
    rows = cheapest(db, replace(request, goal=for_rows(request.goal)))
    assert meets(offer.law, request.goal)
    assert offer.price.at_most < BESIDE[sql] * rows.price.at_most


@pytest.mark.parametrize("sql", ["SELECT SUM(age) FROM people", "SELECT MAX(age) FROM people"])
def test_what_has_a_bar_of_its_own_keeps_it(sql: str) -> None:
    assert planned(opened(), sql).goal.derived is None


def bars_of(db: Bursar, request: PlanningRequest) -> tuple[DerivedGoal, JointRows, np.ndarray]:
    goal, law = request.goal, cheapest(db, request).law
    assert isinstance(goal.derived, DerivedGoal)
    rows = JointRows.of(law, request.workload.index, goal.derived.times)
    assert rows is not None
    return goal.derived, rows, error_bars(law, goal)


@pytest.mark.parametrize("sql", ["SELECT sex, COUNT(*), AVG(income) FROM people GROUP BY sex", *list(BESIDE)[:1]])
@pytest.mark.parametrize("budget", [EPSILON, RHO], ids=["epsilon", "rho"])
def test_counts_beside_averages_are_within_their_error(sql: str, budget: Budget) -> None:
    """And leave enough of beta to the others. The wrong twin lets them have all of it."""
    db = opened(budget)
    request = planned(db, sql)
    derived, rows, widths = bars_of(db, request)
    counts = np.flatnonzero(np.isfinite(derived.bars))
    assert len(counts) == len(request.workload.index)
    assert np.all(widths[counts] <= request.goal.amount * derived.bars[counts])
    beta = request.goal.beta
    chance = rows.chance_beyond(widths, counts, beta)
    assert 0 < chance < beta
    ends = replace(derived, bars=np.full_like(derived.bars, np.inf))  # the averages alone
    assert ends.kept_by(rows.law, request.goal.amount, beta - chance)
    assert not ends.kept_by(rows.law, request.goal.amount, (beta - chance) / 1e6)


TWO = "SELECT COUNT(*), AVG(x), AVG(y) FROM people"


def two_columns(budget: Budget) -> Bursar:
    columns = tuple(IntegerRange(name=name, lower=0, upper=70, null=0) for name in "xy")
    return engine(table=np.full((71, 71), 4, np.int64), settings=config(domain=Domain(columns), budget=budget))


@pytest.mark.parametrize(("budget", "share"), [(EPSILON, 0.87), (RHO, 1.2)], ids=["epsilon", "rho"])
def test_averages_of_two_columns_cost_hardly_more_than_one_by_one(budget: Budget, share: float) -> None:
    """Though their bars hold together. Of a count beside them there is nothing left to pay."""
    db = two_columns(budget)
    both = cheapest(db, planned(db, TWO)).price.at_most
    alone = [f"SELECT {each} FROM people" for each in ("COUNT(*)", "AVG(x)", "AVG(y)")]
    assert both < share * sum(cheapest(db, planned(db, sql)).price.at_most for sql in alone)


def test_errors_of_their_own_are_for_counts_and_averages_alike() -> None:
    """An average that may be off by few people needs an exact count; a COUNT beside it does not have to be."""
    db = opened()
    strict, loose = (
        planned(db, f"SELECT COUNT(*) AS n, AVG(age) AS a FROM people WITH ERROR {n} ON n, 30 ON a", confidence=0.95)
        for n in (30, 3000)
    )
    assert cheapest(db, loose).price.at_most < cheapest(db, strict).price.at_most


@pytest.mark.parametrize("sql", [RATIO, VARIANCE, "SELECT STDDEV_POP(income) FROM people", QUESTIONS[0]])
def test_no_combination_is_left_out(sql: str) -> None:
    """Each that the truth can make matter is within what E people come to. The wrong twin has 1.5 times the noise."""
    db = opened()
    request = planned(db, sql)
    (form,), (offer,) = request.workload.forms, Direct().offers(request, db.engine.planner.views())
    derived = request.goal.derived
    assert isinstance(derived, DerivedGoal)
    assert isinstance(offer.law, IndependentRows)
    noise, rows = offer.law.noise, offer.law.rows
    law = next(
        IndependentRows(noise=louder, rows=rows)
        for times in np.arange(3.0, 0.9, -0.02)
        if derived.kept_by(
            IndependentRows(noise=(louder := replace(noise, scale=times * noise.scale)), rows=rows),
            request.goal.amount,
            request.goal.beta,
        )
    )
    people, twin = request.goal_in_counts.amount, replace(law.noise, scale=1.5 * law.noise.scale)
    of_rows = np.zeros((len(form.columns), rows))
    index = request.workload.index[0, list(form.columns)]
    of_rows[np.arange(len(index)), index] = 1 / derived.times[index]
    beyond = {"right": 0.0, "twin": 0.0}
    for weights, span in combinations(form, of_rows):
        for name, drawn in (("right", law.noise), ("twin", twin)):
            beyond[name] = max(beyond[name], tail(weights, [drawn] * rows, people * span))
    assert beyond["right"] <= request.goal.beta < beyond["twin"]


def combinations(form: Ratio | Variance, columns: np.ndarray) -> Iterator[tuple[np.ndarray, float]]:
    """What must be within a span, for random ratios, means and variances, and those at the ends of what they can be."""
    random = np.random.default_rng(7)
    if isinstance(form, Variance):
        n, s, q = np.array(form.units)[:, None] * columns
        h = form.units[1] * form.steps[1]
        for m, share in [*random.uniform((-1, 0), (1, 1), (60, 2)), (0, 0), (0, 1), (1, 0), (-1, 0)]:
            mean, v = m * h, share * (h**2 - (m * h) ** 2)
            yield q - 2 * mean * s + (mean**2 - v) * n, (h + abs(mean)) ** 2
        return
    above, below = (np.array(side.weights) @ columns for side in (form.above, form.below))
    if np.isfinite(form.highest):
        yield from ((above - t * below, form.highest - form.lowest) for t in np.linspace(form.lowest, form.highest, 40))
        return
    a, b = (np.abs(side.weights) @ np.array(side.steps) for side in (form.above, form.below))
    for t in [0.0, *np.tan(random.uniform(-np.pi / 2, np.pi / 2, 60)) * a / b, 1e9 * a / b]:
        yield above - t * below, a + abs(t) * b


@pytest.mark.parametrize("wanted", [{"rmse": 20.0}, {"epsilon": 0.1}])
def test_other_goals_are_for_rows(wanted: dict[str, float]) -> None:
    assert planned(opened(), QUESTIONS[0], **wanted).goal.derived is None


@pytest.mark.parametrize("sql", QUESTIONS)
def test_no_more_noise_would_do(sql: str) -> None:
    db = opened()
    request = planned(db, sql)
    (offer,) = Direct().offers(request, db.engine.planner.views())
    assert isinstance(offer.law, IndependentRows)
    louder = Noise(kind=offer.law.noise.kind, scale=1.01 * offer.law.noise.scale)
    assert meets(offer.law, request.goal)
    assert not meets(replace(offer.law, noise=louder), request.goal)


def people_off(request: PlanningRequest, law: IndependentRows, exact: np.ndarray) -> float:
    """By how many people the ends of all outputs are off, at most, in units of what was asked for."""
    workload, widths = request.workload, error_bars(law, request.goal)
    values = exact + SystemRandomness().draw(law.noise, law.rows)
    asked = request.goal_in_counts.amount
    times = 1.0 if workload.times is None else workload.times
    columns = np.append(values / times, 0.0)[workload.index]
    most = 0.0
    derived = workload.derive(values, values - widths, values + widths, law, request.goal.beta)
    for form, one in zip(workload.forms, derived, strict=True):
        inputs = columns[:, list(form.columns)]
        if isinstance(form, Ratio):
            above, below = form.above.at(inputs), form.below.at(inputs)
            reach = np.maximum(one.high * below - above, above - one.low * below)  # times below, which may be 0
            most = max(most, float(reach.max()) / (form.highest - form.lowest) / asked)
            continue
        assert isinstance(form, Quantile)
        ranks, points = inputs - float(form.share) * inputs[:, -1:], np.array(form.points)
        for line, distance in enumerate(ranks):  # of the last value before the upper end, and of the lower end
            place, first = np.searchsorted(points, one.high[line]), np.searchsorted(points, one.low[line])
            most = max(most, (distance[place - 1] - 1) / asked if place else 0.0, -(distance[first] + 1) / asked)
    return most


@pytest.mark.thinned(3)
@pytest.mark.parametrize("sql", [*QUESTIONS[:2], RANKS])
def test_ends_are_no_further_than_the_people_asked_for(sql: str) -> None:
    """The wrong twin has twice the noise, and bars that say so: they reach further."""
    db, table = (column(), np.full(200, 40)) if sql is RANKS else (opened(), MANY)
    request = planned(db, sql)
    exact = request.workload.map.apply(TableSource(table, db.engine.domain).table).astype(float)
    (offer,) = Direct().offers(request, db.engine.planner.views())
    assert isinstance(offer.law, IndependentRows)
    assert max(people_off(request, offer.law, exact) for _ in range(20)) <= 1.02
    twin = replace(offer.law, noise=Noise(kind=offer.law.noise.kind, scale=2 * offer.law.noise.scale))
    assert max(people_off(request, twin, exact) for _ in range(20)) > 1.02


def test_goals_that_ask_for_the_same_are_equal() -> None:
    """Plans are remembered by goals."""
    one, same = (planned(opened(), QUESTIONS[2]).goal for _ in range(2))
    assert one == same
    assert hash(one) == hash(same)
    counts = "SELECT COUNT(*) AS n, AVG(age) AS a FROM people WITH ERROR {} ON n, 30 ON a"
    assert (
        planned(opened(), counts.format(30), confidence=0.9).goal
        != planned(opened(), counts.format(60), confidence=0.9).goal
    )
    assert one.derived != planned(opened(), "SELECT QUANTILE_CONT(age, 0.9) FROM people").goal.derived


def test_a_law_that_knows_nothing_of_rows_together_keeps_nothing() -> None:
    request = planned(opened(), QUESTIONS[2])

    class Alone:
        def tail(self, alpha: float, enough: float) -> float:
            return 1.0

        def half_widths(self, beta: float) -> np.ndarray:
            return np.ones(1)

        def mean_square(self) -> float:
            return 0.0

    assert isinstance(request.goal.derived, DerivedGoal)
    assert not request.goal.derived.kept_by(Alone(), request.goal.amount, request.goal.beta)
    assert np.isinf(request.goal.derived.reach(Alone(), request.goal.beta))


def test_even_bars_hold_for_all_rows_and_no_narrower_ones_do() -> None:
    db = column(300)
    request = db.engine.prepare("SELECT MEDIAN(x) FROM people", Wanted(within=300), None)
    (offer,) = Strategy().offers(request, db.engine.planner.views())
    assert isinstance(offer.law, RepeatedRows)
    bars = offer.law.even_bars(0.05)
    assert len(set(bars.tolist())) == 1
    assert offer.law.tail(float(bars[0]), 0.05) <= 0.05 < offer.law.tail(0.99 * float(bars[0]), 0.05)


LONG_COLUMN, TRIALS = 600, 120


def by_sines() -> tuple[Bursar, PlanningRequest, Offer]:
    domain = Domain((IntegerRange(name="x", lower=1, upper=LONG_COLUMN, null=0),))
    db = engine(table=np.full(LONG_COLUMN, 30, np.int64), settings=config(domain=domain, budget=RHO))
    request = db.engine.prepare("SELECT MEDIAN(x) FROM people", Wanted(within=100, confidence=0.8), None)
    (offer,) = Strategy().offers(request, db.engine.planner.views())
    assert isinstance(offer.law, NearlyNormal)
    return db, request, offer


@pytest.mark.heavy
def test_a_median_by_sines_is_cheaper_than_all_running_totals() -> None:
    db, request, offer = by_sines()
    (rows,) = Strategy().offers(replace(request, goal=for_rows(request.goal)), db.engine.planner.views())
    assert meets(offer.law, request.goal)
    assert offer.price.at_most < 0.4 * rows.price.at_most
    first = db.query("SELECT MEDIAN(x) FROM people", within=100)
    assert first.charge > 0
    assert db.query("SELECT MEDIAN(x) FROM people", within=100).free


def test_the_ranks_of_a_transform_have_the_lengths_of_their_differences() -> None:
    """Twice a running total less all rows, as whole numbers: for a median that is twice the rank's error."""
    _, _, offer = by_sines()
    (strategy_map,) = (event.strategy for event in offer.price.events)
    strategy = SineStrategy.of(strategy_map)
    assert strategy is not None
    at = np.arange(1, LONG_COLUMN)
    jumps = np.column_stack([np.zeros_like(at), at]).ravel()
    twice = Steps(LONG_COLUMN, np.arange(0, 2 * LONG_COLUMN, 2), jumps, np.tile([1, -2], LONG_COLUMN - 1))
    lengths = np.sqrt(strategy.variances(twice))
    assert isinstance(offer.law, NearlyNormal)
    assert 2 * offer.law.ranks(0.5).lengths[:-1] == pytest.approx(lengths, rel=1e-6)
    assert offer.law.ranks(0.0).lengths == pytest.approx(offer.law.lengths, rel=1e-6)


@pytest.mark.heavy
def test_averages_of_two_columns_are_covered_and_by_a_third_of_the_noise_are_not() -> None:
    db = two_columns(EPSILON)
    request = planned(db, TWO, within=300, confidence=0.8)
    offer = cheapest(db, request)
    assert isinstance(offer.law, WeightedRows)
    assert len(offer.price.events) == 2  # one for each column
    quiet = replace(
        offer.law,
        noises=tuple(replace(noise, scale=noise.scale / 3) for noise in offer.law.noises),
        tails={},
        widths={},
    )
    covered, truth = dict.fromkeys(("right", "twin"), 0), (4 * 71**2, 35.0, 35.0)
    bars = {name: (law, error_bars(law, request.goal)) for name, law in (("right", offer.law), ("twin", quiet))}
    for _ in range(TRIALS):
        with Grant(db.kernel, "ana", "why", offer.price.events, offer.price.at_most) as grant:
            values = offer.run(grant).values
        for name, (law, widths) in bars.items():
            found = request.workload.derive(values, values - widths, values + widths, law, request.goal.beta)
            covered[name] += all(one.low[0] <= true <= one.high[0] for one, true in zip(found, truth, strict=True))
    fewest = binom.ppf(1e-6, TRIALS, 0.8)
    assert covered["twin"] < fewest <= covered["right"]


def test_medians_by_sines_are_covered_and_by_a_third_of_the_noise_are_not() -> None:
    db, request, offer = by_sines()
    assert isinstance(offer.law, NearlyNormal)
    quiet = replace(offer.law, noise=Noise(kind=offer.law.noise.kind, scale=offer.law.noise.scale / 3))
    covered = dict.fromkeys(("right", "twin"), 0)
    for _ in range(TRIALS):
        with Grant(db.kernel, "ana", "why", offer.price.events, offer.price.at_most) as grant:
            values = offer.run(grant).values
        for name, law in (("right", offer.law), ("twin", quiet)):
            widths = error_bars(law, request.goal)
            (one,) = request.workload.derive(values, values - widths, values + widths, law, request.goal.beta)
            covered[name] += int(one.low[0] <= LONG_COLUMN / 2 + 0.5 <= one.high[0])
    fewest = binom.ppf(1e-6, TRIALS, 0.8)
    assert covered["twin"] < fewest <= covered["right"]
