"""The allow-list: every kind of node, and every argument of it, that a question may have. The rest is refused."""

from __future__ import annotations

from functools import partial
from operator import is_
from typing import Any

from sqlglot import exp
from sqlglot.tokens import TokenType

from bursar.errors import QueryError
from bursar.sql.tokens import NO_JOINS, Token

Node = Any
"""A node of sqlglot's syntax tree."""

COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)

AT_LEAST = "AT_LEAST"
"""The one function of our own: AT_LEAST(2, condition, condition, condition)."""

OF_ONE_COLUMN = (
    exp.WidthBucket,
    exp.TimestampTrunc,
    exp.DateTrunc,
    exp.Extract,
    exp.Floor,
    exp.Year,
    exp.Quarter,
    exp.Month,
    exp.Day,
    exp.DayOfMonth,
    exp.DayOfWeek,
)
"""Functions that rows can be grouped by."""

FLAGS = (exp.Grouping, exp.GroupingId)
"""What says which keys a line of ROLLUP, CUBE or GROUPING SETS puts together."""

_BINARY = frozenset({"this", "expression"})
_UNARY = frozenset({"this"})

ALLOWED: dict[type, frozenset[str]] = {
    exp.Select: frozenset({"expressions", "from_", "where", "group", "having", "order", "limit", "offset"}),
    exp.From: _UNARY,
    exp.Table: frozenset({"this", "alias"}),
    exp.TableAlias: _UNARY,
    exp.Where: _UNARY,
    exp.Group: frozenset({"expressions"}),
    **dict.fromkeys((exp.Rollup, exp.Cube, exp.GroupingSets, exp.Tuple), frozenset({"expressions"})),
    **dict.fromkeys(FLAGS, frozenset({"expressions"})),
    exp.Having: _UNARY,
    exp.Order: frozenset({"expressions"}),
    exp.Ordered: frozenset({"this", "desc", "nulls_first"}),
    **dict.fromkeys((exp.Limit, exp.Offset), frozenset({"expression"})),
    exp.Alias: frozenset({"this", "alias"}),
    exp.Column: frozenset({"this", "table"}),
    exp.Identifier: frozenset({"this", "quoted"}),
    exp.Star: frozenset(),
    exp.Count: frozenset({"this", "big_int"}),
    exp.CountIf: _UNARY,
    **dict.fromkeys((exp.Sum, exp.Avg, exp.Median), _UNARY),
    **dict.fromkeys((exp.Variance, exp.VariancePop, exp.Stddev, exp.StddevSamp, exp.StddevPop), _UNARY),
    exp.Quantile: frozenset({"this", "quantile"}),
    **dict.fromkeys((exp.PercentileCont, exp.PercentileDisc), _BINARY),
    **dict.fromkeys(OF_ONE_COLUMN, _UNARY),
    exp.WidthBucket: frozenset({"this", "min_value", "max_value", "num_buckets"}),
    **dict.fromkeys((exp.TimestampTrunc, exp.DateTrunc), frozenset({"this", "unit"})),
    exp.Extract: _BINARY,
    exp.Var: _UNARY,
    exp.IntDiv: _BINARY,
    exp.Case: frozenset({"this", "ifs", "default"}),
    exp.If: frozenset({"this", "true", "false"}),
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul, exp.Div), _BINARY),
    exp.Nullif: _BINARY,
    exp.Coalesce: frozenset({"this", "expressions"}),
    exp.Filter: _BINARY,
    exp.Anonymous: frozenset({"this", "expressions"}),  # AT_LEAST only
    exp.And: _BINARY,
    exp.Or: _BINARY,
    exp.Not: _UNARY,
    exp.Paren: _UNARY,
    **dict.fromkeys(COMPARISONS, _BINARY),
    exp.NullSafeEQ: _BINARY,
    exp.NullSafeNEQ: _BINARY,
    exp.Between: frozenset({"this", "low", "high"}),
    exp.In: frozenset({"this", "expressions"}),
    **dict.fromkeys((exp.Like, exp.ILike), frozenset({"this", "expression", "negate"})),
    exp.Is: _BINARY,
    exp.Null: frozenset(),
    exp.Boolean: _UNARY,
    exp.Literal: frozenset({"this", "is_string"}),
    exp.Neg: _UNARY,
    exp.Cast: frozenset({"this", "to"}),  # DATE '2024-01-01', and COUNT(*)::DOUBLE
    exp.DataType: _UNARY,
}

