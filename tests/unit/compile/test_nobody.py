"""What is computed from no rows is NULL where DuckDB says so, with the ends of all that is possible; never a number."""

from __future__ import annotations

import json
import math
from typing import Any

import duckdb
import numpy as np
import pytest

from bursar.answer import NO_ROWS, Answer
from bursar.core.budget import Budget
from bursar.core.domain import Categories, Domain, IntegerRange
from bursar.report.bars import BLOCKS, with_bars
from bursar.report.plots import picture_of
from harness.small import Silence, config, engine

MIX = Domain(
    (
        Categories(name="k", values=(1, 2, 3), outside=0, null=0),
        IntegerRange(name="f", lower=10, upper=50, null=0),
    )
)
COUNTS = np.arange(1, 1 + 3 * 41).reshape(3, 41)


def opened(*, quiet: bool = True) -> Any:
    settings = config(domain=MIX, table="mix", budget=Budget.of(epsilon=50.0), max_rows=10**6)
    return engine(table=COUNTS, settings=settings, **({"randomness": Silence()} if quiet else {}))


def asked(sql: str, *, quiet: bool = True) -> Answer:
    answer: Answer = opened(quiet=quiet).query(sql, within=2)
    return answer


@pytest.fixture(scope="module")
def database() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE mix (k BIGINT, f BIGINT)")
    rows = [(k + 1, 10 + f) for k in range(3) for f in range(41) for _ in range(COUNTS[k, f])]
    connection.executemany("INSERT INTO mix VALUES (?, ?)", rows[::50])
    connection.execute("INSERT INTO mix SELECT k, f FROM range(1, 4) a(k), range(10, 51) b(f)")
    return connection


@pytest.mark.parametrize(
    "select",
    [
        "SELECT k, AVG(f) FILTER (WHERE f > 40) - AVG(f) FILTER (WHERE f < 20) AS a FROM mix GROUP BY k",
        "SELECT k, a FROM (SELECT k, AVG(f) FILTER (WHERE f > 40) * 2 AS a FROM mix GROUP BY k) AS t",
        "SELECT k, AVG(f) AS a FROM mix GROUP BY k UNION ALL SELECT 9, AVG(f) FROM mix",
    ],
)
def test_what_is_made_of_a_null_around_the_answer_is_null(select: str) -> None:
    nobody = COUNTS.copy()
    nobody[1] = 0
    db = engine(table=nobody, settings=config(domain=MIX, table="mix", budget=Budget.of(epsilon=50.0), max_rows=10**6))
    answer = db.query(select, within=20)
    values = {line[0]: value for line, (value, *_) in zip(answer.labels, answer.values, strict=True)}
    assert values[2] is None
    assert None not in (values[1], values[3])
    assert [answer.labels[line][0] for line, _ in answer.unsure] == [2]


LINES = {
    "n - LAG(n) OVER (ORDER BY k)": [None, 0, 0],
    "CASE WHEN k > 1 THEN n END": [None, 1, 1],
    "AVG(n) OVER (ORDER BY k ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING)": [None, 1, 1],
    "COALESCE(n - LAG(n) OVER (ORDER BY k), 5)": [5, 0, 0],
    "LEAST(LAG(n) OVER (ORDER BY k), n)": [1, 1, 1],
}


@pytest.mark.parametrize("item", LINES)
def test_lines_that_are_null_on_any_data_are_in_no_doubt(item: str) -> None:
    """A count before the first line is NULL, and not that of a group that may have nobody."""
    answer = asked(f"SELECT k, {item} AS x FROM (SELECT k, COUNT(*) AS n FROM mix GROUP BY k) AS t ORDER BY k")
    nulls = [value is None for (value,) in answer.values]
    assert nulls == [value is None for value in LINES[item]]
    assert not answer.unsure
    assert max(answer.sure_errors) <= 4.0
    assert not any("may be nobody" in line for line in answer.footer())
    if LINES[item][0] == 5:
        assert (answer.values[0], answer.low[0], answer.high[0]) == ((5.0,), (5.0,), (5.0,))
    chosen = asked(
        f"SELECT k FROM (SELECT k, {item} AS x FROM (SELECT k, COUNT(*) AS n FROM mix GROUP BY k)) WHERE x > -9"
    )
    assert len(chosen.labels) == nulls.count(False)
    assert not any("WHERE chose" in remark for remark in chosen.remarks)


