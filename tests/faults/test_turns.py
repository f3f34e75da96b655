"""Clients in real processes take turns; one that is killed, waiting or at its turn, does not block the rest."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from bursar.analysts import queue_state
from bursar.analysts.queue import TurnQueue
from bursar.analysts.queue_state import QueueState, Rules
from bursar.analysts.scheduler import Randomized, RoundRobin
from bursar.core.ledger import SqliteLedger
from harness.faults import KILLED, start
from harness.patience import PATIENCE, until

NAMES = "abcdefgh"
EQUAL = RoundRobin(weights={name: Fraction(1, 8) for name in NAMES})
CHARTER = {"id": "people"}
LEASE = 30.0
"""By the clock of the clients, which the test alone moves on: however slow the machine, nobody alive seems dead."""


@dataclass(frozen=True, kw_only=True)
class Question:
    analyst: str
    wait: bool = True
    ticket: int | None = None


def clock(folder: Path) -> float:
    """The time on the clients' common clock."""
    return float((folder / "clock").read_text())


def set_clock(folder: Path, now: float) -> None:
    (folder / "next").write_text(str(now))
    (folder / "next").replace(folder / "clock")


def opened(folder: Path) -> SqliteLedger:
    return SqliteLedger.open(folder / "ledger.sqlite", CHARTER, busy_timeout=PATIENCE)


def queue_on(folder: Path, ledger: SqliteLedger, rules: Rules) -> TurnQueue:
    return TurnQueue(ledger, rules, lease=LEASE, poll=0.05, clock=partial(clock, folder))


def client(folder: Path, rules: Rules, who: str, questions: int, dies_at: int | None = None) -> None:
    """Asks so many times; leaves a line for each turn, and one when it is over. May be killed in the middle of one."""
    ledger = opened(folder)
    queue = queue_on(folder, ledger, rules)
    for number in range(questions):
        with queue.turn(Question(analyst=who)):
            note(folder, f"+{who}")
            if number == dies_at:
                os.kill(os.getpid(), signal.SIGKILL)
            note(folder, f"-{who}")
    ledger.close()


def note(folder: Path, text: str) -> None:
    handle = os.open(folder / "turns", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(handle, f"{text}\n".encode())
    os.close(handle)


def notes(folder: Path) -> list[str]:
    return (folder / "turns").read_text().split() if (folder / "turns").exists() else []


def found(folder: Path) -> None:
    SqliteLedger.create(folder / "ledger.sqlite", CHARTER).close()
    set_clock(folder, 1000.0)


def begin(folder: Path, rules: Rules, plan: Sequence[tuple[str, int, int | None]]) -> dict[str, Any]:
    """The processes of the clients, by who they are."""
    found(folder)
    return {who: start(client, folder, rules, who, questions, dies) for who, questions, dies in plan}


def finish(folder: Path, processes: dict[str, Any]) -> None:
    """Wait for the clients. Once one was killed the clock goes on, only as fast as all who are alive can follow."""
    ledger, give_up = opened(folder), time.monotonic() + PATIENCE
    while (alive := {who for who, process in processes.items() if process.is_alive()}) and time.monotonic() < give_up:
        if any(process.exitcode == KILLED for process in processes.values()):
            now = clock(folder)
            tickets = queue_state.read(ledger.queue()).tickets
            if alive <= {ticket.analyst for ticket in tickets if ticket.expires > now + LEASE / 2}:
                set_clock(folder, now + LEASE / 3)
        time.sleep(0.01)
    ledger.close()
    for who in alive:
        processes[who].kill()
    assert alive == set()


def overlaps(lines: Sequence[str]) -> list[tuple[str, str]]:
    """Places where a turn began before the one before it was over."""
    return [(one, two) for one, two in pairwise(lines) if one[0] == two[0] == "+"]


def test_eight_processes_take_turns(tmp_path: Path) -> None:
    finish(tmp_path, begin(tmp_path, Rules(scheduler=EQUAL), [(who, 4, None) for who in NAMES]))
    assert notes(tmp_path) == [sign + who for _ in range(4) for who in NAMES for sign in "+-"]


def test_turns_of_unequal_shares_are_proportional(tmp_path: Path) -> None:
    rules = Rules(scheduler=RoundRobin(weights={"a": Fraction(3, 4), "b": Fraction(1, 4)}))
    finish(tmp_path, begin(tmp_path, rules, [("a", 9, None), ("b", 3, None)]))
    assert notes(tmp_path)[::2] == [f"+{who}" for who in "aaab" * 3]


@pytest.mark.heavy
def test_by_lot_one_at_a_time(tmp_path: Path) -> None:
    rules = Rules(scheduler=Randomized(weights=EQUAL.weights), idle=0.0)
    finish(tmp_path, begin(tmp_path, rules, [(who, 3, None) for who in NAMES]))
    lines = notes(tmp_path)
    assert Counter(lines) == {sign + who: 3 for who in NAMES for sign in "+-"}
    assert overlaps(lines) == []


def test_overlapping_turns_would_be_found() -> None:
    assert overlaps(["+a", "-a", "+b", "+c", "-b", "-c"]) == [("+b", "+c")]


@pytest.mark.heavy
def test_a_client_that_is_killed_at_its_turn_does_not_block_the_rest(tmp_path: Path) -> None:
    rules = Rules(scheduler=EQUAL, idle=LEASE + 1)
    finish(tmp_path, begin(tmp_path, rules, [(who, 3, 1 if who == "c" else None) for who in NAMES]))
    lines = notes(tmp_path)
    assert Counter(lines) == {sign + who: 3 for who in NAMES for sign in "+-"} | {"+c": 2, "-c": 1}
    assert overlaps(lines) == [("+c", "+d")]


def test_a_client_that_is_killed_in_line_does_not_block_the_rest(tmp_path: Path) -> None:
    """Under the rule to wait: its ticket uses up one turn, and then everybody else is at their last."""
    found(tmp_path)
    ledger, rules = opened(tmp_path), Rules(scheduler=EQUAL)
    with queue_on(tmp_path, ledger, rules).turn(Question(analyst="a")):
        processes = {who: start(client, tmp_path, rules, who, 1) for who in "bcdefgh"}
        until(lambda: len(queue_state.read(ledger.queue()).tickets) == 8)
        processes["c"].kill()
        processes["c"].join()
    finish(tmp_path, processes)
    assert notes(tmp_path) == [sign + who for who in "bdefgh" for sign in "+-"]
    board = queue_state.read(ledger.queue())
    assert (board.turn, board.turns["c"], [t for t in board.tickets if t.state is not QueueState.WAITING]) == (
        "a",
        1,
        [],
    )
    ledger.close()


@pytest.mark.heavy
def test_thirty_two_processes_are_all_served(tmp_path: Path) -> None:
    names = [f"analyst-{number}" for number in range(32)]
    rules = Rules(scheduler=RoundRobin(weights={name: Fraction(1, 32) for name in names}))
    finish(tmp_path, begin(tmp_path, rules, [(name, 3, None) for name in names]))
    assert notes(tmp_path) == [sign + name for _ in range(3) for name in sorted(names) for sign in "+-"]
