"""What an analyst asks for over HTTP: what a session has, under /v1/{data}/.

Nobody waits for a turn inside the server: who would have to is refused with a ticket, and comes again with it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.routing import APIRoute
from starlette.responses import Response

from bursar.batch import EngineBatch, Progress, silent
from bursar.errors import QueryError
from bursar.planner.goals import Wanted
from bursar.planner.request import ONCE
from bursar.service.access import Analyst, asks, described
from bursar.service.answer_formats import JSON, answered, answered_together, json_of
from bursar.service.bodies import AskBody, BatchBody, PassBody, QuestionBody, ThresholdsBody
from bursar.service.datasets import Guest
from bursar.service.replies import (
    A_BATCH,
    A_BATCH_EXPLANATION,
    A_BUDGET,
    A_LOG,
    A_QUEUE,
    AN_ANSWER,
    AN_EXPLANATION,
    COLUMNS,
)
from bursar.session import Bursar

LONGEST_KEY = 200

Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        description="Names the question for good: sent again, the same bytes come back, and nothing is charged.",
        min_length=1,
        max_length=LONGEST_KEY,
    ),
]
MOST_LINES = 10_000
"""Of the log in one reply."""

Accept = Annotated[str, Header(include_in_schema=False)]
Last = Annotated[int, Query(ge=0, le=MOST_LINES, description="So many lines, the newest.")]
Before = Annotated[int | None, Query(ge=1, le=10**18, description="Lines that stand before this position.")]
LinesOf = Annotated[str | None, Query(max_length=200, description="Lines of this analyst.")]
ProposerNamed = Annotated[str | None, Query(max_length=200, description="Lines of this way of answering.")]
Saved = Annotated[bool, Query(description="Also what plain noise would have spent on the same questions.")]

TableNamed = Annotated[str | None, Query(max_length=200, description="One of `tables`; the first unless named.")]

MOST_LINES_AT_ONCE = 500
"""Of an answer that is written in the event loop, while everybody waits."""

api = APIRouter(prefix="/v1/{data}", dependencies=[Depends(described)])


def session_of(guest: Guest) -> Bursar:
    """The data set as the one who asks may use it."""
    return guest.data.session(guest.person)


def about(session: Bursar, table: str | None) -> Bursar:
    """The same about one of several private tables, where one is named."""
    return session if table is None else session.table(table)


def checked(request: Request, *questions: str) -> None:
    """Refuse questions that are too long before anybody reads them."""
    most: int = request.app.state.limits.settings.longest_sql
    for sql in questions:
        if 0 < most < len(sql):
            raise QueryError(f"a question has at most {most} characters here", position=most)


async def query(guest: Analyst, body: AskBody, request: Request, accept: Accept = "", key: Key = None) -> Response:
    """Ask a question; the answer is paid from the budget.

    The answer is JSON, CSV or Arrow, by `Accept`. Where it is somebody else's turn, the refusal has a ticket to come
    again with.
    """
    checked(request, body.sql)
    checked(request, sql := body.question)
    session, threads = session_of(guest), request.app.state.threads
    stated = Wanted(**body.goal, horizon=body.horizon)
    repeated_as = (guest.data.name, sql, stated)
    again = threads.knows(repeated_as)
    if again and (key is None or key.startswith(ONCE)) and body.ticket is None:
        answer = session.repeated(sql, stated)
        if answer is not None and len(answer.labels) <= MOST_LINES_AT_ONCE:
            return answered(answer, accept)

    def asked() -> Response:
        goal, horizon, ticket = body.goal, body.horizon, body.ticket
        return answered(session.query(sql, **goal, horizon=horizon, key=key, wait=False, ticket=ticket), accept)

    response: Response = await threads.run(asked, again=again)
    threads.remember(repeated_as)
    return response


class PlainQuestions(APIRoute):
    """The route that is asked most: a plain request goes straight to its endpoint.

    It is what FastAPI would make of the declaration, without the walk over everything that a request could hold. Any
    other request takes that walk, which also says what is wrong with it.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[None, None, Response]]:
        """A handler that reads a plain JSON body itself, and leaves any other request to the declared one."""
        declared = super().get_route_handler()

        async def handler(request: Request) -> Response:
            headers, body = request.headers, None
            key = headers.get("idempotency-key")
            if headers.get("content-type") == JSON and (key is None or 0 < len(key) <= LONGEST_KEY):
                with suppress(ValueError, RecursionError):
                    body = AskBody.model_validate(json.loads(await request.body()))
            if body is None:
                return await declared(request)
            return await query(await asks(request), body, request, headers.get("accept", ""), key)

        return handler


api.add_api_route(
    "/query", query, methods=["POST"], responses=AN_ANSWER, tags=["ask"], route_class_override=PlainQuestions
)


