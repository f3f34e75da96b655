"""A ledger's rows in an SQL database: sealed rows, a chained log and strategies; and the medium that writes them.

What is here is the same in every database; `LedgerConnection` is what differs. Every row of a sealed table carries a
seal, and its name stands a second time in the table `directory`: a changed row does not fit its seal, and a row that
damage has made unreachable is missing in one place only. So a lookup finds what was stored, or raises; "nothing there"
is an answer one can rely on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, Protocol

from bursar.core.extensions.carried import Carried, begin_with
from bursar.core.ledger import chain
from bursar.core.ledger import record_codec as codec
from bursar.core.ledger.ledger import Charter, Record
from bursar.core.ledger.transaction import TABLES
from bursar.core.queries import LinearMap
from bursar.errors import LedgerError

MOST_DECODED = 2**15
"""How many decoded strategies are kept for the next record that refers to them."""

PAGE = 1000
"""Rows that are asked for at once: a log is never in memory as a whole."""

SEALED = (*TABLES, "meta")
LAST_NAME = "\x7f"
"""Follows all names of rows, which are plain ASCII."""

KEY = "key"
"""A row of secrets that every encrypted ledger has: names of other secrets begin with a bracket."""

ENCRYPTED = ("secrets", "texts")
"""What an adversary with the tables must not read: where there is a cipher, these rows go through it."""

DAMAGED = "the ledger is damaged"
MOVED = "the ledger was moved, or is being moved: [ledger] in the config says where it is, as bursar move-ledger told"
OLDER = "the ledger was replaced by an older or another one while it was open"

Row = tuple[Any, ...]
"""What a database returns: of any type, where it was tampered with."""


def schema(*, text: str, integer: str, blob: str, clustered: str) -> dict[str, str]:
    """The tables, in the words of a database."""
    log = f"CREATE TABLE log (position {integer} PRIMARY KEY, body {blob} NOT NULL, chain {blob} NOT NULL)"
    sealed = f"CREATE TABLE {{}} (name {text} PRIMARY KEY, body {blob} NOT NULL, seal {blob} NOT NULL){clustered}"
    return {
        "log": log,
        "strategies": f"CREATE TABLE strategies (digest {text} PRIMARY KEY, body {blob} NOT NULL){clustered}",
        "directory": f"CREATE TABLE directory (entry {text} PRIMARY KEY){clustered}",
        **{table: sealed.format(table) for table in SEALED},
    }


@dataclass(frozen=True, kw_only=True)
class LedgerState:
    """Where a ledger stands; written with every commit."""

    commits: int  # how many commits have written something
    fence: int  # the last fence given out
    position: int
    chain: bytes  # of the record at `position`


class LedgerConnection(Protocol):
    """A connection to one ledger in a database. `fault` is the first error of the database or of a check: nothing more
    may be written through the connection then. Statements have `?` for parameters."""

    fault: LedgerError | None
    lost: bool  # the database went away: another connection may find it

    @property
    def changes(self) -> int:
        """Grows with every row that is written."""

    def run(self, sql: str, parameters: tuple[object, ...] = ()) -> list[Row]: ...

    def failed(self, fault: LedgerError) -> LedgerError:
        """Remember a fault, and give it back."""

    def begin(self) -> None:
        """Begin to write, as soon as nobody else does; LedgerError where somebody does not let go for too long.

        Guarantees: what is read from here to `commit` was committed before, or written here.
        """

    def snapshot(self) -> None:
        """Begin to read: what is read until the end of the transaction is of one moment."""

    def commit(self) -> None:
        """Returns when everything since `begin` or `found` is durable; LedgerError where that is not certain."""

    def erased(self) -> None:
        """A row was erased that must not be found anywhere."""

    def forget(self) -> None:
        """After a commit: overwrite what was erased as far as the database can. It neither waits nor raises."""

    def close(self) -> None:
        """Never raises: what was committed is safe, the rest is not wanted."""

    def found(self) -> None:
        """Begin to write, and make the tables; the caller fills them and commits."""

    def recognise(self) -> None:
        """Check that this is a ledger of this release, and that its tables are as they were made."""

    def check_pages(self) -> None:
        """Check how rows are stored, where the database has a check."""


class Cipher(Protocol):
    """Keeps rows unreadable in the database. `label` is bound to the row: no row passes for another."""

    def encrypt(self, body: bytes, label: bytes) -> bytes: ...
    def decrypt(self, body: bytes, label: bytes) -> bytes: ...


class Database:
    """The rows of a ledger, through one connection."""

    def __init__(
        self, connection: LedgerConnection, *, decoded: dict[str, LinearMap], cipher: Cipher | None = None
    ) -> None:
        self.connection = connection
        self.run = connection.run
        self._decoded = decoded  # strategies by digest, shared by the connections of a ledger
        self._cipher = cipher
        self.charter_hash = b""  # set by `found` or `recognise`

    def _damaged(self) -> LedgerError:
        return self.connection.failed(LedgerError(DAMAGED))

    # -- the ledger as a whole ------------------------------------------------------------------------------

    def found(self, charter: bytes, carried: Carried | None = None) -> None:
        """Make a new ledger with this charter, which begins with what was carried over from another."""
        self.begin_ledger(charter)
        fence, position, head = (0, 0, self.charter_hash) if carried is None else begin_with(self, carried)
        self.put_state(LedgerState(commits=0, fence=fence, position=position, chain=head))
        self.connection.commit()

    def begin_ledger(self, charter: bytes) -> None:
        """Begin to write, and make what every ledger with this charter has but its state."""
        self.connection.found()
        self.charter_hash = chain.genesis(charter)
        self.write("meta", "charter", charter)
        if self._cipher is not None:
            self.write("secrets", KEY, b"")

    def recognise(self) -> Charter:
        """Check that this is a ledger of this release, and read its charter, on which all other checks rest."""
        self.connection.recognise()
        rows = self.run("SELECT body FROM meta WHERE name = 'charter'")
        if len(rows) != 1 or not isinstance(rows[0][0], bytes):
            raise self._damaged()
        self.charter_hash = chain.genesis(rows[0][0])
        charter: Charter = codec.from_json(self.must_read("meta", "charter"))
        if self._cipher is not None:
            self.must_read("secrets", KEY)  # with another key this is refused, before anything else is read
        return charter

    def state(self) -> LedgerState:
        state, moved = self.look()
        if moved:
            raise self.connection.failed(LedgerError(MOVED))
        return state

    def look(self) -> tuple[LedgerState, bool]:
        """The state, also of a ledger that is used no more or not yet, and whether this is such a one."""
        fields = codec.from_json(self.must_read("meta", "state"))
        moved = fields.pop("moved", False)
        return LedgerState(**{**fields, "chain": bytes.fromhex(fields["chain"])}), moved

    def put_state(self, state: LedgerState, *, moved: bool = False) -> None:
        fields = {**vars(state), "chain": state.chain.hex(), **({"moved": True} if moved else {})}
        self.write("meta", "state", codec.to_json(fields))

    # -- sealed rows ----------------------------------------------------------------------------------------

    def read(self, table: str, name: str) -> bytes | None:
        both = f"LEFT JOIN {table} AS stored ON stored.name = ? LEFT JOIN directory ON entry = ?"
        sql = f"SELECT name, body, seal, entry FROM (SELECT 1) AS once {both}"
        ((stored_name, body, seal, entry),) = self.run(sql, (name, f"{table} {name}"))
        if (stored_name is None) != (entry is None):
            raise self._damaged()
        return None if stored_name is None else self._unseal(table, name, body, seal)

    def write(self, table: str, name: str, body: bytes) -> None:
        if self._cipher is not None and table in ENCRYPTED:
            body = self._cipher.encrypt(body, self._label(table, name))
        seal = chain.seal(self.charter_hash, table, name, body)
        replaced = "ON CONFLICT (name) DO UPDATE SET body = excluded.body, seal = excluded.seal"
        self.run(f"INSERT INTO {table} VALUES (?, ?, ?) {replaced}", (name, body, seal))
        self.run("INSERT INTO directory VALUES (?) ON CONFLICT DO NOTHING", (f"{table} {name}",))

    def erase(self, table: str, name: str) -> None:
        self.run(f"DELETE FROM {table} WHERE name = ?", (name,))
        self.run("DELETE FROM directory WHERE entry = ?", (f"{table} {name}",))
        if table in ENCRYPTED:
            self.connection.erased()

    def scan(self, table: str) -> list[tuple[str, bytes]]:
        return list(self.scan_slowly(table))

    def scan_slowly(self, table: str) -> Iterator[tuple[str, bytes]]:
        """All rows of a table in the order of their names, none of them missing, some at a time."""
        # "!" follows the space in ASCII: between them is what begins with the table's name.
        entries = self._pages("directory", "entry", after=f"{table} ", last=f"{table}!")
        for row, entry in zip_longest(self._pages(table, "name, body, seal", after="", last=LAST_NAME), entries):
            if row is None or entry is None or entry != (f"{table} {row[0]}",):
                raise self._damaged()
            yield row[0], self._unseal(table, *row)

    def _pages(self, table: str, columns: str, *, after: str | int, last: str | int) -> Iterator[Row]:
        """Rows with a key, the first column, in a range, in its order."""
        key = columns.partition(",")[0]
        sql = f"SELECT {columns} FROM {table} WHERE {key} > ? AND {key} <= ? ORDER BY {key} LIMIT {PAGE}"
        while True:
            rows = self.run(sql, (after, last))
            yield from rows
            if len(rows) < PAGE:
                return
            after = rows[-1][0]

    def _unseal(self, table: str, name: object, body: object, seal: object) -> bytes:
        if (
            not isinstance(name, str)
            or not isinstance(body, bytes)
            or chain.seal(self.charter_hash, table, name, body) != seal
        ):
            raise self._damaged()
        if self._cipher is not None and table in ENCRYPTED:
            return self._cipher.decrypt(body, self._label(table, name))
        return body

    def _label(self, table: str, name: str) -> bytes:
        return chain.seal(self.charter_hash, table, name, b"")

    def must_read(self, table: str, name: str) -> bytes:
        body = self.read(table, name)
        if body is None:
            raise self._damaged()
        return body

    # -- log and strategies ---------------------------------------------------------------------------------

    def append(self, position: int, body: bytes, hash_: bytes) -> None:
        self.run("INSERT INTO log VALUES (?, ?, ?)", (position, body, hash_))

    def chain_at(self, position: int) -> bytes:
        """The hash stored with a record, not checked; the charter's at position 0."""
        if position == 0:
            return self.charter_hash
        rows = self.run("SELECT chain FROM log WHERE position = ?", (position,))
        if len(rows) != 1 or not isinstance(rows[0][0], bytes):
            raise self._damaged()
        return rows[0][0]

    def walk(self, start: int, hash_: bytes, end: LedgerState) -> Iterator[tuple[int, bytes]]:
        """Positions and bodies after `start`, whose hash is given, up to `end`, each checked against the chain.

        Guarantees: it ends normally only if the chain leads from the first hash to the last without a gap.
        """
        expected = start
        for position, body, stored in self._pages("log", "position, body, chain", after=start, last=end.position):
            expected += 1
            if position != expected or not isinstance(body, bytes):
                raise self._damaged()
            hash_ = chain.link(hash_, body)
            if hash_ != stored:
                raise self.connection.failed(LedgerError(f"record {position} does not fit the hash chain: {DAMAGED}"))
            yield position, body
        if (expected, hash_) != (end.position, end.chain):
            raise self.connection.failed(LedgerError(f"the log does not end where it should: {DAMAGED}"))

    def store(self, strategy: LinearMap) -> None:
        if not self.run("SELECT 1 FROM strategies WHERE digest = ?", (strategy.digest,)):
            self.run("INSERT INTO strategies VALUES (?, ?)", (strategy.digest, codec.encode_strategy(strategy)))

    def strategies(self) -> Iterator[Row]:
        """Digests and bodies, not checked."""
        return self._pages("strategies", "digest, body", after="", last=LAST_NAME)

    def strategy(self, digest: str) -> LinearMap:
        """The strategy of a digest: one object for all records that refer to it, as long as it is remembered."""
        strategy = self._decoded.get(digest)
        if strategy is None:
            if len(self._decoded) >= MOST_DECODED:
                self._decoded.clear()
            strategy = self._decoded[digest] = self._read_strategy(digest)
        return strategy

    def _read_strategy(self, digest: str) -> LinearMap:
        rows = self.run("SELECT body FROM strategies WHERE digest = ?", (digest,))
        if len(rows) != 1 or not isinstance(rows[0][0], bytes):
            raise self.connection.failed(LedgerError(f"a strategy is missing: {DAMAGED}"))
        return codec.decode_strategy(digest, rows[0][0])


