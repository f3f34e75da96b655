"""The listener: one task for each client, one pool of threads for what blocks, and the way to cancel."""

from __future__ import annotations

import asyncio
import hmac
import itertools
import logging
import secrets
import ssl
import traceback
from concurrent.futures import ThreadPoolExecutor

from bursar.service.datasets import DataSets
from bursar.service.wire import protocol
from bursar.service.wire.catalog import Catalog
from bursar.service.wire.connection import LOGIN_SECONDS, Connection, Gone
from bursar.service.wire.failures import INTERNAL, WireError, fatal
from bursar.service.wire.login import greet, log_in
from bursar.service.wire.protocol import CancelRequest, ProtocolError
from bursar.service.wire.session import Session

MOST_CONNECTIONS = 200
THREADS = 8

_log = logging.getLogger("bursar.service.wire")


class WireServer:
    """All connections of clients that speak PostgreSQL's protocol."""

    def __init__(self, datasets: DataSets, tls: ssl.SSLContext | None, *, require_tls: bool) -> None:
        self.datasets = datasets
        self._tls, self._require_tls = tls, require_tls
        self.pool = ThreadPoolExecutor(THREADS, thread_name_prefix="bursar-wire")
        self.catalogs = {name: Catalog(data.config) for name, data in datasets.items()}
        self.sessions: dict[int, Session] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._processes = itertools.count(1)
        self._listener: asyncio.Server | None = None

    async def listen(self, host: str, port: int) -> None:
        """Take connections from now on."""
        self._listener = await asyncio.start_server(self._accept, host, port)

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
        self.pool.shutdown(wait=True)
        for catalog in self.catalogs.values():
            catalog.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
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
            login = await log_in(connection, first, self.datasets)
        process, secret = next(self._processes), secrets.randbits(31)
        session = Session(self, connection, login, process, secret)
        self.sessions[process] = session
        try:
            connection.send(protocol.backend_key(process, secret))
            await session.run()
        finally:
            del self.sessions[process]
        return None

    def _cancel(self, request: CancelRequest) -> None:
        session = self.sessions.get(request.process)
        if session is not None and hmac.compare_digest(str(session.secret), str(request.secret)):
            session.cancel()

    def internal(self, error: Exception, *, fatal_too: bool = False) -> WireError:
        """One text for everything that should not have happened; the log has its kind and place, and no value."""
        request = secrets.token_hex(4)
        places = traceback.extract_tb(error.__traceback__)
        where = f"{places[-1].filename}:{places[-1].lineno}" if places else "?"
        _log.error("request %s: %s at %s", request, type(error).__name__, where)
        text = f"something went wrong inside; the request id is {request}"
        return WireError(INTERNAL, text, severity="FATAL" if fatal_too else "ERROR")


async def start_wire(
    datasets: DataSets,
    *,
    host: str = "127.0.0.1",
    port: int = 5433,
    tls: ssl.SSLContext | None = None,
    require_tls: bool = False,
) -> WireServer:
    """Listen for PostgreSQL clients; port 0 takes any that is free. `require_tls` refuses plain connections."""
    server = WireServer(datasets, tls, require_tls=require_tls)
    await server.listen(host, port)
    return server
