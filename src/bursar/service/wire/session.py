"""One client's session: messages of the simple and the extended protocol, portals, cursors, transactions.

Parse, Bind and Describe run nothing and charge nothing. A portal is asked once, at its first Execute or FETCH, and
charged once, however its rows are fetched. Transactions change nothing but what clients are told of them: an answer
that was paid for stays paid for.
"""

from __future__ import annotations

import asyncio
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from bursar.errors import BursarError
from bursar.service.request_limits import TooMuch
from bursar.service.wire import protocol, statements, types
from bursar.service.wire.asked import Context, ResultSet
from bursar.service.wire.catalog_spelling import Sessions
from bursar.service.wire.connection import Connection, Gone, Interrupted
from bursar.service.wire.failures import (
    CANCELLED,
    FAILED_TRANSACTION,
    INTERNAL,
    UNAVAILABLE,
    WireError,
    fatal,
    notice,
    refusal,
)
from bursar.service.wire.login import Login
from bursar.service.wire.protocol import Bind, Describe, Execute, Field, Parse, ProtocolError, Simple
from bursar.service.wire.router import Answerable, route
from bursar.service.wire.settings import REPORTED
from bursar.service.wire.statements import (
    Accepted,
    Begin,
    CloseCursor,
    CopyOut,
    Deallocate,
    Declare,
    Discard,
    End,
    Explain,
    Fetch,
    Nothing,
    Savepoint,
    Select,
    SetTo,
    Show,
    Statement,
)
from bursar.service.wire.types import BadValue, PgValue
from bursar.session import Bursar

if TYPE_CHECKING:
    from bursar.service.wire.server import WireServer

MOST_PREPARED, MOST_PORTALS, MOST_SAVEPOINTS = 1_000, 200, 1_000

T = TypeVar("T")


@dataclass
class PreparedStatement:
    """A statement that was read; what it asks for, if it asks."""

    statement: Statement
    offset: int = 0  # of the query in the text that the client sent; -1: not known
    question: Answerable | None = None

    @property
    def parameters(self) -> Sequence[int]:
        """The types of the values that it needs."""
        return () if self.question is None else self.question.parameters


@dataclass
class Portal:
    """A prepared statement with values; its rows, once it was asked."""

    prepared: PreparedStatement
    values: Sequence[PgValue] = ()
    formats: Sequence[int] = ()
    hold: bool = False  # a cursor that outlives its transaction
    result: ResultSet | None = None
    at: int = 0
    fields: Sequence[Field] | None = field(default=None)


