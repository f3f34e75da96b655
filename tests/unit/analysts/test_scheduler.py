"""Whose turn comes next: exact rotations, lots by their probabilities."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest

from bursar.analysts.scheduler import Randomized, RoundRobin, Scheduler, Turns


def fractions(**weights: float) -> dict[str, Fraction]:
    return {name: Fraction(str(weight)) for name, weight in weights.items()}


def order(scheduler: Scheduler, length: int, among: str | None = None) -> str:
    turns: Turns = {}
    named = ""
    for _ in range(length):
        who, turns = scheduler.next(turns, among or list(scheduler.weights))
        named += who
    return named


def test_equal_shares_rotate() -> None:
    assert order(RoundRobin(weights=fractions(a=0.2, b=0.2, c=0.2)), 7) == "abcabca"


def test_unequal_shares_come_in_proportion_and_spread_out() -> None:
    assert order(RoundRobin(weights=fractions(a=0.5, b=0.25, c=0.25)), 8) == "aabcaabc"
    assert Counter(order(RoundRobin(weights=fractions(a=0.5, b=0.3, c=0.2)), 100)) == {"a": 50, "b": 30, "c": 20}


def test_turns_are_exact_after_very_many() -> None:
    """Shares of 1/3 as decimal numbers would drift if turns were added up as floats."""
    scheduler = RoundRobin(weights={"a": Fraction(1, 3), "b": Fraction(1, 3), "c": Fraction(1, 3)})
    who, turns = scheduler.next({"a": 10**15, "b": 10**15 - 1, "c": 10**15}, "abc")
    assert (who, turns) == ("b", {"a": 10**15, "b": 10**15, "c": 10**15})


@pytest.mark.parametrize("away", ["a", "b", "c"])
def test_who_is_passed_over_cannot_save_turns_up(away: str) -> None:
    """Back in the rotation, one goes on where one would be had one used every turn."""
    scheduler = RoundRobin(weights=fractions(a=0.5, b=0.3, c=0.2))
    everybody: Turns = {}
    others: Turns = {}
    for _ in range(50):
        who, everybody = scheduler.next(everybody, "abc")
        if who != away:
            served, others = scheduler.next(others, set("abc") - {away})
            assert (served, Counter(others)) == (who, Counter(everybody))


def test_a_lot_falls_by_the_probabilities() -> None:
    draws = iter([0.0, 0.0999, 0.1, 0.3999, 0.4, 0.9999])
    lots = Randomized(weights=fractions(a=0.1, b=0.3, c=0.6), draw=lambda: next(draws))
    assert order(lots, 6) == "aabbcc"


def test_a_lot_falls_on_those_who_are_ready_in_their_proportions() -> None:
    draws = iter([0.0, 0.1428, 0.1429, 0.9999])
    lots = Randomized(weights=fractions(a=0.1, b=0.3, c=0.6), draw=lambda: next(draws))
    assert order(lots, 4, among="ca") == "aacc"
