"""Text to Query, or a refusal that says where and why: the SELECT statement, HAVING, ORDER BY, LIMIT and OFFSET."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ParseError
from sqlglot.tokens import Token

from bursar.errors import QueryError
from bursar.goal import Goal, TextSearch
from bursar.lazy_dataclass import dataclass
from bursar.sql.accuracy import bind_goal, cut_accuracy
from bursar.sql.aggregates import ARITHMETIC, is_aggregate, read_item
from bursar.sql.conditions import read_column, read_condition
from bursar.sql.groups import read_flag, read_group, read_keys, read_total
from bursar.sql.layers import read_layers
from bursar.sql.literals import read_literal
from bursar.sql.names import DeclaredColumns, Name
from bursar.sql.pivots import with_listed_values
from bursar.sql.query import (
    TRUE,
    And,
    AtLeast,
    Between,
    Compare,
    Condition,
    Constant,
    Flag,
    In,
    IsTrue,
    Item,
    Key,
    Leaf,
    Not,
    Op,
    Or,
    Query,
    Sort,
    all_of,
    default_name,
    flag_name,
    leaves,
    same_meaning,
)
from bursar.sql.spelling import spelled
from bursar.sql.syntax import (
    BESIDE,
    COLUMN,
    FLAGS,
    REMARKS,
    Node,
    bare,
    check_keys,
    operands,
    position,
    read_name,
    reason,
)
from bursar.sql.tokens import (
    LONGEST_CHAIN,
    MOST_NAMED_SELECTS,
    described,
    silently,
    statement_tokens,
)


@dataclass(frozen=True, kw_only=True)
class Syntax:
    """The syntax tree of a text, not yet checked, with what was cut off before it was parsed."""

    tree: Node
    tokens: list[Token]
    goal: Goal | None
    explain: bool
    search: TextSearch | None = None
    clause: str = ""  # the accuracy clause as it is written

    def asked(self, query: Query, text: str, *, measured: bool) -> Query:
        """A question that was read off the tree, with all that was cut off before."""
        goal = bind_goal(self.goal, query.names)
        measured = measured and self.goal is None
        return replace(query, text=text, goal=goal, search=self.search, explain=self.explain, measured=measured)


def parse(text: str, *, measured: bool = False, columns: DeclaredColumns | None = None) -> Query:
    """The question that a text asks; `measured` where an accuracy is asked for beside it, so that MIN and MAX are.

    `columns` says what is declared, where that is known: a PIVOT that names no values takes all of them, and MIN and
    MAX of days and text are the declared bounds in any case.

    Guarantees: whatever the text is, the result is a Query or a QueryError with the position of the fault. Takes time
    and memory bounded by the limits in `tokens`. A rewrite that the refusal may carry is not checked yet: that is for
    `rewrite.suggest`, which finds one for most others, too.
    """
    if isinstance(text, str) and (told := described(text)) is not None:
        return Query(table=told[1], aggregates=(), described=told[0], text=text)
    try:
        syntax = read_syntax(text)
        query = read_query(syntax.tree, syntax.tokens, measured=measured or syntax.goal is not None, columns=columns)
        return syntax.asked(query, text, measured=measured)
    except QueryError as refusal:
        raise replace(refusal, text=text if isinstance(text, str) else "") from refusal.__cause__
    except Exception as fault:  # the parser is not ours: no junk may bring up an error of its own
        raise QueryError("this question cannot be read", text, 0) from fault


def read_syntax(text: str) -> Syntax:
    """The tree that sqlglot makes of a text within the limits; refused where it makes none."""
    every, explain = statement_tokens(text)
    cut = cut_accuracy(text, every)
    tree = _tree(text, cut.tokens)
    return Syntax(tree=tree, tokens=cut.tokens, goal=cut.goal, explain=explain, search=cut.search, clause=cut.clause)


def read_query(
    tree: Node, tokens: list[Token], *, measured: bool = False, columns: DeclaredColumns | None = None
) -> Query:
    """The question of a tree that has nothing in it but what is allowed; without text, goal and EXPLAIN."""
    if columns is not None and tree.find(exp.Pivot) is not None:
        tree = with_listed_values(tree, columns)
    plain = spelled(tree)
    query = read_layers(plain, tokens, read_statement, measured=measured, columns=columns)
    return replace(query, remarks=tuple(plain.meta.get(REMARKS, ())))


def _tree(text: str, tokens: list[Token]) -> Node:
    try:
        with silently():
            trees = DuckDB().parser().parse(tokens, text)
    except ParseError as fault:
        error = fault.errors[0] if fault.errors else {}
        places = [t.start for t in tokens if (t.line, t.col) == (error.get("line"), error.get("col"))]
        expecting = str(error.get("description", "")).partition("Expecting ")[2]
        reason = f"expecting {expecting} here" if expecting else "the question cannot be understood from here on"
        if any(str(token.text).upper() in ("CLAMPED", "=>") for token in tokens):
            reason = "bounds are declared by the data owner, and are not part of a question; leave them out"
        raise QueryError(reason, position=places[0] if places else tokens[-1].start) from fault
    except RecursionError as fault:
        raise QueryError("the question is nested too deeply", position=tokens[0].start) from fault
    if len(trees) != 1 or not isinstance(trees[0], exp.Expression):
        raise QueryError("there is no question", position=tokens[0].start)
    _check_size(trees[0])
    return trees[0]


def _check_size(tree: Node) -> None:
    """Later steps look at every part of a tree for each of its levels, and compare all keys with each other, and what
    WITH names."""
    level: list[tuple[Node, int]] = [(tree, 0)]
    while level:
        node, depth = level.pop()
        if depth > LONGEST_CHAIN:
            raise QueryError(f"an expression has at most {LONGEST_CHAIN} parts in a row", position=position(node))
        if isinstance(node, exp.Group):
            check_keys(node)
        if isinstance(node, exp.With) and len(node.expressions) > MOST_NAMED_SELECTS:
            raise QueryError(f"WITH takes at most {MOST_NAMED_SELECTS} sub-selects", position=position(node))
        deeper = depth + (not isinstance(node, exp.Connector | exp.Paren))
        level += [(child, deeper) for child in node.iter_expressions()]


def read_statement(tree: Node) -> Query:
    """The question that a tree asks; goal, EXPLAIN and text are put in by the caller."""
    table, called = _table(tree)
    selected = [_item(node, called) for node in tree.expressions]
    aggregates = [item for item in selected if not isinstance(item, Key | Flag)]
    if not aggregates and tree.args.get("group") is None:
        raise QueryError(
            "single rows are not shown; a question asks for numbers of groups, such as COUNT(*)",
            position=position(tree),
        )
    where = tree.args.get("where")
    keys, sets = read_keys(tree, selected, called)
    for place, (node, item) in enumerate(zip(tree.expressions, selected, strict=True)):
        flag = read_flag(node.this if isinstance(node, exp.Alias) else node, keys, selected, called)
        if flag is not None:
            selected[place] = replace(flag, name=item.name or flag.name)
    query = Query(
        table=table,
        aggregates=_named(aggregates, selected),
        keys=keys,
        sets=sets,
        flags=tuple(item for item in selected if isinstance(item, Flag)),
        where=TRUE if where is None else read_condition(where.this, called),
        beside=tuple(tree.meta.get(BESIDE, ())),
    )
    return read_result_clauses(tree, query, selected, called)


def _table(tree: Node) -> tuple[Name, Name]:
    """The table, and the name by which conditions may call it: an alias hides the table's own name."""
    source = tree.args.get("from_")
    if source is None:
        raise QueryError("a question says FROM which table", position=max(position(tree), 0))
    table = source.this
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        raise QueryError("FROM takes the name of one table", position=position(source))
    alias = table.args.get("alias")
    name = read_name(table.this)
    return name, name if alias is None else read_name(alias.this)