ITEMS = {
    "AVG(f) FILTER (WHERE k = 2)": (10, 50),
    "AVG(CASE WHEN k = 2 THEN f END)": (10, 50),
    "VAR_POP(f) FILTER (WHERE k = 2)": (0, 400),
    "VAR_SAMP(f) FILTER (WHERE k = 2)": (0, 800),
    "STDDEV_POP(f) FILTER (WHERE k = 2)": (0, 20),
    "STDDEV_SAMP(f) FILTER (WHERE k = 2)": (0, math.sqrt(800)),
    "MEDIAN(f) FILTER (WHERE k = 2)": (10, 50),
    "QUANTILE_DISC(f, 0.25) FILTER (WHERE k = 2)": (10, 50),
    "COUNT(*) FILTER (WHERE f > 20 AND k = 2) / NULLIF(COUNT(*) FILTER (WHERE k = 2), 0)": (0, 1),
    "SUM(f) / NULLIF(SUM(f) FILTER (WHERE k = 2), 0)": (-math.inf, math.inf),
    "COUNT(*) / NULLIF(COUNT(*) FILTER (WHERE k = 2) + COUNT(*) FILTER (WHERE k = 2 AND f < 20), 0)": (
        -math.inf,
        math.inf,
    ),
}


@pytest.mark.thinned(4)
@pytest.mark.parametrize("quiet", [True, False])
@pytest.mark.parametrize("item", ITEMS)
def test_null_is_where_duckdb_has_it(item: str, quiet: bool, database: duckdb.DuckDBPyConnection) -> None:
    sql = f"SELECT k, {item} AS x FROM mix GROUP BY k"
    answer, theirs = asked(sql, quiet=quiet), dict(database.execute(sql).fetchall())
    assert {k: x is None for (k,), (x,) in zip(answer.labels, answer.values, strict=True)} == {
        k: x is None for k, x in theirs.items()
    }
    for (x,), (low,), (high,) in zip(answer.values, answer.low, answer.high, strict=True):
        if x is None:
            assert (low, high) == pytest.approx(ITEMS[item])
        else:
            assert low <= x <= high
    assert NO_ROWS in answer.remarks


@pytest.mark.sampled(4)
@pytest.mark.parametrize("item", ["AVG(f)", "VAR_POP(f)", "MEDIAN(f)", "COUNT(*) FILTER (WHERE f > 20) / COUNT(*)"])
def test_a_question_about_nobody_at_all(item: str) -> None:
    answer = asked(f"SELECT {item} AS x FROM mix WHERE f > 20 AND f < 20")
    assert answer.value is None
    assert answer.free
    assert answer.error == (answer.high[0][0] - answer.low[0][0]) / 2
    assert asked(f"SELECT {item} AS x FROM mix").value is not None


CHOICES = [
    "HAVING x > 0",
    "HAVING NOT x > 0",
    "HAVING x > 0 OR n > 0",
    "HAVING NOT (x > 0 AND n < 0)",
    "HAVING NOT (x > 0 OR n > 0)",
    "HAVING (x > 0) IS NOT TRUE",
    "HAVING x BETWEEN 0 AND 100",
    "HAVING x NOT BETWEEN 0 AND 100",
    "ORDER BY x, k",
    "ORDER BY x DESC, k",
    "ORDER BY x NULLS FIRST, k",
    "ORDER BY x DESC NULLS FIRST, k DESC",
    "ORDER BY x, k LIMIT 2",
    "ORDER BY x NULLS FIRST, k LIMIT 2",
    "ORDER BY x NULLS FIRST, k LIMIT 1",
    "ORDER BY x, k LIMIT 2 OFFSET 1",
    "ORDER BY x, k LIMIT 1 OFFSET 2",
]


