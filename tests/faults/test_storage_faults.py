"""Disk full, read-only, I/O errors: nothing is released, the error is a LedgerError, and the ledger works again after.

Each fault is a real one: SQLite's own page limit, a limit on file sizes, file modes, and system calls of the C
library that fail on demand (a shim compiled here and loaded before SQLite's).
"""

from __future__ import annotations

import ctypes
import errno
import itertools
import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bursar.core.ledger import SqliteLedger
from harness import broken_disk
from harness.faults import EVERY, HOUR, Ask, Clock, complaints, found, loss, note, refusal, released, reopened, run

FIRST = Ask(key="first", text="SELECT COUNT(*) FROM people WHERE age < 5", rows=1)
LARGE = Ask(
    key="large", text="SELECT age, sex, region, COUNT(*) FROM people GROUP BY age, sex, region", within=90.0, rows=60
)
"""Its answer takes several pages of the file, which are not there yet."""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    made = tmp_path / "people.bursar" / "ledger.sqlite"
    found(made)
    with reopened(made) as bursar:
        FIRST.of(bursar)
    return made


# -- the disk is full ---------------------------------------------------------------------------------------


class Cramped(sqlite3.Connection):
    """Connections that may not make the ledger larger than it is."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.execute("PRAGMA max_page_count = 1")  # SQLite takes this to mean: as many as there are now


def test_a_full_disk(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(SqliteLedger, "factory", Cramped)
        with reopened(place) as bursar:
            met = refusal(lambda: LARGE.of(bursar))
            assert met == "the disk of the ledger is full (SQLITE_FULL); nothing was released"
            assert bursar.kernel.spent() == loss([record.event for record in bursar.ledger.records()])
            bursar.owner.verify()
    assert complaints(place, [FIRST, LARGE]) == []


def ask_under_a_limit(place: Path) -> None:
    """Ask where no file may grow beyond what the largest of the ledger's files has now and a little more."""
    clock = Clock()
    with clock.running(), reopened(place) as bursar:
        largest = max(file.stat().st_size for file in place.parent.iterdir())
        for extra in range(0, 256 * 1024, 1000):
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest + extra, resource.RLIM_INFINITY))
            met = refusal(lambda: LARGE.of(bursar))
            if met is None:
                break
            assert "nothing was released" in met
            clock.off += HOUR
        assert extra > 1000, "the limit never stood in the way"
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        note(place, LARGE, LARGE.of(bursar))


def test_files_that_may_not_grow(place: Path) -> None:
    assert run(ask_under_a_limit, place) == 0
    assert set(released(place)) == {"large"}
    assert complaints(place, [FIRST, LARGE]) == []


# -- read-only ----------------------------------------------------------------------------------------------


def obey_file_modes() -> None:
    """Where the tests run as root: give up root's right to write what is not writable."""
    if os.geteuid() == 0:
        version_3, no_rights = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
        assert ctypes.CDLL(None, use_errno=True).capset(version_3, no_rights) == 0


def ask_read_only(place: Path) -> None:
    obey_file_modes()
    modes = {path: path.stat().st_mode for path in (place.parent, *place.parent.iterdir())}
    for path, mode in modes.items():
        path.chmod(mode & ~0o222)
    met = refusal(lambda: open_and_ask(place))
    for path, mode in modes.items():
        path.chmod(mode)
    assert met is not None
    assert "nothing was released" in met


def open_and_ask(place: Path) -> None:
    with reopened(place) as bursar:
        LARGE.of(bursar)


@pytest.mark.skipif(sys.platform != "linux" and os.geteuid() == 0, reason="root cannot be held to file modes here")
def test_a_read_only_ledger(place: Path) -> None:
    assert run(ask_read_only, place) == 0
    with reopened(place) as bursar:
        assert len(bursar.ledger.records()) == 2
    assert complaints(place, [FIRST, LARGE]) == []


# -- system calls that fail ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled shim."""
    if sys.platform != "linux":
        pytest.skip("the shim for failing system calls is written for Linux")
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler to make the shim for failing system calls")
    library = tmp_path_factory.mktemp("shim") / "broken_disk.so"
    source = Path(broken_disk.__file__).with_suffix(".c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return library


def broken(
    shim: Path, home: Path, flow: str, call: str, cases: Sequence[tuple[int, bool]], stride: int = 1
) -> list[dict[str, int]]:
    """How often a child asked, was refused, and met a failing call, while its ledger's disk broke again and again, in
    each case with another error, for good or once."""
    places = [home / str(number) / "ledger.sqlite" for number in range(len(cases))]
    for place in places:
        found(place, epsilon=broken_disk.EPSILON)
    told = [json.dumps([str(place), *case]) for place, case in zip(places, cases, strict=True)]
    paths = os.pathsep.join([str(Path(broken_disk.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    child = subprocess.run(
        [sys.executable, "-m", "harness.broken_disk", flow, call, str(stride), *told],
        env={**os.environ, "LD_PRELOAD": str(shim), "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    tallies: list[dict[str, int]] = json.loads(child.stdout)
    for place, tally in zip(places, tallies, strict=True):
        asks = broken_disk.QUESTIONS[: tally["asked"]]
        assert complaints(place, asks, epsilon=broken_disk.EPSILON) == []
    return tallies


REFUSED = {"write": 8, "sync": 2, "read": 5, "truncate": 0}
"""How often at least a question is refused as each of its calls fails once. Above all: without the two syncs, one for
the charge and one for the answer, nothing is released. What may fail unnoticed is the anchor, after the commit."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("call", "stride"), [("sync", 1), ("write", 3), ("read", 4)])
def test_a_disk_that_breaks(shim: Path, tmp_path: Path, call: str, stride: int) -> None:
    error = errno.ENOSPC if call == "write" else errno.EIO
    (tally,) = broken(shim, tmp_path, "kept", call, [(error, True)], stride)
    assert tally["refused"] >= REFUSED[call] // stride
    assert tally["failed"] >= tally["refused"]


@pytest.mark.heavy
@pytest.mark.parametrize("call", REFUSED)
@pytest.mark.parametrize("flow", ["kept", "opened"])
def test_a_disk_that_breaks_at_any_call(shim: Path, tmp_path: Path, flow: str, call: str) -> None:
    stride = 1 + EVERY if flow == "opened" and call in ("write", "read") else 1  # opening and closing have many of them
    errors = (errno.ENOSPC, errno.EIO) if call in ("write", "sync") else (errno.EIO,)
    cases = list(itertools.product(errors, (True, False)))
    for case, tally in zip(cases, broken(shim, tmp_path, flow, call, cases, stride), strict=True):
        assert tally["refused"] >= REFUSED[call] // stride, case


def test_a_ledger_that_does_not_wait_for_the_disk_would_be_found(shim: Path, tmp_path: Path) -> None:
    (tally,) = broken(shim, tmp_path, "unsynced", "sync", [(errno.EIO, True)])
    assert tally["refused"] < REFUSED["sync"]
