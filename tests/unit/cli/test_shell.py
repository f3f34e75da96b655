"""The shell, at a real terminal: prompts, completion, commands, history, and what Ctrl-C costs."""

from __future__ import annotations

import stat
from contextlib import closing
from pathlib import Path

import pytest

import bursar
from bursar.cli import shell as shell_module
from bursar.cli.shell import Shell, default_history
from bursar.core.ledger import SqliteLedger
from bursar.errors import Unsupported
from bursar.planner.goals import Wanted
from harness.patience import until
from harness.small import engine
from harness.terminal import Terminal

pytestmark = pytest.mark.thinned(3)

CONFIG = """\
dataset = "people"
[source]
path = "people.csv"
table = "people"
max_rows = 1000
public_size = 600
[privacy]
unit = "row"
{pace}
[budget]
epsilon = 3.0
[columns.age]
lower = 0
upper = 9
[columns.sex]
values = ["F", "M"]
"""
ROWS = "age,sex\n" + "".join(f"{number % 10},{'FM'[number % 2]}\n" for number in range(600))
PROMPT = "people> "


def made(folder: Path, *, pace: float = 0.0) -> Path:
    (folder / "people.csv").write_text(ROWS)
    (folder / "bursar.toml").write_text(CONFIG.format(pace=f"pace = {pace}" if pace else ""))
    bursar.create(folder / "bursar.toml").close()
    return folder


def records(folder: Path) -> int:
    with closing(SqliteLedger.open(folder / "bursar.bursar" / "ledger.sqlite")) as ledger:
        return len(ledger.records())


def wait_for_records(folder: Path, number: int) -> None:
    until(lambda: records(folder) >= number, pause=0.1)


def spent(folder: Path) -> float:
    with bursar.open(folder / "bursar.toml") as db:
        return db.budget().spent


def test_a_session(tmp_path: Path) -> None:
    folder = made(tmp_path)
    terminal = Terminal(folder, "shell", "--within", "60")
    terminal.expect(PROMPT)
    terminal.type("\\d\n")
    described = terminal.expect(PROMPT)
    assert "age  10 numbers, 0 to 9; NULL" in described
    assert "sex  'F', 'M'; other; NULL" in described
    terminal.type("\\explain SELECT COUNT(*) FROM people\n")
    assert "direct" in terminal.expect(PROMPT)
    terminal.type("SELECT salary FROM people;\n")
    assert "^" in terminal.expect(PROMPT)
    terminal.type("\\nonsense\n")
    assert "try: \\help" in terminal.expect(PROMPT)
    terminal.type("\\out a.csv\n")
    assert "no answer to write" in terminal.expect(PROMPT)
    assert records(folder) == 1  # errors and explanations cost nothing
    terminal.type("SELECT ag\t, COU\t FROM p\t\n")
    terminal.expect("...> ")
    terminal.type("WHERE sex = 'F\t GROUP BY ag\t;\n")
    answer = terminal.expect(PROMPT)
    assert "SELECT age, COUNT(*) FROM people" in terminal.said
    assert "WHERE sex = 'F' GROUP BY age" in answer
    assert answer.count("┼") == 11  # a bar for each line
    assert "cost   epsilon" in answer
    terminal.type("\\goal 2% 99%\n")
    assert "WITH ERROR 2% CONFIDENCE 99%" in terminal.expect(PROMPT)
    terminal.type("\\goal much\n")
    assert "must be a number" in terminal.expect(PROMPT)
    terminal.type("\\goal\n")
    assert "WITH ERROR 2% CONFIDENCE 99%" in terminal.expect(PROMPT)
    terminal.type("\\out a.csv\n")
    assert "written to a.csv" in terminal.expect(PROMPT)
    assert (folder / "a.csv").read_text().startswith("age,count,count_low,count_high\n0,")
    terminal.type("\\budget\n")
    assert "columns age, sex" in terminal.expect(PROMPT)
    terminal.type("SELECT COUNT(*)")
    terminal.expect("SELECT COUNT(*)")
    terminal.interrupt(PROMPT)  # clears the line
    terminal.type("\\q\n")
    assert terminal.end() == 0
    assert records(folder) == 2


def test_history_is_kept_among_the_persons_own_files(tmp_path: Path) -> None:
    folder = made(tmp_path)
    terminal = Terminal(folder, "shell")
    terminal.expect(PROMPT)
    terminal.type("\\goal 60\n")
    terminal.expect(PROMPT)
    terminal.type("\x04")
    assert terminal.end() == 0
    history = folder / "state" / "bursar" / "history"
    assert "\\goal 60" in history.read_text()
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    again = Terminal(folder, "shell")
    again.expect(PROMPT)
    again.type("\x1b[A\n")  # the arrow key that recalls a line
    assert "WITH ERROR 60" in again.expect(PROMPT)
    again.type("\\q\n")
    assert again.end() == 0
    assert sorted(path.name for path in (folder / "bursar.bursar").iterdir() if "history" in path.name) == []


