"""Data that grow, end to end: files come in, partitions are sealed, questions are asked in between."""

from __future__ import annotations

import threading
import time
from datetime import date
from pathlib import Path

import pytest

import bursar
from bursar.config import load
from bursar.core.accounting import Sealed
from bursar.curate.ingest import Watcher, curating
from bursar.curate.intake import Taken
from bursar.errors import ConfigError, QueryError, SourceError

pytestmark = pytest.mark.thinned(2)

CONFIG = """\
dataset = "rides"
[partition]
column = "day"
seal = "command"
[source]
path = "rides.duckdb"
table = "rides"
max_rows = 1000
[privacy]
unit = "row"
[budget]
epsilon = 50.0
[columns.day]
first = 2024-01-01
last = 2024-01-06
by = "day"
outside = "other"
[columns.kind]
values = ["a", "b"]
"""


def config(folder: Path, *changes: tuple[str, str]) -> Path:
    text = CONFIG
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (folder / "bursar.toml").write_text(text)
    return folder / "bursar.toml"


def csv(folder: Path, name: str, *days: int) -> Path:
    path = folder / name
    path.write_text("day,kind\n" + "".join(f"2024-01-{day:02},a\n" for day in days))
    return path


def count(db: bursar.Bursar, where: str = "") -> float:
    answer = db.query(f"SELECT COUNT(*) FROM rides {where}", within=3, confidence=0.99999)
    return float(answer.values[0][0])


def test_a_stream(tmp_path: Path) -> None:
    with bursar.create(config(tmp_path)) as db:
        with pytest.raises(QueryError, match="no partition of day is sealed yet"):
            count(db)
        assert db.owner.ingest(csv(tmp_path, "1.csv", *[1] * 30, 2, 2)) == Taken(
            file="1.csv", added=32, late=0, outside=0
        )
        assert db.owner.seal() == date(2024, 1, 1)
        assert abs(count(db) - 30) <= 3
        taken = db.owner.ingest(csv(tmp_path, "2.csv", 1, *[2] * 48, 3, 9))
        assert (taken.added, taken.late, taken.outside) == (49, 1, 1)
        assert abs(count(db) - 30) <= 3
        assert db.owner.seal("2024-01-02") == date(2024, 1, 2)
        assert abs(count(db, "WHERE day = DATE '2024-01-02'") - 50) <= 3
        status = db.budget()
        assert status.sealed == "2 of 6 partitions of day, the last one 2024-01-02"
        assert [partition.partition for partition in status.partitions] == ["2024-01-01", "2024-01-02"]
        assert max(partition.spent for partition in status.partitions) == status.spent
    with bursar.open(tmp_path / "bursar.toml", analyst="ana") as db:
        assert (db.budget().sealed, db.budget().partitions) == (status.sealed, ())
        with pytest.raises(QueryError, match="not sealed yet; the last sealed one is 2024-01-02"):
            count(db, "WHERE day = DATE '2024-01-03'")


def test_other_processes_see_what_is_sealed(tmp_path: Path) -> None:
    path = config(tmp_path)
    with bursar.create(path) as owner, bursar.open(path, analyst="ana") as ana:
        owner.owner.ingest(csv(tmp_path, "1.csv", *[1] * 30, *[2] * 60))
        owner.owner.seal()
        assert abs(count(ana) - 30) <= 3
        owner.owner.ingest(csv(tmp_path, "2.csv", *[2] * 20))
        owner.owner.seal()
        assert abs(count(ana) - 110) <= 3


def test_everything_can_be_sealed_and_no_more(tmp_path: Path) -> None:
    with bursar.create(config(tmp_path)) as db:
        assert db.owner.seal("2024-01-06") == date(2024, 1, 6)
        with pytest.raises(QueryError, match="every partition of day is sealed"):
            db.owner.seal()
        with pytest.raises(QueryError, match="is no partition of day"):
            db.owner.seal("2024-01-07")
        assert db.kernel.sealed() == 6  # and never other or NULL
        assert db.owner.ingest(csv(tmp_path, "1.csv", 1, 6, 7)) == Taken(file="1.csv", added=0, late=2, outside=1)


def test_a_calendar_seals(tmp_path: Path) -> None:
    path = config(tmp_path, ('seal = "command"', 'seal = "calendar"\ngrace_days = 1'))
    with bursar.create(path) as db:
        assert db.kernel.sealed() == 6  # they are long over
        assert len([record for record in db.ledger.records() if isinstance(record.event, Sealed)]) == 1


def test_a_calendar_seals_day_by_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = config(
        tmp_path, ('seal = "command"', 'seal = "calendar"'), ("2024-01-01", "2990-01-01"), ("2024-01-06", "2990-01-06")
    )
    with bursar.create(path) as db:
        assert db.owner.seal_due() == 0
        assert db.owner.seal_due(date(2990, 1, 2)) == 1
        assert db.owner.seal_due(date(2990, 1, 1)) == 1  # nothing is unsealed
        assert db.owner.seal() == date(2990, 1, 2)  # the owner may be faster
        (tmp_path / "rides.duckdb").rename(tmp_path / "elsewhere.duckdb")
        assert db.owner.seal_due(date(2990, 1, 5)) == 2  # for who cannot read the data, nothing is sealed
        (tmp_path / "elsewhere.duckdb").rename(tmp_path / "rides.duckdb")
        assert db.owner.seal_due(date(2990, 1, 5)) == 4


