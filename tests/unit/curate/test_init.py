"""From data to a draft: every kind of data, what is left out, and that nothing of it opens before it is confirmed."""

from __future__ import annotations

import csv
import random
from datetime import date, timedelta
from pathlib import Path

import duckdb
import pandas as pd
import pytest

import bursar
from bursar.config import load, load_draft
from bursar.core.domain import Bins, Categories, Dates, IntegerRange, Period
from bursar.curate import edit, guess
from bursar.curate.confirm import change, every_guess, named, says
from bursar.curate.draft import DraftColumn, LeftOut
from bursar.curate.draft_from_data import init
from bursar.curate.survey import SurveyedColumn, SurveyedKind
from bursar.errors import ConfigError, SourceError

pytestmark = pytest.mark.thinned(2)

ROWS = 600


def people() -> dict[str, list[object]]:
    chance = random.Random(5)
    return {
        "person_id": [f"P{number % 250:04d}" for number in range(ROWS)],
        "age": [chance.randrange(18, 90) for _ in range(ROWS)],
        "sex": [chance.choice("FM") for _ in range(ROWS)],
        "income": [round(chance.lognormvariate(10, 0.4), 2) for _ in range(ROWS)],
        "joined": [date(2021, 1, 5) + timedelta(days=chance.randrange(900)) for _ in range(ROWS)],
        "note": [f"a letter of more than forty letters, the {number}th of them" for number in range(ROWS)],
    }


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path, columns = tmp_path / "people.csv", people()
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def test_columns_unit_and_what_is_left_out(table: Path) -> None:
    made = init(table, table.with_name("bursar.toml"))
    config = load_draft(table.with_name("bursar.toml"))
    assert config == made.config
    age, sex, income, joined = config.domain.attributes
    assert isinstance(age, IntegerRange)
    assert (age.lower, age.upper) == (0, 100)
    assert isinstance(sex, Categories)
    assert sex.values == ("F", "M")
    assert isinstance(income, Bins)
    assert isinstance(joined, Dates)
    assert (joined.first, joined.last, joined.by) == (date(2021, 1, 1), date(2023, 12, 31), Period.DAY)
    assert (config.unit.column, config.unit.max_contributions) == ("person_id", 5)
    assert (config.table, config.max_rows, config.location) == ("people", 2000, table)
    assert {one.name: one.reason.split(":")[0] for one in made.draft.left_out} == {
        "person_id": "identifiers",
        "note": "free text, or more than 200 different values; to ask about some of them, list those",
    }


def test_times_of_day_are_left_out_with_what_to_do_and_a_few_are_listed(tmp_path: Path) -> None:
    minutes = range(ROWS)
    frame = pd.DataFrame(
        {
            "at": [f"{10 + n // 60 % 12}:{n % 60:02}:{n % 7:02}" for n in minutes],
            "clock": [f"{1 + n % 12}:{n // 12 % 60:02} PM" for n in minutes],
            "opened": [f"{8 + n % 4:02}:00" for n in minutes],
        }
    )
    made = init(frame, tmp_path / "a.toml")
    assert made.config.domain.names == ("opened",)
    assert [one.name for one in made.draft.left_out] == ["at", "clock"]
    assert all("put a column of hours beside it" in one.reason for one in made.draft.left_out)


def test_numbers_of_which_every_row_has_its_own_are_asked_about(tmp_path: Path) -> None:
    chance = random.Random(6)
    ids = chance.sample(range(10_000, 900_000), ROWS)
    frame = pd.DataFrame({"record": ids, "age": [chance.randrange(18, 90) for _ in range(ROWS)]})
    made = init(frame, tmp_path / "a.toml")
    assert made.config.domain.names == ("age",)
    assert made.config.unit.column is None
    assert made.candidates == ("record",)
    (left,) = made.draft.left_out
    assert "Does it say whose row it is?" in left.reason
    assert "declare it: edges = { from = 0, to = 1000000, step = 5000 }" in left.reason
    said = edit.comment((tmp_path / "a.toml").read_text(), ("privacy",))
    assert 'write unit = { column = "record" }' in said
    named_ = init(frame, tmp_path / "b.toml", unit="record")
    assert (named_.config.unit.column, named_.config.unit.max_contributions) == ("record", 1)
    assert named_.candidates == ()


