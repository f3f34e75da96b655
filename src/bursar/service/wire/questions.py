"""PostgreSQL's spelling of a question to Bursar's, and what is told for nothing because it is public.

A statement is read by sqlglot as PostgreSQL's; names lose their schema, constants get the type of the column that they
are compared with, and a few spellings that BI tools use become ones that `bursar.sql` knows. Whatever is left over is
for the engine to refuse: nothing is guessed, and no meaning changes.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import ParseError
from sqlglot.tokens import Token, TokenType

from bursar.answer import Answer
from bursar.core.domain import Attribute, Bins, Dates, IntegerRange, Value
from bursar.errors import BursarError, QueryError
from bursar.service.wire import types
from bursar.service.wire.failures import NO_COLUMN, NO_TABLE, SYNTAX, UNAVAILABLE, WireError, notice, refusal
from bursar.service.wire.protocol import Field
from bursar.service.wire.settings import Settings
from bursar.service.wire.types import BadValue, PgType, PgValue
from bursar.session import Bursar
from bursar.sql import Query, parse
from bursar.sql.query import Aggregate, CaseGroups, Function, Key, Stepped, Trimmed
from bursar.sql.syntax import Node
from bursar.sql.tokens import cut_accuracy

DEEPEST, MOST_TOKENS = 60, 12_000
MOST_BARE_JOINS, MOST_BRACKETS, DEEPEST_TYPES = 8, 200, 4
"""The parser takes exponential time for joins without ON and types inside of types, and the square for brackets."""


@dataclass(frozen=True)
class Context:
    """Who asks about what, and with which settings."""

    bursar: Bursar
    database: str
    settings: Settings


@dataclass(frozen=True)
class Result:
    """Rows, and what is to be said about them."""

    fields: Sequence[Field]
    rows: Sequence[Sequence[PgValue]]
    notices: tuple[bytes, ...] = ()


@dataclass(frozen=True)
class Parsed:
    """A statement as a tree, its accuracy clause as text, and its parameters in their order."""

    text: str
    tree: Node
    clause: str = ""
    says_confidence: bool = False

    @property
    def parameters(self) -> int:
        """How many values it needs."""
        return max((int(node.name) for node in self.tree.find_all(exp.Parameter) if node.name.isdecimal()), default=0)


# -- text to tree ----------------------------------------------------------------------------------------------------

_TYPES = Postgres.Parser.TYPE_TOKENS
_GOALS = {"ERROR", "RMSE", "EPSILON", "RHO", "CONFIDENCE"}


def parse_statement(text: str) -> Parsed:
    """The tree of a statement, within limits that keep the parser's time bounded; refused where there is none."""
    try:
        tokens = list(Postgres().tokenize(text))
    except Exception as fault:  # the tokenizer is not ours
        raise WireError(SYNTAX, "the statement cannot be split into words") from fault
    _check(tokens)
    clause, says_confidence = "", False
    hint = next((comment for token in tokens for comment in token.comments if comment.startswith("+")), None)
    goals = [
        (word.token_type is TokenType.WITH and str(then.text).upper() in _GOALS)
        for word, then in itertools.pairwise(tokens)
    ]
    if hint is not None or any(goals):
        try:
            left, goal = cut_accuracy(text, tokens)
        except QueryError as error:
            raise refusal(error) from None
        if goal is not None:
            cut = tokens[len(left) :]
            clause = text[cut[0].start : cut[-1].end + 1] if cut else f"/*{hint}*/"
            says_confidence = "CONFIDENCE" in clause.upper()
        tokens = left
    return Parsed(text, _tree(text, tokens), clause, says_confidence)


def _tree(text: str, tokens: list[Token]) -> Node:
    try:
        trees = Postgres().parser().parse(tokens, text)
    except ParseError as fault:
        try:  # what PostgreSQL does not know may be Bursar's own, such as // for whole-number division
            trees = DuckDB().parser().parse(tokens, text)
        except Exception:
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
    own = {cte.alias_or_name for cte in tree.find_all(exp.CTE)}
    return [
        table
        for table in tree.find_all(exp.Table)
        if isinstance(table.this, exp.Identifier) and not (table.name in own and not table.db)
    ]


def is_data_table(table: exp.Table, context: Context) -> bool:
    """Whether the one table of the data set is meant; refused where it is called by a wrong schema or database."""
    name = context.bursar.config.table
    same = table.name == name if table.this.args.get("quoted") else table.name.casefold() == name.casefold()
    schema, database = table.db.casefold(), table.catalog
    return same and schema in ("", "public") and database in ("", context.database)


