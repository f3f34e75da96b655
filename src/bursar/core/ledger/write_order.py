"""The order in which processes write to a ledger in a file: first come, first served, and nothing rests on it.

SQLite lets one process write at a time and does not say who is next. Here each takes a place in a line before it asks:
a lock of one byte of a file beside the ledger, at the moment of its arrival in nanoseconds. Whose byte has no locked
one before it is next. The locks are the kernel's: who dies, at work or in line, leaves no place behind.

Outside the trusted lines: SQLite's own lock still decides who writes. A line that is lost, or that differs from process
to process, makes somebody wait too long or too little.
"""

from __future__ import annotations

import os
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from bursar.errors import BursarError

with suppress(ImportError):  # where there is none, there is no line
    import fcntl

SHORTEST_NAP, LONGEST_NAP = 0.001, 0.05
"""Seconds between two looks at the line: the fewer, the nearer one's turn is."""

NEAR = 2
"""With at most so many before it a process gets ready: while they are at work, it reads what others wrote since its
last turn, so that little is left to read in its own. If many did so at once, whoever is at work would wait for them."""

STUCK = 2.0
"""Seconds after which a first in line that does not move is passed over: it was stopped, or a fork kept its lock."""

_FLOCK = "hhqqi0q"
"""The kernel's `struct flock`: kind, what the start is counted from, start, length, process."""


class WriteOrder:
    """A place in the line of those who want to write to a ledger, one at a time."""

    def __init__(self, ledger: Path) -> None:
        self._path = ledger.with_name(ledger.name + "-order")
        self._file = -1
        self.place = 0  # none
        self._passed = 0  # the place that did not move for too long
        self.meanwhile: Callable[[], object] = list  # what there is to do when one's turn is near

    def wait(self, until: float) -> None:
        """Take a place, and return when it is the first, or at that moment of `time.monotonic`.

        Edge cases: where there can be no line, it does not move, or what there is to do meanwhile fails, it returns
        early: all ask SQLite as they come.
        """
        if sys.platform == "linux":
            with suppress(OSError, BursarError):
                self._arrive()
                self._stand(until)

    def leave(self) -> None:
        """Give the place up."""
        if sys.platform == "linux" and self.place:
            with suppress(OSError):
                self._ask(fcntl.F_OFD_SETLK, fcntl.F_UNLCK, self.place, 1)
            self.place = 0

    def close(self) -> None:
        """Give the place up, and the file."""
        self.leave()
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _arrive(self) -> None:
        if self._file < 0:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self.leave()
        place = time.monotonic_ns()
        while not self.place:
            try:
                self._ask(fcntl.F_OFD_SETLK, fcntl.F_WRLCK, place, 1)
                self.place = place
            except BlockingIOError:
                place += 1  # somebody came at the same moment

    def _stand(self, until: float) -> None:
        seen, since, ready = 0, 0.0, False
        while (line := self._before())[:1] not in ([], [self._passed]) and (now := time.monotonic()) < until:
            if line[0] != seen:
                seen, since = line[0], now
            elif now - since >= STUCK:
                self._passed = seen
            if len(line) <= NEAR and not ready:
                self.meanwhile()
                ready = True
            # Those who came between the first and this one take about as long to be served as they took to come.
            ahead = (self.place - seen) / 1e9 if len(line) > 1 else 0.0
            time.sleep(min(max(ahead / 2, SHORTEST_NAP), LONGEST_NAP))

    def _before(self) -> list[int]:
        """Places before the own one, as a rule the first ones in their order; none where there are none."""
        found: list[int] = []
        after = 0
        while len(found) <= NEAR and after < self.place:
            kind, place = self._ask(fcntl.F_OFD_GETLK, fcntl.F_WRLCK, after, self.place - after)
            if kind == fcntl.F_UNLCK:
                break
            found.append(place)
            after = place + 1
        return found

    def _ask(self, command: int, kind: int, start: int, length: int) -> tuple[int, int]:
        """What the kernel says of these bytes: a kind of lock, and its start."""
        told = fcntl.fcntl(self._file, command, struct.pack(_FLOCK, kind, os.SEEK_SET, start, length, 0))
        kind, _, start, _, _ = struct.unpack(_FLOCK, told)
        return kind, start
