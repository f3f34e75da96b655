"""The wall: what every HTTP request passes before a route sees it, and every response before a client does.

A request gets an id; under /v1/ it needs a token that is good before even its body is read, and has to be sent in
time, within sizes and limits. What goes wrong inside becomes one constant text, and a line in the journal.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from contextlib import ExitStack
from typing import Protocol

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bursar.service.access import GUARDED
from bursar.service.datasets import DataSets, Guest
from bursar.service.errors import Refusal, internal, refused, response
from bursar.service.journal import Journal, Metrics
from bursar.service.request_limits import Limits, TooMuch

HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
]
"""What a response says to browsers, unless it says something else itself."""


SLOWEST = 20_000
"""Bytes per second in which a large upload must come."""


class Logins(Protocol):
    """Whoever else says who people are."""

    async def holder(self, token: str) -> str | None:
        """The account of whom a signed token is; None where it cannot be believed."""


class Wall:
    """An ASGI application around another one."""

    def __init__(
        self,
        inner: ASGIApp,
        *,
        datasets: DataSets,
        limits: Limits,
        journal: Journal,
        metrics: Metrics,
        logins: Logins | None = None,
    ) -> None:
        self._inner, self._datasets, self._logins = inner, datasets, logins
        self._limits, self._journal, self._metrics = limits, journal, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        passage = _Passage(scope, send)
        start = time.monotonic()
        with ExitStack() as held:
            try:
                try:
                    if scope["path"].startswith(GUARDED):
                        guest = passage.guest = await self._let_in(scope)
                        held.enter_context(self._limits.request(guest.token))
                        receive = await self._body(scope, receive)
                    else:
                        receive = self._hurried(scope, receive)
                    await self._inner(scope, receive, passage.send)
                except TooMuch as much:
                    raise refused(429, "limit", much.text, Retry_After=str(much.seconds)) from None
            except Refusal as refusal:
                await response(refusal, passage.id)(scope, receive, passage.send)
            except Exception as fault:
                self._journal.fault(fault, passage.id)
                if passage.status:
                    raise  # half of the response has gone: nothing but the end of the connection can tell
                await response(internal(), passage.id)(scope, receive, passage.send)
            finally:
                self._note(passage, time.monotonic() - start)

    async def _let_in(self, scope: Scope) -> Guest:
        scheme, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
        guest = await self._guest(token.strip(), scope["path"]) if scheme.lower() == "bearer" else None
        if guest is None:
            self._limits.failed(scope["client"][0] if scope["client"] else "")
            told = "this needs a token that is good, as a header: Authorization: Bearer TOKEN"
            raise refused(401, "token", told, WWW_Authenticate="Bearer")
        scope["state"]["guest"] = guest
        return guest

    async def _guest(self, token: str, path: str) -> Guest | None:
        if self._logins is None or token.count(".") != 2:  # which none of ours has
            return self._datasets.guest(token)
        account = await self._logins.holder(token)
        return None if account is None else self._datasets.guest_of(account, [*path.split("/"), "", ""][2])

    async def _body(self, scope: Scope, receive: Receive) -> Receive:
        """Read a body as a whole, in time and within its size; what then is received is what was read."""
        most, headers = self._limits.settings.largest_body, Headers(scope=scope)
        if (length := headers.get("content-length")) is not None and length.isdecimal() and int(length) > most:
            raise _too_large(most)
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._limits.settings.body_seconds):
                more = True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise refused(408, "slow", "the request was not sent to its end")
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    more = message.get("more_body", False)
                    if size > most:
                        raise _too_large(most)
        except TimeoutError:
            raise refused(408, "slow", "the request was not sent in time", Connection="close") from None
        whole: list[Message] = [{"type": "http.request", "body": b"".join(parts), "more_body": False}]

        async def replay() -> Message:
            return whole.pop() if whole else await receive()

        return replay

    def _hurried(self, scope: Scope, receive: Receive) -> Receive:
        """What pages are sent is read by them, piece by piece; as a whole it has to come in time all the same."""
        length = Headers(scope=scope).get("content-length", "")
        seconds = self._limits.settings.body_seconds + (int(length) / SLOWEST if length.isdecimal() else 0)
        deadline, more = asyncio.get_running_loop().time() + seconds, True

        async def hurried() -> Message:
            nonlocal more
            if not more:
                return await receive()  # that the client has left, whenever that is
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                raise refused(408, "slow", "the request was not sent in time", Connection="close") from None
            more = message.get("more_body", False)
            return message

        return hurried

    def _note(self, passage: _Passage, seconds: float) -> None:
        route, guest = passage.route, passage.guest
        self._metrics.saw("http", route, str(passage.status), seconds)
        self._journal.write(
            "request",
            request=passage.id,
            method=passage.scope["method"],
            route=route,
            status=passage.status,
            ms=round(1000 * seconds, 1),
            data=None if guest is None else guest.data.name,
            person=None if guest is None else guest.person.name,
            token=None if guest is None else guest.token,
        )


class _Passage:
    """One request on its way through."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self.scope, self._send = scope, send
        self.id, self.status = secrets.token_hex(8), 0
        self.guest: Guest | None = None
        scope.setdefault("state", {})["request_id"] = self.id

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = message["headers"] = list(message.get("headers", ()))
            told = {name for name, _ in headers}
            headers.append((b"x-request-id", self.id.encode()))
            headers += [header for header in HEADERS if header[0] not in told]
        await self._send(message)

    @property
    def route(self) -> str:
        """The route as it is declared, not as it was typed: what somebody types may be anything."""
        route = self.scope.get("route")
        return str(getattr(route, "path", "none"))


def _too_large(most: int) -> Refusal:
    return refused(413, "size", f"a request has at most {most} bytes", Connection="close")


def request_id(request: Request) -> str:
    """The id that a request got at the wall."""
    identifier: str = request.state.request_id
    return identifier
