"""A table in a real PostgreSQL, from the config to an answer; who may read it, and what happens when it goes away."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import bursar
from bursar.config import load
from bursar.core.domain import Categories, Domain, IntegerRange, Unit
from bursar.core.extensions.joins import Parent
from bursar.core.source.servers.postgresql import PostgreSQLDialect, PostgreSQLServer
from bursar.core.source.servers.sql_source import SqlSource
from bursar.errors import ConfigError, LedgerError, SourceError
from harness.patience import PATIENCE, until
from harness.places import CONFIG, KEY, QUESTION, TOWN, TRUE, PostgreSQLPlace, read
from harness.servers import PASSWORD, PostgreSQL, postgresql, shared_postgresql


@pytest.fixture
def place() -> Iterator[PostgreSQLPlace]:
    made = PostgreSQLPlace(shared_postgresql())
    yield made
    made.drop()


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BURSAR_SOURCE_PASSWORD", PASSWORD)


@pytest.mark.usefixtures("secret")
def test_questions_are_answered_from_the_table(place: PostgreSQLPlace, tmp_path: Path) -> None:
    path = place.config(tmp_path)
    with bursar.create(path) as db:
        answer = db.query(QUESTION, within=60)
        assert all(abs(row[0] - true) < 200 for row, true in zip(answer.values, TRUE, strict=False))
    with bursar.open(path, analyst="ana") as db:
        assert db.query(QUESTION, within=60).free
    place.run("INSERT INTO people VALUES ('new', 'x', 3, now())")
    with bursar.open(path, analyst="ana") as db:
        with pytest.raises(SourceError, match="the data are not the ones that were declared"):
            db.query("SELECT age, COUNT(*) FROM people GROUP BY age", within=100)
        assert db.budget().spent == answer.charge
        assert db.owner.declare_version() == 2
        assert db.query("SELECT COUNT(*) FROM people", within=100).charge > 0


@pytest.mark.usefixtures("secret")
def test_a_copy_in_a_schema_of_its_own_changes_when_its_owner_says_so(place: PostgreSQLPlace, tmp_path: Path) -> None:
    """As docs/deploy.md has it: the owner's role fills the copy, Bursar's reads it and nothing else."""
    place.run(
        f"""CREATE SCHEMA frozen; GRANT USAGE ON SCHEMA frozen TO {place.role};
        CREATE TABLE frozen.people AS TABLE public.people; GRANT SELECT ON frozen.people TO {place.role};
        REVOKE SELECT ON public.people FROM {place.role}"""
    )
    path = place.config(tmp_path, 'schema = "frozen"\n')
    with bursar.create(path) as db:
        assert db.query(QUESTION, within=60).charge > 0
    place.run("INSERT INTO public.people VALUES ('new', 'x', 3, now())")
    by_age = "SELECT age, COUNT(*) FROM people GROUP BY age"
    with bursar.open(path, analyst="ana") as db:  # a new process, which reads the copy again
        assert db.query(by_age, within=200).charge > 0
    refill = "TRUNCATE frozen.people; INSERT INTO frozen.people TABLE public.people"
    place.run(refill)
    with bursar.open(path) as db:
        with pytest.raises(SourceError, match="the data are not the ones that were declared"):
            db.query("SELECT COUNT(*) FROM people WHERE age < 50", within=200)
        assert db.owner.declare_version() == 2
    place.run(f"GRANT INSERT ON frozen.people TO {place.role}")
    with bursar.open(path) as db, pytest.raises(SourceError, match="can be changed by this role"):
        db.query("SELECT COUNT(*) FROM people WHERE age < 50", within=200)


def test_a_password_comes_from_a_file_of_ones_own(place: PostgreSQLPlace, tmp_path: Path) -> None:
    path = place.config(tmp_path, 'password_file = "secret"\n')
    file = tmp_path / "secret"
    with pytest.raises(SourceError, match="secret cannot be read"):
        bursar.create(path)
    file.write_text(PASSWORD + "\n")
    file.chmod(0o640)
    with pytest.raises(SourceError, match="others can read the password file"):
        bursar.create(path)
    file.chmod(0o600)
    bursar.create(path).close()


def test_without_a_password_nobody_gets_in_and_no_ledger_is_begun(
    place: PostgreSQLPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = place.config(tmp_path)
    for password in ("", "wrong"):
        monkeypatch.setenv("BURSAR_SOURCE_PASSWORD", password)
        with pytest.raises(SourceError, match=r"the table public\.people cannot be reached") as caught:
            bursar.create(path)
        assert "wrong" not in str(caught.value)
        assert caught.value.__context__ is None
    with pytest.raises(LedgerError):
        bursar.open(path)


@pytest.mark.parametrize("secret", ["postgresql://u:hidden@h/d", "postgresql://u@h/d?password=hidden"])
def test_a_password_in_the_config_is_refused(tmp_path: Path, secret: str) -> None:
    path = tmp_path / "people.toml"
    path.write_text(CONFIG.format(url=secret, more=""))
    with pytest.raises(ConfigError, match="has a password in it") as caught:
        load(path)
    assert "hidden" not in str(caught.value)


# --- least rights ---------------------------------------------------------------------------------------------------

TOO_MUCH = [
    "GRANT INSERT ON people TO {role}",
    "GRANT UPDATE (age) ON people TO {role}",
    "GRANT TRUNCATE ON people TO {role}",
    "GRANT DELETE ON people TO PUBLIC",
    "CREATE TABLE elsewhere (a int); GRANT DELETE ON elsewhere TO {role}",
    "CREATE TABLE own (a int); ALTER TABLE own OWNER TO {role}",
    "GRANT CREATE ON SCHEMA public TO {role}",
    "GRANT CREATE ON DATABASE {database} TO {role}",
    "ALTER ROLE {role} CREATEROLE",
    "ALTER ROLE {role} BYPASSRLS",
    "ALTER ROLE {role} SUPERUSER",
    "GRANT pg_write_all_data TO {role}",
    "GRANT pg_execute_server_program TO {role}",
    "CREATE ROLE boss_{role}; GRANT INSERT ON people TO boss_{role}; GRANT boss_{role} TO {role}",
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("sql", TOO_MUCH)
def test_a_role_that_can_do_more_than_read_is_refused(place: PostgreSQLPlace, sql: str) -> None:
    place.open().close()
    place.run(sql.format(role=place.role, database=place.database))
    with pytest.raises(
        SourceError, match=r"must do no more than read\n(.|\n)*GRANT SELECT ON public\.people TO reader"
    ):
        place.open()


def test_a_role_may_read_the_declared_columns_alone(place: PostgreSQLPlace) -> None:
    place.run(f"REVOKE ALL ON people FROM {place.role}; GRANT SELECT (town, age) ON people TO {place.role}")
    assert place.open().table(()) == 2000
    with pytest.raises(SourceError, match="could not be counted"):
        place.open(unit=Unit(column="id"))
    place.run(f"REVOKE ALL ON people FROM {place.role}")
    with pytest.raises(SourceError, match="is not there, or not for this role"):
        place.open()


NO_TABLES = {
    "CREATE VIEW seen AS SELECT * FROM people": "is no table",
    "CREATE MATERIALIZED VIEW seen AS SELECT * FROM people": "is no table",
    "CREATE TABLE seen (LIKE people); ALTER TABLE seen ENABLE ROW LEVEL SECURITY": "has row-level security",
    "CREATE TABLE seen (LIKE people); CREATE TABLE heir () INHERITS (seen)": "has tables that inherit from it",
    """CREATE TABLE seen (LIKE people) PARTITION BY LIST (town);
       CREATE TABLE part PARTITION OF seen FOR VALUES IN ('x');
       ALTER TABLE part ENABLE ROW LEVEL SECURITY""": "has row-level security",
    """CREATE FOREIGN DATA WRAPPER none; CREATE SERVER far FOREIGN DATA WRAPPER none;
       CREATE FOREIGN TABLE seen (town text, age int) SERVER far""": "is no table",
}


@pytest.mark.parametrize("sql", NO_TABLES)
def test_what_is_no_plain_table_is_refused(place: PostgreSQLPlace, sql: str) -> None:
    place.run(f"{sql}; GRANT SELECT ON seen TO {place.role}")
    with pytest.raises(SourceError, match=NO_TABLES[sql]) as refused:
        place.open(table="seen")
    assert "GRANT" not in str(refused.value), "no right would help"


def test_types_and_enums_and_domains(place: PostgreSQLPlace) -> None:
    place.run(
        f"""CREATE TYPE town AS ENUM ('x', 'y', 'z'); CREATE DOMAIN years AS int; CREATE DOMAIN aged AS years;
        CREATE TABLE typed (town town, age aged, place point, fixed char(5));
        INSERT INTO typed VALUES ('x', 3, NULL, 'a'), ('z', 4, NULL, 'a '); GRANT SELECT ON typed TO {place.role}"""
    )
    assert place.open(table="typed").table(("town",)).tolist() == [1, 0, 1, 0]
    with pytest.raises(SourceError, match="the column place has a type that cannot be read"):
        place.open(Domain((Categories(name="place", values=("a",)),)), "typed")
    with pytest.raises(SourceError, match=r"fixed is CHAR\(n\)"):
        place.open(Domain((Categories(name="fixed", values=("a ",)),)), "typed")
    assert place.open(Domain((Categories(name="fixed", values=("a",)),)), "typed").table(("fixed",)).tolist() == [
        2,
        0,
        0,
    ]


def test_texts_are_compared_by_their_letters_whatever_the_collation_says(place: PostgreSQLPlace) -> None:
    place.run(
        f"""CREATE COLLATION folded (provider = icu, locale = 'und-u-ks-level1', deterministic = false);
        CREATE TABLE folded (id text COLLATE folded, town text COLLATE folded);
        INSERT INTO folded VALUES ('a', 'x'), ('A', 'X'), ('á', 'x'); GRANT SELECT ON folded TO {place.role}"""
    )
    domain = Domain((Categories(name="town", values=("x", "X")),))
    assert place.open(domain, "folded").table(("town",)).tolist() == [2, 1, 0, 0]
    assert place.open(domain, "folded", unit=Unit(column="id")).table(("town",)).tolist() == [2, 1, 0, 0]


# --- joined tables -------------------------------------------------------------------------------------------------

JOINED = Domain((*TOWN.attributes, Categories(name="sex", values=("F", "M"))))
SEEN = Parent(table="seen", keys=(), columns=("sex",))


def with_sexes(place: PostgreSQLPlace, made: str) -> SqlSource:
    """People with what `seen` says of each, where that was made in this way."""
    place.run(f"CREATE TABLE sexes AS SELECT id, 'F' AS sex FROM people; {made}; GRANT SELECT ON seen TO {place.role}")
    return place.open(JOINED, unit=Unit(column="id"), parents=(SEEN,))


NO_PARENTS = {
    "CREATE VIEW seen AS SELECT * FROM sexes": r"the table public\.seen is no table",
    "CREATE TABLE seen (LIKE sexes); ALTER TABLE seen ENABLE ROW LEVEL SECURITY": r"\.seen has row-level security",
    "CREATE TABLE seen (LIKE sexes); CREATE TABLE heir () INHERITS (seen)": r"public\.seen has tables that inherit",
    "CREATE TABLE seen (LIKE sexes); GRANT INSERT ON seen TO {role}": r"can be changed by this role",
    "CREATE TABLE seen (LIKE sexes); ALTER TABLE seen DROP id": r"the table seen: the column id is not there",
}


def test_every_joined_table_is_a_plain_one_that_is_only_read(place: PostgreSQLPlace) -> None:
    assert with_sexes(place, "CREATE TABLE seen AS TABLE sexes").table(("sex",)).tolist() == [1000, 0, 0, 0]
    place.run(f"REVOKE SELECT ON seen FROM {place.role}")
    with pytest.raises(SourceError, match=r"\.seen is not there, or not for this role\n(.|\n)*ON public\.seen TO"):
        place.open(JOINED, unit=Unit(column="id"), parents=(SEEN,))


@pytest.mark.parametrize("sql", NO_PARENTS)
def test_what_is_no_plain_table_is_not_joined(place: PostgreSQLPlace, sql: str) -> None:
    with pytest.raises(SourceError, match=NO_PARENTS[sql]):
        with_sexes(place, sql.format(role=place.role))


def test_joined_tables_are_read_in_the_same_snapshot(place: PostgreSQLPlace) -> None:
    with_sexes(place, "CREATE TABLE seen AS TABLE sexes")
    server = place.connect(beside=("seen",))
    with pytest.raises(Exception, match="lock timeout"):
        place.run("SET lock_timeout = '200ms'; TRUNCATE seen")
    list(server.lines(f"SELECT count(*) FROM {server.relation}", None))
    place.run("UPDATE seen SET sex = 'M'; DELETE FROM people")
    source = read(SqlSource(lambda: server, JOINED, Unit(column="id"), KEY, 10_000, (SEEN,)))
    assert source.table(("sex",)).tolist() == [1000, 0, 0, 0]


# --- one snapshot -------------------------------------------------------------------------------------------------


def test_everything_is_read_in_one_snapshot(place: PostgreSQLPlace) -> None:
    """Rows that come, and rows that go, between the statements of one opening are not seen."""
    server = place.connect()
    (((before,),),) = server.lines("SELECT count(*) FROM people".replace("people", server.relation), None)
    place.run("INSERT INTO people SELECT * FROM people; DELETE FROM people WHERE town = 'x'")
    (((after,),),) = server.lines(f"SELECT count(*) FROM {server.relation}", None)
    server.close()
    assert before == after == 2000
    assert place.open().table(("town",)).tolist() == [0, 2666, 0, 0]


def test_the_table_cannot_be_emptied_meanwhile(place: PostgreSQLPlace) -> None:
    server = place.connect()
    with pytest.raises(Exception, match="lock timeout"):
        place.run("SET lock_timeout = '200ms'; TRUNCATE people")
    (((rows,),),) = server.lines(f"SELECT count(*) FROM {server.relation}", None)
    assert rows == 2000
    server.close()
    place.run("TRUNCATE people")
    assert place.open().table(()) == 0


def test_the_session_can_write_nothing_and_is_gone_afterwards(place: PostgreSQLPlace) -> None:
    server = place.connect()
    with pytest.raises(Exception, match="read-only transaction"):
        list(server.lines("CREATE TEMP TABLE t AS SELECT 1", None))
    server.close()
    place.open()
    listing = f"SELECT count(*) FROM pg_stat_activity WHERE usename = '{place.role}'"
    until(lambda: place.run(listing) == [(0,)], pause=0.05)


def test_the_secret_is_no_part_of_a_statement(place: PostgreSQLPlace) -> None:
    seen: list[str] = []
    server = place.connect()
    original = server.lines

    def lines(sql: str, secret: str | None) -> Iterator[Any]:
        yield from original(sql, secret)
        if secret is not None:
            texts = place.run(f"SELECT query FROM pg_stat_activity WHERE usename = '{place.role}'")
            seen.extend(text for (text,) in texts)
            assert all(secret not in text for (text,) in texts)

    server.lines = lines  # type: ignore[method-assign]
    read(SqlSource(lambda: server, TOWN, Unit(column="id"), KEY, 10_000))
    assert len(seen) == 1
    assert "$1" in seen[0]


# --- what goes wrong ----------------------------------------------------------------------------------------------


class Careless(PostgreSQLDialect):
    """Casts without looking first, so that the server's error quotes the row."""

    def matches(self, value: str, pattern: str) -> str:
        return "true"