def test_what_is_done_is_told(table: Path) -> None:
    steps: list[str] = []
    init(table, table.with_name("bursar.toml"), told=steps.append)
    assert steps[0] == "looking at how people.csv is written"
    assert "looking at income, column 4 of 6" in steps


def test_each_column_says_in_the_file_what_must_be_public(table: Path) -> None:
    path = table.with_name("bursar.toml")
    init(table, path)
    for section in path.read_text().split("\n[columns.")[1:]:
        assert "From the data" in section
        assert "Must be public:" in section


def test_nothing_opens_before_everything_is_confirmed(table: Path) -> None:
    path = table.with_name("bursar.toml")
    open_ = list(init(table, path).config.unconfirmed)
    assert len(open_) == 3 + 4
    for place in open_:
        with pytest.raises(ConfigError, match="nobody has confirmed"):
            bursar.create(path)
        assert not load_draft(path).ledger_path.exists()
        change(path, lambda text, place=place: edit.confirm(text, place))  # type: ignore[misc]
    with bursar.create(path) as db:
        assert len(db.query("SELECT sex, COUNT(*) FROM people GROUP BY sex", within=400).values) == 3


def test_the_owners_word_needs_no_confirmation(table: Path) -> None:
    config = init(table, table.with_name("a.toml"), unit="row", epsilon=2.5).config
    assert (config.unit.column, config.budget.amount) == (None, 2.5)
    assert not {("privacy",), ("budget",)} & set(config.unconfirmed)
    named_ = init(table, table.with_name("b.toml"), unit="sex")
    assert named_.config.unit.column == "sex"
    assert "sex" not in named_.config.domain
    assert ("privacy",) in named_.config.unconfirmed  # the number of rows is still a guess
    with pytest.raises(ConfigError, match=r"no column person\ntry: --unit person_id"):
        init(table, table.with_name("c.toml"), unit="person")


def test_a_file_that_exists_is_left_alone(table: Path) -> None:
    path = table.with_name("bursar.toml")
    path.write_text("mine")
    with pytest.raises(ConfigError, match="left as it is"):
        init(table, path)
    assert path.read_text() == "mine"


def test_a_path_from_elsewhere(table: Path, tmp_path: Path) -> None:
    (tmp_path / "configs").mkdir()
    path = tmp_path / "configs" / "people.toml"
    init(table, path)
    assert load_draft(path).location == table
    assert 'path = "../people.csv"' in path.read_text()


def test_a_data_frame(tmp_path: Path) -> None:
    path, frame = tmp_path / "bursar.toml", pd.DataFrame(people())
    config = init(frame, path, table="people", unit="row", epsilon=1.0).config
    for place in config.unconfirmed:
        change(path, lambda text, place=place: edit.confirm(text, place))  # type: ignore[misc]
    assert config.domain.names == ("age", "sex", "income", "joined")
    with bursar.create(path, data=frame) as db:
        assert db.query("SELECT COUNT(*) FROM people", within=50).charge > 0


def test_parquet_and_a_table_of_a_database(tmp_path: Path) -> None:
    frame = pd.DataFrame(people())
    frame.to_parquet(tmp_path / "people.parquet")
    with duckdb.connect(str(tmp_path / "all.duckdb")) as connection:
        connection.execute("CREATE TABLE people AS SELECT * FROM frame")
        connection.execute("CREATE TABLE others AS SELECT 1 AS one")
    first = init(tmp_path / "people.parquet", tmp_path / "a.toml").config
    second = init(tmp_path / "all.duckdb", tmp_path / "b.toml", table="people").config
    assert (first.domain, first.unit, first.table) == (second.domain, second.unit, second.table)
    with pytest.raises(ConfigError, match="try: --table NAME"):
        init(tmp_path / "all.duckdb", tmp_path / "c.toml")
    with pytest.raises(SourceError, match="no single table nobody"):
        init(tmp_path / "all.duckdb", tmp_path / "c.toml", table="nobody")


