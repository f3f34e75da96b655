"""Sums, averages, ratios, variances and quantiles mean what DuckDB answers over the public view.

Each block of tests/fixtures/aggregates.sql has a question and its answer. DuckDB itself must give that answer, and so
must the compiled question on exact counts with bars of no width. NULL is what has no value: a sum of no rows is 0 here,
and averages, variances and quantiles of no rows are NULL as in DuckDB.
"""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pytest

from bursar.compile import Workload, compile
from bursar.errors import QueryError
from bursar.sql import Aggregate, Function, parse, render
from harness.cases import every
from harness.public import DOMAIN, SHOWN, connect, counts

FIXTURE = Path(__file__).parents[2] / "fixtures" / "aggregates.sql"


class Block(NamedTuple):
    text: str
    heads: list[str]
    lines: list[list[str]]


@cache
def blocks() -> list[Block]:
    found = []
    for block in FIXTURE.read_text().split("\n\n")[1:]:
        first, *rest = block.strip().splitlines()
        lines = [line.removeprefix("-- ").split(" | ") for line in rest[:-1]]
        found.append(Block(rest[-1], first.removeprefix("--- ").split(" | "), lines))
    return found


@pytest.fixture(scope="module")
def database() -> duckdb.DuckDBPyConnection:
    return connect()


def written(value: Any) -> str:
    return "NULL" if value is None else repr(value) if isinstance(value, float) else str(value)


def agree(ours: float, theirs: str) -> bool:
    return math.isclose(ours, float(theirs), rel_tol=1e-9, abs_tol=1e-9)


def exact(workload: Workload) -> list[Any]:
    """The outputs on exact counts."""
    rows = workload.map.apply(counts).astype(float)
    return workload.derive(rows, rows, rows)


@every("block", blocks, lambda block: block.text, nth=3)
def test_duckdb_answers_as_written(block: Block, database: duckdb.DuckDBPyConnection) -> None:
    result = database.execute(block.text)
    assert [column[0] for column in result.description] == block.heads
    rows = sorted(result.fetchall(), key=str)
    assert len(rows) == len(block.lines)
    for row, line in zip(rows, block.lines, strict=True):
        for value, text in zip(row, line, strict=True):
            if isinstance(value, float) and text != "NULL":
                assert agree(value, text) or math.isnan(value) or math.isinf(value)
            else:
                assert written(value) == text


@every("block", blocks, lambda block: block.text, nth=3)
def test_exact_counts_give_the_same(block: Block) -> None:
    query = parse(block.text)
    workload = compile(query, DOMAIN, "people")
    cells = [{DOMAIN[k].label(c): written(v) for c, v in enumerate(SHOWN[k])} for k in workload.keys]
    known = {tuple(line[: len(workload.keys)]): line[len(workload.keys) :] for line in block.lines}
    found = exact(workload)
    seen = 0
    for number, labels in enumerate(workload.labels):
        key = tuple(cell[label] for cell, label in zip(cells, labels, strict=True))
        if key not in known:
            continue  # a group without rows, of which DuckDB says nothing
        seen += 1
        for item, output, text in zip(query.aggregates, found, known[key], strict=True):
            if text == "NULL":
                if isinstance(item, Aggregate):
                    value = output.value[number]
                    assert value == 0 if item.function is Function.SUM else math.isnan(value)
                continue
            if not math.isfinite(float(text)):
                continue  # over no rows
            assert agree(output.value[number], text), (labels, output.value[number], text)
            assert output.low[number] <= output.value[number] <= output.high[number]
            if not (isinstance(item, Aggregate) and item.function is Function.QUANTILE_CONT):  # lies between two values
                assert agree(output.low[number], text)
                assert agree(output.high[number], text)
    assert seen == len(known)


def check_written_out(block: Block, database: duckdb.DuckDBPyConnection) -> None:
    text = render(parse(block.text))
    assert render(parse(text)) == text
    once, again = compile(parse(block.text), DOMAIN, "people"), compile(parse(text), DOMAIN, "people")
    assert (once.map.digest, once.index.tolist()) == (again.map.digest, again.index.tolist())
    assert [form.facts() for form in once.forms] == [form.facts() for form in again.forms]
    theirs, ours = (sorted(database.execute(each).fetchall(), key=str) for each in (block.text, text))
    assert len(theirs) == len(ours)
    for left, right in zip(theirs, ours, strict=True):
        for one, other in zip(left, right, strict=True):
            if one is not None and other is not None:  # COALESCE(SUM(x), 0) is written SUM(x)
                assert one == other or np.isclose(one, other, equal_nan=True)


@every("block", blocks, lambda block: block.text, nth=12)
def test_a_question_written_out_gives_the_same(block: Block, database: duckdb.DuckDBPyConnection) -> None:
    check_written_out(block, database)


def test_there_are_hundreds() -> None:
    assert len(blocks()) >= 200


@pytest.mark.parametrize("item", ["1e999 * COUNT(*)", "COUNT(*) + 1e400", "1e999 / COUNT(*)", "AVG(age) * 1e999"])
def test_constants_beyond_floats_are_refused(item: str) -> None:
    with pytest.raises(QueryError, match="too large to be added up"):
        compile(parse(f"SELECT {item} AS n FROM people"), DOMAIN, "people")