class WireSession:
    """Reads messages until the client says good-bye."""

    def __init__(self, server: WireServer, connection: Connection, login: Login, process: int, secret: int) -> None:
        self._server, self._connection, self.login = server, connection, login
        self.process, self.secret = process, secret
        self._context = Context(self._bursar, login.data.name, login.settings)
        self._prepared: dict[str, PreparedStatement] = {}
        self._portals: dict[str, Portal] = {}
        self._loop = asyncio.get_running_loop()
        self._status = "I"
        self._savepoints: list[str] = []
        self._running: asyncio.Future[None] | None = None
        self._stopping = False

    def _bursar(self) -> Bursar:
        return self._server.datasets[self.login.data.name].session(self.login.person)

    # -- the loop ----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Until the client has gone, or the server stops."""
        self._ready()
        await self._connection.flush()
        skipping = False  # after an error, everything up to the next Sync
        while not self._stopping:
            message = await self._next()
            if isinstance(message, protocol.Terminate):
                return
            if isinstance(message, protocol.Sync):
                skipping = False
                self._end_of_series()
                self._ready()
                await self._connection.flush()
                continue
            if skipping:
                continue
            try:
                await self._handle(message)
            except (Gone, ProtocolError):
                raise
            except Exception as error:
                skipping = not isinstance(message, Simple)
                await self._failed(error)
            if isinstance(message, Simple):
                self._end_of_series()
                self._ready()
                await self._connection.flush()
            elif isinstance(message, protocol.Flush):
                await self._connection.flush()
        raise fatal("57P01", "terminating connection due to administrator command")

    async def _next(self) -> protocol.Message:
        try:
            return await self._connection.receive()
        except Interrupted:
            raise fatal("57P01", "terminating connection due to administrator command") from None

    def stop(self) -> None:
        """End the session, after the statement that runs."""
        self._stopping = True
        self._connection.interrupt()

    def cancel(self) -> None:
        """Give up waiting for what runs. An answer that was being paid for is in the log, and free when asked again."""
        if self._running is not None and not self._running.done():
            self._running.set_result(None)

    def _ready(self) -> None:
        self._connection.send(protocol.ready(self._status))

    def _end_of_series(self) -> None:
        """Outside of a transaction nothing outlives a series of messages but what was prepared, and held cursors."""
        if self._status == "I":
            self._portals = {name: portal for name, portal in self._portals.items() if portal.hold}

    async def _failed(self, error: Exception) -> None:
        match error:
            case WireError():
                told = error
            case BadValue():
                told = WireError("22P02", str(error))
            case BursarError():
                told = refusal(error)
            case _:
                told = self._server.internal(error)
        if self._status == "T":
            self._status = "E"
        self._connection.send(told.message())
        if told.severity == "FATAL":
            await self._connection.flush()
            raise Gone

    async def _handle(self, message: protocol.Message) -> None:
        send = self._connection.send
        match message:
            case Simple():
                await self._simple(message.sql)
            case Parse():
                await self._parse(message)
                send(protocol.PARSE_COMPLETE)
            case Bind():
                self._bind(message)
                send(protocol.BIND_COMPLETE)
            case Describe():
                await self._describe(message)
            case Execute():
                portal = self._portals.get(message.portal)
                if portal is None:
                    raise WireError("34000", f'portal "{message.portal}" does not exist')
                await self._execute(portal, message.most)
            case protocol.CloseMessage():
                (self._portals if message.portal else self._prepared).pop(message.name, None)
                send(protocol.CLOSE_COMPLETE)
            case protocol.Password():
                raise ProtocolError("nobody asked for a password")

    # -- the simple protocol -----------------------------------------------------------------------------------------

    async def _simple(self, sql: str) -> None:
        pieces = statements.split(sql)
        if not pieces:
            self._connection.send(protocol.EMPTY_QUERY)
        read = [(piece, self._read(piece)) for piece in pieces]
        for piece, statement in read:
            try:
                prepared = await self._prepare(statement, piece.offset)
                if prepared.parameters:
                    raise WireError("42P02", "there is no parameter $1")
                portal = Portal(prepared)
                if isinstance(statement, Select):
                    self._check_transaction(statement)
                    await self._ask(portal)  # its columns come with the rows: they need not be worked out before
                fields = await self._fields(portal)
                if fields is not None and not isinstance(statement, CopyOut):
                    self._connection.send(protocol.row_description(fields))
                await self._execute(portal, 0)
            except WireError as error:
                raise _moved(error, _offset(statement, piece.offset)) from None

    def _read(self, piece: Select) -> Statement:
        try:
            return statements.read(piece)
        except WireError as error:
            raise _moved(error, piece.offset) from None

    # -- the extended protocol ---------------------------------------------------------------------------------------

    async def _parse(self, message: Parse) -> None:
        pieces = statements.split(message.sql)
        if len(pieces) > 1:
            raise WireError("42601", "cannot insert multiple commands into a prepared statement")
        if message.name and message.name in self._prepared:
            raise WireError("42P05", f'prepared statement "{message.name}" already exists')
        if len(self._prepared) >= MOST_PREPARED:
            raise WireError("54000", f"there are at most {MOST_PREPARED} prepared statements")
        statement = self._read(pieces[0]) if pieces else Nothing()
        offset = pieces[0].offset if pieces else 0
        try:
            prepared = await self._prepare(statement, offset, message.types)
        except WireError as error:
            raise _moved(error, _offset(statement, offset)) from None
        self._prepared[message.name] = prepared

    def _bind(self, message: Bind) -> None:
        prepared = self._statement(message.statement)
        if len(message.values) != len(prepared.parameters):
            raise WireError(
                "08P01",
                f"bind message supplies {len(message.values)} parameters, but prepared statement "
                f'"{message.statement}" requires {len(prepared.parameters)}',
            )
        if message.portal and message.portal in self._portals:
            raise WireError("42P03", f'cursor "{message.portal}" already exists')
        if len(self._portals) >= MOST_PORTALS:
            raise WireError("54000", f"there are at most {MOST_PORTALS} portals")
        values = [
            types.decode(body, oid, protocol.format_of(message.formats, place))
            for place, (body, oid) in enumerate(zip(message.values, prepared.parameters, strict=True))
        ]
        self._portals[message.portal] = Portal(prepared, values, message.results)

    def _statement(self, name: str) -> PreparedStatement:
        if name not in self._prepared:
            raise WireError("26000", f'prepared statement "{name}" does not exist')
        return self._prepared[name]

    async def _describe(self, message: Describe) -> None:
        if message.portal:
            if message.name not in self._portals:
                raise WireError("34000", f'portal "{message.name}" does not exist')
            portal = self._portals[message.name]
        else:
            prepared = self._statement(message.name)
            self._connection.send(protocol.parameter_description(prepared.parameters))
            portal = Portal(prepared)
        fields = await self._fields(portal)
        described = fields is not None and not isinstance(portal.prepared.statement, CopyOut)
        self._connection.send(protocol.row_description(fields or (), portal.formats) if described else protocol.NO_DATA)

    # -- statements --------------------------------------------------------------------------------------------------

    async def _prepare(self, statement: Statement, offset: int, given: Sequence[int] = ()) -> PreparedStatement:
        """Read a statement, and what it asks for. Nothing is run."""
        match statement:
            case Select() as query:
                pass
            case Explain(query=query) | CopyOut(query=query) | Declare(query=query):
                pass
            case _:
                return PreparedStatement(statement, offset)
        self._check_transaction(statement)
        catalog, read_before = self._server.public(self._context.database)
        sessions = Sessions(self.process, self._own_processes, self._stop_own)

        def routed() -> Answerable:
            return route(query.text, self._context, catalog, sessions, given, read_before)

        question = routed() if query.text in read_before else await self._blocking(routed)
        return PreparedStatement(statement, _offset(statement, offset), question)

    def _own_processes(self) -> list[int]:
        """The sessions of the same person with the same data set."""
        whose = (self.login.person.name, self.login.data.name)
        others = list(self._server.sessions.items())
        return [process for process, other in others if (other.login.person.name, other.login.data.name) == whose]

    def _stop_own(self, process: int) -> bool:
        """Called in a thread: the other session is told on the event loop."""
        other = self._server.sessions.get(process) if process in self._own_processes() else None
        if other is None:
            return False
        self._loop.call_soon_threadsafe(other.cancel)
        return True

    async def _fields(self, portal: Portal) -> Sequence[Field] | None:
        """The columns that a statement gives; None where it gives none. Nothing is run."""
        question = portal.prepared.question
        match portal.prepared.statement:
            case Select() | CopyOut() if question is not None:
                if portal.fields is None:
                    portal.fields = question.fields() if question.known else await self._blocking(question.fields)
                return portal.fields
            case Explain():
                return [Field("QUERY PLAN", types.TEXT.oid, -1)]
            case Show(name="all"):
                return [Field(name, types.TEXT.oid, -1) for name in ("name", "setting", "description")]
            case Show(name=name):
                return [Field(name, types.TEXT.oid, -1)]
            case Fetch(cursor=name, move=False):
                return await self._fields(self._cursor(name))
        return None

    def _check_transaction(self, statement: Statement) -> None:
        ends = isinstance(statement, End | Nothing) or (
            isinstance(statement, Savepoint) and statement.word == "ROLLBACK"
        )
        if self._status == "E" and not ends:
            raise WireError(
                FAILED_TRANSACTION, "current transaction is aborted, commands ignored until end of transaction block"
            )

    async def _execute(self, portal: Portal, most: int) -> None:
        """Run a portal at its first Execute, and send rows of it."""
        statement = portal.prepared.statement
        self._check_transaction(statement)
        if isinstance(statement, Nothing):
            self._connection.send(protocol.EMPTY_QUERY)
            return
        if isinstance(statement, Select | Explain | Show):
            await self._ask(portal)
            count, more = await self._send_rows(portal, most or None)
            tag = "EXPLAIN" if isinstance(statement, Explain) else "SHOW" if isinstance(statement, Show) else ""
            done = protocol.command_complete(tag or f"SELECT {count}")
            self._connection.send(protocol.PORTAL_SUSPENDED if more else done)
            return
        match statement:
            case CopyOut():
                await self._ask(portal)
                tag = await self._copy(portal, statement)
            case Declare():
                tag = self._declare(portal, statement)
            case Fetch():
                tag = await self._fetch(portal, statement)
            case _:
                tag = self._short(statement)
        self._connection.send(protocol.command_complete(tag))

    async def _ask(self, portal: Portal) -> None:
        """The rows of a portal, asked for once. A cancelled question may still be answered, for the log alone."""
        if portal.result is not None:
            return
        statement, question = portal.prepared.statement, portal.prepared.question
        if isinstance(statement, Show):
            portal.result = self._show(statement.name)
            return
        assert question is not None
        start, outcome = time.monotonic(), "ok"
        try:
            with self._server.limits.request(self.login.token):
                if isinstance(statement, Explain):
                    lines = await self._blocking(lambda: question.explain(portal.values))
                    portal.result = ResultSet([], [[line] for line in lines])
                else:
                    portal.result = await self._answer(question, portal.values)
        except TooMuch as much:
            outcome = "53400"
            raise WireError(outcome, much.text, hint=f"try again in {much.seconds} s") from None
        except WireError as error:
            outcome = error.code
            raise
        except Exception:
            outcome = INTERNAL
            raise
        finally:
            self._server.note(question.route, outcome, time.monotonic() - start, self.login)
        portal.fields = portal.fields or portal.result.fields or None
        if not self.login.settings.quiet:
            for told in portal.result.notices:
                self._connection.send(told)

    async def _answer(self, question: Answerable, values: Sequence[PgValue]) -> ResultSet:
        if not self.login.good:
            raise fatal("57P01", "terminating connection: the token was revoked, or has expired")
        read_before = question.known
        result = question.repeat() if read_before else None
        return await self._blocking(lambda: question.run(values), again=read_before) if result is None else result

    async def _blocking(self, work: Callable[[], T], *, again: bool = False) -> T:
        """Run what blocks in a thread; given up when the client cancels, or takes too long by its own setting.

        `again` where it is about a question that was answered before.
        """
        job = self._server.threads.run(work, again=again)
        self._running = self._loop.create_future()
        try:
            waiting: set[asyncio.Future[T] | asyncio.Future[None]] = {job, self._running}
            await asyncio.wait(waiting, timeout=self.login.settings.timeout, return_when=asyncio.FIRST_COMPLETED)
            if job.done():
                return job.result()
            why = "user request" if self._running.done() else "statement timeout"
            job.cancel()  # where it has begun it goes on, and what comes of it is dropped
            job.add_done_callback(lambda done: done.cancelled() or done.exception())
            raise WireError(CANCELLED, f"canceling statement due to {why}")
        finally:
            self._running.cancel()
            self._running = None

    async def _send_rows(
        self, portal: Portal, most: int | None, formats: Sequence[int] | None = None
    ) -> tuple[int, bool]:
        """Send the next rows; how many there were, and whether more are left."""
        assert portal.result is not None
        fields = await self._fields(portal) or portal.result.fields
        rows = portal.result.rows
        end = len(rows) if most is None else min(portal.at + most, len(rows))
        kinds = [
            (column.type, protocol.format_of(portal.formats if formats is None else formats, place))
            for place, column in enumerate(fields)
        ]
        for row in rows[portal.at : end]:
            values = [types.encode(value, *kind) for value, kind in zip(row, kinds, strict=True)]
            await self._connection.send_rows(protocol.data_row(values))
        count, portal.at = end - portal.at, end
        return count, end < len(rows)

    # -- cursors and COPY --------------------------------------------------------------------------------------------

    def _declare(self, portal: Portal, statement: Declare) -> str:
        if self._status == "I" and not statement.hold:
            raise WireError("25P01", "DECLARE CURSOR can only be used in transaction blocks")
        if statement.cursor in self._portals:
            raise WireError("42P03", f'cursor "{statement.cursor}" already exists')
        prepared = PreparedStatement(statement.query, portal.prepared.offset, portal.prepared.question)
        self._portals[statement.cursor] = Portal(prepared, portal.values, hold=statement.hold)
        return "DECLARE CURSOR"

    def _cursor(self, name: str) -> Portal:
        if name not in self._portals:
            raise WireError("34000", f'cursor "{name}" does not exist')
        return self._portals[name]

    async def _fetch(self, portal: Portal, statement: Fetch) -> str:
        cursor = self._cursor(statement.cursor)
        await self._ask(cursor)
        if statement.move:
            assert cursor.result is not None
            left = len(cursor.result.rows) - cursor.at
            count = left if statement.count is None else min(left, statement.count)
            cursor.at += count
            return f"MOVE {count}"
        count, _ = await self._send_rows(cursor, statement.count, portal.formats)
        return f"FETCH {count}"

    async def _copy(self, portal: Portal, statement: CopyOut) -> str:
        assert portal.result is not None
        fields, rows = await self._fields(portal) or (), portal.result.rows
        binary = statement.format == "binary"
        self._connection.send(protocol.copy_out(len(fields), binary))
        head = b"PGCOPY\n\xff\r\n\0" + struct.pack("!ii", 0, 0) if binary else b""  # in one message with what follows
        if statement.header and not binary:
            await self._connection.send_rows(protocol.frame(b"d", _copied([f.name for f in fields], statement.format)))
        for row in rows:
            if binary:
                bodies = [types.encode(v, f.type, protocol.BINARY) for v, f in zip(row, fields, strict=True)]
                parts = [struct.pack("!i", -1) if b is None else struct.pack("!i", len(b)) + b for b in bodies]
                body = struct.pack("!h", len(bodies)) + b"".join(parts)
            else:
                encoded = [types.encode(v, f.type, protocol.TEXT) for v, f in zip(row, fields, strict=True)]
                body = _copied([None if e is None else e.decode() for e in encoded], statement.format)
            await self._connection.send_rows(protocol.frame(b"d", head + body))
            head = b""
        if binary:
            self._connection.send(protocol.frame(b"d", head + struct.pack("!h", -1)))
        self._connection.send(protocol.COPY_DONE)
        return f"COPY {len(rows)}"

    # -- the session itself ------------------------------------------------------------------------------------------

    def _short(self, statement: Statement) -> str:
        """Statements about the session; returns the tag that a client expects."""
        match statement:
            case Begin(tag=tag):
                if self._status != "I":
                    self._warn("25001", "there is already a transaction in progress")
                self._status = "T"
                return tag
            case End(commit=commit):
                return self._end(commit)
            case Savepoint():
                return self._savepoint(statement)
            case SetTo(name=name, value=value, tag=tag):
                self._set(name, value)
                return tag
            case Deallocate(name=None):
                self._prepared.clear()
                return "DEALLOCATE ALL"
            case Deallocate(name=name):
                self._statement(name or "")
                del self._prepared[name or ""]
                return "DEALLOCATE"
            case CloseCursor(cursor=None):
                self._portals.clear()
                return "CLOSE CURSOR ALL"
            case CloseCursor(cursor=name):
                self._cursor(name or "")
                del self._portals[name or ""]
                return "CLOSE CURSOR"
            case Discard():
                if self._status != "I":
                    raise WireError("25001", "DISCARD ALL cannot run inside a transaction block")
                self._prepared.clear()
                self._portals.clear()
                self._set(None, None)
                return "DISCARD ALL"
            case Accepted(tag=tag):
                return tag
        raise WireError(UNAVAILABLE, "this statement is not available")

    def _end(self, commit: bool) -> str:
        if self._status == "I":
            self._warn("25P01", "there is no transaction in progress")
        tag = "COMMIT" if commit and self._status != "E" else "ROLLBACK"
        self._status, self._savepoints = "I", []
        self._end_of_series()
        return tag

    def _savepoint(self, statement: Savepoint) -> str:
        if self._status == "I":
            word = "ROLLBACK TO SAVEPOINT" if statement.word == "ROLLBACK" else statement.word
            raise WireError("25P01", f"{word} can only be used in transaction blocks")
        if statement.word == "SAVEPOINT":
            if len(self._savepoints) >= MOST_SAVEPOINTS:
                raise WireError("54000", f"there are at most {MOST_SAVEPOINTS} savepoints")
            self._savepoints.append(statement.name)
            return "SAVEPOINT"
        if statement.name not in self._savepoints:
            raise WireError("3B001", f'savepoint "{statement.name}" does not exist')
        last = len(self._savepoints) - 1 - self._savepoints[::-1].index(statement.name)
        if statement.word == "RELEASE":
            del self._savepoints[last:]
            return "RELEASE"
        del self._savepoints[last + 1 :]
        self._status = "T"
        return "ROLLBACK"

    def _set(self, name: str | None, value: str | None) -> None:
        settings = self.login.settings
        before = {setting: settings.get(setting) for setting in REPORTED}
        if name is None:
            settings.reset()
        else:
            settings.set(name, value)
        for setting, shown in REPORTED.items():
            now = settings.get(setting) or ""
            if now != before[setting]:
                self._connection.send(protocol.parameter_status(shown, now))

    def _show(self, name: str) -> ResultSet:
        settings = self.login.settings
        if name.lower() == "all":
            return ResultSet([], [[key, value, ""] for key, value in settings.all()])
        value = settings.get(name)
        if value is None:
            raise WireError("42704", f'unrecognized configuration parameter "{name}"')
        return ResultSet([], [[value]])

    def _warn(self, code: str, text: str) -> None:
        self._connection.send(notice(text, severity="WARNING", code=code))


def _offset(statement: Statement, offset: int) -> int:
    """Where the query of a statement begins in what was sent."""
    match statement:
        case Select() as query:
            return query.offset
        case Explain(query=query) | CopyOut(query=query) | Declare(query=query):
            return query.offset
    return offset


def _moved(error: WireError, offset: int) -> WireError:
    """The same error with its place in all that was sent."""
    if error.position >= 0:
        error.position = error.position + offset if offset >= 0 else -1
    return error


_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\b": "\\b", "\f": "\\f", "\v": "\\v"})


def _copied(values: Sequence[str | None], format: str) -> bytes:
    """A line of COPY, as text or CSV."""
    if format == "text":
        return ("\t".join("\\N" if v is None else v.translate(_ESCAPES) for v in values) + "\n").encode()
    quoted = [
        "" if v is None else '"' + v.replace('"', '""') + '"' if v == "" or any(c in v for c in ',"\r\n') else v
        for v in values
    ]
    return (",".join(quoted) + "\n").encode()
