"""The example notebooks run from top to bottom, and are stored with what they printed."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest

from harness.patience import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
BOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
PLACE = re.compile(r"(?<![\w<.])/\w[\w.-]*/|\b[A-Za-z]:\\")
"""A path from the root of a file system."""


def cells_of(book: Path) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = json.loads(book.read_text(encoding="utf-8"))["cells"]
    return cells


def executed(book: Path, folder: Path) -> Any:
    for name in ("nbformat", "nbclient", "ipykernel"):
        pytest.importorskip(name)
    tool = importlib.util.spec_from_file_location("notebooks", ROOT / "tools" / "notebooks.py")
    assert tool is not None
    assert tool.loader is not None
    module = importlib.util.module_from_spec(tool)
    tool.loader.exec_module(module)
    return module.executed(book, folder, PATIENCE)


def shape(cells: list[dict[str, Any]]) -> list[list[list[str]]]:
    """What kinds of things each cell shows: the numbers differ from run to run, and these do not."""
    return [
        [sorted(output.get("data", {output.get("name", ""): ""})) for output in cell["outputs"]]
        for cell in cells
        if cell["cell_type"] == "code"
    ]


@pytest.mark.heavy
@pytest.mark.parametrize("book", sorted(BOOKS), ids=lambda book: book.name)
def test_a_notebook_runs_and_shows_what_is_stored(book: Path, tmp_path: Path) -> None:
    done = executed(book, tmp_path)
    assert str(tmp_path) not in json.dumps(done)
    assert shape(done.cells) == shape(cells_of(book)), "its outputs are out of date: make notebooks"


@pytest.mark.parametrize("book", BOOKS, ids=lambda book: book.name)
def test_a_notebook_is_small_and_has_its_outputs(book: Path) -> None:
    cells = cells_of(book)
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    shown = [output for cell in code for output in cell["outputs"]]
    assert len([cell for cell in code if cell["outputs"]]) >= len(code) / 2
    assert [output for output in shown if output["output_type"] == "error" or output.get("name") == "stderr"] == []
    kinds = {kind for output in shown for kind in output.get("data", {})}
    assert kinds & ({"text/html"} if book.stem == "measurements" else {"image/png"})  # what its readers look at
    assert len(cells) <= 25
    assert book.stat().st_size < 200_000
    assert "seed" not in "".join("".join(cell["source"]) for cell in code)


@pytest.mark.parametrize("book", BOOKS, ids=lambda book: book.name)
def test_a_notebook_tells_nothing_of_the_machine_it_ran_on(book: Path) -> None:
    stored = json.loads(book.read_text(encoding="utf-8"))
    assert stored["metadata"]["language_info"] == {"name": "python"}
    for cell in stored["cells"]:
        assert cell["metadata"] == {}
        for output in cell.get("outputs", ()):
            texts = [text for kind, text in output.get("data", {}).items() if kind.startswith("text/")]
            told = "".join("".join(text) for text in [*texts, output.get("text", "")])
            assert not PLACE.search(told), told


def test_a_place_on_a_machine_is_seen() -> None:
    assert PLACE.search("/tmp/x1/bursar.toml:15: source")
    assert PLACE.search(r"try: bursar confirm -d C:\Users\ana\bursar.toml")
    assert PLACE.search("'/home/ana/people.csv'")
    assert not PLACE.search("people/bursar.toml, 3/4, and/or, <td>1</td></tr>, a <br/> b")


def test_there_is_one_for_each_kind_of_reader() -> None:
    assert [book.stem for book in BOOKS] == ["analyst", "measurements", "owner"]
