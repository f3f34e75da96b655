"""What the targets share: seeds as a corpus, bytes as text, and libFuzzer's limits from the command line.

A target is run as `python tests/fuzz/targets/sql.py CORPUS [-runs=20000 ...]`; the first argument is a folder for the
corpus, into which the hand-written seeds are put. It ends with exit code 0, or with what libFuzzer makes of an
exception, of a run that takes too long or of too much memory.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # tests/, for fuzz.* and harness.*


def fuzz(target: Callable[[bytes], None], *, seeds: Iterable[str | bytes]) -> None:
    """Run libFuzzer on the target; returns to the operating system, not to the caller."""
    corpus = Path(sys.argv[1])
    corpus.mkdir(parents=True, exist_ok=True)
    for seed in seeds:
        body = seed.encode("utf-8", "surrogatepass") if isinstance(seed, str) else seed
        (corpus / hashlib.sha256(body).hexdigest()).write_bytes(body)
    atheris.Setup(sys.argv, target)
    atheris.Fuzz()


def text_of(data: bytes) -> str:
    """Any bytes as text, with lone surrogates where they are not UTF-8, as a command line would have them."""
    return data.decode("utf-8", "surrogateescape")
