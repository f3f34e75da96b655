"""How the config of a test begins, and reading one from a file."""

from __future__ import annotations

from pathlib import Path

from bursar.config import Config, load


def head(epsilon: float = 1.0) -> str:
    """Everything before what a test is about: thirteen lines, the last of them blank."""
    return f"""\
dataset = "people"

[source]
path = "people.csv"
table = "people"
max_rows = 1000

[privacy]
unit = "row"

[budget]
epsilon = {epsilon}

"""


def read(folder: Path, text: str) -> Config:
    path = folder / "people.toml"
    path.write_text(text)
    return load(path)
