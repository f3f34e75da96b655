"""Questions that aggregate per person first: an outer SELECT over an inner one that has the unit column in GROUP BY.

SELECT AVG(total) FROM (SELECT person, LEAST(SUM(cost), 500) AS total FROM visits GROUP BY person)
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

from sqlglot import exp

from bursar.errors import QueryError
from bursar.lazy_dataclass import dataclass
from bursar.sql.accuracy import bind_goal
from bursar.sql.literals import read_literal
from bursar.sql.names import Name
from bursar.sql.parse import Syntax, read_statement, read_syntax
from bursar.sql.query import Query, aggregates_of
from bursar.sql.spelling import spelled
from bursar.sql.syntax import Node, bare, case_parts, check_allowed, position, read_name

SHAPE = (
    "people are asked about like this: SELECT AVG(total) FROM (SELECT person, SUM(cost) AS total FROM visits GROUP BY "
    "person), with COUNT, SUM, AVG, MEDIAN, STDDEV, MIN or MAX outside and one COUNT or SUM inside"
)
ONE_TABLE = Name(text="people")


@dataclass(frozen=True, kw_only=True)
class PeopleQuery(Query):
    """A question about one number of each person. `inner` says how it is made of their rows, and is called `number`.

    What is inherited is the outer question: its columns are that number and the keys of the inner one.
    """

    inner: Query
    number: str
    lower: Fraction | None = None  # what GREATEST and LEAST around the inner aggregate say
    upper: Fraction | None = None


def asks_about_people(text: str, unit: str) -> bool:
    """Whether a text groups by the unit column in an inner SELECT."""
    return _read(text, unit) is not None


def parse_people(text: str, unit: str) -> PeopleQuery | None:
    """The question, where it groups by the unit column in an inner SELECT; None for every other text.

    Guarantees: a text that is None here is read by `parse`, or refused by it.
    """
    selects = _read(text, unit)
    if selects is None:
        return None
    syntax, outer, inner = selects
    outer, inner = _counting(spelled(outer)), spelled(inner)
    try:
        number, lower, upper, plain = _inner(inner, unit)
        _check_left_out(outer, inner, number)
        check_allowed(plain, syntax.tokens)
        check_allowed(outer, syntax.tokens)
        around, per_person = read_statement(outer), read_statement(plain)
        if len(per_person.aggregates) != 1 or len(aggregates_of(per_person.aggregates[0])) != 1:
            raise QueryError(SHAPE, position=position(inner))
        goal = bind_goal(syntax.goal, around.names)
    except QueryError as refusal:
        raise replace(refusal, text=text) from None
    facts = {name: getattr(around, name) for name in Query.__dataclass_fields__}
    facts |= {"table": per_person.table, "text": text, "goal": goal, "search": syntax.search, "explain": syntax.explain}
    return PeopleQuery(**facts, inner=per_person, number=number, lower=lower, upper=upper)


def _counting(outer: Node) -> Node:
    """The outer SELECT with sums and averages of 1 for some people and 0 for all others as counts of these."""

    def change(node: Node) -> Node:
        inside = bare(node.this) if isinstance(node, exp.Sum | exp.Avg) else None
        if not isinstance(inside, exp.Case | exp.If):
            return node
        pairs, otherwise, what = case_parts(inside)
        ends = [part.this for part in (pairs[0][1], otherwise) if isinstance(part, exp.Literal)]
        if what is not None or len(pairs) != 1 or ends not in (["1", "0"], ["1.0", "0.0"], ["1.0", "0"]):
            return node
        everybody = exp.Count(this=exp.Star(), big_int=True)
        some = exp.Filter(this=everybody.copy(), expression=exp.Where(this=pairs[0][0].copy()))
        return some if isinstance(node, exp.Sum) else exp.Div(this=some, expression=everybody)

    return outer.transform(change)


def _read(text: str, unit: str) -> tuple[Syntax, Node, Node] | None:
    """The statement, its outer SELECT, and the inner one that groups by the unit column; None where there is none."""
    if not isinstance(text, str) or unit.casefold() not in text.casefold():
        return None
    try:
        syntax = read_syntax(text)
        outer, inner = _both(syntax.tree)
    except Exception:  # no question of this kind: `parse` says what is wrong with it
        return None
    return None if inner is None or not _by(inner, unit) else (syntax, outer, inner)


def _check_left_out(outer: Node, inner: Node, number: str) -> None:
    """Refuse sums of what is beyond a bound: SUM(n - 5). People beyond it can be counted."""
    for node in outer.find_all(exp.Sub):
        sides = bare(node.this), bare(node.expression)
        if node.find_ancestor(exp.Sum) is not None and _names(sides[0], number) and isinstance(sides[1], exp.Literal):
            people = f"SELECT COUNT(*) FROM ({inner.sql('duckdb')}) WHERE {number} > {sides[1].this}"
            raise QueryError(
                "one person can have any number of rows beyond a bound, so no noise hides them; how many people have "
                "more can be asked",
                position=position(node),
                rewrite=people,
            )


def _both(tree: Node) -> tuple[Node, Node | None]:
    """The outer SELECT over a table of people, and the inner one that makes it: in FROM, or in WITH."""
    if not isinstance(tree, exp.Select):
        return tree, None
    outer = tree.copy()
    source, clause = outer.args.get("from_"), outer.args.get("with_")
    if source is None:
        return outer, None
    table, inner = source.this, None
    if isinstance(table, exp.Subquery):
        inner = table.this
    elif isinstance(table, exp.Table) and clause is not None and len(clause.expressions) == 1:
        named = clause.expressions[0]
        if not clause.args.get("recursive") and read_name(named.args["alias"].this).agrees(read_name(table.this)):
            inner = named.this
            outer.set("with_", None)
    if not isinstance(inner, exp.Select):
        return outer, None
    inner = _needed(outer, _named_outside(outer, _chosen_outside(outer, _by_columns(inner.copy()))))
    called = table.args.get("alias")
    unnamed = table.name if isinstance(table, exp.Table) else ONE_TABLE.text  # of WITH t AS (...) it is t
    name = unnamed if called is None else str(called.this.this)
    source.set("this", exp.Table(this=exp.Identifier(this=name, quoted=True)))
    return outer, inner


def _aggregates(tree: Node) -> list[Node]:
    """The aggregates in a tree, each with its FILTER."""
    return [node.parent if isinstance(node.parent, exp.Filter) else node for node in tree.find_all(exp.AggFunc)]


def _by_columns(inner: Node) -> Node:
    """The inner SELECT with GROUP BY 1 as what stands there."""
    for node in [] if inner.args.get("group") is None else list(inner.args["group"].expressions):
        place = int(str(node.this)) if isinstance(node, exp.Literal) and str(node.this).isdecimal() else 0
        if 1 <= place <= len(inner.expressions):
            node.replace(inner.expressions[place - 1].unalias().copy())
    return inner


def _chosen_outside(outer: Node, inner: Node) -> Node:
    """HAVING of the inner SELECT as WHERE of the outer one, if it is about the one number of each person.

    The inner one has a line for each person, and for each of its keys, and HAVING leaves some of them to be read: so
    does WHERE around it.
    """
    having = inner.args.get("having")
    if having is None:
        return inner
    selected = {item.this: item.alias for item in inner.expressions if isinstance(item, exp.Alias)}
    missing = {node for node in _aggregates(having) if node not in selected}
    numbers = [alias for node, alias in selected.items() if node.find(exp.AggFunc) is not None]
    if len(missing) > 1 or (missing and numbers):
        return inner  # several numbers of each person; refused for its HAVING
    for node in missing:
        name = next(f"number{'_' * length}" for length in range(9) if f"number{'_' * length}" not in selected.values())
        inner.append("expressions", exp.alias_(node.copy(), name, quoted=True))
        selected[node] = name
    for node in _aggregates(having):
        node.replace(exp.column(exp.to_identifier(selected[node], quoted=True)))
    where = outer.args.get("where")
    parts = [exp.paren(clause.this.copy()) for clause in (where, having) if clause is not None]
    outer.set("where", exp.Where(this=exp.and_(*parts)))
    inner.set("having", None)
    return inner


def _needed(outer: Node, inner: Node) -> Node:
    """The inner SELECT without the numbers that nothing outside asks for, where it has several.

    Edge cases: where none is asked for, people are counted, and any COUNT will do: it is never NULL.
    """
    numbers = [item for item in inner.expressions if isinstance(item, exp.Alias) and item.find(exp.AggFunc) is not None]
    asked = {column.name.casefold() for column in outer.find_all(exp.Column)}
    used = [item for item in numbers if item.alias.casefold() in asked]
    used = used or [item for item in numbers if isinstance(bare(item.this), exp.Count)][:1]
    every = any(not isinstance(star.parent, exp.Count) for star in outer.find_all(exp.Star))
    for item in numbers if used and not every and inner.args.get("having") is None else []:
        if item not in used:
            item.pop()
    return inner


def _named_outside(outer: Node, inner: Node) -> Node:
    """A CASE over the one number of each person, selected inside, as the same CASE over that number outside."""
    cases = [item for item in inner.expressions if isinstance(bare(item.unalias()), exp.Case | exp.If)]
    cases = [item for item in cases if isinstance(item, exp.Alias) and item.find(exp.AggFunc) is not None]
    numbers = {node for item in inner.expressions for node in _aggregates(item)}
    if len(cases) != 1 or len(numbers) != 1:
        return inner
    (case,), (number,) = cases, numbers
    selected = [item.alias for item in inner.expressions if isinstance(item, exp.Alias) and item.this == number]
    name = selected[0] if selected else f"number of {case.alias}"
    by = exp.paren(case.this.copy())
    for node in _aggregates(by):
        node.replace(exp.column(exp.to_identifier(name, quoted=True)))
    case.pop()
    if not selected:
        inner.append("expressions", exp.alias_(number.copy(), name, quoted=True))
    called = read_name(case.args["alias"])
    for node in list(outer.find_all(exp.Column)):
        if isinstance(node.this, exp.Identifier) and read_name(node.this).agrees(called):
            selects = node.parent is outer and node.arg_key == "expressions"
            node.replace(exp.alias_(by.copy(), node.name, quoted=True) if selects else by.copy())
    return inner


def _by(inner: Node, unit: str) -> bool:
    """Whether the inner SELECT groups by the unit column."""
    group = inner.args.get("group")
    return group is not None and any(_names(node, unit) for node in group.expressions)


def _names(node: Node, unit: str) -> bool:
    node = bare(node)
    return isinstance(node, exp.Column) and isinstance(node.this, exp.Identifier) and read_name(node.this).names(unit)


def _inner(inner: Node, unit: str) -> tuple[str, Fraction | None, Fraction | None, Node]:
    """What the number is called, its bounds, and the inner SELECT without the unit and without them."""
    plain = inner.copy()
    if any(plain.args.get(clause) for clause in ("having", "order", "limit", "offset", "distinct", "qualify", "joins")):
        raise QueryError(f"the inner SELECT has FROM, WHERE and GROUP BY; {SHAPE}", position=position(inner))
    keys = [node for node in plain.args["group"].expressions if not _names(node, unit)]
    plain.set("group", None if not keys else exp.Group(expressions=keys))
    selected: list[Node] = []
    number = ""
    low: Fraction | None = None
    high: Fraction | None = None
    for node in plain.expressions:
        aliased = node.this if isinstance(node, exp.Alias) else node
        if _names(aliased, unit):
            continue
        if bare(aliased).find(exp.AggFunc) is None:
            selected.append(node)
            continue
        if number:
            raise QueryError(f"one number per person is asked about at a time; {SHAPE}", position=position(node))
        if not isinstance(node, exp.Alias):
            raise QueryError("give the number of each person a name: SUM(cost) AS total", position=position(node))
        number = str(node.args["alias"].this)
        low, high, aggregate = _clamped(bare(aliased))
        selected.append(exp.alias_(aggregate, number, quoted=True))
    if not number:
        raise QueryError(SHAPE, position=position(inner))
    plain.set("expressions", selected)
    return number, low, high, plain


def _clamped(node: Node) -> tuple[Fraction | None, Fraction | None, Node]:
    """LEAST(x, 500) and GREATEST(x, 0), in any order around each other: the bounds, and what they are around."""
    low: Fraction | None = None
    high: Fraction | None = None
    while isinstance(node, exp.Least | exp.Greatest):
        sides = [bare(side) for side in (node.this, *node.expressions)]
        inside = [side for side in sides if side.find(exp.AggFunc) is not None]
        bounds = [_number(side) for side in sides if side not in inside]
        if len(inside) != 1 or len(bounds) != 1:
            raise QueryError("a bound is one number: LEAST(SUM(cost), 500)", position=position(node))
        if isinstance(node, exp.Least):
            high = bounds[0] if high is None else min(high, bounds[0])
        else:
            low = bounds[0] if low is None else max(low, bounds[0])
        if low is not None and high is not None and low > high:
            raise QueryError("these bounds leave nothing between them", position=position(node))
        node = inside[0]
    return low, high, node


def _number(node: Node) -> Fraction:
    literal = read_literal(node)
    if isinstance(literal, bool) or not isinstance(literal, int | Decimal):
        raise QueryError("a bound is one number: LEAST(SUM(cost), 500)", position=position(node))
    return Fraction(literal)
