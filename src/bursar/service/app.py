"""Door 1: HTTP. What `bursar.open` has, as routes under /v1/{data}/; engine calls run in threads, one per request."""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date
from typing import Annotated

from fastapi import APIRouter, FastAPI, Header, Query, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from bursar import __version__
from bursar.answer import Answer
from bursar.errors import BursarError
from bursar.service.access import Analyst
from bursar.service.bodies import Asked, Question
from bursar.service.datasets import DataSets
from bursar.service.errors import Fault, Refusal, refusal_of, refused, response, without_paths

STORED = "application/vnd.bursar.answer+json"
"""The stored form of an answer, of which `Answer.from_bytes` makes an equal one."""

ARROW = "application/vnd.apache.arrow.stream"

Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        description="Names the question for good: sent again, the same bytes come back, and nothing is charged.",
        min_length=1,
        max_length=200,
    ),
]

api = APIRouter(prefix="/v1/{data}")


@api.post("/query", summary="Ask a question; the answer is paid from the budget")
def query(guest: Analyst, body: Asked, request: Request, key: Key = None) -> Response:
    """Nobody waits inside the server: where it is somebody else's turn, the refusal has a ticket to come again with."""
    session = guest.data.session(guest.person)
    answer = session.query(body.sql, **body.goal, horizon=body.horizon, key=key, wait=False, ticket=body.ticket)
    return answered(answer, request.headers.get("accept", ""))


@api.post("/explain", summary="Every way to answer a question, with its price and error; free")
def explain(guest: Analyst, body: Question) -> Response:
    session = guest.data.session(guest.person)
    return json_of(session.explain(body.sql, **body.goal, horizon=body.horizon).to_json())


@api.get("/budget", summary="What is spent, on what, and what is left; others' parts only for the owner")
def budget(
    guest: Analyst,
    saved: Annotated[bool, Query(description="Also what plain noise would have spent on the same questions.")] = False,
) -> Response:
    session = guest.data.session(guest.person)
    return json_of({**asdict(session.budget()), "spending": session.spending(saved=saved).to_json()})


@api.get("/log", summary="Your own questions and what each cost, oldest first")
def log(
    guest: Analyst, last: Annotated[int | None, Query(ge=0, le=2**31, description="Only so many, the newest.")] = None
) -> Response:
    return json_of([asdict(line) for line in guest.data.session(guest.person).log(last)])


@api.get("/columns", summary="The table, its columns and their values, as the data owner has declared them")
def columns(guest: Analyst) -> Response:
    config = guest.data.config
    return json_of({"table": config.table, "columns": [column.to_json() for column in config.columns.attributes]})


def answered(answer: Answer, accept: str) -> Response:
    """An answer in the first form that the client takes; JSON unless it names another."""
    for kind in [part.partition(";")[0].strip() for part in accept.split(",")]:
        match kind:
            case "text/csv":
                return Response(answer.to_csv(), media_type="text/csv; charset=utf-8")
            case _ if kind == STORED:
                return Response(answer.to_bytes(), media_type=STORED)
            case _ if kind == ARROW:
                return Response(arrow(answer), media_type=ARROW)
            case "application/json" | "application/*" | "*/*" | "":
                break
    return json_of(answer.to_json())


def arrow(answer: Answer) -> bytes:
    """An answer as a stream of Arrow; what it says about itself is in the metadata of the schema."""
    from bursar.report.columns import library

    pa = library("pyarrow.ipc", extra="arrow", what="an answer as Arrow")
    table, sink = answer.to_arrow(), library("pyarrow", extra="arrow", what="an answer as Arrow").BufferOutputStream()
    with pa.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    body: bytes = sink.getvalue().to_pybytes()
    return body


def json_of(value: object, status: int = 200) -> Response:
    """Plain values as JSON that any reader understands: what is not finite is null, a date is text."""
    return Response(json.dumps(_plain(value), allow_nan=False), status, media_type="application/json")


def _plain(value: object) -> object:
    match value:
        case float():
            return value if math.isfinite(value) else None
        case date():
            return value.isoformat()
        case Mapping():
            return {key: _plain(item) for key, item in value.items()}
        case str():
            return value
        case Sequence():
            return [_plain(item) for item in value]
    return value


def make_app(datasets: DataSets) -> FastAPI:
    """The server over open data sets."""
    app = FastAPI(title="Bursar", version=__version__, docs_url=None, redoc_url=None)
    app.state.datasets = datasets
    app.include_router(api, responses={"default": {"model": Fault}})
    folders = tuple(str(data.config.path.parent) for data in datasets.values())

    @app.exception_handler(Refusal)
    async def _(request: Request, refusal: Refusal) -> Response:
        return response(refusal, secrets.token_hex(8))

    @app.exception_handler(BursarError)
    async def _(request: Request, error: BursarError) -> Response:
        return response(without_paths(refusal_of(error), folders), secrets.token_hex(8))

    @app.exception_handler(RequestValidationError)
    async def _(request: Request, error: RequestValidationError) -> Response:
        told = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()[:5])
        return response(refused(422, "request", told), secrets.token_hex(8))

    @app.exception_handler(HTTPException)
    async def _(request: Request, error: HTTPException) -> Response:
        return response(refused(error.status_code, "http", str(error.detail)), secrets.token_hex(8))

    return app
