"""A question that is offered in place of a refused one means the same, or it is said in what it differs.

For each kind of repair, refused texts are generated with other columns and constants; both texts are run by DuckDB over
generated rows. Where nothing is said to differ, the lines are the same; that what differs is told is seen from rows on
which the lines are not the same.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

import duckdb
import pytest

from bursar.compile import compile
from bursar.errors import QueryError
from bursar.rewrite import differences as told
from bursar.rewrite import suggest as offering
from bursar.rewrite.suggest import suggest
from bursar.sql import parse
from harness.cases import few
from harness.exactly import PEOPLE, Rows

KINDS: dict[str, tuple[str, ...]] = {
    "two comparisons in one": ("SELECT {agg} FROM people WHERE {low} <= age <= {high}",),
    "no brackets behind IN": ("SELECT {agg} FROM people WHERE sex IN 'F'",),
    "compared with NULL": (
        "SELECT {agg} FROM people WHERE {col} = NULL",
        "SELECT {agg} FROM people WHERE NOT {col} <> NULL",
    ),
    "IS with a value": ("SELECT {agg} FROM people WHERE sex IS 'F'",),
    "another spelling of a day": (
        "SELECT {agg} FROM people WHERE joined >= DATE('{day}')",
        "SELECT {key}, {agg} FROM people WHERE joined < DATE('{day}') OR hours > 5 GROUP BY {key}",
    ),
    "a bound inside of a bin": (
        "SELECT {agg} FROM people WHERE income > {edge}",
        "SELECT {agg} FROM people WHERE NOT income > {edge} AND sex = 'F'",
        "SELECT {agg} FROM people WHERE income BETWEEN 10 AND {edge}",
    ),
    "a bound inside of a month": (
        "SELECT {agg} FROM people WHERE born >= DATE '1990-{month}-15'",
        "SELECT {agg} FROM people WHERE born = DATE '1991-{month}-02'",
    ),
    "an order of listed texts": (
        "SELECT {agg} FROM people WHERE region >= 'm'",
        "SELECT {agg} FROM people WHERE NOT region < 'm'",
        "SELECT {agg} FROM people WHERE region BETWEEN 'm' AND 'z'",
    ),
    "a value of another type": (
        "SELECT {agg} FROM people WHERE age > '{low}'",
        "SELECT {agg} FROM people WHERE code = '{code}'",
        "SELECT {agg} FROM people WHERE member = 1",
    ),
    "a value that is not listed": ("SELECT {agg} FROM people WHERE region = 'lakeside'",),
    "a name with a slip": (
        "SELECT {agg} FROM people WHERE sexx = 'F'",
        "SELECT {agg} FROM peple",
        "SELECT p.{key}, {agg} FROM people AS q GROUP BY p.{key}",
    ),
    "a column that is not grouped by": (
        "SELECT {key}, {agg} FROM people",
        "SELECT region, sex, {agg} FROM people GROUP BY region",
    ),
    "a LIMIT that is no number": ("SELECT {key}, COUNT(*) AS n FROM people GROUP BY {key} LIMIT 10%",),
    "an output in WHERE": ("SELECT {key}, COUNT(*) AS n FROM people WHERE n > {code} GROUP BY {key}",),
    "a sample": ("SELECT {agg} FROM people USING SAMPLE 1 ROWS",),
    "a sum of texts": ("SELECT {key}, SUM(region) AS s FROM people GROUP BY {key}",),
    "an aggregate that is not there": (
        "SELECT {key}, MODE(age) AS m FROM people GROUP BY {key}",
        "SELECT {key}, COUNT(*) AS n FROM people GROUP BY {key} HAVING MODE(age) > {low}",
        "SELECT {key}, STRING_AGG(region) AS s, {agg} FROM people GROUP BY {key}",
    ),
    "NULL where it cannot be told apart": ("SELECT {agg} FROM people WHERE member IS NULL",),
    "groups that cut through bins": ("SELECT FLOOR(income / 7) AS b, {agg} FROM people GROUP BY b",),
    "a name given twice": ("SELECT COUNT(*) AS n, COUNT(sex) AS n FROM people",),
    "a place that is none": (
        "SELECT {key}, COUNT(*) AS n FROM people GROUP BY 1, 2",
        "SELECT {key}, COUNT(*) AS n FROM people GROUP BY {key} ORDER BY 3",
    ),
    "DISTINCT beside groups": ("SELECT DISTINCT region, COUNT(*) AS n FROM people GROUP BY region, sex",),
    "GROUPING of another column": ("SELECT GROUPING(age) AS g, sex, {agg} FROM people GROUP BY ROLLUP (sex)",),
    "rows instead of groups": ("SELECT {key} FROM people LIMIT {code}", "SELECT * FROM people"),
    "groups of grouped lines": (
        "SELECT {key}, MODE(n) AS m FROM (SELECT {key}, age, COUNT(*) AS n FROM people GROUP BY 1, 2) t GROUP BY 1",
        "WITH t AS (SELECT {key}, COUNT(*) AS n FROM people GROUP BY 1) SELECT a.{key} FROM t a JOIN t b USING ({key})",
    ),
}
"""By kind of repair, what is refused."""

AGGREGATES = ("COUNT(*) AS n", "SUM(hours) AS n", "AVG(age) AS n", "COUNT(code) AS n")


@cache
def rows() -> tuple[Rows, ...]:
    return tuple(Rows(seed, number=number) for seed, number in ((3, 40), (4, 7), (5, 300)))


def texts(kind: str, times: int = 6) -> Iterator[str]:
    """Refused texts of a kind."""
    chance = random.Random(f"rewrites {kind}")
    for _ in range(times):
        for form in KINDS[kind]:
            yield form.format(
                agg=chance.choice(AGGREGATES),
                key=chance.choice(("sex", "region", "code")),
                col=chance.choice(("age", "sex", "code", "joined")),
                low=chance.randint(16, 25),
                high=chance.randint(20, 40),
                edge=chance.choice((0, 10, 15, 20, 50)),
                code=chance.choice((1, 2, 3, 7)),
                month=f"{chance.randint(1, 12):02}",
                day=f"2023-01-{chance.randint(1, 28):02}",
            )


def offered(text: str) -> QueryError | None:
    """The refusal of a text with what is offered instead; None where it is not refused."""
    try:
        compile(parse(text), PEOPLE, "people")
    except QueryError as refusal:
        return suggest(text, refusal, PEOPLE, "people")
    return None


def lines(text: str, data: Rows) -> Counter[tuple[Any, ...]] | None:
    """DuckDB's lines, without the order of lines and columns; None where it has none to give."""
    try:
        names = data.columns(text)
        found = data.theirs(text)
    except duckdb.Error:
        return None
    order = sorted(range(len(names)), key=lambda place: names[place])
    return Counter(tuple(line[place] for place in order) for line in found)


