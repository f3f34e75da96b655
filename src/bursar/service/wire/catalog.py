"""pg_catalog and information_schema, answered from public facts alone; nothing here can reach the data or the ledger.

About fifty small tables stand in a DuckDB of their own, in memory, that can read no file and load no extension. A
statement gets there as a tree, in DuckDB's spelling (`catalog_spelling`). A few shapes are answered by hand.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import duckdb
from sqlglot import exp

from bursar.config import Config
from bursar.service.wire import catalog_relations as facts
from bursar.service.wire import types
from bursar.service.wire.asked import Context, ResultSet
from bursar.service.wire.catalog_relations import OF_SESSION, RELATIONS
from bursar.service.wire.catalog_spelling import MACROS, SCHEMAS, CatalogSpelling, Sessions, check, duckdb_type
from bursar.service.wire.failures import UNAVAILABLE, WireError
from bursar.service.wire.protocol import Field
from bursar.service.wire.trees import Parsed, infer, shown_name, with_values
from bursar.service.wire.types import PgType, PgValue
from bursar.sql.syntax import Node

SECONDS = 5.0
"""After which a look at the catalog is given up."""

MOST_ROWS = 100_000

_EXACT = {
    name: types.BY_NAME[kind]
    for columns in RELATIONS.values()
    for name, kind in columns
    if kind in ("oid", "name", "char")
}
"""Columns of types that DuckDB does not have; some clients need them told apart."""


def is_catalog(table: exp.Table) -> bool:
    """Whether a relation of the catalog is meant: by its schema, or by its name alone, as search_path has it."""
    schema, name = table.db.lower(), table.name.lower()
    return (schema or "pg_catalog", name) in RELATIONS


class Catalog:
    """The relations of one data set. Made at the first look; safe to use from several threads."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self._lock = threading.Lock()
        self._database: duckdb.DuckDBPyConnection | None = None

    def run(self, sql: str) -> tuple[list[tuple[str, PgType]], list[tuple[PgValue, ...]]]:
        """The columns and rows of a statement that was checked."""
        with self._lock:
            if self._database is None:
                self._database = _database(self.config)
            cursor = self._database.cursor()
        timer = threading.Timer(SECONDS, cursor.interrupt)
        timer.start()
        try:
            result = cursor.execute(sql)
            rows = result.fetchmany(MOST_ROWS)
            return [(name, _pg_type(str(kind))) for name, kind, *_ in result.description or ()], rows
        except duckdb.Error as error:
            detail = str(error).split("\n", 1)[0]
            raise WireError(UNAVAILABLE, "this look at the catalog is not available", detail) from None
        finally:
            timer.cancel()
            cursor.close()

    def close(self) -> None:
        """Forget them."""
        with self._lock:
            if self._database is not None:
                self._database.close()
                self._database = None


def _database(config: Config) -> duckdb.DuckDBPyConnection:
    locked = {
        "enable_external_access": "false",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "allow_community_extensions": "false",
        "memory_limit": "128MB",
        "threads": "1",
    }
    database = duckdb.connect(":memory:", config=locked)
    for schema in SCHEMAS.values():
        database.execute(f"CREATE SCHEMA {schema}")
    rows = facts.rows_of(config, config.dataset)
    for relation, columns in RELATIONS.items():
        if relation[1] in OF_SESSION:
            continue
        declared = ", ".join(f'"{name}" {duckdb_type(kind)}' for name, kind in columns)
        table = f"{SCHEMAS[relation[0]]}.{relation[1]}"
        database.execute(f"CREATE TABLE {table} ({declared})")
        if relation in rows:
            places = ", ".join("?" * len(columns))
            database.executemany(f"INSERT INTO {table} VALUES ({places})", [list(row) for row in rows[relation]])
    for macro in MACROS:
        database.execute(macro)
    database.execute("SET lock_configuration = true")
    return database


_PG_TYPES = {
    "VARCHAR": types.TEXT, "INTEGER": types.INT4, "BIGINT": types.INT8, "SMALLINT": types.INT2, "TINYINT": types.INT2,
    "BOOLEAN": types.BOOL, "DOUBLE": types.FLOAT8, "FLOAT": types.FLOAT4, "DATE": types.DATE, "HUGEINT": types.NUMERIC,
    "TIMESTAMP": types.TIMESTAMP, "JSON": types.JSON, "UINTEGER": types.INT8, "UBIGINT": types.NUMERIC,
}  # fmt: skip


