"""Cells that are kept in PostgreSQL: the owner's role fills the table, ours reads it and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import bursar
from bursar.cli.app import app
from bursar.config import load
from bursar.core.domain import Categories, Dates, Domain, IntegerRange, Period, Unit
from bursar.core.extensions.joins import Parent
from bursar.core.queries import Distinct, Mask, Predicate, Product, Quorum, Steps, Within
from bursar.core.source.servers.cell_table import CellTable, CellTableSource
from bursar.core.source.servers.postgresql_cells import PostgreSQLCells, PostgreSQLFiller
from bursar.core.source.servers.sql_source import SqlSource
from bursar.errors import ConfigError, QueryError, SourceError
from harness.places import KEY, QUESTION, TOWN, PostgreSQLPlace
from harness.servers import PASSWORD, shared_postgresql

PEOPLE = Domain(
    (
        Categories(name="town", values=("x", "y")),
        IntegerRange(name="age", lower=0, upper=99),
        Dates(name="day", first=date(2021, 1, 1), last=date(2021, 3, 31), by=Period.MONTH),
    )
)
GROWING = Domain(PEOPLE.attributes, partition="day")
MANY = Domain(tuple(replace(PEOPLE["age"], name=name) for name in ("age", *(f"age_{n}" for n in range(9)))))
"""So many cells that they are written as two numbers."""
MORE_AGES = ";".join(
    f"ALTER TABLE people ADD COLUMN age_{n} int; UPDATE people SET age_{n} = age % {n + 2}" for n in range(9)
)
WHOLE, ROWS = Unit(column="id", max_contributions=1), Unit()
IN_MEMORY, IN_PLACE = 256 * 2**20, 0


@pytest.fixture
def place() -> Iterator[PostgreSQLPlace]:
    made = PostgreSQLPlace(shared_postgresql())
    made.run(f"CREATE SCHEMA kept; GRANT USAGE ON SCHEMA kept TO {made.role}")
    yield made
    made.drop()


def cell_table(domain: Domain = PEOPLE, unit: Unit = WHOLE, most_bytes: int = IN_MEMORY) -> CellTable:
    return CellTable(domain, unit, KEY, 10_000, most_bytes)


def fill(place: PostgreSQLPlace, table: CellTable, first: int | None = None) -> None:
    owner = place.server.url(place.database)
    where = ("public", "people", 60, [parent.table for parent in table.parents])
    table.fill(lambda: PostgreSQLFiller(owner, *where, cells="kept", reader=place.role), first)


def opened(place: PostgreSQLPlace, table: CellTable) -> CellTableSource:
    return CellTableSource(lambda: PostgreSQLCells(place.url, "kept", "people", PASSWORD, 60), table)


def raw(place: PostgreSQLPlace, domain: Domain = PEOPLE, unit: Unit = WHOLE, max_rows: int = 10_000) -> SqlSource:
    return SqlSource(place.connect, domain, unit, KEY, max_rows)


@pytest.mark.thinned(5)
@pytest.mark.parametrize("most_bytes", [IN_MEMORY, IN_PLACE], ids=["in memory", "in place"])
@pytest.mark.parametrize("unit", [WHOLE, ROWS], ids=["people", "rows"])
@pytest.mark.parametrize("domain", [PEOPLE, GROWING, MANY], ids=["plain", "partitions", "two numbers"])
def test_counts_are_those_of_the_rows(place: PostgreSQLPlace, domain: Domain, unit: Unit, most_bytes: int) -> None:
    place.run(MORE_AGES)
    table = cell_table(domain, unit, most_bytes)
    fill(place, table)
    kept, plain = opened(place, table), raw(place, domain, unit)
    names = domain.names
    for attrs in ((), names[:1], names[:3], names[2:0:-1]):
        assert np.array_equal(kept.table(attrs), plain.table(attrs)), attrs
    condition = Quorum(1, (Within(names[0], ((0, 1),)), Within(names[1], ((3, 9), (50, 51)))))
    predicate = Predicate(names[:2], domain.sizes(names[:2]), condition)
    assert kept.count(predicate) == plain.count(predicate) > 0
    size = domain[names[0]].size
    groups = Product((Mask((names[0],), (size,), Steps.identity(size)),))
    assert np.array_equal(kept.distinct(Distinct(groups, names[1])), plain.distinct(Distinct(groups, names[1])))
    if unit is WHOLE and most_bytes:
        assert np.array_equal(kept.distinct(Distinct(groups)), plain.distinct(Distinct(groups)))
        assert kept.content() == plain.content()
    else:
        with pytest.raises(QueryError, match="people cannot be counted"):
            kept.distinct(Distinct(groups))
    with pytest.raises(QueryError, match="there is no column"):
        kept.table(("nobody",))


def test_more_cells_than_fit_are_not_counted_at_once(place: PostgreSQLPlace) -> None:
    """By the declared sizes: how many of them have rows is not looked at."""
    place.run(MORE_AGES)
    table = replace(cell_table(MANY, ROWS, IN_PLACE), max_rows=10**8)
    fill(place, table)
    kept = opened(place, table)
    predicate = Predicate(MANY.names, MANY.sizes(MANY.names), Quorum(1, (Within("age", ((0, 1),)),)))
    with pytest.raises(QueryError, match=r"age, age_0, age_1, .* have too many cells together to be counted at once"):
        kept.count(predicate)
    assert kept.table(("age",)).sum() > 0


@pytest.mark.parametrize("most_bytes", [IN_MEMORY, IN_PLACE], ids=["in memory", "in place"])
def test_every_partition_has_a_content_hash_of_its_own(place: PostgreSQLPlace, most_bytes: int) -> None:
    table = cell_table(GROWING, WHOLE, most_bytes)

    def contents() -> tuple[str, ...]:
        fill(place, table)
        return opened(place, table).content()

    before = contents()
    assert contents() == before
    assert len(set(before)) == len(before) == GROWING["day"].size
    for month in (1, 2, 3):
        place.run(f"INSERT INTO people VALUES ('new', 'x', 3, '{date(2021, month, 1)}')")
        assert [at for at, content in enumerate(contents()) if content != before[at]] == [month - 1]
        place.run("DELETE FROM people WHERE id = 'new'")
    fill(place, plain := replace(table, domain=PEOPLE))
    assert len(opened(place, plain).content()) == 1


def test_no_rows_are_fine(place: PostgreSQLPlace) -> None:
    place.run("TRUNCATE people")
    for most_bytes in (IN_MEMORY, IN_PLACE):
        table = cell_table(GROWING, ROWS, most_bytes)
        fill(place, table)
        source = opened(place, table)
        assert source.table(()).tolist() == source.table(("town", "age")).sum() == 0
        assert [len(content) for content in source.content()] == [64] * GROWING["day"].size


# --- what is read stays what it was ------------------------------------------------------------------------------

CHANGES = [
    "UPDATE kept.people SET n = n + 1 WHERE ctid = '(0,1)'",
    "UPDATE kept.people SET n = n WHERE ctid = '(0,1)'",
    "DELETE FROM kept.people WHERE ctid = '(0,1)'",
    "TRUNCATE kept.people",
    "DROP TABLE kept.people",
    """CREATE TABLE kept.other (LIKE kept.people); INSERT INTO kept.other TABLE kept.people; DROP TABLE kept.people;
       ALTER TABLE kept.other RENAME TO people; GRANT SELECT ON kept.people TO {role}""",
]


@pytest.mark.thinned(2)
@pytest.mark.parametrize("change", CHANGES)
def test_a_table_that_was_changed_is_counted_no_more(place: PostgreSQLPlace, change: str) -> None:
    table = cell_table(most_bytes=IN_PLACE)
    fill(place, table)
    source = opened(place, table)
    assert source.table(()) == 1000
    place.run(change.format(role=place.role))
    for ask in (lambda: source.table(("town",)), source.content):
        with pytest.raises(SourceError, match="the data could not be counted") as caught:
            ask()
        assert caught.value.__context__ is None


def test_lines_that_come_later_are_not_seen(place: PostgreSQLPlace) -> None:
    """And a wrong condition, which sees all lines that there are, finds them."""
    table = cell_table(most_bytes=IN_PLACE)
    fill(place, table)
    source = opened(place, table)
    before, contents = source.table(("town", "age")), source.content()
    place.run("INSERT INTO kept.people SELECT k0, 7 FROM kept.people")
    assert np.array_equal(source.table(("town", "age")), before)
    assert source.content() == contents
    with pytest.raises(SourceError, match="could not be counted"):  # whoever opens it now sees two writers
        opened(place, table).table(())
    place.run("VACUUM (FULL, FREEZE) kept.people")  # says nothing else about the lines that are left
    assert np.array_equal(source.table(("town", "age")), before)
    source._cells._lived = "true"  # type: ignore[union-attr]
    with pytest.raises(SourceError, match="could not be counted"):
        source.table(("town", "age"))


def test_in_memory_nothing_is_asked_again(place: PostgreSQLPlace) -> None:
    fill(place, cell_table())
    source = opened(place, cell_table())
    assert source.table(()) == 1000
    place.run("DROP TABLE kept.people")
    assert source.table(("town",)).sum() == 1000
    source.close()
    with pytest.raises(SourceError, match="the data could not be counted"):
        source.table(())


@pytest.mark.parametrize("most_bytes", [IN_MEMORY, IN_PLACE], ids=["in memory", "in place"])
def test_cells_of_joined_tables_are_kept_for_a_role_that_may_read_neither(
    place: PostgreSQLPlace, most_bytes: int
) -> None:
    place.run("CREATE TABLE sexes AS SELECT id, CASE WHEN age < 60 THEN 'F' ELSE 'M' END AS sex FROM people")
    place.run(f"GRANT SELECT ON sexes TO {place.role}")
    domain = Domain((*TOWN.attributes, Categories(name="sex", values=("F", "M"))))
    by_town = Parent(table="sexes", keys=(), columns=("sex",))
    table = replace(cell_table(domain, WHOLE, most_bytes), parents=(by_town,))
    plain = place.open(domain, unit=WHOLE, parents=(by_town,))
    fill(place, table)
    place.run(f"REVOKE SELECT ON sexes, people FROM {place.role}")
    kept = opened(place, table)
    assert np.array_equal(kept.table(("town", "sex")), plain.table(("town", "sex")))
    assert plain.table(("sex",)).min(where=[True, True, False, False], initial=9999) > 100
    for other in (
        cell_table(domain, WHOLE, most_bytes),
        replace(table, parents=(replace(by_town, owner=False, keys=(("id", "id"),)),)),
    ):
        with pytest.raises(SourceError, match="has no cells of these columns and people"):
            opened(place, other).table(())


# --- which table it is -------------------------------------------------------------------------------------------


@pytest.mark.thinned(2)
@pytest.mark.parametrize(
    "other",
    [
        replace(cell_table(), key=b"another key....................."),
        cell_table(Domain(PEOPLE.attributes[::-1])),
        cell_table(unit=replace(WHOLE, max_contributions=2)),
        cell_table(unit=ROWS),
        cell_table(most_bytes=IN_PLACE),
        replace(cell_table(), max_rows=9_999),
    ],
    ids=["key", "columns", "bound", "unit", "size", "max_rows"],
)
def test_cells_of_something_else_are_refused(place: PostgreSQLPlace, other: CellTable) -> None:
    fill(place, other)
    assert opened(place, other).table(()) > 0
    with pytest.raises(SourceError, match="has no cells of these columns and people"):
        opened(place, cell_table()).table(())
    for note in (
        "NULL",
        "'bursar cells'",
        "'bursar cells; partitions: 5; '",
        f"'bursar cells; partitions: {'5' * 9999}; '",
    ):
        place.run(f"COMMENT ON TABLE kept.people IS {note}")
        with pytest.raises(SourceError, match="has no cells of these columns and people"):
            opened(place, other).table(())


def test_a_table_that_somebody_else_made_is_not_replaced(place: PostgreSQLPlace) -> None:
    place.run("CREATE TABLE kept.people AS SELECT 1 AS precious")
    with pytest.raises(SourceError, match=r"kept\.people is a table of somebody else's"):
        fill(place, cell_table())
    assert place.run("TABLE kept.people") == [(1,)]


def test_readers_find_the_old_table_until_the_new_one_is_filled(
    place: PostgreSQLPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(place, cell_table())
    place.run("INSERT INTO people VALUES ('new', 'x', 3, now())")
    original, seen = PostgreSQLFiller._run, []

    def run(self: PostgreSQLFiller, sql: str) -> None:
        if not sql.startswith(("DROP", "ALTER", "COMMIT")):
            seen.append(int(opened(place, cell_table()).table(())))
        original(self, sql)
        if sql.startswith("DROP") and len(seen) > 3:
            raise OSError

    monkeypatch.setattr(PostgreSQLFiller, "_run", run)
    fill(place, cell_table())
    assert seen == [1000] * 3
    assert opened(place, cell_table()).table(()) == 1001
    with pytest.raises(SourceError, match=r"cells of the table public\.people could not be kept"):  # in the middle
        fill(place, cell_table())
    assert opened(place, cell_table()).table(()) == 1001


def test_rows_beyond_max_rows_are_refused_and_nothing_is_kept(place: PostgreSQLPlace) -> None:
    with pytest.raises(SourceError, match="more rows than max_rows = 1999"):
        fill(place, replace(cell_table(), max_rows=1999))
    assert place.run("SELECT count(*) FROM pg_tables WHERE schemaname = 'kept'") == [(0,)]


# --- from the config to an answer --------------------------------------------------------------------------------


@pytest.fixture
def owner(place: PostgreSQLPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A role that reads the rows and may create tables in one schema; ours may read only what is there."""
    place.run(
        f"""CREATE ROLE owner_{place.role} LOGIN PASSWORD '{PASSWORD}'; REVOKE SELECT ON people FROM {place.role};
        GRANT SELECT ON people TO owner_{place.role}; GRANT USAGE, CREATE ON SCHEMA kept TO owner_{place.role}"""
    )
    url = place.server.url(place.database, f"owner_{place.role}")
    monkeypatch.setenv("BURSAR_OWNER_URL", f"{url}{'&' if '?' in url else '?'}password={PASSWORD}")
    monkeypatch.setenv("BURSAR_SOURCE_PASSWORD", PASSWORD)


