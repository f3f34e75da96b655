"""Answers through a server, beside the same questions in-process: `python -m benchmarks.serve [--quick] [--out DIR]`.

64 clients (`--quick`: 16), each somebody with a token and a connection of their own, ask for 30 s (5 s): nine of ten
answers were given before and are free, one is new, is planned and charged; who asks next asks for whatever is lacking
of that. Clients are threads of one process on
the machine of the server, and take their part of its cores.

`http` is `bursar.connect`, `wire` is psycopg; `in-process` has the same threads ask an open data set; `echo` is a bare
FastAPI application that replies with a stored answer, asked with the client of `http`. The server is what `bursar
serve` starts: one process, unless `--workers` says how many. `ratio` compares answers per second with those in-process,
by as many clients with the same questions; `charged` is the share of answers that cost something. Half of the free and
of the charged ones (p50), and all but one of a hundred (p99), took no longer than that. `cpu ms` is what the processes
that answer have computed for an answer, clients included where they are in them; it is the figure to compare on a
machine that others use, too. `unaccounted` is what clients were charged less what the ledger has gained: it must be 0,
as must `errors`.

Targets: a ratio of at least .7, and with 16 clients a p99 of free answers below 50 ms.
"""

from __future__ import annotations

import math
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import numpy as np
import psycopg
import uvicorn
from fastapi import FastAPI, Request, Response

import bursar
from benchmarks.harness import Figures, options, report
from bursar import Bursar, BursarError, Remote, ServerError
from bursar.config import load
from bursar.curate.demo import generate
from bursar.service.datasets import people_of
from bursar.service.people import Role

Ask = Callable[[str, float], float]
"""Asks a question with an error, and says what it was charged."""

PAID_SHARE = 0.1
WITHIN = 400.0
GROUPED = 4
KNOWN = [
    *(f"SELECT {c}, COUNT(*) AS n FROM people GROUP BY {c}" for c in ("sex", "region", "education", "marital")),
    *(f"SELECT COUNT(*) AS n FROM people WHERE age >= {age}" for age in range(20, 80, 10)),
]
"""Asked before the clock runs, so that they are free."""

TIGHTER = 0.99
"""New questions are the first known ones in turn, each with an error so much smaller than the last time: a bit of noise
is taken away, and charged."""


@dataclass
class Load:
    """What clients have met."""

    seconds: float
    free: list[float] = field(default_factory=list)
    paid: list[float] = field(default_factory=list)
    charges: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    cpu_seconds: float = 0.0  # of the process that answered

    @property
    def per_second(self) -> float:
        return (len(self.free) + len(self.paid)) / self.seconds

    def figures(self, gained: float, beside: Load) -> dict[str, float]:
        """One row; `gained` is what the ledger has more than before."""
        told = {"answers/s": self.per_second, "ratio": self.per_second / beside.per_second}
        told["cpu ms"] = 1000 * self.cpu_seconds / max(len(self.free) + len(self.paid), 1)
        told["charged"] = len(self.paid) / max(len(self.free) + len(self.paid), 1)
        for name, times in (("free", self.free), ("paid", self.paid)):
            told |= {f"{name} {p} ms": 1000 * float(np.percentile(times or [0.0], int(p[1:]))) for p in ("p50", "p99")}
        short = sum(self.charges) - gained
        rounded = 1e-9 + 1e-5 * gained
        return {**told, "errors": len(self.errors), "unaccounted": 0.0 if abs(short) < rounded else short}


