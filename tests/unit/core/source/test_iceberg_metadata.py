"""Which files a snapshot of an Iceberg table consists of, from metadata that Iceberg's own library for Python wrote."""

from __future__ import annotations

import copy
import gzip
import json
import random
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import pyarrow
import pytest

from bursar.core.source.servers.iceberg_metadata import (
    IcebergSnapshot,
    files_of,
    inside,
    manifests_of,
    newest_metadata,
    snapshot_of,
)
from bursar.errors import SourceError
from harness.cases import examples
from harness.icebergs import iceberg_catalog, local

NAME = "the files t"
UNREADABLE = "the files t: the metadata of the Iceberg table cannot be read"


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Any]:
    with iceberg_catalog(tmp_path) as made:
        yield made


def people(low: int, high: int) -> Any:
    ids = pyarrow.array(range(low, high), pyarrow.int32())
    return pyarrow.table({"id": ids, "town": ["y" if i % 3 else "x" for i in range(low, high)]})


def newest(table: Any) -> list[bytes]:
    folder = local(table.location()) / "metadata"
    return [(folder / each).read_bytes() for each in newest_metadata([each.name for each in folder.iterdir()])]


def files(told: IcebergSnapshot) -> dict[str, int]:
    """By the paths that the metadata have, which are those of this machine."""
    listed = {} if told.manifests is None else manifests_of(local(told.manifests).read_bytes(), NAME)
    assert all(local(path).stat().st_size == size for path, size in listed.items())
    return files_of([local(path).read_bytes() for path in listed], NAME)


def as_iceberg_reads(table: Any, snapshot: int | None) -> dict[str, int]:
    planned = table.scan(snapshot_id=snapshot).plan_files()
    return {task.file.file_path: task.file.file_size_in_bytes for task in planned}


@pytest.mark.filterwarnings("ignore:Delete operation did not match any records")
@pytest.mark.parametrize("version", ["1", "2"])
def test_every_snapshot_of_a_random_history_is_what_icebergs_own_library_reads(catalog: Any, version: str) -> None:
    for seed in range(examples(12)):
        draw, table = random.Random(seed), catalog.create_table(f"db.t{version}_{seed}", people(0, 1).schema)
        with table.transaction() as transaction:
            merged = {"commit.manifest-merge.enabled": "true", "commit.manifest.min-count-to-merge": "2"}
            transaction.set_properties({"format-version": version, **(merged if draw.random() < 0.5 else {})})
        assert snapshot_of(newest(table), None, NAME).manifests is None
        for _ in range(draw.randrange(1, 6)):
            low = draw.randrange(100)
            step = draw.choice(["append", "append", "delete", "overwrite"])
            if step == "append":
                table.append(people(low, low + draw.randrange(1, 20)))
            elif step == "overwrite":
                table.overwrite(people(low, low + 5))
            else:
                table.delete(f"id >= {low} and id < {low + 30}")
        metadata = newest(table)
        numbers = [snapshot.snapshot_id for snapshot in table.snapshots()]
        for number in numbers:
            assert files(snapshot_of(metadata, number, NAME)) == as_iceberg_reads(table, number), (seed, number)
        assert files(snapshot_of(metadata, None, NAME)) == as_iceberg_reads(table, None), seed


@pytest.fixture
def table(catalog: Any) -> Any:
    made = catalog.create_table("db.people", people(0, 1).schema)
    made.append(people(0, 10))
    return made


@pytest.fixture
def metadata(table: Any) -> dict[str, Any]:
    (content,) = newest(table)
    parsed: dict[str, Any] = json.loads(content)
    return parsed


def test_the_last_commit_is_that_with_the_highest_number() -> None:
    hadoop = ["v9.metadata.json", "v10.gz.metadata.json", "version-hint.text", "snap-99-1-a.avro", "a-m0.avro"]
    assert newest_metadata(hadoop) == ["v10.gz.metadata.json"]
    catalogs = ["00009-a.metadata.json", "00010-b.metadata.json.gz", "00010-c.metadata.json", "11.metadata.json"]
    assert newest_metadata(catalogs) == ["00010-b.metadata.json.gz", "00010-c.metadata.json"]
    assert newest_metadata(["version-hint.text"]) == []


