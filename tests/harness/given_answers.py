"""Record-play without a tape: a generator that knows no data gives the answers of a whole session."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

from bursar.core.kernel import Kernel
from bursar.core.queries import LinearMap
from bursar.core.tables import Tables
from harness.small import Silence


class OneKey(Silence):
    """Both runs choose the rows that count by the same secret."""

    def secret(self, size: int) -> bytes:
        return bytes(size)


class Played:
    """One run: what was seen, and the exact answers behind it, which nobody sees."""

    def __init__(self) -> None:
        self.seen: list[object] = []
        self.inputs: list[tuple[LinearMap, np.ndarray]] = []


@contextmanager
def given_answers(run: Played, seed: int) -> Iterator[None]:
    """Records carry numbers of a generator in place of exact answers and noise; the exact ones are written down."""
    rng = np.random.default_rng(seed)
    counted, append = Tables.answers, Kernel._append

    def answers(self: Tables, strategy: LinearMap) -> Any:
        exact = counted(self, strategy)
        run.inputs.append((strategy, exact))
        return exact

    def appended(transaction: Any, event: Any, values: Any, **terms: Any) -> Any:
        given = rng.choice([-1000, -1, 0, 0, 3, 50, 10**6], len(values)).astype(np.int64)
        return append(transaction, event, given, **terms)

    with patch.object(Tables, "answers", answers), patch.object(Kernel, "_append", staticmethod(appended)):
        yield
