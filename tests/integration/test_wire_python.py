"""Python's clients of PostgreSQL against a real server: each asks, and none is told more or charged twice."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import date
from decimal import Decimal

import pytest

import bursar
from harness.cases import few
from harness.wire import DATABASE, Served, served

psycopg = pytest.importorskip("psycopg")

BY_SEX = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("wire")) as running:
        yield running


def connect(server: Served, **options: object) -> psycopg.Connection:
    return psycopg.connect(
        host=server.host, port=server.port, user="ana", password=server.token, dbname=DATABASE, **options
    )


def test_psycopg_gets_an_answer_with_its_small_print(server: Served) -> None:
    heard: list[str] = []
    with connect(server) as link:
        link.add_notice_handler(lambda told: heard.append(f"{told.message_primary}\n{told.message_detail}"))
        rows = link.execute(f"{BY_SEX} WITH ERROR 60").fetchall()
    assert [label for label, _ in rows] == ["F", "M", "other", None]
    assert all(isinstance(n, int) for _, n in rows)
    assert abs(sum(n for _, n in rows) - 2_000) < 240
    assert "error ±60 or less" in heard[0]
    assert "is left" in heard[0]
    assert "from " in heard[0]


def test_values_are_sent_in_every_form(server: Served) -> None:
    conditions = "age > %s AND joined >= %s AND income >= %s AND region = ANY(%s) AND member = %s"
    question = f"SELECT COUNT(*) FROM people WHERE {conditions}"
    values = (23, date(2020, 2, 1), Decimal(20000), ["North", "East"], True)
    plain = (
        "SELECT COUNT(*) FROM people WHERE age > 23 AND joined >= '2020-02-01'::date AND income >= 20000.0 "
        "AND region IN ('North', 'East') AND member IS TRUE"
    )
    with connect(server) as link:
        first = link.execute(question, values).fetchone()
        before = server.records()
        assert link.execute(question, values, binary=True).fetchone() == first
        assert link.execute(plain).fetchone() == first
        assert link.execute(question, values, prepare=True).fetchone() == first
        assert server.records() == before, "the same question in another spelling is free"


def test_settings_come_with_the_connection(server: Served) -> None:
    with connect(server, options="-c bursar.error=75 -c bursar.bounds=on -c bursar.confidence=99%") as link:
        cursor = link.execute(BY_SEX)
        assert [column.name for column in cursor.description or ()] == ["sex", "n", "n_low", "n_high"]
        for _, n, low, high in cursor.fetchall():
            assert low <= n <= high
            assert high - low <= 150
        assert link.execute("SHOW bursar.error").fetchone() == ("75",)
        link.execute("SET bursar.bounds = off")
        assert len(link.execute(BY_SEX).fetchone() or ()) == 2
        with pytest.raises(psycopg.errors.InvalidParameterValue, match=r"bursar\.error"):
            link.execute("SET bursar.error = 'lots'")
        link.rollback()
        with pytest.raises(psycopg.errors.UndefinedObject, match="unrecognized") as refused:
            link.execute("SET bursar.seed = 1")
        assert "bursar.error" in (refused.value.diag.message_hint or "")
        link.rollback()
        link.execute("SET bursar.max_cost = 0.0001")
        with pytest.raises(psycopg.errors.ConfigurationLimitExceeded, match="nothing was spent"):
            link.execute("SELECT COUNT(*) FROM people WHERE age = 21")


def test_describing_and_preparing_charge_nothing(server: Served) -> None:
    before = server.records()
    with connect(server, autocommit=True) as link:
        low = link.pgconn
        sql = b"SELECT region, COUNT(*) AS n, AVG(income) AS a FROM people WHERE age > $1 GROUP BY region"
        for _ in range(3):
            assert low.prepare(b"", sql).status == psycopg.pq.ExecStatus.COMMAND_OK
        assert low.prepare(b"mine", sql).status == psycopg.pq.ExecStatus.COMMAND_OK
        for _ in range(2):
            told = low.describe_prepared(b"mine")
            assert [told.fname(column) for column in range(told.nfields)] == [b"region", b"n", b"a"]
            assert [told.ftype(column) for column in range(told.nfields)] == [25, 20, 701]
            assert told.param_type(0) == 23
        assert server.records() == before
        assert low.exec_prepared(b"mine", [b"24"]).status == psycopg.pq.ExecStatus.TUPLES_OK
        assert server.records() > before


def test_a_cursor_that_is_read_in_pieces_is_charged_once(server: Served) -> None:
    before = server.records()
    heard: list[str] = []
    with connect(server) as link, link.cursor(name="mine") as cursor:
        link.add_notice_handler(lambda told: heard.append(told.message_primary or ""))
        cursor.execute("SELECT joined, COUNT(*) FROM people GROUP BY joined WITH ERROR 31")
        assert server.records() == before, "a cursor is not asked before it is read"
        first = cursor.fetchmany(3)
        after = server.records()
        assert after > before
        assert len(first + cursor.fetchmany(4) + cursor.fetchall()) == 13
        assert server.records() == after
    assert len([told for told in heard if "cost" in told]) == 1, "nor is it asked again, free or not"


def test_a_portal_that_is_read_in_pieces_is_charged_once(server: Served) -> None:
    asyncpg = pytest.importorskip("asyncpg")

    async def read() -> tuple[list[int], list[str]]:
        link = await asyncpg.connect(server.url)
        counts = [server.records()]
        regions: list[str] = []
        async with link.transaction():
            cursor = await link.cursor("SELECT region, COUNT(*) FROM people WHERE age < $1 GROUP BY region", 25)
            counts.append(server.records())
            while part := await cursor.fetch(2):
                regions += [row["region"] for row in part]
                counts.append(server.records())
        await link.close()
        return counts, regions

    counts, regions = asyncio.run(read())
    assert counts[1] == counts[0], "a portal is not asked before it is executed"
    assert counts[2] > counts[1]
    assert set(counts[2:]) == {counts[2]}
    assert len(regions) == 4


def test_asyncpg_relies_on_the_types_of_parameters(server: Served) -> None:
    asyncpg = pytest.importorskip("asyncpg")

    async def ask() -> None:
        settings = {"bursar.error": "80"}
        link = await asyncpg.connect(server.url, server_settings=settings)
        rows = await link.fetch(
            "SELECT sex, COUNT(*) AS n, AVG(income) AS h FROM people WHERE age > $1 AND joined >= $2 AND income >= $3 "
            "AND member = $4 GROUP BY sex", 23, date(2020, 2, 1), Decimal(10000), True,
        )  # fmt: skip
        assert [type(value) for value in rows[0].values()] == [str, int, float]
        assert await link.fetchval("SELECT COUNT(*) FROM people WHERE age = ANY($1)", [20, 21, 22]) > 0
        assert await link.fetchval("SHOW bursar.error") == "80"
        async with link.transaction():
            with pytest.raises(asyncpg.UndefinedColumnError) as refused:
                async with link.transaction():
                    await link.fetch("SELECT COUNT(*) FROM people WHERE salary > 3")
            assert refused.value.position == "35"
            assert await link.fetchval("SELECT 1") == 1
        assert await link.fetch("SELECT sex FROM people GROUP BY sex") == [("F",), ("M",), ("other",), (None,)]
        await link.close()
        async with asyncpg.create_pool(server.url, min_size=1, max_size=2) as pool:
            for _ in range(3):
                assert await pool.fetchval("SELECT COUNT(*) FROM people") > 0

    asyncio.run(ask())


def test_transactions_are_told_as_postgresql_does(server: Served) -> None:
    status = psycopg.pq.TransactionStatus
    with connect(server) as link:
        assert link.info.transaction_status == status.IDLE
        link.execute("SELECT 1")
        assert link.info.transaction_status == status.INTRANS
        with link.transaction():
            link.execute("SAVEPOINT one")
            with pytest.raises(psycopg.errors.UndefinedTable):
                link.execute("SELECT COUNT(*) FROM nobody")
            assert link.info.transaction_status == status.INERROR
            with pytest.raises(psycopg.errors.InFailedSqlTransaction):
                link.execute("SELECT 1")
            link.execute("ROLLBACK TO SAVEPOINT one")
            assert link.info.transaction_status == status.INTRANS
            with pytest.raises(psycopg.errors.InvalidSavepointSpecification), link.transaction():
                link.execute("RELEASE two")
        assert link.execute("SELECT 2").fetchone() == (2,)
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            link.execute("CREATE TABLE mine (a int)")
        assert link.info.transaction_status == status.INERROR
        link.rollback()
        assert link.info.transaction_status == status.IDLE


def test_several_statements_in_one_message(server: Served) -> None:
    with connect(server, autocommit=True) as link:
        cursor = link.cursor()
        cursor.execute("BEGIN; SELECT 1; -- a comment; with a semicolon\nSELECT ';' AS mark; COMMIT")
        answers = []
        while True:
            answers.append(cursor.fetchall() if cursor.description else cursor.statusmessage)
            if not cursor.nextset():
                break
        assert answers == ["BEGIN", [(1,)], [(";",)], "COMMIT"]
        before = server.records()
        with pytest.raises(psycopg.errors.UndefinedTable):
            cursor.execute(f"SELECT COUNT(*) FROM nobody; {BY_SEX} WITH ERROR 17")
        assert server.records() == before, "nothing is run behind an error"


def test_a_refusal_says_where_and_what_to_ask_instead(server: Served) -> None:
    before = server.records()
    cases = {
        "SELECT COUNT(*) FROM people WHERE income > 12500": ("0A000", "35", "income >= 10000"),
        "SELECT COUNT(*)\n  FROM people WHERE salary > 1": ("42703", "37", ""),
        "SELECT COUNT(*) FROM visits": ("42P01", "22", "people"),
        "SELECT COUNT(*) FROM people WHERE": ("42601", None, ""),
        "SELECT * FROM people": ("0A000", None, "COUNT(*)"),
        "SELECT age FROM people LIMIT 5": ("0A000", None, "GROUP BY age"),
        "SELECT SUM(DISTINCT age) FROM people": ("0A000", "21", "COUNT(*)"),
        "SELECT COUNT(*) FROM people, pg_class": ("0A000", None, ""),
        "SELECT COUNT(*) FROM people JOIN people AS other ON people.age = other.age": ("0A000", None, ""),
        "SELECT COUNT(*) FROM people WHERE age > 'old'": ("22P02", None, ""),
        "DELETE FROM people": ("25006", None, ""),
        "SELECT pg_read_file('/etc/passwd')": ("42883", None, ""),
    }
    with connect(server, autocommit=True) as link:
        for sql, (state, place, hint) in cases.items():
            with pytest.raises(psycopg.Error) as refused:
                link.execute(sql)
            told = refused.value.diag
            assert (told.sqlstate, hint in (told.message_hint or "")) == (state, True), (sql, told.message_primary)
            assert place is None or told.statement_position == place, (sql, told.statement_position)
    assert server.records() == before


def test_what_is_public_is_free_and_labelled(server: Served) -> None:
    before = server.records()
    heard: list[str] = []
    cases = {
        "SELECT DISTINCT sex AS column_values FROM public.people LIMIT 100": [("F",), ("M",), ("other",), (None,)],
        "SELECT sex FROM people GROUP BY sex ORDER BY sex DESC LIMIT 2": [(None,), ("other",)],
        "SELECT region AS region FROM people WHERE region ILIKE '%th%' GROUP BY region": [("North",), ("Old South",)],
        "SELECT DISTINCT sex, member FROM people WHERE sex = 'F'": [("F", True), ("F", False)],
        "SELECT DISTINCT age FROM people WHERE age > 27 AND age IS NOT NULL": [(28,), (29,)],
        "SELECT MIN(age) AS min, MAX(age) AS max FROM people LIMIT 50000": [(20, 29)],
        "SELECT MIN(joined), MAX(joined) FROM people": [(date(2020, 1, 1), date(2020, 12, 31))],
        "SELECT MAX(income) FROM people": [(Decimal(30000),)],
        "SELECT * FROM people LIMIT 0": [],
        'SELECT TRUE AS "_" FROM "public"."people" WHERE 1 <> 1 LIMIT 0': [],
        "SELECT sex, COUNT(*) FROM people GROUP BY sex LIMIT 0": [],
    }  # fmt: skip
    with connect(server, autocommit=True) as link:
        link.add_notice_handler(lambda told: heard.append(told.message_primary or ""))
        for sql, rows in cases.items():
            assert link.execute(sql).fetchall() == rows, sql
    assert len(heard) == len(cases)
    assert all("nothing was measured or charged" in told for told in heard)
    assert server.records() == before


def test_explain_is_free_and_has_a_price_where_plans_have_one(server: Served) -> None:
    before = server.records()
    with connect(server, autocommit=True) as link:
        lines = [
            line
            for (line,) in link.execute("EXPLAIN SELECT COUNT(*) FROM people WHERE age = 27 WITH ERROR 2").fetchall()
        ]
        low, _, high = lines[0].partition("cost=")[2].partition(" ")[0].partition("..")
        assert float(low) == 0
        assert float(high) > 0
        assert any("is exactly what would be charged now" in line for line in lines)
        with pytest.raises(psycopg.errors.FeatureNotSupported):
            link.execute("EXPLAIN ANALYZE SELECT COUNT(*) FROM people")
    assert server.records() == before


def test_spellings_of_tools_mean_the_same(server: Served) -> None:
    """Each question is asked in Bursar's words first; the other spelling of it then costs nothing."""
    twins = {
        "SELECT DATE_TRUNC('month', joined) AS m, COUNT(*) AS n FROM people GROUP BY m WITH ERROR 90": (
            '-- by a tool\nSELECT CAST(DATE_TRUNC(\'month\', "public"."people"."joined") AS date) AS "joined", '
            'COUNT(*) AS "count" FROM "public"."people" GROUP BY 1 LIMIT 50000 WITH ERROR 90'
        ),
        "SELECT COUNT(*) FROM people WHERE joined >= DATE '2020-03-01' AND joined < DATE '2020-09-01' WITH ERROR 90": (
            'SELECT COUNT(*) AS "count" FROM "demo".public.people WHERE joined >= TO_DATE(\'2020-03-01\', '
            "'YYYY-MM-DD') AND joined < '2020-09-01T00:00:00Z' /*+ error(90) */"
        ),
        "SELECT sex, COUNT(*) FROM people WHERE age < 25 GROUP BY sex WITH ERROR 90": (
            'SELECT "t0"."sex", COUNT(*) AS "n" FROM (SELECT * FROM "people" AS "t0" '
            'WHERE "t0"."age" < (\'25\'::int4)) AS "t0" GROUP BY 1 WITH ERROR 90'
        ),
        "SELECT MEDIAN(age) FROM people WITH ERROR 90": (
            "SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age) FROM people WITH ERROR 90"
        ),
        "SELECT region, COUNT(*) AS n FROM people GROUP BY region ORDER BY n DESC LIMIT 3 WITH ERROR 90": (
            "SELECT * FROM (SELECT region AS region, COUNT(*) AS n FROM people GROUP BY region) AS q ORDER BY n DESC "
            "NULLS LAST LIMIT 3 WITH ERROR 90"
        ),
    }
    with connect(server, autocommit=True) as link:
        for question, spelling in twins.items():
            rows = len(link.execute(question).fetchall())
            before = server.records()
            assert len(link.execute(spelling).fetchall()) == rows
            assert server.records() == before, spelling


