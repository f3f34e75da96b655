"""Finds links that lead nowhere: in Markdown pages, and in a site of HTML pages.

    python tools/links.py                    every Markdown page of the project
    python tools/links.py build/reference    every page of a built site

Links to other hosts are not followed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("docs", "src", "benchmarks", "examples", ".github")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]+`")
LINK = re.compile(r"\]\(<?([^)\s>]+)>?(?: \"[^\"]*\")?\)")
ELSEWHERE = re.compile(r"^(?:[a-z][a-z0-9+.-]*:|//)")
PATH = re.compile(r"(?:[\w.*-]+/)+[\w.*-]*|[\w-]+\.(?:py|md|toml|cff|yml|yaml|svg)")
BASES = (Path(), Path("src/bursar"))
"""Where a path in backticks may begin, beside the folder of its page."""


def pages() -> list[Path]:
    """The Markdown pages of the project."""
    return [*sorted(ROOT.glob("*.md")), *(page for room in ROOMS for page in sorted((ROOT / room).rglob("*.md")))]


def anchors(text: str) -> set[str]:
    """The anchors that a page's headings get, as code hosts make them."""
    headings = re.findall(r"^#+ (.+?)\s*$", FENCED.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken(page: Path) -> list[str]:
    """The links of a Markdown page that lead to no file, or to no heading of it."""
    text = page.read_text(encoding="utf-8")
    found = []
    for link in LINK.findall(CODE.sub("", FENCED.sub("", text))):
        if ELSEWHERE.match(link):
            continue
        place, _, anchor = unquote(link).partition("#")
        target = page.parent / place if place else page
        if not target.exists() or (anchor and not _has(target, anchor)):
            found.append(link)
    return found


def _has(page: Path, anchor: str) -> bool:
    return page.suffix != ".md" or anchor in anchors(page.read_text(encoding="utf-8"))


def named(text: str) -> list[str]:
    """The paths of files and folders that a page names in backticks."""
    quoted = [code[1:-1] for code in CODE.findall(FENCED.sub("", text))]
    return [code for code in quoted if PATH.fullmatch(code) and not code.startswith("build/")]  # built, not kept


def missing(page: Path, suffix: str = "") -> list[str]:
    """The paths with a suffix that a text names and that there are not; `*` stands for any part of a name."""
    bases = [page.parent, *(ROOT / base for base in BASES)]
    paths = [path for path in named(page.read_text(encoding="utf-8")) if path.endswith(suffix)]
    return [path for path in paths if not any(_there(base, path) for base in bases)]


def _there(base: Path, path: str) -> bool:
    if path.endswith("/"):
        return (base / path).is_dir()
    return any(base.glob(path))


class _Page(HTMLParser):
    """The links and anchors of an HTML page, and what it loads from elsewhere."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attrs if value is not None}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        loaded = given.get("src") or (given.get("href") if tag == "link" else None)
        if loaded and not loaded.startswith("data:"):
            self.loads.append(loaded)
        if tag == "meta" and given.get("http-equiv") == "refresh":
            self.links.append(given["content"].partition("url=")[2])


@cache
def _read(path: Path) -> _Page:
    return _Page(path.read_text(encoding="utf-8"))


def broken_in_site(site: Path) -> Iterator[str]:
    """What the pages of a site link to or load, and that is not in it."""
    for path in sorted(site.rglob("*.html")):
        page = _read(path)
        name = path.relative_to(site)
        for link in page.loads:
            if ELSEWHERE.match(link) or not (path.parent / unquote(link.partition("?")[0])).is_file():
                yield f"{name} loads {link}"
        for link in page.links:
            if ELSEWHERE.match(link):
                continue
            place, _, anchor = unquote(link).partition("#")
            target = (path.parent / place).resolve() if place else path
            if not target.is_file() or (anchor and anchor not in _read(target).anchors):
                yield f"{name} links to {link}"


def _faults(site: str | None) -> Iterable[str]:
    if site is not None:
        return broken_in_site(Path(site)) if Path(site, "index.html").is_file() else [f"{site} has no index.html"]
    return [f"{page.relative_to(ROOT)}: {link}" for page in pages() for link in broken(page)]


if __name__ == "__main__":
    faults = list(_faults(sys.argv[1] if sys.argv[1:] else None))
    print("\n".join(faults) or "every link leads somewhere")
    sys.exit(bool(faults))