@api.post("/explain", responses=AN_EXPLANATION, tags=["ask"])
def explain(guest: Analyst, body: QuestionBody, request: Request) -> Response:
    """Every way to answer a question, with its price and error. Free."""
    checked(request, body.sql)
    checked(request, sql := body.question)
    return json_of(session_of(guest).explain(sql, **body.goal, horizon=body.horizon).to_json())


@api.post("/batch", responses=A_BATCH, tags=["ask"])
def batch(guest: Analyst, body: BatchBody, request: Request, accept: Accept = "", key: Key = None) -> Response:
    """Answer several questions at once: planned together, paid once, consistent with each other."""
    checked(request, *body.questions)
    return answered_together(collected(session_of(guest), body, key).pay(at_most=body.at_most), accept)


@api.post("/batch/explain", responses=A_BATCH_EXPLANATION, tags=["ask"])
def explain_batch(guest: Analyst, body: BatchBody, request: Request, key: Key = None) -> Response:
    """Every way to answer several questions at once, and what they would cost one by one. Free.

    The `price` is null where nothing meets the goal, and 0 where the answers are stored under the key.
    """
    checked(request, *body.questions)
    together = collected(session_of(guest), body, key)
    explanation = together.explain()
    price = 0.0 if together.answered else explanation.price
    return json_of({**explanation.to_json(), "price": price, "one_by_one": together.one_by_one})


def collected(
    session: Bursar, body: BatchBody, key: str | None, *, ticket: int | None = None, progress: Progress = silent
) -> EngineBatch:
    """The questions of a body, compiled and not paid."""
    place = body.ticket if ticket is None else ticket
    together = session.batch(**body.goal, horizon=body.horizon, key=key, wait=False, ticket=place, progress=progress)
    for sql in body.questions:
        together.query(sql)
    return together


@api.post("/thresholds", responses=AN_ANSWER, tags=["ask"])
def thresholds(guest: Analyst, body: ThresholdsBody, accept: Accept = "", key: Key = None) -> Response:
    """How many rows have at least r of k values, for every choice of values of every set of k columns."""
    answer = about(session_of(guest), body.table).thresholds(
        body.k, body.r, body.features, **body.goal, key=key, wait=False, ticket=body.ticket
    )
    return answered(answer, accept)


@api.post("/thresholds/explain", responses=AN_EXPLANATION, tags=["ask"])
def explain_thresholds(guest: Analyst, body: ThresholdsBody) -> Response:
    """Every way to answer a set of thresholds, with its price and error. Free."""
    session = about(session_of(guest), body.table)
    return json_of(session.thresholds(body.k, body.r, body.features, explain=True, **body.goal).to_json())


@api.get("/budget", responses=A_BUDGET, tags=["look"])
def budget(guest: Analyst, saved: Saved = False) -> Response:
    """What may be spent, what is spent and on what, and what is left: of the data set, and of your own share."""
    return budget_reply(session_of(guest), saved=saved)


def budget_reply(session: Bursar, *, saved: bool) -> Response:
    """The budget as whoever has the session may see it."""
    return json_of({**asdict(session.budget()), "spending": session.spending(saved=saved).to_json()})


@api.get("/log", responses=A_LOG, tags=["look"])
def log(
    guest: Analyst, last: Last = MOST_LINES, before: Before = None, of: LinesOf = None, proposer: ProposerNamed = None
) -> Response:
    """Your own questions and what each cost, oldest first; everybody's where the config says so.

    These are the newest lines; `before` the position of the first of them are older ones.
    """
    return log_reply(session_of(guest), last, before, of, proposer)


def log_reply(session: Bursar, last: int, before: int | None, of: str | None, proposer: str | None) -> Response:
    """A page of the log as whoever has the session may see it."""
    return json_of([asdict(line) for line in session.log(last, before=before, of=of, proposer=proposer)])


@api.get("/columns", responses=COLUMNS, tags=["look"])
def columns(guest: Analyst, table: TableNamed = None) -> Response:
    """A table, its columns and their values, as the data owner has declared them; nothing is read from the data."""
    facts = about(session_of(guest), table).columns()
    return json_of({**vars(facts), "columns": [column.to_json() for column in facts.columns.attributes]})


@api.get("/queue", responses=A_QUEUE, tags=["look"])
def queue(guest: Analyst) -> Response:
    """Whose turn it is, as far as it concerns you: your own tickets, and how many others wait."""
    return json_of(asdict(session_of(guest).queue()))


@api.post("/queue/pass", responses=A_QUEUE, tags=["ask"])
def let_go(guest: Analyst, body: PassBody) -> Response:
    """Let your turn go: the present one, or the next if it is not your turn."""
    return json_of(asdict(session_of(guest).let_go(away=body.away)))