def test_columns_come_in_the_order_in_which_they_are_selected(server: Served) -> None:
    with connect(server) as link:
        cursor = link.execute(
            "SELECT COUNT(*), sex, AVG(income) AS Mean, COUNT(*) FILTER (WHERE age > 25) "
            "FROM people GROUP BY sex, member"
        )
        assert [column.name for column in cursor.description or ()] == ["count", "sex", "mean", "count"]
        rows = cursor.fetchall()
        assert len(rows) == 8
        assert [type(value) for value in rows[0]] == [int, str, float, int]


def test_copy_gives_text_csv_and_binary(server: Served) -> None:
    with connect(server) as link:
        with link.cursor().copy(f"COPY ({BY_SEX}) TO STDOUT (FORMAT csv, HEADER)") as copy:
            lines = b"".join(bytes(part) for part in copy).decode().splitlines()
        assert lines[0] == "sex,n"
        assert [line.partition(",")[0] for line in lines[1:]] == ["F", "M", "other", ""]
        with link.cursor().copy(f"COPY ({BY_SEX}) TO STDOUT (FORMAT binary)") as copy:
            copy.set_types(["text", "int8"])
            binary = list(copy.rows())
        assert [f"{'' if label is None else label},{n}" for label, n in binary] == lines[1:]


