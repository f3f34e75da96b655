"""What a free answer may import: it is what people wait for most often, and most of its time is imports."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ASKED = """
import dataclasses, json, sys
import bursar
db = bursar.open(sys.argv[1])
answer = db.query(sys.argv[2], within=50)
eager = [name for name, module in sys.modules.items() if vars(module).get("dataclass") is dataclasses.dataclass]
print(json.dumps([answer.free, sorted(sys.modules), sorted(eager)]))
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
[columns.age]
lower = 0
upper = 9
"""

COUNT = "SELECT sex, COUNT(*) FROM people GROUP BY sex"
AVERAGE = "SELECT sex, AVG(age) FROM people GROUP BY sex"

COMMAND = """
import json, sys
from bursar.cli import main
try:
    main()
except SystemExit:
    pass
print(json.dumps(sorted(sys.modules)))
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


def asked(config: Path, question: str = COUNT) -> tuple[bool, list[str], list[str]]:
    """Whether it was free, what is loaded, and whose dataclasses had their methods written while they were imported."""
    run = subprocess.run(
        [sys.executable, "-c", ASKED, str(config), question], capture_output=True, text=True, check=True
    )
    free, modules, eager = json.loads(run.stdout)
    return free, modules, eager


def command(*words: str) -> list[str]:
    """What is loaded when a command has run."""
    run = subprocess.run([sys.executable, "-c", COMMAND, *words], capture_output=True, text=True, check=True)
    modules: list[str] = json.loads(run.stdout.splitlines()[-1])
    return modules


def loaded_in_vain(modules: list[str]) -> list[str]:
    """What a free answer does without."""
    rooms = [f"bursar.{name}" for name in NOT_NEEDED]
    own = [name for name in modules if any(f"{name}.".startswith(f"{room}.") for room in rooms)]
    return [*sorted(set(LEFT_OUT) & set(modules)), *own]


@pytest.mark.heavy
def test_a_free_answer_imports_what_it_needs_and_nothing_else(tmp_path: Path) -> None:
    import bursar

    (tmp_path / "people.csv").write_text("sex,age\n" + "F,4\nM,5\n" * 100)
    config = tmp_path / "bursar.toml"
    config.write_text(CONFIG)
    bursar.create(config).close()
    paid, bought, _ = asked(config)
    free, modules, eager = asked(config)
    assert (paid, free) == (False, True)
    assert "duckdb" in bought  # a paid one counts rows
    assert set(modules) >= LIBRARIES
    assert loaded_in_vain(modules) == []
    own = [name for name in eager if name.startswith("bursar.") and not name.startswith("bursar.core.")]
    assert own == ["bursar.errors"]  # all others take it from `lazy_dataclass`
    typed = command("query", COUNT, "--within", "50", "-d", str(config))
    assert {"typer", *modules} <= set(typed)
    assert not set(LEFT_OUT) - {"typer"} & set(typed)
    paid, _, _ = asked(config, AVERAGE)
    free, modules, _ = asked(config, AVERAGE)  # from sums and counts, which need not be the rows that were bought
    assert (paid, free) == (False, True)
    assert loaded_in_vain(modules) in ([], ["numpy.ma"])  # np.unique, of long columns, looks into it


def test_help_imports_no_engine() -> None:
    for words in ((), ("--help",), ("query", "--help"), ("user", "--help")):
        modules = command(*words)
        assert "typer" in modules
        assert not {"numpy", "sqlglot", "rich", "pydantic", "bursar.session", "bursar.config"} & set(modules)
