"""Norms at their limits; that they are what rows really do is in tests/property/test_footprint.py."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.core.extensions import pairs
from bursar.core.queries import Ceiling, Mask, Norm, Product, Steps
from bursar.errors import QueryError
from harness.maps import domain_of, mask_of

DOMAIN = domain_of(a=3, b=2, c=4)


def norm_of(*matrices: object, power: int = 1) -> Norm:
    return Norm(tuple(mask_of(DOMAIN, (name,), m) for name, m in zip("abc", matrices, strict=False)), power)


def test_a_norm_names_its_columns_and_multiplies_its_vectors() -> None:
    joint = Mask(("c", "a"), (4, 3), Steps.dense(np.arange(12).reshape(1, 12)))
    found = Norm((joint, mask_of(DOMAIN, ("b",), [[1, -3]])), 2)
    assert found.columns == ("c", "a", "b")
    assert found.attrs == (("c", "a"), ("b",))
    assert found.sizes == ((4, 3), (2,))
    assert found.largest() == 121 * 9


def test_the_count_of_everybody_costs_one_and_nothing_between_two_people() -> None:
    for power in (1, 2):
        (found,) = Product(()).norms(power)
        assert found.largest() == 1
        assert found.pairs().tolist() == [[0]]
        assert found.pair_factor == 2


def test_a_histogram_costs_one_and_two_between_different_people() -> None:
    eye = norm_of(np.eye(3, dtype=int))
    assert eye.vectors[0].tolist() == [1, 1, 1]
    assert eye.pairs().tolist() == [[0, 2, 2], [2, 0, 2], [2, 2, 0]]


def test_signs_decide_between_two_and_four() -> None:
    assert norm_of([[1, 2, 0]], power=2).pair_factor == 2
    assert norm_of([[-1, -2, 0]], [[1, 1]], power=2).pair_factor == 2
    assert norm_of([[1, -1, 0]], power=2).pair_factor == 4
    assert norm_of([[1, -1, 0]], power=1).pair_factor == 2
    assert norm_of([[1, -1, 0]], power=2).pairs().max() == 4 * norm_of([[1, -1, 0]], power=2).largest()


def test_many_cells_have_no_pairs() -> None:
    column = Mask(("x",), (2049,), Steps.total(2049))
    assert Norm((column,), 1).pairs() is None
    assert Norm((Mask(("x",), (2048,), Steps.total(2048)),), 1).pairs().shape == (2048, 2048)


def test_pairs_of_large_coefficients_are_exact() -> None:
    for value in (2**29, 2**26 + 1):
        found = norm_of([[value, -value, 1]], power=2)
        assert int(found.pairs()[0, 1]) == (2 * value) ** 2
        assert int(found.pairs()[0, 2]) == (value - 1) ** 2


@pytest.mark.parametrize("power", [1, 2])
def test_a_ceiling_bounds_every_row_below_it(power: int) -> None:
    """Every row of whole numbers below the ceiling, cell by cell and pair by pair; and some row reaches the bound."""
    top = np.array([[2, 0, 1]])
    ceiling = Ceiling((mask_of(DOMAIN, ("a",), top),), power)
    rows = [np.array(row) for row in np.ndindex(3, 1, 2)]
    largest = np.max([np.abs(row) ** power for row in rows], axis=0)
    apart = np.max([np.abs(row[:, None] - row[None, :]) ** power for row in rows], axis=0)
    assert ceiling.vectors[0].tolist() == largest.tolist()
    assert ceiling.pairs().tolist() == apart.tolist()
    assert apart.max() <= ceiling.pair_factor * ceiling.largest()


def test_a_ceiling_over_several_columns() -> None:
    ceiling = Ceiling((mask_of(DOMAIN, ("a",), [[1, 1, 1]]), mask_of(DOMAIN, ("b",), [[3, 0]])), 1)
    assert ceiling.pairs().tolist() == [
        [0 if v == w else 3 * (v % 2 == 0 or w % 2 == 0) for w in range(6)] for v in range(6)
    ]
    nobody = Ceiling((), 1)
    assert (nobody.pairs().tolist(), nobody.largest()) == ([[0]], 1)
    many = Ceiling((Mask(("x",), (2049,), Steps.total(2049)),), 2)
    assert (many.pairs(), many.pair_factor) == (None, 1)


def test_norms_that_do_not_fit_are_refused() -> None:
    assert norm_of([[2**30, 0, 0]], power=2).largest() == 2**60
    for matrices in (([[2**30, 1, 0], [1, 0, 0]],), ([[2**30, 0, 0]], [[2, 0]])):
        with pytest.raises(QueryError, match="too large"):
            norm_of(*matrices, power=2)
    assert norm_of([[2**59, 0, 0]], [[2, 0]]).largest() == 2**60
    with pytest.raises(QueryError, match="too large"):
        norm_of([[2**59, 0, 0]], [[3, 0]])


def test_zero_rows_beside_huge_ones_cost_nothing() -> None:
    found = norm_of([[2**60, 0, 0]], [[0, 0]])
    assert found.largest() == 0
    assert found.pairs().max() == 0


def test_too_much_work_is_replaced_by_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    signed = norm_of([[2, -1, 0]])
    exact = signed.pairs()
    monkeypatch.setattr(pairs, "PAIR_WORK", 8)
    assert signed.pairs().tolist() == [[4, 3, 2], [3, 2, 1], [2, 1, 0]]
    assert np.all(exact <= signed.pairs())
    monkeypatch.setattr(pairs, "PAIR_NUMBERS", 2)
    assert norm_of([[2, -1, 0]], power=2).pairs().tolist() == [[16, 10, 8], [10, 4, 2], [8, 2, 0]]
    assert norm_of([[2, 1, 0]], power=2).pairs().tolist() == [[8, 5, 4], [5, 2, 1], [4, 1, 0]]
