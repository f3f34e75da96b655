"""Stacks: the rows of all parts, in order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.core.queries import Mask, Product, Stack, Steps
from bursar.errors import QueryError
from harness.maps import Table, domain_of, mask_of, products, tables

DOMAIN = domain_of(a=3, b=2, c=4)
EYE = Product((mask_of(DOMAIN, ("a",), np.eye(3, dtype=int)),))
WEIGHTED = Product((mask_of(DOMAIN, ("b",), [[5, -7]]),))
NONE = Product((Mask(("c",), (4,), Steps.ranges([], [], 4)),))


@settings(max_examples=60, deadline=None)
@given(st.lists(products(DOMAIN), max_size=4), tables(DOMAIN), st.data())
def test_rows_of_all_parts_in_order(parts: list[Product], table: Table, data: st.DataObject) -> None:
    stack = Stack(tuple(parts))
    answers = [int(x) for part in parts for x in part.apply(table)]
    assert stack.apply(table).tolist() == answers
    assert stack.rows == len(answers)
    assert stack.norms(2) is not None
    assert len(stack.norms(1)) == len(parts)
    if answers:
        picks = data.draw(st.lists(st.integers(0, len(answers) - 1), max_size=5))
        assert stack.take(picks).apply(table).tolist() == [answers[i] for i in picks]


def test_columns_come_once_and_the_largest_is_of_all_parts() -> None:
    stack = Stack((EYE, WEIGHTED, EYE))
    assert stack.attrs == ("a", "b")
    assert stack.largest() == 7


def test_the_empty_stack_asks_nothing() -> None:
    empty = Stack(())
    assert (empty.rows, empty.attrs, empty.largest(), empty.norms(1)) == (0, (), 0, ())
    assert empty.apply(Table(DOMAIN)).shape == (0,)
    assert empty.apply(Table(DOMAIN)).dtype == np.int64
    assert empty.take([]).rows == 0


def test_parts_without_rows_do_not_shift_the_others() -> None:
    stack = Stack((NONE, EYE, NONE, WEIGHTED, NONE))
    table = Table(DOMAIN, np.arange(24))
    assert stack.take([3, 0]).apply(table).tolist() == stack.apply(table)[[3, 0]].tolist()
    assert isinstance(stack.take([3]), Product)


@pytest.mark.parametrize("row", [-1, 4])
def test_rows_that_are_not_there_are_refused(row: int) -> None:
    with pytest.raises(QueryError, match="not there"):
        Stack((EYE, WEIGHTED)).take([row])


def test_a_stack_of_one_is_not_its_part() -> None:
    assert Stack((EYE,)).digest != EYE.digest
    assert Stack((EYE, WEIGHTED)).digest != Stack((WEIGHTED, EYE)).digest