def _item(node: Node, table: Name) -> Key | Item | Flag:
    """A selected item; of a flag, the name that it is given: which keys it speaks of is known once all are read."""
    alias = None
    if isinstance(node, exp.Alias):
        alias, node = str(node.args["alias"].name), node.this
    node = bare(node)
    if isinstance(node, FLAGS):
        return Flag(name=alias or "", keys=(), position=position(node))
    key = read_total(node, table) or read_group(node, table)
    if key is not None:
        return replace(key, alias=alias)
    item = read_item(node, table)
    if item is None and isinstance(node, exp.Func | exp.IntDiv) and not isinstance(node, exp.Connector):
        raise QueryError(reason(node), position=position(node))
    if item is None:
        raise QueryError("SELECT takes group columns and aggregates such as COUNT(*)", position=position(node))
    return replace(item, name=alias or "")


def _named(aggregates: list[Item], selected: list[Key | Item | Flag]) -> tuple[Item, ...]:
    """The aggregates with a name each: count, count_2, ..., sum, ... where none was given."""
    taken: set[str] = set()
    for item in selected:
        name = item.name
        if name and name.casefold() in taken:
            raise QueryError(f"two selected columns are called {name}", position=item.position)
        taken.add(name.casefold())
    named: list[Item] = []
    for item in aggregates:
        base = default_name(item)
        numbered = (f"{base}_{number}" for number in itertools.count(2))
        free = next(name for name in itertools.chain([base], numbered) if name not in taken)
        named.append(item if item.name else replace(item, name=free))
        taken.add(named[-1].name.casefold())
    return tuple(named)


