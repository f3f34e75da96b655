"""A connection to a ledger in a schema of a PostgreSQL database, which many machines can reach.

Nothing here believes a COMMIT that said anything but COMMIT: a wait for a standby that was cancelled ends with a
warning and no error, and a transaction that had failed ends with ROLLBACK and no error.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

from bursar.core.ledger.database import DAMAGED, Row, schema
from bursar.errors import LedgerError, Unsupported

FORMAT = "bursar ledger 3"
"""The comment on the schema, by which it is known as a ledger."""

SCHEMA = schema(text='text COLLATE "C"', integer="bigint", blob="bytea", clustered="")

OLDEST = 130000
DEFAULTS = {"connect_timeout": "10", "keepalives_idle": "10", "keepalives_interval": "5", "keepalives_count": "3"}
"""Unless the URL says otherwise: a network that was cut is noticed within half a minute."""

# READ COMMITTED: every statement after the lock sees what was committed before it was given. A snapshot that the whole
# transaction keeps is taken before the lock is waited for, and would be of a time when others had not spent yet.
BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SELECT pg_advisory_xact_lock({lock}); " + (
    "SELECT extract(epoch FROM clock_timestamp())::float8"  # now() would be the time before the wait for the lock
)
SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
# Last, so that nothing before it can take it back; and warnings must reach us, whatever the role's settings say.
COMMIT = "SET LOCAL client_min_messages = notice; SET LOCAL synchronous_commit = on; COMMIT"

SHAPE = """
SELECT c.relname, c.relpersistence = 'p' AND NOT (c.relhasrules OR c.relhastriggers OR c.relrowsecurity),
  (SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod) || CASE WHEN attnotnull THEN '!' ELSE '' END
   || CASE WHEN attcollation IN (0, '"C"'::regcollation) THEN '' ELSE '*' END, ', ' ORDER BY attnum)
   FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped),
  (SELECT string_agg(pg_get_constraintdef(k.oid), ', ') FROM pg_constraint k WHERE conrelid = c.oid AND contype <> 'n')
FROM pg_class c WHERE relnamespace = ?::regnamespace AND relkind <> 'i' AND relkind <> 't' ORDER BY relname"""
"""Tables with columns and keys, and whether they are durable and do nothing of their own."""

SEALED_SHAPE = ("name text!, body bytea!, seal bytea!", "PRIMARY KEY (name)")
SHAPES = {
    "log": ("position bigint!, body bytea!, chain bytea!", 'PRIMARY KEY ("position")'),
    "strategies": ("digest text!, body bytea!", "PRIMARY KEY (digest)"),
    "directory": ("entry text!", "PRIMARY KEY (entry)"),
}

SAFETY = """
SELECT current_setting('fsync') = 'on' AND current_setting('full_page_writes') = 'on', pg_is_in_recovery(),
  current_setting('server_version_num')::int,
  current_setting('synchronous_standby_names') = '' AND (EXISTS (SELECT FROM pg_stat_replication)
    OR EXISTS (SELECT FROM pg_replication_slots WHERE slot_type = 'physical'))"""
"""Whether commits survive a crash; whether this is a standby; the version; whether a standby may lag behind commits."""

MAY_LOSE = "the database replicates asynchronously: a fail-over may lose charges, and their budget is spent twice"

_RIGHTS = "the role may not use the ledger; it needs USAGE of its schema, and to read and write the tables in it"
_MEANING = {
    "55P03": "the ledger is locked by another server, and was for {:g} seconds; try again later",
    "53100": "the disk of the ledger's database is full",
    "53300": "the ledger's database has no connection left to give",
    "25006": "the ledger's database cannot be written to: it is a standby, or read-only",
    "42501": _RIGHTS,
    "42P01": _RIGHTS,  # tables of a schema that the role may not use are not seen
    "23505": "another server wrote at the same moment without waiting",
    "28": "the ledger's database does not let this role in; credentials come from PGPASSFILE, PGPASSWORD or ~/.pgpass",
    "57": "the ledger's database was stopped",
    "XX": DAMAGED,
}


def translate(fault: Exception, patience: float) -> LedgerError:
    """What an error of PostgreSQL means to a person. It never carries the server's text, which can quote a row."""
    code = getattr(fault, "sqlstate", None) or "no answer"
    unknown = "the ledger's database cannot be reached" if code == "no answer" else "the ledger cannot be used"
    meaning = next((text for prefix, text in _MEANING.items() if code.startswith(prefix)), unknown)
    return LedgerError(f"{meaning.format(patience)} ({code}); nothing was released")


class DatabaseClock:
    """The clock of the database, which all servers share: read at every commit, carried on by a clock of this machine
    that nobody sets."""

    def __init__(self) -> None:
        self._offset = 0.0

    def read(self, stamp: float) -> None:
        self._offset = stamp - time.monotonic()

    def now(self) -> float:
        return self._offset + time.monotonic()


