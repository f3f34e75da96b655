"""Rows of a reconstruction in the space behind them: what was handed out stays as it is."""

from __future__ import annotations

import numpy as np

from bursar.estimation.least_squares import RoomForRows


def test_rows_are_added_in_place_and_older_ones_stay() -> None:
    rng, room = np.random.default_rng(0), RoomForRows()
    rows, expected, moved = np.zeros((0, 3)), np.zeros((0, 3)), 0
    handed: list[tuple[np.ndarray, np.ndarray]] = []
    for _ in range(200):
        more = rng.normal(size=(int(rng.integers(0, 4)), 3))
        before, rows = rows, room.append(rows, more)
        moved += before.base is not rows.base
        expected = np.concatenate([expected, more])
        handed.append((rows, expected))
    assert all(np.array_equal(old, truth) for old, truth in handed)
    assert moved < 12, "copied only when the space has doubled"


def test_two_that_began_alike_go_on_by_themselves() -> None:
    ours, theirs = RoomForRows(), RoomForRows()
    start = ours.append(np.zeros((0, 2)), np.ones((3, 2)))
    twin = theirs.append(start, np.full((1, 2), 7.0))
    on = ours.append(start, np.full((1, 2), 5.0))
    assert twin[3].tolist() == [7, 7]
    assert on[3].tolist() == [5, 5]
    wider = ours.append(on[:, [0, 0, 1]], np.zeros((1, 3)))
    assert wider.shape == (5, 3)
    assert on.shape == (4, 2)
