"""The documentation has every command, option, key, error and argument that there is, and none that there is not."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from typer.main import get_command

from bursar import errors
from bursar.cli.app import app
from bursar.config.section import KEYS
from bursar.curate.demo import generate
from harness.cases import every
from harness.warm import shell_function

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PROOFS = sorted((ROOT / "src").rglob("*.proof.md"))

PROGRAM = get_command(app)
ALL = {
    f"{name} {inner}".strip(): command
    for name, outer in PROGRAM.commands.items()
    for inner, command in getattr(outer, "commands", {"": outer}).items()
}
COMMANDS = [name for name, command in ALL.items() if not command.hidden]
ERRORS = {
    name: kind for name, kind in vars(errors).items() if inspect.isclass(kind) and kind.__module__ == errors.__name__
}


def sections(page: Path) -> dict[str, str]:
    """The parts of a page by their headings."""
    parts = re.split(r"^## ", page.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return {part.split("\n", 1)[0]: part for part in parts}


def text_about(command: str) -> str:
    """All sections whose headings name the command, by itself or behind `bursar`."""
    named = [
        text for heading, text in sections(DOCS / "cli.md").items() if re.search(rf"`(bursar )?{command}`", heading)
    ]
    return "\n".join(named)


def options_in(text: str) -> set[str]:
    """The options that the tables of a text explain: those in backticks in the first column."""
    firsts = [line.split("|")[1] for line in text.splitlines() if line.startswith("|")]
    return {option for first in firsts for option in re.findall(r"`(--?[a-z-]+)", first)}


def options_of(command: str) -> set[str]:
    return {option for parameter in _parameters(command) for option in parameter.opts if option.startswith("-")}


def _parameters(command: str) -> list:
    return PROGRAM.params if command == "bursar" else ALL[command].params


@every("command", lambda: ["bursar", *COMMANDS])
def test_a_command_is_explained_with_all_its_options_and_no_others(command: str) -> None:
    assert options_in(text_about(command)) - {"--help"} == options_of(command)


@every("command", lambda: COMMANDS)
def test_arguments_and_defaults_are_told(command: str) -> None:
    text = text_about(command)
    assert f"## `bursar {command}`" in (DOCS / "cli.md").read_text(encoding="utf-8")
    for parameter in _parameters(command):
        if parameter.param_type_name == "argument":
            assert f"| `{parameter.name.upper()}` |" in text
        elif parameter.default not in (None, False):
            rows = [
                line for line in text.splitlines() if line.startswith("|") and parameter.opts[-1] in line.split("|")[1]
            ]
            assert [row for row in rows if str(parameter.default) in row], parameter.name


def test_exit_codes() -> None:
    table = sections(DOCS / "cli.md")["Exit codes"]
    assert {int(code) for code in re.findall(r"^\| `(\d)` \|", table, re.M)} == {
        0,
        *(e.exit_code for e in ERRORS.values()),
    }


def commands_in(page: Path) -> list[str]:
    blocks = re.findall(r"^```sh\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


@pytest.mark.heavy
def test_the_examples_work(tmp_path: Path) -> None:
    generate(tmp_path / "people.csv", rows=20_000)
    lines = ["bursar create", *commands_in(DOCS / "cli.md")]
    lines = [line.replace("--trials 200", "--trials 20") for line in lines]  # the same for a tenth of the time
    script = "\n".join([shell_function(), "set -e", *lines])
    done = subprocess.run(["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(lines) > 8


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_is_explained_with_its_exit_code(name: str) -> None:
    text = sections(DOCS / "errors.md")[f"`{name}`"]
    assert f"Exit code {ERRORS[name].exit_code}" in text
    assert ("a `LedgerError`" in text) == (ERRORS[name].__base__ is errors.LedgerError)


def test_no_error_is_explained_that_does_not_exist() -> None:
    assert list(sections(DOCS / "errors.md")) == [f"`{name}`" for name in ERRORS]
    assert set(re.findall(r"^[ │├└─]*([A-Z]\w+)(?: {2}|$)", errors.__doc__ or "", re.MULTILINE)) == set(ERRORS)


def test_no_key_is_explained_that_does_not_exist() -> None:
    """That every key is explained where it belongs is tested beside the config."""
    page = (DOCS / "config.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) <= {key for keys in KEYS.values() for key in keys}


@every("proof", lambda: PROOFS)
def test_an_argument_is_listed(proof: Path) -> None:
    listed = f"[{proof.name}]({Path('..') / proof.relative_to(ROOT)})"
    assert listed in (DOCS / "privacy.md").read_text(encoding="utf-8")


def test_what_is_missing_would_be_found() -> None:
    """The wrong twin: a page that leaves out an option, and one that has an option too many."""
    text = text_about("log")
    assert options_in(text.replace("| `--last N` |", "| N |")) != options_of("log")
    assert options_in(text + "\n| `--first N` | |") != options_of("log")


def undocumented(trees: Mapping[str, ast.Module]) -> list[str]:
    """Public classes, functions and methods without a docstring, but for methods whose name another class explains.

    Those follow a protocol or extend a class, where their docstring stands.
    """
    explained: set[str] = set()
    missing: list[tuple[str, str, bool]] = []

    def look(node: ast.AST, file: str, name: str, of_class: bool) -> None:
        for part in ast.iter_child_nodes(node):
            if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                if of_class and ast.get_docstring(part) is not None:
                    explained.add(part.name)
                overload = any(isinstance(each, ast.Name) and each.id == "overload" for each in part.decorator_list)
                if part.name.startswith("_") or overload:
                    continue
                if ast.get_docstring(part) is None:
                    missing.append((part.name, f"{file}: {name}{part.name}", of_class))
                if isinstance(part, ast.ClassDef):
                    look(part, file, f"{name}{part.name}.", of_class=True)

    for file, tree in trees.items():
        look(tree, file, "", of_class=False)
    return [place for name, place, of_class in missing if not (of_class and name in explained)]


IN_THE_CORE = 51
"""So many are left in the core, most of them fields of small protocols; there may be fewer, not more."""


def test_everything_public_has_a_docstring() -> None:
    source = ROOT / "src" / "bursar"
    trees = {
        str(path.relative_to(source)): ast.parse(path.read_text(encoding="utf-8")) for path in source.rglob("*.py")
    }
    missing = undocumented(trees)
    assert [place for place in missing if not place.startswith("core/")] == []
    assert len(missing) <= IN_THE_CORE


def test_what_has_no_docstring_would_be_found() -> None:
    """Wrong twins: a function, a class and a method without one; a protocol speaks for its methods."""
    tree = ast.parse('def f(): ...\nclass A:\n  def g(self): ...\n  def _h(self): ...\ndef k():\n  """Said."""')
    assert undocumented({"a.py": tree}) == ["a.py: f", "a.py: A", "a.py: A.g"]
    protocol = ast.parse('class P:\n  """Said."""\n  def g(self):\n    """Said."""')
    assert undocumented({"a.py": tree, "p.py": protocol}) == ["a.py: f", "a.py: A"]
