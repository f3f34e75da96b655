"""`bursar synth` on the command line, and `bursar query --synthetic`."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path
from typing import Any

import pytest

from bursar.curate.demo import generate
from bursar.synthetic.session import Prepared
from harness.shell import Shell

pytestmark = pytest.mark.thinned(3)

NAMED = ("--marginals", "sex,marital; sex,member")
BY_SEX = "SELECT sex, COUNT(*) FROM people GROUP BY sex"
UNMEASURED = "SELECT COUNT(*) FROM people WHERE region = 'Lakeside' AND education = 'master'"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set with its ledger, made once."""
    folder = tmp_path_factory.mktemp("people")
    import bursar

    bursar.create(generate(folder / "people.csv", rows=2_000)).close()
    return folder


@pytest.fixture
def shell(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    shutil.copytree(data, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return Shell(monkeypatch, capsys)


def test_every_way_is_listed_for_nothing(shell: Shell) -> None:
    said = shell("synth", "--out", "made.csv", *NAMED, "--spend", "0.5", "--explain")
    assert (said.code, Path("made.csv").exists()) == (0, False)
    assert all(f"{method} " in said.out for method in ("marginals", "rap", "both"))
    told = shell("synth", "--out", "made.csv", *NAMED, "--spend", "0.5", "--explain", "--json").json
    assert [line["proposer"] for line in told["offers"]] == ["marginals", "rap", "both"]


def test_nothing_to_make_a_table_of(shell: Shell) -> None:
    said = shell("synth", "--out", "made.csv")
    assert (said.code, said.out) == (2, "")
    assert "--spend 0.1" in said.err
    assert not Path("made.csv").exists()


def test_a_table_and_what_to_believe_of_it(shell: Shell) -> None:
    said = shell("synth", "--out", "made.csv", *NAMED, "--spend", "0.5", "--rows", "300", "--report", "report")
    assert said.code == 0
    assert "error   ±" in said.out
    assert "not for anything about single rows" in said.out.replace("\n        ", " ")
    with Path("made.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert len(rows) == 301
    assert rows[0][:3] == ["age", "sex", "region"]
    assert Path("report/report.md").exists()
    assert "written to made.csv, the report to report" in said.err


@pytest.mark.heavy
def test_json_and_the_same_again(shell: Shell) -> None:
    command = ("synth", "--out", "made.parquet", *NAMED, "--spend", "0.5", "--json")
    first, second = shell(*command).json, shell(*command).json
    assert first["charge"] > 0
    assert second["charge"] == 0
    assert [line["columns"] for line in first["marginals"]][:2] == [["sex", "marital"], ["sex", "member"]]
    assert first["finished"]
    free = shell("synth", "--out", "made.csv", "--json").json
    assert free["charge"] == 0
    assert free["method"] == "marginals"


def test_the_price_is_free_to_ask_and_refused_where_it_does_not_fit(shell: Shell) -> None:
    command = ("synth", "--out", "made.csv", *NAMED)
    said = shell(*command, "--spend", "0.5", "--price")
    assert (said.code, Path("made.csv").exists()) == (0, False)
    assert "price   epsilon 0.4999" in said.out
    assert "marginals: the least of these" in said.out
    found = shell(*command, "--spend", "0.5", "--price", "--json").json
    assert found["price"] == pytest.approx(0.5, rel=1e-3)
    refused = shell(*command, "--spend", "3")
    assert refused.code == 3
    assert "try: --spend 1" in refused.err
    assert shell("budget", "--json").json["spent"] == 0


def test_what_is_wrong_is_said_before_anything_is_paid(shell: Shell) -> None:
    for words, code in (
        (("--out", "made.xls"), 2),
        (("--out", "made.csv", "--spend", "0.1", "--method", "magic"), 2),
        (("--out", "made.csv", "--spend", "-1"), 2),
        (("--out", "made.csv", "--spend", "0.1", "--workload", "nothing.sql"), 2),
        (("--out", "made.csv", "--spend", "0.1", "--history"), 2),
        (("--out", "made.csv", "--spend", "0.1", "--as", "ana"), 2),
    ):
        said = shell("synth", *words)
        assert (said.code, said.out) == (code, "")
        assert said.err
    assert shell("budget", "--json").json["spent"] == 0


@pytest.mark.heavy
def test_a_file_of_questions_and_the_history(shell: Shell) -> None:
    Path("monday.sql").write_text(f"{BY_SEX};\nSELECT marital, member, COUNT(*) FROM people GROUP BY marital, member;")
    made = shell("synth", "--out", "made.csv", "--workload", "monday.sql", "--spend", "0.2", "--json").json
    asked = [line["columns"] for line in made["marginals"] if line["asked"]]
    assert asked == [["sex"], ["marital", "member"]]
    assert shell("query", BY_SEX, "--epsilon", "0.1").code == 0
    found = shell("synth", "--out", "made.csv", "--history", "--augment", "0.2", "--spend", "0.2", "--json").json
    assert found["future"] == {"mean": None, "half": None, "questions": 0, "unknown": 0}


def test_at_a_terminal_the_price_comes_first(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    from bursar.cli import synth

    told: list[str] = []
    monkeypatch.setattr(synth, "_agreed", lambda prepared: bool(told.append(prepared.why)))
    said = shell("synth", "--out", "made.csv", *NAMED, "--spend", "0.5")
    assert "nothing was paid" in said.out
    assert "marginals" in told[0]
    assert shell("synth", "--out", "made.csv", *NAMED, "--spend", "0.5", "--yes").code == 0


@pytest.mark.heavy
def test_ctrl_c_says_what_was_charged(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    make = Prepared.make

    def stopped(self: Prepared, **facts: Any) -> Any:
        make(self, **facts)
        raise KeyboardInterrupt

    monkeypatch.setattr(Prepared, "make", stopped)
    said = shell("synth", "--out", "made.csv", *NAMED, "--spend", "0.5")
    assert said.code == 130
    assert "0.5 was charged, and what it bought is kept" in said.err.replace("0.499999", "0.5").replace(
        "0.499998", "0.5"
    )
    monkeypatch.undo()


def test_time_ends_a_run_with_what_there_is(shell: Shell) -> None:
    assert shell("query", BY_SEX, "--epsilon", "0.1").code == 0
    said = shell("synth", "--out", "made.csv", *NAMED, "--spend", "0.5", "--time", "0")
    assert said.code == 0
    assert "run the same command to go on" in said.out.replace("\n        ", " ")


def test_the_table_answers_where_it_is_named(shell: Shell) -> None:
    refused = shell("query", BY_SEX, "--synthetic")
    assert refused.code == 2
    assert "bursar synth" in refused.err
    assert shell("synth", "--out", "made.csv", *NAMED, "--spend", "0.5").code == 0
    known = shell("query", BY_SEX, "--synthetic")
    assert known.code == 0
    assert "from   synthetic" in known.out
    unknown = shell("query", UNMEASURED, "--synthetic", "--json").json
    assert (unknown["error"], unknown["charge"]) == (None, 0)
    said = shell("query", UNMEASURED, "--synthetic", "--bars")
    assert "no error bound" in said.out
    explained = shell("explain", BY_SEX, "--within", "100")
    assert "synthetic" in explained.out