def no_relation(table: exp.Table, context: Context) -> WireError:
    """As PostgreSQL words it."""
    place = table.this.meta.get("start", -1)
    name = ".".join(part for part in (table.db, table.name) if part)
    hint = f"the table is called {context.bursar.config.table}; \\d, or information_schema.columns, shows its columns"
    return WireError(NO_TABLE, f'relation "{name}" does not exist', hint=hint, position=place)


# -- parameters ------------------------------------------------------------------------------------------------------

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In, exp.NullSafeEQ, exp.NullSafeNEQ)


def cast_type(node: exp.Cast) -> PgType | None:
    """The type that a cast names; of an array, that of its elements."""
    to = node.to
    inner = to.expressions[0] if to.this is exp.DataType.Type.ARRAY and to.expressions else to
    name = inner.sql("postgres").partition("(")[0].lower().removeprefix("pg_catalog.")
    return types.BPCHAR if name == "char" else types.BY_NAME.get(name.strip('"') if name != '"char"' else name)


def infer(parsed: Parsed, given: Sequence[int], type_of_column: Callable[[exp.Column], PgType | None]) -> list[int]:
    """The type of every parameter: as the client says, else as it is cast, else of the column it is compared with."""
    found = [*given, *[0] * (parsed.parameters - len(given))]
    for node in parsed.tree.find_all(exp.Parameter):
        place = int(node.name) - 1 if node.name.isdecimal() else -1
        if 0 <= place < len(found) and not found[place]:
            found[place] = _inferred(node, type_of_column)
    return [oid or types.TEXT.oid for oid in found]


def _inferred(node: Node, type_of_column: Callable[[exp.Column], PgType | None]) -> int:
    array, around = False, node.parent
    while isinstance(around, exp.Paren | exp.Any | exp.All):
        array, around = array or not isinstance(around, exp.Paren), around.parent
    if isinstance(around, exp.Cast):
        cast, many = cast_type(around), around.to.this is exp.DataType.Type.ARRAY
        return 0 if cast is None else cast.array if many else cast.oid
    if isinstance(around, exp.Limit | exp.Offset):
        return types.INT8.oid
    if isinstance(around, _COMPARISONS):
        columns = [side for side in map(_uncast, around.iter_expressions()) if isinstance(side, exp.Column)]
        kind = type_of_column(columns[0]) if columns else types.TEXT
        if kind is not None:
            return kind.array if array else kind.oid
    return types.TEXT.array if array else types.TEXT.oid


def _uncast(node: Node) -> Node:
    while isinstance(node, exp.Cast | exp.Paren):
        node = node.this
    return node


def constant(value: PgValue) -> Node:
    """A value as it is written in SQL."""
    match value:
        case None:
            return exp.Null()
        case bool():
            return exp.Boolean(this=value)
        case float() if not math.isfinite(value):
            raise WireError("22003", "a number that is compared with is finite")
        case int() | float() | Decimal():
            number = exp.Literal.number(f"{abs(value):f}" if isinstance(value, Decimal) else str(abs(value)))
            return exp.Neg(this=number) if value < 0 else number
        case datetime():
            return exp.Literal.string(value.isoformat(" "))
        case date():
            return exp.cast(exp.Literal.string(value.isoformat()), "date")
        case bytes():
            raise WireError(UNAVAILABLE, "bytes cannot be compared with")
        case str():
            return exp.Literal.string(value)
    return exp.Array(expressions=[constant(item) for item in value])


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


