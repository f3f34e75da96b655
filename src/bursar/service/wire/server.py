"""The listener: one task for each client, one pool of threads for what blocks, and the way to cancel."""

from __future__ import annotations

import asyncio
import hmac
import itertools
import secrets
import socket
import ssl

from bursar.service.datasets import DataSets
from bursar.service.journal import Journal, Metrics
from bursar.service.question_threads import QuestionThreads
from bursar.service.request_limits import Limits, LimitSettings, TooMuch
from bursar.service.wire import protocol
from bursar.service.wire.catalog import Catalog
from bursar.service.wire.connection import LOGIN_SECONDS, Connection, Gone
from bursar.service.wire.failures import BAD_PASSWORD, INTERNAL, WireError, fatal
from bursar.service.wire.login import Login, greet, log_in
from bursar.service.wire.protocol import CancelRequest, ProtocolError, Startup
from bursar.service.wire.questions import ReadBefore
from bursar.service.wire.session import WireSession

MOST_CONNECTIONS, MOST_OF_ONE = 200, 50
"""Of people who have logged in, and of each of them."""

MOST_OPEN = 1_000
"""The same with those who have not logged in yet; each of them is gone after some seconds."""


class WireServer:
    """All connections of clients that speak PostgreSQL's protocol."""

    def __init__(
        self,
        datasets: DataSets,
        *,
        tls: ssl.SSLContext | None,
        require_tls: bool,
        limits: Limits,
        journal: Journal | None,
        metrics: Metrics | None,
    ) -> None:
        self.datasets, self.limits = datasets, limits
        self._tls, self._require_tls = tls, require_tls
        self._journal, self._metrics = journal, metrics
        self.threads = QuestionThreads(limits.settings.threads)
        self._public: dict[str, tuple[Catalog, ReadBefore]] = {}
        self.sessions: dict[int, WireSession] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._processes = itertools.count(1)
        self._listener: asyncio.Server | None = None

    async def listen(self, host: str, port: int, sock: socket.socket | None) -> None:
        """Take connections from now on."""
        if sock is not None:
            self._listener = await asyncio.start_server(self._accept, sock=sock)
        else:
            self._listener = await asyncio.start_server(self._accept, host, port)

    def public(self, database: str) -> tuple[Catalog, ReadBefore]:
        """What is public about a data set, as PostgreSQL's catalog; and the statements about it that were read."""
        config = self.datasets[database].config
        facts = self._public.get(database)
        if facts is None or facts[0].config is not config:
            facts = self._public[database] = (Catalog(config), ReadBefore())
        return facts

    @property
    def port(self) -> int:
        """Where it listens."""
        assert self._listener is not None
        return int(self._listener.sockets[0].getsockname()[1])

    def close(self) -> None:
        """Take no more connections; those that are idle end now, the others with their statement."""
        if self._listener is not None:
            self._listener.close()
        for session in list(self.sessions.values()):
            session.stop()

    async def wait_closed(self) -> None:
        """Until the last connection has ended."""
        while self._tasks:
            await asyncio.wait(self._tasks)
        await asyncio.to_thread(self.threads.close)
        for catalog, _ in self._public.values():
            catalog.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._tasks) >= MOST_OPEN:
            writer.transport.abort()
            return
        self._tasks.add(task)
        connection = Connection(reader, writer)
        try:
            await self._serve(connection)
        except Gone:
            pass
        except ProtocolError as error:
            connection.send(fatal("08P01", str(error)).message())
        except WireError as error:
            connection.send(error.message())
        except TimeoutError:
            connection.send(fatal("57P05", "logging in took too long").message())
        except Exception as error:  # whatever it is, the client learns nothing of it
            connection.send(self.internal(error, fatal_too=True).message())
        finally:
            await connection.close()
            self._tasks.discard(task)

    async def _serve(self, connection: Connection) -> None:
        async with asyncio.timeout(LOGIN_SECONDS):
            first = await greet(connection, self._tls, require_tls=self._require_tls)
            if isinstance(first, CancelRequest):
                return self._cancel(first)
            if len(self.sessions) >= MOST_CONNECTIONS:
                raise fatal("53300", "sorry, too many clients already")
            login = await self._log_in(connection, first)
            others = [other.login for other in self.sessions.values()]
            if sum((o.person, o.data.name) == (login.person, login.data.name) for o in others) >= MOST_OF_ONE:
                raise fatal("53300", f'too many connections for role "{login.person.name}"')
        process, secret = next(self._processes), secrets.randbits(31)
        session = WireSession(self, connection, login, process, secret)
        self.sessions[process] = session
        try:
            connection.send(protocol.backend_key(process, secret))
            await session.run()
        finally:
            del self.sessions[process]
        return None

    async def _log_in(self, connection: Connection, first: Startup) -> Login:
        try:
            return await log_in(connection, first, self.datasets)
        except WireError as error:
            if error.code == BAD_PASSWORD:
                self.note("log-in", error.code, 0.0)
                try:
                    self.limits.failed(connection.address)
                except TooMuch as much:
                    raise fatal("53300", much.text, f"try again in {much.seconds} s") from None
            raise

    def note(self, what: str, outcome: str, seconds: float, login: Login | None = None, request: str = "") -> None:
        """For the journal and the metrics: what was done, how it ended, and no word of what was asked."""
        if self._metrics is not None:
            self._metrics.saw("wire", what, outcome, seconds)
        if self._journal is not None:
            self._journal.write(
                "statement",
                request=request,
                route=what,
                status=outcome,
                ms=round(1000 * seconds, 1),
                data=None if login is None else login.data.name,
                person=None if login is None else login.person.name,
                token=None if login is None else login.token,
            )

    def _cancel(self, request: CancelRequest) -> None:
        session = self.sessions.get(request.process)
        if session is not None and hmac.compare_digest(str(session.secret), str(request.secret)):
            session.cancel()

    def internal(self, error: Exception, *, fatal_too: bool = False) -> WireError:
        """One text for everything that should not have happened; the log has its kind and place, and no value."""
        request = secrets.token_hex(8)
        if self._journal is not None:
            self._journal.fault(error, request)
        text = f"something went wrong inside; the request id is {request}"
        return WireError(INTERNAL, text, severity="FATAL" if fatal_too else "ERROR")


async def start_wire(
    datasets: DataSets,
    *,
    host: str = "127.0.0.1",
    port: int = 5433,
    sock: socket.socket | None = None,
    tls: ssl.SSLContext | None = None,
    require_tls: bool = False,
    limits: Limits | None = None,
    journal: Journal | None = None,
    metrics: Metrics | None = None,
) -> WireServer:
    """Listen for PostgreSQL clients, on a port (0: one that is free), or else on a socket that is bound.

    `require_tls` refuses plain connections. `limits` are shared with the other doors of the process.
    """
    server = WireServer(
        datasets,
        tls=tls,
        require_tls=require_tls,
        limits=Limits(LimitSettings()) if limits is None else limits,
        journal=journal,
        metrics=metrics,
    )
    await server.listen(host, port, sock)
    return server
