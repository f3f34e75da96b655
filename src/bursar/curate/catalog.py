"""A draft from the catalog of PostgreSQL or MariaDB: types, enums, CHECKs, keys and, in PostgreSQL, the bounds of
partitions. No row is looked at."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from fractions import Fraction
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from bursar.core.source.raw import attempt
from bursar.core.source.servers.mariadb import parameters
from bursar.curate.draft import Draft, DraftColumn, DraftUnit, LeftOut, calendar, listed, numeric
from bursar.curate.guess import REASONS, names_identifiers, without_null
from bursar.curate.survey import SurveyedKind, rounded_up
from bursar.errors import ConfigError, SourceError

HINT = "try: bursar init {scheme}://reader@db.example.org/clinic/visits"
NOT_FOUND = (
    "try: .../SCHEMA.TABLE if it is in another schema, and GRANT SELECT on it; for a view, the table that it reads, or "
    "a copy (docs/deploy.md)"
)
FEWEST_ROWS = 1000
ROWS_WHY = (
    "From the catalog: about twice what it estimates. Must be a number that the table will never exceed, and that you "
    "may tell anybody."
)
OPEN = "the catalog does not say which values it can have; declare them: {how}"
HOW = {"N": "lower and upper, or edges", "D": "first, last and by", "S": 'values = ["..."]', "E": 'values = ["..."]'}

COLUMNS = """
SELECT attname, typcategory, typtype = 'e',
  ARRAY(SELECT enumlabel::text FROM pg_enum WHERE enumtypid = t.oid ORDER BY enumsortorder),
  EXISTS (SELECT FROM pg_index WHERE indrelid = attrelid AND indisunique AND indnkeyatts = 1 AND indkey[0] = attnum),
  (SELECT confrelid::regclass::text FROM pg_constraint
    WHERE conrelid = attrelid AND contype = 'f' AND conkey = ARRAY[attnum] LIMIT 1),
  attnotnull
FROM pg_attribute JOIN pg_type AS t ON t.oid = atttypid
WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""
CHECKS = """
SELECT pg_get_constraintdef(c.oid) FROM pg_constraint AS c WHERE conrelid = %(table)s AND contype = 'c'
UNION ALL SELECT replace(pg_get_constraintdef(c.oid), 'VALUE', quote_ident(attname)) FROM pg_constraint AS c
JOIN pg_attribute ON atttypid = contypid WHERE attrelid = %(table)s AND contypid <> 0 AND contype = 'c'
"""
BOUNDS = "SELECT pg_get_expr(relpartbound, oid) FROM pg_class JOIN pg_inherits ON inhrelid = oid WHERE inhparent = %s"
PARTITIONED = """
SELECT attname FROM pg_partitioned_table JOIN pg_attribute ON attrelid = partrelid AND attnum = partattrs[0]
WHERE partrelid = %s AND partstrat = 'r' AND partnatts = 1
"""
SMALLEST_ROW = 28
"""Bytes that a row takes in PostgreSQL at the least: how many a table can have about which no statistics were made."""

SIZE = f"""
SELECT sum(CASE WHEN reltuples >= 0 THEN reltuples ELSE pg_relation_size(oid) / {SMALLEST_ROW} END) FROM pg_class
WHERE relkind <> 'p' AND (oid IN (SELECT relid FROM pg_partition_tree(%(table)s)) OR oid = %(table)s)
"""
NAMED = """
SELECT c.oid FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace WHERE nspname = %s AND relname = %s
AND relkind IN ('r', 'p')
"""
BOUND = re.compile(r"'(\d{4}-\d\d-\d\d)(?: 00:00:00(?:[+]00)?)?'")

IN_MARIADB = ("mysql", "mariadb")
MARIADB_CATEGORIES = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "float", "double"), "N"),
    **dict.fromkeys(("date", "datetime", "timestamp"), "D"),
}
MARIADB_SIZE = """
SELECT TABLE_ROWS FROM information_schema.TABLES
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND TABLE_TYPE = 'BASE TABLE'
"""
MARIADB_COLUMNS = """
SELECT COLUMN_NAME, DATA_TYPE, COLUMN_TYPE,
  (SELECT COUNT(*) FROM information_schema.STATISTICS AS one WHERE one.TABLE_SCHEMA = c.TABLE_SCHEMA
    AND one.TABLE_NAME = c.TABLE_NAME AND one.COLUMN_NAME = c.COLUMN_NAME AND NON_UNIQUE = 0
    AND NOT EXISTS (SELECT * FROM information_schema.STATISTICS AS other WHERE other.TABLE_SCHEMA = one.TABLE_SCHEMA
      AND other.TABLE_NAME = one.TABLE_NAME AND other.INDEX_NAME = one.INDEX_NAME AND other.SEQ_IN_INDEX > 1)) > 0,
  (SELECT MIN(REFERENCED_TABLE_NAME) FROM information_schema.KEY_COLUMN_USAGE AS k WHERE k.TABLE_SCHEMA = c.TABLE_SCHEMA
    AND k.TABLE_NAME = c.TABLE_NAME AND k.COLUMN_NAME = c.COLUMN_NAME),
  IS_NULLABLE = 'NO'
FROM information_schema.COLUMNS AS c WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s ORDER BY ORDINAL_POSITION
"""


