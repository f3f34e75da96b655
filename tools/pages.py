"""The code blocks of the documentation, and what the commands in them print.

    python tools/pages.py check docs/howto.md     runs the console blocks of a page and shows where they print otherwise
    python tools/pages.py write docs/howto.md     ... and puts what they print now into the page

A console block holds commands behind `$ ` and what they print. All console blocks of a page are one session at one
shell, which begins in an empty folder. Noise is never the same twice, so two outputs are the same if they are the same
up to numbers. A line of the page that is `...` stands for any lines.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ANY = "..."
_MARK = "=====next====="
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Block:
    """A fenced block: its language, its text, and where in the page that text begins."""

    language: str
    text: str
    start: int


@dataclass(frozen=True, kw_only=True)
class Step:
    """A command of a console block, with the output that the page shows under it, and where in the page that begins."""

    command: str
    shown: str
    start: int


def pages() -> list[Path]:
    """Every page whose blocks are run."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path) -> list[Block]:
    """All fenced blocks of a page, from top to bottom."""
    text = page.read_text(encoding="utf-8")
    return [Block(language=found[1], text=found[2], start=found.start(2)) for found in _FENCE.finditer(text)]


def steps(block: Block) -> list[Step]:
    """The commands of a console block; a command goes on over lines that begin with `> `."""
    found = []
    for typed in re.finditer(r"^\$ (.*\n(?:> .*\n)*)((?:(?!\$ ).*\n)*)", block.text, re.MULTILINE):
        command = typed[1].rstrip("\n").replace("\n> ", "\n")
        found.append(Step(command=command, shown=typed[2], start=block.start + typed.start(2)))
    return found


def run(commands: list[str], folder: Path) -> list[str]:
    """What each of the commands prints, both its outputs together; one shell runs them all."""
    program = f"{shlex.quote(sys.executable)} -c 'from bursar.cli import main; main()'"
    lines = [f'bursar() {{ {program} "$@"; }}', f'python() {{ {shlex.quote(sys.executable)} "$@"; }}', "exec 2>&1"]
    for command in commands:
        lines += [f"echo; echo {_MARK}", f"{command}"]
    own = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", "MPLBACKEND": "Agg", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        ["sh", "-c", "\n".join(lines)],
        cwd=folder,
        env={**os.environ, **own},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        check=False,
    )
    printed = done.stdout.split(f"\n{_MARK}\n")[1:]
    return [text.replace(f"{folder.resolve()}/", "").rstrip() for text in printed]


def plain(line: str) -> str:
    """A line up to numbers: each is `#`, and bars, rulers and blanks have no length."""
    line = re.sub(r"[█▏▎▍▌▋▊▉▁▂▃▄▅▆▇·├┼┤─]+", "", line)
    line = re.sub(r"\[[#.]+\]|\b[0-9a-f]{16,}\b", "#", line)
    line = re.sub(r"-{3,}|={2,}", "-", line)
    line = re.sub(r"[-~±]*\d[\d,]*(\.\d+)?(e[-+]?\d+)?", "#", line)
    return re.sub(r"\s+", " ", line).strip()


def same(shown: str, printed: str) -> bool:
    """Whether the page shows what was printed, up to numbers."""
    wanted, found = ([plain(line) for line in text.splitlines() if line.strip()] for text in (shown, printed))
    pattern = "".join(r"(?:[^\n]*\n)*" if line == ANY else re.escape(line) + r"\n" for line in wanted)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in found)) is not None


def differences(page: Path) -> list[tuple[Step, str]]:
    """The commands of a page that print something else than it shows, with what they print."""
    wanted = [step for block in blocks(page) if block.language == "console" for step in steps(block)]
    with tempfile.TemporaryDirectory() as folder:
        printed = run([step.command for step in wanted], Path(folder))
    return [(step, text) for step, text in zip(wanted, printed, strict=True) if not same(step.shown, text)]


def rewrite(page: Path, changes: list[tuple[Step, str]]) -> None:
    """Put what was printed in the place of what the page shows."""
    text = page.read_text(encoding="utf-8")
    for step, printed in reversed(changes):
        lines = "".join(f"{line.rstrip()}\n" for line in printed.splitlines())
        text = text[: step.start] + lines + text[step.start + len(step.shown) :]
    page.write_text(text, encoding="utf-8")


def main(verb: str, *names: str) -> int:
    failed = 0
    for name in names:
        changes = differences(Path(name))
        failed += len(changes)
        if verb == "write":
            rewrite(Path(name), changes)
        for step, printed in changes:
            print(f"{name}: $ {step.command}\n{printed}\n")
    return 1 if failed and verb == "check" else 0


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in ("check", "write"):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
