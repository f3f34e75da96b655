"""Some rows of a map as a map: the same rows as `take` gives, in fewer products."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.core.extensions.refine import gathered, rows_of
from bursar.core.queries import LinearMap, Mask, Product, Stack, Steps
from bursar.errors import Unsupported
from harness.maps import columns_matrix, domain_of, maps

DOMAIN = domain_of(a=3, b=2, c=4)


def rows(linear_map: LinearMap) -> list[list[int]]:
    """Every row of a map over all cells."""
    return np.array(columns_matrix(linear_map, DOMAIN), object).reshape(24, -1).T.tolist()


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_rows_are_those_that_were_picked(data: st.DataObject) -> None:
    whole = data.draw(maps(DOMAIN).filter(lambda found: 0 < found.rows <= 60))
    picks = sorted(data.draw(st.sets(st.integers(0, whole.rows - 1), min_size=1)))
    found = rows_of(whole, np.array(picks))
    assert found.rows == len(picks)
    assert rows(found) == rows(whole.take(picks)) == [rows(whole)[pick] for pick in picks]
    priced = gathered(whole, np.array(picks))
    assert sorted(rows(priced)) == sorted(rows(found))
    assert len(priced.norms(1)) <= len(found.norms(1))


def identity(name: str, size: int) -> Mask:
    return Mask((name,), (size,), Steps.identity(size))


def test_neighbours_stay_together() -> None:
    grid = Product((identity("a", 3), identity("c", 4), Mask(("b",), (2,), Steps.total(2))))
    found = rows_of(Stack((grid, grid)), np.array([0, 1, 3, 4, 11, 12, 13]))
    assert isinstance(found, Stack)
    assert [part.rows for part in found.parts] == [3, 1, 1, 2]
    assert rows_of(Stack((grid, grid)), np.arange(24)).rows == 24
    whole = rows_of(Stack((grid, grid)), np.arange(12, 24))
    assert whole is grid


def test_rows_are_gathered_along_the_mask_that_takes_the_fewest_products() -> None:
    grid = Product((identity("c", 4), identity("b", 2)))
    picks = np.array([0, 2, 4, 7])
    assert [part.rows for part in rows_of(grid, picks).parts] == [1, 1, 1, 1]
    assert sorted(part.rows for part in gathered(grid, picks).parts) == [1, 3]


def test_a_map_of_another_kind_has_no_rows_to_take() -> None:
    class Other:
        rows = 2

    other: Any = Other()
    assert rows_of(other, np.arange(2)) is other
    with pytest.raises(Unsupported, match="Other"):
        rows_of(other, np.array([0]))
