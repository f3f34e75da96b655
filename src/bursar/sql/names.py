"""Names and constants of a question."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal

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
