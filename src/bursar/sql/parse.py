"""Text to Query, or a refusal that says where, why, and what would work."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ParseError

from bursar.errors import QueryError
from bursar.goal import Goal
from bursar.rewrite.statement import repaired
from bursar.sql.accuracy import bind, cut_accuracy, usable
from bursar.sql.allowed import Node, check_allowed
from bursar.sql.flatten import flat, innermost
from bursar.sql.query import Query
from bursar.sql.render import render
from bursar.sql.statement import read_statement
from bursar.sql.tokens import Token, statement_tokens


def parse(text: str) -> Query:
    """The question that a text asks.

    Guarantees: whatever the text is, the result is a Query or a QueryError with the position of the fault; a rewrite
    that is offered is itself accepted by this function. Takes time and memory bounded by the limits in `tokens`.
    """
    try:
        return _read(text)
    except QueryError as refusal:
        rewrite = refusal.rewrite if _accepts(refusal.rewrite) else ""
        raise replace(refusal, text=text if isinstance(text, str) else "", rewrite=rewrite) from refusal.__cause__
    except Exception as fault:  # the parser is not ours: no junk may bring up an error of its own
        raise QueryError("this question cannot be read", text, 0) from fault


def _read(text: str) -> Query:
    tokens, explain = statement_tokens(text)
    tokens, goal = cut_accuracy(text, tokens)
    tree = _tree(text, tokens)
    try:
        return _query(tree, tokens, text=text, goal=goal, explain=explain)
    except QueryError as refusal:
        raise replace(refusal, rewrite=_rewrite(tree, tokens, goal=goal, explain=explain)) from None


def _query(tree: Node, tokens: list[Token], *, text: str, goal: Goal | None, explain: bool) -> Query:
    query = _statement(tree, tokens)
    return replace(query, text=text, goal=bind(goal, query.names), explain=explain)


def _statement(tree: Node, tokens: list[Token]) -> Query:
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


def _rewrite(tree: Node, tokens: list[Token], *, goal: Goal | None, explain: bool) -> str:
    for near in (flat, innermost):
        try:
            query = _statement(repaired(near(tree)), tokens)
            return render(replace(query, goal=usable(goal, query.names), explain=explain))
        except Exception:  # no rewrite is better than a wrong one, and this is not the error to report
            continue
    return ""


def _accepts(text: str) -> bool:
    try:
        return bool(text) and _read(text) is not None
    except Exception:
        return False
