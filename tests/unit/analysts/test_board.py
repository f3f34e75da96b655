"""The board: who has the turn, when it ends, who is passed over. All times are given."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from bursar.analysts import queue_state
from bursar.analysts.queue_state import Board, QueueState, Rules, Ticket, first_in_line, settle
from bursar.analysts.scheduler import RoundRobin
from bursar.errors import LedgerError

THIRD = Fraction(1, 3)
WAIT = Rules(scheduler=RoundRobin(weights={"a": THIRD, "b": THIRD, "c": THIRD}))
SKIP = replace(WAIT, idle=600.0)


def ticket(number: int, analyst: str, state: QueueState = QueueState.WAITING, expires: float = 1e9) -> Ticket:
    return Ticket(number=number, analyst=analyst, state=state, at=0.0, expires=expires)


def board(*tickets: Ticket, turn: str | None = None, rules: Rules = WAIT, now: float = 0.0, **facts: object) -> Board:
    """A board of some tickets, with the turn where it is wanted."""
    fresh = settle(Board(), rules, now)
    turns = {"a": 1, "b": turn != "a", "c": turn == "c"}
    made = replace(fresh, tickets=tickets, turn=turn, turns={k: int(v) for k, v in turns.items()} if turn else {})
    return replace(made, **facts)


def test_nobody_has_asked_yet_and_the_first_turn_is_given() -> None:
    fresh = settle(Board(), WAIT, 5.0)
    assert (fresh.turn, fresh.since, fresh.turns, fresh.begun) == ("a", 5.0, {"a": 1}, 5.0)
    assert settle(fresh, WAIT, 1e9) == fresh


def test_the_turn_waits_for_its_owner_unless_a_rule_says_otherwise() -> None:
    waiting = board(ticket(1, "b"), turn="a")
    assert settle(waiting, WAIT, 1e8).turn == "a"
    assert first_in_line(settle(waiting, WAIT, 1e8)) is None
    assert settle(waiting, SKIP, 599.0).turn == "a"
    assert settle(waiting, SKIP, 600.0).turn == "b"


def test_the_idle_rule_counts_from_the_last_sign_of_life() -> None:
    waiting = board(ticket(1, "c"), turn="a", seen={"a": 500.0, "b": 100.0})
    assert settle(waiting, SKIP, 1099.0).turn == "a"
    assert settle(waiting, SKIP, 1100.0).turn == "c"  # b has been silent for longer


def test_who_was_passed_over_is_counted_a_turn() -> None:
    after = settle(board(ticket(1, "c"), turn="a"), SKIP, 700.0)
    assert after.turns == {"a": 1, "b": 1, "c": 1}


def test_nobody_at_all_is_left() -> None:
    gone = settle(board(turn="a"), SKIP, 1e6)
    assert gone.turn is None
    assert settle(gone.put(ticket(1, "b")), SKIP, 1e6).turn == "b"


def test_the_first_ticket_whose_client_is_there_takes_the_turn() -> None:
    tickets = (ticket(3, "b"), ticket(4, "a", QueueState.PARKED), ticket(5, "a"), ticket(6, "a"))
    first = first_in_line(board(*tickets, turn="a"))
    assert first is not None
    assert first.number == 5
    assert first_in_line(board(*tickets, ticket(2, "a", QueueState.RUNNING), turn="a")) is None
    assert first_in_line(board(ticket(1, "a"))) is None


def test_a_running_turn_is_not_disturbed() -> None:
    running = board(ticket(1, "a", QueueState.RUNNING, expires=50.0), ticket(2, "b"), turn="a", passing=frozenset("a"))
    assert settle(running, SKIP, 49.0) == running


def test_the_turn_of_a_client_that_died_at_it_is_over() -> None:
    after = settle(board(ticket(1, "a", QueueState.RUNNING, expires=50.0), ticket(2, "b"), turn="a"), WAIT, 50.0)
    assert (after.turn, [t.number for t in after.tickets]) == ("b", [2])


def test_a_client_that_died_in_line_uses_up_one_turn_and_blocks_nobody() -> None:
    dead = board(ticket(1, "a", expires=50.0), ticket(2, "b", expires=50.0), ticket(3, "c"), turn="a")
    after = settle(dead, WAIT, 60.0)
    assert (after.turn, [t.number for t in after.tickets]) == ("c", [3])
    assert after.turns == {"a": 1, "b": 1, "c": 1}


def test_a_dead_client_is_forgotten_where_another_of_the_same_analyst_stands() -> None:
    for other in (QueueState.WAITING, QueueState.PARKED):
        after = settle(board(ticket(1, "a", expires=50.0), ticket(2, "a", other), turn="a"), WAIT, 60.0)
        assert (after.turn, [t.number for t in after.tickets]) == ("a", [2])


def test_a_turn_that_is_let_go_moves_on_once() -> None:
    after = settle(board(ticket(1, "b"), turn="a", passing=frozenset("a")), WAIT, 1.0)
    assert (after.turn, after.passing) == ("b", frozenset())
    later = settle(board(ticket(1, "a"), turn="a", passing=frozenset("bc")), WAIT, 1.0)
    over = settle(replace(later, turn=None, tickets=()), WAIT, 2.0)
    assert (over.turn, over.turns, over.passing) == ("a", {"a": 2, "b": 1, "c": 1}, frozenset())


def test_who_is_away_is_passed_over_until_heard_of() -> None:
    away = board(ticket(1, "b"), turn="a", away=frozenset("ac"))
    assert settle(away, WAIT, 1.0).turn == "b"
    assert settle(replace(away, turn=None, away=frozenset("abc")), WAIT, 1.0).turn is None
    back = away.heard("a", 7.0)
    assert (back.away, back.seen["a"]) == (frozenset("c"), 7.0)


def test_a_parked_ticket_has_as_long_as_the_idle_rule_from_when_its_turn_came() -> None:
    parked = board(ticket(1, "a", QueueState.PARKED), ticket(2, "b"), seen={"a": 0.0, "b": 9e3, "c": 9e3})
    came = settle(parked, SKIP, 10_000.0)
    assert (came.turn, came.since) == ("a", 10_000.0)
    assert settle(came, SKIP, 10_599.0).turn == "a"
    lapsed = settle(came, SKIP, 10_600.0)
    assert (lapsed.turn, [t.number for t in lapsed.tickets]) == ("b", [2])


def test_a_parked_ticket_outlasts_a_turn_that_its_owner_lets_go() -> None:
    for how in ({"passing": frozenset("a")}, {"away": frozenset("a")}):
        after = settle(board(ticket(1, "a", QueueState.PARKED), ticket(2, "b"), turn="a", **how), SKIP, 1.0)
        assert (after.turn, [t.number for t in after.tickets]) == ("b", [1, 2])


def test_other_shares_begin_anew_and_tickets_keep_their_places() -> None:
    old = board(ticket(1, "a"), ticket(2, "c"), turn="a", last=2, seen={"a": 3.0})
    other = Rules(scheduler=RoundRobin(weights={"b": THIRD, "c": 2 * THIRD}))
    after = settle(old, other, 9.0)
    assert (after.last, [t.number for t in after.tickets], after.turns) == (2, [2], {"c": 1})


def test_the_board_comes_back_from_its_rows() -> None:
    class Rows(dict[str, bytes]):
        put_in_queue = dict.__setitem__
        drop_from_queue = dict.__delitem__

    rows = Rows()
    first = board(ticket(1, "ä", QueueState.PARKED), ticket(12, "b"), turn="a", away=frozenset("bc"), seen={"a": 1 / 3})
    queue_state.write(rows, Board(), first)
    assert queue_state.read(rows) == first
    second = replace(first.drop(first.tickets[0]), turn=None)
    before = dict(rows)
    queue_state.write(rows, first, second)
    assert queue_state.read(rows) == second
    assert rows["ticket 12"] is before["ticket 12"]
    assert queue_state.read({}) == Board()


@pytest.mark.parametrize("body", [b"", b"[]", b'{"number": 1}', b'{"state": "dancing"}', b"7"])
def test_rows_that_make_no_sense_are_refused(body: bytes) -> None:
    with pytest.raises(LedgerError, match="another release"):
        queue_state.read({"ticket 1": body})
