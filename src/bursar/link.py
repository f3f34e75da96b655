"""The way to a server: a request and its reply over HTTP, with the refusals of the server as the errors they were.

Guarantees: the token is in one header of a request, and in no text, address or error. It goes to the host that was
named and nowhere else: nothing is followed elsewhere, and without TLS it goes to this machine alone.
"""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from ipaddress import ip_address
from typing import Required, TypedDict
from urllib.parse import quote, unquote, urlsplit

from bursar.errors import (
    AnalystError,
    BudgetError,
    BursarError,
    ConfigError,
    GoalError,
    KeyConflict,
    LedgerError,
    QueryError,
    ServerError,
    SourceError,
    Unsupported,
    Waiting,
)

JSON = "application/json"

NO_ADDRESS = "this is not the address of a data set\ntry: https://HOST/DATA, with nothing before or behind it"

PAUSES = (0.1, 0.4, 1.6)
"""Seconds between the attempts to send a request."""

MOST_PATIENCE = 60.0
"""Seconds for which a request that is one too many is put off."""

GATEWAYS = (502, 503, 504)
"""What a proxy says for a server that is not there just now."""


class Link:
    """Requests to one data set of a server. Connections are kept; any number of threads may use it."""

    def __init__(
        self, url: str, token: str, *, timeout: float, insecure: bool = False, tls: ssl.SSLContext | None = None
    ) -> None:
        if not token.isascii() or not token.isprintable() or " " in token:
            raise AnalystError("this is no token\ntry: one as bursar user add prints it")
        self._headers, self._timeout = {"Authorization": f"Bearer {token}"}, timeout
        try:
            parts = urlsplit(url)
            self._host, self._port = parts.hostname, parts.port
        except ValueError:
            raise ServerError(NO_ADDRESS) from None
        *prefix, data = [part for part in parts.path.split("/") if part] or [""]
        extra = parts.username is not None or parts.query or parts.fragment
        if parts.scheme not in ("http", "https") or self._host is None or extra or not data:
            raise ServerError(NO_ADDRESS)
        secure = parts.scheme == "https"
        if not (secure or insecure or loopback(self._host)):
            raise ServerError(f"without TLS anybody on the way to {self._host} could read the token\ntry: https://")
        self._tls = (tls or ssl.create_default_context()) if secure else None
        self.server, self.url = f"{parts.scheme}://{parts.netloc}", url
        self._base = "".join(f"/{quote(unquote(part), safe='')}" for part in (*prefix, "v1", data))
        self._idle: list[HTTPConnection] = []

    def send(
        self,
        method: str,
        path: str,
        body: Mapping[str, object] | None = None,
        *,
        accept: str = JSON,
        key: str | None = None,
        again: bool = True,
    ) -> bytes:
        """The body of the reply; what is refused is raised.

        `again` says whether the request may be sent once more where the connection was lost: it has a key, or costs
        nothing.
        """
        headers = self._headers | {"Accept": accept}
        if key is not None:
            if not (0 < len(key) <= 200 and key.isascii() and key.isprintable() and key == key.strip()):
                raise QueryError("a key that goes to a server has 1 to 200 letters of ASCII, and no space at its ends")
            headers["Idempotency-Key"] = key
        content = None if body is None else json.dumps(body, default=float, allow_nan=False).encode()
        if content is not None:
            headers["Content-Type"] = JSON
        put_off, pauses = 0.0, iter(PAUSES)
        while True:
            connection = None
            try:
                connection = self._connection(reused=again)
                with ExitStack() as broken:
                    broken.callback(connection.close)
                    connection.request(method, self._base + path, content, headers)
                    response = connection.getresponse()
                    reply = response.read()
                    broken.pop_all()
            except (OSError, HTTPException) as fault:
                sent, pause = connection is not None, next(pauses, None)
                if pause is None or (sent and not again) or isinstance(fault, TimeoutError | ssl.SSLError):
                    raise self._lost(fault, sent=sent) from None
                time.sleep(pause)
                continue
            if connection.sock is not None:  # else the server has said that it was the last reply
                self._idle.append(connection)
            if 200 <= response.status < 300:
                return reply
            error, after = refusal(response.status, reply), response.headers.get("Retry-After", "")
            if response.status == 429 and put_off < MOST_PATIENCE:  # nothing has happened yet
                pause = float(after) if after.isdecimal() else 1.0
                put_off += pause
            elif again and response.status in GATEWAYS and type(error) is ServerError:
                pause = next(pauses, None)
            else:
                pause = None
            if pause is None:
                raise error
            time.sleep(pause)

    def lines(self, path: str) -> Iterator[str]:
        """The lines of a reply that goes on for long, as they come."""
        with closing(self._connection(reused=False)) as connection:
            connection.request("GET", self._base + path, None, self._headers)
            response = connection.getresponse()
            if response.status != 200:
                raise refusal(response.status, response.read())
            for line in response:
                yield line.decode().rstrip("\r\n")

    def close(self) -> None:
        """Close all connections."""
        while self._idle:
            self._idle.pop().close()

    def _connection(self, *, reused: bool) -> HTTPConnection:
        """One that was used before, where it does no harm if the server has closed it meanwhile; else a new one."""
        with suppress(IndexError):
            if reused:
                return self._idle.pop()
        assert self._host is not None
        if self._tls is None:
            connection = HTTPConnection(self._host, self._port, timeout=self._timeout)
        else:
            connection = HTTPSConnection(self._host, self._port, timeout=self._timeout, context=self._tls)
        connection.connect()
        return connection

    def _lost(self, fault: Exception, *, sent: bool) -> ServerError:
        why = getattr(fault, "verify_message", None) or getattr(fault, "strerror", None) or type(fault).__name__
        if not sent:
            return ServerError(f"the server {self.server} cannot be reached: {why}")
        if isinstance(fault, TimeoutError):
            why = f"no reply within {self._timeout:g} s"
        return ServerError(
            f"the connection to {self.server} was lost: {why}\n"
            "try: the same again; what was bought is in the log, and is not paid for twice"
        )


