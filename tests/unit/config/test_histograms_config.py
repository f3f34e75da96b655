"""[histograms]: which groups of columns are read, and what is refused where."""

from __future__ import annotations

from pathlib import Path

import pytest

from bursar.errors import ConfigError
from harness.configs import head, read

TEXT = (
    head()
    + """\
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

[partition]
column = "year"
"""
)


def test_groups_are_read_in_the_order_of_the_columns(tmp_path: Path) -> None:
    assert read(tmp_path, TEXT).groups == (("age", "sex"), ("region", "income"))


def test_without_the_section_there_are_none(tmp_path: Path) -> None:
    start, end = TEXT.index("[histograms]"), TEXT.index("[columns.age]")
    assert read(tmp_path, TEXT[:start] + TEXT[end:]).groups == ()


@pytest.mark.parametrize(
    ("old", "new", "line", "reason", "hint"),
    [
        ("groups = [\n", "together = [\n", 15, "histograms.together is not known", "known here: groups"),
        ('["income", "region"]', '["sex", "region"]', 17, "histograms.groups[1] and histograms.groups[0] both", "each"),
        ('["income", "region"]', '["incom", "region"]', 17, 'no declared column: "incom"', 'did you mean "income"?'),
        ('["income", "region"]', '["region", "region"]', 17, "names a column twice", "groups ="),
        ('["income", "region"]', "[]", 17, "names no column", "groups ="),
        ('["income", "region"]', "7", 17, "must be the name of a column, not 7", "groups ="),
        ('["income", "region"]', '["year", "region"]', 17, "has the partition column year", "without year"),
        ('["income", "region"]', '["income", "weight"]', 17, "a histogram has at most 4,194,304", "fewer columns"),
        (
            '[partition]\ncolumn = "year"\n',
            '[goal]\ncontract = "simultaneous"\nfamily = ["age"]\n',
            15,
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