_CLAUSES: dict[str, tuple[TokenType | None, str]] = {
    "distinct": (TokenType.DISTINCT, "SELECT DISTINCT is not available; GROUP BY lists every value"),
    "joins": (
        TokenType.JOIN,
        NO_JOINS,
    ),
    "qualify": (TokenType.QUALIFY, "QUALIFY is not available; HAVING chooses among the groups"),
    "all": (TokenType.GROUP_BY, "GROUP BY ALL is not available; name the columns"),
    "query": (TokenType.IN, "sub-selects are not available; list the values"),
    "totals": (TokenType.GROUP_BY, "WITH TOTALS is not available; ROLLUP adds a line for all rows"),
    "sample": (TokenType.TABLE_SAMPLE, "sampling is not available; every row is counted"),
    "db": (None, "a table is named without its schema"),
    "columns": (None, "the columns of a table cannot be renamed"),
    "symmetric": (None, "BETWEEN SYMMETRIC is not available; write the smaller bound first"),
    "field": (None, "IN takes a list of values in brackets"),
    "limit_options": (None, "LIMIT takes a whole number from 1 on"),
    "into": (TokenType.INTO, "a question writes nothing"),
    "locks": (TokenType.FOR, "a question locks nothing"),
}

_UNKNOWN: dict[type, str] = {
    exp.Count: "COUNT takes * or one column",
    exp.DataType: "of casts, those to DOUBLE, FLOAT and DATE are available",
}
"""What is wrong with a node that has an argument of no clause above."""

_NO_ARITHMETIC = "arithmetic is not available; compare a column with a constant"

_REASONS: tuple[tuple[tuple[type, ...], str], ...] = (
    ((exp.Distinct,), "DISTINCT is not available; GROUP BY the column and count the groups"),
    ((exp.SetOperation,), "UNION, INTERSECT and EXCEPT are not available; ask one question at a time"),
    ((exp.Subquery, exp.Select, exp.Exists), "sub-selects are not available"),
    ((exp.Any, exp.All), "ANY and ALL are not available; list the values with IN"),
    ((exp.SimilarTo, exp.RegexpLike, exp.Glob, exp.Escape), "of patterns, LIKE and ILIKE without ESCAPE are available"),
    ((exp.Case, exp.If), "CASE stands inside of SUM, AVG or COUNT; here, use AND, OR and NOT"),
    ((exp.Window,), "OVER is not available"),
    (FLAGS, "GROUPING is selected, ordered by, or compared with a number in HAVING"),
    ((exp.Min, exp.Max), "the least and greatest values would show single people; ask for QUANTILE_CONT(x, 0.95)"),
    ((exp.WithinGroup,), "WITHIN GROUP is not available; write QUANTILE_CONT(x, 0.5)"),
    (OF_ONE_COLUMN, "this can be grouped by; in a condition, compare the column itself with constants"),
    ((exp.IntDiv, exp.Mod), "whole-number division is not available; / gives the ratio"),
    ((exp.Round,), "ROUND is not available; round the answers, which costs nothing"),
    ((exp.Coalesce, exp.Nullif), "COALESCE is for sums; NULL is a group of its own, and a condition says IS NULL"),
    ((exp.CurrentDate, exp.CurrentTimestamp, exp.Interval), "days are written out, as in DATE '2024-12-31'"),
    ((exp.Fetch,), "FETCH is not available; write LIMIT"),
    ((exp.ArrayOverlaps,), "&& is not available; write AND"),
    ((exp.Placeholder, exp.Parameter), "parameters are not available; write the value"),
    ((exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg, exp.DPipe), _NO_ARITHMETIC),
)


