"""pg_catalog and information_schema, answered from public facts alone; nothing here can reach the data or the ledger.

About fifty small tables stand in a DuckDB of their own, in memory, that can read no file and load no extension. A
statement gets there as a tree: it may name these tables and the functions listed here, and nothing else; schemas, casts
to PostgreSQL's own types and functions of the session are replaced on the way. A few shapes are answered by hand.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import duckdb
from sqlglot import exp

from bursar.config import Config
from bursar.service.wire import relations as facts
from bursar.service.wire import types
from bursar.service.wire.asked import Context, ResultSet
from bursar.service.wire.failures import NO_TABLE, UNAVAILABLE, WireError
from bursar.service.wire.protocol import Field
from bursar.service.wire.relations import OF_SESSION, RELATIONS
from bursar.service.wire.settings import OWN, VERSION
from bursar.service.wire.trees import (
    Parsed,
    array_constants,
    as_list,
    constant,
    infer,
    replace_nodes,
    shown_name,
    unescaped,
    with_values,
)
from bursar.service.wire.types import PgType, PgValue
from bursar.sql.syntax import Node

SECONDS = 5.0
"""After which a look at the catalog is given up."""

MOST_ROWS = 100_000

_SCHEMAS = {"pg_catalog": "pg", "information_schema": "info"}
_DUCKDB = {
    "oid": "INTEGER", "name": "VARCHAR", "char": "VARCHAR", "text": "VARCHAR", "int2": "SMALLINT", "int4": "INTEGER",
    "int8": "BIGINT", "float4": "FLOAT", "bool": "BOOLEAN", "timestamp": "TIMESTAMP",
}  # fmt: skip

_EXACT = {
    name: types.BY_NAME[kind]
    for columns in RELATIONS.values()
    for name, kind in columns
    if kind in ("oid", "name", "char")
}
"""Columns of types that DuckDB does not have; some clients need them told apart."""


def _macros() -> list[str]:
    kinds = [(pg.oid, pg.sql_name) for pg in types.TYPES] + [
        (pg.array, f"{pg.sql_name}[]") for pg in types.TYPES if pg.array
    ]
    named = " ".join(f"WHEN {oid} THEN '{name}'" for oid, name in kinds)
    null = "CAST(NULL AS VARCHAR)"
    of_one_argument = {
        "pg_table_is_visible": "TRUE", "pg_type_is_visible": "TRUE", "pg_function_is_visible": "TRUE",
        "pg_collation_is_visible": "TRUE", "pg_operator_is_visible": "TRUE", "pg_opclass_is_visible": "TRUE",
        "pg_is_other_temp_schema": "FALSE", "pg_relation_is_publishable": "FALSE",
        "pg_get_userbyid": f"CASE x WHEN {facts.OWNER_OID} THEN '{facts.OWNER_NAME}' END",
        "pg_encoding_to_char": "CASE x WHEN 6 THEN 'UTF8' END", "pg_table_size": "CAST(NULL AS BIGINT)",
        "pg_total_relation_size": "CAST(NULL AS BIGINT)", "pg_relation_size": "CAST(NULL AS BIGINT)",
        "pg_database_size": "CAST(NULL AS BIGINT)", "pg_size_pretty": null, "pg_get_viewdef": null,
        "pg_get_ruledef": null, "pg_get_triggerdef": null, "pg_get_functiondef": null,
        "pg_get_function_arguments": null, "pg_get_function_result": null, "pg_get_function_identity_arguments": null,
        "pg_get_partkeydef": null, "pg_get_statisticsobjdef_columns": null, "pg_get_statisticsobjdef": null,
        "pg_tablespace_location": "''", "quote_ident": "x", "quote_literal": "'''' || replace(x, '''', '''''') || ''''",
        "bursar_regclass": "CASE x WHEN 0 THEN '-' ELSE (SELECT max(called) FROM (SELECT relname AS called, oid AS "
        "numbered FROM pg.pg_class) WHERE numbered = x) END",
        "bursar_regnamespace": "CASE x WHEN 11 THEN 'pg_catalog' WHEN 2200 THEN 'public' END",
    }  # fmt: skip
    two = {
        "format_type": f"CASE x {named} ELSE '???' END", "pg_get_expr": null, "shobj_description": null,
        "obj_description": "(SELECT max(description) FROM pg.pg_description WHERE objoid = x AND objsubid = 0)",
        "col_description": "(SELECT max(description) FROM pg.pg_description WHERE objoid = x AND objsubid = y)",
        "pg_get_serial_sequence": null, "pg_get_constraintdef": null, "pg_get_indexdef": null,
        "has_table_privilege": "lower(y) LIKE 'select%'", "has_schema_privilege": "lower(y) LIKE 'usage%'",
        "has_database_privilege": "lower(y) LIKE 'connect%'", "has_any_column_privilege": "lower(y) LIKE 'select%'",
        "has_column_privilege": "TRUE", "pg_has_role": "TRUE", "array_upper": "len(x)", "array_lower": "1",
    }  # fmt: skip
    three = {
        "pg_get_expr": null, "pg_get_indexdef": null, "has_table_privilege": "lower(z) LIKE 'select%'",
        "has_schema_privilege": "lower(z) LIKE 'usage%'", "has_database_privilege": "lower(z) LIKE 'connect%'",
        "has_any_column_privilege": "lower(z) LIKE 'select%'", "has_column_privilege": "lower(z) LIKE 'select%'",
    }  # fmt: skip
    every: dict[str, list[str]] = {}
    for arguments, bodies in (("x", of_one_argument), ("x, y", two), ("x, y, z", three)):
        for name, body in bodies.items():
            every.setdefault(name, []).append(f"({arguments}) AS {body}")
    for name in ("pg_get_constraintdef", "pg_get_indexdef", "obj_description"):
        every[name].insert(0, f"(x) AS {null}")
    every["pg_my_temp_schema"] = ["() AS 0"]
    every["pg_advisory_unlock_all"] = [f"() AS {null}"]
    every["pg_is_in_recovery"] = ["() AS FALSE"]
    return [f"CREATE MACRO {name} {', '.join(bodies)}" for name, bodies in every.items()]


MACROS = _macros()

FUNCTIONS = frozenset(
    [
        *(macro.split()[2] for macro in MACROS),
        "lower", "upper", "length", "array_to_string", "array_upper", "array_lower", "array_length", "array_position",
        "generate_subscripts", "cardinality", "string_to_array", "concat", "coalesce", "nullif", "left", "right",
        "substr", "strpos", "btrim", "abs", "bool_and", "bool_or", "pg_get_keywords", "pg_timezone_names",
    ]
)  # fmt: skip
"""What a statement may call by name."""

_KNOWN = (
    exp.Cast, exp.Case, exp.If, exp.Coalesce, exp.Nullif, exp.Array, exp.ArrayAgg, exp.GroupConcat, exp.Min, exp.Max,
    exp.Count, exp.Sum, exp.RegexpLike, exp.RegexpILike, exp.Explode, exp.Unnest, exp.Upper, exp.Lower, exp.Length,
    exp.LogicalAnd, exp.LogicalOr, exp.RowNumber, exp.Rank, exp.DenseRank, exp.Trim, exp.Replace, exp.Exists,
    exp.Connector, exp.Concat, exp.Substring, exp.Left, exp.Right, exp.StrPosition, exp.ArrayToString,
    exp.StringToArray, exp.ArraySize, exp.Abs, exp.Any, exp.Collate, exp.GenerateSeries, exp.ExplodingGenerateSeries,
    exp.JSONObject,
)  # fmt: skip
"""The same for functions that sqlglot knows."""

_FORBIDDEN = (exp.DDL, exp.DML, exp.Command, exp.Into, exp.Lock, exp.Set, exp.Pragma, exp.Placeholder, exp.Lateral)


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
    for schema in _SCHEMAS.values():
        database.execute(f"CREATE SCHEMA {schema}")
    rows = facts.rows_of(config, config.dataset)
    for relation, columns in RELATIONS.items():
        if relation[1] in OF_SESSION:
            continue
        declared = ", ".join(f'"{name}" {_duckdb_type(kind)}' for name, kind in columns)
        table = f"{_SCHEMAS[relation[0]]}.{relation[1]}"
        database.execute(f"CREATE TABLE {table} ({declared})")
        if relation in rows:
            places = ", ".join("?" * len(columns))
            database.executemany(f"INSERT INTO {table} VALUES ({places})", [list(row) for row in rows[relation]])
    for macro in MACROS:
        database.execute(macro)
    database.execute("SET lock_configuration = true")
    return database


def _duckdb_type(kind: str) -> str:
    return _DUCKDB[kind.removesuffix("[]")] + ("[]" if kind.endswith("[]") else "")


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


@dataclass(frozen=True)
class Sessions:
    """What a statement may know and do about sessions of the same person."""

    process: int
    own: Callable[[], list[int]]
    stop: Callable[[int], bool]


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


def check(tree: Node) -> None:
    """Refuse what may not reach DuckDB: anything but a query, over functions that are listed."""
    for node in tree.walk():
        if isinstance(node, _FORBIDDEN):
            raise WireError(UNAVAILABLE, "this look at the catalog is not available")
        if isinstance(node, exp.Anonymous):
            if node.name.lower() not in FUNCTIONS and node.name.lower() not in _SESSION_FUNCTIONS:
                raise WireError("42883", f"function {node.name.lower()} does not exist")
        elif isinstance(node, exp.Func) and not isinstance(node, (*_KNOWN, *_SESSION_NODES)):
            raise WireError("42883", f"function {node.sql_name().lower()} does not exist")


_PROCEDURES = ("typinput", "typoutput", "typreceive", "typsend")
"""Columns of functions, which have names here and no numbers."""

_SESSION_NODES = (
    exp.CurrentUser, exp.CurrentDatabase, exp.CurrentCatalog, exp.CurrentSchema, exp.CurrentSchemas, exp.CurrentVersion,
    exp.CurrentTimestamp, exp.CurrentDate, exp.SessionUser,
)  # fmt: skip
_SESSION_FUNCTIONS = frozenset(
    [
        "version", "current_setting", "set_config", "pg_backend_pid", "current_schemas", "current_schema", "now",
        "current_database", "json_build_object", "_pg_expandarray", "pg_terminate_backend", "pg_cancel_backend", "all",
        "to_regclass", "to_regtype",
    ]
)  # fmt: skip


@dataclass(frozen=True)
class CatalogSpelling:
    """A statement as PostgreSQL has it to one for the tables in DuckDB."""

    context: Context
    sessions: Sessions
    describe: bool = False

    def sql(self, tree: Node) -> str:
        """The text for DuckDB. Names are quoted, as PostgreSQL reads them."""
        for identifier in tree.find_all(exp.Identifier):
            if not identifier.args.get("quoted"):
                identifier.set("this", str(identifier.this).lower())
        for column in tree.find_all(exp.Column):
            column.set("db", None)
            column.set("catalog", None)
        tree = replace_nodes(tree, self._replaced)
        for table in list(tree.find_all(exp.Table)):
            self._relation(table)
        return str(tree.sql("duckdb", identify=True, comments=False))

    def _replaced(self, node: Node) -> Node:
        match node:
            case exp.Dot(this=exp.Identifier() as schema) if schema.name in _SCHEMAS:
                return node.expression
            case exp.Collate():
                return node.this
            case exp.Operator():
                return _operator(node)
            case exp.ByteString():
                return exp.Literal.string(unescaped(str(node.this)))
            case exp.Cast():
                return self._cast(node)
            case exp.Like() | exp.ILike() if "\\" in node.expression.name and not isinstance(node.parent, exp.Escape):
                return exp.Escape(this=node, expression=exp.Literal.string("\\"))
            case exp.EQ() | exp.NEQ():
                procedure = isinstance(node.this, exp.Column) and node.this.name in _PROCEDURES
                equal = isinstance(node, exp.EQ)
                return exp.Boolean(this=not equal) if procedure and node.expression.is_number else as_list(node)
            case exp.Anonymous():
                return self._function(node)
            case _ if isinstance(node, _SESSION_NODES):
                return self._session(node)
            case exp.Column(this=exp.Identifier() as name) if not node.table and name.name in (
                "current_schema",
                "user",
            ):
                return exp.Literal.string("public" if name.name == "current_schema" else self._user)
        return node

    @property
    def _user(self) -> str:
        return self.context.bursar.analyst

    def _session(self, node: Node) -> Node:
        now = datetime.now(UTC).replace(tzinfo=None)
        match node:
            case exp.CurrentUser() | exp.SessionUser():
                return exp.Literal.string(self._user)
            case exp.CurrentDatabase() | exp.CurrentCatalog():
                return exp.Literal.string(self.context.database)
            case exp.CurrentVersion():
                return exp.Literal.string(f"PostgreSQL {VERSION} (Bursar)")
            case exp.CurrentTimestamp():
                return exp.cast(exp.Literal.string(now.isoformat(" ")), "timestamp")
            case exp.CurrentDate():
                return exp.cast(exp.Literal.string(now.date().isoformat()), "date")
            case exp.CurrentSchemas():
                return constant(["pg_catalog", "public"])
        return exp.Literal.string("public")

    def _function(self, node: exp.Anonymous) -> Node:
        words = [argument.name if isinstance(argument, exp.Literal) else "" for argument in node.expressions]
        match node.name.lower():
            case "version":
                return self._session(exp.CurrentVersion())
            case "now":
                return self._session(exp.CurrentTimestamp())
            case "current_database":
                return exp.Literal.string(self.context.database)
            case "current_schema":
                return exp.Literal.string("public")
            case "current_schemas":
                return constant(["pg_catalog", "public"])
            case "pg_backend_pid":
                return exp.Literal.number(self.sessions.process)
            case "json_build_object":
                return exp.cast(exp.Null(), "text")  # of identity columns and collations, of which there are none
            case "current_setting" if words:
                value = self.context.settings.get(words[0])
                return exp.cast(exp.Null(), "text") if value is None else exp.Literal.string(value)
            case "set_config" if len(words) >= 2:
                if not self.describe:
                    self.context.settings.set(words[0], words[1])
                return exp.Literal.string(words[1])
            case "to_regclass" if words:
                return constant(self._oid(words[0]))
            case "to_regtype" if words:
                kind = types.BY_NAME.get(words[0].lower().removeprefix("pg_catalog."))
                return constant(None if kind is None else kind.oid)
            case "pg_terminate_backend" | "pg_cancel_backend":
                return exp.Boolean(this=False)
        return node

    def _cast(self, node: exp.Cast) -> Node:
        """Casts to PostgreSQL's own types: a name to its number, or a number to its name."""
        kind = node.to.sql("postgres").lower().removeprefix("pg_catalog.").strip('"')
        inner = node.this
        while isinstance(inner, exp.Paren) or (isinstance(inner, exp.Cast) and inner.to.this is exp.DataType.Type.TEXT):
            inner = inner.this
        literal = inner.name if isinstance(inner, exp.Literal) and inner.is_string else None
        match kind:
            case "regclass":
                if literal is not None:
                    oid = int(literal) if literal.isdecimal() else self._oid(literal)
                    if oid is None:
                        raise WireError(NO_TABLE, f'relation "{literal}" does not exist')
                    return constant(oid)
                return inner if _outer_cast(node) == "oid" else _call("bursar_regclass", exp.cast(inner, "int"))
            case "regtype":
                if literal is not None:
                    named = types.BY_NAME.get(literal.removeprefix("pg_catalog."))
                    return constant(int(literal) if literal.isdecimal() else named.oid if named else None)
                return inner if _outer_cast(node) == "oid" else _call("format_type", inner, exp.Null())
            case "regnamespace":
                numbers = {"pg_catalog": facts.CATALOG_OID, "public": facts.PUBLIC_OID}
                return constant(numbers.get(literal)) if literal is not None else _call("bursar_regnamespace", inner)
            case "oid" | "xid":
                procedure = isinstance(inner, exp.Column) and inner.name in _PROCEDURES
                return exp.Literal.number(1) if procedure else exp.cast(node.this, "int")
            case "name" | "char" | "regproc" | "bpchar" | "text" | "varchar":
                return exp.cast(node.this, "text")
            case "oid[]":
                return exp.cast(node.this, exp.DataType.build("int[]"))
            case "name[]" | "text[]" | "varchar[]" | "int2[]" | "int4[]" | "smallint[]" | "int[]":
                items = None if literal is None else array_constants(inner)
                return node if items is None else exp.Array(expressions=items)
        return node

    def _oid(self, name: str) -> int | None:
        """The number of a relation, by its name."""
        schema, _, bare = name.replace('"', "").rpartition(".")
        names = [config.table for config in self.context.bursar.config.private]
        if bare in names and schema in ("", "public"):
            return facts.oid_of(names.index(bare))
        return facts.OIDS.get(bare.lower()) if schema in ("", "pg_catalog") else None

    def _relation(self, table: exp.Table) -> None:
        """A relation as its table in DuckDB, or as its rows where these depend on who asks."""
        inner = table.this
        if isinstance(inner, exp.Anonymous) and inner.name.lower() in ("pg_get_keywords", "pg_timezone_names"):
            table.set("this", exp.to_identifier(inner.name.lower(), quoted=True))
        elif not isinstance(inner, exp.Identifier):
            table.set("db", None)
            return
        name, schema = table.name.lower(), table.db.lower() or "pg_catalog"
        if (schema, name) not in RELATIONS:
            return  # a name that the statement has made itself
        if name in OF_SESSION and schema == "pg_catalog":
            alias = table.alias or name
            rows = values_of(schema, name, self._rows(name))
            table.replace(exp.Subquery(this=rows, alias=exp.TableAlias(this=exp.to_identifier(alias, quoted=True))))
            return
        table.set("db", exp.to_identifier(_SCHEMAS[schema], quoted=True))
        table.set("catalog", None)

    def _rows(self, name: str) -> list[list[PgValue]]:
        if name == "pg_roles":
            people = ((facts.OWNER_NAME, facts.OWNER_OID, False), (self._user, facts.PERSON_OID, True))
            flags: list[PgValue] = [False, True, False, False]
            tail: list[PgValue] = [False, -1, None, None, False, None]
            return [[role, *flags, login, *tail, oid] for role, oid, login in people]
        if name == "pg_user":
            return [[self._user, facts.PERSON_OID, False, False, False, False, None, None, None]]
        if name == "pg_settings":
            return [
                [key, value, None, "Bursar" if key in OWN else "PostgreSQL", OWN.get(key, ""), None, "user", "string",
                 "session", None, None, None, value, value, None, None, False]
                for key, value in self.context.settings.all()
            ]  # fmt: skip
        return [
            [facts.DATABASE_OID, self.context.database, process, None, facts.PERSON_OID, self._user, "", "active", "",
             "client backend"]
            for process in self.sessions.own()
        ]  # fmt: skip


