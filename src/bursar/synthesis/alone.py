"""One table at a time is paid for: a run that comes second finds in the log what the first one has bought."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bursar.show.files import written

if TYPE_CHECKING:
    from filelock import BaseFileLock

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
    from filelock import FileLock  # loaded here, since asking a question needs none

    lock = FileLock(table.with_name(LOCK))
    with written(table.with_name(LOCK)):
        table.parent.mkdir(parents=True, exist_ok=True)
        free = _locked(lock)
    try:
        if not free:
            tell(WAITS)
            while not stop() and not _locked(lock):
                time.sleep(POLL_SECONDS)
        yield
    finally:
        lock.release()


def _locked(lock: BaseFileLock) -> bool:
    from filelock import Timeout

    try:
        lock.acquire(blocking=False)
    except Timeout:
        return False
    return True