# -- tree to Bursar's text -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rewriting:
    """The columns of a question, by the names that it can call them by."""

    columns: Sequence[Attribute]

    def attribute(self, column: exp.Column) -> Attribute | None:
        """The column that a name means."""
        quoted = column.this.args.get("quoted")
        for attribute in self.columns:
            name = attribute.name
            if name == column.name or (not quoted and name.casefold() == column.name.casefold()):
                return attribute
        return None

    def type_of(self, column: exp.Column) -> PgType | None:
        """Its declared type."""
        attribute = self.attribute(column)
        return None if attribute is None else types.type_of(attribute)

    def rewrite(self, tree: Node) -> Node:
        """The same question as `bursar.sql` spells it. The tree is changed."""
        for table in relations(tree):
            table.set("db", None)
            table.set("catalog", None)
        for column in tree.find_all(exp.Column):
            column.set("db", None)
            column.set("catalog", None)
        for identifier in tree.find_all(exp.Identifier):
            if not identifier.args.get("quoted"):
                identifier.set("this", str(identifier.this).lower())
        for collation in list(tree.find_all(exp.Collate)):
            collation.replace(collation.this)
        for string in list(tree.find_all(exp.ByteString)):
            string.replace(exp.Literal.string(unescaped(str(string.this))))
        for like in tree.find_all(exp.Like, exp.ILike):
            if "\\" in like.expression.name:
                raise WireError(UNAVAILABLE, "patterns with a backslash are not available")
        tree = replace_nodes(tree, self._plainer)
        for node in list(tree.find_all(*_COMPARISONS)):
            self._compared(node)
        return tree

    def _plainer(self, node: Node) -> Node:
        match node:
            case exp.Cast() if isinstance(node.this, exp.Column):
                attribute, cast = self.attribute(node.this), cast_type(node)
                same = attribute is not None and cast is not None and types.type_of(attribute).category == cast.category
                return node.this if same else node
            case exp.Cast() if isinstance(_uncast(node.this), exp.TimestampTrunc | exp.DateTrunc | exp.Extract):
                return node.this
            case exp.Cast() if node.find(exp.AggFunc) is not None:
                cast = cast_type(node)
                if cast in (types.INT2, types.INT4, types.INT8):
                    return node.this
                return exp.cast(node.this, "double") if cast in (types.NUMERIC, types.FLOAT4, types.FLOAT8) else node
            case exp.WithinGroup(this=exp.PercentileCont() | exp.PercentileDisc() as quantile):
                order = node.expression.expressions
                if len(order) == 1 and not order[0].args.get("desc"):
                    name = "QUANTILE_CONT" if isinstance(quantile, exp.PercentileCont) else "QUANTILE_DISC"
                    return exp.Anonymous(this=name, expressions=[order[0].this, quantile.this])
        return node

    def _compared(self, node: Node) -> None:
        """Constants as the column that they are compared with has them; = ANY(...) as IN."""
        left, right = node.this, node.args.get("expression")
        if isinstance(node, exp.EQ | exp.NEQ) and isinstance(right, exp.Any | exp.All):
            wanted = exp.Any if isinstance(node, exp.EQ) else exp.All
            items = array_constants(right.this)
            if isinstance(right, wanted) and items is not None and isinstance(left, exp.Column):
                inside = exp.In(this=left.copy(), expressions=items)
                node.replace(inside if wanted is exp.Any else exp.Not(this=exp.Paren(this=inside)))
                self._compared(inside)
            return
        columns = [side for side in (left, right) if isinstance(side, exp.Column)]
        attribute = self.attribute(columns[0]) if len(columns) == 1 else None
        if attribute is None:
            return
        for side in list(node.iter_expressions()):
            value = constant_of(side)
            if value is not None and not isinstance(side, exp.Column):
                moved = self._typed(attribute, value, node, side)
                if moved is not None:
                    side.replace(constant(moved))

    def _typed(self, attribute: Attribute, value: PgValue, node: Node, side: Node) -> PgValue:
        """A constant as a value of the column; None where it stays as it is."""
        try:
            match types.type_of(attribute):
                case types.DATE if isinstance(value, str | date):
                    return _day(value, node, side)
                case types.INT4 | types.INT8 | types.NUMERIC if isinstance(value, str):
                    number = types.decode(value.encode(), types.NUMERIC.oid, 0)
                    whole = isinstance(number, Decimal) and number == number.to_integral_value()
                    return int(number) if whole and isinstance(number, Decimal) else number
                case types.BOOL if isinstance(value, str):
                    return types.decode(value.encode(), types.BOOL.oid, 0)
                case types.TEXT if isinstance(value, str):
                    return value
        except (BadValue, ValueError):
            kind = types.type_of(attribute)
            raise WireError(
                "22P02" if kind is not types.DATE else "22007",
                f"invalid input syntax for type {kind.sql_name}",
                hint=f"{attribute.name} is compared with a value of this type",
            ) from None
        return value


def _day(value: str | date, node: Node, side: Node) -> date:
    """The day of a moment. One that is not midnight lies behind its day: x < day 12:00 means x < day + 1."""
    moment = types.moment_of(value) if isinstance(value, str) else value
    if not isinstance(moment, datetime):
        return moment
    day = moment.date()
    if moment.time() == datetime.min.time():
        return day
    if isinstance(node, exp.Between):
        return day + timedelta(days=side is node.args["low"])
    if not isinstance(node, exp.LT | exp.LTE | exp.GT | exp.GTE):
        raise ValueError
    behind = (exp.GT, exp.LTE) if side is node.this else (exp.LT, exp.GTE)
    return day + timedelta(days=isinstance(node, behind))


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


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


