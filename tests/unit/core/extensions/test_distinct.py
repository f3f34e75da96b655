"""Distinct counts: groups are disjoint, counts are those spelt out, bytes come back, prices are flat or on cells."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.core.accounting import Accountant, AddRemove, Book, Measured, Mode, Noise, NoiseKind, Refined, ReplaceOne
from bursar.core.domain import Domain, Neighbours, Unit
from bursar.core.extensions.distinct import check_counted
from bursar.core.extensions.partitions import check_sealed
from bursar.core.queries import Distinct, Mask, Predicate, Product, Quorum, Stack, Steps, Within, decode, encode
from bursar.errors import LedgerError, QueryError, Unsupported
from bursar.testing import CountsSource
from harness import plainly
from harness.cells import Cell, table_of
from harness.maps import domain_of

DOMAIN = domain_of(a=3, b=2, c=2)
CELLS: tuple[Cell, ...] = tuple((a, b, c) for a in range(3) for b in range(2) for c in range(2))
EACH_A = Product((Mask(("a",), (3,), Steps.identity(3)),))
LATE_BY_B = Product((Mask(("b",), (2,), Steps.identity(2)), Mask(("a",), (3,), Steps.ranges([1], [3], 3))))
EVERYBODY = Product(())
EITHER = Predicate(("a", "b"), (3, 2), Quorum(1, (Within("a", ((0, 1),)), Within("b", ((1, 2),)))))
JOINT = Product((Mask(("a", "c"), (3, 2), Steps.dense([[1, 0, 0, 1, 0, 0], [0, 1, 1, 0, 0, 0]])),))
GROUPS = (EACH_A, LATE_BY_B, EVERYBODY, EITHER, JOINT)
LAPLACE = Noise(kind=NoiseKind.LAPLACE, scale=8.0)
GAUSSIAN = Noise(kind=NoiseKind.GAUSSIAN, scale=8.0)
ONE = 2**50
rows_of_people = st.lists(st.tuples(st.sampled_from("uvw"), st.sampled_from(CELLS)), max_size=9)


def book(most: int, mode: Mode = Mode.PURE, neighbours: Neighbours = Neighbours.ADD_REMOVE, **more: object) -> Book:
    unit = Unit(column="person", max_contributions=most, neighbours=neighbours)
    around = AddRemove(DOMAIN)
    profile = around if neighbours is Neighbours.ADD_REMOVE else ReplaceOne(DOMAIN, around)
    return Book(Accountant(mode=mode, unit=unit, **more), lambda: profile)  # type: ignore[arg-type]


def spent(found: Book, strategy: Distinct, noise: Noise = LAPLACE) -> Fraction:
    found.add(Measured(strategy=strategy, noise=noise, version=1))
    return Fraction(found.spent(), ONE)


@pytest.mark.parametrize("groups", GROUPS)
@settings(max_examples=24, deadline=None)
@given(rows=rows_of_people, of=st.sampled_from([None, "a", "b", "c"]))
def test_counts_are_those_of_a_plain_program(groups: Product, rows: list[tuple[str, Cell]], of: str | None) -> None:
    distinct = Distinct(groups, of)
    what = np.array([ord(name) if of is None else cell[DOMAIN.place(of)] for name, cell in rows], np.int64)
    cells = [np.array([cell[DOMAIN.place(name)] for _, cell in rows], np.int64) for name in groups.attrs]
    exact = plainly.answers(distinct, rows, DOMAIN)
    assert distinct.counted(what, cells).tolist() == exact.tolist()
    if of is not None:
        source = CountsSource(table_of(DOMAIN, [cell for _, cell in rows]), DOMAIN)
        assert source.distinct(distinct).tolist() == exact.tolist()


@pytest.mark.parametrize("of", [None, "c", "a"])
@pytest.mark.parametrize("groups", GROUPS)
def test_bytes_give_the_same_map(groups: Product, of: str | None) -> None:
    distinct = Distinct(groups, of)
    again = decode(encode(distinct))
    assert isinstance(again, Distinct)
    assert (again.digest, again.of, again.rows) == (distinct.digest, of, groups.rows)
    assert again.digest != groups.digest
    assert set(again.attrs) == {*groups.attrs, *([of] if of else [])}


def test_bytes_that_say_something_else_are_refused() -> None:
    for wrong in (b'"of":7', b'"of":["a"]'):
        with pytest.raises(LedgerError):
            decode(encode(Distinct(EITHER)).replace(b'"of":null', wrong))


def test_groups_that_overlap_or_weigh_are_refused() -> None:
    twice = Product((Mask(("a",), (3,), Steps.dense([[1, 1, 0], [0, 1, 1]])),))
    weighed = Product((Mask(("a",), (3,), Steps.dense([[2, 0, 0]])),))
    below = Product((Mask(("a",), (3,), Steps.dense([[1, -1, 0]])),))
    for wrong in (twice, weighed, below):
        with pytest.raises(QueryError, match="overlap"):
            Distinct(wrong)
    for stranger in (Stack((EACH_A,)), Distinct(EACH_A)):
        with pytest.raises(QueryError, match="in groups of rows"):
            Distinct(stranger)  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="in groups of rows"):
        Distinct(EACH_A, 3)  # type: ignore[arg-type]


def test_rows_are_taken_one_by_one() -> None:
    one = Distinct(EACH_A, "c").take([1])
    assert isinstance(one, Distinct)
    assert (one.rows, one.of) == (1, "c")
    assert Distinct(EACH_A).take([0, 1, 2]).digest == Distinct(EACH_A).digest
    with pytest.raises(QueryError, match="one by one"):
        Distinct(EACH_A).take([2, 1])


def test_a_table_of_counts_does_not_know_people() -> None:
    with pytest.raises(QueryError, match="does not tell people apart"):
        CountsSource(table_of(DOMAIN, []), DOMAIN).distinct(Distinct(EACH_A))


@pytest.mark.parametrize(
    "wrong", [Distinct(EACH_A, "d"), Distinct(Predicate(("a",), (4,), Within("a", ((0, 1),))))], ids=["name", "size"]
)
def test_columns_that_the_data_do_not_have_are_refused(wrong: Distinct) -> None:
    with pytest.raises(QueryError, match="does not fit the columns"):
        check_counted(DOMAIN, wrong)


@pytest.mark.parametrize(
    ("most", "groups", "pure", "squares"),
    [
        (1, EVERYBODY, 1, 1),
        (4, EVERYBODY, 1, 1),  # one number, changed by one, whatever the number of rows
        (4, EITHER, 1, 1),
        (2, EACH_A, 2, 2),  # two of three groups: k times, and not k^2 times, what one costs
        (3, EACH_A, 3, 3),
        (4, EACH_A, 3, 3),  # three groups: flat
        (4, LATE_BY_B, 2, 2),
    ],
)
def test_what_people_cost(most: int, groups: Product, pure: int, squares: int) -> None:
    assert spent(book(most), Distinct(groups)) == Fraction(pure, 8)
    assert spent(book(most, Mode.CONCENTRATED), Distinct(groups), GAUSSIAN) == Fraction(squares, 128)
    assert spent(book(most, Mode.CONCENTRATED), Distinct(groups), LAPLACE) == Fraction(squares, 128)
    order: dict[str, object] = {"order": 4}
    assert spent(book(most, Mode.RENYI, **order), Distinct(groups), GAUSSIAN) == Fraction(squares, 128)


@pytest.mark.parametrize("groups", GROUPS)
def test_what_values_cost(groups: Product) -> None:
    assert spent(book(3), Distinct(groups, "c")) == Fraction(3, 8)
    assert spent(book(3, Mode.CONCENTRATED), Distinct(groups, "c"), GAUSSIAN) == Fraction(9, 128)
    replaced = spent(book(1, neighbours=Neighbours.REPLACE_ONE), Distinct(groups, "c"))
    assert replaced == Fraction(1 if groups.rows == 1 else 2, 8)


def test_other_cells_share_what_people_cost_where_it_is_on_cells() -> None:
    first, others = (Product((Mask(("a",), (3,), Steps.ranges([low], [high], 3)),)) for low, high in ((0, 1), (1, 3)))
    shared = book(1)
    assert spent(shared, Distinct(first)) == Fraction(1, 8)
    shared.add(Measured(strategy=others, noise=LAPLACE, version=1))
    assert shared.spent() == ONE // 8
    flat = book(2)
    assert spent(flat, Distinct(first)) == Fraction(1, 8)
    flat.add(Measured(strategy=others, noise=LAPLACE, version=1))
    assert flat.spent() == 3 * ONE // 8


def test_many_cells_are_bounded_too() -> None:
    wide = Domain(domain_of(a=3000).attributes)
    each = Distinct(Product((Mask(("a",), (3000,), Steps.identity(3000)),)), "a")
    profile = ReplaceOne(wide, AddRemove(wide))
    accountant = Accountant(mode=Mode.PURE, unit=Unit(neighbours=Neighbours.REPLACE_ONE))
    profile.add(accountant.footprints(Measured(strategy=each, noise=LAPLACE, version=1)))
    assert profile.spent() == 2 * ONE // 8


def test_people_are_not_counted_where_there_are_none() -> None:
    for unit in (Unit(), Unit(column="person", neighbours=Neighbours.REPLACE_ONE)):
        with pytest.raises(Unsupported, match="unit is a column"):
            Accountant(mode=Mode.PURE, unit=unit).footprints(
                Measured(strategy=Distinct(EACH_A), noise=LAPLACE, version=1)
            )


def test_distinct_counts_are_not_refined() -> None:
    rows, finer = np.array([0]), Noise(kind=NoiseKind.LAPLACE, scale=4.0)
    with pytest.raises(Unsupported, match="cannot be refined"):
        Refined(block=1, measured=Distinct(EVERYBODY), rows=rows, before=LAPLACE, after=finer, version=1)


def test_partitions_that_are_not_sealed_are_not_looked_at() -> None:
    domain = Domain(DOMAIN.attributes, partition="a")
    check_sealed(Distinct(Product((Mask(("a",), (3,), Steps.ranges([0], [2], 3)),)), "b"), domain, 2)
    for loose in (Distinct(EACH_A), Distinct(EVERYBODY, "b")):
        with pytest.raises(QueryError, match="not sealed yet"):
            check_sealed(loose, domain, 2)


@pytest.mark.parametrize("groups", GROUPS)
def test_somebody_changes_a_count_by_one(groups: Product) -> None:
    assert Distinct(groups).largest() == 1
