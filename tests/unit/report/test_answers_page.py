"""The page about answers: its examples run, and its commands are those of the shell."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib as mpl
import pytest

import bursar
from bursar.cli.shell import COMMANDS, HELP
from bursar.curate.demo import generate
from bursar.report.files import WRITERS

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "answers.md").read_text(encoding="utf-8")


@pytest.mark.heavy
def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mpl.use("Agg")
    generate(tmp_path / "people.csv", rows=20_000)
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    with bursar.create("bursar.toml") as db:
        for block in blocks:
            exec(block, {"db": db})
        assert db.budget().spent > 0
    assert {"answer.csv", "answer.parquet"} <= {path.name for path in tmp_path.iterdir()}


def test_every_command_and_ending_is_told() -> None:
    for command in COMMANDS:
        assert f"`{command}" in PAGE
        assert command in HELP
    for ending in WRITERS:
        assert f"`{ending}`" in PAGE or ending == ".csv"
        assert ending in HELP
