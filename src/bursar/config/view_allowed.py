"""The allow-list of a view: rows of the tables in FROM, put together and computed from row by row. The rest is refused.

What a name means that is not on the list nobody has looked at: it might read other rows, a clock, or a file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlglot import exp

Node = Any
"""A node of sqlglot's syntax tree."""

STRUCTURE: tuple[type, ...] = (
    exp.Select, exp.From, exp.Join, exp.Table, exp.TableAlias, exp.Where, exp.Group, exp.Having, exp.Qualify, exp.Order,
    exp.Ordered, exp.Alias, exp.Column, exp.Identifier, exp.Star, exp.With, exp.CTE, exp.Subquery, exp.Union,
    exp.Distinct, exp.Tuple, exp.Window, exp.WindowSpec, exp.Filter, exp.Literal, exp.Null, exp.Boolean, exp.Paren,
    exp.Var, exp.DataType, exp.DataTypeParam, exp.Interval,
)  # fmt: skip

OPERATORS: tuple[type, ...] = (
    exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ,
    exp.Between, exp.In, exp.Is, exp.Like, exp.ILike, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg,
    exp.DPipe,
)  # fmt: skip

FUNCTIONS: tuple[type, ...] = (
    exp.Case, exp.If, exp.Cast, exp.TryCast, exp.Coalesce, exp.Nullif, exp.Greatest, exp.Least, exp.Abs, exp.Sign,
    exp.Round, exp.Floor, exp.Ceil, exp.Sqrt, exp.Ln, exp.Log, exp.Exp, exp.Pow, exp.WidthBucket, exp.Lower, exp.Upper,
    exp.Trim, exp.Length, exp.Substring, exp.Left, exp.Right, exp.Concat, exp.Replace, exp.RegexpReplace,
    exp.RegexpLike, exp.RegexpFullMatch, exp.RegexpExtract, exp.StartsWith, exp.SplitPart, exp.TimestampTrunc,
    exp.DateTrunc, exp.Extract, exp.Year, exp.Quarter, exp.Month, exp.Week, exp.Day, exp.DayOfMonth, exp.DayOfWeek,
    exp.DayOfYear, exp.DateDiff, exp.DateAdd, exp.DateSub, exp.TimeToStr, exp.StrToTime, exp.TsOrDsToDate, exp.Date,
)  # fmt: skip
"""Functions of one row, which always give the same."""

AGGREGATES: tuple[type, ...] = (
    exp.Count, exp.CountIf, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Median, exp.Variance, exp.VariancePop, exp.Stddev,
    exp.StddevSamp, exp.StddevPop, exp.ArgMax, exp.ArgMin, exp.LogicalAnd, exp.LogicalOr,
)  # fmt: skip
"""Functions of several rows; whether these are of one unit is looked at elsewhere."""

WINDOWS: tuple[type, ...] = (
    exp.RowNumber, exp.Rank, exp.DenseRank, exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue,
)  # fmt: skip

ALLOWED = frozenset({*STRUCTURE, *OPERATORS, *FUNCTIONS, *AGGREGATES, *WINDOWS})

SYSTEM = ("information_schema", "pg_catalog", "system", "temp")
"""Schemas that tell about tables, such as how many rows they have."""


def strangers(tree: Node) -> Iterator[str]:
    """What is not on the list, or stands where it must not, in words."""
    for node in tree.walk():
        if isinstance(node, exp.Table):
            yield from _table(node)
        elif isinstance(node, exp.Exists | exp.Any | exp.All | exp.Lateral) or _loose(node):
            yield "a sub-query outside of FROM looks at rows that its own row was not joined with; join them instead"
        elif isinstance(node, exp.Join) and node.method:
            yield f"{node.method} JOIN does not say which rows belong together; write JOIN ... USING (...)"
        elif isinstance(node, exp.With) and node.args.get("recursive"):
            yield "WITH RECURSIVE looks at rows again and again"
        elif type(node) not in ALLOWED:
            yield f"{_called(node)} is not among what a view may use"


def _table(node: Node) -> Iterator[str]:
    name = node.name.casefold()
    if not isinstance(node.this, exp.Identifier):
        yield f"{_called(node.this)} in FROM is no table of the file"
    elif node.db.casefold() in SYSTEM or name.startswith(("duckdb_", "pragma_", "sqlite_", "pg_")):
        yield f"{node.name} tells about tables, and is none of the file's own"


def _loose(node: Node) -> bool:
    """Whether it is a query that is no table in FROM."""
    return isinstance(node, exp.Query) and not _in_from(node)


def _in_from(query: Node) -> bool:
    """Whether a query is the whole view, a part of a UNION, a WITH, or a table in FROM."""
    holder = query.parent
    if isinstance(query, exp.Subquery) and isinstance(holder, exp.From | exp.Join | exp.Union):
        return True
    if isinstance(holder, exp.Subquery):
        return _in_from(holder)
    return holder is None or isinstance(holder, exp.CTE | exp.Union)


def _called(node: Node) -> str:
    """A function by its name, anything else by its kind."""
    if isinstance(node, exp.Anonymous):
        return str(node.name).upper()
    return str(node.sql_name() if isinstance(node, exp.Func) else node.key.upper())
