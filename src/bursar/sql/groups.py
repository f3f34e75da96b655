"""What rows are grouped by: a column, or something that is made of columns. The tree has passed the allow-list."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

from sqlglot import exp

from bursar.errors import QueryError
from bursar.sql.conditions import read_cases, read_column, read_condition
from bursar.sql.literals import read_literal
from bursar.sql.names import Literal, Name, Number
from bursar.sql.query import (
    CaseBranch,
    CaseGroups,
    Compare,
    Flag,
    Item,
    Key,
    Made,
    Not,
    Op,
    Stepped,
    Trimmed,
    all_of,
    columns_of,
    flag_name,
    leaves,
)
from bursar.sql.read_terms import column_reader, read_term
from bursar.sql.syntax import FLAGS, Node, bare, case_parts, check_keys, position
from bursar.sql.terms import refs_of

PERIODS = ("day", "week", "month", "quarter", "year")
"""What DATE_TRUNC goes back to the first day of."""

FIELDS = ("year", "quarter", "month", "day", "dayofweek")
"""What EXTRACT takes out of a day."""

MOST_BUCKETS = 1000

_FIELDS: dict[type, str] = {
    exp.Year: "year",
    exp.Quarter: "quarter",
    exp.Month: "month",
    exp.Day: "day",
    exp.DayOfMonth: "day",
    exp.DayOfWeek: "dayofweek",
}


def read_group(node: Node, table: Name) -> Key | None:
    """A group column, or what rows are grouped by in its place; None for anything else."""
    node = bare(node)
    try:
        key = _group_of(node, table)
    except QueryError as refusal:
        if (key := _made(node, table)) is None:
            raise refusal from None
        return key
    return key if key is not None else _made(node, table)


def _made(node: Node, table: Name) -> Key | None:
    """What rows are grouped by where it is made of columns, value by value."""
    if node.find(exp.AggFunc, exp.Query, exp.Window, exp.Star, *FLAGS) is not None or node.find(exp.Column) is None:
        return None
    place = position(node)
    try:
        if isinstance(node, exp.Predicate | exp.And | exp.Or | exp.Not):
            test = read_condition(node, table)
            no = Not(part=test, position=test.position)
            pieces = (CaseBranch(condition=test, label=True), CaseBranch(condition=no, label=False))
            column = columns_of(leaves(test)[0])[0]
            return Key(column=column, by=CaseGroups(pieces=pieces), position=place)
        term = read_term(node, column_reader(table), read_literal)
    except (QueryError, IndexError):
        return None
    columns = refs_of(term)
    return Key(column=columns[0], by=Made(term=term), position=place) if columns else None


def _group_of(node: Node, table: Name) -> Key | None:
    place = position(node)
    match node:
        case exp.Column() if isinstance(node.this, exp.Identifier):
            return Key(column=read_column(node, table), position=place)
        case exp.Case() | exp.If() if node.find(exp.AggFunc) is None:
            return _cut(node, table)
        case exp.WidthBucket():
            return _buckets(node, table)
        case exp.TimestampTrunc() | exp.DateTrunc():
            period = _word(node.args.get("unit"))
            if period not in PERIODS:
                raise QueryError(f"DATE_TRUNC goes back to {_listed(PERIODS)}", position=place)
            return Key(column=read_column(node.this, table), by=Trimmed(period=period), position=place)
        case exp.Extract():
            return _extracted(read_column(node.expression, table), _word(node.this), place)
        case _ if type(node) in _FIELDS:
            return _extracted(read_column(node.this, table), _FIELDS[type(node)], place)
        case exp.IntDiv() | exp.Floor() | exp.Mul() if node.find(exp.AggFunc) is None:
            return _stepped(node, table)
    return None


def read_total(node: Node, table: Name) -> Key | None:
    """A group column with a name for its total, CASE WHEN GROUPING(x) = 1 THEN 'all' ELSE x END; None for any other."""
    node = bare(node)
    if not isinstance(node, exp.Case | exp.If) or node.find(*FLAGS) is None:
        return None
    ((when, then), *more), otherwise, subject = case_parts(node)
    test = bare(when) if subject is None else exp.EQ(this=subject.copy(), expression=when.copy())
    sides = [bare(test.this), bare(test.expression)] if isinstance(test, exp.EQ) else []
    flags = [side.expressions[0] for side in sides if isinstance(side, FLAGS) and len(side.expressions) == 1]
    number = [str(side.this) for side in sides if isinstance(side, exp.Literal)]
    if not more and otherwise is not None and flags and number in (["0"], ["1"]):
        total, shown = (then, otherwise) if number == ["1"] else (otherwise, then)
        key, flagged = read_group(shown, table), read_group(flags[0], table)
        constant = isinstance(bare(total), exp.Literal | exp.Neg)
        if constant and key is not None and flagged is not None and key.same(flagged):
            return replace(key, total=read_literal(total), position=position(node))
    raise QueryError(
        "a CASE of GROUPING names a total, as in CASE WHEN GROUPING(x) = 1 THEN 'all' ELSE x END",
        position=position(node),
    )


def _word(node: Node) -> str:
    return "" if node is None else str(node.name).lower()


def _listed(words: tuple[str, ...]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


def _extracted(column: Name, word: str, place: int) -> Key:
    field = "dayofweek" if word in ("dow", "weekday") else word
    if field not in FIELDS:
        raise QueryError(f"EXTRACT takes {_listed(FIELDS)} out of a day", position=place)
    return Key(column=column, by=Trimmed(period=field, number=True), position=place)


def _stepped(node: Node, table: Name) -> Key:
    """x // w, FLOOR(x / w), FLOOR(x / w) * w and FLOOR(x, decimals)."""
    place = position(node)
    inner, times = node, Decimal(1)
    if isinstance(node, exp.Mul):
        sides = [bare(node.this), bare(node.expression)]
        constants = [side for side in sides if isinstance(side, exp.Literal)]
        if len(constants) == 1:
            inner, times = sides[sides[0] is constants[0]], _number(constants[0])
    if isinstance(inner, exp.Floor):
        decimals = inner.args.get("decimals")
        places = 0 if decimals is None else _number(decimals)
        if places != int(places):
            raise QueryError("FLOOR takes a whole number of decimals", position=place)
        step = f"{Decimal(1).scaleb(-int(places)):f}"
        inner, times = bare(inner.this), times * Decimal(step)
        if decimals is not None or not isinstance(inner, exp.Div):
            inner = exp.Div(this=inner, expression=exp.Literal.number(step))
    elif not isinstance(inner, exp.IntDiv):
        raise QueryError("groups of equal width are written FLOOR(x / 10) * 10", position=place)
    width = _number(inner.expression)
    if width <= 0 or times <= 0:
        raise QueryError("a group has a width above 0, as in FLOOR(x / 10) * 10", position=place)
    towards_zero = isinstance(inner, exp.IntDiv)
    by = Stepped(width=width, times=times, towards_zero=towards_zero)
    return Key(column=read_column(inner.this, table), by=by, position=place)


