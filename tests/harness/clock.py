"""A clock that runs the same in every run of a harness: it moves when it is read, and when somebody sleeps."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import scipy.optimize

import bursar.strategies.best

LOADED = (bursar.strategies.best, scipy.optimize)
"""What an engine loads when it first needs it. Some of it reads the clock then, and only in the first of two runs."""

TICK = 1e-3
NAP = 30.0


class _Clock:
    """Threads that were there before, such as those of a driver, do not move it."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0
        self._others = {thread.ident for thread in threading.enumerate()} - {threading.get_ident()}

    def read(self) -> float:
        if threading.get_ident() not in self._others:
            self.now += TICK
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += max(seconds, NAP)


@contextmanager
def same_clock() -> Iterator[None]:
    """Inside, how often the clock was read is all that `time.time` tells: two runs that read it alike agree."""
    clock = _Clock()
    with (
        patch.object(time, "time", clock.read),
        patch.object(time, "monotonic", clock.read),
        patch.object(time, "sleep", clock.sleep),
    ):
        yield
