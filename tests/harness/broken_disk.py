"""A process whose disk breaks: asks under faults of `broken_disk.c`, and says how often it was refused.

`python -m harness.broken_disk FLOW CALL STRIDE CASE...`, with the compiled shim in LD_PRELOAD; each case is the JSON of
the ledger's place, the errno, and whether the disk stays broken. The nth system call of a kind fails while a question
is asked, for n = STRIDE, 2 STRIDE, ... until no call fails any more.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import sys
from collections.abc import Callable
from pathlib import Path

from bursar.core.ledger import sqlite
from bursar.session import Bursar
from harness.faults import HOUR, Ask, Clock, loss, measured, note, refusal, reopened

CALLS = ("write", "sync", "read", "truncate")
EPSILON = 100.0

_NARROW = itertools.product(range(9), range(1, 10), ("F", "M"), ("north", "south", "east"))
QUESTIONS = tuple(
    Ask(
        key=f"{low} {high} {sex} {region}",
        text="SELECT COUNT(*) FROM people "
        f"WHERE age BETWEEN {low} AND {high} AND sex = '{sex}' AND region = '{region}'",
        rows=1,
    )
    for low, high, sex, region in _NARROW
    if low < high
)
"""Questions of which none answers another, so that each must be paid for."""


class Kept:
    """One engine that lives through all faults."""

    def __init__(self, place: Path) -> None:
        self._bursar = reopened(place, epsilon=EPSILON)

    def __call__(self, use: Callable[[Bursar], None]) -> None:
        use(self._bursar)

    def close(self) -> None:
        """Now, or the garbage collector closes it while the disk of another ledger is broken."""
        self._bursar.close()


class Opened:
    """A new engine for every question: opening and closing break too."""

    def __init__(self, place: Path) -> None:
        self._place = place

    def __call__(self, use: Callable[[Bursar], None]) -> None:
        with reopened(self._place, epsilon=EPSILON) as bursar:
            use(bursar)

    def close(self) -> None: ...


class Unsynced(Kept):
    """A wrong twin: its commits do not wait for the disk."""

    def __init__(self, place: Path) -> None:
        sqlite.SETTINGS = tuple(setting.replace("=FULL", "=OFF") for setting in sqlite.SETTINGS)
        super().__init__(place)


FLOWS = {"kept": Kept, "opened": Opened, "unsynced": Unsynced}


def break_everywhere(place: Path, flow: str, call: str, error: int, lasting: bool, stride: int) -> dict[str, int]:
    disk = ctypes.CDLL(None)
    with_engine = FLOWS[flow](place)
    tally = {"asked": 0, "refused": 0, "failed": 0}
    clock = Clock()
    with clock.running():
        for ask, nth in zip(QUESTIONS, itertools.count(stride, stride), strict=False):
            disk.disk_breaks(CALLS.index(call), ctypes.c_long(nth), error, int(lasting))
            met = refusal(lambda ask=ask: with_engine(lambda bursar: note(place, ask, ask.of(bursar))))
            tally["refused"] += met is not None
            failed = disk.disk_heals()
            tally["asked"] += 1
            tally["failed"] += failed
            clock.off += HOUR  # the lease of a claim whose release failed is over
            with_engine(lambda bursar, ask=ask: whole(bursar, place, ask))
            if failed == 0:
                with_engine.close()
                return tally
    raise AssertionError("calls never stopped failing")


def whole(bursar: Bursar, place: Path, ask: Ask) -> None:
    """The ledger is as it should be, and the question that failed is answered now, for one price."""
    bursar.owner.verify()
    note(place, ask, ask.of(bursar))
    records = bursar.ledger.records()
    assert len(measured(records, ask.text)) == 1
    assert bursar.kernel.spent() == loss([record.event for record in records])


if __name__ == "__main__":
    flow, call, stride, *cases = sys.argv[1:]
    tallies = []
    for place, error, lasting in map(json.loads, cases):
        tallies.append(break_everywhere(Path(place), flow, call, error, lasting, int(stride)))
    print(json.dumps(tallies))
