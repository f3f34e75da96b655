"""How far types reach: what is written as `Any`, or hidden from mypy, is counted and may only shrink."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from harness.source_trees import SOURCE, nodes_of

MOST_ANY = 88
"""Uses and imports of `Any`. Aimed at is less than one per 1,000 lines, 46; it is never raised."""

MOST_SPLATS = 5
"""Calls whose arguments mypy does not see. Aimed at are none."""

MOST_IGNORED = 3
"""Lines that mypy is told to ignore."""


def uses_of_any(nodes: Sequence[ast.AST]) -> int:
    """How often a module imports `Any` or names it."""
    imported = sum(isinstance(node, ast.alias) and node.name == "Any" for node in nodes)
    named = sum(isinstance(node, ast.Name) and node.id == "Any" for node in nodes)
    dotted = [node for node in nodes if isinstance(node, ast.Attribute) and node.attr == "Any"]
    return imported + named + sum(ast.unparse(node) == "typing.Any" for node in dotted)


def splats(nodes: Sequence[ast.AST]) -> list[int]:
    """Lines where arguments are collected in a dictionary that mypy does not look into: `x: Any = {...}`."""
    found = [node for node in nodes if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Dict)]
    return [node.lineno for node in found if ast.unparse(node.annotation) == "Any"]


PATHS = sorted(SOURCE.rglob("*.py"))


def test_any_is_rare() -> None:
    uses = {str(path): number for path in PATHS if (number := uses_of_any(nodes_of(path)))}
    assert sum(uses.values()) <= MOST_ANY, uses


def test_few_arguments_hide_in_a_dictionary() -> None:
    found = {str(path): lines for path in PATHS if (lines := splats(nodes_of(path)))}
    assert sum(map(len, found.values())) <= MOST_SPLATS, found


def test_little_is_hidden_from_mypy() -> None:
    hidden = [str(path) for path in PATHS for _ in range(path.read_text().count("type: ignore"))]
    assert len(hidden) <= MOST_IGNORED, hidden


def test_what_is_counted_is_found() -> None:
    wrong = "from typing import Any\nimport typing\nfacts: Any = {'a': 1}\ndef f(x: typing.Any) -> Any: ...\n"
    nodes = list(ast.walk(ast.parse(wrong)))
    assert uses_of_any(nodes) == 4
    assert splats(nodes) == [3]
    assert uses_of_any(list(ast.walk(ast.parse("from sqlglot import exp\nx = exp.Any\n")))) == 0
