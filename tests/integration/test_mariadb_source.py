"""A table in a real MariaDB, from the config to an answer; who may read it, and what happens when it goes away."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
import traceback
from datetime import date
from pathlib import Path

import pytest

import bursar
from bursar.core.domain import Categories, Dates, Domain, IntegerRange, Period, Unit
from bursar.core.extensions.joins import Parent
from bursar.core.source.servers.mariadb import MariaDBDialect, MariaDBServer
from bursar.errors import SourceError
from harness.patience import PATIENCE, until
from harness.places import QUESTION, TOWN, TRUE, MariaDBPlace
from harness.servers import PASSWORD, mariadb, shared_mariadb


@pytest.fixture
def place() -> MariaDBPlace:
    return MariaDBPlace(shared_mariadb())


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BURSAR_SOURCE_PASSWORD", PASSWORD)


def rows_of(server: MariaDBServer) -> int:
    (((rows,),),) = server.lines(f"SELECT count(*) FROM {server.relation}", None)
    return rows


@pytest.mark.usefixtures("secret")
def test_questions_are_answered_from_the_table(place: MariaDBPlace, tmp_path: Path) -> None:
    path = place.config(tmp_path)
    with bursar.create(path) as db:
        answer = db.query(QUESTION, within=60)
        assert all(abs(row[0] - true) < 200 for row, true in zip(answer.values, TRUE, strict=False))
    place.run("INSERT INTO people VALUES ('new', 'x', 3)")
    with bursar.open(path, analyst="ana") as db:
        assert db.query(QUESTION, within=60).free
        with pytest.raises(SourceError, match="the data are not the ones that were declared"):
            db.query("SELECT age, COUNT(*) FROM people GROUP BY age", within=100)
        assert db.budget().spent == answer.charge


TOO_MUCH = [
    "GRANT INSERT ON people TO {user}",
    "GRANT UPDATE (age) ON people TO {user}",
    "GRANT DROP ON {database}.* TO {user}",
    "GRANT FILE ON *.* TO {user}",
    "GRANT CREATE TEMPORARY TABLES ON {database}.* TO {user}",
    "CREATE ROLE role_{user}; GRANT role_{user} TO {user}",
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("sql", TOO_MUCH)
def test_a_user_that_can_do_more_than_read_is_refused(place: MariaDBPlace, sql: str) -> None:
    place.open().close()
    place.run(*sql.format(user=place.user, database=place.database).split("; "))
    with pytest.raises(
        SourceError, match=r"must do no more than read(.|\n)*GRANT SELECT ON clinic_\d+\.people TO reader"
    ):
        place.open()


def test_a_user_may_read_the_declared_columns_alone(place: MariaDBPlace) -> None:
    place.run(f"REVOKE SELECT ON people FROM {place.user}")
    with pytest.raises(SourceError, match="is not there, or not for this user"):
        place.open()
    place.run(f"GRANT SELECT (town, age) ON people TO {place.user}")
    assert place.open().table(()) == 2000


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "sql",
    [
        "CREATE VIEW seen AS SELECT * FROM people",
        "CREATE TABLE seen ENGINE = MyISAM SELECT * FROM people",
        "CREATE TABLE seen ENGINE = Aria SELECT * FROM people",
        "CREATE TABLE seen (town TEXT, age INT) WITH SYSTEM VERSIONING",
    ],
)
def test_what_is_no_plain_table_of_innodb_is_refused(place: MariaDBPlace, sql: str) -> None:
    place.run(sql)
    place.run(f"GRANT SELECT ON seen TO {place.user}")
    with pytest.raises(SourceError, match="is no plain table of InnoDB") as refused:
        place.open(table="seen")
    assert "GRANT" not in str(refused.value), "no right would help"


@pytest.mark.parametrize("seen", ["VIEW seen AS", "TABLE seen ENGINE = MyISAM AS", "TABLE seen AS"])
def test_every_joined_table_is_a_plain_one_of_innodb(place: MariaDBPlace, seen: str) -> None:
    place.run(f"CREATE {seen} SELECT DISTINCT id, 'F' AS sex FROM people", f"GRANT SELECT ON seen TO {place.user}")
    domain = Domain((*TOWN.attributes, Categories(name="sex", values=("F", "M"))))
    parents = (Parent(table="seen", keys=(), columns=("sex",)),)
    if seen.startswith("TABLE seen AS"):
        assert place.open(domain, unit=Unit(column="id"), parents=parents).table(("sex",)).tolist() == [1000, 0, 0, 0]
        place.run(f"GRANT UPDATE (sex) ON seen TO {place.user}")
    reason = (
        "can be changed by this user" if seen.startswith("TABLE seen AS") else r"\.seen is no plain table of InnoDB"
    )
    with pytest.raises(SourceError, match=reason):
        place.open(domain, unit=Unit(column="id"), parents=parents)


def test_collations_encodings_and_days_that_are_none(place: MariaDBPlace) -> None:
    place.run(
        "CREATE TABLE odd (town VARCHAR(9) CHARACTER SET latin1 COLLATE latin1_swedish_ci, day DATE, fixed CHAR(4), "
        "raw VARBINARY(9)) ENGINE = InnoDB"
    )
    place.run(
        "SET STATEMENT sql_mode = '' FOR "
        "INSERT INTO odd VALUES ('ä', '2024-00-00', 'a ', 'a'), ('Ä', '0000-00-00', 'a', 'a')"
    )
    place.run("INSERT INTO odd VALUES ('ä ', '2024-02-29', 'a', 'a'), ('a', NULL, 'a', 'a')")
    place.run(f"GRANT SELECT ON odd TO {place.user}")
    towns = Domain((Categories(name="town", values=("ä", "Ä", "ä ")),))
    assert place.open(towns, "odd").table(("town",)).tolist() == [1, 1, 1, 1, 0]
    assert place.open(towns, "odd", unit=Unit(column="town")).table(()).tolist() == 4
    days = Domain((Dates(name="day", first=date(2024, 1, 1), last=date(2024, 12, 31), by=Period.MONTH),))
    assert place.open(days, "odd").table(("day",)).tolist() == [0, 1, *[0] * 10, 3]
    with pytest.raises(SourceError, match=r"fixed is CHAR\(n\)"):
        place.open(Domain((Categories(name="fixed", values=("a ",)),)), "odd")
    with pytest.raises(SourceError, match="the column raw has a type that cannot be read"):
        place.open(Domain((Categories(name="raw", values=("a",)),)), "odd")


@pytest.mark.parametrize("kind", ["TEXT", "VARCHAR(2000)"])
def test_people_are_told_apart_by_all_of_a_long_name(place: MariaDBPlace, kind: str) -> None:
    """The server sorts by the first 1,024 bytes: whose rows are whose must not follow from that."""
    place.run(
        f"CREATE TABLE long_names (id {kind}, town VARCHAR(9)) ENGINE = InnoDB CHARACTER SET utf8mb4",
        "INSERT INTO long_names SELECT CONCAT(REPEAT('x', 1100), IF(seq % 2, 'a', 'b')), IF(seq % 2, 'x', 'y') "
        "FROM seq_0_to_19",
        f"CREATE TABLE homes (id {kind}, sex VARCHAR(9)) ENGINE = InnoDB CHARACTER SET utf8mb4",
        "INSERT INTO homes VALUES (CONCAT(REPEAT('x', 1100), 'a'), 'F'), (CONCAT(REPEAT('x', 1100), 'b'), 'M')",
        *(f"GRANT SELECT ON {table} TO {place.user}" for table in ("long_names", "homes")),
    )
    towns = Domain((Categories(name="town", values=("x", "y")),))
    unit = Unit(column="id", max_contributions=3)
    assert place.open(towns, "long_names", unit=unit).table(("town",)).tolist()[:2] == [3, 3]
    domain = Domain((*towns.attributes, Categories(name="sex", values=("F", "M"))))
    homes = (Parent(table="homes", keys=(), columns=("sex",)),)
    met = place.open(domain, "long_names", unit=unit, parents=homes).table(("town", "sex"))
    assert met[:2, :2].tolist() == [[3, 0], [0, 3]]


def test_everything_is_read_in_one_snapshot(place: MariaDBPlace) -> None:
    server = place.connect()
    place.run("INSERT INTO people SELECT * FROM people")
    assert rows_of(server) == 2000
    with pytest.raises(Exception, match=r"READ ONLY transaction|denied"):
        list(server.lines(f"DELETE FROM {server.relation}", None))
    server.close()
    assert place.open().table(()) == 4000


def test_a_table_emptied_meanwhile_is_an_error_and_not_fewer_rows(place: MariaDBPlace) -> None:
    server = place.connect()
    place.run("TRUNCATE people")
    with pytest.raises(Exception, match="definition has changed"):
        rows_of(server)
    server.close()
    assert place.open().table(()) == 0


class Careless(MariaDBDialect):
    """Fails on rows, and says which."""

    def matches(self, value: str, pattern: str) -> str:
        return f"extractvalue('<a/>', concat('<', {value}))"


def test_errors_never_quote_the_database(place: MariaDBPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    place.run("INSERT INTO people VALUES ('mallory', 'a secret town', 3)")
    numbers = Domain((IntegerRange(name="town", lower=0, upper=9),))
    assert place.open(numbers).table(("town",))[10] == 2001
    monkeypatch.setattr(MariaDBServer, "dialect", Careless())
    with pytest.raises(SourceError) as caught:
        place.open(numbers)
    told = "".join(traceback.format_exception(caught.value))
    assert "could not be counted" in told
    assert "secret town" not in told
    assert caught.value.__context__ is None


def test_a_statement_that_takes_too_long_is_ended(place: MariaDBPlace) -> None:
    server = place.connect(seconds=1)
    both = f"{server.relation} AS a JOIN {server.relation} AS b"
    with pytest.raises(Exception, match="max_statement_time"):
        list(server.lines(f"SELECT count(*) FROM {both} WHERE sleep(1)", None))  # it would take weeks
    server.close()


@pytest.mark.heavy
@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # PyMySQL leaves a socket to the collector
@pytest.mark.usefixtures("secret")
def test_a_server_that_goes_away_charges_nothing(tmp_path: Path) -> None:
    with mariadb() as server:
        path = MariaDBPlace(server).config(tmp_path)
        bursar.create(path).close()
        with bursar.open(path, analyst="ana") as db:
            server.stop()
            with pytest.raises(SourceError, match=r"the table clinic_\d+\.people cannot be reached"):
                db.query(QUESTION, within=60)
            assert db.budget().spent == 0
            server.start()
            assert db.query(QUESTION, within=60).charge > 0
    gc.collect()


SLOW = """
from bursar.core.source.servers.mariadb import MariaDBServer
server = MariaDBServer({url!r}, {database!r}, "people", {password!r}, 60)
print("begun", flush=True)
list(server.lines("SELECT sleep(50)", None))
"""


@pytest.mark.heavy
def test_control_c_cancels_the_statement_in_the_server(place: MariaDBPlace) -> None:
    code = SLOW.format(url=place.url, password=PASSWORD, database=place.database)
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    assert process.stdout.readline() == b"begun\n"
    running = f"SELECT count(*) FROM information_schema.PROCESSLIST WHERE user = '{place.user}' AND info LIKE '%sleep%'"
    until(lambda: place.run(running) == [(1,)], pause=0.05)
    process.send_signal(signal.SIGINT)
    process.wait(PATIENCE)
    process.stdout.close()
    until(lambda: place.run(running) == [(0,)], pause=0.05)
