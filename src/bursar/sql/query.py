"""A question as plain data: what is left of the text once it has been read.

`position` is the offset of a part in the text, for messages; it plays no role when two questions are compared.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import field, fields, is_dataclass, replace
from decimal import Decimal
from enum import Enum
from fractions import Fraction

from bursar.goal import Goal, TextSearch
from bursar.lazy_dataclass import dataclass
from bursar.sql.names import Literal, Name, Number
from bursar.sql.terms import Call, Stage, Term, map_refs, refs_of


def same_meaning(left: object, right: object) -> bool:
    """Whether two parts of a question say the same, whatever letter case their names are typed in."""
    if isinstance(left, Name) and isinstance(right, Name):
        return left.agrees(right)
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(same_meaning, left, right))
    if is_dataclass(left) and type(left) is type(right):
        return all(
            same_meaning(getattr(left, part.name), getattr(right, part.name)) for part in fields(left) if part.compare
        )
    return left == right


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
    """column op literal, as in age >= 65."""

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
    """column IN (literals); a list is not empty."""

    column: Name
    literals: tuple[Literal, ...]
    position: int = field(default=-1, compare=False)


@dataclass(frozen=True, kw_only=True)
class IsNull:
    """column IS NULL."""

    column: Name
    position: int = field(default=-1, compare=False)


@dataclass(frozen=True, kw_only=True)
class Like:
    """Whether text matches a pattern, in which % stands for any text and _ for any character."""

    column: Name
    pattern: str
    any_case: bool = False  # ILIKE
    position: int = field(default=-1, compare=False)


@dataclass(frozen=True, kw_only=True)
class Holds:
    """Whether a term of columns is true; `counted` reads columns as the numbers that they are added up as."""

    column: Name  # the first one
    term: Term
    counted: bool = False
    position: int = field(default=-1, compare=False)


@dataclass(frozen=True, kw_only=True)
class Constant:
    """TRUE or FALSE, whatever the row."""

    value: bool
    position: int = field(default=-1, compare=False)


@dataclass(frozen=True, kw_only=True)
class And:
    """All parts hold, in three-valued logic."""

    parts: tuple[Condition, ...]
    position: int = field(default=-1, compare=False)


@dataclass(frozen=True, kw_only=True)
class Or:
    """At least one part holds, in three-valued logic."""

    parts: tuple[Condition, ...]
    position: int = field(default=-1, compare=False)


@dataclass(frozen=True, kw_only=True)
class Not:
    """The part does not hold; unknown where that is unknown."""

    part: Condition
    position: int = field(default=-1, compare=False)


@dataclass(frozen=True, kw_only=True)
class IsTrue:
    """Whether the condition holds: no where it does not, and no where it is unknown."""

    part: Condition
    position: int = field(default=-1, compare=False)


@dataclass(frozen=True, kw_only=True)
class AtLeast:
    """Whether at least `count` of the conditions hold; one that is unknown does not hold."""

    count: int
    parts: tuple[Condition, ...]
    position: int = field(default=-1, compare=False)


Leaf = Compare | Between | In | IsNull | Like | Holds
Condition = Leaf | Constant | And | Or | Not | IsTrue | AtLeast

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


def columns_of(leaf: Leaf) -> tuple[Name, ...]:
    """The columns that a comparison is about."""
    return refs_of(leaf.term) if isinstance(leaf, Holds) else (leaf.column,)


def rename_leaf(leaf: Leaf, change: Callable[[Name], Name]) -> Leaf:
    """A comparison with its columns called by other names."""
    if isinstance(leaf, Holds):
        return replace(leaf, column=change(leaf.column), term=map_refs(leaf.term, change))
    return replace(leaf, column=change(leaf.column))


def map_leaves(condition: Condition, change: Callable[[Leaf], Condition]) -> Condition:
    """The condition with every comparison in it replaced."""
    match condition:
        case And():
            return replace(condition, parts=tuple(map_leaves(part, change) for part in condition.parts))
        case Or():
            return replace(condition, parts=tuple(map_leaves(part, change) for part in condition.parts))
        case AtLeast():
            return replace(condition, parts=tuple(map_leaves(part, change) for part in condition.parts))
        case Not() | IsTrue():
            return replace(condition, part=map_leaves(condition.part, change))
        case Constant():
            return condition
        case _:
            return change(condition)


def leaves(condition: Condition) -> list[Leaf]:
    """Every comparison in a condition, from left to right."""
    match condition:
        case And() | Or() | AtLeast():
            return [leaf for part in condition.parts for leaf in leaves(part)]
        case Not() | IsTrue():
            return leaves(condition.part)
        case Constant():
            return []
        case _:
            return [condition]


@dataclass(frozen=True, kw_only=True)
class CaseBranch:
    """WHEN condition THEN label, of a CASE that rows are grouped by; no label is NULL."""

    condition: Condition
    label: Literal | None


@dataclass(frozen=True, kw_only=True)
class CaseGroups:
    """A CASE over one column or more; the first piece that holds counts, and NULL is where none does."""

    pieces: tuple[CaseBranch, ...]
    buckets: tuple[Decimal, Decimal, int] | None = None  # how WIDTH_BUCKET wrote it: ends and number


@dataclass(frozen=True, kw_only=True)
class Stepped:
    """FLOOR(x / width) * times; or x // width * times, which rounds towards 0."""

    width: Decimal
    times: Decimal = Decimal(1)
    towards_zero: bool = False


