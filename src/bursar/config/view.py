"""source.view: the data owner's SELECT over the tables of a DuckDB file, whose rows are asked about.

The privacy statement rests on a promise of the data owner: each row of the view is made from rows of the one unit that
it names, and from public tables. Which tables are public only the data owner knows. What breaks the promise whatever
the tables hold is found here: rows that are there or not, or differ, because of how many others there are; and
whatever is not known to look at its own row alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from bursar.config.section import Section, shown
from bursar.config.sections import Sealing
from bursar.core.domain import Unit

EXAMPLE = 'view = "SELECT person, sex, cost FROM visits JOIN people USING (person)"'
LONGEST_VIEW = 20_000

_PARTS = (
    ((exp.Limit, exp.Fetch), "LIMIT"),
    ((exp.Offset,), "OFFSET"),
    ((exp.TableSample,), "sampling"),
    ((exp.Rand,), "RANDOM"),
)
"""What lets the number or the order of all rows decide about one."""


def view(source: Section, location: str | None, unit: Unit, sealing: Sealing) -> str:
    """The text of the view."""
    text = source.entries["view"]
    if not isinstance(text, str) or not 0 < len(text) <= LONGEST_VIEW:
        source.refuse("view", reason=f"source.view must be SQL in quotes, not {shown(text)}", hint=EXAMPLE)
    if location is None or PurePath(location).suffix.lower() not in (".duckdb", ".db"):
        reason = f"source.view needs the tables of a DuckDB file, and {shown(location)} is none"
        source.refuse("view", reason=reason, hint='path = "clinic.duckdb"')
    if unit.column is None:
        reason = "source.view can give one person several rows, so privacy.unit must be a column of it"
        source.refuse("view", reason=reason, hint='unit = { column = "person" } under [privacy]')
    if sealing.growing:
        reason = "source.view goes with data that are complete: rows are added to a table"
        source.refuse("view", reason=reason, hint='seal = "all" under [partition]')
    from bursar.core.extensions.declared_view import one_select  # which imports DuckDB

    with source.located("view"):
        one_select(text)
    for problem in _problems(text, unit.column):
        hint = f"leave it out: every row of the view depends on rows of one {unit.column} and on public tables only"
        source.refuse("view", reason=f"source.view: {problem}", hint=hint)
    return text


def _problems(text: str, unit: str) -> Iterator[str]:
    """What makes a row depend on other units, as far as the text shows it."""
    try:
        tree = sqlglot.parse_one(text, dialect="duckdb")
    except (SqlglotError, RecursionError):
        yield "it is written in a way that cannot be checked; write it more plainly"
        return
    for kinds, word in _PARTS:
        if tree.find(*kinds) is not None:
            yield f"{word} makes the rows of one {unit} depend on those of others"
    if any(join.method == "POSITIONAL" for join in tree.find_all(exp.Join)):
        yield f"a POSITIONAL JOIN puts rows of one {unit} beside whatever others leave there"
    if any(column.name.casefold() == "rowid" for column in tree.find_all(exp.Column)):
        yield "rowid says how many rows of others there are"
    for node in tree.find_all(exp.Window):
        if not _has(unit, node.args.get("partition_by") or [], node):
            yield f"a window looks at rows of others unless it is PARTITION BY {unit}"
    for node in tree.find_all(exp.AggFunc):
        group = node.parent_select.args.get("group") if node.parent_select is not None else None
        if node.find_ancestor(exp.Window) is None and not _has(unit, group.expressions if group else [], node):
            yield f"{node.sql_name()} is over rows of others unless it is GROUP BY {unit}"
    for node in tree.find_all(exp.Distinct):
        on = node.args.get("on")
        if on is not None and not _has(unit, on.expressions, node):
            yield f"DISTINCT ON chooses among rows of others unless {unit} is in it"
    yield from strangers(tree)


def _has(unit: str, keys: list[exp.Expression], node: exp.Expression) -> bool:
    """Whether the unit is among the keys: by its name, or as what the same SELECT calls so."""
    select = node.find_ancestor(exp.Select)
    named = [] if select is None else [output.this for output in select.expressions if output.alias_or_name == unit]
    return any(isinstance(key, exp.Column) and (key.name.casefold() == unit.casefold() or key in named) for key in keys)


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


def strangers(tree: exp.Expression) -> Iterator[str]:
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


def _table(node: exp.Expression) -> Iterator[str]:
    name = node.name.casefold()
    if not isinstance(node.this, exp.Identifier):
        yield f"{_called(node.this)} in FROM is no table of the file"
    elif node.db.casefold() in SYSTEM or name.startswith(("duckdb_", "pragma_", "sqlite_", "pg_")):
        yield f"{node.name} tells about tables, and is none of the file's own"


def _loose(node: exp.Expression) -> bool:
    """Whether it is a query that is no table in FROM."""
    return isinstance(node, exp.Query) and not _in_from(node)


def _in_from(query: exp.Expression) -> bool:
    """Whether a query is the whole view, a part of a UNION, a WITH, or a table in FROM."""
    holder = query.parent
    if isinstance(query, exp.Subquery) and isinstance(holder, exp.From | exp.Join | exp.Union):
        return True
    if isinstance(holder, exp.Subquery):
        return _in_from(holder)
    return holder is None or isinstance(holder, exp.CTE | exp.Union)


def _called(node: exp.Expression) -> str:
    """A function by its name, anything else by its kind."""
    if isinstance(node, exp.Anonymous):
        return str(node.name).upper()
    return str(node.sql_name() if isinstance(node, exp.Func) else node.key.upper())