@dataclass
class CheckedValues:
    """What constraints say about one column."""

    values: list[str | int] = field(default_factory=list)
    low: Fraction | None = None
    high: Fraction | None = None


def table_of(url: str) -> tuple[str, str, str]:
    """The url of the database, the schema and the table, of postgresql://user@host/database/table or mysql://..."""
    parts = urlsplit(url)
    database, _, table = parts.path.strip("/").partition("/")
    schema, _, name = unquote(table).rpartition(".")
    if not name or "/" in name:
        raise ConfigError(f"which table of the database?\n{HINT.format(scheme=parts.scheme)}")
    default = unquote(database) if parts.scheme in IN_MARIADB else "public"
    return urlunsplit(parts._replace(path=f"/{database}")), schema or default, name


def draft_from_catalog(url: str, password: str | None) -> Draft:
    """Everything that the catalog tells; what it does not tell is left out, with what would have to be declared."""
    place, schema, table = table_of(url)
    looked = _look_in_mariadb if urlsplit(url).scheme in IN_MARIADB else _look_in_postgresql
    table_facts = looked(place, schema, table, password)
    if table_facts is None:
        raise SourceError(
            f"there is no table {schema}.{table}, or not for this role; views are none: they are refused\n{NOT_FOUND}"
        )
    size, stored, checks, spans = table_facts
    declared = _constraints(checks)
    drafts = [
        without_null(_column(line, declared.get(line[0], CheckedValues()), spans), gapless=line[-1]) for line in stored
    ]
    return Draft(
        origin=f"the catalog of {schema}.{table}",
        dataset=table,
        path=place,
        path_why="the password stands elsewhere: docs/config.md",
        url=True,
        schema=schema,
        table=table,
        max_rows=max(int(rounded_up(Fraction(2 * size + 1))), FEWEST_ROWS),
        rows_why=ROWS_WHY,
        unit=DraftUnit(),
        columns=tuple(draft for draft in drafts if isinstance(draft, DraftColumn)),
        left_out=tuple(draft for draft in drafts if isinstance(draft, LeftOut)),
    )


TableFacts = tuple[int, list[Any], list[exp.Expression], dict[str, tuple[date, date]]]
"""About how many rows; the columns; what CHECKs say; the first and the last day of columns that partitions go by."""

AWAY = (
    "the catalog of {schema}.{table} cannot be read: the server is away, or does not let this role in\n"
    "try: the role's password in BURSAR_SOURCE_PASSWORD; then whether the database's own client gets in"
)


def _look_in_postgresql(url: str, schema: str, table: str, password: str | None) -> TableFacts | None:
    try:
        import psycopg
    except ImportError:
        raise SourceError("PostgreSQL needs a driver: pip install 'psycopg[binary]'") from None
    away = AWAY.format(schema=schema, table=table)
    with attempt(lambda: psycopg.connect(url, password=password, autocommit=True), away) as connection:
        if connection.info.parameter_status("server_encoding") != "UTF8":
            raise SourceError(f"the table {schema}.{table} is in a database whose encoding is not UTF-8")
        return attempt(lambda: _postgresql_facts(connection, schema, table), away)


def _postgresql_facts(connection: Any, schema: str, table: str) -> TableFacts | None:
    row = connection.execute(NAMED, [schema, table]).fetchone()
    if row is None:
        return None
    (oid,) = row
    (size,) = connection.execute(SIZE, {"table": oid}).fetchone()
    stored = connection.execute(COLUMNS, [oid]).fetchall()
    texts = [text for (text,) in connection.execute(CHECKS, {"table": oid})]
    checks = [tree for text in texts for tree in _parsed(text.removeprefix("CHECK ").removesuffix(" NOT VALID"))]
    bounds = [text for (text,) in connection.execute(BOUNDS, [oid])]
    days = [date.fromisoformat(day) for text in bounds for day in BOUND.findall(text)]
    parted = connection.execute(PARTITIONED, [oid]).fetchone()
    last = max(days, default=date.max) - timedelta(days=1)  # the end of a range is outside of it
    spans = {parted[0]: (min(days), last)} if parted is not None and days else {}
    return int(size or 0), stored, checks, spans


def _look_in_mariadb(url: str, schema: str, table: str, password: str | None) -> TableFacts | None:
    try:
        import pymysql
    except ImportError:
        raise SourceError("MariaDB needs a driver: pip install pymysql") from None

    def look() -> TableFacts | None:
        with pymysql.connect(**parameters(url), password=password or "") as connection:
            return _mariadb_facts(connection.cursor(), schema, table)

    return attempt(look, AWAY.format(schema=schema, table=table))


