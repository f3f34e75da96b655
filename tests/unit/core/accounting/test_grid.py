"""Grids: how fine they are, what a block carries, and how one grid is seen on another."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.core.accounting import profile as grid
from bursar.core.accounting.profile import LARGEST_SUM, MOST_BLOCKS, Grid, added
from bursar.core.queries import Mask, Norm, Steps
from harness.maps import domain_of, mask_of

DOMAIN = domain_of(a=5, b=3, c=7)
quick = settings(max_examples=60, deadline=None)


def cellwise(fine: np.ndarray, on: Grid) -> np.ndarray:
    """A loss on a grid, spelt out for every cell of its columns."""
    for axis, (size, width) in enumerate(zip(on.sizes, on.widths, strict=True)):
        fine = np.take(fine, np.arange(size) // width, axis=axis)
    return fine


def test_small_domains_are_exact_and_in_the_order_of_the_domain() -> None:
    found = Grid.over(DOMAIN, ("c", "a"))
    assert found.attrs == ("a", "c")
    assert found.shape == (5, 7)
    assert found.exact


def test_no_columns_have_one_block() -> None:
    nothing = Grid.over(DOMAIN, ())
    assert nothing.shape == ()
    assert nothing.exact
    assert int(nothing.place(Norm((), 1), 9)) == 9


@pytest.mark.parametrize("sizes", [{"a": 2**17}, {"a": 2**17 + 1}, {"a": 2**24}, {"a": 2**20, "b": 2**20, "c": 3}])
def test_large_domains_are_coarse_enough(sizes: dict[str, int]) -> None:
    domain = domain_of(**sizes)
    found = Grid.over(domain, domain.names)
    blocks = int(np.prod(found.shape))
    assert blocks <= MOST_BLOCKS
    assert found.exact == (domain.cells(domain.names) <= MOST_BLOCKS)
    assert blocks > MOST_BLOCKS // 4
    assert all(width & (width - 1) == 0 for width in found.widths)


def test_many_columns_end_in_one_block_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid, "MOST_BLOCKS", 1)
    assert Grid.over(DOMAIN, DOMAIN.names).shape == (1, 1, 1)


def test_blocks_carry_the_largest_of_their_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid, "MOST_BLOCKS", 4)
    found = Grid.over(DOMAIN, ("a",))
    assert found.widths == (2,)
    norm = Norm((mask_of(DOMAIN, ("a",), [[1, -4, 2, 3, 9]]),), 1)
    assert found.place(norm, 10).tolist() == [40, 30, 90]


def test_joint_masks_are_turned_into_the_order_of_the_domain() -> None:
    values = np.arange(35).reshape(7, 5)
    norm = Norm((mask_of(DOMAIN, ("c", "a"), values.reshape(1, -1)), mask_of(DOMAIN, ("b",), [[1, 2, 3]])), 1)
    placed = Grid.over(DOMAIN, DOMAIN.names).place(norm, 2)
    for a in range(5):
        for b in range(3):
            for c in range(7):
                assert placed[a, b, c] == 2 * values[c, a] * (b + 1)


@quick
@given(st.data())
def test_a_coarse_loss_is_never_below_the_fine_one(data: st.DataObject) -> None:
    finest = data.draw(st.integers(1, 105))
    numbers = [data.draw(st.lists(st.integers(0, 9), min_size=n, max_size=n)) for n in (5, 3, 7)]
    norm = Norm(tuple(mask_of(DOMAIN, (name,), [row]) for name, row in zip("abc", numbers, strict=True)), 1)
    fine = Grid(DOMAIN.names, (5, 3, 7), (1, 1, 1)).place(norm, 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grid, "MOST_BLOCKS", finest)
        coarse = Grid.over(DOMAIN, DOMAIN.names)
    spread = cellwise(coarse.place(norm, 3), coarse)
    assert np.all(spread >= fine)
    assert spread.max() == fine.max()


widths = st.sampled_from((1, 2, 4, 8))


@quick
@given(st.lists(widths, min_size=3, max_size=3), st.lists(widths, min_size=2, max_size=2), st.data())
def test_projections_bound_every_cell(mine: list[int], theirs: list[int], data: st.DataObject) -> None:
    """On every cell, what is seen on the other grid is at least the loss there; and it is one of the losses."""
    source = Grid(DOMAIN.names, (5, 3, 7), tuple(mine))
    names = data.draw(st.sampled_from([("a", "b"), ("b", "c"), ("a", "c")]))
    target = Grid(names, DOMAIN.sizes(names), tuple(theirs))
    shape = source.shape
    cells = int(np.prod(shape))
    loss = np.array(data.draw(st.lists(st.integers(0, 99), min_size=cells, max_size=cells))).reshape(shape)
    seen = np.broadcast_to(source.project(loss, target), target.shape)
    fine = cellwise(loss, source)
    on_cells = cellwise(seen, target)
    gone = tuple(i for i, name in enumerate(DOMAIN.names) if name not in names)
    assert np.all(on_cells >= fine.max(axis=gone))
    assert seen.max() == loss.max()
    assert set(seen.ravel()) <= set(loss.ravel())


def test_projections_between_columns_that_share_nothing() -> None:
    one, other = Grid.over(DOMAIN, ("a",)), Grid.over(DOMAIN, ("b", "c"))
    assert one.project(np.array([1, 5, 2, 0, 0]), other).tolist() == [[5]]
    nothing = Grid.over(DOMAIN, ())
    assert int(one.project(np.array([1, 5, 2, 0, 0]), nothing)) == 5
    assert nothing.project(np.array(4), other).tolist() == [[4]]


def test_a_huge_column_is_placed_block_by_block() -> None:
    domain = domain_of(x=2**22)
    found = Grid.over(domain, ("x",))
    norm = Norm((Mask(("x",), (2**22,), Steps.ranges([7], [8], 2**22)),), 1)
    placed = found.place(norm, 5)
    assert placed.shape == (MOST_BLOCKS,)
    assert np.flatnonzero(placed).tolist() == [0]


def test_sums_stop_above_every_budget() -> None:
    top = np.array([LARGEST_SUM, LARGEST_SUM - 1, 5])
    assert added(top, top).tolist() == [LARGEST_SUM, LARGEST_SUM, 10]
    assert LARGEST_SUM > 1000 * 2**50
    assert 2 * LARGEST_SUM < 2**63
