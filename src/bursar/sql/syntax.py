"""The syntax tree: the allow-list of every node and argument that a question may have, and sub-selects, opened.

Sub-selects in FROM, and WITH, are opened where they only choose rows, columns and groups, so that one SELECT is left.
"""

from __future__ import annotations

from functools import partial
from operator import is_
from typing import TypeAlias

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from bursar.errors import QueryError
from bursar.lazy_dataclass import dataclass
from bursar.sql.names import Name
from bursar.sql.tokens import MOST_KEYS, NO_JOINS

Node: TypeAlias = exp.Expression
"""A node of sqlglot's syntax tree."""

COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)

REMARKS = "remarks"
"""Where a tree keeps what an answer says about how its question was read."""

AT_LEAST = "AT_LEAST"
"""The one function of our own: AT_LEAST(2, condition, condition, condition)."""

OWN_FUNCTIONS = (AT_LEAST, "DP_INTERVAL_LOW", "DP_INTERVAL_HIGH", "DECLARED_MIN", "DECLARED_MAX")
"""Functions that no database has: a condition, the ends of the error bar of a number, and declared bounds."""

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
    exp.Distinct: frozenset({"expressions"}),  # COUNT(DISTINCT x) only
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
    exp.TryCast: frozenset({"this", "to", "safe"}),
    exp.DataType: frozenset({"this", "expressions"}),
    exp.DataTypeParam: frozenset({"this"}),
    **dict.fromkeys((exp.Mod, exp.Pow, exp.SafeDivide), _BINARY),
    **dict.fromkeys((exp.Corr, exp.CovarPop, exp.CovarSamp, exp.RegrSlope, exp.RegrIntercept, exp.RegrR2), _BINARY),
    **dict.fromkeys((exp.Left, exp.Right, exp.StartsWith, exp.EndsWith, exp.Contains), _BINARY),
    **dict.fromkeys((exp.Abs, exp.Sqrt, exp.Ln, exp.Exp, exp.Sign, exp.Upper, exp.Lower, exp.Length), _UNARY),
    **dict.fromkeys((exp.Reverse, exp.DayOfWeekIso, exp.DayOfYear, exp.Week, exp.WeekOfYear), _UNARY),
    **dict.fromkeys((exp.Monthname, exp.Dayname, exp.TimeToUnix), _UNARY),
    exp.Log: _BINARY,
    **dict.fromkeys((exp.Round, exp.Floor), frozenset({"this", "decimals"})),
    exp.Ceil: _UNARY,
    **dict.fromkeys((exp.Greatest, exp.Least), frozenset({"this", "expressions", "ignore_nulls"})),
    exp.DPipe: frozenset({"this", "expression", "safe"}),
    exp.Concat: frozenset({"expressions", "safe", "coalesce"}),
    exp.Substring: frozenset({"this", "start", "length"}),
    exp.Trim: frozenset({"this", "position"}),
    exp.Replace: frozenset({"this", "expression", "replacement"}),
    exp.TimeToStr: frozenset({"this", "format"}),
    exp.DateDiff: frozenset({"this", "expression", "unit", "date_part_boundary"}),
    exp.LastDay: _UNARY,
    exp.SplitPart: frozenset({"this", "delimiter", "part_index"}),
    exp.StrPosition: frozenset({"this", "substr"}),
    **dict.fromkeys((exp.SimilarTo, exp.RegexpFullMatch), _BINARY),
    exp.RegexpLike: frozenset({"this", "expression", "flag"}),
    exp.RegexpReplace: frozenset({"this", "expression", "replacement", "modifiers", "single_replace"}),
    exp.DateFromParts: frozenset({"year", "month", "day"}),
    exp.Interval: frozenset({"this", "unit"}),
    **dict.fromkeys((exp.Min, exp.Max), _UNARY),
    **dict.fromkeys((exp.ArgMax, exp.ArgMin), _BINARY),
    exp.Window: frozenset({"this", "partition_by", "order", "spec", "over"}),
    exp.WindowSpec: frozenset({"kind", "start", "start_side", "end", "end_side"}),
    **dict.fromkeys((exp.RowNumber, exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist), frozenset()),
    exp.Ntile: _UNARY,
    **dict.fromkeys((exp.Lag, exp.Lead), frozenset({"this", "offset", "default"})),
    **dict.fromkeys((exp.FirstValue, exp.LastValue), _UNARY),
    exp.NthValue: frozenset({"this", "offset"}),
}

