"""One table at a time is paid for: a run that comes second finds in the log what the first one has bought."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from bursar.show.files import written

LOCK = "synthetic.lock"
POLL_SECONDS = 0.1
WAITS = "another synthetic table is being paid for; this one waits, and then buys what is still missing"


@contextmanager
def alone(table: Path | None, stop: Callable[[], bool], tell: Callable[[str], None]) -> Iterator[None]:
    """Wait until nobody else buys a table from the same ledger, and keep others waiting meanwhile.

    The lock is a file beside the `table`, and ends with the process. Where `stop` says so, the wait ends without it:
    then nothing is bought.
    Edge cases: without a ledger on disk there is nobody else.
    """
    if table is None:
        yield
        return
    lock = table.with_name(LOCK)
    with written(lock):
        lock.parent.mkdir(parents=True, exist_ok=True)
        opened = lock.open("w")
    with opened as file:
        if not _locked(file):
            tell(WAITS)
            while not stop() and not _locked(file):
                time.sleep(POLL_SECONDS)
        yield


def _locked(file: TextIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
