"""Waiting in turn on the command line: tickets, exit codes, what each analyst sees."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

import bursar
from bursar.curate.demo import generate
from harness.shell import Shell

pytestmark = pytest.mark.thinned(3)

COUNT = "SELECT COUNT(*) FROM people"
TURNS = '\n[analysts]\nscheduler = "round-robin"\nshares = { ann = 0.5, bob = 0.5 }\n'


def shell_on(folder: Path, more: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    generate(folder / "people.csv", rows=2_000)
    config = folder / "bursar.toml"
    config.write_text(config.read_text() + more)
    shell = Shell(monkeypatch, capsys, last=("-d", str(config)))
    assert shell("create")[0] == 0
    return shell


@pytest.fixture(scope="module")
def created(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("created")
    config = generate(folder / "people.csv", rows=2_000)
    config.write_text(config.read_text() + TURNS)
    bursar.create(config).close()
    return folder


@pytest.fixture
def shell(created: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    shutil.copytree(created, tmp_path, dirs_exist_ok=True)
    return Shell(monkeypatch, capsys, last=("-d", str(tmp_path / "bursar.toml")))


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


# -- bursar simulate ----------------------------------------------------------------------------------------


@pytest.fixture
def scripts(tmp_path: Path) -> tuple[str, ...]:
    (tmp_path / "ann.sql").write_text(f"{COUNT} WHERE age < 30; {COUNT} WHERE age < 50")
    (tmp_path / "bob.sql").write_text(COUNT)
    return ("simulate", "--mix", f"ann={tmp_path / 'ann.sql'}", "--mix", f"bob={tmp_path / 'bob.sql'}")


@pytest.mark.heavy
def test_policies_side_by_side(shell: Shell, scripts: tuple[str, ...], tmp_path: Path) -> None:
    picture = tmp_path / "policies.png"
    before = shell("log", "--json")[1]
    code, out, _ = shell(*scripts, "--often", "ann=2", "--within", "200", "--plot", str(picture))
    assert code == 0
    lines = out.splitlines()
    assert lines[0].split() == ["policy", "answered", "of", "ratio", "error", "interference", "steps"]
    assert [line[:11].strip() for line in lines[1:-1]] == [
        "one budget", "shared", "round-robin", "randomized", "independent",
    ]  # fmt: skip
    assert "--seed-on COLUMNS" in lines[-1]
    assert picture.read_bytes().startswith(b"\x89PNG")
    found = json.loads(shell(*scripts, "--within", "200", "--seed-on", "age", "--json")[1])
    assert found[-1]["policy"] == "seeded-cache"
    assert found[-1]["utility"].keys() == {"ann", "bob"}
    assert shell("log", "--json")[1] == before
    assert json.loads(shell("budget", "--json")[1])["spent"] == 0


def test_the_log_is_replayed(shell: Shell) -> None:
    assert shell("query", COUNT, "--within", "500", "--as", "ann")[0] == 0
    code, out, _ = shell("simulate", "--replay", "--within", "500", "--json")
    assert code == 0
    assert {one["asked"] for one in json.loads(out)} == {1}
    assert all(one["utility"] == {"ann": 1.0} for one in json.loads(out))


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ((), "try: --mix alice=alice.sql, or --replay"),
        (("--mix", "ann"), "--mix takes NAME=..."),
        (("--mix", "ann=nowhere.sql"), "cannot be read as text"),
        (("--mix", "ann={bob}", "--mix", "ann={bob}"), "names an analyst twice"),
        (("--mix", "ann={bob}", "--often", "ann=x"), "--often takes a number above 0"),
        (("--mix", "ann={bob}", "--often", "ann=0"), "--often takes a number above 0"),
        (("--mix", "ann={bob}", "--often", "cat=1"), "'cat' has a rate, and no questions"),
        (("--mix", "eve={bob}"), "'eve' has no share in the config"),
        (("--mix", "ann={bob}", "--seed-on", "size"), "--seed-on names a column that is not declared: 'size'"),
        (("--replay", "--mix", "ann={bob}"), "leave --mix and --often out"),
        (("--replay",), "the log has no question"),
    ],
)
def test_what_cannot_be_simulated(
    shell: Shell, scripts: tuple[str, ...], tmp_path: Path, words: tuple[str, ...], reason: str
) -> None:
    code, _, err = shell("simulate", *(word.format(bob=tmp_path / "bob.sql") for word in words), "--within", "200")
    assert code == 2
    assert reason in err


def test_a_picture_needs_matplotlib(shell: Shell, scripts: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, _, err = shell(*scripts, "--within", "200", "--plot", "policies.png")
    assert code == 2
    assert "pip install matplotlib" in err
