"""Levels and views in a config: read exactly, or refused with the line, the reason and what would work."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import bursar
from bursar.compile import Level
from bursar.config import load
from bursar.core.domain import Categories
from bursar.curate.check import check
from bursar.errors import BursarError, ConfigError, QueryError, SourceError
from harness.configs import head

LEVELS = (
    head(10.0)
    + """\
[columns.age]
lower = 0
upper = 9

[columns.region]
values = ["FR", "DE", "JP"]

[columns.region.levels]
country = { "Europe" = ["FR", "DE"], "Asia" = ["JP"] }
"""
)
GROUPS = 'country = { "Europe" = ["FR", "DE"], "Asia" = ["JP"] }'
REST = 'half = { "west" = ["FR"], east = ["DE", "JP"] }'


def levels(lines: str = f"{GROUPS}\n{REST}", more: str = "") -> str:
    return LEVELS.split("country")[0] + lines + "\n" + more


def write(folder: Path, text: str) -> Path:
    path = folder / "people.toml"
    path.write_text(text, encoding="utf-8")
    return path


def refusal(folder: Path, text: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load(write(folder, text))
    return caught.value


def test_levels_are_read(tmp_path: Path) -> None:
    config = load(write(tmp_path, levels()))
    region = config.domain["region"]
    assert isinstance(region, Categories)
    assert config.levels == (
        Level(name="country", column=region, groups=(("Europe", ("FR", "DE")), ("Asia", ("JP",)))),
        Level(name="half", column=region, groups=(("west", ("FR",)), ("east", ("DE", "JP")))),
    )
    assert config.domain.names == ("age", "region")
    assert config.columns.names == ("age", "region", "country", "half")


def test_levels_change_nothing_that_the_ledger_is_bound_to(tmp_path: Path) -> None:
    plain = load(write(tmp_path, levels("").replace("[columns.region.levels]", "")))
    assert plain.charter == load(write(tmp_path, levels())).charter
    assert plain.columns == plain.domain


@pytest.mark.parametrize(
    ("lines", "line", "reason", "hint"),
    [
        ('country = "Europe"', 22, "columns.region.levels.country must be a section", GROUPS),
        ("country = {}", 22, "columns.region.levels.country has no group", GROUPS),
        ('country = { Europe = "FR" }', 22, "country.Europe must be a list", GROUPS),
        ('country = { Europe = ["FR", "DE"], Asia = [] }', 22, "country.Asia is empty", "leave it out"),
        ('country = { Europe = ["FR", "DE"] }', 22, 'country has no group for "JP"', "every value"),
        ('country = { Europe = ["FR"] }', 22, 'country has no group for "DE", and 1 more', "every value"),
        ('country = { Europe = ["FR", "fr2"] }', 22, 'country.Europe[1] is "fr2", which is not among', 'mean "FR"?'),
        ("country = { Europe = [3] }", 22, "country.Europe[0] is 3, which is not among", "declared values of region"),
        ("country = { Europe = [[]] }", 22, "country.Europe[0] is a list, which is not among", "declared values"),
        ('country = { Europe = ["FR", "DE", "FR"] }', 22, 'repeats "FR", which is in "Europe"', "exactly one group"),
        ('country = { a = ["FR", "DE"], b = ["JP", "DE"] }', 22, 'repeats "DE", which is in "a"', "exactly one group"),
        ('country = { a = ["FR", "DE"], other = ["JP"] }', 22, '"other" is what values of region', "another name"),
        ('country = { " a" = ["FR", "DE", "JP"] }', 22, "the name of a group must be printable", ""),
        ('" b" = { a = ["FR", "DE", "JP"] }', 22, "the name of a level must be printable", ""),
        (f'{GROUPS}\nAGE = {{ a = ["FR", "DE", "JP"] }}', 23, "AGE has the name of columns.age", "name of its own"),
        (f'{GROUPS}\nCountry = {{ a = ["FR", "DE", "JP"] }}', 23, "has the name of columns.region.levels.country", ""),
        (f"{GROUPS}\n[columns.age.levels]\nx = {{ a = [1] }}", 23, "only listed values have levels", "FLOOR(x / 10)"),
        (f"{GROUPS}\n[columns.sex]\nvalues = ['F']\nlevels = 3", 25, "columns.sex.levels must be a section", ""),
        (f"{GROUPS}\n[columns.sex]\nvalues = ['F']\nlevel = 3", 25, "columns.sex.level is not known", "mean levels?"),
    ],
)
def test_a_mistake_is_found_where_it_is(tmp_path: Path, lines: str, line: int, reason: str, hint: str) -> None:
    found = refusal(tmp_path, levels(lines))
    assert found.line == line
    assert reason in str(found)
    assert hint in str(found)


def test_values_are_told_apart_by_type(tmp_path: Path) -> None:
    flags = "[columns.flag]\nvalues = [true, false]\nlevels = { kind = { a = [true], b = [false] } }\n"
    assert load(write(tmp_path, levels(more=flags))).levels[2].groups == (("a", (True,)), ("b", (False,)))
    assert "is 1, which is not among" in str(refusal(tmp_path, levels(more=flags.replace("a = [true]", "a = [1]"))))


def test_seeds_can_ask_about_levels(tmp_path: Path) -> None:
    asked = '"SELECT country, COUNT(*) FROM people GROUP BY country"'
    seed = f'seed = {{ fraction = 0.2, basis = "best", questions = [{asked}] }}'
    analysts = f'[analysts]\npolicy = "seeded-cache"\nshares = {{ a = 0.5 }}\n{seed}\n'
    assert load(write(tmp_path, levels(more=analysts))).analysts.seed is not None
    assert "there is no column contry" in str(refusal(tmp_path, levels(more=analysts.replace("country", "contry"))))


def test_a_question_about_a_level_is_answered_and_remembered(tmp_path: Path) -> None:
    rows = "".join(f"{i % 10},{('FR', 'DE', 'JP', 'XX')[i % 4]}\n" for i in range(400))
    (tmp_path / "people.csv").write_text("age,region\n" + rows)
    with bursar.create(write(tmp_path, levels())) as db:
        answer = db.query("SELECT country, COUNT(*) AS n FROM people GROUP BY country", within=20, confidence=0.999)
        assert [labels for (labels,) in answer.labels] == ["Europe", "Asia", "other", None]
        assert abs(answer.values[0][0] - 200) <= 40
        before = db.budget()
        with pytest.raises(QueryError, match="there is no column contry; did you mean country"):
            db.query("SELECT COUNT(*) FROM people WHERE contry = 'Europe'", within=20)
        assert db.budget() == before
        assert db.query("SELECT COUNT(*) FROM people WHERE country = 'Europe'", within=30).charge == 0
        saved = db.spending(saved=True).saved
        assert saved is not None
        assert saved.questions == 2  # the free one is counted


JOINED = "SELECT person, sex, cost FROM visits JOIN people USING (person)"
VIEW = f"""\
dataset = "visits"