def loopback(host: str) -> bool:
    """Whether it is this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class _Fault(TypedDict, total=False):
    """What a server says when it refuses."""

    code: Required[str]
    text: Required[str]
    position: int | None
    sql: str | None
    rewrite: str | None
    differs: str | None
    left: float
    asked: float
    unit: str
    limit: str
    spent: str
    ticket: int
    situation: str
    request_id: str


KINDS: dict[str, type[BursarError]] = {
    "goal": GoalError,
    "config": ConfigError,
    "unsupported": Unsupported,
    "analyst": AnalystError,
    "key": KeyConflict,
    "source": SourceError,
    "ledger": LedgerError,
    "token": AnalystError,
    "role": AnalystError,
    "data": AnalystError,
    "request": QueryError,
}
"""Errors that have a text alone, by the code of the refusal."""


def refusal(status: int, reply: bytes) -> BursarError:
    """The error that a server has refused with, as it would have been raised there."""
    try:
        fault: _Fault = json.loads(reply)
        return error_of(fault)
    except (ValueError, KeyError, TypeError):
        return ServerError(f"this is not how a server of Bursar answers: status {status}\ntry: another address")


def error_of(fault: _Fault) -> BursarError:
    """The same for what it has said."""
    text, rewrite = fault["text"], fault.get("rewrite") or ""
    match fault["code"]:
        case "question":
            place = fault.get("position")
            place = -1 if place is None else place
            differs = fault.get("differs") or ""
            return QueryError(text, text=fault.get("sql") or "", position=place, rewrite=rewrite, differs=differs)
        case "budget":
            return BudgetError(
                asked=fault["asked"],
                left=fault["left"],
                unit=fault["unit"],
                fits=rewrite,
                limit=fault["limit"],
                meaning=text.partition("\n")[2],
                spent=fault.get("spent", BudgetError.spent),
            )
        case "waiting":
            return Waiting(ticket=fault["ticket"], situation=fault["situation"])
        case code if code in KINDS:
            return KINDS[code](f"{text}\ntry: {rewrite}" if rewrite else text)
    return ServerError(f"{text} (request {fault.get('request_id', '')})")
