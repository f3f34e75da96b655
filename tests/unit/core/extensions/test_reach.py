"""Of a transform's answers a distance is known: pairs of cells are compared up to 2,048 cells, and not above."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.core.extensions.pairs import PAIR_CELLS
from bursar.core.extensions.transform import DistanceNorm
from bursar.core.queries import Mask, Steps


def reach(cells: int, power: int) -> DistanceNorm:
    row = np.arange(cells) % 3
    return DistanceNorm((Mask(("x",), (cells,), Steps.dense(row)),), power)


@pytest.mark.parametrize("power", [1, 2])
def test_two_cells_are_at_most_both_distances_apart(power: int) -> None:
    apart = reach(PAIR_CELLS, power).pairs()
    assert apart is not None
    assert apart[1, 2] == 3**power
    assert apart[2, 5] == 4**power
    assert apart[2, 2] == 0


@pytest.mark.parametrize("power", [1, 2])
def test_beyond_2048_cells_a_multiple_of_the_largest_stands_in(power: int) -> None:
    found = reach(PAIR_CELLS + 1, power)
    assert found.pairs() is None
    assert found.pair_factor * found.largest() >= 4**power
