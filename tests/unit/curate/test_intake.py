"""The door for new rows: files go in as a whole, once, and never behind a seal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

import duckdb
import pytest

from bursar.core.domain import Attribute, Bins, Categories, Dates, Domain, IntegerRange, Period, Stray, Unit
from bursar.core.source import raw
from bursar.core.source.duckdb import DuckDBSource
from bursar.curate import intake
from bursar.curate.intake import ASIDE, FILES, Store, Taken, digest_of
from bursar.errors import SourceError

WEEK = IntegerRange(name="week", lower=0, upper=3, outside=Stray.OTHER)
KIND = Categories(name="kind", values=("a", "b"))
KEY = bytes(32)


def store(tmp_path: Path, partition: Attribute = WEEK, **changes: object) -> Store:
    domain = Domain((partition, KIND), partition=partition.name)
    facts = {"path": tmp_path / "data.duckdb", "table": "people", "domain": domain, "unit": Unit(), "max_rows": 100}
    made = Store(**{**facts, **changes})
    made.create()
    return made


def csv(folder: Path, rows: Sequence[tuple[object, ...]], name: str = "new.csv", header: str = "week,kind") -> Path:
    path = folder / name
    path.write_text("\n".join([header, *(",".join("" if v is None else str(v) for v in row) for row in rows), ""]))
    return path


def rows_of(place: Store, what: str = "people") -> list[tuple[object, ...]]:
    with duckdb.connect(str(place.path), read_only=True) as connection:
        return connection.execute(f"FROM {what} ORDER BY ALL").fetchall()


def counted(place: Store) -> list[int]:
    source = DuckDBSource(place.path, place.domain, place.unit, KEY, place.max_rows, table=place.table)
    counts = source.table((place.domain.names[0],)).tolist()
    source.close()
    return counts


def test_rows_go_where_they_belong(tmp_path: Path) -> None:
    made = store(tmp_path)
    file = csv(tmp_path, [(0, "a"), (1, "b"), (2, "a"), (3, "z"), (4, "a"), (None, "b"), (1, None)])
    assert made.take_in(file, sealed=2) == Taken(file="new.csv", added=2, late=3, outside=2)
    assert rows_of(made) == [(2, "a"), (3, "z")]
    assert sorted(rows_of(made, ASIDE), key=str) == sorted(
        [
            ("late", "new.csv", 0, "a"),
            ("late", "new.csv", 1, "b"),
            ("late", "new.csv", 1, None),
            ("outside", "new.csv", 4, "a"),
            ("outside", "new.csv", None, "b"),
        ],
        key=str,
    )
    ((digest, name, _, *numbers),) = rows_of(made, FILES)
    assert (digest, name, numbers) == (digest_of(file), "new.csv", [2, 3, 2])
    assert counted(made) == [0, 0, 1, 1, 0, 0]


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    ("column", "values"),
    [
        (WEEK, ["0", "3", "3", "7", None, "2"]),
        (IntegerRange(name="week", lower=0, upper=3, null=1), ["0", "-5", "9", None, "2"]),
        (Categories(name="lot", values=("x", "y", "z")), ["x", "z", "w", None, "y"]),
        (Categories(name="lot", values=(3, 1, 2)), ["3", "2", "1", "9", None]),
        (Categories(name="lot", values=(False, True)), ["true", "false", None]),
        (Bins(name="size", edges=(0.0, 1.0, 2.5)), ["0.5", "1.0", "2.5", "9", "-1", None]),
        (
            Dates(name="day", first=date(2024, 1, 1), last=date(2024, 1, 31), by=Period.WEEK),
            ["2024-01-01", "2024-01-08 23:59:59", "2024-03-01", "2023-01-01", None],
        ),
    ],
)
@pytest.mark.parametrize("sealed", [0, 1, 2])
def test_the_rule_is_the_one_by_which_rows_are_counted(
    tmp_path: Path, column: Attribute, values: list[str | None], sealed: int
) -> None:
    """What is added is counted in partitions that are not sealed, and what is set aside would be counted elsewhere."""
    rows = [(value, "a") for value in values]
    everything = store(tmp_path, column, path=tmp_path / "everything.duckdb")
    everything.take_in(csv(tmp_path, rows, header=f"{column.name},kind"), sealed=0)
    made = store(tmp_path, column)
    taken = made.take_in(csv(tmp_path, rows, header=f"{column.name},kind"), sealed=sealed)
    whole, kept = counted(everything), counted(made)
    assert kept == [0] * sealed + whole[sealed:]
    assert (taken.added, taken.late) == (sum(kept), sum(whole[:sealed]))
    assert taken.added + taken.late + taken.outside == len(values)


def test_parquet_and_zipped_files(tmp_path: Path) -> None:
    made = store(tmp_path)
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT 2 AS week, 'a' AS kind, 5 AS more")
        connection.execute(f"COPY t TO '{tmp_path / 'new.parquet'}'")
        connection.execute(f"COPY t TO '{tmp_path / 'new.csv.gz'}' (HEADER)")
    assert made.take_in(tmp_path / "new.parquet", sealed=0).added == 1
    assert made.take_in(tmp_path / "new.csv.gz", sealed=0).added == 1
    assert rows_of(made) == [(2, "a"), (2, "a")]


def test_columns_that_the_table_has_are_taken_along(tmp_path: Path) -> None:
    made = store(tmp_path, unit=Unit(column="person"))
    with duckdb.connect(str(made.path)) as connection:
        connection.execute("ALTER TABLE people ADD COLUMN note VARCHAR")
    header = "note,kind,person,more,week"
    made.take_in(csv(tmp_path, [("hello", "a", "ann", "x", 1)], header=header), sealed=0)
    made.take_in(csv(tmp_path, [("a", "bob", 2)], header="kind,person,week"), sealed=0)
    assert rows_of(made) == [(1, "a", "ann", "hello"), (2, "a", "bob", None)]
    with pytest.raises(SourceError, match="no column person"):
        made.take_in(csv(tmp_path, [(1, "a")]), sealed=0)


def test_a_file_is_known_by_its_content(tmp_path: Path) -> None:
    made = store(tmp_path)
    first = csv(tmp_path, [(1, "a")])
    assert not made.knows(digest_of(first))
    made.take_in(first, sealed=0)
    assert made.knows(digest_of(first))
    for name in ("new.csv", "other.csv"):
        with pytest.raises(SourceError, match="taken in before"):
            made.take_in(csv(tmp_path, [(1, "a")], name), sealed=0)
    changed = csv(tmp_path, [(1, "b")])
    assert not made.knows(digest_of(changed))
    assert made.take_in(changed, sealed=0).added == 1
    assert len(rows_of(made)) == 2


REFUSED = [
    ([(1, "a"), ("many", "b")], "week,kind", "do not fit the table people"),
    ([(1, "a"), (1,)], "week,kind", "cannot be read"),
    ([("a",)], "kind", "no column week"),
    ([(1, "a")] * 99, "week,kind", "more rows than max_rows = 100"),
]


@pytest.mark.heavy
def test_what_is_refused_changes_nothing(tmp_path: Path) -> None:
    made = store(tmp_path)
    made.take_in(csv(tmp_path, [(1, "a"), (2, "a"), (9, "a")]), sealed=2)
    made.take_in(csv(tmp_path, [(2, "b")]), sealed=2)
    before = [rows_of(made, what) for what in ("people", ASIDE, FILES)]
    for rows, header, why in REFUSED:
        with pytest.raises(SourceError, match=why):
            made.take_in(csv(tmp_path, rows, header=header), sealed=0)
        assert [rows_of(made, what) for what in ("people", ASIDE, FILES)] == before


def test_files_of_other_kinds(tmp_path: Path) -> None:
    made = store(tmp_path)
    for name, why in (("new.txt", "must end in"), ("data.duckdb", "must end in"), ("none.csv", "cannot be read")):
        with pytest.raises(SourceError, match=why):
            made.take_in(tmp_path / name, sealed=0)


def test_a_file_that_changes_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = store(tmp_path)
    digests = iter(["one", "another"])
    monkeypatch.setattr(intake, "digest_of", lambda file: next(digests))
    with pytest.raises(SourceError, match="was changed while it was read"):
        made.take_in(csv(tmp_path, [(1, "a")]), sealed=0)
    assert rows_of(made) == []


def test_a_store_is_made_once(tmp_path: Path) -> None:
    made = store(tmp_path)
    made.take_in(csv(tmp_path, [(1, "a")]), sealed=0)
    made.create()
    assert rows_of(made) == [(1, "a")]
    with pytest.raises(SourceError, match="cannot be made"):
        replace(made, path=tmp_path / "nowhere" / "data.duckdb").create()


def test_tables_that_do_not_fit(tmp_path: Path) -> None:
    made = store(tmp_path)
    with pytest.raises(SourceError, match="no table others with a column week"):
        replace(made, table="others").take_in(csv(tmp_path, [(1, "a")]), sealed=0)
    broken = tmp_path / "broken.duckdb"
    broken.write_text("not a database")
    with pytest.raises(SourceError, match="cannot be used"):
        replace(made, path=broken).take_in(csv(tmp_path, [(1, "a")]), sealed=0)


def test_a_locked_file_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = iter([duckdb.IOException("Could not set lock on file"), duckdb.IOException("Conflicting lock"), None])

    def work() -> str:
        fault = next(tries)
        if fault is not None:
            raise fault
        return "done"

    assert raw.patiently(work) == "done"

    def never() -> str:
        raise duckdb.IOException("Could not set lock on file")

    monkeypatch.setattr(raw, "PATIENCE_SECONDS", 0.0)
    with pytest.raises(duckdb.IOException, match="lock"):
        raw.patiently(never)

    def damaged() -> str:
        raise duckdb.IOException("not a DuckDB file")

    with pytest.raises(duckdb.IOException, match="not a DuckDB file"):
        raw.patiently(damaged)
