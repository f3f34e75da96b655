"""The command line under shares: who asks, who sees what, and what the data owner may change."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import bursar
from bursar.curate.demo import generate
from bursar.errors import AnalystError, LedgerError
from harness.shell import Shell

pytestmark = pytest.mark.thinned(3)

YOUNG, OLD = (f"SELECT COUNT(*) FROM people WHERE age {ages}" for ages in ("< 40", ">= 40"))
SHARES = "\n[analysts]\nshares = { alice = 0.5, bob = 0.3 }\n"


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(monkeypatch, capsys)


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a config with shares, its ledger, and one question by each of its analysts."""
    folder = tmp_path_factory.mktemp("asked")
    path = generate(folder / "people.csv", rows=2_000)
    path.write_text(path.read_text() + SHARES)
    bursar.create(path).close()
    for name, text in (("alice", YOUNG), ("bob", OLD)):
        with bursar.open(path, analyst=name) as db:
            db.query(text, epsilon=0.1)
    return folder


@pytest.fixture
def config(asked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The config of such a folder, which is the current one and nobody else's."""
    shutil.copytree(asked, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "bursar.toml"


def changed(config: Path, shares: str) -> None:
    config.write_text(config.read_text().replace("{ alice = 0.5, bob = 0.3 }", shares))


@pytest.mark.heavy
def test_an_analyst_sees_the_own_share_and_questions(config: Path, shell: Shell) -> None:
    mine = shell.json("budget", "--as", "alice")
    assert [account["analyst"] for account in mine["accounts"]] == ["alice"]
    assert mine["accounts"][0]["spent"] == pytest.approx(0.1, rel=1e-5)
    assert mine["spent"] == pytest.approx(0.1, rel=1e-5)  # they asked about different people
    assert [line["purpose"] for line in shell.json("log", "--as", "alice")] == [YOUNG]
    for command in ("budget", "log"):
        _, out, _ = shell(command, "--as", "alice")
        assert "bob" not in out
        assert OLD not in out


def test_the_owner_sees_everybody_and_who_paid_what(config: Path, shell: Shell) -> None:
    everybody = shell.json("budget")
    assert [(one["analyst"], one["share"]) for one in everybody["accounts"]] == [("alice", 0.5), ("bob", 0.3)]
    lines = shell.json("log")
    assert [line["analyst"] for line in lines] == ["owner", "owner", "alice", "bob"]
    assert [round(line["paid"], 6) for line in lines] == [0, 0, 0.1, 0.1]
    assert [round(line["charge"], 6) for line in lines] == [0, 0, 0.1, 0]
    _, out, _ = shell("log")
    assert "paid" in out.splitlines()[0]
    _, out, _ = shell("budget")
    assert "share   alice: 0.5 of it, epsilon" in out
    assert "share   bob: 0.3 of it" in out


def test_only_those_with_a_share_can_ask(config: Path, shell: Shell) -> None:
    for words in (("--as", "eve"), ()):
        code, out, err = shell("query", YOUNG, "--within", "100", *words)
        assert (code, out) == (2, "")
        assert "has no share of this budget" in err
        assert "--as NAME" in err
    code, _, err = shell("budget", "--as", "eve")
    assert (code, "has no share" in err) == (2, True)
    code, _, err = shell("query", YOUNG, "--within", "100", "--as", "everyone")
    assert (code, "nobody can ask as" in err) == (2, True)


def test_a_refusal_names_the_share(config: Path, shell: Shell) -> None:
    code, _, err = shell("query", OLD, "--within", "2", "--as", "bob")
    assert code == 3
    assert "is left of the share of bob; nothing was spent" in err
    assert "try: WITH ERROR" in err


def test_explain_shows_both_prices(config: Path, shell: Shell) -> None:
    _, out, _ = shell("explain", OLD, "--within", "30", "--as", "alice")
    assert "of all" in out
    assert "of the share of alice" in out
    shown = shell.json("explain", OLD, "--within", "30", "--as", "alice")
    assert shown["analyst"] == "alice"
    assert shown["total_left"] > shown["left"]


def test_changed_shares_are_in_force_when_the_owner_says_so(config: Path, shell: Shell) -> None:
    changed(config, "{ alice = 0.4, bob = 0.3, carol = 0.3 }")
    code, _, err = shell("query", YOUNG, "--within", "100", "--as", "carol")
    assert (code, "bursar shares" in err, "carol 0.3" in err) == (4, True, True)
    code, out, _ = shell("shares")
    assert (code, "share   carol: 0.3 of it" in out) == (0, True)
    assert shell("query", OLD, "--epsilon", "0.1", "--as", "carol")[0] == 0
    assert [one["analyst"] for one in shell.json("shares")["accounts"]] == ["alice", "bob", "carol"]
    assert "shares: alice 0.4, bob 0.3, carol 0.3" in [line["kind"] for line in shell.json("log")]


@pytest.mark.parametrize(
    ("shares", "reason"),
    [
        ("{ alice = 0.5 }", "bob has spent epsilon 0.1"),
        ("{ alice = 0.01, bob = 0.3 }", "a share cannot be smaller"),
        ("{ alice = 0.5, bob = 0.6 }", "the shares are 1.1 together"),
        ("{ alice = 0.5, bob = 0 }", "must lie above 0"),
    ],
)
def test_what_cannot_be_given_out_changes_nothing(config: Path, shell: Shell, shares: str, reason: str) -> None:
    before = shell("verify")[1]
    right = config.read_text()
    changed(config, shares)
    code, _, err = shell("shares")
    assert (code, reason in err) == (2, True), err
    config.write_text(right)
    assert shell("verify")[1] == before
    assert shell("query", YOUNG, "--within", "500", "--as", "alice")[0] == 0


def test_in_python(config: Path) -> None:
    with bursar.open(config, analyst="bob") as db:
        assert db.query(OLD, within=1000).free
        assert [line.purpose for line in db.log()] == [OLD]
    with pytest.raises(AnalystError, match="nobody can ask as"):
        bursar.open(config, analyst="everyone")
    changed(config, "{ alice = 0.5 }")
    with pytest.raises(LedgerError, match=r"alice 0\.5\) are not those that the ledger keeps \(alice 0\.5, bob 0\.3"):
        bursar.open(config, analyst="bob")
