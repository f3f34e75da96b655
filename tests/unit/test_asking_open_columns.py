"""Open columns as people use them: naming keys by asking, reading groups, and what is refused."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pandas as pd
import pytest
from typer.testing import CliRunner

import bursar
from bursar.cli.app import app
from bursar.cli.shell import described
from bursar.config import load
from bursar.core.ledger import Ledger
from bursar.errors import (
    AnalystError,
    BudgetError,
    BursarError,
    ConfigError,
    GoalError,
    QueryError,
    SourceError,
    Unsupported,
)
from bursar.planner.goals import Wanted
from bursar.remote import _column
from bursar.session import Bursar
from bursar.sources import source_of
from bursar.testing import memory_ledger
from harness.configs import towns
from harness.small import Silence

pytestmark = pytest.mark.thinned(2)

CONFIG = (
    towns(epsilon=100)
    + """
[columns.city]
domain = "open"
capacity = 6
[columns.age]
lower = 0
upper = 9
"""
)


def rows() -> list[tuple[str | None, int]]:
    rng = Random(7)
    texts = ["Rome"] * 30 + ["Oslo"] * 20 + ["Bern"] * 10 + ["Kiel", "Nice", "Metz", "Graz", "Brno", "\u00c5land"]
    return [(rng.choice([*texts, None]), rng.randint(0, 9)) for _ in range(400)]


ROWS = rows()


def stage(folder: Path, extra: str = "", change: tuple[str, str] = ("", ""), ledger: Ledger | None = None) -> Bursar:
    (folder / "bursar.toml").write_text(CONFIG.replace(*change) + extra if change[0] else CONFIG + extra)
    pd.DataFrame(ROWS, columns=["city", "age"]).to_csv(folder / "towns.csv", index=False)
    config = load(folder / "bursar.toml")
    source = source_of(config)
    kept = memory_ledger(config, source, Silence()) if ledger is None else ledger
    return Bursar(config, kept, open_source=source, randomness=Silence())


@pytest.fixture
def db(tmp_path: Path) -> Bursar:
    return stage(tmp_path)


def counted(db: Bursar, sql: str, **goal: Any) -> dict[Any, float]:
    answer = db.query(sql, **(goal or {"within": 5}))
    return {
        label[0] if label else "all": round(value[0], 6)
        for label, value in zip(answer.labels, answer.values, strict=True)
    }


def keys(db: Bursar) -> list[str]:
    return [key.text for key in db.kernel.known_keys()["city"]]


def test_a_text_is_told_apart_once_it_is_named(db: Bursar) -> None:
    true = Counter(text for text, _ in ROWS)
    assert counted(db, "SELECT city, COUNT(*) FROM people GROUP BY city") == {
        "other": 400 - true[None],
        None: true[None],
    }
    assert counted(db, "SELECT COUNT(*) FROM people WHERE city = 'Rome'") == {"all": true["Rome"]}
    assert keys(db) == ["Rome"]
    groups = counted(db, "SELECT city, COUNT(*) FROM people GROUP BY city")
    assert groups == {"Rome": true["Rome"], "other": 400 - true["Rome"] - true[None], None: true[None]}


def test_answers_agree_with_duckdb_whatever_was_named_before(db: Bursar) -> None:
    people = pd.DataFrame(ROWS, columns=["city", "age"])  # noqa: F841
    questions = [
        "SELECT COUNT(*) FROM people WHERE city = 'Oslo' AND age < 5",
        "SELECT COUNT(*) FROM people WHERE city <> 'Rome'",
        "SELECT COUNT(*) FROM people WHERE city IN ('Rome', 'Bern') OR age = 3",
        "SELECT COUNT(*) FROM people WHERE city NOT IN ('Bern', 'nowhere')",
        "SELECT age, COUNT(*) FROM people WHERE city = '\u00c5land' GROUP BY age ORDER BY age",
        "SELECT COUNT(*) FILTER (WHERE city = 'Bern') FROM people WHERE age > 2",
        "SELECT SUM(CASE WHEN city = 'Rome' THEN 1 ELSE 0 END) FROM people",
        "SELECT COUNT(DISTINCT city) FROM people",
        "SELECT COUNT(*) FROM people WHERE city IS NULL",
    ]
    for seed in range(2):
        for question in Random(seed).sample(questions, len(questions)):
            true = sorted(line[-1] for line in duckdb.sql(question).fetchall())
            answer = db.query(question, within=3)
            found = sorted(round(value[0], 6) for value in answer.values if value[0] or len(true) == 1)
            assert found == true, question


def test_free_answers_of_old_rows_stay_free(db: Bursar) -> None:
    db.query("SELECT city, COUNT(*) FROM people GROUP BY city", within=5)
    spent = db.kernel.spent()
    db.query("SELECT COUNT(*) FROM people WHERE city = 'Rome'", within=5)
    after = db.kernel.spent()
    assert after > spent
    assert db.query("SELECT COUNT(*) FROM people WHERE city IS NOT NULL", within=5).free
    assert db.query("SELECT COUNT(*) FROM people WHERE city = 'Rome'", within=5).free
    assert db.kernel.spent() == after


def test_explain_and_refusals_name_nothing(tmp_path: Path) -> None:
    db = stage(tmp_path, change=("epsilon = 100", "epsilon = 1"))
    sql = "SELECT COUNT(*) FROM people WHERE city = 'Rome'"
    shown = db.explain(sql, within=5)
    assert keys(db) == []
    assert db.run(f"EXPLAIN {sql} WITH ERROR 5", Wanted()) is not None
    with pytest.raises(BudgetError):
        db.query(sql, within=1)
    with pytest.raises(BudgetError):
        db.query(sql, within=5, max_cost=1e-9)
    with pytest.raises(QueryError):
        db.query("SELECT COUNT(*) FROM people WHERE city = 'Rome' AND town = 'x'", within=5)
    assert keys(db) == []
    answer = db.query(sql, within=5)
    assert shown.chosen is not None
    assert answer.charge == pytest.approx(shown.offers[shown.chosen].price)


def test_a_key_asks_again_for_nothing(db: Bursar) -> None:
    first = db.query("SELECT COUNT(*) FROM people WHERE city = 'Rome'", within=5, key="k")
    again = db.query("SELECT COUNT(*) FROM people WHERE city = 'Rome'", within=5, key="k")
    assert first.values == again.values
    assert keys(db) == ["Rome"]


def test_questions_of_a_batch_do_not_share_a_cell(db: Bursar) -> None:
    batch = db.batch([f"SELECT COUNT(*) FROM people WHERE city = '{text}'" for text in ("Rome", "Oslo")], within=5)
    true = Counter(text for text, _ in ROWS)
    assert [round(answer.value, 6) for answer in batch.answers] == [true["Rome"], true["Oslo"]]
    assert keys(db) == ["Rome", "Oslo"]


def test_cells_run_out(db: Bursar) -> None:
    db.query("SELECT COUNT(*) FROM people WHERE city IN ('a', 'b', 'c', 'd', 'e', 'f')", within=5)
    with pytest.raises(
        QueryError, match="city has cells for 6 texts, and all of them are taken: 'Rome' cannot be told"
    ):
        db.query("SELECT COUNT(*) FROM people WHERE city = 'Rome'", within=5)
    db.query("SELECT COUNT(*) FROM people WHERE city = 'f'", within=5)


def test_the_data_owner_names_keys(db: Bursar) -> None:
    assert db.owner.name_keys("city", [" Rome ", "Oslo"]) == ("Rome", "Oslo")
    assert db.owner.name_keys("city", []) == ("Rome", "Oslo")
    assert db.kernel.spent() == 0
    assert [line.kind for line in db.log()][-2:] == ["told apart in city: Rome", "told apart in city: Oslo"]
    with pytest.raises(ConfigError, match="age is no open column of people"):
        db.owner.name_keys("age", ["1"])
    with pytest.raises(QueryError, match="'other' cannot be told apart"):
        db.owner.name_keys("city", ["other"])
    with pytest.raises(AnalystError, match="only the data owner may name keys"):
        db.as_analyst("ana").owner.name_keys("city", ["Bern"])


def test_columns_show_the_keys(db: Bursar) -> None:
    db.query("SELECT COUNT(*) FROM people WHERE city = 'Rome'", within=5)
    column = db.columns().columns["city"]
    plain: Any = column.to_json()
    assert plain["kind"] == "open"
    assert plain["values"] == ["Rome"]
    assert _column(plain) == column


@pytest.mark.parametrize("policy", ["independent", "shared"])
def test_analysts_see_their_own_keys_and_the_owners(tmp_path: Path, policy: str) -> None:
    extra = f'[analysts]\npolicy = "{policy}"\n[analysts.shares]\nana = 0.5\nbob = 0.4\n'
    owner = stage(tmp_path, extra)
    owner.owner.declare_shares()
    ana, bob = owner.as_analyst("ana"), owner.as_analyst("bob")
    owner.owner.name_keys("city", ["Bern"])
    ana.query("SELECT COUNT(*) FROM people WHERE city = 'Rome'", within=20)
    bob.query("SELECT COUNT(*) FROM people WHERE city = 'Oslo'", within=20)
    question = "SELECT city, COUNT(*) FROM people GROUP BY city"
    assert [*counted(ana, question, within=20)] == ["Bern", "Rome", "other", None]
    assert [*counted(bob, question, within=20)] == ["Bern", "Oslo", "other", None]
    assert owner.columns().columns["city"].to_json()["values"] == ["Bern", "Rome", "Oslo"]
    true = Counter(text for text, _ in ROWS)
    assert counted(bob, "SELECT COUNT(*) FROM people WHERE city = 'Rome'", within=20) == {"all": true["Rome"]}


def test_where_the_log_is_for_all_so_are_the_keys(tmp_path: Path) -> None:
    owner = stage(tmp_path, '[analysts]\nlog = "all"\n')
    owner.as_analyst("ana").query("SELECT COUNT(*) FROM people WHERE city = 'Rome'", within=20)
    groups = counted(owner.as_analyst("bob"), "SELECT city, COUNT(*) FROM people GROUP BY city")
    assert [*groups] == ["Rome", "other", None]


def test_what_needs_declared_values_leaves_open_columns_out(db: Bursar) -> None:
    assert len(db.thresholds(k=1, r=1, within=20).labels) == 11
    with pytest.raises(QueryError, match="thresholds are about columns whose values are declared, and city is open"):
        db.thresholds(k=1, r=1, features=["city"], within=20)
    with pytest.raises(
        QueryError, match="synthetic tables are made of columns whose values are declared, and city is open"
    ):
        db.synthesize(spend=1.0)


@pytest.mark.parametrize(
    ("section", "match"),
    [
        ('domain = "closed"\ncapacity = 6', 'columns.city.domain cannot be "closed"'),
        ('domain = "open"', "capacity"),
        ("capacity = 6", "domain"),
        ('domain = "open"\ncapacity = 0', "must lie between 1 and 10000"),
        ('domain = "open"\ncapacity = 6\nvalues = ["a"]', "belong to different kinds of column"),
        ('domain = "open"\ncapacity = 6\noutside = "clip"', "outside"),
        ('domain = "open"\ncapacity = 6\nnull = { as = "Rome" }', "must be one of the declared values"),
        ('domain = "open"\ncapacity = 6\n[columns.city.levels]\ncountry = { "I" = ["Rome"] }', "only listed values"),
    ],
)
def test_wrong_configs_are_refused(tmp_path: Path, section: str, match: str) -> None:
    (tmp_path / "bursar.toml").write_text(CONFIG.replace('domain = "open"\ncapacity = 6', section))
    with pytest.raises(ConfigError, match=match):
        load(tmp_path / "bursar.toml")


def test_the_same_ledger_goes_on_after_a_checkpoint_and_in_a_new_version(tmp_path: Path) -> None:
    db = stage(tmp_path)
    db.query("SELECT COUNT(*) FROM people WHERE city = 'Rome'", within=5)
    db.owner.checkpoint()
    again = stage(tmp_path, ledger=db.ledger)
    assert keys(again) == ["Rome"]
    assert again.query("SELECT COUNT(*) FROM people WHERE city = 'Rome'", within=5).free
    again.owner.verify()
    again.owner.declare_version()
    answer = again.query("SELECT COUNT(*) FROM people WHERE city = 'Rome'", within=5)
    assert not answer.free
    assert round(answer.value, 6) == Counter(text for text, _ in ROWS)["Rome"]


def test_a_ledger_keeps_the_capacity(tmp_path: Path) -> None:
    from bursar import create

    stage(tmp_path)
    create(tmp_path / "bursar.toml").close()
    (tmp_path / "bursar.toml").write_text(CONFIG.replace("capacity = 6", "capacity = 7"))
    with pytest.raises(BursarError, match="what differs: columns"):
        bursar.open(tmp_path / "bursar.toml")


def test_a_source_that_is_a_server_is_refused_at_opening(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "towns.duckdb")) as connection:
        connection.execute("CREATE TABLE people (city VARCHAR, age INTEGER)")
    text = CONFIG.replace('path = "towns.csv"', 'url = "duckdb:towns.duckdb"')
    (tmp_path / "bursar.toml").write_text(text)
    with pytest.raises(SourceError, match="column city is open; open columns are read from files and data frames"):
        bursar.create(tmp_path / "bursar.toml")


def test_questions_about_very_many_groups_are_planned(db: Bursar) -> None:
    db.owner.name_keys("city", ["Rome", "Oslo", "Bern"])
    groups = db.query("SELECT city, age, COUNT(*) FROM people GROUP BY city, age", within=30)
    assert len(groups.labels) == 5 * 11
    again = db.query("SELECT city, COUNT(*) FROM people GROUP BY city", within=300)
    assert len(again.labels) == 5


def test_reports_call_cells_by_their_texts(db: Bursar) -> None:
    db.query("SELECT COUNT(*) FROM people WHERE city = 'Rome'", within=5)
    assert db.engine.cells["city"].label(0) == "Rome"
    assert db.engine.cells["city"].label(1) == "key 2"
    assert db.engine.cells.digest == db.config.domain.digest
    assert "Rome" in str(db.spending())
    assert db.measurements() is not None


def test_shells_describe_open_columns(db: Bursar) -> None:
    assert described(db.columns().columns["city"]) == "open, 0 of its texts told apart; other; NULL"
    db.owner.name_keys("city", [f"t{n}" for n in range(6)])
    assert described(db.columns().columns["city"]).startswith("open, 6 of its texts told apart: 't0', 't1', ")


# -- looking for texts -------------------------------------------------------------------------------------------------


def with_delta(folder: Path, extra: str = "") -> Bursar:
    return stage(folder, extra, change=("epsilon = 100", "epsilon = 20\ndelta = 1e-6"))


def test_texts_that_enough_people_have_are_found_and_told_apart(tmp_path: Path) -> None:
    db = with_delta(tmp_path)
    true = Counter(text for text, _ in ROWS)
    planned = db.owner.explain_discovery("city", spend=0.05)
    assert planned.texts is None
    assert "nobody" not in str(planned)
    assert "every other time" in str(planned)
    assert db.kernel.spent() == 0
    found = db.owner.discover("city", spend=0.05)
    assert found.texts is not None
    assert set(found.texts) == {text for text, count in true.items() if text is not None and count >= planned.even}
    assert "Rome" in found.texts
    assert (found.rho, found.delta) == (planned.rho, planned.delta)
    assert found.rho <= 0.05
    assert "rarer ones are in other" in str(found)
    groups = counted(db, "SELECT city, COUNT(*) FROM people GROUP BY city")
    assert [*groups] == [*found.texts, "other", None]
    answer = db.query("SELECT city, COUNT(*) FROM people GROUP BY city", within=5)
    assert f"one that {found.even} have was found every other time, one that {found.likely} have" in str(answer.remarks)
    analyst = counted(db.as_analyst("ana"), "SELECT city, COUNT(*) FROM people GROUP BY city")
    assert [*analyst] == [*found.texts, "other", None]
    assert [line.kind for line in db.log()][1] == "looked for texts in city"
    assert any(portion.name == "texts that were looked for" for portion in db.spending().by_way)
    again = db.owner.explain_discovery("city", spend=0.05)
    assert again.delta == pytest.approx(planned.delta / 2, rel=0.1)


def test_texts_are_looked_for_among_some_rows(tmp_path: Path) -> None:
    db = with_delta(tmp_path)
    planned = db.owner.explain_discovery("city", spend=0.05, where="age < 3")
    assert "among rows where age < 3 costs" in str(planned)
    found = db.owner.discover("city", spend=0.05, where="age < 3")
    assert found.texts is not None
    true = Counter(text for text, age in ROWS if age is not None and age < 3)
    assert set(found.texts) == {text for text, count in true.items() if text is not None and count >= planned.even}
    assert db.log()[1].kind == "looked for texts in city among some rows"
    assert db.log()[1].purpose == "looked for texts of city where age < 3"
    answer = db.query("SELECT city, COUNT(*) FROM people GROUP BY city", within=5)
    assert "WITH DISCOVERY" in str(answer.remarks)  # those of all rows were not looked for


@pytest.mark.parametrize(
    ("where", "match"),
    [
        ("age < 3 GROUP BY age", "and no more"),
        ("age < 3 LIMIT 1", "and no more"),
        ("age < 3 WITH ERROR 5", "and no more"),
        ("age < 3 UNION ALL SELECT COUNT(*) FROM people", "and no more"),
        ("1 = 1", "holds for all rows"),
        ("age < 3 AND age > 5", "no rows for which this can hold"),
        ("city = 'Rome'", "try: bursar keys city 'Rome'"),
        ("nothing = 3", "nothing"),
    ],
)
def test_what_is_no_condition_on_rows_is_refused(tmp_path: Path, where: str, match: str) -> None:
    db = with_delta(tmp_path)
    with pytest.raises(QueryError, match=match):
        db.owner.discover("city", spend=0.05, where=where)
    assert len(db.log()) == 1


def test_nothing_found_is_said(tmp_path: Path) -> None:
    db = with_delta(tmp_path)
    assert str(db.owner.discover("city", spend=1e-5)).startswith("no text was found")


def test_what_cannot_be_looked_for(tmp_path: Path, db: Bursar) -> None:
    with pytest.raises(Unsupported, match="a budget of epsilon alone rules out"):
        db.owner.discover("city", spend=1.0)
    other = with_delta(tmp_path)
    for wrong in ({"spend": 0.0}, {"spend": float("nan")}, {"spend": 1.0, "delta": 0.0}):
        with pytest.raises(QueryError, match="lies above 0"):
            other.owner.discover("city", **wrong)
    with pytest.raises(QueryError, match="age is no open column"):
        other.owner.discover("age", spend=1.0)
    with pytest.raises(BudgetError, match="delta_keys"):
        other.owner.discover("city", spend=1.0, delta=1e-3)
    with pytest.raises(BudgetError):
        other.owner.discover("city", spend=900.0)
    with pytest.raises(AnalystError, match="only the data owner may look for texts"):
        other.as_analyst("ana").owner.discover("city", spend=1.0)
    with pytest.raises(GoalError, match="noise scale"):
        other.owner.discover("city", spend=1e-20)
    assert keys(other) == []
    rho = stage(tmp_path, change=("epsilon = 100", "rho = 2.0"))
    with pytest.raises(ConfigError, match="the budget keeps no delta_keys"):
        rho.owner.discover("city", spend=1.0)


def test_under_shares_nobody_looks_for_texts(tmp_path: Path) -> None:
    db = with_delta(tmp_path, "[analysts.shares]\nana = 0.5\n")
    db.owner.declare_shares()
    with pytest.raises(Unsupported, match="divided into shares no texts are looked for"):
        db.owner.discover("city", spend=1.0)
    with pytest.raises(Unsupported, match="divided into shares no texts are looked for"):
        db.as_analyst("ana").query("SELECT city, COUNT(*) FROM people GROUP BY city WITH ERROR 5 DISCOVERY")


@pytest.mark.parametrize(
    ("budget", "keys_"),
    [
        ("epsilon = 1.0", 0.0),
        ("epsilon = 1.0\ndelta = 1e-6", 1e-7),
        ("epsilon = 1.0\ndelta = 1e-6\ndelta_keys = 5e-7", 5e-7),
        ("epsilon = 1.0\ndelta = 1e-6\ndelta_keys = 0", 0.0),
        ('epsilon = 1.0\ndelta = 1e-6\naccountant = "rdp"', 1e-7),
        ("rho = 0.1", 0.0),
        ("rho = 0.1\ndelta_keys = 1e-8", 1e-8),
    ],
)
def test_a_tenth_of_delta_is_kept_where_a_column_is_open(tmp_path: Path, budget: str, keys_: float) -> None:
    (tmp_path / "bursar.toml").write_text(CONFIG.replace("epsilon = 100", budget))
    assert load(tmp_path / "bursar.toml").budget.delta_keys == pytest.approx(keys_)
    declared = CONFIG.replace('domain = "open"\ncapacity = 6', 'values = ["Rome"]').replace("epsilon = 100", budget)
    (tmp_path / "bursar.toml").write_text(declared)
    named = keys_ if "delta_keys" in budget else 0.0  # texts may have been looked for under an earlier config
    assert load(tmp_path / "bursar.toml").budget.delta_keys == pytest.approx(named)


@pytest.mark.parametrize(
    ("budget", "match"),
    [
        ("epsilon = 1.0\ndelta_keys = 1e-7", "a budget of epsilon alone rules out"),
        ("epsilon = 1.0\ndelta = 1e-6\ndelta_keys = 1e-6", "must be a part of delta"),
        ("rho = 0.1\ndelta_keys = -1", "must be a part of delta"),
        ('rho = 0.1\ndelta_keys = "x"', "must be a number"),
    ],
)
def test_wrong_parts_of_delta_are_refused(tmp_path: Path, budget: str, match: str) -> None:
    (tmp_path / "bursar.toml").write_text(CONFIG.replace("epsilon = 100", budget))
    with pytest.raises(ConfigError, match=match):
        load(tmp_path / "bursar.toml")


def test_commands(tmp_path: Path) -> None:
    with_delta(tmp_path)
    config = str(tmp_path / "bursar.toml")
    bursar.create(config).close()
    run = CliRunner()
    assert run.invoke(app, ["keys", "city", "-d", config]).output.strip() == "no text of city is told apart yet"
    assert run.invoke(app, ["keys", "city", "Rome", "Oslo", "-d", config]).output.split() == ["Rome", "Oslo"]
    told = run.invoke(app, ["discover", "city", "--spend", "3", "--explain", "-d", config]).output
    assert "every other time" in told
    found = run.invoke(app, ["discover", "city", "--spend", "3", "-d", config]).output
    assert "of city more can be told apart from now on" in found


@pytest.mark.parametrize(
    ("extra", "match"),
    [
        ('seed = { fraction = 0.25, columns = ["age", "city"] }', "city is open, and a seed is about columns"),
        (
            'seed = { fraction = 0.2, basis = "best", questions = ["SELECT COUNT(*) FROM people WHERE city IS NULL"] }',
            "city is open, and a seed is about columns",
        ),
    ],
)
def test_a_seed_is_about_declared_columns(tmp_path: Path, extra: str, match: str) -> None:
    text = f'{CONFIG}[analysts]\npolicy = "seeded-cache"\nshares = {{ ana = 0.5 }}\n{extra}\n'
    (tmp_path / "bursar.toml").write_text(text)
    with pytest.raises(ConfigError, match=match):
        load(tmp_path / "bursar.toml")


@pytest.mark.parametrize("preset", ["cachedp", "cachedp-profile", "pioneer"])
def test_trees_over_all_values_know_no_open_columns(tmp_path: Path, preset: str) -> None:
    (tmp_path / "bursar.toml").write_text(f'preset = "{preset}"\n{CONFIG}')
    with pytest.raises(ConfigError, match="knows no open columns"):
        load(tmp_path / "bursar.toml")


@pytest.mark.parametrize("preset", ["boost", "apex", "pmw"])
def test_other_published_systems_do(tmp_path: Path, preset: str) -> None:
    db = stage(tmp_path, change=("dataset =", f'preset = "{preset}"\ndataset ='))
    true = Counter(text for text, _ in ROWS)
    assert counted(db, "SELECT COUNT(*) FROM people WHERE city = 'Rome'", within=50)["all"] == pytest.approx(
        true["Rome"], abs=50
    )
    assert [*counted(db, "SELECT city, COUNT(*) FROM people GROUP BY city", within=50)] == ["Rome", "other", None]
