"""Records and holds as bytes: one byte string for each, exact, and refused where it is not understood.

A record is a line of JSON (sorted keys, ASCII), a line feed, then its values as little-endian int64. A strategy
appears by its digest; its own bytes (`core.queries.map_codec`) are stored once. Refined rows appear as the ends of
their runs, with the digest of the strategy that they are rows of. The scope of a sparse vector and the query of a test
are strategies too; the values of an opened one are the keyed digest of its threshold. So are the candidates of a
selection, whose values are the numbers of the rows that were picked. A question appears by the digest of its text,
which is stored beside the log; before format 3 the text itself was here. Floats that decide something are
written in hexadecimal, so what is read back is the number that was priced.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np

from bursar.core.accounting.events import read_event
from bursar.core.accounting.kind import Strategies, typed
from bursar.core.ledger import chain
from bursar.core.ledger.ledger import UNKNOWN, Hold, Record
from bursar.core.queries import LinearMap, decode, encode
from bursar.errors import BursarError, LedgerError

_encoder = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
_decoder = json.JSONDecoder()
_FAULTS = (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError, BursarError)


def to_json(value: object) -> bytes:
    """The one JSON text of plain values; anything else raises LedgerError."""
    try:
        return _encoder.encode(value).encode("ascii")
    except _FAULTS as fault:
        raise LedgerError("only plain JSON values can be stored") from fault


def from_json(body: bytes) -> Any:
    try:
        return _decoder.decode(body.decode("ascii"))
    except _FAULTS as fault:
        raise LedgerError("a stored row cannot be read") from fault


def encode_strategy(strategy: LinearMap) -> bytes:
    """The bytes that are stored under the strategy's digest; LedgerError if they could not be read back from there."""
    body = encode(strategy)
    if _digest(body) != strategy.digest:
        raise LedgerError("a strategy does not have the digest of its bytes")
    return body


def decode_strategy(digest: str, body: bytes) -> LinearMap:
    """The strategy with this digest; bytes with any other digest raise LedgerError."""
    if _digest(body) != digest:
        raise LedgerError("a stored strategy does not match its digest: the ledger is damaged")
    try:
        return decode(body)
    except _FAULTS as fault:
        raise LedgerError("a stored strategy cannot be read") from fault


def encode_record(record: Record) -> bytes:
    """The bytes that the hash chain runs over. The position is not among them: the chain itself counts."""
    fields = {"analyst": record.analyst, "at": record.at, **record.event.fields()}
    fields |= {"question": record.question, "proposer": record.proposer, "run": record.run}
    return to_json(fields) + b"\n" + np.ascontiguousarray(record.values, "<i8").tobytes()


def decode_record(position: int, body: bytes, strategies: Strategies) -> Record:
    try:
        end = body.index(b"\n")
        fields = _decoder.decode(body[:end].decode("ascii"))
        at = typed(fields.pop("at"), float)
        if not fields.keys() & {"question", "proposer", "run"}:  # before format 3 there was the text, and nothing else
            fields |= {"question": chain.question(fields.pop("purpose")), "proposer": UNKNOWN, "run": 0}
        analyst, question, proposer = (typed(fields.pop(name), str) for name in ("analyst", "question", "proposer"))
        run = typed(fields.pop("run"), int)
        event = read_event(fields, strategies)
        values = np.frombuffer(body, "<i8", offset=end + 1)
        if len(values) != event.answers:
            raise LedgerError("a record has more or fewer values than its event")
        said = {"analyst": analyst, "question": question, "proposer": proposer}
        return Record(position=position, at=at, run=run, event=event, values=values, **said)
    except _FAULTS as fault:
        raise LedgerError(f"record {position} cannot be read: {fault}") from fault


def encode_hold(hold: Hold) -> bytes:
    events = [event.fields() for event in hold.events]
    return to_json({"analyst": hold.analyst, "events": events, "expires": hold.expires.hex(), "fence": hold.fence})


def decode_hold(body: bytes, strategies: Strategies) -> Hold:
    fields = from_json(body)
    try:
        events = tuple(read_event(event, strategies) for event in fields.pop("events"))
        return Hold(events=events, expires=float.fromhex(fields.pop("expires")), **fields)
    except _FAULTS as fault:
        raise LedgerError("a stored hold cannot be read") from fault


def row_name(*parts: str) -> str:
    """One row name for any texts: equal only for equal texts, plain ASCII."""
    return to_json(parts).decode("ascii")


def _digest(strategy: bytes) -> str:
    return hashlib.blake2b(strategy, digest_size=16).hexdigest()