class DatabaseMedium:
    """Implements `Medium`. After any fault the connection is thrown away: what it still held is not durable.

    A fault inside a work fails the whole commit, even if the work swallows it: every later statement raises it again.
    """

    def __init__(self, connect: Callable[[], Database], log: Log, committed: Callable[[LedgerState], None]) -> None:
        self._connect = connect
        self._log = log
        self._tell = committed  # hears of every commit that wrote something, before anybody's result is released
        self._database: Database | None = None
        self._seen = 0  # the commits that the ledger had when it was last begun or committed here

    @property
    def rows(self) -> Database:
        if self._database is None:
            self._database = self._connect()
        return self._database

    def begin(self) -> None:
        was_open = self._database is not None
        try:
            self.rows.connection.begin()
        except LedgerError:
            if not (was_open and self.rows.connection.lost):
                raise
            self.abort()  # the database was restarted since the last commit; nothing of this one has begun
            self.rows.connection.begin()
        self._durable = self._state = self.rows.state()
        if self._state.commits < self._seen:
            raise self.rows.connection.failed(LedgerError(OLDER))
        self._seen = self._state.commits
        self._changes = self.rows.connection.changes
        self._pending: list[Record] = []

    def mark(self) -> None:
        self.rows.run("SAVEPOINT work")
        self._marked = (self._state, len(self._pending))

    def restore(self) -> None:
        self.rows.run("ROLLBACK TO work")
        self.keep()
        state, length = self._marked
        self._state = replace(state, fence=self._state.fence)  # a number once given out stays given out
        del self._pending[length:]

    def keep(self) -> None:
        self.rows.run("RELEASE work")

    def commit(self) -> None:
        wrote = self.rows.connection.changes != self._changes or self._state != self._durable
        if wrote:
            self._state = replace(self._state, commits=self._state.commits + 1)
            self.rows.put_state(self._state)
        self.rows.connection.commit()
        self._seen = self._state.commits
        if wrote:
            self._tell(self._state)
        self.rows.connection.forget()

    def abort(self) -> None:
        if self._database is not None:
            self._database.connection.close()
            self._database = None

    def last(self) -> int:
        return self._state.position

    def append(self, record: Record, body: bytes) -> None:
        hash_ = chain.link(self._state.chain, body)
        self.rows.append(record.position, body, hash_)
        self._state = replace(self._state, position=record.position, chain=hash_)
        self._pending.append(record)

    def committed(self, after: int) -> Sequence[Record]:
        return self._log.records(self.rows, after=max(after, 0), end=self._durable, verified=self._log.verified)

    def pending(self) -> Sequence[Record]:
        return tuple(self._pending)

    def next_fence(self) -> int:
        self._state = replace(self._state, fence=self._state.fence + 1)
        return self._state.fence


class Log:
    """How far this process has verified the log of one ledger; threads share it.

    Guarantees: every record it returns lies on an unbroken chain from the charter to the end that was given, and the
    chain runs through the last record that was verified before: a history that was exchanged is noticed.
    """

    def __init__(self, charter_hash: bytes) -> None:
        self.verified = (0, charter_hash)

    def records(self, database: Database, *, after: int, end: LedgerState, verified: tuple[int, bytes]) -> list[Record]:
        """Records after a position up to `end`; `verified` is that from before the database's snapshot."""
        if end.position < verified[0] or database.chain_at(verified[0]) != verified[1]:
            raise LedgerError(OLDER)
        start, hash_ = verified if after >= verified[0] else (after, database.chain_at(after))
        checked = [row for row in database.walk(start, hash_, end) if row[0] > after]
        self.verified = (end.position, end.chain)
        return [codec.decode_record(position, body, database.strategy) for position, body in checked]

    def record(self, database: Database, position: int) -> Record:
        """One record, checked by its own link."""
        here = LedgerState(commits=0, fence=0, position=position, chain=database.chain_at(position))
        ((_, body),) = database.walk(position - 1, database.chain_at(position - 1), here)
        return codec.decode_record(position, body, database.strategy)
