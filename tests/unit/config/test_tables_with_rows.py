"""[tables.NAME] with max_contributions: private tables with rows of their own, and what does not go with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from bursar.config import Config, load, with_preset
from bursar.core.accounting.kind import ROOT
from bursar.errors import ConfigError

FIRST = """
dataset = "clinic"
[source]
path = "clinic.duckdb"
table = "people"
max_rows = 1000
[privacy]
unit = { column = "person" }
[budget]
epsilon = 1
[columns.sex]
values = ["F", "M"]
"""
VISITS = """
[tables.visits]
max_contributions = 3
[tables.visits.columns.ward]
values = ["A", "B"]
[tables.visits.columns.ward.levels]
wing = { "north" = ["A"], "south" = ["B"] }
"""
JOINED = """
[tables.visits.tables.people]
columns = ["sex"]
"""


def read(folder: Path, text: str) -> Config:
    (folder / "bursar.toml").write_text(text)
    return load(folder / "bursar.toml")


def test_a_private_table_is_a_config_over_the_same_ledger(tmp_path: Path) -> None:
    first = read(tmp_path, FIRST + VISITS + JOINED)
    (visits,) = first.further
    assert (visits.table, visits.relation, visits.max_rows) == ("visits", "visits", 1000)
    assert (visits.unit.column, visits.unit.max_contributions) == ("person", 3)
    assert visits.domain.names == ("ward", "sex", "has_people")
    assert visits.domain["sex"] == first.domain["sex"]
    assert visits.columns.names == ("ward", "sex", "has_people", "wing")
    assert visits.location == first.location
    assert [parent.table for parent in visits.parents] == ["people"]
    assert visits.ledger_path == first.ledger_path
    assert visits.notes_path != first.notes_path
    assert [relation.table for relation in first.relations] == [ROOT, "visits"]
    assert first.relations[1].added.facts["tables"] == [visits.parents[0].to_json()]
    assert first.charter == read(tmp_path, FIRST).charter  # the log binds further tables, and a ledger stays what it is


def test_its_own_file_unit_and_size(tmp_path: Path) -> None:
    own = VISITS.replace("= 3", '= 3\npath = "visits.csv"\nunit = "patient"\nmax_rows = 50')
    (visits,) = read(tmp_path, FIRST + own).further
    assert visits.location == (tmp_path / "visits.csv").resolve()
    assert (visits.unit.column, visits.max_rows) == ("patient", 50)


def test_a_table_that_only_adds_columns_stands_beside_it(tmp_path: Path) -> None:
    parent = '[tables.homes]\ncolumns = ["city"]\n[columns.city]\nvalues = ["P", "Q"]\n'
    first = read(tmp_path, FIRST + VISITS + parent)
    assert [each.table for each in first.parents] == ["homes"]
    assert [each.table for each in first.further] == ["visits"]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("max_contributions = 3\n", "", "declares columns of its own, and not how many rows of one person count"),
        ("max_contributions = 3", "max_contributions = 0", "max_contributions"),
        ("max_contributions = 3", "max_contributions = 3\npublic = true", "public is not known"),
        ("[tables.visits", "[tables.People", "People is declared twice"),
        ('unit = { column = "person" }', 'unit = "row"', "told apart by a column"),
        ('"clinic.duckdb"', '"people.csv"', "the file under .source. holds one table"),
        (
            'max_rows = 1000\n[privacy]\nunit = { column = "person" }',
            'max_rows = 1000\npublic_size = 9\n[privacy]\nunit = { column = "person" }\nneighbours = "replace-one"',
            "which several private tables do not",
        ),
        ('dataset = "clinic"', 'dataset = "clinic"\npreset = "laplace"', "about one private table"),
        ("[budget]", '[goal]\nerror = 50\ncontract = "simultaneous"\nfamily = ["sex"]\n[budget]', "one private table"),
        ('values = ["A", "B"]', 'values = ["A", "B"]\nwrong = 1', "wrong is not known"),
    ],
)
def test_what_does_not_go_together_is_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    text = FIRST + VISITS
    assert old in text
    with pytest.raises(ConfigError, match=words) as refused:
        read(tmp_path, text.replace(old, new))
    assert refused.value.line > 0


def test_a_preset_beside_the_config_is_refused_as_well(tmp_path: Path) -> None:
    config = read(tmp_path, FIRST + VISITS)
    assert with_preset(config, "default") == config
    with pytest.raises(ConfigError, match="about one private table"):
        with_preset(config, "laplace")


def test_a_joined_column_that_nobody_declares_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no declared column"):
        read(tmp_path, FIRST + VISITS + JOINED.replace("sex", "born"))
