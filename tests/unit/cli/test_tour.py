"""`bursar demo` shows every kind of outcome, can be run again, and never touches what it did not make."""

from __future__ import annotations

from pathlib import Path

import pytest

import bursar
from bursar.cli.tour import tour
from bursar.errors import ConfigError

pytestmark = pytest.mark.thinned(3)

ROWS = 10_000


def test_the_tour_shows_everything_it_promises(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tour(tmp_path / "demo", rows=ROWS)
    said = capsys.readouterr().out
    parts = said.split("\n\n")
    assert said.count("free (it was bought before);") >= 2  # repeated, and derived
    assert "->" in said  # explained
    assert "nothing was spent" in said  # refused for its price
    assert "^" in said  # refused for its text
    assert len(parts) > 8
    with bursar.open(tmp_path / "demo" / "bursar.toml") as db:
        assert 0 < db.budget().spent < 1


@pytest.mark.heavy
def test_it_can_be_run_again_and_leaves_other_files_alone(tmp_path: Path) -> None:
    tour(tmp_path / "demo", rows=ROWS)
    mine = tmp_path / "demo" / "notes.txt"
    mine.write_text("mine", encoding="utf-8")
    tour(tmp_path / "demo", rows=ROWS)
    assert mine.read_text(encoding="utf-8") == "mine"


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    tour(tmp_path, rows=ROWS)
    assert (tmp_path / "people.csv").exists()


@pytest.mark.parametrize("name", ["people.csv", "bursar.toml", "anything"])
def test_a_folder_of_somebody_else_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine", encoding="utf-8")
    with pytest.raises(ConfigError, match="was not made by the demo"):
        tour(tmp_path, rows=ROWS)
    assert (tmp_path / name).read_text(encoding="utf-8") == "mine"
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_file_in_the_way_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("mine", encoding="utf-8")
    with pytest.raises(ConfigError, match="was not made by the demo"):
        tour(path, rows=ROWS)
    with pytest.raises(ConfigError, match="cannot be written"):
        tour(path / "below", rows=ROWS)
    assert path.read_text(encoding="utf-8") == "mine"
