"""Where the raw rows are: a file or a data frame, as something that DuckDB can select from.

Nothing about the reading is guessed from rows (no type, no separator, no header), because a guess would let one row
decide how all others are read. The storage types of Parquet files, tables and frames are part of the public schema.
"""

from __future__ import annotations

import csv
import glob
import gzip
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from bursar.errors import SourceError

T = TypeVar("T")
Connection = Any  # duckdb.DuckDBPyConnection; DuckDB comes without types
PATIENCE_SECONDS = 10.0
"""How long a file is waited for that another process is writing to."""

FAILED = "the data could not be counted; ask the data owner to look at the source"
"""What everybody is told of a failure after the opening, whatever its cause."""

SUFFIXES = ".csv, .csv.gz, .parquet, .duckdb or .db"


@dataclass(frozen=True, kw_only=True)
class StoredColumn:
    """One stored column: SQL for its raw value, and the DuckDB type that it is stored in."""

    sql: str
    storage: str


@dataclass(frozen=True, kw_only=True)
class Raw:
    """Rows to select from. `unreadable` is what the data owner is told if that fails."""

    name: str
    relation: str
    columns: tuple[tuple[str, StoredColumn], ...]
    unreadable: str

    def column(self, name: str) -> StoredColumn:
        """The stored column of exactly this name. Other names are not shown: a file without a header has data there."""
        named = [column for stored, column in self.columns if stored == name]
        if len(named) != 1:
            raise SourceError(f"{self.name} has {'two columns' if named else 'no column'} {name}")
        return named[0]


def attempt(work: Callable[[], T], text: str) -> T:
    """Do the work; whatever goes wrong, raise SourceError with this text and without a trace of the cause.

    Guarantees: DuckDB's own message, which may quote data, is not even kept as the context of the new error.
    """
    try:
        return work()
    except Exception:
        pass
    raise SourceError(text)


def patiently(work: Callable[[], T]) -> T:
    """Do the work, again and again while another process has locked the DuckDB file that it needs."""
    import duckdb  # where rows are read: a free answer does without

    give_up = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return work()
        except duckdb.Error as fault:
            if "lock" not in str(fault) or time.monotonic() > give_up:
                raise
        time.sleep(0.02)


def open_raw(connection: Connection, location: object, table: str | None) -> Raw:
    """Make a path or a data frame known to the connection; SourceError says what is wrong, from public facts."""
    if not isinstance(location, str | os.PathLike):
        return _frame(connection, location)
    path = found_file(location)
    if has_tables(path):
        return stored_table(connection, path, table, attached(connection, path))
    if path.name.lower().endswith((".csv", ".csv.gz")):
        return _csv(path)
    if path.suffix.lower() == ".parquet":
        return _parquet(connection, path)
    raise SourceError(f"{path} is not a file that can be read; its name must end in {SUFFIXES}")


def found_file(location: str | os.PathLike[str]) -> Path:
    """The path of a file that is there."""
    path = Path(location)
    if not attempt(path.is_file, f"{path} cannot be reached"):
        raise SourceError(f"there is no file {path}")
    return path


def has_tables(path: Path) -> bool:
    """Whether a file is a DuckDB database by its name."""
    return path.suffix.lower() in (".duckdb", ".db")


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _file(path: Path) -> str:
    """A path that means itself: DuckDB would expand *, ? and [ in it."""
    return literal(glob.escape(str(path.absolute())))


def _csv(path: Path) -> Raw:
    """Every field is read as text; an empty one, quoted or not, is NULL."""
    text = f"{path} cannot be read as CSV: UTF-8, one line of column names, then fields separated by commas"
    names = attempt(lambda: _header(path), text)
    columns = ", ".join(f"c{place}: 'VARCHAR'" for place in range(len(names)))
    options = f"compression = '{'gzip' if _zipped(path) else 'none'}', auto_detect = false, header = true"
    dialect = "delim = ',', quote = '\"', escape = '\"', nullstr = ''"
    relation = f"read_csv({_file(path)}, columns = {{{columns}}}, {options}, {dialect})"
    fields = tuple((name, StoredColumn(sql=f"c{place}", storage="VARCHAR")) for place, name in enumerate(names))
    return Raw(name=str(path), relation=relation, columns=fields, unreadable=text)


def _header(path: Path) -> list[str]:
    opener: Callable[..., Any] = gzip.open if _zipped(path) else open
    with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
        return next(csv.reader(file, strict=True))


def _zipped(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


def _parquet(connection: Connection, path: Path) -> Raw:
    text = f"{path} cannot be read as Parquet"
    return described(connection, str(path), f"read_parquet({_file(path)}, hive_partitioning = false)", text)


def stored_table(connection: Connection, path: Path, table: str | None, text: str) -> Raw:
    """A base table of the file that is attached; the only one there is where none is named.

    Views in the file are left out: they compute rows from other rows, so how far one unit reaches would be unknown.
    """
    listing = "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'stored' AND NOT internal"
    tables: list[tuple[str, str]] = attempt(lambda: connection.execute(listing).fetchall(), text)
    fitting = [(schema, name) for schema, name in tables if table in (None, name)]
    if len(fitting) != 1:
        named = "several tables or none; name the one to use" if table is None else f"no single table {table}"
        raise SourceError(f"{path} has {named}")
    schema, name = fitting[0]
    return described(connection, str(path), f"stored.{quoted(schema)}.{quoted(name)}", text)


def attached(connection: Connection, path: Path) -> str:
    """Make the tables of a DuckDB file known; what the data owner is told if they cannot be read."""
    text = f"{path} cannot be read as a DuckDB file, or another process is writing to it"
    where = literal(str(path.absolute()))
    attach = f"ATTACH {where} AS stored (READ_ONLY, TYPE duckdb)"
    attempt(lambda: patiently(lambda: connection.execute(attach)), text)
    return text


def _frame(connection: Connection, frame: object) -> Raw:
    text = "the data frame cannot be read; pandas, polars and Arrow tables with columns of plain types can"
    attempt(lambda: connection.register("frame", frame), text)
    return described(connection, "the data frame", "frame", text)


def described(connection: Connection, name: str, relation: str, text: str) -> Raw:
    lines = attempt(lambda: connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall(), text)
    columns = tuple((line[0], StoredColumn(sql=quoted(line[0]), storage=line[1])) for line in lines)
    return Raw(name=name, relation=relation, columns=columns, unreadable=text)
