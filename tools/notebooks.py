"""Runs the notebooks of `examples/` and keeps what they print: `python tools/notebooks.py`.

Outputs are stored as a reader of the page sees them. The time of a run, the folder it ran in and what only a live
notebook needs are left out.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parent.parent
BOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
FOLDER = "people-of-the-demo"
"""Stands where the folder of the run was."""


def executed(book: Path, folder: Path, patience: int | None = None) -> Any:
    """The notebook with the outputs of a run in a folder of its own, which they do not name."""
    notebook = nbformat.read(book, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=patience,
        startup_timeout=patience or 600,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,  # what is printed arrives in as many pieces as the machine has time for
    )
    surroundings = {**os.environ, "TMPDIR": str(folder), "IPYTHONDIR": str(folder), "PYTHONPATH": str(ROOT / "src")}
    done = client.execute(cwd=str(folder), env=surroundings)
    done.metadata.language_info = {"name": "python"}
    for cell in done.cells:
        for output in cell.get("outputs", ()):
            _forget(output, folder)
    return done


def _forget(output: Any, folder: Path) -> None:
    """Take the folder of the run out of every text of an output."""
    if "text" in output:
        output.text = _without(output.text, folder)
    data = output.get("data", {})
    for kind in [kind for kind in data if kind.startswith("text/")]:
        data[kind] = _without(data[kind], folder)


def _without(text: str, folder: Path) -> str:
    return re.sub(re.escape(str(folder)) + r"/[^/\s]+", FOLDER, text)


if __name__ == "__main__":
    for book in BOOKS:
        with tempfile.TemporaryDirectory() as place:
            nbformat.write(executed(book, Path(place)), book)
        print(book.relative_to(ROOT), file=sys.stderr)
