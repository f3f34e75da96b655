"""Joined tables: without one person's rows, all other rows are exactly as they were, whatever the tables hold."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.core.extensions import joins
from bursar.core.extensions.joins import Parent, join_parents
from bursar.core.source.duckdb import SETTINGS
from bursar.core.source.raw import attached, stored_table
from bursar.errors import ConfigError, SourceError

WHO = st.sampled_from(["ann", "bob", "eve", None])
KEY = st.sampled_from([1, 2, None])
Row = tuple[Any, ...]

PEOPLE = Parent(table="people", keys=(), columns=("sex",))
STAYS = Parent(table="stays", keys=(("stay", "stay"),), columns=("ward",))
PRICES = Parent(table="prices", keys=(("kind", "id"),), columns=("price",), public=True)
ORDERS = Parent(table="orders", keys=(("number", "id"),), columns=("shop",), owner=True)

TABLES = {
    "visits": ("person", "stay", "kind"),
    "lines": ("number", "kind"),
    "people": ("person", "sex"),
    "stays": ("stay", "person", "ward"),
    "orders": ("id", "person", "shop"),
    "prices": ("id", "price"),
}
some_rows = st.fixed_dictionaries(
    {
        "visits": st.lists(st.tuples(WHO, KEY, KEY), max_size=6),
        "lines": st.lists(st.tuples(KEY, KEY), max_size=5),
        "people": st.lists(st.tuples(WHO, st.sampled_from(["F", "M", None])), max_size=5),
        "stays": st.lists(st.tuples(KEY, WHO, st.sampled_from(["A", "B", None])), max_size=6),
        "orders": st.lists(st.tuples(KEY, WHO, st.sampled_from(["x", "y"])), max_size=5),
        "prices": st.just([(1, 10), (2, 20)]),
    }
)


def joined(rows: dict[str, list[Row]], root: str, parents: tuple[Parent, ...]) -> Counter[Row]:
    """The joined rows, as a multiset; the unit stands last."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tables.duckdb"
        with duckdb.connect(str(path)) as connection:
            for name, columns in TABLES.items():
                fields = ", ".join(f"{column} {'VARCHAR' if column in TEXTS else 'INTEGER'}" for column in columns)
                connection.execute(f"CREATE TABLE {name} ({fields})")
                if rows[name]:
                    connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(columns))})", rows[name])
        with duckdb.connect(":memory:", config=SETTINGS) as connection:
            text = attached(connection, path)
            names = [root, *(parent.table for parent in parents)]
            tables = {name: stored_table(connection, path, name, text) for name in names}
            raw = join_parents(connection, tables[root], tables, parents, "person", "a secret")
            return Counter(connection.execute(f"SELECT * FROM {raw.relation}").fetchall())


TEXTS = {"person", "sex", "ward", "shop"}
SHAPES = {
    "people": ("visits", (PEOPLE,)),
    "people and prices": ("visits", (PRICES, PEOPLE)),
    "stays of the same person": ("visits", (STAYS, PEOPLE)),
    "owned by orders": ("lines", (ORDERS, PRICES)),
    "owned by orders of people": ("lines", (PEOPLE, ORDERS)),
}


def without(rows: dict[str, list[Row]], who: str) -> dict[str, list[Row]]:
    """The tables without anybody's own rows; public ones, and those without the unit column, stay."""
    return {
        name: [row for row in lines if "person" not in TABLES[name] or row[TABLES[name].index("person")] != who]
        for name, lines in rows.items()
    }


def others(found: Counter[Row], who: str) -> Counter[Row]:
    return Counter({row: times for row, times in found.items() if row[-1] != who})


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", SHAPES)
@settings(max_examples=8, deadline=None)
@given(rows=some_rows, who=st.sampled_from(["ann", "eve"]))
def test_whether_somebody_is_there_changes_no_other_row(name: str, rows: dict[str, list[Row]], who: str) -> None:
    root, parents = SHAPES[name]
    assert joined(without(rows, who), root, parents) == others(joined(rows, root, parents), who)


@settings(max_examples=8, deadline=None)
@given(rows=some_rows)
def test_many_to_one_adds_no_row_and_takes_none(rows: dict[str, list[Row]]) -> None:
    found = joined(rows, "visits", (STAYS, PEOPLE, PRICES))
    whose = Counter(row[-1] for row in found.elements())
    assert whose == Counter(row[0] for row in rows["visits"])


ONE = {name: [] for name in TABLES} | {"prices": [(1, 10), (2, 20)]}


