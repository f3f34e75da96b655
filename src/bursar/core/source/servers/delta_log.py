"""The log of a Delta Lake table: which Parquet files one version of the table consists of.

The folder of such a table holds files of all its versions side by side, and `_delta_log` in it says in numbered
commits which were added and removed. A checkpoint is what all commits up to one number have left.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from bursar.errors import SourceError

COMMIT = re.compile(r"(\d{20})\.json")
CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.\d{10}\.(\d{10}))?\.parquet")
FEATURES = {"columnMapping", "deletionVectors", "timestampNtz", "vacuumProtocolCheck"}
"""What a table may be allowed to use; of the first two, it must not make use."""

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """One version: its files, by their paths inside the folder, with their sizes; its schema as JSON of Spark's."""

    sizes: Mapping[str, int]
    schema: dict[str, Any]


def to_read(names: Iterable[str], version: int | None, name: str) -> tuple[list[str], list[str]]:
    """Of the files of the log, those that a version follows from: the parts of one checkpoint, and the commits after
    it. None is the newest version.

    Edge cases: a version that is not there, or no longer whole, is a SourceError about `name`.
    """
    commits: dict[int, str] = {}
    parts: dict[tuple[int, int], list[str]] = {}
    for each in names:
        if found := COMMIT.fullmatch(each):
            commits[int(found[1])] = each
        elif found := CHECKPOINT.fullmatch(each):
            parts.setdefault((int(found[1]), int(found[2] or 1)), []).append(each)
    newest = max(commits, default=-1)
    last = newest if version is None else version
    whole = [key for key, files in parts.items() if key[0] <= last and len(files) == key[1]]
    start = max(whole, default=(-1, 0))
    following = range(start[0] + 1, last + 1)
    if not 0 <= last <= newest or any(number not in commits for number in following):
        raise SourceError(f"{name}: the log of the Delta table does not have this version, or not all of it any more")
    return sorted(parts.get(start, [])), [commits[number] for number in following]


def snapshot(actions: Iterable[str], name: str) -> Snapshot:
    """What is left by actions, each a line of JSON: those of a checkpoint, then those of the commits, in their order.

    Edge cases: a log that makes no sense, and a table that is more than its plain files, are a SourceError about
    `name`.
    """
    try:
        return _snapshot(map(json.loads, actions), name)
    except (LookupError, TypeError, ValueError, AttributeError):
        pass
    raise SourceError(f"{name}: the log of the Delta table cannot be read")


def _snapshot(actions: Iterable[dict[str, Any]], name: str) -> Snapshot:
    files: dict[tuple[object, ...], dict[str, Any]] = {}
    protocol: dict[str, Any] = {}
    table: dict[str, Any] = {}
    for action in actions:
        protocol, table = action.get("protocol", protocol), action.get("metaData", table)
        if removed := action.get("remove"):
            files.pop(_identity(removed), None)
        if added := action.get("add"):
            files[_identity(added)] = added
    _check_readable(protocol, table, files.values(), name)
    partitions, schema = table["partitionColumns"], json.loads(table["schemaString"])
    sizes = {unquote(file["path"]): int(file["size"]) for file in files.values()}
    for path, file in zip(sizes, files.values(), strict=True):
        _check_folders(path, file.get("partitionValues", {}), partitions, name)
    if any(field["type"] == "timestamp" for field in schema["fields"] if field["name"] in partitions):
        raise SourceError(f"{name}: the Delta table is partitioned by a time, whose zone its log does not say")
    return Snapshot(sizes=sizes, schema=schema)


def _identity(file: Mapping[str, Any]) -> tuple[object, ...]:
    """A commit may remove a file and add it again with some of its rows deleted, in either order."""
    deleted = file.get("deletionVector") or {}
    return (file["path"], *(deleted.get(key) for key in ("storageType", "pathOrInlineDv", "offset")))


def _check_readable(
    protocol: Mapping[str, Any], table: Mapping[str, Any], files: Iterable[Mapping[str, Any]], name: str
) -> None:
    reader = protocol.get("minReaderVersion", 0)
    features = {*protocol.get("readerFeatures", [])} if reader == 3 else set()
    others = ", ".join(sorted(features - FEATURES))
    if not 1 <= reader <= 3 or others:
        raise SourceError(f"{name}: the Delta table uses what is not read here: {others or f'version {reader}'}")
    if table.get("configuration", {}).get("delta.columnMapping.mode", "none") != "none":
        raise SourceError(f"{name}: the Delta table maps names of columns (delta.columnMapping.mode), not read here")
    if any(file.get("deletionVector") for file in files):
        purge = "REORG TABLE ... APPLY (PURGE), and the version that it makes"
        raise SourceError(f"{name}: the Delta table has deletion vectors, which are not read here\ntry: {purge}")


def _check_folders(path: str, values: Mapping[str, str | None], partitions: Sequence[str], name: str) -> None:
    """Spark reads a partition's values from the names of folders, so these must be what the log says.

    In a name it takes %C3 for the letter of this number, and not for a byte of UTF-8.
    """
    folders = [tuple(unquote(part, "latin-1") for part in folder.split("=", 1)) for folder in path.split("/")[:-1]]
    if folders != [(column, values.get(column) or NO_VALUE) for column in partitions]:
        reason = "do not lie in folders that Spark reads their partitions from"
        raise SourceError(f"{name}: files of the Delta table {reason}")
