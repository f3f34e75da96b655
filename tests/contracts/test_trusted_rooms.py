"""How much code can break privacy, and how much of it the tests reach.

`python tests/contracts/test_trusted_rooms.py` prints the lines of every trusted module.
"""

from __future__ import annotations

import ast
import io
import tokenize
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src" / "bursar"
ROOMS = ("domain", "queries", "kernel")
SILENT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def lines_of_code(text: str) -> int:
    """Lines that hold something else than blanks, comments and docstrings."""
    told = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            told |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    held = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in SILENT:
            held |= set(range(token.start[0], token.end[0] + 1))
    return len(held - told)


def report() -> dict[str, dict[str, int]]:
    """Lines of code by room and module."""
    return {
        room: {
            str(path.relative_to(SOURCE)): lines_of_code(path.read_text(encoding="utf-8"))
            for path in sorted((SOURCE / room).rglob("*.py"))
        }
        for room in ROOMS
    }

if __name__ == "__main__":
    total=0
    for room, modules in report().items():
        for name, lines in modules.items(): print(f"{lines:5d}  {name}")
        print(f"{sum(modules.values()):5d}  {room}/"); total+=sum(modules.values())
    print(total)
