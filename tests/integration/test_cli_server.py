"""Every command of an analyst, asked of a server by somebody who has a token and no file of the data set."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bursar.cli import main
from bursar.cli.shell import Shell
from bursar.planner.goals import Wanted
from bursar.remote import connect
from bursar.service.people import Role
from harness.serving import Served, data_set, let_in, serving

BY_SEX = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    config = data_set(tmp_path_factory.mktemp("served"))
    with serving(config, tokens=let_in(config, ana=Role.ANALYST)) as server:
        yield server


@pytest.fixture(autouse=True)
def elsewhere(served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BURSAR_SERVER", f"{served.url}/demo-people")
    monkeypatch.setenv("BURSAR_TOKEN", served.tokens["ana"])


class Commands:
    """Runs commands in this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capsys = monkeypatch, capsys

    def __call__(self, *words: str, code: int = 0) -> str:
        """What is printed: on standard output, or on standard error where the command is refused."""
        self._monkeypatch.setattr(sys, "argv", ["bursar", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = self._capsys.readouterr()
        assert (ended.value.code or 0) == code, err
        return err if code else out


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(monkeypatch, capsys)


def test_asking(run: Commands, tmp_path: Path) -> None:
    price = json.loads(run("explain", BY_SEX, "--within", "60", "--json"))
    answer = json.loads(run("query", BY_SEX, "--within", "60", "--json", "--key", "one"))
    assert answer["charge"] == price["offers"][price["chosen"]]["price"] > 0
    assert json.loads(run("query", BY_SEX, "--within", "60", "--json", "--key", "one")) == answer
    assert "answer from" in run("query", f"EXPLAIN {BY_SEX}", "--within", "60")
    run("query", BY_SEX, "--within", "60", "--out", "answer.csv")
    assert len((tmp_path / "answer.csv").read_text().splitlines()) == 5
    Path("two.sql").write_text(f"{BY_SEX}; SELECT COUNT(*) AS n FROM people")
    shown = json.loads(run("batch", "two.sql", "--within", "60", "--price", "--json"))
    together = json.loads(run("batch", "two.sql", "--within", "60", "--json"))
    assert (len(together["answers"]), together["charge"]) == (2, shown["price"])


def test_looking(run: Commands) -> None:
    run("query", BY_SEX, "--within", "60")
    status, log = json.loads(run("budget", "--json")), json.loads(run("log", "--json"))
    assert status["spent"] == sum(line["charge"] for line in log) > 0
    assert {line["analyst"] for line in log} == {"ana"}
    assert "nobody waits in turn here" in run("queue")
    assert "no turn to let go" in run("pass", code=2)
    assert "where the ledger is" in run("log", "--erase-texts", code=2)


def test_refusals_have_their_exit_codes(run: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = run("query", "SELECT COUNT(*) FROM people WHERE salary > 5", "--within", "60", code=2)
    assert "line 1, column 35: there is no column salary" in refused
    assert "nothing was spent" in run("query", BY_SEX, "--within", "0.01", code=3)
    assert "cannot be reached" in run("budget", "--server", "http://127.0.0.1:1/people", code=4)
    monkeypatch.delenv("BURSAR_TOKEN")
    assert "wants a token" in run("budget", code=2)


@pytest.mark.heavy
def test_a_synthetic_table(run: Commands, tmp_path: Path) -> None:
    run("query", BY_SEX, "--within", "60")
    made = json.loads(run("synth", "--out", "rows.csv", "--rows", "20", "--marginals", "sex", "--json"))
    assert (made["charge"], made["rows"]) == (0, 20)
    assert len((tmp_path / "rows.csv").read_text().splitlines()) == 21


def test_a_shell(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    lines = iter([f"{BY_SEX};", r"\d", r"\goal", rf"\explain {BY_SEX}", r"\budget", r"\q"])
    with connect(f"{served.url}/demo-people") as db:
        Shell(db, Wanted(within=60)).run(lambda _: next(lines))
    told = capsys.readouterr()
    assert told.err == ""
    for words in ("error  ±", "table people", "goal: WITH ERROR 60", "answer from", "spent"):
        assert words in told.out
