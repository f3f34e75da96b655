"""The process around door 1: it drains, it may be killed, slow clients hold nobody up, it binds with care."""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import socket
import ssl
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import httpx
import psycopg
import pytest

import bursar
from bursar.config import load
from bursar.core.accounting import Measured
from bursar.core.ledger import SqliteLedger
from bursar.service.people import Role
from harness.patience import PATIENCE, until
from harness.serving import data_set, let_in, serving, start

pytestmark = pytest.mark.thinned(3)

COLUMNS = ("sex", "region", "education", "marital")
AGES = "SELECT COUNT(*) AS n FROM people WHERE age >= {}"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return data_set(tmp_path / "data")


def ask(url: str, token: str, sql: str, *, key: str, within: int = 400) -> httpx.Response:
    headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": key}
    body = {"sql": sql, "within": within}
    return httpx.post(f"{url}/v1/demo-people/query", json=body, headers=headers, timeout=PATIENCE)


def killed_and_asked_again(config: Path, times: int) -> None:
    """Ask under keys, kill the server at any moment, ask again: the same bytes, and no question is paid for twice.

    Where it was killed between the commit and the reply, the charge is in the log, and the reply says that it was free.
    """
    [token] = let_in(config, ana=Role.ANALYST).values()
    first: dict[str, bytes] = {}
    charges: dict[str, float] = {}

    def send(url: str, key: str, sql: str) -> None:
        try:
            reply = ask(url, token, sql, key=key)
        except httpx.TransportError:
            return  # it was killed before it had told us
        assert reply.status_code == 200, reply.text
        assert first.setdefault(key, reply.content) == reply.content
        charges[key] = reply.json()["charge"]

    for life in range(times):
        server = start(config)
        keys = {f"key {n}": AGES.format(20 + n) for n in range(life, life + 4)}
        with ThreadPoolExecutor(len(keys)) as pool:
            sent = [pool.submit(send, server.url, key, sql) for key, sql in keys.items()]
            time.sleep(random.uniform(0, 1))
            assert server.end(signal.SIGKILL) == -signal.SIGKILL
            for each in sent:
                each.result()
    with serving(config, tokens={}) as server:
        for n in range(times + 3):
            for _ in range(2):
                send(server.url, f"key {n}", AGES.format(20 + n))
    with bursar.open(config) as db:
        paid = {line.purpose: line.charge for line in db.log() if line.charge}
        assert len(paid) == sum(line.charge > 0 for line in db.log())
        assert sum(paid.values()) == pytest.approx(db.budget().spent, abs=1e-9)
        assert len(first) == times + 3
        for key, charge in charges.items():
            asked = AGES.format(20 + int(key.removeprefix("key ")))
            assert charge in (0, paid.get(asked, 0))
        db.owner.verify()


@pytest.mark.heavy
def test_kill_9_loses_nothing_and_charges_nothing_twice(config: Path) -> None:
    killed_and_asked_again(config, 2)


@pytest.mark.soak
def test_kill_9_a_hundred_times(config: Path) -> None:
    killed_and_asked_again(config, 100)


def test_sigterm_finishes_what_runs_and_exits_0(config: Path) -> None:
    """`pace` makes every answer take two seconds, so that there is something to finish.

    The questions are about different columns: what was bought for one answers no other, whichever comes first.
    """
    config.write_text(config.read_text().replace("[privacy]", "[privacy]\npace = 2", 1))
    [token] = let_in(config, ana=Role.ANALYST).values()
    log = config.parent / "journal"
    server = start(config, "--log", log)
    with ThreadPoolExecutor(4) as pool:
        asked = [f"SELECT {name}, COUNT(*) AS n FROM people GROUP BY {name}" for name in COLUMNS]
        running = [pool.submit(ask, server.url, token, sql, key=sql) for sql in asked]
        until(lambda: measured(config) == len(asked))
        os.kill(server.pid, signal.SIGTERM)
        until(lambda: refused(server.url))
        assert [reply.result().status_code for reply in running] == [200] * len(asked)
    assert server.end() == 0
    assert "Traceback" not in server.err.read_text()
    assert [json.loads(line)["what"] for line in log.read_text().splitlines()][-1] == "ended"


