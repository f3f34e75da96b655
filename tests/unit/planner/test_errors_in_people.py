"""A goal for an average counts people: EXPLAIN, answers and refusals say so."""

from __future__ import annotations

import re

import numpy as np
import pytest

from bursar.core.budget import Budget
from bursar.core.domain import Domain, IntegerRange
from bursar.errors import BudgetError
from bursar.session import Bursar
from bursar.testing import stage
from harness.small import Silence, TableSource, config

DOMAIN = Domain((IntegerRange(name="miles", lower=0, upper=999, null=0),))
AVERAGE = "SELECT AVG(miles) AS far FROM people"


def flights(people_each: int = 100, **changes: object) -> Bursar:
    """So many people at each number of miles."""
    settings = config(domain=DOMAIN, max_rows=10**7, **changes)
    return stage(settings, lambda key: TableSource(np.full(1000, people_each), settings.domain), randomness=Silence())


def test_explain_says_what_an_error_in_people_is() -> None:
    (line,) = flights().explain(AVERAGE, within=20).in_people
    assert line.startswith("far: an error of 20 counts rows, as for COUNT(*), not units of far: ")
    assert line.endswith("about ±20 among 1,000 or ±0.2 among 100,000, or less")  # 999 miles x 20 people / 1,000


def test_with_a_public_size_it_says_what_to_ask_for() -> None:
    (line,) = flights(public_size=100_000).explain(AVERAGE, within=20).in_people
    assert line.endswith(
        "about ±0.2 among 100,000, or less, and more in smaller groups; for ±20 among all ask for 2000"
    )


def test_the_advice_is_right() -> None:
    """An average with the error that was advised is within what was wanted, and costs about a hundredth."""
    dear, cheap = flights().query(AVERAGE, within=20), flights().query(AVERAGE, within=2000)
    assert dear.error <= 0.2
    assert dear.error < cheap.error <= 20
    assert cheap.charge < dear.charge / 50


def test_what_was_counted_tells_the_size() -> None:
    db = flights()
    db.query("SELECT COUNT(*) FROM people", within=1000)
    (line,) = db.explain(AVERAGE, within=20).in_people
    assert "among 99,0" in line  # at least: 100,000 less the error of the count


def test_groups_too_small_for_their_error_are_named_before_they_are_paid_for() -> None:
    """An error of 400 in each of 1,000 groups that share 100,000 rows: every average would be NULL."""
    by_miles = "SELECT miles, AVG(miles) AS far FROM people GROUP BY miles"
    (line,) = flights(public_size=100_000).explain(by_miles, within=400).in_people
    assert line.endswith(
        "an even share of them for each of 1,000 groups is 100, too few to be told anything about within 400"
    )
    (line,) = flights(public_size=100_000).explain(by_miles, within=51).in_people
    assert "too few to be told anything about within 51" in line
    (line,) = flights(public_size=100_000).explain(by_miles, within=49).in_people
    assert "even share" not in line


def test_averages_that_are_known_beforehand_are_off_by_nothing() -> None:
    """Of nobody, or of a constant: their range has no width, and nothing is asked of anybody."""
    nobody = "SELECT AVG(miles) AS far FROM people WHERE miles < 5 AND miles > 7"
    for sql in (nobody, "SELECT AVG(5) AS five FROM people"):
        explained = flights(public_size=100_000).explain(sql, within=20)
        assert explained.in_people == ()
    assert flights(public_size=100_000).query(nobody, within=20).free


def test_counts_and_sums_are_what_they_seem() -> None:
    assert flights().explain("SELECT COUNT(*), SUM(miles) AS s FROM people", within=20).in_people == ()


def test_a_price_is_no_error() -> None:
    assert flights().explain(AVERAGE, epsilon=0.01).in_people == ()


@pytest.mark.parametrize("output", ["STDDEV(miles)", "MEDIAN(miles)"])
def test_deviations_and_quantiles_count_people_too(output: str) -> None:
    (line,) = flights().explain(f"SELECT {output} AS x FROM people WHERE miles < 20", within=500).in_people
    assert line.endswith("as exact as if up to 500 rows more or less were in the data")


def test_an_answer_that_is_far_better_than_it_seems_to_be_asked_for_says_so() -> None:
    remark = "the 20 asked for far counts rows, not units of far: "
    (told,) = [line for line in flights().query(AVERAGE, within=20).remarks if line.startswith(remark)]
    assert told.endswith("would have come to about ±20, for less")


def test_an_answer_about_few_people_says_why_it_is_less_exact_than_it_seems_to_be_asked_for() -> None:
    few = "SELECT AVG(miles) AS far FROM people WHERE miles < 20 OR miles >= 980"  # 40 people
    answer = flights(people_each=1).query(few, within=15)
    assert answer.error > 15
    assert "the 15 asked for far counts rows, not units of far: among few rows that is more" in answer.remarks


@pytest.mark.parametrize(
    "text",
    [
        "SELECT AVG(miles) FILTER (WHERE miles > 500) - AVG(miles) FILTER (WHERE miles <= 500) AS apart FROM people",
        "SELECT a / 2 AS half FROM (SELECT AVG(miles) AS a, AVG(miles) FILTER (WHERE miles > 9) AS b FROM people) AS t",
    ],
)
def test_what_is_computed_from_averages_is_answered_without_advice(text: str) -> None:
    answer = flights().query(text, within=20)
    assert answer.charge > 0
    assert not [line for line in answer.remarks if "counts rows" in line]


def test_it_says_nothing_beside_a_count_or_where_no_units_can_be_meant() -> None:
    beside = flights().query("SELECT COUNT(*) AS n, AVG(miles) AS far FROM people", within=20)
    share = flights().query("SELECT 1.0 * COUNT(*) FILTER (WHERE miles > 5) / COUNT(*) AS s FROM people", within=20)
    assert not [line for line in (*beside.remarks, *share.remarks) if "counts rows" in line]
    assert not [line for line in flights().query(AVERAGE, within=2000).remarks if "counts rows" in line]


def test_a_refusal_says_it_before_what_would_fit() -> None:
    with pytest.raises(BudgetError, match=r"nothing was spent\nx: an error of 1 counts rows.*\ntry: WITH ERROR"):
        flights().query("SELECT AVG(miles) AS x FROM people", within=1)


def test_a_correlation_that_is_likely_to_say_nothing_is_told_before_and_after() -> None:
    domain = Domain(
        (IntegerRange(name="x", lower=0, upper=9, null=0), IntegerRange(name="y", lower=0, upper=9, null=0))
    )
    settings = config(domain=domain, public_size=20_000, budget=Budget.of(epsilon=100.0))
    table = np.full((10, 10), 100) + 1000 * np.eye(10, dtype=np.int64)
    text = "SELECT CORR(x, y) AS c FROM people"
    with stage(settings, lambda key: TableSource(table, domain), randomness=Silence()) as db:
        (warned,) = db.explain(text, within=4000).in_people
        assert "-1 to 1 among 20,000: likely to say nothing, and may say something from an error of " in warned
        (told,) = db.explain(text, within=20).in_people
        assert "likely to say nothing" not in told
        (fine,) = db.explain(text, within=0.02).in_people
        low, high = re.findall(r"would be (\S+) to (\S+) among", fine)[0]
        assert float(low) < 0.5 < float(high)  # digits enough to tell the ends apart
        remarks = db.query(text, within=4000).remarks
        assert "c may be anything that is possible: an error of 4000 rows is too large to tell" in remarks
        assert not any("anything that is possible" in remark for remark in db.query(text, within=200).remarks)
