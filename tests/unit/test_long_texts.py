"""A text of twice the length takes about twice the work to compile or to refuse, whatever it is made of."""

from __future__ import annotations

import sys
from datetime import date
from types import FrameType

from bursar.compile import compile as compile_query
from bursar.core.domain import Categories, Dates, Domain, IntegerRange, Period
from bursar.errors import QueryError
from bursar.rewrite.suggest import suggest
from bursar.sql import parse
from harness.cases import every

DOMAIN = Domain(
    (
        IntegerRange(name="age", lower=0, upper=49),
        IntegerRange(name="income", lower=0, upper=99),
        Categories(name="region", values=("north", "south", "east", "west")),
        Dates(name="day", first=date(2024, 1, 1), last=date(2024, 12, 31), by=Period.DAY),
    )
)

SELECTED = (
    "AVG(income + {0}) AS a{0}",
    "AVG(income) FILTER (WHERE age = {0}) AS a{0}",
    "SUM(CASE WHEN age < {0} THEN income END) AS s{0}",
    "MEDIAN(income) AS m{0}",
    "STDDEV(income) FILTER (WHERE age > {0}) AS v{0}",
    "COUNT(*) FILTER (WHERE age < {0}) AS c{0}",
    "100.0 * COUNT(*) FILTER (WHERE age = {0}) / COUNT(*) AS r{0}",
    "COUNT(DISTINCT age) AS d{0}",
    "SUM(COUNT(*)) OVER (ORDER BY region) AS w{0}",
    "CORR(age, income + {0}) AS o{0}",
    "FOO{0}(income) AS f{0}",
)
CONDITIONS = (
    "DATE_TRUNC('month', day) = DATE '2024-{1:02}-01'",
    "STRFTIME(day, '%Y-%m') = '2024-{1:02}'",
    "DATE_DIFF('day', DATE '2024-01-01', day) > {0}",
    "EXTRACT(dow FROM day) = {1}",
    "income % {1} = 0",
    "COALESCE(income, {0}) = {0}",
    "income IN ({0}, {1})",
    "(age = {0} AND income < {0})",
    "MONTH(day) * income = {0}",
    "CASE WHEN age > {0} THEN income ELSE age END = {1}",
    "UPPER(region) LIKE '%{1}%'",
    "missing = {0}",
    "GREATEST(age, income, {0}) = {1}",
    "ABS(income - {0}) < {1}",
    "DATE_TRUNC('month', day) = DATE '2024-{1:02}-01' AND income * {1} > {0}",
)
BRANCHES = (
    "WHEN age = {0} THEN {1}",
    "WHEN age < {0} THEN income",
    "WHEN age > {0} AND income = {1} THEN {0}",
    "WHEN age = {0} OR income = {1} THEN age",
    "WHEN age = income + {0} THEN age - income",
    "WHEN region LIKE '%{1}%' AND age > {0} THEN NULL",
)
FRAMES = ("SUM(CASE {} END)", "AVG(CASE {} ELSE 0 END)", "STDDEV(CASE {} END)", "COUNT(CASE {} END)")


def calls(text: str) -> int:
    """How many functions are called until a text is compiled, or refused with another that works."""
    number = 0

    def count(frame: FrameType, event: str, arg: object) -> None:
        nonlocal number
        number += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        compile_query(parse(text), DOMAIN, "people")
    except QueryError as refusal:
        suggest(text, refusal, DOMAIN, "people")
    finally:
        sys.setprofile(before)
    return number


def text_of(item: str, length: int) -> str:
    parts = [item.format(n % 50, 1 + n % 12) for n in range(length)]
    if item in BRANCHES:
        return f"SELECT region, {FRAMES[BRANCHES.index(item) % 4].format(' '.join(parts))} FROM people GROUP BY region"
    if item in CONDITIONS:
        return f"SELECT COUNT(*) FROM people WHERE {' OR '.join(parts)}"
    return f"SELECT region, {', '.join(parts)} FROM people GROUP BY region"


@every("item", lambda: (*SELECTED, *CONDITIONS, *BRANCHES), nth=4)
def test_twice_the_length_is_about_twice_the_work(item: str) -> None:
    calls(text_of(item, 3))  # what is remembered of columns is not counted
    few, many = calls(text_of(item, 15)), calls(text_of(item, 30))
    assert few < many < 2.5 * few, f"{few} calls, {many} for twice the length"
