"""The command line: every command, its exit codes, its errors on standard error, its JSON on standard output."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import bursar
from bursar.curate.demo import generate
from harness.shell import Shell

pytestmark = pytest.mark.thinned(3)

COMMANDS = ("query", "explain", "budget", "log", "create", "version", "verify", "recover", "audit", "batch", "demo")
BY_REGION = "SELECT region, COUNT(*) AS people FROM people GROUP BY region"
ROWS = 2_000


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(monkeypatch, capsys)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    generate(folder / "people.csv", rows=ROWS)
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: data and config, and no ledger yet."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def created(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("created")
    shutil.copytree(made, folder, dirs_exist_ok=True)
    bursar.create(folder / "bursar.toml").close()
    return folder


@pytest.fixture
def ready(folder: Path, created: Path) -> Path:
    """The current folder, with a ledger that nobody has used."""
    shutil.copytree(created / "bursar.bursar", folder / "bursar.bursar")
    return folder


def spent(shell: Shell) -> float:
    return float(shell("budget", "--json").json["spent"])


def test_help_names_every_command_and_the_exit_codes(shell: Shell) -> None:
    said = shell("--help")
    assert said.code == 0
    for command in COMMANDS:
        assert f"\n  {command} " in said.out
    assert "Exit codes: 0 done, 2" in said.out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(shell: Shell, command: str) -> None:
    said = shell(command, "--help")
    assert said.code == 0
    assert f"Usage: bursar {command}" in said.out


@pytest.mark.parametrize("command", ["query", "explain"])
def test_the_options_of_a_question_are_all_explained(shell: Shell, command: str) -> None:
    said = shell(command, "--help").out
    options = ["--data", "--within", "--confidence", "--rmse", "--epsilon", "--rho", "--max-cost", "--as", "--json"]
    for option in [*options, *(["--key"] if command == "query" else [])]:
        assert option in said


def test_version_of_the_program(shell: Shell) -> None:
    assert shell("--version").out == f"bursar {bursar.__version__}\n"


@pytest.mark.heavy
def test_help_loads_neither_numpy_nor_duckdb() -> None:
    code = (
        "import sys; sys.argv = ['bursar', 'query', '--help']\n"
        "from bursar.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'scipy', 'duckdb', 'sqlglot', 'opendp', 'rich', 'pandas'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "import bursar; bursar.open\n"
        "assert {'numpy', 'sqlglot'} <= set(sys.modules)\n"  # the check above can fail
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_create_then_ask(folder: Path, shell: Shell) -> None:
    created = shell("create")
    assert created.code == 0
    assert str(folder / "bursar.bursar" / "ledger.sqlite") in created.out
    asked = shell("query", BY_REGION, "--within", "100")
    assert (asked.code, asked.err) == (0, "")
    for word in ("Northmark", "error", "cost", "left"):
        assert word in asked.out


def test_create_does_not_renew_a_budget(ready: Path, shell: Shell) -> None:
    again = shell("create")
    assert (again.code, again.out) == (4, "")
    assert "its budget is not renewed" in again.err


def test_json_of_an_answer(ready: Path, shell: Shell) -> None:
    answer = shell("query", BY_REGION, "--within", "5%", "--confidence", "90%", "--json").json
    assert answer["outputs"] == ["people"]
    assert answer["confidence"] == 0.9
    assert answer["unit"] == "epsilon"
    assert answer["free"] is False
    assert answer["charge"] > 0
    assert answer["left"] == pytest.approx(1 - answer["charge"])
    assert answer["contract"] == "per-query"
    first = answer["rows"][0]
    assert first["region"] == "Northmark"
    assert first["people_low"] <= first["people"] <= first["people_high"] <= first["people"] + 100


def test_a_repeated_question_is_free_and_the_same(ready: Path, shell: Shell) -> None:
    first, second = (shell("query", BY_REGION, "--within", "100", "--json").json for _ in range(2))
    assert second["free"] is True
    assert [row["people"] for row in first["rows"]] == [row["people"] for row in second["rows"]]
    assert spent(shell) == pytest.approx(first["charge"])


def test_a_key_gives_the_stored_answer(ready: Path, shell: Shell) -> None:
    first, second = (shell("query", BY_REGION, "--within", "100", "--key", "k", "--json") for _ in range(2))
    assert first.out == second.out
    other = shell("query", "SELECT COUNT(*) FROM people", "--within", "100", "--key", "k")
    assert (other.code, other.out) == (2, "")


def test_the_question_may_come_from_standard_input(ready: Path, shell: Shell) -> None:
    said = shell("query", "-", "--json", stdin=f"{BY_REGION}\nWITH ERROR 100\n")
    assert len(said.json["rows"]) >= 8


def test_the_goal_may_be_a_price(ready: Path, shell: Shell) -> None:
    answer = shell("query", BY_REGION, "--epsilon", "0.25", "--json").json
    assert 0 < answer["charge"] <= 0.25


def test_the_goal_may_be_a_price_in_rho(folder: Path, shell: Shell) -> None:
    path = folder / "bursar.toml"
    path.write_text(path.read_text(encoding="utf-8").replace("epsilon = 1.0", "rho = 0.5"), encoding="utf-8")
    assert shell("create").code == 0
    answer = shell("query", BY_REGION, "--rho", "0.25", "--json").json
    assert answer["unit"] == "rho"
    assert 0 < answer["charge"] <= 0.25
    wrong = shell("query", BY_REGION, "--epsilon", "0.25")
    assert (wrong.code, "counts its budget in rho" in wrong.err) == (2, True)


def test_the_goal_may_be_a_mean_square(ready: Path, shell: Shell) -> None:
    assert shell("query", BY_REGION, "--rmse", "30").code == 0


def test_the_default_goal_of_the_config_is_used(ready: Path, shell: Shell) -> None:
    answer = shell("query", "SELECT COUNT(*) AS people FROM people", "--json").json
    assert answer["error"] <= 0.01 * ROWS


def test_another_config_may_be_named(ready: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    assert shell("budget", "-d", ready / "bursar.toml").code == 0


def test_explain_is_free(ready: Path, shell: Shell) -> None:
    said = shell("explain", BY_REGION, "--within", "100")
    assert said.code == 0
    found = shell("explain", BY_REGION, "--within", "100", "--json").json
    assert {"proposer", "price", "meets_goal", "taken", "bid", "error", "reuses", "buys", "note"} <= set(
        found["offers"][0]
    )
    assert any(offer["meets_goal"] for offer in found["offers"])
    assert spent(shell) == 0
    in_front = shell("query", f"EXPLAIN {BY_REGION}", "--within", "100", "--json").json
    assert in_front["offers"] == found["offers"]


def test_the_price_shown_is_the_price_charged(ready: Path, shell: Shell) -> None:
    found = shell("explain", BY_REGION, "--within", "100", "--json").json
    answer = shell("query", BY_REGION, "--within", "100", "--json").json
    assert answer["charge"] == found["offers"][found["chosen"]]["price"]


def test_budget(ready: Path, shell: Shell) -> None:
    before = shell("budget", "--json").json
    assert (before["unit"], before["total"], before["spent"]) == ("epsilon", 1.0, 0.0)
    assert before["left"] == pytest.approx(1)
    shell("query", BY_REGION, "--epsilon", "0.25")
    after = shell("budget", "--json").json
    assert after["spent"] + after["left"] == pytest.approx(1)
    assert after["spent"] > 0
    said = shell("budget").out
    assert "epsilon 1" in said
    assert said.count("#") == round(40 * after["spent"])


def test_log(ready: Path, shell: Shell) -> None:
    shell("query", BY_REGION, "--within", "100", "--as", "Ada")
    shell("query", "SELECT sex, COUNT(*) FROM people GROUP BY sex", "--within", "100", "--as", "Ben\x1b[31m")
    lines = shell("log", "--json").json
    assert [line["position"] for line in lines] == [1, 2, 3]
    assert lines[1]["analyst"] == "Ada"
    assert lines[1]["purpose"] == BY_REGION
    assert sum(line["charge"] for line in lines) == pytest.approx(spent(shell))
    said = shell("log").out
    assert "Ada" in said
    assert "\x1b" not in said
    last = shell("log", "--last", "1", "--json").json
    assert [line["position"] for line in last] == [3]


def test_a_long_log_is_shown_in_pages(ready: Path, shell: Shell) -> None:
    shell("query", BY_REGION, "--within", "100", "--as", "Ada")
    shell("query", "SELECT sex, COUNT(*) FROM people GROUP BY sex", "--within", "100", "--as", "Ben")
    newest = shell("log", "--last", "1", "--json")
    assert ([line["position"] for line in newest.json], newest.err) == (
        [3],
        "2 older lines; the page before: --before 3\n",
    )
    page = shell("log", "--last", "1", "--before", "3", "--json")
    assert ([line["position"] for line in page.json], page.err) == (
        [2],
        "1 older lines; the page before: --before 2\n",
    )
    first = shell("log", "--last", "1", "--before", "2", "--json")
    assert ([line["position"] for line in first.json], first.err) == ([1], "")
    assert [line["position"] for line in shell("log", "--all", "--last", "1", "--json").json] == [1, 2, 3]
    assert [line["analyst"] for line in shell("log", "--of", "Ada", "--json").json] == ["Ada"]
    assert [line["position"] for line in shell("log", "--from", "owner", "--json").json] == [1]
    assert shell("log", "--of", "nobody", "--json").json == []


def test_verify_and_recover(ready: Path, shell: Shell) -> None:
    shell("query", BY_REGION, "--within", "100")
    for command in ("verify", "recover"):
        assert "the ledger is sound: 2 records" in shell(command).out
        assert shell(command, "--json").json["records"] == 2


def test_version_of_the_data(ready: Path, shell: Shell) -> None:
    shell("query", BY_REGION, "--within", "100")
    with (ready / "people.csv").open("a", encoding="utf-8") as file:
        file.write("P999999,40,F,Eastvale,master,office,50000,40,single,true,2023-12-30\n")
    changed = shell("query", "SELECT sex, COUNT(*) FROM people GROUP BY sex", "--within", "100")
    assert changed.code == 4
    declared = shell("version", "--same-rows")
    assert (declared.code, declared.out) == (0, "the data are now version 2\n")
    assert shell("query", BY_REGION, "--within", "100").code == 0


@pytest.mark.parametrize("command", [("query", BY_REGION), ("explain", BY_REGION), ("budget",), ("log",), ("verify",)])
def test_a_missing_config(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]) -> None:
    monkeypatch.chdir(tmp_path)
    said = shell(*command)
    assert (said.code, said.out) == (2, "")
    assert "bursar.toml" in said.err
    assert "bursar demo" in said.err


def test_a_wrong_config_names_its_line(folder: Path, shell: Shell) -> None:
    path = folder / "bursar.toml"
    path.write_text(path.read_text(encoding="utf-8").replace("max_rows", "max_row"), encoding="utf-8")
    said = shell("create")
    assert (said.code, said.out) == (2, "")
    assert "bursar.toml:9: source.max_row is not known\ntry: did you mean max_rows?" in said.err


def test_a_missing_ledger_is_not_created_in_passing(folder: Path, shell: Shell) -> None:
    said = shell("query", BY_REGION, "--within", "100")
    assert (said.code, said.out) == (4, "")
    assert "bursar create" in said.err
    assert not (folder / "bursar.bursar").exists()


def test_missing_data(folder: Path, shell: Shell) -> None:
    (folder / "people.csv").unlink()
    said = shell("create")
    assert (said.code, said.out) == (4, "")
    assert "people.csv" in said.err
    assert not (folder / "bursar.bursar").exists()


def test_a_changed_config_does_not_fit_the_ledger(ready: Path, shell: Shell) -> None:
    path = ready / "bursar.toml"
    path.write_text(path.read_text(encoding="utf-8").replace("epsilon = 1.0", "epsilon = 9.0"), encoding="utf-8")
    said = shell("budget")
    assert (said.code, said.out) == (4, "")


def test_a_locked_ledger(ready: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    from bursar.core.ledger import SqliteLedger

    patient = SqliteLedger.open.__func__  # type: ignore[attr-defined]
    monkeypatch.setattr(SqliteLedger, "open", classmethod(lambda cls, *a, **k: patient(cls, *a, busy_timeout=0.2, **k)))
    holder = sqlite3.connect(ready / "bursar.bursar" / "ledger.sqlite", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    try:
        said = shell("query", BY_REGION, "--within", "100")
    finally:
        holder.close()
    assert (said.code, said.out) == (4, "")
    assert "Traceback" not in said.err
    assert spent(shell) == 0
    assert shell("query", BY_REGION, "--within", "100").code == 0


def test_bad_sql_shows_where(ready: Path, shell: Shell) -> None:
    said = shell("query", "SELECT COUNT(*)\nFROM people WHERE salary > 3", "--within", "100")
    assert (said.code, said.out) == (2, "")
    lines = said.err.splitlines()
    assert lines[0].startswith("line 2, column 19: ")
    assert lines[1] == "  FROM people WHERE salary > 3"
    assert lines[2] == "  " + " " * 18 + "^"
    assert spent(shell) == 0


def test_too_dear(ready: Path, shell: Shell) -> None:
    said = shell("query", BY_REGION, "--within", "1")
    assert (said.code, said.out) == (3, "")
    assert "nothing was spent" in said.err
    assert "try: WITH ERROR" in said.err
    assert spent(shell) == 0


def test_dearer_than_allowed(ready: Path, shell: Shell) -> None:
    said = shell("query", BY_REGION, "--within", "100", "--max-cost", "0.0001")
    assert (said.code, said.out) == (3, "")
    assert spent(shell) == 0


@pytest.mark.parametrize(
    "options",
    [
        ("--within", "lots"),
        ("--within", "-3"),
        ("--within", "nan"),
        ("--within", "100", "--confidence", "2"),
        ("--within", "100", "--rmse", "5"),
        ("--rmse", "much"),
        ("--within", "100", "--max-cost", "nan"),
        ("--nonsense",),
    ],
)
def test_goals_that_make_no_sense(ready: Path, shell: Shell, options: tuple[str, ...]) -> None:
    said = shell("query", BY_REGION, *options)
    assert (said.code, said.out) == (2, "")
    assert said.err
    assert "Traceback" not in said.err
    assert spent(shell) == 0


@pytest.mark.heavy
def test_a_terminal_without_the_sign_still_shows_an_answer_that_was_paid_for(ready: Path) -> None:
    words = [sys.executable, "-c", "from bursar.cli import main; main()", "query", BY_REGION, "--within", "100"]
    done = subprocess.run(words, cwd=ready, env={"PYTHONIOENCODING": "ascii"}, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert b"Northmark" in done.stdout


def test_a_head_that_was_written_down_is_compared(shell: Shell, ready: Path) -> None:
    head = next(line.split()[1] for line in shell("verify").out.splitlines() if line.startswith("head"))
    assert shell("verify", "--expect", head).code == 0
    assert shell("recover", "--expect", head).code == 0
    records, digest = head.split(":")
    assert shell("verify", "--expect", f"{int(records) + 5}:{digest}").code == 4
    assert shell("verify", "--expect", "nonsense").code == 4


@pytest.mark.heavy
def test_an_audit_leaves_data_and_budget_alone(shell: Shell, ready: Path) -> None:
    found = shell("audit", "--trials", "10", "--json")
    assert found.code == 0
    assert found.json["passed"] is True
    assert found.json["trials"] == 10
    assert shell("budget", "--json").json["spent"] == 0


def test_a_file_of_questions_is_paid_once(shell: Shell, ready: Path) -> None:
    (ready / "monday.sql").write_text(
        "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex; -- a comment; with a semicolon\n"
        'SELECT COUNT(*) AS "all; of them" FROM people;\n'
    )
    done = shell("release", "monday.sql", "--within", "100", "--json")
    assert done.code == 0
    assert [len(answer["rows"]) for answer in done.json["answers"]] == [4, 1]
    assert done.json["charge"] == pytest.approx(spent(shell))
    assert shell("release", "monday.sql", "--within", "100", "--json").json["charge"] == 0
    assert "for all" in shell("release", "monday.sql", "--within", "50").out


def test_a_file_that_is_not_there_or_empty(shell: Shell, ready: Path) -> None:
    assert shell("release", "nowhere.sql", "--within", "100").code == 2
    assert shell("release", "-", "--within", "100", stdin=" ; -- nothing\n").code == 2
    assert spent(shell) == 0


def test_what_is_declared_is_described_for_nothing(shell: Shell, ready: Path) -> None:
    described = shell("query", "DESCRIBE people", "--json").json
    assert [line["column_name"] for line in described["rows"]][:2] == ["age", "sex"]
    assert [line["name"] for line in shell("query", "SHOW TABLES", "--json").json["rows"]] == ["people"]
    assert spent(shell) == 0