def test_an_import_is_filled_from_the_data(table: Path) -> None:
    pytest.importorskip("yaml", reason="PyYAML is an extra: pip install pyyaml")
    source = table.with_name("meta.yaml")
    source.write_text(
        "D:\n  S:\n    people:\n      age: {type: int, lower: 0, upper: 120}\n      sex: {type: string}\n"
        "      note: {type: string}\n      gone: {type: string}\n      person_id: {type: string, private_id: True}\n"
    )
    made = init(table, table.with_name("bursar.toml"), source=source)
    assert made.config.domain.names == ("age", "sex")
    assert made.config.domain["age"].declared == 121
    assert made.config.location == table
    assert made.config.unit.column == "person_id"
    assert [one.name for one in made.draft.left_out] == ["note", "gone", "person_id"]
    alone = init(None, table.with_name("b.toml"), source=source).config
    assert alone.domain.names == ("age",)


def test_a_domain_file(tmp_path: Path) -> None:
    (tmp_path / "d.json").write_text('{"age": 85}')
    assert init(None, tmp_path / "bursar.toml", source=tmp_path / "d.json").config.domain.names == ("age",)


def test_nothing_to_draft_from(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"try: bursar init data\.csv"):
        init(None, tmp_path / "bursar.toml")
    (tmp_path / "ids.csv").write_text("id\n" + "".join(f"P{number}\n" for number in range(300)))
    with pytest.raises(ConfigError, match="no column can be drafted"):
        init(tmp_path / "ids.csv", tmp_path / "bursar.toml")
    assert not (tmp_path / "bursar.toml").exists()


def test_names_that_cannot_be_declared() -> None:
    names = ("Age", " sex", "age", "ok", "twice", "twice")
    found = guess.columns([SurveyedColumn(name=name, kind=SurveyedKind.TRUTHS) for name in names])
    assert [one.name for one in found if isinstance(one, DraftColumn)] == ["Age", "ok"]
    assert [one.name for one in found if isinstance(one, LeftOut)] == [" sex", "age", "twice", "twice"]


def test_names_of_guesses(tmp_path: Path) -> None:
    path = tmp_path / "bursar.toml"
    frame = pd.DataFrame({"budget": ["a", "b"] * 10, "my column": ["a", "b"] * 10})
    config = init(frame, path, unit="row").config
    assert every_guess(config) == "bursar confirm --yes source budget columns.budget 'my column'"
    assert named(config, ["budget", "columns.budget", "privacy", "budget"]) == [("budget",), ("columns", "budget")]
    with pytest.raises(ConfigError, match="nothing called age to confirm"):
        named(config, ["age"])


def test_an_edit_that_is_no_config_changes_nothing(table: Path) -> None:
    path = table.with_name("bursar.toml")
    init(table, path)
    before = path.read_text()
    with pytest.raises(ConfigError, match="upper must be at least lower"):
        change(path, lambda text: edit.replace(text, ("columns", "age"), "lower = 9\nupper = 1"))
    assert path.read_text() == before


def test_guesses_in_plain_words(table: Path) -> None:
    config = init(table, table.with_name("bursar.toml")).config
    told = {str(place[-1]): says(config, place) for place in config.unconfirmed}
    assert told["source"] == "the table people in people.csv will never have more than 2,000 rows"
    assert told["privacy"].startswith("protected is each person_id, with all its rows; at most 5 rows of each")
    assert told["age"] == "whole numbers from 0 to 100; others count as the nearest of them"
    assert told["sex"] == 'the values "F", "M"; others count as other'
    assert told["joined"].startswith("dates from 2021-01-01 to 2023-12-31, told apart by day")
    assert told["income"].startswith("numbers from 0 to ")


def test_the_demo_opens_without_a_word(tmp_path: Path) -> None:
    """A config that a person wrote has no marks, and needs none."""
    from bursar.curate.demo import generate

    assert load(generate(tmp_path / "people.csv", rows=100)).unconfirmed == ()
