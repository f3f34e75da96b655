"""Checked records: what was verified once is remembered, so a reader pays for new records only."""

from __future__ import annotations

from bursar.errors import LedgerError
from bursar.core.ledger import record_codec as codec
from bursar.core.ledger.database import Database, State
from bursar.core.ledger.ledger import Record


class Log:
    """How far this process has verified the log of one ledger; threads share it.

    Guarantees: every record it returns lies on an unbroken chain from the charter to the end that was given, and the
    chain runs through the last record that was verified before: a history that was exchanged is noticed.
    """

    def __init__(self, charter_hash: bytes) -> None:
        self.verified = (0, charter_hash)

    def records(self, database: Database, *, after: int, end: State, known: tuple[int, bytes]) -> list[Record]:
        """Records after a position up to `end`; `known` is `verified` from before the database's snapshot."""
        if end.position < known[0] or database.chain_at(known[0]) != known[1]:
            raise LedgerError("the ledger was replaced by an older or another one while it was open")
        start, hash_ = known if after >= known[0] else (after, database.chain_at(after))
        checked = [row for row in database.walk(start, hash_, end) if row[0] > after]
        self.verified = (end.position, end.chain)
        return [codec.decode_record(position, body, database.strategy) for position, body in checked]
