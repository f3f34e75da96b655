"""Masks over merged cells: what they are there, and whether they cut through one."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.core.queries import Mask, Product, Steps
from bursar.estimation.least_squares import Classes, MergedMask, count, first_cells, told_apart

SIZES = {"a": 3, "b": 4, "c": 2}


@st.composite
def cases(draw: st.DrawFn) -> tuple[Mask, Classes]:
    """A mask over one column or two, in any order, and classes of the cells of all columns."""
    names = tuple(draw(st.lists(st.sampled_from(list(SIZES)), min_size=1, max_size=2, unique=True)))
    cells = int(np.prod([SIZES[name] for name in names]))
    rows = draw(st.lists(st.lists(st.integers(-1, 2), min_size=cells, max_size=cells), min_size=1, max_size=3))
    splits = draw(st.lists(st.lists(st.booleans(), min_size=9, max_size=9), min_size=0, max_size=2))
    classes: Classes = {name: np.zeros(size, np.int64) for name, size in SIZES.items()}
    for split in splits:
        places = np.split(np.array(split, int), np.cumsum(list(SIZES.values()))[:-1])
        masks = [Mask((n,), (SIZES[n],), Steps.dense([own])) for n, own in zip(SIZES, places, strict=True)]
        classes = told_apart(classes, Product(tuple(masks))) or classes
    return Mask(names, tuple(SIZES[name] for name in names), Steps.dense(rows)), classes


def spelt(mask: Mask) -> np.ndarray:
    """The rows over all cells of all columns."""
    values = mask.steps.at_cells(np.arange(mask.steps.size)).reshape(mask.rows, *mask.sizes)
    order = np.argsort([list(SIZES).index(name) for name in mask.attrs])
    values = np.transpose(values, [0, *(1 + order)])
    shape = [size if name in mask.attrs else 1 for name, size in SIZES.items()]
    return np.broadcast_to(values.reshape(mask.rows, *shape), (mask.rows, *SIZES.values()))


@settings(max_examples=200, deadline=None)
@given(cases())
def test_a_whole_mask_is_its_grid_and_another_is_not(case: tuple[Mask, Classes]) -> None:
    mask, classes = case
    seen = MergedMask(mask, classes)
    assert seen.grid.size == seen.numbers
    spread = np.broadcast_to(seen.grid, (mask.rows, *(count(classes[name]) for name in SIZES)))
    again = spread[np.ix_(np.arange(mask.rows), *(classes[name] for name in SIZES))]
    assert seen.whole == np.array_equal(again, spelt(mask))


def test_first_cells_and_counts() -> None:
    classes = np.array([2, 0, 2, 1, 0], np.int64)
    assert count(classes) == 3
    assert first_cells(classes).tolist() == [1, 3, 0]
