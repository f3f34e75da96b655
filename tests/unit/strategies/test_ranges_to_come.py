"""Ranges to come: where they end, and how often two cells lie in one of them."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.strategies.ranges_to_come import RangesToCome


def drawn(law: RangesToCome, number: int) -> np.ndarray:
    """Ranges of the law: one that was asked, its ends moved by whole cells."""
    rng = np.random.default_rng(3)
    of = rng.choice(len(law.lows), number, p=law.weights / law.weights.sum())
    lows = np.rint(rng.normal(law.lows[of], law.low_width))
    return np.stack([lows, np.rint(rng.normal(law.highs[of], law.high_width))], axis=1)


def test_pairs_of_cells_are_held_as_often_as_in_draws() -> None:
    law = RangesToCome.like([(10, 40, 1.0), (14, 48, 2.0), (12, 61, 4.0)], 80)
    ranges, firsts = drawn(law, 200_000), np.array([0, 8, 12, 20, 39, 45, 60])
    inside = (ranges[:, :1] <= firsts) & (firsts < ranges[:, 1:])
    held = inside.T.astype(float) @ inside / len(ranges)
    assert law.gram(firsts) / law.weights.sum() == pytest.approx(held, abs=0.006)
    wider = RangesToCome.like([(5, 30, 1.0), (14, 48, 2.0), (22, 70, 4.0)], 80)
    assert wider.gram(firsts) / law.weights.sum() != pytest.approx(held, abs=0.006)


def test_the_more_were_seen_the_less_there_is_to_guess() -> None:
    few = RangesToCome.like([(10, 40, 1.0), (14, 48, 1.0)], 80)
    many = RangesToCome.like([(10, 40, 1.0), (14, 48, 1.0)] * 50, 80)
    assert many.low_width < few.low_width
    same = RangesToCome.like([(10, 40, 1.0)] * 3, 80)
    assert set(same.ends()) == {9, 10, 11, 39, 40, 41}


def test_ends_lie_inside_the_column() -> None:
    law = RangesToCome.like([(1, 18, 1.0), (6, 19, 1.0)], 20)
    ends = law.ends()
    assert np.all(np.diff(ends) > 0)
    assert ends[0] >= 1
    assert ends[-1] <= 19
