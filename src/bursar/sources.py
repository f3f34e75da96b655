"""Which source a config names: a file or a frame that DuckDB reads, or a table that stays in its database."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from bursar.config import Config
from bursar.config.source_url import SourceUrl
from bursar.core.source.source import Source
from bursar.errors import SourceError

if TYPE_CHECKING:
    from bursar.core.source.servers.sql_source import Server

PASSWORD = "BURSAR_SOURCE_PASSWORD"
SPILL = "BURSAR_SPILL"


def source_of(config: Config, data: object | None = None) -> Callable[[bytes], Source]:
    """How to open the source with the ledger's data key; `data` is a path or frame instead of what the config names."""
    url = config.url if data is None else None

    def open_source(key: bytes) -> Source:  # imports here what free answers, which need no data, do not import
        if url is not None:
            from bursar.core.source.servers.sql_source import SqlSource

            return SqlSource(lambda: connect(url, config.table), config.domain, config.unit, key, config.max_rows)
        location, table, view = (config.location, config.table, config.view) if data is None else (data, None, None)
        from bursar.core.source.duckdb import DuckDBSource

        return DuckDBSource(
            location,
            config.domain,
            config.unit,
            key=key,
            max_rows=config.max_rows,
            table=table,
            view=view,
            parents=config.parents,
            spill=spill_folder(),
        )

    return open_source


def connect(url: SourceUrl, table: str) -> Server:
    """A connection for one pass over the table. Drivers are loaded here: each is an extra."""
    if url.file is not None:
        from bursar.core.source.servers.duckdb_file import DuckDBFile

        return DuckDBFile(url.file, url.schema, table, spill_folder())
    if url.files is not None:
        from bursar.core.source.servers.spark import SparkFiles

        return SparkFiles(url.url, url.files, password(url) if url.scheme == "sc" else None)
    if url.scheme in ("mysql", "mariadb"):
        from bursar.core.source.servers.mariadb import MariaDBServer

        return MariaDBServer(url.url, url.schema, table, password(url), url.seconds)
    from bursar.core.source.servers.postgresql import PostgreSQLServer

    return PostgreSQLServer(url.url, url.schema, table, password(url), url.seconds)


def spill_folder() -> Path | None:
    """The folder where DuckDB may put what does not fit into memory, which the data owner names in the environment."""
    named = os.environ.get(SPILL)
    if not named:
        return None
    folder = Path(named)
    if not (folder.is_absolute() and folder.is_dir()):
        raise SourceError(f"{SPILL} names no folder: {named}\ntry: mkdir -m 700, and the whole path in {SPILL}")
    if os.name == "posix" and folder.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise SourceError(f"others can use the folder {folder}, where rows would lie\ntry: chmod 700 {folder}")
    return folder


def password(url: SourceUrl) -> str | None:
    """From the file that the config names, or from the environment; None leaves it to the driver (PGPASSFILE)."""
    if url.password_file is None:
        return os.environ.get(PASSWORD)
    try:
        mode = url.password_file.stat().st_mode
        text = url.password_file.read_text(encoding="utf-8")
    except (OSError, ValueError):
        raise SourceError(f"the password file {url.password_file} cannot be read") from None
    if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise SourceError(f"others can read the password file {url.password_file}\ntry: chmod 600 {url.password_file}")
    return text.strip("\r\n")
