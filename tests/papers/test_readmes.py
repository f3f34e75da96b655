"""Each line of the papers' READMEs is true: the test of a section imports the code of it, and the commands exist."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bursar import presets

ROOT = Path(__file__).parents[2]
READMES = sorted((ROOT / "src" / "bursar" / "papers").glob("*/README.md"))
PAPERS = [readme.parent.name for readme in READMES]
PATH = re.compile(r"`([\w/]+\.py)`")
COMMAND = re.compile(r"^    python -m (benchmarks\.\w+)(.*)$", re.MULTILINE)


def rows(readme: Path) -> list[tuple[str, list[str], list[str]]]:
    """Section, files, tests."""
    lines = [line.strip("|\n").split("|") for line in readme.read_text().splitlines() if line.startswith("| ")]
    return [(section.strip(), PATH.findall(files), PATH.findall(tests)) for section, files, tests in lines[1:]]


def located(name: str) -> Path:
    """A path of a README: below src/bursar, or from a folder of the project."""
    return ROOT / name if name.startswith(("tests/", "benchmarks/")) else ROOT / "src" / "bursar" / name


def module(name: str) -> str:
    dotted = name.removesuffix(".py").replace("/", ".")
    return dotted if name.startswith("benchmarks/") else f"bursar.{dotted}"


def imported(path: Path) -> set[str]:
    """Modules that a file imports, and modules that the names it imports are from."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            found |= {
                getattr(getattr(sys.modules.get(node.module), alias.name, None), "__module__", "") or ""
                for alias in node.names
            }
    return found


def untested(readme: Path) -> list[str]:
    """Sections whose tests import none of their files."""
    wrong = []
    for section, files, tests in rows(readme):
        known = {name for test in tests for name in imported(located(test))}
        # A benchmark is several files with the same beginning.
        if not any(
            m in known or (m.startswith("benchmarks.") and any(k.startswith(m) for k in known))
            for m in map(module, files)
        ):
            wrong.append(section)
    return wrong


def test_every_paper_has_a_table() -> None:
    assert PAPERS == ["boost", "cachedp", "eigen_design", "multi_analyst", "rap"]
    assert all(len(rows(readme)) >= 5 for readme in READMES)


@pytest.mark.parametrize("readme", READMES, ids=PAPERS)
def test_files_and_tests_are_there(readme: Path) -> None:
    for section, files, tests in rows(readme):
        assert files, section
        assert tests, section
        assert [name for name in (*files, *tests) if not located(name).is_file()] == []


@pytest.mark.parametrize("readme", READMES, ids=PAPERS)
def test_the_test_of_a_section_imports_its_code(readme: Path) -> None:
    assert untested(readme) == []


@pytest.mark.heavy
@pytest.mark.sampled(5)
@pytest.mark.parametrize("readme", READMES, ids=PAPERS)
def test_commands_are_accepted(readme: Path) -> None:
    commands = COMMAND.findall(readme.read_text())
    assert commands
    for name, options in commands:
        ran = subprocess.run(
            [sys.executable, "-m", name, "--help"], capture_output=True, text=True, cwd=ROOT, check=True
        )
        assert [
            word for word in re.findall(r"--[\w-]+|[\w-]+(?=\|)|(?<=\|)[\w-]+", options) if word not in ran.stdout
        ] == []


def test_presets_are_there() -> None:
    page = (ROOT / "src" / "bursar" / "papers" / "README.md").read_text()
    named = {
        name
        for line in page.splitlines()
        if "preset" in line and line.startswith("|")
        for name in re.findall(r"`([a-z-]+)`", line.split("|")[3])
    }
    assert {"cachedp", "boost", "multi-analyst"} <= named
    assert named <= set(presets.LISTED)
