"""UNION ALL: SELECTs about one table, or about the same lines, bought together and put one below the other.

Each SELECT is a stage of its own over the lines of one purchase, whatever rows it chooses and however it groups them:
the lines of all of them are bought together, and a column that is not shown says which SELECT a line is of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, count

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from bursar.errors import QueryError
from bursar.lazy_dataclass import dataclass
from bursar.sql.names import Name
from bursar.sql.query import Aggregate, Condition, Function, Item, Key, Query, same_meaning
from bursar.sql.read_stage import count_of_lines, line_sort
from bursar.sql.syntax import Node, bare, position, reason
from bursar.sql.terms import Call, Given, Ref, Stage, map_refs

MOST_BRANCHES = 16
"""Most SELECTs of one UNION ALL, and of those that it reads: their lines multiply."""

BRANCH_NAME = "branch"
"""What the column is called that says which SELECT a line is of."""

_APART = "ask one question for each SELECT, or all of them as a batch"


def branches_of_union(tree: Node, tokens: Sequence[Token], copies: int) -> list[Node]:
    """The SELECTs of a UNION ALL, in their order; refused for any other operation on sets.

    `copies` says how often a UNION ALL that is around this one has its lines.
    """
    branches: list[Node] = []
    waiting = [tree]
    while waiting:
        node = bare(waiting.pop())
        node = node.this if isinstance(node, exp.Subquery) and not node.args.get("alias") else node
        if isinstance(node, exp.SetOperation):
            options = any(node.args.get(name) for name in ("distinct", "by_name", "side", "kind", "on"))
            inner = node is not tree and any(node.args.get(name) for name in ("order", "limit", "offset", "with_"))
            if not isinstance(node, exp.Union) or options or inner:
                words = (TokenType.UNION, TokenType.INTERSECT, TokenType.EXCEPT)
                places = [token.start for token in tokens if token.token_type in words]
                raise QueryError(reason(node), position=places[0] if places else position(node))
            waiting += [node.expression, node.this]
        elif isinstance(node, exp.Select):
            branches.append(node)
        else:
            raise QueryError("UNION ALL stands between SELECTs", position=position(node))
    if copies * len(branches) > MOST_BRANCHES:
        raise QueryError(
            f"UNION ALL takes at most {MOST_BRANCHES} SELECTs, each counted as often as another UNION ALL reads it",
            position=position(branches[-1]),
        )
    return branches


def stacked(stages: Sequence[Stage], tree: Node) -> Stage:
    """The lines of several stages over the same lines, one below the other, under the names of the first."""
    first, *others = stages
    if any(len(stage.columns) != len(first.columns) for stage in others):
        raise QueryError("the SELECTs of a UNION ALL have equally many columns", position=position(tree))
    return replace(first, beside=tuple(others))


def clauses_around(tree: Node, stage: Stage) -> list[Stage]:
    """ORDER BY, LIMIT and OFFSET behind the last SELECT, which are about all lines."""
    if not any(tree.args.get(name) for name in ("order", "limit", "offset")):
        return []
    names = [name for name, _ in stage.columns]
    order = tree.args.get("order")
    return [
        Stage(
            columns=tuple((name, _ref(name)) for name in names),
            order=tuple(
                line_sort(sort, _ref(_sorted_by(sort, names))) for sort in ([] if order is None else order.expressions)
            ),
            limit=count_of_lines(tree.args.get("limit"), least=1),
            offset=count_of_lines(tree.args.get("offset")) or 0,
        )
    ]


def _ref(name: str) -> Ref:
    return Ref(name=Name(text=name, quoted=True))


def _sorted_by(sort: Node, names: Sequence[str]) -> str:
    node = bare(sort.this)
    if isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdecimal():
        place = int(str(node.this))
        if 1 <= place <= len(names):
            return names[place - 1]
    for name in names:
        if isinstance(node, exp.Column) and node.name.casefold() == name.casefold():
            return name
    raise QueryError("lines of a UNION ALL are ordered by a column of the first SELECT", position=position(node))


def together(parts: Sequence[tuple[Query, Stage]], tree: Node) -> Query:
    """One question that buys what all SELECTs need, with their stages over its lines.

    Numbers that two SELECTs ask for alike share an output, so that an error for that output is for both: counts always,
    others where the SELECTs choose the same rows.
    """
    first = parts[0][0]
    if any(not query.table.agrees(first.table) for query, _ in parts):
        raise QueryError(f"a UNION ALL is about one table; {_APART}", position=position(tree))
    names = _Names()
    line_of = names.free(BRANCH_NAME)
    keys: list[Key] = []
    outputs: list[tuple[Item, Condition]] = []
    branches: list[Query] = []
    stages: list[Stage] = []
    for number, (query, stage) in enumerate(parts):
        called: dict[str, str] = {}
        own_keys: list[Key] = []
        for key in query.keys:
            shared = next((other for other in keys if key.same(other)), None)
            if shared is None:
                shared = replace(key, alias=names.free(key.name))
                keys.append(shared)
            called[key.name] = shared.name
            own_keys.append(replace(key, alias=shared.name))
        items: list[Item] = []
        for item in query.aggregates:
            named = next((other for other, where in outputs if _alike(item, query.where, other, where)), None)
            if named is None:
                named = replace(item, name=names.free(item.name))
                outputs.append((named, query.where))
            called[item.name] = named.name
            items.append(replace(item, name=named.name))
        this_branch = Call(function="=", parts=(_ref(line_of), Given(value=number)))
        renamed = _renamed(stage, called)
        where = this_branch if renamed.where is None else Call(function="and", parts=(this_branch, renamed.where))
        stages.append(replace(renamed, where=where))
        branches.append(replace(query, keys=tuple(own_keys), aggregates=tuple(items)))
    stage = stacked(stages, tree)
    return Query(
        table=first.table,
        aggregates=tuple(item for item, _ in outputs),
        branches=tuple(branches),
        branch=line_of,
        stages=(stage, *clauses_around(tree, stage)),
    )


def _alike(item: Item, where: Condition, other: Item, other_where: Condition) -> bool:
    counts = isinstance(item, Aggregate) and item.function is Function.COUNT
    return same_meaning(replace(item, name=""), replace(other, name="")) and (counts or where == other_where)


def _renamed(stage: Stage, called: dict[str, str]) -> Stage:
    """A stage over columns that have other names now."""
    by_name = {old.casefold(): new for old, new in called.items()}

    def change(name: Name) -> Name:
        new = by_name.get(name.text.casefold())
        return name if new is None else replace(name, text=new, quoted=True)

    return stage.changed(lambda term: map_refs(term, change))


@dataclass
class _Names:
    """Names that are given once."""

    taken: frozenset[str] = frozenset()

    def free(self, base: str) -> str:
        numbered = (f"{base}_{number}" for number in count(2))
        name = next(each for each in chain([base], numbered) if each.casefold() not in self.taken)
        self.taken |= {name.casefold()}
        return name
