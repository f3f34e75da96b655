"""Names and constants of a question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from datetime import date
from decimal import Decimal
from typing import Protocol

from bursar.lazy_dataclass import dataclass

Literal = str | int | Decimal | bool | date
Number = int | Decimal


@dataclass(frozen=True, kw_only=True)
class Name:
    """The name of a table or column as it was typed, without its quotes."""

    text: str
    quoted: bool = False
    position: int = field(default=-1, compare=False)

    def names(self, declared: str) -> bool:
        """Whether this can mean the declared name: letter for letter where quoted, in any case otherwise."""
        return self.text == declared if self.quoted else self.text.casefold() == declared.casefold()

    def agrees(self, other: Name) -> bool:
        """Whether two typed names can mean the same thing."""
        return self.names(other.text) if other.quoted else other.names(self.text)


class DeclaredColumns(Protocol):
    """What is declared about columns and changes how a text is read."""

    def values(self, column: Name) -> Sequence[str | int] | None:
        """The values that a column can have, as constants; None where they cannot be listed."""
        ...

    def holds_numbers(self, column: Name) -> bool:
        """Whether the least and greatest of a column can be measured: of days and text, they are declared."""
        ...