[source]
path = "clinic.duckdb"
table = "visits"
max_rows = 1000
view = "{JOINED}"

[privacy]
unit = {{ column = "person" }}
max_contributions = 2

[budget]
epsilon = 100.0

[columns.sex]
values = ["F", "M"]

[columns.cost]
lower = 0
upper = 9
"""


def test_a_view_is_read(tmp_path: Path) -> None:
    assert load(write(tmp_path, VIEW)).view == JOINED
    several = VIEW.replace(f'"{JOINED}"', f'"""\n{JOINED.replace(" FROM", chr(10) + "FROM")}\n"""')
    assert load(write(tmp_path, several)).view == JOINED.replace(" FROM", "\nFROM") + "\n"
    assert load(write(tmp_path, VIEW.replace(f'view = "{JOINED}"', ""))).view is None


@pytest.mark.parametrize(
    "view",
    [
        "SELECT person, sex, max(cost) AS cost FROM visits JOIN people USING (person) GROUP BY person, sex",
        "SELECT id AS person, sex, count(*) AS cost FROM visits GROUP BY id, sex",
        "SELECT DISTINCT person, sex, cost FROM visits JOIN people USING (person)",
        "SELECT DISTINCT ON (person) person, sex, cost FROM visits ORDER BY person, cost",
        "SELECT person, sex, row_number() OVER (PARTITION BY person ORDER BY day) AS cost FROM visits",
        "WITH a AS (SELECT Person, sum(cost) AS cost FROM visits GROUP BY Person) FROM a JOIN people USING (person)",
        "FROM visits",
        "SELECT person, sex, CASE WHEN cost > 3 THEN 1 ELSE 0 END AS cost FROM visits v LEFT JOIN people p "
        "ON v.person = p.person AND lower(trim(p.sex)) IN ('f', 'm') WHERE NOT v.cost IS NULL AND v.cost < 9",
        "SELECT person, sex, CAST(round(price * 1.5, 0) AS INTEGER) AS cost FROM visits JOIN prices USING (code)",
        "SELECT person, sex, year(day) - 2000 AS cost FROM visits WHERE day < DATE '2024-01-01' + INTERVAL 1 DAY",
        "SELECT person, sex, cost FROM visits UNION ALL SELECT person, sex, cost FROM old_visits",
        "SELECT person, sex, cost FROM (SELECT person, cost FROM visits WHERE cost > 1) JOIN people USING (person)",
        "SELECT person, sex, cost FROM visits SEMI JOIN people USING (person)",
        "SELECT person, sex, cost FROM visits QUALIFY row_number() OVER (PARTITION BY person ORDER BY cost) <= 3",
        "SELECT * EXCLUDE (name), 'F' AS sex FROM main.visits",
    ],
)
def test_views_that_can_keep_the_promise_are_taken(tmp_path: Path, view: str) -> None:
    assert load(write(tmp_path, VIEW.replace(JOINED, view))).view == view


@pytest.mark.parametrize(
    ("view", "reason"),
    [
        (f"{JOINED} LIMIT 10", "LIMIT makes the rows of one person depend on those of others"),
        (f"{JOINED} FETCH FIRST 10 ROWS ONLY", "LIMIT makes the rows"),
        (f"{JOINED} OFFSET 3", "OFFSET makes the rows"),
        (f"{JOINED} USING SAMPLE 10%", "sampling makes the rows"),
        (f"{JOINED} WHERE random() < 0.5", "RANDOM makes the rows"),
        ("SELECT person, sex, cost FROM visits POSITIONAL JOIN people", "a POSITIONAL JOIN puts rows"),
        ("SELECT person, sex, rowid AS cost FROM visits", "rowid says how many rows of others there are"),
        ("SELECT person, sex, rank() OVER (ORDER BY cost) AS cost FROM visits", "unless it is PARTITION BY person"),
        (f"{JOINED} WHERE cost > (SELECT avg(cost) FROM visits)", "AVG is over rows of others unless"),
        ("SELECT sex, max(person) AS person, 1 AS cost FROM people GROUP BY sex", "MAX is over rows of others unless"),
        ("SELECT DISTINCT ON (sex) person, sex, cost FROM visits", "DISTINCT ON chooses among rows of others"),
        (f"{JOINED} WHERE cost > (SELECT cost FROM prices)", "a sub-query outside of FROM"),
        (f"{JOINED} WHERE room IN (SELECT room FROM visits)", "a sub-query outside of FROM"),
        (f"{JOINED} WHERE EXISTS (SELECT 1 FROM visits v WHERE v.room = visits.room)", "a sub-query outside of FROM"),
        (f"{JOINED} WHERE room = ANY (SELECT room FROM visits)", "a sub-query outside of FROM"),
        ("SELECT person, sex, (SELECT 1 FROM visits) AS cost FROM people", "a sub-query outside of FROM"),
        (
            "SELECT person, sex, cost FROM visits JOIN people ON people.sex = (SELECT 'F')",
            "a sub-query outside of FROM",
        ),
        ("SELECT person, sex, cost FROM visits, LATERAL (SELECT 1)", "a sub-query outside of FROM"),
        ("SELECT person, sex, cost FROM read_csv('people.csv')", "in FROM is no table of the file"),
        ("SELECT person, sex, cost FROM query('SELECT 1')", "QUERY in FROM is no table of the file"),
        ("SELECT person, sex, estimated_size AS cost FROM people, duckdb_tables()", "in FROM is no table of the file"),
        ("SELECT person, sex, cost FROM visits, information_schema.tables", "tells about tables"),
        ("SELECT person, sex, cost FROM visits, sqlite_master", "tells about tables"),
        ("SELECT person, sex, nextval('numbers') AS cost FROM visits", "NEXTVAL is not among what a view may use"),
        ("SELECT person, sex, kurtosis(cost) AS cost FROM visits", "KURTOSIS is over rows of others"),
        ("SELECT person, sex, own_macro(cost) AS cost FROM visits", "OWN_MACRO is not among what a view may use"),
        ("SELECT person, sex, current_date AS cost FROM visits", "is not among what a view may use"),
        ("SELECT person, sex, uuid() AS cost FROM visits", "is not among what a view may use"),
        ("SELECT person, sex, unnest([1, 2]) AS cost FROM visits", "is not among what a view may use"),
        ("SELECT person, sex, cost FROM visits ASOF JOIN people USING (person, day)", "ASOF JOIN does not say"),
        ("SELECT person, sex, cost FROM visits NATURAL JOIN people", "NATURAL JOIN does not say"),
        ("SELECT person, sex, cost FROM visits EXCEPT SELECT person, sex, cost FROM people", "is not among"),
        ("PIVOT visits ON sex USING sum(cost)", "it must be one SELECT"),
        ("SELECT person, sex, kurtosis(cost) AS cost FROM visits GROUP BY person, sex", "KURTOSIS is not among"),
        ("WITH RECURSIVE a AS (SELECT 1 AS person UNION ALL SELECT person FROM a) FROM a", "WITH RECURSIVE"),
        ("SELEC", "the view cannot be read: Parser Error"),
        ("DROP TABLE people", "the view cannot be read: it must be one SELECT"),
        ("SELECT 1; SELECT 2", "the view cannot be read: it must be one SELECT"),
        ("", "source.view must be SQL in quotes"),
        ("SELECT\\u0000", "the view cannot be read"),
    ],
)
def test_a_view_that_breaks_the_promise_is_refused(tmp_path: Path, view: str, reason: str) -> None:
    found = refusal(tmp_path, VIEW.replace(JOINED, view))
    assert found.line == 7
    assert reason in str(found)


def test_a_view_that_cannot_be_looked_through_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise RecursionError

    monkeypatch.setattr("bursar.config.view.sqlglot.parse_one", fails)
    assert "cannot be checked; write it more plainly" in str(refusal(tmp_path, VIEW))


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (f'"{JOINED}"', "3", "source.view must be SQL in quotes, not 3"),
        ("clinic.duckdb", "clinic.csv", "source.view needs the tables of a DuckDB file"),
        ('{ column = "person" }\nmax_contributions = 2', '"row"', "privacy.unit must be a column of it"),
        ("[budget]", '[partition]\ncolumn = "cost"\nseal = "command"\n[budget]', "goes with data that are complete"),
    ],
)
def test_what_a_view_goes_together_with(tmp_path: Path, old: str, new: str, reason: str) -> None:
    found = refusal(tmp_path, VIEW.replace(old, new))
    assert found.line == 7
    assert reason in str(found)


def clinic(folder: Path) -> Path:
    with duckdb.connect(str(folder / "clinic.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE people AS SELECT i AS person, CASE WHEN i % 4 = 0 THEN 'F' ELSE 'M' END AS sex "
            "FROM range(100) AS people(i)"
        )
        connection.execute(
            "CREATE TABLE visits AS SELECT i % 50 AS person, i % 10 AS cost FROM range(400) AS visits(i)"
        )
    return write(folder, VIEW)


def test_a_view_is_asked_like_a_table(tmp_path: Path) -> None:
    with bursar.create(clinic(tmp_path)) as db:
        answer = db.query("SELECT COUNT(*) AS n FROM visits", within=10, confidence=0.9999)
        assert abs(answer.values[0][0] - 100) <= 30  # 50 people have visits, two of each are counted
        before = db.budget()
        with pytest.raises(QueryError, match="join tables behind this one, as a view"):
            db.query("SELECT COUNT(*) FROM visits JOIN people USING (person)", within=10)
        assert db.budget() == before
    with bursar.open(write(tmp_path, VIEW)) as db:
        assert db.query("SELECT COUNT(*) AS n FROM visits", within=10).charge == 0


def test_another_view_is_another_version(tmp_path: Path) -> None:
    bursar.create(clinic(tmp_path)).close()
    path = write(tmp_path, VIEW.replace(JOINED, f"{JOINED} WHERE cost < 5"))
    with bursar.open(path) as db, pytest.raises(BursarError, match="the data are not the ones that were declared"):
        db.query("SELECT COUNT(*) AS n FROM visits", within=10)


def test_a_view_without_the_unit_leaves_no_ledger(tmp_path: Path) -> None:
    clinic(tmp_path)
    path = write(tmp_path, VIEW.replace(JOINED, "SELECT sex, cost FROM visits JOIN people USING (person)"))
    with pytest.raises(SourceError, match="has no column person"):
        bursar.create(path)
    assert not load(path).ledger_path.exists()


def test_what_the_data_owner_promises_is_said(tmp_path: Path) -> None:
    found = check(load(write(tmp_path, VIEW)))
    assert found.promise["your part"].startswith("visits is a view, and all this holds only if each of its rows")
    assert "no other person's rows" in found.promise["your part"]
    assert "your part" not in check(load(write(tmp_path, VIEW.replace(f'view = "{JOINED}"', "")))).promise
