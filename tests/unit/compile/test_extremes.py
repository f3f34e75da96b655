"""MIN and MAX: declared bounds without an accuracy, measured ones with one; what the answer says about both."""

from __future__ import annotations

import pytest

from bursar.planner.goals import SessionGoal
from bursar.session import Bursar
from harness.small import Silence, engine

BOTH = "SELECT MIN(age) AS low, MAX(age) AS high FROM people"


def quiet() -> Bursar:
    return engine(randomness=Silence())


@pytest.mark.parametrize("goal", [{"within": 20}, {"epsilon": 0.5}, {"rmse": 10}])
def test_an_accuracy_beside_the_text_is_one(goal: dict[str, float]) -> None:
    assert quiet().explain(BOTH, **goal).price > 0


def test_an_accuracy_beside_the_text_means_the_same_as_in_it() -> None:
    beside, inside = quiet().query(BOTH, within=60), quiet().query(f"{BOTH} WITH ERROR 60")
    assert (beside.values, beside.low, beside.high) == (inside.values, inside.low, inside.high)
    assert beside.charge == inside.charge > 0


def test_a_setting_of_a_session_is_none() -> None:
    answer = quiet().run(BOTH, SessionGoal(within=20))
    assert answer.free
    assert answer.labels == ((0, 9),)


def test_the_answer_says_how_many_rows_may_lie_beyond() -> None:
    remarks = quiet().query(f"{BOTH} WITH ERROR 20 ON low, 30 ON high CONFIDENCE 90%").remarks
    assert "low: with 90% confidence, at most 20 rows lie below it" in remarks
    assert "high: with 90% confidence, at most 30 rows lie above it" in remarks


def test_so_does_explain_for_whole_rows() -> None:
    assert quiet().explain(BOTH, within=20.5).in_people == (
        "low: at most 21 rows lie below it",
        "high: at most 21 rows lie above it",
    )


def test_declared_bounds_have_a_name_of_their_own() -> None:
    text = "SELECT sex, DECLARED_MAX(age) AS bound, MAX(age) AS high FROM people GROUP BY sex"
    answer = quiet().query(text, within=60)
    assert not answer.free
    assert [line[1] for line in answer.labels] == [9, 9]


def test_of_days_and_text_there_are_declared_bounds_alone() -> None:
    answer = quiet().query("SELECT MIN(region) AS first, COUNT(*) AS n FROM people", within=60)
    assert answer.labels == (("east",),)
    assert any("declared bounds of region" in remark for remark in answer.remarks)


@pytest.mark.parametrize("beside", [True, False])
def test_beside_them_numbers_are_measured_wherever_the_accuracy_is_said(beside: bool) -> None:
    text = "SELECT MIN(region) AS first, MAX(age) AS high FROM people"
    answer = quiet().query(text, within=60) if beside else quiet().query(f"{text} WITH ERROR 60")
    assert answer.labels == (("east",),)
    assert not answer.free
    assert any("MAX is measured" in remark for remark in answer.remarks)
    assert any("at most 60 rows lie above it" in remark for remark in answer.remarks)


def test_what_is_computed_from_them_is_no_such_bound() -> None:
    answer = quiet().query("SELECT MAX(age) - MIN(age) AS high FROM people", within=60)
    assert not any("rows lie" in remark for remark in answer.remarks)


def test_the_greatest_value_is_looked_for_from_above() -> None:
    """Its rows are as exact as those of the least: differences of prefixes would be half as exact."""
    prices = [quiet().explain(f"SELECT {function}(age) FROM people", within=60).price for function in ("MIN", "MAX")]
    assert prices[1] == pytest.approx(prices[0], rel=0.05)
