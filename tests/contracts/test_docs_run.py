"""Every code block of the documentation works: python is executed, consoles print what is shown, sql is answered."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))

import pages  # noqa: E402
import sql_reference  # noqa: E402

import bursar  # noqa: E402
from bursar.config import load  # noqa: E402
from bursar.curate.demo import generate  # noqa: E402
from bursar.planner.goals import Wanted  # noqa: E402
from bursar.sql.tokens import questions_of  # noqa: E402
from harness.cases import HEAVY, marked  # noqa: E402
from harness.warm import shell_function  # noqa: E402

ROWS = 20_000
SHOWN_ONLY = ""  # outlines, and outputs without their commands
LANGUAGES = {"python", "console", "sql", "toml", "sh", SHOWN_ONLY}


def having(language: str) -> list[Path]:
    """The pages that have a block in a language."""
    return [page for page in pages.pages() if texts(page, language)]


def texts(page: Path, language: str) -> list[str]:
    return [block.text for block in pages.blocks(page) if block.language == language]


def each(language: str, most: int | None = None) -> Any:
    """The pages with blocks of a language; `most`: so many of them in `make test`, and all before a change lands."""
    found = having(language)
    return pytest.mark.parametrize(
        "page",
        found if most is None else marked(found, lambda place, _: None if place < most else HEAVY),
        ids=lambda page: page.name,
    )


@pytest.mark.parametrize("page", pages.pages(), ids=lambda page: page.name)
def test_every_block_is_of_a_kind_that_is_run(page: Path) -> None:
    assert {block.language for block in pages.blocks(page)} <= LANGUAGES
    fences = re.findall(r"^```", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(fences) == 2 * len(pages.blocks(page))
    assert page.name == "cli.md" or not texts(page, "sh")  # those are run with the commands of cli.md


@pytest.mark.thinned(3)
@each("python", most=2)
def test_python_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page is one session beside the demo data; `db` and `sql` are there unless the page makes its own."""
    mpl.use("Agg")
    generate(tmp_path / "people.csv", rows=ROWS)
    monkeypatch.chdir(tmp_path)
    blocks = texts(page, "python")
    names: dict[str, Any] = {}
    if "bursar.create(" not in "".join(blocks):
        names = {"db": bursar.create("bursar.toml"), "sql": "SELECT sex, COUNT(*) FROM people GROUP BY sex"}
    for block in blocks:
        exec(compile(block, str(page), "exec"), names)


@pytest.mark.heavy
@each("console", most=1)
def test_consoles_print_what_is_shown(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = pages.run
    monkeypatch.setattr(pages, "run", lambda commands, folder: run([shell_function(), *commands], folder)[1:])
    assert pages.differences(page) == [], f"python tools/pages.py write docs/{page.name}"


@pytest.mark.heavy
@each("sql")
def test_questions_are_answered(page: Path, tmp_path: Path) -> None:
    config = sql_reference.demo(tmp_path, rows=ROWS)
    config.write_text(
        config.read_text(encoding="utf-8").replace("epsilon = 1.0 ", "epsilon = 1000.0 "), encoding="utf-8"
    )
    questions = [question for block in texts(page, "sql") for question in questions_of(block)]
    assert questions
    with bursar.create(config) as db:
        for question in questions:
            assert str(db.run(question, Wanted()))


@each("toml")
def test_configs_load(page: Path, tmp_path: Path) -> None:
    """A whole config by itself; a part of one in place of the same sections of the demo's."""
    whole = generate(tmp_path / "people.csv", rows=10).read_text(encoding="utf-8")
    for block in texts(page, "toml"):
        config = tmp_path / "block.toml"
        config.write_text(block if "dataset = " in block else merged(whole, block), encoding="utf-8")
        assert load(config).domain.names


def merged(whole: str, part: str) -> str:
    """The sections of `part`, and those of `whole` that it does not have."""
    named = set(re.findall(r"^\[([\w.]+)\]", part, re.MULTILINE))
    sections = re.split(r"^(?=\[)", whole, flags=re.MULTILINE)
    return "".join(section for section in sections if section.split("]")[0][1:] not in named) + part


def test_outputs_are_compared_up_to_numbers_and_no_further() -> None:
    shown = "sex  n\n------\nF  25,252 ± 199\ncost epsilon 0.02; 0.8 is left\n"
    assert pages.same(shown, "sex     n\n---------\nF  -3 ± 1.5\n\ncost epsilon 1e-05; 0.1 is left")
    assert pages.same("sex n\n...\ncost epsilon 1; 1 is left", shown)
    assert not pages.same(shown, shown.replace("F ", "M "))
    assert not pages.same(shown, shown.replace("cost epsilon 0.02", "cost free"))
    assert not pages.same(shown, shown + "note\n")
    assert not pages.same("sex n\n...\nnote", shown)


def test_a_page_that_shows_something_else_is_found_and_corrected(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```console\n$ echo one\nanother\n$ echo 2\n3\n$ cd / && echo \\\n>   five\nsix\n```\n", encoding="utf-8"
    )
    changes = pages.differences(page)
    assert [(step.shown, printed) for step, printed in changes] == [("another\n", "one"), ("six\n", "five")]
    pages.rewrite(page, changes)
    assert pages.differences(page) == []
    assert page.read_text(encoding="utf-8").count("```") == 2
