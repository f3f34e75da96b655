"""`bursar seal` and `bursar ingest` on the command line."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bursar.cli.app import app
from bursar.errors import SourceError

CONFIG = """\
dataset = "rides"
[partition]
column = "week"
seal = "command"
[source]
path = "rides.duckdb"
table = "rides"
max_rows = 1000
[privacy]
unit = "row"
[budget]
epsilon = 50.0
[columns.week]
lower = 1
upper = 9
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("bursar.toml").write_text(CONFIG)
    for name, weeks in (("a.csv", [1, 1, 2]), ("b.csv", [1, 3, ""])):
        Path(name).write_text("week\n" + "".join(f'"{week}"\n' for week in weeks))
    assert run("create").exit_code == 0
    return tmp_path


def run(*words: str) -> object:
    return CliRunner().invoke(app, list(words))


def test_files_are_added_and_partitions_sealed(folder: Path) -> None:
    assert run("ingest", "a.csv").output == "a.csv: 3 rows added\n"
    assert run("seal").output == "sealed through 1\n"
    assert run("ingest", "b.csv").output == "b.csv: 1 rows added; set aside: 1 late, 1 outside\n"
    assert run("seal", "--through", "3").output == "sealed through 3\n"
    shown = run("budget").output
    assert "sealed  3 of 9 partitions of week, the last one 3\n" in shown
    assert "epsilon 0 to 0 spent on each\n" in shown
    assert [one["partition"] for one in json.loads(run("budget", "--json").output)["partitions"]] == ["1", "2", "3"]
    assert "sealed 3 partitions" in run("log").output


@pytest.mark.heavy
def test_a_file_twice_is_refused(folder: Path) -> None:
    taken = json.loads(run("ingest", "a.csv", "--json").output)
    assert taken == {"file": "a.csv", "added": 3, "late": 0, "outside": 0}
    refused = run("ingest", "a.csv")
    assert isinstance(refused.exception, SourceError)
    assert "taken in before" in str(refused.exception)


@pytest.mark.heavy
def test_a_folder_is_watched_until_it_is_stopped(folder: Path) -> None:
    words = [sys.executable, "-c", "from bursar.cli import main; main()", "ingest", "a.csv", "--watch", "."]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        lines = []
        assert child.stdout is not None
        assert child.stderr is not None
        while len(lines) < 2:
            lines.append(child.stdout.readline())
        Path("c.part").write_text("nothing\n1\n")
        Path("c.part").rename("c.csv")  # complete from the first look on
        refused = child.stderr.readline()
        time.sleep(0.1)
        child.send_signal(signal.SIGINT)
        assert child.wait() == 0
        assert lines == ["a.csv: 3 rows added\n", "b.csv: 2 rows added; set aside: 0 late, 1 outside\n"]
        assert "no column week" in refused
        assert child.stdout.read() == child.stderr.read() == ""
