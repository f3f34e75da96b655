"""Which source a config names: a file or a frame that DuckDB reads, or a table that stays in its database."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from bursar.config import Config
from bursar.config.source_url import SourceUrl
from bursar.core.source.source import Source
from bursar.errors import SourceError

if TYPE_CHECKING:
    from bursar.core.source.servers.cell_table import CellTable
    from bursar.core.source.servers.sql_source import Server

PASSWORD = "BURSAR_SOURCE_PASSWORD"
SPILL = "BURSAR_SPILL"
OWNER_URL = "BURSAR_OWNER_URL"

OpenSource = Callable[[bytes], Source]
"""Opens a source with the ledger's data key."""


def source_of(config: Config, data: object | None = None) -> OpenSource:
    """How to open the source with the ledger's data key; `data` is a path or frame instead of what the config names."""
    url = config.url if data is None else None
    if url is not None and url.cells is not None:
        return KeptInDatabase(config, url, url.cells)

    def open_source(key: bytes) -> Source:  # imports here what free answers, which need no data, do not import
        if url is not None:
            from bursar.core.source.servers.sql_source import SqlSource

            facts = (config.domain, config.unit, key, config.max_rows, config.parents)
            return SqlSource(lambda: connect(url, config.table, _beside(config)), *facts)
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


class KeptInDatabase:
    """A source whose cells are kept in a table of the schema `cells`; within `filling` that is filled before it is
    read."""

    def __init__(self, config: Config, url: SourceUrl, cells: str) -> None:
        self._config, self._url, self._cells = config, url, cells
        self._wanted: tuple[int | None] | None = None  # how many partitions are to be filled in

    def __call__(self, key: bytes) -> Source:
        from bursar.core.source.servers.cell_table import CellTable, CellTableSource
        from bursar.core.source.servers.postgresql_cells import PostgreSQLCells

        config, url, cells = self._config, self._url, self._cells
        table = CellTable(config.domain, config.unit, key, config.max_rows, parents=config.parents)
        if self._wanted is not None:
            self._fill(table, *self._wanted)
        return CellTableSource(lambda: PostgreSQLCells(url.url, cells, config.table, password(url), url.seconds), table)

    @contextmanager
    def filling(self, first: int | None) -> Iterator[None]:
        """Within, opening fills in so many partitions by the role that the environment names, if it names one."""
        self._wanted = (first,)
        try:
            yield
        finally:
            self._wanted = None

    def _fill(self, table: CellTable, first: int | None) -> None:
        owner, url = os.environ.get(OWNER_URL), self._url
        if not owner:
            return
        from bursar.core.source.servers.postgresql_cells import PostgreSQLFiller

        where = (url.schema, self._config.table, url.seconds, _beside(self._config))
        table.fill(lambda: PostgreSQLFiller(owner, *where, cells=self._cells, reader=url.user), first)


def filling(open_source: OpenSource, first: int | None) -> AbstractContextManager[None]:
    """For the data owner, who declares or seals so many partitions: within, cells that are kept in the database are
    brought up to date when the source is opened."""
    return open_source.filling(first) if isinstance(open_source, KeptInDatabase) else nullcontext()


def _beside(config: Config) -> tuple[str, ...]:
    """The tables that are joined with the config's."""
    return tuple(parent.table for parent in config.parents)


def connect(url: SourceUrl, table: str, beside: Sequence[str] = ()) -> Server:
    """A connection for one pass over the table and those joined with it. Drivers are loaded here: each is an extra."""
    if url.file is not None:
        from bursar.core.source.servers.duckdb_file import DuckDBFile

        return DuckDBFile(url.file, url.schema, table, spill_folder(), beside)
    if url.files is not None:
        from bursar.core.source.servers.spark import SparkFiles

        token = password(url) if url.scheme == "sc" else None
        return SparkFiles(url.url, url.files_of(table), token, {name: url.files_of(name) for name in beside})
    if url.scheme in ("mysql", "mariadb"):
        from bursar.core.source.servers.mariadb import MariaDBServer

        return MariaDBServer(url.url, url.schema, table, password(url), url.seconds, beside)
    from bursar.core.source.servers.postgresql import PostgreSQLServer

    return PostgreSQLServer(url.url, url.schema, table, password(url), url.seconds, beside)


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