_CLAUSES: dict[str, tuple[TokenType | None, str]] = {
    "distinct": (TokenType.DISTINCT, "SELECT DISTINCT is not available; GROUP BY lists every value"),
    "joins": (
        TokenType.JOIN,
        NO_JOINS,
    ),
    "query": (TokenType.IN, "sub-selects are not available; list the values"),
    "totals": (TokenType.GROUP_BY, "WITH TOTALS is not available; ROLLUP adds a line for all rows"),
    "sample": (TokenType.TABLE_SAMPLE, "sampling is not available; every row is counted"),
    "columns": (None, "the columns of a table cannot be renamed"),
    "symmetric": (None, "BETWEEN SYMMETRIC is not available; write the smaller bound first"),
    "field": (None, "IN takes a list of values in brackets"),
    "limit_options": (None, "LIMIT takes a whole number from 1 on"),
    "into": (TokenType.INTO, "a question writes nothing"),
    "locks": (TokenType.FOR, "a question locks nothing"),
}

_UNKNOWN: dict[type, str] = {
    exp.Count: "COUNT takes * or one column",
    exp.DataType: "of casts, those to numbers, text and DATE are available",
    exp.Star: "a * stands for all columns, or around groups for all but those in EXCLUDE; name the columns you want",
}
"""What is wrong with a node that has an argument of no clause above."""

_NO_ARITHMETIC = "arithmetic is not available; compare a column with a constant"

_TILDE = "~ means a part of the text to some databases and the whole of it to others; write REGEXP_MATCHES"

_REASONS: tuple[tuple[tuple[type, ...], str], ...] = (
    ((exp.Distinct,), "of DISTINCT, COUNT(DISTINCT column) is available"),
    ((exp.SetOperation,), "of operations on sets, UNION ALL is available; else ask one question at a time"),
    ((exp.Subquery, exp.Select, exp.Exists), "sub-selects are not available"),
    ((exp.Any, exp.All), "ANY and ALL are not available; list the values with IN"),
    ((exp.Glob, exp.Escape), "of patterns, LIKE, ILIKE without ESCAPE, SIMILAR TO and REGEXP_MATCHES are available"),
    ((exp.RegexpLike, exp.RegexpILike), _TILDE),
    ((exp.Case, exp.If), "CASE stands inside of SUM, AVG or COUNT; here, use AND, OR and NOT"),
    (FLAGS, "GROUPING is selected, ordered by, or compared with a number in HAVING"),
    (OF_ONE_COLUMN, "this can be grouped by; in a condition, compare the column itself with constants"),
    ((exp.IntDiv, exp.Mod), "whole-number division is not available; / gives the ratio"),
    ((exp.Coalesce, exp.Nullif), "COALESCE is for sums; NULL is a group of its own, and a condition says IS NULL"),
    ((exp.CurrentDate, exp.CurrentTimestamp, exp.Interval), "days are written out, as in DATE '2024-12-31'"),
    (
        (exp.Hour, exp.Minute, exp.Second),
        "days are known, and no times of day; the data owner can put a column of hours beside them",
    ),
    ((exp.Fetch,), "FETCH is not available; write LIMIT"),
    ((exp.ArrayOverlaps,), "&& is not available; write AND"),
    ((exp.Placeholder, exp.Parameter), "this question has parameters, and there are no values for them"),
    ((exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg, exp.DPipe), _NO_ARITHMETIC),
)


_SIGNS = ("~", "!~")

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
        if type(node) not in ALLOWED or (isinstance(node, exp.Anonymous) and node.name.upper() not in OWN_FUNCTIONS):
            word = _word(node, tokens)
            raise QueryError(reason(node, word), position=position(node) if word is None else word.start)
        if isinstance(node, exp.RegexpLike) and (signs := [token for token in tokens if str(token.text) in _SIGNS]):
            raise QueryError(_TILDE, position=signs[0].start)
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


def check_keys(group: Node) -> None:
    """Refuse to group by very many items: all of them are compared with each other."""
    if len(group.expressions) > MOST_KEYS:
        raise QueryError(f"GROUP BY takes at most {MOST_KEYS} items", position=position(group))