def unescaped(text: str) -> str:
    """What E'...' means: a backslash stands before a character that is meant as such, or for a control character."""
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), text, flags=re.DOTALL)


# -- questions -------------------------------------------------------------------------------------------------------

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


@dataclass(frozen=True)
class Selected:
    """One item of the select list: what it is shown as, and what the engine calls it."""

    shown: str
    inner: str
    moment: bool = False  # DATE_TRUNC, which gives a timestamp in PostgreSQL


@dataclass
class DataQuestion:
    """A question about rows. Nothing is asked before `run`."""

    parsed: Parsed
    context: Context
    given: Sequence[int] = ()
    parameters: list[int] = field(init=False)
    _rewriting: Rewriting = field(init=False)

    def __post_init__(self) -> None:
        self._rewriting = Rewriting(self.context.bursar.config.columns.attributes)
        self.parameters = infer(self.parsed, self.given, self._rewriting.type_of)

    def fields(self) -> list[Field]:
        """The columns of the answer. Static: read off the question and the config."""
        asked = self._asked([_example(oid) for oid in self.parameters])
        return asked.fields(self.context)

    def run(self, values: Sequence[PgValue]) -> Result:
        """The answer. This is what is charged for."""
        return self._asked(values).run(self.context)

    def explain(self, values: Sequence[PgValue]) -> list[str]:
        """What it would cost, as PostgreSQL shows plans: with the price where the cost of a plan stands."""
        return self._asked(values).explain(self.context)

    def _asked(self, values: Sequence[PgValue]) -> Asked | DomainValues | DomainBounds | NoRows:
        tree = _without_frame(with_values(self.parsed.tree, values))
        casts = [_shown_as_date(item) for item in tree.expressions] if isinstance(tree, exp.Select) else []
        names = [shown_name(item) for item in tree.expressions] if isinstance(tree, exp.Select) else []
        tree = self._rewriting.rewrite(tree)
        if not isinstance(tree, exp.Select):
            return Asked(self.parsed, tree.sql("duckdb", comments=False), ())
        limit, offset = (_number(tree.args.get(word)) for word in ("limit", "offset"))
        selected, unique = [], _unique(names)
        for item, shown, inner, as_date in zip(tree.expressions, names, unique, casts, strict=True):
            bare = item.this if isinstance(item, exp.Alias) else item
            moment = isinstance(bare, exp.TimestampTrunc | exp.DateTrunc) and not as_date
            selected.append(Selected(shown, inner, moment))
        if limit == 0:
            return NoRows(tree, selected, self._rewriting)
        if not self.parsed.clause and (bounds := _bounds(tree, self._rewriting)) is not None:
            return DomainBounds(tree, selected, bounds)
        if not tree.args.get("having") and _no_aggregates(tree):
            if tree.args.get("distinct") is not None or tree.args.get("group") is not None:
                return DomainValues(tree, selected, self._rewriting, limit, offset or 0)
            raise WireError(
                UNAVAILABLE,
                "single rows are never shown: a question is about groups of people",
                hint=_counting(tree, self.context),
            )
        if tree.args.get("order") is None:  # any of the groups will do, and the engine asks which
            tree.set("limit", None)
            tree.set("offset", None)
        else:
            limit = offset = None
        aliased = [
            item
            if item.is_star
            else exp.alias_(item.this if isinstance(item, exp.Alias) else item, s.inner, quoted=True)
            for item, s in zip(tree.expressions, selected, strict=True)
        ]
        tree.set("expressions", aliased)
        text = " ".join(filter(None, [tree.sql("duckdb", comments=False), self.parsed.clause]))
        return Asked(self.parsed, text, tuple(selected), limit, offset or 0)


def _example(oid: int) -> PgValue:
    if oid in types.ELEMENT:
        return [_example(types.ELEMENT[oid].oid)]
    if oid in (types.DATE.oid, types.TIMESTAMP.oid, types.TIMESTAMPTZ.oid):
        return date(2000, 1, 1)
    if oid == types.BOOL.oid:
        return True
    return "" if oid in (types.TEXT.oid, types.VARCHAR.oid, types.BPCHAR.oid, types.UNKNOWN.oid) else 1


