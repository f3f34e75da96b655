"""Iceberg tables in a folder, written by Iceberg's own library for Python with a catalog of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def iceberg_catalog(folder: Path) -> Iterator[Any]:
    """A catalog whose tables db.NAME lie in FOLDER/db/NAME."""
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.utils.concurrent import ExecutorFactory

    catalog = SqlCatalog("lake", uri="sqlite:///:memory:", warehouse=f"file://{folder}")
    catalog.create_namespace("db")
    try:
        yield catalog
    finally:
        catalog.close()
        ExecutorFactory.get_or_create().shutdown()  # its threads would outlive the test
        ExecutorFactory._instance = None


def local(path: str) -> Path:
    """The file that a path in Iceberg's metadata means."""
    return Path(path.removeprefix("file://"))
