"""Two versions declared in one group commit are two versions."""

from __future__ import annotations

import threading
import time

from bursar.core.accounting import Versioned
from bursar.core.extensions.curator import declare_version
from bursar.core.ledger import MemoryLedger
from bursar.core.noise.system import SystemRandomness
from harness.small import TableSource, charter, config, counts


def test_versions_declared_together_have_numbers_of_their_own() -> None:
    """Else the second could claim the rows of a version that the first had already replaced."""
    ledger = MemoryLedger(charter(config()))
    reading, held = threading.Barrier(3), threading.Event()

    class Slow(TableSource):
        def content(self, first: int | None = None) -> tuple[str, ...]:
            reading.wait()
            held.wait()
            return super().content(first)

    def declare(source: type[TableSource], same_rows: bool) -> None:
        door = {"open_source": lambda key: source(counts()), "randomness": SystemRandomness()}
        declare_version(ledger=ledger, same_rows=same_rows, **door)

    def until_both_are_queued(transaction: object) -> None:
        held.set()
        while len(ledger._group._waiting) < 2:
            time.sleep(0.001)

    declare(TableSource, False)
    owners = [threading.Thread(target=declare, args=(Slow, same_rows)) for same_rows in (False, True)]
    for owner in owners:
        owner.start()
    reading.wait()
    ledger.commit(until_both_are_queued)
    for owner in owners:
        owner.join()
    versions = [record.event.version for record in ledger.records() if isinstance(record.event, Versioned)]
    assert versions == [1, 2, 3]
