"""Statements about the catalog, as PostgreSQL has them, become statements for its tables in DuckDB, or are refused.

They may name these tables and the functions listed here, and nothing else. Schemas, casts to PostgreSQL's own types and
functions of the session are replaced.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlglot import exp

from bursar.service.wire import catalog_relations as facts
from bursar.service.wire import types
from bursar.service.wire.asked import Context
from bursar.service.wire.catalog_relations import OF_SESSION, RELATIONS
from bursar.service.wire.failures import NO_TABLE, UNAVAILABLE, WireError
from bursar.service.wire.settings import OWN, VERSION
from bursar.service.wire.trees import array_constants, as_list, constant, replace_nodes, unescaped
from bursar.service.wire.types import PgValue
from bursar.sql.syntax import Node

SCHEMAS = {"pg_catalog": "pg", "information_schema": "info"}
_DUCKDB = {
    "oid": "INTEGER", "name": "VARCHAR", "char": "VARCHAR", "text": "VARCHAR", "int2": "SMALLINT", "int4": "INTEGER",
    "int8": "BIGINT", "float4": "FLOAT", "bool": "BOOLEAN", "timestamp": "TIMESTAMP",
}  # fmt: skip


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


def duckdb_type(kind: str) -> str:
    """What a type of PostgreSQL is kept as."""
    return _DUCKDB[kind.removesuffix("[]")] + ("[]" if kind.endswith("[]") else "")


@dataclass(frozen=True)
class Sessions:
    """What a statement may know and do about sessions of the same person."""

    process: int
    own: Callable[[], list[int]]
    stop: Callable[[int], bool]


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
            case exp.Dot(this=exp.Identifier() as schema) if schema.name in SCHEMAS:
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
        table.set("db", exp.to_identifier(SCHEMAS[schema], quoted=True))
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
    return exp.DataType.build(duckdb_type(kind), dialect="duckdb")


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
