"""The hindsight optimum of the online benchmark, where it is known."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.strategies_online import Asked, hindsight

pytestmark = pytest.mark.thinned(3)


def asked(*ranges: tuple[int, int]) -> Asked:
    lows, highs = np.array(ranges).T
    return Asked(lows=lows, highs=highs, variances=np.full(len(ranges), 100.0))


def test_one_range_is_measured_as_it_is() -> None:
    assert hindsight(asked((5, 9))) == pytest.approx((0.005, 0.005))


def test_ranges_with_a_gap_between_them_are_about_different_people() -> None:
    assert hindsight(asked((0, 10), (20, 30))) == pytest.approx((0.005, 0.005), rel=1e-3)


def test_a_gap_changes_nothing_for_ranges_that_overlap() -> None:
    assert hindsight(asked((0, 10), (5, 15), (20, 30))) == pytest.approx(hindsight(asked((0, 2), (1, 3))), rel=1e-2)


@pytest.mark.parametrize("seed", range(3))
def test_few_ranges_with_gaps_are_solved_although_they_leave_directions_open(seed: int) -> None:
    """Two cells in three told apart by nobody: X is singular."""
    rng = np.random.default_rng(seed)
    lows = rng.integers(0, 900, 12)
    ranges = Asked(lows=lows, highs=lows + rng.integers(1, 60, 12), variances=rng.uniform(50, 500, 12))
    reached, bound = hindsight(ranges)
    assert bound <= reached * (1 + 1e-9)
    assert reached <= 1.01 * bound
    assert bound >= 1 / (2 * ranges.variances.min()) * (1 - 1e-9)  # the tightest range alone
