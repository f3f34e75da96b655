"""One suite for what a person holds: a data set that was opened, and the same one behind a server.

Both are asked for the same stored answers, so numbers are compared as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest

import bursar
from bursar import Answer, Batch, BudgetError, Bursar, BursarError, Explanation, GoalError, QueryError, Remote
from bursar.errors import AnalystError, KeyConflict
from bursar.planner.goals import Wanted
from bursar.service.people import Role
from harness.serving import Served, data_set, let_in, serving

BY_SEX = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
BY_REGION = "SELECT region, COUNT(*) AS n FROM people GROUP BY region"
TWO = [BY_SEX, "SELECT COUNT(*) AS n FROM people WHERE age >= 40"]
WHO = "ana"


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return data_set(tmp_path_factory.mktemp("session"))


@pytest.fixture(scope="module")
def served(config: Path) -> Iterator[Served]:
    with serving(config, tokens=let_in(config, ana=Role.ANALYST, olga=Role.OWNER)) as server:
        yield server


@pytest.fixture(scope="module")
def opened(config: Path, served: Served) -> Iterator[Bursar]:
    with bursar.open(config, analyst=WHO) as db:
        yield db


@pytest.fixture(scope="module")
def connected(served: Served) -> Iterator[Remote]:
    with bursar.connect(f"{served.url}/demo-people", token=served.tokens[WHO]) as db:
        yield db


@pytest.fixture(params=["open", "connect"])
def db(request: pytest.FixtureRequest, opened: Bursar, connected: Remote) -> Bursar | Remote:
    return opened if request.param == "open" else connected


@pytest.fixture
def other(db: Bursar | Remote, opened: Bursar, connected: Remote) -> Bursar | Remote:
    """The same data set by the other way."""
    return connected if db is opened else opened


def refusal(ask: object, *arguments: object, **options: object) -> BursarError:
    assert callable(ask)
    with pytest.raises(BursarError) as caught:
        ask(*arguments, **options)
    return caught.value


@pytest.mark.thinned(2)
def test_a_question_is_answered_once_for_both(db: Bursar | Remote, other: Bursar | Remote) -> None:
    answer = db.query(BY_SEX, within=80, key="by sex")
    assert type(answer) is Answer
    assert answer == other.query(BY_SEX, within=80, key="by sex") == db.query(BY_SEX, within=80, key="by sex")
    again = db.query(BY_SEX, within=80)
    assert (again.free, again.rows) == (True, answer.rows)
    assert db.run(BY_SEX, Wanted(within=80)) == other.run(BY_SEX, Wanted(within=80))


def test_dates_and_missing_values_come_as_they_are(db: Bursar | Remote, other: Bursar | Remote) -> None:
    text = "SELECT joined, COUNT(*) AS n FROM people GROUP BY joined"
    answer, again = (each.query(text, within=3_000, confidence="90%", key="dates") for each in (db, other))
    assert answer == again
    assert (str(answer), answer.to_csv()) == (str(again), again.to_csv())


def test_explain(db: Bursar | Remote, other: Bursar | Remote) -> None:
    told = db.explain(BY_REGION, within=30, horizon="many")
    assert type(told) is Explanation
    assert told == other.explain(BY_REGION, within=30, horizon="many")
    assert db.run(f"EXPLAIN {BY_REGION}", Wanted(within=30)) == other.explain(f"EXPLAIN {BY_REGION}", within=30)


REFUSED = {
    "unknown column": (lambda db: db.query("SELECT COUNT(*) FROM people WHERE salary > 5", within=50), QueryError),
    "no SELECT": (lambda db: db.query("DELETE FROM people", within=50), QueryError),
    "a rewrite": (lambda db: db.query("SELECT * FROM people", within=50), QueryError),
    "EXPLAIN is for explain": (lambda db: db.query(f"EXPLAIN {BY_SEX}", within=50), QueryError),
    "no goal": (lambda db: db.query(BY_SEX, epsilon=1, rmse=1), GoalError),
    "a goal of nothing": (lambda db: db.query(BY_SEX, within=0), GoalError),
    "a horizon of nothing": (lambda db: db.query(BY_SEX, within=50, horizon=0), GoalError),
    "too dear": (lambda db: db.query(BY_REGION, within=0.01), BudgetError),
    "dearer than allowed": (lambda db: db.query(BY_REGION, within=20, max_cost=1e-6), BudgetError),
    "a key for another question": (lambda db: db.query(BY_REGION, within=80, key="by sex"), KeyConflict),
    "no ticket to have": (lambda db: db.query(BY_SEX, within=1, ticket=7), AnalystError),
    "no turn to let go": (lambda db: db.let_go(), AnalystError),
    "one bad question of two": (lambda db: db.batch([BY_SEX, "SELECT COUNT(*) FROM peple"], within=90), QueryError),
    "no such feature": (lambda db: db.thresholds(k=2, r=1, features=["sex", "salary"], within=500), QueryError),
    "spending by an analyst": (lambda db: db.synthesize(spend=0.1, rows=10), AnalystError),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_the_same_error(name: str, opened: Bursar, connected: Remote) -> None:
    ask, kind = REFUSED[name]
    opened.query(BY_SEX, within=80, key="by sex")
    here, there = refusal(ask, opened), refusal(ask, connected)
    assert type(here) is type(there) is kind
    assert (str(here), vars(here)) == (str(there), vars(there))
    if kind is QueryError:
        assert here.position == there.position  # type: ignore[attr-defined]


@pytest.mark.thinned(2)
def test_a_batch(db: Bursar | Remote, other: Bursar | Remote) -> None:
    paid = db.batch(TWO, within=90, key="two")
    assert type(paid) is Batch
    assert paid.answers == other.batch(TWO, within=90, key="two").answers
    with db.batch(within=90) as batch:
        first, second = map(batch.query, TWO)
        with pytest.raises(QueryError):
            batch.query("SELECT COUNT(*) FROM peple")
        assert (batch.price, batch.one_by_one, batch.explain().price) == (0, 0, 0)
        assert batch.text == ";\n".join(TWO)
        with pytest.raises(QueryError):
            first.answer  # noqa: B018
    assert [first.rows, second.rows] == [answer.rows for answer in paid.answers]
    with db.batch(within=1) as left:
        left.query(BY_REGION)
        assert left.price > 0
        left.cancel()


@pytest.mark.heavy
def test_a_batch_that_a_server_answers_as_a_job(db: Bursar | Remote, other: Bursar | Remote) -> None:
    heard: list[tuple[int, int]] = []
    many = [BY_SEX] * 51
    paid = db.batch(many, within=90, key="many", progress=lambda done, of: heard.append((done, of)))
    assert heard[-1] == (51, 51)
    assert paid.answers == other.batch(many, within=90, key="many").answers
    wrong = [*many, "SELECT COUNT(*) FROM peple"]
    here, there = (refusal(each.batch, wrong, within=90) for each in (db, other))
    assert here == there


def test_a_batch_costs_no_more_than_was_shown(db: Bursar | Remote, opened: Bursar) -> None:
    column = "education" if db is opened else "marital"  # what nobody has asked about
    batch = db.batch(within=150, key=f"by {column}")
    batch.query(f"SELECT {column}, COUNT(*) AS n FROM people GROUP BY {column}")
    price = batch.price
    assert isinstance(refusal(batch.pay, at_most=price / 2), BudgetError)
    assert batch.pay().charge == price > 0
    again = db.batch(within=150, key=f"by {column}")
    again.query(f"SELECT {column}, COUNT(*) AS n FROM people GROUP BY {column}")
    assert again.price == 0
    assert again.pay().answers == batch.pay().answers


def test_looking_back(db: Bursar | Remote, other: Bursar | Remote) -> None:
    db.query(BY_SEX, within=80)
    assert db.budget() == other.budget()
    assert db.spending(saved=True) == other.spending(saved=True)
    assert str(db.spending()) == str(other.spending())
    lines = db.log()
    assert lines == other.log()
    assert lines[-1:] == db.log(1)
    assert db.log(0) == []
    middle = db.log(1, before=lines[-1].position)
    assert middle == lines[-2:-1]
    assert (db.log().older, middle.older == 0) == (0, len(lines) < 3)
    assert db.log(of=lines[-1].analyst, proposer=lines[-1].proposer)[-1] == lines[-1]
    assert db.log(proposer="nobody") == []
    assert db.queue() == other.queue()
    facts, others = db.columns(), other.columns()
    assert facts.columns.digest == others.columns.digest  # a month may be named by any of its days
    assert facts == replace(others, columns=facts.columns)


def test_who_has_no_token_is_nobody(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"{served.url}/demo-people"
    monkeypatch.delenv("BURSAR_TOKEN", raising=False)
    assert type(refusal(bursar.connect, url)) is AnalystError
    monkeypatch.setenv("BURSAR_TOKEN", served.tokens["olga"])
    with bursar.connect(url) as olga:
        assert olga.budget().total == 1
    with bursar.connect(url, token="bursar_x_y") as guess:
        error = refusal(guess.budget)
    assert type(error) is AnalystError
    assert "bursar_x_y" not in f"{error} {guess!r}"


@pytest.mark.heavy
def test_a_synthetic_table(db: Bursar | Remote, tmp_path: Path) -> None:
    db.query(BY_SEX, within=80)
    heard: list[tuple[int, int]] = []
    prepared = db.prepare_synthesis(rows=50, marginals="sex; region")
    assert (prepared.price, prepared.unit) == (0, "epsilon")
    assert str(prepared.explain())
    table = db.synthesize(rows=50, marginals="sex", out=tmp_path / "rows.csv", progress=lambda *far: heard.append(far))
    assert (len(table), table.charge) == (50, 0)
    assert {"method", "marginals", "not_for"} <= table.report.to_json().keys()
    assert len((tmp_path / "rows.csv").read_text().splitlines()) == 51
    assert list(table.to_pandas().columns) == list(db.columns().columns.names)
    table.report.write(tmp_path / "report")
    assert asdict(table.report.lines[0]).keys() == {"columns", "cells", "asked", "measured", "noise"}


def test_thresholds(db: Bursar | Remote, other: Bursar | Remote) -> None:
    options = {"k": 2, "r": 1, "features": ["sex", "region"], "within": 900}
    told = db.thresholds(**options, explain=True)
    assert told == other.thresholds(**options, explain=True)
    answer = db.thresholds(**options, key="thresholds")
    assert list(answer.rows) == list(other.thresholds(**options, key="thresholds").rows)
