"""Draws docs/pictures/architecture.svg: the flow of a question, the rooms around it, and the trusted border.

    python tools/architecture.py           writes the picture
    python tools/architecture.py check     says whether rooms are missing in it, or imports cross the border

What stands where is decided here; that every room is there, and what may cross the border, is read from the tree.
"""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "bursar"
PICTURE = ROOT / "docs" / "pictures" / "architecture.svg"

WIDTH, HEIGHT = 1000, 664
INK, FAINT, TRUST, PAPER = "#1f2933", "#6b7785", "#b42318", "#ffffff"
STAGE, ROOM, CORE, YELLOW = "#dbeafe", "#f1f5f9", "#fee4e2", "#fef3c7"
STYLE = (
    f"text{{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;fill:{INK}}}"
    f".name{{font-size:15px;font-weight:600}}.about{{font-size:11.5px;fill:{FAINT}}}"
    f".over{{font-size:12px;font-style:italic}}.border{{font-size:13px;font-weight:600;fill:{TRUST}}}"
)

OUTSIDE_CORE = {"errors", "arrays"}
"""What the trusted core may import from outside of it: names of errors and of array types."""


@dataclass(frozen=True, kw_only=True)
class Box:
    """A room or a file of the package, with what it does in a few words."""

    name: str  # as a path below src/bursar
    about: tuple[str, ...]
    x: int
    y: int
    wide: int = 155
    high: int = 66
    fill: str = ROOM

    @property
    def draw(self) -> str:
        middle = self.x + self.wide // 2
        lines = [
            f'<rect x="{self.x}" y="{self.y}" width="{self.wide}" height="{self.high}" rx="6" '
            f'fill="{self.fill}" stroke="{INK}" stroke-width="1"/>',
            f'<text class="name" x="{middle}" y="{self.y + 22}" text-anchor="middle">{escape(self.name)}</text>',
        ]
        for number, line in enumerate(self.about):
            y = self.y + 40 + 15 * number
            lines.append(f'<text class="about" x="{middle}" y="{y}" text-anchor="middle">{escape(line)}</text>')
        return "\n".join(lines)


@dataclass(frozen=True, kw_only=True)
class Arrow:
    """What goes from one box to another; over: the words beside it."""

    points: tuple[tuple[int, int], ...]
    over: str = ""
    at: tuple[int, int] = (0, 0)
    anchor: str = "middle"
    dashed: bool = False

    @property
    def draw(self) -> str:
        path = "M" + " L".join(f"{x} {y}" for x, y in self.points)
        dashes = ' stroke-dasharray="5 4"' if self.dashed else ""
        line = f'<path d="{path}" fill="none" stroke="{INK}" stroke-width="1.4"{dashes} marker-end="url(#tip)"/>'
        x, y = self.at
        words = f'\n<text class="over" x="{x}" y="{y}" text-anchor="{self.anchor}">{escape(self.over)}</text>'
        return line + (words if self.over else "")