def changes_silently(kind: str) -> list[str]:
    """Texts of a kind for which something else is offered, without a word about it."""
    faults = []
    for text in texts(kind):
        refusal = offered(text)
        if refusal is None or not refusal.rewrite or refusal.differs:
            continue
        for data in rows():
            asked, instead = lines(text, data), lines(refusal.rewrite, data)
            if asked is not None and asked != instead:
                faults.append(f"{text} -> {refusal.rewrite}")
    return faults


@pytest.mark.sampled(5)
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_changes_without_a_word(kind: str) -> None:
    assert not changes_silently(kind)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_refused(kind: str) -> None:
    """The generated texts reach the repairs: all are refused, and for most kinds something is offered."""
    refusals = [offered(text) for text in texts(kind)]
    assert any(refusal is not None for refusal in refusals)
    if kind not in ("rows instead of groups",):
        assert any(refusal is not None and refusal.rewrite for refusal in refusals), kind


@pytest.mark.parametrize(
    "kind", few(["a sample", "compared with NULL", "a bound inside of a month", "DISTINCT beside groups"], 2)
)
def test_what_differs_is_seen_in_the_rows(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: were nothing said to differ, these kinds would be found to change the meaning."""
    monkeypatch.setattr(offering, "differences", lambda refused, text: "")
    assert changes_silently(kind)


def test_every_clause_that_is_left_out_is_told() -> None:
    whole = "SELECT DISTINCT sex, COUNT(*) AS n, COUNT(sex) AS m FROM people USING SAMPLE 3 ROWS WHERE age > 20 "
    whole += "GROUP BY sex, age HAVING COUNT(*) > 1 QUALIFY ROW_NUMBER() OVER () < 3 ORDER BY n LIMIT 2 OFFSET 1"
    said = told.differences(whole, "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex")
    for word in ("COUNT(sex)", "condition", "GROUP BY", "HAVING", "QUALIFY", "ORDER BY", "LIMIT", "OFFSET"):
        assert word in said
    assert "leaves out the sample" in said
    assert "leaves out the distinct" in said
    assert told.differences("SELECT COUNT(*) AS n, COUNT(*) AS n FROM t", "SELECT COUNT(*) AS n FROM t") == (
        "leaves out COUNT(*) AS n"
    )