@dataclass(frozen=True, kw_only=True)
class Trimmed:
    """The first day of the period that a day is in, or the number of the period: DATE_TRUNC, EXTRACT."""

    period: str
    number: bool = False


@dataclass(frozen=True, kw_only=True)
class Made:
    """What a term makes of columns, value by value."""

    term: Term


By = CaseGroups | Stepped | Trimmed | Made


@dataclass(frozen=True, kw_only=True)
class Key:
    """What rows are grouped by: a column, or what `by` makes of it; a CASE may name others beside it.

    `through` is the output name that GROUP BY called it by, where that is how it was named.
    """

    column: Name
    by: By | None = None
    alias: str | None = None
    total: Literal | None = None  # what is shown where a set puts it together, if the question says so
    through: Name | None = None
    position: int = field(default=-1, compare=False)

    @property
    def name(self) -> str:
        """What the column of labels is called."""
        if self.alias is not None or self.by is None:
            return self.alias or self.column.text
        return f"{self.column.text}_{self.by.period if isinstance(self.by, Trimmed) else 'group'}"

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that the groups depend on, as it was typed."""
        pieces = self.by.pieces if isinstance(self.by, CaseGroups) else ()
        tests = [leaf for piece in pieces for leaf in leaves(piece.condition)]
        named = [column.text for leaf in tests for column in columns_of(leaf)]
        named += [column.text for column in refs_of(self.by.term)] if isinstance(self.by, Made) else []
        return tuple(dict.fromkeys([self.column.text, *named]))

    def same(self, other: Key) -> bool:
        """Whether both group rows in the same way."""
        return same_meaning(self.by, other.by) and self.column.agrees(other.column)


@dataclass(frozen=True, kw_only=True)
class Flag:
    """GROUPING(key, key, ...): a bit for each key, the first one highest, 1 where a set of groups puts it together."""

    name: str
    keys: tuple[int, ...]  # their places
    position: int = field(default=-1, compare=False)

    def number(self, grouped: Sequence[int]) -> int:
        """What it is on the lines of the set that groups by the keys in these places."""
        return functools.reduce(lambda bits, key: 2 * bits + (key not in grouped), self.keys, 0)


def flag_name(keys: Sequence[Key], places: Sequence[int]) -> str:
    """What a column of flags is called where the question gives it no name."""
    return "_".join(["grouping", *(keys[place].name for place in places)])


@dataclass(frozen=True, kw_only=True)
class Branch:
    """WHEN condition THEN value: a constant, a column, a term of columns, or None for NULL."""

    condition: Condition
    value: Number | Name | Call | None
    position: int = field(default=-1, compare=False)


@dataclass(frozen=True, kw_only=True)
class Case:
    """The value of the first branch whose condition holds, NULL where none does; ELSE is a branch that is TRUE."""

    branches: tuple[Branch, ...]
    position: int = field(default=-1, compare=False)


class Function(Enum):
    """What is made of the rows of a group, under the name that it is written out by."""

    COUNT = "COUNT"
    SUM = "SUM"
    AVG = "AVG"
    VAR_SAMP = "VAR_SAMP"
    VAR_POP = "VAR_POP"
    STDDEV_SAMP = "STDDEV_SAMP"
    STDDEV_POP = "STDDEV_POP"
    QUANTILE_CONT = "QUANTILE_CONT"
    QUANTILE_DISC = "QUANTILE_DISC"
    MIN = "MIN"
    MAX = "MAX"
    COVAR_POP = "COVAR_POP"
    COVAR_SAMP = "COVAR_SAMP"
    CORR = "CORR"
    REGR_SLOPE = "REGR_SLOPE"
    REGR_INTERCEPT = "REGR_INTERCEPT"
    REGR_R2 = "REGR_R2"


EXTREMES = frozenset((Function.MIN, Function.MAX))

PAIR = "pair"
"""The function of a term that holds the two columns of CORR and its like."""

OF_PAIRS = frozenset(
    {
        *(Function.COVAR_POP, Function.COVAR_SAMP, Function.CORR),
        *(Function.REGR_SLOPE, Function.REGR_INTERCEPT, Function.REGR_R2),
    }
)
"""Functions of two columns."""


@dataclass(frozen=True, kw_only=True)
class Aggregate:
    """A function of the rows that meet the condition; the name heads the column of answers.

    Without `of` it is the number of those rows; with it, of the values that are not NULL. A `distinct` count has each
    value once; one without `of`, which names are resolved to, has each person once.
    """

    name: str = ""
    condition: Condition = TRUE
    function: Function = Function.COUNT
    of: Name | Case | Call | None = None
    fraction: Decimal | None = None  # of a quantile
    distinct: bool = False
    position: int = field(default=-1, compare=False)


@dataclass(frozen=True, kw_only=True)
class Linear:
    """Counts and sums, each times a constant, and a constant; no aggregate twice, none times 0."""

    terms: tuple[tuple[Fraction, Aggregate], ...] = ()
    constant: Fraction = Fraction(0)


@dataclass(frozen=True, kw_only=True)
class Formula:
    """Arithmetic on aggregates: one linear combination, or one over another."""

    name: str = ""
    above: Linear
    below: Linear | None = None
    position: int = field(default=-1, compare=False)

    @property
    def parts(self) -> tuple[Aggregate, ...]:
        """Every aggregate in it, from left to right, those above first."""
        return tuple(part for side in (self.above, self.below) if side is not None for _, part in side.terms)


Item = Aggregate | Formula


def aggregates_of(item: Item) -> tuple[Aggregate, ...]:
    """The aggregates that a selected item is made of."""
    return item.parts if isinstance(item, Formula) else (item,)


def default_name(item: Item) -> str:
    """What a column of answers is called where the question gives it no name."""
    if isinstance(item, Formula):
        return "result"
    return "median" if is_median(item) else item.function.value.lower()


def is_median(aggregate: Aggregate) -> bool:
    """Whether it is the quantile at one half, which MEDIAN is written for."""
    return aggregate.function is Function.QUANTILE_CONT and aggregate.fraction == Decimal("0.5")


def change_parts(item: Item, change: Callable[[Aggregate], Aggregate]) -> Item:
    """The item with every aggregate in it replaced."""
    if isinstance(item, Aggregate):
        return change(item)

    def changed(side: Linear) -> Linear:
        return replace(side, terms=tuple((weight, change(part)) for weight, part in side.terms))

    return replace(item, above=changed(item.above), below=None if item.below is None else changed(item.below))


def branches_of(aggregate: Aggregate) -> tuple[Branch, ...]:
    """What is aggregated, as branches; a column is one that is always taken."""
    if isinstance(aggregate.of, Case):
        return aggregate.of.branches
    return () if aggregate.of is None else (Branch(condition=TRUE, value=aggregate.of, position=aggregate.of.position),)


@dataclass(frozen=True, kw_only=True)
class Sort:
    """One item of ORDER BY: an output by its name, or else by its place a key, or a flag, which come after the keys."""

    output: str | None = None
    key: int = -1
    descending: bool = False
    nulls_first: bool = False
    unnamed: bool = False  # by a key itself, not by what is shown for it: a total that has a name is NULL then


class Described(Enum):
    """What DESCRIBE and SHOW tell of."""

    TABLES = "tables"
    COLUMNS = "columns"


@dataclass(frozen=True, kw_only=True)
class Query:
    """SELECT keys, aggregates FROM table WHERE where GROUP BY keys, with the accuracy asked for.

    Keys stand in the order of the select list; group columns that it leaves out follow in the order of GROUP BY. What
    comes after, HAVING, ORDER BY, LIMIT and OFFSET, is about the answers; the columns in `having` are names of outputs.
    """

    table: Name
    aggregates: tuple[Item, ...]
    keys: tuple[Key, ...] = ()
    sets: tuple[tuple[int, ...], ...] = ()  # of GROUPING SETS, ROLLUP and CUBE: the places of the keys of each
    unasked: tuple[tuple[int, ...], ...] = ()  # further ones, which HAVING leaves out by their GROUPING
    flags: tuple[Flag, ...] = ()
    where: Condition = TRUE
    having: Condition = TRUE
    order: tuple[Sort, ...] = ()
    limit: int | None = None
    offset: int = 0
    stages: tuple[Stage, ...] = ()  # SELECTs over the lines of this one
    described: Described | None = None  # what is told about tables or columns, in the place of all else
    branches: tuple[Query, ...] = ()  # SELECTs of a UNION ALL, bought together: the outputs are theirs, by name
    branch: str = ""  # the column that says which of them a line is of
    beside: tuple[Name, ...] = field(default=(), compare=False)  # what sub-selects call something beside their *
    remarks: tuple[str, ...] = field(default=(), compare=False, repr=False)  # of how the question was read
    goal: Goal | None = None
    search: TextSearch | None = None  # texts of open columns are looked for first
    measured: bool = False  # whether an accuracy is asked for beside the text, so that MIN and MAX are measured
    explain: bool = False
    text: str = field(default="", compare=False)

    @property
    def names(self) -> tuple[str, ...]:
        """What the columns of answers are called."""
        return tuple(item.name for item in self.aggregates)

    @property
    def selects(self) -> tuple[Query, ...]:
        """The SELECTs that read the table: those of a UNION ALL, or this one."""
        return self.branches or (self,)

    def conditions(self) -> list[Condition]:
        """The WHERE, and every FILTER and WHEN, those of groups last."""
        if self.branches:
            return [condition for query in self.branches for condition in query.conditions()]
        parts = [part for item in self.aggregates for part in aggregates_of(item)]
        inner = [branch.condition for part in parts for branch in branches_of(part)]
        cuts = [piece.condition for key in self.keys if isinstance(key.by, CaseGroups) for piece in key.by.pieces]
        return [self.where, *(part.condition for part in parts), *inner, *cuts]

    def columns(self) -> list[Name]:
        """Every column that is named, but for those that only GROUP BY names."""
        if self.branches:
            return [name for query in self.branches for name in query.columns()]
        parts = [part for item in self.aggregates for part in aggregates_of(item)]
        values = [branch.value for part in parts for branch in branches_of(part)]
        tests = [leaf for condition in self.conditions() for leaf in leaves(condition)]
        compared = [column for leaf in tests for column in columns_of(leaf)]
        in_calls = [column for value in values if isinstance(value, Call) for column in refs_of(value)]
        return [*compared, *(value for value in values if isinstance(value, Name)), *in_calls]
