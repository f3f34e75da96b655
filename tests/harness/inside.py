"""The app of a server in this process: real data sets and people, no socket."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from fastapi import FastAPI

from bursar.service.app import make_app
from bursar.service.datasets import DataSets
from bursar.service.journal import Journal
from bursar.service.request_limits import LimitSettings
from harness.patience import PATIENCE

UNLIMITED = LimitSettings(requests=0, concurrent=0, failures=0)


class Inside:
    """Asks an app as clients do."""

    def __init__(self, app: FastAPI, journal: io.StringIO) -> None:
        self.app, self._journal = app, journal
        self._runner = asyncio.Runner()
        self._lifespan = app.router.lifespan_context(app)

    @property
    def journal(self) -> list[str]:
        """The lines so far."""
        return self._journal.getvalue().splitlines()

    def run(self, work: Callable[[httpx.AsyncClient], Awaitable[object]]) -> object:
        """Something with a client, in the event loop of the app."""

        async def go() -> object:
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://inside", timeout=PATIENCE) as client:
                return await work(client)

        return self._runner.run(go())

    def ask(self, method: str, path: str, token: str | None = None, **what: object) -> httpx.Response:
        """One request."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        headers |= what.pop("headers", {})  # type: ignore[arg-type]
        answer = self.run(lambda client: client.request(method, path, headers=headers, **what))  # type: ignore[arg-type]
        assert isinstance(answer, httpx.Response)
        return answer

    def begin(self) -> None:
        self._runner.run(self._lifespan.__aenter__())

    def end(self) -> None:
        self._runner.run(self._lifespan.__aexit__(None, None, None))
        self._runner.close()


@contextmanager
def inside(*configs: Path, settings: LimitSettings = UNLIMITED) -> Iterator[Inside]:
    """An app over data sets, for the block."""
    journal = io.StringIO()
    with DataSets.open(configs) as datasets:
        asked = Inside(make_app(datasets, settings, journal=Journal(journal)), journal)
        asked.begin()
        try:
            yield asked
        finally:
            asked.end()
