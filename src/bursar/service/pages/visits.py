"""Who looks at a page: the cookie of a browser, where requests may come from, and what every reply says about itself.

The cookie holds a secret of its own, never the token: whoever finds it can do nothing once the visit or the token is
over. Requests that change something must come from a page of this server.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import quote, urlsplit

from fastapi import Depends, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from bursar.errors import BursarError, QueryError
from bursar.service.datasets import DataSet, DataSets, Guest
from bursar.service.errors import Fault, Refusal, internal, refusal_of, without_paths
from bursar.service.journal import Journal
from bursar.service.pages.render import fragment, page
from bursar.service.people import VISIT_SECONDS, Role
from bursar.service.request_limits import Limits, TooMuch
from bursar.service.wall import request_id
from bursar.session import Bursar

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Scripts and styles come from files of this server alone; no other site can frame a page, or learn where one was."""


class NotLoggedIn(Exception):
    """The browser has no visit to this data set."""


class Forbidden(Exception):
    """The page is for data owners, or the request came from another site."""


class NotThere(Exception):
    """No such data set, as far as this person is told."""


@dataclass(frozen=True)
class Visit:
    """Somebody at a page: who, and which data set."""

    guest: Guest
    request: Request

    @property
    def data(self) -> DataSet:
        """The data set of the page."""
        return self.guest.data

    @property
    def name(self) -> str:
        """Who it is."""
        return self.guest.person.name

    @property
    def owner(self) -> bool:
        """Whether they look after the data set."""
        return self.guest.person.role is Role.OWNER

    @property
    def can_set_up(self) -> bool:
        """Whether they may set up new data sets: the server has a place for them."""
        return self.owner and datasets_of(self.request).room is not None

    @property
    def session(self) -> Bursar:
        """The data set as this person asks it."""
        return self.data.session(self.guest.person)

    @property
    def sight(self) -> Bursar:
        """The data set as this person may look back at it: an owner sees everybody's questions."""
        return self.data.bursar if self.owner else self.session

    @property
    def home(self) -> str:
        """Where the pages of this data set are."""
        return f"/{quote(self.data.name)}"


def datasets_of(request: Request) -> DataSets:
    """The data sets that the server has open."""
    datasets = request.app.state.datasets
    assert isinstance(datasets, DataSets)
    return datasets


def visits(request: Request) -> list[Guest]:
    """All data sets that this browser is logged in to."""
    guests = (_guest(request, data) for data in datasets_of(request).values())
    return [guest for guest in guests if guest is not None]


def _guest(request: Request, data: DataSet | None) -> Guest | None:
    secret = None if data is None else request.cookies.get(cookie(data))
    if data is None or secret is None or (holder := data.people.visitor(secret)) is None:
        return None
    return Guest(holder[0], data, holder[1])


def cookie(data: DataSet) -> str:
    """The name of the cookie for a data set: one browser can visit several."""
    return f"bursar-{data.name}"


async def visit(request: Request) -> Visit:
    """Who looks at a page of the data set; whoever does not, or may not, learns not even whether it exists."""
    return Visit(request.state.guest, request)


async def owners_visit(request: Request) -> Visit:
    """The same on pages for data owners alone."""
    visitor = await visit(request)
    if not visitor.owner:
        raise Forbidden
    return visitor


AnyVisit = Annotated[Visit, Depends(visit)]
OwnersVisit = Annotated[Visit, Depends(owners_visit)]


def log_in(response: Response, guest: Guest, *, secure: bool) -> None:
    """Give the browser a cookie for its visit."""
    secret = guest.data.people.begin_visit(guest.token)
    response.set_cookie(
        cookie(guest.data), secret, max_age=VISIT_SECONDS, httponly=True, samesite="strict", secure=secure
    )


def log_out(request: Request, response: Response, data: DataSet) -> None:
    """End the visit, in the server and in the browser."""
    if (secret := request.cookies.get(cookie(data))) is not None:
        data.people.end_visit(secret)
    response.delete_cookie(cookie(data), httponly=True, samesite="strict")


def inside(there: str) -> str:
    """A path of this server, or nothing: nobody is led elsewhere."""
    return there if there.startswith("/") and not there.startswith(("//", "/\\")) else ""


