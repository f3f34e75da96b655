"""A footprint says exactly how far one row can move the answers: compared with tables that really differ by a row."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from bursar.core.accounting import Accountant, AddRemove, Book, Measured, Mode, Noise, NoiseKind, ReplaceOne
from bursar.core.domain import Neighbours, Unit
from bursar.core.extensions import pairs
from bursar.core.queries import LinearMap, Norm, Product
from harness.cases import examples
from harness.maps import Table, cell_number, columns_matrix, domain_of, maps, moved, products, tables, total_of

SMALL = domain_of(a=3, b=2, c=2)
TINY = domain_of(a=3, b=2)
CELLS = range(SMALL.cells(SMALL.names))
LAPLACE = Noise(kind=NoiseKind.LAPLACE, scale=256.0)  # powers of two: prices are exact; and no loss is too large
GAUSSIAN = Noise(kind=NoiseKind.GAUSSIAN, scale=256.0)

quick = settings(max_examples=40, deadline=None)


def norm_at(found: Norm, cell: int) -> int:
    return total_of(found.vectors, found.sizes, cell_number(SMALL, cell, found.columns))


def pair_at(found: Norm, cell: int, other: int) -> int:
    matrix = found.pairs()
    assert matrix is not None
    return int(matrix[cell_number(SMALL, cell, found.columns), cell_number(SMALL, other, found.columns)])


@quick
@given(linear_map=maps(SMALL), table=tables(SMALL), power=st.sampled_from((1, 2)))
def test_norms_are_what_one_more_row_does(linear_map: LinearMap, table: Table, power: int) -> None:
    for cell in CELLS:
        real = sum(abs(x) ** power for x in moved(linear_map, table, {cell: 1}))
        assert sum(norm_at(found, cell) for found in linear_map.norms(power)) == real


@quick
@given(linear_map=maps(SMALL), table=tables(SMALL), power=st.sampled_from((1, 2)), from_cell=st.sampled_from(CELLS))
def test_pairs_are_what_a_replaced_row_does(linear_map: LinearMap, table: Table, power: int, from_cell: int) -> None:
    full = table.changed({from_cell: 1})
    for cell in CELLS:
        real = sum(
            abs(x) ** power for x in moved(linear_map, full, {from_cell: -1, cell: +1} if cell != from_cell else {})
        )
        assert sum(pair_at(found, from_cell, cell) for found in linear_map.norms(power)) == real


@pytest.mark.hypothesis
@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["PAIR_NUMBERS", "PAIR_WORK"])
def test_pairs_that_are_too_much_work_are_never_too_low(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, name, 0)

    @settings(max_examples=examples(40), deadline=None)
    @given(product=products(SMALL), power=st.sampled_from((1, 2)))
    def check(product: Product, power: int) -> None:
        rows = columns_matrix(product, SMALL)
        (found,) = product.norms(power)
        for cell in CELLS:
            for other in CELLS:
                real = sum(abs(x - y) ** power for x, y in zip(rows[cell], rows[other], strict=True))
                assert real <= pair_at(found, cell, other) <= found.pair_factor * found.largest()

    check()


@quick
@given(product=products(SMALL), power=st.sampled_from((1, 2)))
def test_the_pair_factor_and_the_largest_norm_bound_every_pair(product: Product, power: int) -> None:
    rows = columns_matrix(product, SMALL)
    (found,) = product.norms(power)
    assert found.largest() == max(norm_at(found, cell) for cell in CELLS)
    worst = max(sum(abs(x - y) ** power for x, y in zip(p, q, strict=True)) for p in rows for q in rows)
    assert worst <= found.pair_factor * found.largest()


def moves(rows: list[list[int]], count: int) -> np.ndarray:
    """How far so many rows move the answers, wherever each of them is: one line for each way."""
    places = list(combinations_with_replacement(range(len(rows)), count))
    return np.array(rows, np.int64).reshape(len(rows), -1)[places].sum(axis=1)


def add_remove_loss(rows: list[list[int]], power: int, most: int) -> int:
    """The worst over all units of up to `most` rows: sum_j |sum_i q_j(v_i)|^power."""
    return int(max((np.abs(moves(rows, k)) ** power).sum(axis=1).max() for k in range(1, most + 1)))


def replace_one_loss(rows: list[list[int]], power: int, most: int) -> int:
    """The worst over all units of up to `most` rows that become as many other rows."""
    found = [moves(rows, k) for k in range(1, most + 1)]
    return int(max((np.abs(m[:, None] - m[None]) ** power).sum(axis=2).max() for m in found))


def spent(linear_map: LinearMap, mode: Mode, unit: Unit, noise: Noise) -> int:
    def new_profile() -> AddRemove | ReplaceOne:
        around = AddRemove(TINY)
        return ReplaceOne(TINY, around) if unit.neighbours is Neighbours.REPLACE_ONE else around

    book = Book(Accountant(mode=mode, unit=unit), new_profile)
    book.add(Measured(strategy=linear_map, noise=noise, version=1))
    return book.spent()


@pytest.mark.hypothesis
@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize(
    ("mode", "noise"), [(Mode.PURE, LAPLACE), (Mode.CONCENTRATED, LAPLACE), (Mode.CONCENTRATED, GAUSSIAN)]
)
def test_what_is_spent_is_the_worst_neighbour(neighbours: Neighbours, mode: Mode, noise: Noise) -> None:
    real_loss = add_remove_loss if neighbours is Neighbours.ADD_REMOVE else replace_one_loss
    each = noise.pure_units() if mode is Mode.PURE else noise.concentrated_units()
    power = 1 if mode is Mode.PURE else 2

    @settings(max_examples=examples(25), deadline=None)
    @given(linear_map=maps(TINY))
    def check(linear_map: LinearMap) -> None:
        rows = columns_matrix(linear_map, TINY)
        one = Unit(neighbours=neighbours)
        several = Unit(column="person", max_contributions=2, neighbours=neighbours)
        assert spent(linear_map, mode, one, noise) == each * real_loss(rows, power, 1)
        assert spent(linear_map, mode, several, noise) >= each * real_loss(rows, power, 2)

    check()


def test_group_privacy_is_no_dearer_than_it_must_be() -> None:
    """A unit that puts all its rows into one cell loses all of k times, or k^2 times, what one row loses."""
    count = Product(())
    rows = columns_matrix(count, TINY)
    for mode, noise, power in ((Mode.PURE, LAPLACE, 1), (Mode.CONCENTRATED, GAUSSIAN, 2)):
        each = noise.pure_units() if mode is Mode.PURE else noise.concentrated_units()
        unit = Unit(column="person", max_contributions=3)
        assert spent(count, mode, unit, noise) == each * add_remove_loss(rows, power, 3) == each * 3**power


def signed_sums(found: Norm) -> np.ndarray:
    """Wrong: rows of different signs cancel."""
    return np.abs(np.concatenate([m.steps.at_cells(np.arange(m.steps.size)) for m in found.masks]).sum(axis=0))


def largest_row(found: Norm) -> np.ndarray:
    """Wrong: the largest coefficient instead of the sum over rows."""
    return np.concatenate([np.abs(m.steps.at_cells(np.arange(m.steps.size))) for m in found.masks]).max(axis=0)


@pytest.mark.parametrize("twin", [signed_sums, largest_row])
def test_a_wrong_norm_is_found(twin: Callable[[Norm], np.ndarray]) -> None:
    def wrong(product: Product) -> bool:
        (found,) = product.norms(1)
        if len(found.masks) != 1:
            return False
        rows = columns_matrix(product, SMALL)
        claimed = twin(found)
        return any(claimed[cell_number(SMALL, cell, found.columns)] != sum(map(abs, rows[cell])) for cell in CELLS)

    find(products(SMALL), wrong, settings=settings(max_examples=500, deadline=None, phases=[Phase.generate]))
