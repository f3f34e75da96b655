"""Logging in to the pages with an account elsewhere: to its provider, and back with what the provider says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated
from urllib.parse import parse_qs, urlencode

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from bursar.service.datasets import Guest
from bursar.service.pages.render import page
from bursar.service.pages.visits import NotThere, PageRoute, datasets_of, inside, log_in, visits
from bursar.service.request_limits import Limits

if TYPE_CHECKING:
    from bursar.service.openid import Provider

router = APIRouter(route_class=PageRoute, include_in_schema=False)

COOKIE, PLACE = "bursar-openid", "/-/openid"
"""What a browser must bring back from the provider, and where alone it is sent."""

MINUTES = 10
LONGEST_NEXT = 2_000
"""Longest address to go on to: what a cookie has room for."""

Text = Annotated[str, Query(max_length=10_000)]

NOT_BELIEVED = "That log-in did not work. Try again; if it stays so, ask whoever runs this server."
NOT_LET_IN = "Your account is known, but no data set here has let it in. Ask the data owner to tie it to your name."


@router.get("/-/openid/login")
async def leave_for(request: Request, next: Text = "") -> Response:
    """Send the browser to the provider."""
    from bursar.service.openid import LoginRefused

    try:
        begun = await _provider(request).begin(_back(request))
    except LoginRefused:
        return _refused(request, NOT_BELIEVED, code=503)
    response = RedirectResponse(begun.url, 303)
    login = {"state": begun.state, "nonce": begun.nonce, "verifier": begun.verifier}
    there = inside(next)
    response.set_cookie(
        COOKIE,
        urlencode({**login, "next": there if len(there) <= LONGEST_NEXT else ""}),
        max_age=60 * MINUTES,
        path=PLACE,
        httponly=True,
        samesite="lax",  # it comes back from another site
        secure=request.url.scheme == "https",
    )
    return response


@router.get("/-/openid/callback")
async def come_back(request: Request, state: Text = "", code: Text = "", iss: Text = "") -> Response:
    """The browser is back; whoever the account belongs to visits every data set that has let it in."""
    from bursar.service.openid import Begun, LoginRefused

    provider, limits = _provider(request), request.app.state.limits
    assert isinstance(limits, Limits)
    login = {name: values[0] for name, values in parse_qs(request.cookies.get(COOKIE, "")).items()}
    try:
        if iss not in ("", provider.settings.issuer) or not {"state", "nonce", "verifier"} <= login.keys():
            raise LoginRefused
        begun = Begun(url="", state=login["state"], nonce=login["nonce"], verifier=login["verifier"])
        account = await provider.finish(begun, state=state, code=code, redirect=_back(request))
    except LoginRefused:
        return _refused(request, NOT_BELIEVED)
    let_in = [(data, person) for data in datasets_of(request).values() if (person := data.people.of_account(account))]
    if not let_in:
        limits.failed(request.client.host if request.client else "")
        return _refused(request, NOT_LET_IN)
    there = inside(login.get("next", ""))
    home = f"/{let_in[0][0].name}/ask" if len(let_in) == 1 else "/"
    visited = any(there.startswith(f"/{data.name}/") for data, _ in let_in)
    response = RedirectResponse(there if visited else home, 303)
    for data, person in let_in:
        log_in(response, Guest(person, data, data.people.log_in(person.name)), secure=request.url.scheme == "https")
    response.delete_cookie(COOKIE, path=PLACE, httponly=True, samesite="lax")
    return response


def _provider(request: Request) -> Provider:
    provider: Provider | None = request.app.state.provider
    if provider is None:
        raise NotThere
    return provider


def _back(request: Request) -> str:
    """Where the provider sends browsers back to; it knows the address, and takes no other."""
    return f"{request.base_url}{PLACE.lstrip('/')}/callback"


def _refused(request: Request, told: str, *, code: int = 401) -> Response:
    response = page(request, "front.html", guests=visits(request), next="", wrong="", failed=told, code=code)
    response.delete_cookie(COOKIE, path=PLACE, httponly=True, samesite="lax")
    return response
