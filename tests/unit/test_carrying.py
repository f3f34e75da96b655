"""A new config for the same people: what was spent under the old one is spent, and the old one spends no more."""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb
import pandas as pd
import pytest

import bursar
from bursar.cli import main
from bursar.errors import BudgetError, ConfigError, LedgerError
from harness.shell import Shell

OLD = """
dataset = "towns"
[source]
path = "towns.csv"
table = "people"
max_rows = 10000
[privacy]
unit = "row"
[budget]
rho = 0.5
delta_keys = 1e-4
[columns.city]
domain = "open"
capacity = 9
"""
LISTED = OLD.replace('domain = "open"\ncapacity = 9', 'values = ["Paris", "Rome"]')
LARGER = OLD.replace("rho = 0.5", "rho = 0.9").replace("capacity = 9", "capacity = 4")
COUNT = "SELECT city, COUNT(*) FROM people GROUP BY city WITH ERROR 30"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where texts were looked for under old.toml."""
    cities = ["Paris"] * 500 + ["Rome"] * 300
    pd.DataFrame({"city": cities}).to_csv(tmp_path / "towns.csv", index=False)
    for name, text in (("old", OLD), ("listed", LISTED), ("larger", LARGER)):
        (tmp_path / f"{name}.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    with bursar.create("old.toml") as db:
        assert db.owner.discover("city", spend=0.1, delta=4e-5).texts == ("Paris", "Rome")
        db.as_analyst("ann").query("SELECT COUNT(*) FROM people WHERE city = 'Oslo' WITH ERROR 90")
    return tmp_path


def test_a_second_ledger_about_the_same_table_is_pointed_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shell = Shell(monkeypatch, capsys)
    said = shell("create", "-d", "listed.toml").err
    assert "careful: old.toml has a ledger about the same table, so this is a second budget" in said
    assert "bursar create -d listed.toml --carry old.toml" in said
    (folder / "other.csv").write_text("city\nParis\n")
    (folder / "other.toml").write_text(LISTED.replace("towns.csv", "other.csv"))
    assert shell("create", "-d", "other.toml").err == ""


def test_a_list_that_was_found_is_paid_for_in_the_config_that_lists_it(folder: Path) -> None:
    with bursar.open("old.toml") as db:
        spent = db.budget().spent
    with bursar.create("listed.toml", carry="old.toml") as db:
        assert db.budget().spent == spent > 0.1
        assert "4e-05 of it used up" in db.budget().keys
        assert str(db.budget().carried).startswith(f"rho {spent:.6g} of what is spent stands for another config")
        db.query(COUNT)
        assert db.log()[0].kind == "carried over from an earlier config"
        assert db.log()[0].charge == spent
        assert "(under another config)" in str(db.spending())
        compared = db.spending(saved=True).saved
        assert compared is not None
        assert compared.spent == pytest.approx(db.budget().spent - spent), "only what questions here have paid"
        assert db.owner.verify().records == len(db.log())
    with bursar.open("listed.toml") as db:
        assert db.budget().spent > spent
    with bursar.open("old.toml") as db:
        assert db.budget().left == 0
        assert str(db.budget().left) == "0.0"
        assert db.log()[-1].kind == "kept what is left for a new config"
        with pytest.raises(BudgetError):
            db.query(COUNT)


def test_texts_that_everybody_sees_go_with_it_and_those_of_an_analyst_do_not(folder: Path) -> None:
    with bursar.create("larger.toml", carry="old.toml") as db:
        assert [key.text for key in db.kernel.known_keys()["city"]] == ["Paris", "Rome"]


def test_a_place_with_a_ledger_and_a_config_that_does_not_fit_change_nothing(folder: Path) -> None:
    bursar.create("listed.toml").close()
    (folder / "pure.toml").write_text(LISTED.replace("rho = 0.5\ndelta_keys = 1e-4", "epsilon = 9"))
    with pytest.raises(LedgerError, match="there is a ledger at"):
        bursar.create("listed.toml", carry="old.toml")
    with pytest.raises(ConfigError, match="mode, under"):
        bursar.create("pure.toml", carry="old.toml")
    with bursar.open("old.toml") as db:
        assert db.budget().carried == ""


def test_shares_that_could_not_be_given_out_change_nothing(folder: Path) -> None:
    shares = '[analysts]\npolicy = "shared"\nshares = { ann = 0.5, bob = 0.5 }\n'
    (folder / "shares.toml").write_text(LARGER + shares)
    with pytest.raises(ConfigError, match="beside its shares"):
        bursar.create("shares.toml", carry="old.toml")
    (folder / "shares.toml").write_text(LARGER + shares.replace("bob = 0.5", "bob = 0.1"))
    with bursar.create("shares.toml", carry="old.toml") as db:
        assert db.budget().carried


def test_the_command_says_what_is_left(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["bursar", "create", "--data", "larger.toml", "--carry", "old.toml"])
    with pytest.raises(SystemExit) as done:
        main()
    assert not done.value.code
    said = capsys.readouterr().out
    assert "carried rho 0.1" in said
    assert "all of it left" not in said


AGES = """
dataset = "ages"
[source]
path = "ages.duckdb"
table = "people"
max_rows = 10000
[privacy]
unit = { column = "person" }
max_contributions = 1
[budget]
epsilon = 50.0
[columns.age]
lower = 0
upper = 99
"""
VISITS = """
[tables.visits]
max_rows = 10000
max_contributions = 1
[tables.visits.columns.ward]
lower = 0
upper = 9
"""
RANGES = [(10, 30), (12, 64), (25, 71), (3, 55), (40, 90), (33, 78), (8, 47), (61, 95), (17, 83), (5, 22), (29, 58)]


def how_ranges_were_answered(db: bursar.Bursar) -> list[str]:
    sql = "SELECT COUNT(*) FROM people WHERE age BETWEEN {} AND {}"
    return [db.query(sql.format(*ends), within=60).source for ends in RANGES]


@pytest.mark.parametrize("elsewhere", ["in another config", "on another table"])
def test_what_was_spent_elsewhere_keeps_nobody_from_buying_for_later_questions(
    elsewhere: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That is bought while little more is spent than plain noise would have spent on the same questions."""
    monkeypatch.chdir(tmp_path)
    with duckdb.connect("ages.duckdb") as connection:
        connection.execute("CREATE TABLE people AS SELECT i AS person, i % 100 AS age FROM range(3000) AS r(i)")
        connection.execute("CREATE TABLE visits AS SELECT i AS person, i % 10 AS ward FROM range(900) AS r(i)")
    tables = VISITS if elsewhere == "on another table" else ""
    for name, epsilon in (("plain", "50.0"), ("old", "50.0"), ("new", "60.0")):
        Path(f"{name}.toml").write_text(AGES.replace("50.0", epsilon) + tables)
    with bursar.create("plain.toml") as db:
        expected = how_ranges_were_answered(db)
    assert {"direct", "tree"} <= set(expected)
    with bursar.create("old.toml") as db:
        ward = "visits WHERE ward < 5" if tables else "people WHERE age < 50"
        db.query(f"SELECT COUNT(*) FROM {ward}", within=2)
        assert db.budget().spent > 1.0
        if tables:
            assert how_ranges_were_answered(db) == expected
            compared = db.spending(saved=True).saved
            assert compared is not None
            assert compared.spent == pytest.approx(db.budget().spent)
            return
    with bursar.create("new.toml", carry="old.toml") as db:
        assert how_ranges_were_answered(db) == expected