def test_columns_have_the_numbers_and_types_of_the_schema(catalog: Any) -> None:
    from pyiceberg.types import DecimalType, DoubleType, LongType

    made = {
        "id": pyarrow.int32(),
        "town": pyarrow.string(),
        "paid": pyarrow.decimal128(5, 2),
        "score": pyarrow.float32(),
        "day": pyarrow.date32(),
        "seen": pyarrow.timestamp("us"),
        "sent": pyarrow.timestamp("us", "UTC"),
        "open": pyarrow.bool_(),
        "raw": pyarrow.binary(),
        "tags": pyarrow.list_(pyarrow.string()),
    }
    table = catalog.create_table("db.t", pyarrow.schema(list(made.items())))
    table.append(pyarrow.table({name: pyarrow.array([None], kind) for name, kind in made.items()}))
    first = table.current_snapshot()
    kinds = [
        *("integer", "string", "decimal(5, 2)", "float", "date", "timestamp_ntz", "timestamp", "boolean", "binary"),
        "binary",
    ]
    assert columns(snapshot_of(newest(table), None, NAME)) == list(zip(range(1, 11), made, kinds, strict=True))
    with table.update_schema() as update:
        update.rename_column("town", "city").delete_column("day").add_column("day", LongType())
        update.update_column("id", LongType()).update_column("score", DoubleType())
        update.update_column("paid", DecimalType(9, 2))
    changed = {number: (name, kind) for number, name, kind in columns(snapshot_of(newest(table), None, NAME))}
    assert changed[1] == ("id", "long")
    assert changed[2] == ("city", "string")
    assert changed[3] == ("paid", "decimal(9, 2)")
    assert changed[12] == ("day", "long")
    assert 5 not in changed
    before = snapshot_of(newest(table), first.snapshot_id, NAME)  # with the names that it had
    assert columns(before) == list(zip(range(1, 11), made, kinds, strict=True))


def columns(told: IcebergSnapshot) -> list[tuple[int, str, str]]:
    fields = told.schema["fields"]
    return [(field["metadata"]["parquet.field.id"], field["name"], field["type"]) for field in fields]


def test_metadata_may_be_compressed_and_of_the_first_version(metadata: dict[str, Any]) -> None:
    content = json.dumps(metadata).encode()
    told = snapshot_of([content], None, NAME)
    assert snapshot_of([gzip.compress(content)], None, NAME) == told
    (schema,) = metadata.pop("schemas")
    del metadata["current-schema-id"], schema["schema-id"], metadata["snapshots"][0]["schema-id"]
    old = json.dumps({**metadata, "format-version": 1, "schema": schema}).encode()
    assert snapshot_of([old], None, NAME) == told == snapshot_of([old], metadata["current-snapshot-id"], NAME)


def test_where_two_commits_have_one_number_a_snapshot_must_be_named(metadata: dict[str, Any]) -> None:
    (other,) = metadata["snapshots"]
    number = other["snapshot-id"]
    failed = {**metadata, "current-snapshot-id": 7, "snapshots": [{**other, "snapshot-id": 7, "manifest-list": "m"}]}
    both = [json.dumps(each).encode() for each in (failed, metadata)]
    with pytest.raises(SourceError, match=r"two commits left metadata of one number(.|\n)*try: the folder with @"):
        snapshot_of(both, None, NAME)
    assert snapshot_of(both, number, NAME) == snapshot_of(both[1:], None, NAME)
    assert snapshot_of(both, 7, NAME).manifests == "m"
    for contents, wanted in ((both, 8), (both[:1], number), ([], None)):
        with pytest.raises(SourceError, match="the files t: the Iceberg table does not have this snapshot"):
            snapshot_of(contents, wanted, NAME)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"format-version": 3}, "the files t: the Iceberg table has format version 3, which is not read here"),
        ({"properties": {"schema.name-mapping.default": "[]"}}, "has files that Iceberg did not write"),
        ({"format-version": None}, UNREADABLE),
        ({"snapshots": [{}]}, UNREADABLE),
        ({"schemas": [{"schema-id": 0}]}, UNREADABLE),
        ({"current-schema-id": 5}, UNREADABLE),
        ({"snapshots": 7}, UNREADABLE),
    ],
)
def test_what_cannot_be_read_by_numbers_of_columns_is_refused(
    metadata: dict[str, Any], change: dict[str, Any], text: str
) -> None:
    with pytest.raises(SourceError, match=text) as caught:
        snapshot_of([json.dumps({**metadata, **change}).encode()], None, NAME)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("content", [b"{", b"[]", b"\x1f\x8b", b"\xff", b""])