FLOW = (
    Box(name="sql/", about=("what is asked,", "as plain data"), x=110, y=130, fill=STAGE),
    Box(name="compile/", about=("integer queries", "over public cells"), x=330, y=130, fill=STAGE),
    Box(name="planner/", about=("asks all proposers,", "takes the cheapest"), x=550, y=130, fill=STAGE),
    Box(name="proposers/", about=("one file per", "way to answer"), x=770, y=130, fill=STAGE),
    Box(name="views/", about=("what the log knows,", "free to look at"), x=770, y=250, fill=STAGE),
    Box(name="estimation/", about=("values from", "noisy records"), x=330, y=250, fill=STAGE),
    Box(name="tails/", about=("how wrong they", "can be, at most"), x=110, y=250, fill=STAGE),
)
BESIDE = (
    Box(name="rewrite/", about=("a question that works",), x=110, y=50, high=50),
    Box(name="analysts/", about=("shares, policies, turns",), x=330, y=50, high=50),
    Box(name="synthetic/", about=("tables of made-up rows",), x=550, y=50, high=50),
    Box(name="strategies/", about=("what is worth measuring",), x=770, y=50, high=50),
)
INSIDE = (
    Box(name="core/source/", about=("counts rows by cells",), x=225, y=396, high=50, fill=CORE),
    Box(name="core/noise/", about=("exact samplers",), x=225, y=478, high=50, fill=CORE),
    Box(name="core/kernel.py", about=("measure · refine", "above · select"), x=535, y=388, wide=180, fill=CORE),
    Box(name="core/accounting/", about=("the loss of every cell",), x=535, y=490, wide=180, high=50, fill=CORE),
    Box(name="core/ledger/", about=("budget and log",), x=800, y=396, high=50, fill=CORE),
    Box(name="core/extensions/", about=("beyond measure",), x=800, y=478, high=50, fill=CORE),
)
OWNER = (
    Box(name="curate/", about=("the data owner:", "set-up, new rows"), x=16, y=388, wide=130, fill=YELLOW),
    Box(name="config/", about=("what is public",), x=16, y=478, high=50, wide=130, fill=YELLOW),
)
DOORS = (
    Box(name="cli/", about=("the command line",), x=16, y=596, wide=146, high=50),
    Box(name="service/", about=("the server",), x=174, y=596, wide=146, high=50),
    Box(name="report/", about=("what people read",), x=332, y=596, wide=146, high=50),
    Box(name="papers/", about=("published versions",), x=490, y=596, wide=146, high=50),
    Box(name="simulate.py", about=("policies, tried out",), x=648, y=596, wide=146, high=50),
    Box(name="audit/", about=("looks for leaks",), x=806, y=596, wide=146, high=50),
)
BOXES = (*FLOW, *BESIDE, *INSIDE, *OWNER, *DOORS)
ARROWS = (
    Arrow(points=((20, 163), (106, 163)), over="text", at=(62, 156)),
    Arrow(points=((265, 163), (326, 163)), over="Query", at=(295, 156)),
    Arrow(points=((485, 163), (546, 163)), over="Workload", at=(516, 156)),
    Arrow(points=((705, 172), (766, 172)), over="Request", at=(736, 188)),
    Arrow(points=((770, 154), (709, 154)), over="Offers", at=(738, 147)),
    Arrow(points=((187, 130), (187, 104)), over="refused", at=(194, 120), anchor="start", dashed=True),
    Arrow(points=((847, 100), (847, 126))),
    Arrow(points=((847, 250), (847, 200)), over="what is there already", at=(840, 230), anchor="end"),
    Arrow(points=((627, 196), (627, 384)), over="Grant: the offer that was chosen", at=(634, 338), anchor="start"),
    Arrow(points=((575, 388), (575, 283), (489, 283)), over="records", at=(530, 276)),
    Arrow(points=((330, 274), (269, 274))),
    Arrow(points=((265, 292), (326, 292))),
    Arrow(points=((110, 283), (24, 283)), over="Answer", at=(64, 276)),
    Arrow(points=((880, 396), (880, 320)), over="after the commit", at=(887, 346), anchor="start"),
    Arrow(points=((380, 421), (531, 421)), over="exact counts", at=(440, 414)),
    Arrow(points=((380, 503), (500, 503), (500, 438), (531, 438)), over="noise", at=(440, 496)),
    Arrow(points=((625, 490), (625, 458)), over="price", at=(632, 478), anchor="start"),
    Arrow(points=((715, 421), (796, 421)), over="one commit", at=(755, 414)),
    Arrow(points=((800, 503), (756, 503), (756, 438), (719, 438))),
    Arrow(points=((146, 421), (221, 421)), over="rows", at=(166, 414)),
)


def picture() -> str:
    """The picture as SVG text."""
    tip = (
        '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
        f'orient="auto-start-reverse"><path d="M0 0L10 5L0 10z" fill="{INK}"/></marker></defs>'
    )
    border = (
        f'<rect x="190" y="356" width="790" height="212" rx="12" fill="none" stroke="{TRUST}" stroke-width="2" '
        'stroke-dasharray="9 5"/>\n'
        '<text class="border" x="206" y="378">TRUSTED: rows and noise meet only here</text>\n'
        '<text class="border" x="968" y="560" text-anchor="end">every module has a written argument beside it</text>'
    )
    title = "One question, from text to answer, as engine.py passes it on"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="title">',
        f'<title id="title">{escape(title)}</title>',
        f"<style>{STYLE}</style>",
        tip,
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{PAPER}"/>',
        f'<text class="name" x="20" y="30">{escape(title)}</text>',
        border,
        *(box.draw for box in BOXES),
        *(arrow.draw for arrow in ARROWS),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def rooms() -> set[str]:
    """The rooms of the package: its folders."""
    return {path.parent.name for path in SOURCE.glob("*/__init__.py")}


def crossings(files: dict[str, str]) -> list[str]:
    """Which modules of the core import something else than the core and a few names; files: text by path."""
    found = []
    for name, text in files.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bursar."):
                room = str(node.module).split(".")[1]
                if room != "core" and room not in OUTSIDE_CORE:
                    found.append(f"{name} imports {node.module}, across the trusted border")
    return found


def check() -> list[str]:
    """What the picture gets wrong about the tree, one sentence each."""
    faults = [f"{box.name} is in the picture, not in the tree" for box in BOXES if not (SOURCE / box.name).exists()]
    drawn = {box.name.split("/")[0] for box in BOXES}
    faults += [f"{room}/ is in the tree, not in the picture" for room in sorted(rooms() - drawn)]
    if not PICTURE.exists() or PICTURE.read_text(encoding="utf-8") != picture():
        faults.append("the picture is not what tools/architecture.py draws: run it")
    core = {str(path.relative_to(SOURCE)): path.read_text(encoding="utf-8") for path in (SOURCE / "core").rglob("*.py")}
    return faults + crossings(core)


if __name__ == "__main__":
    if sys.argv[1:] != ["check"]:
        PICTURE.write_text(picture(), encoding="utf-8")
    problems = check()
    print("\n".join(problems) or "the picture shows the tree")
    sys.exit(bool(problems))