def position(node: Node, otherwise: Node = None) -> int:
    """The offset of the first word of a node; where it kept no place, that of the nearest node around it."""
    around, searched = node if isinstance(node, exp.Expression) else otherwise, None
    while around is not None:
        nodes = around.walk(prune=partial(is_, searched))  # what was searched has no place in it
        starts = [inner.meta["start"] for inner in nodes if "start" in inner.meta]
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
    if (
        isinstance(node, exp.Subquery)
        and node.find_ancestor(exp.Where) is not None
        and node.find(exp.AggFunc) is not None
    ):
        return "rows are chosen by constants; ask what is in the brackets first, and write its number here"
    for kinds, why in _REASONS:
        if isinstance(node, kinds):
            return why
    name = node.name if isinstance(node, exp.Anonymous) else node.sql_name() if isinstance(node, exp.Func) else node.key
    title = str(name if word is None else word.text).upper()
    if isinstance(node, exp.AggFunc):
        return f"{title} is not available; COUNT, SUM, AVG, STDDEV and QUANTILE_CONT are"
    if isinstance(node, exp.Func) and not isinstance(node, exp.Connector):
        return f"functions are not available: {title}"
    return f"this is not available in a question: {title}"


def case_parts(node: Node) -> tuple[list[tuple[Node, Node]], Node | None, Node | None]:
    """CASE in both of its forms, and IF: each WHEN with its THEN; the ELSE; and what a CASE compares, if it does."""
    if isinstance(node, exp.If):
        return [(node.this, node.args["true"])], node.args.get("false"), None
    pairs = [(branch.this, branch.args["true"]) for branch in node.args["ifs"]]
    return pairs, node.args.get("default"), node.args.get("this")


def read_name(node: Node) -> Name:
    """A name as it was typed, with its place in the text."""
    return Name(text=str(node.this), quoted=bool(node.args.get("quoted")), position=position(node))


