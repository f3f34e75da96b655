"""What goes over the wire: to whom a token is sent, what is sent again, and what is not."""

from __future__ import annotations

import json
import re
import socketserver
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

import bursar
from bursar import AnalystError, ServerError, Waiting
from bursar.link import Link, error_of
from bursar.remote import Remote

TOKEN = "bursar_1f_secret"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]"
LAST = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n[]"
BROKEN = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n["
BUSY = b"HTTP/1.1 429 Much\r\nRetry-After: 0\r\nContent-Length: 30\r\n\r\n" + b'{"code": "limit", "text": "x"}'
GONE = b"HTTP/1.1 502 Gone\r\nContent-Length: 4\r\n\r\noops"
MOVED = b"HTTP/1.1 301 Moved\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"


class Scripted(socketserver.ThreadingTCPServer):
    """A server that gives replies one after the other, b"" for none, and keeps what it was sent."""

    def __init__(self, replies: Sequence[bytes]) -> None:
        super().__init__(("127.0.0.1", 0), Replies)
        self.left, self.heard = list(replies), list[str]()


class Replies(socketserver.StreamRequestHandler):
    server: Scripted

    def handle(self) -> None:
        while head := self._head():
            length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
            self.server.heard.append((head + self.rfile.read(int(length[1]) if length else 0)).decode())
            reply = self.server.left.pop(0)
            self.wfile.write(reply)
            if reply in (b"", BROKEN, LAST):
                return

    def _head(self) -> bytes:
        """All lines up to the empty one, or b"" where the client has gone."""
        head = b""
        while (line := self.rfile.readline()) != b"\r\n":
            if not line:
                return b""
            head += line
        return head


@contextmanager
def scripted(*replies: bytes) -> Iterator[tuple[str, list[str]]]:
    with Scripted(replies) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/people", server.heard
        finally:
            server.shutdown()
            thread.join()


def keys(heard: list[str]) -> list[str]:
    return [line for request in heard for line in request.split("\r\n") if line.startswith("Idempotency-Key")]


@pytest.mark.parametrize("trouble", [b"", BROKEN, GONE, BUSY])
def test_what_may_be_sent_again_is_and_under_one_key(trouble: bytes) -> None:
    with scripted(OK, trouble, trouble, OK) as (url, heard), bursar.connect(url, token=TOKEN) as db:
        db.log()
        assert db._ask("/query", {"sql": "x"}, "a", key=None, wait=True, ticket=None) == b"[]"
    assert len(heard) == 4
    assert len(keys(heard)) == 3
    assert len(set(keys(heard))) == 1


def test_what_must_not_be_sent_again_is_not() -> None:
    with scripted(OK, b"", OK) as (url, heard), bursar.connect(url, token=TOKEN) as db:
        db.log()
        with pytest.raises(ServerError, match="was lost"):
            db.let_go()
        db.log()
    assert len(heard) == 3


def test_connections_are_kept_and_none_is_used_that_the_server_has_ended() -> None:
    with scripted(OK, LAST, OK) as (url, heard), bursar.connect(url, token=TOKEN) as db:
        assert db.log() == db.log() == db.log() == []
    assert len(heard) == 3


def test_nothing_is_followed_elsewhere() -> None:
    with scripted(MOVED) as (url, heard), bursar.connect(url, token=TOKEN) as db, pytest.raises(ServerError):
        db.budget()
    assert len(heard) == 1


def test_the_token_is_in_one_header_and_nowhere_else() -> None:
    with scripted(OK) as (url, heard), bursar.connect(url, token=TOKEN) as db:
        db.log()
        told = f"{db!r} {db._link.url} {db._link.server} {db}"
    assert heard[0].count(TOKEN) == 1
    assert f"\r\nAuthorization: Bearer {TOKEN}\r\n" in heard[0]
    assert TOKEN not in told
    with pytest.raises(ServerError) as lost:
        db.log()
    assert TOKEN not in f"{lost.value} {lost.getrepr(style='native')}"


def test_a_token_goes_to_other_machines_by_tls_alone() -> None:
    for url in ("http://example.com/people", "http://10.0.0.1/people", "http://localhost.example.com/people"):
        with pytest.raises(ServerError, match="without TLS"):
            bursar.connect(url, token=TOKEN)
        assert isinstance(bursar.connect(url, token=TOKEN, insecure=True), Remote)
    for url in ("http://localhost/people", "http://127.1.2.3:8/people", "http://[::1]/people", "https://host/a/b"):
        assert isinstance(bursar.connect(url, token=TOKEN), Remote)


@pytest.mark.parametrize(
    "url",
    ["", "host/people", "ftp://host/p", "https://host", "https://u:p@host/d", "https://host/d?token=x", "http://h:x/"],
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ServerError, match="not the address"):
        bursar.connect(url, token=TOKEN)


def test_what_is_no_token_is_refused_without_a_word_of_it() -> None:
    for token in ("two words", "line\r\nHost: elsewhere", "ü"):
        with pytest.raises(AnalystError) as refused:
            bursar.connect("https://host/people", token=token)
        assert token not in str(refused.value)


def test_the_path_of_a_proxy_stays_before_the_routes() -> None:
    with scripted(OK) as (url, heard):
        link = Link(url.replace("/people", "/stat%20office/pe ople"), TOKEN, timeout=5)
        link.send("GET", "/log")
        link.close()
    assert heard[0].startswith("GET /stat%20office/v1/pe%20ople/log HTTP/1.1")


def test_a_turn_is_waited_for_with_the_ticket(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bursar.remote.TURN_SECONDS", 0)
    body = json.dumps({"code": "waiting", "text": "x", "ticket": 7, "situation": "bob"}).encode()
    turn = b"HTTP/1.1 409 Wait\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    with scripted(turn, turn, OK, turn) as (url, heard), bursar.connect(url, token=TOKEN) as db:
        said: list[str] = []
        db.tell = said.append
        assert db._ask("/query", {"sql": "x"}, "a", key=None, wait=True, ticket=None) == b"[]"
        with pytest.raises(Waiting) as waiting:
            db.query("x", within=5, wait=False)
    assert waiting.value == Waiting(ticket=7, situation="bob")
    assert said == ["bob"]
    assert ['"ticket": 7' in request for request in heard] == [False, True, True, False]


def test_every_error_of_a_server_is_one_of_the_engine() -> None:
    """The codes that a server has, as `service/errors.py` lists them."""
    from bursar.service.errors import STATUS, refusal_of

    for kind in STATUS:
        fields = getattr(kind, "__dataclass_fields__", {"text": ""})
        values = {"asked": 0.5, "left": 0.25, "ticket": 3, "position": 2, "line": 0}
        error = kind(*(values.get(name, "" if name == "file" else name) for name in fields))
        again = error_of(json.loads(refusal_of(error).fault.model_dump_json()))
        assert type(again) is kind
        assert (str(again), vars(again)) == (str(error), vars(error))
