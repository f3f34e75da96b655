"""GROUP BY of the syntax tree as keys, and sets of them. The tree has passed the allow-list."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from bursar.errors import QueryError
from bursar.sql.allowed import FLAGS, Node, position
from bursar.sql.conditions import bare, read_literal
from bursar.sql.groups import read_group
from bursar.sql.query import Flag, Item, Key, Name, flag_name

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
    sets = [()] if group is None else _sets(group)
    read = [[_group(node, selected, table) for node in one] for one in sets]
    grouped = [key for one in read for key in one]
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
    places = [tuple(i for i, key in enumerate(keys) if any(key.same(item) for item in one)) for one in read]
    return tuple(keys), tuple(dict.fromkeys(places)) if len(places) > 1 else ()


def read_flag(node: Node, keys: Sequence[Key], selected: Sequence[Key | Item | Flag], table: Name) -> Flag | None:
    """GROUPING of keys; None for anything else."""
    node = bare(node)
    if not isinstance(node, FLAGS):
        return None
    place, found = position(node), []
    for part in node.expressions:
        key = _group(part, selected, table)
        places = [number for number, one in enumerate(keys) if one.same(key)]
        if not places:
            raise QueryError(f"GROUPING takes what is in GROUP BY, and {key.name} is not", position=position(part))
        found.append(places[0])
    if not 1 <= len(found) <= MOST_FLAGGED:
        raise QueryError(f"GROUPING takes from 1 to {MOST_FLAGGED} columns of GROUP BY", position=place)
    return Flag(name=flag_name(keys, found), keys=tuple(found), position=place)


def _sets(group: Node) -> Sets:
    """Each item of GROUP BY gives one set or several; a set of all items has one of each."""
    found: Sets = [()]
    for node in group.expressions:
        found = [(*one, *other) for one in found for other in _of_item(node)]
        if len(found) > MOST_SETS:
            raise QueryError(f"a question has at most {MOST_SETS} sets of groups", position=position(node))
    return found


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
            return [one for part in node.expressions for one in _of_item(part)]
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
