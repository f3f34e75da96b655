"""The metadata of an Iceberg table: which Parquet files one snapshot of the table consists of.

Every commit writes a numbered file, JSON, with the snapshots and schemas that the table has then. A snapshot names a
list of manifests, and these name data files, both in Avro. Columns are found in data files by number: names may change.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from typing import Any, TypeVar

from bursar.core.source.raw import attempt
from bursar.errors import SourceError

T = TypeVar("T")

METADATA = re.compile(r"(?:v(\d+)|(\d+)-.+?)(?:\.gz)?\.metadata\.json(?:\.gz)?")
UNREADABLE = "{name}: the metadata of the Iceberg table cannot be read"
GZIPPED = b"\x1f\x8b"
SCHEME = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:)?(?://)?")
"""What a path begins with: Iceberg may have file:/lake or s3:// where Spark has file:///lake or s3a://."""

NAME_MAPPING = "schema.name-mapping.default"
LISTED = {"manifest_path", "manifest_length"}
TOLD = {"status", "data_file", "content", "file_path", "file_format", "file_size_in_bytes", "key_metadata"}
"""What is read of manifests: never how many rows a file has, or between what values."""

REMOVED = 2  # the status of a file that the snapshot does not have any more
ROWS = 0  # the content of a file of rows; others say which rows are deleted
TYPES = {
    **{same: same for same in ("boolean", "long", "float", "double", "date", "string")},
    "int": "integer",
    "timestamp": "timestamp_ntz",
    "timestamptz": "timestamp",
}
"""What Spark calls Iceberg's types. Any other but a decimal is called binary, which no rule for cells takes."""


@dataclass(frozen=True, kw_only=True)
class IcebergSnapshot:
    """One snapshot: the folder that its table names, the list of its manifests, and its schema as JSON of Spark's."""

    location: str
    manifests: str | None  # None where nothing was ever written
    schema: dict[str, Any]


def newest_metadata(names: Iterable[str]) -> list[str]:
    """Of the files in the folder of metadata, those of the last commit; several where one of two has failed."""
    numbers = {each: int(found[1] or found[2]) for each in names if (found := METADATA.fullmatch(each))}
    last = max(numbers.values(), default=0)
    return sorted(each for each, number in numbers.items() if number == last)


def snapshot_of(contents: Sequence[bytes], wanted: int | None, name: str) -> IcebergSnapshot:
    """The snapshot of this number, from the metadata files of the last commit; None is the newest.

    Edge cases: a snapshot that is not there, metadata that make no sense, and a table whose files cannot be read by
    their numbers of columns, are a SourceError about `name`.
    """
    return _sensible(partial(_snapshot_of, contents, wanted, name), name)


def manifests_of(content: bytes, name: str) -> dict[str, int]:
    """The manifests in a list of them, with their sizes."""
    listed = _records(content, LISTED, name)
    return _sensible(lambda: {each["manifest_path"]: int(each["manifest_length"]) for each in listed}, name)


def files_of(contents: Iterable[bytes], name: str) -> dict[str, int]:
    """The files of rows that the manifests of a snapshot leave, with their sizes.

    Edge cases: manifests that make no sense, and rows that are not all those of plain Parquet, are a SourceError about
    `name`.
    """
    told = (each for content in contents for each in _records(content, TOLD, name))
    return _sensible(partial(_files_of, told, name), name)


def inside(path: str, location: str, name: str) -> str:
    """The path of a file within the folder of the table."""
    folder, full = SCHEME.sub("", location, count=1).rstrip("/") + "/", SCHEME.sub("", path, count=1)
    if not full.startswith(folder) or {".", ".."} & {*full.split("/")}:
        raise SourceError(
            f"{name}: files of the Iceberg table lie elsewhere than in the folder that it names as its own"
        )
    return full.removeprefix(folder)


def _sensible(work: Callable[[], T], name: str) -> T:
    try:
        return work()
    except SourceError:
        raise
    except Exception:
        pass
    raise SourceError(UNREADABLE.format(name=name))