def _mariadb_facts(cursor: Any, schema: str, table: str) -> TableFacts | None:
    cursor.execute(MARIADB_SIZE, [schema, table])
    row = cursor.fetchone()
    if row is None:
        return None
    cursor.execute(MARIADB_COLUMNS, [schema, table])
    stored = [_mariadb_column(*line) for line in cursor.fetchall()]
    quoted = ".".join(f"`{name.replace('`', '``')}`" for name in (schema, table))
    cursor.execute(f"SHOW CREATE TABLE {quoted}")  # a role that only reads is shown CHECKs nowhere else
    (statement,) = (*_parsed(cursor.fetchone()[1], "mysql"), exp.Null())[:1]
    return int(row[0] or 0), stored, [check.this for check in statement.find_all(exp.CheckColumnConstraint)], {}


def _mariadb_column(name: str, kind: str, full: str, unique: int, refers: str | None, not_null: int) -> tuple[Any, ...]:
    """As PostgreSQL has it. BOOLEAN is another name for tinyint(1)."""
    labels = [label.name for label in exp.DataType.build(full, "mysql").expressions] if kind == "enum" else []
    category = "B" if full == "tinyint(1)" else MARIADB_CATEGORIES.get(kind, "S")
    return name, category, kind == "enum", labels, bool(unique), refers, bool(not_null)


def _parsed(text: str, dialect: str = "postgres") -> list[exp.Expression]:
    """The text as a tree; none where the parser does not know it."""
    try:
        return [sqlglot.parse_one(text, dialect=dialect)]
    except SqlglotError:
        return []


def _column(line: Sequence[Any], declared: CheckedValues, spans: dict[str, tuple[date, date]]) -> DraftColumn | LeftOut:
    name, category, is_enum, labels, unique, refers, _ = line
    if unique or (names_identifiers(name) and not declared.values):
        return LeftOut(name=name, reason=REASONS[SurveyedKind.IDENTIFIER])
    if is_enum:
        return _drafted(name, listed(labels), "its type", "this list")
    if category == "B":
        return _drafted(name, listed([True, False]), "its type", "that there is nothing else")
    if declared.values:
        return _drafted(name, listed(declared.values), "a CHECK", "this list")
    if declared.low is not None and declared.high is not None and declared.low < declared.high:
        keys = numeric(declared.low, declared.high, whole=declared.low.denominator == declared.high.denominator == 1)
        return _drafted(name, keys, "a CHECK", "both ends")
    if name in spans:
        first, last = spans[name]
        return _drafted(name, calendar(first, last), "the bounds of partitions", "both days")
    if refers is not None:
        return LeftOut(
            name=name,
            reason=f"it refers to {refers}: if the keys there are public, list them: {HOW['S']}; "
            f"[tables.*] joins columns of {refers} to the rows (docs/config.md)",
            open=True,
        )
    return LeftOut(name=name, reason=OPEN.format(how=HOW.get(category, "see docs/config.md")), open=True)


def _drafted(name: str, keys: dict[str, object], source: str, public: str) -> DraftColumn:
    return DraftColumn(name=name, keys=keys, why=f"From the catalog: {source}. Must be public: {public}.")


def _constraints(checks: Iterable[exp.Expression]) -> dict[str, CheckedValues]:
    """What CHECKs of single columns say: lists, and ends of ranges. Whatever else they say is passed over."""
    declared_values: dict[str, CheckedValues] = {}
    for tree in checks:
        if tree.find(exp.Or, exp.Not) is not None or len({column.name for column in tree.find_all(exp.Column)}) != 1:
            continue
        declared = declared_values.setdefault(next(tree.find_all(exp.Column)).name, CheckedValues())
        for node in tree.walk():
            _take(declared, node)
    return declared_values


def _take(declared: CheckedValues, node: exp.Expression) -> None:
    if isinstance(node, exp.In) or (isinstance(node, exp.EQ) and isinstance(node.right.unnest(), exp.Any)):
        declared.values = list(_constants(node))
    if isinstance(node, exp.GTE | exp.Between):
        declared.low = _end(node.args["low"] if isinstance(node, exp.Between) else node.right, declared.low)
    if isinstance(node, exp.LTE | exp.Between):
        declared.high = _end(node.args["high"] if isinstance(node, exp.Between) else node.right, declared.high)


def _end(node: exp.Expression, before: Fraction | None) -> Fraction | None:
    constants = list(_constants(node))
    return Fraction(constants[0]) if len(constants) == 1 and isinstance(constants[0], int) else before


def _constants(node: exp.Expression) -> Iterator[str | int]:
    """Texts and whole numbers, in their order."""
    for literal in node.find_all(exp.Literal):
        if literal.is_string and not re.fullmatch(r"-?\d+", literal.name):
            yield literal.name
        elif re.fullmatch(r"-?\d+", literal.name):
            yield -int(literal.name) if isinstance(literal.parent, exp.Neg) else int(literal.name)
