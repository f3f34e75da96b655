"""A Query as SQL text that `parse` reads back as the same Query; this is how a rewrite is shown."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal
from fractions import Fraction

from bursar.errors import QueryError
from bursar.goal import Goal, GoalKind, OutputGoal
from bursar.sql.names import Literal, Name
from bursar.sql.query import (
    PAIR,
    TRUE,
    Aggregate,
    And,
    AtLeast,
    Between,
    Case,
    CaseBranch,
    CaseGroups,
    Compare,
    Condition,
    Constant,
    Flag,
    Formula,
    Holds,
    In,
    IsNull,
    IsTrue,
    Item,
    Key,
    Leaf,
    Like,
    Linear,
    Made,
    Not,
    Or,
    Query,
    Sort,
    Stepped,
    Trimmed,
    default_name,
    flag_name,
    is_median,
    map_leaves,
)
from bursar.sql.terms import Call, Given, Ref, Term
from bursar.sql.tokens import needs_quotes


def render(query: Query) -> str:
    """The question on one line; a group column that was named by its output name is named by itself.

    Edge cases: of a question with SELECTs around the one that is bought, no text is made.
    """
    if query.stages:
        raise QueryError("a question with SELECTs around it is not written anew")
    named = [f"{_selected(key)}{_alias(key.alias)}" for key in query.keys]
    named += [f"{_flag(flag, query)}{_alias(_own_alias(flag, query))}" for flag in query.flags]
    parts = [f"SELECT {', '.join([*named, *map(_item, query.aggregates)])} FROM {_name(query.table)}"]
    if query.where != TRUE:
        parts.append(f"WHERE {render_condition(query.where)}")
    if query.keys or query.sets:
        parts.append(f"GROUP BY {_grouping(query)}")
    parts += _after(query)
    if query.goal is not None or query.search is not None:
        parts.append(f"WITH {_accuracy(query)}")
    return " ".join(["EXPLAIN"] * query.explain + parts)


def render_condition(condition: Condition) -> str:
    """A condition with as few brackets as its meaning allows; what is said twice is written once."""
    match condition:
        case Constant(value=value):
            return str(value).upper()
        case And(parts=parts):
            return " AND ".join(dict.fromkeys(_inner(part, (Or,)) for part in parts))
        case Or(parts=parts):
            return " OR ".join(dict.fromkeys(_inner(part, ()) for part in parts))
        case Not(part=IsNull(column=column)):
            return f"{_name(column)} IS NOT NULL"
        case Not(part=Between() | In() | Like() as leaf):
            return render_leaf(leaf, "NOT ")
        case Not(part=part):
            return f"NOT {_inner(part, (And, Or))}"
        case AtLeast(count=count, parts=parts):
            return f"AT_LEAST({count}, {', '.join(map(render_condition, parts))})"
        case IsTrue(part=part):
            return f"({render_condition(part)}) IS TRUE"
        case _:
            return render_leaf(condition)


def render_leaf(leaf: Leaf, negation: str = "") -> str:
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
        case Like():
            return f"{column} {negation}{'I' * leaf.any_case}LIKE {render_literal(leaf.pattern)}"
        case Holds():
            return f"{negation}{render_term(leaf.term)}"


_OPERATORS = {"+", "-", "*", "/", "//", "%", "=", "<>", "<", "<=", ">", ">=", "||"}


def render_term(term: Term) -> str:
    """A term of columns, with brackets around everything that is made of operators."""
    match term:
        case Given():
            return "NULL" if term.value is None else render_literal(term.value)
        case Ref():
            return _name(term.name)
        case Call(function=function, parts=parts):
            return _call(function, [render_term(part) for part in parts])
    raise TypeError(f"a term of columns has no {type(term).__name__}")


def _call(function: str, parts: list[str]) -> str:
    match function:
        case _ if function in _OPERATORS:
            return f"({parts[0]} {function} {parts[1]})"
        case "and" | "or":
            return f"({f' {function.upper()} '.join(parts)})"
        case "neg" | "not":
            return f"({'-' if function == 'neg' else 'NOT '}{parts[0]})"
        case "is null":
            return f"({parts[0]} IS NULL)"
        case "same":
            return f"({parts[0]} IS NOT DISTINCT FROM {parts[1]})"
        case "in":
            return f"({parts[0]} IN ({', '.join(parts[1:])}))"
        case "like" | "ilike":
            return f"({parts[0]} {function.upper()} {parts[1]})"
        case "case":
            *pairs, otherwise = parts
            whens = [f"WHEN {test} THEN {then}" for test, then in zip(pairs[::2], pairs[1::2], strict=True)]
            return f"CASE {' '.join(whens)} ELSE {otherwise} END"
        case "int" | "int even" | "real" | "text" | "bool":
            kinds = {"int": "BIGINT", "real": "DOUBLE", "text": "VARCHAR", "bool": "BOOLEAN"}
            return f"CAST({parts[0]} AS {kinds[function.removesuffix(' even')]})"
    if function == PAIR:
        return ", ".join(parts)
    if function == "similar to":
        return f"({parts[0]} SIMILAR TO {parts[1]})"
    if function.startswith("datediff "):
        return f"DATE_DIFF('{function.removeprefix('datediff ')}', {parts[0]}, {parts[1]})"
    if function.startswith("trunc "):
        return f"DATE_TRUNC('{function.removeprefix('trunc ')}', {parts[0]})"
    return f"{function.upper()}({', '.join(reversed(parts) if function == 'log' else parts)})"


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


def _grouping(query: Query) -> str:
    if not query.sets:
        return ", ".join(dict.fromkeys(map(_key, query.keys)))
    every = (*query.sets, *query.unasked)
    sets = [", ".join(dict.fromkeys(_key(query.keys[place]) for place in grouping)) for grouping in every]
    return f"GROUPING SETS ({', '.join(f'({grouping})' for grouping in sets)})"


def _selected(key: Key) -> str:
    """A key in the select list, with the name of its total."""
    text = _key(key)
    if key.total is None:
        return text
    return f"CASE WHEN GROUPING({text}) = 1 THEN {render_literal(key.total)} ELSE {text} END"


def _key(key: Key) -> str:
    """What rows are grouped by."""
    column = _name(key.column)
    match key.by:
        case None:
            return column
        case Stepped(width=width, times=times, towards_zero=towards_zero):
            steps = render_literal(width)
            text = f"{column} // {steps}" if towards_zero else f"FLOOR({column} / {steps})"
            return text if times == 1 else f"{text} * {render_literal(times)}"
        case Trimmed(period=period, number=number):
            return f"EXTRACT({period} FROM {column})" if number else f"DATE_TRUNC('{period}', {column})"
        case Made(term=term):
            return render_term(term)
        case CaseGroups(buckets=None, pieces=pieces):
            return f"CASE {' '.join(_piece(piece, pieces) for piece in pieces)} END"
        case CaseGroups(buckets=(low, high, number)):
            return f"WIDTH_BUCKET({column}, {render_literal(low)}, {render_literal(high)}, {number})"
    raise TypeError(f"nothing is grouped by {key.by!r}")


def _flag(flag: Flag, query: Query) -> str:
    return f"GROUPING({', '.join(_key(query.keys[place]) for place in flag.keys)})"


def _own_alias(flag: Flag, query: Query) -> str | None:
    return None if flag.name == flag_name(query.keys, flag.keys) else flag.name


def _piece(piece: CaseBranch, pieces: tuple[CaseBranch, ...]) -> str:
    then = "NULL" if piece.label is None else render_literal(piece.label)
    if piece is pieces[-1] and piece.condition == TRUE:
        return f"ELSE {then}"
    return f"WHEN {render_condition(piece.condition)} THEN {then}"


def _item(item: Item) -> str:
    """A selected aggregate or formula with its name, unless that is the one it gets by itself."""
    text = _formula(item) if isinstance(item, Formula) else _aggregate(item)
    return f"{text}{_alias(None if item.name == default_name(item) else item.name)}"


def _after(query: Query) -> list[str]:
    """HAVING, ORDER BY, LIMIT and OFFSET; an output without a name of its own is written as what it is."""
    outputs = {item.name: Name(text=_called(item)) for item in query.aggregates}
    whole = Flag(name="", keys=tuple(range(len(query.keys))))
    chosen = [f"{_flag(whole, query)} <> {whole.number(grouping)}" for grouping in query.unasked]
    if query.having != TRUE:
        having = map_leaves(query.having, lambda leaf: replace(leaf, column=outputs[leaf.column.text]))
        chosen.append(_inner(having, (Or,)) if chosen else render_condition(having))
    parts = [f"HAVING {' AND '.join(chosen)}"] if chosen else []
    if query.order:
        parts.append(f"ORDER BY {', '.join(_sort(query, sort, outputs) for sort in query.order)}")
    if query.limit is not None:
        parts.append(f"LIMIT {query.limit}")
    if query.offset:
        parts.append(f"OFFSET {query.offset}")
    return parts


def _called(item: Item) -> str:
    if item.name != default_name(item):
        return quoted(item.name) if needs_quotes(item.name) else item.name
    return _formula(item) if isinstance(item, Formula) else _aggregate(item)


def _sort(query: Query, sort: Sort, outputs: dict[str, Name]) -> str:
    shown = map(_key if sort.unnamed else _selected, query.keys)
    marked = [*shown, *(_flag(flag, query) for flag in query.flags)]
    what = marked[sort.key] if sort.output is None else outputs[sort.output].text
    if sort.output is None and _hidden(query, sort):
        what = f"{_name(query.table)}.{what}"
    return f"{what}{' DESC' * sort.descending}{' NULLS FIRST' * sort.nulls_first}"


def _hidden(query: Query, sort: Sort) -> bool:
    """Whether a column that is sorted by as it is has the name of something else, which ORDER BY would mean."""
    if sort.key >= len(query.keys) or (key := query.keys[sort.key]).by is not None:
        return False
    if key.total is not None and not sort.unnamed:
        return False
    others = [other.alias for place, other in enumerate(query.keys) if place != sort.key or key.total is not None]
    names = [*others, *(flag.name for flag in query.flags), *query.names]
    return any(name is not None and name.casefold() == key.column.text.casefold() for name in names)


def _aggregate(aggregate: Aggregate) -> str:
    of, condition = aggregate.of, aggregate.condition
    inside = "*" if of is None else _value(of)
    inside = f"DISTINCT {inside}" if aggregate.distinct else inside
    share = "" if aggregate.fraction is None else f", {render_literal(aggregate.fraction)}"
    function = aggregate.function.value
    if is_median(aggregate):
        function, share = "MEDIAN", ""
    filtered = "" if condition == TRUE else f" FILTER (WHERE {render_condition(condition)})"
    return f"{function}({inside}{share}){filtered}"


def _value(value: Name | Case | Call) -> str:
    match value:
        case Case():
            return _case(value)
        case Call():
            return render_term(value)
    return _name(value)


def _case(case: Case) -> str:
    words = []
    for branch in case.branches:
        value = branch.value
        then = "NULL" if value is None else _value(value) if isinstance(value, Name | Call) else render_literal(value)
        last = branch is case.branches[-1] and branch.condition == TRUE and len(case.branches) > 1
        words.append(f"ELSE {then}" if last else f"WHEN {render_condition(branch.condition)} THEN {then}")
    return f"CASE {' '.join(words)} END"


def _formula(formula: Formula) -> str:
    above = _linear(formula.above)
    if formula.below is None:
        return above
    below = _linear(formula.below)
    plain = _single(formula.below) and formula.below.terms[0][0] == 1
    return f"{above if _single(formula.above) else f'({above})'} / {below if plain else f'({below})'}"


def _single(side: Linear) -> bool:
    return side.constant == 0 and len(side.terms) == 1


def _linear(side: Linear) -> str:
    terms = [_term(weight, _aggregate(part)) for weight, part in side.terms]
    terms += [_term(side.constant, "")] if side.constant or not terms else []
    return " + ".join(terms).replace("+ -", "- ")


def _term(weight: Fraction, text: str) -> str:
    whole = str(weight.numerator)
    over = "" if weight.denominator == 1 else f" / {weight.denominator}"
    if text and abs(weight.numerator) == 1:
        return f"{'-' if weight < 0 else ''}{text}{over}"
    return f"{whole} * {text}{over}" if text else f"{whole}{over}"


def _alias(alias: str | None) -> str:
    if alias is None:
        return ""
    return f" AS {quoted(alias) if needs_quotes(alias) else alias}"


def _name(name: Name) -> str:
    return quoted(name.text) if name.quoted else name.text


def _accuracy(query: Query) -> str:
    spend = None if query.search is None else query.search.spend
    search = "" if query.search is None else "DISCOVERY" if spend is None else f"DISCOVERY {_amount(spend)}"
    return " ".join(filter(None, ["" if query.goal is None else _goal(query.goal), search]))


def _goal(goal: Goal) -> str:
    kind = goal.unit.upper() or ("EPSILON" if goal.kind is GoalKind.SPEND else goal.kind.name)
    kind = "RELATIVE ERROR" if goal.relative else kind
    parts = goal.parts or (OutputGoal(amount=goal.amount, percent=goal.percent),)
    amounts = [f"{_amount(part.amount)}{'%' * part.percent}{_on(part.output)}" for part in parts]
    sure = f" CONFIDENCE {goal.confidence!r}" if goal.confidence != 0.95 else ""
    floor = "" if goal.floor is None else f" FLOOR {_amount(goal.floor)}"
    return f"{kind} {', '.join(amounts)}{floor}{sure}"


def _amount(amount: float) -> str:
    return repr(int(amount) if amount.is_integer() and amount < 2**53 else amount)


def _on(output: str | None) -> str:
    return "" if output is None else f" ON {quoted(output) if needs_quotes(output) else output}"
