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


def towns(*, epsilon: float, unit: str = '"row"') -> str:
    """People in towns, to which tests add columns; the budget is what is open at the end."""
    return f"""\
dataset = "towns"
[source]
path = "towns.csv"
table = "people"
max_rows = 1000
[privacy]
unit = {unit}
[budget]
epsilon = {epsilon}
"""


def clinic(*, epsilon: float, visits: int, more: str = "") -> str:
    """Two private tables, people and up to so many visits of each; `more` goes before the visits, whose columns are
    what is open at the end."""
    return f"""\
dataset = "clinic"
[source]
path = "clinic.duckdb"
table = "people"
max_rows = 10000
[privacy]
unit = {{ column = "person" }}
[budget]
epsilon = {epsilon}
{more}
[columns.sex]
values = ["F", "M"]
[tables.visits]
max_contributions = {visits}
[tables.visits.columns.ward]
values = ["A", "B", "C"]
"""


JOINED = """
[tables.visits.tables.people]
columns = ["sex"]
"""
"""Each visit has the columns of its person."""
