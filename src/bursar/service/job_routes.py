"""What takes long, over HTTP: begun under /v1/{data}/, left, and found again under /v1/{data}/jobs/."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict
from typing import Annotated

from anyio import to_thread
from fastapi import APIRouter, Depends, Path, Request
from starlette.responses import FileResponse, Response, StreamingResponse

from bursar.planner.batch import Batch
from bursar.service.access import Analyst, described
from bursar.service.answer_formats import PARQUET, answered_together, json_of, plain
from bursar.service.bodies import ReleaseBody, SynthBody
from bursar.service.datasets import Guest
from bursar.service.errors import refused
from bursar.service.jobs import Job, Jobs, JobState, Step, Work
from bursar.service.people import Role
from bursar.service.replies import A_JOB, A_NEW_JOB, A_REPORT, A_RESULT, A_SYNTH_EXPLANATION, EVENTS, JOBS
from bursar.service.routes import Accept, Key, about, checked, collected, session_of
from bursar.session import Bursar
from bursar.synthetic.session import Prepared

jobs = APIRouter(prefix="/v1/{data}", dependencies=[Depends(described)], tags=["jobs"])

POLL_SECONDS = 0.25
QUIET_SECONDS = 15.0
"""After so long without news a stream says that it is alive."""

Id = Annotated[str, Path(description="The id of the job.", examples=["9c1e5a70c2"], max_length=64)]

RELEASED, REPORT = "result.json", "report.json"
"""What the work of a job leaves."""

ROWS = {"csv": "text/csv; charset=utf-8", "parquet": PARQUET}


@jobs.post("/release", status_code=202, responses=A_NEW_JOB)
def release(guest: Analyst, body: ReleaseBody, request: Request, key: Key = None) -> Response:
    """Answer several questions at once, as a job: for batches whose planning takes long.

    Sent again under the same key, the same job is found, and goes on if it was stopped.
    """
    checked(request, *body.questions)
    session = session_of(guest)
    collected(session, body, None)  # refuses what is wrong while the client is there

    def work(step: Step) -> None:
        together = collected(session, body, key, ticket=step.ticket, progress=step.progress)
        (step.folder / RELEASED).write_bytes(together.pay(at_most=body.at_most).to_bytes())

    identity = body.model_dump_json(exclude={"at_most", "ticket"})
    return _begun(request, guest, "release", identity, key, work)


@jobs.post("/synth", status_code=202, responses=A_NEW_JOB)
def synth(guest: Analyst, body: SynthBody, request: Request, key: Key = None) -> Response:
    """Make a synthetic table, as a job; free without `spend`, then it is made of what was measured before.

    Sent again under the same key, the same job is found, and goes on if it was stopped: what was paid for is kept.
    """
    session = _maker(guest)
    planned = _prepared(session, body, None)
    planned.check()

    def work(step: Step) -> None:
        prepared = planned if step.ticket is None else _prepared(session, body, step.ticket)
        table = prepared.make(progress=step.progress, seconds=body.seconds)
        facts = {"charge": table.charge, "summary": table.report.summary(), **table.report.to_json()}
        report = {**facts, "bars": [bars.to_json() for bars in table.report.bars]}
        (step.folder / REPORT).write_text(json.dumps(plain(report), allow_nan=False))
        table.write(step.folder / f"rows.{body.format}")

    return _begun(request, guest, "synth", body.model_dump_json(), key, work)


def _begun(request: Request, guest: Guest, kind: str, body: str, key: str | None, work: Work) -> Response:
    """A job that goes on while its person may come in, whichever of their tokens it was begun with."""
    name, people = guest.person.name, guest.data.people
    job = jobs_of(request, guest).begin(name, kind, body, key, work, allowed=lambda: people.lets_in(name))
    return _reply(job, 202)


@jobs.post("/synth/explain", responses=A_SYNTH_EXPLANATION)
def explain_synth(guest: Analyst, body: SynthBody) -> Response:
    """Every way to make a synthetic table, with its price and the error to expect. Free."""
    prepared = _prepared(_maker(guest), body, None)
    taken = {"method": prepared.method, "why": prepared.why, "price": prepared.price}
    return json_of({**prepared.explain().to_json(), **taken})


def _maker(guest: Guest) -> Bursar:
    """Where there are no shares, only the data owner may spend on a table, so an owner makes it as the data owner."""
    return guest.data.bursar if guest.person.role is Role.OWNER else session_of(guest)


def _prepared(session: Bursar, body: SynthBody, ticket: int | None) -> Prepared:
    return about(session, body.table).prepare_synthesis(
        rows=body.rows,
        ways=body.ways,
        marginals=body.marginals,
        workload=body.workload,
        history=body.history,
        augment=body.augment,
        spend=body.spend,
        method=body.method,
        rounds=body.rounds,
        picks=body.picks,
        relaxed=body.relaxed,
        agree=body.agree,
        search=body.search,
        wait=False,
        ticket=ticket,
    )


@jobs.get("/jobs", responses=JOBS)
def own_jobs(guest: Analyst, request: Request) -> Response:
    """Your jobs, the newest first; those that ended a week ago are gone."""
    return json_of([_shown(job) for job in jobs_of(request, guest).of(guest.person.name)])


@jobs.get("/jobs/{job}", responses=A_JOB)
def status(guest: Analyst, request: Request, job: Id) -> Response:
    """How far a job is."""
    return _reply(_found(request, guest, job))


@jobs.get("/jobs/{job}/events", response_class=StreamingResponse, responses=EVENTS)
async def events(guest: Analyst, request: Request, job: Id) -> Response:
    """How far a job is, as server-sent events, until it has ended; leaving the stream does not stop the job."""
    await to_thread.run_sync(_found, request, guest, job)
    return StreamingResponse(_news(request, guest, job), media_type="text/event-stream")


async def _news(request: Request, guest: Guest, name: str) -> AsyncIterator[str]:
    told, quiet = "", 0.0
    while True:
        job = await to_thread.run_sync(_found, request, guest, name)
        news = json.dumps(_shown(job))
        if news != told:
            yield f"event: {job.state.value}\ndata: {news}\n\n"
            told, quiet = news, 0.0
        elif quiet >= QUIET_SECONDS:
            yield ": still here\n\n"
            quiet = 0.0
        if job.state.over or request.app.state.closing.is_set() or not guest.good:
            return
        await asyncio.sleep(POLL_SECONDS)
        quiet += POLL_SECONDS


@jobs.get("/jobs/{job}/result", responses=A_RESULT)
def result(guest: Analyst, request: Request, job: Id, accept: Accept = "") -> Response:
    """What a job has made: the answers of a release, as /batch gives them, or the rows of a synthetic table."""
    here, done = jobs_of(request, guest), _done(request, guest, job)
    if done.kind == "release":
        return answered_together(Batch.from_bytes(here.result(done, RELEASED).read_bytes()), accept)
    [rows] = [path for ending in ROWS if (path := here.result(done, f"rows.{ending}")).exists()]
    return FileResponse(rows, media_type=ROWS[rows.suffix[1:]])


@jobs.get("/jobs/{job}/report", responses=A_REPORT)
def report(guest: Analyst, request: Request, job: Id) -> Response:
    """How far to believe a synthetic table, column by column."""
    done = _done(request, guest, job)
    if done.kind != "synth":
        raise refused(404, "job", "only a synthetic table has a report")
    return Response(jobs_of(request, guest).result(done, REPORT).read_text(), media_type="application/json")


@jobs.post("/jobs/{job}/stop", responses=A_JOB)
def stop(guest: Analyst, request: Request, job: Id) -> Response:
    """Stop a job at its next step. What it has paid for is kept."""
    stopping = _found(request, guest, job)
    jobs_of(request, guest).stop(stopping)
    return _reply(stopping)


def jobs_of(request: Request, guest: Guest) -> Jobs:
    """The jobs of the data set that a guest asks about."""
    every: Mapping[str, Jobs] = request.app.state.jobs
    return every[guest.data.name]


def _found(request: Request, guest: Guest, name: str) -> Job:
    job = jobs_of(request, guest).find(guest.person.name, name)
    if job is None:
        raise refused(404, "job", "you have no such job")
    return job


def _done(request: Request, guest: Guest, name: str) -> Job:
    job = _found(request, guest, name)
    if job.state is not JobState.DONE:
        raise refused(409, "job", f"the job is {job.state.value}, not done")
    return job


def _shown(job: Job) -> dict[str, object]:
    return {name: value for name, value in asdict(job).items() if name not in ("person", "asked")}


def _reply(job: Job, code: int = 200) -> Response:
    return json_of(_shown(job), code)
