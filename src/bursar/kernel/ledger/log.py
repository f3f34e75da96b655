"""Checked records from a database: what was verified once is remembered, so a reader pays for new records only."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bursar.errors import LedgerError
from bursar.kernel.ledger import codec
from bursar.kernel.ledger.database import Database, State
from bursar.kernel.ledger.ledger import Record
from bursar.queries import LinearMap

MOST_STRATEGIES = 4096
"""How many decoded strategies are kept for the next record that refers to them."""


class Log:
    """The log of one ledger, as this process knows it. Threads may share it: all state is replaced, never changed.

    Guarantees: every record it returns lies on an unbroken chain from the charter to the end that was given, and the
    chain runs through the last record that was verified before: a history that was exchanged is noticed.
    """

    def __init__(self, charter_hash: bytes) -> None:
        self.verified: tuple[int, bytes] = (0, charter_hash)
        self._strategies: dict[str, LinearMap] = {}

    def records(self, database: Database, *, after: int, end: State, known: tuple[int, bytes]) -> list[Record]:
        """Records after a position up to `end`; `known` is `verified` from before the database's snapshot."""
        if end.position < known[0] or database.chain_at(known[0]) != known[1]:
            raise LedgerError("the ledger was replaced by an older or another one while it was open")
        start, hash_ = known if after >= known[0] else (after, database.chain_at(after))
        strategies = self.strategies(database)
        walk = database.walk(start, hash_, end)
        found = [codec.decode_record(position, body, strategies) for position, body in walk if position > after]
        self.verified = (end.position, end.chain)
        return found

    def every(self, database: Database, end: State) -> Iterator[Record]:
        """All records, checked from the charter on, one at a time."""
        strategies = self.strategies(database)
        for position, body in database.walk(0, database.charter_hash, end):
            yield codec.decode_record(position, body, strategies)

    def strategies(self, database: Database) -> Callable[[str], LinearMap]:
        """Decoded strategies by digest: equal digests give one object, as long as it is remembered."""

        def strategy(digest: str) -> LinearMap:
            known = self._strategies.get(digest)
            if known is None:
                if len(self._strategies) >= MOST_STRATEGIES:
                    self._strategies = {}
                known = self._strategies[digest] = database.strategy(digest)
            return known

        return strategy
