"""How answers that are more than counts are shown, stored and handed on."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from bursar.answer import Answer, _bar, _digits
from bursar.core.budget import Budget
from bursar.core.domain import Bins, Domain, IntegerRange
from harness.small import Silence, config, engine
from unit.test_answer import ANSWER

BINNED = Domain(
    (Bins(name="income", edges=(0.0, 10.0, 20.0, 50.0)), IntegerRange(name="age", lower=-3, upper=3, null=0))
)


def asked(sql: str) -> Answer:
    counts = 10 * np.arange(4 * 7).reshape(4, 7)
    settings = config(domain=BINNED, budget=Budget.of(epsilon=50.0))
    answer: Answer = engine(table=counts, settings=settings, randomness=Silence()).query(sql)
    return answer


def test_numbers_have_the_digits_that_their_errors_need() -> None:
    def shown(*three: float) -> str:
        return _bar(*three, _digits(*three))

    assert shown(5.0, 3.0, 7.0) == "5 ± 2"
    assert shown(5.25, 3.0, 7.5) == "5.2 ± 2.2"
    assert shown(0.1234, 0.1204, 0.1264) == "0.1234 ± 0.0030"
    assert shown(0.5, 0.25, 0.8) == "0.50 (0.25 to 0.80)"
    assert shown(0.0, -math.inf, math.inf) == "0.0 (-inf to inf)"


def test_what_computing_may_have_lost_is_no_error_and_nothing_is_below_zero_by_nothing() -> None:
    share = 15 / 19
    for low, high in ((share - 8e-13, share + 8e-13), (share - 2e-13, share + 8e-13)):
        assert _bar(share, low, high, _digits(share, low, high)) == "0.7895 ± 0.0000"
    assert _bar(-0.0004, -0.3, 0.3, 1) == "0.0 (-0.3 to 0.3)"
    assert _bar(-0.01, -0.51, 0.49, 1) == "0.0 ± 0.5"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.730769, "0.7308 ± 0.0000"), (46.8, "46.8 ± 0.0"), (48.0, "48 ± 0"), (0.000123, "0.000123 ± 0.000000")],
)
def test_a_number_without_an_error_has_the_digits_that_it_needs(value: float, text: str) -> None:
    assert _bar(value, value, value, _digits(value, value, value)) == text


def test_a_column_has_the_same_digits_in_every_line() -> None:
    answer = replace(ANSWER, values=((3.0,), (0.1234,)), low=((1.0,), (0.1204,)), high=((5.0,), (0.1264,)))
    assert [cells[-1] for cells in answer.cells()] == ["3.0000 ± 2.0000", "0.1234 ± 0.0030"]


def test_a_free_answer_says_why() -> None:
    def cost(**facts: int) -> str:
        return replace(ANSWER, charge=0.0, **facts).footer()[1]

    assert "free (it was bought before);" in cost(reused=2, bought=0)
    assert "free (more was learnt about other people before" in cost(reused=0, bought=2)
    assert "free;" in cost(reused=0, bought=0)


def test_groups_that_may_be_empty_are_told_apart() -> None:
    counts = np.zeros((4, 7), np.int64)
    counts[:2] = 10_000
    settings = config(domain=BINNED, budget=Budget.of(epsilon=50.0))
    db = engine(table=counts, settings=settings, randomness=Silence())
    answer = db.query("SELECT income, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY income WITH ERROR 40")
    assert answer.unsure == ((2, 1), (3, 1))
    assert [line[1] is None for line in answer.values] == [False, False, True, True]
    assert [line[2] for line in answer.cells()[2:]] == ["NULL (-3 to 3)"] * 2
    assert "where nothing is known there is hardly anybody, if there is anybody at all" in answer.remarks
    assert answer.errors[1] > 2.9
    assert answer.sure_errors[1] < 0.1
    assert answer.sure_errors[0] == answer.errors[0]
    error, *_ = answer.footer()
    assert f"±{answer.sure_errors[1]:.4g} (a) or less where there is certainly somebody, on every number" in error
    (note,) = [line for line in answer.footer() if "may be nobody" in line]
    assert note == (
        "note   there may be nobody in 2 of 4 groups ([20, 50], NULL): next to nothing is known about a there"
    )
    assert Answer.from_bytes(answer.to_bytes()) == answer
    assert "unsure" not in answer.to_json()
    first = db.query(
        "SELECT income, AVG(age) AS a FROM people GROUP BY income ORDER BY income DESC LIMIT 3 WITH ERROR 40"
    )
    assert first.unsure == ((0, 0),)
    assert first.labels[0] == ("[20, 50]",)
    nobody = db.query("SELECT AVG(age) AS a FROM people WHERE income >= 20 WITH ERROR 40")
    assert nobody.footer()[0].startswith("error  next to nothing is known: there may be nobody to answer about")
    assert not db.query("SELECT AVG(age) AS a FROM people WITH ERROR 40").unsure


def test_an_average_of_perhaps_nobody_is_null_and_says_what_would_tell() -> None:
    counts = np.zeros((4, 7), np.int64)
    counts[0], counts[1] = 10_000, 3
    settings = config(domain=BINNED, budget=Budget.of(epsilon=500.0))
    db = engine(table=counts, settings=settings, randomness=Silence())
    text = "SELECT income, AVG(age) AS a, SUM(age) / COUNT(*) AS r FROM people WHERE income < 20 GROUP BY income"
    answer = db.query(text, within=40)
    assert answer.values[1] == (None, None)
    assert (answer.low[1][0], answer.high[1][0]) == (-3.0, 3.0)
    assert answer.to_pandas()["a"].isna().tolist() == [False, True]
    (told,) = [remark for remark in answer.remarks if "times smaller" in remark]
    times = int(told.removeprefix("an error about ").split()[0])
    assert 2 <= times <= 20
    assert all(value is not None for line in db.query(text, within=40 / times).values for value in line)


def test_outputs_in_different_units_have_errors_of_their_own() -> None:
    answer = asked("SELECT COUNT(*) AS n, AVG(age) AS a FROM people WITH ERROR 40")
    assert answer.mixed
    assert "(n), ±" in answer.footer()[0]
    assert answer.errors[0] <= 40
    assert answer.errors[1] < 1


def test_the_bias_of_bins_is_told() -> None:
    note, ends = asked("SELECT SUM(income) AS t FROM people WITH ERROR 400").remarks
    assert note.startswith("income is known by bin only")
    assert "for each row that is added up, the sum may be off by at most 15 more" in note
    assert ends == "income: values outside 0 to 50 count as if they were in the first or the last bin"
    note, _ = asked("SELECT AVG(income) FROM people WITH ERROR 40").remarks
    assert "the average may be off by at most 15 more" in note


def test_what_a_declaration_makes_of_values_is_told() -> None:
    said = "age: values outside -3 to 3 count as -3 or 3; missing values count as -3; decimals are rounded down"
    for item in ("SUM(age)", "AVG(age)", "MEDIAN(age)", "STDDEV(age)", "SUM(age) / COUNT(*)"):
        answer = asked(f"SELECT {item} AS x FROM people WITH ERROR 400")
        assert answer.remarks == (said,)
        assert answer.footer()[-1] == f"note   {said}"
    assert asked("SELECT COUNT(*) FROM people WITH ERROR 400").remarks == ()


def test_ends_that_are_nowhere_survive_storage_and_json() -> None:
    answer = asked("SELECT COUNT(*) / SUM(age) AS r FROM people WHERE income < 10 WITH ERROR 4000")
    assert (answer.low, answer.high) == (((-math.inf,),), ((math.inf,),))
    assert Answer.from_bytes(answer.to_bytes()) == answer
    plain = json.loads(json.dumps(answer.to_json(), allow_nan=False))
    assert (plain["rows"][0]["r_low"], plain["error"]) == (None, None)


def test_an_answer_stored_before_there_were_remarks_is_read() -> None:
    answer = asked("SELECT COUNT(*) AS n FROM people WITH ERROR 40")
    old = json.loads(answer.to_bytes())
    for name in ("remarks", "mixed", "unsure"):
        del old[name]
    assert Answer.from_bytes(json.dumps(old).encode()) == answer