def bare(node: Node) -> Node:
    """The node without brackets around it."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def without_alias(item: Node) -> Node:
    """A selected item without brackets around it, and without the name that it is given."""
    return bare(item.this if isinstance(item, exp.Alias) else item)


def plain_copy(node: Node) -> Node:
    """A copy that two texts of the same thing agree on: without qualifiers, quotes and brackets."""

    def change(part: Node) -> Node:
        if isinstance(part, exp.Column) and part.args.get("table") is not None:
            return exp.Column(this=part.this.copy())
        if isinstance(part, exp.Identifier):
            name, quoted = str(part.this), bool(part.args.get("quoted"))
            return exp.to_identifier(name if quoted else name.casefold(), quoted=quoted and name != name.casefold())
        return part.this.copy() if isinstance(part, exp.Paren) else part

    # A second time, since what is put in is not looked into; in place, since every copy takes as long as all the rest.
    return bare(node).copy().transform(change, copy=False).transform(change, copy=False)


def operands(node: Node, kind: type[exp.Connector]) -> list[Node]:
    """All operands of a chain of ANDs, or of ORs, from left to right; long chains are deep trees to the left."""
    waiting: list[Node] = [node]
    leaves: list[Node] = []
    while waiting:
        operand = bare(waiting.pop())
        if type(operand) is kind:
            waiting += [operand.expression, operand.this]
        else:
            leaves.append(operand)
    return leaves


_INNER = frozenset({"expressions", "from_", "where"})
_SIMPLE = "a sub-select in FROM may choose rows, columns and groups of values, and nothing else"

BESIDE = "beside"
"""Where a statement keeps the names that its sub-selects give to something beside *, which has names of its own."""

COLUMN = "column"
"""What marks a name in ORDER BY that is a column of the table, whatever else is called so."""

_LISTS = (exp.Group, exp.Paren, exp.Tuple, exp.Rollup, exp.Cube, exp.GroupingSets)


def open_subselects(tree: Node) -> Node:
    """The statement without sub-selects in FROM; as it is, where there are none.

    Guarantees: it asks for the same rows, and columns keep the names that they are shown by.
    """
    if not isinstance(tree, exp.Select) or (tree.args.get("with_") is None and not _nested(tree)):
        return tree
    tree = tree.copy()
    shared: list[tuple[Name, Node]] = []
    clause = tree.args.get("with_")
    for select in [] if clause is None else clause.expressions:
        if clause.args.get("recursive") or select.args["alias"].args.get("columns"):
            raise QueryError(
                "WITH names plain sub-selects, without RECURSIVE or a list of columns", position=position(select)
            )
        shared.append((read_name(select.args["alias"].this), _opened(select.this, shared)))
    tree.set("with_", None)
    return _open(tree, shared)


def innermost_select(tree: Node) -> Node:
    """The sub-select that reads the table itself."""
    while isinstance(tree, exp.Select):
        clause, source = tree.args.get("with_"), tree.args.get("from_")
        inner = clause.expressions[0].this if clause is not None else None if source is None else source.this
        inner = inner.this if isinstance(inner, exp.Subquery) else inner
        if not isinstance(inner, exp.Select):
            break
        tree = inner
    return tree


def _is_group(item: Node) -> bool:
    """Whether a named item is made of columns of one row each."""
    named = isinstance(item, exp.Alias) and item.find(exp.Column) is not None
    return named and item.find(exp.AggFunc, exp.Query, exp.Star, exp.Window) is None


def _nested(tree: Node) -> bool:
    source = tree.args.get("from_")
    return source is not None and isinstance(source.this, exp.Subquery)


def _open(tree: Node, shared: list[tuple[Name, Node]]) -> Node:
    """The statement with the sub-select in its FROM, if there is one, put into it."""
    source = tree.args.get("from_")
    inner, called = None, None
    if source is not None and isinstance(source.this, exp.Subquery):
        inner, called = _opened(source.this.this, shared), source.this.args.get("alias")
    elif source is not None and isinstance(source.this, exp.Table) and isinstance(source.this.this, exp.Identifier):
        table = read_name(source.this.this)
        inner = next((select for name, select in reversed(shared) if table.agrees(name)), None)
        called = source.this.args.get("alias") or exp.TableAlias(this=source.this.this)
    if inner is None:
        return tree
    columns = _Columns.of(inner)
    _substitute(tree, columns, None if called is None else read_name(called.this))
    items = [inner.expressions if item.is_star else [item] for item in tree.expressions]
    tree.set("expressions", [item.copy() for some in items for item in some])
    tree.meta[BESIDE] = [*inner.meta.get(BESIDE, ()), *columns.beside()]
    where, own_where = inner.args.get("where"), tree.args.get("where")
    parts = [exp.paren(clause.this.copy(), copy=False) for clause in (where, own_where) if clause is not None]
    tree.set("where", exp.Where(this=exp.and_(*parts, copy=False)) if parts else None)
    tree.set("from_", inner.args["from_"].copy())
    return tree


def _opened(inner: Node, shared: list[tuple[Name, Node]]) -> Node:
    """A sub-select that reads the table itself, and only chooses rows, columns and groups of values."""
    inner = bare(inner)
    if not isinstance(inner, exp.Select):
        raise QueryError(_SIMPLE, position=position(inner))
    for name, value in inner.args.items():
        if value and name not in _INNER:
            raise QueryError(f"{_SIMPLE}; the rest belongs into the question around it", position=position(inner))
    if inner.args.get("from_") is None:
        raise QueryError("a sub-select says FROM which table", position=position(inner))
    for item in inner.expressions:
        column = item.this if isinstance(item, exp.Alias) else item
        plain = isinstance(column, exp.Star | exp.Column) and not column.args.get("db")
        if any(any(star.args.values()) for star in column.find_all(exp.Star)) or not (plain or _is_group(item)):
            raise QueryError(f"{_SIMPLE}; compute in the question around it", position=position(item))
    inner = _open(inner.copy(), shared)
    alias = inner.args["from_"].this.args.get("alias") if isinstance(inner.args["from_"].this, exp.Table) else None
    table = alias.this if alias is not None else inner.args["from_"].this.this
    for column in inner.find_all(exp.Column):
        qualifier = column.args.get("table")
        if qualifier is not None and isinstance(table, exp.Identifier):
            if not read_name(qualifier).agrees(read_name(table)):
                raise QueryError(f"there is no table {qualifier.name} in this sub-select", position=position(qualifier))
            column.set("table", None)
    if alias is not None:
        inner.args["from_"].this.set("alias", None)
    return inner


@dataclass(frozen=True)
class _Columns:
    """The columns and groups that a sub-select hands on; all columns of the table where it selects *."""

    named: tuple[tuple[Name, Node], ...]
    everything: bool

    @staticmethod
    def of(inner: Node) -> _Columns:
        named: list[tuple[Name, Node]] = []
        for item in inner.expressions:
            column = bare(item.this if isinstance(item, exp.Alias) else item)
            if not column.is_star and (not isinstance(column, exp.Column) or isinstance(column.this, exp.Identifier)):
                shown = item.args["alias"] if isinstance(item, exp.Alias) else column.this
                named.append((read_name(shown), column))
        for number, (name, column) in enumerate(named):
            if any(name.agrees(other) for other, _ in named[:number]):
                raise QueryError(f"two columns of the sub-select are called {name.text}", position=position(column))
        return _Columns(tuple(named), any(item.find(exp.Star) is not None for item in inner.expressions))

    def beside(self) -> list[Name]:
        """The names that something other than the column of that name has beside the whole table."""
        shown = [
            (name, isinstance(item, exp.Column) and read_name(item.this).agrees(name)) for name, item in self.named
        ]
        return [name for name, same in shown if self.everything and not same]

    def find(self, name: Name) -> Node | None:
        return next((column for shown, column in self.named if name.agrees(shown)), None)


def _substitute(tree: Node, columns: _Columns, called: Name | None) -> None:
    """Every column of the statement as the sub-select has it; a selected one keeps the name that it had."""
    outputs = [read_name(item.args["alias"]) for item in tree.expressions if isinstance(item, exp.Alias)]
    called_so, grouped = {name.text.casefold() for name in outputs}, _grouped(tree)
    for column in list(tree.find_all(exp.Column)):
        if not isinstance(column.this, exp.Identifier) or column.find_ancestor(exp.From) is not None:
            continue
        qualifier, name = column.args.get("table"), read_name(column.this)
        if qualifier is not None and (called is None or not read_name(qualifier).agrees(called)):
            raise QueryError(f"there is no table {qualifier.name} in this question", position=position(qualifier))
        column.set("table", None)
        inner = columns.find(name)
        if qualifier is None and name.text.casefold() in called_so and _is_output(column, grouped):
            continue
        if column.find_ancestor(exp.Order) is not None:
            column.meta[COLUMN] = True
        if inner is None:
            if columns.everything or (
                column.find_ancestor(exp.Group, exp.Having, exp.Order)
                and any(name.agrees(output) for output in outputs)
            ):
                continue
            raise QueryError(f"the sub-select does not hand on a column {name.text}", position=position(column))
        selected = column.parent is tree and column.arg_key == "expressions"
        if not isinstance(inner, exp.Column):
            column.replace(exp.alias_(inner.copy(), column.this.copy()) if selected else inner.copy())
            continue
        identifier = inner.this.copy()
        identifier.meta["start"] = position(column)
        if selected and not read_name(identifier).agrees(name):
            column.replace(exp.alias_(exp.Column(this=identifier), column.this.copy()))
        else:
            column.set("this", identifier)


def _grouped(tree: Node) -> list[Name]:
    """The columns that rows are grouped by as they are."""
    items = [bare(item.this if isinstance(item, exp.Alias) else item) for item in tree.expressions]
    group = tree.args.get("group")
    listed = (
        []
        if group is None
        else [listed_column for listed_column in group.find_all(exp.Column) if isinstance(listed_column.parent, _LISTS)]
    )
    columns = [item for item in (*items, *listed) if isinstance(item, exp.Column)]
    return [read_name(column.this) for column in columns if isinstance(column.this, exp.Identifier)]


def _is_output(column: Node, grouped: list[Name]) -> bool:
    """Whether the name of an output means that output, and not a column of the sub-select that is called the same.

    In ORDER BY it does where it stands alone; in HAVING outside of aggregates, unless rows are grouped by the column.
    """
    parent = column.parent
    while isinstance(parent, exp.Paren):
        parent = parent.parent
    if isinstance(parent, exp.Ordered):
        return True
    name = read_name(column.this)
    inside = isinstance(column.find_ancestor(exp.Having, exp.AggFunc, *FLAGS), exp.Having)
    return inside and not any(name.agrees(other) for other in grouped)