_KEYWORDS: tuple[tuple[tuple[type, ...], TokenType], ...] = (
    ((exp.Subquery, exp.Select, exp.Exists), TokenType.SELECT),
    ((exp.Any,), TokenType.ANY),
    ((exp.All,), TokenType.ALL),
    ((exp.SetOperation,), TokenType.UNION),
    ((exp.Distinct,), TokenType.DISTINCT),
    ((exp.Fetch,), TokenType.FETCH),
    ((exp.ArrayOverlaps,), TokenType.DAMP),
)
"""The word that a refused node begins with, where the tree has kept the place of the words behind it only."""


def check_allowed(tree: Node, tokens: list[Token]) -> None:
    """Refuse the first node, or argument of a node, that is not on the list; nothing unknown is ever skipped."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if type(node) not in ALLOWED or (isinstance(node, exp.Anonymous) and node.name.upper() != AT_LEAST):
            word = _word(node, tokens)
            raise QueryError(reason(node, word), position=position(node) if word is None else word.start)
        parts: list[Node] = []
        for name, value in node.args.items():
            if value is None or value is False or value == [] or value == "":
                continue
            values = value if isinstance(value, list) else [value]
            if name not in ALLOWED[type(node)]:
                unknown = _UNKNOWN.get(type(node), f"{name} is not available")
                keyword, why = _CLAUSES.get(name, (None, unknown))
                words = [token.start for token in tokens if token.token_type is keyword]
                raise QueryError(why, position=words[0] if words else position(values[0], node))
            parts += [part for part in values if isinstance(part, exp.Expression)]
        waiting += reversed(parts)


def position(node: Node, otherwise: Node = None) -> int:
    """The offset of the first word of a node; where it kept no place, that of the nearest node around it."""
    around, searched = node if isinstance(node, exp.Expression) else otherwise, None
    while around is not None:
        found = around.walk(prune=partial(is_, searched))  # what was searched has no place in it
        starts = [inner.meta["start"] for inner in found if "start" in inner.meta]
        if starts:
            return int(min(starts))
        around, searched = around.parent, around
    return -1


def _word(node: Node, tokens: list[Token]) -> Token | None:
    """The word that a refused node begins with, if it can be found."""
    place = position(node)
    for kinds, keyword in _KEYWORDS:
        if isinstance(node, kinds):
            sides = [token for token in tokens if token.token_type is keyword]
            before = [token for token in sides if token.start < place]
            return before[-1] if before else sides[0] if sides else None
    if isinstance(node, exp.Func) and not any("start" in inner.meta for inner in node.walk()):
        return next((token for token in tokens if str(token.text).upper() == node.sql_name()), None)
    for number, token in enumerate(tokens):
        if token.start == place and "start" in node.meta:
            return token
        if token.start == place and number > 1 and tokens[number - 1].token_type is TokenType.L_PAREN:
            return tokens[number - 2] if isinstance(node, exp.Func) else None
    return None


def reason(node: Node, word: Token | None = None) -> str:
    """Why a node cannot stand where it stands."""
    if isinstance(node, exp.Anonymous) and node.name.upper() == AT_LEAST:
        return "AT_LEAST is a condition, for WHERE and FILTER"
    if isinstance(node, exp.IntDiv | exp.Mod) and node.find_ancestor(exp.Where, exp.Case) is not None:
        return _NO_ARITHMETIC
    for kinds, known in _REASONS:
        if isinstance(node, kinds):
            return known
    own = node.name if isinstance(node, exp.Anonymous) else node.sql_name() if isinstance(node, exp.Func) else node.key
    title = str(own if word is None else word.text).upper()
    if isinstance(node, exp.AggFunc):
        return f"{title} is not available; COUNT, SUM, AVG, STDDEV and QUANTILE_CONT are"
    if isinstance(node, exp.Func) and not isinstance(node, exp.Connector):
        return f"functions are not available: {title}"
    return f"this is not available in a question: {title}"