@pytest.mark.usefixtures("owner")
def test_the_owner_fills_and_everybody_else_reads(
    place: PostgreSQLPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = place.config(tmp_path, 'cells = "kept"\n')
    bursar.create(path).close()
    monkeypatch.delenv("BURSAR_OWNER_URL")
    place.run("INSERT INTO people SELECT 'new', 'x', 3, now() FROM generate_series(1, 9)")  # nobody has said so yet
    with bursar.open(path, analyst="ana") as db:
        assert db.query(QUESTION, within=60).charge > 0
    monkeypatch.undo()
    monkeypatch.setenv("BURSAR_SOURCE_PASSWORD", PASSWORD)
    with bursar.open(path) as db:
        assert db.owner.declare_version() == 2  # of the cells as they are: nobody named the owner's role
        assert db.query("SELECT COUNT(*) FROM people", within=60).charge > 0


@pytest.mark.usefixtures("owner")
def test_a_new_version_fills_the_table_anew(place: PostgreSQLPlace, tmp_path: Path) -> None:
    path = place.config(tmp_path, 'cells = "kept"\n')
    with bursar.create(path) as db:
        before = place.run("SELECT count(*) FROM kept.people")
        place.run("INSERT INTO people VALUES ('new', 'x', 3, now())")
        assert db.owner.declare_version() == 2
        assert place.run("SELECT count(*) FROM kept.people") == [(before[0][0] + 1,)]
        assert db.query(QUESTION, within=60).charge > 0
    place.run("DELETE FROM kept.people WHERE k0 = (SELECT min(k0) FROM kept.people)")
    with bursar.open(path) as db, pytest.raises(SourceError, match="the data are not the ones that were declared"):
        db.query("SELECT age, COUNT(*) FROM people GROUP BY age", within=100)


@pytest.mark.usefixtures("owner")
def test_filling_declares_nothing(place: PostgreSQLPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger that was begun without kept cells goes on with them, and with the same version."""
    place.run(f"GRANT SELECT ON people TO {place.role}")
    path = place.config(tmp_path)
    with bursar.create(path) as db:
        paid = db.query(QUESTION, within=60)
        with pytest.raises(ConfigError, match="no cells are kept in a database"):
            db.owner.fill_cells()
    place.run(f"REVOKE SELECT ON people FROM {place.role}")
    path = place.config(tmp_path, 'cells = "kept"\n')
    by_age = "SELECT age, COUNT(*) FROM people GROUP BY age"
    with bursar.open(path) as db:
        with pytest.raises(SourceError, match=r"the table kept\.people is not there"):
            db.query(by_age, within=100)
        assert db.owner.fill_cells() == ["people"]
        assert db.query(by_age, within=100).charge > 0
        assert db.query(QUESTION, within=60).values == paid.values
        place.run("DROP TABLE kept.people")
        assert CliRunner().invoke(app, ["fill", "--data", str(path)]).stdout == "the cells of people are kept\n"
        place.run("INSERT INTO people VALUES ('new', 'x', 3, now())")
        with pytest.raises(SourceError, match="the data are not the ones that were declared"):
            db.owner.fill_cells()
        monkeypatch.delenv("BURSAR_OWNER_URL")
        with pytest.raises(SourceError, match="BURSAR_OWNER_URL names no role"):
            db.owner.fill_cells()


def test_an_owner_who_may_not_leaves_no_ledger_behind(
    place: PostgreSQLPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = place.config(tmp_path, 'cells = "kept"\n')
    monkeypatch.setenv("BURSAR_SOURCE_PASSWORD", PASSWORD)
    with pytest.raises(SourceError, match=r"the table kept\.people is not there"):  # nobody has filled it
        bursar.create(path)
    reader = f"{place.url}{'&' if '?' in place.url else '?'}password={PASSWORD}"
    monkeypatch.setenv("BURSAR_OWNER_URL", reader)
    with pytest.raises(SourceError, match=r"cells of the table public\.people could not be kept"):
        bursar.create(path)
    with pytest.raises(bursar.LedgerError):
        bursar.open(path)


MONTHS = """
dataset = "people"

[partition]
column = "day"
seal = "command"

[source]
url = "{url}"
table = "people"
cells = "kept"
max_rows = 10000

[privacy]
unit = {{ column = "id" }}
max_contributions = 2

[budget]
epsilon = 1.0

[columns.day]
first = 2021-01-01
last = 2021-12-31
by = "month"

[columns.town]
values = ["x", "y"]
"""


@pytest.mark.usefixtures("owner")
def test_a_seal_fills_as_far_as_it_goes(
    place: PostgreSQLPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "people.toml"
    path.write_text(MONTHS.format(url=place.url))
    with bursar.create(path) as db:
        assert place.run("SELECT count(*) FROM kept.people") == [(0,)]
        assert db.owner.seal() == date(2021, 1, 1)
        kept = place.run("SELECT count(*) FROM kept.people")
        assert db.query("SELECT COUNT(*) FROM people WHERE day < DATE '2021-02-01'", within=60).charge > 0
        monkeypatch.delenv("BURSAR_OWNER_URL")
        with pytest.raises(SourceError, match="has the cells of 1 partitions, and 2 are asked for"):
            db.owner.seal()  # what was filled in January is not what February holds
        assert place.run("SELECT count(*) FROM kept.people") == kept


@pytest.mark.parametrize(
    ("url", "more", "reason"),
    [
        ("mysql://reader@h/clinic", 'cells = "kept"', "source.cells belongs to PostgreSQL"),
        ("postgresql://reader@h/clinic", 'cells = "public"', "source.cells is the schema of the rows"),
        ("postgresql://h/clinic", 'cells = "kept"', "source.url must name the role"),
    ],
)
def test_configs_that_are_refused(tmp_path: Path, url: str, more: str, reason: str) -> None:
    path = tmp_path / "people.toml"
    path.write_text(MONTHS.replace('cells = "kept"', more).format(url=url))
    with pytest.raises(ConfigError, match=reason):
        load(path)
