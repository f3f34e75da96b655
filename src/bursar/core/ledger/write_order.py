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
from contextlib import suppress
from pathlib import Path

with suppress(ImportError):  # where there is none, there is no line
    import fcntl

SHORTEST_NAP, LONGEST_NAP = 0.0003, 0.05
"""Seconds between two looks at the line: the fewer, the nearer one's turn is."""

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

    def wait(self, until: float) -> None:
        """Take a place, and return when it is the first, or at that moment of `time.monotonic`.

        Edge cases: where there can be no line, or it does not move, it returns early: all ask SQLite as they come.
        """
        if sys.platform == "linux":
            with suppress(OSError):
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
        seen, since = 0, 0.0
        while (first := self._first()) not in (0, self._passed) and (now := time.monotonic()) < until:
            if first != seen:
                seen, since = first, now
            elif now - since >= STUCK:
                self._passed = first
            # Those who came between the first and this one take about as long to be served as they took to come.
            ahead = (self.place - first) / 1e9
            time.sleep(min(max(ahead / 2, SHORTEST_NAP), LONGEST_NAP))

    def _first(self) -> int:
        """A place before the own one, as a rule the first of all; 0 where there is none."""
        kind, place = self._ask(fcntl.F_OFD_GETLK, fcntl.F_WRLCK, 0, self.place)
        return 0 if kind == fcntl.F_UNLCK else place

    def _ask(self, command: int, kind: int, start: int, length: int) -> tuple[int, int]:
        """What the kernel says of these bytes: a kind of lock, and its start."""
        told = fcntl.fcntl(self._file, command, struct.pack(_FLOCK, kind, os.SEEK_SET, start, length, 0))
        kind, _, start, _, _ = struct.unpack(_FLOCK, told)
        return kind, start
