"""bursar init, confirm and check, as a data owner meets them."""

from __future__ import annotations

import csv
import io
import json
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from bursar.cli import main
from bursar.config import load, load_draft


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


Shell = Callable[..., Outcome]


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    def run(*words: str, stdin: str | None = "") -> Outcome:
        monkeypatch.setattr(sys, "argv", ["bursar", *words])
        monkeypatch.setattr(sys, "stdin", None if stdin is None else io.StringIO(stdin))
        capsys.readouterr()
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 0
        said = capsys.readouterr()
        return Outcome(code, said.out, said.err)

    return run


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: a table that Bursar has never seen."""
    monkeypatch.chdir(tmp_path)
    chance = random.Random(7)
    with (tmp_path / "shop.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["order_id", "age", "colour"])
        writer.writerows([number, chance.randrange(18, 90), chance.choice(["red", "blue"])] for number in range(500))
    return tmp_path


def test_from_an_unknown_table_to_an_answer(folder: Path, shell: Shell) -> None:
    drafted = shell("init", "shop.csv")
    assert drafted.code == 0
    assert "order_id         left out: identifiers" in drafted.out
    assert shell("create").code == 2
    assert shell("confirm", stdin="y\n" * 5).out.endswith("next: bursar check, then bursar create\n")
    assert "a count within 5 costs epsilon" in shell("check").out
    assert shell("create").code == 0
    answer = shell("query", "SELECT colour, COUNT(*) FROM shop GROUP BY colour WITH ERROR 50")
    assert answer.code == 0
    assert "blue" in answer.out


def test_a_draft_does_not_open(folder: Path, shell: Shell) -> None:
    shell("init", "shop.csv")
    for command in (["create"], ["query", "SELECT COUNT(*) FROM shop"], ["budget"], ["audit", "--trials", "100"]):
        refused = shell(*command)
        assert refused.code == 2
        assert "nobody has confirmed" in refused.err
        assert "try: if you own the data, bursar confirm" in refused.err
    assert not load_draft("bursar.toml").ledger_path.exists()


def test_init_with_the_owners_word(folder: Path, shell: Shell) -> None:
    said = shell("init", "shop.csv", "-d", "mine.toml", "--unit", "row", "--epsilon", "0.5", "--table", "orders")
    assert "bursar confirm -d mine.toml" in said.out
    config = load_draft("mine.toml")
    assert (config.table, config.budget.amount) == ("orders", 0.5)
    assert config.unconfirmed == (("source",), ("columns", "age"), ("columns", "colour"))


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["init"], 2, "try: bursar init data.csv"),
        (["init", "none.csv"], 4, "there is no file"),
        (["init", "shop.csv", "--from", "none.yaml"], 2, "no such config file"),
        (["init", "shop.csv", "--unit", "ordr_id"], 2, "try: --unit order_id"),
        (["init", "shop.csv", "--epsilon", "-1"], 2, "budget.epsilon must lie above 0"),
        (["check"], 2, "bursar init"),
        (["confirm"], 2, "bursar init"),
    ],
)
def test_refusals_leave_nothing_behind(folder: Path, shell: Shell, words: list[str], code: int, text: str) -> None:
    refused = shell(*words)
    assert refused.code == code
    assert text in refused.err
    assert [path.name for path in folder.iterdir()] == ["shop.csv"]


def test_init_overwrites_nothing(folder: Path, shell: Shell) -> None:
    shell("init", "shop.csv")
    again = shell("init", "shop.csv")
    assert again.code == 2
    assert "try: -d another.toml" in again.err


def test_confirm_by_name(folder: Path, shell: Shell) -> None:
    shell("init", "shop.csv")
    refused = shell("confirm", "--yes")
    assert refused.code == 2
    assert "try: bursar confirm --yes source privacy budget age colour" in refused.err
    assert shell("confirm", "--yes", "age", "colours").code == 2
    assert len(load_draft("bursar.toml").unconfirmed) == 5  # a wrong name confirms nothing
    said = shell("confirm", "--yes", "age", "columns.colour", "budget")
    assert "still open: 2" in said.out
    assert "try: bursar confirm --yes source privacy\n" in said.out
    assert shell("confirm", "--yes", "source", "privacy", "age").code == 0
    assert load("bursar.toml").unconfirmed == ()
    assert "everything is confirmed" in shell("confirm").out


def test_walking_through(folder: Path, shell: Shell) -> None:
    """Change the range, misspell a change, leave a column out, skip the rest."""
    shell("init", "shop.csv")
    typed = [
        "s",
        "s",
        "c",
        "epsilon = 0",
        "",
        "c",
        "epsilon = 0.25",
        "",
        "what?",
        "c",
        "lower = 16",
        "upper = 99",
        "",
        "l",
    ]
    said = shell("confirm", stdin="\n".join(typed) + "\n")
    assert said.code == 0
    assert "budget.epsilon must lie above 0" in said.out
    assert "lower = 0\nupper = 100\nType all its lines" in said.out
    assert "still open: 2" in said.out
    config = load_draft("bursar.toml")
    assert config.budget.amount == 0.25
    assert config.domain.names == ("age",)
    assert config.domain["age"].label(0) == 16
    assert config.unconfirmed == (("source",), ("privacy",))


def test_a_line_of_the_config_is_no_answer(folder: Path, shell: Shell) -> None:
    """`lower = 0` begins like `leave the column out`, and must not do that."""
    shell("init", "shop.csv")
    columns = load_draft("bursar.toml").domain.names
    said = shell("confirm", *columns, stdin="lower = 0\nclever\nyesterday\nskip\nquit\n")
    assert said.out.count("choose c first") == 3
    config = load_draft("bursar.toml")
    assert config.domain.names == columns
    assert {("columns", name) for name in columns} <= set(config.unconfirmed)


def test_the_draft_says_who_is_protected(folder: Path, shell: Shell) -> None:
    said = shell("init", "shop.csv")
    assert "protected is each row by itself" in said.out
    assert "--unit COLUMN" in said.out
    assert "--unit COLUMN" not in shell("init", "shop.csv", "--unit", "row", "-d", "other.toml").out
    named = shell("init", "shop.csv", "--unit", load_draft("bursar.toml").domain.names[0], "-d", "third.toml").out
    assert "at most 1 row of each are counted" in named
    assert "max_contributions in bursar confirm" in named


@pytest.mark.parametrize("stdin", ["q\n", "", None, "y\n", "l\nq\n", "c\n"])
def test_stopping_keeps_what_was_confirmed(folder: Path, shell: Shell, stdin: str | None) -> None:
    shell("init", "shop.csv")
    said = shell("confirm", stdin=stdin)
    assert said.code == 0
    assert len(load_draft("bursar.toml").unconfirmed) == (4 if stdin == "y\n" else 5)


def test_walking_through_what_is_named(folder: Path, shell: Shell) -> None:
    shell("init", "shop.csv")
    assert "columns.age (1 of 1): whole numbers from 0 to 100" in shell("confirm", "age", stdin="y\n").out
    assert ("columns", "age") not in load_draft("bursar.toml").unconfirmed


def test_check_in_json_and_before_anything_is_confirmed(folder: Path, shell: Shell) -> None:
    shell("init", "shop.csv")
    found = json.loads(shell("check", "--json").out)
    assert found["unconfirmed"] == ["source", "privacy", "budget", "columns.age", "columns.colour"]
    assert found["promise"]["protected"].startswith("each row")
    assert "try: bursar confirm" in shell("check").out
