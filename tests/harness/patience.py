"""Waiting for others. A busy machine is slow, and nothing is wrong with that: only what never happens fails a test."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection

PATIENCE = 300
"""Seconds that a test waits before it gives up."""

_nap = time.sleep  # a test may have put another in its place


def until(condition: Callable[[], object], pause: float = 0.005) -> None:
    """Wait until something is true."""
    give_up = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < give_up, "it never happened"
        _nap(pause)


def left_running(known: Collection[threading.Thread], patience: float) -> list[str]:
    """The names of threads other than the known ones that do not end in so many seconds."""
    others = [thread for thread in threading.enumerate() if thread not in known]
    for thread in others:
        thread.join(patience)
    return [thread.name for thread in others if thread.is_alive()]
