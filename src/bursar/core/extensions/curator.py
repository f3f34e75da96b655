"""The data owner's door: declaring which data a ledger speaks about, and sealing their partitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bursar.core.accounting import Event, Sealed, Versioned
from bursar.core.accounting.kind import ROOT
from bursar.core.extensions.partitions import PartitionAxis, Seals, content_names
from bursar.core.extensions.relations import Added, Relation
from bursar.core.ledger import Ledger, Purpose, Transaction
from bursar.core.noise.system import Randomness
from bursar.core.source.source import CHANGED, UNDECLARED, Source
from bursar.errors import ConfigError, LedgerError, SourceError

KEY_BYTES = 32


class Read(NamedTuple):
    """What is kept of the data: a keyed hash of each partition, and where they are public their sizes."""

    contents: list[bytes]
    sizes: list[int] | None

    @staticmethod
    def of(source: Source, axis: PartitionAxis | None, first: int | None = None) -> Read:
        try:
            contents = [content.encode() for content in source.content(first)]  # first: it says what is asked for
            public = axis is not None and axis.public_sizes
            return Read(contents, source.table((axis.column,)).tolist() if axis is not None and public else None)
        finally:
            source.close()


def declare_version(
    ledger: Ledger,
    open_source: Callable[[bytes], Source],
    randomness: Randomness,
    *,
    same_rows: bool = False,
    axis: PartitionAxis | None = None,
    through: int = -1,
    relation: Relation | None = None,
    key: bytes | None = None,
) -> int:
    """Read the data as they are now and record them as the next version; returns its number.

    `relation` is the private table that they are, where it is not the one that the charter describes; its first version
    adds it to the log. `key` is for a ledger that has no data key yet: the one that its data were opened with.

    Guarantees: the log says only that a version was declared; the keyed content hashes are kernel secrets. With
    `same_rows` the owner promises that rows were only added: then, and only then, both versions share one profile.
    Partitions that were sealed in the version before are sealed in the new one, as they are now, in the same commit;
    with `through`, those up to that one too.
    """
    key = ledger.commit(lambda transaction: transaction.secret("data key")) or key or randomness.secret(KEY_BYTES)
    read = Read.of(open_source(key), axis)

    def work(transaction: Transaction) -> int:
        log = [*transaction.committed(0), *transaction.pending()]
        declared = [record.event.version for record in log if isinstance(record.event, Versioned)]
        version = max(declared, default=0) + 1
        table = ROOT if relation is None else relation.table
        added = {record.event.table for record in log if isinstance(record.event, Added)}
        if relation is not None and table not in added:
            _append(transaction, "added a table", relation.added)
        transaction.put_secret("data key", key)
        grown = same_rows and version > 1
        _append(transaction, "declared the data", Versioned(version=version, same_rows=grown, table=table))
        last = max(through, Seals.after(log).sealed - 1)
        if axis is None:
            (name,) = content_names(version, axis, 0)
            transaction.put_secret(name, read.contents[0])
        elif last >= 0:
            _seal(transaction, axis, Seals(version=version), last, read)
        return version

    return ledger.commit(work)


def seal(ledger: Ledger, open_source: Callable[[bytes], Source], *, axis: PartitionAxis, through: int) -> int:
    """Seal the partitions up to the one with this number, as they are now; returns how many are sealed from now on.

    Guarantees: the log says which partitions were sealed, and how many rows they have only where that is public.
    Edge cases: nothing is written where they are sealed already; SourceError where a sealed one has changed.
    """
    seals = Seals.after(ledger.records())
    if seals.sealed > through:
        return seals.sealed
    key = ledger.commit(lambda transaction: transaction.secret("data key"))
    if key is None:
        raise SourceError(UNDECLARED)
    read = Read.of(open_source(key), axis, through + 1)

    def work(transaction: Transaction) -> int:
        now = Seals.after([*transaction.committed(0), *transaction.pending()])
        if now.version == seals.version and now.sealed > through:
            return now.sealed  # somebody else was faster
        if now != seals:
            raise LedgerError("the data were declared or sealed by somebody else meanwhile; look, and seal again")
        hashes = [transaction.secret(name) for name in content_names(now.version, axis, now.sealed)]
        if hashes != read.contents[: now.sealed]:
            raise SourceError(CHANGED)
        _seal(transaction, axis, now, through, read)
        return through + 1

    return ledger.commit(work)


def _seal(transaction: Transaction, axis: PartitionAxis, before: Seals, through: int, read: Read) -> None:
    if through >= axis.size:
        raise ConfigError(f"{axis.column} has {axis.size} partitions, counted from 0, and none with number {through}")
    new = range(before.sealed, through + 1)
    names = content_names(before.version, axis, through + 1)
    for place in new:
        transaction.put_secret(names[place], read.contents[place])
    sizes = None if read.sizes is None else tuple(read.sizes[place] for place in new)
    _append(transaction, "sealed partitions", Sealed(through=through, version=before.version, sizes=sizes))


def _append(transaction: Transaction, text: str, event: Event) -> None:
    transaction.append(analyst="owner", purpose=Purpose(text, "owner"), event=event, values=np.zeros(0, np.int64))
