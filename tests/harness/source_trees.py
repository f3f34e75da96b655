"""The syntax trees of the package, parsed once for all the tests that look at its source."""

from __future__ import annotations

import ast
import gc
from functools import cache
from pathlib import Path

import bursar

SOURCE = Path(bursar.__file__).parent


def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of a module of the package, the module first, in the order of `ast.walk`."""
    return _everything()[path]


def tree_of(path: Path) -> ast.Module:
    module = nodes_of(path)[0]
    assert isinstance(module, ast.Module)
    return module


@cache
def _everything() -> dict[Path, tuple[ast.AST, ...]]:
    """Half a million objects that stay: the collector would look through them again and again while they are made."""
    on = gc.isenabled()
    gc.disable()
    try:
        return {path: tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8")))) for path in SOURCE.rglob("*.py")}
    finally:
        gc.freeze()
        if on:
            gc.enable()