def shown_name(item: Node) -> str:
    """What PostgreSQL would call a column of the result."""
    if isinstance(item, exp.Alias):
        identifier = item.args["alias"]
        return str(identifier.name) if identifier.args.get("quoted") else str(identifier.name).lower()
    node = _uncast(item)
    if isinstance(node, exp.Literal | exp.Null | exp.Parameter) and isinstance(item, exp.Cast):
        kind = cast_type(item)
        return kind.name if kind is not None else "?column?"
    if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Select):
        return shown_name(node.this.expressions[0])
    if isinstance(node, exp.Case) and node.args.get("default") is not None:
        otherwise = _uncast(node.args["default"])
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


def _unique(names: Sequence[str]) -> list[str]:
    taken: set[str] = set()
    unique: list[str] = []
    for name in names:
        tried = itertools.chain([name], (f"{name}_{number}" for number in itertools.count(2)))
        unique.append(next(each for each in tried if each.casefold() not in taken))
        taken.add(unique[-1].casefold())
    return unique


def _shown_as_date(item: Node) -> bool:
    item = item.this if isinstance(item, exp.Alias) else item
    return isinstance(item, exp.Cast) and cast_type(item) is types.DATE


def _without_frame(tree: Node) -> Node:
    """SELECT * FROM (question) AS t ORDER BY ... LIMIT ... is the question itself, ordered and cut."""
    while isinstance(tree, exp.Select) and len(tree.expressions) == 1 and isinstance(tree.expressions[0], exp.Star):
        source = tree.args.get("from_")
        inner = source.this.this if source is not None and isinstance(source.this, exp.Subquery) else None
        others = [
            name
            for name, value in tree.args.items()
            if value and name not in ("expressions", "from_", "order", "limit", "offset")
        ]
        cut = any(tree.args.get(name) for name in ("order", "limit", "offset"))
        if not isinstance(inner, exp.Select) or others:
            break
        if cut and any(inner.args.get(name) for name in ("order", "limit", "offset")):
            break
        if _no_aggregates(inner) and inner.args.get("group") is None and inner.args.get("distinct") is None:
            break
        for name in ("order", "limit", "offset"):
            if tree.args.get(name):
                inner.set(name, tree.args[name])
        for column in [] if inner.args.get("order") is None else inner.args["order"].find_all(exp.Column):
            column.set("table", None)
        tree = inner
    return tree


def _number(clause: Node | None) -> int | None:
    value = None if clause is None else constant_of(clause.expression)
    return value if isinstance(value, int) else None


_AGGREGATES = {"QUANTILE_CONT", "QUANTILE_DISC", "QUANTILE", "MEDIAN", "COUNT_IF", "COUNTIF", "AT_LEAST"}


def _no_aggregates(tree: Node) -> bool:
    return not any(
        isinstance(node, exp.AggFunc) or (isinstance(node, exp.Anonymous) and node.name.upper() in _AGGREGATES)
        for item in tree.expressions
        for node in item.walk()
    )


def _counting(tree: Node, context: Context) -> str:
    """A question about groups that is near to one about rows."""
    columns = [item for item in tree.expressions if isinstance(_uncast(item.unalias()), exp.Column)]
    table = context.bursar.config.table
    if len(columns) == 1:
        name = _uncast(columns[0].unalias()).sql("duckdb")
        return f"SELECT {name}, COUNT(*) FROM {table} GROUP BY {name}"
    return f"SELECT COUNT(*) FROM {table}"


def _bounds(tree: Node, columns: Rewriting) -> list[tuple[Attribute, bool]] | None:
    """The columns of MIN and MAX, and which of both, where nothing else is asked."""
    if any(tree.args.get(name) for name in ("group", "having", "distinct")):
        return None
    found: list[tuple[Attribute, bool]] = []
    for item in tree.expressions:
        node = item.unalias()
        column = node.this if isinstance(node, exp.Min | exp.Max) else None
        attribute = columns.attribute(column) if isinstance(column, exp.Column) else None
        if attribute is None or not attribute.ordered:
            return None
        found.append((attribute, isinstance(node, exp.Max)))
    where = tree.args.get("where")
    chosen = [] if where is None else [columns.attribute(column) for column in where.find_all(exp.Column)]
    return None if any(attribute in chosen for attribute, _ in found) else found or None


# -- what is asked ---------------------------------------------------------------------------------------------------


def _field(name: str, kind: PgType) -> Field:
    return Field(name, kind.oid, kind.size)


