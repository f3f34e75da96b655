"""`bursar serve`: the doors of a server in one event loop, in one process or several, until it is told to stop."""

from __future__ import annotations

import asyncio
import logging
import math
import multiprocessing
import os
import shutil
import signal
import socket
import ssl
import sys
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import uvicorn
from anyio import to_thread
from fastapi import FastAPI

from bursar.errors import BursarError, ConfigError
from bursar.link import loopback
from bursar.service.app import make_app
from bursar.service.datasets import DataSets
from bursar.service.journal import Journal, Metrics
from bursar.service.pages import add_pages
from bursar.service.patience import PatientProtocol
from bursar.service.question_threads import SWITCH_SECONDS
from bursar.service.request_limits import LimitSettings
from bursar.service.wire import WireServer, start_wire

if TYPE_CHECKING:
    from bursar.service.openid import OpenIdSettings, Provider

DRAIN_SECONDS = 150
"""How long what runs may take after the server was told to stop; a question gives up before that."""

SEAL_SECONDS = 3600.0
REFRESH_SECONDS = 5.0
SHARE_SECONDS = 1.0

STOPS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to serve, and how."""

    places: tuple[Path, ...]
    host: str = "127.0.0.1"
    port: int = 8000  # 0: one that is free
    wire_port: int | None = None  # for PostgreSQL clients; 0: one that is free; None: they are not served
    cert: Path | None = None
    key: Path | None = None
    behind_proxy: bool = False
    workers: int = 1
    log: Path | None = None  # standard error unless named
    settings: LimitSettings = field(default_factory=LimitSettings)
    room: Path | None = None  # where owners may set up new data sets
    openid: OpenIdSettings | None = None  # a provider whose log-ins are believed

    def __post_init__(self) -> None:
        if (self.cert is None) != (self.key is None):
            raise ConfigError("TLS needs a certificate and its key\ntry: --cert FILE --key FILE")
        if not (loopback(self.host) or self.cert is not None or self.behind_proxy):
            raise ConfigError(
                f"{self.host} can be reached from other machines, and tokens would pass in the clear\n"
                "try: --cert FILE --key FILE, or --behind-proxy where a proxy in front of it speaks TLS"
            )

    def url(self, port: int) -> str:
        """Where it is."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'http' if self.cert is None else 'https'}://{host}:{port}"

    def wire_url(self, port: int) -> str:
        """Where PostgreSQL clients find it; the name of a data set comes behind it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"postgresql://{host}:{port}"

    @property
    def tls(self) -> ssl.SSLContext | None:
        """What connections are encrypted with, if there is a certificate."""
        if self.cert is None:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.cert, self.key)
        return context


Ready = Callable[[str, str | None, list[str]], None]

Listening = tuple[socket.socket, socket.socket | None]
"""The sockets for HTTP and for PostgreSQL clients."""


def serve(plan: Plan, ready: Ready) -> None:
    """Serve until SIGTERM or SIGINT: then no request is taken any more, and what runs is finished.

    `ready` hears the URLs and the names of the data sets, once requests are taken.
    """
    with ExitStack() as held:
        http = held.enter_context(_bound(plan.host, plan.port))
        wire = None if plan.wire_port is None else held.enter_context(_bound(plan.host, plan.wire_port, "--pg-port"))
        listening, url = (http, wire), plan.url(http.getsockname()[1])
        wire_url = None if wire is None else plan.wire_url(wire.getsockname()[1])
        if plan.workers == 1:
            _process(plan, listening, lambda names: ready(url, wire_url, names))
            return
        shared = Path(tempfile.mkdtemp(prefix="bursar-"))
        held.callback(shutil.rmtree, shared, ignore_errors=True)
        _Crew(plan, listening, shared).run(lambda names: ready(url, wire_url, names))


def _process(
    plan: Plan,
    listening: Listening,
    ready: Callable[[list[str]], None],
    *,
    shared: Path | None = None,
    place: int = 0,
) -> None:
    """Serve in this process."""
    for stop in STOPS:
        signal.signal(stop, lambda *_: None)  # what uvicorn raises again after it has ended on it
    sys.setswitchinterval(SWITCH_SECONDS)
    _many_files()
    with ExitStack() as held:
        journal = Journal(None if plan.log is None else held.enter_context(_own_file(plan.log)))
        datasets = held.enter_context(DataSets.open(plan.places, plan.room))
        metrics = Metrics(shared)
        provider = None if plan.openid is None else _provider(plan.openid)
        app = make_app(datasets, plan.settings, journal=journal, metrics=metrics, provider=provider)
        add_pages(app, wire_port=None if listening[1] is None else listening[1].getsockname()[1])
        asyncio.run(_run(plan, app, datasets, listening, journal, metrics, lambda: ready(list(datasets)), place))


def _own_file(path: Path) -> TextIO:
    """A file to add to, which nobody else can read if it is new: it says who asks, and when."""
    return open(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "a", encoding="utf-8")


def _provider(settings: OpenIdSettings) -> Provider:
    from bursar.service.openid import Provider  # an extra of its own

    return Provider(settings)


async def _run(
    plan: Plan,
    app: FastAPI,
    datasets: DataSets,
    listening: Listening,
    journal: Journal,
    metrics: Metrics,
    ready: Callable[[], None],
    place: int,
) -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, facts: _noted(journal, facts.get("exception")))
    config = uvicorn.Config(
        app,
        http=PatientProtocol,
        ws="none",
        lifespan="on",
        log_config=None,
        log_level=logging.CRITICAL + 1,  # the journal has all there is to say
        server_header=False,
        proxy_headers=plan.behind_proxy,
        forwarded_allow_ips="*",
        ssl_certfile=plan.cert,
        ssl_keyfile=plan.key,
        timeout_graceful_shutdown=DRAIN_SECONDS,
    )

    async def seal() -> None:
        for data in datasets.values():
            await to_thread.run_sync(data.bursar.owner.seal_due)

    async def refresh() -> None:
        for name in await to_thread.run_sync(datasets.refresh):
            journal.write("refreshed", data=name)

    async def share() -> None:
        metrics.share()

    rounds = [(REFRESH_SECONDS, refresh), (SHARE_SECONDS, share), *([(SEAL_SECONDS, seal)] if place == 0 else [])]
    tasks = [asyncio.create_task(_again(seconds, what, journal)) for seconds, what in rounds]
    journal.write("started", pid=os.getpid())
    http, wire = listening
    door = None
    if wire is not None:
        door = await start_wire(
            datasets,
            sock=wire,
            tls=plan.tls,
            require_tls=not (loopback(plan.host) or plan.behind_proxy),
            limits=app.state.limits,
            journal=journal,
            metrics=metrics,
        )
        tasks.append(asyncio.create_task(_close_with(door, app.state.closing)))
    await _Server(config, ready, app.state.closing).serve([http])
    if door is not None:
        with suppress(TimeoutError):
            await asyncio.wait_for(door.wait_closed(), DRAIN_SECONDS)
    for task in tasks:
        task.cancel()
    journal.write("ended", pid=os.getpid())


class _Server(uvicorn.Server):
    """Tells when it takes requests, and the app when it is about to end."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None], closing: asyncio.Event) -> None:
        super().__init__(config)
        self._ready, self._closing = ready, closing

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._closing.set()
        await super().shutdown(sockets)


