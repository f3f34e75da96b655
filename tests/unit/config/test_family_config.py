"""goal.contract and goal.family: what is read, and what is refused where."""

from __future__ import annotations

from pathlib import Path

import pytest

from bursar.errors import ConfigError
from bursar.goal import Contract
from harness.configs import head, read

TEXT = (
    head()
    + """\
[goal]
error = 50
contract = "simultaneous"
family = [
    "age",
    ["sex", "age"],
]

[columns.age]
lower = 0
upper = 99

[columns.sex]
values = ["F", "M"]
"""
)


def test_a_family_is_read(tmp_path: Path) -> None:
    config = read(tmp_path, TEXT)
    assert config.contract is Contract.SIMULTANEOUS
    assert config.family is not None
    assert config.family.sets == (("age",), ("age", "sex"))
    assert config.family.questions(("age",)) == 101 * 102 // 2  # 100 ages and NULL


def test_a_family_without_a_goal(tmp_path: Path) -> None:
    config = read(tmp_path, TEXT.replace("error = 50\n", ""))
    assert (config.goal, config.contract) == (None, Contract.SIMULTANEOUS)


def test_one_set_given_twice_counts_once(tmp_path: Path) -> None:
    config = read(tmp_path, TEXT.replace('"age",\n', '["age", "sex"],\n'))
    assert config.family is not None
    assert config.family.sets == (("age", "sex"),)


WIDE = "".join(f"\n[columns.c{i}]\nlower = 0\nupper = 100000\n" for i in range(9))
NAMES = ", ".join(f'"c{i}"' for i in range(9))


@pytest.mark.parametrize(
    ("old", "new", "line", "reason", "hint"),
    [
        ('contract = "simultaneous"\n', "", 16, "covers, and the contract is another one", "contract ="),
        ('"age",\n    ["sex", "age"],', "", 17, "goal.family is empty", "family ="),
        ('"age",\n', '"ages",\n', 18, 'goal.family[0] is no declared column: "ages"', 'did you mean "age"?'),
        ('"age",\n', '"age, sex",\n', 18, "no declared column", "a list of columns"),
        ('"age",\n', "7,\n", 18, "must be the name of a column, not 7", "family ="),
        ('["sex", "age"]', '["sex", "q"]', 19, 'goal.family[1][1] is no declared column: "q"', "[columns.*]"),
        ('["sex", "age"]', '["sex", "sex"]', 19, "names a column twice", "family ="),
        ('["sex", "age"]', "[]", 19, "names no column", "family ="),
        ('["sex", "age"]', "{ a = 1 }", 19, "not a section", "family ="),
        ("error = 50", "rmse = 50", 15, "promises errors only", "error = 50"),
        ("error = 50", 'error = "2%"', 15, "needs public_size", "error = 50, in rows"),
        ("family = [\n    ", "familly = [\n    ", 17, "goal.familly is not known", "did you mean family?"),
        ('["sex", "age"]', f"[{NAMES}]", 19, "too many questions", "fewer columns"),
    ],
)
def test_mistakes_are_found_where_they_are(
    tmp_path: Path, old: str, new: str, line: int, reason: str, hint: str
) -> None:
    assert TEXT.count(old) == 1
    with pytest.raises(ConfigError) as refused:
        read(tmp_path, TEXT.replace(old, new) + (WIDE if "c0" in new else ""))
    assert refused.value.line == line
    assert reason in refused.value.reason
    assert hint in refused.value.reason


def test_a_contract_without_a_family_is_refused(tmp_path: Path) -> None:
    text = TEXT[: TEXT.index("family")] + TEXT[TEXT.index("[columns.age]") :]
    with pytest.raises(ConfigError, match=r"goal.family is missing\ntry: family =") as refused:
        read(tmp_path, text)
    assert refused.value.line == 16


def test_a_percentage_of_a_public_size(tmp_path: Path) -> None:
    text = TEXT.replace("error = 50", 'error = "2%"').replace("max_rows = 1000", "max_rows = 1000\npublic_size = 900")
    goal = read(tmp_path, text).goal
    assert goal is not None
    assert goal.percent
