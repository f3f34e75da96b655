"""Clients in real processes take turns; one that is killed, waiting or at its turn, does not block the rest."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from bursar.analysts import slips
from bursar.analysts.board import Rules, State
from bursar.analysts.queue import TurnQueue
from bursar.analysts.scheduler import Randomized, RoundRobin
from bursar.kernel.ledger import SqliteLedger

NAMES = "abcdefgh"
EQUAL = RoundRobin(weights={name: Fraction(1, 8) for name in NAMES})
CHARTER = {"id": "people"}
LEASE = 5.0
"""Long enough that a machine under load does not take a client for dead that is alive."""


@dataclass(frozen=True, kw_only=True)
class Question:
    analyst: str
    wait: bool = True
    ticket: int | None = None


def client(folder: Path, rules: Rules, who: str, questions: int, dies_at: int | None = None) -> None:
    """Asks so many times; leaves a line for each turn, and one when it is over. May be killed in the middle of one."""
    ledger = SqliteLedger.open(folder / "ledger.sqlite", CHARTER)
    queue = TurnQueue(ledger, rules, lease=LEASE, poll=0.01)
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


def begin(folder: Path, rules: Rules, plan: Sequence[tuple[str, int, int | None]]) -> list[BaseProcess]:
    SqliteLedger.create(folder / "ledger.sqlite", CHARTER).close()
    context = multiprocessing.get_context("fork")
    processes: list[BaseProcess] = [
        context.Process(target=client, args=(folder, rules, who, questions, dies)) for who, questions, dies in plan
    ]
    for process in processes:
        process.start()
    return processes


def finish(processes: list[BaseProcess]) -> None:
    for process in processes:
        process.join(timeout=60)
    stuck = [process for process in processes if process.is_alive()]
    for process in stuck:
        process.kill()
    assert stuck == []


def overlaps(lines: Sequence[str]) -> list[tuple[str, str]]:
    """Places where a turn began before the one before it was over."""
    return [(one, two) for one, two in pairwise(lines) if one[0] == two[0] == "+"]


def test_eight_processes_take_turns(tmp_path: Path) -> None:
    finish(begin(tmp_path, Rules(scheduler=EQUAL), [(who, 4, None) for who in NAMES]))
    assert notes(tmp_path) == [sign + who for _ in range(4) for who in NAMES for sign in "+-"]


def test_turns_of_unequal_shares_are_proportional(tmp_path: Path) -> None:
    rules = Rules(scheduler=RoundRobin(weights={"a": Fraction(3, 4), "b": Fraction(1, 4)}))
    finish(begin(tmp_path, rules, [("a", 9, None), ("b", 3, None)]))
    assert notes(tmp_path)[::2] == [f"+{who}" for who in "aaab" * 3]


def test_by_lot_one_at_a_time(tmp_path: Path) -> None:
    rules = Rules(scheduler=Randomized(weights=EQUAL.weights), idle=0.0)
    finish(begin(tmp_path, rules, [(who, 3, None) for who in NAMES]))
    lines = notes(tmp_path)
    assert Counter(lines) == {sign + who: 3 for who in NAMES for sign in "+-"}
    assert overlaps(lines) == []


def test_overlapping_turns_would_be_found() -> None:
    assert overlaps(["+a", "-a", "+b", "+c", "-b", "-c"]) == [("+b", "+c")]


def test_a_client_that_is_killed_at_its_turn_does_not_block_the_rest(tmp_path: Path) -> None:
    rules = Rules(scheduler=EQUAL, idle=LEASE + 1)
    finish(begin(tmp_path, rules, [(who, 3, 1 if who == "c" else None) for who in NAMES]))
    lines = notes(tmp_path)
    assert Counter(lines) == {sign + who: 3 for who in NAMES for sign in "+-"} | {"+c": 2, "-c": 1}
    assert overlaps(lines) == [("+c", "+d")]


def test_a_client_that_is_killed_in_line_does_not_block_the_rest(tmp_path: Path) -> None:
    """Under the rule to wait: its ticket uses up one turn, and then everybody else is at their last."""
    ledger = SqliteLedger.create(tmp_path / "ledger.sqlite", CHARTER)
    queue = TurnQueue(ledger, Rules(scheduler=EQUAL), lease=LEASE, poll=0.01)
    context = multiprocessing.get_context("fork")
    with queue.turn(Question(analyst="a")):
        processes = [
            context.Process(target=client, args=(tmp_path, Rules(scheduler=EQUAL), who, 1)) for who in "bcdefgh"
        ]
        for process in processes:
            process.start()
        deadline = time.monotonic() + 60
        while len(slips.read(ledger.queue()).tickets) < 8 and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(processes[1].pid or 0, signal.SIGKILL)
    finish(processes)
    assert notes(tmp_path) == [sign + who for who in "bdefgh" for sign in "+-"]
    board = slips.read(ledger.queue())
    assert (board.turn, board.turns["c"], [t for t in board.tickets if t.state is not State.WAITING]) == ("a", 1, [])
    ledger.close()


@pytest.mark.heavy
def test_thirty_two_processes_are_all_served(tmp_path: Path) -> None:
    names = [f"analyst-{number}" for number in range(32)]
    rules = Rules(scheduler=RoundRobin(weights={name: Fraction(1, 32) for name in names}))
    finish(begin(tmp_path, rules, [(name, 3, None) for name in names]))
    assert notes(tmp_path) == [sign + name for _ in range(3) for name in sorted(names) for sign in "+-"]
