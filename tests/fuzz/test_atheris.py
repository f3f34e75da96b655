"""Coverage-guided fuzzing of every door, each in a process of its own, for a bounded number of inputs.

Where BURSAR_NO_SKIPS is set every run begins with the same inputs, as other generated examples do (see conftest.py).
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fuzz.doors import DOORS

TARGETS = Path(__file__).parent / "targets"
LIMITS = ("-max_len=4096", "-rss_limit_mb=2048", "-timeout=60")
SEED = ("-seed=1",) if "BURSAR_NO_SKIPS" in os.environ else ()


def fuzz(target: Path, corpus: Path, *options: str) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("atheris")
    words = [sys.executable, str(target), str(corpus), *LIMITS, *SEED, *options, f"-artifact_prefix={corpus.parent}/"]
    # A process begins with the largest size of the one that started it, and the limit counts that size: a shell that
    # stays in between is small, while the process of the tests need not be.
    words = ["sh", "-c", '"$@"; exit $?', "sh", *words]
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.run(words, **both, text=True, errors="replace", check=False)


def only_waited(door: str, file: Path) -> bool:
    """Whether an input that took ten seconds by the clock takes less than one of computing: the machine was busy."""
    start = time.process_time()
    DOORS[door].send(file.read_bytes())
    return time.process_time() - start < 1


OUTER = {"sql", "wire", "ledger"}
"""Doors that strangers come to, and the one that must not be fooled; the others are for `make soak`."""


@pytest.mark.parametrize(
    "door", [pytest.param(door, marks=pytest.mark.heavy if door in OUTER else pytest.mark.soak) for door in DOORS]
)
def test_nothing_surprises_a_door(tmp_path: Path, door: str) -> None:
    seconds = 60 if "BURSAR_SOAK" in os.environ else 4
    done = fuzz(TARGETS / f"{door}.py", tmp_path / "corpus", "-runs=20000", f"-max_total_time={seconds}")
    files = [file for file in tmp_path.iterdir() if file.is_file()]
    found = [f"{file.name}: {file.read_bytes()!r}" for file in files]
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{found}"
    assert "DONE" in done.stdout
    assert all(file.name.startswith("slow-unit-") and only_waited(door, file) for file in files), found


WRONG = """
import atheris, sys
sys.path.insert(0, {targets!r})
from target import fuzz
from fuzz.doors import DOORS, Door

@atheris.instrument_func
def send(data):
    if data[:1] == b"S" and data[1:2] == b"%" and data[2:3] == b"L":
        raise ValueError("a surprise")

fuzz(Door(send=send, seeds=DOORS["sql"].seeds))
"""


@pytest.mark.heavy
def test_a_surprise_would_be_found(tmp_path: Path) -> None:
    """The wrong twin: a door that stumbles over three bytes, of which the seeds have one. It takes some 2,000 inputs,
    and may take any time."""
    target = tmp_path / "wrong.py"
    target.write_text(WRONG.format(targets=str(TARGETS)))
    done = fuzz(target, tmp_path / "corpus", "-runs=500000")
    assert done.returncode != 0
    assert "ValueError: a surprise" in done.stdout


@pytest.mark.heavy
def test_every_door_has_a_target() -> None:
    assert {path.stem for path in TARGETS.glob("*.py")} == {*DOORS, "target"}
