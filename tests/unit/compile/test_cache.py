"""A question that is remembered is the one that would be compiled."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.compile import compile as compile_query
from bursar.compile import compile_cache
from bursar.compile.compile_cache import CompileCache
from bursar.compile.workload import Workload
from bursar.core.domain import Categories, Domain, IntegerRange
from bursar.errors import QueryError
from bursar.sql import Query, parse

DOMAIN = Domain(
    (IntegerRange(name="age", lower=0, upper=9, null=0), IntegerRange(name="size", lower=0, upper=99, null=0))
)
TEXT = "SELECT age, COUNT(*) FROM people WHERE size < 50 GROUP BY age WITH ERROR 20"


def compiled(kept: CompileCache, text: str) -> tuple[Query, Workload]:
    query = kept.parse(text)
    return query, kept.compile(query)


def test_the_same_text_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = CompileCache(DOMAIN, "people")
    query, workload = compiled(kept, TEXT)
    monkeypatch.setattr(compile_cache, "parse", lambda *facts: pytest.fail("parsed before"))
    monkeypatch.setattr(compile_cache, "compile", lambda *facts: pytest.fail("compiled before"))
    again, same = compiled(kept, TEXT)
    assert again is query
    assert same is workload


def test_it_is_what_compiling_gives() -> None:
    kept = CompileCache(DOMAIN, "people")
    for _ in range(2):
        query, workload = compiled(kept, TEXT)
        fresh = compile_query(parse(TEXT), DOMAIN, "people")
        assert query == parse(TEXT)
        assert workload.map.digest == fresh.map.digest
        assert (workload.keys, workload.labels, workload.outputs) == (fresh.keys, fresh.labels, fresh.outputs)
        assert np.array_equal(workload.index, fresh.index)


def test_other_partitions_are_another_question() -> None:
    """What is sealed decides what a question means, so it is part of the key."""
    month = Categories(name="month", values=("jan", "feb", "mar"))
    kept = CompileCache(Domain((month, DOMAIN.attributes[0]), partition="month"), "people")
    text = "SELECT month, COUNT(*) FROM people GROUP BY month"
    query = kept.parse(text)
    assert [len(kept.compile(query, sealed).labels) for sealed in (2, 1, 2)] == [2, 1, 2]


def test_a_refusal_is_one_every_time() -> None:
    kept = CompileCache(DOMAIN, "persons")
    for _ in range(2):
        with pytest.raises(QueryError):
            compiled(kept, TEXT)


def test_the_one_not_asked_for_longest_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_cache, "REMEMBERED", 2)
    memory = CompileCache(DOMAIN, "people")
    first, second, third = (f"SELECT COUNT(*) FROM people WHERE age < {age}" for age in (1, 2, 3))
    kept, lost = compiled(memory, first), compiled(memory, second)
    compiled(memory, first)
    compiled(memory, third)
    assert compiled(memory, first)[1] is kept[1]
    assert compiled(memory, second)[1] is not lost[1]


def test_no_more_answers_are_kept_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    small = "SELECT COUNT(*) FROM people WHERE age < 1"
    size = compiled(CompileCache(DOMAIN, "people"), TEXT)[1].index.size
    monkeypatch.setattr(compile_cache, "MOST_REMEMBERED", size)
    kept = CompileCache(DOMAIN, "people")
    assert compiled(kept, TEXT)[1] is compiled(kept, TEXT)[1]
    before, after = compiled(kept, TEXT)[1], compiled(kept, small)[1]
    assert compiled(kept, small)[1] is after
    assert compiled(kept, TEXT)[1] is not before
    monkeypatch.setattr(compile_cache, "MOST_REMEMBERED", size - 1)
    kept = CompileCache(DOMAIN, "people")
    assert compiled(kept, TEXT)[1] is not compiled(kept, TEXT)[1]


def test_nobody_can_change_what_is_remembered() -> None:
    _, workload = compiled(CompileCache(DOMAIN, "people"), TEXT)
    with pytest.raises(ValueError, match="read-only"):
        workload.index[0, 0] = 7
