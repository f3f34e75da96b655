"""Strategies for ranges like those asked: which ends are near, and that it is the best for the ranges between them."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.strategies.measure import rms_error
from bursar.strategies.nearby_ranges import GAP, nearby, ranges_between
from bursar.strategies.optimal import optimum


def test_ends_reach_four_times_as_far_as_the_next_one_is() -> None:
    assert nearby(np.array([40, 42, 70, 71]), 100).tolist() == [*range(32, 51), *range(66, 76)]


def test_a_single_end_reaches_everywhere() -> None:
    assert nearby(np.array([40]), 100).tolist() == list(range(1, 100))


def test_no_end_has_none_nearby() -> None:
    assert nearby(np.zeros(0, np.int64), 100).tolist() == []


@pytest.mark.parametrize("ends", [(0, 3, 4, 9), (2, 3, 5, 6, 8), tuple(range(10))])
def test_it_is_the_best_strategy_for_the_ranges_between_the_ends(ends: tuple[int, ...]) -> None:
    firsts = np.array([6, 0, 2, 3, 4, 5, 8, 9])  # merged cells in any order
    ends = tuple(end for end in ends if end in firsts)
    queries = np.array([(low <= firsts) & (firsts < high) for low in ends for high in ends if low < high], float)
    inside, strategy = ranges_between(firsts.tobytes(), np.array(ends).tobytes())
    assert inside.tolist() == queries.any(axis=0).tolist()
    gram = queries.T @ queries
    best = optimum(gram, gap=1e-4)
    error = rms_error(gram[np.ix_(inside, inside)], strategy)
    assert best.bound <= error <= best.error * (1 + GAP)
