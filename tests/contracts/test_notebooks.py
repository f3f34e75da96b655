"""The example notebooks run from top to bottom, and are stored without outputs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.patience import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
BOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


@pytest.mark.parametrize("book", BOOKS, ids=lambda book: book.name)
def test_a_notebook_runs(book: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    for name in ("TMPDIR", "IPYTHONDIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    notebook = nbformat.read(book, as_version=4)
    nbformat.validate(notebook)
    waits = {"timeout": PATIENCE, "startup_timeout": PATIENCE}
    done = nbclient.NotebookClient(notebook, **waits, kernel_name="python3").execute(cwd=str(tmp_path))
    pictures = [
        output
        for cell in done.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if "image/png" in output.get("data", {})
    ]
    assert pictures


@pytest.mark.parametrize("book", BOOKS, ids=lambda book: book.name)
def test_a_notebook_is_small_and_has_no_outputs(book: Path) -> None:
    cells = json.loads(book.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell for cell in code if cell["outputs"] or cell["execution_count"] is not None] == []
    assert len(cells) <= 25
    assert "seed" not in "".join("".join(cell["source"]) for cell in code)


def test_there_is_one_for_each_kind_of_reader() -> None:
    assert [book.stem for book in BOOKS] == ["analyst", "owner"]