Sets = tuple[tuple[int, ...], ...]


def read_result_clauses(tree: Node, query: Query, selected: Sequence[Key | Item | Flag], table: Name) -> Query:
    """The question with the clauses behind GROUP BY."""
    having, order, limit, offset = (tree.args.get(name) for name in ("having", "order", "limit", "offset"))
    columns = Columns.of(query, selected, table)
    parts = [] if having is None else operands(having.this, exp.And)
    flagged = [any(columns.flag(node) is not None for node in outermost_terms(part)) for part in parts]
    sets, unasked = _chosen(list(itertools.compress(parts, flagged)), columns)
    return replace(
        query,
        sets=sets,
        unasked=unasked,
        having=all_of(*(_having(part, columns) for part, flags in zip(parts, flagged, strict=True) if not flags)),
        order=() if order is None else tuple(_sort(node, columns) for node in order.expressions),
        limit=None if limit is None else _cut(limit, "LIMIT", least=1),
        offset=0 if offset is None else _cut(offset, "OFFSET", least=0),
    )


@dataclass(frozen=True)
class Columns:
    """What the clauses can speak of: the selected columns in their order, and group columns that are not selected."""

    query: Query
    selected: tuple[str | int, ...]  # the name of an output, or the place of a key, or of a flag behind the keys
    aliases: dict[str, str | int]  # the same by the names that the question itself gives, in lower case
    table: Name

    @staticmethod
    def of(query: Query, selected: Sequence[Key | Item | Flag], table: Name) -> Columns:
        keys, flags, outputs = itertools.count(), itertools.count(len(query.keys)), iter(query.names)
        order: dict[type, Iterator[int]] = {Key: keys, Flag: flags}
        places = tuple(next(order[type(item)]) if type(item) in order else next(outputs) for item in selected)
        names = [item.alias if isinstance(item, Key) else item.name for item in selected]
        unnamed_flags = {flag_name(query.keys, flag.keys) for flag in query.flags}
        aliases = {
            name.casefold(): column
            for name, column, item in zip(names, places, selected, strict=True)
            if name and not (isinstance(item, Flag) and name in unnamed_flags)
        }
        return Columns(query, places, aliases, table)

    def find(self, node: Node) -> str | int:
        """What is meant: a group column, then an output name, or an aggregate that is selected as well."""
        node, place = bare(node), position(node)
        if isinstance(node, exp.Column):
            return self._named(node)
        key = read_total(node, self.table) or read_group(node, self.table)
        same = [] if key is None else self._same(key)
        if same:
            return same[0]
        if key is not None and key.total is not None:
            raise QueryError("this CASE is not selected; the answers have what SELECT lists", position=place)
        flag = read_flag(node, self.query.keys, self.query.keys, self.table)
        for number, selected in enumerate(self.query.flags, len(self.query.keys)):
            if flag is not None and flag.keys == selected.keys:
                return number
        if flag is not None:
            raise QueryError("this GROUPING is not selected; the answers have what SELECT lists", position=place)
        item = read_item(node, self.table)
        if item is None:
            raise QueryError("this can be a selected column, its name, or a selected aggregate", position=place)
        for output in self.query.aggregates:
            if same_meaning(replace(output, name=""), item):
                return output.name
        raise QueryError("this aggregate is not selected; the answers have what SELECT lists", position=place)

    def ordered_by(self, node: Node) -> str | int:
        """What is meant in ORDER BY: a column by the name that the question gives it, before anything else."""
        node = bare(node)
        column = self._alias(node) if isinstance(node, exp.Column) else None
        return self.find(node) if column is None else column

    def _alias(self, node: Node) -> str | int | None:
        """What the question calls by this name; None for a name that is that of a column."""
        if node.args.get("table") is not None or COLUMN in node.meta:
            return None
        return self.aliases.get(read_column(node, self.table).text.casefold())

    def _same(self, key: Key) -> list[int]:
        """The places of a key, those with the same name for the total first; with another name it is another key."""
        places = [number for number, other in enumerate(self.query.keys) if key.same(other)]
        named = [number for number in places if self.query.keys[number].total == key.total]
        return named if named or key.total is not None else places

    def flag(self, node: Node) -> Flag | None:
        """The flag that is meant, selected or not; None where something else is."""
        node, keys = bare(node), self.query.keys
        if not isinstance(node, exp.Column):
            return read_flag(node, keys, keys, self.table)
        place = self._named(node)
        return self.query.flags[place - len(keys)] if isinstance(place, int) and place >= len(keys) else None

    def unnamed(self, node: Node, place: int) -> bool:
        """Whether a key whose total has a name is meant by itself, without that name."""
        if place >= len(self.query.keys) or self.query.keys[place].total is None or isinstance(node, exp.Literal):
            return False
        if isinstance(node, exp.Column):
            return self._alias(node) != place
        return read_total(node, self.table) is None

    def _named(self, node: Node) -> str | int:
        name = read_column(node, self.table)
        same = self._same(Key(column=name))
        if same:
            return same[0]
        for number, key in enumerate(self.query.keys):
            if key.alias is not None and name.names(key.alias):
                return number
        for number, flag in enumerate(self.query.flags, len(self.query.keys)):
            if name.names(flag.name):
                return number
        for output in self.query.names:
            if name.names(output):
                return output
        raise QueryError(f"{name.text} is not selected; the answers have what SELECT lists", position=position(node))