def _snapshot_of(contents: Sequence[bytes], wanted: int | None, name: str) -> IcebergSnapshot:
    if wanted is None and len(contents) > 1:
        reason = "two commits left metadata of one number, and only the table's catalog knows which of them counts"
        raise SourceError(f"{name}: {reason}\ntry: the folder with @ and the number of the snapshot behind it")
    for content in contents:
        table = json.loads(gzip.decompress(content) if content.startswith(GZIPPED) else content)
        _check_readable(table, name)
        number = table.get("current-snapshot-id") if wanted is None else wanted
        schema, manifests = table.get("current-schema-id", 0), None
        if number not in (None, -1):
            found = [each for each in table["snapshots"] if each["snapshot-id"] == number]
            if not found:
                continue
            manifests = found[0]["manifest-list"]
            schema = schema if wanted is None else found[0].get("schema-id", schema)
        schemas = {each.get("schema-id", 0): each for each in table.get("schemas") or [table["schema"]]}
        columns = {"type": "struct", "fields": [_column(field) for field in schemas[schema]["fields"]]}
        return IcebergSnapshot(location=str(table["location"]), manifests=manifests, schema=columns)
    raise SourceError(f"{name}: the Iceberg table does not have this snapshot, or not any more")


def _check_readable(table: Mapping[str, Any], name: str) -> None:
    if table["format-version"] not in (1, 2):
        elsewhere = "the rows of one snapshot, written elsewhere as plain Parquet"
        reason = f"has format version {int(table['format-version'])}, which is not read here"
        raise SourceError(f"{name}: the Iceberg table {reason}\ntry: {elsewhere}")
    if NAME_MAPPING in table.get("properties", {}):
        written = f"rewrite_data_files with rewrite-all, and then the table without {NAME_MAPPING}"
        reason = "has files that Iceberg did not write, whose columns have no numbers"
        raise SourceError(f"{name}: the Iceberg table {reason}\ntry: {written}")


def _column(field: Mapping[str, Any]) -> dict[str, Any]:
    kind = field["type"] if isinstance(field["type"], str) else ""
    told = kind if kind.startswith("decimal(") else TYPES.get(kind, "binary")
    return {"name": field["name"], "type": told, "nullable": True, "metadata": {"parquet.field.id": int(field["id"])}}


def _files_of(told: Iterable[Mapping[str, Any]], name: str) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for file in (each["data_file"] for each in told if each["status"] != REMOVED):
        if file.get("content", ROWS) != ROWS:
            options = "options => map('delete-file-threshold', '1', 'remove-dangling-deletes', 'true')"
            merged = f"CALL system.rewrite_data_files(table => ..., {options}), and the snapshot that it makes"
            raise SourceError(f"{name}: the Iceberg table has delete files, which are not read here\ntry: {merged}")
        if file["file_format"].upper() != "PARQUET" or file.get("key_metadata") is not None:
            raise SourceError(f"{name}: files of the Iceberg table are not Parquet, or are encrypted")
        if file["file_path"] in sizes:
            raise ValueError
        sizes[file["file_path"]] = int(file["file_size_in_bytes"])
    return sizes


def _records(content: bytes, fields: set[str], name: str) -> list[dict[str, Any]]:
    """The records of an Avro file with these fields alone; others are passed over without being decoded."""
    import fastavro

    def decoded() -> list[Any]:
        written = fastavro.reader(BytesIO(content)).writer_schema
        return list(fastavro.reader(BytesIO(content), reader_schema=_only(written, fields)))

    return attempt(decoded, UNREADABLE.format(name=name))


def _only(schema: Any, fields: set[str]) -> Any:
    """A record of these fields alone; what is no record is left as it is."""
    if not isinstance(schema, dict) or schema["type"] != "record":
        return schema
    kept = [{**each, "type": _only(each["type"], fields)} for each in schema["fields"] if each["name"] in fields]
    return {**schema, "fields": kept}
