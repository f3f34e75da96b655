"""The queue over a ledger: tickets, turns, leases, what each analyst may see."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bursar.analysts import queue as module
from bursar.analysts import queue_state
from bursar.analysts.queue import NoQueue, TurnQueue, queue_of
from bursar.analysts.queue_state import QueueState, Rules
from bursar.analysts.scheduler import Randomized, RoundRobin
from bursar.analysts.shares import AnalystSettings, Shares
from bursar.core.ledger import Ledger, MemoryLedger, SqliteLedger
from bursar.errors import AnalystError, LedgerError, Waiting
from harness.patience import PATIENCE, until

HALF = Fraction(1, 2)
RULES = Rules(scheduler=RoundRobin(weights={"ann": HALF, "bob": HALF}))


@dataclass(frozen=True, kw_only=True)
class Question:
    analyst: str
    wait: bool = True
    ticket: int | None = None


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(params=["memory", "sqlite"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    charter = {"id": "people"}
    made = MemoryLedger(charter) if request.param == "memory" else SqliteLedger.create(tmp_path / "l.sqlite", charter)
    yield made
    made.close()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def queue(ledger: Ledger, clock: Clock) -> TurnQueue:
    return TurnQueue(ledger, RULES, name="round-robin", poll=0.005, clock=clock)


def at_once(question: Question, queue: TurnQueue) -> None:
    """Take a turn that must be there."""
    with queue.turn(replace(question, wait=False)):
        pass


@contextmanager
def client(queue: TurnQueue, question: Question) -> Iterator[list[Any]]:
    """A client in a thread of its own; what it was told, and then "served" or its error."""
    heard: list[Any] = []
    queue.tell = heard.append

    def run() -> None:
        try:
            with queue.turn(question):
                heard.append("served")
        except Exception as error:
            heard.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    yield heard
    thread.join(PATIENCE)
    assert not thread.is_alive()


def test_turns_alternate(queue: TurnQueue) -> None:
    for who in ("ann", "bob", "ann", "bob"):
        at_once(Question(analyst=who), queue)
    status = queue.status("ann")
    assert (status.had, status.given, status.yours, status.own) == (3, 5, True, ())


def test_who_will_not_wait_gets_a_ticket_that_is_redeemed_later(queue: TurnQueue) -> None:
    with pytest.raises(Waiting, match="try: the same again with --ticket 1") as first:
        at_once(Question(analyst="bob"), queue)
    assert first.value.ticket == 1
    with pytest.raises(Waiting) as again:
        at_once(Question(analyst="bob", ticket=1), queue)
    assert again.value.ticket == 1
    assert [ticket.state for ticket in queue.status("bob").own] == [QueueState.PARKED]
    at_once(Question(analyst="ann"), queue)
    at_once(Question(analyst="bob", ticket=1), queue)
    assert queue.status("bob").own == ()
    with pytest.raises(AnalystError, match=r"has no ticket 1: .* was used"):
        at_once(Question(analyst="bob", ticket=1), queue)


def test_a_ticket_is_its_owners(queue: TurnQueue) -> None:
    with pytest.raises(Waiting):
        at_once(Question(analyst="bob"), queue)
    with pytest.raises(AnalystError, match="'ann' has no ticket 1"):
        at_once(Question(analyst="ann", ticket=1), queue)
    assert queue.status("ann").own == ()
    assert queue.status("ann").others == 1


def test_a_ticket_serves_one_client_at_a_time(queue: TurnQueue) -> None:
    with pytest.raises(Waiting):
        at_once(Question(analyst="bob"), queue)
    with client(queue, Question(analyst="bob", ticket=1)) as heard:
        until(lambda: heard)
        with pytest.raises(AnalystError, match="ticket 1 is in use"):
            at_once(Question(analyst="bob", ticket=1), queue)
        at_once(Question(analyst="ann"), queue)
    assert heard[-1] == "served"


def test_a_client_that_waits_is_told_what_would_help_and_runs_its_own_turn(queue: TurnQueue) -> None:
    with client(queue, Question(analyst="bob")) as heard:
        until(lambda: heard)
        assert heard == [
            "it is the turn of an analyst who has not asked; nobody else in line\n"
            'try: they can run: bursar pass; the data owner can set idle = "skip-after 10m" under [analysts]'
        ]
        at_once(Question(analyst="ann"), queue)
    assert heard[-1] == "served"
    assert "ann" not in "".join(heard)


def test_what_a_client_waits_for_is_told_anew_when_it_changes(ledger: Ledger, clock: Clock) -> None:
    queue = TurnQueue(ledger, RULES, poll=0.005, clock=clock)
    busy = TurnQueue(ledger, RULES, clock=clock)
    with client(queue, Question(analyst="bob")) as heard:
        until(lambda: heard)
        with busy.turn(Question(analyst="ann")):
            until(lambda: len(heard) == 2)
        until(lambda: heard[-1] == "served")
    assert heard[1] == "it is another analyst's turn; 1 other analyst in line"


def test_a_question_behind_another_of_the_same_analyst(ledger: Ledger) -> None:
    queue = TurnQueue(ledger, RULES, poll=0.005)
    with TurnQueue(ledger, RULES).turn(Question(analyst="ann")), pytest.raises(Waiting) as told:
        queue.turn(Question(analyst="ann", wait=False)).__enter__()
    assert "another question of yours is before this one" in str(told.value)


def test_letting_a_turn_go(queue: TurnQueue) -> None:
    with client(queue, Question(analyst="bob")) as heard:
        until(lambda: heard)
        queue.let_go("ann")
    assert heard[-1] == "served"
    assert queue.status("ann").had == 2  # the turn that was let go counts, and the next one has come


def test_being_away_until_the_next_question(queue: TurnQueue) -> None:
    assert queue.let_go("ann", away=True).away
    for _ in range(5):
        at_once(Question(analyst="bob"), queue)
    with pytest.raises(Waiting):
        at_once(Question(analyst="ann"), queue)
    assert not queue.status("ann").away
    at_once(Question(analyst="bob"), queue)
    at_once(Question(analyst="ann", ticket=6), queue)


def test_a_turn_in_use_is_not_let_go_but_the_next_one(ledger: Ledger) -> None:
    queue = TurnQueue(ledger, RULES)
    with queue.turn(Question(analyst="ann")):
        queue.let_go("ann")
        with pytest.raises(Waiting):
            at_once(Question(analyst="bob"), queue)
    at_once(Question(analyst="bob", ticket=2), queue)
    at_once(Question(analyst="bob"), queue)


def test_the_turn_is_over_after_a_refusal_too(queue: TurnQueue) -> None:
    with pytest.raises(ZeroDivisionError), queue.turn(Question(analyst="ann")):
        1 / 0  # noqa: B018
    at_once(Question(analyst="bob"), queue)


def test_a_client_that_goes_away_takes_its_ticket_along(
    queue: TurnQueue, monkeypatch: pytest.MonkeyPatch, ledger: Ledger
) -> None:
    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "time", SimpleNamespace(sleep=interrupt))  # other threads must go on sleeping
    with pytest.raises(KeyboardInterrupt), queue.turn(Question(analyst="bob")):
        raise AssertionError("it was not bob's turn")
    assert queue_state.read(ledger.queue()).tickets == ()


def test_a_dead_client_is_passed_over_when_its_lease_is_over(ledger: Ledger, clock: Clock) -> None:
    queue = TurnQueue(ledger, RULES, clock=clock, lease=30.0)
    queue._enter(Question(analyst="ann"))  # and then it dies
    with pytest.raises(Waiting):
        queue.turn(Question(analyst="bob", wait=False)).__enter__()
    clock.now += 29.0
    with pytest.raises(Waiting):
        queue.turn(Question(analyst="bob", wait=False, ticket=2)).__enter__()
    clock.now += 1.0
    with queue.turn(Question(analyst="bob", wait=False, ticket=2)):
        pass


def test_a_long_turn_keeps_its_lease(ledger: Ledger, clock: Clock) -> None:
    queue = TurnQueue(ledger, RULES, lease=0.3, poll=0.005, clock=clock)
    with queue.turn(Question(analyst="ann")):
        for _ in range(3):
            clock.now += 0.2
            until(lambda: queue_state.read(ledger.queue()).tickets[0].expires == clock.now + 0.3)
        with pytest.raises(Waiting):
            queue.turn(Question(analyst="bob", wait=False)).__enter__()


def test_a_client_that_was_given_up_comes_back(queue: TurnQueue, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """It slept through its lease: its turn is gone, its place is not."""
    awake = threading.Event()
    monkeypatch.setattr(module, "time", SimpleNamespace(sleep=lambda seconds: awake.wait()))
    with client(queue, Question(analyst="bob")) as heard:
        until(lambda: heard)
        clock.now += 100.0
        at_once(Question(analyst="ann"), queue)
        assert queue.status("bob").own == ()
        awake.set()
        until(lambda: queue.status("bob").own)
        at_once(Question(analyst="ann"), queue)
    assert heard[-1] == "served"


def test_idle_analysts_are_passed_over_by_the_rule(ledger: Ledger, clock: Clock) -> None:
    queue = TurnQueue(ledger, replace(RULES, idle=600.0), clock=clock, poll=0.005)
    with pytest.raises(Waiting, match="passed over after 600 seconds"):
        queue.turn(Question(analyst="bob", wait=False)).__enter__()
    clock.now += 600.0
    for ticket in (1, None, None):
        with queue.turn(Question(analyst="bob", wait=False, ticket=ticket)):
            pass


def test_only_analysts_with_a_share_take_turns(queue: TurnQueue) -> None:
    for use in (queue.let_go, lambda who: queue.turn(Question(analyst=who)).__enter__()):
        with pytest.raises(AnalystError, match="'eve' has no share"):
            use("eve")
    assert queue.status("eve").own == ()


def test_a_ledger_that_cannot_be_written_does_not_hide_what_was_answered(
    queue: TurnQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(work: object) -> None:
        raise LedgerError("the disk of the ledger is full")

    with queue.turn(Question(analyst="ann")):
        monkeypatch.setattr(queue._ledger, "commit", broken)


def test_without_a_scheduler_nobody_waits() -> None:
    queue = queue_of(AnalystSettings(), MemoryLedger({}))
    assert isinstance(queue, NoQueue)
    with queue.turn(Question(analyst="anybody")), queue.turn(Question(analyst="anybody")):
        pass
    assert (queue.status("ann").scheduler, queue.status("ann").yours) == ("none", True)
    with pytest.raises(AnalystError, match="no tickets"):
        queue.turn(Question(analyst="ann", ticket=3))
    with pytest.raises(AnalystError, match="no turn to let go"):
        queue.let_go("ann")


def test_queues_as_the_settings_say() -> None:
    shares = Shares.of({"ann": 0.3, "bob": 0.6})
    ledger = MemoryLedger({})
    turns = queue_of(AnalystSettings(scheduler="round-robin", shares=shares, idle=7.0), ledger)
    assert isinstance(turns, TurnQueue)
    assert turns._rules == Rules(scheduler=RoundRobin(weights=dict(shares)), idle=7.0)
    lots = queue_of(AnalystSettings(scheduler="randomized", shares=shares), ledger)
    assert isinstance(lots, TurnQueue)
    assert lots._rules.scheduler == Randomized(weights=dict(shares))
    even = {"ann": HALF, "bob": HALF}
    lots = queue_of(AnalystSettings(scheduler="randomized", shares=shares, probabilities=even), ledger)
    assert isinstance(lots, TurnQueue)
    assert lots._rules.scheduler.weights == even
