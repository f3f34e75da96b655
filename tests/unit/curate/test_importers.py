"""Configs of other tools become drafts: what they declare is taken over, what they leave open is said."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bursar.config.load import Config, parse_draft
from bursar.core.domain import Bins, Categories, IntegerRange
from bursar.curate.metadata import read_private_pgm, read_smartnoise
from bursar.errors import BursarError, ConfigError, Unsupported

SMARTNOISE = """\
Database:
  Census:
    People:
      row_privacy: False
      max_ids: 3
      rows: 1000
      pid:
        type: int
        private_id: True
      age:
        type: int
        lower: 0
        upper: 100
      income:
        type: float
        lower: 0
        upper: 500000
      '"sub-area"':
        type: string
      born:
        type: datetime
      married:
        type: boolean
      children:
        type: int
      picture:
        type: unknown
"""


def write(folder: Path, text: str, name: str = "people.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def read(folder: Path, text: str, table: str | None = None) -> Config:
    return parse_draft(read_smartnoise(write(folder, text), table).text(), folder / "bursar.toml")


@pytest.fixture(scope="module")
def yaml() -> None:
    pytest.importorskip("yaml", reason="PyYAML is an extra: pip install pyyaml")


@pytest.mark.usefixtures("yaml")
class TestSmartNoise:
    def test_columns(self, tmp_path: Path) -> None:
        config = read(tmp_path, SMARTNOISE)
        age, income, married = config.domain.attributes
        assert isinstance(age, IntegerRange)
        assert (age.lower, age.upper) == (0, 100)
        assert isinstance(income, Bins)
        assert (income.edges[0], income.edges[-1], income.declared) == (0, 500_000, 200)
        assert isinstance(married, Categories)
        assert married.values == (True, False)
        assert (config.table, config.max_rows) == ("People", 2000)
        assert (config.unit.column, config.unit.max_contributions) == ("pid", 3)

    def test_nothing_is_taken_for_confirmed(self, tmp_path: Path) -> None:
        assert len(read(tmp_path, SMARTNOISE).unconfirmed) == 6

    def test_what_is_left_open(self, tmp_path: Path) -> None:
        draft = read_smartnoise(write(tmp_path, SMARTNOISE))
        assert {one.name: one.open for one in draft.left_out} == {
            "pid": False,
            "sub-area": True,
            "born": True,
            "children": True,
            "picture": False,
        }

    def test_rows_that_are_people(self, tmp_path: Path) -> None:
        text = SMARTNOISE.replace("row_privacy: False", "row_privacy: True").replace("        private_id: True\n", "")
        assert read(tmp_path, text).unit.column is None

    def test_an_older_file_without_a_schema(self, tmp_path: Path) -> None:
        assert read(tmp_path, "Db:\n  T:\n    age: {type: int, lower: 0, upper: 9}\n").table == "T"

    def test_a_blank_database(self, tmp_path: Path) -> None:
        config = read(tmp_path, '"":\n  S:\n    "`T`":\n      a: {type: boolean}\n')
        assert (config.table, config.max_rows) == ("T", 1_000_000)

    def test_one_of_several_tables(self, tmp_path: Path) -> None:
        text = SMARTNOISE + "    Other:\n      a: {type: boolean}\n"
        with pytest.raises(ConfigError, match=r"several tables: People, Other\ntry: --table People"):
            read(tmp_path, text)
        assert read(tmp_path, text, "Other").domain.names == ("a",)
        with pytest.raises(ConfigError, match="no table Nobody"):
            read(tmp_path, text, "Nobody")

    @pytest.mark.parametrize(
        ("old", "new", "reason"),
        [
            ("lower: 0\n        upper: 100\n", "lower: 9\n        upper: 9\n", "column age: lower must be below"),
            ("upper: 100\n", "upper: high\n", "column age: upper must be a number"),
            ("upper: 500000\n", "upper: .inf\n", "column income: upper must be a number"),
            ("upper: 500000\n", "upper: 1.0e+300\n", "within 1e"),
            ("max_ids: 3", "max_ids: many", "max_ids must be a whole number"),
            ("type: boolean", "type: int\n        private_id: True", "several columns together"),
            ("Database:", "Database: [", "not valid YAML"),
        ],
    )
    def test_mistakes(self, tmp_path: Path, old: str, new: str, reason: str) -> None:
        assert old in SMARTNOISE
        with pytest.raises(ConfigError, match=reason) as refused:
            read(tmp_path, SMARTNOISE.replace(old, new))
        assert refused.value.file.endswith("people.yaml")

    @pytest.mark.parametrize(
        "text", ["", "3", "[1, 2]", "a: {b: {c: {d: {e: {type: int}}}}}", "a: !!python/object:x {}"]
    )
    def test_other_files(self, tmp_path: Path, text: str) -> None:
        with pytest.raises(ConfigError):
            read(tmp_path, text)

    @pytest.mark.heavy
    def test_deep_files(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError):
            read(tmp_path, "[" * 5_000)


def test_smartnoise_without_yaml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(Unsupported, match="pip install pyyaml"):
        read_smartnoise(write(tmp_path, SMARTNOISE))


def test_private_pgm(tmp_path: Path) -> None:
    path = write(tmp_path, '{"age": 85, "income>50K": 2, "education-num": 16}', "adult-domain.json")
    config = parse_draft(read_private_pgm(path).text(), tmp_path / "bursar.toml")
    assert config.domain.names == ("age", "income>50K", "education-num")
    assert [attribute.declared for attribute in config.domain.attributes] == [85, 2, 16]
    assert config.table == "adult_domain"
    assert len(config.unconfirmed) == 6


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"a": 0}', '{"a": true}', '{"a": "2"}', '{"a": 99999999999}', '{"a": [1]}', "[" * 100_000]
)
def test_other_json(tmp_path: Path, text: str) -> None:
    with pytest.raises(BursarError, match=r"try: .*\"age\": 85"):
        read_private_pgm(write(tmp_path, text, "d.json"))