def _number(node: Node) -> Decimal:
    literal = read_literal(node)
    if isinstance(literal, bool) or not isinstance(literal, int | Decimal):
        raise QueryError("a number is expected here", position=position(node))
    return Decimal(literal)


def _buckets(node: Node, table: Name) -> Key:
    """WIDTH_BUCKET(x, low, high, n): 0 below low, n + 1 from high on, and n buckets of equal width between them."""
    place, column = position(node), read_column(node.this, table)
    bounds = [node.args.get(name) for name in ("min_value", "max_value", "num_buckets")]
    if any(bound is None for bound in bounds):
        raise QueryError("WIDTH_BUCKET takes a column, two ends and a number of buckets", position=place)
    low, high, buckets = map(_number, bounds)
    if not low < high or buckets != int(buckets) or not 1 <= buckets <= MOST_BUCKETS:
        raise QueryError(
            f"WIDTH_BUCKET takes a lower end, a higher one, and from 1 to {MOST_BUCKETS} buckets", position=place
        )
    number = int(buckets)
    width = (Fraction(high) - Fraction(low)) / number
    edges = [_decimal(Fraction(low) + i * width, place) for i in range(number + 1)]

    def compare(op: Op, edge: Number) -> Compare:
        return Compare(column=column, op=op, literal=edge, position=place)

    inner = [all_of(compare(Op.GE, edges[i]), compare(Op.LT, edges[i + 1])) for i in range(number)]
    pieces = [compare(Op.LT, edges[0]), *inner, compare(Op.GE, edges[-1])]
    by = CaseGroups(
        pieces=tuple(CaseBranch(condition=piece, label=label) for label, piece in enumerate(pieces)),
        buckets=(low, high, number),
    )
    return Key(column=column, by=by, position=place)


def _decimal(edge: Fraction, place: int) -> Number:
    """An edge as a constant, which must be exact."""
    if edge.denominator == 1:
        return int(edge)
    written = Decimal(edge.numerator) / Decimal(edge.denominator)
    if Fraction(written) != edge:
        raise QueryError("these buckets have edges without an exact decimal form; write them as CASE", position=place)
    return written


def _cut(node: Node, table: Name) -> Key:
    """CASE in both of its forms, and IF, with labels for values."""
    place = position(node)
    cases = read_cases(node, table)
    pieces = [CaseBranch(condition=condition, label=_label(then)) for condition, then in cases]
    kinds = {Decimal if type(piece.label) is int else type(piece.label) for piece in pieces if piece.label is not None}
    if len(kinds) > 1:
        raise QueryError("the labels of a CASE that rows are grouped by are of one type", position=place)
    columns = [column for piece in pieces for leaf in leaves(piece.condition) for column in columns_of(leaf)]
    if not columns:
        raise QueryError("a CASE that rows are grouped by is about columns, and this is about none", position=place)
    return Key(column=columns[0], by=CaseGroups(pieces=tuple(pieces)), position=place)


def _label(node: Node) -> Literal | None:
    node = bare(node)
    if isinstance(node, exp.Null):
        return None
    if isinstance(node, exp.Column):
        raise QueryError("the labels of a CASE that rows are grouped by are constants", position=position(node))
    return read_literal(node)


