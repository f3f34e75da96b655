"""HAVING, ORDER BY and LIMIT: which lines are shown, and what an answer says about them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bursar.answer import Answer
from bursar.compile import Workload, compile
from bursar.compile.workload import ResultClauses, margin
from bursar.core.budget import Budget
from bursar.core.domain import Bins, Categories, Domain, IntegerRange, Stray
from bursar.estimation.derived import Derived
from bursar.planner.goals import Wanted
from bursar.sql import parse, render
from harness.small import Silence, config, engine

SMALL = Domain((Categories(name="town", values=("c", "a", "b"), outside=0, null=0),))
COUNTS = np.array([30, 10, 20])
MIXED = Domain(
    (
        IntegerRange(name="age", lower=-5, upper=24, outside=Stray.OTHER),
        Bins(name="income", edges=(0.0, 10.0, 100.0, 200.0)),
        Categories(name="sex", values=("F", "M")),
    )
)


def answer(sql: str) -> Answer:
    settings = config(domain=SMALL, budget=Budget.of(epsilon=50.0))
    found: Answer = engine(table=COUNTS, settings=settings, randomness=Silence()).query(sql)
    return found


def shown(sql: str) -> list[object]:
    return [label for (label,) in answer(f"{sql} WITH ERROR 4").labels]


def ask(sql: str) -> Workload:
    return compile(parse(sql), MIXED, "people")


GROUPS = "SELECT town, COUNT(*) AS n FROM people GROUP BY town"


@pytest.mark.parametrize(
    ("rest", "lines"),
    [
        ("", ["c", "a", "b"]),
        ("HAVING n >= 20", ["c", "b"]),
        ("HAVING COUNT(*) > 20", ["c"]),
        ("HAVING NOT n > 20", ["a", "b"]),
        ("HAVING n BETWEEN 15 AND 25 OR n < 12", ["a", "b"]),
        ("HAVING n > 1000", []),
        ("HAVING TRUE", ["c", "a", "b"]),
        ("HAVING AT_LEAST(2, n > 5, n > 15, n > 25)", ["c", "b"]),
        ("ORDER BY n", ["a", "b", "c"]),
        ("ORDER BY n DESC LIMIT 2", ["c", "b"]),
        ("ORDER BY town", ["a", "b", "c"]),
        ("ORDER BY town DESC LIMIT 1", ["c"]),
        ("HAVING n < 25 ORDER BY n DESC LIMIT 5", ["b", "a"]),
        ("ORDER BY n DESC OFFSET 1", ["b", "a"]),
        ("ORDER BY n DESC LIMIT 1 OFFSET 1", ["b"]),
        ("ORDER BY n LIMIT 5 OFFSET 2", ["c"]),
        ("ORDER BY n OFFSET 0", ["a", "b", "c"]),
        ("ORDER BY town OFFSET 7", []),
        ("HAVING n < 25 ORDER BY n OFFSET 1", ["b"]),
    ],
)
def test_lines(rest: str, lines: list[str]) -> None:
    assert shown(f"{GROUPS} {rest}") == lines


def test_the_answer_says_what_is_known_of_the_choice() -> None:
    (note,) = answer(f"{GROUPS} HAVING n >= 20 WITH ERROR 4 CONFIDENCE 90%").remarks
    assert note.startswith(
        "HAVING chose among 3 groups by noisy numbers, at no cost: with 90% confidence, no group is mis"
    )
    assert "whose true n is more than " in note
    assert note.endswith(" from 20")
    (note,) = answer(f"{GROUPS} ORDER BY n DESC LIMIT 2 WITH ERROR 4").remarks
    assert note.startswith(
        "the first 2 of 3 groups by noisy n, at no cost: with 95% confidence, every group whose true n"
    )
    assert " above 20 is here, none is here that is more than " in note
    (note,) = answer(f"{GROUPS} ORDER BY n LIMIT 2 WITH ERROR 4").remarks
    assert " below 20 is here, none is here that is more than " in note
    (note,) = answer(f"{GROUPS} ORDER BY n WITH ERROR 4").remarks
    assert note.endswith("apart stand in the right order")
    (note,) = answer(f"{GROUPS} ORDER BY town LIMIT 2 WITH ERROR 4").remarks
    assert note == "LIMIT shows 2 of 3 groups, by town; all of them were paid for"
    assert answer(f"{GROUPS} ORDER BY town WITH ERROR 4").remarks == ()
    (note,) = answer(f"{GROUPS} ORDER BY town LIMIT 1 OFFSET 1 WITH ERROR 4").remarks
    assert note == "OFFSET leaves 1 of 3 groups, by town; all of them were paid for"
    (note,) = answer(f"{GROUPS} ORDER BY n DESC OFFSET 9 WITH ERROR 4").remarks
    assert note == "0 of 3 groups, from number 4 on by noisy n, at no cost"


@pytest.mark.parametrize("order", ["n", "n DESC"])
def test_what_is_known_of_groups_in_the_middle_covers(order: str) -> None:
    """True numbers of the groups shown lie between the ends that are named, give or take the margin."""
    (note,) = answer(f"{GROUPS} ORDER BY {order} LIMIT 2 OFFSET 1 WITH ERROR 4").remarks
    assert note.startswith("2 of 3 groups, from number 2 on by noisy n, at no cost: with 95% confidence, the true n")
    low, high = (20, 30) if order == "n" else (10, 20)
    assert f"of every group here is {low} to {high}, give or take " in note
    margin = float(note.rsplit(" ", 1)[1])
    assert 0 < margin <= 4


def test_a_question_with_an_offset_is_another_question() -> None:
    texts = [f"{GROUPS} ORDER BY n DESC LIMIT 1{rest}" for rest in ("", " OFFSET 0", " OFFSET 1", " OFFSET 2")]
    facts = [str(compile(parse(text), SMALL, "people").after.facts()) for text in texts]
    assert facts[0] == facts[1]
    assert len(set(facts)) == 3
    assert [parse(render(parse(text))) for text in texts] == [parse(text) for text in texts]


def test_what_is_left_out_is_paid_for_and_nothing_else() -> None:
    whole = answer(f"{GROUPS} WITH ERROR 4")
    some = answer(f"{GROUPS} HAVING n > 25 ORDER BY n LIMIT 1 WITH ERROR 4")
    assert some.charge == whole.charge
    again = engine(table=COUNTS, settings=config(domain=SMALL, budget=Budget.of(epsilon=50.0)), randomness=Silence())
    again.query(f"{GROUPS} WITH ERROR 4")
    assert again.query(f"{GROUPS} ORDER BY n DESC LIMIT 1 WITH ERROR 4").free


def test_an_answer_without_lines_can_be_stored_and_shown() -> None:
    empty = answer(f"{GROUPS} HAVING n > 1000 WITH ERROR 4")
    assert Answer.from_bytes(empty.to_bytes()) == empty
    assert empty.rows == []
    assert "HAVING chose" in str(empty)


def test_questions_that_choose_differently_are_different_questions() -> None:
    db = engine(table=COUNTS, settings=config(domain=SMALL, budget=Budget.of(epsilon=50.0)), randomness=Silence())
    rests = ["", "HAVING n > 5", "HAVING n > 6", "ORDER BY n", "ORDER BY n DESC", "ORDER BY town", "ORDER BY n LIMIT 1"]
    texts = [f"{GROUPS} {rest} WITH ERROR 4" for rest in rests]
    assert len({db.engine.prepare(text, Wanted(), None).asked.question for text in texts}) == len(texts)


def test_a_batch_chooses_as_well() -> None:
    db = engine(table=COUNTS, settings=config(domain=SMALL, budget=Budget.of(epsilon=50.0)), randomness=Silence())
    first, second = db.batch([f"{GROUPS} HAVING n > 15", f"{GROUPS} ORDER BY n LIMIT 1"], within=4).answers
    assert [label for (label,) in first.labels] == ["c", "b"]
    assert (second.labels, second.values) == ((("a",),), ((10.0,),))
    assert "HAVING chose" in first.remarks[0]


def test_bars_without_an_end_promise_nothing() -> None:
    numbers = Derived(np.array([1.0, 2.0]), np.array([0.0, -math.inf]), np.array([2.0, math.inf]))
    after = ask("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex HAVING n > 1 ORDER BY n").after
    assert isinstance(after, ResultClauses)
    picked = after.pick([numbers], 2, 0.95)
    assert all("any group may be misplaced" in claim.words for claim in picked.claims)
    assert all(claim.margins == () for claim in picked.claims)


def test_margins_are_rounded_up() -> None:
    def bar(width: float) -> float:
        numbers = Derived(np.array([5.0]), np.array([5.0 - width]), np.array([5.0]))
        return margin(numbers, np.array([0]))

    assert bar(23.0) == pytest.approx(23.0)
    assert 123.41 <= bar(123.41) <= 123.51
    assert bar(0.0) == 0.0


@pytest.mark.parametrize(
    ("sql", "labels"),
    [
        (
            "SELECT income, COUNT(*) FROM people GROUP BY income ORDER BY income DESC",
            ["[100, 200]", "[10, 100)", "[0, 10)", None],
        ),
        ("SELECT sex, COUNT(*) FROM people GROUP BY sex ORDER BY sex DESC NULLS FIRST", [None, "other", "M", "F"]),
        (
            "SELECT age, COUNT(*) FROM people WHERE age IS NULL OR NOT age BETWEEN 0 AND 24 GROUP BY age ORDER BY age",
            [-5, -4, -3, -2, -1, "other", None],
        ),
    ],
)
def test_labels_stand_in_the_order_of_their_values(sql: str, labels: list[object]) -> None:
    workload = ask(sql)
    assert workload.after is not None
    numbers = Derived(*(np.zeros(len(workload.labels)) for _ in range(3)))
    lines = workload.after.pick([numbers], len(workload.labels), 0.95).lines
    found = [workload.labels[line][0] for line in lines]
    assert found == labels
