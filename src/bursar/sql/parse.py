"""Text to Query, or a refusal that says where and why."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ParseError

from bursar.errors import QueryError
from bursar.goal import Goal
from bursar.sql.accuracy import bind, cut_accuracy
from bursar.sql.allowed import Node, check_allowed
from bursar.sql.flatten import flat
from bursar.sql.query import Query
from bursar.sql.statement import read_statement
from bursar.sql.tokens import Token, statement_tokens


@dataclass(frozen=True, kw_only=True)
class Syntax:
    """The syntax tree of a text, not yet checked, with what was cut off before it was parsed."""

    tree: Node
    tokens: list[Token]
    goal: Goal | None
    explain: bool


def parse(text: str) -> Query:
    """The question that a text asks.

    Guarantees: whatever the text is, the result is a Query or a QueryError with the position of the fault. Takes time
    and memory bounded by the limits in `tokens`. A rewrite that the refusal may carry is not checked yet: that is for
    `rewrite.suggest`, which finds one for most others, too.
    """
    try:
        syntax = read_syntax(text)
        query = read_query(syntax.tree, syntax.tokens)
        return replace(query, text=text, goal=bind(syntax.goal, query.names), explain=syntax.explain)
    except QueryError as refusal:
        raise replace(refusal, text=text if isinstance(text, str) else "") from refusal.__cause__
    except Exception as fault:  # the parser is not ours: no junk may bring up an error of its own
        raise QueryError("this question cannot be read", text, 0) from fault


def read_syntax(text: str) -> Syntax:
    """The tree that sqlglot makes of a text within the limits; refused where it makes none."""
    tokens, explain = statement_tokens(text)
    tokens, goal = cut_accuracy(text, tokens)
    return Syntax(tree=_tree(text, tokens), tokens=tokens, goal=goal, explain=explain)


def read_query(tree: Node, tokens: list[Token]) -> Query:
    """The question of a tree that has nothing in it but what is allowed; without text, goal and EXPLAIN."""
    tree = flat(tree)
    check_allowed(tree, tokens)
    return read_statement(tree)


def _tree(text: str, tokens: list[Token]) -> Node:
    try:
        trees = DuckDB().parser().parse(tokens, text)
    except ParseError as fault:
        found = fault.errors[0] if fault.errors else {}
        places = [t.start for t in tokens if (t.line, t.col) == (found.get("line"), found.get("col"))]
        expecting = str(found.get("description", "")).partition("Expecting ")[2]
        reason = f"expecting {expecting} here" if expecting else "the question cannot be understood from here on"
        raise QueryError(reason, position=places[0] if places else tokens[-1].start) from fault
    except RecursionError as fault:
        raise QueryError("the question is nested too deeply", position=tokens[0].start) from fault
    if len(trees) != 1 or not isinstance(trees[0], exp.Expression):
        raise QueryError("there is no question", position=tokens[0].start)
    return trees[0]
