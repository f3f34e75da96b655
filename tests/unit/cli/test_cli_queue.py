"""Waiting in turn on the command line: tickets, exit codes, what each analyst sees."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from bursar.cli import main
from bursar.demo import generate

COUNT = "SELECT COUNT(*) FROM people"
TURNS = '\n[analysts]\nscheduler = "round-robin"\nshares = { ann = 0.5, bob = 0.5 }\n'


class Shell:
    def __init__(self, config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.config, self.monkeypatch, self.capsys = config, monkeypatch, capsys

    def __call__(self, *words: str) -> tuple[int, str, str]:
        self.monkeypatch.setattr(sys, "argv", ["bursar", *words, "-d", str(self.config)])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 0
        said = self.capsys.readouterr()
        return code, said.out, said.err


def shell_on(folder: Path, more: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    generate(folder / "people.csv", rows=2_000)
    config = folder / "bursar.toml"
    config.write_text(config.read_text() + more)
    shell = Shell(config, monkeypatch, capsys)
    assert shell("create")[0] == 0
    return shell


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    return shell_on(tmp_path, TURNS, monkeypatch, capsys)


def test_a_ticket_and_how_it_is_redeemed(shell: Shell) -> None:
    code, out, err = shell("query", COUNT, "--within", "500", "--as", "bob", "--no-wait")
    assert (code, out) == (5, "")
    assert "ticket 1 keeps your place" in err
    assert "--ticket 1" in err
    code, out, err = shell("query", COUNT, "--within", "500", "--as", "bob", "--no-wait", "--ticket", "1", "--json")
    assert (code, err) == (5, "")
    assert json.loads(out)["ticket"] == 1
    assert shell("query", COUNT, "--within", "500", "--as", "ann")[0] == 0
    code, out, _ = shell("query", COUNT, "--within", "500", "--as", "bob", "--ticket", "1")
    assert code == 0
    assert "cost" in out
    code, _, err = shell("query", COUNT, "--within", "500", "--as", "bob", "--ticket", "1")
    assert code == 2
    assert "has no ticket 1" in err


def test_a_batch_takes_one_turn(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "both.sql").write_text(f"{COUNT}; {COUNT} WHERE age >= 65")
    words = ("release", str(tmp_path / "both.sql"), "--within", "500", "--no-wait")
    assert shell(*words, "--as", "ann")[0] == 0
    code, out, _ = shell(*words, "--as", "ann", "--json")
    assert (code, json.loads(out)["ticket"]) == (5, 2)
    assert shell(*words, "--as", "bob")[0] == 0


def test_the_queue_names_own_tickets_and_counts_the_others(shell: Shell) -> None:
    shell("query", COUNT, "--within", "500", "--as", "bob", "--no-wait")
    code, out, _ = shell("queue", "--as", "bob")
    assert code == 0
    assert "turn    another analyst's, who has not asked" in out
    assert "ticket  1, parked" in out
    assert "others  0 tickets" in out
    assert "turns wait for their owners" in out
    out = shell("queue", "--as", "ann")[1]
    assert "turn    yours" in out
    assert "others  1 ticket\n" in out
    assert "bob" not in out
    assert COUNT not in out
    seen = json.loads(shell("queue", "--as", "ann", "--json")[1])
    assert (seen["yours"], seen["own"], seen["others"], seen["had"], seen["given"]) == (True, [], 1, 1, 1)


def test_letting_turns_go(shell: Shell) -> None:
    assert "turn    another analyst's" in shell("pass", "--as", "ann")[1]
    assert shell("query", COUNT, "--within", "500", "--as", "bob", "--no-wait")[0] == 0
    out = shell("pass", "--away", "--as", "ann")[1]
    assert "away    your turns are let go until you ask again" in out
    for _ in range(3):
        assert shell("query", COUNT, "--within", "500", "--as", "bob", "--no-wait")[0] == 0


def test_who_has_no_share_has_no_turn(shell: Shell) -> None:
    for words in (("pass",), ("query", COUNT, "--within", "500")):
        code, _, err = shell(*words, "--as", "eve")
        assert code == 2
        assert "'eve' has no share" in err


def test_who_waits_is_told_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The answer stands alone on standard output."""
    shell = shell_on(tmp_path, TURNS + 'idle = "skip-after 1s"\n', monkeypatch, capsys)
    code, out, err = shell("query", COUNT, "--within", "500", "--as", "bob", "--json")
    assert code == 0
    assert json.loads(out)["question"] == COUNT
    assert err == "" or err.startswith("waiting: it is the turn of an analyst who has not asked")
    assert "passed over after 1 s" in shell("queue", "--as", "ann")[1]


def test_without_a_scheduler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shell = shell_on(tmp_path, "", monkeypatch, capsys)
    assert "nobody waits in turn here" in shell("queue")[1]
    assert shell("pass")[0] == 2
    assert shell("query", COUNT, "--within", "500", "--no-wait")[0] == 0
    assert shell("query", COUNT, "--within", "500", "--ticket", "1")[0] == 2
