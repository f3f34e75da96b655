"""Answers under keys: the tables that they look at, and who gets what."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bursar.core.ledger import Claim
from bursar.core.ledger.keyed_answers import store_answer, take_key
from bursar.errors import Busy, KeyConflict, LedgerError, Stale

ANA = Claim(analyst="ana", key="k", question="q", fence=1, expires=10.0)


class TwoTables:
    """Rows of claims and answers; those of any other table are none of their business."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, bytes]] = {"claims": {}, "answers": {}}

    def read(self, table: str, name: str) -> bytes | None:
        return self.rows[table].get(name)

    def write(self, table: str, name: str, body: bytes) -> None:
        self.rows[table][name] = body


def test_nothing_but_claims_and_answers_is_touched() -> None:
    rows, late = TwoTables(), replace(ANA, fence=2, expires=20.0)
    assert take_key(rows, ANA, now=5.0) is None
    with pytest.raises(Busy):
        take_key(rows, late, now=5.0)
    assert take_key(rows, late, now=10.0) is None
    with pytest.raises(Stale):
        store_answer(rows, ANA, b"late")
    assert store_answer(rows, late, b"first") == b"first" == store_answer(rows, ANA, b"second")
    assert take_key(rows, ANA, now=30.0) == b"first"
    with pytest.raises(KeyConflict):
        take_key(rows, replace(ANA, question="another"), now=30.0)
    rows.rows["claims"].clear()
    with pytest.raises(LedgerError, match="lost its claim"):
        take_key(rows, ANA, now=30.0)


def test_another_analyst_has_keys_of_their_own() -> None:
    rows = TwoTables()
    store_answer(rows, ANA, b"ana's")
    assert take_key(rows, replace(ANA, analyst="bob", question="another"), now=0.0) is None
    assert take_key(rows, replace(ANA, analyst='ana","k', key=""), now=0.0) is None