MOST_SETS = 64
"""Most sets of groups in one question."""

MOST_FLAGGED = 30
"""Most keys of one GROUPING."""

Sets = list[tuple[Node, ...]]
"""Sets of what rows are grouped by."""


def read_keys(
    tree: Node, selected: Sequence[Key | Item | Flag], table: Name
) -> tuple[tuple[Key, ...], tuple[tuple[int, ...], ...]]:
    """All keys, the selected ones first; and the places of those of each set, where there are several sets."""
    group = tree.args.get("group")
    if group is not None:
        check_keys(group)  # it may have been written for GROUP BY ALL, or instead of what is refused
    sets = [()] if group is None else _sets(group)
    read = [[_group(node, selected, table) for node in grouping] for grouping in sets]
    grouped = [key for grouping in read for key in grouping]
    keys: list[Key] = []
    for key in (item for item in selected if isinstance(item, Key)):
        by = [item for item in grouped if item.same(key)]
        if not by:
            raise QueryError(f"{key.name} is selected but not in GROUP BY", position=key.position)
        called = [item.through for item in by if item.through is not None]
        if 0 < len(called) < len(by):
            raise QueryError(
                f"GROUP BY names the same groups twice, once as {called[0].text}, which may be a column of its own; "
                "leave that out, or give what is selected another name",
                position=called[0].position,
            )
        keys.append(replace(key, through=by[0].through))
    for item in grouped:
        if not any(item.same(key) for key in keys):
            keys.append(item)
    places = [tuple(i for i, key in enumerate(keys) if any(key.same(item) for item in grouping)) for grouping in read]
    return tuple(keys), tuple(dict.fromkeys(places)) if len(places) > 1 else ()


def read_flag(node: Node, keys: Sequence[Key], selected: Sequence[Key | Item | Flag], table: Name) -> Flag | None:
    """GROUPING of keys; None for anything else."""
    node = bare(node)
    if not isinstance(node, FLAGS):
        return None
    place, flagged = position(node), []
    for part in node.expressions:
        key = _group(part, selected, table)
        places = [number for number, other in enumerate(keys) if other.same(key)]
        if not places:
            raise QueryError(f"GROUPING takes what is in GROUP BY, and {key.name} is not", position=position(part))
        flagged.append(places[0])
    if not 1 <= len(flagged) <= MOST_FLAGGED:
        raise QueryError(f"GROUPING takes from 1 to {MOST_FLAGGED} columns of GROUP BY", position=place)
    return Flag(name=flag_name(keys, flagged), keys=tuple(flagged), position=place)


def _sets(group: Node) -> Sets:
    """Each item of GROUP BY gives one set or several; a set of all items has one of each."""
    sets: Sets = [()]
    for node in group.expressions:
        sets = [(*left, *right) for left in sets for right in _of_item(node)]
        if len(sets) > MOST_SETS:
            raise QueryError(f"a question has at most {MOST_SETS} sets of groups", position=position(node))
    return sets


def _of_item(node: Node) -> Sets:
    node = bare(node)
    parts = [_of_list(part) for part in node.expressions] if isinstance(node, exp.Rollup | exp.Cube) else []
    match node:
        case exp.Rollup():
            return [tuple(itertools.chain(*parts[:count])) for count in range(len(parts), -1, -1)]
        case exp.Cube() if len(parts) > MOST_SETS.bit_length():
            raise QueryError(f"a question has at most {MOST_SETS} sets of groups", position=position(node))
        case exp.Cube():
            counts = range(len(parts), -1, -1)
            return [tuple(itertools.chain(*some)) for count in counts for some in itertools.combinations(parts, count)]
        case exp.GroupingSets():
            return [grouping for part in node.expressions for grouping in _of_item(part)]
    return [_of_list(node)]


def _of_list(node: Node) -> tuple[Node, ...]:
    """What a bracket lists."""
    node = bare(node)
    return tuple(node.expressions) if isinstance(node, exp.Tuple) else (node,)


def _group(node: Node, selected: Sequence[Key | Item | Flag], table: Name) -> Key:
    """What one item of GROUP BY means: a place in the select list, a column, or else an output name, in this order."""
    node = bare(node)
    place = position(node)
    if isinstance(node, exp.Literal) and not node.is_string:
        number = read_literal(node)
        if not isinstance(number, int) or not 1 <= number <= len(selected):
            raise QueryError(f"GROUP BY counts the selected columns from 1 to {len(selected)}", position=place)
        item = selected[number - 1]
        if not isinstance(item, Key):
            raise QueryError("GROUP BY cannot mean an aggregate", position=place)
        return replace(item, alias=None, position=place)
    key = read_group(node, table)
    if key is None:
        raise QueryError("GROUP BY takes columns, and CASE, FLOOR or DATE_TRUNC of a column", position=place)
    columns = [item for item in selected if isinstance(item, Key)]
    if key.by is None and node.args.get("table") is None and not any(item.same(key) for item in columns):
        for item in columns:
            if item.alias is not None and key.column.names(item.alias):
                return Key(column=item.column, by=item.by, through=key.column, position=place)
    return key
