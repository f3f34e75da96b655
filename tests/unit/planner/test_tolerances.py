"""Rows that may err by different amounts become multiples with one error for all."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bursar.errors import GoalError, QueryError
from bursar.estimation.simultaneous import Family
from bursar.goal import Goal, GoalKind, OutputGoal
from bursar.planner.admit import admit
from bursar.planner.choose import choose
from bursar.planner.goals import Wanted, in_counts
from bursar.planner.request import LARGEST_RATIO, PlanningRequest, balance, tolerances
from harness.small import DOMAIN, Silence, config, counts, engine

AGES = counts().sum(axis=(1, 2))


def request(sql: str, **wanted: object) -> PlanningRequest:
    return engine(settings=config(public_size=1000)).engine.prepare(sql, Wanted(**wanted), None)


def allowed(sql: str, **wanted: object) -> list[float]:
    """What the rows behind the columns of a question with one line may err by."""
    made = request(sql, **wanted)
    found = tolerances(made.asked, made.goal_in_counts)
    return [float(found[row]) for row in made.asked.workload.index[0]]


@pytest.mark.parametrize(
    ("sql", "within", "rows"),
    [
        ("SELECT COUNT(*) FROM people", 50, [50]),
        ("SELECT SUM(age) FROM people", 50, [50]),
        ("SELECT SUM(CASE WHEN age < 3 THEN 2.5 END) FROM people", 50, [20]),  # a count, 2.5 times
        ("SELECT AVG(age) FROM people", 50, [5 * 50, 50]),  # ages are up to 5 away from the centre
        ("SELECT VAR_POP(age) FROM people", 50, [50, 5 * 50, 25 * 50]),
        ("SELECT SUM(age) / COUNT(*) FROM people", 50, [9 * 50, 50]),
        ("SELECT COUNT(*), SUM(age) FROM people", "5%", [50, 9 * 50]),  # of 1,000 people
        ("SELECT COUNT(*) AS n, AVG(age) FROM people WITH ERROR 10 ON n, 50", None, [10, 5 * 50, 10]),
        ("SELECT COUNT(*) AS n, SUM(age) AS t FROM people WITH ERROR 10 ON n, 2% ON t", None, [10, 9 * 20]),
    ],
)
def test_what_rows_may_err_by(sql: str, within: float | str | None, rows: list[float]) -> None:
    assert allowed(sql, **({} if within is None else {"within": within})) == pytest.approx(rows)


def test_a_question_about_counts_is_planned_as_it_is() -> None:
    made = request("SELECT sex, COUNT(*) FROM people GROUP BY sex", within=50)
    assert (made.workload.times, made.goal.amount, made.step) == (None, 50, 1.0)
    assert made.workload.map.digest == made.asked.workload.map.digest


def test_multiples_make_one_error_fit_all() -> None:
    made = request("SELECT COUNT(*) AS n, SUM(age) AS t FROM people WITH ERROR 20 ON n, 90 ON t")
    times = made.workload.times[made.workload.index[0]]
    assert (times.tolist(), made.goal.amount, made.goal.parts) == ([9, 2], 180, ())
    exact = made.workload.map.apply(engine().engine.open_source(b"").table)
    assert (exact / made.workload.times)[made.workload.index[0]].tolist() == [AGES.sum(), AGES @ np.arange(10)]


def test_odd_ratios_are_rounded_to_the_safe_side() -> None:
    made = request("SELECT COUNT(*) AS n, SUM(age) AS t FROM people WITH ERROR 10 ON n, 31.4159 ON t")
    times = made.workload.times[made.workload.index[0]]
    assert np.all(made.goal.amount / times <= [10, 31.4159 + 1e-9])
    assert np.all(made.goal.amount / times >= [9.8, 30.8])


def test_far_apart_errors_stay_within_bounds() -> None:
    made = request("SELECT COUNT(*) AS n, SUM(age) AS t FROM people WITH ERROR 0.001 ON n, 1e9 ON t")
    assert made.workload.times.max() == LARGEST_RATIO
    assert made.goal.amount / made.workload.times.max() <= 0.001 * (1 + 1e-9)


def test_nothing_at_all() -> None:
    made = request("SELECT SUM(age) FROM people WHERE FALSE", within=5)
    assert balance(made.asked.workload.map, np.zeros(0)).times is None
    assert engine().engine.ask(made).values == ((0.0,),)


def test_percentages_of_parts() -> None:
    goal = Goal(
        kind=GoalKind.ERROR,
        amount=5,
        parts=(OutputGoal(amount=5, output="n"), OutputGoal(amount=2, percent=True, output="t")),
    )
    found = in_counts(goal, 1000, lambda beta: None)
    assert [(part.amount, part.percent) for part in found.parts] == [(5, False), (20, False)]
    measured = in_counts(goal, None, lambda beta: 500.0)
    assert (measured.parts[1].amount, measured.confidence) == (10, pytest.approx(0.955))
    with pytest.raises(GoalError, match="a percentage needs the number of rows"):
        in_counts(goal, None, lambda beta: None)


def test_answers_are_in_the_units_of_the_question() -> None:
    db = engine(randomness=Silence())
    sql = "SELECT COUNT(*) AS n, SUM(age) AS t, AVG(age) AS a, STDDEV_POP(age) AS s, MEDIAN(age) AS m FROM people"
    answer = db.query(f"{sql} WITH ERROR 500")
    ages = np.repeat(np.arange(10), AGES)
    assert answer.values[0] == pytest.approx(
        (len(ages), ages.sum(), ages.mean(), ages.std(), np.median(ages)), rel=1e-6
    )
    for low, value, high in zip(answer.low[0], answer.values[0], answer.high[0], strict=True):
        assert low <= value <= high
    assert answer.errors[:2] == pytest.approx((500, 500), rel=0.5)


def test_a_batch_is_balanced_as_a_whole() -> None:
    db = engine(randomness=Silence())
    batch = db.batch(["SELECT AVG(age) FROM people", "SELECT sex, COUNT(*) FROM people GROUP BY sex"], within=200)
    ages = np.repeat(np.arange(10), AGES)
    assert batch.answers[0].value == pytest.approx(ages.mean())
    assert [line[0] for line in batch.answers[1].values] == counts().sum(axis=(0, 2)).tolist()
    assert batch.answers[1].error <= 200
    assert "as shown" in str(batch)


def test_a_refusal_names_errors_that_fit() -> None:
    db = engine()
    sql = "SELECT COUNT(*) AS n, SUM(age) AS t FROM people"
    with pytest.raises(Exception, match="ON n, ") as refused:
        db.query(f"{sql} WITH ERROR 0.1 ON n, 0.5 ON t")
    assert db.budget().left == 1.0
    made = db.engine.prepare(f"{sql} {refused.value.fits}", Wanted(), None)
    assert choose(db.engine.planner.preset, made, db.engine.planner.views("ana")) is not None
    assert db.query(f"{sql} {refused.value.fits}").charge <= 1.0


def test_explain_speaks_of_errors_as_they_were_asked_for() -> None:
    told = engine().explain("SELECT COUNT(*) AS n, SUM(age) AS t FROM people WITH ERROR 50 ON n, 450 ON t")
    assert told.goal == "WITH ERROR 50 ON n, 450 ON t CONFIDENCE 95%"
    assert told.offers[told.chosen].error <= 50
    assert "±" in str(told)


def test_the_same_key_is_for_the_same_output_only() -> None:
    one, other = (request(f"SELECT {what}(age) AS x FROM people", within=50) for what in ("VAR_POP", "STDDEV_POP"))
    assert one.asked.workload.map.digest == other.asked.workload.map.digest
    assert one.asked.question != other.asked.question


def test_a_price_is_explained_in_the_unit_of_a_sum_or_in_people() -> None:
    """Laplace noise for a weight of 9 in a sum; for 1 in a count and 1 in a sum, in people, at half the chance each."""
    for what, error in (("SUM", 9 / 0.5 * math.log(20)), ("AVG", 2 / 0.5 * math.log(40))):
        told = engine().explain(f"SELECT {what}(age) FROM people WITH EPSILON 0.5")
        (direct,) = [line for line in told.offers if line.proposer == "direct"]
        assert direct.error == pytest.approx(error, rel=0.05)


def test_the_simultaneous_contract_takes_one_error_for_all() -> None:
    family = Family(domain=DOMAIN, sets=(("age",),))
    two = "SELECT COUNT(*) AS n, COUNT(*) FILTER (WHERE age < 3) AS y FROM people"
    admit(family, request(f"{two} WITH ERROR 20"))
    with pytest.raises(GoalError, match="share one error"):
        admit(family, request(f"{two} WITH ERROR 20 ON n, 10 ON y"))
    with pytest.raises(QueryError, match="one range of neighbouring values"):
        admit(family, request("SELECT SUM(age) FROM people WITH ERROR 20"))
    admit(family, request("SELECT MEDIAN(age) FROM people WITH ERROR 20"))
