"""What a free answer may import: it is what people wait for most often, and most of its time is imports."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ASKED = """
import json, sys
import bursar
db = bursar.open(sys.argv[1])
answer = db.query("SELECT sex, COUNT(*) FROM people GROUP BY sex", within=50)
print(json.dumps([answer.free, sorted(sys.modules)]))
"""

CONFIG = """
dataset = "people"
[source]
path = "people.csv"
table = "people"
max_rows = 1000
[privacy]
unit = "row"
[budget]
epsilon = 10.0
[columns.sex]
values = ["F", "M"]
"""

LIBRARIES = {"numpy", "sqlglot", "threadpoolctl"}
"""Which of the packages that the project needs are imported."""

LEFT_OUT = ("scipy", "numpy.ma", "duckdb", "opendp", "pandas", "typer", "pydantic", "starlette", "matplotlib")

NOT_NEEDED = (
    *("papers", "strategies.best", "strategies.optimal", "synthetic.session", "synthetic.plan", "synthetic.table"),
    *("curate", "rewrite", "remote", "service", "report.spending", "report.plots", "audit", "simulate", "testing"),
    *("proposers.invest", "proposers.tree", "proposers.pmw", "proposers.incremental", "proposers.strategy"),
    "core.source.duckdb",
)
"""Rooms and modules that buy, compare, draft or serve."""


def asked(config: Path) -> tuple[bool, list[str]]:
    run = subprocess.run([sys.executable, "-c", ASKED, str(config)], capture_output=True, text=True, check=True)
    free, modules = json.loads(run.stdout)
    return free, modules


def test_a_free_answer_imports_what_it_needs_and_nothing_else(tmp_path: Path) -> None:
    import bursar

    (tmp_path / "people.csv").write_text("sex\n" + "F\nM\n" * 100)
    config = tmp_path / "bursar.toml"
    config.write_text(CONFIG)
    bursar.create(config).close()
    paid, bought = asked(config)
    free, modules = asked(config)
    assert (paid, free) == (False, True)
    assert "duckdb" in bought  # a paid one counts rows
    assert set(modules) >= LIBRARIES
    assert not set(LEFT_OUT) & set(modules)
    rooms = [f"bursar.{name}" for name in NOT_NEEDED]
    assert [name for name in modules if any(f"{name}.".startswith(f"{room}.") for room in rooms)] == []
