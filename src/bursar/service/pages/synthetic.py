"""Synthetic tables: what one would cost, making it as a job, its progress, its rows, and how far to believe it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Form, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from pydantic import ValidationError

from bursar.errors import GoalError
from bursar.report.status import OWNER
from bursar.service import job_routes
from bursar.service.bodies import SynthBody
from bursar.service.datasets import Guest
from bursar.service.jobs import Job, JobState
from bursar.service.pages.render import fragment, page
from bursar.service.pages.visits import AnyVisit, NotThere, PageRoute, Visit
from bursar.service.people import Person, Role

router = APIRouter(route_class=PageRoute, include_in_schema=False)

Text = Annotated[str, Form(max_length=20_000)]


def wanted(rows: Text = "", spend: Text = "", ways: Text = "", seconds: Text = "", kind: Text = "csv") -> SynthBody:
    """The form: what is left empty is left to Bursar."""
    try:
        return SynthBody.model_validate(
            {
                "rows": int(rows) if rows.strip() else None,
                "spend": float(spend) if spend.strip() else None,
                "ways": int(ways) if ways.strip() else None,
                "seconds": float(seconds) if seconds.strip() else None,
                "format": kind,
            }
        )
    except (ValidationError, ValueError):
        raise GoalError("rows, columns, budget and seconds are positive numbers, and may be left empty") from None


@router.get("/{data}/synthetic")
def tables(visit: AnyVisit) -> HTMLResponse:
    """The form, and the tables that were made."""
    maker = _maker(visit)
    jobs = [job for job in job_routes.jobs_of(visit.request, maker).of(maker.person.name) if job.kind == "synth"]
    may_spend = visit.owner or bool(visit.data.bursar.kernel.shares())
    unit = visit.data.config.budget.mode.unit
    return page(visit.request, "synthetic.html", visit=visit, jobs=jobs, unit=unit, may_spend=may_spend)


@router.post("/{data}/synthetic/explain")
def explain(visit: AnyVisit, rows: Text = "", spend: Text = "", ways: Text = "") -> HTMLResponse:
    """What a table would cost and how exact it would be; free."""
    body = wanted(rows, spend, ways)
    prepared = visit.sight.prepare_synthesis(rows=body.rows, spend=body.spend, ways=body.ways, wait=False)
    return fragment("synthetic_price.html", explanation=prepared.explain())


@router.post("/{data}/synthetic")
def make(
    visit: AnyVisit, rows: Text = "", spend: Text = "", ways: Text = "", seconds: Text = "", kind: Text = "csv"
) -> Response:
    """Begin a table; it goes on when the page is left."""
    begun = job_routes.synth(_maker(visit), wanted(rows, spend, ways, seconds, kind), visit.request)
    return RedirectResponse(f"{visit.home}/synthetic/{json.loads(bytes(begun.body))['id']}", 303)


@router.get("/{data}/synthetic/{job}")
def table(visit: AnyVisit, job: str) -> HTMLResponse:
    """How far a table is, or how far to believe it."""
    making = _found(visit, job)
    report = None
    if making.state is JobState.DONE:
        report = json.loads(bytes(job_routes.report(_maker(visit), visit.request, job).body))
    return page(visit.request, "table.html", visit=visit, job=making, report=report)


@router.get("/{data}/synthetic/{job}/events")
async def events(visit: AnyVisit, job: str) -> Response:
    """Its progress as it comes."""
    return await job_routes.events(_maker(visit), visit.request, job)


@router.get("/{data}/synthetic/{job}/rows")
def rows(visit: AnyVisit, job: str) -> Response:
    """Its rows, as a file."""
    response = job_routes.result(_maker(visit), visit.request, _found(visit, job).id)
    ending = "csv" if response.headers["content-type"].startswith("text/csv") else "parquet"
    response.headers["Content-Disposition"] = f'attachment; filename="{visit.data.name}-synthetic.{ending}"'
    return response


@router.post("/{data}/synthetic/{job}/stop")
def stop(visit: AnyVisit, job: str) -> Response:
    """Stop making it. What it has paid for is kept."""
    job_routes.stop(_maker(visit), visit.request, job)
    return RedirectResponse(f"{visit.home}/synthetic/{job}", 303)


def _found(visit: Visit, name: str) -> Job:
    job = job_routes.jobs_of(visit.request, _maker(visit)).find(_maker(visit).person.name, name)
    if job is None or job.kind != "synth":
        raise NotThere
    return job


def _maker(visit: Visit) -> Guest:
    """Under whose name tables are made: whoever looks after the data does it as the data owner, who alone may spend."""
    return replace(visit.guest, person=Person(OWNER, Role.OWNER)) if visit.owner else visit.guest
