"""Whose privacy is protected, and which two tables count as neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from bursar.errors import ConfigError


class Neighbours(Enum):
    """The two notions of neighbouring tables."""

    ADD_REMOVE = "add-remove"  # one unit is there or not; the number of rows is private
    REPLACE_ONE = "replace-one"  # one unit has other values; the number of rows is public


@dataclass(frozen=True, kw_only=True)
class Unit:
    """A privacy unit: one row, or all rows that share a value of `column`, at most `max_contributions` of them."""

    column: str | None = None
    max_contributions: int = 1
    neighbours: Neighbours = Neighbours.ADD_REMOVE

    def __post_init__(self) -> None:
        if type(self.max_contributions) is not int or self.max_contributions < 1:
            raise ConfigError("max_contributions must be a whole number of at least 1")
        if self.column is None and self.max_contributions != 1:
            raise ConfigError("max_contributions needs a unit column: without one, each row is a unit of its own")
