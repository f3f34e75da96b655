"""UNION ALL: SELECTs about one table, or about the same lines, bought together and put one below the other.

Each SELECT is a stage of its own over the lines of one purchase. SELECTs that group rows in different ways are sets of
groups of one question; SELECTs with different conditions are aggregates under a FILTER each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, count

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from bursar.errors import QueryError
from bursar.sql.names import Name
from bursar.sql.query import Aggregate, Flag, Item, Key, Query, all_of
from bursar.sql.read_stage import count_of_lines, line_sort
from bursar.sql.syntax import Node, bare, position, reason
from bursar.sql.terms import Call, Given, Ref, Stage, map_refs

MOST_BRANCHES = 16
"""Most SELECTs of one UNION ALL."""

SET_NAME = "grouping_set"
"""What the column is called that says which SELECT a line is of."""

_APART = "ask one question for each SELECT, or all of them as a batch"


def branches_of_union(tree: Node, tokens: Sequence[Token]) -> list[Node]:
    """The SELECTs of a UNION ALL, in their order; refused for any other operation on sets."""
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
    if len(branches) > MOST_BRANCHES:
        raise QueryError(f"UNION ALL takes at most {MOST_BRANCHES} SELECTs", position=position(branches[-1]))
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
    """One question that buys what all SELECTs need, with their stages over its lines."""
    first = parts[0][0]
    if any(not query.table.agrees(first.table) for query, _ in parts):
        raise QueryError(f"a UNION ALL is about one table; {_APART}", position=position(tree))
    names = _Names()
    keys: list[Key] = []
    places: list[tuple[int, ...]] = []
    renamed: list[dict[str, str]] = []
    for query, _ in parts:
        called: dict[str, str] = {}
        own: list[int] = []
        for key in query.keys:
            place = next((number for number, other in enumerate(keys) if key.same(other)), len(keys))
            if place == len(keys):
                keys.append(replace(key, alias=names.free(key.name), through=None))
            own.append(place)
            called[key.name] = keys[place].name
        places.append(tuple(sorted(own)))
        renamed.append(called)
    alike = all(query.where == first.where for query, _ in parts)
    outputs: list[Aggregate] = []
    asked: list[set[int]] = []
    for (query, _), called in zip(parts, renamed, strict=True):
        found: set[int] = set()
        for item in query.aggregates:
            wanted = _plain(item, tree)
            if not alike:
                wanted = replace(wanted, condition=all_of(query.where, wanted.condition))
            number = next((n for n, output in enumerate(outputs) if replace(output, name="") == wanted), len(outputs))
            if number == len(outputs):
                outputs.append(replace(wanted, name=names.free(item.name)))
            called[item.name] = outputs[number].name
            found.add(number)
        asked.append(found)
    if len(set(places)) > 1 and any(found != asked[0] for found in asked):
        raise QueryError(
            "SELECTs that group rows in different ways ask for the same numbers under the same condition in a UNION "
            f"ALL; {_APART}",
            position=position(tree),
        )
    sets = tuple(dict.fromkeys(places)) if len(set(places)) > 1 else ()
    flag = Flag(name=names.free(SET_NAME), keys=tuple(range(len(keys))))
    stages: list[Stage] = []
    for (_, stage), called, grouping in zip(parts, renamed, places, strict=True):
        own_stage = _renamed(stage, called)
        if sets:
            own_set = Call(function="=", parts=(_ref(flag.name), Given(value=flag.number(grouping))))
            where = own_set if own_stage.where is None else Call(function="and", parts=(own_set, own_stage.where))
            own_stage = replace(own_stage, where=where)
        stages.append(own_stage)
    stage = stacked(stages, tree)
    return replace(
        first,
        aggregates=tuple(outputs),
        keys=tuple(keys),
        sets=sets,
        flags=(flag,) if sets else (),
        where=first.where if alike else all_of(),
        stages=(stage, *clauses_around(tree, stage)),
        beside=tuple(dict.fromkeys(name for query, _ in parts for name in query.beside)),
    )


def _plain(item: Item, tree: Node) -> Aggregate:
    if not isinstance(item, Aggregate):
        raise QueryError(f"aggregates of a UNION ALL are single ones; {_APART}", position=position(tree))
    return replace(item, name="")


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
