"""Checks and upkeep of a ledger, which no promise of privacy rests on but that an older copy is found: by the anchor.

The anchor is a line in a file of this machine that says how far the ledger had come.

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
import tempfile
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bursar.core.ledger import chain
from bursar.core.ledger import record_codec as codec
from bursar.core.ledger.database import SEALED, Database, LedgerState
from bursar.core.ledger.keyed_answers import decode_claim
from bursar.core.ledger.ledger import Health
from bursar.core.ledger.transaction import Medium, RowTransaction
from bursar.errors import LedgerError

if TYPE_CHECKING:
    from bursar.core.ledger.database_ledger import DatabaseLedger
    from bursar.core.ledger.sqlite import SqliteConnection


@dataclass(frozen=True, kw_only=True)
class Anchor:
    """How far the ledger had come: commits that wrote something, records, and the hash of the last record."""

    commits: int
    position: int
    chain: bytes


def anchor_path(ledger: Path) -> Path:
    return ledger.with_name(ledger.name + "-anchor")


def read_anchor(path: Path, charter_hash: bytes, expect: tuple[int, str] | None = None) -> Anchor | None:
    """The anchor, None where there is no such file; a damaged or foreign one raises LedgerError, unless the owner says
    what to expect."""
    try:
        line = path.read_bytes()
        commits, position, head, _ = line.decode("ascii").split()
        anchor = Anchor(commits=int(commits), position=int(position), chain=bytes.fromhex(head))
        if _line(anchor, charter_hash) == line:
            return anchor
        fault = f"the anchor {path} is damaged or belongs to another ledger"
    except FileNotFoundError:
        return None
    except OSError:
        fault = f"the anchor {path} cannot be read"
    except ValueError:
        fault = f"the anchor {path} is damaged or belongs to another ledger"
    if expect is not None:
        return None
    raise LedgerError(fault)


def require_history(
    database: Database, state: LedgerState, path: Path, anchor: Anchor | None, expect: tuple[int, str] | None
) -> int:
    """Refuse a ledger that lacks what its anchor saw, or what the owner expects; the earliest position whose hash one
    of them vouches for, 0 where none does."""
    if anchor is None and expect is None and state.commits > 0:
        raise LedgerError(
            f"the anchor {path} is missing, so the ledger may be an older copy; "
            "to vouch for it, give the position and hash you expect\n"
            "try: bursar verify --expect RECORDS:HASH, from your notes or from a machine that uses the ledger"
        )
    landmarks = [] if expect is None else [(0, expect[0], expect[1].lower())]
    landmarks += [] if anchor is None else [(anchor.commits, anchor.position, anchor.chain.hex())]
    for commits, position, head in landmarks:
        require(database, state, commits=commits, position=position, head=head)
    return min((position for _, position, _ in landmarks), default=0)


def check_history(ledger: DatabaseLedger, expect: tuple[int, str] | None) -> None:
    """Compare with the anchor and with what the owner expects, then bring the anchor up to date."""
    # Before the snapshot: what the anchor saw was durable by then, so the snapshot has it too.
    anchor = read_anchor(ledger._anchor, ledger._charter_hash, expect)
    with ledger._reading() as database:
        state = database.state()
        ledger._landmark = require_history(database, state, ledger._anchor, anchor, expect)
    if anchor is None or anchor.commits < state.commits:
        ledger._write_anchor(state, durable=anchor is None)


def write_anchor(ledger: DatabaseLedger, state: LedgerState, durable: bool = False) -> None:
    """Bring the anchor up to a state that is durable."""
    anchor = Anchor(commits=state.commits, position=state.position, chain=state.chain)
    try:
        advance_anchor(ledger._anchor, anchor, ledger._charter_hash, durable=durable)
        ledger._notes = ()
    except OSError:
        # The commit is durable and must be released; the next opening merely finds an anchor that lags.
        ledger._notes = ("the anchor could not be written",)


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
    return f"{text} {chain.seal(charter_hash, 'anchor', '', text.encode()).hex()}\n".encode()


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
                decode_claim(body)
    if database.run("SELECT count(*) FROM directory") != [(sum(rows.values()),)]:
        raise LedgerError("the directory names rows of an unknown table: the ledger is damaged")
    if database.run("SELECT 1 FROM answers WHERE name NOT IN (SELECT name FROM claims) LIMIT 1"):
        raise LedgerError("an answer has lost its claim: the ledger is damaged")
    return Health(records=records, answers=rows["answers"], holds=rows["holds"], head=state.chain.hex())


def too_open(files: Iterable[Path]) -> tuple[str, ...]:
    """Notes about files that others on this machine can use."""
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in files if file.exists()}
    return tuple(f"{name} can be used by others (mode {mode:o})" for name, mode in modes.items() if mode & 0o077)


def save(ledger: DatabaseLedger, name: str, body: bytes) -> None:
    """`Ledger.save`, in a file beside the anchor."""
    with suppress(OSError), tempfile.TemporaryDirectory(prefix=".saving-", dir=ledger._anchor.parent) as drafts:
        new = Path(drafts) / name  # which nobody else can look into
        new.write_bytes(body)
        new.chmod(0o600)
        new.replace(_beside(ledger._anchor, name))


def save_at(ledger: DatabaseLedger, name: str, place: int, body: bytes) -> None:
    """`Ledger.save_at`."""
    path = _beside(ledger._anchor, name)
    with suppress(OSError), open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
        os.fchmod(file.fileno(), 0o600)  # it may have come back from a copy that others could read
        file.seek(place)
        file.write(body)


def saved(ledger: DatabaseLedger, name: str) -> bytes | None:
    """`Ledger.saved`."""
    with suppress(OSError):
        return _beside(ledger._anchor, name).read_bytes()
    return None


def _beside(anchor: Path, name: str) -> Path:
    return anchor.with_name(f"{anchor.name.removesuffix('-anchor')}-{name}")


def drop_expired(medium: Medium, now: float) -> tuple[str, ...]:
    """Drop holds and unanswered claims whose lease is over, inside a commit; says how many they were."""
    before = len(medium.rows.scan("holds"))
    holds = before - len(RowTransaction(medium).holds(now))
    stored = [(name, decode_claim(body)) for name, body in medium.rows.scan("claims")]
    over = [name for name, claim in stored if claim.expires <= now]
    dead = [name for name in over if medium.rows.read("answers", name) is None]
    for name in dead:
        medium.rows.erase("claims", name)
    dropped = {"holds": holds, "claims": len(dead)}
    return tuple(f"{number} expired {what} dropped" for what, number in dropped.items() if number)


def erase_all_texts(medium: Medium) -> int:
    """Erase the texts of all questions, inside a commit; says how many they were."""
    stored = medium.rows.scan("texts")
    for question, _ in stored:
        medium.rows.erase("texts", question)
    return len(stored)


def texts(ledger: DatabaseLedger, questions: Collection[str] | None = None) -> Mapping[str, str]:
    """`Ledger.texts`."""
    with ledger._reading() as database:
        some = ((each, database.read("texts", each)) for each in questions or ())
        found = database.scan("texts") if questions is None else some
        return {question: codec.from_json(body) for question, body in found if body is not None}


def erase_texts(ledger: DatabaseLedger) -> int:
    """`Ledger.erase_texts`."""
    medium = ledger._here().medium
    return ledger.commit(lambda _: erase_all_texts(medium))


def verify(ledger: DatabaseLedger) -> Health:
    """`Ledger.verify`."""
    ledger._check_history(None)
    with ledger._reading() as database:
        health = check_everything(database, database.state())
    return replace(health, notes=(*ledger.warnings, *ledger._notes, *too_open(ledger._files())))


def recover(ledger: DatabaseLedger, now: float | None = None) -> Health:
    """`Ledger.recover`."""
    moment = ledger.now() if now is None else now
    medium = ledger._here().medium
    notes = ledger.commit(lambda _: drop_expired(medium, moment)) + ledger._tidy()
    health = ledger.verify()
    return replace(health, notes=(*notes, *health.notes))


def upgrade(connection: SqliteConnection) -> None:
    """Bring a ledger of an earlier format to this one, whole or not at all: format 1 had no queue, and before
    format 3 the texts of questions were in the records alone. These stay as they are; the chain does not change."""
    from bursar.core.ledger.sqlite import APPLICATION, FORMAT, SCHEMA

    earlier = connection.run("PRAGMA user_version") in ([(1,)], [(2,)])
    if not earlier or connection.run("PRAGMA application_id") != [(APPLICATION,)]:
        return
    connection.run("BEGIN IMMEDIATE")
    for table in ("queue", "texts"):  # another process may have been faster
        connection.run(SCHEMA[table].replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS"))
    connection.run(f"PRAGMA user_version={FORMAT}")
    database = Database(connection, decoded={})
    database.recognise()
    for _, body in database.walk(0, database.charter_hash, database.state()):
        text = codec.from_json(body[: body.index(b"\n")]).get("purpose")
        if text is not None:
            database.write("texts", chain.question(text), codec.to_json(text))
    connection.commit()
