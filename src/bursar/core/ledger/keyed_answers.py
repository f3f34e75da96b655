"""Answers under keys: who may answer one, and what was answered. Not counted as trusted, since nothing rests on it.

A key gives the same bytes for the same question without a second charge. What is stored is an answer that was released,
and whoever is refused, or answers a second time, pays for it like anybody else: see `ledger.proof.md`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from bursar.core.ledger.ledger import Claim
from bursar.core.ledger.record_codec import from_json, row_name, to_json
from bursar.errors import Busy, KeyConflict, LedgerError, Stale

Read = Callable[[str, str], bytes | None]
"""Gives the body of the row of a table and a name, None where there is none."""


class Rows(Protocol):
    """Named rows in tables, as one open transaction sees them."""

    def read(self, table: str, name: str) -> bytes | None: ...
    def write(self, table: str, name: str, body: bytes) -> None: ...


def encode_claim(claim: Claim) -> bytes:
    return to_json({**vars(claim), "expires": claim.expires.hex()})


def decode_claim(body: bytes) -> Claim:
    fields = from_json(body)
    try:
        return Claim(expires=float.fromhex(fields.pop("expires")), **fields)
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as fault:
        raise LedgerError("a stored claim cannot be read") from fault


def stored_answer(read: Read, *, analyst: str, key: str, question: str) -> bytes | None:
    """The answer of a key, or None; KeyConflict if the key is bound to another question."""
    name = row_name(analyst, key)
    bound = read("claims", name)
    body = read("answers", name)
    if bound is None:
        if body is not None:
            raise LedgerError("an answer has lost its claim: the ledger is damaged")
        return None
    if decode_claim(bound).question != question:
        raise KeyConflict(f"the key {key!r} was used before, for a different question")
    return body


def take_key(rows: Rows, claim: Claim, now: float) -> bytes | None:
    """`Transaction.claim`."""
    stored = _answer_of(rows, claim)
    if stored is None:
        holder = _holder(rows, claim)
        if holder is not None and holder.fence != claim.fence and holder.expires > now:
            raise Busy(f"the key {claim.key!r} is being answered right now")
        _bind(rows, claim)
    return stored


def store_answer(rows: Rows, claim: Claim, body: bytes) -> bytes:
    """`Transaction.answer`."""
    stored = _answer_of(rows, claim)
    if stored is not None:
        return stored
    holder = _holder(rows, claim)
    if holder is None:
        _bind(rows, claim)
    elif holder.fence != claim.fence:
        raise Stale(f"the key {claim.key!r} was taken over")
    rows.write("answers", row_name(claim.analyst, claim.key), body)
    return body


def _answer_of(rows: Rows, claim: Claim) -> bytes | None:
    return stored_answer(rows.read, analyst=claim.analyst, key=claim.key, question=claim.question)


def _holder(rows: Rows, claim: Claim) -> Claim | None:
    body = rows.read("claims", row_name(claim.analyst, claim.key))
    return None if body is None else decode_claim(body)


def _bind(rows: Rows, claim: Claim) -> None:
    rows.write("claims", row_name(claim.analyst, claim.key), encode_claim(claim))
