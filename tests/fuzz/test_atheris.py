"""Coverage-guided fuzzing of every door, each in a process of its own, for a bounded number of inputs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fuzz.doors import DOORS

TARGETS = Path(__file__).parent / "targets"
LIMITS = ("-runs=20000", "-max_total_time=15", "-max_len=4096", "-rss_limit_mb=2048", "-timeout=10")


def fuzz(target: Path, corpus: Path, *options: str) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("atheris")
    words = [sys.executable, str(target), str(corpus), *options, f"-artifact_prefix={corpus.parent}/"]
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.run(words, **both, text=True, errors="replace", check=False)


@pytest.mark.heavy
@pytest.mark.parametrize("door", DOORS)
def test_nothing_surprises_a_door(tmp_path: Path, door: str) -> None:
    done = fuzz(TARGETS / f"{door}.py", tmp_path / "corpus", *LIMITS)
    found = [f"{file.name}: {file.read_bytes()!r}" for file in tmp_path.iterdir() if file.is_file()]
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{found}"
    assert "DONE" in done.stdout
    assert found == []


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
    """The wrong twin: a door that stumbles over three bytes, of which the seeds have one."""
    target = tmp_path / "wrong.py"
    target.write_text(WRONG.format(targets=str(TARGETS)))
    done = fuzz(target, tmp_path / "corpus", *LIMITS, "-runs=500000")
    assert done.returncode != 0
    assert "ValueError: a surprise" in done.stdout


@pytest.mark.heavy
def test_every_door_has_a_target() -> None:
    assert {path.stem for path in TARGETS.glob("*.py")} == {*DOORS, "target"}
