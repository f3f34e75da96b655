"""The page of results: sections by name, and the others as they were."""

from __future__ import annotations

import json
from importlib.util import find_spec

import pytest
from benchmarks.all import COMMANDS, IN_FULL, NOTES, RESULTS, chosen, page, section, sections_in, title_of


def test_every_command_is_a_benchmark_with_a_title_of_its_own() -> None:
    assert all(find_spec(f"benchmarks.{name}") is not None for name, *_ in COMMANDS)
    titles = [title_of(command) for command in COMMANDS]
    assert len(set(titles)) == len(titles)
    assert set(NOTES) <= set(titles)
    assert [title_of(command) for command in IN_FULL] == ["boost citibike in full"]


def test_sections_are_named_by_their_first_words() -> None:
    assert [title_of(command) for command in chosen(["cachedp bfs", "core"])] == ["core", "cachedp bfs"]
    assert {command[0] for command in chosen(["cachedp"])} == {"cachedp"}
    assert chosen(None) == list(COMMANDS)
    with pytest.raises(SystemExit, match="no section 'cache'"):
        chosen(["cache"])


def test_one_section_is_replaced_and_the_others_stay() -> None:
    text = RESULTS.read_text()
    sections = sections_in(text)
    new = section(("core",), ["python", "-m", "benchmarks.core"], 'a table\n{"bench": "core"}\n', "abc1234")
    again = sections_in(page({**sections, "core": new}))
    assert again["core"] == '`python -m benchmarks.core`, at abc1234\n\n```\na table\n```\n\n`{"bench": "core"}`'
    titles = [title_of(command) for command in COMMANDS]
    assert {title: again[title] for title in again if title != "core"} == {
        title: body for title, body in sections.items() if title != "core" and title in titles
    }


def test_bars_of_progress_are_no_part_of_a_table() -> None:
    printed = '\n 54% \u2595\u2588\u2588   \u258f (~1 second remaining)\n\na table\n{"bench": "core"}\n'
    words = ["python", "-m", "benchmarks.core"]
    assert section(("core",), words, printed, "abc") == section(("core",), words, 'a table\n{"bench": "core"}', "abc")


def test_every_section_ends_with_its_figures() -> None:
    for title, body in sections_in(RESULTS.read_text()).items():
        assert json.loads(body.splitlines()[-1].strip("`"))["figures"], title


def test_what_is_run_in_full_says_so() -> None:
    sections = sections_in(RESULTS.read_text())
    for command in IN_FULL:
        assert json.loads(sections[title_of(command)].splitlines()[-1].strip("`"))["quick"] is False
