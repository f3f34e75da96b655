"""A Query as SQL text that `parse` reads back as the same Query; this is how a rewrite is shown."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from bursar.goal import Goal, GoalKind
from bursar.sql.query import (
    TRUE,
    Aggregate,
    And,
    Between,
    Compare,
    Condition,
    Constant,
    In,
    IsNull,
    Literal,
    Name,
    Not,
    Or,
    Query,
)
from bursar.sql.tokens import needs_quotes


def render(query: Query) -> str:
    """The question on one line; a group column that was named by its output name is named by itself."""
    named = [f"{_name(key.column)}{_alias(key.alias)}" for key in query.keys]
    parts = [f"SELECT {', '.join([*named, *map(_aggregate, query.aggregates)])} FROM {_name(query.table)}"]
    if query.where != TRUE:
        parts.append(f"WHERE {render_condition(query.where)}")
    if query.keys:
        parts.append(f"GROUP BY {', '.join(dict.fromkeys(_name(key.column) for key in query.keys))}")
    if query.goal is not None:
        parts.append(_goal(query.goal))
    return " ".join(["EXPLAIN"] * query.explain + parts)


def render_condition(condition: Condition) -> str:
    """A condition with as few brackets as its meaning allows."""
    match condition:
        case Constant(value=value):
            return str(value).upper()
        case And(parts=parts):
            return " AND ".join(_inner(part, (Or,)) for part in parts)
        case Or(parts=parts):
            return " OR ".join(_inner(part, ()) for part in parts)
        case Not(part=IsNull(column=column)):
            return f"{_name(column)} IS NOT NULL"
        case Not(part=Between() | In() as leaf):
            return render_leaf(leaf, "NOT ")
        case Not(part=part):
            return f"NOT {_inner(part, (And, Or))}"
        case _:
            return render_leaf(condition)


def render_leaf(leaf: Compare | Between | In | IsNull, negation: str = "") -> str:
    """A condition on one column."""
    column = _name(leaf.column)
    match leaf:
        case Compare():
            return f"{column} {leaf.op.value} {render_literal(leaf.literal)}"
        case Between():
            return f"{column} {negation}BETWEEN {render_literal(leaf.low)} AND {render_literal(leaf.high)}"
        case In():
            return f"{column} {negation}IN ({', '.join(map(render_literal, leaf.literals))})"
        case IsNull():
            return f"{column} IS NULL"


def render_literal(literal: Literal) -> str:
    """A constant as SQL writes it."""
    match literal:
        case bool():
            return str(literal).upper()
        case str():
            return "'" + literal.replace("'", "''") + "'"
        case date():
            return f"DATE '{literal.isoformat()}'"
        case Decimal():
            return f"{literal:f}" if -20 < literal.adjusted() < 20 else str(literal)
        case int():
            return str(literal)


def quoted(text: str) -> str:
    """A name in quotes."""
    return '"' + text.replace('"', '""') + '"'


def _inner(condition: Condition, weaker: tuple[type, ...]) -> str:
    text = render_condition(condition)
    return f"({text})" if isinstance(condition, weaker) else text


def _aggregate(aggregate: Aggregate) -> str:
    condition = aggregate.condition
    filtered = "" if condition == TRUE else f" FILTER (WHERE {render_condition(condition)})"
    return f"COUNT(*){filtered}{_alias(aggregate.name if aggregate.name != 'count' else None)}"


def _alias(alias: str | None) -> str:
    if alias is None:
        return ""
    return f" AS {quoted(alias) if needs_quotes(alias) else alias}"


def _name(name: Name) -> str:
    return quoted(name.text) if name.quoted else name.text


def _goal(goal: Goal) -> str:
    kind = goal.unit.upper() or ("EPSILON" if goal.kind is GoalKind.SPEND else goal.kind.name)
    amount = int(goal.amount) if goal.amount.is_integer() and goal.amount < 2**53 else goal.amount
    sure = f" CONFIDENCE {goal.confidence!r}" if goal.confidence != 0.95 else ""
    return f"WITH {kind} {amount!r}{'%' * goal.percent}{sure}"
