"""A question that is remembered is the one that would be compiled."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.compile import compile as compile_query
from bursar.compile import remembered
from bursar.core.domain import Domain, IntegerRange
from bursar.errors import QueryError
from bursar.sql import parse

DOMAIN = Domain(
    (IntegerRange(name="age", lower=0, upper=9, null=0), IntegerRange(name="size", lower=0, upper=99, null=0))
)
TEXT = "SELECT age, COUNT(*) FROM people WHERE size < 50 GROUP BY age WITH ERROR 20"


def test_the_same_text_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = Compiled()
    query, workload = compiled(TEXT, DOMAIN, "people")
    monkeypatch.setattr(remembered, "read", lambda *facts: pytest.fail("compiled before"))
    again, same = compiled(TEXT, DOMAIN, "people")
    assert again is query
    assert same is workload


def test_it_is_what_compiling_gives() -> None:
    compiled = Compiled()
    for _ in range(2):
        query, workload = compiled(TEXT, DOMAIN, "people")
        fresh = compile_query(parse(TEXT), DOMAIN, "people")
        assert query == parse(TEXT)
        assert workload.map.digest == fresh.map.digest
        assert (workload.keys, workload.labels, workload.outputs) == (fresh.keys, fresh.labels, fresh.outputs)
        assert np.array_equal(workload.index, fresh.index)


def test_other_columns_are_another_question() -> None:
    wider = Domain((IntegerRange(name="age", lower=0, upper=19, null=0), DOMAIN.attributes[1]))
    compiled = Compiled()
    assert [len(compiled(TEXT, domain, "people")[1].labels) for domain in (DOMAIN, wider, DOMAIN)] == [10, 20, 10]


def test_a_refusal_is_one_every_time() -> None:
    compiled = Compiled()
    compiled(TEXT, DOMAIN, "people")
    for _ in range(2):
        with pytest.raises(QueryError):
            compiled(TEXT, DOMAIN, "persons")
    compiled(TEXT, DOMAIN, "people")


def test_the_one_not_asked_for_longest_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "REMEMBERED", 2)
    compiled = Compiled()
    first, second, third = (f"SELECT COUNT(*) FROM people WHERE age < {age}" for age in (1, 2, 3))
    kept, lost = compiled(first, DOMAIN, "people"), compiled(second, DOMAIN, "people")
    compiled(first, DOMAIN, "people")
    compiled(third, DOMAIN, "people")
    assert compiled(first, DOMAIN, "people")[1] is kept[1]
    assert compiled(second, DOMAIN, "people")[1] is not lost[1]


def test_large_questions_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "LARGEST", 5)
    compiled = Compiled()
    assert compiled(TEXT, DOMAIN, "people")[1] is not compiled(TEXT, DOMAIN, "people")[1]


def test_nobody_can_change_what_is_remembered() -> None:
    _, workload = Compiled()(TEXT, DOMAIN, "people")
    with pytest.raises(ValueError, match="read-only"):
        workload.index[0, 0] = 7
