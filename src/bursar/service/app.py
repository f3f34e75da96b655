"""Door 1: HTTP. The routes behind the wall, what they refuse with, and what says how the server is."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from anyio import to_thread
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, Response

from bursar import __version__
from bursar.errors import BursarError
from bursar.service.access import Owner
from bursar.service.datasets import DataSets
from bursar.service.errors import Refusal, refusal_of, refused, response, without_paths
from bursar.service.job_routes import jobs
from bursar.service.jobs import Jobs
from bursar.service.journal import Journal, Metrics
from bursar.service.manual import add_manual
from bursar.service.owner_routes import owner
from bursar.service.question_threads import QuestionThreads
from bursar.service.replies import REFUSALS
from bursar.service.request_limits import Limits, LimitSettings
from bursar.service.routes import api
from bursar.service.wall import Wall, request_id

if TYPE_CHECKING:
    from bursar.service.openid import Provider

DESCRIPTION = """Ask questions about private data in SQL, and say how exact the answers must be.

Every request under `/v1/` needs a token: `Authorization: Bearer TOKEN`. A token is for one data set and one person, and
what is asked is asked under that person's name. Every refusal has the same shape: a `code` that stays, a `text`, and
where it helps a `position` in the SQL, a `rewrite` that would work, and what is `left`.
"""


LOOK_SECONDS = 1.0
"""For how long a look at the ledgers is good."""


def make_app(
    datasets: DataSets,
    settings: LimitSettings | None = None,
    *,
    journal: Journal | None = None,
    metrics: Metrics | None = None,
    provider: Provider | None = None,
) -> FastAPI:
    """The server over open data sets; `provider` says who people are, beside our tokens."""
    settings, journal, metrics = settings or LimitSettings(), journal or Journal(), metrics or Metrics()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        to_thread.current_default_thread_limiter().total_tokens = settings.threads
        app.state.threads = QuestionThreads(settings.threads)
        app.state.jobs = _JobsByDataSet(datasets, journal)
        yield
        for begun in app.state.jobs.values():
            await to_thread.run_sync(begun.close)
        await to_thread.run_sync(app.state.threads.close)

    app = FastAPI(
        title="Bursar",
        version=__version__,
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        responses=REFUSALS,
    )
    app.state.datasets, app.state.metrics, app.state.limits = datasets, metrics, Limits(settings)
    app.state.closing, app.state.journal, app.state.provider = asyncio.Event(), journal, provider
    app.add_middleware(
        Wall, datasets=datasets, limits=app.state.limits, journal=journal, metrics=metrics, logins=provider
    )
    for router in (api, jobs, owner):
        app.include_router(router)
    _refuse(app, datasets)
    _tell(app)
    add_manual(app)
    return app


class _JobsByDataSet(dict[str, Jobs]):
    """The jobs of each data set; those of one that was set up since are there when they are looked for."""

    def __init__(self, datasets: DataSets, journal: Journal) -> None:
        self._datasets, self._journal = datasets, journal
        super().__init__({name: self._of(name) for name in datasets})

    def __missing__(self, name: str) -> Jobs:
        return self.setdefault(name, self._of(name))

    def _of(self, name: str) -> Jobs:
        return Jobs(self._datasets[name].config.ledger_path.with_name("jobs"), self._journal)


def _refuse(app: FastAPI, datasets: DataSets) -> None:
    """One shape for everything that is refused."""
    folders = tuple(str(data.config.path.parent) for data in datasets.values())

    @app.exception_handler(Refusal)
    async def by_the_server(request: Request, refusal: Refusal) -> Response:
        return response(refusal, request_id(request))

    @app.exception_handler(BursarError)
    async def by_the_engine(request: Request, error: BursarError) -> Response:
        return response(without_paths(refusal_of(error), folders), request_id(request))

    @app.exception_handler(RequestValidationError)
    async def by_its_shape(request: Request, error: RequestValidationError) -> Response:
        told = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()[:5])
        typed = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if typed != "application/json" and any(tuple(each["loc"]) == ("body",) for each in error.errors()):
            told = "a question is JSON, and sent with the header Content-Type: application/json"
        return response(refused(422, "request", told), request_id(request))

    @app.exception_handler(HTTPException)
    async def by_its_address(request: Request, error: HTTPException) -> Response:
        if error.status_code == 400:  # a body that is not even text
            return response(refused(422, "request", "body: not JSON"), request_id(request))
        if error.status_code == 405:
            methods = app.openapi()["paths"].get(getattr(request.scope.get("route"), "path", ""), {})
            allowed = ", ".join(method.upper() for method in methods) or "GET"
            return response(refused(405, "http", f"this takes {allowed}", Allow=allowed), request_id(request))
        return response(refused(error.status_code, "http", str(error.detail)), request_id(request))


def _tell(app: FastAPI) -> None:
    """How the server is, for whoever runs it."""
    looked = -math.inf

    @app.get("/healthz", tags=["server"], response_class=PlainTextResponse)
    async def alive() -> PlainTextResponse:
        """That the process is there."""
        return PlainTextResponse("ok\n")

    @app.get("/readyz", tags=["server"], response_class=PlainTextResponse)
    def ready(request: Request) -> PlainTextResponse:
        """That it takes requests, and can read its ledgers."""
        if request.app.state.closing.is_set():
            raise refused(503, "closing", "the server is about to end")
        nonlocal looked
        if time.monotonic() - looked > LOOK_SECONDS:  # anybody may ask, so not every question is a look
            for data in request.app.state.datasets.values():
                data.bursar.budget()
            looked = time.monotonic()
        return PlainTextResponse("ok\n")

    @app.get("/metrics", tags=["server"], response_class=PlainTextResponse)
    async def metrics(guest: Owner, request: Request) -> PlainTextResponse:
        """Counts and latencies by route and outcome, as Prometheus reads them; for owners."""
        text: str = request.app.state.metrics.text()
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4; charset=utf-8")
