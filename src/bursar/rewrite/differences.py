"""What is different about a question that is offered in place of one that was refused, clause by clause.

Nothing is said where both texts are the same statement but for spelling, and what a goal is written as.
"""

from __future__ import annotations

from collections import Counter
from functools import partial

from sqlglot import exp

from bursar.errors import QueryError
from bursar.sql.parse import read_syntax
from bursar.sql.spelling import spelled
from bursar.sql.syntax import Node, bare, open_subselects
from bursar.sql.tokens import silently

_CLAUSES = {
    "where": "the condition",
    "group": "GROUP BY",
    "having": "HAVING",
    "qualify": "QUALIFY",
    "order": "ORDER BY",
    "limit": "LIMIT",
    "offset": "OFFSET",
    "joins": "the join",
}

LONGEST_CLAUSE = 80
"""Most letters of a clause that is told in full."""


def differences(refused: str, offered: str) -> str:
    """In what an offered question differs from the one that was refused; empty where it means the same."""
    try:
        before, after = _statement(refused), _statement(offered)
    except Exception:  # a text that is no statement has nothing to be compared with
        return "the question could not be understood, and this is a guess at it"
    told = _items(before, after)
    for name, word in _CLAUSES.items():
        old, new = (_clause(tree, name) for tree in (before, after))
        if old == new:
            continue
        if not new:
            told.append(f"leaves out {word} {_short(old)}".rstrip())
        elif not old:
            told.append(f"adds {word} {_short(new)}".rstrip())
        else:
            told.append(f"has {word} {_short(new)} instead of {_short(old)}")
    extras = _extras(after)
    told += [f"leaves out {word}" for word in _extras(before) if word not in extras]
    tables = [_clause(tree, "from_") for tree in (before, after)]
    if tables[0] != tables[1]:
        told.append(f"reads {_short(tables[1])} instead of {_short(tables[0])}")
    return "; ".join(told)


_KNOWN = {"expressions", "from_", "with_", "kind", "hint", *_CLAUSES}
_OF_TABLES = {"this", "alias", "db", "catalog", "joins"}


def _extras(tree: Node) -> list[str]:
    """Whatever else a statement and its tables say, such as DISTINCT or a sample, by its name."""
    named = [name for name, value in tree.args.items() if value and name not in _KNOWN]
    for table in tree.find_all(exp.Table):
        named += [name for name, value in table.args.items() if value and name not in _OF_TABLES]
    return [f"the {name.rstrip('_')}" for name in dict.fromkeys(named)]


def _statement(text: str) -> Node:
    tree = spelled(read_syntax(text).tree)
    if not isinstance(tree, exp.Select):
        raise TypeError("no SELECT")
    try:
        return open_subselects(tree)
    except QueryError:
        return tree


def _items(before: Node, after: Node) -> list[str]:
    old, new = ([_text(item) for item in tree.expressions] for tree in (before, after))
    if old == new:
        return []
    gone = ", ".join((Counter(old) - Counter(new)).elements())
    come = ", ".join((Counter(new) - Counter(old)).elements())
    if not gone and not come:
        return ["has its columns in another order"]
    if gone and come:
        return [f"asks for {_short(come)} instead of {_short(gone)}"]
    return [f"also asks for {_short(come)}"] if come else [f"leaves out {_short(gone)}"]


def _clause(tree: Node, name: str) -> str:
    clause = tree.args.get(name)
    if clause is None or clause == []:
        return ""
    if name == "where":
        return _text(clause.this)
    if name in ("having", "qualify"):
        return _text(clause.this.transform(partial(_named, tree=tree)))
    if name in ("limit", "offset"):
        return _text(clause.expression) if clause.expression is not None else _text(clause)
    if name == "from_":
        table = clause.this
        return _text(table.this) if isinstance(table, exp.Table) else "a SELECT"
    if name in ("group", "order"):
        return ", ".join(_resolved(part, tree) for part in clause.expressions)
    return " ".join(_text(part) for part in clause) if isinstance(clause, list) else ""


def _resolved(part: Node, tree: Node) -> str:
    """An item of GROUP BY or ORDER BY; a place in the select list is what stands there."""
    node = bare(part.this if isinstance(part, exp.Ordered) else part)
    down = " DESC" if isinstance(part, exp.Ordered) and part.args.get("desc") else ""
    items = tree.expressions
    if isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdecimal():
        place = int(str(node.this))
        node = items[place - 1] if 1 <= place <= len(items) else node
    if isinstance(node, exp.Column):
        node = next((item.this for item in items if item.alias and item.alias.casefold() == node.name.casefold()), node)
    return _text(node.this if isinstance(node, exp.Alias) else node) + down


def _named(node: Node, tree: Node) -> Node:
    """An aggregate, where it is called by the name that it is selected under."""
    if not isinstance(node, exp.Column) or node.args.get("table") is not None:
        return node
    called = (item.this for item in tree.expressions if item.alias.casefold() == node.name.casefold())
    return next((inner.copy() for inner in called if inner.find(exp.AggFunc) is not None), node)


def _text(node: Node) -> str:
    """A node as text that does not depend on quotes, qualifiers and letter case of names."""

    def plain(part: Node) -> Node:
        if isinstance(part, exp.Column) and part.args.get("table") is not None:
            return exp.Column(this=part.this.copy())
        if isinstance(part, exp.Identifier):
            return exp.to_identifier(str(part.this).casefold())
        return part

    plain_node = bare(node).copy().transform(plain, copy=False).transform(plain, copy=False)
    for paren in list(plain_node.find_all(exp.Paren)):
        if paren.parent is not None and not isinstance(paren.this, exp.Binary | exp.Connector):
            paren.replace(paren.this.copy())
    with silently():
        return str(plain_node.sql("duckdb", comments=False))


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_CLAUSE else f"{text[:LONGEST_CLAUSE]}..."
