"""TRUSTED. The one place where spending is decided and remembered: log, holds, keyed answers, secrets; and the queue.

`ledger.py` is the protocol; `SqliteLedger` (a file), `PostgresLedger` (for many machines) and `MemoryLedger` keep it.
`transaction.py` says what each verb means over named rows and a log, and lets threads share a disk write; `database.py`
and `memory.py` are the two places where rows live, `sqlite.py` and `postgresql/` what differs between
databases, `write_order.py` whose turn it is at a file. `chain.py` and `record_codec.py` are hashes and bytes,
`keyed_answers.py` who may answer a key, `integrity.py` checks and upkeep.
"""

from bursar.core.ledger.ledger import UNKNOWN, Charter, Claim, Health, Hold, Ledger, Purpose, Record, Transaction
from bursar.core.ledger.memory import MemoryLedger
from bursar.core.ledger.postgresql.postgres import PostgresLedger, PostgresPlace
from bursar.core.ledger.sqlite import SqliteLedger

__all__ = [
    "UNKNOWN",
    "Charter",
    "Claim",
    "Health",
    "Hold",
    "Ledger",
    "MemoryLedger",
    "PostgresLedger",
    "PostgresPlace",
    "Purpose",
    "Record",
    "SqliteLedger",
    "Transaction",
]