def test_of_several_rows_for_one_key_one_is_kept_whole() -> None:
    rows = {**ONE, "visits": [("ann", 1, 1)] * 3, "stays": [(1, "ann", "A"), (1, "ann", "B"), (1, "bob", "C")]}
    found = joined(rows, "visits", (STAYS,))
    assert sum(found.values()) == 3
    assert len(found) == 1  # the same one for all rows
    assert next(iter(found))[-3] in ("A", "B")


def test_a_row_with_several_owners_counts_for_each() -> None:
    rows = {**ONE, "lines": [(1, 1), (2, 1)], "orders": [(1, "ann", "x"), (1, "bob", "y"), (1, "ann", "x")]}
    found = joined(rows, "lines", (ORDERS,))
    assert sorted(row[-1] for row in found.elements()) == ["ann", "bob"]
    assert sorted(row[-2] for row in found.elements()) == ["x", "y"]


def test_a_row_says_whether_it_has_a_row_there() -> None:
    rows = {**ONE, "visits": [("ann", 1, 1), ("bob", 1, 3)], "people": [("ann", None)]}
    found = joined(rows, "visits", (PEOPLE, PRICES))
    assert sorted(found.elements()) == [(1, 1, None, True, 10, True, "ann"), (1, 3, None, False, None, False, "bob")]


def test_keys_of_different_types_match_by_their_text() -> None:
    rows = {**ONE, "visits": [("ann", 1, 1)], "stays": [(1, "ann", "A")]}
    by_text = Parent(table="people", keys=(("stay", "sex"),), columns=())
    rows["people"] = [("ann", "1"), ("ann", "no number")]
    assert joined(rows, "visits", (by_text,)) == Counter({(1, 1, True, "ann"): 1})


def test_a_public_table_with_two_rows_for_a_key_is_refused() -> None:
    rows = {**ONE, "visits": [("ann", 1, 1)], "prices": [(1, 10), (1, 20)]}
    with pytest.raises(SourceError, match="several rows for one key"):
        joined(rows, "visits", (PRICES,))


@pytest.mark.parametrize(
    ("root", "parents"), [("lines", (PRICES,)), ("visits", (ORDERS,)), ("lines", (ORDERS, ORDERS))]
)
def test_whose_rows_are_must_be_known_and_once(root: str, parents: tuple[Parent, ...]) -> None:
    with pytest.raises(SourceError, match="one owner table"):
        joined(ONE, root, parents)


def test_a_table_that_is_joined_by_nothing_is_refused() -> None:
    for wrong in ({"public": True}, {"owner": True}, {"public": True, "owner": True}):
        with pytest.raises(ConfigError):
            Parent(table="t", keys=(), columns=(), **wrong)


# -- wrong twins ----------------------------------------------------------------------------------------------------


def moves_others(rows: dict[str, list[Row]], root: str, parents: tuple[Parent, ...]) -> bool:
    return joined(without(rows, "eve"), root, parents) != others(joined(rows, root, parents), "eve")


SHARED = {
    **ONE,
    "visits": [("ann", 1, 1), ("eve", 1, 1)],
    "stays": [(1, "ann", "A"), (1, "eve", "B")],
    "lines": [(1, 1)],
    "orders": [(1, "ann", "x"), (1, "eve", "y")],
}


def test_a_join_without_the_person_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not moves_others(SHARED, "visits", (STAYS,))
    strangers = Parent(table="stays", keys=(("stay", "stay"),), columns=("ward",), public=True)
    monkeypatch.setattr(joins, "_check_single", lambda *given: None)
    assert moves_others(SHARED, "visits", (strangers,))


def test_dropping_rows_with_two_owners_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not moves_others(SHARED, "lines", (ORDERS,))
    single = joins._single

    def drops(stored: Any, parent: Parent, unit: str) -> str:
        return f"(FROM {single(stored, parent, unit)} QUALIFY count(*) OVER (PARTITION BY id) = 1)"

    monkeypatch.setattr(joins, "_single", drops)
    assert moves_others(SHARED, "lines", (ORDERS,))


def test_the_first_owner_alone_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    single = joins._single

    def first(stored: Any, parent: Parent, unit: str) -> str:
        place = "row_number() OVER (PARTITION BY id ORDER BY person DESC)"
        return f"(FROM {single(stored, parent, unit)} QUALIFY {place} = 1)"

    monkeypatch.setattr(joins, "_single", first)
    assert moves_others(SHARED, "lines", (ORDERS,))
