"""A server in a process of its own, on a free port of this machine, with people who have tokens."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

import bursar
from bursar.config import load
from bursar.curate.demo import generate
from bursar.service.datasets import people_of
from bursar.service.people import Role


@dataclass(frozen=True)
class Served:
    """A server that runs."""

    process: subprocess.Popen[str]
    url: str  # without the data set
    tokens: Mapping[str, str]

    def client(self, name: str, data: str = "demo-people") -> httpx.Client:
        """Somebody who asks about a data set."""
        headers = {"Authorization": f"Bearer {self.tokens[name]}"}
        return httpx.Client(base_url=f"{self.url}/v1/{data}", headers=headers, timeout=60)


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


def start(*arguments: object) -> tuple[subprocess.Popen[str], str]:
    """`bursar serve` with a free port, and its URL, once it takes requests."""
    command = [
        sys.executable,
        "-c",
        "from bursar.cli import main; main()",
        "serve",
        "--port",
        "0",
        *map(str, arguments),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ})
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.search(r"https?://[\w.:\[\]]+", line)
    if found is None:
        process.kill()
        raise AssertionError(f"no server: {line} {process.communicate()[1]}")
    return process, found[0]


@contextmanager
def serving(*arguments: object, tokens: Mapping[str, str]) -> Iterator[Served]:
    """A server for the block."""
    process, url = start(*arguments)
    try:
        yield Served(process, url, tokens)
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