def asked(clients: Sequence[Ask], seconds: float, seed: int, cpu: Callable[[], float] = time.process_time) -> Load:
    """All clients ask at once, for so long; `cpu` says how much the process has computed that answers them."""
    mix, new = random.Random(seed), count(GROUPED)
    found, begin = Load(seconds), threading.Barrier(len(clients) + 1)
    turn_to_pay, paying = threading.Lock(), 0

    def client(ask: Ask, own: random.Random) -> None:
        nonlocal paying
        begin.wait()
        while time.perf_counter() < deadline:
            question, within = own.choice(KNOWN), WITHIN
            with turn_to_pay:  # one that is overtaken by a tighter one is free: shares of questions are not of answers
                pays = len(found.paid) + paying < PAID_SHARE * (len(found.free) + len(found.paid) + 1)
                paying += pays
            if pays:
                turn, place = divmod(next(new), GROUPED)
                question, within = KNOWN[place], WITHIN * TIGHTER**turn
            start = time.perf_counter()
            try:
                charge = ask(question, within)
            except (BursarError, psycopg.Error) as error:
                found.errors.append(str(error))
                continue
            finally:
                with turn_to_pay:
                    paying -= pays
            (found.paid if charge else found.free).append(time.perf_counter() - start)
            found.charges.append(charge)

    threads = [threading.Thread(target=client, args=(ask, random.Random(mix.random()))) for ask in clients]
    for thread in threads:
        thread.start()
    start, computed = time.perf_counter(), cpu()
    deadline = start + seconds
    begin.wait()
    for thread in threads:
        thread.join()
    found.seconds, found.cpu_seconds = time.perf_counter() - start, cpu() - computed
    return found


def data_set(folder: Path) -> Path:
    """Made-up people, with a budget that lasts."""
    folder.mkdir()
    config = generate(folder / "people.csv", rows=20_000)
    config.write_text(config.read_text().replace("epsilon = 1.0 ", "epsilon = 1000.0 "))
    bursar.create(config).close()
    return config


def asking(session: Bursar | Remote) -> Ask:
    return lambda sql, within: session.query(sql, within=within).charge


def measured(
    db: Bursar | Remote,
    clients: Sequence[Ask],
    seconds: float,
    seed: int,
    cpu: Callable[[], float] = time.process_time,
) -> tuple[Load, float]:
    """What clients have met, and what the ledger has gained."""
    for sql in KNOWN:
        db.query(sql, within=WITHIN)
    before = db.budget().spent
    found = asked(clients, seconds, seed, cpu)
    return found, db.budget().spent - before


def in_process(config: Path, clients: int, seconds: float, seed: int) -> tuple[Load, float]:
    """The same questions without a server."""
    with bursar.open(config) as db:
        sessions = [db.as_analyst(f"client{number}") for number in range(clients)]
        return measured(db, [asking(session) for session in sessions], seconds, seed)


@dataclass(frozen=True)
class Doors:
    """A server that runs: where its data set is, for HTTP and for PostgreSQL clients, and the tokens of its people."""

    http: str
    wire: str
    tokens: dict[str, str]
    process: int

    def cpu(self) -> float:
        """Seconds that the server has computed so far, in all of its processes."""
        return sum(map(computed_by, (self.process, *_children(self.process))))


@contextmanager
def serving(config: Path, clients: int, workers: int = 1) -> Iterator[Doors]:
    """`bursar serve` in a process of its own, and somebody with a token for each client."""
    people, name = people_of(load(config)), load(config).dataset
    names = [f"client{number}" for number in range(clients)]
    for person in names:
        people.add(person, Role.ANALYST)
    tokens = {person: people.make_token(person) for person in names}
    people.close()
    words = ["serve", "--port", "0", "--requests", "0", "--concurrent", "0", "--workers", str(workers), str(config)]
    with running([sys.executable, "-c", "from bursar.cli import main; main()", *words]) as server:
        assert server.stdout is not None
        shown = b"".join(server.stdout.readline() for _ in range(4)).decode()  # page, manual, and the two other doors
        [http], [wire] = re.findall(r"(http\S+)/v1/", shown), re.findall(r"postgres\S+", shown)
        yield Doors(f"{http}/{name}", wire, tokens, server.pid)


