"""Builds the Python reference from docstrings, as a site that works from disk.

`python tools/reference.py [FOLDER [ROOM]]`. One page per module; what `bursar.__all__` names is on the first of them.
Nothing is loaded from a network: searching is done by the browser, in an index that is built here.
"""

from __future__ import annotations

import importlib
import pkgutil
import shutil
import sys
from dataclasses import is_dataclass
from pathlib import Path

import pdoc.doc
import pdoc.render

import bursar

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "build" / "reference"


def modules(room: str = "") -> list[str]:
    """The package itself and every module below it, or below one of its rooms; parents first."""
    found = [module.name for module in pkgutil.walk_packages(bursar.__path__, "bursar.")]
    return sorted(["bursar", *(name for name in found if f"{name}.".startswith(f"bursar.{room}.") or not room)])


def build(folder: Path, room: str = "") -> int:
    """Write the site, and say how many pages it has."""
    for name in bursar.__all__:  # names that are loaded at first use are found by the generator afterwards only
        setattr(bursar, name, getattr(bursar, name))
    loaded = [importlib.import_module(name) for name in modules(room)]
    for module in loaded:
        for member in vars(module).values():
            is_dataclass(member)  # `lazy_dataclass` writes the methods of those that have no instance yet
    documented = {module.__name__: pdoc.doc.Module(module) for module in loaded}
    _order(documented["bursar"])
    pdoc.render.configure(
        docformat="markdown",
        search=True,
        show_source=False,
        include_undocumented=False,
        footer_text=f"Bursar {bursar.__version__}",
        template_directory=Path(__file__).with_name("reference_templates"),
    )
    shutil.rmtree(folder, ignore_errors=True)
    for name, pages in documented.items():
        page = folder.joinpath(*name.split(".")).with_suffix(".html")
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(pdoc.render.html_module(pages, documented), encoding="utf-8")
    (folder / "index.html").write_text(pdoc.render.html_index(documented), encoding="utf-8")
    (folder / "search.js").write_text(pdoc.render.search_index(documented), encoding="utf-8")
    return len(documented)


def _order(public: pdoc.doc.Module) -> None:
    """The page of what is public begins with how to open a data set and what can be asked; errors come last."""

    def rank(member: pdoc.doc.Doc[object]) -> int:
        if isinstance(member, pdoc.doc.Function):
            return 0
        if member.name == "Bursar":
            return 1
        return 3 if isinstance(member.obj, type) and issubclass(member.obj, Exception) else 2

    members = sorted(public.members.values(), key=rank)
    public.members.clear()
    public.members.update((member.name, member) for member in members)


if __name__ == "__main__":
    site = Path(sys.argv[1]) if sys.argv[1:] else SITE
    print(f"{build(site, *sys.argv[2:])} modules: open {site / 'index.html'}")