def test_psycopg2_writes_values_into_the_text(server: Served) -> None:
    psycopg2 = pytest.importorskip("psycopg2")
    link = psycopg2.connect(server.url)
    cursor = link.cursor()
    cursor.execute(
        "SELECT sex, COUNT(*) FROM people WHERE age IN %s AND joined >= %s AND region = ANY(%s) GROUP BY 1",
        ((20, 21), date(2020, 2, 1), ["North"]),
    )
    assert [label for label, _ in cursor.fetchall()] == ["F", "M", "other", None]
    assert "is left" in link.notices[-1] or "is left" in "".join(link.notices)
    named = link.cursor("mine")
    named.execute(BY_SEX)
    assert len(named.fetchmany(2)) == 2
    assert len(named.fetchall()) == 2
    link.close()


def test_pg8000_asks(server: Served) -> None:
    native = pytest.importorskip("pg8000.native")
    link = native.Connection("ana", host=server.host, port=server.port, password=server.token, database=DATABASE)
    rows = link.run("SELECT sex, COUNT(*) FROM people WHERE age > :age GROUP BY sex", age=23)
    assert [label for label, _ in rows] == ["F", "M", "other", None]
    link.close()


@pytest.mark.parametrize("driver", few(["psycopg", "psycopg2", "pg8000"]))
def test_sqlalchemy_reflects_the_table_and_pandas_reads(server: Served, driver: str) -> None:
    sa = pytest.importorskip("sqlalchemy")
    pandas = pytest.importorskip("pandas")
    before = server.records()
    engine = sa.create_engine(server.url.replace("postgresql:", f"postgresql+{driver}:"), pool_pre_ping=True)
    inspector = sa.inspect(engine)
    assert inspector.get_table_names() == ["people"]
    assert inspector.get_view_names() == []
    assert inspector.has_table("people")
    assert not inspector.has_table("visits")
    kinds = {column["name"]: str(column["type"]) for column in inspector.get_columns("people")}
    assert kinds["age"] == "INTEGER"
    assert (kinds["sex"], kinds["income"], kinds["member"], kinds["joined"]) == ("TEXT", "NUMERIC", "BOOLEAN", "DATE")
    assert inspector.get_pk_constraint("people")["constrained_columns"] == []
    assert inspector.get_indexes("people") == inspector.get_foreign_keys("people") == []
    assert "noisy" in str(inspector.get_table_comment("people"))
    metadata = sa.MetaData()
    metadata.reflect(engine)
    assert server.records() == before
    people = metadata.tables["people"]
    question = sa.select(people.c.sex, sa.func.count().label("n")).where(people.c.age > 23).group_by(people.c.sex)
    frame = pandas.read_sql(question, engine)
    assert list(frame.columns) == ["sex", "n"]
    assert len(frame) == 4
    engine.dispose()