def computed_by(process: int) -> float:
    """Seconds that another process has computed so far, where the system tells."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return math.nan
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _children(process: int) -> list[int]:
    """The processes that another one has started, where the system tells."""
    try:
        return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except FileNotFoundError:
        return []


def through_http(config: Path, clients: int, seconds: float, seed: int, workers: int = 1) -> tuple[Load, float]:
    """Clients of `bursar.connect`."""
    with ExitStack() as opened:
        doors = opened.enter_context(serving(config, clients, workers))
        sessions = [opened.enter_context(bursar.connect(doors.http, token=token)) for token in doors.tokens.values()]
        return measured(sessions[0], [asking(session) for session in sessions], seconds, seed, doors.cpu)


def through_wire(config: Path, clients: int, seconds: float, seed: int, workers: int = 1) -> tuple[Load, float]:
    """Clients of psycopg; what they were charged is in a notice, to six digits."""
    with ExitStack() as opened:
        doors = opened.enter_context(serving(config, clients, workers))
        db = opened.enter_context(bursar.connect(doors.http, token=doors.tokens["client0"]))
        connections = [
            opened.enter_context(psycopg.connect(doors.wire, user=name, password=token, autocommit=True))
            for name, token in doors.tokens.items()
        ]
        return measured(db, [asking_by_wire(connection) for connection in connections], seconds, seed, doors.cpu)


def asking_by_wire(connection: psycopg.Connection) -> Ask:
    told: list[str] = []
    connection.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))

    def ask(sql: str, within: float) -> float:
        told.clear()
        connection.execute(f"{sql} WITH ERROR {within!r}".encode()).fetchall()
        charged = re.search(r"cost +\w+ ([\d.e-]+);", " ".join(told))
        return 0.0 if charged is None else float(charged[1])

    return ask


def through_echo(stored: bytes, clients: int, seconds: float, seed: int) -> Load:
    """The same requests to an application that does nothing."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with ExitStack() as opened:
        server = opened.enter_context(
            running([sys.executable, "-c", f"from benchmarks.serve import echo; echo({port})"])
        )
        assert server.stdin is not None
        server.stdin.write(stored)
        server.stdin.close()
        url = f"http://127.0.0.1:{port}/echo"
        sessions = [opened.enter_context(bursar.connect(url, token="none")) for _ in range(clients)]
        for _ in range(300):
            with suppress(ServerError):  # until it listens
                sessions[0].query(KNOWN[0], within=WITHIN)
                break
            time.sleep(0.1)
        return asked([asking(session) for session in sessions], seconds, seed, lambda: computed_by(server.pid))


def echo(port: int) -> None:
    """A bare application: whatever is asked, the same stored answer."""
    app, stored = FastAPI(), sys.stdin.buffer.read()

    @app.post("/v1/echo/query")
    async def query(request: Request) -> Response:
        await request.json()
        return Response(stored, media_type="application/json")

    uvicorn.run(app, port=port, log_level="critical")


@contextmanager
def running(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A process for the block."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()


def main() -> None:
    args = options(
        "Answers through a server, and in-process.",
        clients={"type": int, "default": None, "help": "how many ask at once; 64, or 16 with --quick"},
        seconds={"type": float, "default": None, "help": "for how long; 30, or 5 with --quick"},
        workers={"type": int, "default": 1, "help": "processes of the server"},
    )
    clients = args.clients or (16 if args.quick else 64)
    seconds, seed = args.seconds or (5.0 if args.quick else 30.0), args.seeds[0]
    with tempfile.TemporaryDirectory() as folder:
        here, gained = in_process(data_set(Path(folder) / "here"), clients, seconds, seed)
        figures: Figures = {"in-process": here.figures(gained, here)}
        served = data_set(Path(folder) / "served")
        there, gained = through_http(served, clients, seconds, seed, args.workers)
        figures["http"] = there.figures(gained, here)
        wired, gained = through_wire(data_set(Path(folder) / "wired"), clients, seconds, seed, args.workers)
        figures["wire"] = wired.figures(gained, here)
        with bursar.open(served) as db:
            stored = db.query(KNOWN[0], within=WITHIN).to_bytes()
        figures["echo"] = through_echo(stored, clients, seconds, seed).figures(0.0, here)
    for error in {*here.errors, *there.errors, *wired.errors}:
        print(error, file=sys.stderr)
    report(f"serve/{clients}", args, figures)


if __name__ == "__main__":
    main()
