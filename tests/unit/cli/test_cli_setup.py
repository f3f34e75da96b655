"""bursar init, confirm and check, as a data owner meets them."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path

import pytest

from bursar.config import load, load_draft
from harness.shell import Shell

pytestmark = pytest.mark.thinned(3)

ASKED = "confirmed = false"


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(monkeypatch, capsys)


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


def test_the_first_question_is_cheap_and_says_so(folder: Path, shell: Shell) -> None:
    said = shell("init", "shop.csv").out
    assert '"SELECT COUNT(*) FROM shop WITH ERROR 150"    costs epsilon 0.0199 of 1' in said
    assert "Nearly every row has a value of its own in: order_id" in said


def test_the_owner_is_told_what_a_declaration_changes(folder: Path, shell: Shell) -> None:
    shell("init", "shop.csv")
    typed = "s\ns\ns\nc\nlower = 0\nupper = 30\n\ns\n"
    said = shell("confirm", stdin=typed).out
    assert "whose row it is, and somebody may have a second row one day" in said
    assert "beyond the ends, counted as the nearest end; the sum is" in said
    assert "What the declarations change. These numbers are exact" in shell("check").out
    changed = {one["name"]: one for one in json.loads(shell("check", "--json").out)["changes"]}
    assert changed["age"]["outside"] > 0
    assert changed["age"]["declared_sum"] < changed["age"]["stored_sum"]
    (folder / "bursar.toml").write_text((folder / "bursar.toml").read_text().replace("confirmed = true", ASKED))
    again = shell("confirm", stdin="s\n" * 5).out
    assert "counted exactly, from the rows: keep it to yourself" in again
    assert "of 500 values" in again


@pytest.mark.parametrize("gone", [True, False])
def test_without_the_rows_nothing_is_said_about_them(folder: Path, shell: Shell, gone: bool) -> None:
    shell("init", "shop.csv")
    if gone:
        (folder / "shop.csv").unlink()
        assert "What the declarations change" not in shell("check").out
    else:
        (folder / "shop.csv").write_text("other\n1\n")
    said = shell("confirm", stdin="s\n" * 5)
    assert said.code == 0
    assert ("cannot be counted" in said.out) is not gone
    assert "of 500 values" not in said.out


def test_a_refused_file_names_the_column(folder: Path, shell: Shell) -> None:
    rows = "".join(f"{n % 28 + 1:02d}.12.2023;{n},5\n" for n in range(40))
    (folder / "a.csv").write_text("joined;price\n" + rows)
    refused = shell("init", "a.csv")
    assert refused.code == 4
    assert "joined has days as 31.12.2023; price has decimal commas" in refused.err


def test_a_draft_does_not_open(folder: Path, shell: Shell) -> None:
    shell("init", "shop.csv")
    for command in (["create"], ["query", "SELECT COUNT(*) FROM shop"], ["budget"], ["audit", "--trials", "10"]):
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
    assert "lower = 0\nupper = 100\nnullable = false\nType all its lines" in said.out
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


def comments(path: str) -> str:
    """A config on one line."""
    return " ".join(Path(path).read_text().replace("#", "").split())


def test_the_draft_says_who_is_protected(folder: Path, shell: Shell) -> None:
    said = shell("init", "shop.csv")
    assert "protected is each row by itself" in said.out
    assert "--unit COLUMN" in said.out
    assert "--unit COLUMN" not in shell("init", "shop.csv", "--unit", "row", "-d", "other.toml").out
    named = shell("init", "shop.csv", "--unit", load_draft("bursar.toml").domain.names[0], "-d", "third.toml").out
    assert "at most 1 row of each is counted" in named
    assert "say how many in bursar confirm" in named
    assert "has was not looked at" in comments("third.toml")
    shell("init", "shop.csv", "--unit", "order_id", "-d", "fourth.toml")  # identifiers were looked at
    assert "has was not looked at" not in comments("fourth.toml")


def test_how_many_rows_of_a_person_are_counted_is_asked(folder: Path, shell: Shell) -> None:
    shell("init", "shop.csv", "--unit", "age")
    said = shell("confirm", "privacy", stdin="n\nmany\nn\n0\nn\n12\n")
    assert "how many rows they have? Further rows are in no answer." in said.out
    assert said.out.count("a whole number from 1 on, please") == 2
    config = load_draft("bursar.toml")
    assert (config.unit.column, config.unit.max_contributions) == ("age", 12)
    assert ("privacy",) not in config.unconfirmed
    assert "at most 12 rows are in any answer" in " ".join(shell("check").out.split())
    shell("init", "shop.csv", "--unit", "row", "-d", "rows.toml")
    assert "[n]umber" not in shell("confirm", "-d", "rows.toml", "source", stdin="n\n").out


@pytest.fixture
def wide(folder: Path) -> Path:
    """A table with several columns of each kind, and a list too long to stand beside others."""
    chance = random.Random(8)
    towns = [f"town {letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]
    with (folder / "wide.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["size", "weight", "colour", "taste", "town"])
        for number in range(520):
            listed = [chance.choice(["red", "blue"]), chance.choice(["sweet", "sour"]), towns[number % 26]]
            writer.writerow([chance.randrange(100), chance.randrange(100, 160), *listed])
    return folder


def test_columns_of_a_kind_are_shown_and_confirmed_together(wide: Path, shell: Shell) -> None:
    shell("init", "wide.csv")
    said = shell("confirm", stdin="y\n" * 6)
    assert "everything is confirmed" in said.out
    assert "columns of numbers and days (4 to 5 of 8):\n  size    whole numbers from 0 to 100;" in said.out
    assert 'columns of listed values (6 to 7 of 8):\n  colour  the values "blue", "red";' in said.out
    assert "columns.town (8 of 8): the values" in said.out
    assert all(f"town {letter}" in said.out for letter in "abcdefghijklmnopqrstuvwxyz")  # nothing goes unseen
    assert "more;" not in said.out
    assert said.out.count("[y]es to all of these, [o]ne by one") == 2


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("typed", "left"),
    [
        ("s\ny\n", ["size", "weight", "town"]),
        ("y\nc\ns\n", ["colour", "taste", "town"]),  # there is nothing to change about several
        ("one\ny\nl\ny\n", ["town"]),
        ("o\ny\nq\n", ["weight", "colour", "taste", "town"]),
        ("q\n", ["size", "weight", "colour", "taste", "town"]),
    ],
)
def test_of_several_columns_some_can_be_asked_about(wide: Path, shell: Shell, typed: str, left: list[str]) -> None:
    shell("init", "wide.csv")
    shell("confirm", "--yes", "source", "privacy", "budget")
    shell("confirm", stdin=typed)
    assert [place[-1] for place in load_draft("bursar.toml").unconfirmed] == left


@pytest.mark.parametrize("typed", ["", "c", "n", "perhaps"])
def test_what_answers_the_same_for_ever_is_stopped(folder: Path, shell: Shell, typed: str) -> None:
    """As `yes | bursar confirm` does; a letter more is settled, and then it stops."""
    shell("init", "shop.csv", "--unit", "order_id")
    said = shell("confirm", "budget", "privacy", stdin=f"y\n{typed}\n" + f"{typed}\n" * 200_000)
    assert said.code == 2
    assert "stopped after 10 answers that do not fit" in said.err
    assert "try: bursar confirm in a terminal, or for scripts bursar confirm --yes" in said.err
    assert ("privacy",) in load_draft("bursar.toml").unconfirmed
    assert ("budget",) not in load_draft("bursar.toml").unconfirmed


@pytest.mark.sampled(3)
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


@pytest.fixture
def clinic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two files about the same people, who are called differently in them."""
    monkeypatch.chdir(tmp_path)
    chance = random.Random(7)
    with (tmp_path / "patients.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["person", "sex"], *([f"p{n}", chance.choice("FM")] for n in range(300))])
    with (tmp_path / "visits.csv").open("w", newline="") as file:
        visits = ([f"p{chance.randrange(300)}", chance.choice("ABC"), chance.randrange(400)] for _ in range(900))
        csv.writer(file).writerows([["who", "ward", "cost"], *visits])
    return tmp_path


@pytest.mark.heavy
def test_a_further_table_is_drafted_into_a_config_and_confirmed(clinic: Path, shell: Shell) -> None:
    assert shell("init", "patients.csv", "--unit", "person").code == 0
    first = (clinic / "bursar.toml").read_text()
    said = shell("init", "visits.csv", "--add", "--unit", "who")
    assert said.code == 0, said.err
    assert "of each who, at most 1 row is counted" in said.out
    assert (clinic / "bursar.toml").read_text().startswith(first.rstrip())
    assert [label[-1] for label in load_draft("bursar.toml").unconfirmed[-3:]] == ["visits", "ward", "cost"]
    everything = "y\n" * 4 + "n\n6\n" + "y\n" * 3
    assert "everything is confirmed" in shell("confirm", stdin=everything).out
    (visits,) = load("bursar.toml").further
    assert (visits.unit.column, visits.unit.max_contributions) == ("who", 6)
    assert visits.domain.names == ("ward", "cost")
    assert shell("create").code == 0
    answer = shell("query", "SELECT ward, COUNT(*) FROM visits GROUP BY ward WITH ERROR 300")
    assert answer.code == 0, answer.err


def test_guesses_of_a_further_table_can_be_confirmed_by_name(clinic: Path, shell: Shell) -> None:
    shell("init", "patients.csv", "--unit", "person", "--epsilon", "1")
    shell("init", "visits.csv", "--add", "--unit", "who")
    shell("confirm", "--yes", "source", "privacy", "sex", "tables.visits")
    said = shell("query", "SELECT COUNT(*) FROM patients WITH ERROR 50")
    assert "tables.visits.columns.ward, and 1 more: a guess that nobody has confirmed" in said.err
    shell("confirm", "--yes", "tables.visits.columns.ward", "tables.visits.columns.cost")
    assert not load("bursar.toml").unconfirmed


def test_a_further_table_that_cannot_be_added_leaves_the_config_as_it_was(clinic: Path, shell: Shell) -> None:
    shell("init", "patients.csv", "--unit", "row")
    first = (clinic / "bursar.toml").read_text()
    assert "told apart by a column" in shell("init", "visits.csv", "--add").err
    (clinic / "bursar.toml").unlink()
    shell("init", "patients.csv", "--unit", "person")
    first = (clinic / "bursar.toml").read_text()
    for words, reason in (
        (("visits.csv", "--add"), "visits.csv has no column person"),
        (("visits.csv", "--add", "--unit", "whom"), "there is no column whom"),
        (("visits.csv", "--add", "--unit", "who", "--table", "patients"), "patients is declared already"),
        (("visits.csv", "--add", "--epsilon", "1"), "--add takes a file"),
        (("visits.csv",), "--add to draft a further table for it"),
    ):
        said = shell("init", *words)
        assert said.code != 0
        assert reason in said.err
        assert (clinic / "bursar.toml").read_text() == first
