"""How far types reach: what is written as `Any`, or hidden from mypy, is counted and may only shrink."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import bursar

SOURCE = Path(bursar.__file__).parent

MOST_ANY = 88
"""Uses and imports of `Any`. Aimed at is less than one per 1,000 lines, 46; it is never raised."""

MOST_SPLATS = 5
"""Calls whose arguments mypy does not see. Aimed at are none."""

MOST_IGNORED = 3
"""Lines that mypy is told to ignore."""


@cache
def nodes_of(text: str) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(text)))


def uses_of_any(text: str) -> int:
    """How often a module imports `Any` or names it."""
    nodes = nodes_of(text)
    imported = sum(isinstance(node, ast.alias) and node.name == "Any" for node in nodes)
    named = sum(isinstance(node, ast.Name) and node.id == "Any" for node in nodes)
    spelt = sum(isinstance(node, ast.Attribute) and ast.unparse(node) == "typing.Any" for node in nodes)
    return imported + named + spelt


def splats(text: str) -> list[int]:
    """Lines where arguments are collected in a dictionary that mypy does not look into: `x: Any = {...}`."""
    found = [node for node in nodes_of(text) if isinstance(node, ast.AnnAssign)]
    return [node.lineno for node in found if ast.unparse(node.annotation) == "Any" and isinstance(node.value, ast.Dict)]


def texts() -> dict[str, str]:
    return {str(path.relative_to(SOURCE)): path.read_text() for path in sorted(SOURCE.rglob("*.py"))}


def test_any_is_rare() -> None:
    uses = {name: number for name, text in texts().items() if (number := uses_of_any(text))}
    assert sum(uses.values()) <= MOST_ANY, uses


def test_few_arguments_hide_in_a_dictionary() -> None:
    found = {name: lines for name, text in texts().items() if (lines := splats(text))}
    assert sum(map(len, found.values())) <= MOST_SPLATS, found


def test_little_is_hidden_from_mypy() -> None:
    hidden = [name for name, text in texts().items() for _ in range(text.count("type: ignore"))]
    assert len(hidden) <= MOST_IGNORED, hidden


def test_what_is_counted_is_found() -> None:
    wrong = "from typing import Any\nimport typing\nfacts: Any = {'a': 1}\ndef f(x: typing.Any) -> Any: ...\n"
    assert uses_of_any(wrong) == 4
    assert splats(wrong) == [3]
    assert uses_of_any("from sqlglot import exp\nx = exp.Any\n") == 0