def from_here(request: Request) -> bool:
    """Whether a request was made by a page of this server, and not by another site in the same browser."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    origin = request.headers.get("origin")
    return origin is not None and urlsplit(origin).netloc == request.headers.get("host")


def from_elsewhere(request: Request) -> bool:
    """Whether a link on another site was followed, or a provider of log-ins sent the browser.

    A strict cookie is not sent then: the same page, asked for by a page of ours, gets it.
    """
    return request.method == "GET" and request.headers.get("sec-fetch-site") == "cross-site"


class PageRoute(APIRoute):
    """A route whose refusals are pages, and whose replies have the headers that every page has.

    Who asks is known before the rest of the request is read.
    """

    largest_body: int | None = None
    """Bytes; None: as much as the limits of the server allow."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[None, None, Response]]:
        """A handler that checks where a form comes from, its size and who sends it, and turns refusals into pages."""
        answer = super().get_route_handler()

        async def handler(request: Request) -> Response:
            limits: Limits = request.app.state.limits
            try:
                if request.method not in ("GET", "HEAD"):
                    if not from_here(request):
                        raise Forbidden
                    most = limits.settings.largest_body if self.largest_body is None else self.largest_body
                    if int(request.headers.get("content-length", most + 1)) > most:
                        raise TooMuch(f"a request has at most {most} bytes, and says beforehand how many", 0)
                if "data" not in request.path_params:
                    response = await answer(request)
                else:
                    guest = _guest(request, datasets_of(request).get(request.path_params["data"]))
                    if guest is None:
                        raise NotLoggedIn
                    request.state.guest = guest
                    with limits.request(guest.token):
                        response = await answer(request)
            except NotLoggedIn:
                response = _to_login(request)
            except Forbidden:
                response = message(request, title="Not for you", text=FORBIDDEN, code=403)
            except NotThere:
                response = message(request, title="Nothing here", text=NOT_THERE, code=404)
            except TooMuch as much:
                response = message(request, title="Too much at once", text=much.text, code=429)
                response.headers["Retry-After"] = str(much.seconds)
            except HTTPException as error:  # a body that is no form, or that did not come in time
                if isinstance(error.__cause__, Refusal):
                    response = refusal(request, error.__cause__)
                else:
                    response = message(request, title="That was refused", text=MISSING, code=422)
            except RequestValidationError:
                response = message(request, title="That was refused", text=MISSING, code=422)
            except (BursarError, Refusal) as error:
                response = refusal(request, error)
            except Exception as fault:
                journal: Journal = request.app.state.journal
                journal.fault(fault, request_id(request))
                text = f"{internal().fault.text}, {request_id(request)}."
                response = message(request, title="That went wrong", text=text, code=500)
            for name, value in HEADERS.items():
                response.headers.setdefault(name, value)
            return response

        return handler


def message(request: Request, *, title: str, text: str, code: int) -> Response:
    """A page with a sentence on it, or the sentence alone where a script has asked."""
    if "hx-request" in request.headers:
        return fragment("refusal.html", fault=Fault(code="page", text=text), marked=None, code=code)
    guest: Guest | None = getattr(request.state, "guest", None)
    here = None if guest is None else Visit(guest, request)
    return page(request, "message.html", visit=here, title=title, text=text, code=code)


MISSING = "Something in the form is missing, or is not what belongs there."
FORBIDDEN = "This page is for the people who look after the data set, or the request came from another site."
NOT_THERE = "There is nothing at this address."


def refusal(request: Request, error: BursarError | Refusal) -> Response:
    """What was refused, and why: a part of a page where a script has asked, else a page."""
    folders = tuple(str(data.config.path.parent) for data in datasets_of(request).values())
    refused = without_paths(error if isinstance(error, Refusal) else refusal_of(error), folders)
    if "hx-request" in request.headers:
        text = error.text if isinstance(error, QueryError) else ""
        where = marked(text, refused.fault.position)
        return fragment("refusal.html", fault=refused.fault, marked=where, code=refused.status)
    return message(request, title="That was refused", text=refused.fault.text, code=refused.status)


def marked(sql: str, position: int | None) -> tuple[str, str, str] | None:
    """The line of a question in which something is wrong, split before and after the word."""
    if position is None or position > len(sql):
        return None
    begin, end = sql.rfind("\n", 0, position) + 1, sql.find("\n", position)
    line, at = sql[begin : end if end >= 0 else len(sql)], position - begin
    word = len(line[at:].split(" ")[0]) or 1
    return line[:at], line[at : at + word] or " ", line[at + word :]


def _to_login(request: Request) -> Response:
    there = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    if "hx-request" in request.headers:
        return Response(status_code=401, headers={"HX-Redirect": "/"})
    if from_elsewhere(request):
        return page(request, "again.html", there=there)
    return RedirectResponse(f"/?next={quote(there)}" if request.method == "GET" else "/", status_code=303)
