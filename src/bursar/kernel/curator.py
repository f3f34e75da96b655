"""The data owner's door: declaring which data a ledger speaks about."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bursar.kernel.accounting import Versioned
from bursar.kernel.ledger import Ledger, Transaction
from bursar.kernel.randomness import Randomness
from bursar.kernel.sources.source import Source

KEY_BYTES = 32


def declare_version(
    ledger: Ledger,
    open_source: Callable[[bytes], Source],
    randomness: Randomness,
    *,
    same_rows: bool = False,
) -> int:
    """Read the data as they are now and record them as the next version; returns its number.

    Guarantees: the log says only that a version was declared; the keyed content hash is a kernel secret. With
    `same_rows` the owner promises that rows were only added: then, and only then, both versions share one profile.
    """
    key = ledger.commit(lambda transaction: transaction.secret("data key")) or randomness.secret(KEY_BYTES)
    source = open_source(key)
    try:
        content = source.content()
    finally:
        source.close()

    def work(transaction: Transaction) -> int:
        log = [*transaction.committed(0), *transaction.pending()]
        declared = [record.event.version for record in log if isinstance(record.event, Versioned)]
        version = max(declared, default=0) + 1
        event = Versioned(version=version, same_rows=same_rows and version > 1)
        transaction.put_secret("data key", key)
        transaction.put_secret(f"content {version}", content.encode())
        transaction.append(analyst="owner", purpose="declared the data", event=event, values=np.zeros(0, np.int64))
        return version

    return ledger.commit(work)
