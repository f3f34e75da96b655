"""Questions about open columns: what they name, what they may tell apart, and the rows that come out."""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np
import pytest

from bursar.compile import open_columns
from bursar.compile.compile_cache import CompileCache
from bursar.compile.open_columns import KeyedColumn, Keys, OpenColumns, closed, keys_named, tells_no_more
from bursar.compile.partwise import PartwiseMap, pieces_of
from bursar.core.domain import Domain, IntegerRange, Unit
from bursar.core.extensions.open_keys import OpenText, alike
from bursar.core.queries import Distinct, LinearMap, Mask, PerPerson, Predicate, Product, Steps, Thresholds
from bursar.errors import QueryError
from bursar.sql import parse
from harness.cells import coefficients

CITY, AGE = OpenText(name="city", capacity=6), IntegerRange(name="age", lower=0, upper=2)
DOMAIN = Domain((CITY, AGE))
KEYS: Keys = {"city": KeyedColumn(shown=((0, "Rome"), (2, "Oslo")), taken=("Rome", "Nice", "Oslo"))}
"""The cell of Nice is somebody else's."""

CELLS = {0: "Rome", 2: "Oslo", 3: "Bern"}


def compiled(where: str, keys: Keys = KEYS, select: str = "COUNT(*)", domain: Domain = DOMAIN) -> LinearMap:
    cache = CompileCache(domain, "people", (), Unit())
    return cache.compile(cache.parse(f"SELECT {select} FROM people {where}"), None, keys).map


def stands_for(cell: int) -> str | None:
    return None if cell == CITY.null_cell else CELLS.get(cell, "something else")


CONDITIONS = {
    "city = 'Rome'": lambda text, age: text == "Rome",
    "city <> 'Rome'": lambda text, age: text is not None and text != "Rome",
    "city IN ('Rome', 'Bern')": lambda text, age: text in ("Rome", "Bern"),
    "city NOT IN ('Rome', 'Bern')": lambda text, age: text is not None and text not in ("Rome", "Bern"),
    "city IS NULL": lambda text, age: text is None,
    "city IS NOT NULL AND age = 1": lambda text, age: text is not None and age == 1,
    "city = 'Bern' OR age > 1": lambda text, age: text == "Bern" or age in (2,),
    "NOT (city = 'Rome' AND age = 0)": lambda text, age: not (text in ("Rome", None) and age == 0),
}


@pytest.mark.parametrize("condition", [*CONDITIONS])
def test_conditions_hold_where_they_do(condition: str) -> None:
    """A cell that the question does not know stands for something else, free or not."""
    found = compiled(f"WHERE {condition}")
    holds = CONDITIONS[condition]
    for (city, age), value in zip(product(range(8), range(4)), coefficients(found, DOMAIN)[0], strict=True):
        if age == 3 and "age" in condition:
            continue  # NULL: three-valued, and tested elsewhere
        assert value == int(bool(holds(stands_for(city), age))), (city, age)


@pytest.mark.parametrize("at_once", [1, 2**24])
def test_groups_are_the_keys_that_are_shown_and_other_and_null(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_columns, "SPREAD_AT_ONCE", at_once)
    cache = CompileCache(DOMAIN, "people", (), Unit())
    workload = cache.compile(cache.parse("SELECT city, COUNT(*) FROM people GROUP BY city"), None, KEYS)
    assert workload.labels == (("Rome",), ("Oslo",), ("other",), (None,))
    assert workload.named == ()
    rows = coefficients(workload.map, Domain((CITY,)))
    assert rows.tolist() == [
        [1, 0, 0, 0, 0, 0, 0, 0],
        [0, 0, 1, 0, 0, 0, 0, 0],
        [0, 1, 0, 1, 1, 1, 1, 0],
        [0, 0, 0, 0, 0, 0, 0, 1],
    ]
    assert "city is open: 2 of its texts are told apart, all others are in other" in workload.remarks[0]


def test_without_any_key_there_is_other_and_null() -> None:
    cache = CompileCache(DOMAIN, "people", (), Unit())
    workload = cache.compile(cache.parse("SELECT city, COUNT(*) FROM people GROUP BY city"), None, {})
    assert workload.labels == (("other",), (None,))


def test_what_a_question_is_the_first_to_name() -> None:
    cache = CompileCache(DOMAIN, "people", (), Unit())
    text = (
        "SELECT COUNT(*) FILTER (WHERE City = 'Bern'), SUM(CASE WHEN city = 'Kiel' THEN age END) FROM people "
        "WHERE city NOT IN ('Rome', 'Nice') OR 'Bern' = city"
    )
    workload = cache.compile(cache.parse(text), None, KEYS)
    assert sorted(workload.named) == [("city", "Bern"), ("city", "Kiel")]
    grouped = "SELECT CASE WHEN city = 'Bern' THEN 1 ELSE 2 END AS c, COUNT(*) FROM people GROUP BY 1"
    assert cache.compile(cache.parse(grouped), None, KEYS).named == (("city", "Bern"),)
    assert cache.compile(cache.parse("SELECT COUNT(*) FROM people WHERE city = 'other'"), None, KEYS).named == ()


def test_a_key_of_somebody_else_has_the_cell_that_it_has() -> None:
    (row,) = coefficients(compiled("WHERE city = 'Nice'"), Domain((CITY,)))
    assert row.tolist() == [0, 1, 0, 0, 0, 0, 0, 0]


def test_there_are_no_more_keys_than_cells() -> None:
    texts = ", ".join(f"'t{number}'" for number in range(4))
    with pytest.raises(QueryError, match="city has cells for 6 texts, and all of them are taken: 't3' cannot be told"):
        compiled(f"WHERE city IN ({texts})")