def test_adbc_copies_binary_columns(server: Served) -> None:
    dbapi = pytest.importorskip("adbc_driver_postgresql.dbapi")
    with dbapi.connect(server.url) as link, link.cursor() as cursor:
        cursor.execute(BY_SEX)
        table = cursor.fetch_arrow_table()
        assert table.column("sex").to_pylist() == ["F", "M", "other", None]
        assert str(table.schema.field("n").type) == "int64"
        cursor.execute("SELECT sex, COUNT(*) AS n FROM people WHERE age > $1 GROUP BY sex", (23,))
        assert len(cursor.fetchall()) == 4
        assert link.adbc_get_table_schema("people").names[:2] == ["age", "sex"]


def test_the_outermost_values_are_the_same_numbers_as_in_the_library(server: Served) -> None:
    heard: list[tuple[str, str]] = []
    question = "SELECT MAX(age) FROM people WITH ERROR 60"
    with connect(server, autocommit=True) as link:
        link.add_notice_handler(lambda told: heard.append((told.message_primary or "", told.message_detail or "")))
        cursor = link.execute(question)
        [shown] = cursor.fetchall()
        assert [column.name for column in cursor.description or ()] == ["max"]
    before = server.records()
    with bursar.open(server.config.path) as db:
        answer = db.query(question)
    assert answer.values[0] == shown
    assert server.records() == before, "what was bought over the wire is what is asked for here"
    assert 20 <= shown[0] <= 29
    assert "a row lies at or above it" in heard[0][1]


@pytest.mark.heavy
def test_sqlalchemy_reflects_over_asyncpg(server: Served) -> None:
    """It takes the types of the catalog as they are sent: "char" as bytes, names as names."""

    import sqlalchemy
    from sqlalchemy.ext.asyncio import create_async_engine

    async def look() -> tuple[list[str], list[str]]:
        place = f"ana:{server.token}@{server.host}:{server.port}/demo"
        engine = create_async_engine(f"postgresql+asyncpg://{place}")
        async with engine.connect() as link:
            tables = await link.run_sync(lambda bound: sqlalchemy.inspect(bound).get_table_names())
            columns = await link.run_sync(lambda bound: sqlalchemy.inspect(bound).get_columns("people"))
        await engine.dispose()
        assert not any("computed" in column or "identity" in column for column in columns)
        return tables, [column["name"] for column in columns]

    tables, columns = asyncio.run(look())
    assert tables == ["people"]
    assert {"age", "sex", "region", "joined"} <= set(columns)
