"""The command line with answers: files, bars, prices before paying, the budget at a glance."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import polars
import pytest

from bursar.cli import main
from harness.terminal import Terminal
from unit.cli.test_shell import made, records, spent, wait_for_records

pytestmark = pytest.mark.thinned(3)

BY_SEX = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"


class Cli:
    """Runs commands in this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch, self.capsys = monkeypatch, capsys
        self.out = self.err = ""

    def __call__(self, *words: str) -> int:
        self.monkeypatch.setattr(sys, "argv", ["bursar", *words])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 0
        self.out, self.err = self.capsys.readouterr()
        return code


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return made(tmp_path)


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(monkeypatch, capsys)


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.png"])
def test_an_answer_is_written_and_printed(folder: Path, cli: Cli, name: str) -> None:
    assert cli("query", BY_SEX, "--within", "60", "--out", name) == 0
    assert "F " in cli.out
    assert cli.err == f"written to {name}\n"
    assert (folder / name).stat().st_size > 0
    if name == "a.parquet":
        assert polars.read_parquet(folder / name)["sex"].to_list() == ["F", "M", "other", None]


@pytest.mark.parametrize("name", ["a.xlsx", "no/a.csv", "people"])
def test_a_file_that_cannot_be_written_costs_nothing(folder: Path, cli: Cli, name: str) -> None:
    assert cli("query", BY_SEX, "--within", "60", "--out", name) == 2
    assert cli.out == ""
    assert records(folder) == 1


def test_an_explanation_is_not_written(folder: Path, cli: Cli) -> None:
    assert cli("query", f"EXPLAIN {BY_SEX}", "--within", "60", "--out", "a.csv") == 2
    assert "answer from" in cli.out
    assert not (folder / "a.csv").exists()


def test_bars_where_they_are_wanted(folder: Path, cli: Cli) -> None:
    cli("query", BY_SEX, "--within", "60")
    plain = cli.out
    cli("query", BY_SEX, "--within", "60", "--bars")
    assert "┼" in cli.out
    assert "┼" not in plain
    assert cli.out.splitlines()[0] == plain.splitlines()[0]


def test_bars_at_a_terminal(folder: Path) -> None:
    terminal = Terminal(folder, "query", BY_SEX, "--within", "60")
    assert terminal.end() == 0
    assert "┼" in terminal.said
    without = Terminal(folder, "query", BY_SEX, "--within", "60", "--no-bars")
    assert without.end() == 0
    assert "┼" not in without.said


@pytest.mark.heavy
def test_the_price_of_a_file_of_questions(folder: Path, cli: Cli) -> None:
    (folder / "monday.sql").write_text(f"{BY_SEX}; SELECT COUNT(*) FROM people;")
    assert cli("release", "monday.sql", "--within", "60", "--price") == 0
    assert cli.out.startswith("price   epsilon ")
    assert cli("release", "monday.sql", "--within", "60", "--price", "--json") == 0
    price = json.loads(cli.out)
    assert price["left"] == 3
    assert records(folder) == 1
    assert cli("release", "monday.sql", "--within", "60", "--json") == 0
    assert json.loads(cli.out)["charge"] == price["price"]
    assert cli("release", "monday.sql", "--within", "60", "--price") == 0
    assert cli.out.startswith("price   free")


def test_a_price_that_nothing_can_pay(folder: Path, cli: Cli) -> None:
    (folder / "monday.sql").write_text(BY_SEX)
    assert cli("release", "monday.sql", "--within", "0.6", "--price") == 0
    assert "nothing meets the goal" in cli.out
    assert cli("release", "monday.sql", "--within", "0.6", "--price", "--json") == 0
    assert json.loads(cli.out)["price"] is None


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("said", "bought"), [("y\n", 1), ("\n", 0), ("\x04", 0)])
def test_a_person_is_asked_before_paying(folder: Path, said: str, bought: int) -> None:
    (folder / "monday.sql").write_text(BY_SEX)
    terminal = Terminal(folder, "release", "monday.sql", "--within", "60")
    shown = terminal.expect("pay? [y/N] ")
    assert "price   epsilon" in shown
    terminal.type(said)
    assert terminal.end() == 0
    assert ("nothing was paid" in terminal.said) == (bought == 0)
    assert records(folder) == 1 + bought


def test_nobody_is_asked_who_has_agreed(folder: Path) -> None:
    (folder / "monday.sql").write_text(BY_SEX)
    for _ in range(2):  # the second time it is free, and nobody is asked either
        terminal = Terminal(folder, "release", "monday.sql", "--within", "60", "--yes")
        assert terminal.end() == 0
        assert "pay?" not in terminal.said
    free = Terminal(folder, "release", "monday.sql", "--within", "60")
    assert free.end() == 0
    assert "pay?" not in free.said


def test_stopping_a_question_says_what_was_charged(tmp_path: Path) -> None:
    folder = made(tmp_path, pace=60.0)
    (folder / "monday.sql").write_text(f"{BY_SEX}; SELECT COUNT(*) FROM people WHERE age < 5")
    for bought, words in enumerate([("query", BY_SEX), ("release", "monday.sql", "--yes")], start=2):
        before = spent(folder)
        terminal = Terminal(folder, *words, "--within", "40")
        wait_for_records(folder, bought)
        terminal.expect("at work: ")
        terminal.type("\x03")
        assert terminal.end() == 130
        said = re.search(r"epsilon ([\d.]+) was charged, and what it bought is kept", terminal.said)
        assert said is not None
        assert float(said[1]) == pytest.approx(spent(folder) - before, rel=1e-5)


def test_the_budget_at_a_glance(folder: Path, cli: Cli) -> None:
    cli("query", BY_SEX, "--within", "60", "--as", "ann")
    before = spent(folder)
    assert cli("budget", "--png", "b.png") == 0
    for word in ("budget ", "columns sex", "rows measured", "asked ", "analyst ann", "people  by sex"):
        assert word in cli.out
    assert "saved " not in cli.out
    assert (folder / "b.png").read_bytes().startswith(b"\x89PNG")
    assert cli("budget", "--saved", "--png", "b.png") == 0
    assert "saved " in cli.out
    assert cli("budget", "--json", "--as", "bob") == 0
    other = json.loads(cli.out)
    assert other["spent"] == before == spent(folder)
    assert other["spending"]["by_columns"] == []
    assert "ann" not in json.dumps(other["spending"])
    assert cli("budget", "--png", "b.csv") == 2


@pytest.mark.heavy
def test_a_picture_of_an_unspent_budget(folder: Path, cli: Cli) -> None:
    assert cli("budget", "--png", "b.png") == 0
    assert "nothing was bought yet" in cli.out
    assert (folder / "b.png").stat().st_size > 0


def test_config_and_analyst_may_stand_in_the_environment(
    folder: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    config = next(folder.glob("*.toml"))
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    monkeypatch.setenv("BURSAR_CONFIG", str(config))
    monkeypatch.setenv("BURSAR_ANALYST", "zoe")
    assert cli("query", BY_SEX, "--within", "60") == 0
    assert cli("log", "--json") == 0
    assert {line["analyst"] for line in json.loads(cli.out)} == {"zoe"}
    assert cli("log", "--json", "--as", "ann") == 0
    assert json.loads(cli.out) == []