class PostgresConnection:
    """Implements `LedgerConnection`."""

    def __init__(self, url: str, name: str, *, timeout: float, clock: DatabaseClock, lossy: bool) -> None:
        try:
            import psycopg  # loaded here: a ledger in a file needs none of it
        except ImportError:
            hint = "pip install '.[postgresql]' in a checkout of Bursar"
            raise Unsupported(f"a ledger in PostgreSQL needs psycopg and cryptography\ntry: {hint}") from None
        self.fault: LedgerError | None = None
        self.lost = False
        self.changes = 0
        self.asynchronous = False  # whether a fail-over may lose commits; known after `check_safety`
        # Also what Python makes of memory that ran out, and of an error text that it cannot read.
        self._faults = (psycopg.Error, MemoryError, UnicodeError)
        self._name, self._patience, self._clock, self._lossy = name, timeout, clock, lossy
        self._notices: list[object] = []
        try:
            given = psycopg.conninfo.conninfo_to_dict(url)
            defaults = {name: value for name, value in DEFAULTS.items() if name not in given}
            self._connection = psycopg.connect(psycopg.conninfo.make_conninfo(url, **defaults), autocommit=True)
        except psycopg.Error as fault:
            raise translate(fault, timeout) from fault
        self._connection.add_notice_handler(self._notices.append)
        try:
            self._several(
                f"SET lock_timeout = {int(timeout * 1000)}; SET statement_timeout = 0; "
                f"SET idle_in_transaction_session_timeout = {int(timeout * 1000)}; "
                f"SET search_path = {self._schema}, pg_temp; SET row_security = off; SET client_encoding = 'UTF8'"
            )
            self._check_safety()
            ((self._lock,),) = self.run("SELECT hashtextextended('bursar ledger ' || ?, 0)", (name,))
        except LedgerError:
            self.close()
            raise

    @property
    def _schema(self) -> str:
        return '"' + self._name.replace('"', '""') + '"'

    def _check_safety(self) -> None:
        """That commits survive a crash; and a fail-over, unless the owner does not mind."""
        ((durable, standby, version, self.asynchronous),) = self.run(SAFETY)
        if version < OLDEST:
            raise LedgerError(f"a ledger needs PostgreSQL 13 or later, and this is {version // 10000}")
        if standby:
            raise LedgerError("this database is a standby: the ledger is written to the primary")
        if not durable:
            raise LedgerError("the database may lose commits in a crash: fsync and full_page_writes must be on")
        if self.asynchronous and not self._lossy:
            hint = "synchronous_standby_names in the database; or, if you accept it, asynchronous = true in [ledger]"
            raise LedgerError(f"{MAY_LOSE}\ntry: {hint}")

    def run(self, sql: str, parameters: tuple[object, ...] = ()) -> list[Row]:
        if self.fault is not None:
            raise self.fault
        try:
            cursor = self._connection.execute(sql.replace("?", "%s"), parameters)
            if cursor.description is not None:
                return cursor.fetchall()
            self.changes += max(cursor.rowcount, 0)
            return []
        except self._faults as fault:
            raise self._lost(fault) from fault

    def _several(self, statements: str) -> Any:
        """Run statements without parameters in one round trip; the cursor stands at the last of them."""
        if self.fault is not None:
            raise self.fault
        try:
            cursor = self._connection.execute(statements.encode(), prepare=False)
            while cursor.nextset():
                pass
            return cursor
        except self._faults as fault:
            raise self._lost(fault) from fault

    def _lost(self, fault: Exception) -> LedgerError:
        self.lost = self._connection.closed or self._connection.broken
        return self.failed(translate(fault, self._patience))

    def failed(self, fault: LedgerError) -> LedgerError:
        self.fault = fault
        return fault

    def begin(self) -> None:
        ((stamp,),) = self._several(BEGIN.format(lock=self._lock)).fetchall()
        self._clock.read(stamp)

    def snapshot(self) -> None:
        self._several(SNAPSHOT)

    def commit(self) -> None:
        self._notices.clear()
        cursor = self._several(COMMIT)
        if self._notices or cursor.statusmessage != "COMMIT":
            raise self.failed(
                LedgerError("the database is not certain that it has kept the commit; nothing was released")
            )

    def erased(self) -> None:
        """Old versions of rows stay in the write-ahead log and in backups: that is why they are encrypted."""

    def forget(self) -> None:
        """VACUUM is the database's own affair."""

    def close(self) -> None:
        with suppress(*self._faults):
            self._connection.close()

    # -- the ledger as a whole ------------------------------------------------------------------------------

    def made(self) -> bool:
        """Whether the schema is there."""
        return bool(self.run("SELECT 1 FROM pg_namespace WHERE nspname = ?", (self._name,)))

    def found(self) -> None:
        self._several("BEGIN")
        if self.made():
            there = f"the schema {self._name} exists: a ledger was created here before"
            raise LedgerError(f"{there}, and its budget is not renewed")
        self.run(f"CREATE SCHEMA {self._schema}")  # fails where somebody else is making it
        self.run(f"COMMENT ON SCHEMA {self._schema} IS '{FORMAT}'")
        for statement in SCHEMA.values():
            self.run(statement)

    def recognise(self) -> None:
        said = self.run(
            "SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = ?", (self._name,)
        )
        if not said:
            raise self.failed(
                LedgerError(
                    f"there is no ledger in the schema {self._name} of this database; "
                    "a new ledger means a new budget and must be created explicitly"
                )
            )
        if said != [(FORMAT,)]:
            raise self.failed(LedgerError(f"the schema {self._name} is no Bursar ledger, or of another release"))
        shapes = {table: SHAPES.get(table, SEALED_SHAPE) for table in SCHEMA}
        expected = [(table, True, *shapes[table]) for table in sorted(shapes)]
        if self.run(SHAPE, (self._schema,)) != expected:
            raise self.failed(LedgerError(f"the tables of the ledger are not as they were made: {DAMAGED}"))

    def check_pages(self) -> None:
        """PostgreSQL checks pages as it reads them, where its checksums are on; all of them are read next."""
