"""Whatever stands on the command line, a command ends with 0, 2, 3 or 4, says why, and a refusal costs nothing."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st
from typer.main import get_command
from typer.testing import CliRunner

from bursar.cli import main
from bursar.cli.app import app
from bursar.core.ledger import SqliteLedger
from fuzz.seeds import CLAUSES, NUMBERS, SQL, WORDS

CONFIG = """\
dataset = "people"
[source]
path = "people.csv"
table = "people"
max_rows = 100
public_size = 60
[privacy]
unit = "row"
[budget]
epsilon = 3.0
[goal]
error = 20
[columns.age]
lower = 0
upper = 9
[columns.sex]
values = ["F", "M"]
"""
ROWS = "age,sex\n" + "".join(f"{number % 10},{'FM'[number % 2]}\n" for number in range(60))

GOOD = ("SELECT COUNT(*) FROM people WITH ERROR 9", "SELECT sex, COUNT(*) FROM people WHERE age < 5 GROUP BY sex")
ASKING = ("query", "explain")
COMMANDS = sorted(get_command(app).commands)
HARMLESS = {"audit": ("--trials", "10"), "demo": ("--dir", "people.csv"), "serve": ("--port", "65536")}
"""What keeps long commands short: few trials, a folder or a port that is refused. An option's last mention counts."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    code: int
    out: str
    err: str


class Shell:
    """Runs commands in this process, each in a folder with a config, data and a new ledger."""

    def __init__(self, pristine: Path, folder: Path) -> None:
        self._pristine, self._folder = pristine, folder

    def __call__(self, *words: str, stdin: bytes | None = b"", another_config: str = "other.toml") -> Outcome:
        shutil.rmtree(self._folder)
        shutil.copytree(self._pristine, self._folder)
        (self._folder / another_config).write_text(CONFIG)
        code = 0
        with CliRunner().isolation(input=stdin) as (out, err, _), pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["bursar", *words])
            patch.chdir(self._folder)
            if stdin is None:
                patch.setattr(sys, "stdin", None)
            try:
                main()
            except SystemExit as stop:
                code = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
            sys.stdout.flush()
            sys.stderr.flush()
            return Outcome(code=code, out=out.getvalue().decode(), err=err.getvalue().decode())

    def records(self) -> int:
        with closing(SqliteLedger.open(self._folder / "bursar.bursar" / "ledger.sqlite")) as ledger:
            return len(ledger.records())


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    pristine = tmp_path_factory.mktemp("pristine")
    (pristine / "people.csv").write_text(ROWS)
    (pristine / "bursar.toml").write_text(CONFIG)
    (pristine / "broken.toml").write_text(CONFIG + "[")
    folder = tmp_path_factory.mktemp("work")
    made = Shell(pristine, folder)
    assert made("create").code == 0
    shutil.copytree(folder / "bursar.bursar", pristine / "bursar.bursar")
    return made


def check(shell: Shell, words: tuple[str, ...], stdin: bytes = b"") -> Outcome:
    outcome = shell(*words, stdin=stdin)
    event(f"exit code {outcome.code}")
    assert outcome.code in {0, 2, 3, 4}, outcome.err
    assert "Traceback" not in outcome.err
    assert outcome.out or outcome.err
    if outcome.code:
        assert shell.records() == 1  # a refusal costs nothing
    return outcome


def harmless(words: list[str]) -> tuple[str, ...]:
    return (*words, *(extra for command, extras in HARMLESS.items() if command in words for extra in extras))


texts = st.one_of(st.sampled_from(WORDS), st.text(max_size=20), st.sampled_from(list(NUMBERS.values())))
questions = st.one_of(
    st.sampled_from(GOOD),
    st.sampled_from([text for text in SQL.values() if len(text) < 2**17]),  # what a shell would pass on
    st.sampled_from(list(CLAUSES.values())).map(lambda clause: f"SELECT COUNT(*) FROM people {clause}"),
    texts,
)
options = st.tuples(
    st.sampled_from(
        ["-d", "--key", "--as", "--last", "--trials", "--rows", "--dir", "--json", "--within", "--max-cost"]
    ),
    st.one_of(st.sampled_from(["bursar.toml", "broken.toml", "3"]), texts),
)
scripts = st.lists(st.sampled_from([*GOOD, *SQL.values()]), max_size=3).map(
    lambda texts: ";\n".join(texts).encode("utf-8", "surrogatepass")
)
asking = st.tuples(st.sampled_from(ASKING), questions, options).map(lambda parts: (*parts[:2], *parts[2]))
odd = st.tuples(st.sampled_from(COMMANDS), st.lists(texts, max_size=3)).map(
    lambda parts: harmless([parts[0], *parts[1]])
)
junk = st.lists(st.one_of(texts, st.sampled_from(COMMANDS)), max_size=5).map(harmless)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(words=st.one_of(asking, st.just(("release", "-")), odd, junk), stdin=st.one_of(st.binary(max_size=60), scripts))
@example(words=("query", "-"), stdin=b"\xff\xfe\x00 SELECT")
@example(words=("query", "-"), stdin=b"SELECT " * 400_000)
@example(words=("query", GOOD[0], "--key", "\0\ud800", "--as", "\udc80"), stdin=b"")
@example(words=("log", "--last", "9" * 10_000), stdin=b"")
@example(words=("log", "--last", str(10**30)), stdin=b"")
@example(words=(), stdin=b"")
@example(words=harmless(["serve"]), stdin=b"")
def test_any_command_line(shell: Shell, words: tuple[str, ...], stdin: bytes) -> None:
    check(shell, words, stdin)


amounts = st.one_of(
    st.sampled_from([*NUMBERS.values(), "0.01", "2%", "1e-300", "1e300", "1e-17", "0.9999999999999999"]),
    st.floats(min_value=0).map(repr),
    st.floats(0, 1).map(repr),
)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    command=st.sampled_from(ASKING),
    kind=st.sampled_from(["--within", "--rmse", "--epsilon"]),
    amount=amounts,
    second=st.sampled_from(["--confidence", "--max-cost"]),
    limit=amounts,
)
@example(command="query", kind="--within", amount="50", second="--confidence", limit="1e-300")
@example(command="query", kind="--within", amount="50", second="--confidence", limit="0.9999999999999999")
@example(command="query", kind="--within", amount="1e-17", second="--confidence", limit="0.5")
def test_any_goal(shell: Shell, command: str, kind: str, amount: str, second: str, limit: str) -> None:
    check(shell, (command, GOOD[1], kind, amount, second, limit))


@pytest.mark.thinned(3)
@pytest.mark.parametrize("stem", ["a" * 249, "é" * 125, "é" * 124, "\udcff", "-d", "\n", " ", "%2e", "a?mode=memory"])
def test_a_config_whose_name_few_would_choose(shell: Shell, stem: str) -> None:
    """The names of the ledger and its folder are made from it, and may be too long."""
    name = f"{stem}.toml"
    assert shell("budget", "-d", name, another_config=name).code == 4
    created = shell("create", "-d", name, another_config=name)
    assert created.code == (4 if len(os.fsencode(stem)) > 255 - len(".bursar") else 0), created.err


def test_standard_input_may_be_closed(shell: Shell) -> None:
    outcome = shell("query", "-", "--within", "5", stdin=None)
    assert (outcome.code, outcome.err) == (2, "there is no question\n")


def test_a_charge_without_an_answer_would_be_found(shell: Shell) -> None:
    """The wrong twin: had the command failed after the charge, the ledger would have one record more."""
    assert shell("query", "SELECT COUNT(*) FROM people", "--within", "5").code == 0
    assert shell.records() == 2