def test_complete_data_take_no_rows(tmp_path: Path) -> None:
    (tmp_path / "rides.csv").write_text("day,kind\n2024-01-01,a\n")
    with bursar.create(config(tmp_path, ('seal = "command"\n', ""), ("rides.duckdb", "rides.csv"))) as db:
        assert db.kernel.sealed() == 8
        assert abs(count(db) - 1) <= 3
        with pytest.raises(ConfigError, match="no rows can be added"):
            db.owner.ingest(csv(tmp_path, "1.csv", 1))


def test_a_file_that_somebody_else_writes_can_be_sealed_and_not_added_to(tmp_path: Path) -> None:
    (tmp_path / "rides.csv").write_text("day,kind\n" + "2024-01-01,a\n" * 30)
    with bursar.create(config(tmp_path, ("rides.duckdb", "rides.csv"))) as db:
        with pytest.raises(ConfigError, match="to a DuckDB file only"):
            db.owner.ingest(csv(tmp_path, "1.csv", 1))
        db.owner.seal()
        (tmp_path / "rides.csv").write_text("day,kind\n" + "2024-01-01,a\n" * 30 + "2024-01-02,b\n" * 40)
        db.owner.seal()
        assert abs(count(db) - 70) <= 3


def test_data_without_partitions_have_no_seals(tmp_path: Path) -> None:
    (tmp_path / "rides.csv").write_text("day,kind\n2024-01-01,a\n")
    partition = '[partition]\ncolumn = "day"\nseal = "command"\n'
    with bursar.create(config(tmp_path, (partition, ""), ("rides.duckdb", "rides.csv"))) as db:
        assert db.owner.seal_due() is None
        assert (db.budget().sealed, db.budget().partitions) == ("", ())
        with pytest.raises(ConfigError, match=r"no partitions to seal\ntry: a new config .*, by day$"):
            db.owner.seal()


def test_who_changes_the_data_keeps_others_waiting(tmp_path: Path) -> None:
    path = config(tmp_path)
    bursar.create(path).close()
    settings, order = load(path), []

    def other() -> None:
        with curating(settings):
            order.append("other")

    with curating(settings):
        thread = threading.Thread(target=other)
        thread.start()
        time.sleep(0.1)
        order.append("first")
    thread.join()
    assert order == ["first", "other"]


# -- the watcher -------------------------------------------------------------------------------------------------------


def watcher(db: bursar.Bursar, folder: Path) -> tuple[Watcher, list[Taken | SourceError]]:
    told: list[Taken | SourceError] = []
    return Watcher(db.config, folder, db.owner.ingest, told.append), told


def test_complete_files_are_taken_in_order(tmp_path: Path) -> None:
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    with bursar.create(config(tmp_path)) as db:
        watch, told = watcher(db, inbox)
        for name in ("b.csv", "a.csv", "c.csv", ".hidden.csv", "_part.csv", "notes.txt"):
            csv(inbox, name, *[1] * len(name))
        (inbox / "folder.csv").mkdir()
        watch.look()
        assert told == []  # nothing was seen to have stopped growing
        csv(inbox, "c.csv", 1, 1, 1)
        watch.look()
        assert [(one.file, one.added) for one in told] == [("a.csv", 5)]  # b.csv has the same content
        watch.look()
        watch.look()
        assert [(one.file, one.added) for one in told] == [("a.csv", 5), ("c.csv", 3)]


def test_a_file_that_is_refused_is_told_once_and_tried_again_when_it_changes(tmp_path: Path) -> None:
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    with bursar.create(config(tmp_path)) as db:
        watch, told = watcher(db, inbox)
        (inbox / "a.csv").write_text("day\n2024-01-01\n")
        csv(inbox, "b.csv", 2)
        for _ in range(3):
            watch.look()
        assert ["no column kind" in str(one) for one in told] == [True, False]
        csv(inbox, "a.csv", 1)
        watch.look()
        watch.look()
        assert told[2] == Taken(file="a.csv", added=1, late=0, outside=0)


def test_a_restarted_watcher_passes_over_what_is_in(tmp_path: Path) -> None:
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    csv(inbox, "a.csv", 1)
    with bursar.create(config(tmp_path)) as db:
        for expected in (1, 0):
            watch, told = watcher(db, inbox)
            watch.look()
            watch.look()
            assert len(told) == expected


def test_it_goes_on_until_it_is_stopped(tmp_path: Path) -> None:
    with bursar.create(config(tmp_path)) as db:
        watch, _ = watcher(db, tmp_path)
        looks: list[int] = []
        watch.between = lambda: looks.append(1)

        def pause() -> None:
            if len(looks) == 3:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            watch.watch(pause)
        assert len(looks) == 3