def test_metadata_that_are_no_json_are_refused(content: bytes) -> None:
    with pytest.raises(SourceError, match=UNREADABLE):
        snapshot_of([content], None, NAME)


def changed(manifest: bytes, **change: Any) -> bytes:
    """The manifest with other facts about its files; those of the entry itself are the ones that it has."""
    reader = fastavro.reader(BytesIO(manifest))
    entries = list(reader)
    for entry in entries:
        for name, value in change.items():
            (entry if name in entry else entry["data_file"])[name] = value
    out = BytesIO()
    fastavro.writer(out, reader.writer_schema, entries)
    return out.getvalue()


@pytest.fixture
def manifest(table: Any) -> bytes:
    told = snapshot_of(newest(table), None, NAME)
    assert told.manifests is not None
    (path,) = manifests_of(local(told.manifests).read_bytes(), NAME)
    return local(path).read_bytes()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"content": 1}, r"has delete files, which are not read here\ntry: CALL system.rewrite_data_files"),
        ({"content": 2}, "has delete files"),
        ({"file_format": "ORC"}, "are not Parquet, or are encrypted"),
        ({"file_format": "avro"}, "are not Parquet, or are encrypted"),
        ({"key_metadata": b""}, "are not Parquet, or are encrypted"),
    ],
)
def test_rows_that_are_not_those_of_plain_parquet_are_refused(
    manifest: bytes, change: dict[str, Any], text: str
) -> None:
    with pytest.raises(SourceError, match=f"the files t: .*{text}"):
        files_of([changed(manifest, **change)], NAME)
    assert files_of([changed(manifest, **change, status=2)], NAME) == {}  # they are gone from this snapshot


def test_files_are_known_by_their_status(manifest: bytes) -> None:
    told = files_of([manifest], NAME)
    assert len(told) == 1
    for status, left in ((0, told), (1, told), (2, {})):
        assert files_of([changed(manifest, status=status, file_format="parquet")], NAME) == left


def test_manifests_that_make_no_sense_are_refused(manifest: bytes) -> None:
    for contents in ([manifest, manifest], [manifest[:-20]], [b""], [b"Obj\x01"], [manifest, b"{}"]):
        with pytest.raises(SourceError, match=UNREADABLE):
            files_of(contents, NAME)
    with pytest.raises(SourceError, match=UNREADABLE):
        manifests_of(manifest, NAME)


def test_numbers_of_rows_and_bounds_of_values_are_not_decoded(manifest: bytes) -> None:
    """Not even where no date could be made of them."""
    entries: Any = list(reader := fastavro.reader(BytesIO(manifest)))
    schema: Any = copy.deepcopy(reader.writer_schema)
    (file,) = [field["type"] for field in schema["fields"] if field["name"] == "data_file"]
    (partition,) = [field["type"] for field in file["fields"] if field["name"] == "partition"]
    partition["fields"] = [{"name": "day", "type": {"type": "int", "logicalType": "date"}}]
    for entry in entries:
        entry["data_file"]["partition"] = {"day": 2**31 - 1}
    out = BytesIO()
    fastavro.writer(out, schema, entries)
    assert files_of([out.getvalue()], NAME) == files_of([manifest], NAME)


@pytest.mark.parametrize(
    ("path", "location", "expected"),
    [
        ("file:///lake/visits/data/a.parquet", "file:///lake/visits", "data/a.parquet"),
        ("file:/lake/visits/data/a.parquet", "file:///lake/visits/", "data/a.parquet"),
        ("/lake/visits/data/a.parquet", "file:/lake/visits", "data/a.parquet"),
        ("s3://bucket/visits/data/town=a%20b/p q.parquet", "s3a://bucket/visits", "data/town=a%20b/p q.parquet"),
    ],
)
def test_paths_are_those_within_the_folder(path: str, location: str, expected: str) -> None:
    assert inside(path, location, NAME) == expected


@pytest.mark.parametrize(
    "path",
    [
        "s3://other/visits/data/a.parquet",
        "s3://bucket/visits2/a.parquet",
        "s3://bucket/visits/../secret/a.parquet",
        "/bucket/visits/a.parquet",
        "visits/a.parquet",
    ],
)
def test_paths_that_lead_elsewhere_are_refused(path: str) -> None:
    with pytest.raises(SourceError, match="the files t: files of the Iceberg table lie elsewhere"):
        inside(path, "s3://bucket/visits", NAME)
