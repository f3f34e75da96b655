"""Expected turns: edge cases. The theorems are tested with the paper they come from."""

from __future__ import annotations

import pytest

from bursar.analysts.guarantee import expected_turns, turns_at_most
from bursar.errors import QueryError


@pytest.mark.parametrize(
    ("quotas", "weights", "turns"),
    [
        ([7], [0.3], 7.0),
        ([0, 0], [1.0, 2.0], 0.0),
        ([3, 0], [1.0, 1.0], 6.0),
        ([1, 1], [1.0, 3.0], 1 / 0.25 + 1 / 0.75 - 1),  # 1/p + 1/(1 - p) - 1
    ],
)
def test_cases_that_can_be_counted(quotas: list[int], weights: list[float], turns: float) -> None:
    assert expected_turns(quotas, weights) == pytest.approx(turns, rel=1e-9)


def test_only_proportions_count() -> None:
    assert expected_turns([4, 9], [1.0, 2.0]) == pytest.approx(expected_turns([4, 9], [50.0, 100.0]), rel=1e-9)


def test_a_very_unlikely_analyst_is_waited_for() -> None:
    assert expected_turns([1, 1], [1e-6, 1.0]) == pytest.approx(1e6 + 1, rel=1e-6)


def test_the_bound_is_reached_where_all_are_alike() -> None:
    assert turns_at_most([5, 5], [2.0, 2.0]) == pytest.approx(expected_turns([5, 5], [1.0, 1.0]))


@pytest.mark.parametrize(("quotas", "weights"), [([1], [0.0]), ([-1], [1.0]), ([1, 1], [1.0]), ([1], [float("nan")])])
def test_what_is_no_setting_is_refused(quotas: list[int], weights: list[float]) -> None:
    with pytest.raises(QueryError, match="per analyst"):
        expected_turns(quotas, weights)