def test_errors_never_quote_the_database(place: PostgreSQLPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    place.run("INSERT INTO people VALUES ('mallory', 'a secret town', 3, NULL)")
    numbers = Domain((IntegerRange(name="town", lower=0, upper=9),))
    assert place.open(numbers).table(("town",))[10] == 2001
    monkeypatch.setattr(PostgreSQLServer, "dialect", Careless())
    with pytest.raises(SourceError) as caught:
        place.open(numbers)
    told = "".join(traceback.format_exception(caught.value))
    assert "could not be counted" in told
    assert "secret" not in told.replace("secret: str", "").replace("secret)", "").replace("secret,", "")
    assert caught.value.__context__ is None


def test_a_statement_that_takes_too_long_is_ended(place: PostgreSQLPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        PostgreSQLServer, "relation", property(lambda self: "people, pg_sleep(30)", lambda self, v: None), raising=False
    )
    monkeypatch.setattr(PostgreSQLServer, "_begin", without_lock)
    with pytest.raises(SourceError, match="went away, took too long, or refused; nothing was charged"):
        place.open(seconds=1)


def without_lock(self: PostgreSQLServer, seconds: int, schema: str, tables: Mapping[str, str]) -> list[str]:
    self._connection.execute(f"SET statement_timeout = '{seconds}s'".encode())
    self._connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
    return list(tables)


@pytest.fixture(scope="module")
def alone() -> Iterator[PostgreSQL]:
    with postgresql() as made:
        yield made


@pytest.fixture
def server(alone: PostgreSQL) -> PostgreSQL:
    """One that may be stopped, and runs."""
    if not alone.running:
        alone.start()
    return alone


@pytest.mark.usefixtures("secret")
def test_a_server_that_goes_away_charges_nothing_and_comes_back(server: PostgreSQL, tmp_path: Path) -> None:
    path = PostgreSQLPlace(server).config(tmp_path)
    bursar.create(path).close()
    with bursar.open(path, analyst="ana") as db:
        server.stop()
        with pytest.raises(SourceError, match=r"the table public\.people cannot be reached"):
            db.query(QUESTION, within=60)
        assert db.budget().spent == 0
        server.start()
        assert db.query(QUESTION, within=60).charge > 0


@pytest.mark.usefixtures("secret")
def test_a_server_killed_in_the_middle_gives_one_text(
    server: PostgreSQL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = PostgreSQLPlace(server).config(tmp_path)
    bursar.create(path).close()
    original = PostgreSQLServer.lines

    def killed(self: PostgreSQLServer, sql: str, secret: str | None) -> Iterator[Any]:
        server.stop("immediate")
        yield from original(self, sql, secret)

    monkeypatch.setattr(PostgreSQLServer, "lines", killed)
    with bursar.open(path, analyst="ana") as db:
        with pytest.raises(SourceError, match="went away, took too long, or refused; nothing was charged"):
            db.query(QUESTION, within=60)
        assert db.budget().spent == 0


SLOW = """
import sys
from bursar.core.source.servers.postgresql import PostgreSQLServer
server = PostgreSQLServer({url!r}, "public", "people", {password!r}, 60)
print("begun", flush=True)
list(server.lines("SELECT count(*) FROM pg_sleep(50)", None))
"""


@pytest.mark.heavy
def test_control_c_cancels_the_statement_in_the_server(place: PostgreSQLPlace) -> None:
    code = SLOW.format(url=place.url, password=PASSWORD)
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    assert process.stdout.readline() == b"begun\n"
    running = f"""SELECT count(*) FROM pg_stat_activity
        WHERE usename = '{place.role}' AND query LIKE '%pg_sleep%' AND state = 'active'"""
    until(lambda: place.run(running) == [(1,)], pause=0.05)
    process.send_signal(signal.SIGINT)
    process.wait(PATIENCE)
    process.stdout.close()
    until(lambda: place.run(running) == [(0,)], pause=0.05)


# --- partitions ---------------------------------------------------------------------------------------------------

GROWING = """
dataset = "visits"

[partition]
column = "day"
seal = "command"

[source]
url = "{url}"
table = "visits"
max_rows = 10000

[privacy]
unit = "row"

[budget]
epsilon = 1.0

[columns.day]
first = 2021-01-01
last = 2021-12-31
by = "month"

[columns.town]
values = ["x", "y"]
"""


def make_visits(place: PostgreSQLPlace, folder: Path) -> Path:
    """A table with a partition for each month of 2021 and one for all else; and its config."""
    months = "".join(
        f"CREATE TABLE visits_{month} PARTITION OF visits FOR VALUES FROM ('{date(2021, month, 1)}') "
        f"TO ('{date(2021 + month // 12, month % 12 + 1, 1)}');"
        for month in range(1, 13)
    )
    place.run(
        f"""CREATE TABLE visits (day date, town text) PARTITION BY RANGE (day); {months}
        CREATE TABLE visits_other PARTITION OF visits DEFAULT;
        INSERT INTO visits SELECT date '2021-01-01' + i % 90, 'x' FROM generate_series(0, 899) AS i;
        GRANT SELECT ON visits TO {place.role}"""
    )
    path = folder / "visits.toml"
    path.write_text(GROWING.format(url=place.url))
    return path


@pytest.mark.usefixtures("secret")
@pytest.mark.parametrize(("outside", "everywhere"), [("clip", {"visits_other"}), ("other", set())])
def test_only_partitions_that_are_asked_for_are_read(
    place: PostgreSQLPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, outside: str, everywhere: set[str]
) -> None:
    """By the plans that PostgreSQL makes for every statement. Early days are in the partition for all else, and where
    they are clipped they count as the first month's."""
    original = PostgreSQLServer.lines
    read: set[str] = set()

    def explained(self: PostgreSQLServer, sql: str, secret: str | None) -> Iterator[Any]:
        for (line,) in self._connection.execute(f"EXPLAIN {sql}".encode()):
            read.update(re.findall(r"visits_\w+", line))
        return original(self, sql, secret)

    monkeypatch.setattr(PostgreSQLServer, "lines", explained)
    path = make_visits(place, tmp_path)
    path.write_text(path.read_text().replace('by = "month"', f'by = "month"\noutside = "{outside}"'))
    with bursar.create(path) as db:
        assert len(read) == 13
        for month in (1, 2):
            read.clear()
            db.owner.seal()
            assert read == everywhere | {f"visits_{number}" for number in range(1, month + 1)}
            read.clear()
            last = date(2021, month + 1, 1)
            asked = f"SELECT town, COUNT(*) FROM visits WHERE day < DATE '{last}' GROUP BY town"
            assert db.query(asked, within=50).charge > 0
            assert read == everywhere | {f"visits_{number}" for number in range(1, month + 1)}


@pytest.mark.usefixtures("secret")
def test_sealed_partitions_of_a_declaratively_partitioned_table(place: PostgreSQLPlace, tmp_path: Path) -> None:
    path = make_visits(place, tmp_path)
    by_month = "SELECT COUNT(*) FROM visits WHERE day < DATE '2021-02-01'"
    with bursar.create(path) as db:
        with pytest.raises(bursar.QueryError, match="is sealed yet"):
            db.query(by_month, within=50)
        assert db.owner.seal() == date(2021, 1, 1)
        assert abs(db.query(by_month, within=50).values[0][0] - 310) < 150
        with pytest.raises(ConfigError, match="the table is in a database, which takes rows itself"):
            db.owner.ingest(tmp_path / "more.csv")
        place.run("INSERT INTO visits VALUES ('2021-02-05', 'y')")  # not sealed yet: fine
        assert db.owner.seal() == date(2021, 2, 1)
        db.query("SELECT COUNT(*) FROM visits WHERE day < DATE '2021-03-01' AND day >= DATE '2021-02-01'", within=50)
    place.run("INSERT INTO visits VALUES ('2021-01-05', 'y')")  # behind a seal
    with bursar.open(path) as db, pytest.raises(SourceError, match="not the ones that were declared"):
        db.query("SELECT town, COUNT(*) FROM visits WHERE day < DATE '2021-03-01' GROUP BY town", within=50)
