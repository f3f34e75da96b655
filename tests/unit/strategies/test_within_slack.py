"""What is told within the slack: no cell gets more than its room, and questions gain about as much as they can."""

from __future__ import annotations

import numpy as np
import pytest

from bursar.papers.eigen_design.workloads import all_ranges
from bursar.strategies.optimal import optimum
from bursar.strategies.within_slack import within_slack


def variance(information: np.ndarray, rows: np.ndarray, gram: np.ndarray) -> float:
    return float(np.vdot(gram, np.linalg.inv(information + rows.T @ rows)))


def test_where_nothing_is_known_it_is_the_best_strategy() -> None:
    gram = np.asarray(all_ranges(40))
    rows = within_slack(np.zeros((40, 40)), np.ones(40), gram, most_queries=40)
    assert np.square(rows).sum(axis=0) == pytest.approx(1.0, rel=1e-5)
    best = optimum(gram, gap=1e-4)
    assert best.bound**2 * (1 - 1e-6) <= variance(np.zeros((40, 40)), rows, gram) <= 1.01 * best.error**2


def test_what_is_known_is_taken_account_of() -> None:
    """The best strategy of its own, in the same room, tells again what is known, and leaves the questions worse."""
    gram = np.asarray(all_ranges(30))
    known = np.zeros((4, 30))
    for row, (low, high) in enumerate([(0, 15), (5, 20), (10, 30), (12, 18)]):
        known[row, low:high] = 1.0
    information = known.T @ known + 1e-3 * np.eye(30)
    room = information.diagonal().max() + 0.5 - information.diagonal()
    rows = within_slack(information, room, gram)
    assert np.all(np.square(rows).sum(axis=0) <= room * (1 + 1e-9))
    blind = optimum(gram).strategy * np.sqrt(room)
    even = np.diag(np.sqrt(room))
    assert variance(information, rows, gram) < 0.97 * variance(information, blind, gram)
    assert variance(information, rows, gram) < 0.75 * variance(information, even, gram)


def test_cells_without_room_are_left_alone() -> None:
    room = np.ones(20)
    room[5:9] = 0.0
    rows = within_slack(np.eye(20), room, np.asarray(all_ranges(20)), most_queries=6)
    assert rows.shape[0] <= 6
    assert not np.any(rows[:, 5:9])
