"""The first question that needs a strategy in a process is answered like every later one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harness import clock

PLAY = """
import sys
sys.path.insert(0, sys.argv[1])
from harness.questions import scene
from harness.record_play import faults
played = scene("several aggregates", 1)
print(faults(played.pair, played.steps))
"""


@pytest.mark.heavy
def test_a_new_process_plays_the_first_run_like_the_second() -> None:
    """The libraries that plans need are loaded late, and some read the clock while they are loaded."""
    here = Path(clock.__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", PLAY, str(here)], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
