"""Joined tables: without one person's rows, all other rows are exactly as they were, whatever the tables hold."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.core.domain import Attribute, Categories, Domain, IntegerRange
from bursar.core.extensions import joins
from bursar.core.extensions.joins import Parent, join_parents
from bursar.core.source.duckdb import SETTINGS
from bursar.core.source.raw import attached, stored_table
from bursar.core.source.servers import joined_rows
from bursar.core.source.servers.duckdb_file import DuckDBFile
from bursar.core.source.servers.joined_rows import server_table
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


Join = Callable[[dict[str, list[Row]], str, tuple[Parent, ...]], Counter[Row]]


@contextmanager
def stored(rows: dict[str, list[Row]]) -> Iterator[Path]:
    """A DuckDB file with the tables."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tables.duckdb"
        with duckdb.connect(str(path)) as connection:
            for name, columns in TABLES.items():
                fields = ", ".join(f"{column} {'VARCHAR' if column in TEXTS else 'INTEGER'}" for column in columns)
                connection.execute(f"CREATE TABLE {name} ({fields})")
                if rows[name]:
                    connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(columns))})", rows[name])
        yield path


def joined(rows: dict[str, list[Row]], root: str, parents: tuple[Parent, ...]) -> Counter[Row]:
    """The joined rows, as a multiset; the unit stands last."""
    with stored(rows) as path, duckdb.connect(":memory:", config=SETTINGS) as connection:
        text = attached(connection, path)
        names = [root, *(parent.table for parent in parents)]
        tables = {name: stored_table(connection, path, name, text) for name in names}
        raw = join_parents(connection, tables[root], tables, parents, "person", "a secret")
        return Counter(connection.execute(f"SELECT * FROM {raw.relation}").fetchall())


def in_place(rows: dict[str, list[Row]], root: str, parents: tuple[Parent, ...]) -> Counter[Row]:
    """The same rows, joined by the statement for tables that stay where they are."""
    return told_in_place(rows, root, parents)[0]


def told_in_place(rows: dict[str, list[Row]], root: str, parents: tuple[Parent, ...]) -> tuple[Counter[Row], int]:
    """The joined rows, and how many there are by the statement that says so."""
    names = [name for name in TABLES[root] if name != "person"]
    for parent in parents:
        names += [*parent.columns, *([] if parent.owner else [parent.has])]
    domain = Domain(tuple(replace(CODED.get(name, FLAG), name=name) for name in dict.fromkeys(names)))
    with stored(rows) as path, closing(DuckDBFile(path, "main", root, None, [p.table for p in parents])) as server:
        made = joined_rows.join_parents(server, server_table(server), parents, domain, "person")
        (((number,),),) = server.lines(made.number, None)
        server._connection.execute("SET VARIABLE groups = 1; SET VARIABLE one_group = 0")
        secret = {"secret": "a secret"} if "$secret" in made.rows else {}
        found = server._connection.execute(made.rows, secret).fetchall()
    flags = [place for place, name in enumerate(names) if name not in CODED]
    shown = (tuple(bool(v) if place in flags else v for place, v in enumerate(row)) for row in found)
    return Counter(shown), number


NUMBERS = IntegerRange(name="number", lower=0, upper=99)
FLAG = Categories(name="flag", values=(True, False))
CODED: dict[str, Attribute] = {
    **dict.fromkeys(("stay", "kind", "number", "price"), NUMBERS),
    "sex": Categories(name="sex", values=("F", "M")),
    "ward": Categories(name="ward", values=("A", "B", "C")),
    "shop": Categories(name="shop", values=("x", "y")),
}
JOINS = pytest.mark.parametrize("join", [joined, in_place])
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
@JOINS
@pytest.mark.parametrize("name", SHAPES)
@settings(max_examples=8, deadline=None)
@given(rows=some_rows, who=st.sampled_from(["ann", "eve"]))
def test_whether_somebody_is_there_changes_no_other_row(
    join: Join, name: str, rows: dict[str, list[Row]], who: str
) -> None:
    root, parents = SHAPES[name]
    assert join(without(rows, who), root, parents) == others(join(rows, root, parents), who)


@JOINS
@settings(max_examples=8, deadline=None)
@given(rows=some_rows)
def test_many_to_one_adds_no_row_and_takes_none(join: Join, rows: dict[str, list[Row]]) -> None:
    found = join(rows, "visits", (STAYS, PEOPLE, PRICES))
    whose = Counter(row[-1] for row in found.elements())
    assert whose == Counter(row[0] for row in rows["visits"])


@settings(max_examples=8, deadline=None)
@given(rows=some_rows)
def test_how_many_rows_there_are_is_known_beforehand(rows: dict[str, list[Row]]) -> None:
    for root, parents in SHAPES.values():
        found, number = told_in_place(rows, root, parents)
        assert number == found.total()


ONE = {name: [] for name in TABLES} | {"prices": [(1, 10), (2, 20)]}


