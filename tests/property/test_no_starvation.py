"""Round-robin starves nobody: whatever arrives in whatever order, a question is answered within a bounded number of
turns of others, and turns come in proportion to shares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bursar.analysts.queue_state import Board, QueueState, Rules, Ticket, first_in_line, settle
from bursar.analysts.scheduler import RoundRobin, Turns

WEIGHTS = st.lists(st.fractions(Fraction(1, 50), 1, max_denominator=50), min_size=1, max_size=5)


def named(weights: list[Fraction]) -> dict[str, Fraction]:
    return {"abcde"[place]: weight for place, weight in enumerate(weights)}


class Favourite(RoundRobin):
    """The wrong twin: one analyst is always served first if ready."""

    def next(self, turns: Turns, among: Collection[str]) -> tuple[str, Turns]:
        who = min(among)
        return who, {**turns, who: turns.get(who, 0) + 1}


@given(WEIGHTS, st.integers(1, 200))
def test_of_the_first_turns_everybody_has_had_the_own_part(weights: list[Fraction], length: int) -> None:
    scheduler = RoundRobin(weights=named(weights))
    turns: Turns = {}
    for given_out in range(1, length + 1):
        _, turns = scheduler.next(turns, list(scheduler.weights))
        for name, weight in scheduler.weights.items():
            assert turns.get(name, 0) >= given_out * weight // sum(weights)


def waits(rules: Rules, events: list[int]) -> list[tuple[str, Counter[str]]]:
    """Serve questions as they come (0: the next turn is used, i: analyst i asks); whose turns each of them waited for,
    counted from when it was its analyst's first in line."""
    names = sorted(rules.analysts)
    board, now = settle(Board(), rules, 0.0), 0.0
    before: dict[str, Counter[str]] = {}
    found = []
    for event in [*events, *[0] * (2 * len(events))]:
        now += 1.0
        if event == 0:
            ticket = first_in_line(board)
            if ticket is None:
                continue
            found.append((ticket.analyst, before.pop(ticket.analyst)))
            for waited in before.values():
                waited[ticket.analyst] += 1
            board = replace(board.drop(ticket).heard(ticket.analyst, now), turn=None)
            if board.of(ticket.analyst, QueueState.WAITING):
                before[ticket.analyst] = Counter()
        else:
            who = names[(event - 1) % len(names)]
            before.setdefault(who, Counter())
            board = replace(board, last=board.last + 1)
            board = board.put(Ticket(number=board.last, analyst=who, state=QueueState.WAITING, at=now, expires=1e9))
            board = board.heard(who, now)
        board = settle(board, rules, now)
    assert board.tickets == (), "somebody was never served"
    return found


def starved(rules: Rules, events: list[int]) -> list[str]:
    """Who had to let more turns of somebody else pass than the proportion of their shares allows."""
    w = rules.scheduler.weights
    late = [(who, [j for j in seen if seen[j] > w[j] // w[who] + 1]) for who, seen in waits(rules, events)]
    return [who for who, before in late if before]


@settings(max_examples=200)
@given(WEIGHTS, st.lists(st.integers(0, 5), max_size=60))
def test_nobody_waits_for_more_turns_of_another_than_the_shares_allow(
    weights: list[Fraction], events: list[int]
) -> None:
    """Idle analysts are passed over at once here: then nothing but turns of others can keep anybody waiting."""
    assert starved(Rules(scheduler=RoundRobin(weights=named(weights)), idle=0.0), events) == []


def test_a_scheduler_with_a_favourite_would_be_found() -> None:
    rules = Rules(scheduler=Favourite(weights=named([Fraction(1, 2), Fraction(1, 2)])), idle=0.0)
    assert starved(rules, [1, 2, 1, 1, 1, 0, 0, 0, 0, 0]) == ["b"]


@given(st.integers(1, 5).flatmap(lambda k: st.permutations([place % k + 1 for place in range(3 * k)])))
def test_where_turns_wait_for_their_owners_the_rotation_is_strict(arrivals: list[int]) -> None:
    """With equal shares and the rule to wait, three questions of each are answered in rotation, however they come."""
    names = named([Fraction(1, max(arrivals))] * max(arrivals))
    served = waits(Rules(scheduler=RoundRobin(weights=names)), arrivals)
    assert [who for who, _ in served] == sorted(names) * 3


def test_a_queue_that_is_stalled_serves_nobody() -> None:
    """The wrong twin of the test above: one analyst never asks, and there is no rule to pass over anybody."""
    rules = Rules(scheduler=RoundRobin(weights=named([Fraction(1, 2), Fraction(1, 2)])))
    with pytest.raises(AssertionError, match="never served"):
        waits(rules, [2, 2, 2])
