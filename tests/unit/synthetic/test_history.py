"""Partial knowledge: masses, drift, draws, weights, and the error on questions to come."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from bursar.errors import QueryError
from bursar.synthetic.plan.history import augmented, draws, drifted, future_error, keys, masses, split, weights

NAMES = ["age", "sex", "region", "work"]


def test_masses_of_a_history_are_shares() -> None:
    assert masses([("age", "sex"), ("age",)], NAMES) == pytest.approx([2 / 3, 1 / 3, 0, 0])
    assert masses([], NAMES) == pytest.approx([0.25] * 4)


def test_drift_changes_nothing_at_0_and_turns_all_around_at_1() -> None:
    rng, before = np.random.default_rng(1), 0.75 ** np.arange(8) / np.sum(0.75 ** np.arange(8))
    assert drifted(before, 0.0, rng) == pytest.approx(before)
    assert drifted(before, 1.0, rng) == pytest.approx(before[::-1])
    half = np.mean([drifted(before, 0.5, rng) for _ in range(2000)], axis=0)
    assert half == pytest.approx([1 / 8] * 8, abs=0.02)  # every order is equally likely
    assert keys(3, 0.0, rng) == pytest.approx([1, 0.5, 0])
    with pytest.raises(QueryError, match="drift"):
        drifted(before, 1.1, rng)


def test_draws_are_sets_of_features_with_mass() -> None:
    rng = np.random.default_rng(2)
    found = draws(np.array([0.5, 0.5, 0.0]), together=2, count=5, rng=rng)
    assert found == [(0, 1)] * 5
    with pytest.raises(QueryError, match="fewer have any mass"):
        draws(np.array([1.0, 0.0]), together=2, count=1, rng=rng)
    zipf = np.array([6, 3, 2]) / 11
    first = [own[0] for own in draws(zipf, together=1, count=3000, rng=rng)]
    assert np.bincount(first) / 3000 == pytest.approx(zipf, abs=0.06)


def test_the_last_part_of_a_history_is_the_future() -> None:
    asked = [(name,) for name in "abcdefghij"]
    assert (split(asked).past, split(asked).future) == (tuple(asked[:8]), tuple(asked[8:]))
    assert split(asked[:4]).future == ()


def test_sets_count_by_how_often_they_were_asked() -> None:
    assert weights([("sex",), ("age",), ("age",)]) == {("age",): 2.0, ("sex",): 1.0}


def test_augmentation_adds_unseen_sets_the_same_every_time() -> None:
    asked = {("age", "sex"): 6.0, ("age", "region"): 3.0}
    found = augmented(asked, NAMES, 0.25)
    new = {own: weight for own, weight in found.items() if own not in asked}
    assert len(new) == 1
    assert set(new) <= set(combinations(NAMES, 2))
    assert sum(new.values()) == pytest.approx(0.25 * sum(found.values()))
    assert augmented(asked, NAMES, 0.25) == found
    assert augmented(asked, NAMES, 0.0) == asked
    assert augmented({}, NAMES, 0.5) == {}
    with pytest.raises(QueryError, match="share"):
        augmented(asked, NAMES, 1.0)


def test_nothing_is_added_where_everything_was_asked() -> None:
    every = dict.fromkeys(combinations(NAMES, 2), 1.0)
    assert augmented(every, NAMES, 0.5) == every


def test_very_many_sets_are_not_looked_through() -> None:
    names = [f"column {number}" for number in range(200)]
    found = augmented({tuple(names[:5]): 1.0}, names, 0.5)
    assert len(found) == 2


def test_future_error_is_a_mean_with_an_interval() -> None:
    found = future_error([1.0, None, 3.0])
    assert (found.mean, found.questions, found.unknown) == (2.0, 2, 1)
    assert found.half == pytest.approx(1.96, abs=0.01)  # the standard error of 1 and 3 is 1
    assert future_error([5.0]).half is None
    assert future_error([None]).mean is None
