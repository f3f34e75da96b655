"""Disk full, read-only, I/O errors: nothing is released, the error is a LedgerError, and the ledger works again after.

Each fault is a real one: SQLite's own page limit, a limit on file sizes, file modes, and system calls of the C
library that fail on demand (a shim compiled here and loaded before SQLite's).
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from harness.faults import Ask, complaints, found, loss, note, reopened, run

from bursar.engine import Bursar
from bursar.errors import LedgerError
from bursar.kernel.ledger import SqliteLedger

FIRST = Ask(key="first", text="SELECT COUNT(*) FROM people WHERE age < 5", rows=1)
SECOND = Ask(key="second")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    made = tmp_path / "people.bursar" / "ledger.sqlite"
    found(made)
    with reopened(made) as bursar:
        FIRST.of(bursar)
    return made


def refused(bursar: Bursar, ask: Ask) -> str:
    """The text of the LedgerError that a question meets. Anything else, an answer above all, fails the test."""
    with pytest.raises(LedgerError) as caught:
        ask.of(bursar)
    assert type(caught.value) is LedgerError  # Stale and Busy never reach a person
    return str(caught.value)


# -- the disk is full ---------------------------------------------------------------------------------------


class Cramped(sqlite3.Connection):
    """Connections that may not make the ledger larger than it is."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.execute("PRAGMA max_page_count = 1")  # SQLite takes this to mean: as many as there are now


def fill(bursar: Bursar) -> None:
    """Questions until the pages that were free are used up."""
    for number in range(500):
        text = f"SELECT COUNT(*) FROM people WHERE age < {number % 9 + 1} -- {number:0900}"
        Ask(key=f"filler {number}", text=text, within=3000.0).of(bursar)


def test_a_full_disk(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SqliteLedger, "factory", Cramped)
    with reopened(place, epsilon=1.0) as bursar:
        with pytest.raises(LedgerError, match="the disk of the ledger is full .*; nothing was released"):
            fill(bursar)
        spent, records = bursar.kernel.spent(), len(bursar.ledger.records())
        assert "disk of the ledger is full" in refused(bursar, SECOND)
        assert (bursar.kernel.spent(), len(bursar.ledger.records())) == (spent, records)
        assert bursar.ledger.answered(analyst="ana", key="second", question="?") is None
        bursar.verify()
    monkeypatch.undo()
    assert complaints(place, [FIRST, SECOND]) == []


def ask_under_a_limit(place: Path) -> None:
    """Ask where no file may grow beyond what the largest of the ledger's files has now and a little more."""
    with reopened(place) as bursar:
        largest = max(file.stat().st_size for file in place.parent.iterdir())
        for extra in range(0, 64 * 1024, 3000):
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest + extra, resource.RLIM_INFINITY))
            try:
                answer = SECOND.of(bursar)
            except LedgerError as error:
                assert type(error) is LedgerError
                assert "nothing was released" in str(error)
                assert bursar.kernel.spent() == loss([record.event for record in bursar.ledger.records()])
                continue
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            note(place, SECOND, answer)
            assert extra > 0, "the limit never stood in the way"
            return
    raise AssertionError("the question was never answered")


def test_files_that_may_not_grow(place: Path) -> None:
    assert run(ask_under_a_limit, place) == 0
    assert complaints(place, [FIRST, SECOND]) == []
