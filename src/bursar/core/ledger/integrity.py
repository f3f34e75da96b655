"""Checks of a whole ledger, and the anchor: a line in a file of this machine that says how far it had come.

The anchor stands against an older file being put back.
It is overwritten in place after every commit that wrote something: one line of fixed length with its own seal. That
takes a few microseconds, where a new file and a rename took 84. It is synced when the ledger is created and when it
is closed. It does not go back, unless two processes write it at the same moment; then it may lag by that commit.

Detected at opening: a ledger file with fewer commits than the anchor saw, or with another record at the anchor's
position; a ledger that lost its anchor, or whose anchor is damaged. Not detected: an older ledger put back together
with its older anchor, and the loss of commits after the anchor was last written (a process killed between a commit
and the anchor: one commit; a power cut: what the operating system had not yet written of the anchor, although the
commits themselves are durable). Against these the owner keeps `Health.records` and `Health.head` elsewhere and
passes them as `expect`.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bursar.core.ledger import record_codec as codec
from bursar.core.ledger.chain import seal
from bursar.core.ledger.database import SEALED, Database, LedgerState
from bursar.core.ledger.ledger import Health
from bursar.errors import LedgerError


@dataclass(frozen=True, kw_only=True)
class Anchor:
    """How far the ledger had come: commits that wrote something, records, and the hash of the last record."""

    commits: int
    position: int
    chain: bytes


def anchor_path(ledger: Path) -> Path:
    return ledger.with_name(ledger.name + "-anchor")


def read_anchor(path: Path, charter_hash: bytes) -> Anchor | None:
    """The anchor, None where there is no such file; a damaged or foreign one raises LedgerError."""
    try:
        line = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as fault:
        raise LedgerError(f"the anchor {path} cannot be read") from fault
    try:
        commits, position, chain, _ = line.decode("ascii").split()
        anchor = Anchor(commits=int(commits), position=int(position), chain=bytes.fromhex(chain))
        if _line(anchor, charter_hash) == line:
            return anchor
    except ValueError:
        pass
    raise LedgerError(f"the anchor {path} is damaged or belongs to another ledger")


def require(database: Database, state: LedgerState, *, commits: int, position: int, head: str) -> None:
    """Refuse a ledger in this state that lacks a commit or a record that somebody saw."""
    if state.commits < commits or not 0 <= position <= state.position or database.chain_at(position).hex() != head:
        raise LedgerError("this is not the ledger that was here before: an older copy was put back, or another one")


def advance_anchor(path: Path, anchor: Anchor, charter_hash: bytes, *, durable: bool) -> None:
    """Overwrite an anchor that is further back, missing or damaged; raises OSError where that is impossible."""
    try:
        before = read_anchor(path, charter_hash)
    except LedgerError:
        before = None
    file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        if before is None or before.commits < anchor.commits:
            line = _line(anchor, charter_hash)
            os.pwrite(file, line, 0)
            os.ftruncate(file, len(line))
        if durable:
            os.fsync(file)
    finally:
        os.close(file)


def _line(anchor: Anchor, charter_hash: bytes) -> bytes:
    text = f"{anchor.commits:020d} {anchor.position:020d} {anchor.chain.hex()}"
    return f"{text} {seal(charter_hash, 'anchor', '', text.encode()).hex()}\n".encode()


def check_everything(database: Database, state: LedgerState) -> Health:
    """Pages, schema, chain, strategies and seals, and that nothing is missing; LedgerError at the first fault."""
    database.connection.check_pages()
    database.recognise()
    records = 0
    for records, body in database.walk(0, database.charter_hash, state):
        codec.decode_record(records, body, database.strategy)
    for digest, body in database.strategies():
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


def too_open(files: Iterable[Path]) -> tuple[str, ...]:
    """Notes about files that others on this machine can use."""
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in files if file.exists()}
    return tuple(f"{name} can be used by others (mode {mode:o})" for name, mode in modes.items() if mode & 0o077)
