"""Per-person maps: what is refused, answers of a plain program, bytes, prices that follow from the bounds alone."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bursar.core.accounting import Accountant, AddRemove, Book, Measured, Mode, Noise, NoiseKind, Refined
from bursar.core.domain import Domain, Neighbours, Unit
from bursar.core.extensions.partitions import check_sealed
from bursar.core.extensions.per_person import LARGEST_VALUE, check_summed
from bursar.core.queries import Mask, PerPerson, Product, Stack, Steps, decode, encode
from bursar.errors import LedgerError, QueryError, Unsupported
from bursar.testing import CountsSource, EmptySource
from harness import plainly
from harness.cells import Cell, table_of
from harness.maps import domain_of

DOMAIN = domain_of(a=3, b=2)
CELLS: tuple[Cell, ...] = tuple((a, b) for a in range(3) for b in range(2))
EVERYBODY, EACH_B = Product(()), Product((Mask(("b",), (2,), Steps.identity(2)),))
BY_A = Product((Mask(("a",), (3,), Steps.dense([[-2, 1, 5]])),))
JOINT = Product((Mask(("a", "b"), (3, 2), Steps.dense([[0, 1, 2, 3, -4, 5]])),))
SUM = PerPerson(groups=EVERYBODY, value=BY_A, lower=-3, upper=7, bins=((-3, 8),), centre=0)
ROWS = PerPerson(groups=EVERYBODY, value=None, lower=0, upper=99, bins=((0, 3), (3, 100)))
LAPLACE = Noise(kind=NoiseKind.LAPLACE, scale=8.0)
ONE = 2**50
MAPS = (
    SUM,
    ROWS,
    replace(SUM, groups=EACH_B, value=JOINT, bins=((-3, 0), (2, 4), (4, 8))),
    replace(SUM, groups=EACH_B, centre=2),
    replace(SUM, bins=((5, 8),)),
    replace(SUM, groups=EACH_B, value=EVERYBODY, lower=1, upper=2, centre=None, bins=((1, 2), (2, 3))),
)


def price(people: PerPerson, most: int, mode: Mode = Mode.PURE, noise: Noise = LAPLACE) -> Fraction:
    unit = Unit(column="person", max_contributions=most)
    book = Book(Accountant(mode=mode, unit=unit), lambda: AddRemove(DOMAIN))
    book.add(Measured(strategy=people, noise=noise, version=1))
    return Fraction(book.spent(), ONE)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("uvw"), st.sampled_from(CELLS)), max_size=9), st.sampled_from(MAPS))
@example([("u", (0, 0)), ("u", (0, 0)), ("v", (2, 0)), ("v", (2, 0))], SUM)
def test_answers_are_those_of_a_plain_program(rows: list[tuple[str, Cell]], people: PerPerson) -> None:
    who = np.array([ord(name) for name, _ in rows], np.int64)
    cells = {name: np.array([cell[DOMAIN.place(name)] for _, cell in rows], np.int64) for name in people.attrs}
    counted = people.counted(who, cells, np.ones(len(rows), np.int64))
    assert counted.tolist() == plainly.answers(people, rows, DOMAIN).tolist()


@pytest.mark.parametrize("people", MAPS)
def test_bytes_give_the_same_map(people: PerPerson) -> None:
    again = decode(encode(people))
    assert isinstance(again, PerPerson)
    assert again.digest == people.digest
    assert (again.bins, again.lower, again.upper, again.centre) == (
        people.bins,
        people.lower,
        people.upper,
        people.centre,
    )
    assert len({each.digest for each in MAPS}) == len(MAPS)


def test_bytes_that_say_something_else_are_refused() -> None:
    for old, new in (
        (b'"upper":99', b'"upper":-9'),
        (b'"centre":null', b'"centre":1.5'),
        (b'"lower":0', b'"lower":{}'),
    ):
        body = encode(ROWS)
        assert old in body
        changed = body[8:].replace(old, new)
        length = int.from_bytes(body[:8], "little") + len(new) - len(old)
        with pytest.raises(LedgerError):
            decode(length.to_bytes(8, "little") + changed)


@pytest.mark.parametrize(
    "changes",
    [
        {"lower": 8},
        {"lower": 0.5},
        {"upper": LARGEST_VALUE + 1},
        {"bins": ()},
        {"bins": ((2, 2),)},
        {"bins": ((0, 4), (3, 8))},
        {"bins": ((0, True),)},
        {"centre": 1.0},
        {"value": Stack((BY_A,))},
        {"value": EACH_B},
        {"value": Product((Mask(("a",), (3,), Steps.dense([[2**41, 0, 0]])),))},
        {"value": None, "groups": EACH_B},
        {"groups": BY_A},
    ],
)
def test_what_is_no_number_of_people_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(QueryError):
        replace(SUM, **changes)


@pytest.mark.parametrize(
    ("people", "change"),
    [
        (SUM, 7),
        (replace(SUM, lower=-9), 7),  # what is added up lies in the bins
        (replace(SUM, lower=-9, bins=((-9, 8),)), 9),
        (replace(SUM, centre=2), 5),
        (replace(SUM, bins=((5, 6),)), 5),
        (replace(SUM, bins=((0, 1),)), 1),
        (ROWS, 1),
    ],
)
def test_a_person_changes_no_more_than_the_bounds_say(people: PerPerson, change: int) -> None:
    assert people.change == change
    for most in (1, 4):
        assert price(people, most) == Fraction(change, 8)
        gaussian = Noise(kind=NoiseKind.GAUSSIAN, scale=8.0)
        assert price(people, most, Mode.CONCENTRATED, gaussian) == Fraction(change * change, 128)


def test_groups_of_one_person_add_up() -> None:
    by_b = replace(SUM, groups=EACH_B)
    assert [price(by_b, most) for most in (1, 2, 5)] == [Fraction(7, 8), Fraction(14, 8), Fraction(14, 8)]
    assert price(by_b, 5, Mode.CONCENTRATED) == Fraction(2 * 49, 128)


def test_what_is_lost_is_lost_everywhere() -> None:
    """A person's number may come from any of their rows, so it is booked on no cells."""
    unit = Unit(column="person", max_contributions=1)
    book = Book(Accountant(mode=Mode.PURE, unit=unit), lambda: AddRemove(DOMAIN))
    first, second = (Product((Mask(("b",), (2,), Steps.ranges([at], [at + 1], 2)),)) for at in (0, 1))
    for groups in (first, second):
        book.add(Measured(strategy=replace(SUM, groups=groups), noise=LAPLACE, version=1))
    assert book.spent() == 2 * 7 * ONE // 8


