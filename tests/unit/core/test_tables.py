"""Contingency tables in memory: always equal to the source's, whatever is kept, dropped or added up."""

from __future__ import annotations

import threading
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from bursar.core import tables as tables_module
from bursar.core.queries import Distinct, PerPerson, Predicate, Product, Quorum, Within
from bursar.core.tables import Tables
from bursar.errors import QueryError, SourceError

SIZES = {"a": 2, "b": 3, "c": 4, "d": 5}
ROWS = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5) % 7
SUBSETS = [attrs for length in range(5) for attrs in permutations(SIZES, length)]


class Counting:
    """A source over ROWS that remembers what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []
        self.before_reading = lambda: None

    def content(self, first: int | None = None) -> str:
        return ""

    def close(self) -> None: ...

    def count(self, predicate: Predicate) -> int:
        self.before_reading()
        return 17

    def distinct(self, distinct: Distinct) -> NDArray[np.int64]:
        return np.array([18], np.int64)

    def per_person(self, people: PerPerson) -> NDArray[np.int64]:
        return np.array([19], np.int64)

    def table(self, attrs: tuple[str, ...]) -> NDArray[np.int64]:
        self.before_reading()
        if len(set(attrs)) != len(attrs):
            raise QueryError("each column once")
        self.asked.append(attrs)
        return exact(attrs)


def exact(attrs: tuple[str, ...]) -> NDArray[np.int64]:
    return np.einsum(ROWS, list(range(4)), [list(SIZES).index(name) for name in attrs]).astype(np.int64)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(SUBSETS), max_size=25), st.integers(0, 1200))
def test_counts_are_the_source_s_whatever_is_kept(asked: list[tuple[str, ...]], most_bytes: int) -> None:
    tables = Tables(Counting(), most_bytes=most_bytes)
    for attrs in asked:
        counts = tables.counts(attrs)
        assert counts.shape == tuple(SIZES[name] for name in attrs)
        assert counts.dtype == np.int64
        assert (counts == exact(attrs)).all()
        held = [table.nbytes for _, table in tables._kept.values()]
        assert sum(held) == tables._bytes <= most_bytes


def test_a_table_is_read_once_in_any_order_of_its_columns() -> None:
    source = Counting()
    tables = Tables(source)
    for attrs in permutations(("a", "c", "d")):
        assert (tables.counts(attrs) == exact(attrs)).all()
    assert source.asked == [("a", "c", "d")]


def test_a_kept_table_over_more_columns_is_added_up() -> None:
    source = Counting()
    tables = Tables(source)
    tables.counts(("d", "c", "b", "a"))
    for attrs in SUBSETS:
        assert (tables.counts(attrs) == exact(attrs)).all()
    assert source.asked == [("d", "c", "b", "a")]


def test_a_very_large_table_is_not_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables_module, "SUMMED_CELLS", 50)
    source = Counting()
    tables = Tables(source)
    tables.counts(("a", "b", "c", "d"))
    tables.counts(("a", "b"))
    tables.counts(("a",))
    tables.counts(("d", "c", "b", "a"))
    assert source.asked == [("a", "b", "c", "d"), ("a", "b")]


def test_the_least_recently_used_goes_first() -> None:
    source = Counting()
    tables = Tables(source, most_bytes=8 * (2 + 3 + 4))
    for attrs in (("a",), ("b",), ("c",), ("a",), ("d",), ("a",), ("b",)):
        tables.counts(attrs)
    assert source.asked == [("a",), ("b",), ("c",), ("d",), ("b",)]


def test_a_table_that_does_not_fit_is_returned_and_not_kept() -> None:
    source = Counting()
    tables = Tables(source, most_bytes=8 * 4)
    tables.counts(("a",))
    for _ in range(2):
        assert (tables.counts(("d",)) == exact(("d",))).all()
    tables.counts(("a",))
    assert source.asked == [("a",), ("d",), ("d",)]


def test_nobody_can_change_what_is_kept() -> None:
    tables = Tables(Counting())
    for attrs in (("a", "b"), ("b", "a"), ("a",), ()):
        with pytest.raises(ValueError, match="read-only"):
            tables.counts(attrs)[...] = 0


def test_counts_do_not_show_when_the_object_is_printed() -> None:
    tables = Tables(Counting())
    tables.counts(("a", "b"))
    assert "array" not in repr(tables)


def test_errors_of_the_source_pass_and_leave_nothing_behind() -> None:
    def fail() -> None:
        raise SourceError("no")

    source = Counting()
    tables = Tables(source)
    source.before_reading = fail
    with pytest.raises(SourceError):
        tables.counts(("a",))
    source.before_reading = lambda: None
    assert (tables.counts(("a",)) == exact(("a",))).all()


def test_a_repeated_column_is_left_to_the_source_to_refuse() -> None:
    tables = Tables(Counting())
    tables.counts(("a", "b"))
    with pytest.raises(QueryError, match="each column once"):
        tables.counts(("a", "a"))


def test_threads_share_the_tables() -> None:
    tables = Tables(Counting(), most_bytes=700)
    wrong: list[tuple[str, ...]] = []

    def ask(start: int) -> None:
        for step in range(300):
            attrs = SUBSETS[(start + 7 * step) % len(SUBSETS)]
            if not (tables.counts(attrs) == exact(attrs)).all():
                wrong.append(attrs)

    threads = [threading.Thread(target=ask, args=(start,)) for start in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert sum(table.nbytes for _, table in tables._kept.values()) == tables._bytes <= 700


def test_a_predicate_is_counted_by_the_source_and_anything_else_from_tables() -> None:
    source = Counting()
    tables = Tables(source)
    either = Predicate(("a", "b"), (2, 3), Quorum(1, (Within("a", ((0, 1),)), Within("b", ((0, 1),)))))
    assert tables.answers(either).tolist() == [17]
    assert source.asked == []
    assert tables.answers(Product(())).tolist() == [int(ROWS.sum())]
    assert source.asked == [()]
