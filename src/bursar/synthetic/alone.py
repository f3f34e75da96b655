"""One table at a time is paid for: a run that comes second finds in the log what the first one has bought.

A file beside the lock names the hold of the run, so that whoever has the lock next can drop what a run that was killed
has left behind: it is over, or it would have the lock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bursar.report.files import written

if TYPE_CHECKING:
    from filelock import BaseFileLock

LOCK = "synthetic.lock"
HOLD = "synthetic.hold"
POLL_SECONDS = 0.1
MOST_DIGITS = 20
WAITS = "another synthetic table is being paid for; this one waits, and then buys what is still missing"


@dataclass(frozen=True)
class Turn:
    """The right to buy a table; without a file there is nobody else, or there is no time left to wait for it."""

    file: Path | None = None  # beside the lock, whose own file is emptied when it is taken

    def left_behind(self) -> int | None:
        """The number of the hold that the run before has noted, which ended without giving it back."""
        if self.file is None or not self.file.exists():
            return None
        text = self.file.read_text()[:MOST_DIGITS]
        return int(text) if text.isascii() and text.isdigit() else None

    def note(self, fence: int | None) -> None:
        """Write the number of the own hold down; nothing where there is none."""
        if self.file is not None:
            self.file.write_text("" if fence is None else str(fence))


@contextmanager
def alone(table: Path | None, stop: Callable[[], bool], tell: Callable[[str], None]) -> Iterator[Turn]:
    """Wait until nobody else buys a table from the same ledger, and keep others waiting meanwhile.

    The lock is a file beside the `table`, and ends with the process. Where `stop` says so, the wait ends without it:
    then nothing is bought.
    Edge cases: without a ledger on disk there is nobody else.
    """
    if table is None:
        yield Turn()
        return
    from filelock import FileLock  # loaded here, since asking a question needs none

    lock = FileLock(table.with_name(LOCK))
    with written(table.with_name(LOCK)):
        table.parent.mkdir(parents=True, exist_ok=True)
        mine = _locked(lock)
    try:
        if not mine:
            tell(WAITS)
        while not mine and not stop():
            time.sleep(POLL_SECONDS)
            mine = _locked(lock)
        yield Turn(table.with_name(HOLD) if mine else None)
    finally:
        lock.release()


def _locked(lock: BaseFileLock) -> bool:
    from filelock import Timeout

    try:
        lock.acquire(blocking=False)
    except Timeout:
        return False
    return True