@dataclass(frozen=True)
class Asked:
    """A question for the engine, in its own spelling."""

    parsed: Parsed
    text: str
    selected: tuple[Selected, ...]
    limit: int | None = None
    offset: int = 0

    def fields(self, context: Context) -> list[Field]:
        return [field for field, *_ in self._columns(self._query(context), context)]

    def run(self, context: Context) -> Result:
        query = self._query(context)
        with self._refusing():
            answer = context.bursar.query(self.text, **self._goal(context))
        columns = self._columns(query, context)
        lines = range(len(answer.values))[self.offset :]
        shown = lines if self.limit is None else lines[: self.limit]
        rows = [[read(answer, line) for _, read in columns] for line in shown]
        notices = [_paid(answer)]
        if any(_rounded(answer, query)):
            notices.append(notice("counts are rounded to whole numbers, which may add up to 0.5 to their error"))
        if len(shown) < len(answer.values):
            notices.append(notice(f"LIMIT shows {len(shown)} of {len(answer.values)} groups; all were paid for"))
        return Result([field for field, _ in columns], rows, tuple(notices))

    def explain(self, context: Context) -> list[str]:
        with self._refusing():
            explanation = context.bursar.explain(self.text, **self._goal(context))
        price = explanation.price if math.isfinite(explanation.price) else 0.0
        return [f"Question  (cost=0.000000..{price:.6f} rows=0 width=0)", *str(explanation).splitlines()]

    def _goal(self, context: Context) -> Mapping[str, object]:
        goal = context.settings.goal()
        if self.parsed.clause:
            goal.pop("within", None)
            if self.parsed.says_confidence:
                goal.pop("confidence", None)
        return goal

    def _query(self, context: Context) -> Query:
        try:
            return parse(self.text)
        except QueryError:
            with self._refusing():
                context.bursar.engine.read(self.text)  # refuses with a question that works instead
            raise

    def _refusing(self) -> _Refusing:
        return _Refusing(self.parsed.text, self.text)

    def _columns(self, query: Query, context: Context) -> list[tuple[Field, Callable[[Answer, int], PgValue]]]:
        """The columns of the result in the order of the select list, each with how it is read off an answer."""
        columns: list[tuple[Field, Callable[[Answer, int], PgValue]]] = []
        keys = {key.name: (place, key) for place, key in enumerate(query.keys)}
        flags = {flag.name: place for place, flag in enumerate(query.flags, len(query.keys))}
        outputs = {item.name: (place, item) for place, item in enumerate(query.aggregates)}
        selected = self.selected
        if not selected or not all(s.inner in (*keys, *flags, *outputs) for s in selected):
            named = (*keys, *flags, *outputs)
            selected = tuple(Selected(name, name) for name in named)  # a star: all that there is
        for item in selected:
            if item.inner in keys:
                place, key = keys[item.inner]
                kind = _key_type(key, query, context, moment=item.moment)
                columns.append((_field(item.shown, kind), _label(place, kind)))
            elif item.inner in flags:
                columns.append((_field(item.shown, types.INT4), _label(flags[item.inner], types.INT4)))
            else:
                place, output = outputs[item.inner]
                count = isinstance(output, Aggregate) and output.function is Function.COUNT
                kind = types.INT8 if count else types.FLOAT8
                columns.append((_field(item.shown, kind), _value(place, count)))
                if context.settings.bounds:
                    columns.append((_field(f"{item.shown}_low", kind), _end(place, count, high=False)))
                    columns.append((_field(f"{item.shown}_high", kind), _end(place, count, high=True)))
        return columns


@dataclass(frozen=True)
class _Refusing:
    """Errors of the engine inside of the block are raised as those of the wire, with their place in what was sent."""

    sent: str
    text: str

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: object, at: object) -> None:
        if isinstance(error, BursarError):
            told = refusal(error)
            told.position = place_in(self.sent, self.text, told.position)
            raise told from None


def place_in(sent: str, text: str, position: int) -> int:
    """Where the word that stands at a place of the engine's text stands in the text that was sent; -1: nowhere."""
    if position < 0:
        return -1
    words = [(token.start, str(token.text).casefold()) for token in DuckDB().tokenize(text)]
    there = [word for start, word in words if start <= position]
    if not there:
        return -1
    same = [token.start for token in Postgres().tokenize(sent) if str(token.text).casefold() == there[-1]]
    return same[min(there.count(there[-1]), len(same)) - 1] if same else -1