@pytest.mark.sampled(2)
@pytest.mark.parametrize("place", ["bursar.bursar/history", "../{}/bursar.bursar/deep/history"])
def test_history_is_never_kept_beside_the_ledger(tmp_path: Path, place: str) -> None:
    folder = made(tmp_path)
    terminal = Terminal(folder, "shell", "--history", place.format(tmp_path.name))
    terminal.expect("not kept beside the ledger")
    assert terminal.end() == 2


def test_no_history_where_none_is_wanted_or_possible(tmp_path: Path) -> None:
    folder = made(tmp_path)
    for words in (("--history", "-"), ("--history", "people.csv/no")):
        terminal = Terminal(folder, "shell", *words)
        terminal.expect(PROMPT)
        terminal.type("\\q\n")
        assert terminal.end() == 0
    assert "no history is kept" in terminal.said
    assert not (folder / "state").exists()


def test_stopping_a_question_says_what_was_charged(tmp_path: Path) -> None:
    """The pace holds the answer back for an hour, so there is time to stop it after and before it is paid."""
    folder = made(tmp_path, pace=3600.0)
    terminal = Terminal(folder, "shell", "--within", "60")
    terminal.expect(PROMPT)
    terminal.type("SELECT COUNT(*) FROM people;\n")
    wait_for_records(folder, 2)
    terminal.expect("at work: ")
    terminal.type("\x03")
    told = terminal.expect(PROMPT)
    paid = spent(folder)
    assert paid > 0
    assert f"epsilon {paid:.6g} was charged, and what it bought is kept" in told
    terminal.type("SELECT COUNT(*) FROM people;\n")
    terminal.expect("at work: ")  # a sign of life after a while
    terminal.type("\x03")
    assert "nothing was charged" in terminal.expect(PROMPT)
    assert spent(folder) == paid
    terminal.type("\\q\n")
    assert terminal.end() == 0


def test_without_a_terminal_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(Unsupported, match="needs a terminal"):
        shell_module.shell(engine(), wanted=Wanted(), history=None)


def said(capsys: pytest.CaptureFixture[str], *lines: str) -> str:
    """What a session prints in this process."""
    typed = iter(lines)

    def read(prompt: str) -> str:
        try:
            return next(typed)
        except StopIteration:
            raise EOFError from None

    Shell(engine(analyst="owner"), Wanted(within=60)).run(read)
    captured = capsys.readouterr()
    return captured.out + captured.err


def test_several_questions_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, "SELECT COUNT(*) FROM people; SELECT sex, COUNT(*) FROM people GROUP BY sex;")
    assert text.count("cost ") == 2


def test_an_empty_line_ends_a_question_and_quotes_do_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "SELECT COUNT(*) FROM people", "").count("cost ") == 1
    unclosed = said(capsys, "SELECT COUNT(*) FROM people WHERE sex = 'F;", "';")
    assert unclosed.count("cost ") == 1
    assert "no row can match" in unclosed


def test_commands_are_taken_within_a_question_as_in_psql(capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, "SELECT COUNT(*)", "\\goal 70", "FROM people;")
    assert "goal: WITH ERROR 70" in text
    assert "±70 or less" in text
    assert "cost " not in said(capsys, "SELECT COUNT(*)", "\\q", "FROM people;")
    assert said(capsys, "SELECT COUNT(*) FROM people WHERE sex = 'F;", "\\goal 70", "';").count("cost ") == 1


def test_a_goal_in_the_sql_counts_before_that_of_the_session(capsys: pytest.CaptureFixture[str]) -> None:
    assert "90% confidence" in said(capsys, "SELECT COUNT(*) FROM people WITH ERROR 90 CONFIDENCE 90%;")


@pytest.mark.parametrize(
    ("words", "goal"),
    [
        ("80", "WITH ERROR 80 CONFIDENCE 95%"),
        ("error 80 90%", "WITH ERROR 80 CONFIDENCE 90%"),
        ("rmse 20", "WITH RMSE 20 CONFIDENCE 95%"),
        ("epsilon 0.1", "WITH EPSILON 0.1 CONFIDENCE 95%"),
        ("off", "no goal"),
        ("1 2 3", "a goal is an amount"),
        ("50 200%", "confidence"),
        ("rmse", "must be a number"),
    ],
)
def test_goals(capsys: pytest.CaptureFixture[str], words: str, goal: str) -> None:
    assert goal in said(capsys, f"\\goal {words}")


def test_explain_in_front_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert "answer from" in said(capsys, "EXPLAIN SELECT COUNT(*) FROM people;", "\\out a.csv")
    assert "\\explain" in said(capsys, "\\help")
    assert "no folder" in said(capsys, "SELECT COUNT(*) FROM people;", "\\out no/a.csv")


def test_the_history_stands_with_the_persons_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert default_history() == tmp_path / "bursar" / "history"
    monkeypatch.delenv("XDG_STATE_HOME")
    assert default_history().is_relative_to(Path.home())
