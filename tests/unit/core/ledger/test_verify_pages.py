"""Pages that contradict each other, although every row that is read is whole."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from bursar.core.ledger import SqliteLedger
from bursar.errors import LedgerError

FREE_PAGES = slice(36, 40)  # of the file header: how many pages are unused


def test_a_header_that_counts_pages_wrongly_is_found(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    SqliteLedger.create(path, {"id": "x"}).close()
    with closing(SqliteLedger.open(path)) as ledger:
        assert ledger.verify().records == 0
    body = bytearray(path.read_bytes())
    body[FREE_PAGES] = (7).to_bytes(4, "big")
    path.write_bytes(body)
    with closing(SqliteLedger.open(path)) as ledger:
        assert ledger.records() == []
        with pytest.raises(LedgerError, match="do not fit together"):
            ledger.verify()
