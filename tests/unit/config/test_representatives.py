"""Numbers that bins count as: declared in the config, used by sums and averages, and their bias is stated."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pytest

import bursar
from bursar.compile import compile as compile_query
from bursar.compile.values import Represented
from bursar.config import load
from bursar.core.domain import Bins, Domain
from bursar.errors import ConfigError
from bursar.sql import parse
from harness.configs import head

CONFIG = (
    head(1000.0)
    + """\
[columns.income]
edges = [0, 10, 100, 1000]
"""
)
DECLARED = CONFIG + "representatives = [4, 35.5, 100]\n"
EDGES = (0.0, 10.0, 100.0, 1000.0)
ROWS = [3.0, 9.5, 12.0, 99.0, 100.0, 1000.0, 2000.0]
COUNTED = "CASE WHEN income < 10 THEN 4 WHEN income < 100 THEN 35.5 ELSE 100 END"


def write(folder: Path, text: str) -> Path:
    path = folder / "people.toml"
    path.write_text(text)
    (folder / "people.csv").write_text("income\n" + "\n".join(str(row) for row in ROWS) + "\n")
    return path


def test_a_config_without_them_has_plain_bins(tmp_path: Path) -> None:
    found = load(write(tmp_path, CONFIG)).domain["income"]
    assert found == Bins(name="income", edges=EDGES)


def test_they_are_read_and_kept_with_the_strays(tmp_path: Path) -> None:
    found = load(write(tmp_path, DECLARED + 'outside = "other"\n')).domain["income"]
    assert isinstance(found, Represented)
    assert found.representatives == (4.0, 35.5, 100.0)
    assert found.other == 3


def test_the_ledger_is_not_bound_to_them(tmp_path: Path) -> None:
    """They may be declared later: where rows fall is the same."""
    domains = [load(write(tmp_path, text)).domain for text in (CONFIG, DECLARED)]
    assert domains[0].digest == domains[1].digest
    path = write(tmp_path, CONFIG)
    bursar.create(path).close()
    write(tmp_path, DECLARED)
    with bursar.open(path) as db:
        assert db.query("SELECT SUM(income) AS s FROM people WITH ERROR 50").remarks


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("representatives = [4, 35]", "one number for each of the 3 bins, not 2"),
        ("representatives = [4, 35, 1001]", r"must lie in its bin, \[100, 1000\], and is 1001"),
        ("representatives = [-1, 35, 100]", r"must lie in its bin, \[0, 10\)"),
        ('representatives = [4, "x", 100]', "must be a number"),
        ("representatives = 4", "must be a list"),
        ("representatives = [4, nan, 100]", "number"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_line(line: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=reason) as refusal:
        load(write(tmp_path, CONFIG + line + "\n"))
    assert refusal.value.line == 16


def test_other_columns_have_none(tmp_path: Path) -> None:
    text = CONFIG.replace("edges = [0, 10, 100, 1000]", "lower = 0\nupper = 2\nrepresentatives = [1, 2, 3]")
    with pytest.raises(ConfigError, match="is for numbers in bins"):
        load(write(tmp_path, text))


@pytest.mark.parametrize("numbers", [(1.0, 35.0), (11.0, 35.0, 100.0)])
def test_a_column_made_by_hand_is_checked_too(numbers: tuple[float, ...]) -> None:
    with pytest.raises(ConfigError, match=r"representatives|outside of its bin"):
        Represented(name="income", edges=EDGES, representatives=numbers)


@pytest.mark.parametrize("aggregate", ["SUM", "AVG", "VAR_POP", "STDDEV_SAMP"])
def test_sums_and_averages_count_with_them_and_say_how_far_off_that_is(aggregate: str, tmp_path: Path) -> None:
    """What DuckDB says of the declared numbers; the middles, which a twin would use, say something else."""
    path = write(tmp_path, DECLARED)
    sql = f"SELECT {aggregate}(income) AS x FROM people"
    (truth,) = (
        duckdb.connect().execute(f"SELECT {aggregate}({COUNTED}) FROM (SELECT unnest({ROWS}) AS income)").fetchone()
    )
    values = {}
    for domain in (load(path).domain, Domain((Bins(name="income", edges=EDGES),))):
        workload = compile_query(parse(sql), domain, "people")
        cells = np.zeros(domain["income"].size, np.int64)
        cells[:3] = [2, 2, 3]
        rows = workload.map.apply(lambda attrs, cells=cells: cells if attrs else cells.sum()).astype(float)
        values[workload.remarks] = float(workload.derive(rows, rows, rows)[0].value[0])
    (declared, middle) = values
    assert values[declared] == pytest.approx(float(truth))
    assert values[middle] != pytest.approx(values[declared], rel=0.1)
    assert "counts as the number declared for its bin" in declared[0]
    assert "at most 900 more" in declared[0]  # from 100 to 1000
    assert "at most 450 more" in middle[0]


def test_a_question_is_compiled_anew_for_other_numbers() -> None:
    first = Represented(name="income", edges=EDGES, representatives=(4.0, 35.5, 100.0))
    sql = "SELECT SUM(income) AS s FROM people"
    maps = [
        compile_query(parse(sql), Domain((column,)), "people").map.digest
        for column in (first, replace(first, representatives=(5.0, 35.5, 100.0)), first)
    ]
    assert maps[0] == maps[2] != maps[1]