def _pg_type(kind: str) -> PgType:
    kind = kind.strip('"')
    if kind.endswith("[]"):
        inner = _pg_type(kind.removesuffix("[]"))
        return PgType(inner.array, f"_{inner.name}", -1, 0, f"{inner.sql_name}[]", "A")
    if kind.startswith("DECIMAL"):
        return types.NUMERIC
    return _PG_TYPES.get(kind, types.TEXT)


# -- statements ------------------------------------------------------------------------------------------------------


@dataclass
class CatalogQuestion:
    """A look at the catalog, or a statement about nothing but constants. Free."""

    parsed: Parsed
    context: Context
    catalog: Catalog
    sessions: Sessions
    given: Sequence[int] = ()
    route: str = "catalog"
    known: bool = False
    parameters: list[int] = field(init=False)
    _done: ResultSet | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.parameters = infer(self.parsed, self.given, _type_of_column)
        check(self.parsed.tree)

    def fields(self) -> Sequence[Field]:
        """The columns. Without parameters the statement is run for it: it costs nothing, and has no effect."""
        if self.parameters:
            return self._run([None] * len(self.parameters), describe=True).fields
        if self._effects():
            return [Field(name, types.TEXT.oid, -1) for name in self._names() or ()]
        if self._done is None:
            self._done = self._run([])
        return self._done.fields

    def repeat(self) -> ResultSet | None:
        """Nothing is known at once."""
        return None

    def run(self, values: Sequence[PgValue]) -> ResultSet:
        """The rows."""
        if self._done is not None and not self.parameters:
            return self._done
        return self._run(values)

    def explain(self, values: Sequence[PgValue]) -> list[str]:
        """Nothing is ever paid for the catalog."""
        return ["Catalog  (cost=0.000000..0.000000 rows=0 width=0)"]

    def _effects(self) -> bool:
        return any(name in _EFFECTS for name in _called(self.parsed.tree))

    def _names(self) -> list[str] | None:
        tree = self.parsed.tree
        while isinstance(tree, exp.SetOperation | exp.Subquery):
            tree = tree.this
        if not isinstance(tree, exp.Select) or any(item.is_star for item in tree.expressions):
            return None
        return [shown_name(item) for item in tree.expressions]

    def _run(self, values: Sequence[PgValue], *, describe: bool = False) -> ResultSet:
        tree, called = self.parsed.tree, _called(self.parsed.tree)
        names = self._names()
        if "_pg_expandarray" in called:  # keys of indexes, of which there are none
            return ResultSet([Field(name, types.TEXT.oid, -1) for name in names or ()], [])
        if not describe and ("pg_terminate_backend" in called or "pg_cancel_backend" in called):
            return self._stop(with_values(tree, values))
        typed = [exp.Cast(this=exp.Null(), to=_data_type(oid)) for oid in self.parameters]
        bound = _with_nodes(tree, typed) if describe else with_values(tree, values)
        sql = CatalogSpelling(self.context, self.sessions, describe=describe).sql(bound)
        columns, rows = self.catalog.run(f"SELECT * FROM ({sql}) AS q LIMIT 0" if describe else sql)
        exact = _exact_types(bound)
        fields = []
        for place, (name, kind) in enumerate(columns):
            shown = names[place] if names is not None and len(names) == len(columns) else name
            kind = exact[place] or kind if len(exact) == len(columns) and kind.category != "A" else kind
            fields.append(Field(shown, kind.oid, kind.size))
        return ResultSet(fields, rows)

    def _stop(self, tree: Node) -> ResultSet:
        """Stop own sessions that the statement names by their process."""
        numbers = [int(node.name) for node in tree.find_all(exp.Literal) if node.name.isdecimal()]
        stopped = [number for number in numbers if self.sessions.stop(number)]
        name = (self._names() or ["pg_terminate_backend"])[0]
        return ResultSet([Field(name, types.BOOL.oid, 1)], [[True] for _ in stopped])


