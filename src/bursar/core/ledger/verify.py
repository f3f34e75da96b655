"""Reads a whole SQLite ledger and checks every byte that means something."""

from __future__ import annotations

from bursar.core.ledger import record_codec as codec
from bursar.core.ledger.database import SEALED, Database, LedgerState
from bursar.core.ledger.ledger import Health
from bursar.errors import LedgerError


def check_everything(database: Database, state: LedgerState) -> Health:
    """Pages, schema, chain, strategies and seals, and that nothing is missing; LedgerError at the first fault."""
    if database.run("PRAGMA integrity_check") != [("ok",)]:
        raise LedgerError("the pages of the ledger do not fit together: the ledger is damaged")
    database.recognise()
    records = 0
    for records, body in database.walk(0, database.charter_hash, state):
        codec.decode_record(records, body, database.strategy)
    for digest, body in database.stream("SELECT digest, body FROM strategies"):
        codec.decode_strategy(digest, body)
    rows = dict.fromkeys(SEALED, 0)
    for table in SEALED:
        for _, body in database.scan_slowly(table):
            rows[table] += 1
            if table == "holds":
                codec.decode_hold(body, database.strategy)
            elif table == "claims":
                codec.decode_claim(body)
    if database.run("SELECT count(*) FROM directory") != [(sum(rows.values()),)]:
        raise LedgerError("the directory names rows of an unknown table: the ledger is damaged")
    if database.run("SELECT 1 FROM answers WHERE name NOT IN (SELECT name FROM claims) LIMIT 1"):
        raise LedgerError("an answer has lost its claim: the ledger is damaged")
    return Health(records=records, answers=rows["answers"], holds=rows["holds"], head=state.chain.hex())
