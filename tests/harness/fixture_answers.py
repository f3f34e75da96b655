"""Fixture files of questions with their answers, which DuckDB and exact counts must both give."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple


class Block(NamedTuple):
    """A question, the names of its columns, and its lines."""

    text: str
    heads: list[str]
    lines: list[tuple[str, ...]]

    @property
    def ordered(self) -> bool:
        return "ORDER BY" in self.text


def blocks_of(name: str) -> list[Block]:
    """All blocks of a file in tests/fixtures."""
    blocks = []
    for block in (Path(__file__).parents[1] / "fixtures" / name).read_text().split("\n\n")[1:]:
        first, *others = block.strip().splitlines()
        lines = [tuple(line.removeprefix("-- ").split(" | ")) for line in others[:-1]]
        blocks.append(Block(others[-1], first.removeprefix("--- ").split(" | "), lines))
    return blocks


def written(value: Any) -> str:
    """A value as the fixture has it: numbers in one form, days without hours, NULL for columns put together."""
    if value is None or value == "(all)":
        return "NULL"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value).removesuffix(" 00:00:00")
    return f"{value:.9g}" if math.isfinite(value) else "NULL"
