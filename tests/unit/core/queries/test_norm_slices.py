"""Norms at one value of a column: what rows there can move, over the other columns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.core.extensions import pairs
from bursar.core.queries import Mask, Norm, Product, Steps
from harness.maps import domain_of, mask_of, products

DOMAIN = domain_of(a=3, b=2, c=4)


def spelt(norm: Norm, names: tuple[str, ...]) -> np.ndarray:
    """The norm of every joint cell of the named columns, in their order."""
    total = np.ones([1] * len(names), np.int64)
    for attrs, sizes, vector in zip(norm.attrs, norm.sizes, norm.vectors, strict=True):
        axes = sorted(range(len(attrs)), key=lambda i: names.index(attrs[i]))
        shape = [DOMAIN[name].size if name in attrs else 1 for name in names]
        total = total * vector.reshape(sizes).transpose(axes).reshape(shape)
    return np.broadcast_to(total, DOMAIN.sizes(names))


@settings(max_examples=80, deadline=None)
@given(products(DOMAIN), st.sampled_from("abc"), st.sampled_from([1, 2]))
def test_slices_are_the_norm_put_apart(product: Product, column: str, power: int) -> None:
    (norm,) = product.norms(power)
    whole = np.moveaxis(spelt(norm, DOMAIN.names), DOMAIN.place(column), 0)
    rest = tuple(name for name in DOMAIN.names if name != column)
    listed: set[int] = set()
    for found, cells in norm.slices(column, DOMAIN[column].size):
        assert column not in found.columns
        assert not listed & set(cells.tolist())
        listed |= set(cells.tolist())
        for cell in cells:
            assert np.array_equal(spelt(found, rest), whole[cell])
            assert np.array_equal(spelt(norm.at(column, int(cell)), rest), whole[cell])
    for cell in set(range(DOMAIN[column].size)) - listed:
        assert not whole[cell].any()


@settings(max_examples=60, deadline=None)
@given(products(DOMAIN), st.sampled_from("abc"), st.sampled_from([1, 2]))
def test_pairs_of_a_slice_are_pairs_inside_it(product: Product, column: str, power: int) -> None:
    """Two cells with the same value of the column are as far apart in the slice as they were before."""
    (norm,) = product.norms(power)
    names = norm.columns
    if column not in names:
        return
    pairs = norm.pairs()
    assert pairs is not None
    numbers = np.arange(len(pairs)).reshape(DOMAIN.sizes(names))
    for cell in range(DOMAIN[column].size):
        inside = numbers.take(cell, names.index(column)).ravel()
        own = norm.at(column, cell).pairs()
        assert own is not None
        # The columns of the slice keep their order, so its cells are numbered as those inside.
        assert np.array_equal(own, pairs[np.ix_(inside, inside)])


def test_a_window_is_one_slice() -> None:
    window = Mask(("a",), (3,), Steps.ranges([1], [3], 3))
    (norm,) = Product((window, mask_of(DOMAIN, "c", np.eye(4, dtype=int)))).norms(1)
    ((found, cells),) = norm.slices("a", 3)
    assert cells.tolist() == [1, 2]
    assert found.attrs == ((), ("c",))


def test_a_norm_without_the_column_is_the_same_everywhere() -> None:
    (norm,) = Product((mask_of(DOMAIN, "c", [[1, 0, 0, 2]]),)).norms(1)
    ((found, cells),) = norm.slices("a", 3)
    assert (found, cells.tolist()) == (norm, [0, 1, 2])


def test_values_are_told_apart_one_by_one_where_comparing_them_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    (norm,) = Product((mask_of(DOMAIN, "ac", np.diag(np.repeat([1, 2, 1], 4))),)).norms(1)
    monkeypatch.setattr(pairs, "CLASS_WORK", 10)
    slices = norm.slices("a", 3)
    assert [cells.tolist() for _, cells in slices] == [[0, 2], [1]]  # equal slices are listed once
    assert [found.vectors[0].tolist() for found, _ in slices] == [[1] * 4, [2] * 4]
    assert [found.masks[0].rows for found, _ in slices] == [4, 4]  # rows that are zero there are left out
