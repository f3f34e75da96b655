"""`bursar serve`: the doors of the server in one event loop, until it is told to stop."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Sequence
from pathlib import Path

import uvicorn

from bursar.errors import ConfigError
from bursar.service.app import make_app
from bursar.service.datasets import DataSets
from bursar.service.pages import add_pages


def serve(places: Sequence[Path], *, host: str, port: int) -> None:
    """Serve data sets until SIGTERM or SIGINT: then no request is taken any more, and what runs is finished."""
    listening = bound(host, port)
    with DataSets.open(places) as datasets:
        for name in datasets:
            print(f"http://{host}:{listening.getsockname()[1]}/v1/{name}", flush=True)
        asyncio.run(_run(datasets, listening))


async def _run(datasets: DataSets, listening: socket.socket) -> None:
    for stop in (signal.SIGTERM, signal.SIGINT):
        signal.signal(stop, lambda *_: None)  # what uvicorn raises again after it has ended on it
    app = make_app(datasets)
    add_pages(app)
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, server_header=False, lifespan="on"))
    await server.serve([listening])


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as fault:
        listening.close()
        raise ConfigError(f"cannot listen at {host}:{port}: {fault.strerror}\ntry: another --port") from None
    listening.listen(2048)
    listening.setblocking(False)
    return listening
