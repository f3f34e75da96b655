"""MODE, HISTOGRAM and PIVOT: what they stand for, what they cost, and what is refused of them."""

from __future__ import annotations

import pytest

from bursar.compile import compile
from bursar.errors import QueryError
from bursar.sql import parse
from harness.exactly import PEOPLE
from harness.small import engine


def test_a_mode_costs_what_its_counts_cost() -> None:
    counts = "SELECT age, COUNT(*) AS n FROM people GROUP BY age"
    prices = [engine().explain(text, within=40).price for text in ("SELECT MODE(age) FROM people", counts)]
    assert prices[0] == pytest.approx(prices[1])


def test_the_answer_says_that_the_choice_was_by_noisy_numbers() -> None:
    db = engine()
    answer = db.query("SELECT MODE(age) AS m FROM people", within=40)
    assert answer.keys == ("m",)
    assert any("largest noisy number" in remark for remark in answer.remarks)
    again = db.query("SELECT MODE(age) AS m FROM people", within=40)
    assert all("chosen by noisy numbers" in each.footer()[0] for each in (answer, again))
    assert "error  none" in db.query("SELECT DISTINCT age FROM people").footer()[0]


def test_a_pivot_asks_for_listed_values_alone() -> None:
    text = "PIVOT people ON region IN ('Lakeside', 'it''s') USING COUNT(*) GROUP BY sex"
    workload = compile(parse(text), PEOPLE, "people")
    assert [name for name, _ in workload.stages[-1].columns] == ["sex", "Lakeside", "it's"]
    assert workload.map.rows == 2 * PEOPLE["sex"].size


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("SELECT MODE(a), MODE(b) FROM t", "one column at a time"),
        ("SELECT MODE(a), MEDIAN(b) FROM t", "counts, sums and averages"),
        ("SELECT MODE(a), COUNT(DISTINCT b) FROM t", "counts, sums and averages"),
        ("SELECT MODE(a) OVER () FROM t", "MODE is not available"),
        ("SELECT HISTOGRAM(a), COUNT(*) FROM t", "HISTOGRAM"),
        ("PIVOT t ON a USING COUNT(*) GROUP BY b", "PIVOT names its values"),
        ("PIVOT t ON a IN (1, 2) GROUP BY b", "PIVOT names its values"),
        ("SELECT * FROM t PIVOT (COUNT(*) FOR a IN (1, 2))", "PIVOT says what its lines are"),
        ("PIVOT t ON a IN (1, 2) USING UPPER(c) GROUP BY b", "PIVOT takes aggregates"),
        (f"PIVOT t ON a IN ({', '.join(map(str, range(300)))}) USING COUNT(*)", "at most 256 columns"),
        ("SELECT * FROM t UNPIVOT (n FOR a IN (b, c))", "UNPIVOT is not available"),
        ("UNPIVOT t ON a, b INTO NAME k VALUE v", "begins with SELECT"),
    ],
)
def test_what_is_refused(text: str, says: str) -> None:
    with pytest.raises(QueryError, match=says):
        parse(text)