def measured(config: Path) -> int:
    """How many questions have been paid for."""
    facts = load(config)
    with closing(SqliteLedger.open(facts.ledger_path, facts.charter)) as ledger:
        return sum(isinstance(record.event, Measured) for record in ledger.records())


def refused(url: str) -> bool:
    host, port = url.removeprefix("http://").split(":")
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except ConnectionRefusedError:
        return True
    return False


def test_slow_and_half_open_clients_hold_nobody_up(config: Path) -> None:
    tokens = let_in(config, ana=Role.ANALYST)
    with serving(config, tokens=tokens) as server:
        host, port = server.url.removeprefix("http://").split(":")
        head = f"POST /v1/demo-people/query HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {tokens['ana']}\r\n".encode()
        beginnings = [
            b"",
            b"POST /v1/x HTT",
            head,
            head + b"Content-Length: 100\r\n\r\n{",
            b"\x16\x03\x01 \x00",
            b"\0" * 99,
        ]
        half = []
        for beginning in itertools.islice(itertools.cycle(beginnings), 5 * len(beginnings)):
            half.append(socket.create_connection((host, int(port))))
            half[-1].sendall(beginning)
        with server.client("ana") as ana:
            replies = [ana.get("/budget").status_code for _ in range(5)]
        for connection in half:
            connection.close()
    assert set(replies) <= {200, 429}
    assert server.code == 0


@pytest.mark.heavy  # it waits for as long as clients may take
def test_whoever_takes_too_long_is_hung_up_on(config: Path) -> None:
    [token] = let_in(config, ana=Role.ANALYST).values()
    with serving(config, tokens={}) as server:
        host, port = server.url.removeprefix("http://").split(":")
        head = f"POST /v1/demo-people/query HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n".encode()
        told = []
        login = b"POST /-/login HTTP/1.1\r\nHost: x\r\nSec-Fetch-Site: same-origin\r\nContent-Length: 100\r\n"
        login += b"Content-Type: application/x-www-form-urlencoded\r\n\r\ntoken="
        for beginning in (head, head + b"Content-Length: 100\r\n\r\n{", login):
            with socket.create_connection((host, int(port))) as slow:
                slow.sendall(beginning)
                told.append(b"".join(iter(lambda: slow.recv(4096), b"")))
    assert told[0] == b""
    assert told[1].startswith(b"HTTP/1.1 408 ")
    assert told[2].startswith(b"HTTP/1.1 408 ")  # what anybody may send, without a token


def test_a_reply_that_nobody_reads_does_not_stop_the_end(config: Path) -> None:
    """A stream of events is left when the server ends, though its job goes on."""
    tokens = let_in(config, ana=Role.ANALYST)
    with serving(config, tokens=tokens) as server, server.client("ana") as ana:
        job = ana.post("/release", json={"questions": [AGES.format(30)], "within": 400}).json()
        with ana.stream("GET", f"/jobs/{job['id']}/events") as events:
            kinds = [line for line in events.iter_lines() if line.startswith("event:")]
        assert kinds[-1] == "event: done"
    assert server.code == 0


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--host", "0.0.0.0"], "--behind-proxy"),
        (["--host", "::"], "--behind-proxy"),
        (["--cert", "x.pem"], "a certificate and its key"),
        (["--host", "203.0.113.1", "--behind-proxy"], "cannot listen"),
    ],
)
def test_it_does_not_listen_to_others_without_tls(config: Path, options: list[str], told: str) -> None:
    with pytest.raises(AssertionError, match=told):
        start(config, *options)


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.heavy)])
def test_it_does_not_start_with_files_that_others_can_read(config: Path, workers: int) -> None:
    ledger = config.parent / "bursar.bursar" / "ledger.sqlite"
    ledger.chmod(0o644)
    with pytest.raises(AssertionError, match="chmod 600"):
        start(config, "--workers", workers, cold=workers > 1)


