"""Tested estimates through the whole engine: what is charged, what is held, and what a second engine finds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bursar.core.accounting import Failed, Measured, Opened
from bursar.core.budget import Budget
from bursar.core.domain import Neighbours, Unit
from bursar.papers.boost.learning import ConstantRate
from bursar.planner.choose import Preset
from bursar.proposers.pmw import TIGHT, Pmw
from bursar.proposers.reuse import Exact
from bursar.views.learner import Adaptive, Learning
from harness.small import DOMAIN, Silence, config, engine

SIZES = DOMAIN.sizes(DOMAIN.names)
EVEN = np.full(SIZES, 100)
LEARNING = Learning(schedule=ConstantRate(value=0.3), heuristic=Adaptive(first=1, step=2), tau=0.001)
PRESET = Preset("test", (Exact(), Pmw(replace(TIGHT, learning=LEARNING))))
EAGER = Preset("test", (Exact(), Pmw(replace(TIGHT, learning=replace(LEARNING, heuristic=Adaptive(first=0))))))
"""Tested from the first question on for which the number of rows is known."""

UNEVEN = EVEN + np.arange(10)[:, None, None] * 10
ASK = "SELECT COUNT(*) FROM people WHERE sex = '{}' AND region = '{}'"
QUESTIONS = [ASK.format(sex, region) for sex in "FM" for region in ("north", "south", "east")]

replace_one = config(unit=Unit(neighbours=Neighbours.REPLACE_ONE), public_size=int(UNEVEN.sum()))
MANNERS = {"add-remove": config(), "replace-one": replace_one, "concentrated": config(budget=Budget.of(rho=0.5))}


def kinds(opened: object) -> list[type]:
    return [type(record.event) for record in opened.ledger.records()]  # type: ignore[attr-defined]


@pytest.mark.thinned(3)
@pytest.mark.parametrize("manner", MANNERS)
def test_training_then_free_answers(manner: str) -> None:
    """Silent noise: by and by questions are tested, and in the end all pass, although every goal is tighter."""
    table = UNEVEN.copy()
    table[:, 0] += 60
    made = engine(table=table, settings=MANNERS[manner], randomness=Silence(), preset=PRESET)
    for turn in range(12):
        before = len(made.ledger.records())
        answers = [made.query(question, within=500 - turn, confidence=0.95) for question in QUESTIONS]
        truth = [int(table[:, sex, region].sum()) for sex in range(2) for region in range(3)]
        assert all(abs(answer.value - exact) < 500 for answer, exact in zip(answers, truth, strict=True))
        assert all(answer.error <= 500 for answer in answers)
    seen = kinds(made)
    assert Opened in seen[:before] or Opened in seen[before:]
    assert Measured not in seen[before:]
    assert {answer.source for answer in answers} == {"pmw"}


def test_a_passed_test_is_free_and_writes_nothing() -> None:
    made = engine(table=UNEVEN, settings=replace_one, randomness=Silence(), preset=EAGER)
    made.query(QUESTIONS[0], within=200)
    opening = made.query(QUESTIONS[1], within=200)
    assert not opening.free
    assert kinds(made)[-1] is Opened
    before = len(made.ledger.records())
    spent = made.budget().spent
    free = [made.query(question, within=200) for question in QUESTIONS]
    assert all(answer.free for answer in free)
    assert len(made.ledger.records()) == before
    assert made.budget().spent == spent


def test_the_number_of_rows_costs_nothing_where_all_neighbours_have_one() -> None:
    made = engine(table=UNEVEN, settings=replace_one, randomness=Silence(), preset=PRESET)
    made.query(QUESTIONS[0], within=300)
    size, answer = (record.event for record in made.ledger.records()[1:3])
    assert isinstance(size, Measured)
    assert isinstance(answer, Measured)
    assert size.strategy.attrs == ()
    assert made.budget().spent == pytest.approx(1 / answer.noise.scale)


def test_a_failed_test_is_charged_as_it_was_held() -> None:
    table = UNEVEN.copy()
    table[:, 0, 0] += 500  # the histogram never guesses this
    made = engine(table=table, settings=replace_one, randomness=Silence(), preset=EAGER)
    made.query(QUESTIONS[5], within=300)
    planned = made.explain(QUESTIONS[0], within=300).price
    spent = made.budget().spent
    answer = made.query(QUESTIONS[0], within=300)
    assert answer.value == table[:, 0, 0].sum()
    assert answer.charge == pytest.approx(made.budget().spent - spent)
    assert answer.charge <= planned * (1 + 1e-9)
    assert kinds(made)[-3:] == [Opened, Failed, Measured]


def test_a_second_engine_goes_on_with_the_same_sparse_vector() -> None:
    made = engine(table=UNEVEN, settings=replace_one, randomness=Silence(), preset=EAGER)
    for question in QUESTIONS[:3]:
        made.query(question, within=200)
    assert kinds(made).count(Opened) == 1
    other = engine(
        table=UNEVEN, settings=replace_one, randomness=Silence(), preset=EAGER, ledger=made.ledger, analyst="bob"
    )
    mine, theirs = (one.explain(QUESTIONS[3], within=200) for one in (made, other))
    assert [line.note for line in mine.offers] == [line.note for line in theirs.offers]
    assert other.query(QUESTIONS[3], within=200).free
    assert kinds(made).count(Opened) == 1


def test_groups_are_tested_too() -> None:
    made = engine(table=UNEVEN, settings=replace_one, randomness=Silence(), preset=EAGER)
    made.query(QUESTIONS[0], within=200)
    groups = "SELECT region, COUNT(*) FROM people GROUP BY region"
    first, again = made.query(groups, within=300), made.query(groups, within=300)
    assert kinds(made)[-1] is Opened
    assert (first.free, again.free) == (False, True)
    assert [row["region"] for row in again.rows] == ["north", "south", "east"]
    assert again.values == first.values