async def _close_with(door: WireServer, closing: asyncio.Event) -> None:
    await closing.wait()
    door.close()


async def _again(seconds: float, what: Callable[[], Awaitable[None]], journal: Journal) -> None:
    while True:
        await asyncio.sleep(seconds)
        try:
            await what()
        except Exception as fault:  # what cannot be done now is tried again
            journal.fault(fault)


def _noted(journal: Journal, fault: BaseException | None) -> None:
    if fault is not None:
        journal.fault(fault)


# -- several processes -------------------------------------------------------------------------------------------------


class _Crew:
    """Processes that take requests from one socket. One that dies is replaced, unless it never got ready."""

    def __init__(self, plan: Plan, listening: Listening, shared: Path) -> None:
        part = replace(
            plan.settings,
            requests=math.ceil(plan.settings.requests / plan.workers),
            failures=math.ceil(plan.settings.failures / plan.workers),
        )
        self._plan, self._listening, self._shared = replace(plan, settings=part), listening, shared
        self._start = multiprocessing.get_context("spawn")
        self._stopping = False

    def run(self, ready: Callable[[list[str]], None]) -> None:
        """Until all of them have ended."""
        for stop in STOPS:
            signal.signal(stop, lambda *_: self._stop())
        self._crew = [self._one(place) for place in range(self._plan.workers)]
        try:
            names = [self._names(worker, told) for worker, told in self._crew]
            if not self._stopping:
                ready(names[0])
            while not self._stopping:
                wait([worker.sentinel for worker, _ in self._crew], timeout=0.2)
                for place, (worker, _) in enumerate(self._crew):
                    if worker.exitcode is not None and not self._stopping:
                        self._crew[place] = self._one(place)
                        self._names(*self._crew[place])
        finally:
            self._stop()
            for worker, _ in self._crew:
                worker.join()

    def _stop(self) -> None:
        self._stopping = True
        for worker, _ in self._crew:
            with suppress(ProcessLookupError):
                worker.terminate()

    def _one(self, place: int) -> tuple[BaseProcess, Connection]:
        ours, theirs = self._start.Pipe(duplex=False)
        worker = self._start.Process(target=_worker, args=(self._plan, self._listening, self._shared, place, theirs))
        worker.start()
        theirs.close()
        return worker, ours

    def _names(self, worker: BaseProcess, told: Connection) -> list[str]:
        """The data sets of a process that is ready; ends this one as it has ended where it is not."""
        try:
            names: list[str] = told.recv()
        except EOFError:
            worker.join()
            if self._stopping:
                return []
            sys.exit(worker.exitcode)
        return names


def _worker(plan: Plan, listening: Listening, shared: Path, place: int, tell: Connection) -> None:
    try:
        _process(plan, listening, tell.send, shared=shared, place=place)
    except BursarError as error:
        if place == 0:
            print(error, file=sys.stderr)
        sys.exit(error.exit_code)


# -- sockets -----------------------------------------------------------------------------------------------------------


def _bound(host: str, port: int, option: str = "--port") -> socket.socket:
    """A socket that listens."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # or asyncio would leave Nagle's wait on
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as fault:
        listening.close()
        raise ConfigError(f"cannot listen at {host}:{port}: {fault.strerror}\ntry: another {option}") from None
    listening.listen(2048)
    listening.setblocking(False)
    return listening


def _many_files() -> None:
    """As many open connections as this account may have, where there is such a limit."""
    with suppress(ImportError):
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
