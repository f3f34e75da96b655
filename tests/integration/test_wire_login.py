"""Who gets in by PostgreSQL's wire, who does not, what they are told; and clients that misbehave."""

from __future__ import annotations

import asyncio
import socket
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from harness.patience import PATIENCE, until
from harness.wire import DATABASE, FAILURES, Served, served

psycopg = pytest.importorskip("psycopg")

PACE = 4.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Every answer takes a second, so that there is something to cancel; TLS may be asked for."""
    folder = tmp_path_factory.mktemp("wire")
    with served(folder, pace=PACE, tls=certificate(folder)) as running:
        yield running


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("wire")
    with served(folder, tls=(*certificate(folder), "required")) as running:
        yield running


def certificate(folder: Path) -> tuple[str, str]:
    paths = str(folder / "cert.pem"), str(folder / "key.pem")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-out", paths[0], "-keyout", paths[1]],
        check=True, capture_output=True,
    )  # fmt: skip
    return paths


def connect(server: Served, **changes: object) -> psycopg.Connection:
    given: dict[str, object] = {
        "host": server.host, "port": server.port, "user": "ana", "password": server.token, "dbname": DATABASE
    }  # fmt: skip
    return psycopg.connect(**(given | changes), autocommit=True)


def refused(server: Served, **changes: object) -> str:
    with pytest.raises(psycopg.OperationalError) as error:
        connect(server, **changes).close()
    return str(error.value)


def test_a_wrong_token_and_an_unknown_name_are_told_the_same(server: Served) -> None:
    for name in ("ana", "bob", "nobody"):
        assert f'FATAL:  password authentication failed for user "{name}"' in refused(server, user=name, password="no")
    assert "password authentication failed" in refused(server, user="bob"), "a token is its holder's only"
    assert "password authentication failed" in refused(server, user="nobody", dbname="other")
    assert 'FATAL:  database "other" does not exist' in refused(server, dbname="other")


def test_a_setting_that_makes_no_sense_ends_the_log_in(server: Served) -> None:
    assert "invalid value for parameter" in refused(server, options="-c bursar.error=lots")
    assert "unrecognized configuration parameter" in refused(server, options="-c bursar.seed=1")


def test_a_revoked_token_is_worth_nothing_in_a_running_session(server: Served) -> None:
    token = server.people.make_token("bob")
    with connect(server, user="bob", password=token) as link:
        assert link.execute("SELECT COUNT(*) FROM people").fetchone()
        server.people.revoke("bob")
        before = server.records()
        with pytest.raises(psycopg.errors.AdminShutdown, match="revoked"):
            link.execute("SELECT COUNT(*) FROM people WHERE age = 22")
        assert server.records() == before
        assert link.closed
    assert "password authentication failed" in refused(server, user="bob", password=token)


def test_encrypted_connections(server: Served, strict: Served) -> None:
    for mode, running in (("require", server), ("require", strict), ("disable", server)):
        with connect(running, sslmode=mode) as link:
            assert link.pgconn.ssl_in_use == (mode == "require")
            assert link.execute("SELECT 1").fetchone() == (1,)
    told = refused(strict, sslmode="disable")
    assert "encrypted connections only" in told
    assert "SSLmode=require" in told


def test_bytes_before_the_handshake_are_not_taken_for_encrypted_ones(strict: Served) -> None:
    """A man in the middle may send plain bytes along with the request to encrypt."""
    with socket.create_connection((strict.host, strict.port), timeout=PATIENCE) as plain:
        plain.sendall(struct.pack("!ii", 8, 80877103) + startup("ana"))
        told = everything(plain)
        assert told.startswith(b"E")
        assert b"08P01" in told


def startup(user: str, database: str = DATABASE) -> bytes:
    body = struct.pack("!i", 3 << 16) + f"user\0{user}\0database\0{database}\0\0".encode()
    return struct.pack("!i", len(body) + 4) + body


def everything(plain: socket.socket) -> bytes:
    parts = []
    while part := plain.recv(4096):
        parts.append(part)
    return b"".join(parts)


@pytest.mark.parametrize(
    "junk",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        struct.pack("!i", 2**31 - 1),
        struct.pack("!i", 4),
        struct.pack("!ii", 9, 3 << 16) + b"x",
        struct.pack("!ii", 8, 2 << 16),
        startup("ana") + b"Q" + struct.pack("!i", 2**30),
        startup("ana") + b"p" + struct.pack("!i", 8) + b"abcd",
        startup("ana") + b"p" + struct.pack("!i", 31) + b"SCRAM-SHA-256\0\0\0\0\x09y,,n=,r=x",
        startup("ana") + b"X" + struct.pack("!i", 4),
        startup(""),
    ],
)
def test_junk_is_refused_and_harms_nobody(server: Served, junk: bytes) -> None:
    with connect(server) as link, socket.create_connection((server.host, server.port), timeout=PATIENCE) as plain:
        plain.sendall(junk)
        told = everything(plain)
        assert b"Traceback" not in told
        assert told.count(b"FATAL") == 2
        assert link.execute("SELECT 1").fetchone() == (1,)


def test_slow_and_half_open_clients_do_not_keep_others_waiting(server: Served) -> None:
    """Connections that say nothing, or not all, or read nothing; others are answered at once."""
    idle = [socket.create_connection((server.host, server.port), timeout=PATIENCE) for _ in range(30)]
    for number, plain in enumerate(idle):
        plain.sendall(startup("ana")[: number % 12])
    with closing(connect(server)) as deaf, connect(server) as link:
        deaf.pgconn.send_query(b"; ".join([b"SELECT generate_series(1, 100000)"] * 5))  # and reads nothing of it
        for _ in range(3):
            assert link.execute("SELECT 1").fetchone() == (1,)
        assert link.execute("SELECT COUNT(*) FROM people").fetchone()
    for plain in idle:
        plain.close()


@contextmanager
def cancelling(cancel: Callable[[], object]) -> Iterator[None]:
    """Whatever begins inside is cancelled: again and again, since what has not begun cannot be."""
    over = threading.Event()

    def go_on() -> None:
        while not over.wait(PACE / 20):
            cancel()

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()  # or it would cancel what comes next


def test_what_runs_can_be_cancelled(server: Served) -> None:
    with connect(server) as link, connect(server, sslmode="require") as encrypted:
        for each in (link, encrypted):
            with pytest.raises(psycopg.errors.QueryCanceled), cancelling(each.cancel_safe):
                each.execute("SELECT COUNT(*) FROM people WHERE age > 21 AND sex = 'F'")
            assert each.execute("SELECT 1").fetchone() == (1,)
        link.execute("SET statement_timeout = 200")
        with pytest.raises(psycopg.errors.QueryCanceled, match="statement timeout"):
            link.execute("SELECT COUNT(*) FROM people WHERE age > 22")
        link.execute("RESET statement_timeout")
        (process,) = link.execute("SELECT pg_backend_pid()").fetchone() or (0,)
        stop = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid='{process}'"
        with pytest.raises(psycopg.errors.QueryCanceled), cancelling(lambda: encrypted.execute(stop)):
            link.execute("SELECT COUNT(*) FROM people WHERE age > 23")


def test_a_cancelled_question_is_not_paid_for_twice(server: Served) -> None:
    question = "SELECT region, COUNT(*) FROM people WHERE member = TRUE GROUP BY region WITH ERROR 11"
    before = server.records()
    with connect(server) as link:
        paid = lambda: server.records() > before  # noqa: E731  what has not begun is never asked
        with pytest.raises(psycopg.errors.QueryCanceled), cancelling(lambda: paid() and link.cancel_safe()):
            link.execute(question)
        until(lambda: server.paid("member") == 1)
        assert len(link.execute(question).fetchall()) == 4
        assert server.paid("member") == 1


def test_asyncpg_gives_up_by_itself(server: Served) -> None:
    asyncpg = pytest.importorskip("asyncpg")

    async def ask() -> None:
        link = await asyncpg.connect(server.url)
        with pytest.raises(asyncio.TimeoutError):
            await link.fetch("SELECT COUNT(*) FROM people WHERE age > 24", timeout=PACE / 3)
        assert await link.fetchval("SELECT 1") == 1
        await link.close()

    asyncio.run(ask())


def test_others_cannot_cancel(server: Served) -> None:
    """The secret of a session is 31 random bits; a wrong one is answered like a right one, by nothing."""
    with connect(server) as link:
        with socket.create_connection((server.host, server.port), timeout=PATIENCE) as plain:
            plain.sendall(struct.pack("!iiii", 16, 80877102, link.info.backend_pid, 7))
            assert not everything(plain)
        assert link.execute("SELECT COUNT(*) FROM people").fetchone()


@pytest.mark.heavy
def test_wrong_tokens_are_slowed_down_and_good_ones_are_not(strict: Served) -> None:
    told = [refused(strict, password="no") for _ in range(FAILURES + 1)]
    assert "too many log-ins from your address have failed" in told[-1]
    with connect(strict) as link:
        assert link.execute("SELECT 1").fetchone() == (1,)
