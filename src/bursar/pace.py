"""Quantised response times: what an answer's timing can tell is how many whole steps it took."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paced(seconds: float) -> Iterator[None]:
    """Leave the block, by return or by error, only at a whole multiple of `seconds` after entering it; 0 is no wait."""
    start = time.monotonic()
    try:
        yield
    finally:
        if seconds > 0:
            taken = time.monotonic() - start
            time.sleep(math.ceil(taken / seconds) * seconds - taken)
