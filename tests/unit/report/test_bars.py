"""Bars and sparklines of characters."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bursar.report.bars import BLOCKS, PLAIN, bars, ink_for, sparkline, with_bars
from unit.test_answer import ANSWER

TWO = replace(
    ANSWER, outputs=("n", "m"), values=((9.0, 1.0), (1.0, 9.0)), low=((8.0, -1.0), (-1.0, 8.0)), high=((10.0, 3.0),) * 2
)


def test_a_bar_ends_at_its_number_and_is_marked_from_low_to_high() -> None:
    drawn = bars([50.0, 100.0], [40.0, 90.0], [60.0, 110.0], width=12, ink=PLAIN)
    assert drawn == ["####[+]", "#########[+]"]
    wide = bars([50.0], [30.0], [70.0], width=71, ink=PLAIN)
    assert wide == ["#" * 30 + "[" + "-" * 19 + "+" + "-" * 19 + "]"]


def test_numbers_below_zero_go_the_other_way() -> None:
    assert bars([-50.0, 50.0], [-50.0, 50.0], [-50.0, 50.0], width=11, ink=PLAIN) == ["+####|", "     #####+"]


def test_edges() -> None:
    assert bars([0.0], [0.0], [0.0], width=20, ink=PLAIN) == ["|"]
    assert bars([], [], [], width=20, ink=PLAIN) == []
    endless = bars([5.0, 10.0], [-math.inf, 10.0], [math.inf, 10.0], width=11, ink=PLAIN)
    assert endless == ["[----+----]", "##########+"]
    assert len(bars([math.nan, 1.0], [0.0, 0.0], [1.0, 2.0], width=10, ink=PLAIN)) == 2


numbers = st.floats(allow_nan=True, allow_infinity=True)


@given(lines=st.lists(st.tuples(numbers, numbers, numbers)), width=st.integers(10, 60))
def test_any_numbers_fit(lines: list[tuple[float, float, float]], width: int) -> None:
    columns = [[line[place] for line in lines] for place in range(3)]
    drawn = bars(*columns, width=width, ink=BLOCKS)
    assert len(drawn) == len(lines)
    assert all(len(bar) <= width for bar in drawn)
    assert len(sparkline(*columns, ink=BLOCKS)) == len(lines)


def test_a_sparkline_rises_and_marks_what_may_be_zero() -> None:
    assert sparkline([0.0, 70.0, 35.0], [-9.0, 60.0, 30.0], [9.0, 80.0, 40.0], ink=BLOCKS) == "·█▅"
    assert sparkline([-5.0], [-6.0], [-4.0], ink=BLOCKS) == "▁"


def test_bars_stand_behind_the_lines_of_a_table() -> None:
    table = ANSWER.table()
    drawn = with_bars(ANSWER, table, width=80, ink=PLAIN).splitlines()
    assert all(line.startswith(plain.rstrip()) for line, plain in zip(drawn, table.splitlines(), strict=True))
    assert "#" in drawn[2]
    assert "#" not in drawn[3]
    assert max(map(len, drawn)) <= 80


@pytest.mark.parametrize("width", [10, 40])
def test_without_room_the_table_stays_as_it_is(width: int) -> None:
    assert with_bars(ANSWER, ANSWER.table(), width=width, ink=PLAIN) == ANSWER.table()
    assert with_bars(TWO, TWO.table(), width=4, ink=PLAIN) == TWO.table()


def test_several_aggregates_get_a_sparkline_each() -> None:
    assert with_bars(TWO, TWO.table(), width=80, ink=BLOCKS).splitlines()[-2:] == ["n  █·", "m  ·█"]


def test_one_number_needs_no_picture() -> None:
    one = replace(ANSWER, labels=ANSWER.labels[:1], values=ANSWER.values[:1], low=ANSWER.low[:1], high=ANSWER.high[:1])
    assert with_bars(one, one.table(), width=80, ink=BLOCKS) == one.table()


@pytest.mark.parametrize(("encoding", "ink"), [("utf-8", BLOCKS), ("ascii", PLAIN), (None, PLAIN), ("nonsense", PLAIN)])
def test_plain_characters_where_there_are_no_others(encoding: str | None, ink: object) -> None:
    assert ink_for(encoding) is ink
