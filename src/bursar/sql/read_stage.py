"""A SELECT over the lines of another one, as a stage: terms over lines, aggregates over them, and OVER."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, count

from sqlglot import exp
from sqlglot.tokens import Token

from bursar.errors import QueryError
from bursar.lazy_dataclass import dataclass
from bursar.sql.literals import read_literal
from bursar.sql.names import Name
from bursar.sql.read_terms import read_term
from bursar.sql.syntax import (
    Node,
    bare,
    check_allowed,
    position,
    read_name,
    reason,
    without_alias,
)
from bursar.sql.terms import Call, Fold, LineSort, Ref, Stage, Term, Window, walk_terms

FOLDS: dict[type, str] = {exp.Sum: "sum", exp.Avg: "avg", exp.Count: "count", exp.Min: "min", exp.Max: "max"}
"""Aggregates over lines."""

CHOICES: dict[type, str] = {exp.ArgMax: "arg_max", exp.ArgMin: "arg_min"}
"""What takes a value from the line where another is largest, or smallest."""

WINDOWS: dict[type, str] = {
    **FOLDS,
    exp.RowNumber: "row_number",
    exp.Rank: "rank",
    exp.DenseRank: "dense_rank",
    exp.PercentRank: "percent_rank",
    exp.CumeDist: "cume_dist",
    exp.Ntile: "ntile",
    exp.Lag: "lag",
    exp.Lead: "lead",
    exp.FirstValue: "first_value",
    exp.LastValue: "last_value",
    exp.NthValue: "nth_value",
}
"""Functions OVER lines."""

_ENDS = {"DP_INTERVAL_LOW": "low end", "DP_INTERVAL_HIGH": "high end"}
"""The ends of the error bar of a number."""

BOUNDS = {"DECLARED_MIN": "declared min", "DECLARED_MAX": "declared max"}
"""What MIN and MAX of a column are where no accuracy is asked for: the bounds that are declared."""


def line_sort(sort: Node, by: Term) -> LineSort:
    """One item of ORDER BY, over the lines of an answer."""
    return LineSort(by=by, descending=bool(sort.args.get("desc")), nulls_first=bool(sort.args.get("nulls_first")))


def count_of_lines(clause: Node | None, least: int = 0) -> int | None:
    """The number of a LIMIT or OFFSET; None where there is no such clause."""
    if clause is None:
        return None
    number = read_literal(clause.expression)
    if isinstance(number, bool) or not isinstance(number, int) or number < least:
        raise QueryError(f"LIMIT and OFFSET take a whole number from {least} on", position=position(clause))
    return number


@dataclass(frozen=True)
class LineReader:
    """Reads terms over lines that have the named columns."""

    names: Sequence[str]
    called: Name | None

    def read(self, node: Node) -> Term:
        return read_term(node, self.ref, read_literal)

    def ref(self, node: Node) -> Term:
        """A column of the lines, or what stands in the place of one: an aggregate over lines, or a window."""
        place = position(node)
        match node:
            case exp.Column() if isinstance(node.this, exp.Identifier):
                return self._column(node)
            case exp.Window():
                return self._window(node)
            case exp.Anonymous() if node.name.upper() in _ENDS and len(node.expressions) == 1:
                of = self.read(node.expressions[0])
                return Call(function=_ENDS[node.name.upper()], parts=(of,), position=place)
            case exp.Anonymous() if node.name.upper() in BOUNDS:
                column = Ref(name=read_name(bare(node.expressions[0]).this), position=place)
                return Call(function=BOUNDS[node.name.upper()], parts=(column,), position=place)
            case exp.Filter() | exp.AggFunc():
                return self._fold(node)
        raise QueryError(reason(node), position=place)

    def _column(self, node: Node) -> Ref:
        qualifier, name = node.args.get("table"), read_name(node.this)
        if qualifier is not None and (self.called is None or not read_name(qualifier).agrees(self.called)):
            raise QueryError(f"there is no table {qualifier.name} in this question", position=position(qualifier))
        exact = [column for column in self.names if column == name.text]
        matches = exact or [column for column in self.names if name.names(column)]
        if not matches:
            raise QueryError(
                f"the sub-select does not hand on a column {name.text}; there is {', '.join(self.names)}",
                position=position(node),
            )
        return Ref(name=Name(text=matches[0], quoted=True), position=position(node))

    def _fold(self, node: Node) -> Fold:
        place, condition = position(node), None
        if isinstance(node, exp.Filter):
            condition, node = self.read(node.expression.this), bare(node.this)
        if type(node) in CHOICES:
            taken, by = self.read(bare(node.this)), self.read(bare(node.expression))
            return Fold(function=CHOICES[type(node)], of=taken, by=by, condition=condition, position=place)
        if type(node) not in FOLDS:
            raise QueryError(
                "of aggregates over groups, SUM, AVG, COUNT, MIN, MAX, ARG_MAX and ARG_MIN are available",
                position=place,
            )
        inner = bare(node.this)
        if isinstance(inner, exp.Distinct):
            raise QueryError(reason(inner), position=place)
        star = inner is None or isinstance(inner, exp.Star | exp.Literal)
        of = None if star and isinstance(node, exp.Count) else self.read(inner)
        return Fold(function=FOLDS[type(node)], of=of, condition=condition, position=place)

    def _window(self, node: Node) -> Window:
        place, function = position(node), bare(node.this)
        if type(function) not in WINDOWS:
            raise QueryError("this cannot stand before OVER; SUM, AVG, RANK and LAG can", position=place)
        name, inner = WINDOWS[type(function)], function.this
        parts: list[Term] = []
        if isinstance(inner, exp.Expression) and not isinstance(inner, exp.Star):
            parts.append(self.read(inner))
        for extra in ("offset", "default"):
            if function.args.get(extra) is not None:
                parts.append(self.read(function.args[extra]))
        order = node.args.get("order")
        return Window(
            function=name,
            parts=tuple(parts),
            partition=tuple(self.read(part) for part in node.args.get("partition_by") or []),
            order=tuple(line_sort(s, self.read(s.this)) for s in ([] if order is None else order.expressions)),
            frame=_frame(node.args.get("spec")),
            position=place,
        )


def _frame(spec: Node | None) -> tuple[int | None, int | None] | None:
    """How far before and behind a line its frame reaches; None is the frame that there is without one."""
    if spec is None:
        return None
    kind = str(spec.args.get("kind") or "ROWS").upper()
    by_value = kind == "RANGE" and any(isinstance(spec.args.get(side), exp.Expression) for side in ("start", "end"))
    if kind not in ("ROWS", "RANGE") or by_value:
        raise QueryError("frames of OVER are counted in ROWS", position=position(spec))
    start, end = (_edge(spec, side, own) for side, own in (("start", "PRECEDING"), ("end", "FOLLOWING")))
    if kind == "RANGE" and (start, end) == (None, 0):
        return None
    if kind == "RANGE" and (start, end) != (None, None):
        raise QueryError("frames of OVER are counted in ROWS", position=position(spec))
    if start is not None and end is not None and start + end < 0:
        raise QueryError("a frame of OVER begins before it ends", position=position(spec))
    return start, end


MOST_FRAMED = 10_000
"""Most lines that a frame of OVER is counted in, on either side."""


def _edge(spec: Node, name: str, own: str) -> int | None:
    """How far an edge of a frame lies on its own side; below 0, on the other one."""
    edge, side = spec.args.get(name), str(spec.args.get(f"{name}_side") or own)
    word = str(edge or "CURRENT ROW").upper()
    if word == "CURRENT ROW":
        return 0
    if word == "UNBOUNDED" and side == own:
        return None
    number = read_literal(edge) if isinstance(edge, exp.Expression) else -1
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= MOST_FRAMED:
        raise QueryError(
            f"a frame of OVER begins and ends with the CURRENT ROW, a number of lines up to {MOST_FRAMED} before or "
            "behind it, or UNBOUNDED",
            position=position(edge, spec),
        )
    return number if side == own else -number


def read_stage(select: Node, called: Name | None, names: Sequence[str], tokens: list[Token]) -> Stage:
    """A SELECT around: what it does with the lines that it reads."""
    check = select.copy()
    check.set("from_", exp.From(this=exp.to_table("lines")))
    for name in ("qualify", "distinct"):
        check.set(name, None)
    check_allowed(check, tokens)
    distinct, where, having, qualify, group, order = (
        select.args.get(name) for name in ("distinct", "where", "having", "qualify", "group", "order")
    )
    if qualify is not None:
        check_allowed(qualify.this, tokens)
    if distinct is not None:
        raise QueryError("SELECT DISTINCT is not available; GROUP BY lists every value", position=position(select))
    items = [item for each in select.expressions for item in _starred(each, names)]
    reader = LineReader(names, called)
    columns = [(name, reader.read(node)) for name, node in _stage_names(items)]
    by_name = {name.casefold(): term for name, term in columns}

    def read(node: Node) -> Term:
        node = bare(node)
        if isinstance(node, exp.Column) and node.args.get("table") is None:
            name = node.name.casefold()
            if name in by_name and not any(name == other.casefold() for other in names):
                return by_name[name]
        number = isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdecimal()
        if number and 1 <= int(str(node.this)) <= len(columns):
            return columns[int(str(node.this)) - 1][1]
        return reader.read(node)

    def ordered(node: Node) -> Term:
        named = isinstance(bare(node), exp.Column) and bare(node).args.get("table") is None
        term = by_name.get(bare(node).name.casefold()) if named else None
        return read(node) if term is None else term

    keys = None if group is None else tuple(read(part) for part in group.expressions)
    stage = Stage(
        columns=tuple(columns),
        where=None if where is None else reader.read(where.this),
        keys=keys,
        having=None if having is None else _replaced(having.this, by_name, names, reader),
        qualify=None if qualify is None else _replaced(qualify.this, by_name, names, reader),
        order=tuple(line_sort(s, ordered(s.this)) for s in ([] if order is None else order.expressions)),
        limit=count_of_lines(select.args.get("limit"), least=1),
        offset=count_of_lines(select.args.get("offset")) or 0,
    )
    _check_stage(stage, select)
    return stage


def _replaced(node: Node, by_name: dict[str, Term], names: Sequence[str], reader: LineReader) -> Term:
    """A condition of HAVING or QUALIFY, which may call what is selected by its name."""

    def ref(inner: Node) -> Term:
        name = inner.name.casefold() if isinstance(inner, exp.Column) and inner.args.get("table") is None else ""
        if name in by_name and not any(name == other.casefold() for other in names):
            return by_name[name]
        return reader.ref(inner)

    return read_term(node, ref, read_literal)


def _starred(item: Node, names: Sequence[str]) -> list[Node]:
    """What a * stands for."""
    node = without_alias(item)
    if not item.is_star and not (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
        return [item]
    if any(any(star.args.values()) for star in node.find_all(exp.Star)):
        raise QueryError("a * stands for all columns here", position=position(item))
    return [exp.Column(this=exp.to_identifier(name, quoted=True)) for name in names]


def _stage_names(items: Sequence[Node]) -> list[tuple[str, Node]]:
    named: list[tuple[str, Node]] = []
    for item in items:
        node = without_alias(item)
        name = item.alias or (node.name if isinstance(node, exp.Column) else "")
        name = name or name_of_function(node)
        taken = {other.casefold() for other, _ in named}
        numbered = (f"{name}_{number}" for number in count(2))
        named.append((next(each for each in chain([name], numbered) if each.casefold() not in taken), node))
    return named


def name_of_function(node: Node) -> str:
    """What a column without a name is called: by its function over lines, if it is one."""
    function = bare(node.this) if isinstance(node, exp.Window | exp.Filter) else node
    if isinstance(function, exp.Anonymous) and function.name.upper() in BOUNDS:
        return str(function.name).lower().removeprefix("declared_")
    return {**WINDOWS, **CHOICES}.get(type(function), "result")


def _check_stage(stage: Stage, select: Node) -> None:
    """Aggregates over lines take all of what is selected, or groups."""
    folded = any(isinstance(part, Fold) for term in stage.terms() for part in walk_terms(term))
    if stage.keys is None and not folded:
        if stage.having is not None:
            raise QueryError("HAVING stands with GROUP BY or an aggregate", position=position(select))
        return
    keys = stage.keys or ()
    for _, term in stage.columns:
        _check_folded(term, keys, select)
    if stage.where is not None and any(isinstance(part, Fold | Window) for part in walk_terms(stage.where)):
        raise QueryError("an aggregate cannot stand in WHERE; HAVING comes after GROUP BY", position=position(select))


def _check_folded(term: Term, keys: Sequence[Term], select: Node) -> None:
    if term in keys or isinstance(term, Fold):
        return
    if isinstance(term, Ref):
        raise QueryError(f"{term.name.text} is selected but not in GROUP BY", position=max(term.position, 0))
    for part in term.parts if isinstance(term, Call | Window) else ():
        _check_folded(part, keys, select)
