"""Open columns in DuckDB: texts are kept, and counted in the cells that they have at the time."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from random import Random
from unittest.mock import Mock

import duckdb
import numpy as np
import pandas as pd
import pytest

from bursar.core.domain import Domain, IntegerRange, Stray, Unit
from bursar.core.extensions.open_keys import OpenText, is_key, normalised
from bursar.core.queries import Distinct, Mask, PerPerson, Predicate, Product, Quorum, Steps, Within
from bursar.core.source.duckdb import DuckDBSource
from bursar.core.source.servers.cell_rule import coded
from bursar.core.source.servers.dialect import Dialect
from bursar.errors import ConfigError, SourceError

KEY = bytes(range(32))
CITY, AGE = OpenText(name="city", capacity=3), IntegerRange(name="age", lower=0, upper=3, null=0)
BOTH = Domain((CITY, AGE))
ODD = [
    "",
    " ",
    "Rome",
    " Rome\t",
    "ROME",
    "e\u0301",
    "\u00e9",
    "a" * 250,
    "a" * 200,
    "a" * 199 + " b",
    "o'b",
    "a/b",
    "other",
]
ODD += ["\u212b", "\u00a0x", "x\u3000", "\U0001f600" * 201, "NULL", "null", "a\nb", "0", "1.0"]


def source_of(
    rows: list[tuple[object, ...]], unit: Unit | None = None, domain: Domain = BOTH, key: bytes = KEY
) -> DuckDBSource:
    frame = pd.DataFrame(rows, columns=[*domain.names, *(["who"] if unit is not None else [])])
    return DuckDBSource(frame, domain, unit or Unit(), key, 1000)


def test_texts_are_spelt_as_keys_are() -> None:
    texts = [text for text in dict.fromkeys(map(normalised, ODD)) if is_key(text)]
    capacity = OpenText(name="city", capacity=len(texts))
    source = source_of([(text,) for text in ODD], domain=Domain((capacity,)))
    source.assign({"city": texts})
    wanted = [sum(normalised(text) == key for text in ODD) for key in texts]
    strays = len(ODD) - sum(wanted)
    assert source.table(("city",)).tolist() == [*wanted, strays, 0]
    assert strays == 2  # other, and a control character


@pytest.mark.parametrize("storage", ["VARCHAR", "INTEGER", "DOUBLE", "BOOLEAN", "DATE", "BLOB", "VARCHAR[]"])
def test_every_storage_type_has_texts(tmp_path: Path, storage: str) -> None:
    values = {"VARCHAR": "'1'", "INTEGER": "1", "DOUBLE": "1.5", "BOOLEAN": "true", "DATE": "DATE '2020-01-02'"}
    values |= {"BLOB": "'ab'::BLOB", "VARCHAR[]": "['a', 'b']"}
    text = {"DOUBLE": "1.5", "BOOLEAN": "true", "DATE": "2020-01-02", "BLOB": "ab", "VARCHAR[]": "[a, b]"}
    with duckdb.connect(str(tmp_path / "d.duckdb")) as connection:
        connection.execute(f"CREATE TABLE t (city {storage}); INSERT INTO t VALUES ({values[storage]}), (NULL)")
    source = DuckDBSource(tmp_path / "d.duckdb", Domain((CITY,)), Unit(), KEY, 10)
    assert source.table(("city",)).tolist() == [0, 0, 0, 1, 1]
    source.assign({"city": [text.get(storage, "1")]})
    assert source.table(("city",)).tolist() == [1, 0, 0, 0, 1]


def test_null_can_be_other() -> None:
    domain = Domain((OpenText(name="city", capacity=1, null=Stray.OTHER),))
    source = source_of([("a",), (None,), ("b",)], domain=domain)
    source.assign({"city": ["a"]})
    assert source.table(("city",)).tolist() == [1, 2]


def test_everything_is_counted_in_the_cells_of_the_time() -> None:
    rng = Random(1)
    rows = [(rng.choice(["a", "b", "c", "d", None]), rng.randint(0, 3), rng.choice("uvwxy")) for _ in range(60)]
    source = source_of(rows, Unit(column="who", max_contributions=99))
    keys: list[str] = []
    for key in ("", "b", "d", "a"):
        keys += [key] if key else []
        source.assign({"city": keys})
        cells = [
            (CITY.null_cell if text is None else keys.index(text) if text in keys else CITY.other, age, who)
            for text, age, who in rows
        ]
        table = np.zeros((5, 4), np.int64)
        for city, age, _ in cells:
            table[city, age] += 1
        assert np.array_equal(source.table(("city", "age")), table)
        either = Quorum(1, (Within("city", ((0, 2),)), Within("age", ((3, 4),))))
        count = sum(city < 2 or age == 3 for city, age, _ in cells)
        assert source.count(Predicate(("city", "age"), (5, 4), either)) == count
        groups = Product((Mask(("city",), (5,), Steps.identity(5)),))
        people = [len({who for city, _, who in cells if city == cell}) for cell in range(5)]
        assert source.distinct(Distinct(groups)).tolist() == people
        mine = [sum(city == 3 for city, _, who in cells if who == name) for name in "uvwxy"]
        value = Product((Mask(("city",), (5,), Steps.dense([[0, 0, 0, 1, 0]])),))
        histogram = PerPerson(Product(()), value, 0, 60, tuple((n, n + 1) for n in range(61)))
        assert source.per_person(histogram).tolist() == [mine.count(n) for n in range(61)]


def test_a_distinct_count_of_an_open_column_counts_texts() -> None:
    rows = [("a", 0), ("a ", 0), ("b", 0), ("c", 1), (None, 1), ("b", 1)]
    source = source_of(rows)
    ages = Product((Mask(("age",), (4,), Steps.identity(4)),))
    for keys in ([], ["b"]):
        source.assign({"city": keys})
        assert source.distinct(Distinct(Product(()), "city")).tolist() == [4]
        assert source.distinct(Distinct(ages, "city")).tolist() == [2, 3, 0, 0]


def test_which_rows_are_kept_and_the_content_do_not_depend_on_keys() -> None:
    rows = [(text, age, who) for text in ("a", "b", "c") for age in range(4) for who in "uv"]
    source = source_of(rows, Unit(column="who", max_contributions=2))
    kept = source._connection.execute("SELECT * FROM people ORDER BY ALL").fetchall()
    before = source.content()
    source.assign({"city": ["c"]})
    source.assign({"city": ["c", "a"]})
    source._content = None
    assert source.content() == before
    assert source._connection.execute("SELECT * FROM people ORDER BY ALL").fetchall() == kept
    assert source.table(()).tolist() == 4


def test_the_content_does_not_depend_on_the_order_and_tells_texts_apart() -> None:
    rows: list[tuple[object, ...]] = [("a", 0), ("b", 1), (None, 1)]
    assert len({source_of(list(order)).content() for order in permutations(rows)}) == 1
    others: list[list[tuple[object, ...]]] = [[("a", 0), ("b", 1), (text, 1)] for text in ("null", "None", "?", "N/A")]
    others.append([("a", 0), ("c", 1), (None, 1)])
    assert len({source_of(each).content() for each in [rows, *others]}) == 6


def test_rows_of_one_person_with_slashes_are_told_apart() -> None:
    """The choice is by a hash of all columns, and must not depend on the order of rows in storage."""
    domain = Domain((CITY, OpenText(name="town", capacity=1)))
    pairs: list[list[tuple[object, ...]]] = [
        [("a/b", "c", "u"), ("a", "b/c", "u")],
        [("a", None, "u"), (None, "a", "u")],
    ]
    unit = Unit(column="who", max_contributions=1)
    for rows in pairs:
        chosen = {source_of(list(order), unit, domain).content() for order in permutations(rows)}
        assert len(chosen) == 1
        by_keys = [source_of(rows, unit, domain, bytes([number] * 32)) for number in (0, 4)]  # which choose differently
        kept = {str(source._connection.execute("SELECT * FROM people").fetchall()) for source in by_keys}
        assert len(kept) == 2  # the secret decides, where rows that look alike in a hash would leave it to storage


def test_only_texts_of_open_columns_are_left() -> None:
    source = source_of([("a", 1, "u")], Unit(column="who"))
    found = source._connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
    assert sorted(name for (name,) in found) == ["cells", "keys0", "people", "totals"]
    columns = [column[:2] for column in source._connection.execute("DESCRIBE people").fetchall()]
    assert columns == [("unit", "UINTEGER"), ("c0", "VARCHAR"), ("c1", "UTINYINT"), ("rows", "BIGINT")]


def test_a_failure_has_the_same_text() -> None:
    source = source_of([("a", 1)])
    source.close()
    with pytest.raises(SourceError, match="the data could not be counted"):
        source.assign({"city": ["a"]})


def test_servers_have_no_open_columns() -> None:
    with pytest.raises(SourceError, match="column city is open; open columns are read from files and data frames"):
        coded(Mock(spec=Dialect), CITY, 0, "city", Mock())


def test_wrong_partitions() -> None:
    with pytest.raises(ConfigError):
        Domain((CITY, AGE), partition="city")
