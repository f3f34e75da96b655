"""What the targets share: the hand-written seeds as a corpus, and libFuzzer with its options from the command line.

    python tests/fuzz/targets/sql.py CORPUS [-runs=20000 -timeout=10 ...]

CORPUS is a folder, which is made. The exit code is 0, or what libFuzzer makes of an exception, of an input that takes
too long, or of too much memory; the input itself is then written to a file.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import atheris

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # tests/

if TYPE_CHECKING:
    from fuzz.doors import Door


def fuzz(door: Door) -> None:
    """Send in whatever libFuzzer makes of the seeds. Does not return: libFuzzer ends the process."""

    def send(data: bytes) -> None:
        door.send(data)

    corpus = Path(sys.argv[1])
    corpus.mkdir(parents=True, exist_ok=True)
    for body in door.seeds.values():
        (corpus / hashlib.sha256(body).hexdigest()).write_bytes(body)
    atheris.Setup(sys.argv, send)
    atheris.Fuzz()
