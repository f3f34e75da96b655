"""Statements as sqlglot's trees: reading them within limits, their parameters, constants and names."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import ParseError
from sqlglot.tokens import Token, TokenType

from bursar.errors import QueryError
from bursar.service.wire import types
from bursar.service.wire.failures import SYNTAX, UNAVAILABLE, WireError, refusal
from bursar.service.wire.types import PgType, PgValue
from bursar.sql import parameters
from bursar.sql.accuracy import cut_accuracy
from bursar.sql.syntax import Node

DEEPEST, MOST_TOKENS = 60, 12_000
MOST_BARE_JOINS, MOST_BRACKETS, DEEPEST_TYPES = 8, 200, 4
"""The parser takes exponential time for joins without ON and types inside of types, and the square for brackets."""


@dataclass(frozen=True)
class Parsed:
    """A statement as a tree, its accuracy clause as text, and its parameters in their order."""

    text: str
    tree: Node
    clause: str = ""
    says_goal: bool = False
    says_confidence: bool = False

    @property
    def parameters(self) -> int:
        """How many values it needs."""
        return max((int(node.name) for node in self.tree.find_all(exp.Parameter) if node.name.isdecimal()), default=0)


# -- text to tree ----------------------------------------------------------------------------------------------------

_TYPES = Postgres.Parser.TYPE_TOKENS
_GOALS = {"ERROR", "RELATIVE", "RMSE", "EPSILON", "RHO", "CONFIDENCE", "DISCOVERY"}


@functools.lru_cache(maxsize=128)
def parse_statement(text: str) -> Parsed:
    """The tree of a statement, within limits that keep the parser's time bounded; refused where there is none.

    Clients send the same texts again and again; nobody changes a tree that is kept.
    """
    try:
        return _parsed(text, Postgres())
    except WireError as refused:
        if refused.code != SYNTAX:
            raise
        try:  # what PostgreSQL does not know may be Bursar's own, such as // for whole-number division
            return _parsed(text, DuckDB())
        except WireError:
            raise refused from None


def _parsed(text: str, dialect: Dialect) -> Parsed:
    try:
        tokens = list(dialect.tokenize(text))
    except Exception as fault:  # the tokenizer is not ours
        raise WireError(SYNTAX, "the statement cannot be split into words") from fault
    _check(tokens)
    clause, says_goal, says_confidence = "", False, False
    hinted = any(comment.startswith("+") for token in tokens for comment in token.comments)
    goals = [
        word.token_type is TokenType.WITH and str(then.text).upper() in _GOALS
        for word, then in itertools.pairwise(tokens)
    ]
    if hinted or any(goals):
        try:
            accuracy = cut_accuracy(text, tokens)
        except QueryError as error:
            raise refusal(error) from None
        tokens, clause, says_goal = accuracy.tokens, accuracy.clause, accuracy.goal is not None
        says_confidence = says_goal and "CONFIDENCE" in clause.upper()
    return Parsed(text, _tree(text, tokens, dialect), clause, says_goal, says_confidence)


def _tree(text: str, tokens: list[Token], dialect: Dialect) -> Node:
    try:
        trees = dialect.parser().parse(tokens, text)
    except ParseError as fault:
        raise _syntax_error(text, tokens, fault) from None
    except RecursionError:
        raise WireError("54001", "the statement is nested too deeply") from None
    except Exception as fault:  # the parser is not ours
        raise WireError(SYNTAX, "the statement cannot be read") from fault
    if len(trees) != 1 or not isinstance(trees[0], exp.Query):
        raise WireError(UNAVAILABLE, "of statements, SELECT is available")
    return trees[0]


def _syntax_error(text: str, tokens: list[Token], fault: ParseError) -> WireError:
    error = fault.errors[0] if fault.errors else {}
    near = [token for token in tokens if (token.line, token.col) == (error.get("line"), error.get("col"))]
    if not near:
        return WireError(SYNTAX, "syntax error at end of input", position=len(text))
    return WireError(SYNTAX, f'syntax error at or near "{near[0].text}"', position=near[0].start)


def _check(tokens: list[Token]) -> None:
    """Refuse what the parser could take very long for, before it sees it."""
    depth = types_open = joins = brackets = 0
    opened: list[bool] = []
    for before, token in itertools.pairwise([None, *tokens]):
        kind = token.token_type if token is not None else None
        if kind in (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.CASE):
            of_type = before is not None and before.token_type in _TYPES and kind is TokenType.L_PAREN
            opened.append(of_type)
            types_open += of_type
            brackets += kind is TokenType.L_BRACKET
            depth += 1
        elif kind in (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.END) and opened:
            types_open -= opened.pop()
            depth -= 1
        joins += (kind is TokenType.JOIN) - (kind in (TokenType.ON, TokenType.USING))
        if depth > DEEPEST or types_open > DEEPEST_TYPES or joins > MOST_BARE_JOINS or brackets > MOST_BRACKETS:
            raise WireError("54001", "the statement is too complex", position=-1 if token is None else token.start)
    if len(tokens) > MOST_TOKENS:
        raise WireError("54001", f"a statement has at most {MOST_TOKENS} words")


def relations(tree: Node) -> list[exp.Table]:
    """The tables that a statement names, but for those that it makes itself."""
    cte_names = {cte.alias_or_name for cte in tree.find_all(exp.CTE)}
    return [
        table
        for table in tree.find_all(exp.Table)
        if isinstance(table.this, exp.Identifier) and not (table.name in cte_names and not table.db)
    ]


# -- parameters ------------------------------------------------------------------------------------------------------

COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In, exp.NullSafeEQ, exp.NullSafeNEQ)


def cast_type(node: exp.Cast) -> PgType | None:
    """The type that a cast names; of an array, that of its elements."""
    to = node.to
    inner = to.expressions[0] if to.this is exp.DataType.Type.ARRAY and to.expressions else to
    name = inner.sql("postgres").partition("(")[0].lower().removeprefix("pg_catalog.")
    return types.BPCHAR if name == "char" else types.BY_NAME.get(name.strip('"') if name != '"char"' else name)


def infer(parsed: Parsed, given: Sequence[int], type_of_column: Callable[[exp.Column], PgType | None]) -> list[int]:
    """The type of every parameter: as the client says, else as it is cast, else of the column it is compared with."""
    oids = [*given, *[0] * (parsed.parameters - len(given))]
    for node in parsed.tree.find_all(exp.Parameter):
        place = int(node.name) - 1 if node.name.isdecimal() else -1
        if 0 <= place < len(oids) and not oids[place]:
            oids[place] = _inferred(node, type_of_column)
    return [oid or types.TEXT.oid for oid in oids]


def _inferred(node: Node, type_of_column: Callable[[exp.Column], PgType | None]) -> int:
    array, around = False, node.parent
    while isinstance(around, exp.Paren | exp.Any | exp.All):
        array, around = array or not isinstance(around, exp.Paren), around.parent
    if isinstance(around, exp.Cast):
        cast, many = cast_type(around), around.to.this is exp.DataType.Type.ARRAY
        return 0 if cast is None else cast.array if many else cast.oid
    if isinstance(around, exp.Limit | exp.Offset):
        return types.INT8.oid
    if isinstance(around, COMPARISONS):
        columns = [side for side in map(uncast, around.iter_expressions()) if isinstance(side, exp.Column)]
        kind = type_of_column(columns[0]) if columns else types.TEXT
        if kind is not None:
            return kind.array if array else kind.oid
    return types.TEXT.array if array else types.TEXT.oid


def uncast(node: Node) -> Node:
    """What stands inside of casts and brackets."""
    while isinstance(node, exp.Cast | exp.Paren):
        node = node.this
    return node


def constant(value: PgValue) -> Node:
    """A value as it is written in SQL."""
    if isinstance(value, bytes):
        raise WireError(UNAVAILABLE, "bytes cannot be compared with")
    if isinstance(value, Sequence) and not isinstance(value, str):
        return exp.Array(expressions=[constant(item) for item in value])
    try:
        return parameters.constant(value)
    except QueryError as refused:
        raise WireError("22003", refused.reason) from None


def with_values(tree: Node, values: Sequence[PgValue]) -> Node:
    """The statement with its parameters written out."""
    tree = tree.copy()
    for node in list(tree.find_all(exp.Parameter)):
        place = int(node.name) - 1 if node.name.isdecimal() else -1
        if not 0 <= place < len(values):
            raise WireError("42P02", f"there is no parameter ${node.name}")
        node.replace(constant(values[place]))
    return tree


def replace_nodes(tree: Node, change: Callable[[Node], Node]) -> Node:
    """The tree with every node replaced, the innermost ones first. It is changed in place."""
    for node in reversed(list(tree.walk(bfs=False))):
        new = change(node)
        if new is not node:
            tree = new if node is tree else tree
            node.replace(new)
    return tree


# -- constants ---------------------------------------------------------------------------------------------------


def constant_of(node: Node) -> PgValue:
    """The value of a constant, casts included; None where it is none, or NULL."""
    match node:
        case exp.Paren():
            return constant_of(node.this)
        case exp.Literal():
            if node.is_string:
                return str(node.this)
            return int(node.this) if str(node.this).isdecimal() else _decimal(str(node.this))
        case exp.Neg():
            value = constant_of(node.this)
            return -value if isinstance(value, int | Decimal) and not isinstance(value, bool) else None
        case exp.Boolean():
            return bool(node.this)
        case exp.StrToDate() | exp.StrToTime() if isinstance(node.this, exp.Literal):
            formats = ("%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S.%f")
            return str(node.this.this) if str(node.args["format"].name) in formats else None
        case exp.Cast():
            inner, cast = constant_of(node.this), cast_type(node)
            if inner is None or cast is None or node.to.this is exp.DataType.Type.ARRAY:
                return None
            if cast in (types.DATE, types.TIMESTAMP, types.TIMESTAMPTZ, types.TEXT, types.VARCHAR, types.BPCHAR):
                return inner if isinstance(inner, str) else None
            if isinstance(inner, str) and cast.category in "NB":
                return types.decode(inner.encode(), cast.oid, 0)
            return inner
    return None


def _decimal(text: str) -> Decimal | None:
    return Decimal(text) if len(text) < 40 and text.isascii() else None


def array_constants(node: Node) -> list[Node] | None:
    """The items of ARRAY[...], of '{...}', or of a list in brackets; None where it is none of these."""
    while isinstance(node, exp.Paren | exp.Cast):
        node = node.this
    if isinstance(node, exp.Array | exp.Tuple):
        return [item.copy() for item in node.expressions]
    if isinstance(node, exp.Literal) and node.is_string:
        try:
            return [constant(item) for item in types.array_items(str(node.this))]
        except (ValueError, IndexError):
            return None
    return None


def as_list(node: Node) -> Node:
    """x = ANY(items) as x IN (items), and x <> ALL(items) as NOT IN; anything else as it is."""
    right = node.expression
    if isinstance(right, exp.Anonymous) and right.name.upper() == "ALL" and len(right.expressions) == 1:
        right = exp.All(this=right.expressions[0])
    if not isinstance(right, exp.Any if isinstance(node, exp.EQ) else exp.All):
        return node
    items = array_constants(right.this)
    if items is None:
        return node
    inside = exp.In(this=node.this.copy(), expressions=items) if items else exp.false()
    return inside if isinstance(node, exp.EQ) else exp.Not(this=exp.paren(inside))


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


def unescaped(text: str) -> str:
    """What E'...' means: a backslash stands before a character that is meant as such, or for a control character."""
    return re.sub(r"\\(.)", lambda escape: _ESCAPES.get(escape[1], escape[1]), text, flags=re.DOTALL)


# -- names -------------------------------------------------------------------------------------------------------

_DEFAULT_NAMES: dict[type[exp.Expression], str] = {
    exp.TimestampTrunc: "date_trunc",
    exp.DateTrunc: "date_trunc",
    exp.Case: "case",
    exp.Extract: "extract",
    exp.CurrentVersion: "version",
    exp.CurrentTimestamp: "now",
    exp.GroupConcat: "string_agg",
    exp.Connector: "?column?",
    exp.Predicate: "?column?",
}


def shown_name(item: Node) -> str:
    """What PostgreSQL would call a column of the result."""
    if isinstance(item, exp.Alias):
        identifier = item.args["alias"]
        return str(identifier.name) if identifier.args.get("quoted") else str(identifier.name).lower()
    node = uncast(item)
    if isinstance(node, exp.Literal | exp.Null | exp.Parameter) and isinstance(item, exp.Cast):
        kind = cast_type(item)
        return kind.name if kind is not None else "?column?"
    if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Select):
        return shown_name(node.this.expressions[0])
    if isinstance(node, exp.Case) and node.args.get("default") is not None:
        otherwise = uncast(node.args["default"])
        return shown_name(otherwise) if isinstance(otherwise, exp.Column | exp.Dot) else "case"
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Func):
        node = node.expression
    node = node.this if isinstance(node, exp.Filter | exp.WithinGroup) else node
    if isinstance(node, exp.Column):
        return str(node.name) if node.this.args.get("quoted") else str(node.name).lower()
    if isinstance(node, exp.Anonymous):
        return str(node.name).lower()
    named = next((name for kind, name in _DEFAULT_NAMES.items() if isinstance(node, kind)), None)
    return named or (node.sql_name().lower() if isinstance(node, exp.Func) else "?column?")


def unique(names: Sequence[str]) -> list[str]:
    """The names with numbers behind those that came before, in any case of letters."""
    taken: set[str] = set()
    unique: list[str] = []
    for name in names:
        tried = itertools.chain([name], (f"{name}_{number}" for number in itertools.count(2)))
        unique.append(next(each for each in tried if each.casefold() not in taken))
        taken.add(unique[-1].casefold())
    return unique
