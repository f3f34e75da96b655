"""Which files a version of a Delta table consists of, from its log alone; tests/integration reads real tables."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from bursar.core.source.servers.delta_log import Snapshot, snapshot, to_read
from bursar.errors import SourceError
from harness.cases import examples

FIELDS = {"id": "string", "day": "date", "seen": "timestamp"}
SCHEMA = {"type": "struct", "fields": [{"name": name, "type": kind} for name, kind in FIELDS.items()]}
PROTOCOL: dict[str, Any] = {"protocol": {"minReaderVersion": 1}}


def table(*partitions: str, **configuration: str) -> dict[str, Any]:
    facts = {"schemaString": json.dumps(SCHEMA), "partitionColumns": partitions, "configuration": configuration}
    return {"metaData": facts}


def add(path: str, size: int = 1, **more: Any) -> dict[str, Any]:
    return {"add": {"path": path, "size": size, **more}}


def remove(path: str, **more: Any) -> dict[str, Any]:
    return {"remove": {"path": path, **more}}


def read(*actions: dict[str, Any]) -> Snapshot:
    return snapshot(map(json.dumps, actions), "the files t")


def log_name(version: int, kind: str = "json") -> str:
    return f"{version:020}.{kind}"


def test_every_version_of_a_random_log_is_what_its_writer_left() -> None:
    """Checkpoints anywhere, some of them in parts, some of them not whole, and files that a log may have besides."""
    for seed in range(examples(300)):
        draw = random.Random(seed)
        log: dict[str, list[dict[str, Any]]] = {
            log_name(0, "crc"): [],
            "_last_checkpoint": [],
            f"{log_name(2)}.compacted": [],
        }
        files: dict[str, int] = {}
        history, checkpoints = [], []
        for version in range(draw.randrange(1, 12)):
            actions: list[dict[str, Any]] = [PROTOCOL, table()] if version == 0 else []
            gone = draw.sample(sorted(files), draw.randrange(len(files) + 1))
            actions += [remove(path) for path in gone]
            for path in gone:
                del files[path]
            for number in range(draw.randrange(3)):
                files[f"part-{version}-{number}"] = draw.randrange(1000)
                actions.append(add(f"part-{version}-{number}", files[f"part-{version}-{number}"]))
            draw.shuffle(actions)
            log[log_name(version)] = actions
            history.append(dict(files))
            if draw.random() < 0.3:
                left = [PROTOCOL, table(), *(add(path, size) for path, size in files.items())]
                parts = draw.choice([1, 2])
                for part in range(parts if draw.random() < 0.8 else parts - 1):
                    of = "checkpoint" if parts == 1 else f"checkpoint.{part + 1:010}.{parts:010}"
                    log[log_name(version, f"{of}.parquet")] = left[part::parts]
                    if part == parts - 1:
                        checkpoints.append(version)
        if checkpoints and draw.random() < 0.5:  # what lies before the last checkpoint is cleaned up
            first = checkpoints[-1]
            log = {
                name: actions for name, actions in log.items() if not name[:20].isdecimal() or int(name[:20]) >= first
            }
        for version in [*range(len(history)), None]:
            told = [action for some in to_told(log, version) for action in some]
            expected = history[-1 if version is None else version]
            if told:
                assert read(*told).sizes == expected, (seed, version)
            else:
                assert checkpoints[-1] > (len(history) if version is None else version), (seed, version)


def to_told(log: dict[str, list[dict[str, Any]]], version: int | None) -> list[list[dict[str, Any]]]:
    """The actions of the files that are asked for; none where the version is refused."""
    try:
        checkpoint, commits = to_read(random.Random(version).sample(sorted(log), len(log)), version, "the files t")
    except SourceError:
        return []
    return [log[name] for name in (*checkpoint, *commits)]


@pytest.mark.parametrize(
    ("names", "version"),
    [
        ([], None),
        ([log_name(0), log_name(1)], 2),
        ([log_name(0), log_name(2)], 2),
        ([log_name(0), log_name(2)], None),
        ([log_name(3), log_name(4)], None),
        ([log_name(3), log_name(3, "checkpoint.0000000001.0000000002.parquet")], 3),
        ([log_name(3), log_name(3, "checkpoint.parquet")], 2),
    ],
)
def test_a_version_whose_log_is_not_there_is_refused(names: list[str], version: int | None) -> None:
    with pytest.raises(SourceError, match="the files t: the log of the Delta table does not have this version"):
        to_read(names, version, "the files t")


def test_names_of_files_are_percent_encoded_and_folders_twice() -> None:
    named = {"id": "a b/%c", "day": "2024-01-02"}
    told = read(
        PROTOCOL,
        table("id", "day"),
        add("id=a%2520b%252F%2525c/day=2024-01-02/part%20 0.parquet", 7, partitionValues=named),
        add("id=%C3%B6/day=2024-01-02/p", 9, partitionValues={**named, "id": "ö"}),
        add("id=__HIVE_DEFAULT_PARTITION__/day=__HIVE_DEFAULT_PARTITION__/p", 8, partitionValues={"id": ""}),
    )
    assert told.sizes == {
        "id=a%20b%2F%25c/day=2024-01-02/part  0.parquet": 7,
        "id=ö/day=2024-01-02/p": 9,
        "id=__HIVE_DEFAULT_PARTITION__/day=__HIVE_DEFAULT_PARTITION__/p": 8,
    }
    assert told.schema == SCHEMA


DELETED = {"storageType": "u", "pathOrInlineDv": "ab", "offset": 1}


@pytest.mark.parametrize(
    ("actions", "text"),
    [
        ([{"protocol": {"minReaderVersion": 4}}, table()], "what is not read here: version 4"),
        ([{"protocol": {"minReaderVersion": 3, "readerFeatures": ["typeWidening", "deletionVectors"]}}, table()],
         "what is not read here: typeWidening$"),
        ([{"protocol": {"minReaderVersion": 2}}, table(**{"delta.columnMapping.mode": "name"})], "maps names"),
        ([PROTOCOL, table(), add("p"), remove("p"), add("p", deletionVector=DELETED)], "has deletion vectors"),
        ([PROTOCOL, table(), add("p"), add("p", deletionVector=DELETED), remove("p")], "has deletion vectors"),
        ([PROTOCOL, table("id"), add("p", partitionValues={"id": "a"})], "do not lie in folders"),
        ([PROTOCOL, table("id"), add("id=b/p", partitionValues={"id": "a"})], "do not lie in folders"),
        ([PROTOCOL, table("id"), add("id=a/p", partitionValues={})], "do not lie in folders"),
        ([PROTOCOL, table("id"), add("id=%25C3%25B6/p", partitionValues={"id": "ö"})], "do not lie in folders"),
        ([PROTOCOL, table("id"), add("id=/p", partitionValues={"id": ""})], "do not lie in folders"),
        ([PROTOCOL, table(), add("../p")], "do not lie in folders"),
        ([PROTOCOL, table(), add("file:///elsewhere/p")], "do not lie in folders"),
        ([PROTOCOL, table("seen")], "partitioned by a time, whose zone"),
        ([PROTOCOL, add("p")], "the log of the Delta table cannot be read"),
        ([table(), add("p")], "what is not read here: version 0"),
        ([PROTOCOL, table(), {"add": {"path": "p"}}], "the log of the Delta table cannot be read"),
        ([PROTOCOL, table(), {"add": 7}], "the log of the Delta table cannot be read"),
    ],
)  # fmt: skip
def test_what_is_more_than_plain_files_is_refused(actions: list[dict[str, Any]], text: str) -> None:
    with pytest.raises(SourceError, match=f"the files t: .*{text}"):
        read(*actions)


def test_a_table_that_could_have_deletion_vectors_and_has_none_is_read() -> None:
    """Where rows of a file were deleted and the file was rewritten since, nothing is left of them."""
    protocol = {"protocol": {"minReaderVersion": 3, "readerFeatures": ["deletionVectors", "columnMapping"]}}
    actions = [add("p", 5), add("p", 5, deletionVector=DELETED), remove("p"), remove("p", deletionVector=DELETED)]
    assert read(protocol, table(**{"delta.columnMapping.mode": "none"}), *actions, add("q", 4)).sizes == {"q": 4}


def test_a_log_that_is_no_json_is_refused() -> None:
    with pytest.raises(SourceError, match="the log of the Delta table cannot be read"):
        snapshot(["{"], "the files t")
