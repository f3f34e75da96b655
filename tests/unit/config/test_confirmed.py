"""A guess that nobody has confirmed keeps a config shut; confirming changes one section and nothing else."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from bursar.config import load, load_draft
from bursar.config.load import parse_draft
from bursar.curate import edit
from bursar.errors import ConfigError

DRAFT = """\
dataset = "people"  # a name

[source]
path = "people.csv"
table = "people"
# from the data
max_rows = 1000
confirmed = false

[privacy]
unit = "row"

[budget]
epsilon = 1.0
confirmed   =   false   # a common start

[columns.age]  # years
lower = 0
upper = 99
confirmed = false

[columns.region]
values = [
    "north",
    # the rest
    "south",
]
confirmed = false

# the end
"""


def write(folder: Path, text: str = DRAFT) -> Path:
    path = folder / "people.toml"
    path.write_text(text)
    return path


def test_what_is_open_is_listed_in_the_order_of_asking(tmp_path: Path) -> None:
    config = load_draft(write(tmp_path))
    assert config.unconfirmed == (("source",), ("budget",), ("columns", "age"), ("columns", "region"))


def test_a_draft_does_not_open(tmp_path: Path) -> None:
    path = write(tmp_path)
    with pytest.raises(ConfigError, match="source, and 3 more: a guess that nobody has confirmed") as refused:
        load(path)
    assert refused.value.line == 8
    assert f"try: if you own the data, bursar confirm -d {path}" in str(refused.value)


@pytest.mark.parametrize("place", [("source",), ("budget",), ("columns", "age"), ("columns", "region")])
def test_one_guess_is_enough_to_keep_it_shut(tmp_path: Path, place: tuple[str, ...]) -> None:
    text = DRAFT
    for other in load_draft(write(tmp_path)).unconfirmed:
        text = text if other == place else edit.confirm(text, other)
    with pytest.raises(ConfigError, match=rf"{'.'.join(place)}: a guess"):
        load(write(tmp_path, text))
    assert load(write(tmp_path, edit.confirm(text, place))).unconfirmed == ()


def test_confirming_changes_the_mark_and_nothing_else() -> None:
    after = edit.confirm(DRAFT, ("budget",))
    assert after == DRAFT.replace("confirmed   =   false   # a", "confirmed   =   true   # a")


def test_a_mark_on_a_shared_line_is_left_to_the_owner() -> None:
    twice = 'columns.a = { lower = 0, upper = 1, note = "confirmed = false", confirmed = false }\n'
    with pytest.raises(ConfigError, match="change it by hand"):
        edit.confirm(twice, ("columns", "a"))


def test_a_section_on_one_line_is_confirmed() -> None:
    text = "columns.a = { lower = 0, upper = 1, confirmed = false }\n"
    assert edit.confirm(text, ("columns", "a")) == text.replace("false", "true")


def test_other_keys(tmp_path: Path) -> None:
    after = edit.replace(DRAFT, ("columns", "age"), "lower = 16\nupper = 120\n")
    assert tomllib.loads(after)["columns"]["age"] == {"lower": 16, "upper": 120, "confirmed": True}
    assert "[columns.age]  # years\nlower = 16\nupper = 120\nconfirmed = true\n\n[columns.region]" in after
    assert after.endswith("# the end\n")
    assert ("columns", "age") not in parse_draft(after, tmp_path / "people.toml").unconfirmed


def test_other_keys_for_a_list_over_several_lines() -> None:
    after = edit.replace(DRAFT, ("columns", "region"), 'values = ["north"]')
    assert tomllib.loads(after)["columns"]["region"] == {"values": ["north"], "confirmed": True}
    assert after.endswith("\n\n# the end\n")


@pytest.mark.parametrize("keys", ["lower = ", "[budget]\nepsilon = 9", "lower = 1\n[columns.new]\nlower = 2", "a b"])
def test_keys_that_reach_out_of_their_section_are_refused(keys: str) -> None:
    with pytest.raises(ConfigError, match="try:"):
        edit.replace(DRAFT, ("columns", "age"), keys)


def test_a_column_is_left_out(tmp_path: Path) -> None:
    after = edit.leave_out(DRAFT, ("columns", "region"))
    assert parse_draft(after, tmp_path / "people.toml").domain.names == ("age",)
    assert '# [columns.region]\n# values = [\n#     "north",\n#     # the rest\n' in after
    with pytest.raises(ConfigError, match="this is the last one"):
        edit.leave_out(after, ("columns", "age"))


def test_what_a_section_says() -> None:
    assert edit.keys(DRAFT, ("source",)) == 'path = "people.csv"\ntable = "people"\nmax_rows = 1000'


@pytest.mark.parametrize("value", ["1", '"no"', "[]", "2020-01-01"])
def test_a_mark_is_true_or_false(tmp_path: Path, value: str) -> None:
    with pytest.raises(ConfigError, match=r"source\.confirmed must be true or false") as refused:
        load_draft(write(tmp_path, DRAFT.replace("confirmed = false", f"confirmed = {value}", 1)))
    assert refused.value.line == 8


def test_a_mark_where_there_is_nothing_to_confirm(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"goal\.confirmed is not known"):
        load_draft(write(tmp_path, DRAFT + "[goal]\nerror = 5\nconfirmed = true\n"))


def test_saving_goes_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    path = write(tmp_path / "there")
    link = tmp_path / "link.toml"
    link.symlink_to(path)
    edit.save(link, "new")
    assert link.is_symlink()
    assert path.read_text() == "new"
    assert list((tmp_path / "there").iterdir()) == [path]


def test_saving_where_nothing_can_be_saved(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be written"):
        edit.save(tmp_path / "none" / "a.toml", "new")
