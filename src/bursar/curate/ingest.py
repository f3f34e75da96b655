"""Streams: new files are taken into the table of a data set that grows, while questions go on being asked.

No row passes through here: the door to the rows is `curate/intake.py`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bursar.config import Config
from bursar.curate.intake import SUFFIXES, Store, Taken, digest_of
from bursar.errors import ConfigError, SourceError

LOCK = "curator.lock"
DATABASES = (".duckdb", ".db")
POLL_SECONDS = 2.0
UNFINISHED = (".", "_")
"""How the names of files begin that somebody is still writing."""

Stamp = tuple[int, int]


@contextmanager
def curating(config: Config) -> Iterator[None]:
    """Keeps everybody else from adding rows, sealing and declaring meanwhile: a sealed partition takes no more rows.

    The lock is a file beside the ledger, and ends with the process. Without a ledger on disk there is nobody else.
    """
    folder = config.ledger_path.parent
    if not folder.is_dir():
        yield
        return
    from filelock import FileLock  # loaded here, since asking a question needs none

    with FileLock(folder / LOCK):
        yield


def create_table(config: Config) -> None:
    """Begin with an empty table, where data grow in a DuckDB file that is not there yet."""
    if config.sealing.growing and config.location is not None and config.location.suffix.lower() in DATABASES:
        store_of(config).create()


def store_of(config: Config) -> Store:
    """The file that rows are added to; ConfigError where the data do not grow, or not by adding rows."""
    if not config.sealing.growing:
        hint = 'column = "joined"\nseal = "calendar", or seal = "command"'
        raise ConfigError(f"these data are complete: no rows can be added\ntry: [partition]\n{hint}", str(config.path))
    if config.location is None:
        hint = "add them there, and seal what is complete: bursar seal"
        raise ConfigError(f"the table is in a database, which takes rows itself\ntry: {hint}", str(config.path))
    if config.location.suffix.lower() not in DATABASES:
        raise ConfigError("rows can be added to a DuckDB file only\ntry: path = ....duckdb", str(config.path))
    return Store(
        path=config.location, table=config.table, domain=config.domain, unit=config.unit, max_rows=config.max_rows
    )


def ingest(config: Config, file: Path, sealed: Callable[[], int | None]) -> Taken:
    """Take one file in; `sealed` tells how many partitions take no more rows."""
    store = store_of(config)
    with curating(config):
        return store.take_in(file, sealed() or 0)


@dataclass
class Watcher:
    """Takes the files of a folder in, in the order of their names, each when it is complete.

    A file is complete when its size and time are the same at two looks in a row and its name does not begin with a dot
    or an underscore. One that was taken in before is passed over; one that is refused is tried again when it changes.
    """

    config: Config
    folder: Path
    take: Callable[[Path], Taken]
    tell: Callable[[Taken | SourceError], None]
    between: Callable[[], object] = lambda: None  # at every look, whatever has come
    seen: dict[Path, Stamp] = field(default_factory=dict)  # at the last look
    done: dict[Path, Stamp] = field(default_factory=dict)

    def look(self) -> None:
        """One look at the folder: what is complete and new is taken in."""
        self.between()
        now = {path: stamp for path in sorted(self.folder.iterdir()) if (stamp := self._stamp(path)) is not None}
        for path, stamp in now.items():
            if self.seen.get(path) == stamp and self.done.get(path) != stamp:
                self._take(path)
                self.done[path] = stamp
        self.seen = now

    def watch(self, pause: Callable[[], None] = lambda: time.sleep(POLL_SECONDS)) -> None:
        """Look for ever; Ctrl-C ends it, and leaves a file that is being taken in as if it had never been seen."""
        while True:
            self.look()
            pause()

    def _take(self, path: Path) -> None:
        try:
            if not store_of(self.config).knows(digest_of(path)):
                self.tell(self.take(path))
        except SourceError as refusal:
            self.tell(refusal)

    def _stamp(self, path: Path) -> Stamp | None:
        if path.name.startswith(UNFINISHED) or not path.name.lower().endswith(SUFFIXES) or not path.is_file():
            return None
        status = path.stat()
        return status.st_size, status.st_mtime_ns
