"""WITH RELATIVE ERROR: a percentage of each true count, or of a public floor where that is more."""

from __future__ import annotations

import json

import numpy as np
import pytest

import bursar
from bursar.core.budget import Budget
from bursar.errors import GoalError, QueryError
from bursar.planner.goals import Wanted
from bursar.sql import parse
from bursar.sql.render import render
from harness.small import DOMAIN, config, engine

BY_SEX = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
CUBE = "SELECT sex, region, COUNT(*) AS n FROM people GROUP BY CUBE (sex, region)"
SIZE = 6_000


def asked(**changes: object) -> bursar.Bursar:
    return engine(settings=config(budget=Budget.of(epsilon=100.0), **changes))


def test_a_floor_gives_one_error_for_all() -> None:
    db = asked()
    answer = db.query(f"{BY_SEX} WITH RELATIVE ERROR 5% FLOOR 400")
    assert answer.error <= 20
    assert answer.goal == "WITH RELATIVE ERROR 5% FLOOR 400 CONFIDENCE 95%"
    assert "within 5% of the true count, or within 20 where that is below 400" in answer.remarks[-1]
    assert db.query(BY_SEX, within=20).free


def test_without_a_floor_an_even_share_of_all_rows_counts() -> None:
    db = asked(public_size=SIZE)
    answer = db.query(f"{BY_SEX} WITH RELATIVE ERROR 10%")
    assert answer.error <= 0.1 * SIZE / 2
    assert db.query(BY_SEX, within=0.1 * SIZE / 2).free
    assert "an even share of all rows where that is more (3,000 rows)" in answer.remarks[-1]


def test_totals_may_err_by_more_than_their_parts() -> None:
    """Per row: the total by 600, sexes by 300, regions by 200, both by 100."""
    db = asked(public_size=SIZE)
    answer = db.query(f"{CUBE} WITH RELATIVE ERROR 10%")
    spans = np.subtract(answer.high, answer.low).ravel() / 2
    for label, span in zip(answer.labels, spans, strict=True):
        sexes, regions = (1 if label[0] == "(all)" else 2), (1 if label[1] == "(all)" else 3)
        assert span <= 0.1 * SIZE / (sexes * regions) * 1.0001
    strict = asked(public_size=SIZE).query(CUBE, within=0.1 * SIZE / 6)
    assert answer.charge < strict.charge  # one error for all is that of the smallest
    assert "(1,000 to 6,000 rows)" in answer.remarks[-1]


@pytest.mark.heavy
def test_errors_stay_relative_to_the_counts_as_often_as_promised() -> None:
    """2,000 answers at 80 %; with twice the noise the same count would be rejected."""
    table = np.random.default_rng(1).integers(0, 60, DOMAIN.sizes(DOMAIN.names))
    truth = table.sum(axis=(0, 2))
    misses = 0
    for _ in range(100):
        db = engine(table=table, settings=config(budget=Budget.of(epsilon=100.0)))
        answer = db.query(f"{BY_SEX} WITH RELATIVE ERROR 2% FLOOR 500 CONFIDENCE 80%")
        errors = np.abs(np.array(answer.values).ravel()[:2] - truth)
        misses += bool(np.any(errors > 0.02 * np.maximum(truth, 500)))
    assert misses <= 37  # 20 expected at most; Pr[Bin(100, .2) > 37] = 2e-5, and of Bin(100, .6) practically none is


@pytest.mark.parametrize(
    ("clause", "message", "rewrite"),
    [
        ("WITH RELATIVE ERROR 5", "percentage of each true count", "WITH RELATIVE ERROR 5%"),
        ("WITH ERROR 5 FLOOR 20", "FLOOR is one number", ""),
        ("WITH RELATIVE ERROR 5% FLOOR 20%", "FLOOR is one number", ""),
        ("WITH RELATIVE ERROR 5% FLOOR 20 FLOOR 30", "FLOOR is one number", ""),
        ("WITH RELATIVE ERROR 500%", "below 100%", ""),
        ("WITH RELATIVE ERROR 5% ON n", "for all numbers", ""),
        ("WITH RELATIVE ERROR 5% FLOOR 0", "positive number", ""),
    ],
)
def test_what_is_no_relative_error_is_refused(clause: str, message: str, rewrite: str) -> None:
    with pytest.raises(QueryError, match=message) as refused:
        parse(f"{BY_SEX} {clause}")
    assert refused.value.position >= len(BY_SEX)
    assert refused.value.rewrite.endswith(rewrite)


def test_it_can_be_written_back_and_stand_in_a_comment() -> None:
    query = parse(f"{BY_SEX} WITH RELATIVE ERROR 2.5% FLOOR 40 CONFIDENCE 99%")
    assert parse(render(query)).goal == query.goal
    hint = parse(BY_SEX.replace("SELECT", "SELECT /*+ relative_error(2.5%) floor(40) confidence(99%) */", 1))
    assert hint.goal == query.goal


def test_only_counts_have_one() -> None:
    db = asked(public_size=SIZE)
    with pytest.raises(GoalError, match="for counts alone"):
        db.query("SELECT AVG(age) AS mean FROM people WITH RELATIVE ERROR 5%")
    with pytest.raises(GoalError, match="FLOOR 200"):
        asked().query(f"{BY_SEX} WITH RELATIVE ERROR 5%")
    with pytest.raises(GoalError, match="floor goes with relative"):
        db.query(BY_SEX, within=50, floor=20)


def test_in_python_it_is_a_share_or_a_text() -> None:
    for given in (0.05, "5%", "0.05"):
        goal = Wanted(relative=given, floor=200).goal()
        assert goal is not None
        assert goal.describe() == "WITH RELATIVE ERROR 5% FLOOR 200 CONFIDENCE 95%"


def test_a_refusal_names_the_nearest_relative_error() -> None:
    db = engine(settings=config(budget=Budget.of(epsilon=0.01)))
    with pytest.raises(bursar.BudgetError, match=r"WITH RELATIVE ERROR [\d.]+% FLOOR 400"):
        db.query(f"{BY_SEX} WITH RELATIVE ERROR 5% FLOOR 400")


def test_the_same_key_with_another_floor_is_another_question() -> None:
    db = asked()
    db.query(BY_SEX, relative="5%", floor=400, key="a")
    with pytest.raises(bursar.BursarError, match="key"):
        db.query(BY_SEX, relative="5%", floor=300, key="a")
    again = db.query(BY_SEX, relative="5%", floor=400, key="a")
    assert json.loads(again.to_bytes())["goal"].startswith("WITH RELATIVE")


def test_a_batch_keeps_the_errors_of_each_of_its_counts() -> None:
    db = asked(public_size=SIZE)
    total, by_sex = db.batch(["SELECT COUNT(*) AS n FROM people", BY_SEX], relative="10%").answers
    assert total.error <= 0.1 * SIZE
    assert by_sex.error <= 0.1 * SIZE / 2
    low = asked().batch([BY_SEX, CUBE], relative="10%", floor=50).answers
    assert all(answer.error <= 5 for answer in low)
