"""How much code can break privacy, and how much of it the tests reach.

python tests/contracts/test_trusted_rooms.py     prints the lines of every trusted module
"""

from __future__ import annotations

import ast
import io
import json
import os
import subprocess
import sys
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "bursar"

CEILINGS = {
    "core": 3494,
    "core/ledger/postgresql": 252,
    "core/extensions": 3472,
    "core/source/servers": 1721,
}
"""Most lines of code of the trusted core, which is the whole path of `measure`, of a ledger for many machines, of
tables that stay in their database, and of the core's extensions.

A number is raised only together with an argument in a proof.
"""

OUTSIDE = (
    *("core/ledger/memory.py", "core/ledger/integrity.py", "core/ledger/write_order.py"),
    *("core/ledger/keyed_answers.py", "core/accounting/projections.py"),
)
"""In the room, and not in the count: a ledger for simulations, checks and upkeep that no promise rests on but that
older copies of a ledger are found, the order in which processes ask a database that decides by itself, answers under
keys, which were released before, and which of many valid bounds are tried."""

SUITES = (
    *("unit/core", "unit/planner/test_grant.py", "unit/curate/test_intake.py", "unit/test_engine.py"),
    "conformance/test_ledger_conformance.py",
    "conformance/test_source_conformance.py::test_every_partition_has_a_content_hash_of_its_own",
    "conformance/test_source_conformance.py::test_conditions_over_many_columns_are_counted",
    *(
        "conformance/test_server_conformance.py",
        "integration/test_postgresql_source.py",
        "integration/test_cell_table.py",
    ),
    *("integration/test_mariadb_source.py", "integration/test_joins.py", "integration/test_distinct_people.py"),
    *("integration/test_numbers_of_people.py", "faults/test_postgres_faults.py", "property/test_checkpoints.py"),
)
"""The quick tests that must reach every branch between them. Under coverage each takes half as long again: of the many
that go through a source in the same way, some are enough."""

ELSEWHERE = ("servers/spark.py", "servers/file_list.py")
"""What no quick test reaches: Spark is an extra of its own, and its tests are for `make soak`."""

SILENT = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
}


def lines_of_code(text: str) -> int:
    """Lines that hold something else than blanks, comments and docstrings."""
    told: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            told |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    held: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in SILENT:
            held |= set(range(token.start[0], token.end[0] + 1))
    return len(held - told)


def modules(room: str) -> dict[str, int]:
    """The lines of code of each module of a room."""
    paths = {str(path.relative_to(SOURCE)): path for path in sorted((SOURCE / room).rglob("*.py"))}
    others = [other for other in CEILINGS if other.startswith(f"{room}/")]
    return {
        name: lines_of_code(path.read_text(encoding="utf-8"))
        for name, path in paths.items()
        if name not in OUTSIDE and not any(name.startswith(f"{other}/") for other in others)
    }


def test_lines_are_counted_as_a_reader_would() -> None:
    told = '"""Told."""\n\nimport os  # why\n\n\n# a comment\ndef f(\n    a,\n):\n    """Told,\n\n    at length."""\n'
    text = told + '    return """x\n\ny"""\n'
    assert lines_of_code(text) == 7
    assert lines_of_code('A = 1\n"""What A is."""\n') == 1


@pytest.mark.parametrize("room", CEILINGS)
def test_a_trusted_room_stays_small(room: str, record_property: pytest.RecordProperty) -> None:
    lines = sum(modules(room).values())
    record_property(f"lines of code in {room}", lines)
    assert 0 < lines <= CEILINGS[room]


@pytest.mark.soak
def test_the_quick_tests_reach_every_branch(tmp_path: Path, record_property: pytest.RecordProperty) -> None:
    report = tmp_path / "coverage.json"
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--cov-branch"]
    words += ["-m", "not heavy and not soak"]
    words += ["--cov=bursar.core", f"--cov-report=json:{report}"]
    words += [str(ROOT / "tests" / suite) for suite in SUITES]
    outside = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_", "COVERAGE_"))
    }
    alone = {**outside, "COVERAGE_FILE": str(tmp_path / "coverage")}
    done = subprocess.run(words, cwd=ROOT, env=alone, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:]
    found = json.loads(report.read_text())
    record_property("branch coverage of the trusted rooms", found["totals"]["percent_covered_display"])
    missing = {
        name: (file["missing_lines"], file["missing_branches"])
        for name, file in found["files"].items()
        if (file["missing_lines"] or file["missing_branches"]) and not name.endswith(ELSEWHERE)
    }
    assert missing == {}
    assert found["totals"]["num_branches"] > 500


if __name__ == "__main__":
    for room in CEILINGS:
        for name, lines in modules(room).items():
            print(f"{lines:5}  {name}")
        print(f"{sum(modules(room).values()):5}  {room} in all\n")
    print(f"{sum(sum(modules(room).values()) for room in CEILINGS):5}  all trusted rooms")
