"""The front door: logging in with a token, logging out, and the files that pages are made with."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Query, Request, Response
from fastapi.responses import RedirectResponse

from bursar.service.pages.render import page
from bursar.service.pages.visits import (
    AnyVisit,
    PageRoute,
    datasets_of,
    from_elsewhere,
    inside,
    log_in,
    log_out,
    visits,
)
from bursar.service.request_limits import Limits

router = APIRouter(route_class=PageRoute, include_in_schema=False)

NOBODYS = "This token is nobody's: it was mistyped, has expired, or was taken back. Ask the data owner for a new one."


@router.get("/")
def front(request: Request, next: Annotated[str, Query(max_length=200_000)] = "") -> Response:
    """The form to log in with, and the data sets that this browser is logged in to."""
    guests = visits(request)
    if not guests and from_elsewhere(request):
        return page(request, "again.html", there="/")
    if len(guests) == 1 and len(datasets_of(request)) == 1 and not next:
        return RedirectResponse(f"/{guests[0].data.name}/ask", 303)
    return page(request, "front.html", guests=guests, next=inside(next), wrong="", failed="")


@router.post("/-/login")
async def enter(
    request: Request,
    token: Annotated[str, Form(max_length=1000)],
    next: Annotated[str, Form(max_length=200_000)] = "",
) -> Response:
    """The token is looked at once, and goes no further."""
    guest = datasets_of(request).guest(token.strip())
    if guest is None:
        limits: Limits = request.app.state.limits
        limits.failed(request.client.host if request.client else "")
        return page(
            request, "front.html", guests=visits(request), next=inside(next), wrong=NOBODYS, failed="", code=401
        )
    there = inside(next)
    response = RedirectResponse(there if there.startswith(f"/{guest.data.name}/") else f"/{guest.data.name}/ask", 303)
    log_in(response, guest, secure=request.url.scheme == "https")
    return response


@router.post("/{data}/logout")
def leave(visit: AnyVisit) -> Response:
    """End the visit."""
    response = RedirectResponse("/", 303)
    log_out(visit.request, response, visit.data)
    return response


@router.get("/{data}")
def home(visit: AnyVisit) -> Response:
    """A data set by its name alone."""
    return RedirectResponse(f"{visit.home}/ask", 303)
