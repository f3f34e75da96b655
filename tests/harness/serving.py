"""A server in a process of its own, on a free port of this machine, with people who have tokens."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

import httpx

import bursar
from bursar.config import load
from bursar.curate.demo import generate
from bursar.service.datasets import people_of
from bursar.service.people import Role
from harness.patience import PATIENCE
from harness.warm import begin, exit_code


@dataclass
class Served:
    """A server that runs."""

    url: str  # without the data set
    pid: int
    out: TextIO  # what it prints
    err: Path
    tokens: Mapping[str, str]
    _wait: Callable[[], int]
    code: int | None = field(default=None)

    def client(self, name: str, data: str = "demo-people") -> httpx.Client:
        """Somebody who asks about a data set."""
        headers = {"Authorization": f"Bearer {self.tokens[name]}"}
        return httpx.Client(base_url=f"{self.url}/v1/{data}", headers=headers, timeout=PATIENCE)

    def end(self, by: signal.Signals = signal.SIGTERM) -> int:
        """End it, and say how it has ended."""
        if self.code is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, by)
            self.code = self._wait()
            self.out.close()
        return self.code


def data_set(folder: Path, *, rows: int = 2_000, name: str = "demo-people") -> Path:
    """A made-up data set with a ledger; its config."""
    folder.mkdir(parents=True, exist_ok=True)
    config = generate(folder / "people.csv", rows=rows)
    config.write_text(config.read_text().replace("demo-people", name))
    bursar.create(config).close()
    return config


def let_in(config: Path, **roles: Role) -> dict[str, str]:
    """Tokens of people with these roles."""
    people = people_of(load(config))
    for name, role in roles.items():
        people.add(name, role)
    tokens = {name: people.make_token(name) for name in roles}
    people.close()
    return tokens


def start(*arguments: object, tokens: Mapping[str, str] | None = None, cold: bool = False) -> Served:
    """`bursar serve` with a free port, once it takes requests; `cold`: from an interpreter that has loaded nothing."""
    words = ["serve", "--port", "0", *map(str, arguments)]
    err = Path(tempfile.mkstemp()[1])
    read, write = os.pipe()
    with open(os.devnull) as nothing, err.open("w") as errors:
        if cold:
            command = [sys.executable, "-c", "from bursar.cli import main; main()", *words]
            process = subprocess.Popen(command, stdin=nothing, stdout=write, stderr=errors)
            wait: Callable[[], int] = process.wait
        else:
            streams = [nothing.fileno(), write, errors.fileno()]
            line = begin(Path.cwd(), os.environ, words, streams, terminal=False)
            wait = lambda: exit_code(line)  # noqa: E731
    os.close(write)
    out = os.fdopen(read)
    found = re.search(r"https?://[\w.:\[\]]+", out.readline())
    if found is None:
        out.close()
        raise AssertionError(f"no server, exit code {wait()}: {err.read_text()}")
    pid = process.pid if cold else _pid(err, arguments)
    return Served(found[0], pid, out, err, tokens or {}, wait)


def _pid(err: Path, arguments: tuple[object, ...]) -> int:
    """Which process it is, from the first line of its journal."""
    names = list(map(str, arguments))
    journal = Path(names[names.index("--log") + 1]) if "--log" in names else err
    started = [json.loads(line) for line in journal.read_text().splitlines() if '"started"' in line]
    return int(started[-1]["pid"])


@contextmanager
def serving(*arguments: object, tokens: Mapping[str, str], cold: bool = False) -> Iterator[Served]:
    """A server for the block."""
    server = start(*arguments, tokens=tokens, cold=cold)
    try:
        yield server
    finally:
        server.end()
