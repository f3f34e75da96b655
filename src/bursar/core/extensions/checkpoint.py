"""Checkpoints: what a log was added up to, saved beside it, so that opening does not begin at the first record.

A saved state counts only where the log itself vouches for it: a free record in the hash chain has its digest. Anything
else is ignored, and the log is read from the start. See `checkpoint.proof.md`.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bursar.core.accounting.kind import Fields, FreeEvent
from bursar.core.extensions.saved_state import decode_tree, encode_tree
from bursar.errors import LedgerError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bursar.core.extensions.saved_state import Tree
    from bursar.core.extensions.shares import Entry
    from bursar.core.ledger import Transaction
    from bursar.core.ledger.database import Database, LedgerState, Log
    from bursar.core.public import Public

SAVED = "accounts"
"""The name under which a ledger keeps the saved state."""

STATE_FORMAT = 2

INTERVAL = 250
"""After so many records a checkpoint is due: reading them takes less than a tenth of a second."""


@dataclass(frozen=True, kw_only=True)
class Checkpointed(FreeEvent):
    """The records up to `position` add up to the state with this digest. It costs nothing, and reveals nothing."""

    kind = "checkpointed"
    position: int
    digest: str

    def fields(self) -> dict[str, object]:
        return {"kind": self.kind, "position": self.position, "digest": self.digest}

    @staticmethod
    def read(fields: Fields) -> Checkpointed:
        return Checkpointed(position=fields.take("position", int), digest=fields.take("digest", str))


@lru_cache(maxsize=1)
def sources() -> str:
    """The digest of all code that adds up a log, which is the core's: another release may add up otherwise."""
    core = Path(__file__).resolve().parents[1]
    files = {str(path.relative_to(core)): path.read_bytes() for path in sorted(core.rglob("*.py"))}
    return _digest(encode_tree([[name, text] for name, text in files.items()]))


def _digest(body: bytes) -> str:
    return blake2b(body, digest_size=32, person=b"bursar state").hexdigest()


def _head(public: Public) -> Tree:
    """What a state must have been added up by and of: this format, this code, the charter of this ledger, and its
    further private tables as they are known here. Whoever knows others reads the log from the start, and is refused."""
    charter, tables = dict(public.ledger.charter), [added.fields() for added in public.added()]
    return [STATE_FORMAT, sources(), json.dumps([charter, tables], sort_keys=True)]


def state(public: Public) -> Tree:
    """Everything that is added up of the log, as plain values; nothing of holds, nor of what is not durable."""
    parts = (public._versions, public._accounts, public._blocks, public._vectors, public._seals)
    return [public._position, *(part.state() for part in (*parts, public._keys, public._deltas, public._charges))]


def restore(public: Public, saved: Tree) -> None:
    """Take over a saved state instead of the records that it was added up of."""
    position, versions, accounts, blocks, vectors, seals, keys, deltas, charges = saved

    def entries() -> Iterable[Entry]:
        records = public.ledger.records()
        return ((each.position, each.analyst, each.event) for each in records if each.position <= position)

    public._versions.restore(versions)
    public._accounts.restore(accounts, entries)
    public._blocks.restore(blocks, position)
    public._vectors.restore(vectors, public.ledger.record)
    public._seals.restore(seals)
    public._keys.restore(keys)
    public._deltas.restore(deltas)
    public._charges.restore(charges)
    public._checkpointed = public.begun = public._position = position


def nothing_read(public: Public) -> Public:
    """The same before a record of the log was read."""
    from bursar.core.public import Public

    return Public(
        domain=public.domain,
        unit=public._accountant.unit,
        budget=public.budget,
        max_rows=public.max_rows,
        ledger=public.ledger,
        sequential=public._sequential,
        table=public.table,
        relations=public._relations,
        resumes=False,
    )


def checkpoint(public: Public) -> int:
    """Save what the log adds up to, and record its digest; returns the position up to which it goes.

    Guarantees: the state is that of durable records. The record is committed before the state is saved, so what was
    saved before stays good until then; a crash between the two leaves a record without a state, which does no harm.
    """
    from bursar.core.ledger import Purpose  # the ledger knows every kind of event

    with public._lock:
        public._advanced()
        position, body = public._position, encode_tree([_head(public), public.state()])
    event = Checkpointed(position=position, digest=_digest(body))

    def work(transaction: Transaction) -> None:
        purpose = Purpose("saved a checkpoint", "owner")
        transaction.append(analyst="owner", purpose=purpose, event=event, values=np.zeros(0, np.int64))

    public.ledger.commit(work)
    public.ledger.save(SAVED, body)
    with public._lock:
        public._charges.save_in(public.ledger)
    return position


def checkpoint_due(public: Public) -> bool:
    """Whether enough records came since the last checkpoint to make opening the ledger slow."""
    with public._lock:
        return not public._sequential and public._position - public._checkpointed >= INTERVAL


def resume(public: Public) -> None:
    """Begin with the saved state if the log vouches for it; else the log will be read from the start."""
    saved = _vouched(public)
    if saved is not None:
        restore(public, saved)


def _vouched(public: Public) -> Tree | None:
    body = public.ledger.saved(SAVED)
    if body is None:
        return None
    with suppress(ValueError, LookupError, TypeError, RecursionError):  # whatever a damaged file makes of Python
        head, saved = decode_tree(body)
        event = Checkpointed(position=saved[0], digest=_digest(body))
        if head == _head(public) and type(event.position) is int and public.ledger.resume(event):
            return saved
    return None


def checkpoint_checked(public: Public) -> int | None:
    """The position of the saved state, if one would be used; LedgerError unless the whole log adds up to it."""
    saved = _vouched(public)
    if saved is None:
        return None
    twin = nothing_read(public)
    twin._advance([record for record in public.ledger.records() if record.position <= saved[0]])
    if encode_tree(state(twin)) != encode_tree(saved):
        raise LedgerError("the saved checkpoint is not what the log adds up to: delete it, and tell whoever runs this")
    position: int = saved[0]
    return position


def resume_at(
    log: Log, database: Database, event: Checkpointed, *, landmark: int, end: LedgerState, verified: tuple[int, bytes]
) -> bool:
    """`Ledger.resume`: begin at a checkpoint that the log vouches for. Links are checked from the position that it
    names, or from the landmark or from what was verified before, where these are earlier."""
    start = min(event.position, landmark, verified[0] or event.position)
    if not 0 < event.position < end.position or not max(landmark, verified[0]) <= end.position:
        return False
    if database.chain_at(verified[0]) != verified[1]:
        return False
    vouched = False
    for position, body in database.walk(start, database.chain_at(start), end):
        vouched |= position > event.position and _tells(body, event)
    if vouched:
        log.verified = (end.position, end.chain)
    return vouched


def _tells(body: bytes, event: Checkpointed) -> bool:
    """Whether the record with these bytes, which are those of some record, tells exactly this event."""
    from bursar.core.ledger.record_codec import from_json

    said = event.fields()
    fields: dict[str, object] = from_json(body[: body.index(b"\n")]) if event.kind.encode() in body else {}
    return {name: fields.get(name) for name in said} == said
