"""A question as plain data: what is left of the text once it has been read.

`position` is the offset of a part in the text, for messages; it plays no role when two questions are compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from enum import Enum

from bursar.goal import Goal

Literal = str | int | Decimal | bool | date


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


class Op(Enum):
    """A comparison with the column on the left."""

    EQ = "="
    NE = "<>"
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="

    @property
    def flipped(self) -> Op:
        """The same comparison with its sides exchanged."""
        return {Op.LT: Op.GT, Op.LE: Op.GE, Op.GT: Op.LT, Op.GE: Op.LE}.get(self, self)


@dataclass(frozen=True, kw_only=True)
class Compare:
    column: Name
    op: Op
    literal: Literal
    position: int = field(default=-1, compare=False)


@dataclass(frozen=True, kw_only=True)
class Between:
    """low <= column AND column <= high."""

    column: Name
    low: Literal
    high: Literal
    position: int = field(default=-1, compare=False)


@dataclass(frozen=True, kw_only=True)
class In:
    column: Name
    literals: tuple[Literal, ...]
    position: int = field(default=-1, compare=False)


@dataclass(frozen=True, kw_only=True)
class IsNull:
    column: Name
    position: int = field(default=-1, compare=False)


@dataclass(frozen=True, kw_only=True)
class Constant:
    value: bool
    position: int = field(default=-1, compare=False)


@dataclass(frozen=True, kw_only=True)
class And:
    parts: tuple[Condition, ...]
    position: int = field(default=-1, compare=False)


@dataclass(frozen=True, kw_only=True)
class Or:
    parts: tuple[Condition, ...]
    position: int = field(default=-1, compare=False)


@dataclass(frozen=True, kw_only=True)
class Not:
    part: Condition
    position: int = field(default=-1, compare=False)


Leaf = Compare | Between | In | IsNull
Condition = Leaf | Constant | And | Or | Not

TRUE = Constant(value=True)
FALSE = Constant(value=False)


def all_of(*conditions: Condition) -> Condition:
    """All conditions together, as flat as it goes: ANDs inside are opened, TRUE is left out."""
    parts: list[Condition] = []
    for condition in conditions:
        parts += condition.parts if isinstance(condition, And) else [condition]
    parts = [part for part in parts if part != TRUE]
    if not parts:
        return TRUE
    return parts[0] if len(parts) == 1 else And(parts=tuple(parts), position=parts[0].position)


def map_leaves(condition: Condition, change: Callable[[Leaf], Condition]) -> Condition:
    """The condition with every comparison in it replaced."""
    match condition:
        case And():
            return replace(condition, parts=tuple(map_leaves(part, change) for part in condition.parts))
        case Or():
            return replace(condition, parts=tuple(map_leaves(part, change) for part in condition.parts))
        case Not():
            return replace(condition, part=map_leaves(condition.part, change))
        case Constant():
            return condition
        case _:
            return change(condition)


def leaves(condition: Condition) -> list[Leaf]:
    """Every comparison in a condition, from left to right."""
    match condition:
        case And() | Or():
            return [leaf for part in condition.parts for leaf in leaves(part)]
        case Not():
            return leaves(condition.part)
        case Constant():
            return []
        case _:
            return [condition]


@dataclass(frozen=True, kw_only=True)
class Key:
    """A group column. `through` is the output name that GROUP BY called it by, where that is how it was named."""

    column: Name
    alias: str | None = None
    through: Name | None = None
    position: int = field(default=-1, compare=False)


@dataclass(frozen=True, kw_only=True)
class Aggregate:
    """How many rows meet the condition; the name heads the column of answers."""

    name: str
    condition: Condition = TRUE
    position: int = field(default=-1, compare=False)


@dataclass(frozen=True, kw_only=True)
class Query:
    """SELECT keys, aggregates FROM table WHERE where GROUP BY keys, with the accuracy asked for.

    Keys stand in the order of the select list; group columns that it leaves out follow in the order of GROUP BY.
    """

    table: Name
    aggregates: tuple[Aggregate, ...]
    keys: tuple[Key, ...] = ()
    where: Condition = TRUE
    goal: Goal | None = None
    explain: bool = False
    text: str = field(default="", compare=False)