def _key_type(key: Key, query: Query, context: Context, *, moment: bool) -> PgType:
    """The type of a column of labels: the declared one, or text where a label can be a word such as "other"."""
    attribute = next(a for a in context.bursar.config.columns.attributes if key.column.names(a.name))
    place = query.keys.index(key)
    if any(place not in grouping for grouping in query.sets):
        return types.TEXT
    if isinstance(key.by, CaseGroups):
        kinds = {type(piece.label) for piece in key.by.pieces if piece.label is not None}
        if kinds == {bool}:
            return types.BOOL
        if kinds == {date}:
            return types.DATE
        return types.INT8 if kinds == {int} else types.FLOAT8 if kinds and kinds <= {int, Decimal} else types.TEXT
    if attribute.other is not None:
        return types.TEXT
    match key.by:
        case Trimmed(number=True):
            return types.INT4
        case Trimmed():
            return types.TIMESTAMP if moment else types.DATE
        case Stepped(width=width, times=times):
            whole = width == width.to_integral_value() and times == times.to_integral_value()
            return types.INT8 if whole and isinstance(attribute, IntegerRange) else types.FLOAT8
    return types.TEXT if isinstance(attribute, Bins) else types.type_of(attribute)


def _label(place: int, kind: PgType) -> Callable[[Answer, int], PgValue]:
    return lambda answer, line: _as(answer.labels[line][place], kind)


def _as(label: Value, kind: PgType) -> PgValue:
    if label is None or kind is not types.TEXT:
        return label
    return str(label)


def _value(place: int, count: bool) -> Callable[[Answer, int], PgValue]:
    def read(answer: Answer, line: int) -> PgValue:
        value = answer.values[line][place]
        return round(value) if count and value is not None else value

    return read


def _end(place: int, count: bool, *, high: bool) -> Callable[[Answer, int], PgValue]:
    """An end of an interval; of counts, the outermost whole number in it."""

    def read(answer: Answer, line: int) -> PgValue:
        end = (answer.high if high else answer.low)[line][place]
        if not count:
            return end
        if not math.isfinite(end):
            return None
        return math.floor(end) if high else math.ceil(end)

    return read


def _rounded(answer: Answer, query: Query) -> Iterator[bool]:
    counts = [isinstance(item, Aggregate) and item.function is Function.COUNT for item in query.aggregates]
    for line in answer.values:
        yield any(count and v is not None and not v.is_integer() for count, v in zip(counts, line, strict=True))


def _paid(answer: Answer) -> bytes:
    """The small print of an answer."""
    lines = [" ".join(line.split()) for line in answer.footer()]
    return notice("; ".join(lines[:2]), "\n".join(lines[2:]))


FREE = "nothing was measured or charged"


@dataclass(frozen=True)
class DomainValues:
    """SELECT DISTINCT and GROUP BY without any aggregate: the values that are declared, whoever has them."""

    tree: Node
    selected: Sequence[Selected]
    columns: Rewriting
    limit: int | None
    offset: int

    def fields(self, context: Context) -> list[Field]:
        query, kinds = self._query(context)
        return [_field(item.shown, kind) for item, kind in zip(self.selected, kinds, strict=True)]

    def _query(self, context: Context) -> tuple[str, list[PgType]]:
        text, _ = self._text()
        asked = Asked(Parsed(text, self.tree), text, ())
        query = asked._query(context)
        keys = {key.name: key for key in query.keys}
        kinds = [_key_type(keys[item.inner], query, context, moment=item.moment) for item in self.selected]
        return text, kinds

    def _text(self) -> tuple[str, str | None]:
        """The question for the number of people with each value, of which only the values are taken; and a pattern."""
        tree = self.tree.copy()
        items = [
            exp.alias_(item.unalias(), s.inner, quoted=True)
            for item, s in zip(tree.expressions, self.selected, strict=True)
        ]
        if tree.args.get("group") is None:
            tree.set("distinct", None)
            places = [exp.Literal.number(place) for place in range(1, len(items) + 1)]
            tree.set("group", exp.Group(expressions=places))
        pattern = self._pattern(tree, items)
        for name in ("limit", "offset", "distinct"):
            tree.set(name, None)
        counted = exp.alias_(exp.Count(this=exp.Star()), "bursar_n", quoted=True)
        tree.set("expressions", [*items, counted])
        return tree.sql("duckdb", comments=False), pattern

    def _pattern(self, tree: Node, items: Sequence[Node]) -> str | None:
        """The pattern of WHERE column ILIKE '%...%': of a list of values, those are shown that match."""
        where = tree.args.get("where")
        like = None if where is None else where.this
        same = isinstance(like, exp.ILike | exp.Like) and len(items) == 1 and like.this == items[0].this
        if not same or not isinstance(like.expression, exp.Literal):
            return None
        tree.set("where", None)
        return str(like.expression.this)

    def run(self, context: Context) -> Result:
        text, kinds = self._query(context)
        _, pattern = self._text()
        with _Refusing(text, text):
            query, workload = context.bursar.engine.read(text)
        lines: Sequence[int] = range(len(workload.labels))
        if workload.after is not None and workload.after.order:
            if any(order.output >= 0 for order in workload.after.order):
                raise WireError(UNAVAILABLE, "values are ordered by themselves, as ORDER BY 1")
            lines = workload.after.pick([], len(workload.labels), 0.5).lines.tolist()
        names = [key.name for key in query.keys]
        rows = [
            [
                _as(workload.labels[line][names.index(s.inner)], kind)
                for s, kind in zip(self.selected, kinds, strict=True)
            ]
            for line in lines
        ]
        if pattern is not None:
            matches = _like(pattern)
            rows = [row for row in rows if isinstance(row[0], str) and row[0] != "other" and matches(row[0])]
        rows = rows[self.offset :] if self.limit is None else rows[self.offset : self.offset + self.limit]
        named = ", ".join(item.shown for item in self.selected)
        told = notice(f"the declared values of {named}, whether or not anybody has them; {FREE}")
        return Result([_field(s.shown, kind) for s, kind in zip(self.selected, kinds, strict=True)], rows, (told,))

    def explain(self, context: Context) -> list[str]:
        return ["Declared values  (cost=0.000000..0.000000 rows=0 width=0)", FREE]


