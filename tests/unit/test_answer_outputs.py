"""How answers that are more than counts are shown, stored and handed on."""

from __future__ import annotations

import json
import math

import numpy as np

from bursar.answer import Answer, _bar
from bursar.domain import Bins, Domain, Integers
from bursar.kernel.budget import Budget
from harness.small import Silence, config, engine

BINNED = Domain((Bins(name="income", edges=(0.0, 10.0, 20.0, 50.0)), Integers(name="age", lower=-3, upper=3, null=0)))


def asked(sql: str) -> Answer:
    counts = 10 * np.arange(4 * 7).reshape(4, 7)
    settings = config(domain=BINNED, budget=Budget.of(epsilon=50.0))
    answer: Answer = engine(table=counts, settings=settings, randomness=Silence()).query(sql)
    return answer


def test_numbers_have_the_digits_that_their_errors_need() -> None:
    assert _bar(5.0, 3.0, 7.0) == "5 ± 2"
    assert _bar(5.25, 3.0, 7.5) == "5.2 ± 2.2"
    assert _bar(0.1234, 0.1204, 0.1264) == "0.1234 ± 0.0030"
    assert _bar(0.5, 0.25, 0.8) == "0.50 (0.25 to 0.80)"
    assert _bar(0.0, -math.inf, math.inf) == "0.0 (-inf to inf)"


def test_outputs_in_different_units_have_errors_of_their_own() -> None:
    answer = asked("SELECT COUNT(*) AS n, AVG(age) AS a FROM people WITH ERROR 40")
    assert answer.mixed
    assert "(n), ±" in answer.footer()[0]
    assert answer.errors[0] <= 40
    assert answer.errors[1] < 1


def test_the_bias_of_bins_is_told() -> None:
    (note,) = asked("SELECT SUM(income) AS t FROM people WITH ERROR 400").remarks
    assert note.startswith("income is known by bin only")
    assert "for each row that is added up, the sum may be off by at most 15 more" in note
    (note,) = asked("SELECT AVG(income) FROM people WITH ERROR 40").remarks
    assert "the average may be off by at most 15 more" in note
    assert asked("SELECT SUM(age) FROM people WITH ERROR 400").remarks == ()


def test_ends_that_are_nowhere_survive_storage_and_json() -> None:
    answer = asked("SELECT COUNT(*) / SUM(age) AS r FROM people WHERE income < 10 WITH ERROR 4000")
    assert (answer.low, answer.high) == (((-math.inf,),), ((math.inf,),))
    assert Answer.from_bytes(answer.to_bytes()) == answer
    plain = json.loads(json.dumps(answer.to_json(), allow_nan=False))
    assert (plain["rows"][0]["r_low"], plain["error"]) == (None, None)


def test_an_answer_stored_before_there_were_remarks_is_read() -> None:
    answer = asked("SELECT COUNT(*) AS n FROM people WITH ERROR 40")
    old = json.loads(answer.to_bytes())
    for name in ("remarks", "mixed"):
        del old[name]
    assert Answer.from_bytes(json.dumps(old).encode()) == answer