def test_tls(config: Path, tmp_path: Path) -> None:
    tokens = let_in(config, ana=Role.ANALYST)
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert],
        check=True, capture_output=True,
    )  # fmt: skip
    with serving(config, "--cert", cert, "--key", key, tokens=tokens) as server:
        assert server.url.startswith("https://")
        trusted = ssl.create_default_context(cafile=cert)
        headers = {"Authorization": f"Bearer {tokens['ana']}"}
        reply = httpx.get(f"{server.url}/v1/demo-people/budget", headers=headers, verify=trusted, timeout=PATIENCE)
        assert reply.status_code == 200
        with pytest.raises(httpx.TransportError):
            httpx.get(server.url.replace("https", "http"), timeout=PATIENCE)


@pytest.mark.heavy  # every process loads everything anew
def test_several_processes_are_one_server(config: Path) -> None:
    tokens = let_in(config, ana=Role.ANALYST, olga=Role.OWNER)
    with serving(config, "--workers", 2, tokens=tokens, cold=True) as server:
        answers: list[bytes] = []

        def one() -> None:
            reply = ask(server.url, tokens["ana"], AGES.format(40), key="same")
            answers.append(reply.content)

        threads = [threading.Thread(target=one) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(answers) == 6
        assert len(set(answers)) == 1
        with server.client("ana") as ana:
            assert ana.get("/budget").json()["spent"] == json.loads(answers[0])["charge"]
        metrics = ""

        def counted() -> bool:
            nonlocal metrics
            headers = {"Authorization": f"Bearer {tokens['olga']}"}
            metrics = httpx.get(f"{server.url}/metrics", headers=headers, timeout=PATIENCE).text
            return 'bursar_requests_total{door="http",route="/v1/{data}/query",outcome="200"} 6' in metrics

        until(counted, pause=0.2)
        workers = children(server.pid)
        assert len(workers) >= 2
    assert server.code == 0
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))


def children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tokens: list[str] = []
    for _ in range(2):
        server = start("--demo")
        while "token" not in (line := server.out.readline()):
            assert line
        tokens.append(line.split()[-1])
        password, program, where = server.out.readline().removeprefix("with psql: ").split()
        assert (password, program) == (f"PGPASSWORD={tokens[-1]}", "psql")
        with psycopg.connect(where, password=tokens[-1]) as link:
            assert ("F",) in link.execute("SELECT DISTINCT sex FROM people").fetchall()
        reply = ask(server.url, tokens[-1], AGES.format(18), key="a", within=500)
        assert reply.status_code == 200, reply.text
        assert server.end() == 0
    assert reply.json()["charge"] > 0  # the data set of the first time, and the same key
    assert tokens[0] != tokens[1]
    assert (tmp_path / "bursar-demo" / "bursar.bursar" / "ledger.sqlite").exists()


@pytest.mark.parametrize(
    ("options", "second"), [([], 429), (["--behind-proxy"], 401)], ids=["direct", "behind a proxy"]
)
def test_where_a_client_comes_from_is_what_a_proxy_says_only_where_there_is_one(
    config: Path, options: list[str], second: int
) -> None:
    let_in(config, ana=Role.ANALYST)
    with serving(config, "--failures", 1, *options, tokens={}) as server:

        def guess(address: str) -> int:
            headers = {"Authorization": "Bearer bursar_a_b", "X-Forwarded-For": address}
            return httpx.get(f"{server.url}/v1/x/budget", headers=headers, timeout=PATIENCE).status_code

        assert [guess("203.0.113.1"), guess("203.0.113.1"), guess("203.0.113.2")] == [401, 429, second]
