"""Signs of life on standard error, only where a person is looking."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE_SECONDS = 2.0
"""Work that is done sooner needs no sign."""

STEP_SECONDS = 1.0


@contextmanager
def working(what: str) -> Iterator[Callable[[str], None]]:
    """A line that counts the seconds while the block runs, and is gone afterwards; the block may say what it does."""
    doing = [what]
    if sys.stderr is None or not sys.stderr.isatty():
        yield doing.append
        return
    done = threading.Event()
    counter = threading.Thread(target=_count, args=(doing, done), daemon=True)
    counter.start()
    try:
        yield doing.append
    finally:
        done.set()
        counter.join()


def _count(doing: list[str], done: threading.Event) -> None:
    start, pause, shown = time.monotonic(), PATIENCE_SECONDS, ""
    while not done.wait(pause):
        before, shown = shown, f"{doing[-1]}: {time.monotonic() - start:.0f} s"
        pause = STEP_SECONDS
        print(f"\r{shown:<{len(before)}}", end="", file=sys.stderr, flush=True)
    if shown:
        print(f"\r{' ' * len(shown)}\r", end="", file=sys.stderr, flush=True)


def progress(done: int, of: int) -> None:
    """A percentage, which is gone when the work is done."""
    if sys.stderr is not None and sys.stderr.isatty() and (done == of or done % max(of // 100, 1) == 0):
        end = "\r    \r" if done == of else ""
        print(f"\r{100 * done // of:3}%{end}", end="", file=sys.stderr, flush=True)
