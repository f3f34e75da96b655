"""Which files a source of Spark's names: Parquet by a path or pattern, or one version of a Delta or Iceberg table.

Spark reads the logs and metadata of such tables as plain files; neither Delta's nor Iceberg's own library is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import Any

from bursar.core.source.raw import attempt
from bursar.core.source.servers.delta_log import snapshot, to_read
from bursar.core.source.servers.iceberg_metadata import files_of, inside, manifests_of, newest_metadata, snapshot_of
from bursar.errors import SourceError

AWAY = "{name} cannot be read: Spark is away, or does not find them"
LOG, METADATA = "_delta_log", "metadata"
MARKS = {"Delta": f"{LOG}/*.json", "Iceberg": f"{METADATA}/*.metadata.json*", "Hudi": ".hoodie/hoodie.properties"}
"""What lies in the folder of a table that has files of several versions side by side."""

SEVERAL_VERSIONS = (
    "lie in the folder of a Delta, Iceberg or Hudi table, which has those of several versions side by side\n"
    "try: the folder of a Delta or Iceberg table itself; of Hudi, rows of one version that are written elsewhere"
)
DELTA_GONE = (
    "files of this version of the Delta table are gone, or not as its log tells: vacuumed, or overwritten\n"
    "try: a version that is whole, and bursar version if its rows are others"
)
ICEBERG_GONE = (
    "files of this snapshot of the Iceberg table are gone, or not as its metadata tell: expired, or overwritten\n"
    "try: a snapshot that is whole, and bursar version if its rows are others"
)
VERSION = re.compile(r"([^{}\[\]*?\\]+?)(?:@(v?)(\d+))?")
"""A folder without a pattern, and perhaps a version of Delta, as its own paths have it, or a snapshot of Iceberg."""

BY_NUMBERS = {
    "spark.sql.parquet.fieldId.read.enabled": "true",
    "spark.sql.parquet.fieldId.read.ignoreMissing": "false",
    "spark.sql.parquet.filterPushdown": "false",  # it looks for a column by its name, and may find another one
}
"""How columns of Parquet are found by their numbers, as Iceberg does."""

NUMBERS_SINCE = (4, 1)  # before, columns with other types in older files could be read wrongly (SPARK-52267)

GLOB = re.compile(r"[{}\[\]*?\\]")
ACTIONS = (
    "protocol STRUCT<minReaderVersion INT, readerFeatures ARRAY<STRING>>, "
    "metaData STRUCT<schemaString STRING, partitionColumns ARRAY<STRING>, configuration MAP<STRING, STRING>>, "
    "add STRUCT<path STRING, partitionValues MAP<STRING, STRING>, size BIGINT, {deleted}>, "
    "remove STRUCT<path STRING, {deleted}>"
).format(deleted="deletionVector STRUCT<storageType STRING, pathOrInlineDv STRING, offset INT>")
"""What is read of the log of a Delta table: never how many rows a file has, or between what values."""


@dataclass(frozen=True)
class FileList:
    """Parquet files that are one table. Of a Delta or Iceberg table, the files of one version, with its schema, and
    options that say where partitions are read from."""

    spark: Any
    paths: tuple[str, ...]
    schema: Any = None
    options: Mapping[str, str] = field(default_factory=dict)

    def rows(self) -> Any:
        if self.schema is None:
            return self.spark.read.parquet(*self.paths)
        if not self.paths:
            return self.spark.createDataFrame([], self.schema)
        return self.spark.read.schema(self.schema).options(**self.options).parquet(*self.paths)

    def listed(self) -> list[tuple[Any, ...]]:
        """Name, size and time of every file, looked up anew; what is in them is not read for it."""
        if not self.paths:
            return []
        read = self.spark.read.format("binaryFile").load(list(self.paths))
        return sorted(tuple(row) for row in read.select("path", "length", "modificationTime").collect())


def file_list(spark: Any, files: str) -> FileList:
    """What `source.files` names: files, by a path or pattern, or a Delta or Iceberg table by its folder, and perhaps a
    version: @v7 of Delta, @8345... of Iceberg."""
    name, pattern = f"the files {files}", files.rstrip("/")
    if found := VERSION.fullmatch(pattern):
        folder, version = found[1], None if found[3] is None else int(found[3])
        named = {None: ["Delta", "Iceberg"], "v": ["Delta"], "": ["Iceberg"]}[found[2]]
        for kind in named:
            if attempt(partial(_some, spark, f"{folder}/{MARKS[kind]}"), AWAY.format(name=name)):
                return (_delta_files if kind == "Delta" else _iceberg_files)(spark, folder, version, name)
        if version is not None:
            raise SourceError(f"{name}: there is no {named[0]} table in that folder")
    folder, marks = pattern, f"{{{','.join(MARKS.values())}}}"
    while folder and folder[-1] not in ":/":
        try:
            marked = _some(spark, f"{folder}/{marks}")
        except Exception:  # a folder that lies higher may be closed to us
            marked = False
        if marked:
            raise SourceError(f"{name} {SEVERAL_VERSIONS}")
        folder = folder.rpartition("/")[0]
    return FileList(spark, (files,))


def _some(spark: Any, pattern: str) -> bool:
    """Whether there are files of a pattern."""
    from pyspark.errors import AnalysisException

    try:
        return bool(FileList(spark, (pattern,)).listed())
    except AnalysisException as fault:
        if fault.getCondition() != "PATH_NOT_FOUND":
            raise
    return False


def _delta_files(spark: Any, folder: str, version: int | None, name: str) -> FileList:
    """The files of one version of a Delta table."""
    from pyspark.sql.types import StructField, StructType

    away = AWAY.format(name=name)
    home, log = attempt(partial(_listed_in, spark, folder, LOG), away)
    checkpoint, commits = to_read(log, version, name)
    told = snapshot(attempt(lambda: _actions(spark, f"{home}/{LOG}", checkpoint, commits), away), name)
    fields = attempt(lambda: StructType.fromJson(told.schema), away)
    schema = StructType([StructField(field.name, field.dataType) for field in fields])
    files = FileList(spark, _paths(home, told.sizes), schema, {"basePath": home})
    _check_sizes(files, home, told.sizes, f"{name}: {DELTA_GONE}")
    return files


def _iceberg_files(spark: Any, folder: str, number: int | None, name: str) -> FileList:
    """The files of one snapshot of an Iceberg table."""
    from pyspark.sql.types import StructType

    away, gone = AWAY.format(name=name), f"{name}: {ICEBERG_GONE}"
    if tuple(map(int, attempt(lambda: spark.version, away).split(".")[:2])) < NUMBERS_SINCE:
        raise SourceError(f"{name}: Iceberg tables are read with Spark {'.'.join(map(str, NUMBERS_SINCE))} or newer")
    if find_spec("fastavro") is None:
        raise SourceError(f"{name}: the metadata of Iceberg tables need a reader: pip install fastavro")
    home, metadata = attempt(partial(_listed_in, spark, folder, METADATA), away)

    def contents(sizes: Mapping[str, int | None]) -> list[bytes]:
        """What is in files of the table, with the sizes that they are said to have."""
        within = {inside(path, told.location, name): size for path, size in sizes.items()}
        return attempt(lambda: _contents(spark, home, within), gone)

    newest = dict.fromkeys(f"{METADATA}/{each}" for each in newest_metadata(metadata))
    told = snapshot_of(attempt(lambda: _contents(spark, home, newest), away), number, name)
    listed = contents({told.manifests: None}) if told.manifests is not None else []
    manifests = {path: size for content in listed for path, size in manifests_of(content, name).items()}
    found = files_of(contents(manifests), name)
    sizes = {inside(path, told.location, name): size for path, size in found.items()}
    for setting, value in BY_NUMBERS.items():
        attempt(partial(spark.conf.set, setting, value), away)
    schema = attempt(lambda: StructType.fromJson(told.schema), away)
    files = FileList(spark, _paths(home, sizes), schema, {"recursiveFileLookup": "true"})
    _check_sizes(files, home, sizes, gone)
    return files


def _listed_in(spark: Any, folder: str, part: str) -> tuple[str, list[str]]:
    """A folder, as Spark names it, and the names of the files that lie in one of its parts."""
    paths = [path for path, *_ in FileList(spark, (f"{folder}/{part}",)).listed()]
    return paths[0].rpartition(f"/{part}/")[0], [path.rpartition("/")[2] for path in paths]


def _paths(home: str, inside: Iterable[str]) -> tuple[str, ...]:
    """Paths that mean themselves: Spark would take some letters for a pattern."""
    return tuple(GLOB.sub(r"\\\g<0>", f"{home}/{path}") for path in inside)


def _contents(spark: Any, home: str, sizes: Mapping[str, int | None]) -> list[bytes]:
    """What is in some files; ValueError where one has another size."""
    if not sizes:
        return []
    read = spark.read.format("binaryFile").load(list(_paths(home, sizes))).select("path", "content").collect()
    found = {path: bytes(content) for path, content in read}
    contents = [found[f"{home}/{path}"] for path in sizes]
    if any(size not in (None, len(content)) for size, content in zip(sizes.values(), contents, strict=True)):
        raise ValueError
    return contents


def _check_sizes(files: FileList, home: str, sizes: Mapping[str, int], gone: str) -> None:
    there = {path: size for path, size, _ in attempt(files.listed, gone)}
    if there != {f"{home}/{path}": size for path, size in sizes.items()}:
        raise SourceError(gone)


def _actions(spark: Any, log: str, checkpoint: Sequence[str], commits: Sequence[str]) -> list[str]:
    """Lines of JSON: the actions of a checkpoint, then those of the commits."""
    lines: list[str] = []
    if checkpoint:
        read = spark.read.schema(ACTIONS).parquet(*(f"{log}/{part}" for part in checkpoint))
        lines += [line for (line,) in read.selectExpr("to_json(struct(protocol, metaData, add))").collect()]
    if commits:
        read = spark.read.schema(ACTIONS).json([f"{log}/{commit}" for commit in commits], mode="FAILFAST")
        told = read.selectExpr("_metadata.file_name", "to_json(struct(protocol, metaData, add, remove))")
        lines += [line for _, line in sorted(told.collect(), key=lambda told: told[0])]
    return lines
