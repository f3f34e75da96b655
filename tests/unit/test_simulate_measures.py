"""The measures of Multi-Analyst DP, Section 8.3, on numbers worked by hand."""

from __future__ import annotations

import math

import pytest

from bursar.simulate import interference, ratio, ratio_error, utility


def test_utility_counts_what_is_accurate_enough() -> None:
    assert utility([0.01, 0.010001, None, 0.0], alpha=0.01) == 2
    assert utility([], alpha=1.0) == 0


def test_a_ratio_of_nothing_to_nothing_is_one() -> None:
    assert ratio(0, 0) == 1
    assert ratio(1, 0) == math.inf
    assert ratio(3, 2) == 1.5


def test_ratio_error_is_the_worst_analysts() -> None:
    assert ratio_error({"a": 10, "b": 30}, {"a": 20, "b": 10}) == 3
    assert ratio_error({"a": 0}, {"a": 0}) == 1
    assert ratio_error({}, {}) == 1


def test_interference_is_the_worst_pair_and_never_of_one_with_oneself() -> None:
    joint = {"a": 10.0, "b": 20.0, "c": 5.0}
    without = {"a": {"b": 20.0, "c": 4.0}, "b": {"a": 22.0, "c": 5.0}, "c": {"a": 9.0, "b": 10.0}}
    assert interference(without, joint) == 2.2
    assert interference({**without, "b": {"a": 10.0, "b": 900.0, "c": 5.0}}, joint) == 1
    assert interference({"a": {}}, {"a": 4.0}) == 1


def test_analysts_must_match() -> None:
    with pytest.raises(ValueError, match="different analysts"):
        ratio_error({"a": 1}, {"b": 1})
