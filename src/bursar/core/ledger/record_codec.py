"""Records, holds and claims as bytes: one byte string for each, exact, and refused where it is not understood.

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
import re
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bursar.core.accounting.events import (
    DIGEST_NUMBERS,
    Allotted,
    Closed,
    Event,
    Failed,
    Measured,
    Opened,
    Refined,
    Sealed,
    Selected,
    Versioned,
)
from bursar.core.ledger import chain
from bursar.core.ledger.ledger import UNKNOWN, Claim, Hold, Record
from bursar.core.noise.law import Noise, NoiseKind
from bursar.core.queries import LinearMap, Product, decode, encode
from bursar.errors import BursarError, LedgerError

T = TypeVar("T")
Strategies = Callable[[str], LinearMap]
"""Gives the strategy of a digest."""

_encoder = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
_decoder = json.JSONDecoder()
_NOISES = {kind.value: kind for kind in NoiseKind}
_FAULTS = (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError, BursarError)


def to_json(value: Any) -> bytes:
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


def strategy_of(event: Event) -> LinearMap | None:
    """The strategy that must be stored along with an event, if it has one."""
    match event:
        case Measured(strategy=strategy) | Refined(measured=strategy):
            return strategy
        case Opened(scope=strategy) | Failed(query=strategy) | Selected(candidates=strategy):
            return strategy
    return None


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
    fields = {"analyst": record.analyst, "at": record.at, **_event_fields(record.event)}
    fields |= {"question": record.question, "proposer": record.proposer, "run": record.run}
    return to_json(fields) + b"\n" + np.ascontiguousarray(record.values, "<i8").tobytes()


def decode_record(position: int, body: bytes, strategies: Strategies) -> Record:
    try:
        end = body.index(b"\n")
        fields = _decoder.decode(body[:end].decode("ascii"))
        at = _typed(fields.pop("at"), float)
        if not fields.keys() & {"question", "proposer", "run"}:  # before format 3 there was the text, and nothing else
            fields |= {"question": chain.question(fields.pop("purpose")), "proposer": UNKNOWN, "run": 0}
        facts: Any = {name: _typed(fields.pop(name), str) for name in ("analyst", "question", "proposer")}
        run = _typed(fields.pop("run"), int)
        event = _event(fields, strategies)
        values = np.frombuffer(body, "<i8", offset=end + 1)
        if len(values) != values_expected(event):
            raise LedgerError("a record has more or fewer values than its event")
        return Record(position=position, at=at, **facts, run=run, event=event, values=values)
    except _FAULTS as fault:
        raise LedgerError(f"record {position} cannot be read: {fault}") from fault


def values_expected(event: Event) -> int:
    """How many values a record of this event carries."""
    match event:
        case Measured(strategy=strategy):
            return strategy.rows
        case Refined(rows=rows):
            return len(rows)
        case Opened():
            return DIGEST_NUMBERS
        case Selected(count=count):
            return count
    return 0


def encode_hold(hold: Hold) -> bytes:
    events = [_event_fields(event) for event in hold.events]
    return to_json({"analyst": hold.analyst, "events": events, "expires": hold.expires.hex(), "fence": hold.fence})


def decode_hold(body: bytes, strategies: Strategies) -> Hold:
    fields = from_json(body)
    try:
        events = tuple(_event(event, strategies) for event in fields.pop("events"))
        return Hold(events=events, expires=float.fromhex(fields.pop("expires")), **fields)
    except _FAULTS as fault:
        raise LedgerError("a stored hold cannot be read") from fault


def encode_claim(claim: Claim) -> bytes:
    return to_json({**vars(claim), "expires": claim.expires.hex()})


def decode_claim(body: bytes) -> Claim:
    fields = from_json(body)
    try:
        return Claim(expires=float.fromhex(fields.pop("expires")), **fields)
    except _FAULTS as fault:
        raise LedgerError("a stored claim cannot be read") from fault


def _digest(strategy: bytes) -> str:
    return hashlib.blake2b(strategy, digest_size=16).hexdigest()


def _event_fields(event: Event) -> dict[str, Any]:
    match event:
        case Measured(strategy=strategy, noise=noise, version=version):
            law = {"noise": noise.kind.value, "scale": noise.scale.hex()}
            return {"kind": "measured", "strategy": strategy.digest, "version": version, **law}
        case Refined(block=block, measured=strategy, before=before, after=after, version=version):
            place = {"block": block, "strategy": strategy.digest, "rows": _runs(event.rows), "version": version}
            return {"kind": "refined", "before": before.scale.hex(), "after": after.scale.hex(), **place}
        case Opened(scope=scope, cut=cut, threshold=threshold, test=test, version=version):
            laws = {"threshold": threshold.scale.hex(), "test": test.scale.hex()}
            return {"kind": "opened", "strategy": scope.digest, "cut": cut, "version": version, **laws}
        case Selected(candidates=candidates, count=count, scale=scale, version=version):
            given = {"estimates": event.estimates, "barred": event.barred, "scale": scale.hex()}
            kind = "jointly selected" if event.joint else "selected"
            return {"kind": kind, "strategy": candidates.digest, "count": count, "version": version, **given}
        case Failed(instance=instance, query=query, estimate=estimate, version=version):
            asked = {"strategy": query.digest, "estimate": estimate}
            return {"kind": "failed", "instance": instance, "version": version, **asked}
        case Closed(instance=instance, version=version):
            return {"kind": "closed", "instance": instance, "version": version}
        case Versioned(version=version, same_rows=same_rows):
            return {"kind": "versioned", "version": version, "same_rows": same_rows}
        case Allotted(shares=shares):
            return {"kind": "allotted", "shares": {name: str(fraction) for name, fraction in shares}}
        case Sealed(through=through, version=version, sizes=sizes):
            return {"kind": "sealed", "through": through, "version": version, "sizes": sizes}
    raise LedgerError(f"an event of kind {type(event).__name__} cannot be stored")


def _event(fields: dict[str, Any], strategies: Strategies) -> Event:
    kind = fields.pop("kind")
    if kind == "allotted":
        shares = sorted((name, _fraction(text)) for name, text in fields.pop("shares").items())
        return Allotted(shares=tuple(shares), **fields)
    _typed(fields["version"], int)
    match kind:
        case "measured":
            noise = Noise(kind=_NOISES[fields.pop("noise")], scale=float.fromhex(fields.pop("scale")))
            return Measured(strategy=strategies(fields.pop("strategy")), noise=noise, **fields)
        case "refined":
            _typed(fields["block"], int)
            strategy = strategies(fields.pop("strategy"))
            rows = _rows(fields.pop("rows"), strategy.rows)
            before, after = (_laplace(fields.pop(name)) for name in ("before", "after"))
            return Refined(measured=strategy, rows=rows, before=before, after=after, **fields)
        case "opened":
            threshold, test = (_laplace(fields.pop(name)) for name in ("threshold", "test"))
            return Opened(scope=_product(strategies(fields.pop("strategy"))), threshold=threshold, test=test, **fields)
        case "selected" | "jointly selected":
            law = {"scale": float.fromhex(fields.pop("scale")), "joint": kind == "jointly selected"}
            return Selected(candidates=strategies(fields.pop("strategy")), **law, **fields)
        case "failed":
            _typed(fields["instance"], int)
            return Failed(query=_product(strategies(fields.pop("strategy"))), **fields)
        case "closed":
            _typed(fields["instance"], int)
            return Closed(**fields)
        case "versioned":
            _typed(fields["same_rows"], bool)
            return Versioned(**fields)
        case "sealed":
            _typed(fields["through"], int)
            sizes = fields.pop("sizes")
            return Sealed(sizes=None if sizes is None else tuple(_typed(size, int) for size in sizes), **fields)
    raise LedgerError("an event of an unknown kind: this ledger was written by a newer release")


def _fraction(text: str) -> Fraction:
    """A fraction in lowest terms; no other text stands for it, and none that would fill the memory."""
    if re.fullmatch(r"[1-9][0-9]{0,99}(/[1-9][0-9]{0,99})?", text) is None or str(Fraction(text)) != text:
        raise LedgerError("a fraction cannot be read")
    return Fraction(text)


def _product(strategy: LinearMap) -> Product:
    if not isinstance(strategy, Product):
        raise LedgerError("a sparse vector tests products")
    return strategy


def _laplace(scale: str) -> Noise:
    return Noise(kind=NoiseKind.LAPLACE, scale=float.fromhex(scale))


def _runs(rows: NDArray[np.int64]) -> list[int]:
    """Rising numbers as the ends of their runs: first, last + 1, first, last + 1, ..."""
    apart = np.flatnonzero(np.diff(rows) != 1)
    firsts, lasts = rows[np.append(0, apart + 1)], rows[np.append(apart, len(rows) - 1)]
    ends: list[int] = np.stack([firsts, lasts + 1], axis=1).ravel().tolist()
    return ends


def _rows(runs: list[int], most: int) -> NDArray[np.int64]:
    """The numbers of runs that rise without touching and stay below `most`, so that damage cannot fill the memory."""
    ends = [-1, *(_typed(end, int) for end in runs), most + 1]
    if len(runs) % 2 or any(low >= high for low, high in pairwise(ends)):
        raise LedgerError("the rows of a refinement cannot be read")
    return np.concatenate([np.arange(first, end) for first, end in zip(runs[::2], runs[1::2], strict=True)])


def _typed(value: T, kind: type[T]) -> T:
    if type(value) is not kind:
        raise LedgerError(f"a value is not of type {kind.__name__}")
    return value
