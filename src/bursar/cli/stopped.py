"""Ctrl-C during a question: nothing that was paid for is lost, and the person is told what was charged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bursar import Bursar


class Stopped(Exception):
    """A question was stopped; the text says what was charged."""


class Watch:
    """Knows where the log ended before a question."""

    def __init__(self, bursar: Bursar) -> None:
        self._bursar = bursar
        self._position = 0

    @contextmanager
    def over(self, question: str) -> Iterator[None]:
        """Turns Ctrl-C inside the block into `Stopped`. What the ledger says is what counts, so it is asked."""
        records = self._bursar.ledger.records(self._position)
        self._position = records[-1].position if records else self._position
        try:
            yield
        except KeyboardInterrupt:
            raise Stopped(self._charged(question)) from None

    def _charged(self, question: str) -> str:
        unit = self._bursar.budget().unit  # looking is a commit of its own, behind any that was still under way
        new = [line for line in self._bursar.log() if line.position > self._position]
        paid = sum(line.paid for line in new if (line.analyst, line.purpose) == (self._bursar.analyst, question))
        if paid == 0:
            return "stopped; nothing was charged"
        return f"stopped; {unit} {paid:.6g} was charged, and what it bought is kept: ask again, it is not paid twice"
