"""Every link of the pages and of the built reference leads somewhere, and every path that pages name is there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harness.cases import every

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import links  # noqa: E402

SOURCE = ROOT / "src" / "bursar"
NAMING = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    ROOT / "docs" / "architecture.md",
    ROOT / "docs" / "stability.md",
    *SOURCE.rglob("README.md"),
]
"""Pages about the tree itself: what they name in backticks and looks like a path must be one."""


@every("page", links.pages)
def test_links_lead_somewhere(page: Path) -> None:
    assert links.broken(page) == []


@pytest.mark.parametrize("page", NAMING, ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_that_are_named_exist(page: Path) -> None:
    assert links.missing(page) == []


@pytest.mark.parametrize("room", [path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()])
def test_files_that_docstrings_and_arguments_name_exist(room: str) -> None:
    texts = [path for path in (SOURCE / room).rglob("*") if path.name.endswith((".py", ".proof.md"))]
    gone = {str(path.relative_to(SOURCE)): links.missing(path, suffix=".py") for path in texts}
    assert {name: paths for name, paths in gone.items() if paths} == {}


def test_the_walk_through_the_tree_names_its_files() -> None:
    """The check above has something to check, and the walk goes through every stage."""
    walk = links.named((ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"))
    rooms = {path.split("/")[0] for path in walk}
    assert rooms >= {"sql", "compile", "planner", "proposers", "core", "views", "estimation", "tails", "engine.py"}


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    good = (
        "# A heading\n[a](page.md) [b](#a-heading) [c](https://example.org/x) `[d](gone.md)`\n```\n[e](gone.md)\n```\n"
    )
    page.write_text(good, encoding="utf-8")
    assert links.broken(page) == []
    page.write_text(good + "[f](gone.md) ![g](gone.png) [h](#no-heading) [i](page.md#nor-this)", encoding="utf-8")
    assert links.broken(page) == ["gone.md", "gone.png", "#no-heading", "page.md#nor-this"]


def test_a_path_that_is_not_there_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    text = "`core/kernel.py` `core/` `core/**/*.proof.md` `docs/index.md` `SELECT a/b FROM c` `page.md` `db.query(sql)`"
    page.write_text(text, encoding="utf-8")
    assert links.missing(page) == []
    page.write_text(text + " `kernel/` `core/kernels.py` `gone.py` `docs/*.txt`", encoding="utf-8")
    assert links.missing(page) == ["kernel/", "core/kernels.py", "gone.py", "docs/*.txt"]


def test_a_site_with_a_broken_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "room").mkdir()
    (tmp_path / "a.html").write_text('<a href="room/b.html#place">b</a><a href="https://example.org">c</a>')
    (tmp_path / "room" / "b.html").write_text('<p id="place"></p><a href="../a.html">a</a>')
    assert list(links.broken_in_site(tmp_path)) == []
    (tmp_path / "c.html").write_text(
        '<a href="room/b.html#other"></a><a href="d.html"></a><a href="#e"></a>'
        '<link href="https://example.org/font.css"><script src="f.js"></script>'
    )
    assert list(links.broken_in_site(tmp_path)) == [
        "c.html loads https://example.org/font.css",
        "c.html loads f.js",
        "c.html links to room/b.html#other",
        "c.html links to d.html",
        "c.html links to #e",
    ]


@pytest.mark.parametrize(
    "room",
    [pytest.param("core", marks=pytest.mark.heavy), pytest.param("", marks=pytest.mark.soak)],
    ids=["core", "all"],
)
def test_the_reference_is_built_and_whole(tmp_path: Path, room: str) -> None:
    """One page per module, all that is public on the first one, search without a network, and no broken link."""
    import bursar

    words = [sys.executable, str(ROOT / "tools" / "reference.py"), str(tmp_path), *filter(None, [room])]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    assert "does not resolve" not in done.stderr  # a public name that the generator cannot find
    built = {str(page.relative_to(tmp_path).with_suffix("")) for page in tmp_path.rglob("*.html")}
    source = ROOT / "src"
    modules = {str(path.relative_to(source).with_suffix("")) for path in (source / "bursar" / room).rglob("*.py")}
    assert built == {name.removesuffix("/__init__") for name in modules} | {"bursar", "index"}
    assert list(links.broken_in_site(tmp_path)) == []
    first = (tmp_path / "bursar.html").read_text(encoding="utf-8")
    assert [name for name in bursar.__all__ if name != "__version__" and f'id="{name}"' not in first] == []
    search = (tmp_path / "search.js").read_text(encoding="utf-8")
    assert "bursar.core.kernel" in search
    assert "search.js" in (tmp_path / "index.html").read_text(encoding="utf-8")