def _like(pattern: str) -> Callable[[str], bool]:
    parts = [".*" if c == "%" else "." if c == "_" else re.escape(c) for c in pattern]
    found = re.compile("".join(parts), re.IGNORECASE | re.DOTALL)
    return lambda text: found.fullmatch(text) is not None


@dataclass(frozen=True)
class DomainBounds:
    """MIN and MAX without an accuracy: the bounds that are declared."""

    tree: Node
    selected: Sequence[Selected]
    bounds: Sequence[tuple[Attribute, bool]]

    def fields(self, context: Context) -> list[Field]:
        return [
            _field(item.shown, types.type_of(attribute))
            for item, (attribute, _) in zip(self.selected, self.bounds, strict=True)
        ]

    def run(self, context: Context) -> Result:
        names = ", ".join(dict.fromkeys(attribute.name for attribute, _ in self.bounds))
        told = notice(
            f"the declared bounds of {names}, whoever there is between them; {FREE}",
            "With WITH ERROR behind it, MIN and MAX are refused; QUANTILE_CONT(x, 0.95) is measured.",
        )
        return Result(self.fields(context), [[_bound(*bound) for bound in self.bounds]], (told,))

    def explain(self, context: Context) -> list[str]:
        return ["Declared bounds  (cost=0.000000..0.000000 rows=0 width=0)", FREE]


def _bound(attribute: Attribute, most: bool) -> PgValue:
    match attribute:
        case IntegerRange():
            return attribute.upper if most else attribute.lower
        case Bins():
            return Decimal(f"{attribute.edges[-1 if most else 0]:.15g}")
        case Dates():
            return attribute.start(attribute.declared) - timedelta(days=1) if most else attribute.start(0)
    return None


@dataclass(frozen=True)
class NoRows:
    """LIMIT 0: asked only to learn the columns."""

    tree: Node
    selected: Sequence[Selected]
    columns: Rewriting

    def fields(self, context: Context) -> list[Field]:
        fields: list[Field] = []
        for item, selected in zip(self.tree.expressions, self.selected, strict=True):
            node = item.unalias()
            if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
                fields += [_field(a.name, types.type_of(a)) for a in self.columns.columns]
            else:
                fields.append(_field(selected.shown, self._type(node)))
        return fields

    def _type(self, node: Node) -> PgType:
        if isinstance(node, exp.Column):
            kind = self.columns.type_of(node)
            if kind is None:
                raise WireError(NO_COLUMN, f'column "{node.name}" does not exist')
            return kind
        if isinstance(node, exp.Count):
            return types.INT8
        if isinstance(node, exp.Boolean):
            return types.BOOL
        if isinstance(node, exp.TimestampTrunc | exp.DateTrunc):
            return types.TIMESTAMP
        return types.FLOAT8 if node.find(exp.AggFunc) is not None else types.TEXT

    def run(self, context: Context) -> Result:
        return Result(self.fields(context), [], (notice(f"LIMIT 0 shows no row; {FREE}"),))

    def explain(self, context: Context) -> list[str]:
        return ["No rows  (cost=0.000000..0.000000 rows=0 width=0)", FREE]
