"""The order in which processes write to a ledger in a file: first come, first served, and nothing rests on it.

SQLite lets one process write at a time and does not say who is next. Here each takes a place in a line before it asks:
a lock of one byte of a file beside the ledger, at the moment of its arrival in nanoseconds. Whose byte has no locked
one before it is next. The locks are the kernel's: who dies, at work or in line, leaves no place behind. Who leaves
wakes whoever is next by a datagram; who hears nothing looks at the line from time to time.

Outside the trusted lines: SQLite's own lock still decides who writes. A line that is lost, or that differs from process
to process, makes somebody wait too long or too little.
"""

from __future__ import annotations

import os
import socket
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
"""Seconds between two looks at the line of somebody whom nobody wakes: the fewer, the nearer one's turn is."""

NAP_FACTOR_ONCE_WOKEN = 10
"""How many times as long somebody sleeps who was woken before: only where a process died will nobody do so again."""

READY_WITHIN = 2
"""With at most so many before it a process gets ready: while they are at work, it reads what others wrote since its
last turn, so that little is left to read in its own. If many did so at once, whoever is at work would wait for them."""

STUCK_SECONDS = 2.0
"""Seconds after which a first in line that does not move is passed over: it was stopped, or a fork kept its lock."""

_FLOCK = "hhqqi0q"
"""The kernel's `struct flock`: kind, what the start is counted from, start, length, process."""

_END = 2**63 - 1
"""No place is so late."""


class WriteOrder:
    """A place in the line of those who want to write to a ledger, one at a time."""

    def __init__(self, ledger: Path) -> None:
        self._path = ledger.with_name(ledger.name + "-order")
        self._file = -1
        self._bell: socket.socket | None = None  # where others say that the line has moved
        self._woken = False  # which does not happen where processes live in networks of their own
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
        """Give the place up, and wake whose turn it is now, and whose is near."""
        if self._bell is not None:
            self._bell.close()
            self._bell = None
        if sys.platform == "linux" and self.place:
            with suppress(OSError):
                self._ask(fcntl.F_OFD_SETLK, fcntl.F_UNLCK, self.place, 1)
                self._wake(self._places(self.place + 1, _END))
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
            elif now - since >= STUCK_SECONDS:
                self._passed = seen
            if len(line) <= READY_WITHIN and not ready:
                self.meanwhile()
                ready = True
            # Those who came between the first and this one take about as long to be served as they took to come.
            ahead = (self.place - seen) / 1e9 if len(line) > 1 else 0.0
            nap = min(max(ahead / 2, SHORTEST_NAP), LONGEST_NAP)
            self._sleep(min(NAP_FACTOR_ONCE_WOKEN * nap if self._woken else nap, until - now))

    def _sleep(self, seconds: float) -> None:
        """Until somebody wakes this one, but not longer; the first time not at all, as nobody could have done so."""
        if self._bell is None:
            self._bell = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self._bell.bind(self._address(self.place))
        else:
            self._bell.settimeout(seconds)
            with suppress(TimeoutError):
                self._bell.recv(1)
                self._woken = True

    def _wake(self, line: list[int]) -> None:
        for place in (*line[:1], *line[READY_WITHIN : READY_WITHIN + 1]):
            with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bell:
                bell.setblocking(False)
                bell.sendto(b"", self._address(place))

    def _address(self, place: int) -> bytes:
        """A name that the system forgets with the socket; no file, and no secret: at worst somebody looks in vain."""
        file = os.fstat(self._file)
        return f"\0bursar {file.st_dev} {file.st_ino} {place}".encode()

    def _before(self) -> list[int]:
        return self._places(0, self.place)

    def _places(self, start: int, end: int) -> list[int]:
        """Places in a part of the line, as a rule the first ones in their order; none where there are none."""
        places: list[int] = []
        while len(places) <= READY_WITHIN and start < end:
            kind, place = self._ask(fcntl.F_OFD_GETLK, fcntl.F_WRLCK, start, end - start)
            if kind == fcntl.F_UNLCK:
                break
            places.append(place)
            start = place + 1
        return places

    def _ask(self, command: int, kind: int, start: int, length: int) -> tuple[int, int]:
        """What the kernel says of these bytes: a kind of lock, and its start."""
        told = fcntl.fcntl(self._file, command, struct.pack(_FLOCK, kind, os.SEEK_SET, start, length, 0))
        kind, _, start, _, _ = struct.unpack(_FLOCK, told)
        return kind, start
