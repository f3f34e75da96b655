"""The hand-written monsters, each sent in as it is: one kind of error, and no more work than their size deserves."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz.doors import DOORS

SECONDS = 120  # of the processor, for all seeds of a door together: they take a few
BYTES = 2**30  # of address space: a third of it is used


def run(code: str, *arguments: str, seconds: int = SECONDS) -> subprocess.CompletedProcess[str]:
    """A program under limits that turn a hang, or memory that grows without an end, into a failure."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    words = [sys.executable, *(["-c", code] if "\n" in code else [code]), *arguments]
    alone = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # each further thread would reserve memory
    return subprocess.run(words, capture_output=True, text=True, check=False, preexec_fn=limit, env=alone)


@pytest.mark.heavy
@pytest.mark.sampled(3)
@pytest.mark.parametrize("door", DOORS)
def test_every_monster_is_dealt_with(door: str) -> None:
    done = run(str(Path(__file__).parent / "doors.py"), door)
    assert done.returncode == 0, f"{done.stdout.splitlines()[-1:]} {done.stderr[-2000:]}"
    outcomes = dict(line.rsplit(": ", 1) for line in done.stdout.splitlines())
    assert set(outcomes) == set(DOORS[door].seeds)
    for name in outcomes:
        expected = {"plain": "accepted", "no text": "refused", "good": "accepted"}.get(name.split(": ")[-1])
        assert expected in (None, outcomes[name]), name


UNLIMITED = """
from bursar.errors import QueryError
from bursar.sql import parse, tokens
tokens.MOST_TEDIOUS = 10**9
try:
    parse("SELECT COUNT(*) FROM people" + " JOIN b" * 60)
except QueryError:
    pass
"""
SQUARED = """
from bursar.config.section import line_numbers
line_numbers("a" + ".a" * 50_000 + " = 1")
"""


@pytest.mark.heavy
def test_a_question_without_an_end_would_be_noticed() -> None:
    """The wrong twin: without the limits of the front end, one question would take for ever."""
    assert run(UNLIMITED, seconds=2).returncode in {-signal.SIGKILL, -signal.SIGXCPU}


@pytest.mark.heavy
def test_memory_without_an_end_would_be_noticed() -> None:
    """The wrong twin: where each part of a key is, if keys could have any number of parts."""
    assert "MemoryError" in run(SQUARED).stderr
