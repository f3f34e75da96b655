"""Groups, sets of groups and what comes after them mean what DuckDB answers over the public view.

Each block of tests/fixtures/groups.sql has a question and its answer. DuckDB itself must give that answer, and so must
the compiled question on exact counts: the same lines, in the same order where the question has one. A line that DuckDB
does not have is a group without rows.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import duckdb
import numpy as np
import pytest

from bursar.answer import lines_of
from bursar.compile import Workload, compile
from bursar.compile.outputs import line_of
from bursar.core.domain import Bins, Categories, Domain, IntegerRange, Stray
from bursar.sql import parse, render
from harness import public, visits
from harness.cases import every
from harness.fixture_answers import Block, blocks_of, written


@cache
def blocks() -> list[Block]:
    return blocks_of("groups.sql")


@pytest.fixture(scope="module")
def database() -> duckdb.DuckDBPyConnection:
    connection = public.connect()
    visits.fill(connection)
    return connection


@cache
def asked(text: str) -> tuple[Workload, Any]:
    view = visits if " visits" in text else public
    return compile(parse(text), view.DOMAIN, "visits" if view is visits else "people"), view


@cache
def ours(text: str) -> list[tuple[str, ...]]:
    """The lines of an answer from exact counts."""
    workload, view = asked(text)
    rows = workload.map.apply(view.counts).astype(float)
    facts = lines_of(workload, workload.derive(rows, rows, rows), 0.95)
    bins = {
        view.DOMAIN[name].label(cell): shown
        for name in ("income", "minutes")
        if name in view.DOMAIN
        for cell, shown in enumerate(view.SHOWN[name])
    }
    lines = []
    for labels, values in zip(facts["labels"], facts["values"], strict=True):
        lines.append(tuple(written(bins.get(label, label)) for label in labels) + tuple(map(written, values)))
    return lines


def answered(connection: duckdb.DuckDBPyConnection, text: str) -> tuple[list[str], list[tuple[str, ...]]]:
    result = connection.execute(text)
    heads = [column[0] for column in result.description]
    lines = [tuple(map(written, row)) for row in result.fetchall()]
    return heads, lines if "ORDER BY" in text else sorted(lines)


@every("block", blocks, lambda block: block.text, nth=3)
def test_duckdb_answers_as_written(block: Block, database: duckdb.DuckDBPyConnection) -> None:
    assert answered(database, block.text) == (block.heads, block.lines)


@every("block", blocks, lambda block: block.text, nth=3)
def test_exact_counts_give_the_same(block: Block) -> None:
    workload, _ = asked(block.text)
    assert [*workload.keys, *workload.outputs] == block.heads
    left = list(block.lines)
    same = [line for line in ours(block.text) if line in left]
    if block.ordered:
        assert same == block.lines
    for line in same:
        left.remove(line)
    assert left == []
    counted = len(workload.keys) < len(block.heads) and "COUNT(*) AS n" in block.text and "WHERE" not in block.text
    if counted and "HAVING" not in block.text and "LIMIT" not in block.text:
        place = block.heads.index("n")
        assert all(line[place] == "0" for line in ours(block.text) if line not in block.lines)


def check_written_out(block: Block, database: duckdb.DuckDBPyConnection) -> None:
    text = render(parse(block.text))
    assert render(parse(text)) == text
    assert ours(text) == ours(block.text)
    assert answered(database, text)[1] == block.lines


@every("block", blocks, lambda block: block.text, nth=12)
def test_a_question_written_out_gives_the_same(block: Block, database: duckdb.DuckDBPyConnection) -> None:
    check_written_out(block, database)


def test_there_are_hundreds() -> None:
    assert len(blocks()) >= 150


SPREAD = Domain(
    (
        IntegerRange(name="age", lower=0, upper=99, outside=Stray.OTHER),
        IntegerRange(name="zip", lower=0, upper=999_999),
        Categories(name="sex", values=("F", "M"), outside=0, null=0),
        Categories(name="tea", values=(True, False), outside=0, null=0),
    )
)


def spread(text: str) -> Workload:
    return compile(parse(text), SPREAD, "people")


def test_buckets_of_equal_width() -> None:
    workload = spread("SELECT WIDTH_BUCKET(zip, 0, 1000, 4) AS b, COUNT(*) FROM people WHERE zip < 1250 GROUP BY b")
    assert [label for (label,) in workload.labels] == [1, 2, 3, 4, 5]
    assert workload.map.apply(lambda names: np.ones(SPREAD.sizes(names), np.int64)).tolist() == [250] * 5


def test_values_outside_stay_a_group_of_their_own() -> None:
    workload = spread("SELECT FLOOR(age / 25) * 25 AS quarter, COUNT(*) FROM people GROUP BY quarter")
    assert [label for (label,) in workload.labels] == [0, 25, 50, 75, "other", None]
    assert workload.map.apply(lambda names: np.ones(SPREAD.sizes(names), np.int64)).tolist() == [25] * 4 + [1, 1]


BINS = Domain((Bins(name="dose", edges=(0.0, 5.0, 10.0, 15.0, 20.0)),))


@pytest.mark.parametrize(
    ("group", "labels", "said"),
    [
        ("FLOOR(dose / 10) * 10", [0, 10, None], "dose of 20 counts in the group before, as it does in its bin"),
        ("WIDTH_BUCKET(dose, 0, 20, 2)", [1, 2, None], "dose of 20 counts in the group before, as it does in its bin"),
        ("WIDTH_BUCKET(dose, 0, 20, 1)", [1, None], "dose of 20 counts in the group before, as it does in its bin"),
        ("FLOOR(dose / 15) * 15", [0, 15, None], ""),
        ("WIDTH_BUCKET(dose, 5, 15, 2)", [0, 1, 2, 3, None], ""),
    ],
)
def test_the_upper_end_of_the_last_bin_is_in_the_group_before(group: str, labels: list[Any], said: str) -> None:
    workload = compile(parse(f"SELECT {group} AS g, COUNT(*) AS n FROM people GROUP BY g"), BINS, "people")
    assert [label for (label,) in workload.labels] == labels
    assert workload.remarks == ((said,) if said else ())
    assert workload.map.apply(lambda names: np.ones(BINS.sizes(names), np.int64)).sum() == BINS["dose"].size


def test_floor_to_tens_is_not_floor() -> None:
    tens = spread("SELECT FLOOR(age, -1) AS tens, COUNT(*) FROM people GROUP BY tens")
    steps = spread("SELECT FLOOR(age / 10) * 10 AS tens, COUNT(*) FROM people GROUP BY tens")
    assert list(tens.labels) == list(steps.labels)
    assert tens.map.digest == steps.map.digest


def test_a_large_column_in_few_groups_is_one_small_question() -> None:
    workload = spread("SELECT FLOOR(zip / 100000) AS first, COUNT(*) FROM people WHERE zip >= 0 GROUP BY first")
    assert [label for (label,) in workload.labels] == list(range(10))
    assert workload.map.rows == 10


def test_sets_share_rows_and_say_what_is_put_together() -> None:
    workload = spread("SELECT sex, tea, COUNT(*) AS n FROM people GROUP BY ROLLUP (sex, tea)")
    assert workload.labels[-3:] == (("F", "(all)"), ("M", "(all)"), ("(all)", "(all)"))
    assert (len(workload.labels), workload.map.rows) == (7, 7)
    again = spread("SELECT sex, COUNT(*) AS n FROM people GROUP BY GROUPING SETS (sex, sex, ())")
    assert [label for (label,) in again.labels] == ["F", "M", "(all)"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("AT_LEAST(1, sex = 'F', tea = TRUE)", "sex = 'F' OR tea = TRUE"),
        ("AT_LEAST(2, sex = 'F', tea = TRUE)", "sex = 'F' AND tea = TRUE"),
        (
            "AT_LEAST(2, sex = 'F', tea = TRUE, age BETWEEN 10 AND 20)",
            "sex = 'F' AND tea = TRUE OR ((sex = 'F' OR tea = TRUE) AND age BETWEEN 10 AND 20) IS TRUE",
        ),
        ("NOT AT_LEAST(1, age BETWEEN 10 AND 20, tea = TRUE)", "(NOT (age BETWEEN 10 AND 20) IS TRUE) AND tea = FALSE"),
        ("AT_LEAST(1, age BETWEEN 10 AND 20)", "age BETWEEN 10 AND 20"),
        ("AT_LEAST(2, AT_LEAST(1, sex = 'F', TRUE), tea = TRUE)", "tea = TRUE"),
        ("AT_LEAST(2, TRUE, FALSE, tea = TRUE)", "tea = TRUE"),
    ],
)
def test_so_many_of_several_conditions(one: str, other: str) -> None:
    texts = [f"SELECT COUNT(*) AS n FROM people WHERE {condition}" for condition in (one, other)]
    assert spread(texts[0]).map.digest == spread(texts[1]).map.digest
    assert parse(render(parse(texts[0]))) == parse(texts[0])
    filtered = spread(f"SELECT COUNT(*) FILTER (WHERE {one}) AS n FROM people")
    assert filtered.map.digest == spread(texts[0]).map.digest


@pytest.mark.parametrize("largest", [5, 2**40], ids=["as one number", "too far apart for one"])
def test_the_line_of_each_group_is_found_whichever_way(largest: int) -> None:
    rng = np.random.default_rng(3)
    lines = np.unique(rng.integers(-2, largest, (60, 3)), axis=0)
    picked = rng.integers(0, len(lines), 40)
    assert line_of(lines[picked], lines).tolist() == picked.tolist()
    assert line_of(lines, lines).tolist() == list(range(len(lines)))
    assert line_of(lines[:0], lines).tolist() == []
    assert line_of(np.zeros((1, 0), np.int64), np.zeros((1, 0), np.int64)).tolist() == [0]
