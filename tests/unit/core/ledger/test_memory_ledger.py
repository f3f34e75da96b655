"""What the memory ledger has of its own; its behaviour is in the conformance suite."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bursar.core.accounting import Versioned
from bursar.core.ledger import MemoryLedger, Purpose
from bursar.errors import LedgerError


def test_a_record_changed_in_memory_is_found_out() -> None:
    ledger = MemoryLedger({"id": "x"})
    values = np.zeros(0, np.int64)
    ledger.commit(
        lambda t: t.append(analyst="ann", purpose=Purpose("p", "test"), event=Versioned(version=1), values=values)
    )
    ledger.verify()
    log = ledger._medium.log
    log[0] = replace(log[0], analyst="bob")
    with pytest.raises(LedgerError, match="changed in memory"):
        ledger.verify()
