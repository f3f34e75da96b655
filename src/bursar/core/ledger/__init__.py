"""TRUSTED. The one place where spending is decided and remembered: log, holds, keyed answers, secrets; and the queue.

`ledger` is the protocol; `SqliteLedger` (a file) and `MemoryLedger` keep it. `transaction` says what each verb
means over named rows and a log, `group` lets threads share a disk write, `medium` and `memory` are the two places
where rows live. `database` reads and writes sealed rows, `chain` and `codec` are hashes and bytes, `log` remembers
what was verified, `verify` reads everything, `anchor` finds an older file.
"""

from bursar.core.ledger.ledger import UNKNOWN, Charter, Claim, Health, Hold, Ledger, Purpose, Record, Transaction
from bursar.core.ledger.memory import MemoryLedger
from bursar.core.ledger.sqlite import SqliteLedger

__all__ = [
    "UNKNOWN",
    "Charter",
    "Claim",
    "Health",
    "Hold",
    "Ledger",
    "MemoryLedger",
    "Purpose",
    "Record",
    "SqliteLedger",
    "Transaction",
]
