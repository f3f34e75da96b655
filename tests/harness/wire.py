"""A real server of PostgreSQL's wire over made-up people, in a process of its own, for real clients.

    python tests/harness/wire.py bursar.toml [CERTIFICATE KEY [required]]

says its port, and serves until its standard input is closed.
"""

from __future__ import annotations

import asyncio
import random
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import bursar
from bursar.config import Config, load
from bursar.core.ledger import SqliteLedger
from bursar.service.datasets import DataSets, people_of
from bursar.service.people import People, Role
from bursar.service.request_limits import Limits, LimitSettings
from bursar.service.wire import start_wire

DATABASE = "demo"
ROWS = 2_000
FAILURES = 15
"""Log-ins per minute that may fail."""

CONFIG = """\
dataset = "demo"
[source]
path = "people.csv"
table = "people"
max_rows = 4000
public_size = 2000
[privacy]
unit = "row"
[budget]
epsilon = 1000.0
[goal]
error = 60
[columns.age]
lower = 20
upper = 29
[columns.sex]
values = ["F", "M"]
[columns.region]
values = ["North", "East", "Old South"]
null = "other"
[columns.income]
edges = [0, 10000, 20000, 30000]
[columns.member]
values = [true, false]
outside = { as = false }
null = { as = false }
[columns.joined]
first = 2020-01-01
last = 2020-12-31
by = "month"
"""
"""Few cells, so that every question is planned at once."""


@dataclass(frozen=True)
class Served:
    """A server, and what a client needs to log in."""

    config: Config
    people: People
    process: subprocess.Popen[str]
    port: int
    token: str
    host: str = "127.0.0.1"
    user: str = "ana"

    @property
    def url(self) -> str:
        return f"postgresql://{self.user}:{self.token}@{self.host}:{self.port}/{DATABASE}"

    def records(self) -> int:
        """How many records the ledger has: nothing that is free makes one."""
        ledger = SqliteLedger.open(self.config.ledger_path, self.config.charter)
        try:
            return len(ledger.records())
        finally:
            ledger.close()

    def paid(self, word: str) -> int:
        """How many records were paid for by questions with this word; others may still be on their way."""
        with bursar.open(self.config.path) as db:
            return sum(word in line.purpose for line in db.log() if line.charge)

    def environment(self) -> dict[str, str]:
        """For programs that use libpq."""
        return {
            "PGHOST": self.host,
            "PGPORT": str(self.port),
            "PGUSER": self.user,
            "PGPASSWORD": self.token,
            "PGDATABASE": DATABASE,
            "PGCONNECT_TIMEOUT": "20",
        }


@contextmanager
def served(folder: Path, *, pace: float = 0.0, tls: tuple[str, ...] = ()) -> Iterator[Served]:
    """A server on a free port. With a `pace`, every answer takes that many seconds."""
    path = folder / "bursar.toml"
    path.write_text(CONFIG.replace("[privacy]", f"[privacy]\npace = {pace}") if pace else CONFIG)
    chance = random.Random(18)
    lines = [
        f"{chance.randint(20, 29)},{chance.choice('FM')},{chance.choice(['North', 'East', 'Old South'])},"
        f"{chance.randint(0, 29_999)},{chance.choice(['true', 'false'])},2020-{chance.randint(1, 12):02}-15"
        for _ in range(ROWS)
    ]
    (folder / "people.csv").write_text("\n".join(["age,sex,region,income,member,joined", *lines]) + "\n")
    with bursar.create(path) as db:
        people = people_of(db.config)
    people.add("ana", Role.ANALYST)
    people.add("bob", Role.ANALYST)
    words = [sys.executable, __file__, str(path), *tls]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            port = int(process.stdout.readline())
            yield Served(load(path), people, process, port, people.make_token("ana"))
        finally:
            people.close()
            process.communicate(timeout=300)  # closes its standard input
    assert process.returncode == 0


async def serve(config: str, certificate: str = "", key: str = "", required: str = "") -> None:
    tls = None
    if certificate:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate, key)
    with DataSets.open([config]) as datasets:
        limits = Limits(LimitSettings(failures=FAILURES))
        server = await start_wire(datasets, port=0, tls=tls, require_tls=bool(required), limits=limits)
        print(server.port, flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        server.close()
        await server.wait_closed()


if __name__ == "__main__":
    asyncio.run(serve(*sys.argv[1:]))
