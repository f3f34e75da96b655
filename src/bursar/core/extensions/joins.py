"""A root table with the columns of its parents: many-to-one joins along declared keys, enforced and not believed.

A private parent adds to a row of somebody only what stands in rows of the same somebody; of several rows for one key,
one is kept, chosen by that person's rows and a secret. A public parent must have one row for each key. A root table
without the unit column has an owner: the one private parent whose rows say whose each row is, once for each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path

from bursar.core.domain import Unit
from bursar.core.source.coding import as_text
from bursar.core.source.raw import (
    Connection,
    Raw,
    StoredColumn,
    attached,
    attempt,
    found_file,
    has_tables,
    quoted,
    stored_table,
)
from bursar.errors import ConfigError, SourceError


@dataclass(frozen=True, kw_only=True)
class Parent:
    """A table of the same file, with the columns that it adds, and those by which rows find their one row of it."""

    table: str
    keys: tuple[tuple[str, str], ...]  # of the root table, and of this one
    columns: tuple[str, ...]
    public: bool = False
    owner: bool = False  # says whose the rows of a root table are that has no unit column

    def __post_init__(self) -> None:
        if self.public and (self.owner or not self.keys):
            raise ConfigError(f"the public table {self.table} is joined by a key, and owns nothing")
        if self.owner and not self.keys:
            raise ConfigError(f"the table {self.table} says whose rows are by a key that they have")

    @property
    def has(self) -> str:
        """The column that says whether a row has a row here."""
        return f"has_{self.table}"

    def to_json(self) -> dict[str, object]:
        """What the charter says about it: plain JSON values."""
        facts = {"keys": [list(pair) for pair in self.keys], "columns": list(self.columns)}
        return {"table": self.table, **facts, "public": self.public, "owner": self.owner}


def open_joined(
    connection: Connection, location: object, table: str | None, parents: Sequence[Parent], unit: Unit, secret: str
) -> Raw:
    """The rows of a table of a DuckDB file with the columns of its parents, as DuckDB can select from them."""
    path = Path(location).absolute() if isinstance(location, str | PathLike) else None
    if path is None or not has_tables(path) or table is None:
        raise SourceError("tables are joined that stand in one DuckDB file")
    if unit.column is None:
        raise SourceError("a joined table needs a unit column that says whose rows are")
    text = attached(connection, found_file(path))
    names = [table, *(parent.table for parent in parents)]
    tables = {name: stored_table(connection, path, name, text) for name in names}
    return join_parents(connection, tables[table], tables, parents, unit.column, secret)


def join_parents(
    connection: Connection, root: Raw, tables: dict[str, Raw], parents: Sequence[Parent], unit: str, secret: str
) -> Raw:
    """The rows of the root table with the columns of its parents, computed once, into a table that is dropped with the
    other raw rows.

    Guarantees: the rows of one unit are made of rows of that unit and of public rows, whatever the tables hold.
    """
    owners = [parent for parent in parents if parent.owner]
    if len(owners) > 1 or (not owners and not _has(root, unit)) or (owners and _has(root, unit)):
        raise SourceError(f"whose rows those of {root.name} are must follow from {unit} in it, or from one owner table")
    for parent in parents:
        if parent.public:
            _check_single(connection, tables[parent.table], parent)
    added = {name for parent in parents for name in (*parent.columns, parent.has)}
    columns = [(name, f"root.{column.sql}") for name, column in root.columns if name not in {*added, unit}]
    whose = as_text(f"p{parents.index(owners[0])}.{quoted(unit)}" if owners else f"root.{root.column(unit).sql}")
    joins = []
    for place, parent in sorted(enumerate(parents), key=lambda each: not each[1].owner):  # whose a row is comes first
        stored, name = tables[parent.table], f"p{place}"
        pairs = [(as_text(f"root.{root.column(mine).sql}"), stored.column(theirs).sql) for mine, theirs in parent.keys]
        on = [f"{mine} = {as_text(f'{name}.{theirs}')}" for mine, theirs in pairs]
        if not (parent.public or parent.owner):
            on.append(f"{whose} = {as_text(f'{name}.{stored.column(unit).sql}')}")
        joins.append(
            f"{'JOIN' if parent.owner else 'LEFT JOIN'} {_single(stored, parent, unit)} AS {name} ON {' AND '.join(on)}"
        )
        columns += [(column, f"{name}.{stored.column(column).sql}") for column in parent.columns]
        if not parent.owner:
            columns.append((parent.has, f"{name}.there IS NOT NULL"))
    selected = ", ".join(f"{sql} AS {quoted(name)}" for name, sql in [*columns, (unit, whose)])
    text = f"{root.name} cannot be joined with its tables"
    sql = f"CREATE TEMP TABLE joined AS SELECT {selected} FROM {root.relation} AS root {' '.join(joins)}"
    attempt(partial(connection.execute, sql, {"secret": secret} if "$secret" in sql else {}), text)
    lines = attempt(lambda: connection.execute("DESCRIBE joined").fetchall(), text)
    fields = tuple((line[0], StoredColumn(sql=quoted(line[0]), storage=line[1])) for line in lines)
    return Raw(name=root.name, relation="temp.main.joined", columns=fields, unreadable=text)


def _has(raw: Raw, name: str) -> bool:
    return any(stored == name for stored, _ in raw.columns)


def _single(stored: Raw, parent: Parent, unit: str) -> str:
    """The rows of a parent; of a private one, for each person and key the first by a keyed hash of what it holds."""
    if parent.public:
        return f"(SELECT *, TRUE AS there FROM {stored.relation})"
    person = as_text(stored.column(unit).sql)
    keys = [person, *(as_text(stored.column(theirs).sql) for _, theirs in parent.keys)]
    held = [as_text(stored.column(name).sql) for name in dict.fromkeys((*parent.columns, *(t for _, t in parent.keys)))]
    told = [f"coalesce(concat(length({text}), ':', {text}), 'null')" for text in (person, *held)]
    order = f"sha256(concat_ws('/', $secret, {', '.join(told)}))"
    chosen = f"row_number() OVER (PARTITION BY {', '.join(keys)} ORDER BY {order}) = 1"
    return f"(SELECT *, TRUE AS there FROM {stored.relation} WHERE {person} IS NOT NULL QUALIFY {chosen})"


def _check_single(connection: Connection, stored: Raw, parent: Parent) -> None:
    """Refuse a public table with two rows for one key: rows of people would be there twice."""
    keys = ", ".join(as_text(stored.column(theirs).sql) for _, theirs in parent.keys)
    sql = f"SELECT count(*) FROM (SELECT 1 FROM {stored.relation} GROUP BY {keys} HAVING count(*) > 1)"
    if attempt(lambda: connection.execute(sql).fetchone()[0], stored.unreadable):
        raise SourceError(f"the public table {parent.table} has several rows for one key")
