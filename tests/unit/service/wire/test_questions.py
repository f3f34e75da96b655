"""PostgreSQL's spelling to Bursar's: the same question, and nothing that means another one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date

import numpy as np
import pytest

from bursar.core.domain import Bins, Categories, Dates, Domain, IntegerRange, Period
from bursar.service.wire import types
from bursar.service.wire.asked import Asked, Context, place_in
from bursar.service.wire.catalog import Catalog
from bursar.service.wire.catalog_spelling import Sessions
from bursar.service.wire.failures import WireError
from bursar.service.wire.questions import DataQuestion
from bursar.service.wire.router import route
from bursar.service.wire.settings import SessionSettings
from bursar.service.wire.trees import parse_statement
from bursar.service.wire.types import PgValue
from bursar.sql import Query, parse
from harness.small import config, engine

DOMAIN = Domain(
    (
        IntegerRange(name="age", lower=20, upper=29),
        Categories(name="sex", values=("F", "M")),
        Bins(name="income", edges=(0.0, 10_000.0, 20_000.0)),
        Categories(name="member", values=(True, False), outside=1, null=1),
        Dates(name="joined", first=date(2020, 1, 1), last=date(2020, 12, 31), by=Period.MONTH),
    )
)
SESSIONS = Sessions(7, lambda: [7], lambda process: False)


@pytest.fixture(scope="module")
def context() -> Context:
    facts = config(domain=DOMAIN, table="people")
    small = engine(settings=facts, table=np.zeros(DOMAIN.sizes(DOMAIN.names), np.int64))
    return Context(lambda: small, "demo", SessionSettings("ana"))


@pytest.fixture(scope="module")
def catalog(context: Context) -> Iterator[Catalog]:
    made = Catalog(context.bursar.config)
    yield made
    made.close()


def asked(sql: str, context: Context, *values: PgValue) -> str:
    question = DataQuestion(parse_statement(sql), context)._asked(values)
    assert isinstance(question, Asked), sql
    return question.text


def meaning(sql: str) -> Query:
    """A question without the names that it gives to its outputs, and without the places of its words."""
    query = parse(sql)
    return replace(
        query,
        aggregates=tuple(replace(item, name=str(place)) for place, item in enumerate(query.aggregates)),
        keys=tuple(replace(key, alias=None, through=None) for key in query.keys),
    )


COUNT = "SELECT COUNT(*) FROM people"

SAME = {
    'SELECT COUNT(*) AS "count" FROM "public"."people"': COUNT,
    "select count(1) from demo.public.people as t0 -- a comment": "SELECT COUNT(1) FROM people",
    f"{COUNT} WHERE joined >= '2020-03-01'::date": f"{COUNT} WHERE joined >= DATE '2020-03-01'",
    f"{COUNT} WHERE joined >= '2020-03-01'": f"{COUNT} WHERE joined >= DATE '2020-03-01'",
    f"{COUNT} WHERE joined >= '2020-03-01 00:00:00.000000'::timestamp": f"{COUNT} WHERE joined >= DATE '2020-03-01'",
    f"{COUNT} WHERE joined < '2020-02-29T23:59:59Z'": f"{COUNT} WHERE joined < DATE '2020-03-01'",
    f"{COUNT} WHERE joined <= '2020-02-29T23:59:59Z'": f"{COUNT} WHERE joined <= DATE '2020-02-29'",
    f"{COUNT} WHERE joined > '2020-02-29 12:00'": f"{COUNT} WHERE joined > DATE '2020-02-29'",
    f"{COUNT} WHERE joined >= '2020-02-29 12:00'": f"{COUNT} WHERE joined >= DATE '2020-03-01'",
    f"{COUNT} WHERE '2020-02-29 12:00' > joined": f"{COUNT} WHERE joined < DATE '2020-03-01'",
    f"{COUNT} WHERE joined BETWEEN '2020-02-29T12:00:00Z' AND '2020-03-31T23:59:59Z'": (
        f"{COUNT} WHERE joined BETWEEN DATE '2020-03-01' AND DATE '2020-03-31'"
    ),
    f"{COUNT} WHERE joined > TO_DATE('2020-02-29', 'YYYY-MM-DD')": f"{COUNT} WHERE joined > DATE '2020-02-29'",
    f"{COUNT} WHERE age > ('21'::int4) AND sex = 'F'::text": f"{COUNT} WHERE age > 21 AND sex = 'F'",
    f"{COUNT} WHERE age = ANY(ARRAY[21, 22])": f"{COUNT} WHERE age IN (21, 22)",
    f"{COUNT} WHERE age = ANY('{{21,22}}'::int[])": f"{COUNT} WHERE age IN (21, 22)",
    f"{COUNT} WHERE age <> ALL(ARRAY[21, 22])": f"{COUNT} WHERE NOT age IN (21, 22)",
    f"{COUNT} WHERE member IS TRUE AND age > 21": f"{COUNT} WHERE member = TRUE AND age > 21",
    f"{COUNT} WHERE NOT (member IS TRUE)": f"{COUNT} WHERE NOT (member IS TRUE)",
    f"{COUNT} WHERE member = 't'": f"{COUNT} WHERE member = TRUE",
    f"{COUNT} WHERE sex = E'F'": f"{COUNT} WHERE sex = 'F'",
    f"{COUNT} WHERE sex::text = 'F' COLLATE pg_catalog.default": f"{COUNT} WHERE sex = 'F'",
    "SELECT CAST(DATE_TRUNC('month', people.joined) AS date), COUNT(*) FROM people GROUP BY 1": (
        "SELECT DATE_TRUNC('month', joined), COUNT(*) FROM people GROUP BY 1"
    ),
    "SELECT EXTRACT(month FROM joined)::integer AS m, COUNT(*)::bigint FROM people GROUP BY 1": (
        "SELECT EXTRACT(month FROM joined) AS m, COUNT(*) FROM people GROUP BY 1"
    ),
    "SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age) FROM people": "SELECT MEDIAN(age) FROM people",
    "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY sex DESC LIMIT 1": (
        "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY sex DESC NULLS FIRST LIMIT 1"
    ),
    "SELECT * FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) AS q ORDER BY q.n LIMIT 1": (
        "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY n LIMIT 1"
    ),
    "SELECT sex, COUNT(*) FROM people GROUP BY sex LIMIT 1000": "SELECT sex, COUNT(*) FROM people GROUP BY sex",
    "SELECT age // 5 AS a, COUNT(*) FROM people GROUP BY a": "SELECT age // 5 AS a, COUNT(*) FROM people GROUP BY a",
    f"{COUNT} WITH ERROR 1% CONFIDENCE 99%": f"{COUNT} WITH ERROR 1% CONFIDENCE 99%",
    f"{COUNT} /*+ error(20) */ WHERE age > 21": f"{COUNT} WHERE age > 21 WITH ERROR 20",
}


def test_a_spelling_means_the_same(context: Context) -> None:
    for spelling, question in SAME.items():
        got, wanted = meaning(asked(spelling, context)), meaning(question)
        drop = {"order": (), "table": None} if got.order == wanted.order else {"table": None}
        assert replace(got, **drop) == replace(wanted, **drop), (spelling, asked(spelling, context))


def test_parameters_have_the_type_of_what_they_are_compared_with(context: Context) -> None:
    sql = (
        f"{COUNT} WHERE age > $1 AND joined BETWEEN $2 AND $3 AND income >= $4 AND member = $5 AND sex IN ($6) "
        "AND age = ANY($7) AND age < $8::bigint"
    )
    question = DataQuestion(parse_statement(sql), context)
    kinds = (types.INT4, types.DATE, types.DATE, types.NUMERIC, types.BOOL, types.TEXT)
    assert question.parameters == [*(kind.oid for kind in kinds), types.INT4.array, types.INT8.oid]
    assert DataQuestion(parse_statement(sql), context, [20, 0]).parameters[:2] == [20, types.DATE.oid]
    values = (21, date(2020, 2, 1), date(2020, 2, 29), 10_000, True, "F'; --", [21, 22], 25)
    written = (
        f"{COUNT} WHERE age > 21 AND joined BETWEEN DATE '2020-02-01' AND DATE '2020-02-29' AND income >= 10000 "
        "AND member = TRUE AND sex IN ('F''; --') AND age IN (21, 22) AND age < 25"
    )
    assert meaning(asked(sql, context, *values)).where == meaning(written).where


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        (f"{COUNT} WHERE age > 'old'", "22P02"),
        (f"{COUNT} WHERE joined = '2020-02-01 12:00'", "22007"),
        (f"{COUNT} WHERE joined > 'soon'", "22007"),
        (f"{COUNT} WHERE sex LIKE 'a\\_%'", "0A000"),
        ("SELECT age, sex FROM people", "0A000"),
        ("SELECT * FROM people LIMIT 5", "0A000"),
        ("SELECT people.* FROM people", "0A000"),
        ("SELECT salary FROM people", "42703"),
    ],
)
def test_what_cannot_be_spelled_is_refused(context: Context, sql: str, code: str) -> None:
    with pytest.raises(WireError) as refused:
        asked(sql, context)
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT COUNT(*) FROM people, pg_class", "0A000"),
        ("SELECT relname FROM pg_class WHERE EXISTS (SELECT 1 FROM people)", "0A000"),
        ("SELECT COUNT(*) FROM other.people", "42P01"),
        ("SELECT COUNT(*) FROM elsewhere.public.people", "42P01"),
        ('SELECT COUNT(*) FROM "People"', "42P01"),
        ("SELECT COUNT(*) FROM 'people.csv'", "42P01"),
        ("SELECT COUNT(*) FROM pg_authid", "42P01"),
        ("SELECT read_text('/etc/passwd')", "42883"),
        ("SELECT * FROM read_csv('/etc/passwd')", "42883"),
        ("SELECT * FROM duckdb_settings()", "42883"),
        ("SELECT getenv('HOME')", "42883"),
        ("SELECT * INTO x FROM pg_class", "42P01"),
        ("WITH x AS (DELETE FROM pg_class RETURNING 1) SELECT * FROM x", "0A000"),
        ("SELECT 1 FROM " + "a JOIN " * 40 + "b", "54001"),
        ("SELECT " + "(" * 200 + "1" + ")" * 200, "54001"),
        ("SELECT " + "DATE(" * 19 + "1" + ")" * 19, "54001"),
    ],
)
def test_no_statement_goes_through_the_wrong_door(context: Context, catalog: Catalog, sql: str, code: str) -> None:
    with pytest.raises(WireError) as refused:
        route(sql, context, catalog, SESSIONS)
    assert refused.value.code == code, refused.value.text


def test_the_catalog_runs_nothing_for_long(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bursar.service.wire.catalog.SECONDS", 0.5)
    catalog = Catalog(context.bursar.config)
    sql = "SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b"
    with pytest.raises(WireError) as refused:
        route(sql, context, catalog, SESSIONS).run([])
    assert refused.value.code == "0A000"
    assert route("SELECT relname FROM pg_class", context, catalog, SESSIONS).run([]).rows == [("people",)]
    catalog.close()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "ATTACH '/tmp/bursar-wire.db'",
        "COPY (SELECT 1) TO '/tmp/bursar-wire.csv'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET memory_limit = '8GB'",
        "SET enable_external_access = true",
    ],
)
def test_the_engine_behind_the_catalog_reaches_nothing(catalog: Catalog, sql: str) -> None:
    """Were the check of statements wrong, there would still be nothing to read, and nothing to change."""
    with pytest.raises(WireError) as refused:
        catalog.run(sql)
    assert refused.value.code == "0A000"


def test_the_catalog_knows_no_number_of_rows(context: Context) -> None:
    catalog = Catalog(context.bursar.config)
    looks = {
        "SELECT reltuples, relpages FROM pg_class WHERE relname = 'people'": [(-1.0, 0)],
        "SELECT * FROM pg_stats": [],
        "SELECT n_live_tup FROM pg_stat_user_tables": [],
        "SELECT pg_catalog.pg_table_size('people'::regclass)": [(None,)],
        "SELECT 'people'::regclass::oid, to_regclass('nobody')": [(16384, None)],
        "SELECT pid FROM pg_stat_activity": [(7,)],
        "SELECT rolname FROM pg_roles ORDER BY 1": [("ana",), ("bursar",)],
        "SELECT current_setting('bursar.bounds'), current_user, current_database()": [("off", "ana", "demo")],
        "SELECT column_name FROM information_schema.columns WHERE data_type = 'date'": [("joined",)],
    }
    ana = context.bursar.as_analyst("ana")
    who = replace(context, asking=lambda: ana)
    for sql, rows in looks.items():
        assert route(sql, who, catalog, SESSIONS).run([]).rows == rows, sql
    catalog.close()


def test_a_place_is_that_of_the_same_word_in_what_was_sent() -> None:
    sent = 'select count(*) from "public"."people" where age > 1 and salary > 2 or salary > 3'
    text = "SELECT COUNT(*) AS count FROM people WHERE age > 1 AND salary > 2 OR salary > 3"
    for number in range(2):
        place = [at for at in range(len(text)) if text.startswith("salary", at)][number]
        wanted = [at for at in range(len(sent)) if sent.startswith("salary", at)][number]
        assert place_in(sent, text, place) == wanted
    assert place_in(sent, text, text.index("AS count") + 3) == sent.index("count")
    assert place_in(sent, "SELECT nothing", 7) == -1
    assert place_in(sent, text, -1) == -1


def test_a_select_around_a_grouped_one_has_its_columns_in_their_order(context: Context) -> None:
    sql = (
        "SELECT n, sex, n / SUM(n) OVER () AS share, n > 5 AS many FROM "
        "(SELECT sex, COUNT(*) AS n FROM public.people GROUP BY sex) AS t WHERE sex <> 'M' "
        "ORDER BY n DESC LIMIT 3 WITH ERROR 9"
    )
    question = DataQuestion(parse_statement(sql), context)
    assert [(field.name, field.type) for field in question.fields()] == [
        ("n", types.FLOAT8.oid),
        ("sex", types.TEXT.oid),
        ("share", types.FLOAT8.oid),
        ("many", types.BOOL.oid),
    ]
    assert {row[1] for row in question.run(()).rows} <= {"F", "other"}
