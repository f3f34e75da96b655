"""A table with the columns of its parents, joined inside the server: what `core/extensions/joins.py` does for a file.

Keys and units are compared by their text. Of several rows of a private parent for one person and key, one is kept, by a
keyed hash of the person and of the row's cells: those are the same in every engine, and the texts of numbers are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bursar.core.domain import Domain
from bursar.core.extensions.joins import Parent
from bursar.core.source.raw import attempt
from bursar.core.source.servers.cell_rule import TEXTS, Columns, Keys, choice_key, coded_rows
from bursar.core.source.servers.dialect import Dialect, Stored
from bursar.errors import SourceError

if TYPE_CHECKING:
    from bursar.core.source.servers.sql_source import Server

UNIT = "unit_"


@dataclass(frozen=True)
class ServerTable:
    """One table of a server: what people call it, SQL for it, and what its columns hold."""

    dialect: Dialect
    name: str
    relation: str
    stored: dict[str, Stored | None]

    def kind(self, column: str) -> Stored:
        """What a column holds; SourceError where it is not there, or cannot be read."""
        kind = self.stored.get(column)
        if kind is None:
            reason = "has a type that cannot be read" if column in self.stored else "is not there"
            raise SourceError(f"{self.name}: the column {column} {reason}")
        return kind

    def compared(self, rows: str, column: str) -> str:
        """The text by which a key or a unit is compared; of a whole number, its digits."""
        kind, raw = self.kind(column), f"{rows}.{self.dialect.name(column)}"
        if kind not in (*TEXTS, Stored.INTEGER):
            raise SourceError(f"{self.name}: the column {column} must be text or a whole number, as it joins tables")
        return self.dialect.text(self.dialect.whole(raw) if kind is Stored.INTEGER else raw)

    def keys(self, parent: Parent) -> dict[str, str]:
        """Names for the columns by which rows find their row here, and SQL for them."""
        return {f"key{place}_": self.compared("raw_", theirs) for place, (_, theirs) in enumerate(parent.keys)}


@dataclass(frozen=True)
class JoinedRows:
    """SQL for the rows and for their number, and what their columns are called and hold."""

    rows: str
    number: str
    columns: Columns


def join_parents(server: Server, root: ServerTable, parents: Sequence[Parent], domain: Domain, unit: str) -> JoinedRows:
    """The rows of the root table with the columns of its parents.

    Guarantees: the rows of one unit are made of rows of that unit and of public rows, whatever the tables hold; a
    public parent with two rows for one key is refused.
    """
    owners = [place for place, parent in enumerate(parents) if parent.owner]
    if len(owners) > 1 or bool(owners) == (unit in root.stored):
        raise SourceError(f"whose rows those of {root.name} are must follow from {unit} in it, or from one owner table")
    whose = f"p{owners[0]}.{UNIT}" if owners else root.compared("root_", unit)
    rows, number = f"FROM {root.relation} AS root_", f"SELECT count(*) FROM {root.relation} AS root_"
    columns: dict[str, str] = {name: f"root_.{server.dialect.name(name)}" for name in root.stored}
    kinds = dict(root.stored)
    for place in sorted(range(len(parents)), key=lambda place: place not in owners):  # whose a row is comes first
        parent, row = parents[place], f"p{place}"
        table = server_table(server, parent.table)
        on = [f"{root.compared('root_', mine)} = {row}.key{key}_" for key, (mine, _) in enumerate(parent.keys)]
        if parent.public:
            _check_single(server, table, parent)
        elif not parent.owner:
            on.append(f"{whose} = {row}.{UNIT}")
        met = f"AS {row} ON {' AND '.join(on)}"
        if parent.owner:
            people = _named({UNIT: table.compared("raw_", unit), **table.keys(parent)})
            number += f" JOIN (SELECT DISTINCT {people} FROM {table.relation} AS raw_) {met} WHERE {whose} IS NOT NULL"
        rows += f" {'' if parent.owner else 'LEFT '}JOIN ({_single(table, parent, domain, unit, server.secret)}) {met}"
        columns |= {name: f"{row}.w{column}" for column, name in enumerate(parent.columns)}
        columns[parent.has] = f"CASE WHEN {row}.there_ = 1 THEN 1 ELSE 0 END"
        kinds |= {**{name: table.kind(name) for name in parent.columns}, parent.has: Stored.INTEGER}
    columns[unit], kinds[unit] = whose, Stored.TEXT
    joined = ServerTable(server.dialect, root.name, "", kinds)
    named = {name: f"v{place}" for place, name in enumerate(dict.fromkeys((*domain.names, unit)))}
    held = {name: (called, joined.kind(name)) for name, called in named.items()}
    return JoinedRows(f"SELECT {_named({named[name]: columns[name] for name in named})} {rows}", number, held)


def server_table(server: Server, table: str | None = None) -> ServerTable:
    """The table of a server that is counted, or one of those that stand beside it."""
    name, relation = (server.name, server.relation) if table is None else (f"the table {table}", server.beside[table])
    stored = attempt(lambda: server.columns(table), f"{name} cannot be read: the server went away, or refused")
    return ServerTable(server.dialect, name, relation, stored)


def _named(columns: dict[str, str]) -> str:
    return ", ".join(f"{sql} AS {name}" for name, sql in columns.items())


def _single(table: ServerTable, parent: Parent, domain: Domain, unit: str, secret: str) -> str:
    """The rows of a parent; of a private one, for each person and key the first by a keyed hash of its cells."""
    dialect, keys = table.dialect, table.keys(parent)
    given = {f"w{place}": f"raw_.{dialect.name(name)}" for place, name in enumerate(parent.columns)}
    if parent.public:
        return f"SELECT {_named({**keys, **given, 'there_': '1'})} FROM {table.relation} AS raw_"
    person = table.compared("raw_", unit)
    rows = f"{table.relation} AS raw_ WHERE {person} IS NOT NULL{dialect.one_group(person)}"
    carried = {UNIT: person, **keys, **given}
    coded, order = f"SELECT {_named(carried)} FROM {rows}", UNIT
    if parent.columns:
        part = Domain(tuple(domain[name] for name in parent.columns))
        columns = {name: (dialect.name(name), table.kind(name)) for name in parent.columns}
        coded, text = coded_rows(dialect, rows, columns, part, Keys.of(part), carried, {}), dialect.text(UNIT)
        cells = [f"k{place}" for place in range(len(Keys.of(part).groups))]
        message = [choice_key(secret), dialect.literal(f"row of {parent.table}"), dialect.length(text), text, *cells]
        order = dialect.sha256(dialect.joined(message))
    same = ", ".join(dialect.group_key(name) for name in (UNIT, *keys))
    chosen = f"row_number() OVER (PARTITION BY {same} ORDER BY {order}) AS place_"
    ranked = f"SELECT coded.*, {chosen} FROM ({coded}) AS coded"
    return f"SELECT ranked.*, 1 AS there_ FROM ({ranked}) AS ranked WHERE place_ = 1"


def _check_single(server: Server, table: ServerTable, parent: Parent) -> None:
    """Refuse a public table with two rows for one key: rows of people would be there twice."""
    keys = table.keys(parent)
    several = f"SELECT 1 AS one_ FROM (SELECT {_named(keys)} FROM {table.relation} AS raw_) AS keyed"
    several += f" GROUP BY {', '.join(keys)} HAVING count(*) > 1"
    sql = f"SELECT count(*) FROM ({several}) AS several"
    (((number,),),) = attempt(lambda: tuple(server.lines(sql, None)), f"{table.name} cannot be read")
    if number:
        raise SourceError(f"the public table {parent.table} has several rows for one key")
