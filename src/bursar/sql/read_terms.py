"""Terms of a syntax tree: constants, columns, and functions and operators of them."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from bursar.errors import QueryError
from bursar.sql.names import Literal, Name
from bursar.sql.syntax import Node, bare, case_parts, operands, position, read_name, reason
from bursar.sql.terms import NULL, Call, Given, Ref, Term

DAYS_OF_PERIODS = ("day", "week", "month", "quarter", "year")
"""What DATE_TRUNC goes back to the first day of."""

_BINARY: dict[type, str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.SafeDivide: "/",
    exp.IntDiv: "//",
    exp.Mod: "%",
    exp.Pow: "power",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.And: "and",
    exp.Or: "or",
    exp.NullSafeEQ: "same",
    exp.Nullif: "nullif",
    exp.DPipe: "||",
    exp.Left: "left",
    exp.Right: "right",
    exp.StartsWith: "starts_with",
    exp.EndsWith: "ends_with",
    exp.Contains: "contains",
    exp.Like: "like",
    exp.ILike: "ilike",
    exp.SimilarTo: "similar to",
    exp.RegexpFullMatch: "regexp_full_match",
}
_UNARY: dict[type, str] = {
    exp.Neg: "neg",
    exp.Not: "not",
    exp.Abs: "abs",
    exp.Sqrt: "sqrt",
    exp.Ln: "ln",
    exp.Exp: "exp",
    exp.Sign: "sign",
    exp.Ceil: "ceil",
    exp.Upper: "upper",
    exp.Lower: "lower",
    exp.Length: "length",
    exp.Reverse: "reverse",
    exp.Year: "year",
    exp.Quarter: "quarter",
    exp.Month: "month",
    exp.Day: "day",
    exp.DayOfMonth: "day",
    exp.DayOfWeek: "dayofweek",
    exp.DayOfWeekIso: "isodow",
    exp.DayOfYear: "dayofyear",
    exp.Week: "week",
    exp.WeekOfYear: "week",
    exp.Monthname: "monthname",
    exp.Dayname: "dayname",
    exp.TimeToUnix: "epoch",
    exp.LastDay: "last_day",
}
_MANY: dict[type, str] = {exp.Coalesce: "coalesce", exp.Greatest: "greatest", exp.Least: "least"}

FIELDS_OF_DAYS = ("year", "quarter", "month", "week", "day", "dayofweek", "isodow", "dayofyear", "epoch")
"""What EXTRACT takes out of a day."""

_FIELD_NAMES = {"dow": "dayofweek", "weekday": "dayofweek", "doy": "dayofyear", "weekofyear": "week"}

WHOLE = tuple(
    exp.DataType.Type[name]
    for name in ("INT", "BIGINT", "SMALLINT", "TINYINT", "UINT", "UBIGINT", "INT128", "HUGEINT")
    if name in exp.DataType.Type.__members__
)
REAL = (exp.DataType.Type.DOUBLE, exp.DataType.Type.FLOAT, exp.DataType.Type.DECIMAL)
TEXT = (exp.DataType.Type.VARCHAR, exp.DataType.Type.TEXT)

ReadRef = Callable[[Node], "Term"]
"""How a column, or anything that stands for one, is read; it raises for what it does not know."""


def read_term(node: Node, ref: ReadRef, constant: Callable[[Node], Literal | None]) -> Term:
    """A term of a syntax tree; refused where it has anything in it that is not known here."""

    def read(inner: Node) -> Term:
        return read_term(inner, ref, constant)

    def call(function: str, *parts: Node) -> Call:
        return Call(function=function, parts=tuple(map(read, parts)), position=place)

    node, place = bare(node), position(node)
    if isinstance(node, exp.Add | exp.Sub) and isinstance(bare(node.expression), exp.Interval):
        return Given(value=constant(node), position=place)
    if isinstance(node, exp.And | exp.Or):
        return call(_BINARY[type(node)], *operands(node, type(node)))
    if (kind := type(node)) in _BINARY:
        negated = bool(node.args.get("negate"))
        compared = call(_BINARY[kind], node.this, node.expression)
        return Call(function="not", parts=(compared,), position=place) if negated else compared
    if kind in _UNARY:
        return call(_UNARY[kind], node.this)
    if kind in _MANY:
        return call(_MANY[kind], node.this, *node.expressions)
    match node:
        case exp.Column() | exp.Window() | exp.Anonymous() | exp.AggFunc() | exp.Filter():
            return ref(node)
        case exp.Null():
            return Given(value=None, position=place)
        case exp.NullSafeNEQ():
            return Call(function="not", parts=(call("same", node.this, node.expression),), position=place)
        case exp.Between():
            ends = [call(op, node.this, node.args[end]) for op, end in ((">=", "low"), ("<=", "high"))]
            return Call(function="and", parts=tuple(ends), position=place)
        case exp.In() if node.expressions:
            return call("in", node.this, *node.expressions)
        case exp.Is() if isinstance(bare(node.expression), exp.Null):
            return call("is null", node.this)
        case exp.Is() if isinstance(bare(node.expression), exp.Boolean):
            return call("same", node.this, node.expression)
        case exp.Case() | exp.If():
            return _case(node, read, place)
        case exp.Concat():
            return call("concat", *node.expressions)
        case exp.Round() | exp.Floor():
            name = "round" if isinstance(node, exp.Round) else "floor"
            decimals = node.args.get("decimals")
            return call(name, node.this) if decimals is None else call(name, node.this, decimals)
        case exp.Log():
            base, of = (node.this, node.expression) if node.expression is not None else (None, node.this)
            return call("log", of) if base is None else call("log", of, base)
        case exp.Substring():
            length = node.args.get("length")
            parts = (node.this, node.args["start"], *(() if length is None else (length,)))
            return call("substr", *parts)
        case exp.Trim() if node.expression is None:
            side = str(node.args.get("position") or "BOTH").upper()
            return call({"LEADING": "ltrim", "TRAILING": "rtrim"}.get(side, "trim"), node.this)
        case exp.Replace():
            return call("replace", node.this, node.expression, node.args["replacement"])
        case exp.TimestampTrunc() | exp.DateTrunc():
            period = _unit(node.args.get("unit"))
            if period not in DAYS_OF_PERIODS:
                raise QueryError("DATE_TRUNC goes back to day, week, month, quarter or year", position=place)
            return call(f"trunc {period}", node.this)
        case exp.Extract():
            word = _unit(node.this)
            if (name := _FIELD_NAMES.get(word, word)) not in FIELDS_OF_DAYS:
                raise QueryError(f"EXTRACT takes {', '.join(FIELDS_OF_DAYS)} out of a day", position=place)
            return call(name, node.expression)
        case exp.DateDiff():
            unit = _unit(node.args.get("unit")).removesuffix("s")
            if unit not in DAYS_OF_PERIODS:
                raise QueryError("DATEDIFF counts days, weeks, months, quarters or years", position=place)
            return call(f"datediff {unit}", node.expression, node.this)
        case exp.RegexpLike():
            flag = node.args.get("flag")
            return call("regexp_matches", node.this, node.expression, *(() if flag is None else (flag,)))
        case exp.RegexpReplace():
            options = node.args.get("modifiers")
            parts = (node.this, node.expression, node.args["replacement"], *(() if options is None else (options,)))
            return call("regexp_replace", *parts)
        case exp.SplitPart():
            return call("split_part", node.this, node.args["delimiter"], node.args["part_index"])
        case exp.StrPosition():
            return call("strpos", node.this, node.args["substr"])
        case exp.TimeToStr():
            return call("strftime", node.this, node.args["format"])
        case exp.Cast() | exp.TryCast() if not isinstance(bare(node.this), exp.Literal):
            if (decimals := decimals_of(node.to)) is not None:
                return call("round", node.this, decimals)
            for types, name in ((WHOLE, "int"), (REAL, "real"), (TEXT, "text")):
                if node.to.this in types:
                    return call(f"{name} even" if name == "int" and _is_double(node.this) else name, node.this)
            if node.to.this == exp.DataType.Type.DATE:
                return call("trunc day", node.this)
            if node.to.this == exp.DataType.Type.BOOLEAN:
                return call("bool", node.this)
            raise QueryError("of casts, those to numbers, text and DATE are available", position=place)
    return _given(node, constant, place)


_DOUBLES = (
    exp.Div, exp.SafeDivide, exp.Sqrt, exp.Ln, exp.Log, exp.Exp, exp.Pow, exp.Avg, exp.Variance, exp.VariancePop,
    exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Median, exp.PercentileCont,
)  # fmt: skip
_LIKE_ITS_PARTS = (
    exp.Add, exp.Sub, exp.Mul, exp.Mod, exp.Neg, exp.Abs, exp.Round, exp.Greatest, exp.Least, exp.Coalesce, exp.Nullif,
    exp.Sum, exp.Min, exp.Max,
)  # fmt: skip


def _is_double(node: Node) -> bool:
    """Whether this is of type DOUBLE in DuckDB, which a cast rounds from halves to the even neighbour; other numbers it
    rounds away from 0."""
    node = bare(node.this if isinstance(node, exp.Filter) else node)
    match node:
        case exp.Cast() | exp.TryCast():
            return node.to.this in (exp.DataType.Type.DOUBLE, exp.DataType.Type.FLOAT)
        case exp.Case() | exp.If():
            pairs, otherwise, _ = case_parts(node)
            return any(_is_double(part) for part in (*(then for _, then in pairs), otherwise) if part is not None)
        case exp.Literal():
            return not node.is_string and "e" in str(node.this).lower()
    return isinstance(node, _DOUBLES) or (
        isinstance(node, _LIKE_ITS_PARTS) and any(_is_double(part) for part in node.iter_expressions())
    )


def decimals_of(kind: Node) -> Node | None:
    """The literal 2 of DECIMAL(10, 2), which rounds; nothing of any other type.

    Edge cases: DECIMAL alone comes as DECIMAL(18, 3), and is taken for PostgreSQL's NUMERIC, which keeps all digits.
    """
    digits = [part.this for part in kind.expressions] if kind.this == exp.DataType.Type.DECIMAL else []
    if not digits or [str(digit.this) for digit in digits] == ["18", "3"]:
        return None
    return digits[1] if len(digits) > 1 else exp.Literal.number(0)


def _given(node: Node, constant: Callable[[Node], Literal | None], place: int) -> Given:
    try:
        return Given(value=constant(node), position=place)
    except QueryError:
        if isinstance(node, exp.Literal | exp.Boolean | exp.Neg | exp.Cast):
            raise
        raise QueryError(reason(node), position=place) from None


def _unit(node: Node) -> str:
    return "" if node is None else str(node.name).lower()


def _case(node: Node, read: Callable[[Node], Term], place: int) -> Call:
    pairs, otherwise, subject = case_parts(node)
    parts: list[Term] = []
    for when, then in pairs:
        test = read(when)
        if subject is not None:
            test = Call(function="=", parts=(read(subject), test), position=position(when))
        parts += [test, read(then)]
    parts.append(NULL if otherwise is None else read(otherwise))
    return Call(function="case", parts=tuple(parts), position=place)


def column_reader(table: Name) -> ReadRef:
    """How a column of the table is read, which conditions may call by the given name."""

    def ref(node: Node) -> Ref:
        if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier):
            raise QueryError(reason(node), position=position(node))
        qualifier = node.args.get("table")
        if qualifier is not None and not read_name(qualifier).agrees(table):
            raise QueryError(f"there is no table {qualifier.name} in this question", position=position(qualifier))
        return Ref(name=read_name(node.this), position=position(node))

    return ref