@JOINS
def test_of_several_rows_for_one_key_one_is_kept_whole(join: Join) -> None:
    rows = {**ONE, "visits": [("ann", 1, 1)] * 3, "stays": [(1, "ann", "A"), (1, "ann", "B"), (1, "bob", "C")]}
    found = join(rows, "visits", (STAYS,))
    assert sum(found.values()) == 3
    assert len(found) == 1  # the same one for all rows
    assert next(iter(found))[-3] in ("A", "B")


@JOINS
def test_a_row_with_several_owners_counts_for_each(join: Join) -> None:
    rows = {**ONE, "lines": [(1, 1), (2, 1)], "orders": [(1, "ann", "x"), (1, "bob", "y"), (1, "ann", "x")]}
    found = join(rows, "lines", (ORDERS,))
    assert sorted(row[-1] for row in found.elements()) == ["ann", "bob"]
    assert sorted(row[-2] for row in found.elements()) == ["x", "y"]


@JOINS
def test_a_row_says_whether_it_has_a_row_there(join: Join) -> None:
    rows = {**ONE, "visits": [("ann", 1, 1), ("bob", 1, 3)], "people": [("ann", None)]}
    found = join(rows, "visits", (PEOPLE, PRICES))
    assert sorted(found.elements()) == [(1, 1, None, True, 10, True, "ann"), (1, 3, None, False, None, False, "bob")]


@JOINS
def test_keys_of_different_types_match_by_their_text(join: Join) -> None:
    rows = {**ONE, "visits": [("ann", 1, 1)], "stays": [(1, "ann", "A")]}
    by_text = Parent(table="people", keys=(("stay", "sex"),), columns=())
    rows["people"] = [("ann", "1"), ("ann", "no number")]
    assert join(rows, "visits", (by_text,)) == Counter({(1, 1, True, "ann"): 1})


@JOINS
def test_a_public_table_with_two_rows_for_a_key_is_refused(join: Join) -> None:
    rows = {**ONE, "visits": [("ann", 1, 1)], "prices": [(1, 10), (1, 20)]}
    with pytest.raises(SourceError, match="several rows for one key"):
        join(rows, "visits", (PRICES,))


@JOINS
@pytest.mark.parametrize(
    ("root", "parents"), [("lines", (PRICES,)), ("visits", (ORDERS,)), ("lines", (ORDERS, ORDERS))]
)
def test_whose_rows_are_must_be_known_and_once(join: Join, root: str, parents: tuple[Parent, ...]) -> None:
    with pytest.raises(SourceError, match="one owner table"):
        join(ONE, root, parents)


def test_a_table_that_is_joined_by_nothing_is_refused() -> None:
    for wrong in ({"public": True}, {"owner": True}, {"public": True, "owner": True}):
        with pytest.raises(ConfigError):
            Parent(table="t", keys=(), columns=(), **wrong)


# -- wrong twins ----------------------------------------------------------------------------------------------------


def moves_others(join: Join, rows: dict[str, list[Row]], root: str, parents: tuple[Parent, ...]) -> bool:
    return join(without(rows, "eve"), root, parents) != others(join(rows, root, parents), "eve")


SHARED = {
    **ONE,
    "visits": [("ann", 1, 1), ("eve", 1, 1)],
    "stays": [(1, "ann", "A"), (1, "eve", "B")],
    "lines": [(1, 1)],
    "orders": [(1, "ann", "x"), (1, "eve", "y")],
}


@JOINS
def test_a_join_without_the_person_would_be_found(join: Join, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not moves_others(join, SHARED, "visits", (STAYS,))
    strangers = Parent(table="stays", keys=(("stay", "stay"),), columns=("ward",), public=True)
    monkeypatch.setattr(module_of(join), "_check_single", lambda *given: None)
    assert moves_others(join, SHARED, "visits", (strangers,))


def module_of(join: Join) -> ModuleType:
    return joins if join is joined else joined_rows


def single_and(further: str, join: Join, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let rows of private parents meet a further condition, with {key} for the key."""
    module = module_of(join)
    single, key = module._single, "id" if join is joined else "key0_"
    unit = "person" if join is joined else "unit_"
    condition = further.format(key=key, unit=unit)
    monkeypatch.setattr(module, "_single", lambda *given: f"(FROM ({single(*given)}) QUALIFY {condition})")


@JOINS
def test_dropping_rows_with_two_owners_would_be_found(join: Join, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not moves_others(join, SHARED, "lines", (ORDERS,))
    single_and("count(*) OVER (PARTITION BY {key}) = 1", join, monkeypatch)
    assert moves_others(join, SHARED, "lines", (ORDERS,))


@JOINS
def test_the_first_owner_alone_would_be_found(join: Join, monkeypatch: pytest.MonkeyPatch) -> None:
    single_and("row_number() OVER (PARTITION BY {key} ORDER BY {unit} DESC) = 1", join, monkeypatch)
    assert moves_others(join, SHARED, "lines", (ORDERS,))