@pytest.mark.parametrize("text", [" Rome", "e\u0301", "a" * 201, "a\x07"])
def test_texts_are_written_as_they_are_compared(text: str) -> None:
    with pytest.raises(QueryError, match="texts of city are compared without blanks around them"):
        compiled(f"WHERE city = '{text}'")


@pytest.mark.parametrize(
    ("select", "where", "match"),
    [
        ("COUNT(*)", "WHERE city = 5", "city has values like 'Rome', and 5 is none"),
        ("COUNT(*)", "WHERE city < 'Rome'", "without an order"),
        ("MIN(city)", "", "city is open: it has no first and no last text"),
        ("SUM(city)", "", "holds no numbers"),
    ],
)
def test_what_makes_no_sense_is_refused(select: str, where: str, match: str) -> None:
    with pytest.raises(QueryError, match=match):
        compiled(where, select=select)
    with pytest.raises(QueryError):
        compiled(where, {}, select=select)


def test_a_number_is_no_text_where_nothing_is_known_yet() -> None:
    with pytest.raises(QueryError, match="city has values like 'any text', and 5 is none"):
        compiled("WHERE city = 5", {})


def test_patterns_look_at_known_keys() -> None:
    cache = CompileCache(DOMAIN, "people", (), Unit())
    workload = cache.compile(cache.parse("SELECT COUNT(*) FROM people WHERE city LIKE 'R%'"), None, KEYS)
    assert coefficients(workload.map, Domain((CITY,)))[0].tolist() == [1, 0, 0, 0, 0, 0, 0, 0]
    assert "values of city that are not listed read 'other' here, whatever they are" in workload.remarks


def test_distinct_values_are_texts() -> None:
    cache = CompileCache(DOMAIN, "people", (), Unit())
    workload = cache.compile(cache.parse("SELECT COUNT(DISTINCT city) FROM people"), None, KEYS)
    assert isinstance(workload.map, Distinct)
    assert workload.map.of == "city"
    assert not [remark for remark in workload.remarks if "count as one" in remark]
    assert coefficients(workload.map.groups, Domain((CITY,)))[0].tolist() == [1] * 7 + [0]


def test_people_by_a_number_of_their_own_rows() -> None:
    cache = CompileCache(DOMAIN, "people", (), Unit(column="who", max_contributions=3))
    text = "SELECT COUNT(*) FROM (SELECT who, SUM(age) AS s FROM people WHERE city = 'Bern' GROUP BY who) WHERE s >= 1"
    workload = cache.compile(cache.parse(text), None, KEYS)
    assert workload.named == (("city", "Bern"),)
    for piece in pieces_of(workload.map):
        assert isinstance(piece, PerPerson)
        assert alike(piece, "city", 4, 6)
        assert not alike(piece, "city", 3, 6)


def test_conditions_over_very_many_columns() -> None:
    many = Domain((CITY, *(IntegerRange(name=f"a{n}", lower=0, upper=40) for n in range(5))))
    ties = " OR ".join(f"a{n} = 1" for n in range(5))
    found = compiled(f"WHERE city = 'Bern' OR {ties}", domain=many)
    assert isinstance(found, Predicate)
    assert found.sizes[0] == CITY.size
    assert alike(found, "city", 4, 6)
    assert not alike(found, "city", 3, 6)


@pytest.mark.parametrize("seed", range(20))
def test_no_row_tells_cells_apart_that_the_question_does_not_know(seed: int) -> None:
    rng = Random(seed)
    condition = " AND ".join(rng.sample([*CONDITIONS], 2))
    select, group = rng.choice([("COUNT(*)", ""), ("city, COUNT(*)", "GROUP BY city"), ("AVG(age)", "")])
    found = compiled(f"WHERE {condition} {group}", select=select)
    table = coefficients(found, DOMAIN).reshape(-1, 8, 4)
    assert all(np.array_equal(table[:, cell], table[:, 6]) for cell in (1, 4, 5))


def test_strategies_may_tell_apart_what_the_queries_do() -> None:
    queries = compiled("WHERE city = 'Oslo'")
    for first, told in ((3, True), (4, False), (6, False)):
        rows = Product((Mask(("city",), (8,), Steps.ranges(range(first), range(1, first + 1), 8)),))
        assert tells_no_more([rows], queries, DOMAIN) is told
    assert tells_no_more([], queries, DOMAIN)
    ages = Product((Mask(("age",), (4,), Steps.identity(4)),))
    assert tells_no_more([ages], queries, DOMAIN)
    assert tells_no_more([compiled("WHERE city = 'Oslo'")], PartwiseMap((ages, queries)), DOMAIN)
    assert not tells_no_more([queries], ages, DOMAIN)


def test_other_kinds_of_maps_are_refused() -> None:
    columns = OpenColumns.of(DOMAIN, KEYS, ())
    with pytest.raises(QueryError, match="open columns are not for this kind of question"):
        columns.spread(Thresholds(("city", "age"), columns.domain.sizes(("city", "age")), 1))


def test_closed_columns() -> None:
    assert closed(DOMAIN, "these are").names == ("age",)
    assert closed(Domain((AGE,)), "these are") == Domain((AGE,))
    for named in (["city"], [("age", "city")]):
        with pytest.raises(QueryError, match="these are about columns whose values are declared, and city is open"):
            closed(DOMAIN, "these are", named)
    with pytest.raises(QueryError, match="city is open"):
        closed(Domain((CITY,)), "these are")


def test_names_are_found_in_any_spelling_and_other_columns_are_left_alone() -> None:
    query = parse("SELECT COUNT(*) FROM people WHERE CITY = 'x' AND town = 'y' AND age = 1 AND city LIKE 'z%'")
    assert keys_named(query, DOMAIN) == [("city", "x")]