def _chosen(parts: list[Node], columns: Columns) -> tuple[Sets, Sets]:
    """The sets of groups that conditions on flags leave, and those that they do not."""
    query = columns.query
    if not parts:
        return query.sets, ()
    flags: list[Flag] = []

    def name(node: Node) -> str:
        flag = columns.flag(node)
        if flag is None:
            raise QueryError(
                "GROUPING chooses among sets of groups; what is beside it is joined by AND",
                position=position(node),
            )
        flags.append(flag)
        return str(len(flags) - 1)

    condition = all_of(*(_spoken(part, name) for part in parts))
    every = query.sets or (tuple(range(len(query.keys))),)
    chosen = tuple(grouping for grouping in every if holds(condition, flags, grouping))
    if not chosen:
        raise QueryError("no set of groups in GROUP BY has such a GROUPING", position=position(parts[0]))
    return chosen if len(chosen) < len(every) else query.sets, tuple(
        grouping for grouping in every if grouping not in chosen
    )


def _spoken(condition: Node, name: Callable[[Node], str]) -> Condition:
    """A condition in which what it speaks of is a column of the given name."""
    copy = exp.Having(this=condition.copy())
    for part in outermost_terms(copy):
        named = exp.to_identifier(name(part), quoted=True)
        named.meta["start"] = position(part)
        part.replace(exp.Column(this=named))
    return read_condition(copy.this, Name(text=""))


