"""MODE, HISTOGRAM and PIVOT: what they stand for, what they cost, and what is refused of them."""

from __future__ import annotations

import re

import pytest

from bursar.compile import compile
from bursar.compile.compile_cache import CompileCache
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
    ("text", "listed"),
    [
        ("PIVOT people ON region USING {} GROUP BY sex", "'Lakeside', 'Westmoor', 'Zürich-ß', 'it''s', 'other'"),
        ("PIVOT people ON member USING {} GROUP BY sex", "TRUE, FALSE"),
        ("PIVOT people ON hours USING {} GROUP BY sex", ", ".join(map(str, range(13)))),
        ("PIVOT (SELECT code AS age, sex, hours FROM people) ON age USING {} GROUP BY sex", "1, 2, 7"),
        ("SELECT * FROM (PIVOT people ON code USING {} GROUP BY sex)", "1, 2, 7"),
    ],
)
@pytest.mark.parametrize("using", ["COUNT(*)", "AVG(age) AS a"])
def test_a_pivot_without_a_list_has_all_declared_values(text: str, listed: str, using: str) -> None:
    reader = CompileCache(PEOPLE, "people")
    found = reader.compile(reader.parse(text.format(using)))
    plainly = reader.compile(reader.parse(re.sub(r" ON (\w+)", rf" ON \1 IN ({listed})", text).format(using)))
    assert [name for name, _ in found.stages[-1].columns] == [name for name, _ in plainly.stages[-1].columns]
    assert found.map.digest == plainly.map.digest


@pytest.mark.parametrize("column", ["income", "born", "UPPER(sex)", "nothing"])
def test_a_pivot_names_values_that_are_not_listed(column: str) -> None:
    with pytest.raises(QueryError, match="PIVOT names its values"):
        CompileCache(PEOPLE, "people").parse(f"PIVOT people ON {column} USING COUNT(*) GROUP BY sex")


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
        ("PIVOT t ON a IN (1, 2) USING COUNT(*)", "GROUP BY region, at its end"),  # to SQL, by all other columns
        ("SELECT * FROM (PIVOT t ON a IN (1, 2) USING COUNT(*))", "GROUP BY region, at its end"),
        ("PIVOT t ON a IN (1, 2) USING UPPER(c) GROUP BY b", "PIVOT takes aggregates"),
        (f"PIVOT t ON a IN ({', '.join(map(str, range(300)))}) USING COUNT(*) GROUP BY b", "at most 256 columns"),
        ("SELECT * FROM t UNPIVOT (n FOR a IN (b, c))", "UNPIVOT is not available"),
        ("UNPIVOT t ON a, b INTO NAME k VALUE v", "begins with SELECT"),
    ],
)
def test_what_is_refused(text: str, says: str) -> None:
    with pytest.raises(QueryError, match=says):
        parse(text)
