"""A level means what DuckDB answers where it is a column; what it cannot mean is refused with what would work.

Each block of tests/fixtures/levels.sql has a question and its answer, as in groups.sql.
"""

from __future__ import annotations

from functools import cache

import duckdb
import numpy as np
import pytest

from bursar.answer import lines_of
from bursar.compile import Level, Workload, compile
from bursar.core.domain import Categories, Domain, IntegerRange, Stray
from bursar.errors import QueryError
from bursar.sql import parse
from harness import levels
from harness.asking import compiled
from harness.cases import every
from harness.fixture_answers import Block, blocks_of, written


@cache
def blocks() -> list[Block]:
    return blocks_of("levels.sql")


@pytest.fixture(scope="module")
def database() -> duckdb.DuckDBPyConnection:
    return levels.connect()


def asked(text: str) -> Workload:
    return compiled(text, levels.DOMAIN, levels=levels.LEVELS)


def ours(text: str) -> list[tuple[str, ...]]:
    workload = asked(text)
    rows = workload.map.apply(levels.counts).astype(float)
    facts = lines_of(workload, workload.derive(rows, rows, rows), 0.95)
    found = zip(facts["labels"], facts["values"], strict=True)
    return [tuple(map(written, (*labels, *values))) for labels, values in found]


@every("block", blocks, lambda block: block.text, nth=3)
def test_duckdb_answers_as_written(block: Block, database: duckdb.DuckDBPyConnection) -> None:
    result = database.execute(block.text)
    assert [column[0] for column in result.description] == block.heads
    lines = [tuple(map(written, row)) for row in result.fetchall()]
    assert (lines if "ORDER BY" in block.text else sorted(lines)) == block.lines


@every("block", blocks, lambda block: block.text, nth=3)
def test_exact_counts_give_the_same(block: Block) -> None:
    workload = asked(block.text)
    assert [*workload.keys, *workload.outputs] == block.heads
    left = list(block.lines)
    same = [line for line in ours(block.text) if line in left]
    if "ORDER BY" in block.text:
        assert same == block.lines
    for line in same:
        left.remove(line)
    assert left == []
    assert all(line[-1] in ("0", "NULL") for line in ours(block.text) if line not in block.lines)


def test_there_are_many() -> None:
    assert len(blocks()) >= 25


def test_a_level_is_a_name_for_cells_that_are_there_anyway() -> None:
    by_level = asked("SELECT COUNT(*) FROM people WHERE continent = 'Europe'")
    by_value = asked("SELECT COUNT(*) FROM people WHERE region IN ('FR', 'DE')")
    assert by_level.map.digest == by_value.map.digest


REFUSED = [
    ("WHERE continent = 'Eurpe'", "'Eurpe' is not a declared value of continent", "WHERE continent = 'Europe'"),
    ("WHERE contnent = 'Europe'", "there is no column contnent; did you mean continent?", "WHERE continent = 'Europe'"),
    ("WHERE continent = 3", "continent has values like 'Europe', and 3 is none", ""),
    ("WHERE continent < 'B'", "listed values without an order", "WHERE continent IN ('Asia', 'America')"),
    ("WHERE continent BETWEEN 'A' AND 'B'", "listed values without an order", "IN ('Asia', 'America')"),
    ("WHERE chain IS NULL", "NULL counts as small in chain", "WHERE chain = 'small'"),
    ("WHERE region.continent = 'Asia'", "there is no table region in this question", "WHERE continent = 'Asia'"),
]


@pytest.mark.parametrize(("where", "reason", "rewrite"), REFUSED)
def test_a_condition_that_means_nothing_is_refused_in_words_of_the_level(where: str, reason: str, rewrite: str) -> None:
    text = f"SELECT COUNT(*) FROM people {where}"
    with pytest.raises(QueryError) as refusal:
        asked(text)
    assert reason in str(refusal.value)
    assert refusal.value.position >= text.index("WHERE")
    assert (rewrite in refusal.value.rewrite) if rewrite else refusal.value.rewrite == ""
    if rewrite:
        asked(refusal.value.rewrite)


@pytest.mark.parametrize(
    ("text", "reason", "rewrite"),
    [
        (
            "SELECT SUM(chain) FROM people",
            "chain holds no numbers; it can be counted and grouped by",
            "SELECT COUNT(chain) FROM people",
        ),
        (
            "SELECT AVG(CASE WHEN age > 1 THEN chain END) FROM people",
            "chain holds no numbers",
            "",
        ),
        (
            "SELECT MEDIAN(chain) FROM people",
            "chain holds no numbers",
            "SELECT COUNT(chain) FROM people",
        ),
        (
            "SELECT FLOOR(chain / 10) AS x, COUNT(*) FROM people GROUP BY x",
            "chain cannot be grouped like this: it holds no numbers to divide",
            "SELECT chain AS x, COUNT(*) FROM people GROUP BY chain",
        ),
        (
            "SELECT YEAR(continent) AS x, COUNT(*) FROM people GROUP BY x",
            "continent holds no days; group by the column itself",
            "SELECT continent AS x, COUNT(*) FROM people GROUP BY continent",
        ),
        (
            "SELECT region AS continent, COUNT(*) FROM people GROUP BY continent",
            "GROUP BY continent means the column of that name, and region is not in GROUP BY",
            "SELECT region AS continent, COUNT(*) FROM people GROUP BY region",
        ),
    ],
)
def test_a_level_is_no_number_and_no_day(text: str, reason: str, rewrite: str) -> None:
    with pytest.raises(QueryError) as refusal:
        asked(text)
    assert reason in str(refusal.value)
    assert refusal.value.rewrite == rewrite
    if rewrite:
        asked(rewrite)


def test_null_that_is_sent_to_other_stays_there() -> None:
    kind = Categories(name="kind", values=("a", "b", "c"), null=Stray.OTHER)
    domain = Domain((kind, IntegerRange(name="age", lower=0, upper=1)))
    declared = (Level(name="class", column=kind, groups=(("x", ("a", "c")), ("y", ("b",)))),)
    counted = compile(parse('SELECT "class", COUNT(*) FROM t GROUP BY "class"'), domain, "t", None, declared)
    assert counted.labels == (("x",), ("y",), ("other",))
    assert counted.map.apply(lambda names: np.array([1, 2, 3, 40])).tolist() == [4, 2, 40]
    with pytest.raises(QueryError, match="kept together as other"):
        compile(parse("SELECT COUNT(*) FROM t WHERE \"class\" <> 'x'"), domain, "t", None, declared)


def test_levels_of_a_partition_column_stay_within_what_is_sealed() -> None:
    month = Categories(name="month", values=("jan", "feb", "apr", "may"), outside=0, null=0)
    domain = Domain((month,), "month")
    declared = (Level(name="quarter", column=month, groups=(("q1", ("jan", "feb")), ("q2", ("apr", "may")))),)
    text = "SELECT quarter, COUNT(*) FROM t GROUP BY quarter"
    assert compile(parse(text), domain, "t", 3, declared).labels == (("q1",), ("q2",))
    with pytest.raises(QueryError, match="not sealed yet; the last sealed one is apr"):
        compile(parse("SELECT COUNT(*) FROM t WHERE quarter = 'q2'"), domain, "t", 3, declared)
    compile(parse("SELECT COUNT(*) FROM t WHERE quarter = 'q1'"), domain, "t", 3, declared)
