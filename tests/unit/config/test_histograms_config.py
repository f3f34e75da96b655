"""[histograms]: which groups of columns are read, and what is refused where."""

from __future__ import annotations

from pathlib import Path

import pytest

from bursar.config import Config, load
from bursar.errors import ConfigError

TEXT = """\
dataset = "people"

[partition]
column = "year"

[source]
path = "people.csv"
table = "people"
max_rows = 1000

[privacy]
unit = "row"

[budget]
epsilon = 1.0

[histograms]
groups = [
    ["sex", "age"],
    ["income", "region"],
]

[columns.age]
lower = 0
upper = 99

[columns.sex]
values = ["F", "M"]

[columns.region]
values = ["north", "south"]

[columns.income]
lower = 0
upper = 99999

[columns.weight]
lower = 0
upper = 99999

[columns.year]
lower = 2020
upper = 2029
"""


def read(folder: Path, text: str) -> Config:
    path = folder / "people.toml"
    path.write_text(text)
    return load(path)


def test_groups_are_read_in_the_order_of_the_columns(tmp_path: Path) -> None:
    assert read(tmp_path, TEXT).groups == (("age", "sex"), ("region", "income"))


def test_without_the_section_there_are_none(tmp_path: Path) -> None:
    start, end = TEXT.index("[histograms]"), TEXT.index("[columns.age]")
    assert read(tmp_path, TEXT[:start] + TEXT[end:]).groups == ()


@pytest.mark.parametrize(
    ("old", "new", "line", "reason", "hint"),
    [
        ("groups = [\n", "together = [\n", 18, "histograms.together is not known", "known here: groups"),
        ('["income", "region"]', '["sex", "region"]', 20, "histograms.groups[1] and histograms.groups[0] both", "each"),
        ('["income", "region"]', '["incom", "region"]', 20, 'no declared column: "incom"', 'did you mean "income"?'),
        ('["income", "region"]', '["region", "region"]', 20, "names a column twice", "groups ="),
        ('["income", "region"]', "[]", 20, "names no column", "groups ="),
        ('["income", "region"]', "7", 20, "must be the name of a column, not 7", "groups ="),
        ('["income", "region"]', '["year", "region"]', 20, "has the partition column year", "without year"),
        ('["income", "region"]', '["income", "weight"]', 20, "a histogram has at most 4,194,304", "fewer columns"),
        (
            '[partition]\ncolumn = "year"\n',
            '[goal]\ncontract = "simultaneous"\nfamily = ["age"]\n',
            19,
            "simult",
            "per-",
        ),
    ],
)
def test_what_is_refused(tmp_path: Path, old: str, new: str, line: int, reason: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, TEXT.replace(old, new))
    assert caught.value.line == line
    told, _, offered = str(caught.value).partition("try: ")
    assert reason in told
    assert hint in offered
