"""Questions that look for texts of open columns first: what they cost, what they say, and who may ask them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

import bursar
from bursar import open_keys
from bursar.answer import Answer
from bursar.cli.app import app
from bursar.compile.open_columns import Rarity
from bursar.config import load
from bursar.core.accounting import Found
from bursar.errors import AnalystError, BudgetError, ConfigError, QueryError, Unsupported
from bursar.planner.explain import Explanation
from bursar.planner.goals import Wanted
from bursar.session import Bursar
from bursar.sources import source_of
from bursar.sql import parse
from bursar.sql.render import render
from bursar.testing import memory_ledger
from harness.configs import towns
from harness.small import Silence

CONFIG = (
    towns(epsilon=100)
    + """
delta = 1e-4
[columns.city]
domain = "open"
capacity = 8
[columns.job]
domain = "open"
capacity = 8
[columns.age]
lower = 0
upper = 9
"""
)

GROUPS = "SELECT city, COUNT(*) AS n FROM people GROUP BY city"


def rows() -> list[tuple[str, str, int]]:
    rng = Random(3)
    cities = ["Rome"] * 30 + ["Oslo"] * 20 + ["Bern"] * 10 + ["Kiel", "Nice", "Metz", "Graz"]
    return [(rng.choice(cities), rng.choice(["cook", "nurse", "smith"]), rng.randint(0, 9)) for _ in range(400)]


ROWS = rows()
TRUE = Counter(city for city, _, _ in ROWS)


def stage(folder: Path, extra: str = "", change: tuple[str, str] = ("", "")) -> Bursar:
    (folder / "bursar.toml").write_text((CONFIG.replace(*change) if change[0] else CONFIG) + extra)
    pd.DataFrame(ROWS, columns=["city", "job", "age"]).to_csv(folder / "towns.csv", index=False)
    config = load(folder / "bursar.toml")
    source = source_of(config)
    ledger = memory_ledger(config, source, Silence())
    return Bursar(config, ledger, open_source=source, randomness=Silence())


def counts(answer: Answer) -> dict[Any, float]:
    return {label[0]: round(value[0], 6) for label, value in zip(answer.labels, answer.values, strict=True)}


def searches(db: Bursar) -> list[Found]:
    return [record.event for record in db.ledger.records() if isinstance(record.event, Found)]


def test_an_analyst_finds_texts_and_counts_them_in_one_step(tmp_path: Path) -> None:
    db = stage(tmp_path).as_analyst("ana")
    answer = db.query(f"{GROUPS} WITH ERROR 5 DISCOVERY 0.05")
    (event,) = searches(db)
    common = {city: count for city, count in TRUE.items() if count >= Rarity.of(event).even}
    assert 0 < len(common) < len(TRUE)
    rare = sum(TRUE.values()) - sum(common.values())
    assert counts(answer) == {**dict(sorted(common.items())), "other": rare, None: 0}
    told = str(answer.remarks)
    assert "those that few people have are missing" in told
    assert f"texts of city were looked for first, for rho {event.weight**2 / (2 * event.noise.scale**2):.6g}" in told
    assert answer.charge == pytest.approx(sum(line.charge for line in db.log()))
    assert {line.analyst for line in db.log()} == {"ana"}
    assert counts(db.as_analyst("bob").query(f"{GROUPS} WITH ERROR 5")) == counts(answer)


def test_nobody_pays_twice_for_the_same_search(tmp_path: Path) -> None:
    db = stage(tmp_path)
    first = db.query(f"{GROUPS} WITH ERROR 5 DISCOVERY")
    spent = db.kernel.spent()
    again = db.as_analyst("ana").query(f"{GROUPS} WITH ERROR 5 DISCOVERY")
    assert again.free
    assert (counts(again), db.kernel.spent()) == (counts(first), spent)
    assert db.explain(f"{GROUPS} WITH ERROR 5 DISCOVERY").searches == ()
    other = db.query("SELECT city, age, COUNT(*) FROM people GROUP BY city, age WITH ERROR 5 DISCOVERY")
    assert not other.free
    assert len(searches(db)) == 1
    db.query(f"{GROUPS} WITH ERROR 5 DISCOVERY 3")  # rarer ones
    assert len(searches(db)) == 2
    db.owner.declare_version()
    db.query(f"{GROUPS} WITH ERROR 5 DISCOVERY")
    assert [event.version for event in searches(db)] == [1, 1, 2]


def test_explain_shows_both_prices_and_spends_nothing(tmp_path: Path) -> None:
    db = stage(tmp_path).as_analyst("ana")
    shown = db.run(f"EXPLAIN {GROUPS} WITH ERROR 5 DISCOVERY 0.25", Wanted())
    assert isinstance(shown, Explanation)
    (line,) = shown.searches
    assert "texts of city are looked for first, for rho 0.25, and a chance of 4.99e-06 that" in line
    assert line in str(shown)
    assert "as if 100 more texts were told apart" in str(shown)
    assert shown.search_price == pytest.approx(0.25)
    assert shown.chosen is not None
    assert shown.price == shown.offers[shown.chosen].price + shown.search_price
    assert db.kernel.spent() == 0
    answer = db.query(f"{GROUPS} WITH ERROR 5 DISCOVERY 0.25")
    assert 0.25 < answer.charge <= shown.price


def test_without_the_word_the_answer_says_what_a_search_would_cost(tmp_path: Path) -> None:
    answer = stage(tmp_path).as_analyst("ana").query(GROUPS, within=5)
    (line,) = [remark for remark in answer.remarks if "DISCOVERY" in remark]
    assert "WITH DISCOVERY, or DISCOVERY behind the accuracy, looks for texts of city first, for rho" in line
    assert "is found every other time" in line
    pure = stage(tmp_path, change=("delta = 1e-4\n", "")).query(GROUPS, within=5)
    assert any("a budget of epsilon alone rules out" in remark for remark in pure.remarks)


def test_two_open_columns_share_what_is_left_of_delta(tmp_path: Path) -> None:
    db = stage(tmp_path)
    db.query("SELECT city, job, COUNT(*) FROM people GROUP BY city, job WITH ERROR 5 DISCOVERY 0.5")
    one, two = searches(db)
    assert (one.column, two.column) == ("city", "job")
    assert one.delta + two.delta <= db.config.budget.key_units / 2
    assert one.threshold == two.threshold
    again = db.query("SELECT city, job, COUNT(*) FROM people GROUP BY city, job WITH ERROR 5 DISCOVERY 0.5")
    assert again.free


@pytest.mark.parametrize("goal", [{"max_cost": 0.2}, {"within": 5, "max_cost": 0.2}])
def test_the_most_that_somebody_would_pay_covers_the_search(tmp_path: Path, goal: dict[str, float]) -> None:
    db = stage(tmp_path)
    clause = "WITH DISCOVERY 0.19" if "within" in goal else "WITH ERROR 5 DISCOVERY 0.19"
    with pytest.raises(BudgetError, match="is the most you would pay, for the search and the answer"):
        db.query(f"{GROUPS} {clause}", **goal)
    assert db.kernel.spent() == 0
    assert db.query(f"{GROUPS} {clause}", **{**goal, "max_cost": 2.0}).charge <= 2.0


def test_a_search_that_leaves_nothing_for_the_question_is_not_made(tmp_path: Path) -> None:
    db = stage(tmp_path)
    all_of_it = db.budget().total
    with pytest.raises(BudgetError, match="is left, for the search and the answer"):
        db.query(f"{GROUPS} WITH ERROR 5 DISCOVERY {all_of_it * 0.999}")
    assert db.kernel.spent() == 0


def test_who_finds_more_than_can_be_paid_for_is_told_what_was_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_keys, "MANY_TEXTS", 0)
    db = stage(tmp_path)
    question = f"{GROUPS} WITH ERROR 5 DISCOVERY 0.05"
    with pytest.raises(BudgetError, match=r"looking for texts has cost rho 0\.05, and what was found is told apart"):
        db.query(question, max_cost=db.explain(question).price)
    assert db.budget().spent == pytest.approx(0.05, rel=1e-3)
    assert db.query(f"{GROUPS} WITH ERROR 5").charge == pytest.approx(db.budget().spent - 0.05, rel=1e-3)


def test_who_may_not_and_what_cannot_be_looked_for(tmp_path: Path) -> None:
    db = stage(tmp_path, '[analysts]\ndiscover = "owner"\n')
    with pytest.raises(AnalystError, match=r"only the data owner looks for texts(?s:.*)bursar discover city --spend"):
        db.as_analyst("ana").query(f"{GROUPS} WITH ERROR 5 DISCOVERY")
    assert "only the data owner looks" in str(db.as_analyst("ana").query(GROUPS, within=5).remarks)
    assert db.query(f"{GROUPS} WITH ERROR 5 DISCOVERY").charge > 0
    pure = stage(tmp_path, change=("delta = 1e-4\n", ""))
    with pytest.raises(Unsupported, match=r"epsilon alone rules out(?s:.*)name texts that are public, in WHERE"):
        pure.query(f"{GROUPS} WITH ERROR 5 DISCOVERY")
    none = stage(tmp_path, change=("delta = 1e-4", "delta = 1e-4\ndelta_keys = 0"))
    with pytest.raises(ConfigError, match="keeps no delta_keys"):
        none.query(f"{GROUPS} WITH ERROR 5 DISCOVERY")
    parts = stage(tmp_path, '[partition]\ncolumn = "age"\n')
    with pytest.raises(Unsupported, match="data without partitions"):
        parts.query(f"{GROUPS} WITH ERROR 5 DISCOVERY")
    assert all(part.kernel.spent() == 0 for part in (pure, none, parts))


@pytest.mark.parametrize(
    ("sql", "match"),
    [
        ("SELECT COUNT(*) FROM people WITH ERROR 5 DISCOVERY", "this groups by none"),
        ("SELECT age, COUNT(*) FROM people GROUP BY age WITH DISCOVERY 1", "this groups by none"),
        (f"{GROUPS} WITH ERROR 5 DISCOVERY 5%", "with an amount of rho"),
        (f"{GROUPS} WITH DISCOVERY DISCOVERY", "is said once"),
        (f"{GROUPS} WITH ERROR 5 DISCOVERY 0", "lies above 0"),
        (f"{GROUPS} WITH DISCOVERY ERROR", "a positive number is expected after ERROR"),
    ],
)
def test_what_the_word_does_not_mean(tmp_path: Path, sql: str, match: str) -> None:
    with pytest.raises(QueryError, match=match):
        stage(tmp_path).query(sql, **({} if "ERROR" in sql else {"within": 5}))


def test_a_batch_looks_for_nothing(tmp_path: Path) -> None:
    with pytest.raises(QueryError, match="by a question of its own, and not in a batch"):
        stage(tmp_path).batch([f"{GROUPS} WITH DISCOVERY"], within=5)


def test_the_word_is_read_in_every_place_and_written_again() -> None:
    for clause, spend in (("WITH DISCOVERY", None), ("WITH ERROR 5 DISCOVERY .05", 0.05), ("/*+ discovery */", None)):
        query = parse(f"{GROUPS} {clause}")
        assert query.search is not None
        assert query.search.spend == spend
        assert parse(render(query)) == query
    both = parse(f"{GROUPS} /*+ error(5) discovery(0.05) */")
    assert both.search == parse(f"{GROUPS} WITH DISCOVERY 0.05 ERROR 5").search
    assert both.goal == parse(f"{GROUPS} WITH ERROR 5").goal
    assert parse("SELECT discovery, COUNT(*) FROM t GROUP BY discovery").search is None


def test_an_analyst_leaves_cells_for_others(tmp_path: Path) -> None:
    db = stage(tmp_path)
    ana, bob = db.as_analyst("ana"), db.as_analyst("bob")
    ana.query("SELECT COUNT(*) FROM people WHERE city IN ('a', 'b', 'c')", within=5)
    sql = "SELECT COUNT(*) FROM people WHERE city IN ('d', 'e')"
    for ask in (ana.query, ana.explain):
        with pytest.raises(QueryError, match="may be the first to name 4 texts of city, so that cells are left"):
            ask(sql, within=5)
    ana.query("SELECT COUNT(*) FROM people WHERE city = 'd' OR city = 'a'", within=5)
    with pytest.raises(QueryError, match="may be the first to name 4 texts"):
        ana.batch(["SELECT COUNT(*) FROM people WHERE city = 'e'"], within=5)
    bob.query("SELECT COUNT(*) FROM people WHERE city IN ('a', 'e')", within=5)
    ana.query("SELECT COUNT(*) FROM people WHERE city = 'e'", within=5)  # somebody else's cell
    ana.query("SELECT COUNT(*) FROM people WHERE job IN ('a', 'b')", within=5)  # another column
    db.query("SELECT COUNT(*) FROM people WHERE city IN ('f', 'g', 'h')", within=5)  # the data owner
    assert [key.analyst for key in db.kernel.known_keys()["city"]] == ["ana"] * 4 + ["bob"] + ["owner"] * 3


@pytest.mark.parametrize(("names", "fits"), [(0, 0), (1, 1), (8, 8)])
def test_the_config_says_how_many_names(tmp_path: Path, names: int, fits: int) -> None:
    ana = stage(tmp_path, f"[analysts]\nnames = {names}\n").as_analyst("ana")
    for number in range(fits):
        ana.query(f"SELECT COUNT(*) FROM people WHERE city = 'town {number}'", within=5)
    with pytest.raises(QueryError, match="may be the first to name" if fits < 8 else "all of them are taken"):
        ana.query("SELECT COUNT(*) FROM people WHERE city = 'one more'", within=5)


@pytest.mark.parametrize(
    ("line", "match"), [("names = -1", "names must lie between"), ('discover = "me"', "discover cannot be")]
)
def test_wrong_settings_are_refused(tmp_path: Path, line: str, match: str) -> None:
    (tmp_path / "bursar.toml").write_text(f"{CONFIG}[analysts]\n{line}\n")
    with pytest.raises(ConfigError, match=match):
        load(tmp_path / "bursar.toml")


def test_the_command_and_a_stored_answer(tmp_path: Path) -> None:
    stage(tmp_path)
    config = str(tmp_path / "bursar.toml")
    bursar.create(config).close()
    asked = ["query", f"{GROUPS} WITH ERROR 5 DISCOVERY", "-d", config, "--as", "ana", "--key", "towns"]
    first = CliRunner().invoke(app, asked)
    assert (first.exit_code, "were looked for first" in first.output, "Rome" in first.output) == (0, True, True)
    again = CliRunner().invoke(app, asked)
    assert again.output == first.output