def _having(part: Node, columns: Columns) -> Condition:
    """A condition in which columns are names of outputs."""

    def name(node: Node) -> str:
        column = columns.find(node)
        if isinstance(column, int):
            key = columns.query.keys[column]
            raise QueryError(
                f"HAVING is about aggregates; a condition on {key.name} goes into WHERE", position=position(node)
            )
        return column

    condition = _spoken(part, name)
    for leaf in leaves(condition):
        if not isinstance(leaf, Compare | Between):
            raise QueryError(
                "HAVING compares an aggregate with a number, by <, <=, >, >= or BETWEEN", position=leaf.position
            )
        if isinstance(leaf, Compare) and leaf.op in (Op.EQ, Op.NE):
            raise QueryError(
                "a number with an error is hardly ever equal to another; compare by <, <=, >, >= or BETWEEN",
                position=leaf.position,
            )
        literals = (leaf.literal,) if isinstance(leaf, Compare) else (leaf.low, leaf.high)
        if any(isinstance(literal, bool) or not isinstance(literal, int | Decimal) for literal in literals):
            raise QueryError("HAVING compares an aggregate with a number", position=leaf.position)
    return condition


def outermost_terms(tree: Node) -> list[Node]:
    """The outermost aggregates, formulas and columns."""
    return [node for node in tree.walk(prune=_whole) if _whole(node)]


def _whole(node: Node) -> bool:
    if isinstance(node, (exp.Column, *FLAGS)) or is_aggregate(node):
        return True
    return isinstance(node, ARITHMETIC) and node.find(exp.AggFunc) is not None


def _sort(node: Node, columns: Columns) -> Sort:
    what, place = bare(node.this), position(node)
    if isinstance(what, exp.Literal) and not what.is_string:
        number = read_literal(what)
        if not isinstance(number, int) or not 1 <= number <= len(columns.selected):
            raise QueryError(f"ORDER BY counts the selected columns from 1 to {len(columns.selected)}", position=place)
        column = columns.selected[number - 1]
    else:
        column = columns.ordered_by(what)
    sort = Sort(descending=bool(node.args.get("desc")), nulls_first=bool(node.args.get("nulls_first")))
    if isinstance(column, str):
        return replace(sort, output=column)
    return replace(sort, key=column, unnamed=columns.unnamed(what, column))


def _cut(clause: Node, word: str, *, least: int) -> int:
    place = position(clause)
    number = read_literal(clause.expression)
    if isinstance(number, bool) or not isinstance(number, int) or number < least:
        raise QueryError(f"{word} takes a whole number from {least} on", position=place)
    return number


_OPS = {
    Op.EQ: operator.eq,
    Op.NE: operator.ne,
    Op.LT: operator.lt,
    Op.LE: operator.le,
    Op.GT: operator.gt,
    Op.GE: operator.ge,
}


def holds(condition: Condition, flags: Sequence[Flag], grouped: Sequence[int]) -> bool:
    """Whether a condition, whose columns are places of flags, holds for the set that groups by the keys given."""
    match condition:
        case And(parts=parts):
            return all(holds(part, flags, grouped) for part in parts)
        case Or(parts=parts):
            return any(holds(part, flags, grouped) for part in parts)
        case Not(part=part):
            return not holds(part, flags, grouped)
        case IsTrue(part=part):
            return holds(part, flags, grouped)
        case AtLeast(count=count, parts=parts):
            return sum(holds(part, flags, grouped) for part in parts) >= count
        case Constant(value=value):
            return value
    return _compared(condition, flags[int(condition.column.text)].number(grouped))


def _compared(leaf: Leaf, number: int) -> bool:
    match leaf:
        case Compare(literal=int() | Decimal() as literal, op=op):
            return bool(_OPS[op](number, literal))
        case Between(low=int() | Decimal() as low, high=int() | Decimal() as high):
            return low <= number <= high
        case In(literals=literals) if all(isinstance(literal, int | Decimal) for literal in literals):
            return number in literals
    raise QueryError("GROUPING is a number, and is compared with numbers", position=leaf.position)