_EFFECTS = ("set_config", "pg_terminate_backend", "pg_cancel_backend")


def _called(tree: Node) -> set[str]:
    return {node.name.lower() for node in tree.find_all(exp.Anonymous)}


def _with_nodes(tree: Node, nodes: Sequence[Node]) -> Node:
    tree = tree.copy()
    for parameter in list(tree.find_all(exp.Parameter)):
        parameter.replace(nodes[int(parameter.name) - 1].copy())
    return tree


def _data_type(oid: int) -> Node:
    names = {types.OID.oid: "int", types.REGCLASS.oid: "int", types.REGTYPE.oid: "int", types.NAME.oid: "text"}
    if oid in types.ELEMENT:
        inner = types.ELEMENT[oid]
        return exp.DataType.build(f"{names.get(inner.oid, inner.sql_name)}[]", dialect="postgres")
    kind = types.BY_OID.get(oid, types.TEXT)
    plain = "text" if kind in (types.CHAR, types.UNKNOWN) else names.get(oid, kind.sql_name)
    return exp.DataType.build(plain, dialect="postgres")


def _type_of_column(column: exp.Column) -> PgType | None:
    return types.OID if _EXACT.get(column.name.lower()) is types.OID else types.TEXT


def _exact_types(tree: Node) -> list[PgType | None]:
    """For columns that are shown as they are, PostgreSQL's own type."""
    while isinstance(tree, exp.SetOperation | exp.Subquery):
        tree = tree.this
    items = [item.unalias() for item in tree.expressions] if isinstance(tree, exp.Select) else []
    return [_EXACT.get(item.name.lower()) if isinstance(item, exp.Column) else None for item in items]


# -- by hand ---------------------------------------------------------------------------------------------------------


def is_type_info(text: str) -> bool:
    """Whether asyncpg asks about types that it does not know, with a text that sqlglot cannot read."""
    return "typeinfo_tree(" in text and "range_subtype" in text


_TYPE_INFO = (
    ("oid", types.OID), ("ns", types.NAME), ("name", types.NAME), ("kind", types.CHAR), ("basetype", types.OID),
    ("elemtype", types.OID), ("elemdelim", types.CHAR), ("range_subtype", types.OID),
    ("attrtypoids", None), ("attrnames", None), ("depth", types.INT4), ("basetype_name", types.TEXT),
    ("elemtype_name", types.TEXT), ("range_subtype_name", types.TEXT),
)  # fmt: skip


@dataclass(frozen=True)
class TypeInfo:
    """asyncpg's question about types: what each is, and of what it is made."""

    parameters: tuple[int, ...] = (types.OID.array,)
    route: str = "catalog"
    known: bool = False

    def fields(self) -> Sequence[Field]:
        arrays = {"attrtypoids": types.OID.array, "attrnames": types.TEXT.array}
        return [
            Field(name, arrays[name], -1) if kind is None else Field(name, kind.oid, kind.size)
            for name, kind in _TYPE_INFO
        ]

    def repeat(self) -> ResultSet | None:
        return None

    def run(self, values: Sequence[PgValue]) -> ResultSet:
        oids = values[0] if values and isinstance(values[0], list) else []
        rows: list[list[PgValue]] = []
        for oid in oids:
            element = types.ELEMENT.get(oid) if isinstance(oid, int) else None
            if element is not None:
                rows.append(_type_info(element.oid, element.name, None, 1))
                rows.append(_type_info(element.array, f"_{element.name}", element, 0))
            elif isinstance(oid, int) and oid in types.BY_OID:
                rows.append(_type_info(oid, types.BY_OID[oid].name, None, 0))
        return ResultSet(self.fields(), sorted(rows, key=lambda row: -int(str(row[10]))))

    def explain(self, values: Sequence[PgValue]) -> list[str]:
        return ["Catalog  (cost=0.000000..0.000000 rows=0 width=0)"]


def _type_info(oid: int, name: str, element: PgType | None, depth: int) -> list[PgValue]:
    inner: list[PgValue] = [0, None] if element is None else [element.oid, ","]
    inner_name = "-" if element is None else element.sql_name
    return [oid, "pg_catalog", name, "b", None, *inner, None, None, None, depth, None, inner_name, None]