def values_of(schema: str, name: str, rows: Sequence[Sequence[PgValue]]) -> Node:
    """SELECT of rows that are written out, with the columns of a relation."""
    columns = RELATIONS[schema, name]
    lines = [exp.Tuple(expressions=[constant(value) for value in row]) for row in rows or [[None] * len(columns)]]
    names = [exp.to_identifier(column, quoted=True) for column, _ in columns]
    table = exp.Values(expressions=lines, alias=exp.TableAlias(this=exp.to_identifier("v"), columns=names))
    typed = [
        exp.alias_(exp.cast(exp.column(column, quoted=True), _built(kind)), column, quoted=True)
        for column, kind in columns
    ]
    tree = exp.select(*typed).from_(table)
    return tree if rows else tree.where(exp.false())


@functools.cache
def _built(kind: str) -> Node:
    return exp.DataType.build(_duckdb_type(kind), dialect="duckdb")


def _operator(node: exp.Operator) -> Node:
    name = str(node.args["operator"]).removeprefix("pg_catalog.")
    left, right = node.this, node.expression
    right = right.this if isinstance(right, exp.Collate) else right
    match name:
        case "~":
            return exp.RegexpLike(this=left, expression=right)
        case "~*":
            return exp.RegexpILike(this=left, expression=right)
        case "!~":
            return exp.Not(this=exp.RegexpLike(this=left, expression=right))
        case "=":
            return exp.EQ(this=left, expression=right)
        case "~~":
            return exp.Like(this=left, expression=right)
    raise WireError(UNAVAILABLE, f"the operator {name} is not available in the catalog")


def _outer_cast(node: Node) -> str:
    around = node.parent
    return around.to.sql("postgres").lower().removeprefix("pg_catalog.") if isinstance(around, exp.Cast) else ""


def _call(name: str, *arguments: Node) -> Node:
    return exp.Anonymous(this=name, expressions=list(arguments))


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