def test_there_is_no_price_without_people() -> None:
    for unit in (Unit(), Unit(column="person", neighbours=Neighbours.REPLACE_ONE)):
        with pytest.raises(Unsupported, match="unit is a column"):
            Accountant(mode=Mode.PURE, unit=unit).footprints(Measured(strategy=SUM, noise=LAPLACE, version=1))


def test_rows_are_taken_one_by_one() -> None:
    several = MAPS[2]
    assert several.take(range(6)) is several
    one = several.take([4])
    assert isinstance(one, PerPerson)
    assert (one.rows, one.bins) == (1, ((2, 4),))
    with pytest.raises(QueryError, match="one by one"):
        several.take([0, 2])


def test_tables_do_not_know_people_and_nobody_is_nobody() -> None:
    with pytest.raises(QueryError, match="does not tell people apart"):
        CountsSource(table_of(DOMAIN, []), DOMAIN).per_person(SUM)
    assert EmptySource(DOMAIN).per_person(MAPS[2]).tolist() == [0] * 6


def test_columns_that_the_data_do_not_have_are_refused() -> None:
    check_summed(DOMAIN, SUM)
    check_summed(DOMAIN, ROWS)
    for wrong in (
        Product((Mask(("z",), (3,), Steps.dense([[1, 2, 3]])),)),
        Product((Mask(("a",), (4,), Steps.dense([[1, 2, 3, 4]])),)),
    ):
        with pytest.raises(QueryError, match="does not fit the columns"):
            check_summed(DOMAIN, replace(SUM, value=wrong))


def test_partitions_that_are_not_sealed_are_not_looked_at() -> None:
    domain = Domain(DOMAIN.attributes, partition="a")
    early = Product((Mask(("a",), (3,), Steps.ranges([0], [2], 3)),))
    check_sealed(replace(SUM, groups=early), domain, 2)
    with pytest.raises(QueryError, match="not sealed yet"):
        check_sealed(SUM, domain, 2)


def test_people_s_numbers_are_not_refined() -> None:
    finer = Noise(kind=NoiseKind.LAPLACE, scale=4.0)
    with pytest.raises(Unsupported, match="cannot be refined"):
        Refined(block=1, measured=SUM, rows=np.array([0]), before=LAPLACE, after=finer, version=1)


@pytest.mark.parametrize("people", MAPS)
def test_the_largest_entry_covers_the_values_and_what_a_person_changes(people: PerPerson) -> None:
    assert people.largest() >= people.change > 0
    assert people.value is None or people.largest() >= people.value.largest()