@pytest.mark.thinned(4)
@pytest.mark.parametrize("rest", CHOICES)
def test_lines_are_chosen_and_sorted_as_in_duckdb(rest: str, database: duckdb.DuckDBPyConnection) -> None:
    sql = f"SELECT k, AVG(f) FILTER (WHERE k = 2) AS x, COUNT(*) AS n FROM mix GROUP BY k {rest}"
    theirs = [row[0] for row in database.execute(sql).fetchall()]
    answer = asked(sql)
    ours = [k for (k,) in answer.labels]
    assert ours == theirs if "ORDER" in rest else sorted(ours) == sorted(theirs)
    assert not any("nan" in remark for remark in answer.remarks)


def test_counts_below_one_have_no_average() -> None:
    table = COUNTS.copy()
    table[0] = 0
    settings = config(domain=MIX, table="mix", budget=Budget.of(epsilon=1000.0), max_rows=10**6)
    door = engine(table=table, settings=settings, randomness=Silence())
    answer = door.query("SELECT k, AVG(f) AS x FROM mix GROUP BY k", within=0.5)
    assert (answer.values[0], answer.low[0], answer.high[0]) == ((None,), (10,), (50,))
    assert None not in answer.values[1]


SHOWN = "SELECT k, AVG(f) FILTER (WHERE k = 2) AS x, COUNT(*) AS n FROM mix GROUP BY k"


@pytest.mark.heavy
def test_null_is_shown_and_handed_on_as_null() -> None:
    answer = asked(SHOWN)
    assert [line[1] for line in answer.cells()][::2] == ["NULL (10 to 50)", "NULL (10 to 50)"]
    assert Answer.from_bytes(answer.to_bytes()) == answer
    assert math.isfinite(answer.error)
    rows = json.loads(json.dumps(answer.to_json(), allow_nan=False))["rows"]
    assert (rows[0]["x"], rows[0]["x_low"], rows[0]["x_high"]) == (None, 10, 50)
    assert answer.to_pandas()["x"].isna().tolist() == [True, False, True]
    assert answer.to_polars()["x"].is_null().to_list() == [True, False, True]
    assert answer.to_arrow()["x"].is_null().to_pylist() == [True, False, True]
    assert answer.to_csv().splitlines()[1].startswith("1,,10,50,")
    picture_of(answer)
    assert ">NULL (10 to 50)</td>" in answer._repr_html_()


def test_nothing_is_drawn_for_null() -> None:
    alone = asked(SHOWN.replace(", COUNT(*) AS n", ""))
    lines = with_bars(alone, alone.table(), width=100, ink=BLOCKS).splitlines()
    assert ["NULL (" in line for line in lines[2:]] == [True, False, True]
    assert [line.endswith(")") for line in lines[2:]] == [True, False, True]
    assert with_bars(asked(SHOWN), "", width=100, ink=BLOCKS).splitlines()[1].startswith("x   ")


def test_batches_have_it_too() -> None:
    batch = opened().batch([f"{SHOWN} WITH ERROR 2", "SELECT AVG(f) AS x FROM mix WHERE k = 2 AND k = 3 WITH ERROR 2"])
    assert [line[0] is None for line in batch.answers[0].values] == [True, False, True]
    assert batch.answers[1].value is None


@pytest.mark.parametrize(
    ("direction", "first"), [("", [(1,), (2,)]), (" DESC", [(2,), (1,)]), (" NULLS FIRST", [(3,)])]
)
def test_what_may_be_of_nobody_leads_no_list_of_the_highest(direction: str, first: list[tuple[int]]) -> None:
    """Nobody has k = 3 here; without noise its average is read as the least that there can be."""
    counts = COUNTS.copy()
    counts[:2, 20:], counts[2] = counts[:2, 20:] + 500 * np.array([[0], [1]]), 0
    settings = config(domain=MIX, table="mix", budget=Budget.of(epsilon=50.0), max_rows=10**6)
    sql = f"SELECT k, AVG(f) AS x FROM mix GROUP BY k ORDER BY x{direction} LIMIT 2"
    answer = engine(table=counts, settings=settings, randomness=Silence()).query(sql, within=20)
    assert list(answer.labels)[: len(first)] == first
    where = "first" if "FIRST" in direction else "last"
    [note] = [remark for remark in answer.remarks if "by noisy x" in remark]
    assert f"1 that may have nobody stand {where}, and of the others: with 95% confidence" in note
